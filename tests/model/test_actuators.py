"""Motors of files that have none: what gets one, its effort, what is said."""

from __future__ import annotations

import numpy as np
import pytest
from pydrake.multibody.plant import MultibodyPlant

from drakebots import InvalidInput, UnknownName, load
from drakebots.model import Actuator, choose_actuators
from tests.helpers.model_files import write

LINK = """<link name="{}"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/>
<axis xyz="0 1 0"/><origin xyz="0 0 -0.2"/>{}</joint>"""
MOTOR = """<transmission><type>SimpleTransmission</type><joint name="hip"/>
<actuator name="hip_motor"/></transmission>"""


def leg(folder, *, efforts=(20, 30), more=""):
    """A trunk, a thigh and a shank; an effort of None is no limit at all."""
    limits = [
        "" if e is None else f'<limit effort="{e}" velocity="9" lower="-1" upper="1"/>'
        for e in efforts
    ]
    kinds = ["continuous" if e is None else "revolute" for e in efforts]
    parts = [LINK.format(name) for name in ("trunk", "thigh", "shank")]
    parts += [
        JOINT.format("hip", kinds[0], "trunk", "thigh", limits[0]),
        JOINT.format("knee", kinds[1], "thigh", "shank", limits[1]),
    ]
    text = f"<?xml version='1.0'?><robot name='leg'>{''.join(parts)}{more}</robot>"
    return write(folder, text, "leg.urdf")


def test_joints_with_an_effort_limit_get_motors(tmp_path):
    model = load(leg(tmp_path))
    assert model.actuators == (Actuator("hip", 20), Actuator("knee", 30))
    assert model.summary.actuators == ("hip", "knee")
    assert "2 joints with an effort limit get one each" in " ".join(model.notes)
    plant = MultibodyPlant(1e-3)
    model.add_to(plant)
    plant.Finalize()
    assert plant.num_actuators() == 2
    np.testing.assert_allclose(plant.GetEffortUpperLimits(), [20, 30])


def test_a_joint_without_a_limit_stays_passive_and_is_named(tmp_path):
    model = load(leg(tmp_path, efforts=(20, None)))
    assert [motor.joint for motor in model.actuators] == ["hip"]
    words = " ".join(model.notes)
    assert "knee without, which have no effort limit above 0 (give one" in words
    assert "without" in (chosen := " ".join(load(leg(tmp_path), actuate="hip").notes))
    assert "no effort limit above 0" not in chosen  # it is what was asked for


@pytest.mark.parametrize("more", ["", MOTOR + MOTOR.replace("hip", "knee")])
def test_an_effort_limit_of_zero_is_no_motor_and_has_a_remedy(tmp_path, more):
    """Whether the file says nothing of motors or gives every joint one."""
    path = leg(tmp_path, efforts=(20, 0), more=more)
    model = load(path)
    assert len(model.summary.actuators) == 1
    (words,) = (note for note in model.notes if "knee" in note)
    assert "--actuate all --effort 10" in words and "Drake says" not in words
    assert len(load(path, actuate="all", effort=10.0).summary.actuators) == 2


def test_no_limit_at_all_says_how_to_give_one(tmp_path):
    actuators, notes = choose_actuators(["hip", "knee"], [], {})
    assert actuators == ()
    assert "--actuate all --effort" in " ".join(notes)
    path = leg(tmp_path, efforts=(None, None))
    model = load(path, actuate="all", effort=5.0)
    assert [motor.effort for motor in model.actuators] == [5.0, 5.0]
    assert model.options == {"actuate": "all", "effort": 5.0}


def test_motors_of_the_file_stay_alone(tmp_path):
    path = leg(tmp_path, more=MOTOR)
    model = load(path)
    assert model.actuators == () and model.summary.actuators == ("hip_motor",)
    model = load(path, actuate="all")
    assert [motor.joint for motor in model.actuators] == ["knee"]
    with pytest.raises(InvalidInput, match=r"hip.*has a motor"):
        load(path, actuate=["hip"])


def test_joints_left_without_a_motor_are_named(tmp_path):
    words = " ".join(load(leg(tmp_path, more=MOTOR)).notes)
    assert "1 joints with an effort limit have no motor" in words
    assert "knee; --actuate all" in words


def test_a_legged_robot_without_limits_gets_motors_without_a_limit(tmp_path):
    """On all joints, said; an effort gives them one."""
    path = leg(tmp_path, efforts=(None, None))
    model = load(path, feet="shank")
    assert [motor.joint for motor in model.actuators] == ["hip", "knee"]
    assert {motor.effort for motor in model.actuators} == {np.inf}
    assert model.summary.actuators == ("hip", "knee")
    said = [note for note in model.notes if "without a limit" in note]
    assert len(said) == 1 and "--effort" in said[0]
    model = load(path, effort=7.0)
    assert {motor.effort for motor in model.actuators} == {7.0}


def test_patterns():
    joints = ["FL_hip", "FL_knee", "FR_hip", "FR_knee"]
    efforts = dict.fromkeys(joints, 3.0)
    motors, _ = choose_actuators(joints, [], efforts, actuate="*_knee")
    assert [motor.joint for motor in motors] == ["FL_knee", "FR_knee"]
    motors, _ = choose_actuators(joints, [], {}, actuate=["FL_hip", "FR_*"], effort=7)
    assert [motor.joint for motor in motors] == [
        "FL_hip",
        "FR_hip",
        "FR_knee",
    ]
    assert {motor.effort for motor in motors} == {7.0}


def test_what_is_refused():
    with pytest.raises(UnknownName, match="did you mean 'hip'"):
        choose_actuators(["hip"], [], {}, actuate="hipp")
    with pytest.raises(InvalidInput, match=r"hip.*no effort limit.*--effort"):
        choose_actuators(["hip"], [], {}, actuate="hip")
    for effort in (0.0, -1.0, np.nan):
        with pytest.raises(InvalidInput, match="effort"):
            choose_actuators(["hip"], [], {}, actuate="hip", effort=effort)


def test_joints_that_follow_others_get_no_motor(tmp_path):
    """Not by "all", nor by a pattern, nor in a file without limits: only by name."""
    mimic = '<mimic joint="hip" multiplier="-2"/></joint>'
    for efforts, effort in (((20, 30), None), ((None, None), 5.0)):
        path = leg(tmp_path, efforts=efforts)
        head, tail = path.read_text().rsplit("</joint>", 1)
        path.write_text(head + mimic + tail)
        for wanted in (None, "all", ["*"]):
            model = load(path, actuate=wanted, effort=effort)
            assert [motor.joint for motor in model.actuators] == ["hip"]
        model = load(path, actuate=["hip", "knee"], effort=5.0)
        assert len(model.actuators) == 2
    model = load(path, feet="shank")
    assert [motor.joint for motor in model.actuators] == ["hip"]
