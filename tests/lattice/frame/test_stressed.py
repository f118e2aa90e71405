"""Stress stiffness against the authors' figures and the theory of columns."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import NoSolution
from drakebots.lattice.frame import (
    Frame,
    Load,
    Supports,
    actuate,
    lattice_frame,
    solve_frame,
)
from drakebots.lattice.shape import Strut, block
from tests.helpers.beam_frames import at_nodes, pair_forces
from tests.helpers.stressed_frames import geometric, solve_stressed, stressed


def authors_block(force: float, layers=(1,)):
    """2 x 2 x 2 voxels, a node clamped, the one above loaded and kept from turning."""
    lattice = block(2, 2, 2)
    frame = lattice_frame(lattice)
    pairs = [(lattice.node((2, y, 1)), lattice.node((2, y, 3))) for y in layers]
    supports, _ = actuate(frame, pairs, np.zeros(len(pairs)), "ff")
    loose = Supports(supports.held)
    load = Load(force=pair_forces(frame, pairs, [force] * len(pairs)))
    return frame, loose, load, pairs[0]


def test_authors_extensions():
    """8.440766 mm with stress stiffness, 9.731445 mm without, under 6 N."""
    frame, supports, load, pair = authors_block(6.0)
    linear = solve_frame(frame, supports, load).apart(*pair)
    solution, passes = solve_stressed(frame, supports, load)
    assert 1e3 * linear == pytest.approx(9.731445, abs=5e-7)
    assert 1e3 * solution.apart(*pair) == pytest.approx(8.440766, abs=5e-7)
    assert 1 < passes < 20


@pytest.mark.parametrize("convention", ["ff", "sym", "free"])
def test_prescribed_extension_takes_the_same_force(convention):
    """8.440766 mm prescribed: 6 N, however the nodes are held."""
    frame, _, _, pair = authors_block(6.0)
    case = actuate(frame, [pair], [8.440766397e-3], convention)
    solution, _ = solve_stressed(frame, *case)
    assert solution.actuator_force[0] == pytest.approx(6.0, rel=1e-7)


def test_small_loads_are_linear():
    """1.6219 um under 0.001 N, both ways."""
    frame, supports, load, pair = authors_block(1e-3)
    assert 1e6 * solve_frame(frame, supports, load).apart(*pair) == pytest.approx(
        1.6219, abs=5e-5
    )
    solution, _ = solve_stressed(frame, supports, load)
    assert 1e6 * solution.apart(*pair) == pytest.approx(1.6219, abs=5e-5)


@pytest.mark.parametrize("force, extension", [(6.32, 10e-3), (-4.60, -10e-3)])
def test_pushing_stiffens_and_pulling_softens(force, extension):
    """Two actuators of the authors' cube: 10 mm takes 5.32 N each, linear."""
    linear = solve_frame(*(case := authors_block(5.32, (1, 3)))[:3])
    assert linear.apart(*case[3]) == pytest.approx(10e-3, rel=2e-3)
    frame, supports, load, pair = authors_block(force, (1, 3))
    found = solve_stressed(frame, supports, load)[0].apart(*pair)
    assert found == pytest.approx(extension, rel=2e-3)


def column(count=8, length=1.0):
    """A column along x, clamped at one end."""
    strut = Strut(0.01, 0.02, 2e9, 0.3)
    positions = np.linspace([0, 0, 0], [length, 0, 0], count + 1)
    beams = np.column_stack([np.arange(count), np.arange(1, count + 1)])
    frame = Frame(positions, beams, strut)
    held = np.zeros((count + 1, 6), bool)
    held[0] = True
    return frame, Supports(held), np.pi**2 * strut.E * strut.I1 / (4 * length**2)


def test_column_buckles_at_euler_load():
    """pi^2 E I/(4 L^2) about the weak axis: stable below, not above."""
    frame, supports, critical = column()
    for share in (0.999, 1.001):
        load = Load(force=at_nodes(frame, {8: [-share * critical, 0, 0, 0, 0, 0]}))
        if share < 1:
            solve_stressed(frame, supports, load)
        else:
            with pytest.raises(NoSolution, match="buckles"):
                solve_stressed(frame, supports, load)


def test_pulled_cantilever_is_a_tie_beam():
    """Tip under P and T: u = P/(T k) (k L - tanh k L), k^2 = T/(E I)."""
    frame, supports, critical = column()
    T, P = 3 * critical, 0.5
    k = np.sqrt(T / (frame.struts.E * frame.struts.I1))
    load = Load(force=at_nodes(frame, {8: [T, 0, P, 0, 0, 0]}))
    solution, _ = solve_stressed(frame, supports, load)
    expected = P / (T * k) * (k - np.tanh(k))
    assert solution.displacement[-1, 2] == pytest.approx(expected, rel=1e-4)
    # The clamp carries P and the moment that tension left over.
    assert solution.end_forces[0, 1] == pytest.approx(-P, rel=1e-8)
    left = P - T * solution.displacement[-1, 2]
    assert solution.reaction[0, 4] == pytest.approx(left, rel=1e-6)


def test_stress_stiffness_is_symmetric_and_ignores_translation():
    """Also turned in space and with shear."""
    lattice = block(2, 1, 1)
    frame = lattice_frame(lattice, shear=True)
    tension = np.random.default_rng(0).standard_normal(len(frame.beams))
    K = frame.assemble(geometric(stressed(frame, tension))).toarray()
    assert np.allclose(K, K.T, atol=1e-12)
    assert np.abs(K @ frame.rigid_motions()[:, :3]).max() < 1e-12


def test_what_does_not_settle_says_so():
    """One pass cannot be enough."""
    frame, supports, load, _ = authors_block(6.0)
    with pytest.raises(NoSolution, match="did not settle in 2 passes"):
        solve_stressed(frame, supports, load, most=2)


def test_tension_given_from_outside():
    """A prestressed frame is one more factorization."""
    frame, supports, critical = column()
    load = Load(force=at_nodes(frame, {8: [0, 0, 1.0, 0, 0, 0]}))
    soft = solve_frame(stressed(frame, np.full(8, -critical / 2)), supports, load)
    plain = solve_frame(frame, supports, load)
    gain = soft.displacement[-1, 2] / plain.displacement[-1, 2]
    # 1/(1 - P/Pc) is the usual estimate.
    assert gain == pytest.approx(2.0, rel=0.02)
