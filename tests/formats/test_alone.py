"""The robot of a scene alone: balls and boxes beside it are left out on request."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.formats import load, robot_alone
from drakebots.formats.load import load_arguments
from drakebots.multibody import find_posture
from drakebots.trajopt.locomotion import stand
from tests.helpers.model_files import write

LEG = """<body name="leg{0}" pos="{1} {2} 0"><joint name="hip{0}" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02" mass="0.1"/></body>"""
PLACES = [("fl", 0.2, 0.1), ("fr", 0.2, -0.1), ("rl", -0.2, 0.1), ("rr", -0.2, -0.1)]
LEGS = "".join(LEG.format(*place) for place in PLACES)
TABLE = f"""<body name="trunk" pos="0 0 0.3"><freejoint/>
  <geom type="box" size="0.2 0.1 0.05" mass="2"/>{LEGS}</body>"""
BALL = """<body name="ball" pos="0 0 3"><freejoint/>
  <geom type="sphere" size="0.1" mass="5"/></body>"""
BIN = """<body name="bin" pos="2 0 1"><freejoint/>
  <geom type="box" size="0.1 0.1 0.1" mass="5"/>
  <body name="rim"><geom type="sphere" size="0.1" mass="1"/></body></body>"""
MOTORS = "".join(f'<motor joint="hip{name}" gear="5"/>' for name, *_ in PLACES)


def scene(folder, *bodies, name="scene.xml"):
    text = f"""<mujoco><worldbody>{"".join(bodies)}</worldbody>
      <contact><exclude body1="ball" body2="trunk"/></contact>
      <actuator>{MOTORS}</actuator></mujoco>"""
    if "ball" not in "".join(bodies):
        text = text.replace('<exclude body1="ball" body2="trunk"/>', "")
    return write(folder, text, name)


def test_what_no_joint_moves_is_left_out(tmp_path):
    """The ball, and a bin of two bodies; the mass is the robot's, and it is said."""
    model = load(scene(tmp_path, TABLE, BALL, BIN))
    assert model.summary.bases == 3
    alone = robot_alone(model)
    assert alone.summary.bases == 1
    assert alone.summary.mass == pytest.approx(2.4)
    assert model.summary.mass == pytest.approx(2.4 + 5 + 6)
    assert "free bodies that are left out: ball, bin, rim" in alone.notes
    assert alone.summary.actuators == model.summary.actuators
    assert {foot.name for foot in alone.feet} == {foot.name for foot in model.feet}
    again = load(alone.path, **load_arguments(alone.options))
    assert again.summary == alone.summary


def test_a_robot_without_a_scene_stays_as_it_is(tmp_path):
    model = load(scene(tmp_path, TABLE))
    assert robot_alone(model) is model
    text = f"<mujoco><worldbody>{BALL}</worldbody></mujoco>"
    ball = load(write(tmp_path, text, "ball.xml"))
    assert robot_alone(ball) is ball


def test_two_robots_are_refused(tmp_path):
    other = TABLE.replace("leg", "limb").replace("hip", "haunch").replace("trunk", "b")
    with pytest.raises(InvalidInput, match="2 free bodies that joints move"):
        robot_alone(load(scene(tmp_path, TABLE, other)))


def test_it_stands_as_without_the_scene(tmp_path):
    """For a plan, which has its coordinates alone; and where the scene stays."""
    whole, bare = (
        load(scene(tmp_path, TABLE, *more, name=f"{len(more)}.xml"))
        for more in ((BALL, BIN), ())
    )
    standing, expected = stand(whole), stand(bare)
    assert standing.system.coordinates == expected.system.coordinates
    np.testing.assert_allclose(standing.q, expected.q, atol=1e-9)
    postures = find_posture(whole), find_posture(bare)
    heights = [posture.X_WB.translation()[2] for posture in postures]
    assert heights[0] == pytest.approx(heights[1])
