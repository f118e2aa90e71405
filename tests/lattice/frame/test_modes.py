"""Natural modes against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from drakebots.core.errors import InvalidInput
from drakebots.lattice.frame.all import Frame, Supports, actuate, lattice_frame
from drakebots.lattice.frame.modes import frame_modes
from drakebots.lattice.shape.lattice import Strut, block

STRUT = Strut(0.01, 0.02, 2e9, 0.3, 1000.0)


def beam(count, clamped):
    """A beam along x of 1 m."""
    positions = np.linspace([0, 0, 0], [1, 0, 0], count + 1)
    beams = np.column_stack([np.arange(count), np.arange(1, count + 1)])
    held = np.zeros((count + 1, 6), bool)
    held[0] = clamped
    return Frame(positions, beams, STRUT), Supports(held, floating=not clamped)


def bending(root: float, second: float) -> float:
    """(beta L)^2/(2 pi L^2) sqrt(E I/(rho A)) [Hz]."""
    return root**2 / (2 * np.pi) * np.sqrt(STRUT.E * second / (STRUT.rho * STRUT.area))


@pytest.mark.parametrize("lumped, count, near", [(False, 12, 1e-4), (True, 40, 3e-3)])
def test_cantilever_modes(lumped, count, near):
    """1.8751 and 4.6941 about both axes."""
    frame, supports = beam(count, True)
    modes = frame_modes(frame, supports, 4, lumped=lumped)
    expected = sorted(
        bending(root, second)
        for root in (1.875104, 4.694091)
        for second in (STRUT.I1, STRUT.I2)
    )
    assert modes.frequency == pytest.approx(expected, rel=near)
    assert modes.mass == pytest.approx(STRUT.rho * STRUT.area)
    assert np.abs(modes.shapes[:, 0]).max() == 0


def test_torsion_and_stretch():
    """Quarter waves: sqrt(G J/(rho I_p))/(4 L) and sqrt(E/rho)/(4 L)."""
    frame, supports = beam(20, True)
    modes = frame_modes(frame, supports, 30)
    sound = np.sqrt(STRUT.E / STRUT.rho) / 4
    about = STRUT.rho * (STRUT.I1 + STRUT.I2)
    twist = np.sqrt(STRUT.G * STRUT.J / about) / 4
    for expected in (sound, twist):
        assert np.abs(modes.frequency / expected - 1).min() < 1e-3


def test_free_lattice_has_six_rigid_modes():
    """And planes of motion above them, all below the modes of single beams."""
    modes = frame_modes(lattice_frame(block(2, 2, 2)), count=12)
    assert np.abs(modes.frequency[:6]).max() < 1e-3 * modes.frequency[6]
    # Twelve beams of 8 voxels, 1.481 g a voxel.
    assert modes.mass == pytest.approx(8 * 1.481e-3, rel=1e-3)


def test_added_mass_slows_and_locked_actuators_stiffen():
    """Heavier nodes: all frequencies by the root of the mass ratio, or less."""
    lattice = block(2, 2, 2)
    frame = lattice_frame(lattice)
    free = frame_modes(frame, count=9).frequency
    heavy = frame_modes(frame, count=9, node_mass=1e-3).frequency
    assert (heavy[6:] < free[6:]).all()
    pair = (lattice.node((2, 1, 1)), lattice.node((2, 1, 3)))
    held = np.zeros((len(frame), 6), bool)
    locked = Supports(held, [pair], floating=True)
    modes = frame_modes(frame, locked, 9)
    assert (modes.frequency[6:] >= free[6:] * (1 - 1e-9)).all()
    moved = modes.shapes[:, pair[1], 2] - modes.shapes[:, pair[0], 2]
    assert np.abs(moved).max() < 1e-9 * np.abs(modes.shapes).max()


@pytest.mark.parametrize("lumped", [False, True])
def test_lanczos_finds_what_the_dense_solver_finds(lumped):
    """All of the lowest fifteen, none left out."""
    frame = lattice_frame(block(2, 1, 1))
    K, M = frame.stiffness.toarray(), frame.assemble(frame.elements.mass(lumped))
    squared = scipy.linalg.eigh(K, M.toarray(), eigvals_only=True)[6:15]
    found = frame_modes(frame, count=15, lumped=lumped).frequency[6:]
    assert found == pytest.approx(np.sqrt(squared) / (2 * np.pi), rel=1e-6)


def test_modes_are_orthonormal_in_mass():
    """Phi' M Phi = 1."""
    lattice = block(2, 1, 2)
    frame = lattice_frame(lattice)
    pair = (lattice.node((2, 1, 1)), lattice.node((2, 1, 3)))
    supports, _ = actuate(frame, [pair], [0.0], "sym")
    modes = frame_modes(frame, supports, 6)
    M = frame.assemble(frame.elements.mass())
    phi = modes.shapes.reshape(6, -1)
    assert np.allclose(phi @ M @ phi.T, np.eye(6), atol=1e-8)


def test_tension_raises_pitch():
    """A string: f grows with the root of T."""
    frame, supports = beam(12, True)
    held = supports.held.copy()
    held[-1, :3] = True
    plain = frame_modes(frame, Supports(held), 1).frequency[0]
    tight = frame_modes(frame, Supports(held), 1, tension=np.full(12, 500.0))
    assert tight.frequency[0] > 2 * plain


def test_bad_modes_are_named():
    """Counts and masses."""
    frame = lattice_frame(block(1, 1, 1))
    for arguments, words in (
        ({"count": 0}, r"1\.\.35"),
        ({"count": 36}, r"1\.\.35"),
        ({"count": 8, "node_mass": -1.0}, "node_mass must be"),
    ):
        with pytest.raises(InvalidInput, match=words):
            frame_modes(frame, **arguments)
