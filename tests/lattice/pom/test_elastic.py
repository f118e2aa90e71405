"""Elastic planes of motion: the published matrix, forces and couplings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom import (
    Control,
    ElasticPOM,
    PlanesOfMotion,
    candidates,
    compare,
    frame_motion,
)
from drakebots.lattice.shape import Lattice, Strut, block, find_mechanisms
from tests.helpers.scripts import load_script

grown = load_script("random_lattices").grown

CORE = ElasticPOM(block(2, 2, 2))
BLUE = Control((2, 1, 1), 2, "blue")
ROBOT = Lattice(np.vstack([block(2, 2, 2).voxels, [(2, 1, 0), (1, 2, 0)]]))
FOUR = [BLUE, *(Control(n, 2) for n in ((1, 2, 1), (2, 3, 1), (3, 2, 1)))]


def test_matrix_of_2x2x2():
    """Facts 2.10, in N/m."""
    wanted = np.full((6, 6), 64.9)
    for i in range(0, 6, 2):
        wanted[i : i + 2, i : i + 2] = [[2545.5, -403.0], [-403.0, 2545.5]]
    assert np.abs(CORE.stiffness - wanted).max() < 0.05


def test_in_units_of_the_beam_it_is_joint_bending_and_twist():
    """Square sections of any size, nu 0.35: the matrix scales with EI/L."""
    thick = ElasticPOM(block(2, 2, 2), Strut(3e-3, 3e-3))
    ratio = (3e-3 / 1.27e-3) ** 4
    assert np.allclose(thick.stiffness, ratio * CORE.stiffness, rtol=1e-9)


@pytest.mark.parametrize(
    ("size", "node", "force", "frame", "share"),
    [
        ((2, 2, 2), (2, 1, 1), 6.179, 6.166, 0.003),
        ((4, 4, 4), (4, 3, 3), 43.15, 41.82, 0.04),
        ((8, 2, 8), (8, 1, 7), 185.0, 151.0, 0.24),
    ],
)
def test_forces(size, node, force, frame, share):
    actuator = [Control(node, 2)]
    lattice = block(*size)
    push = ElasticPOM(lattice).move(actuator, [5e-3]).force[0, 0]
    assert push == pytest.approx(-force, rel=3e-4)
    true = frame_motion(lattice, actuator, [5e-3]).actuator_force[0]
    assert true == pytest.approx(-frame, rel=4e-3)
    assert push == pytest.approx(true, rel=share)


def test_coupling_to_the_neighbouring_plane():
    names = [m.name for m in CORE.mechanisms.all]
    driven = names.index("plane y = 1")
    unit = CORE.amplitudes(np.eye(len(CORE.stiffness))[driven])
    at = unit / unit[driven]
    assert at[names.index("plane y = 3")] == pytest.approx(0.162, abs=5e-4)
    assert at[names.index("plane y = 1")] == 1


def test_force_is_the_derivative_of_energy():
    u = np.array([[1e-3, 2e-3, -1e-3, 5e-4]])
    model = ElasticPOM(ROBOT, mounts=FOUR)
    at = model.move(FOUR, u)
    h = 1e-7
    for i in range(4):
        step = np.eye(4)[i] * h
        slope = model.move(FOUR, u + step).energy - model.move(FOUR, u - step).energy
        assert slope[0] / (2 * h) == pytest.approx(-2 * at.force[0, i], rel=1e-6)


def test_planes_with_all_actuators_move_as_planes_of_motion():
    """Each plane with its own actuator: the elastic model has nothing to add."""
    lattice = block(2, 2, 2)
    six = [*FOUR, Control((2, 1, 1), 1), Control((2, 1, 3), 1)]
    u = np.random.default_rng(0).normal(size=(5, 6)) * 1e-3
    kinematic = PlanesOfMotion(lattice, six).displacements(u)
    assert np.allclose(CORE.move(six, u).displacement, kinematic, atol=1e-15)


def test_robots_force_coupling_and_foot():
    """Facts 2.7 and 2.9: 7.45 N, -4 % to adjacent actuators, foot 10.3 mm."""
    model = ElasticPOM(ROBOT, mounts=FOUR)
    force = model.move(FOUR, [5e-3, 0, 0, 0]).force[0]
    true = frame_motion(ROBOT, FOUR, [5e-3, 0, 0, 0]).actuator_force
    assert true[0] == pytest.approx(-7.4455, abs=1e-3)
    assert force[0] == pytest.approx(true[0], rel=5e-3)
    assert force[1] / force[0] == pytest.approx(-0.04, abs=5e-3)
    moved = model.move(FOUR, [0, 0, 5e-3, -5e-3]).displacement[0]
    assert moved[ROBOT.node((3, 5, 0)), 2] == pytest.approx(10.3e-3, abs=1e-4)
    assert moved[ROBOT.node((3, 6, 1)), 2] == pytest.approx(15.6e-3, abs=1e-4)


def test_mounts_stiffen():
    free, held = ElasticPOM(ROBOT), ElasticPOM(ROBOT, mounts=FOUR)
    assert (np.linalg.eigvalsh(held.stiffness - free.stiffness) > -1e-9).all()
    u = [5e-3, 0, 0, 0]
    ratio = held.move(FOUR, u).force[0, 0] / free.move(FOUR, u).force[0, 0]
    assert ratio == pytest.approx(1.17, abs=0.01)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_too_stiff_never_too_soft(seed):
    """A Galerkin step bounds the stiffness from above, on any shape."""
    lattice = grown(seed, 4 + seed % 12)
    found = candidates(lattice)
    if found:
        actuator = [found[seed % len(found)]]
        model = ElasticPOM(
            lattice, mechanisms=find_mechanisms(lattice), mounts=actuator
        )
        push = abs(model.move(actuator, [1e-3]).force[0, 0])
        true = abs(frame_motion(lattice, actuator, [1e-3]).actuator_force[0])
        assert true * (1 - 1e-6) <= push <= 1.1 * true


@pytest.mark.long
def test_fifty_random_shapes_against_the_frame():
    """Where planes of motion fail, slopes from below 0 to 1, all mechanisms serve."""
    slopes = []
    for seed in range(50):
        lattice = grown(seed, 6 + seed % 21)
        found = candidates(lattice)
        result = compare(lattice, [found[seed % len(found)]], [5e-3])
        # Tips of hanging parts move by up to 25 mm.
        assert 0.88 < result.elastic.slope < 1.001 and result.elastic.max < 1.5e-3
        slopes.append((result.planes.slope, result.elastic.slope))
    planes, elastic = np.array(slopes).T
    assert planes.min() < 0 and np.median(planes) < 0.6
    assert np.median(elastic) > 0.99 and (elastic > 0.96).sum() >= 47


def test_refused():
    with pytest.raises(InvalidInput, match="lone voxel is rigid"):
        ElasticPOM(block(1, 1, 1))
    with pytest.raises(InvalidInput, match="determined by 'blue'"):
        CORE.move([BLUE, Control((1, 1, 2), 0)], [1e-3, 1e-3])
    with pytest.raises(InvalidInput, match="moves no mechanism"):
        CORE.move([Control((0, 1, 1), 0)], [1e-3])
    with pytest.raises(InvalidInput, match="u, one column per actuator, must be"):
        CORE.move([BLUE], [1e-3, 1e-3])
