"""Forward, inverse and lateral kinematics, and the conflicts they report."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom import Control, PlanesOfMotion, inverse_kinematics
from drakebots.lattice.shape import block

CORE = block(2, 2, 2)
ACTUATORS = [
    Control((2, 1, 1), 2, "blue"),
    Control((1, 2, 1), 2, "yellow"),
    Control((2, 3, 1), 2, "red"),
    Control((3, 2, 1), 2, "green"),
]
TARGETS = [
    Control((3, 4, 1), 2, "FL"),
    Control((4, 3, 1), 2, "FR"),
    Control((1, 3, 4), 1, "BL y"),
    Control((3, 1, 4), 0, "BR x"),
]
numbers = st.floats(-5e-3, 5e-3, allow_nan=False)


def forward(u, targets=TARGETS):
    model = PlanesOfMotion(CORE, ACTUATORS, [w.node for w in targets])
    moved = model.displacements(u)
    return np.stack([moved[..., i, w.axis] for i, w in enumerate(targets)], axis=-1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(*[numbers] * 4), min_size=1, max_size=9))
def test_inverse_of_forward_is_identity(u):
    asked = forward(np.array(u))
    found = inverse_kinematics(CORE, ACTUATORS, TARGETS, asked, stroke=5e-3)
    assert np.allclose(found.controls, u, atol=1e-15)
    assert not found.conflicts and np.abs(found.reached - asked).max() < 1e-15
    assert np.allclose(
        found.effectors, PlanesOfMotion(CORE, ACTUATORS).displacements(u), atol=1e-15
    )


def test_inverse_is_planes_of_motion_with_roles_exchanged():
    """The paper's own way: targets as controls, actuators' nodes as effectors."""
    w = np.array([[1.0, -2.0, 3.0, 4.0]]) * 1e-3
    swapped = PlanesOfMotion(CORE, TARGETS, [a.node for a in ACTUATORS])
    theirs = swapped.displacements(w)[0, :, 2]
    assert np.allclose(
        inverse_kinematics(CORE, ACTUATORS, TARGETS, w).controls[0], theirs
    )


def test_unreachable_says_why():
    targets = [
        Control((3, 1, 4), 2, "up"),
        Control((2, 1, 1), 1, "side"),
        Control((1, 3, 4), 1, "fine"),
    ]
    found = inverse_kinematics(
        CORE, ACTUATORS, targets, [[0, 0, 1e-3], [1e-3, 1e-3, 0]]
    )
    up, side = [c for c in found.conflicts if c.kind == "unreachable"]
    assert "'up'" in up.text and "moves only along x and y" in up.text
    assert "'side'" in side.text and "no actuator drives the plane z = 1" in side.text
    assert up.pose == side.pose == 1
    assert up.text.startswith("z of 'up' cannot be reached")
    # What can be reached still is.
    assert np.allclose(found.reached[:, 2], [1e-3, 0])


def test_over_determined_names_plane_and_pose_and_meets_in_the_middle():
    targets = [Control((1, 3, 4), 0, "a"), Control((4, 3, 1), 2, "b")]
    a, b = forward([[0, 0, 1e-3, 0]], targets)[0]
    found = inverse_kinematics(CORE, ACTUATORS, targets, [[a, b], [a, 3 * b]])
    (conflict,) = [c for c in found.conflicts if c.kind == "over-determined"]
    assert conflict.pose == 1 and "y = 3" in conflict.text and "'a'" in conflict.text
    assert np.allclose(found.controls[:, 2], [1e-3, 2e-3])


def test_agreeing_targets_on_a_plane_are_no_conflict():
    targets = [Control((1, 3, 4), 0, "a"), Control((4, 3, 1), 2, "b")]
    found = inverse_kinematics(
        CORE, ACTUATORS, targets, forward([[0, 0, 1e-3, 0]], targets)
    )
    assert {c.kind for c in found.conflicts} == {"undetermined"}


def test_stroke_says_by_which_pose_and_is_kept():
    u = np.array([[4, 0, 0, 0], [9, 0, 0, 0], [0, -8, 0, 0]]) * 1e-3
    found = inverse_kinematics(CORE, ACTUATORS, TARGETS, forward(u), stroke=5e-3)
    blue, yellow = [c for c in found.conflicts if c.kind == "stroke"]
    assert "'blue'" in blue.text and "at pose 1" in blue.text and blue.pose == 1
    assert "'yellow'" in yellow.text and yellow.pose == 2
    assert np.allclose(found.controls, np.clip(u, -5e-3, 5e-3))


def test_stroke_of_each_actuator_and_none():
    u = np.full((1, 4), 2e-3)
    found = inverse_kinematics(
        CORE, ACTUATORS, TARGETS, forward(u), stroke=[0, 1e-3, 2e-3, 9e-3]
    )
    assert np.allclose(found.controls, [[0, 1e-3, 2e-3, 2e-3]])
    assert len(found.conflicts) == 2


@pytest.mark.parametrize(
    ("values", "stroke"),
    [
        ([[1, 2, 3]], 1),
        ([[np.nan] * 4], 1),
        ("abcd", 1),
        ([[0] * 4], -1),
        ([[0] * 4], np.nan),
    ],
)
def test_bad_tables_are_refused(values, stroke):
    with pytest.raises(InvalidInput):
        inverse_kinematics(CORE, ACTUATORS, TARGETS, values, stroke=stroke)


def test_lateral_kinematics_of_other_nodes():
    found = inverse_kinematics(
        CORE, ACTUATORS, TARGETS, [[0, 0, 5, -5]], [(1, 1, 4), (3, 3, 4)]
    )
    assert found.effectors.shape == (1, 2, 3)
    assert np.array_equal(found.effectors[0], [[5, -5, 0], [0, 0, 0]])
