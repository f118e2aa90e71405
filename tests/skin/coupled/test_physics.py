"""Skeleton and skin together: against Drake, rigid bodies, the skin alone."""

import numpy as np
import pytest

from drakebots.fem import SkinState, at_rest, step_system
from drakebots.fem.assembly import gravity_force
from drakebots.fem.material import Material
from drakebots.skin.coupled import (
    CoupledState,
    CoupledStepper,
    Glue,
    ReducedSystem,
    Servo,
    glue_vertices,
)
from drakebots.skin.coupled.skeleton import skeleton_equations
from tests.helpers.elastic_solve import solve_definite
from tests.helpers.skin_energy import momentum
from tests.helpers.skinned_leg import DT, INSTANCE, Leg, deformed, skin_model, stepper

FEATHER = Material(youngs_modulus=1e-9, poisson_ratio=0.4, density=1e-9)


@pytest.fixture(scope="module")
def model():
    return skin_model()


@pytest.mark.parametrize("base", ["hip", "free"])
@pytest.mark.parametrize("damping", [0.0, 0.02])
def test_a_feather_skin_leaves_drakes_own_step(base, damping):
    leg = Leg(base, dt=DT, damping=damping)
    plant, model = leg.plant, skin_model(FEATHER)
    run = stepper(leg, model)
    n = plant.num_actuators()
    torques = np.linspace(0.05, -0.02, n)
    v = np.linspace(-1.0, 2.0, plant.num_velocities())
    state = run.start(v=v)
    plant.SetPositions(leg.context, state.q)
    plant.SetVelocities(leg.context, v)
    plant.get_actuation_input_port().FixValue(leg.context, torques)
    root = leg.root.Clone()
    for _ in range(3):
        old = plant.GetMyContextFromRoot(root)
        equations = skeleton_equations(plant, old, run.glue, DT)
        alone = np.linalg.solve(equations.A, equations.b + equations.B @ torques) / DT
        state = run.step(state, torques).state
        later = leg.diagram.EvalUniquePeriodicDiscreteUpdate(root)
        root.get_mutable_discrete_state().SetFrom(later)
        after = plant.GetMyContextFromRoot(root)
        expected = plant.GetVelocities(after)
        assert np.allclose(alone, expected, rtol=1e-10, atol=1e-12)
        assert np.allclose(state.v, expected, rtol=1e-6)
        q = plant.GetPositions(after).copy()
        if base == "free":  # Drake leaves the quaternion's length to its user
            q[:4] /= np.linalg.norm(q[:4])
        assert np.allclose(state.q, q, atol=1e-8)
        state = CoupledState(q, expected, state.skin)


def test_a_servo_is_drakes_own_implicit_pd():
    leg = Leg(dt=DT, gains=(5.0, 0.3))
    plant, context = leg.plant, leg.context
    q, v, goal = np.array([0.2, -0.4]), np.array([1.0, 3.0]), np.array([0.5, 0.1])
    plant.SetPositions(context, q)
    plant.SetVelocities(context, v)
    speed = np.array([0.7, -0.2])
    plant.get_desired_state_input_port(plant.GetModelInstanceByName(INSTANCE)).FixValue(
        context, np.concatenate([goal, speed])
    )
    glue = Glue(np.array([0]), ("shin",), np.zeros((1, 3)))
    equations = skeleton_equations(
        plant, context, glue, DT, servo=Servo(5, 0.3, goal, speed)
    )
    ours = np.linalg.solve(equations.A, equations.b) / DT
    later = leg.diagram.EvalUniquePeriodicDiscreteUpdate(leg.root)
    leg.root.get_mutable_discrete_state().SetFrom(later)
    assert np.allclose(ours, plant.GetVelocities(context), rtol=1e-9)


def total_momentum(leg, run, state):
    plant, context = leg.plant, leg.context
    plant.SetPositions(context, state.q)
    plant.SetVelocities(context, state.v)
    links = plant.CalcSpatialMomentumInWorldAboutPoint(context, np.zeros(3))
    return links.translational() + momentum(run.model, state.skin)[0]


def kicked(leg, model, dt, time):
    """Change of total momentum of a free, kicked leg, and its size."""
    run = stepper(leg, model, dt)
    v = np.zeros(leg.plant.num_velocities())
    v[:6] = 2.0, -1.0, 3.0, 0.5, 0.2, -0.3
    state = run.start(v=v)
    before = total_momentum(leg, run, state)
    for _ in range(round(time / dt)):
        result = run.step(state)
        assert result.converged, result.message
        state = result.state
    return np.abs(total_momentum(leg, run, state) - before).max(), np.abs(before).max()


def test_linear_momentum_of_one_link_and_skin_is_kept(model):
    # With the centre of mass at the base's origin M v holds the momentum itself.
    leg = Leg("free", knee=False, centred=True, gravity=False)
    change, size = kicked(leg, model, DT, 0.1)
    assert change < 1e-11 * size


def test_linear_momentum_of_a_chain_drifts_at_first_order(model):
    # Drake's own semi-implicit step drifts so too: M(q) v is not M(q+) v.
    leg = Leg("free", gravity=False)
    coarse, size = kicked(leg, model, 2e-3, 0.02)
    fine, _ = kicked(leg, model, 1e-3, 0.02)
    assert coarse < 0.02 * size
    assert 1.5 < coarse / fine < 2.6


def test_action_is_reaction(model):
    leg = Leg("free", gravity=False)
    run, state, _ = deformed(leg, model)
    equations = run.equations(state)
    found = ReducedSystem(equations, run.solver).solve()
    p = momentum(model, state.skin)[0]
    after = run.advance(state, found)
    gain = momentum(model, after.skin)[0] - p
    assert np.allclose(gain, DT * found.glue_forces.sum(axis=0), atol=1e-12)
    links = equations.skeleton.A @ found.dq - equations.skeleton.b
    # Rows 3 to 5 are the base's translation: the force on all links.
    assert np.allclose(links[3:6], -found.glue_forces.sum(axis=0), atol=1e-10)


def test_free_fall_deforms_nothing(model):
    leg = Leg("free")
    run = stepper(leg, model)
    state = run.start()
    for k in range(1, 11):
        result = run.step(state)
        state = result.state
        assert np.allclose(result.solution.du, [0, 0, -9.81 * k * DT**2], atol=1e-12)
        assert np.abs(result.solution.glue_forces).max() < 1e-8
    assert np.allclose(state.v[5], -9.81 * 10 * DT, rtol=1e-12)
    assert np.allclose(np.delete(state.v, 5), 0, atol=1e-10)


def test_a_stiff_skin_adds_its_inertia():
    stiff = Material(youngs_modulus=1e12, poisson_ratio=0.3, density=1000.0)
    leg, model = Leg(knee=False, gravity=False), skin_model(stiff)
    run = stepper(leg, model)
    state = run.start()
    arm = model.rest - [0, 0, 0.2]  # from the hip, which turns about y
    skin = model.node_mass @ (arm[:, 0] ** 2 + arm[:, 2] ** 2)
    link = leg.plant.CalcMassMatrix(leg.context)[0, 0]
    dq = run.step(state, [0.1]).solution.dq
    assert np.allclose(dq, DT**2 * 0.1 / (link + skin), rtol=1e-5)
    assert skin > link


def stepped_alone(model, skin, held):
    """The skin after a linear step with some nodes held where they are."""
    A, b = step_system(model, skin, DT, gravity_force(model))
    move = np.zeros_like(model.rest)
    free = np.setdiff1d(np.arange(move.size), 3 * held[:, None] + np.arange(3))
    K = model.pattern.full(A)[free][:, free]
    move.ravel()[free] = solve_definite(K, b[free])
    return SkinState(skin.time + DT, skin.positions + move, move / DT)


def test_glued_to_the_world_the_skin_steps_as_alone(model):
    leg = Leg()
    held = np.flatnonzero(model.rest[:, 2] > 0.19)
    glue = glue_vertices(model.rest, leg.plant, leg.context, {"world": held})
    run = CoupledStepper(leg.plant, model, glue, DT)
    state, skin = run.start(), at_rest(model)
    for _ in range(5):
        state, skin = run.step(state).state, stepped_alone(model, skin, held)
    moved = skin.positions - model.rest
    assert np.allclose(
        state.skin.positions - model.rest, moved, atol=1e-9 * np.abs(moved).max()
    )


def test_servos_hold_and_follow_at_5_ms(model):
    leg = Leg()
    run = stepper(leg, model)
    state = run.start()
    for k in range(100):
        target = np.array([0.3, -0.5]) * np.sin(2 * np.pi * k * DT)
        servo = Servo(50.0, 0.5, target)
        result = run.step(state, servo=servo)
        assert result.converged, result.message
        state = result.state
        assert np.abs(state.q - target).max() < 0.06
    assert result.smallest_ratio > 0.5
    # The glue lies on the links.
    equations = run.equations(state)
    assert np.abs(equations.gap).max() < 1e-14
