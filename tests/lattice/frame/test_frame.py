"""Frames against closed forms, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.lattice.frame import (
    FactoredFrame,
    Frame,
    Load,
    Supports,
    actuate,
    lattice_frame,
    solve_frame,
)
from drakebots.lattice.frame import solve as module
from drakebots.lattice.shape import Lattice, Strut, block
from tests.helpers.beam_frames import STEEL, at_nodes, cantilever, tip


@pytest.mark.parametrize("count", [1, 5])
def test_cantilever(count):
    """Tip loads, moments, pull and torque: u = F L^3/(3 E I) and so on."""
    frame, supports, R = cantilever(count)
    L, s = 1.5, STEEL
    u, t, _ = tip(frame, supports, R, force=(0, 7.0, 0))
    assert np.allclose(u, [0, 7 * L**3 / (3 * s.E * s.I1), 0], rtol=1e-9, atol=1e-13)
    assert np.allclose(t, [0, 0, 7 * L**2 / (2 * s.E * s.I1)], rtol=1e-9, atol=1e-13)
    u, t, _ = tip(frame, supports, R, force=(0, 0, 7.0))
    assert np.allclose(u, [0, 0, 7 * L**3 / (3 * s.E * s.I2)], rtol=1e-9, atol=1e-13)
    assert np.allclose(t, [0, -7 * L**2 / (2 * s.E * s.I2), 0], rtol=1e-9, atol=1e-13)
    u, t, _ = tip(frame, supports, R, force=(7.0, 0, 0), moment=(3.0, 0, 0))
    assert np.allclose(u, [7 * L / (s.E * s.area), 0, 0], rtol=1e-9, atol=1e-13)
    assert np.allclose(t, [3 * L / (s.G * s.J), 0, 0], rtol=1e-9, atol=1e-13)
    u, t, _ = tip(frame, supports, R, moment=(0, 0, 5.0))
    assert np.allclose(u, [0, 5 * L**2 / (2 * s.E * s.I1), 0], rtol=1e-9, atol=1e-13)
    assert np.allclose(t, [0, 0, 5 * L / (s.E * s.I1)], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("count", [1, 3])
def test_timoshenko_cantilever(count):
    """Shear adds F L/(k G A), and its share of the energy is that of the work."""
    frame, supports, R = cantilever(count, length=0.1, shear=True)
    L, s = 0.1, STEEL
    bent = 7 * L**3 / (3 * s.E * s.I1)
    k = 10 * (1 + s.nu) / (12 + 11 * s.nu)
    sheared = 7 * L / (k * s.G * s.area)
    u, _, solution = tip(frame, supports, R, force=(0, 7.0, 0))
    assert u[1] == pytest.approx(bent + sheared, rel=1e-10)
    assert solution.energy.shear == pytest.approx(7 * sheared / 2, rel=1e-9)
    assert solution.energy.bending == pytest.approx(7 * bent / 2, rel=1e-9)


def test_forces_and_stress_of_a_cantilever():
    """Moments at the clamp, signs of sections, stress at a corner."""
    frame, supports, R = cantilever(2)
    L, s = 1.5, STEEL
    _, _, solution = tip(frame, supports, R, force=(90.0, 7.0, 5.0), moment=(3.0, 0, 0))
    assert np.allclose(solution.axial, 90)
    assert np.allclose(solution.sections[:, :, :4], [90, 7, 5, 3])
    about_y, about_z = solution.sections[0, 0, 4:]
    assert (about_y, about_z) == (pytest.approx(-5 * L), pytest.approx(7 * L))
    assert solution.sections[1, 1, 4:] == pytest.approx([0, 0], abs=1e-9)
    expected = 90 / s.area + 7 * L * s.d1 / 2 / s.I1 + 5 * L * s.d2 / 2 / s.I2
    assert solution.stress[0] == pytest.approx(expected, rel=1e-9)
    back = solution.reaction[0]
    assert np.allclose(R.T @ back[:3], [-90, -7, -5])


def test_gravity():
    """u = w L^4/(8 E I), the clamp carries the weight and w L^2/2."""
    frame, supports, R = cantilever(3)
    L, s, g = 1.5, STEEL, 9.81
    load = Load(gravity=-g * R[:, 2])
    solution = solve_frame(frame, supports, load)
    w = s.rho * s.area * g
    u = R.T @ solution.displacement[-1, :3]
    assert u[2] == pytest.approx(-w * L**4 / (8 * s.E * s.I2), rel=1e-9)
    assert np.allclose(R.T @ solution.reaction[0, :3], [0, 0, w * L])
    assert np.allclose(R.T @ solution.reaction[0, 3:], [0, -w * L**2 / 2, 0])
    assert np.allclose(solution.sections[-1, 1, 4:], 0, atol=1e-9)
    assert solution.sections[0, 0, 2] == pytest.approx(-w * L, rel=1e-9)


def textbook(s: Strut, L: float) -> np.ndarray:
    """The 12 x 12 of the textbooks, written out once more."""
    K = np.zeros((12, 12))
    for i, k in ((0, s.E * s.area / L), (3, s.G * s.J / L)):
        K[i, i] = K[i + 6, i + 6] = k
        K[i, i + 6] = K[i + 6, i] = -k
    for (v, r), sign, EI in (((1, 5), 1, s.E * s.I1), ((2, 4), -1, s.E * s.I2)):
        at = [v, r, v + 6, r + 6]
        a, b = 12 * EI / L**3, sign * 6 * EI / L**2
        c, d = 4 * EI / L, 2 * EI / L
        K[np.ix_(at, at)] = [
            [a, b, -a, b], [b, c, -b, d], [-a, -b, a, -b], [b, d, -b, c]
        ]  # fmt: skip
    return K


def test_midpoint_bushing_is_the_beam():
    """B' D B with the deformations at the midpoint is the textbook's matrix."""
    beam = Frame(np.array([[0, 0, 0], [0.4, 0, 0]]), np.array([[0, 1]]), STEEL).elements
    # Default axes of a beam along x: d1 along world z.
    axes = beam.axes[0]
    assert np.allclose(axes, [[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    T = np.kron(np.eye(4), axes)
    K = T @ beam.stiffness()[0] @ T.T
    expected = textbook(STEEL, 0.4)
    assert np.abs(K - expected).max() <= 1e-12 * np.abs(expected).max()


def test_uniform_stretch():
    """Patch test: beams along a line between moved ends carry EA times strain."""
    frame, supports, R = cantilever(6)
    held = supports.held.copy()
    held[-1] = True
    moved = at_nodes(frame, {6: np.r_[1e-3 * R[:, 0], 0, 0, 0]})
    solution = solve_frame(frame, Supports(held), Load(displacement=moved))
    assert np.allclose(solution.axial, STEEL.E * STEEL.area * 1e-3 / 1.5)
    assert solution.energy.shares()["axial"] == pytest.approx(1.0)


def test_one_strut_for_each_beam():
    """Springs in series: two sections between a clamp and a pull."""
    thick, thin = STEEL, Strut(0.01, 0.01, 2.1e11, 0.3)
    positions = [[0, 0, 0], [1, 0, 0], [2, 0, 0]]
    frame = Frame(positions, [[0, 1], [1, 2]], [thick, thin])
    held = np.zeros((3, 6), bool)
    held[0] = True
    load = Load(force=at_nodes(frame, {2: [10, 0, 0, 0, 0, 0]}))
    u = solve_frame(frame, Supports(held), load).displacement[2, 0]
    assert u == pytest.approx(10 / 2.1e11 * (1 / thick.area + 1 / thin.area))


@pytest.mark.parametrize("wrong", [lambda x: 1.0001 * x, lambda x: x * np.nan])
def test_a_broken_factorization_is_not_believed(wrong, monkeypatch):
    frame, supports, R = cantilever(5)

    class Broken:
        def __init__(self, solver):
            self.factor, self.solver = solver.factor, solver

        def solve(self, b):
            return wrong(self.solver.solve(b))

    plain = module.make_solver
    monkeypatch.setattr(module, "make_solver", lambda *a, **k: Broken(plain(*a, **k)))
    with pytest.raises(NoSolution, match=r"frame: .* misses its equations"):
        tip(frame, supports, R, force=(0, 7.0, 0))


def test_bad_frames_are_named():
    """Each with the item and a remedy, in one line."""
    square = [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    for arguments, words in (
        ((np.zeros((3, 2)), [[0, 1]]), "positions must be"),
        ((square, np.zeros((0, 2), int)), "beams must be"),
        ((square, [[0, 1]]), "node 2 has no beam"),
        ((square, [[0, 1], [1, 3]]), "nodes 0..2"),
        ((square, [[0.0, 1.0], [1.0, 2.0]]), "whole numbers"),
        ((square, [[0, 1], [1, 2], [2, 2]]), "beam 2 between nodes"),
        (([[0, 0, np.nan], *square[1:]], [[0, 1], [1, 2]]), "at .0, 2"),
        ((square, [[0, 1], [1, 2]], [Strut()]), "one each; got 1"),
        ((square, [[0, 1], [1, 2]], Strut(), [1.0, 0, 0]), "beam 0: `up`"),
    ):
        with pytest.raises(InvalidInput, match=words) as caught:
            Frame(*arguments)
        assert "\n" not in str(caught.value)


def test_bad_supports_and_loads_are_named():
    """Found before anything is solved."""
    lattice = block(2, 2, 2)
    frame = lattice_frame(lattice)
    pair = (lattice.node((2, 1, 1)), lattice.node((2, 1, 3)))
    held = np.zeros((len(frame), 6), bool)
    held[0, :3] = True
    with pytest.raises(InvalidInput, match="3 rigid motions"):
        FactoredFrame(frame, Supports(held))
    held[0] = True
    with pytest.raises(InvalidInput, match=r"held must be \(36, 6\)"):
        FactoredFrame(frame, Supports(held[1:]))
    with pytest.raises(InvalidInput, match="depends on the others"):
        FactoredFrame(frame, Supports(held, [pair, pair[::-1]]))
    with pytest.raises(InvalidInput, match="no node 99"):
        FactoredFrame(frame, Supports(held, [(0, 99)]))
    bars = Frame([[0, 0, 0], [1, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1], [2, 3]])
    with pytest.raises(InvalidInput, match="nodes 1 and 2 are at the same place"):
        actuate(bars, [(1, 2)], [0.01])
    with pytest.raises(InvalidInput, match="joins two pieces of the frame"):
        solve_frame(bars, *actuate(bars, [(1, 3)], [0.01]))
    factored = FactoredFrame(frame, Supports(held, [pair]))
    for load, words in (
        (Load(force=np.zeros(3)), "force must be"),
        (Load(gravity=[0, 0, np.nan]), "gravity must be"),
        (Load(extension=[0.1, 0.2]), "extension must be"),
        (Load(displacement=at_nodes(frame, {3: [0, 1, 0, 0, 0, 0]})), "y of node 3"),
    ):
        with pytest.raises(InvalidInput, match=words):
            factored.solve(load)
    supports, load = actuate(frame, [pair], [0.01], "sym")
    wrong = Load(displacement=load.displacement, extension=[0.02])
    with pytest.raises(InvalidInput, match="held ends"):
        solve_frame(frame, supports, wrong)
    with pytest.raises(UnknownName, match="did you mean 'sym'"):
        actuate(frame, [pair], [0.01], "symm")
    with pytest.raises(InvalidInput, match="two actuators"):
        actuate(frame, [pair, (pair[0], 3)], [0.01, 0.01], "sym")
    with pytest.raises(InvalidInput, match="as many extensions"):
        actuate(frame, [pair], [0.01, 0.02])
    with pytest.raises(InvalidInput, match="pairs of node numbers"):
        Supports(held, [0, 1, 2])
    apart = Lattice(np.array([[0, 0, 0], [5, 5, 5]]))
    both = lattice_frame(apart)
    held = np.zeros((12, 6), bool)
    held[0] = True
    with pytest.raises(InvalidInput, match=r"piece with node \d+ is still free"):
        FactoredFrame(both, Supports(held))
