"""Planning HAMR's gaits: sizes, physics of a solved plan, bad input."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput, UnknownName
from drakebots.core.run import Verdict
from drakebots.results import load_result
from drakebots.robots.hamr import VoltageTable, export_voltages
from drakebots.robots.hamr.model import hamr_benders
from drakebots.robots.hamr.plan import (
    GaitProblem,
    GaitWeights,
    JumpProblem,
    WarmStart,
    gait_program,
    jump_program,
    packed,
    plan,
    simulated_gait,
)
from drakebots.robots.hamr.plan.programs import hamr_system, swings
from drakebots.robots.hamr.plan.stored import plan_path
from drakebots.robots.hamr.plan.warm_start import executed_gait
from drakebots.robots.hamr.reference import as_reference
from drakebots.robots.hamr.track import Tracking, track
from drakebots.trajopt.program import load_checkpoint

pytestmark = pytest.mark.long

POSE = np.zeros(38)


@pytest.fixture(scope="module")
def coarse():
    """A 10 Hz trot on card, 17 knots."""
    return plan(GaitProblem(knots=17))


def test_the_programs_have_the_papers_sizes():
    assert gait_program(GaitProblem(), POSE)[1].num_variables == 5676
    assert gait_program(GaitProblem(knots=31), POSE)[1].num_variables == 3436
    assert jump_program(JumpProblem())[1].num_variables == 6796


def test_voltage_inputs_are_the_actuators_law():
    system, law = hamr_system(), hamr_benders()
    twin, unit = system.twin, system.robot.scaling
    random = np.random.default_rng(0)
    q, u = 0.1 * random.standard_normal(38), random.uniform(0, 225, 8)
    symbols = [ca.SX.sym("q", 38), ca.SX.sym("v", 38), ca.SX.sym("u", 8)]
    force = ca.Function("f", symbols, [system.inputs(twin, *symbols)])(q, 0 * q, u)
    tips = system.inputs.tips
    expected = law.force(u, q[tips] * unit.length) / unit.force
    assert np.allclose(np.array(force).ravel()[tips], expected, rtol=1e-12)


def test_rows_have_exact_jacobians():
    _, program = gait_program(GaitProblem(knots=5), POSE)
    random = np.random.default_rng(2)
    x = 0.1 * random.standard_normal(program.num_variables)
    x[program.variables["h"].indices] = 25.0
    J = program.jacobian(x)
    for i in random.choice(program.num_variables, 60, replace=False):
        step = 1e-5 * np.eye(len(x))[i]
        slope = (program.values(x + step) - program.values(x - step)) / 2e-5
        assert np.allclose(J[:, [i]].toarray().ravel(), slope, atol=1e-6)


def test_the_weight_of_rates_is_their_integral():
    """w int |rpy'|^2 dt of straight lines."""
    weights = GaitWeights(rates=7.0)
    problem = GaitProblem(knots=5, weights=weights)
    _, program = gait_program(problem, POSE)
    q, _ = np.zeros((2, 5, 38))
    q[:, 4] = [0.0, 0.01, 0.03, 0.02, 0.0]
    q[:, 5], q[:, 3] = 2 * q[:, 4], -q[:, 4]
    x = program.pack({"h": 25.0, "q": q})
    expected = 7.0 * 6.0 * (np.diff(q[:, 4]) ** 2).sum() / 25.0
    assert program.cost_table(x)["rates"] == pytest.approx(expected, rel=1e-12)
    assert "rates" not in gait_program(GaitProblem(knots=5), POSE)[1].cost_table(x)


def test_swings_are_about_each_foots_highest_knot():
    _, program = gait_program(GaitProblem(), POSE)
    q = program.view(load_checkpoint(plan_path("10hz_card"), program))["q"]
    swinging = swings(q)
    height = hamr_system().foot_positions(q[1:])[..., 2]
    assert swinging.shape == (50, 4)
    assert (swinging.sum(axis=0) == 5).all()
    assert swinging[height.argmax(axis=0), range(4)].all()
    # A cycle that starts elsewhere has the same swings there.
    later = np.vstack([q[13:], q[1:14]])
    assert (swings(later) == np.roll(swinging, -13, axis=0)).all()


def test_feet_are_raised_by_the_bounds_of_their_distance():
    gait = GaitProblem(knots=9, clearance=3e-4)
    swinging = np.zeros((8, 4), bool)
    swinging[3, 1] = True
    problem, program = gait_program(gait, POSE, swinging=swinging)
    lower = program.rows["distance"].lower
    assert (lower == np.where(swinging, 0.3, 0.0)).all()
    with pytest.raises(InvalidInput, match="heights"):
        problem.builder().raise_feet(-lower)


def test_a_plan_satisfies_its_physics(coarse):
    m = coarse.metrics
    assert coarse.ok, coarse.message
    assert m["complementarity_max"] <= 1e-6
    assert m["del_residual_max"] <= 1e-8
    assert m["momentum_defect"] <= 1e-8
    assert m["loop_gap_max"] == m["loop_gap_knots_max"] <= 1e-9
    assert 1e-9 < m["loop_gap_middles_max"] < 0.1  # mm
    assert m["penetration_max"] <= 1e-8
    assert m["stride_mm"] >= 9.5
    assert m["flexure_max_deg"] <= 45
    assert -1e-6 <= m["voltage_min"] <= m["voltage_max"] <= 225 + 1e-6


@pytest.mark.slow
def test_loops_may_close_between_knots():
    m = plan(GaitProblem(knots=17, integrator="midpoint")).metrics
    assert m["loop_gap_max"] == m["loop_gap_middles_max"] <= 1e-9
    assert 1e-9 < m["loop_gap_knots_max"] < 0.1
    assert m["stride_mm"] >= 9.5


def test_impulses_of_contact_carry_the_weight(coarse):
    """Over a period the ground's impulse is the weight's: momentum repeats."""
    data = coarse.data
    h = np.diff(data.time.values)
    impulse = (data.foot_force.values[1:].sum(axis=1) * h[:, None]).sum(axis=0)
    mass = hamr_system().robot.model.summary.mass
    weight = mass * 9.81 * h.sum()
    assert impulse[2] == pytest.approx(weight, rel=1e-6)
    assert np.abs(impulse[:2]).max() < 1e-6 * weight


def test_friction_stays_in_the_pyramid(coarse):
    force = coarse.data.foot_force.values
    tangential = np.abs(force[..., :2]).sum(axis=-1)
    assert (tangential <= coarse.metrics["friction"] * force[..., 2] + 1e-9).all()


def test_a_plan_is_stored_and_executed(coarse, tmp_path):
    path = coarse.save(tmp_path / "plan.nc")
    problem = Tracking(load_result(path), cycles=2)
    assert problem.reference.periodic and len(problem.reference.time) == 17
    run = track(problem)
    assert run.ok
    assert run.metrics["stride_mm_per_cycle"] > 0.5 * coarse.metrics["stride_mm"]


def test_a_plan_starts_another(coarse):
    weights = replace(GaitProblem().weights, slack=(500.0,))
    again = plan(GaitProblem(knots=17, weights=weights), resume=coarse)
    assert again.ok
    assert again.metrics["iterations"] < 60


@pytest.mark.slow
def test_an_executed_run_starts_another(coarse, tmp_path):
    """The guess is the run's own cycle, periodic and straight; a file does as well."""
    run = track(Tracking(coarse, cycles=3))
    guess = executed_gait(GaitProblem(knots=17, start=WarmStart(run=run)))
    drift = guess.q[-1] - guess.q[0]
    assert np.abs(drift[1:]).max() < 1e-12
    assert 1e3 * guess.stride == pytest.approx(drift[0])
    strides = run.metrics["stride_mm"]
    assert min(strides) - 0.1 < drift[0] < max(strides) + 0.1
    legs = as_reference(coarse).q[:, 6:]
    assert (
        np.abs(guess.q[:, 6:] - legs / hamr_system().robot.position_units()[6:]).max()
        < 0.15
    )
    again = plan(
        GaitProblem(knots=17, start=WarmStart(run=run.save(tmp_path / "run.nc")))
    )
    assert again.ok, again.message
    assert again.metrics["warm_start_stride_mm"] == pytest.approx(1e3 * guess.stride)
    assert again.metrics["momentum_defect"] <= 1e-8


def test_runs_that_start_no_gait(coarse):
    run = track(Tracking(coarse, cycles=1))
    for problem in (
        GaitProblem(start=WarmStart(run=coarse)),
        GaitProblem(frequency=2, start=WarmStart(run=run)),
    ):
        with pytest.raises(InvalidInput, match="give a"):
            plan(problem)


@pytest.mark.slow
def test_a_calm_plan_is_calm(coarse):
    """Bounds of tilt and clearance hold, and rates fall; the stride is kept."""
    weights = GaitWeights(rates=200.0, slack=(500.0, 5e3, 5e4))
    problem = GaitProblem(knots=17, tilt=0.03, clearance=5e-4, weights=weights)
    calm = plan(problem, resume=coarse)
    assert calm.ok, calm.message
    assert calm.metrics["stride_mm"] >= 9.5
    assert calm.metrics["clearance_min_mm"] >= 0.5 - 1e-6
    turns = calm.data.base_rpy.values
    assert np.abs(turns).max() <= 0.03 + 1e-6
    rates = [
        np.square(np.diff(p.data.base_rpy.values, axis=0)).sum() for p in (calm, coarse)
    ]
    assert rates[0] < rates[1]


def test_a_time_limit_returns_the_best_iterate():
    result = plan(GaitProblem(knots=9, time_limit=20.0))
    assert result.verdict in (Verdict.TIME_LIMIT, Verdict.SUCCESS)
    assert np.isfinite(result.data.position.values).all()


def test_an_interrupted_plan_is_kept():
    def stop(line, done, until):
        if done >= 3:
            raise KeyboardInterrupt

    result = plan(GaitProblem(), progress=stop)
    assert result.verdict is Verdict.INTERRUPTED
    assert result.data.position.shape == (51, 38)
    assert np.isfinite(result.data.position.values).all()


def test_voltages_for_a_drive(coarse, tmp_path):
    reference = as_reference(coarse)
    times, values = VoltageTable(reference, cycles=2, ramp=1.0).sampled()
    assert len(times) == round(2500 * 2 * reference.duration)
    assert values.min() >= 0 and values.max() <= 225
    assert np.allclose(values[0], 112.5)
    path = export_voltages(coarse, tmp_path / "v.csv", rate=2500.0)
    lines = path.read_text().splitlines()
    assert lines[0].startswith("time_s,FLs_V,FLl_V")
    assert len(lines) == 1 + round(2500 * reference.duration)
    with pytest.raises(InvalidInput, match="rate"):
        VoltageTable(reference, rate=10.0).sampled()
    for ramp in (np.nan, np.inf, -1.0):
        with pytest.raises(InvalidInput, match="ramp"):
            VoltageTable(reference, ramp=ramp)


def test_the_warm_start_is_periodic_and_straight():
    guess = simulated_gait(GaitProblem(knots=21))
    drift = guess.q[-1] - guess.q[0]
    assert drift[0] > 2.0
    assert np.abs(drift[1:]).max() < 1e-12
    _, program = gait_program(GaitProblem(knots=21), guess.q[-1])
    assert np.isfinite(packed(program, guess)).all()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"gait": "gallop"}, UnknownName, "trot"),
        ({"gait": "jump"}, InvalidInput, "--jump"),
        ({"surface": "ice"}, UnknownName, "card"),
        ({"surface": -1.0}, InvalidInput, "surface"),
        ({"surface": float("nan")}, InvalidInput, "surface"),
        ({"knots": 3}, InvalidInput, "knots"),
        ({"stride": 9.5}, InvalidInput, "stride"),
        ({"tilt": 0.0}, InvalidInput, "tilt"),
        ({"clearance": -1e-3}, InvalidInput, "clearance"),
        ({"start": WarmStart(phases={"front": 0.5})}, UnknownName, "FL"),
        ({"start": WarmStart(phases={"FL": np.nan})}, InvalidInput, "phase of FL"),
        ({"frequency": 0.0}, InvalidInput, "frequency"),
    ],
)
def test_bad_plans_are_refused(change, error, words):
    with pytest.raises(error, match=words):
        GaitProblem(**change)


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(FileProblem, match="no such"):
        plan(GaitProblem(knots=9), resume=tmp_path / "none.npz")


def test_only_plans_can_be_executed(coarse):
    run = track(Tracking(coarse, cycles=1))
    for use in (as_reference, Tracking, lambda run: plan(GaitProblem(), resume=run)):
        with pytest.raises(DrakebotsError, match="plan of HAMR"):
            use(run)


@pytest.fixture(scope="module")
def coarse_jump():
    """The jump on card, 31 knots: with 21 or 15 it ends in other optima."""
    return plan(JumpProblem(knots=31))


@pytest.mark.slow
def test_a_coarse_jump_leaves_the_ground(coarse_jump):
    m = coarse_jump.metrics
    assert m["apex_rise_mm"] == pytest.approx(12.0, abs=0.2)
    assert m["crouch_mm"] > 1.0
    assert m["del_residual_max"] < 1e-9
    assert m["complementarity_max"] < 1e-5
    data = coarse_jump.data
    assert data.foot_position.values[-1, :, 2].min() > 1e-3
    assert m["spring_energy_mJ"][0] == pytest.approx(0, abs=0.05)


@pytest.mark.slow
def test_a_jump_ends_in_its_apex(coarse_jump):
    """Drake's velocity of the centre of mass, half a step of free fall later."""
    robot = hamr_system().robot
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    q = coarse_jump.data.position.values[-2:] / robot.position_units()
    h = np.diff(coarse_jump.data.time.values)[-1] / robot.scaling.time
    plant.SetPositions(context, q.mean(axis=0))
    plant.SetVelocities(context, (q[1] - q[0]) / h)
    speed = plant.CalcCenterOfMassTranslationalVelocityInWorld(context)[2]
    assert speed == pytest.approx(9.81e-3 * h / 2, abs=1e-7)  # mm/ms


def test_only_plans_with_an_end_rest_there():
    problem, _ = gait_program(GaitProblem(knots=5), POSE)
    with pytest.raises(InvalidInput, match="no end"):
        replace(problem, end_rest=problem.periodic)


def test_a_jump_starts_from_a_stored_plan():
    with pytest.raises(InvalidInput, match="time limit"):
        plan(JumpProblem(time_limit=1e-6), resume=plan_path("jump"))
