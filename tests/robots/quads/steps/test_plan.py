"""Steps in a row: standing, sliding, lifting a foot, momentum, failures, files."""

import os
import signal

import numpy as np
import pytest
from pydrake.multibody.tree import JacobianWrtVariable, MultibodyForces

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.run import Verdict
from drakebots.results import load_result
from drakebots.robots.quads.robot import feet_kinematics, settled_state, skin_share
from drakebots.robots.quads.steps import (
    FREE,
    STICK,
    LabelledQp,
    StepOptions,
    StepPlanner,
    StepsProblem,
    plan_steps,
)
from drakebots.robots.quads.steps.contact_state import piece_of, residual
from drakebots.robots.quads.steps.labelled_qp import SETTLED, contact_forces
from drakebots.robots.quads.steps.labelled_qp import (
    _sweep as sweep,
)
from drakebots.robots.quads.steps.plan import FLAT_STEPS
from drakebots.robots.quads.steps.planner import StepGoal
from tests.helpers.skinned_quad import DT, LOWER

ON = np.ones(4, bool)


def planner(quad, friction=0.8, **options):
    options = StepOptions(**options)
    stepper = quad.stepper()
    return StepPlanner(stepper, quad.feet, quad.limits, options, friction=friction)


def standing(quad, steps):
    rows = steps + 1
    return StepsProblem(np.tile(quad.q0, (rows, 1)), np.ones((rows, 4), bool))


def smooth(t, a, b):
    s = np.clip((t - a) / (b - a), 0, 1)
    return s * s * (3 - 2 * s)


def lifting(quad, seconds=0.8):
    """The body goes back over its feet, then the front left foot rises."""
    t = np.arange(round(seconds / DT) + 1) * DT
    q, on = np.tile(quad.q0, (len(t), 1)), np.ones((len(t), 4), bool)
    bend = np.arcsin(0.03 * smooth(t, 0, 0.3) / LOWER)
    q[:, 4] -= LOWER * np.sin(bend)
    q[:, 6] -= LOWER * (1 - np.cos(bend))
    high = 0.5 * smooth(t, 0.4, 0.6)
    for leg in quad.feet.names:
        knee, ankle = (
            quad.plant.GetJointByName(f"{leg}_{name}").position_start()
            for name in ("knee", "ankle")
        )
        more = high if leg == "fl" else 0.0
        q[:, knee] -= bend + more
        q[:, ankle] += bend + more
    on[t > 0.4, 0] = False
    return StepsProblem(q, on)


@pytest.fixture(scope="module")
def stood(quad):
    return plan_steps(planner(quad), standing(quad, 200))


@pytest.fixture(scope="module")
def lifted(quad):
    return plan_steps(planner(quad), lifting(quad))


def test_stands_for_a_second(quad, stood):
    """Sum of forces = weight, COP in the middle, no slip, torques small."""
    assert stood.ok, stood.message
    d = stood.data
    late = slice(100, None)
    total = d.contact_force.values[late].sum(axis=1)
    weight = quad.mass * 9.81
    assert np.allclose(total, [0, 0, weight], atol=1e-3 * weight)
    assert (d.contact_state.values[1:] == STICK).all()
    moved = d.patch_position.values - d.patch_position.values[0]
    assert np.abs(moved[late]).max() < 5e-6
    assert np.abs(d.torque.values).max() < 2.0
    assert d.cop_margin.values.min() > 0.08
    assert np.allclose(d.cop.values[late], d.com.values[late, :2], atol=1e-4)
    assert d.complementarity.values.max() < 1e-8
    assert d.follow_error.values.max() < 1e-4


def test_steps_of_a_tenth_sink_by_the_compliance(quad):
    """At rest each patch is pressed in by c f."""
    c = 1e-5
    result = plan_steps(planner(quad, compliance=c), standing(quad, 60))
    d = result.data
    depth = -d.patch_position.values[-1, :, 2]
    force = d.contact_force.values[-1, :, 2]
    assert np.allclose(depth, c * force, rtol=1e-6, atol=1e-12)


def test_a_foot_rises_and_its_contact_breaks(quad, lifted):
    assert lifted.ok, lifted.message
    d = lifted.data
    fl = quad.feet.foot_of == 0
    after = d.time.values > 0.45
    assert np.abs(d.contact_force.values[after][:, fl]).max() == 0
    assert (d.contact_state.values[after][:, fl] == FREE).all()
    assert d.patch_position.values[-1, fl, 2].min() > 0.01
    before = d.time.values < 0.35
    assert d.contact_force.values[before][:, fl, 2].sum(axis=1).min() > 1.0
    # The other three bear it, inside their polygon, without sliding away.
    assert d.cop_margin.values[after].min() >= -1e-9
    stay = d.patch_position.values[:, ~fl, :2]
    assert np.abs(stay - stay[0]).max() < 2e-3
    assert d.complementarity.values.max() < 1e-8
    assert np.abs(d.torque.values).max() <= 2.0 + 1e-9
    assert d.follow_error.values.max() < 5e-3
    f, mu = d.contact_force.values, 0.8
    assert (np.abs(f[..., :2]).sum(axis=-1) <= mu * f[..., 2] + 1e-7).all()


def test_a_flight_is_a_fall_until_the_feet_land(quad):
    """Without a foot on the ground the COM falls freely, by g dt^2 at each step;
    then the feet bear the weight again."""
    q, high = np.tile(quad.q0, (61, 1)), 5e-3
    t = np.arange(len(q)) * DT
    q[:, 6] += np.maximum(high - 9.81 / 2 * t**2, 0.0)
    on = np.repeat(q[:, 6] <= quad.q0[6], 4).reshape(-1, 4)
    d = plan_steps(planner(quad), StepsProblem(q, on)).data
    up = np.flatnonzero(~on[:, 0])[2:-1]
    assert len(up) > 2 and len(d.time) == len(q)
    assert np.abs(d.contact_force.values[up]).max() == 0
    z = d.com.values[:, 2]
    assert np.allclose(np.diff(z, 2)[up - 2], -9.81 * DT**2, rtol=1e-3)
    load = d.contact_force.values[-10:, :, 2].sum(axis=1)
    assert np.allclose(load, quad.mass * 9.81, rtol=0.05)


def test_linear_momentum_of_every_step(quad):
    """d(momentum) = dt (forces of the feet + weight), to rounding, with the bias
    that the change of pose gives the skeleton."""
    plan, run = lifting(quad, 0.6), planner(quad)
    plan = StepsProblem(plan.q_ref[60:], plan.contact[60:])
    plant, context = quad.plant, run.stepper.context
    mass = run.stepper.model.mass
    pattern, g = run.stepper.model.pattern, np.array([0, 0, -9.81])
    state = settled_state(run.stepper, plan.q_ref[0])
    memory = run.start(state)

    def skin(velocities):
        return pattern.multiply(mass, velocities.ravel()).reshape(-1, 3).sum(axis=0)

    for k in range(40):
        step = run.step(state, memory, plan.goal(k))
        assert step.ok, step.message
        plant.SetPositions(context, state.q)
        plant.SetVelocities(context, state.v)
        M = plant.CalcMassMatrix(context)
        bias = plant.CalcInverseDynamics(context, 0 * state.v, MultibodyForces(plant))
        # Rows 3 to 5 are the floating base's translation: the whole skeleton's.
        bones = (M @ (step.state.v - state.v) + DT * bias)[3:6]
        change = bones + skin(step.state.skin.velocities - state.skin.velocities)
        push = step.qpcc.forces.sum(axis=0) + quad.mass * g
        assert np.allclose(change, DT * push, atol=1e-9), k
        state, memory = step.state, step.memory


def test_slides_on_ice(quad):
    """Pulled sideways with mu = 0.02 the feet slide, at the cone's limit."""
    rows = 41
    q = np.tile(quad.q0, (rows, 1))
    q[:, 4] += 0.1 * smooth(np.arange(rows) * DT, 0, 0.2)
    plan = StepsProblem(q, np.ones((rows, 4), bool))
    icy = plan_steps(planner(quad, friction=0.02), plan).data
    held = plan_steps(planner(quad, friction=0.8), plan).data
    f = icy.contact_force.values
    side = np.abs(f[..., :2]).sum(axis=-1)
    sliding = icy.contact_state.values >= 2
    assert sliding.mean() > 0.2
    assert np.allclose(side[sliding], 0.02 * f[..., 2][sliding], atol=1e-8)
    assert icy.complementarity.values.max() < 1e-8
    slip = [
        np.abs(d.patch_position.values[-1] - d.patch_position.values[0]).max()
        for d in (icy, held)
    ]
    assert slip[0] > 3 * slip[1]


def test_motors_at_their_limit(quad):
    """Limits hold while the knee stays behind; the plan says it fell."""
    weak = StepPlanner(
        quad.stepper(), quad.feet, np.full(12, 0.02), StepOptions(cop="ignore")
    )
    q = np.tile(quad.q0, (80, 1))
    knee = quad.plant.GetJointByName("fl_knee").position_start()
    q[:, knee] += 0.6 * smooth(np.arange(80) * DT, 0, 0.3)
    result = plan_steps(weak, StepsProblem(q, np.ones((80, 4), bool), fall=0.3))
    assert not result.ok and "fell" in result.message
    torque = np.abs(result.data.torque.values)
    assert torque.max() == pytest.approx(0.02, rel=1e-9)


def test_sweeps_solve_the_contacts(quad):
    """The simulated contacts are complementary, with pieces to match."""
    run = planner(quad, friction=0.3)
    rng = np.random.default_rng(0)
    for _ in range(5):
        state = run.stepper.start(quad.q0, 0.05 * rng.normal(size=18))
        memory = run.start(state)
        ready = run.prepare(state, memory, StepGoal(quad.q0, ON, ON, ON, quad.q0))
        qpcc, c = ready.qpcc, run.options.compliance
        tau = rng.uniform(-1, 1, 12)
        Y, y0 = qpcc.Y[:, 12:] / c, (qpcc.y0 + qpcc.Y[:, :12] @ tau) / c
        f = contact_forces(Y, y0, 0.3)
        y = (Y @ f.ravel() + y0).reshape(-1, 3)
        assert residual(f, y, 0.3).max() < 1e-9 * (1 + np.abs(y).max())
        # The affine forces of these pieces, at these torques.
        labels = piece_of(f, y, 0.3)
        w0, W, _, _ = LabelledQp(qpcc).affine(labels)
        assert np.allclose((w0 + W @ tau)[12:], f.ravel(), atol=1e-5)


def test_sweeps_that_go_round_in_a_cycle_end():
    """A contact that slides steeply: refused, and long before the last sweep.

    From where a cycle was noticed, the forces still come back to themselves.
    """
    rng = np.random.default_rng(3)
    A = rng.normal(size=(3, 3))
    Y, y0 = A @ A.T + 0.05 * np.eye(3), 2 * rng.normal(size=3)
    y0[2] = -abs(y0[2])
    with pytest.raises(NoSolution, match="sweeps did not converge"):
        contact_forces(Y, y0, 2.0)
    f = np.zeros(3)
    changes = [sweep(Y, y0, 2.0, f, SETTLED) for _ in range(3)]
    assert min(changes) > 0.01


def test_forces_on_the_skin_are_not_planned(quad):
    free = np.setdiff1d(np.arange(len(quad.fem.rest)), quad.glue.vertices)[:3]
    with pytest.raises(InvalidInput, match="without `contacts`"):
        StepPlanner(quad.stepper(contacts=free), quad.feet, quad.limits)


def test_what_the_skin_is_to_the_links(quad, lifted):
    """Shares add up; coupling is the generalized force of the links' wrenches."""
    share = skin_share(quad.fem, quad.glue)
    assert share.mass.sum() == pytest.approx(quad.fem.node_mass.sum())
    d = lifted.data
    context = quad.plant.CreateDefaultContext()
    k = 120
    quad.plant.SetPositions(context, d.position.values[k - 1])
    total = np.zeros(18)
    for name in d.link.values:
        frame = quad.plant.GetBodyByName(str(name)).body_frame()
        J = quad.plant.CalcJacobianSpatialVelocity(
            context,
            JacobianWrtVariable.kV,
            frame,
            np.zeros(3),
            quad.plant.world_frame(),
            quad.plant.world_frame(),
        )
        here = d.isel(time=k).sel(link=name)
        total += J.T @ np.concatenate([here.skin_moment, here.skin_force])
    assert np.allclose(total, d.coupling_force.values[k], atol=1e-9)
    # At the end it stands nearly still: the skin hangs on the links by its weight.
    force = d.skin_force.values[-1].sum(axis=0)
    assert np.allclose(force, [0, 0, -9.81 * share.mass.sum()], atol=0.3)
    at_rest = share.centres(quad.plant, quad.context, quad.fem.rest)
    assert np.abs(d.skin_com.values[0] - at_rest).max() < 5e-3


def test_result_file(tmp_path, quad):
    path = tmp_path / "plan.nc"
    result = plan_steps(planner(quad), standing(quad, 12), model="small")
    result.save(path)
    assert load_result(path) == result
    d = result.data
    assert d.skin_position.dtype == np.float32 and d.sizes["skin_time"] == 2
    assert d.attrs["system"] == "skinned"
    assert np.isnan(d.qpcc_energy.values[1:]).sum() == 0 or (
        d.qpcc_iterations.values.min() < d.sizes["iteration"]
    )
    assert d.time.values[-1] == pytest.approx(12 * DT)


def test_interrupted_keeps_steps(quad):
    def stop(stage, time, end):
        if time > 0.02:
            os.kill(os.getpid(), signal.SIGINT)

    result = plan_steps(planner(quad), standing(quad, 50), progress=stop)
    assert result.verdict is Verdict.INTERRUPTED
    assert 4 < result.data.sizes["time"] < 10


def test_failed_step_keeps_steps(quad):
    """A skin blown up inside out ends the plan, with what came before."""
    blow = quad.fem.rest - quad.fem.rest.mean(axis=0)

    run = planner(quad)
    plain = run.stepper._equations

    def pushed(state, servo, forces, *options):
        push = -3e4 * blow if state.skin.time > 0.02 else 0 * blow
        return plain(state, servo, push, *options)

    run.stepper._equations = pushed
    result = plan_steps(run, standing(quad, 20))
    assert result.verdict is Verdict.FAILED
    assert "failed" in result.message or "fell" in result.message
    assert 4 < result.data.sizes["time"] < 20


def test_plan_that_cannot_be(quad):
    q, on = np.tile(quad.q0, (4, 1)), np.ones((4, 4), bool)
    with pytest.raises(InvalidInput, match="contact"):
        StepsProblem(q, on[:3])
    with pytest.raises(InvalidInput, match="q_ref"):
        StepsProblem(q * np.nan, on)
    with pytest.raises(InvalidInput, match="fall"):
        StepsProblem(q, on, fall=0)
    run = planner(quad)
    with pytest.raises(InvalidInput, match="positions"):
        plan_steps(run, StepsProblem(q[:, :-1], on))
    with pytest.raises(InvalidInput, match="torque limits"):
        StepPlanner(quad.stepper(), quad.feet, np.full(12, np.nan))
    with pytest.raises(InvalidInput, match="must be 12 numbers > 0"):
        StepPlanner(quad.stepper(), quad.feet, np.ones(3))


def test_soles_are_flat_around_contact(quad):
    on = np.ones((40, 4), bool)
    on[10:30, 1] = False
    plan = StepsProblem(np.tile(quad.q0, (40, 1)), on)
    flat = plan.flat[:, 1]
    assert flat[: 10 + FLAT_STEPS].all() and flat[30 - FLAT_STEPS :].all()
    assert not flat[10 + FLAT_STEPS : 30 - FLAT_STEPS].any()


def test_feet_face_the_ground(quad):
    kinematics = feet_kinematics(quad.plant, quad.context, quad.feet)
    assert np.allclose(kinematics.normal, [0, 0, 1])
    assert np.allclose(kinematics.p[:, 2], 0, atol=1e-12)
