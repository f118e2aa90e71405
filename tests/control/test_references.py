"""References of controlled robots: clocks, paths and stepping joints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from drakebots import build_robot, load
from drakebots.control import Gait, ReferenceMotion, follow_feet
from drakebots.control.references import crouched, phases_of
from drakebots.model import Point
from drakebots.multibody import Slope, Step, find_posture
from tests.helpers.coupled_robots import knees_follow
from tests.helpers.standing_robots import biped, hexapod


def standing(name):
    """A robot on a base of Euler angles, and its standing pose."""
    model = load(name)
    robot = build_robot(model, base="euler", time_step=0)
    posture, context = find_posture(model), robot.plant.CreateDefaultContext()
    q = robot.plant.GetPositions(context)
    for joint, value in posture.joints.items():
        q[robot.plant.GetJointByName(joint).position_start()] = value
    robot.plant.SetPositions(context, q)
    robot.set_base_pose(context, posture.X_WB)
    return robot, context, robot.plant.GetPositions(context)


@pytest.fixture(scope="module")
def cheetah():
    return standing("mini_cheetah")


@pytest.fixture(scope="module")
def bent_biped(tmp_path_factory):
    robot, context, q = standing(biped(tmp_path_factory.mktemp("biped"), rolls=True))
    return robot, context, crouched(robot, q, Gait(), 0.3)


def reference(robot, q, **more):
    return ReferenceMotion(robot, q, step=0.05, knots=20, **more)


def test_pairs_step_in_turn():
    """Each foot is in the air for 1 - duty of a cycle, never both pairs at once."""
    clock, phases = Gait(period=0.4, duty=0.6), np.array([0, 0.5])
    air = clock.swing(np.linspace(0, 4, 4001)[:-1], phases) > 0
    assert air.mean(axis=0) == pytest.approx(0.4, abs=0.01)
    assert not air.all(axis=1).any()


@pytest.mark.parametrize(
    ("places", "first", "crawl"),
    [
        (
            {"FL": (2, 1), "FR": (2, -1), "RL": (-2, 1), "RR": (-2, -1)},
            {"FL", "RR"},
            ["FL", "RR", "FR", "RL"],
        ),
        ({"L": (0.1, 1), "R": (-0.1, -1)}, {"L"}, ["L", "R"]),
        ({"leg": (0, 0)}, {"leg"}, ["leg"]),
        (
            {
                f"{side}{k}": (1 - k, y)
                for side, y in (("L", 1), ("R", -1))
                for k in range(3)
            },
            {"L0", "L2", "R1"},
            ["L0", "R2", "R1", "R0", "L2", "L1"],
        ),
    ],
)
def test_which_legs_step_in_turn(places, first, crawl):
    """Every second one first, or one after the other, hind before fore: whatever the
    order of the feet, where the base is, and with two feet a leg."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        legs = rng.permutation([*places, *places])
        feet = np.array([places[leg] for leg in legs]) + rng.normal(size=2)
        feet += rng.uniform(-0.1, 0.1, feet.shape)
        points = [Point(leg, leg, np.zeros(3)) for leg in legs]
        phases = phases_of(points, feet, "alternating")
        assert set(phases) <= {0.0, 0.5}
        assert {leg for leg, phase in zip(legs, phases) if phase == 0} == first
        phases = dict(zip(legs, phases_of(points, feet, "crawl")))
        turns = [phases[leg] for leg in crawl]
        assert turns == pytest.approx(
            [(-k / len(crawl)) % 1 for k in range(len(crawl))]
        )


@pytest.mark.long
def test_a_hexapod_stands_on_either_tripod(tmp_path):
    """The centre of mass is over the three feet that are down, at any moment."""
    robot, context, q0 = standing(hexapod(tmp_path))
    first = reference(robot, q0, gait=Gait()).phases == 0
    feet = robot.feet_positions(context)[:, :2]
    com = robot.plant.CalcCenterOfMassPositionInWorld(context)[:2]
    assert first.sum() == 3
    for down in (first, ~first):
        corners = np.vstack([feet[down].T, np.ones(3)])
        shares = np.linalg.solve(corners, [*com, 1.0])
        assert shares.min() > 0.1


@pytest.mark.parametrize("speed", [0.4, 0.0])
def test_feet_stand_still_while_the_base_passes(cheetah, speed):
    """In its stance a foot keeps its place on the ground at any speed and turn."""
    robot, context, q0 = cheetah
    turn, clock = 0.3, Gait()
    asked = reference(robot, q0, speed=speed, turn=turn, gait=clock)
    times = np.linspace(0, clock.period, 41)[:-1]
    feet = []
    for t in times:
        q = asked.sample(np.array([t]), q0)[0][0]
        robot.plant.SetPositions(context, np.r_[q0[:6], q[6:]])
        feet.append(robot.feet_positions(context))
    feet = np.array(feet)
    down = clock.swing(times, asked.phases) == 0
    ahead, behind = np.roll(feet, -1, axis=0), np.roll(feet, 1, axis=0)
    rates = (ahead - behind) / (2 * times[1])
    for foot in range(4):
        near = [np.roll(down[:, foot], k) for k in (-2, -1, 0, 1, 2)]
        steady = np.flatnonzero(np.all(near, axis=0))
        arm = feet[steady, foot, :2] - q0[:2]
        expected = -speed * np.array([1, 0]) - turn * np.stack(
            [-arm[:, 1], arm[:, 0]], 1
        )
        # A chord instead of an arc, and steps between the table's phases.
        assert np.abs(rates[steady, foot, :2] - expected).max() < 0.03
        assert np.ptp(feet[steady, foot, 2]) < 1e-4
        lift = feet[:, foot, 2].max() - feet[steady, foot, 2].min()
        assert lift == pytest.approx(clock.clearance, rel=0.03)


def test_a_foot_leaves_the_ground_where_it_stood(cheetah):
    """At the instants at which feet lift and land, too."""
    robot, context, q0 = cheetah
    clock, speed, feet = Gait(), 0.4, []
    asked = reference(robot, q0, speed=speed, gait=clock)
    times = np.linspace(0, clock.period, 401)
    for q in asked.sample(times, q0)[0]:
        robot.plant.SetPositions(context, np.r_[q0[:6], q[6:]])
        feet.append(robot.feet_positions(context))
    ahead = np.diff(np.array(feet)[..., 0], axis=0) / times[1]
    # A stance takes a foot back as fast as the base goes, its swing twice that mean.
    back = speed * clock.duty / (1 - clock.duty)
    assert np.abs(ahead).max() < 1.1 * 2 * back


@pytest.mark.long
@pytest.mark.parametrize("low", [0.02, 0.05, 0.1])
def test_a_knee_bends_within_its_limits(tmp_path, low):
    """One that is straight, which is its limit, bends the one way that it can."""
    robot, context, q = standing(biped(tmp_path, rolls=True))
    plant = robot.plant
    q[6:] = 0.0  # straight
    plant.SetPositions(context, q)
    lifted, joints = robot.feet_positions(context), np.arange(6, len(q))
    lifted[:, 2] += low
    q[joints] = follow_feet(robot, context, q, joints, lifted[None])[0]
    plant.SetPositions(context, q)
    assert robot.feet_positions(context) == pytest.approx(lifted, abs=1e-5)
    knees = [plant.GetJointByName(f"{s}_knee").position_start() for s in "LR"]
    assert (q[knees] > 0.3).all()


@pytest.mark.parametrize("beyond", [-0.003, 0.002, 0.02])
@pytest.mark.parametrize("turned", [0.0, 0.3, -0.5])
def test_a_leg_that_is_too_short_points_at_its_target(turned, beyond):
    """Thigh and shin of 0.2 m, in line where the target is farther than they reach."""
    robot = build_robot(load("monopod"), base="fixed", time_step=0)
    context, way = robot.plant.CreateDefaultContext(), np.zeros(3)
    way[[0, 2]] = np.sin(turned), -np.cos(turned)
    q, hip = np.array([0.0, 1.0, 0.0, 0.4, -0.8]), np.array([0.0, 0.0, 1.0])
    target = hip + (0.4 + beyond) * way
    q[3:] = follow_feet(robot, context, q, np.array([3, 4]), target[None, None])[0]
    robot.plant.SetPositions(context, q)
    nearest = hip + (0.4 + min(beyond, 0.0)) * way
    assert np.abs(robot.feet_positions(context)[0] - nearest).max() < 1e-5
    assert np.abs(q[3:]).max() < 1.0


def test_rates_are_those_of_the_positions(cheetah):
    robot, _, q0 = cheetah
    asked = reference(robot, q0, goal=(2, 1), speed=0.4, gait=Gait())
    times = 0.01 * np.arange(60)
    q, v = asked.sample(times, q0)
    middle = (v[1:] + v[:-1]) / 2
    base = np.abs(np.diff(q, axis=0) / 0.01 - middle)[:, :6]
    assert base.max() < 0.02
    # The table of the joints is linear between 40 phases.
    joints = np.abs(np.diff(q, axis=0) / 0.01 - middle)[:, 6:]
    assert np.median(joints) < 0.2


def test_a_way_ends_at_its_goal(cheetah):
    robot, _, q0 = cheetah
    goal = np.array([0.6, -0.3])
    q, v = reference(robot, q0, goal=goal, speed=0.4).sample(np.arange(0, 12, 0.05), q0)
    assert q[-1, :2] - q0[:2] == pytest.approx(goal, abs=1e-3)
    assert np.abs(v[-1]).max() < 1e-3
    assert np.linalg.norm(v[:, :2], axis=1).max() <= 0.4 + 1e-12
    # Pushed off its path, a robot is asked to come back, not to jump there.
    aside = q0.copy()
    aside[:2] += [0.1 * 0.3, 0.1 * 0.6]
    q, _ = reference(robot, q0, goal=goal, speed=0.4)(0.0, aside, np.zeros(18))
    assert q[0, :2] == pytest.approx(aside[:2], abs=1e-12)


@pytest.mark.long
def test_legs_without_a_sideways_joint_keep_their_loops_closed():
    robot, context, q0 = standing("minitaur")
    asked = reference(robot, q0, speed=0.2, gait=Gait())
    for t in np.linspace(0, 0.5, 41)[:-1:4]:  # of the table
        robot.plant.SetPositions(context, asked.sample(np.array([t]), q0)[0][0])
        assert np.abs(robot.closure.evaluate(context)[0]).max() < 1e-6


@pytest.mark.long
@pytest.mark.parametrize("terrain", [None, Step(0.3, 0.5, 0.03)])
def test_joints_that_follow_others_do_so(tmp_path, terrain):
    """Also where a leg of two motors cannot put its foot where the clock has it, and
    where the ground rises."""
    robot, context, q0 = standing(knees_follow(tmp_path, -1.0))
    asked = reference(robot, q0, speed=0.2, gait=Gait(), terrain=terrain)
    q, _ = asked.sample(np.linspace(0, 2, 41), q0)
    assert np.ptp(q[:, 6:], axis=0).max() > 0.05
    for one in q:
        robot.plant.SetPositions(context, one)
        assert robot.closure.slips(context).max() < 1e-12


def test_heading_goes_on_from_the_robots_turn(cheetah):
    """A robot that has turned around once is not asked to turn back."""
    robot, _, q0 = cheetah
    turned = q0.copy()
    turned[3] += 2 * np.pi
    q, v = reference(robot, q0, speed=0.4, turn=0.3)(1.0, turned, np.zeros(18))
    assert q[0, 3] - turned[3] == pytest.approx(0.3)
    assert v[:, 3] == pytest.approx(0.3)


@pytest.mark.parametrize("stands_there", [False, True])
def test_the_base_goes_by_the_plane_under_its_feet(cheetah, stands_there):
    """On a slope the base rises as the ground does and is as steep, from a pose for
    flat ground and from one that stands there."""
    robot, _, q0 = cheetah
    rise, q = 0.1, q0
    ground = Slope(-np.arctan(rise))
    if stands_there:
        q = reference(robot, q0, terrain=ground).on_ground(q0)
    asked = reference(robot, q, goal=(1, 0), speed=0.3, gait=Gait(), terrain=ground)
    times = 0.01 * np.arange(60)
    found, v = asked.sample(times, q)
    x, z, pitch = (asked.axes[name] for name in ("x", "z", "pitch"))
    below = rise * (found[:, x] - q0[x])
    assert found[0, z] == pytest.approx(q0[z], abs=2e-3)
    assert np.allclose(found[:, z] - found[0, z], below)
    assert np.allclose(found[:, pitch] - q0[pitch], -np.arctan(rise), atol=2e-3)
    assert np.allclose(v[1:-1, z], rise * v[1:-1, x], atol=0.01)


def test_soles_lie_on_a_slope_under_an_upright_trunk(bent_biped):
    """Two legs side by side do not tilt the base; their ankles do the soles."""
    robot, context, q0 = bent_biped
    ground = Slope(-0.14)
    asked = reference(robot, q0, terrain=ground)
    q = asked.on_ground(q0)
    assert q[asked.axes["pitch"]] == q0[asked.axes["pitch"]]
    robot.plant.SetPositions(context, q)
    x, y, z = robot.feet_positions(context).T
    assert z == pytest.approx(ground.heights(x, y), abs=2e-3)
    assert np.ptp(z) > 0.02


def test_what_stands_on_a_slope_without_legs_or_a_free_base():
    """A base that is fixed has no path, and no joint lifts a point of the trunk."""
    held, ground = load("mini_cheetah"), Slope(0.1)
    belly = Point("belly", "body", np.array([0.0, 0.0, -0.05]))
    lying = replace(held, feet=(belly,))
    for model, base in ((held, "fixed"), (lying, "euler")):
        robot = build_robot(model, base=base, time_step=0)
        q = robot.plant.GetPositions(robot.plant.CreateDefaultContext())
        asked = reference(robot, q, terrain=ground)
        assert np.isfinite(asked(0.0, q, np.zeros_like(q))[0]).all()
        assert np.isfinite(asked.on_ground(q)).all()


@pytest.mark.parametrize("edge", [-0.03, 0.03])
def test_a_sole_rests_on_an_edge(bent_biped, edge):
    """Before its middle it lies on its heel and the edge, and behind it level on top;
    it goes into the ground nowhere."""
    robot, context, q0 = bent_biped
    height = 0.02
    robot.plant.SetPositions(context, q0)
    sole = robot.feet_positions(context)
    middle = sole[:, 0].mean()
    ground = Step(middle + edge, middle + 2.0, height)
    robot.plant.SetPositions(
        context, reference(robot, q0, terrain=ground).on_ground(q0)
    )
    there = robot.feet_positions(context)
    heel, toe = there[:, 0] < middle, there[:, 0] > middle
    steep = height / (edge + np.ptp(sole[:, 0]) / 2) if edge > 0 else 0.0
    low = 0.0 if edge > 0 else height
    assert there[heel, 2] == pytest.approx(low, abs=3e-3)
    assert there[toe, 2] == pytest.approx(low + steep * np.ptp(sole[:, 0]), abs=4e-3)


def test_feet_stand_on_both_sides_of_an_edge(cheetah):
    """With its front feet on a step the base is half as much higher and its nose up,
    and standing feet are each on their own ground."""
    robot, context, q0 = cheetah
    height = 0.04
    ground = Step(q0[0], q0[0] + 3.0, height)
    asked = reference(robot, q0 - np.r_[1.0, np.zeros(len(q0) - 1)], terrain=ground)
    wanted = asked.sample(np.zeros(1), q0)[0][0]
    assert wanted[asked.axes["z"]] - q0[asked.axes["z"]] == pytest.approx(
        height / 2, rel=0.05
    )
    assert wanted[asked.axes["pitch"]] - q0[asked.axes["pitch"]] < -0.05
    robot.plant.SetPositions(context, wanted)
    feet = robot.feet_positions(context)
    at = ground.heights(feet[:, 0], feet[:, 1])
    robot.plant.SetPositions(context, q0)
    flat = robot.feet_positions(context)[:, 2]
    assert sorted(at) == [0, 0, height, height]
    assert np.abs(feet[:, 2] - at - flat).max() < 0.004


def test_a_swinging_foot_passes_over_the_highest_that_it_may_meet(cheetah):
    """Front feet, at the edge, are lifted by its height more; hind feet are not."""
    robot, context, q0 = cheetah
    height, clock = 0.04, Gait()
    step = Step(q0[0] + 0.15, q0[0] + 3.0, height)
    asked = reference(robot, q0, speed=0.3, gait=clock, terrain=step)
    flat = reference(robot, q0, speed=0.3, gait=clock)
    times = np.linspace(0, clock.period, 41)
    most = {}
    for name, one in (("step", asked), ("flat", flat)):
        lifts = []
        for t in times:
            robot.plant.SetPositions(context, one.sample(np.array([t]), q0)[0][0])
            lifts.append(robot.feet_positions(context)[:, 2])
        most[name] = np.max(lifts, axis=0)
    front = robot.feet_positions(context)[:, 0] > q0[0]
    # The joints lift the foot to first order.
    assert (most["step"] - most["flat"])[front].min() > 0.8 * height
    assert np.abs(most["step"] - most["flat"])[~front].max() < 0.01
