"""Motions in a row as one plan, and way points on their ways."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import yaml

from drakebots.core.convert import as_yaml, build
from drakebots.core.errors import FileProblem, InvalidInput, UnknownName
from drakebots.core.run import Verdict
from drakebots.formats import load
from drakebots.multibody import base_body, build_robot
from drakebots.robots import read_scenario
from drakebots.trajopt.locomotion import (
    Footfall,
    Goal,
    Hop,
    LocomotionProblem,
    Series,
    Walk,
    WayPoint,
    base_axes,
    gait_program,
    kinematic_guess,
    plan_gait,
    plan_locomotion,
    stand,
)
from drakebots.trajopt.locomotion.attempts import faults
from tests.helpers.plan_checks import check_plan
from tests.helpers.scripts import load_script

robots = load_script("program_robots")

pytestmark = pytest.mark.usefixtures("interpreted")

PAIRS = {"FL": [(0.0, 0.4), (0.8, 1.2)], "RR": [(0.0, 0.4), (0.8, 1.2)]}


@pytest.fixture(scope="module")
def cheetah():
    return load("mini_cheetah")


@pytest.fixture(scope="module")
def standing(cheetah):
    return stand(cheetah)


@pytest.fixture(scope="module")
def course(cheetah):
    """Walk, turn, walk on and stop, and its plan."""
    motion = Series([Walk(0.2), Goal(turn=0.5), Walk(0.1)])
    problem = LocomotionProblem(cheetah, motion)
    return problem, plan_locomotion(problem)


@pytest.fixture(scope="module")
def past(cheetah):
    """Past a way point to stand, and then a step of one foot over a stone."""
    aside = WayPoint("base", (0.2, 0.1, None), share=0.5, heading=0.2)
    high = WayPoint("FL", (None, None, 0.1), share=0.37)
    motion = Series([Goal(0.4, waypoints=[aside]), Goal(turn=0.3, waypoints=[high])])
    problem = LocomotionProblem(cheetah, motion)
    return problem, plan_locomotion(problem)


def planned(problem, standing):
    return plan_gait(problem, standing, problem.gaits(standing)[0])


# --- one plan ------------------------------------------------------------------


@pytest.mark.slow
def test_momentum_goes_through(cheetah, course):
    """Forces and gravity change the momentum at every knot, where two motions meet
    too; a plan that is glued there would stop."""
    problem, plan = course
    check_plan(cheetah, problem, plan)
    meet = plan.metrics["motions"][0]["until_s"]
    k = int(np.flatnonzero(np.isclose(plan.data.time.values, meet))[0])
    speed = np.diff(plan.data.base_position.values[k - 1 : k + 2, 0])
    assert (speed > 1e-3).all()
    assert np.abs(plan.data.velocity.values[[0, -1]]).max() < 1e-6


@pytest.mark.slow
def test_every_motion_gets_where_it_goes(course):
    """Distances are along the heading that was reached."""
    _, plan = course
    walk, turn, on = (found["moved"] for found in plan.metrics["motions"])
    assert walk["x"] == pytest.approx(0.2) and walk["yaw"] == pytest.approx(0, abs=1e-8)
    assert turn["yaw"] == pytest.approx(0.5)
    assert np.hypot(turn["x"], turn["y"]) < 1e-8
    assert (on["x"], on["y"]) == pytest.approx((0.1 * np.cos(0.5), 0.1 * np.sin(0.5)))
    assert plan.data.base_rpy.values[-1, 2] == pytest.approx(0.5)


@pytest.mark.slow
def test_it_stands_between_motions_from_rest_to_rest(cheetah, past):
    problem, plan = past
    check_plan(cheetah, problem, plan)
    meet = plan.metrics["motions"][0]["until_s"]
    k = int(np.flatnonzero(np.isclose(plan.data.time.values, meet))[0])
    q = plan.data.position.values
    assert np.abs(q[k] - q[k - 1]).max() < 1e-8


@pytest.mark.slow
def test_way_points_are_passed(past):
    """The base within a millimetre of its place and heading, the foot of its height."""
    _, plan = past
    time, first = plan.data.time.values, plan.metrics["motions"][0]
    meet = int(np.flatnonzero(np.isclose(time, first["until_s"]))[0])
    k = round(0.5 * meet)
    assert plan.data.base_position.values[k, :2] == pytest.approx(
        (0.2, 0.1), abs=1.1e-3
    )
    assert plan.data.base_rpy.values[k, 2] == pytest.approx(0.2, abs=1.1e-3)
    k = meet + round(0.37 * (len(time) - 1 - meet))
    foot = plan.data.foot_position.sel(foot="FL").values[k]
    assert foot[2] == pytest.approx(0.1, abs=1.1e-3)


@pytest.mark.long
def test_times_count_from_the_start_of_a_motion(cheetah):
    """Of open duration, in a row; the knot at the way point is the nearest one."""
    high = WayPoint("FL", (None, None, 0.1), time=0.75)
    motion = Series([Walk(0.1), Goal(turn=0.2, waypoints=[high])])
    plan = plan_locomotion(LocomotionProblem(cheetah, motion))
    assert plan.ok
    after = plan.data.time.values - plan.metrics["motions"][0]["until_s"]
    z = plan.data.foot_position.sel(foot="FL", axis="z").values
    k = np.argmin(np.abs(z - 0.1) + 9 * (after < 0))
    assert z[k] == pytest.approx(0.1, abs=1.1e-3)
    step = np.diff(after)[-1]
    assert abs(after[k] - 0.75) <= step / 2 + 1e-8


@pytest.mark.parametrize("time", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("duration", [None, 50.0])
def test_a_motion_lasts_as_long_as_its_way_points_ask(
    cheetah, standing, time, duration
):
    """Whatever duration is found, the knot is the inner one nearest to the time."""
    turned = WayPoint("base", (None, None, None), time=time, heading=0.02)
    motion = Series([Goal(0.1, waypoints=[turned]), Walk(0.1)])
    gait = planned(LocomotionProblem(cheetah, motion, duration=duration), standing)
    program, (at, _) = gait_program(gait)[1], gait.aim.parts[0]
    q, h = program.variables["q"], program.variables["h"]
    row = program.rows["way_point_1_base"].start
    (term,) = (t for t in program.terms if (t.rows == row).any())
    (knot,), _ = np.nonzero(q.indices == term.columns[0][0])
    for bound in (h.lower, h.upper):
        steps = bound[at, 0] * standing.scaling.time
        off = np.abs(np.cumsum(steps)[:-1] - time)
        assert off[knot - 1] == pytest.approx(off.min(), abs=1e-9)


@pytest.mark.slow
def test_a_way_point_out_of_reach_is_named(cheetah):
    """No leg is so long; the failed plan says which row."""
    high = WayPoint("base", (None, None, 0.6), share=0.5)
    problem = LocomotionProblem(cheetah, Goal(0.2, waypoints=[high]), contacts="gait")
    plan = plan_locomotion(problem)
    assert plan.verdict is Verdict.FAILED
    assert "way_point_1_base.z" in plan.message
    assert next(iter(plan.residuals)) == "way_point_1_base.z"


@pytest.mark.long
@pytest.mark.parametrize("motion", [Goal(0.1, turn=0.2), Walk(0.2), Hop(0.1)])
def test_a_series_of_one_is_that_motion(cheetah, standing, motion):
    """The same program, bounds and first guess, to the last bit."""
    found = []
    for asked in (motion, Series([motion]), Series([Series([motion])])):
        gait = planned(LocomotionProblem(cheetah, asked), standing)
        program = gait_program(gait)[1]
        x = program.pack(kinematic_guess(gait))
        found.append((x, program.values(x), program.x_lower, program.x_upper))
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_array_equal(a, b)
    assert Series([motion]).repeats == motion.repeats


def test_steps_are_equal_within_a_motion(cheetah, standing):
    """A hop is faster than a crawl; a given duration is shared out, also to the last
    time step."""
    motion = Series([Walk(0.1), Hop(0.1), Footfall(contacts=PAIRS, duration=1.2)])
    gait = planned(LocomotionProblem(cheetah, motion), standing)
    h = kinematic_guess(gait)["h"][:, 0] * standing.scaling.time
    for at, _ in gait.aim.parts:
        assert np.ptp(h[at]) < 1e-12
    assert h[-20:].sum() == pytest.approx(1.2)
    assert h[0] > 1.5 * h[20]
    whole = LocomotionProblem(cheetah, Series([Walk(0.1), Goal(0.1)]), duration=3.0)
    program = gait_program(planned(whole, standing))[1].variables["h"]
    assert program.lower.sum() * standing.scaling.time == pytest.approx(3.0)
    assert program.upper.sum() * standing.scaling.time == pytest.approx(3.0)


def test_steady_motion_costs_no_change_of_velocity(cheetah, standing):
    """Also where the time step changes."""
    problem = LocomotionProblem(cheetah, Series([Walk(0.1), Hop(0.1)]))
    gait = planned(problem, standing)
    _, program = gait_program(gait)
    parts = kinematic_guess(gait)
    time = np.append(0, np.cumsum(parts["h"]))[:, None]
    rng = np.random.default_rng(0)
    parts["q"] = standing.q + time * rng.normal(size=standing.system.nq)
    assert program.cost_table(program.pack(parts))["smooth"] < 1e-20
    parts["q"][20:] += 0.01
    assert program.cost_table(program.pack(parts))["smooth"] > 1e-6


@pytest.mark.long
def test_the_first_guess_goes_on_where_a_motion_ended(cheetah, standing):
    """Around two corners; no foot slides while it stands."""
    motion = Series([Goal(0.3), Goal(turn=np.pi / 2), Walk(0.2), Goal(turn=1.0)])
    gait = planned(LocomotionProblem(cheetah, motion), standing)
    q, unit = kinematic_guess(gait)["q"], standing.scaling.length
    moved = standing.moved(q)
    assert (moved["x"] * unit, moved["y"] * unit) == pytest.approx((0.3, 0.2))
    assert moved["yaw"] == pytest.approx(np.pi / 2 + 1.0)
    loaded = gait.schedule.loaded
    points = standing.system.foot_positions(q)
    both = loaded[1:] & loaded[:-1]
    slid = np.linalg.norm(np.diff(points[1:], axis=0), axis=2)[both]
    assert slid.max() < 0.02 < np.linalg.norm(np.diff(points, axis=0), axis=2).max()


def test_guesses_go_past_way_points(cheetah, standing):
    """Steps are counted along the way, and the base is where it should be."""
    straight = LocomotionProblem(cheetah, Goal(0.2))
    aside = WayPoint("base", (0.1, 0.4, None), share=0.5)
    far = replace(straight, motion=Goal(0.2, waypoints=[aside]))
    assert planned(far, standing).rounds > planned(straight, standing).rounds
    gait = planned(far, standing)
    found = gait.aim.course(np.array([0.0, 0.5, 1.0])) * standing.scaling.length
    assert found[:, :2] == pytest.approx(np.array([[0, 0], [0.1, 0.4], [0.2, 0]]))


def test_faults_say_in_which_motion(cheetah, standing):
    motion = Series([Walk(0.1), Goal(turn=0.2)])
    aim = planned(LocomotionProblem(cheetah, motion), standing).aim
    K = aim.intervals
    q = np.repeat(standing.q[None], K + 1, axis=0)
    q[-5:, standing.index("roll")] += 0.5
    gam = np.full((K, 4), 0.25)
    parts = {"q": q, "gam": gam, "psi": 0 * gam, "h": np.full((K, 1), 0.3)}
    found = list(faults(aim, parts))
    assert [fault for fault in found if "tilts" in fault] == [
        "in motion 2 (goal) its base tilts by 0.5 rad in roll"
    ]


# --- files -----------------------------------------------------------------------


def test_in_files(tmp_path):
    """Results and scenarios keep every motion by its name, with its way points."""
    point = WayPoint("base", (0.1, None, None), share=0.5, heading=0.1)
    motion = Series([Walk(0.2, gait="crawl"), Goal(turn=0.5, waypoints=[point]), Hop()])
    said = yaml.safe_load(yaml.safe_dump(as_yaml(LocomotionProblem("any", motion))))
    assert list(map(list, said["motion"]["Series"]["motions"])) == [
        ["Walk"],
        ["Goal"],
        ["Hop"],
    ]
    assert build(LocomotionProblem, said).motion.row == motion.row
    path = tmp_path / "run.yaml"
    path.write_text(
        "plan: mini_cheetah\nmotion: {Series: {motions: [{Walk: {forward: 0.2}}, "
        "{Goal: {turn: 0.5, waypoints: [{what: FL, p_W: [null, null, 0.1], "
        "share: 0.5}]}}]}}\n"
    )
    read = read_scenario(path).problem.motion
    high = WayPoint("FL", (None, None, 0.1), share=0.5)
    assert read.row == Series([Walk(0.2), Goal(turn=0.5, waypoints=[high])]).row


@pytest.mark.long
def test_a_checkpoint_of_another_program(cheetah, tmp_path):
    """Named as such; there are no free contacts to try it with."""
    file, motion = tmp_path / "run.ckpt", Series([Goal(0.1), Goal(0.1)])
    tried = {"max_iter": 2}
    plan_locomotion(LocomotionProblem(cheetah, Hop()), checkpoint=file, options=tried)
    with pytest.raises(FileProblem, match=r"run\.ckpt"):
        plan_locomotion(LocomotionProblem(cheetah, motion), resume=file)


# --- bad input -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Series([]), "1 or more motions"),
        (lambda: Series([Walk(0.2), "hop"]), "motions"),
        (lambda: Series([Walk(0.2), Hop(periodic=True)]), "hop in a row.*periodic"),
        (lambda: Series([Walk(phases={}), Goal(0.1)]), "walk in a row.*phases"),
        (partial(WayPoint, "FL", (0.1, 0.2), share=0.5), "x, y and z"),
        (partial(WayPoint, "FL", (None, None, None), share=0.5), "x, y and z"),
        (partial(WayPoint, "FL", (0.1, np.nan, 0), share=0.5), "finite"),
        (partial(WayPoint, "FL", (0.1, 0.2, 0.3)), "FL: give its share"),
        (partial(WayPoint, "FL", (0.1, 0, 0), share=0.5, time=1.0), "give its share"),
        (partial(WayPoint, "FL", (0.1, 0, 0), share=1.5), "share"),
        (partial(WayPoint, "FL", (0, 0, 0), share=0.5, heading=1.0), "only the base"),
        (partial(WayPoint, "FL", (0, 0, 0), share=0.5, tolerance=0), "tolerance"),
        (
            lambda: LocomotionProblem("any", Series([Walk(), Goal()]), contacts="free"),
            "a series has contacts of its own; leave",
        ),
        (
            lambda: LocomotionProblem(
                "any",
                Series([Goal(), Footfall(contacts=PAIRS, duration=1.2)]),
                duration=2.0,
            ),
            "of its own, 1.2 s; leave",
        ),
    ],
)
def test_refused_at_once(make, words):
    with pytest.raises(InvalidInput, match=words) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("point", "more", "words"),
    [
        (("paw", (0.1, 0, None), {"share": 0.5}), {}, "paw.*FL.*base"),
        (
            ("base", (0.1, 0, None), {"time": 1.5}),
            {"duration": 1.0},
            "1.5 s is not within a goal of 0.[0-9]* s; times count",
        ),
        (("FL", (None, None, 0.2), {"time": 0.01}), {}, "in the air after seconds 0.6"),
        (
            ("base", (0.1, 1, None), {"share": 0.5}),
            {"duration": 0.5},
            "faster than its",
        ),
        (
            ("FL", (None, None, 0.2), {"share": 0.9}),
            {},
            "in the air after shares 0.[0-9]",
        ),
        (("FL", (None, None, -0.1), {"share": 0.9}), {}, "FL: -0.1"),
    ],
)
def test_way_points_refused_before_solving(cheetah, point, more, words):
    what, p_W, when = point
    motion = Series([Walk(0.1), Goal(0.2, waypoints=[WayPoint(what, p_W, **when)])])
    with pytest.raises((InvalidInput, UnknownName), match=words) as error:
        LocomotionProblem(cheetah, motion, **more).mathematical_program()
    assert "\n" not in str(error.value)


def test_the_base_must_have_the_axis(tmp_path):
    """A robot in a plane does not turn."""
    hopper = robots.written(tmp_path, "hopper", robots.hopper_urdf())
    turned = WayPoint("base", (0.0, None, None), share=0.5, heading=0.1)
    problem = LocomotionProblem(hopper, Hop(waypoints=[turned]))
    with pytest.raises(InvalidInput, match="no base coordinate for yaw"):
        problem.mathematical_program()


@pytest.mark.filterwarnings("ignore:.*fixed to the world")
def test_a_base_may_stand_beside_links_of_the_world(tmp_path):
    """A root that the file calls floating, as a footprint of HyQReal's, and a door."""
    text = robots.quadruped_urdf()
    trunk = re.search(r'<link name="(\w+)"', text)[1]
    more = f"""
  <link name="base_link"/>
  <joint name="floating_base" type="floating">
    <parent link="base_link"/> <child link="{trunk}"/>
  </joint>
  <link name="door"> <inertial> <mass value="0.1"/> <inertia ixx="1e-3" iyy="1e-3"
    izz="1e-3" ixy="0" ixz="0" iyz="0"/> </inertial> </link>
  <joint name="hinge" type="revolute"> <axis xyz="0 0 1"/> <limit effort="0"
    velocity="1" lower="-1" upper="1"/> <parent link="world"/> <child link="door"/>
  </joint>
</robot>"""
    model = robots.written(tmp_path, "dog", text.replace("</robot>", more))
    robot = build_robot(model, base="euler")
    assert list(base_axes(robot)) == ["x", "y", "z", "yaw", "pitch", "roll"]
    assert base_body(robot.plant).name() == trunk


def test_legs_without_motors_are_refused_at_once(tmp_path):
    """As a quadruped whose file gives motors to its arm only."""
    text = robots.quadruped_urdf()
    legs = re.sub(r"<transmission.*?</transmission>", "", text, flags=re.DOTALL)
    arm = """<link name="arm"> <inertial> <mass value="0.1"/> <inertia ixx="1e-3"
      iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/> </inertial> </link>
      <joint name="shoulder" type="revolute"> <axis xyz="0 1 0"/> <limit effort="1"
      velocity="1" lower="-1" upper="1"/> <parent link="{}"/> <child link="arm"/>
      </joint></robot>"""
    trunk = re.search(r'<link name="(\w+)"', text)[1]
    legs = legs.replace("</robot>", arm.format(trunk))
    dog = robots.written(tmp_path, "dog", legs, actuate=["shoulder"], effort=1.0)
    with pytest.raises(
        InvalidInput, match=r"no joint of its legs has a motor .*--actuate all"
    ):
        stand(dog)


@pytest.mark.long
def test_a_base_that_its_file_rolls_walks(tmp_path):
    """As that of dm_control's humanoids, whose y points up."""
    leg = """<body name="{n}_thigh" pos="{x} 0 {z}" quat="0.70710678 -0.70710678 0 0">
      <joint name="{n}_roll" axis="1 0 0" range="-0.6 0.6"/> <joint name="{n}_hip"
      axis="0 1 0" range="-1 2"/> <geom type="capsule" fromto="0 0 0 0 0 -0.2"
      size="0.02"/> <body name="{n}_shank" pos="0 0 -0.2"> <joint name="{n}_knee"
      axis="0 1 0" range="-2.4 -0.2"/> <geom type="capsule" fromto="0 0 0 0 0 -0.2"
      size="0.01"/> <geom name="{n}_foot" type="sphere" pos="0 0 -0.2" size="0.02"/>
      </body></body>"""
    legs = [
        leg.format(n=f"{a}{b}", x=x, z=-y)
        for a, x in (("f", 0.18), ("r", -0.18))
        for b, y in (("l", 0.12), ("r", -0.12))
    ]
    motors = [
        f'<motor joint="{a}{b}_{joint}" ctrlrange="-30 30"/>'
        for a in "fr"
        for b in "lr"
        for joint in ("roll", "hip", "knee")
    ]
    path = tmp_path / "rolled.xml"
    path.write_text(
        f"""<mujoco model="rolled"><compiler angle="radian"/><worldbody> <body
        name="trunk" pos="0 0 0.4" quat="0.70710678 0.70710678 0 0"><freejoint/> <geom
        type="box" size="0.18 0.05 0.09"/>{"".join(legs)}</body></worldbody>
        <actuator>{"".join(motors)}</actuator></mujoco>"""
    )
    plan = plan_locomotion(LocomotionProblem(load(path), Walk(forward=0.1)))
    assert plan.ok, plan.message
    assert plan.metrics["moved"]["x"] == pytest.approx(0.1, abs=1e-6)
