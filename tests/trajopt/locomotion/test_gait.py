"""Motions by a gait: footfalls, first guesses, programs, and what robots can use."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from drakebots.core.convert import as_yaml, build
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.run import Verdict
from drakebots.formats import load
from drakebots.multibody import Plateau
from drakebots.trajopt.contact_implicit import Schedule
from drakebots.trajopt.locomotion import (
    Footfall,
    Goal,
    Hop,
    LocomotionProblem,
    LocomotionWeights,
    Walk,
    first_iterate,
    gait_program,
    kinematic_guess,
    plan_gait,
    plan_locomotion,
    stand,
    targets,
)
from drakebots.trajopt.locomotion.attempts import faults
from drakebots.trajopt.locomotion.gait import REACH
from tests.helpers.scripts import load_script
from tests.helpers.standing_robots import biped

robots = load_script("program_robots")


@pytest.fixture(scope="module")
def quadruped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quadruped")
    return robots.written(folder, "quadruped", robots.quadruped_urdf())


@pytest.fixture(scope="module")
def standing(quadruped):
    return stand(quadruped)


def trot(model, gait="alternating", **more) -> LocomotionProblem:
    return LocomotionProblem(model, Walk(forward=0.1, gait=gait), knots=17, **more)


def test_trot_lifts_diagonals(quadruped, standing):
    """Two feet carry at any time; a swing lands before it loads."""
    schedule = plan_gait(trot(quadruped), standing, "alternating").schedule
    loaded, grounded = schedule.loaded, schedule.grounded
    assert (loaded.sum(axis=1) == 2).all()
    names = [foot.name for foot in quadruped.feet]
    fl, rr = names.index("fl_shank"), names.index("rr_shank")
    assert (loaded[:, fl] == loaded[:, rr]).all()
    landed = grounded & ~loaded
    assert (landed.sum(axis=0) == 1).all()


def test_legs_of_two_motors_crawl(quadruped, standing):
    """A robot that cannot step sideways falls over in a trot, and not in a crawl."""
    assert standing.system.nu == 2 * len(standing.legs)
    assert Walk().gaits(standing) == ("crawl", "alternating")
    assert Walk(phases={"fl_shank": 0.0}).gaits(standing) == ("alternating",)


def test_crawl_stands_on_three(quadruped, standing):
    """One foot swings at a time, hind before fore on each side."""
    gait = plan_gait(trot(quadruped, contacts="gait"), standing, "crawl")
    loaded = gait.schedule.loaded
    assert (loaded.sum(axis=1) >= 3).all()
    names = [foot.name for foot in quadruped.feet]
    lift = {name: gait.swings[names.index(name)][0][0] for name in names}
    assert lift["rl_shank"] < lift["fl_shank"]
    assert lift["rr_shank"] < lift["fr_shank"]


def test_long_strides_are_several_cycles(quadruped, standing):
    """No step is longer than the legs reach."""
    far = LocomotionProblem(quadruped, Walk(1.0), knots=17)
    gait = plan_gait(far, standing, "alternating")
    assert gait.cycles * gait.aim.forward * standing.scaling.length == pytest.approx(1)
    assert gait.aim.forward <= REACH
    goal = plan_gait(replace(far, motion=Goal(1.0)), standing, "alternating")
    assert goal.rounds == gait.cycles
    assert goal.aim.problem.knots == goal.rounds * 16 + 1


def test_feet_of_one_body_are_one_leg(quadruped):
    """The corners of a flat foot lift together."""
    foot = quadruped.feet[0]
    corners = [
        replace(foot, name=f"corner{i}", p_BF=foot.p_BF + i * np.array([0.02, 0.01, 0]))
        for i in range(3)
    ]
    model = replace(quadruped, feet=(*corners, *quadruped.feet[1:]))
    flat = stand(model, pose={})
    assert flat.source.startswith("given")
    assert sorted(map(len, flat.legs)) == [1, 1, 1, 3]
    loaded = plan_gait(trot(model), flat, "alternating").schedule.loaded
    assert (loaded[:, :3] == loaded[:, :1]).all()


def test_guess_puts_feet_where_they_go(quadruped, standing):
    """Feet that stand stay in place on the ground, swinging feet clear it."""
    gait = plan_gait(trot(quadruped), standing, "alternating")
    guess = kinematic_guess(gait)
    points = standing.system.foot_positions(guess["q"])
    radii = np.array([f.radius for f in quadruped.feet]) / standing.scaling.length
    gap = points[1:, :, 2] - radii
    schedule = gait.schedule
    assert np.abs(gap[schedule.grounded]).max() < 1e-3
    assert (gap >= 0.9 * schedule.height)[~schedule.grounded].all()
    both = schedule.loaded[1:] & schedule.loaded[:-1]
    assert np.abs(np.diff(points[1:, :, :2], axis=0)[both]).max() < 1e-3
    # The forces carry the weight.
    assert guess["gam"].sum(axis=1) == pytest.approx(1.0)


def test_guess_of_a_hop_lands_where_it_goes(quadruped):
    """It stands on the floor until it leaves it, and then on the box."""
    box = Plateau(0.5, 3.0, 0.08)
    motion = Hop(0.15, forward=1.2)
    standing = stand(quadruped, terrain=box)
    problem = LocomotionProblem(quadruped, motion, terrain=box)
    gait = plan_gait(problem, standing, "")
    q, unit = kinematic_guess(gait)["q"], standing.scaling.length
    gap = standing.clearances(standing.system.foot_positions(q) * unit)
    on = gait.schedule.grounded
    assert np.abs(gap[1:][on]).max() < 1e-6 < gap[1:][~on].min()
    assert standing.moved(q)["x"] * unit == pytest.approx(1.2)
    assert standing.moved(q)["z"] * unit == pytest.approx(0.08)


def test_first_guess_is_near(quadruped, standing):
    """So that a solve takes a few iterations."""
    gait = plan_gait(trot(quadruped), standing, "alternating")
    _, program = gait_program(gait)
    x = program.pack(kinematic_guess(gait))
    assert max(program.residuals(x).values()) < 0.3


def test_first_iterate_is_a_result(quadruped):
    """It can be drawn; nothing claims that it is a plan."""
    guess = first_iterate(trot(quadruped))
    assert guess.verdict is Verdict.INTERRUPTED
    assert guess.data.sizes["time"] == 17


@pytest.mark.long
@pytest.mark.usefixtures("interpreted")
def test_stride_of_several_cycles(quadruped):
    """The plan repeats its cycle and obeys the equations of the whole motion."""
    result = plan_locomotion(LocomotionProblem(quadruped, Walk(0.3), knots=13))
    assert result.ok, result.message
    assert result.metrics["cycles"] == 2
    assert result.metrics["moved"]["x"] == pytest.approx(0.3)
    # On some processors IPOPT ends at its acceptable level, 1e-7 of scaled rows.
    assert result.metrics["del_residual_max"] < 1e-7
    q = result.data.position.values
    assert q[12, 1:] == pytest.approx(q[0, 1:], abs=1e-6)
    # What was asked for beyond the mechanics.
    assert min(result.metrics["duty_factor"].values()) > 0.4
    assert min(result.metrics["foot_clearance_m"].values()) > 0.02
    rpy = result.data.base_rpy.values
    assert np.abs(rpy).max() <= 0.2 + 1e-7


@pytest.mark.long
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("motion", [Goal(turn=0.2), Walk(0.16)], ids=["turn", "walk"])
def test_a_shuffle_is_no_success_and_is_asked_to_lift(quadruped, motion):
    """With free contacts and no more asked this robot's feet hardly leave the ground.
    The planner says so of one program, and asks for lifts in another."""
    weights = LocomotionWeights(slack=(100.0,))
    problem = LocomotionProblem(
        quadruped, motion, knots=17, contacts="free", weights=weights
    )
    program = problem.mathematical_program()
    once = program.plan(program.solve())
    assert once.verdict is Verdict.FAILED and "solved, but legs" in once.message
    result = plan_locomotion(problem)
    assert result.ok, result.message
    lowest = min(result.metrics["foot_clearance_m"].values())
    assert lowest > 0.02 * result.metrics["unit_length_m"]
    first, *_, last = result.metrics["stages"]
    assert first["status"] == "Solve_Succeeded"
    assert last["objective"] > once.metrics["objective"]


PAIRS = {
    "fl_shank": [(0.0, 0.3), (0.6, 1.6)],
    "rr_shank": [(0.0, 0.3), (0.6, 1.6)],
    "fr_shank": [(0.0, 0.9), (1.2, 1.6)],
    "rl_shank": [(0.0, 0.9), (1.2, 1.6)],
}
"""Two pairs of feet that step one after the other [s]."""


def test_footfall_of_ones_own(quadruped, standing):
    """Every foot is loaded at the times that were given, to half a time step."""
    motion = Footfall(contacts=PAIRS, duration=1.6, forward=0.08)
    gait = plan_gait(LocomotionProblem(quadruped, motion, knots=33), standing, "")
    ends = np.linspace(0, 1.6, 33)
    for foot, spans in PAIRS.items():
        middles = (ends[:-1] + ends[1:]) / 2
        stands = np.any([(a < middles) & (middles < b) for a, b in spans], axis=0)
        loaded = gait.schedule.loaded[:, standing.feet.index(foot)]
        assert (loaded == stands).all()
    assert gait.aim.duration == pytest.approx((1.6 / standing.scaling.time,) * 2)
    assert not motion.flies(standing)


def test_cycles_of_ones_own_wrap(quadruped, standing):
    """A foot that is in the air at both ends of a cycle swings once, across them."""
    motion = Footfall(contacts={"fl_shank": [(0.2, 0.7)]}, duration=1.0, periodic=True)
    gait = plan_gait(LocomotionProblem(quadruped, motion), standing, "")
    foot = standing.feet.index("fl_shank")
    assert gait.swings[foot] == ((14, 23),)
    loaded = gait.schedule.loaded[:, foot]
    assert loaded[4:14].all() and loaded.sum() == 10
    assert gait.schedule.loaded[:, [i for i in range(4) if i != foot]].all()
    assert motion.standing_feet(standing) == [i for i in range(4) if i != foot]


def test_flight_is_when_no_foot_stands(standing):
    """Feet overlap, or leave the ground together."""
    for start, flies in ((0.55, True), (0.45, False)):
        fore = {foot: [(0.0, 0.5)] for foot in ("fl_shank", "fr_shank")}
        hind = {foot: [(start, 1.0)] for foot in ("rl_shank", "rr_shank")}
        motion = Footfall(contacts=fore | hind, duration=1.0, periodic=True)
        assert motion.flies(standing) is flies


def test_footfalls_in_files():
    """A result keeps the motion, and a scenario can say it."""
    motion = Footfall(contacts=PAIRS, duration=1.6, forward=0.08)
    said = as_yaml(LocomotionProblem("any", motion))
    assert said["motion"]["Footfall"]["contacts"]["fl_shank"][1] == [0.6, 1.6]
    assert build(LocomotionProblem, said).motion == motion


@pytest.mark.long
@pytest.mark.usefixtures("interpreted")
def test_plan_by_a_footfall(quadruped):
    """The forces obey the times, the robot ends where it should, at rest."""
    motion = Footfall(contacts=PAIRS, duration=1.6, forward=0.08)
    result = plan_locomotion(LocomotionProblem(quadruped, motion, knots=33))
    assert result.ok, result.message
    assert result.metrics["contacts"] == "gait"
    assert result.metrics["moved"]["x"] == pytest.approx(0.08)
    assert result.metrics["del_residual_max"] < 1e-8
    time = result.data.time.values
    assert time[-1] == pytest.approx(1.6)
    for foot, ((_, lift), (land, _)) in PAIRS.items():
        force = result.data.foot_force.sel(foot=foot, axis="z").values
        air = (time > lift + 0.06) & (time < land - 0.06)
        assert np.abs(force[air]).max() < 1e-9
        assert force[(time > 0.05) & (time < lift - 0.06)].min() > 0
    assert np.abs(result.data.velocity.values[-1]).max() < 1e-6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"contacts": {"fl": [(0.5, 0.2)]}}, "increasing"),
        ({"contacts": {"fl": []}}, "contacts of fl"),
        ({"contacts": {"fl": 3}}, "contacts of fl"),
        ({"contacts": {"fl": [(0.0, 1.5)]}}, "within 0..1 s"),
        ({"contacts": {"fl": [(0.1, 1.0)]}}, "must stand at 0 and 1 s"),
        ({"contacts": {"fl": [(0.0, np.nan)]}}, "finite"),
        ({"periodic": True, "turn": 0.1}, "goes forward only"),
        ({"duration": -1.0}, "duration"),
    ],
)
def test_refused_footfalls(options, words):
    with pytest.raises(InvalidInput, match=words) as error:
        Footfall(**{"contacts": {}, "duration": 1.0} | options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("contacts", "words"),
    [
        ({"paw": [(0.0, 0.4), (0.6, 1.0)]}, "fl_shank"),
        ({"fl_shank": [(0.0, 0.01), (0.5, 1.0)]}, "stand for a time step"),
        ({"fl_shank": [(0.0, 0.5), (0.56, 1.0)]}, "too few for the swings of fl"),
    ],
)
def test_footfalls_that_do_not_fit(quadruped, standing, contacts, words):
    motion = Footfall(contacts=contacts, duration=1.0)
    problem = LocomotionProblem(quadruped, motion)
    with pytest.raises((InvalidInput, UnknownName), match=words):
        plan_gait(problem, standing, "")


@pytest.mark.parametrize("more", [{"contacts": "free"}, {"duration": 2.0}])
def test_contacts_of_a_footfall_are_kept(more):
    motion = Footfall(contacts={}, duration=1.0)
    with pytest.raises(InvalidInput, match="of its own, 1 s; leave"):
        LocomotionProblem("any", motion, **more)


def motion(standing, **parts):
    """Parts of a plan that stands still for ten intervals."""
    q = np.repeat(standing.q[None], 11, axis=0)
    gam = np.full((10, standing.system.num_feet), 0.25)
    still = {"q": q, "gam": gam, "psi": 0 * gam, "h": np.full((10, 1), 0.3)}
    return still | parts


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("idle", "carries no load"),
        ("low", "rise less than"),
        ("tilt", "tilts by"),
        ("sink", "sinks by"),
        ("fast", "faster than its legs"),
        ("fly", "in the air"),
        ("slip", "slide by"),
    ],
)
def test_useless_motions_are_named(quadruped, standing, change, words):
    """Each in its own words."""
    parts = motion(standing)
    x = standing.index("x")
    parts["q"][:, x] += np.linspace(0, 0.5, 11)
    if change == "idle":
        parts["gam"][:, 1] = 0.0
    elif change == "tilt":
        parts["q"][5, standing.index("roll")] += 0.5
    elif change == "sink":
        parts["q"][5, standing.index("z")] -= 0.5
    elif change == "fast":
        parts["h"] = np.full((10, 1), 0.01)
    elif change == "fly":
        parts["gam"][3:7] = 0.0
    elif change == "slip":
        parts["psi"][:, 0] = 0.2 / (10 * 0.3 * 0.25)
    found = "; ".join(faults(targets(trot(quadruped), standing), parts))
    assert words in found


def test_standing_still_is_no_fault(quadruped, standing):
    """A motion of no distance needs no steps."""
    aim = targets(LocomotionProblem(quadruped, Goal()), standing)
    assert not list(faults(aim, motion(standing)))


@pytest.mark.long
def test_rows_of_flat_feet_are_independent(tmp_path):
    """The toe of a foot that points ahead moves along with its heel: what is left to
    hold is its motion sideways, however small the share of it in a turned foot."""
    ends = [(f"{s}_ankle_roll_link", (x, 0, -0.05)) for s in "LR" for x in (-0.05, 0.1)]
    model = load(
        biped(tmp_path, rolls=True),
        feet=[f"{link}:{','.join(map(str, p))}" for link, p in ends],
    )
    problem = LocomotionProblem(model, Walk(forward=0.1), knots=11)
    gait = plan_gait(problem, stand(model), "alternating")
    _, program = gait_program(gait)
    x = program.pack(kinematic_guess(gait))
    fixed = program.x_upper == program.x_lower
    equations = program.upper == program.lower
    J = program.jacobian(x).toarray() * program.x_scale / program.row_scale[:, None]
    sizes = np.linalg.svd(J[equations][:, ~fixed], compute_uv=False)
    assert sizes[-1] > 1e-3 * np.median(sizes)


def test_rows_that_depend_on_a_level_robot_have_play(quadruped, standing):
    """Of the sideways slip of four feet that swing fore and aft the third row depends
    on two only where the robot is level, the fourth on three always."""
    _, program = gait_program(plan_gait(trot(quadruped), standing, "crawl"))
    feet = [program.rows[f"slip_{foot}"] for foot in standing.feet]
    play = np.concatenate([(rows.upper - rows.lower).ravel() / 2 for rows in feet])
    assert set(np.round(play, 9)) == {0.0, 1e-6, 1e-3}


def test_a_robot_that_is_turned_walks_where_it_is_turned(quadruped, standing):
    """A base with a rotation in its file: yaw is bound about its start."""
    q, yaw = standing.q.copy(), standing.index("yaw")
    q[yaw] = np.pi
    _, program = gait_program(
        plan_gait(trot(quadruped), replace(standing, q=q), "crawl")
    )
    bounds = program.variables["q"]
    assert (bounds.lower[:, yaw] > np.pi - 1).all()
    assert (bounds.upper[:, yaw] < np.pi + 1).all()


def test_schedules_are_checked():
    """A loaded foot is on the ground."""
    up, down = np.zeros((2, 1), bool), np.ones((2, 1), bool)
    with pytest.raises(InvalidInput, match="on the ground"):
        Schedule(down, up, np.zeros((2, 1)), np.zeros((2, 1)))
    with pytest.raises(InvalidInput, match="shapes"):
        Schedule(down, down, np.zeros((3, 1)), np.zeros((2, 1)))


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (Walk, {"gait": "gallop"}, "crawl"),
        (Walk, {"clearance": 0.0}, "clearance"),
        (partial(LocomotionProblem, "any"), {"contacts": "maybe"}, "free"),
        (partial(LocomotionProblem, "any"), {"motion": "walk"}, "motion"),
    ],
)
def test_refused_options(make, options, words):
    """One line that names the item and the remedy, at once."""
    with pytest.raises((InvalidInput, UnknownName), match=words):
        make(**options)
