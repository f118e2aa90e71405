"""Plans tracked: standing carries the weight, falls are seen, servos get angles."""

import csv
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from pydrake.math import RotationMatrix
from scipy.spatial.transform import Rotation

from drakebots.core.errors import FileProblem, InvalidInput, UnknownName
from drakebots.core.run import Verdict
from drakebots.model import find_model
from drakebots.results import Result, load_result
from drakebots.robots.quads.track import ServoTable, Start, Tracking, plan_model, track
from drakebots.robots.quads.track.reference import (
    fall_off_plan,
    patch_positions,
    plan_reference,
    servo_targets,
)
from drakebots.robots.quads.track.servo_file import (
    Channel,
    channels_of,
    model_channels,
    read_channels,
    servo_table,
    write_servos,
)
from drakebots.robots.quads.track.tracking import LevelSwing, start_positions
from drakebots.skin.coupled import PatchContact
from drakebots.skin.file import ServoGains
from tests.helpers.result_samples import make
from tests.helpers.scripts import load_script
from tests.helpers.small_quad import planned_lift

step_back = load_script("quad_kinematic").step_back
track_sap = load_script("sap_track").track_sap

G = 9.81


@pytest.fixture(scope="module")
def run(plan):
    return track(Tracking(plan))


@pytest.fixture(scope="module")
def sap(plan):
    return track_sap(Tracking(plan))


def quiet(run):
    """Rows while all feet are down and nothing moves yet."""
    return (run.data.time.values > 0.1) & (run.data.time.values < 0.2)


@pytest.mark.long
def test_the_ground_carries_the_weight(run, robot):
    """And the COP is where the COM and its mean acceleration have it, c - h a/g."""
    assert run.ok, run.message
    load = run.data.patch_force.values[quiet(run), :, 2].sum(axis=1)
    assert np.allclose(load.mean(), robot.mass * G, rtol=0.02)
    at = quiet(run)
    t, com = run.data.time.values, run.data.com.values
    v = np.gradient(com, t, axis=0)[at]
    a = (v[-1] - v[0]) / np.ptp(t[at])
    due = com[at, :2].mean(axis=0) - com[at, 2].mean() * a[:2] / G
    assert np.abs(run.data.cop.values[at].mean(axis=0) - due).max() < 1e-3


@pytest.mark.long
def test_sap_carries_skeleton_and_recorded_skin(sap, robot):
    """The recorded wrenches weigh what the skin weighs."""
    assert sap.ok, sap.message
    load = sap.data.patch_force.values[quiet(sap), :, 2].sum(axis=1)
    assert np.allclose(np.median(load), robot.mass * G, rtol=0.01)


def test_sap_without_skin_carries_the_skeleton(plan, robot):
    bare = track_sap(Tracking(plan), skin=False)
    load = bare.data.patch_force.values[quiet(bare), :, 2].sum(axis=1)
    # Now and then a point of a foot lets go for one step; rounding decides when.
    assert np.allclose(np.median(load), robot.skinned.skeleton_mass * G, rtol=0.01)
    assert "skin_position" not in bare.data


@pytest.mark.long
def test_both_end_where_they_began(run, sap, plan):
    for result in (run, sap):
        m = result.metrics
        assert m["com_drift_m"] < 0.01
        assert m["planned_distance_m"] < 0.01 and m["distance_m"] == 0.0
        assert m["peak_torque_share"] <= 1 + 1e-9
        gap = result.data.position.values - plan.data.position.values
        assert np.abs(gap).max() < 0.2


@pytest.mark.long
def test_a_lifted_foot_bears_nothing(run, sap, plan):
    middle = np.abs(plan.data.time.values - 0.5) < 0.05
    for result in (run, sap):
        force = result.data.patch_force.values[middle]
        assert np.abs(force[:, :5]).max() == 0
        assert force[:, 5:, 2].sum(axis=1).min() > 1.0


@pytest.mark.long
def test_the_skin_goes_with_its_links(sap, run):
    """SAP's shapes are the plan's carried along: as near to the links as those."""
    a = sap.data.skin_position.values[-1].mean(axis=0)
    k = int(np.abs(run.data.skin_time.values - sap.data.skin_time.values[-1]).argmin())
    b = run.data.skin_position.values[k].mean(axis=0)
    assert np.abs(a - b).max() < 0.01


def test_targets_lead_by_the_mean_load():
    """A ramp of torque is its own mean; a jump is spread over 20 ms. The torque of the
    first row acts in no step; the cycle of a periodic load has no seam."""
    gains, q = ServoGains(stiffness=20.0), np.ones((12, 1))
    ramp = np.arange(12.0)[:, None]
    moved = servo_targets(q, ramp, gains, 5e-3) - q
    assert np.allclose(moved[3:-2], ramp[3:-2] / 20)
    turning, slow = 0.5 * 5e-3 * ramp, ServoGains(stiffness=20.0, damping=0.4)
    moved = servo_targets(turning, 0 * ramp, slow, 5e-3) - turning
    assert np.allclose(moved, 0.4 * 0.5 / 20)
    jump = np.repeat([0.0, 1.0], 6)[:, None]
    moved = servo_targets(q, jump, gains, 5e-3) - q
    assert np.allclose(np.diff(moved[3:9, 0]), 1 / 5 / 20)
    assert (servo_targets(q, ramp, ServoGains(stiffness=0.0), 5e-3) == q).all()
    first = servo_targets(q, ramp + 9 * (ramp == 0), gains, 5e-3)
    assert (first == servo_targets(q, ramp, gains, 5e-3)).all()
    turns = 2 * np.pi * np.arange(12)[:, None] / 11
    loads = [np.sin(turns + shift * 2 * np.pi / 11) for shift in (0, 4)]
    a, b = (servo_targets(q, x, gains, 5e-3, periodic=True) - q for x in loads)
    assert np.allclose(np.roll(a[:-1], -4, axis=0), b[:-1]) and a[0] == a[-1]


@pytest.mark.long
def test_servos_told_of_their_sag_follow_better(plan, run, robot):
    """Sent the planned angles alone, joints stay behind by what bears their loads."""
    plain = track(Tracking(plan, plain_angles=True))

    def off(result):
        at, planned = (
            [robot.skinned.joint_positions(row) for row in one.data.position.values]
            for one in (result, plan)
        )
        return np.sqrt(np.mean(np.subtract(at, planned) ** 2))

    assert off(run) < 0.25 * off(plain)  # 2.7 against 17 mrad


@pytest.mark.long
def test_the_run_of_a_failed_plan_says_so_first(plan):
    fields = {
        name: getattr(plan, name)
        for name in ("kind", "model", "residuals", "timings", "metrics", "provenance")
    }
    short = Result(
        data=plan.data.isel(time=slice(0, 20)),
        verdict=Verdict.FAILED,
        message="fell: 0.6 from the reference at 0.1 s",
        **fields,
    )
    run = track(Tracking(short))
    assert run.verdict is Verdict.FAILED
    assert run.message.startswith("the plan did not succeed (fell: 0.6 from the")
    assert "has 0.095 of 1 s" in run.message and "on its feet" in run.message


def test_a_disturbed_start(plan, robot):
    """As much higher as asked; rolled, with its lowest patch where the plan's is."""
    q = plan_reference(plan, robot).q[:1]
    high = start_positions(Tracking(plan, start=Start(height=5e-3)))
    assert np.allclose(high - q[0], np.eye(len(high))[6] * 5e-3, atol=1e-9)
    rolled = start_positions(Tracking(plan, start=Start(roll=np.radians(2.0))))
    euler = robot.coordinates.from_positions(np.stack([q[0], rolled]))
    assert np.isclose(euler[1, 5] - euler[0, 5], np.radians(2.0))
    low = [patch_positions(robot, row[None])[0, :, 2].min() for row in (q[0], rolled)]
    assert np.isclose(low[0], low[1], atol=1e-9)


def lifted_foot(robot, positions):
    """Middle of the foot that is lifted, from the base, in the world's directions."""
    patches = patch_positions(robot, positions[None])[0]
    return patches[:5].mean(axis=0) - positions[4:7]


@pytest.mark.parametrize("axis", [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
def test_a_swinging_foot_keeps_its_place_though_the_body_turns(plan, robot, axis):
    """Of 3 degrees one part in ten is left, nearly all of it of second order; legs
    that stand hold their angles."""
    level = LevelSwing(robot, plan_reference(plan, robot))
    q = plan.data.position.values[level.reference.row(0.5)]
    turned = q.copy()
    turn = Rotation.from_rotvec(np.radians(3.0) * np.array(axis))
    was = Rotation.from_quat(q[[1, 2, 3, 0]])
    turned[:4] = (turn * was).as_quat()[[3, 0, 1, 2]]
    still = LevelSwing(robot, level.reference)
    dq = level.correction(0.5, level.attitude(turned), 1.0)
    plant, moved = robot.skinned.plant, turned.copy()
    for name, by in zip(robot.skinned.joints, dq):
        moved[plant.GetJointByName(name).position_start()] += by
    place = lifted_foot(robot, q)
    off = [np.linalg.norm(lifted_foot(robot, x) - place) for x in (moved, turned)]
    assert off[1] > 2e-3 and off[0] < 0.1 * off[1]
    own = [name.startswith("fl") for name in robot.skinned.joints]
    assert not dq[~np.array(own)].any()
    assert not still.correction(0.1, level.attitude(turned), 1.0).any()
    assert np.abs(still.correction(0.5, level.attitude(q), 1.0)).max() < 1e-12


def test_a_foot_that_has_landed_is_drawn_back_slowly(plan, robot):
    """Within 0.2 s to 1/e, where a swinging foot goes to its place within 50 ms."""
    level = LevelSwing(robot, plan_reference(plan, robot))
    R_WB = RotationMatrix.MakeXRotation(np.radians(3.0))
    for t in np.arange(0.45, 0.5, 5e-3):
        level.correction(t, R_WB, 5e-3)
    up = level.dp[0].copy()
    level.correction(0.5, R_WB, 1.0)
    # The planned place moves a little in these 50 ms: compare the vectors as wholes.
    share = (1 - np.exp(-50 / 50)) * level.dp[0]
    assert np.linalg.norm(up - share) < 0.05 * np.linalg.norm(share)
    up, down = level.dp[0].copy(), float(level.reference.times[-1])
    for _ in range(40):
        level.correction(down, R_WB, 5e-3)
    assert np.allclose(level.dp[0], up / np.e, rtol=1e-6)


def test_a_turn_goes_on_from_cycle_to_cycle(plan, robot):
    """The body is level where the plan, repeated, has turned it by as much again."""
    once = plan_reference(plan, robot)
    q, turn = once.q.copy(), np.radians(8.0)
    angle = np.linspace(0.0, turn, len(q)) / 2
    q[:, :4] = np.stack([np.cos(angle), 0 * angle, 0 * angle, np.sin(angle)], axis=1)
    level = LevelSwing(robot, replace(once, q=q, periodic=True))
    end = float(once.times[-1])
    for time, yaw in (
        (end, turn),
        (end + 0.5, 1.5 * turn),
        (2 * end + 0.5, 2.5 * turn),
    ):
        R_WD = level.planned_attitude(time).matrix()
        assert np.allclose(np.arctan2(R_WD[1, 0], R_WD[0, 0]), yaw, atol=0.01 * turn)


@pytest.mark.long
def test_a_foot_swings_higher_over_soft_ground(plan, robot):
    """The body sinks towards the lifted foot; told of it, the leg draws it up."""

    def low(**options):
        run = track(Tracking(plan, ground=PatchContact(stiffness=1e3), **options))
        middle = np.abs(run.data.time.values - 0.5) < 0.05
        return run.data.patch_position.values[middle, :5, 2].min()

    assert low(imu=True) > low() + 1e-3


def test_joints_of_a_periodic_motion_repeat(plan, robot):
    once = plan_reference(plan, robot)
    again = replace(once, periodic=True)
    end = once.times[-1]
    for t in (0.03, 0.31, 0.77):
        assert np.allclose(again.at(t + end), again.at(t), atol=1e-9)
    assert np.allclose(once.at(end + 3.0), once.targets[-1])


def test_a_fall_is_seen(plan, robot):
    reference = plan_reference(plan, robot)
    q = plan.data.position.values[0].copy()
    assert fall_off_plan(robot, reference, q, 0.0) == ""
    low = q.copy()
    low[6] *= 0.3
    assert "sank" in fall_off_plan(robot, reference, low, 0.0)
    tipped = q.copy()
    tipped[:4] = np.cos(0.6), np.sin(0.6), 0, 0
    fallen = fall_off_plan(robot, reference, tipped, 0.0)
    assert fallen == "fell: tilted by 69 degrees"


@pytest.mark.long
def test_a_slippery_floor_is_another_floor(plan):
    """Less friction moves the feet more."""
    run = track(Tracking(plan, plain_angles=True))
    ice = track(Tracking(plan, ground=PatchContact(0.02), plain_angles=True))

    def slip(result):
        feet = result.data.patch_position.values[:, 5:, :2]
        return np.abs(feet - feet[0]).max()

    assert slip(ice) > 1.5 * slip(run)
    force = ice.data.patch_force.values
    along, normal = np.linalg.norm(force[..., :2], axis=-1), force[..., 2]
    # Normal forces in the friction are found to 1e-3 of a step's largest one.
    bound = 0.02 * (normal + 1e-3 * normal.max(axis=1, keepdims=True))
    assert (along <= bound + 1e-9).all()


def test_time_limit_and_bad_input(plan):
    cut = track(Tracking(plan, time_limit=1e-3))
    assert cut.verdict is Verdict.TIME_LIMIT and len(cut.data.time) == 2
    for options in (
        {"cycles": 0},
        {"time_step": 0.0},
        {"settle": np.nan},
        {"ground": 0.8},
    ):
        with pytest.raises(InvalidInput, match=next(iter(options))):
            Tracking(plan, **options)
    with pytest.raises(InvalidInput, match="samples"):
        track(Tracking(plan, settle=1e9))


@pytest.mark.long
def test_what_is_no_plan(plan, run, robot):
    with pytest.raises(InvalidInput, match="no plan of a quad"):
        plan_reference(run, robot)
    bare = plan.data.drop_vars("skin_force")
    fields = {
        name: getattr(plan, name)
        for name in (
            *("kind", "model", "verdict", "message"),
            *("residuals", "timings", "metrics", "provenance"),
        )
    }
    with pytest.raises(InvalidInput, match="skin_force"):
        track_sap(Tracking(Result(data=bare, **fields)))
    fields["provenance"] = {"files": {}}
    lost = Result(data=plan.data, **fields)
    with pytest.raises(InvalidInput, match="--model"):
        Tracking(lost).robot  # noqa: B018


def test_steps_back():
    """3 forward, 1 back, 2 forward: 1."""
    x = np.array([0.0, 0.3, 0.2, 0.4])
    com = np.stack([x, 0 * x, 0 * x], axis=1)
    axis = ("time", "axis")

    class Run:
        data = xr.Dataset({"com": (axis, com), "planned_com": (axis, com)})

    assert np.isclose(step_back(Run), 0.1)


# --- angles for a board ------------------------------------------------------


def board(plan, zero=90.0, limit=90.0):
    return [
        Channel(str(j), k, 1 if k % 2 else -1, zero, -limit, limit)
        for k, j in enumerate(plan.data.joint.values)
    ]


def test_shaft_angles(plan, robot):
    """zero + direction x angle, at the plan's own times."""
    channels = board(plan)
    times, values = servo_table(ServoTable(plan, rate=200.0), channels)
    assert np.allclose(times, plan.data.time.values)
    at = [
        robot.skinned.plant.GetJointByName(c.joint).position_start() for c in channels
    ]
    angle = np.degrees(plan.data.position.values[:, at])
    signs = [c.direction for c in channels]
    assert np.allclose(values, 90.0 + angle * signs, atol=1e-9)


@pytest.mark.long
def test_the_board_is_told_of_the_sag(plan, run, robot):
    """The shaft leads by torque over stiffness; a run's are the targets it had."""
    channels, gains = board(plan), robot.skinned.skin.servos
    _, plain = servo_table(ServoTable(plan, rate=200.0), channels)
    _, moved = servo_table(ServoTable(plan, rate=200.0), channels, gains=gains)
    targets = plan_reference(plan, robot).targets
    angles = plan_reference(plan, robot).angles
    signs = [c.direction for c in channels]
    assert np.allclose(moved - plain, np.degrees(targets - angles) * signs, atol=1e-9)
    assert np.abs(moved - plain).max() > 0.1
    _, played = servo_table(ServoTable(run, rate=200.0), channels)
    assert np.allclose(
        played[1:], moved[:-1] if len(played) < len(moved) else moved[1:]
    )


@lru_cache
def stored():
    return load_result(planned_lift()[1])


@pytest.mark.long
@given(st.floats(300e-6, 900e-6), st.floats(1e-3, 3e-3))
def test_pulses_are_linear(low, high):
    plan = stored()
    channels = board(plan)
    _, degrees = servo_table(ServoTable(plan), channels)
    _, pulse = servo_table(ServoTable(plan, units="us", pulse=(low, high)), channels)
    assert np.allclose(pulse, 1e6 * (low + (high - low) * degrees / 180.0))


def test_a_file_for_the_board(plan, tmp_path):
    channels = board(plan)[::-1]
    times, values = servo_table(ServoTable(plan, rate=50.0), channels)
    path = write_servos(tmp_path / "s.csv", channels, times, values, "deg")
    rows = list(csv.reader(path.read_text().splitlines()))
    assert rows[0][0] == "time" and rows[0][1] == f"ch0_{channels[-1].joint}_deg"
    assert len(rows) == 52 and float(rows[-1][0]) == 1.0
    assert np.allclose([float(x) for x in rows[1][1:]], values[0, ::-1], atol=1e-3)


def test_a_board_that_does_not_fit(plan, tmp_path):
    channels = board(plan)
    with pytest.raises(InvalidInput, match=r"turns to .* deg at .* s, beyond"):
        servo_table(ServoTable(plan), board(plan, limit=0.1))
    with pytest.raises(InvalidInput, match=f"no channel for joint {channels[3].joint}"):
        servo_table(ServoTable(plan), [c for c in channels if c is not channels[3]])
    with pytest.raises(InvalidInput, match="no joint 'tail'"):
        servo_table(
            ServoTable(plan), [*channels, Channel("tail", 30, 1, 90.0, -90, 90)]
        )
    with pytest.raises(InvalidInput, match="do not end as they begin"):
        servo_table(ServoTable(plan, cycles=2), channels)
    with pytest.raises(UnknownName, match="turns"):
        servo_table(ServoTable(plan, units="turns"), channels)
    with pytest.raises(InvalidInput, match="rate"):
        servo_table(ServoTable(plan, rate=0.0), channels)
    for pulse in ((2500e-6, 500e-6), (np.nan, 2e-3)):
        with pytest.raises(InvalidInput, match="pulse"):
            servo_table(ServoTable(plan, pulse=pulse), channels)
    with pytest.raises(InvalidInput, match="in us"):
        servo_table(ServoTable(plan, pulse=(500.0, 2500.0)), channels)
    row = {"joint": "a", "channel": 1, "direction": 1, "zero_deg": 90}
    with pytest.raises(InvalidInput, match="lower_deg"):
        channels_of([row])
    row |= {"lower_deg": -1, "upper_deg": "x"}
    with pytest.raises(InvalidInput, match="line 2"):
        channels_of([row])
    row["upper_deg"] = 1
    with pytest.raises(InvalidInput, match="channel 1 is listed twice"):
        channels_of([row, row])
    with pytest.raises(InvalidInput, match="direction"):
        channels_of([row | {"direction": 2}])
    with pytest.raises(InvalidInput, match="direction"):
        channels_of([row | {"direction": 0}])
    with pytest.raises(InvalidInput, match="zero_deg"):
        channels_of([row | {"zero_deg": 0}])
    with pytest.raises(InvalidInput, match="line 2: upper_deg"):
        channels_of([row | {"upper_deg": "nan"}])
    with pytest.raises(InvalidInput, match="line 2: lower_deg must be < upper_deg"):
        channels_of([row | {"lower_deg": 80, "upper_deg": -80}])
    with pytest.raises(InvalidInput, match="line 2: channel must be a whole number"):
        channels_of([row | {"channel": -5}])
    with pytest.raises(InvalidInput, match="--servo-map"):
        model_channels("small", tmp_path)
    with pytest.raises(FileProblem):
        read_channels(tmp_path / "none.csv")


def test_the_map_of_a_design_of_table_1():
    """Twelve servos on the beetle, its joints by name."""
    channels = model_channels("beetle")
    assert len(channels) == 12
    assert {c.joint for c in channels} >= {"FL_shoulder", "RR_ankle"}
    assert sorted(c.number for c in channels) == list(range(12))


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("/gone/models/beetle/beetle.sdf", str(find_model("beetle"))),
        ("/gone/mine/beetle.sdf", "/gone/mine/beetle.sdf"),
    ],
)
def test_a_plan_from_another_machine_finds_the_model_that_came_with_ours(named, found):
    plan = make(kind="quads.plan", model="beetle", provenance={"files": {named: "0"}})
    assert plan_model(plan) == found
