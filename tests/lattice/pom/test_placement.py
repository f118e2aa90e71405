"""Actuator placement: the fewest, within stroke, on any shape."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.lattice.pom import (
    Control,
    ElasticPOM,
    PlanesOfMotion,
    candidates,
    frame_motion,
    place_actuators,
    placement,
    without_rigid_motion,
)
from drakebots.lattice.shape import Lattice, Planes, block
from tests.helpers.scripts import load_script

grown = load_script("random_lattices").grown

CORE = block(2, 2, 2)
ROBOT = Lattice(np.vstack([CORE.voxels, [(2, 1, 0), (1, 2, 0)]]))
FL = np.array([0, 1, 1, 1, 0, -1, -1, -1]) * 5e-3
BLY = np.array([1, 1, 0, -1, -1, -1, 0, 1]) * 5e-3
TARGETS = [
    Control((3, 4, 1), 2, "FL"),
    Control((4, 3, 1), 2, "FR"),
    Control((1, 3, 4), 1, "BL y"),
    Control((3, 1, 4), 0, "BR x"),
]
GAIT = np.stack([FL, -FL, BLY, -BLY], axis=1)


@pytest.mark.parametrize("elastic", [False, True])
@pytest.mark.parametrize("lattice", [CORE, ROBOT], ids=["core", "robot"])
def test_the_papers_four_actuators_come_out(lattice, elastic):
    model = ElasticPOM(lattice) if elastic else lattice
    found = place_actuators(model, TARGETS, GAIT, axes="z", stroke=5e-3)
    nodes = {a.node for a in found.actuators}
    assert nodes == {(2, 1, 1), (1, 2, 1), (2, 3, 1), (3, 2, 1)}
    assert found.exact and found.residual < 1e-12
    assert found.stroke == pytest.approx(5e-3)
    # Played forward by planes of motion they do what was requested.
    forward = PlanesOfMotion(CORE, found.actuators, [w.node for w in TARGETS])
    moved = forward.displacements(found.controls)
    got = np.stack([moved[:, i, w.axis] for i, w in enumerate(TARGETS)], axis=1)
    assert np.allclose(got, GAIT, atol=1e-12)


def test_other_axes_do_as_well():
    found = place_actuators(CORE, TARGETS, GAIT, stroke=5e-3)
    assert len(found.actuators) == 4 and found.residual < 1e-12
    planes = {PlanesOfMotion(CORE, [a]).driven[0] for a in found.actuators}
    assert {(p.axis, p.coordinate) for p in planes} == {(0, 1), (0, 3), (1, 1), (1, 3)}


def test_a_hanging_foot_needs_the_elastic_model():
    """One actuator lifts the front foot by 10 mm; the frame agrees."""
    foot = Control((3, 5, 0), 2, "foot")
    with pytest.raises(NoSolution, match="'foot'"):
        place_actuators(ROBOT, [foot], [10e-3], axes="z", stroke=5e-3)
    found = place_actuators(ElasticPOM(ROBOT), [foot], [10e-3], stroke=6e-3)
    assert len(found.actuators) == 1 and found.stroke < 5e-3
    model = ElasticPOM(ROBOT, mounts=found.actuators)
    wanted = model.move(found.actuators, found.controls).displacement[0]
    true = frame_motion(ROBOT, found.actuators, found.controls[0]).displacement[:, :3]
    true = without_rigid_motion(ROBOT, true, wanted)
    assert true[ROBOT.node(foot.node), 2] == pytest.approx(10e-3, rel=0.05)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_no_more_than_planes_that_are_asked_for(seed):
    """By planes of motion: one actuator per plane, never more nor less."""
    lattice, rng = grown(seed, 10), np.random.default_rng(seed)
    planes = Planes(lattice)
    ends = [
        [planes.driven(n, c.axis) for n in (c.node, c.other)]
        for c in candidates(lattice)
    ]
    driven = {low for low, high in ends if low == high}
    targets, asked = [], set()
    for n in rng.permutation(len(lattice.nodes))[:6]:
        for axis in range(3):
            if axis != lattice.even_axis[n] and len(targets) < 3:
                plane = planes.driven(lattice.nodes[n], axis)
                if plane in driven and plane not in asked:
                    asked.add(plane)
                    targets.append(Control(tuple(lattice.nodes[n]), axis))
    if not targets:
        return
    values = rng.normal(size=(6, len(targets)))
    found = place_actuators(lattice, targets, values, tolerance=1e-9)
    assert len(found.actuators) == len(asked)
    model = PlanesOfMotion(lattice, found.actuators, [w.node for w in targets])
    moved = model.displacements(found.controls)
    got = np.stack([moved[:, i, w.axis] for i, w in enumerate(targets)], axis=1)
    assert np.allclose(got, values)


def test_greedy_search_agrees(monkeypatch):
    lattice, rng = block(4, 4, 4), np.random.default_rng(1)
    nodes = [(3, 5, 4), (1, 1, 2), (7, 3, 8)]
    targets = [Control(n, a) for n in nodes for a in range(2)]
    values = rng.normal(size=(10, 6)) * 1e-3
    full = place_actuators(lattice, targets, values)
    monkeypatch.setattr(placement, "MOST_SETS", 20)
    greedy = place_actuators(lattice, targets, values)
    assert full.exact and not greedy.exact
    assert len(full.actuators) == len(greedy.actuators) == 6
    assert greedy.residual < 1e-12


def test_stroke_limits_the_choice():
    with pytest.raises(NoSolution, match="allow more actuators") as caught:
        place_actuators(CORE, TARGETS, GAIT, axes="z", stroke=3e-3)
    assert caught.value.worst["residual_m"] == pytest.approx(2e-3)
    assert caught.value.worst["stroke_m"] == pytest.approx(3e-3)


def test_refused():
    with pytest.raises(InvalidInput, match="not zero"):
        place_actuators(CORE, TARGETS, [0, 0, 0, 0])
    with pytest.raises(InvalidInput, match="values, one column per target, must be"):
        place_actuators(CORE, TARGETS, [1, 2])
    with pytest.raises(InvalidInput, match="no node at"):
        place_actuators(CORE, [Control((9, 9, 8), 0)], [1e-3])
    with pytest.raises(InvalidInput, match="stroke"):
        place_actuators(CORE, TARGETS, GAIT, stroke=0)
    with pytest.raises(InvalidInput, match="most"):
        place_actuators(CORE, TARGETS, GAIT, most=0)
    with pytest.raises(InvalidInput, match="allow another axis"):
        place_actuators(block(1, 1, 1), [Control((0, 1, 1), 1)], [1e-3])
    with pytest.raises(UnknownName):
        place_actuators(CORE, TARGETS, GAIT, axes="w")
    with pytest.raises(NoSolution, match=r"no actuator .* moves z of 'up'"):
        place_actuators(CORE, [Control((1, 1, 2), 2, "up")], [1e-3])
    with pytest.raises(NoSolution, match="no 3 actuators"):
        place_actuators(CORE, TARGETS, GAIT, most=3, axes="z")
