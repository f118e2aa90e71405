"""What holds a posture: torques and loads at rest against statics, servos' gains."""

import numpy as np
import pytest

from drakebots.core.errors import DrakebotsWarning
from drakebots.formats import load, write_limbs
from drakebots.multibody import find_posture
from drakebots.multibody.posture import Stance, equilibrium, servos
from tests.helpers.limb_samples import limb
from tests.helpers.standing_robots import quadruped


@pytest.fixture(scope="module")
def stance(tmp_path_factory):
    model = load(quadruped(tmp_path_factory.mktemp("robot")))
    stance = Stance(model)
    stance.take(find_posture(model))
    return stance


def test_loads_carry_the_weight(stance):
    """sum f = m g, and their moment about the centre of mass vanishes."""
    rest = equilibrium(stance)
    assert rest.residual < 1e-6
    assert rest.loads.sum() == pytest.approx(stance.mass * 9.81, rel=1e-6)
    arms = stance.feet()[:, :2] - stance.centre_of_mass()[:2]
    assert np.abs(rest.loads @ arms).max() < 1e-5


def test_a_knee_carries_its_foot_s_load(stance):
    """tau = load times the foot's distance behind the knee, less the shank's weight."""
    rest = equilibrium(stance)
    knee = stance.plant.GetJointByName("FL_knee")
    frame = knee.frame_on_child()
    p_KF = stance.feet()[0] - frame.CalcPoseInWorld(stance.context).translation()
    motors = [
        stance.plant.get_joint_actuator(i).joint().name()
        for i in stance.plant.GetJointActuatorIndices()
    ]
    # The shank's 0.3 kg have their centre at the knee.
    torque = rest.loads[0] * p_KF[0]
    assert rest.torques[motors.index("FL_knee")] == pytest.approx(torque, abs=1e-4)


def test_motors_that_are_too_weak_leave_a_residual(tmp_path):
    model = load(quadruped(tmp_path, effort=0.3))
    stance = Stance(model)
    bent = {f"{leg}_knee": -1.2 for leg in ("FL", "FR", "RL", "RR")}
    bent |= {f"{leg}_flexion": 0.6 for leg in ("FL", "FR", "RL", "RR")}
    stance.take(find_posture(model, pose=bent))
    rest = equilibrium(stance)
    assert np.abs(rest.torques).max() <= 0.3 + 1e-9
    assert rest.residual > 1e-3


def test_gains_follow_the_mass_and_the_size(stance):
    """k = c m g L / n for every joint of a leg, 0.7 of critical damping."""
    held = servos(stance, 8.0)
    k = 8 * stance.mass * 9.81 * stance.size / 4
    inertia = stance.mass * stance.size**2 / 4
    assert held.stiffness == pytest.approx(np.full(12, k), rel=1e-3)
    critical = 2 * np.sqrt(held.stiffness * inertia)
    assert held.damping == pytest.approx(0.7 * critical, rel=1e-3)


def test_a_rotor_s_inertia_counts_once(tmp_path):
    """k = c (g/L) (J + r^2 J_rotor) of an arm whose rotor is most of its inertia."""
    path = quadruped(tmp_path)
    arm = """<link name="arm"><inertial><mass value="0.01"/><inertia ixx="1e-3" ixy="0"
    ixz="0" iyy="1e-3" iyz="0" izz="1e-3"/></inertial></link><joint name="arm"
    type="revolute"><parent link="trunk"/><child link="arm"/><axis xyz="0 1 0"/><limit
    lower="-1" upper="1" effort="9" velocity="9"/></joint><transmission name="arm">
    <type>SimpleTransmission</type><joint name="arm"/><actuator name="arm">
    <drake:rotor_inertia value="1e-4"/><drake:gear_ratio value="10"/></actuator>
    </transmission></robot>"""
    text = path.read_text().replace("</robot>", arm)
    path.write_text(text.replace("<robot ", "<robot xmlns:drake='d' "))
    stance = Stance(load(path))
    stance.take(find_posture(stance.model))
    stiffness = servos(stance, 8.0).stiffness[-1]
    assert stiffness == pytest.approx(8 * 9.81 / stance.size * 11e-3, rel=1e-6)


def test_a_soft_limb_keeps_its_stiffness(tmp_path):
    """Its joints' motors have K / w_j for gains, and the legs' their own."""
    tail = limb(parent="trunk", segments=4)
    with pytest.warns(DrakebotsWarning, match="no motors for 12 joints"):
        path = write_limbs(quadruped(tmp_path), (tail,), tmp_path / "soft.dmd.yaml")
    model = load(path, actuate="all", effort=40)
    stance = Stance(model)
    stance.take(find_posture(model))
    held = servos(stance, 8.0)
    assert held.stiffness[:5] == pytest.approx(tail.stiffness / tail.weights)
    assert not held.damping[:5].any()  # that of a limb is its joints'
    assert np.ptp(held.stiffness[5:]) < 1e-6 * held.stiffness[5]


def test_a_crank_beside_the_leg_carries_what_follows_it(tmp_path):
    """A shank at r times its crank: the crank's servo is r^2 of the knee's own."""
    path = quadruped(tmp_path)
    text = path.read_text()
    for leg in ("FL", "FR", "RL", "RR"):
        text = text.replace(
            f'<child link="{leg}_shank"/>',
            f'<child link="{leg}_shank"/><mimic joint="{leg}_crank" multiplier="-2"/>',
        ).replace(
            "</robot>",
            f"""<link name="{leg}_rocker"><inertial>
              <mass value="0.05"/><inertia
              ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" iyz="0"/>
            </inertial></link>
            <joint name="{leg}_crank" type="revolute"><parent link="{leg}_thigh"/>
              <child link="{leg}_rocker"/><axis xyz="0 1 0"/>
              <limit lower="-0.2" upper="1.3" effort="40" velocity="20"/></joint>
            </robot>""",
        )
    path.write_text(text)
    stance = Stance(load(path))
    stance.take(find_posture(stance.model))
    held = servos(stance, 8.0)
    motors = [
        stance.plant.get_joint_actuator(i).joint().name()
        for i in stance.plant.GetJointActuatorIndices()
    ]
    k = dict(zip(motors, held.stiffness))
    assert len(k) == 12 and "FL_knee" not in k
    assert k["FL_crank"] == pytest.approx(4 * k["FL_flexion"], rel=1e-3)


@pytest.mark.parametrize("gear", [0.5, 2.0])
def test_a_crank_carries_the_knee_that_its_rod_turns(tmp_path, gear):
    """Levers of r a and a, joined by a rod: r^2 of the servo of a knee with a motor."""
    path, a = quadruped(tmp_path), 0.03
    text = path.read_text()
    inertia = (
        '<inertial><mass value="0.05"/><inertia ixx="1e-5" iyy="1e-5" izz="1e-5" '
        'ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    lean = np.arctan2((gear - 1) * a, 0.2)
    length = np.hypot((gear - 1) * a, 0.2)
    for leg in ("FL", "FR", "RL", "RR"):
        knee = text.index(f'<joint name="{leg}_knee"')
        text = text[:knee] + text[knee:].replace('effort="40.0"', 'effort="0"', 1)
        joints = "".join(
            f'''<joint name="{leg}_{name}" type="{kind}"><parent link="{leg}_{parent}"/>
            <child link="{leg}_{child}"/><origin xyz="{xyz}" rpy="0 {pitch} 0"/>
            <axis xyz="0 1 0"/>
            <limit lower="-1" upper="1" effort="{effort}" velocity="20"/></joint>'''
            for name, kind, parent, child, xyz, pitch, effort in (
                ("crank", "revolute", "hip", "lever", "0 0 0", 0, 40),
                ("top", "revolute", "lever", "rod", f"{gear * a} 0 0", lean, 0),
                ("low", "fixed", "shank", "rod_end", f"{a} 0 0", 0, 0),
                ("joined", "revolute", "rod", "rod_end", f"0 0 {-length}", -lean, 0),
            )
        )
        links = "".join(
            f'<link name="{leg}_{name}">{inertia}</link>'
            for name in ("lever", "rod", "rod_end")
        )
        text = text.replace("</robot>", links + joints + "</robot>")
    path.write_text(text)
    model = load(path)
    stance = Stance(model)
    stance.take(find_posture(model, pose={"FL_knee": 0.0}))
    held = servos(stance, 8.0)
    k = {
        stance.plant.get_joint_actuator(i).joint().name(): k
        for i, k in zip(stance.plant.GetJointActuatorIndices(), held.stiffness)
    }
    assert len(k) == 12 and "FL_crank" in k
    assert k["FL_crank"] == pytest.approx(gear**2 * k["FL_flexion"], rel=1e-3)


def test_an_arm_held_out_does_not_roll_about_its_own_axis(tmp_path):
    """What turns it about its axis is as stiff as what swings it."""
    arm = """<link name="{0}"><inertial><origin xyz="{1} 0 0"/><mass value="{2}"/>
      <inertia ixx="1e-5" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial>
      </link><joint name="j{0}" type="revolute"><parent link="{3}"/><child link="{0}"/>
      <axis xyz="{4}"/><limit lower="-3" upper="3" effort="50" velocity="9"/></joint>"""
    links = arm.format("a", 0.1, 1, "world", "1 0 0") + arm.format(
        "b", 0.3, 2, "a", "0 1 0"
    )
    path = tmp_path / "arm.urdf"
    path.write_text(f'<robot name="arm"><link name="world"/>{links}</robot>')
    stance = Stance(load(path))
    stance.take(find_posture(load(path), pose={"ja": 0.0, "jb": 0.0}))
    roll, swing = servos(stance, 10.0).stiffness
    assert roll > swing > 0
    largest = 1e-3 + 0.1**2 + 1e-3 + 2 * 0.3**2
    assert roll / swing == pytest.approx(largest / (1e-3 + 2 * 0.3**2))
