"""Plans for a user's own model: found from standing, judged by Drake."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.run import Verdict
from drakebots.multibody import Slope
from drakebots.results import Result, load_result
from drakebots.trajopt.locomotion import (
    Goal,
    Hop,
    LocomotionProblem,
    LocomotionWeights,
    Walk,
    locomotion_program,
    plan_locomotion,
    stand,
    targets,
)
from tests.helpers.plan_checks import check_plan
from tests.helpers.scripts import load_script

robots = load_script("program_robots")

TROT = Walk(forward=0.16, gait="alternating")
WALK = partial(LocomotionProblem, motion=TROT, knots=17, friction=0.7)
TURN = partial(LocomotionProblem, motion=Goal(turn=0.2), knots=17)
HOP = partial(LocomotionProblem, motion=Hop(height=0.08), knots=17)


pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(scope="module")
def hopper(tmp_path_factory):
    return robots.written(
        tmp_path_factory.mktemp("hopper"), "hopper", robots.hopper_urdf()
    )


@pytest.fixture(scope="module")
def quadruped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quadruped")
    return robots.written(folder, "quadruped", robots.quadruped_urdf())


@pytest.fixture(scope="module")
def said() -> list[str]:
    """What the progress of the hop's plan says."""
    return []


@pytest.fixture(scope="module")
def hop(hopper, said) -> Result:
    return plan_locomotion(HOP(hopper), progress=lambda what, *_: said.append(what))


@pytest.fixture(scope="module")
def trot(quadruped) -> Result:
    return plan_locomotion(WALK(quadruped))


@pytest.fixture(scope="module")
def turn(quadruped) -> Result:
    return plan_locomotion(TURN(quadruped))


def test_hop(hopper, hop):
    """The foot leaves the ground and the robot stands again."""
    check_plan(hopper, HOP(hopper), hop)
    assert hop.metrics["apex_m"] >= 0.08 - 1e-7
    v = hop.data.velocity.values
    assert np.abs(v[-1]).max() < 1e-6
    force = hop.data.foot_force.values[1:, 0, 2]
    assert force[len(force) // 2 - 1] < 1e-5
    assert hop.data.base_position.values[-1, 0] == pytest.approx(0, abs=1e-9)


def test_progress_names_the_attempt(hop, said):
    tried = "gait" if hop.metrics["contacts"] == "gait" else "free contacts"
    assert said[0] == f"building {tried}"
    assert len(said) > 2
    assert all(line.startswith(f"{tried}, iteration ") for line in said[1:])


def test_trot(quadruped, trot):
    """Diagonal feet swing together; the momentum repeats too."""
    check_plan(quadruped, WALK(quadruped), trot)
    assert trot.metrics["moved"]["x"] == pytest.approx(0.16)
    assert trot.metrics["momentum_defect"] < 1e-8
    q = trot.data.position.values
    assert np.abs(q[-1, 1:] - q[0, 1:]).max() < 1e-7
    loaded = trot.data.foot_force.values[1:, :, 2] > 1.0
    fl, fr, rl, rr = (
        loaded[:, trot.data.foot.values.tolist().index(f"{n}_shank")]
        for n in ("fl", "fr", "rl", "rr")
    )
    assert (fl == rr).mean() > 0.8
    assert (fr == rl).mean() > 0.8
    assert (fl != fr).mean() > 0.8
    assert np.abs(trot.data.input.values).max() <= 20.0 + 1e-6
    # No shuffling: loaded feet stay where they are.
    assert trot.metrics["slip_m"] < 1e-4


@pytest.mark.long
def test_turn(quadruped, turn):
    """From standing to standing, where it was, turned."""
    check_plan(quadruped, TURN(quadruped), turn)
    rpy = turn.data.base_rpy.values
    assert rpy[-1, 2] - rpy[0, 2] == pytest.approx(0.2, abs=1e-7)
    assert np.abs(turn.data.velocity.values[[0, -1]]).max() < 1e-6
    assert np.abs(turn.data.base_position.values[-1, :2]).max() < 1e-9


def test_hopper_walks(hopper):
    """A cycle of a planar robot with its own joints to the world."""
    plan = LocomotionProblem(hopper, Walk(0.15), knots=15, duration=0.4)
    result = plan_locomotion(plan)
    check_plan(hopper, plan, result)
    assert result.data.time.values[-1] == pytest.approx(0.4)


def test_euler_integrator(hopper):
    """The first-order rule plans too."""
    plan = LocomotionProblem(hopper, Hop(0.05), knots=15, integrator="euler")
    result = plan_locomotion(plan)
    assert result.ok, result.message
    assert result.metrics["del_residual_max"] < 1e-8


def test_a_clearance_lifts_feet_of_free_walks(quadruped):
    """A program without one has no such rows."""
    standing = stand(quadruped)

    def lifted(walk: Walk) -> list:
        problem = LocomotionProblem(quadruped, walk, contacts="free")
        rows = locomotion_program(targets(problem, standing))[1].rows
        return [group for name, group in rows.items() if name.startswith("lift_")]

    groups, unit = lifted(Walk(0.16, clearance=0.03)), standing.scaling.length
    assert len(groups) == len(quadruped.feet)
    assert all(group.lower == pytest.approx(0.03 / unit) for group in groups)
    assert not lifted(Walk(0.16))


@pytest.mark.slow
def test_swing_height(quadruped):
    """Feet rise to the requested height, halfway through their swings."""
    plan = LocomotionProblem(quadruped, Walk(0.16, clearance=0.03), knots=17)
    result = plan_locomotion(plan)
    check_plan(quadruped, plan, result)
    assert min(result.metrics["foot_clearance_m"].values()) >= 0.03 - 1e-7


@pytest.mark.slow
def test_slope(quadruped):
    """A trot downhill; the cycle ends lower than it began."""
    plan = LocomotionProblem(quadruped, Walk(0.16), knots=17, terrain=Slope(0.15))
    result = plan_locomotion(plan)
    check_plan(quadruped, plan, result)
    assert result.metrics["moved"]["z"] == pytest.approx(-0.16 * np.tan(0.15))


@pytest.mark.slow
@pytest.mark.parametrize("motion", [Hop(), Goal(0.3)], ids=["hop", "goal"])
def test_quadruped(quadruped, motion):
    """Up and down, and a step ahead, from standing to standing."""
    problem = LocomotionProblem(quadruped, motion, knots=17)
    check_plan(quadruped, problem, plan_locomotion(problem))


@pytest.mark.long
def test_unreachable_goal_names_rows(hopper):
    """2 m from standing to standing in 0.3 s: failed, with what stands against."""
    plan = LocomotionProblem(hopper, Goal(2.0), duration=0.3, knots=9)
    result = plan_locomotion(plan, options={"max_iter": 150})
    assert result.verdict is Verdict.FAILED
    name, value = next(iter(result.residuals.items()))
    assert value > 1e-3
    assert name in result.message
    assert any(row in result.message for row in ("start", "dynamics", "rest", "speed"))


@pytest.mark.long
def test_weak_motors_fail(hopper):
    """What cannot carry itself cannot hop, and says so."""
    plan = LocomotionProblem(hopper, Hop(), torque=0.3, knots=9, duration=0.6)
    result = plan_locomotion(plan, options={"max_iter": 150})
    assert result.verdict is Verdict.FAILED
    assert "worst" in result.message or "soft" in result.message


def test_resume(hopper, tmp_path):
    """A plan cut short keeps its iterate; the next run starts from it."""
    file = tmp_path / "plan.npz"
    problem = replace(HOP(hopper), contacts="gait")
    cut = plan_locomotion(problem, checkpoint=file, options={"max_iter": 3})
    assert cut.verdict is Verdict.FAILED
    assert file.is_file()
    again = plan_locomotion(problem, resume=file)
    assert again.ok, again.message


def test_no_time_left(hopper):
    """The time limit counts what comes before the solver, too."""
    with pytest.raises(InvalidInput, match="over before the solver began"):
        plan_locomotion(HOP(hopper), time_limit=1e-3)


def test_result_is_stored(hop, tmp_path):
    """Like every result, in SI."""
    hop.save(tmp_path / "hop.nc")
    assert load_result(tmp_path / "hop.nc").metrics["apex_m"] == hop.metrics["apex_m"]
    assert hop.data.input.attrs["units"].startswith("N m")
    assert np.abs(hop.data.input.values).max() <= 12.0 + 1e-6
    assert hop.kind == "locomotion.plan"


@pytest.mark.long
def test_natural_units(hopper, quadruped):
    """Weight, gravity and size are one; the lowest foot touches."""
    for model in (hopper, quadruped):
        standing = stand(model)
        plant = standing.system.robot.plant
        context = plant.CreateDefaultContext()
        assert plant.CalcTotalMass(context) == pytest.approx(1)
        assert plant.gravity_field().gravity_vector()[2] == pytest.approx(-1)
        plant.SetPositions(context, standing.q)
        com = plant.CalcCenterOfMassPositionInWorld(context)[2]
        assert com == pytest.approx(1)
    assert set(stand(hopper).base) == {"x", "z", "pitch"}
    assert len(stand(quadruped).base) == 6
    assert list(stand(quadruped).joints) == list(range(6, 14))


def test_footfalls(quadruped):
    """Every other foot around the robot: diagonals of four feet."""
    phases = TROT.lift_phases(stand(quadruped))
    assert phases["fl_shank"] == phases["rr_shank"] != phases["fr_shank"]
    assert phases["fr_shank"] == phases["rl_shank"]
    assert Walk(phases={}).lift_phases(stand(quadruped)) == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"friction": -0.1}, "friction"),
        ({"friction": float("nan")}, "friction"),
        ({"duration": 0.0}, "duration"),
        ({"duration": float("inf")}, "duration"),
        ({"knots": 4}, "knots"),
        ({"knots": 7.5}, "knots"),
        ({"torque": -1.0}, "torque"),
        ({"integrator": "rk4"}, "midpoint"),
    ],
)
def test_refused_plans(options, words):
    """One line that names the item and the remedy, at once."""
    with pytest.raises((InvalidInput, UnknownName)) as error:
        LocomotionProblem("any", **options)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("motion", "options"),
    [
        (Walk, {"forward": float("nan")}),
        (Walk, {"forward": "far"}),
        (Hop, {"height": -1.0}),
        (Goal, {"turn": float("inf")}),
    ],
)
def test_refused_motions(motion, options):
    """They name the motion and the field."""
    (name,) = options
    with pytest.raises(InvalidInput, match=f"{motion.__name__.lower()}: {name}"):
        motion(**options)


@pytest.mark.parametrize("weights", [{"effort": -1}, {"slack": ()}, {"slack": (0.0,)}])
def test_refused_weights(weights):
    """Weights are finite and not negative."""
    with pytest.raises(InvalidInput, match="weight"):
        LocomotionWeights(**weights)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"pose": {"leg_hop": 0.1}}, UnknownName, "leg_hip"),
        ({"pose": {"leg_hip": np.nan}}, InvalidInput, "leg_hip"),
        ({"motion": Hop(), "pose": {"leg_hip": 1.1}}, InvalidInput, "leg_hip"),
        ({"pose": {"leg_hip": 3.0}}, InvalidInput, "above its feet"),
        ({"torque": {"leg": 1.0}}, UnknownName, "leg_knee"),
        ({"motion": Walk(phases={"leg": 0.0})}, UnknownName, "leg_shank"),
        ({"motion": Goal(turn=0.2)}, InvalidInput, "yaw"),
    ],
)
def test_refused_for_the_model(hopper, options, error, words):
    """What does not fit the model, before any long work."""
    with pytest.raises(error, match=words):
        plan_locomotion(LocomotionProblem(hopper, **options))


def test_refused_models(hopper, quadruped, tmp_path):
    """No feet, feet that are none, no actuators, a solver that is none."""
    bare = replace(quadruped, feet=())
    with pytest.raises(InvalidInput, match="--feet"):
        plan_locomotion(WALK(bare))
    text = robots.quadruped_urdf()
    with pytest.raises(UnknownName, match="fl_shank"):
        robots.written(tmp_path, "feet", text, feet=["fl_shnak"])
    passive = replace(quadruped, summary=replace(quadruped.summary, actuators=()))
    with pytest.raises(InvalidInput, match="no motors"):
        plan_locomotion(WALK(passive))
    with pytest.raises(UnknownName, match="exact"):
        plan_locomotion(HOP(hopper), solver="knitro")
    with pytest.raises(InvalidInput, match="time limit"):
        plan_locomotion(HOP(hopper), time_limit=-1)


def test_open_loop_is_named(tmp_path):
    """A loop that does not close where the robot stands."""
    (tmp_path / "quadruped.drakebots.yaml").write_text(
        "loops:\n  strut: {A: fl_shank, p_A: [0, 0, 0], B: fr_shank, "
        "p_B: [0, 0, 0], rows: ball}\n"
    )
    model = robots.written(tmp_path, "quadruped", robots.quadruped_urdf())
    with pytest.raises(InvalidInput, match="strut"):
        plan_locomotion(WALK(model))


@pytest.mark.parametrize("size", [0.05, 3.0])
def test_size_does_not_matter(size, tmp_path):
    """A robot of another length and mass is the same program."""
    problem = partial(LocomotionProblem, motion=Hop(), knots=9)
    first, second = (
        locomotion_program(targets(problem(model), stand(model, pose={})))[1]
        for model in (
            robots.written(tmp_path, f"hopper{i}", robots.hopper_urdf(size=s))
            for i, s in enumerate((1.0, size))
        )
    )
    x = np.random.default_rng(0).uniform(0.1, 0.5, first.num_variables)
    assert first.num_variables == second.num_variables
    assert second.values(x) == pytest.approx(first.values(x), abs=1e-9)
    assert second.variables["u"].upper == pytest.approx(first.variables["u"].upper)
