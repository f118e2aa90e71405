"""Motions by a gait: footfalls, first guesses, programs, and what robots can use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import program_robots as robots
import pytest

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.run import Verdict
from drakebots.trajopt.contact_implicit.schedule import Schedule, independent_rows
from drakebots.trajopt.locomotion.footfall import REACH, choose_gait, legs_of
from drakebots.trajopt.locomotion.gait import gait_program, plan_gait
from drakebots.trajopt.locomotion.kinematic_guess import kinematic_guess
from drakebots.trajopt.locomotion.plan import first_iterate, plan_locomotion
from drakebots.trajopt.locomotion.problem import LocomotionProblem
from drakebots.trajopt.locomotion.standing import stand
from drakebots.trajopt.locomotion.usable import faults


@pytest.fixture(scope="module")
def quadruped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quadruped")
    return robots.written(folder, "quadruped", robots.quadruped_urdf())


@pytest.fixture(scope="module")
def standing(quadruped):
    return stand(quadruped)


def trot(model, gait="alternating", **more) -> LocomotionProblem:
    return LocomotionProblem(model, forward=0.1, knots=17, gait=gait, **more)


def test_trot_lifts_diagonals(quadruped, standing):
    """Two feet carry at any time; a swing lands before it loads."""
    fall = plan_gait(trot(quadruped), standing).fall
    loaded, grounded = fall.schedule.loaded, fall.schedule.grounded
    assert (loaded.sum(axis=1) == 2).all()
    names = [foot.name for foot in quadruped.feet]
    fl, rr = names.index("fl_shank"), names.index("rr_shank")
    assert (loaded[:, fl] == loaded[:, rr]).all()
    landed = grounded & ~loaded
    assert (landed.sum(axis=0) == 1).all()


def test_legs_of_two_motors_crawl(quadruped, standing):
    """A robot that cannot step sideways falls over in a trot, and not in a crawl."""
    assert standing.system.nu == 2 * len(legs_of(standing))
    assert choose_gait(LocomotionProblem(quadruped), standing) == "crawl"
    fewer = LocomotionProblem(quadruped, phases={"fl_shank": 0.0})
    assert choose_gait(fewer, standing) == "alternating"


def test_crawl_stands_on_three(quadruped, standing):
    """One foot swings at a time, hind before fore on each side."""
    gait = plan_gait(trot(quadruped, gait="crawl", contacts="gait"), standing)
    loaded = gait.schedule.loaded
    assert (loaded.sum(axis=1) >= 3).all()
    names = [foot.name for foot in quadruped.feet]
    lift = {name: gait.fall.swings[names.index(name)][0][0] for name in names}
    assert lift["rl_shank"] < lift["fl_shank"]
    assert lift["rr_shank"] < lift["fr_shank"]


def test_long_strides_are_several_cycles(quadruped, standing):
    """No step is longer than the legs reach."""
    far = LocomotionProblem(quadruped, forward=1.0, knots=17)
    gait = plan_gait(far, standing)
    assert gait.cycles * gait.aim.forward * standing.scaling.length == pytest.approx(1)
    assert gait.aim.forward <= REACH
    goal = plan_gait(replace(far, kind="goal"), standing)
    assert goal.rounds == gait.cycles
    assert goal.problem.knots == goal.rounds * 16 + 1


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
    assert sorted(map(len, legs_of(flat))) == [1, 1, 1, 3]
    loaded = plan_gait(trot(model), flat).schedule.loaded
    assert (loaded[:, :3] == loaded[:, :1]).all()


def test_guess_puts_feet_where_they_go(quadruped, standing):
    """Feet that stand stay in place on the ground, swinging feet clear it."""
    gait = plan_gait(trot(quadruped), standing)
    guess = kinematic_guess(gait, standing)
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


def test_first_guess_is_near(quadruped, standing):
    """So that a solve takes a few iterations."""
    gait = plan_gait(trot(quadruped), standing)
    _, program = gait_program(gait, standing)
    x = program.pack(kinematic_guess(gait, standing))
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
    result = plan_locomotion(LocomotionProblem(quadruped, forward=0.3, knots=13))
    assert result.ok, result.message
    assert result.metrics["cycles"] == 2
    assert result.metrics["moved"]["x"] == pytest.approx(0.3)
    assert result.metrics["del_residual_max"] < 1e-8
    q = result.data.position.values
    assert q[12, 1:] == pytest.approx(q[0, 1:], abs=1e-7)
    # What was asked for beyond the mechanics.
    assert min(result.metrics["duty_factor"].values()) > 0.4
    assert min(result.metrics["foot_clearance_m"].values()) > 0.02
    rpy = result.data.base_rpy.values
    assert np.abs(rpy).max() <= 0.2 + 1e-7


@pytest.mark.long
@pytest.mark.usefixtures("interpreted")
def test_a_shuffle_is_no_success(quadruped):
    """With free contacts this robot turns on feet that hardly leave the ground."""
    problem = LocomotionProblem(quadruped, "turn", turn=0.2, knots=17, contacts="free")
    result = plan_locomotion(problem)
    assert result.verdict is Verdict.FAILED
    assert "solved, but legs" in result.message


def motion(standing, **parts):
    """Parts of a plan that stands still for ten intervals."""
    q = np.repeat(standing.q[None], 11, axis=0)
    gam = np.full((10, standing.system.num_feet), 0.25)
    return {"q": q, "gam": gam, "h": np.full((10, 1), 0.3), **parts}


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
    parts, slip = motion(standing), 0.0
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
        slip = 0.2
    found = "; ".join(faults(trot(quadruped), standing, parts, slip))
    assert words in found


def test_standing_still_is_no_fault(quadruped, standing):
    """A motion of no distance needs no steps."""
    problem = LocomotionProblem(quadruped, "goal")
    assert not list(faults(problem, standing, motion(standing), 0.0))


def test_independent_rows():
    """The rank's rows, in their order."""
    a, b = np.array([1.0, 0, 1]), np.array([0.0, 2, 0])
    rows = np.vstack([a, b, a + b, np.zeros(3), [0, 0, 1.0]])
    assert independent_rows(rows).tolist() == [True, True, False, False, True]


def test_schedules_are_checked():
    """A loaded foot is on the ground."""
    up, down = np.zeros((2, 1), bool), np.ones((2, 1), bool)
    with pytest.raises(InvalidInput, match="on the ground"):
        Schedule(down, up, np.zeros((2, 1)), np.zeros((2, 1)))
    with pytest.raises(InvalidInput, match="shapes"):
        Schedule(down, down, np.zeros((3, 1)), np.zeros((2, 1)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gait": "gallop"}, "crawl"),
        ({"contacts": "maybe"}, "free"),
        ({"clearance": 0.0}, "clearance"),
        ({"sideways": 0.2}, "sideways"),
    ],
)
def test_refused_options(options, words):
    """One line that names the item and the remedy, at once."""
    with pytest.raises((InvalidInput, UnknownName), match=words):
        LocomotionProblem("any", **options)
