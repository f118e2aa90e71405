"""A standing posture: kept where the file's stands, else found; on the ground."""

import re
from dataclasses import replace

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.formats import load
from drakebots.multibody import find_posture
from drakebots.multibody.posture import Stance
from tests.helpers.scripts import load_script
from tests.helpers.standing_robots import biped, hexapod, quadruped

robots = load_script("program_robots")


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    """A quadruped whose file has straight legs, and the posture found for it."""
    model = load(quadruped(tmp_path_factory.mktemp("robot")))
    return model, find_posture(model)


def stance_of(model, posture) -> Stance:
    stance = Stance(model)
    stance.take(posture)
    return stance


def test_it_stands_on_all_feet_with_its_mass_over_them(standing):
    model, posture = standing
    assert posture.source == "found" and posture.stands
    stance = stance_of(model, posture)
    assert np.abs(stance.foot_heights()).max() < 1e-9
    offset = stance.centre_of_mass() - stance.feet().mean(axis=0)
    assert np.abs(offset[:2]).max() < 1e-9
    assert (stance.positions() >= stance.lower).all()
    assert (stance.positions() <= stance.upper).all()


def test_it_is_level_and_the_same_on_both_sides(standing):
    _, posture = standing
    roll, pitch, yaw = posture.X_WB.rotation().ToRollPitchYaw().vector()
    assert max(abs(roll), abs(pitch), abs(yaw)) < 1e-3
    for left, right in (("FL", "FR"), ("RL", "RR")):
        for part in ("flexion", "knee"):
            a = posture.joints[f"{left}_{part}"]
            assert posture.joints[f"{right}_{part}"] == pytest.approx(a, abs=1e-4)


def test_its_knees_are_bent(standing):
    """Legs of 0.4 m reach 0.92 of it, so their two halves make 2 acos(0.92)."""
    model, posture = standing
    knee = abs(posture.joints["FL_knee"])
    assert knee == pytest.approx(2 * np.arccos(0.92), abs=0.15)
    assert stance_of(model, posture).hips()[0][2] == pytest.approx(
        -0.92 * 0.4, abs=0.01
    )


def test_a_pose_of_the_file_that_stands_is_kept(tmp_path):
    """Feet below the middle of the trunk on bent legs, 0.4 cos(0.5) m down."""
    model = load(quadruped(tmp_path, knee=(-2.5, -0.9)))
    bent = {
        f"{leg}_{part}": angle
        for leg in ("FL", "FR", "RL", "RR")
        for part, angle in (("flexion", 0.5), ("knee", -1.0))
    }
    posture = find_posture(replace(model, poses={"standing": bent}))
    assert posture.source == "pose 'standing' of the file"
    assert {name: posture.joints[name] for name in bent} == bent
    height = 0.4 * np.cos(0.5) + 0.02
    assert posture.X_WB.translation()[2] == pytest.approx(height, abs=1e-9)


@pytest.mark.long
def test_defaults_beyond_limits_are_not_kept(tmp_path):
    """The knees' limits exclude 0."""
    model = load(quadruped(tmp_path, knee=(-2.5, -0.9)))
    posture = find_posture(model)
    assert posture.source == "found" and posture.stands
    assert posture.joints["RR_knee"] <= -0.9


@pytest.mark.long
def test_a_hexapod_keeps_its_trunk_off_the_ground(tmp_path):
    """Drawn with its legs spread level, as six-legged robots are."""
    path = hexapod(tmp_path)
    stance = Stance(load(path))
    posture = find_posture(stance.model)
    assert posture.source == "found" and posture.stands, posture.faults
    stance.take(posture)
    trunk = stance.trunk_heights()
    assert len(trunk) == 1 and trunk[0] > 0.05
    assert np.abs(stance.foot_heights()).max() < 1e-9


def test_flat_feet_lie_flat(tmp_path):
    """Four points of each sole, and the shank's box clear of the ground."""
    model = load(biped(tmp_path))
    assert len(model.feet) == 8
    posture = find_posture(model)
    assert posture.stands, posture.faults
    stance = stance_of(model, posture)
    assert np.abs(stance.foot_heights()).max() < 1e-9
    assert posture.joints["L_knee"] > 0.3


def test_weak_ankles_carry_no_more_than_their_reserve(tmp_path):
    """By m g / 2 a leg: the centre of mass is as far ahead of them as that allows, and
    over the middle of the soles, 0.03 m ahead, where the motors are strong."""
    path, ahead = biped(tmp_path), []
    weak = re.sub(r'(ankle" type(?:.|\n)*?effort=)"60"', r'\1"2.5"', path.read_text())
    for text in (path.read_text(), weak):
        path.write_text(text)
        stance = stance_of(model := load(path), posture := find_posture(model))
        assert posture.stands and posture.source == "found"
        ankle = stance.plant.GetFrameByName("L_ankle_link")
        p_WA = ankle.CalcPoseInWorld(stance.context).translation()
        ahead.append(stance.centre_of_mass()[0] - p_WA[0])
    reserve = 0.6 * 2.5 / (stance.mass * stance.gravity / 2)
    assert ahead == pytest.approx([0.03, reserve], abs=1e-6) and reserve < 0.02


@pytest.mark.long
def test_a_sole_does_not_hide_a_stretched_leg(tmp_path):
    """Tiptoe, and hips turned outward, would be longer than a straight leg; the knees
    bend all the same, about their own axis, though ankles that roll come after it."""
    posture = find_posture(load(biped(tmp_path, rolls=True)))
    assert posture.stands and posture.source == "found"
    for name, angle in posture.joints.items():
        assert 0.4 < angle < 1.2 if "knee" in name else abs(angle) < 0.7
        assert "roll" not in name or abs(angle) < 0.05


def test_a_walk_does_not_begin_on_straight_legs(tmp_path):
    """Though a pose of the file has them."""
    path = biped(tmp_path)
    path.with_suffix(".srdf").write_text(
        '<robot name="biped"><group_state name="stand" group="all">'
        '<joint name="L_knee" value="0"/></group_state></robot>'
    )
    model = load(path)
    assert find_posture(model).source == "pose 'stand' of the file"
    bent = find_posture(model, bent=True)
    assert bent.source == "found" and bent.joints["L_knee"] > 0.4


ARM = """<link name="{0}_arm"><inertial><origin xyz="0 0 -0.2"/><mass value="0.5"/>
  <inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="0 0 -0.2"/><geometry><box size="0.04 0.04 0.4"/></geometry>
  </collision></link>
<joint name="{0}_shoulder" type="revolute"><parent link="pelvis"/>
  <child link="{0}_arm"/><origin xyz="0.09 {1} 0.1"/><axis xyz="{2}"/>
  <limit lower="-1" upper="1" effort="9" velocity="9"/></joint>"""


def armed(folder, axis):
    """A biped whose arms hang before its thighs, on shoulders about an axis."""
    text = biped(folder).read_text()
    arms = "".join(ARM.format(side, y, axis) for side, y in (("L", 0.1), ("R", -0.1)))
    path = folder / "armed.urdf"
    path.write_text(text.replace("</robot>", arms + "</robot>"))
    return load(path)


def test_arms_go_out_of_the_way_of_bent_legs(tmp_path):
    model = armed(tmp_path, "1 0 0")
    posture = find_posture(model, bent=True)
    assert posture.stands and posture.source == "found"
    turned = [posture.joints[f"{side}_shoulder"] for side in "LR"]
    assert all(0.1 < abs(angle) <= 1 for angle in turned)
    assert posture.joints["L_knee"] > 0.3


def test_arms_that_cannot_go_out_of_the_way_are_told(tmp_path):
    """Turned about their own length, they stay where they hang."""
    posture = find_posture(armed(tmp_path, "0 0 1"), bent=True)
    assert posture.joints["L_shoulder"] == 0.0
    assert any("run into" in fault or "stretched" in fault for fault in posture.faults)


@pytest.mark.long
def test_motors_keep_a_reserve(tmp_path):
    """Weak motors stand on straighter legs than strong ones."""
    strong = find_posture(load(quadruped(tmp_path, effort=40.0)))
    weak = find_posture(load(quadruped(tmp_path, effort=1.0)))
    assert abs(weak.joints["FL_knee"]) < abs(strong.joints["FL_knee"]) - 0.1


def test_a_given_pose_is_kept_and_put_on_the_ground(standing):
    model, _ = standing
    posture = find_posture(model, pose={"FL_knee": -1.0})
    assert posture.source == "given" and posture.joints["FL_knee"] == -1.0
    assert posture.joints["FR_knee"] == 0.0
    assert posture.X_WB.translation()[2] == pytest.approx(0.42, abs=1e-9)
    assert "the feet are not level" in posture.faults
    assert posture.doubts.startswith(", though the feet are not level")


def test_our_own_robots_stand_as_their_files_have_them():
    for name in ("hamr", "lizard"):
        posture = find_posture(load(name))
        assert posture.source == "default positions", (name, posture.faults)


def test_without_feet_the_lowest_point_is_on_the_ground(tmp_path):
    """A cube of 0.2 m, turned by 45 degrees about x, stands on an edge."""
    path = tmp_path / "cube.sdf"
    path.write_text(
        '<sdf version="1.9"><model name="cube"><pose>0 0 0 0.7853981634 0 0</pose>'
        '<link name="cube"><inertial><mass>1</mass></inertial><collision name="c">'
        "<geometry><box><size>0.2 0.2 0.2</size></box></geometry></collision></link>"
        "</model></sdf>"
    )
    X_WB = find_posture(replace(load(path), feet=())).X_WB
    assert X_WB.translation()[2] == pytest.approx(0.1 * np.sqrt(2), abs=1e-9)
    assert X_WB.rotation().ToRollPitchYaw().roll_angle() == pytest.approx(np.pi / 4)


def test_an_arm_keeps_its_joints_within_limits(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="arm"><link name="world"/><link name="forearm"><inertial>'
        '<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        '</inertial></link><joint name="elbow" type="revolute"><parent link="world"/>'
        '<child link="forearm"/><axis xyz="0 1 0"/>'
        '<limit lower="0.3" upper="2" effort="9" velocity="1"/></joint></robot>'
    )
    posture = find_posture(load(path))
    assert posture.joints == {"elbow": 0.3}
    assert posture.X_WB.IsExactlyIdentity()


@pytest.mark.parametrize(
    "pose, error", [({"elbow": 0.1}, UnknownName), ({"FL_knee": np.nan}, InvalidInput)]
)
def test_refused(standing, pose, error):
    with pytest.raises(error, match="joint"):
        find_posture(standing[0], pose=pose)


def test_a_planar_robot_is_lowered_on_its_slide(tmp_path):
    """Its foot touches by the joint along z, below its centre of mass."""
    model = robots.written(tmp_path, "hopper", robots.hopper_urdf())
    posture = find_posture(model)
    assert posture.X_WB.IsExactlyIdentity()
    stance = stance_of(model, posture)
    assert stance.foot_heights() == pytest.approx([0.0], abs=1e-9)
    offset = stance.centre_of_mass() - stance.feet()[0]
    assert offset[0] == pytest.approx(0.0, abs=0.02 * stance.size)


def test_no_motor_is_proposed_for_the_slides_of_a_base(tmp_path):
    """A planar hopper whose motors are too weak: its root joints need none."""
    model = robots.written(tmp_path, "hopper", robots.hopper_urdf(effort=0.1))
    text = " ".join(find_posture(model, pose={"leg_knee": -1.2}).faults)
    assert "too weak at rest" in text and "no motor holds" not in text, text


def test_other_free_bodies_of_a_scene_do_not_count(tmp_path):
    """A ball beside the robot, heavier than it."""
    path = quadruped(tmp_path)
    alone = load(path)
    scene = tmp_path / "scene.dmd.yaml"
    scene.write_text(
        f"directives:\n- add_model: {{name: robot, file: file://{path}}}\n"
        f"- add_model: {{name: ball, file: file://{tmp_path}/ball.sdf}}\n"
    )
    (tmp_path / "ball.sdf").write_text(
        '<sdf version="1.9"><model name="ball"><pose>3 0 1 0 0 0</pose><link name="b">'
        '<inertial><mass>3</mass></inertial><collision name="c"><geometry><sphere>'
        "<radius>0.1</radius></sphere></geometry></collision></link></model></sdf>"
    )
    stance = Stance(load(scene))
    assert stance.base.name() == "trunk"
    assert stance.mass == pytest.approx(alone.summary.mass)
    assert stance.own_velocities().sum() == len(alone.summary.velocities)
    com = Stance(alone).centre_of_mass()
    assert stance.centre_of_mass() == pytest.approx(com, abs=1e-12)


SPRUNG = """<mujoco><worldbody><body name="trunk" pos="0 0 0.5"><freejoint/>
  <geom type="box" size="0.2 0.1 0.05" mass="8"/>{legs}</body></worldbody>{rest}
  <actuator>{motors}</actuator></mujoco>"""
LEG = """<body name="{0}" pos="{1} {2} 0"><joint name="{0}_hip" axis="0 1 0"
  range="-90 90" limited="true"/><geom type="capsule" fromto="0 0 0 0 0 -.2" size=".01"
  mass="0.3"/><body name="{0}_shank" pos="0 0 -.2"><joint name="{0}_knee" axis="0 1 0"
  range="-140 140" limited="true"/><geom type="capsule" fromto="0 0 0 0 0 -.1"
  size=".01" mass="0.1"/>{3}</body></body>"""
SPRING = """<body name="{0}_foot" pos="0 0 -.1"><joint name="{0}_spring" type="slide"
  axis="0 0 1" stiffness="{3}"/><geom type="sphere" pos="0 0 -.1" size=".02"
  mass="0.05"/></body>"""
CORNERS = (("FL", 0.2, 0.1), ("FR", 0.2, -0.1), ("RL", -0.2, 0.1), ("RR", -0.2, -0.1))


@pytest.mark.parametrize("stiffness", [3000.0, 600.0])
def test_springs_carry_their_share(tmp_path, stiffness):
    """A shank's spring gives by the weight on its foot along the shank, over k.

    The keyframe, rounded and drawn without load, is kept as far as springs let it.
    """
    legs = "".join(LEG.format(*c, SPRING.format(*c, stiffness)) for c in CORNERS)
    motors = "".join(
        f'<motor joint="{c[0]}_{j}" gear="50" ctrlrange="-1 1"/>'
        for c in CORNERS
        for j in ("hip", "knee")
    )
    bent = " ".join(["0.5 -1.01 0"] * 4)
    key = f'<keyframe><key name="home" qpos="0 0 .4 1 0 0 0 {bent}"/></keyframe>'
    path = tmp_path / "sprung.xml"
    path.write_text(SPRUNG.format(legs=legs, motors=motors, rest=key))
    model = load(path)
    posture = find_posture(model)
    assert posture.stands and "home" in posture.source and not posture.passive
    weight = (model.summary.mass / 4 - 0.05) * 9.81
    for name, *_ in CORNERS:
        hip, knee = posture.joints[f"{name}_hip"], posture.joints[f"{name}_knee"]
        assert (hip, knee) == pytest.approx((0.5, -1.01), abs=0.08)
        tilt = hip + knee + posture.X_WB.rotation().ToRollPitchYaw().pitch_angle()
        bent = weight * np.cos(tilt) / stiffness
        assert posture.joints[f"{name}_spring"] == pytest.approx(bent, rel=1e-4)
