"""A robot stands, held by servos; without them it falls and rests."""

import re
from pathlib import Path

import numpy as np
import pytest
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.run import Verdict
from drakebots.formats import load
from drakebots.multibody import base_body, build_robot, find_posture
from drakebots.results import load_result
from drakebots.robots.legged import Drive, Simulation, drive, simulate
from drakebots.robots.legged.start import nudge, place
from tests.formats.read.test_upright import lying_quadruped
from tests.helpers.robot_files import loops_3d
from tests.helpers.standing_robots import biped, nested_quadruped, quadruped

LEGS = ("FL", "FR", "RL", "RR")
BENT = {f"{leg}_flexion": 0.6 for leg in LEGS} | {f"{leg}_knee": -1.2 for leg in LEGS}


def test_a_brick_falls_and_rests(tmp_path):
    heard = []
    problem = Simulation("brick", duration=0.4, friction=0.3, height=0.6, passive=True)
    result = simulate(problem, progress=lambda *news: heard.append(news))
    assert result.ok and result.kind == "legged.simulation"
    assert heard[-1] == ("simulate", 0.4, 0.4)
    feet = result.data.foot_position.values[..., 2]
    assert feet[0].min() == pytest.approx(0.1) and abs(feet[-1].min()) < 1e-3
    assert result.provenance["options"]["friction"] == 0.3
    assert result.provenance["options"]["model"].endswith("brick.sdf")
    assert load_result(result.save(tmp_path / "fall.nc")) == result


def test_a_loaded_model_at_a_height():
    problem = Simulation(load("brick"), duration=0.05, height=2.0, passive=True)
    base = simulate(problem).data.base_position.values
    assert np.allclose(base[0], [0, 0, 2.0])
    t = 0.05
    assert base[-1, 2] == pytest.approx(2.0 - 0.5 * 9.81 * t**2, abs=1e-3)


def test_a_quadruped_stands_and_its_motors_carry_it(tmp_path):
    """Straight legs are bent; at rest its torques are those of statics."""
    still = Simulation(load(quadruped(tmp_path)), duration=0.5, nudge=0.0)
    result = simulate(still)
    assert result.ok, result.message
    assert "held by 12 servos" in result.message
    assert result.metrics["height_share"] == pytest.approx(1, abs=0.01)
    assert result.metrics["tilt_deg"] < 0.5
    feet = result.data.foot_position.values[..., 2] - 0.02
    assert np.abs(feet).max() < 1e-3
    # The first sample is before the first step; feet that stick take up a little.
    torque = result.data.torque.values
    weight, size = 9.81 * 9.6, 0.37
    assert np.abs(torque[1]).max() > 0.05 * weight * size
    assert np.abs(torque[-1] - torque[1]).max() < 0.01 * weight * size


def test_left_to_itself_it_goes_down(tmp_path):
    path = quadruped(tmp_path)
    result = simulate(Simulation(path, duration=0.5, passive=True))
    assert result.ok and "left to itself" in result.message
    assert result.metrics["height_share"] < 0.8


def test_feet_of_cylinders_are_still(tmp_path):
    """They lie on the ground beside the balls of the sole. A cylinder touches it at one
    end at a time; if that carried, the torques would change in every step."""
    path = biped(tmp_path)
    half = '<origin rpy="0 1.5708 0" xyz="0.03 {} -0.035"/><geometry><cylinder '
    half += 'length="0.16" radius="0.02"/>'
    halves = "</geometry></collision><collision>".join(map(half.format, (0.03, -0.03)))
    sole = '<origin xyz="0.03 0 -0.04"/><geometry><box size="0.16 0.08 0.02"/>'
    path.write_text(path.read_text().replace(sole, halves))
    result = simulate(Simulation(path, duration=0.4, log_period=1e-3))
    assert result.ok and len(result.data.foot) == 8
    torques = result.data.torque.values[-50:]
    assert np.abs(np.diff(torques, axis=0)).max() < 1e-3 * np.abs(torques).max()


def test_weak_motors_let_it_fall(tmp_path):
    path = quadruped(tmp_path, effort=0.3)
    result = simulate(Simulation(path, pose=BENT, duration=0.5))
    assert result.verdict is Verdict.FAILED
    # Joints are named as in the file and in `show`, without the model before them.
    assert (
        "though the motors of FL_knee, FR_knee, RL_knee, RR_knee are too weak at rest "
        "(raise the file's effort limits, or give --effort)" in result.message
    )
    assert "it fell at 0." in result.message
    assert np.abs(result.data.torque).max() <= 0.3 + 1e-9


def test_joints_without_motors_are_named_with_a_remedy(tmp_path):
    """What the message proposes makes it stand."""
    path = quadruped(tmp_path)
    text = path.read_text()
    knees = re.compile(r'(<joint name="\w+_knee".*?effort=)"[^"]*"', re.DOTALL)
    path.write_text(knees.sub(r'\1"0"', text))
    fallen = simulate(Simulation(path, pose=BENT, duration=0.5))
    assert fallen.verdict is Verdict.FAILED
    assert (
        "no motor holds FL_knee, FR_knee, RL_knee, RR_knee at rest "
        "(--actuate all --effort 10)" in fallen.message
    )
    driven = load(path, actuate="all", effort=10)
    assert simulate(Simulation(driven, pose=BENT, duration=0.5)).ok


def with_free_knees(folder, **more):
    """A quadruped with straight legs, whose knees have an effort limit of 0."""
    path = quadruped(folder, **more)
    limit = r'(_knee" type.*?effort=")[0-9.]*"'
    path.write_text(re.sub(limit, r'\g<1>0"', path.read_text(), flags=re.S))
    return path


@pytest.mark.long
@pytest.mark.parametrize("knee", [(-2.5, 0.3), (-0.3, 2.5), (-2.5, 2.5)])
def test_balancing_on_free_knees_is_not_standing(tmp_path, knee):
    """They collapse to the side that has room, from an exact equilibrium."""
    model = load(with_free_knees(tmp_path, knee=knee))
    fallen = simulate(Simulation(model, duration=1.5))
    assert fallen.verdict is Verdict.FAILED
    assert fallen.message.startswith("it fell at 0.")
    assert "4 joints of its legs have no motor: FL_knee, FR_knee" in fallen.message
    assert "--actuate all --effort 10" in fallen.message
    rest = simulate(Simulation(model, duration=1.5, nudge=0.0))
    assert rest.ok and "it stands, but 4 joints of its legs have no" in rest.message


def test_a_short_run_says_that_it_is_too_short_to_tell(tmp_path):
    held = simulate(Simulation(load(with_free_knees(tmp_path)), duration=0.3))
    assert held.ok and "it has not fallen yet, but 4 joints" in held.message


def test_free_knees_on_their_stops_stand(tmp_path):
    """Bent back by a tenth of a radian, as a person stands on locked knees."""
    path = with_free_knees(tmp_path, knee=(-0.1, 0.1))
    held = simulate(Simulation(load(path), duration=1.5))
    assert held.ok and "it stands, but 4 joints" in held.message


@pytest.mark.parametrize("free", [False, True])
def test_a_nudge_goes_the_way_in_which_knees_give_way(tmp_path, free):
    """v_base = rate h with locked joints, and rate 0.2 m more behind bending knees."""
    write = with_free_knees if free else quadruped
    model = load(write(tmp_path))
    robot, posture = build_robot(model, DiagramBuilder()), find_posture(model)
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    place(robot, context, posture)
    passive = tuple(f"{leg}_knee" for leg in ("FL", "FR", "RL", "RR"))
    assert posture.passive == (passive if free else ())
    nudge(
        robot, context, base_body(plant).scoped_name().get_full(), posture.passive, 0.1
    )
    v = plant.GetVelocities(context)
    v_WB = plant.EvalBodySpatialVelocityInWorld(context, base_body(plant))
    ahead, left, up = v_WB.translational()
    height = posture.X_WB.translation()[2]
    assert np.abs(v_WB.rotational()).max() < 1e-9 and abs(up) < 1e-9
    assert left == pytest.approx(0.1 * height, rel=0.1)
    knees = [v[plant.GetJointByName(name).velocity_start()] for name in posture.passive]
    assert knees == ([-0.1] * 4 if free else [])
    assert ahead == pytest.approx(-left - 0.1 * 0.2 if free else left, rel=1e-6)


def test_lying_on_its_side_is_not_standing(tmp_path):
    """Drawn with y up and taken with z up, it rests on its legs and its trunk."""
    path = lying_quadruped(tmp_path, "y", trunk=True)
    lying = simulate(Simulation(load(path, up="z"), duration=0.3))
    assert lying.verdict is Verdict.FAILED
    upright = simulate(Simulation(load(path), duration=0.3))
    assert upright.ok, upright.message


def test_resting_on_a_knee_is_not_standing(tmp_path):
    """Sitting on its trunk, a robot stays where it is, and does not stand."""
    sitting = {f"{leg}_flexion": 1.5 for leg in LEGS} | {
        f"{leg}_knee": 0.2 for leg in LEGS
    }
    result = simulate(Simulation(quadruped(tmp_path), pose=sitting, duration=0.3))
    assert result.verdict is Verdict.FAILED
    assert "of the ground's push is on its feet" in result.message


@pytest.mark.long
def test_who_slides_away_does_not_stand(tmp_path):
    """On ice a nudge goes on: it drifts by its speed times the time, and less than
    its size is a "but"."""
    path = quadruped(tmp_path)

    def slid(duration):
        return simulate(Simulation(path, friction=0.0, nudge=0.2, duration=duration))

    short, long = slid(0.8), slid(2.0)
    speed = np.linalg.norm(short.data.base_position.values[-1, :2]) / 0.8
    assert speed == pytest.approx(short.metrics["drift_m"] / 0.8, rel=0.1)
    assert short.ok and "it stands, but it drifts by 0." in short.message
    assert long.verdict is Verdict.FAILED and "it does not stand: it drifts" in (
        long.message
    )
    reported = long.metrics["judged"]["drift [m]"]
    assert reported["is"] == pytest.approx(2.5 * short.metrics["drift_m"], rel=0.2)
    assert reported["is"] > reported["fails"] > reported["limit"]


def test_loops_that_are_open_at_the_start_are_no_success(tmp_path):
    """Bent on one side only, the linkage does not close: no servo makes that true."""
    model = load(loops_3d(tmp_path))
    closed = simulate(Simulation(model, duration=0.1))
    assert closed.ok, closed.message
    loop = closed.metrics["judged"]["loop gap [m]"]
    assert loop["is"] < 0.1 * loop["limit"]
    apart = dict(find_posture(model).joints)
    apart[next(iter(apart))] += 0.3
    result = simulate(Simulation(model, duration=0.1, pose=apart))
    assert result.verdict is Verdict.FAILED
    assert "its loops are open by 0.0" in result.message
    assert "at the start" in result.message and "--pose" in result.message


KANGAROO = Path("../shared/data/closed_loops/kangaroo_like/robot.urdf")


@pytest.mark.long
@pytest.mark.skipif(not KANGAROO.is_file(), reason="robots of others are not here")
def test_a_leg_with_24_loops_is_no_false_success():
    """Its motors of 1 N m hold nothing: it falls and its cranks spin; left to itself,
    its loops come apart."""
    model = load(KANGAROO)
    held = simulate(Simulation(model, duration=0.5))
    assert held.verdict is Verdict.FAILED and "it fell at 0." in held.message
    reported = held.metrics["judged"]
    (speed,) = (reported[name] for name in reported if name.startswith("final speed"))
    assert speed["is"] > speed["fails"]
    passive = simulate(Simulation(model, duration=0.5, passive=True))
    assert passive.verdict is Verdict.FAILED
    assert passive.message.startswith("its loops open by 0.00")


@pytest.mark.long
def test_links_drawn_into_one_another_do_not_push(tmp_path):
    """The hips' boxes lie in the trunk, two joints up."""
    result = simulate(Simulation(quadruped(tmp_path, thick=True), duration=0.2))
    assert result.ok and "pairs of links overlap" in result.metrics["adjustments"][0]
    assert "overlap" not in result.message


def test_legs_that_share_names_are_told_apart(tmp_path):
    """Each leg's overlap is let be; motors have their own series, joints their pose."""
    model = load(nested_quadruped(tmp_path))
    result = simulate(Simulation(model, duration=0.5))
    assert result.ok
    assert result.metrics["adjustments"][0].startswith("4 pairs of links overlap")
    motors = list(result.data.motor.values)
    assert len(set(motors)) == 12 and "dog::RL::knee" in motors
    given = {"dog::FL::knee": -0.5, "dog::RR::hip_y": 0.2}
    posed = find_posture(model, pose=given)
    assert {k: v for k, v in posed.joints.items() if v} == given
    robot = build_robot(model)
    context = robot.plant.CreateDefaultContext()
    posed.put(robot, context, base=False)
    names = robot.plant.GetPositionNames(always_add_suffix=False)
    q = dict(zip(names, robot.plant.GetPositions(context)))
    assert (q["dog::FL_knee"], q["dog::RR_knee"]) == (-0.5, 0.0)
    with pytest.raises(UnknownName, match="dog::FL::knee"):
        simulate(Simulation(model, pose={"knee": -0.5}))
    for name in ("mass:thigh", "damping:knee"):
        with pytest.raises(InvalidInput, match="several parts"):
            load(model.path, parameters={name: 0.7})
    assert load(model.path, parameters={"mass:trunk": 9.0}).summary.mass > 12


@pytest.mark.parametrize(
    "wrong",
    [
        {"duration": 0},
        {"duration": np.nan},
        {"time_step": -1},
        {"log_period": np.inf},
        {"friction": -0.1},
        {"height": np.nan},
        {"time_limit": 0},
        {"stiffness": 0},
    ],
)
def test_refused(wrong):
    (name,) = wrong
    with pytest.raises(InvalidInput, match=f"^{name} must be"):
        Simulation("brick", **wrong)


def test_unknown_model():
    with pytest.raises(UnknownName, match="brick"):
        simulate(Simulation("brik"))


def test_unknown_joint():
    with pytest.raises(UnknownName, match="joint"):
        simulate(Simulation("brick", pose={"elbow": 1.0}))


@pytest.mark.long
def test_links_without_mass_do_not_blow_up(tmp_path):
    """A shank in two parts, of which the upper one has no mass at all."""
    path = quadruped(tmp_path)
    text = path.read_text()
    for leg in LEGS:
        text = text.replace(
            f'<child link="{leg}_shank"/>', f'<child link="{leg}_ring"/>'
        )
        text = text.replace(
            "</robot>",
            f'<link name="{leg}_ring"/><joint name="{leg}_spin" type="revolute">'
            f'<parent link="{leg}_ring"/><child link="{leg}_shank"/><axis xyz="0 0 1"/>'
            '<limit lower="-1" upper="1" effort="5" velocity="9"/></joint></robot>',
        )
    path.write_text(text)
    result = simulate(Simulation(path, duration=0.3))
    assert result.ok, result.message
    assert "4 massless links given" in result.metrics["adjustments"][0]


def test_an_arm_is_held(tmp_path):
    """A fixed base cannot fall; the joint keeps its angle against gravity."""
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="arm"><link name="world"/><link name="forearm"><inertial>'
        '<origin xyz="0.5 0 0"/><mass value="2"/><inertia ixx="0.1" iyy="0.1" '
        'izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="elbow" type="revolute"><axis xyz="0 1 0"/>'
        '<parent link="world"/><child link="forearm"/>'
        '<limit lower="-2" upper="2" effort="30" velocity="9"/></joint></robot>'
    )
    result = simulate(Simulation(path, duration=0.5))
    assert result.ok, result.message
    assert result.data.position.values[-1] == pytest.approx([0.0], abs=1e-6)
    # Gravity turns it about +y by m g 0.5 m.
    assert result.data.torque.values[-1] == pytest.approx([-2 * 9.81 * 0.5], rel=1e-4)


def test_a_robot_of_which_nothing_moves_is_refused(tmp_path):
    """Also one whose only link has no mass."""
    path = tmp_path / "lamp.urdf"
    path.write_text("<robot name='lamp'><link name='lamp'/></robot>")
    for run in (simulate, drive):
        kind = Simulation if run is simulate else Drive
        how = {} if run is simulate else {"headless": True, "joints": "posed"}
        with pytest.raises(InvalidInput, match="nothing of lamp moves"):
            run(kind(path, duration=0.1, **how))
