"""Frames of lattices: what any must keep, the authors' figures, many loads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.lattice.frame import (
    CONVENTIONS,
    FactoredFrame,
    Load,
    Supports,
    actuate,
    lattice_frame,
    solve_frame,
)
from drakebots.lattice.pom import Control, PlanesOfMotion
from drakebots.lattice.shape import Lattice, block
from tests.helpers.beam_frames import at_nodes, pair_forces
from tests.helpers.scripts import load_script

grown = load_script("random_lattices").grown

shapes = st.builds(grown, st.integers(0, 10**6), st.integers(1, 14), within=st.just(11))


@given(shapes, st.booleans())
@settings(max_examples=15)
def test_stiffness_is_symmetric_with_six_rigid_motions(lattice, shear):
    """K = K', K R = 0, and no other motion is free."""
    frame = lattice_frame(lattice, shear=shear)
    K = frame.stiffness.toarray()
    assert np.abs(K - K.T).max() <= 1e-12 * np.abs(K).max()
    R = frame.rigid_motions()
    assert np.abs(K @ R).max() <= 1e-9 * np.abs(K).max() * np.abs(R).max()
    # Turns by 1/pitch move nodes by about one.
    scale = np.tile([1.0] * 3 + [1 / lattice.pitch] * 3, len(frame))
    values = np.linalg.eigvalsh(scale[:, None] * K * scale)
    assert values[5] < 1e-9 * values[-1] < values[6]


@given(shapes, st.integers(0, 10**6))
@settings(max_examples=15)
def test_patch(lattice, seed):
    """Rigid motion of a few held nodes moves all alike, without any force."""
    frame = lattice_frame(lattice)
    motion = (
        frame.rigid_motions() @ np.random.default_rng(seed).uniform(-1, 1, 6)
    ).reshape(-1, 6)
    held = np.zeros((len(frame), 6), bool)
    held[[0, len(frame) // 2, -1]] = True
    solution = solve_frame(frame, Supports(held), Load(displacement=motion * held))
    assert np.allclose(solution.displacement, motion, atol=1e-8)
    stiff = np.abs(frame.stiffness.diagonal()).max()
    assert np.abs(solution.reaction).max() < 1e-8 * stiff


@given(shapes, st.integers(0, 10**6))
@settings(max_examples=15)
def test_reciprocity_and_balance(lattice, seed):
    """Maxwell and Betti: f1 . u2 = f2 . u1; reactions balance what is applied."""
    frame, random = lattice_frame(lattice), np.random.default_rng(seed)
    held = np.zeros((len(frame), 6), bool)
    held[random.integers(len(frame))] = True
    loads = [Load(force=random.standard_normal((len(frame), 6))) for _ in range(2)]
    first, second = FactoredFrame(frame, Supports(held)).solve(*loads)
    one = loads[0].force * second.displacement
    two = loads[1].force * first.displacement
    assert abs(one.sum() - two.sum()) < 1e-9 * np.abs(one).sum()
    total = (loads[0].force + first.reaction).ravel() @ frame.rigid_motions()
    stiff = np.abs(frame.stiffness.diagonal()).max()
    assert np.abs(total).max() < 1e-11 * stiff * np.abs(first.displacement).max()
    work = (loads[0].force * first.displacement).sum() / 2
    assert first.energy.total == pytest.approx(work, rel=1e-7)


@given(shapes)
@settings(max_examples=10)
def test_translation_and_numbering_do_not_matter(lattice):
    """A lattice moved, or listed the other way round, answers the same."""
    other = Lattice(np.add(lattice.voxels[::-1], [2, 4, 6]), lattice.pitch)
    found = []
    for one in (lattice, other):
        frame = lattice_frame(one)
        held = np.zeros((len(frame), 6), bool)
        held[0] = True
        load = Load(force=at_nodes(frame, {len(frame) - 1: [1, 2, 3, 0, 0, 0.1]}))
        found.append(solve_frame(frame, Supports(held), load).displacement)
    assert np.allclose(*found, rtol=1e-6, atol=1e-9 * np.abs(found[0]).max())


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize(
    "edge, bottom, force", [(2, (2, 1, 1), 6.165580), (4, (2, 1, 1), 36.068833)]
)
def test_authors_actuator_forces(convention, edge, bottom, force):
    """+-5 mm between two nodes; the three ways to hold them agree.

    Off the middle of a block only "sym" keeps the nodes from moving sideways
    against each other, as the authors' case does: a difference of 4e-6.
    """
    lattice = block(edge, edge, edge)
    x, y, z = bottom
    pair = (lattice.node(bottom), lattice.node((x, y, z + 2)))
    frame = lattice_frame(lattice)
    solution = solve_frame(frame, *actuate(frame, [pair], [0.01], convention))
    near = {"abs": 5e-7} if convention == "sym" or edge == 2 else {"rel": 5e-6}
    assert solution.actuator_force[0] == pytest.approx(force, **near)
    assert solution.extension[0] == pytest.approx(0.01, rel=1e-12)
    assert solution.energy.total == pytest.approx(force * 0.005, rel=5e-6)
    assert solution.apart(*pair) == pytest.approx(0.01, rel=1e-9)


def test_energy_shares_of_the_paper():
    """2 x 1 x 2 voxels: 95.2 % bending, 4.6 % torsion, 0.2 % axial."""
    lattice = block(2, 1, 2)
    pair = (lattice.node((2, 1, 1)), lattice.node((2, 1, 3)))
    frame = lattice_frame(lattice)
    energy = solve_frame(frame, *actuate(frame, [pair], [0.01], "sym")).energy
    percent = {k: round(100 * v, 1) for k, v in energy.shares().items()}
    assert percent == {"axial": 0.2, "torsion": 4.6, "bending": 95.2, "shear": 0.0}


@pytest.mark.parametrize(
    "size, largest, mean, others",
    [
        ((2, 1, 2), 0.33, 0.22, 0.1),
        ((4, 1, 4), 4.61, 2.9, 1.2),
        ((8, 1, 8), 21.3, 17.7, 3.6),
        ((2, 2, 2), 0.40, 0.27, 16.2),
        ((4, 4, 4), 4.42, 3.3, 12.4),
    ],
)
def test_dissipation_of_the_facts(size, largest, mean, others):
    """Percent lost of a plane's motion, and what other nodes do."""
    lattice = block(*size)
    x, y, z = 2 * (size[0] // 2), 2 * ((size[1] - 1) // 2) + 1, size[2] // 2 * 2 - 1
    pair = (lattice.node((x, y, z)), lattice.node((x, y, z + 2)))
    frame = lattice_frame(lattice)
    solution = solve_frame(frame, *actuate(frame, [pair], [0.01], "sym"))
    moved = solution.displacement[:, :3]
    plane = PlanesOfMotion(lattice, [Control((x, y, z))]).displacements([-0.005])
    on = plane.any(axis=1)
    loss = 100 * (1 - (moved * plane).sum(axis=1)[on] / (plane**2).sum(axis=1)[on])
    assert loss.max() == pytest.approx(largest, rel=0.02)
    assert loss.mean() == pytest.approx(mean, rel=0.02)
    assert 100 * np.abs(moved[~on]).max() / 0.005 == pytest.approx(others, abs=0.06)


def test_many_loads_and_actuators_share_one_factorization():
    """Four actuators: superposition, extensions met, push and reaction agree."""
    lattice = block(2, 2, 2)
    bottoms = [(2, 1, 1), (1, 2, 1), (2, 3, 1), (3, 2, 1)]
    pairs = [(lattice.node(b), lattice.node(np.add(b, (0, 0, 2)))) for b in bottoms]
    frame = lattice_frame(lattice)
    supports, _ = actuate(frame, pairs, np.zeros(4), "free")
    factored = FactoredFrame(frame, supports)
    loads = [Load(extension=0.01 * e) for e in (*np.eye(4), np.ones(4))]
    *single, together = factored.solve(*loads)
    total = sum(s.displacement for s in single)
    assert np.allclose(together.displacement, total, atol=1e-12)
    assert np.allclose(
        [s.actuator_force for s in single],
        np.transpose([s.actuator_force for s in single]),
        atol=1e-8,
    )
    assert np.allclose(together.extension, 0.01)
    # Facts: 1.49 N per mm of a node's motion with the others held.
    assert single[0].actuator_force[0] == pytest.approx(7.4, rel=0.02)
    pushed = pair_forces(frame, pairs, together.actuator_force)
    assert np.allclose(together.reaction[:, :3], pushed[:, :3], atol=1e-8)
    assert np.abs(together.displacement[:, :3].mean(axis=0)).max() < 1e-12


def test_floating_frame_needs_balance():
    """A squeezed lattice floats; one pushed away does not."""
    lattice = block(2, 1, 1)
    frame = lattice_frame(lattice)
    pair = (lattice.node((0, 1, 1)), lattice.node((4, 1, 1)))
    floating = Supports(np.zeros((len(frame), 6), bool), floating=True)
    load = Load(force=pair_forces(frame, [pair], [1.0]))
    loose = solve_frame(frame, floating, load)
    assert loose.apart(*pair) > 0
    assert np.abs(loose.displacement[:, :3].mean(axis=0)).max() < 1e-12
    held = np.zeros((len(frame), 6), bool)
    held[pair[0]] = True
    clamped = solve_frame(frame, Supports(held), load)
    assert loose.apart(*pair) == pytest.approx(clamped.apart(*pair), rel=1e-9)
    with pytest.raises(InvalidInput, match="do not balance"):
        solve_frame(
            frame, floating, Load(force=at_nodes(frame, {0: [1, 0, 0, 0, 0, 0]}))
        )
