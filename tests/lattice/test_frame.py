"""Frames against closed forms, the authors' figures and other programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.errors import InvalidInput, UnknownName
from drakebots.lattice.frame import (
    CONVENTIONS,
    Frame,
    Load,
    Supports,
    actuate,
    lattice_frame,
    pair_forces,
)
from drakebots.lattice.frame_element import elements
from drakebots.lattice.frame_solve import FactoredFrame, solve_frame
from drakebots.lattice.lattice import Lattice, block
from drakebots.lattice.pom import Control, PlanesOfMotion
from drakebots.lattice.strut import Strut

STEEL = Strut(0.02, 0.03, 2.1e11, 0.3, 7800.0)


def turn(seed: int) -> np.ndarray:
    """A random rotation."""
    q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))
    return q * np.sign(np.linalg.det(q))


def cantilever(count=4, length=1.5, shear=False, seed=1):
    """A straight beam of `count` pieces, clamped at node 0, and its axes."""
    R = turn(seed)  # columns x, y, z of the beam
    along = np.linspace(0, length, count + 1)
    positions = along[:, None] * R[:, 0]
    beams = np.column_stack([np.arange(count), np.arange(1, count + 1)])
    frame = Frame(positions, beams, STEEL, R[:, 1], shear)
    held = np.zeros((count + 1, 6), bool)
    held[0] = True
    return frame, Supports(held), R


def tip(frame, supports, R, force=(0, 0, 0), moment=(0, 0, 0)):
    """Motion of the tip in the beam's axes, (3,) and (3,), and the solution."""
    six = np.r_[R @ np.array(force, float), R @ np.array(moment, float)]
    load = Load(force=frame.at_nodes({len(frame) - 1: six}))
    solution = solve_frame(frame, supports, load)
    u = solution.displacement[-1]
    return R.T @ u[:3], R.T @ u[3:], solution


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
    assert np.allclose(solution.torsion, 3)
    assert np.allclose(solution.shear, [7, 5])
    about_y, about_z = solution.bending[0, 0]
    assert (about_y, about_z) == (pytest.approx(-5 * L), pytest.approx(7 * L))
    assert solution.bending[1, 1] == pytest.approx([0, 0], abs=1e-9)
    expected = 90 / s.area + 7 * L * s.d1 / 2 / s.I1 + 5 * L * s.d2 / 2 / s.I2
    assert solution.stress[0] == pytest.approx(expected, rel=1e-9)
    # Exact maximum of a 3 : 2 rectangle: T/(0.231 a b^2).
    assert solution.torsion_stress[0] == pytest.approx(
        3 / (0.231 * 0.03 * 0.02**2), 0.04
    )
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
    assert np.allclose(solution.bending[-1, 1], 0, atol=1e-9)
    assert solution.shear[0, 0, 1] == pytest.approx(-w * L, rel=1e-9)


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
    beam = elements(np.array([[0, 0, 0], [0.4, 0, 0]]), np.array([[0, 1]]), STEEL)
    # Default axes of a beam along x: d1 along world z.
    axes = beam.axes[0]
    assert np.allclose(axes, [[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    T = np.kron(np.eye(4), axes)
    K = T @ beam.stiffness()[0] @ T.T
    expected = textbook(STEEL, 0.4)
    assert np.abs(K - expected).max() <= 1e-12 * np.abs(expected).max()


def random_lattice(seed: int, count: int) -> Lattice:
    """Voxels that grew face by face."""
    random, voxels = np.random.default_rng(seed), [(5, 5, 5)]
    while len(voxels) < count:
        step = np.eye(3, dtype=int)[random.integers(3)] * random.choice([-1, 1])
        voxel = tuple((np.array(voxels[random.integers(len(voxels))]) + step).tolist())
        if min(voxel) >= 0 and voxel not in voxels:
            voxels.append(voxel)
    return Lattice(np.array(voxels))


shapes = st.builds(random_lattice, st.integers(0, 10**6), st.integers(1, 14))


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


def test_uniform_stretch():
    """Patch test: beams along a line between moved ends carry EA times strain."""
    frame, supports, R = cantilever(6)
    held = supports.held.copy()
    held[-1] = True
    moved = frame.at_nodes({6: np.r_[1e-3 * R[:, 0], 0, 0, 0]})
    solution = solve_frame(frame, Supports(held), Load(displacement=moved))
    assert np.allclose(solution.axial, STEEL.E * STEEL.area * 1e-3 / 1.5)
    assert solution.energy.shares()["axial"] == pytest.approx(1.0)


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
        load = Load(force=frame.at_nodes({len(frame) - 1: [1, 2, 3, 0, 0, 0.1]}))
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
            frame, floating, Load(force=frame.at_nodes({0: [1, 0, 0, 0, 0, 0]}))
        )


def test_one_strut_for_each_beam():
    """Springs in series: two sections between a clamp and a pull."""
    thick, thin = STEEL, Strut(0.01, 0.01, 2.1e11, 0.3)
    positions = [[0, 0, 0], [1, 0, 0], [2, 0, 0]]
    frame = Frame(positions, [[0, 1], [1, 2]], [thick, thin])
    held = np.zeros((3, 6), bool)
    held[0] = True
    load = Load(force=frame.at_nodes({2: [10, 0, 0, 0, 0, 0]}))
    u = solve_frame(frame, Supports(held), load).displacement[2, 0]
    assert u == pytest.approx(10 / 2.1e11 * (1 / thick.area + 1 / thin.area))


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
        (([[0, 0, np.nan], *square[1:]], [[0, 1], [1, 2]]), "node 0"),
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
    with pytest.raises(InvalidInput, match="3 ways"):
        FactoredFrame(frame, Supports(held))
    held[0] = True
    with pytest.raises(InvalidInput, match=r"held must be \(36, 6\)"):
        FactoredFrame(frame, Supports(held[1:]))
    with pytest.raises(InvalidInput, match="depends on the others"):
        FactoredFrame(frame, Supports(held, [pair, pair[::-1]]))
    with pytest.raises(InvalidInput, match="no node 99"):
        FactoredFrame(frame, Supports(held, [(0, 99)]))
    factored = FactoredFrame(frame, Supports(held, [pair]))
    for load, words in (
        (Load(force=np.zeros(3)), "force must be"),
        (Load(gravity=[0, 0, np.nan]), "gravity must be"),
        (Load(extension=[0.1, 0.2]), "extension must be"),
        (Load(displacement=frame.at_nodes({3: [0, 1, 0, 0, 0, 0]})), "node 3 .* y"),
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
    with pytest.raises(InvalidInput, match="as many forces"):
        pair_forces(frame, [pair], [1.0, 2.0])
    apart = Lattice(np.array([[0, 0, 0], [5, 5, 5]]))
    both = lattice_frame(apart)
    held = np.zeros((12, 6), bool)
    held[0] = True
    with pytest.raises(InvalidInput, match=r"piece with node \d+ can still move"):
        FactoredFrame(both, Supports(held))
