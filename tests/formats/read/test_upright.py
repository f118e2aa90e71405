"""Robots drawn with y or x up stand upright; those with z up stay as they are."""

from __future__ import annotations

import re

import numpy as np
import pytest
from pydrake.multibody.plant import MultibodyPlant

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.formats import load
from drakebots.multibody.posture import find_posture
from tests.helpers.model_files import write
from tests.helpers.standing_robots import biped, hexapod, quadruped

# Forward, left and up in the file, by the axes that are up and ahead.
AXES = {
    "y": ([1, 0, 0], [0, 0, -1], [0, 1, 0]),
    "x": ([0, 0, -1], [0, 1, 0], [1, 0, 0]),
    "zy": ([0, 1, 0], [-1, 0, 0], [0, 0, 1]),
    "yz": ([0, 0, 1], [1, 0, 0], [0, 1, 0]),
    "xy": ([0, 1, 0], [0, 0, 1], [1, 0, 0]),
}


def turned(up: str, p) -> str:
    """Forward, left, up as the file with these axes writes them."""
    return " ".join(map(str, np.array(p, float) @ np.array(AXES[up], float)))


def lying_quadruped(folder, up: str, *, fixed: bool = False, trunk: bool = False):
    """A quadruped of 8 kg with legs of 0.4 m, whose hips turn about the left."""
    inertia = '<inertia ixx="0.05" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/>'
    size = turned(up, (0.4, 0.24, 0.1)).replace("-", "")
    shape = f'<collision><geometry><box size="{size}"/></geometry></collision>'
    text = f"""<link name="trunk"><inertial><origin xyz="{turned(up, (0.02, 0, 0))}"/>
      <mass value="6"/>{inertia}</inertial>{shape if trunk else ""}</link>"""
    for name, x, y in (("a", 1, 1), ("b", 1, -1), ("c", -1, 1), ("d", -1, -1)):
        down = turned(up, (0, 0, -0.4))
        text += f"""<link name="leg_{name}"><inertial><mass value="0.5"/>
          {inertia.replace("0.05", "0.005")}</inertial>
          <collision><origin xyz="{down}"/><geometry><sphere radius="0.02"/></geometry>
          </collision></link>
        <joint name="hip_{name}" type="revolute"><parent link="trunk"/>
          <child link="leg_{name}"/>
          <origin xyz="{turned(up, (0.2 * x, 0.1 * y, 0))}"/>
          <axis xyz="{turned(up, (0, 1, 0))}"/>
          <limit lower="-1" upper="1" effort="30" velocity="9"/></joint>"""
    if fixed:
        text = f"""<link name="world"/>{text}<joint name="hold" type="fixed">
          <parent link="world"/><child link="trunk"/></joint>"""
    return write(folder, f'<robot name="lying">{text}</robot>', "lying.urdf")


@pytest.mark.parametrize("up", AXES)
def test_the_base_is_turned_upright(tmp_path, up):
    """Found but for "zy", which stands as it is and is told to face y."""
    path = lying_quadruped(tmp_path, up)
    if up == "zy":
        assert any("legs swing along y" in note for note in load(path).notes)
    model = load(path, up=up if up == "zy" else None)
    assert model.options == {"up": up}
    assert any(f"{up[0]} axis points up" in note for note in model.notes)
    assert any(f"{up[1:]} ahead" in note for note in model.notes) == (len(up) > 1)
    plant = MultibodyPlant(0.0)
    model.add_to(plant)
    plant.Finalize()
    context = plant.CreateDefaultContext()
    feet = [
        plant.GetBodyByName(f.body).EvalPoseInWorld(context) @ f.p_BF
        for f in model.feet
    ]
    places = {tuple(np.round(p, 9)) for p in feet}
    assert places == {(x, y, -0.4) for x in (0.2, -0.2) for y in (0.1, -0.1)}
    # The inertia turns with the link: 6 of 8 kg are 0.02 m ahead.
    com = plant.CalcCenterOfMassPositionInWorld(context)
    np.testing.assert_allclose(com, [0.015, 0, 0], atol=1e-12)
    axis = plant.GetJointByName("hip_a").frame_on_parent().CalcPoseInWorld(context)
    np.testing.assert_allclose(
        axis.rotation() @ plant.GetJointByName("hip_a").revolute_axis(),
        [0, 1, 0],
        atol=1e-12,
    )


def test_it_stands(tmp_path):
    posture = find_posture(load(lying_quadruped(tmp_path, "y"), feet="leg_*"))
    assert not any("feet" in fault or "centre" in fault for fault in posture.faults)
    assert posture.X_WB.translation()[2] > 0.35


def test_what_is_asked_for_counts(tmp_path):
    lying = load(lying_quadruped(tmp_path, "y"), up="z")
    assert lying.options == {"up": "z"}
    assert not any("points up" in note for note in lying.notes)
    turned = load(quadruped(tmp_path), up="y")
    assert any("y axis points up" in note for note in turned.notes)


def test_a_fixed_base_is_turned_when_asked(tmp_path):
    path = lying_quadruped(tmp_path, "y", fixed=True)
    plant = MultibodyPlant(0.0)
    load(path, up="y").add_to(plant)
    plant.Finalize()
    context = plant.CreateDefaultContext()
    hip = plant.GetBodyByName("leg_a").EvalPoseInWorld(context).translation()
    np.testing.assert_allclose(hip, [0.2, 0.1, 0.0], atol=1e-12)


def test_frames_and_points_of_the_root_turn_with_it(tmp_path):
    """A frame, and the ball joint of a loop, are where the file has them on the leg."""
    path = lying_quadruped(tmp_path, "y")
    tag = "drake:ball_constraint"
    p = turned("y", (0.2, 0.1, -0.1))
    extra = f"""<frame name="f" link="trunk" xyz="{p}" rpy="0 0 0"/><{tag}>
      <{tag}_body_A name="trunk"/><{tag}_p_AP value="{p}"/>
      <{tag}_body_B name="leg_a"/><{tag}_p_BQ value="{turned("y", (0, 0, -0.1))}"/>
      </{tag}></robot>"""
    path.write_text(path.read_text().replace("</robot>", extra))
    model = load(path, up="y")
    assert model.summary.loop_gap < 1e-12
    plant = MultibodyPlant(0.0)
    model.add_to(plant, close_loops=False)
    plant.Finalize()
    frame, context = plant.GetFrameByName("f"), plant.CreateDefaultContext()
    p_WF = frame.CalcPoseInWorld(context).translation()
    np.testing.assert_allclose(p_WF, [0.2, 0.1, -0.1], atol=1e-12)


@pytest.mark.parametrize("robot", [quadruped, biped, hexapod])
def test_robots_with_z_up_that_face_x_stay(tmp_path, robot):
    model = load(robot(tmp_path))
    assert model.options == {} and len(model.feet) >= 4
    assert not any("swing along" in note for note in model.notes)


def test_legs_that_sprawl_to_the_sides_swing_about_z(tmp_path):
    """All femurs and tibias turn about x, and yet the hexapod walks along it."""
    path = hexapod(tmp_path)
    text = re.sub(
        r'rpy="0 0 (-?[1-3]\.\d+|-?0\.[1-9]\d*)"',
        lambda yaw: f'rpy="0 0 {np.copysign(np.pi / 2, float(yaw[1]))}"',
        path.read_text(),
    )
    assert text.count(f"{np.pi / 2}") == 6
    path.write_text(text)
    assert not any("swing along" in note for note in load(path).notes)


@pytest.mark.parametrize("ahead, told", [(0.03, False), (0.0, False), (-0.03, True)])
def test_soles_that_point_backward_are_told(tmp_path, ahead, told):
    """Of 0.16 m, their middles ahead of the ankles by so much."""
    path = biped(tmp_path)
    sole = '<origin xyz="{} 0 -0.04"/>'
    assert sole.format(0.03) in path.read_text()
    path.write_text(path.read_text().replace(sole.format(0.03), sole.format(ahead)))
    assert any("soles point along -x" in note for note in load(path).notes) == told


def test_refused(tmp_path):
    with pytest.raises(UnknownName, match="axis 'w'"):
        load(quadruped(tmp_path), up="w")
    ball = '<sdf version="1.9"><model name="m"><link name="a"/></model></sdf>'
    with pytest.raises(InvalidInput, match="only the base of a URDF"):
        load(write(tmp_path, ball, "m.sdf"), up="y")
