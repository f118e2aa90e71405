"""Solves against peers, and the controller in time."""

import re
import warnings
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from pydrake.systems.analysis import Simulator
from scipy.linalg import solve_discrete_are

from drakebots import InvalidInput, build_robot
from drakebots.control import (
    ContactImplicitMpc,
    MpcCost,
    MpcProblem,
    MpcSolver,
    standing,
)
from drakebots.control.stage import Stage
from drakebots.control.system import RESTART
from tests.helpers.scripts import load_script

hopper_urdf, written = load_script("program_robots", "hopper_urdf", "written")

SLIDERS = """<robot name="sliders"><link name="world"/>
<link name="a"><inertial><mass value="2"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="b"><inertial><mass value="0.5"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="x" type="prismatic"><parent link="world"/><child link="a"/>
<axis xyz="1 0 0"/><dynamics damping="0.3"/></joint>
<joint name="y" type="prismatic"><parent link="a"/><child link="b"/>
<axis xyz="1 0 0"/><dynamics damping="0.1"/></joint>
<transmission name="t"><type>SimpleTransmission</type><joint name="x"/>
<actuator name="m"/></transmission>
<transmission name="s"><type>SimpleTransmission</type><joint name="y"/>
<actuator name="n"/></transmission></robot>"""

CROUCHED = np.array([0.0, 0.366, 0.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def hopper(tmp_path_factory):
    return written(tmp_path_factory.mktemp("mpc"), "hopper", hopper_urdf())


def _problem(hopper, **options):
    cost = options.pop("cost", MpcCost(position=20.0, velocity=0.2, effort=1e-3))
    return MpcProblem(build_robot(hopper), cost, **{"knots": 10, **options})


@pytest.fixture(scope="module")
def solver(hopper):
    return MpcSolver(_problem(hopper))


def _converged(solver, q, v, reference, steps=30):
    return solver.solve(q, v, reference, iterations=steps)


def test_gains_of_two_sliders_are_the_discrete_riccati_equations(tmp_path):
    """M a + D v = B u without contact: implicit Euler in closed form."""
    model = written(tmp_path, "sliders", SLIDERS)
    h, P, V, R = 0.05, np.array([3.0, 1.0]), np.array([0.4, 0.2]), [0.1, 0.2]
    cost = MpcCost(P, V, R, limits=0.0)
    problem = MpcProblem(build_robot(model), cost, feet=(), knots=400, step=h)
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=2), rng.normal(size=2)

    def origin(t, q, v):
        return np.zeros(2), np.zeros(2)

    plan = MpcSolver(problem).solve(q, v, origin)
    M = np.array([[2.5, 0.5], [0.5, 0.5]])
    D = np.diag([0.3, 0.1])
    inverse = np.linalg.inv(M + h * D)
    top, low = h * inverse @ M, inverse @ M
    A = np.block([[np.eye(2), top], [np.zeros((2, 2)), low]])
    b = np.vstack([h * h * inverse, h * inverse])
    Q, R = h * np.diag([*P, *V]), h * np.diag(R)
    S = solve_discrete_are(A, b, Q, R)
    K = np.linalg.solve(R + b.T @ S @ b, b.T @ S @ A)
    np.testing.assert_allclose(plan.gains[0], K, rtol=1e-7)
    x = np.r_[q, v]
    np.testing.assert_allclose(plan.tau[0], -K @ x, rtol=1e-7)
    np.testing.assert_allclose(np.r_[plan.q[1], plan.v[1]], (A - b @ K) @ x, rtol=1e-7)


def test_optimum_equals_ipopts(hopper):
    """IPOPT on phi n = barrier with bounds phi, n >= 0, which is how it is meant."""
    problem = _problem(
        hopper, knots=8, cost=MpcCost(20.0, 0.2, 1e-2, limits=0.0), barrier=0.02
    )
    solver, stage = MpcSolver(problem), Stage(problem)
    N, h, n = problem.knots, problem.step, stage.sizes
    q0 = CROUCHED + np.array([0, 0.01, 0.05, 0.1, -0.1])
    v0 = np.array([0.2, -0.1, 0.0, 0.3, 0.0])
    goal = CROUCHED + np.array([0.1, 0.02, 0, 0, 0])

    def reference(t, q, v):
        return goal, np.array([0.2, 0, 0, 0, 0])

    plan = _converged(solver, q0, v0, reference)
    rows = ca.Function(
        "rows", list(stage.symbols.values()), list(stage.rows.values())[:3]
    )
    qs, us, fs = (
        [ca.SX.sym(f"{s}{k}", n[size]) for k in range(N)]
        for s, size in (("q", "nq"), ("u", "nu"), ("f", "nc"))
    )
    fs = [ca.SX.sym(f"f{k}", 3) for k in range(N)]
    P, V, R, T, W = problem.cost.arrays(n["nv"], n["nu"])
    B = np.array(problem.robot.plant.MakeActuationMatrix())
    cost, g, lower, upper, before, was = 0.0, [], [], [], ca.SX(q0), ca.SX(v0)
    for k in range(N):
        v = (qs[k] - before) / h
        dynamics, gap, slide = rows(qs[k], v, (v - was) / h, fs[k], ca.SX(0, 1))
        speed = ca.sqrt(ca.sumsqr(slide) + problem.slip**2)
        drag = fs[k][:2] * speed + problem.friction * fs[k][2] * slide
        g += [dynamics - B @ us[k], drag, gap * fs[k][2], gap, fs[k][2]]
        lower += [0.0] * (n["nv"] + 2) + [solver.barrier, 0.0, 0.0]
        upper += [0.0] * (n["nv"] + 2) + [solver.barrier, np.inf, np.inf]
        p, s = (h * P, h * V) if k < N - 1 else (T, W)
        e, d = qs[k] - goal, v - np.array([0.2, 0, 0, 0, 0])
        cost += 0.5 * (ca.dot(p, e * e) + ca.dot(s, d * d) + h * ca.dot(R, us[k] ** 2))
        before, was = qs[k], v
    nlp = {"x": ca.vertcat(*qs, *us, *fs), "f": cost, "g": ca.vertcat(*g)}
    quiet = {"ipopt.print_level": 0, "print_time": False, "ipopt.tol": 1e-10}
    rng = np.random.default_rng(1)
    start = np.concatenate([plan.q[1:].ravel(), plan.tau.ravel(), plan.forces.ravel()])
    start *= 1 + 0.1 * rng.normal(size=len(start))
    answer = ca.nlpsol("peer", "ipopt", nlp, quiet)(x0=start, lbg=lower, ubg=upper)
    assert plan.ok and max(plan.residuals.values()) < 1e-7
    assert plan.cost == pytest.approx(float(answer["f"]), rel=1e-6)
    x = np.array(answer["x"]).ravel()
    np.testing.assert_allclose(plan.q[1:].ravel(), x[: 5 * N], atol=1e-6)
    np.testing.assert_allclose(plan.tau.ravel(), x[5 * N : 7 * N], atol=1e-4)


def test_standing_still_bears_the_weight(solver):
    def reference(t, q, v):
        return CROUCHED, np.zeros(5)

    plan = _converged(solver, CROUCHED, np.zeros(5), reference)
    weight = 9.81 * solver.problem.robot.plant.CalcTotalMass(
        solver.problem.robot.plant.CreateDefaultContext()
    )
    middle = plan.forces[3, 0]
    assert middle[2] == pytest.approx(weight, rel=0.05)
    assert np.linalg.norm(middle[:2]) <= solver.problem.friction * middle[2]
    gap = solver.barrier / middle[2]
    assert 0 < gap < 1e-3
    assert np.abs(plan.tau).max() < 12.0


def test_a_shifted_plan_is_where_the_plan_before_was(solver):
    """One iteration from the plan before is near the optimum, and ten are there."""

    def reference(t, q, v):
        return CROUCHED + np.array([0.05, 0, 0, 0, 0]), np.zeros(5)

    first = _converged(solver, CROUCHED, np.zeros(5), reference)
    h = solver.problem.step
    next_ = solver.solve(first.q[1], first.v[1], reference, time=h, warm=first)
    best = _converged(solver, first.q[1], first.v[1], reference)
    more = solver.solve(
        first.q[1], first.v[1], reference, time=h, warm=first, iterations=10
    )
    assert next_.ok
    assert next_.cost == pytest.approx(best.cost, rel=0.02)
    assert more.cost == pytest.approx(best.cost, rel=1e-5)
    u = solver.command(first, 2 * h, first.q[2], first.v[2])
    np.testing.assert_allclose(u, first.tau[2], atol=1e-9)


def _weak(tmp_path, effort):
    """A hopper whose knee has an effort limit, asked to stand as it is."""
    weak = written(tmp_path, "weak", hopper_urdf(effort=effort))
    solver = MpcSolver(_problem(weak, cost=MpcCost(200.0, 1.0, 1e-6)))

    def upright(t, q, v):
        return CROUCHED, np.zeros(5)

    return solver, _converged(solver, CROUCHED, np.zeros(5), upright)


def test_efforts_stay_within_their_limits(tmp_path):
    """A knee that is a little weaker than the optimum asks (2.71 N m) does all it can,
    and has no feedback where it does."""
    solver, plan = _weak(tmp_path, 2.6)
    low, high = solver.effort_limits()
    np.testing.assert_array_equal(high, 2.6)
    assert plan.ok and max(plan.residuals.values()) < 1e-9
    knee = plan.tau[:, 1]
    assert (knee <= 2.6).all() and 0 < (knee == 2.6).sum() < len(knee)
    np.testing.assert_array_equal(plan.gains[:, 1].any(axis=1), knee < 2.6)
    for sign in (1.0, -1.0):
        u = solver.command(plan, 0.0, CROUCHED + sign, np.full(5, 50.0 * sign))
        assert (u >= low).all() and (u <= high).all()


@pytest.mark.parametrize("effort", [2.8, 3.0, 4.0, 20.0])
def test_limits_beyond_the_optimum_leave_it_as_it_is(tmp_path, effort):
    """On the way there efforts meet the limits, and iterates could run away."""
    _, plan = _weak(tmp_path, effort)
    assert plan.ok and max(plan.residuals.values()) < 1e-9
    assert plan.cost == pytest.approx(3.02767, rel=1e-5)
    assert np.abs(plan.tau).max() == pytest.approx(2.71448, rel=1e-5)


# --- in time -------------------------------------------------------------------


def _alone(hopper, **options):
    """The controller with a state that the test sets."""
    controller = ContactImplicitMpc(_problem(hopper, **options))
    simulator = Simulator(controller)
    context = simulator.get_mutable_context()
    port = controller.get_input_port()
    port.FixValue(context, np.r_[CROUCHED, np.zeros(5)])
    return controller, simulator, context, port


def test_an_answer_takes_effect_after_its_delay(hopper):
    controller, simulator, context, _ = _alone(hopper, period=0.02, delay=0.015)
    found = []
    for at in (0.001, 0.021, 0.034, 0.036, 0.041, 0.054, 0.056):
        simulator.AdvanceTo(at)
        found.append(controller.plan(context).time)
    np.testing.assert_allclose(found, [0, 0, 0, 0.02, 0.02, 0.02, 0.04])
    assert controller.log.late == 0 and controller.log.failures == 0


def test_a_slow_computer_passes_over_periods(hopper):
    controller, simulator, context, _ = _alone(hopper, period=0.02, delay=0.05)
    simulator.AdvanceTo(0.13)
    # Solves begin at 0, 0.02 and, when that one has taken effect at 0.07, at 0.08.
    np.testing.assert_allclose(controller.log.times, [0, 0.02, 0.08])
    assert controller.log.late == 4
    measured = ContactImplicitMpc(_problem(hopper, period=0.5, slowness=3.0))
    simulator = Simulator(measured)
    context = simulator.get_mutable_context()
    measured.get_input_port().FixValue(context, np.r_[CROUCHED, np.zeros(5)])
    simulator.AdvanceTo(0.5 + 1e-9)
    took = 3 * measured.log.seconds[1]
    simulator.AdvanceTo(0.5 + 0.9 * took)
    assert measured.plan(context).time == 0
    simulator.AdvanceTo(0.5 + 1.1 * took)
    assert measured.plan(context).time == 0.5


@pytest.mark.parametrize("value", [np.nan, 1e54])
def test_a_state_that_is_none_holds_the_last_plan(hopper, value):
    controller, simulator, context, port = _alone(hopper, period=0.02, delay=0.0)
    simulator.AdvanceTo(0.05)
    plan = controller.plan(context)
    broken = np.r_[CROUCHED, np.zeros(5)]
    broken[3] = value
    port.FixValue(context, broken)
    u = controller.get_output_port().Eval(context)
    np.testing.assert_array_equal(u, plan.tau[0])
    simulator.AdvanceTo(0.09)
    assert controller.plan(context).time == plan.time
    assert controller.log.bad_states == 2
    port.FixValue(context, np.r_[CROUCHED, np.zeros(5)])
    simulator.AdvanceTo(0.11)
    assert controller.plan(context).time == pytest.approx(0.1)


def test_a_failed_solve_is_counted_and_not_used(hopper):
    controller, simulator, context, _ = _alone(hopper, period=0.02, delay=0.0)
    simulator.AdvanceTo(0.01)
    before, solve = controller.plan(context), controller.solver.solve
    controller.solver.solve = lambda *a, **k: replace(solve(*a, **k), ok=False)
    simulator.AdvanceTo(0.05)
    assert controller.plan(context) is before
    assert controller.log.failures == 2


def test_a_first_plan_that_failed_is_counted_and_used_if_it_is_finite(hopper):
    controller, simulator, context, _ = _alone(hopper, period=0.02, delay=0.0)
    solve = controller.solver.solve

    def broken(*given, **named):
        plan = replace(solve(*given, **named), ok=False)
        return replace(plan, gains=np.nan * plan.gains) if plan.time == 0 else plan

    controller.solver.solve = broken
    simulator.AdvanceTo(0.01)
    assert controller.plan(context) is None
    np.testing.assert_array_equal(controller.get_output_port().Eval(context), 0)
    simulator.AdvanceTo(0.05)
    assert controller.plan(context).time == 0.02  # the last one failed and has another
    assert controller.log.failures == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"knots": 1}, "mpc: knots must be a whole number >= 2"),
        ({"step": 0.0}, "mpc: step must be > 0 s"),
        ({"delay": "soon"}, "delay must be"),
        ({"cost": MpcCost(effort=0.0)}, "cost: effort must be > 0"),
        ({"cost": MpcCost(position=np.ones(4))}, "cost: position must be 5 finite"),
        ({"cost": MpcCost(velocity=-1.0)}, "cost: velocity must be >= 0"),
    ],
)
def test_bad_problems(hopper, change, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        _problem(hopper, **change)


def test_robots_that_cannot_be_controlled(tmp_path, hopper):
    text = SLIDERS[: SLIDERS.index("<transmission")] + "</robot>"
    still = build_robot(written(tmp_path, "still", text))
    with pytest.raises(InvalidInput, match="still has no actuators"):
        MpcProblem(still)
    with pytest.raises(InvalidInput, match="sliders has no feet; name them"):
        MpcProblem(build_robot(written(tmp_path, "sliders", SLIDERS)))
    with pytest.raises(InvalidInput, match=r"of the horizon of 0\.0001 s"):
        ContactImplicitMpc(_problem(hopper, step=1e-5))


def test_a_period_that_a_solve_exceeds_is_said(hopper, caplog):
    """Not refused: whoever has a slower computer gets a later answer."""
    ContactImplicitMpc(_problem(hopper, period=1e-6))
    assert "longer than its period of 1e-06 s" in caplog.text


def test_bad_references_and_states(solver):
    with pytest.raises(InvalidInput, match="reference q must be 11 x 5 numbers, got 3"):
        solver.solve(CROUCHED, np.zeros(5), lambda t, q, v: (np.zeros(3), v))
    with pytest.raises(InvalidInput, match="mpc: v must be 5 finite numbers"):
        solver.solve(CROUCHED, np.full(5, np.nan), standing)


@pytest.mark.parametrize("far", [1e16, 1e300, np.nan, -np.inf])
def test_references_beyond_all_numbers_are_refused(solver, far):
    with pytest.raises(InvalidInput, match="reference v at 3 s must be finite numbers"):
        solver.solve(
            CROUCHED, np.zeros(5), lambda t, q, v: (q, np.full(5, far)), time=3.0
        )


@pytest.mark.parametrize("far", [1e2, 1e8, 1e14])
def test_a_solve_that_diverges_overflows_nowhere(solver, far):
    """What it asks for lies beyond all reach; the efforts stay within their limits."""
    low, high = solver.effort_limits()
    asked = CROUCHED + far * np.array([1.0, -1.0, 0.5, 1.0, -0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = _converged(solver, CROUCHED, np.full(5, far), lambda *_: (asked, asked))
    assert np.isfinite(plan.cost) and plan.cost > far**2
    assert (plan.tau >= low).all() and (plan.tau <= high).all()


@pytest.mark.parametrize("off", [0.0, 3.0, 30.0])
def test_a_plan_far_from_its_dynamics_is_none(hopper, solver, off):
    """Where the dynamics are missed by more than the robot's weight."""
    weight = 9.81 * hopper.summary.mass
    plan = _converged(solver, CROUCHED, np.zeros(5), standing)
    bent = plan.q + off * np.sin(np.arange(plan.q.size)).reshape(plan.q.shape)
    after = solver.solve(
        CROUCHED, np.zeros(5), standing, warm=replace(plan, q=bent), iterations=1
    )
    missed = after.residuals["dynamics"]
    assert after.ok == bool(missed < weight) == (off == 0.0)


def test_after_many_failed_solves_it_plans_from_nothing(hopper):
    controller, simulator, context, _ = _alone(hopper, period=0.02, delay=0.0)
    solve, starts = controller.solver.solve, []

    def failing(*args, warm=None, **more):
        starts.append(warm is None)
        return replace(solve(*args, warm=warm, **more), ok=warm is None)

    controller.solver.solve = failing
    simulator.AdvanceTo(0.02 * (RESTART + 2) + 1e-9)
    assert starts == [True, *[False] * RESTART, True, False]
    assert controller.plan(context).time == pytest.approx(0.02 * (RESTART + 1))


def test_servos_get_the_plan_and_its_efforts(hopper):
    """Targets are the plan's, linear between knots; efforts are without gains."""
    controller = ContactImplicitMpc(_problem(hopper, period=0.2), servos=True)
    simulator = Simulator(controller)
    context = simulator.get_mutable_context()
    port = controller.get_input_port()
    port.FixValue(context, np.r_[CROUCHED, np.zeros(5)])
    simulator.AdvanceTo(0.13)
    port.FixValue(context, np.r_[CROUCHED + 0.1, np.ones(5)])
    plan, plant = controller.plan(context), controller.problem.robot.plant
    share = 0.13 / plan.step - 2
    q = plan.q[2] + share * (plan.q[3] - plan.q[2])
    v = plan.v[2] + share * (plan.v[3] - plan.v[2])
    motors = [plant.get_joint_actuator(i) for i in plant.GetJointActuatorIndices()]
    joints = [motor.joint() for motor in motors]
    expected = [q[j.position_start()] for j in joints]
    expected += [v[j.velocity_start()] for j in joints]
    targets = controller.GetOutputPort("targets").Eval(context)
    np.testing.assert_allclose(targets, expected, atol=1e-12)
    efforts = controller.GetOutputPort("actuation").Eval(context)
    np.testing.assert_array_equal(efforts, plan.tau[2])


def test_a_reference_may_bring_its_own_cost(hopper, solver):
    """The plan is that of the problem with this cost, and the next one is not."""
    q, v = CROUCHED + 0.02, np.zeros(5)
    cost = MpcCost(position=5.0, velocity=1.0, effort=1e-2)
    given = solver.solve(q, v, lambda t, q, v: (CROUCHED, v, cost))
    alone = MpcSolver(_problem(hopper, cost=cost))
    own = alone.solve(q, v, lambda t, q, v: (CROUCHED, v))
    np.testing.assert_array_equal(given.tau, own.tau)
    assert given.cost == own.cost
    after = solver.solve(q, v, lambda t, q, v: (CROUCHED, v))
    assert not np.allclose(after.tau, own.tau)
