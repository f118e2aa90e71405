"""The coupled step as a LeafSystem steps as the stepper does."""

import numpy as np
import pytest
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import InvalidInput
from drakebots.skin.drake import CoupledSkeleton
from drakebots.skin.frame.skeleton import Servo
from tests.helpers.skinned_leg import DT, Leg, skin_model, stepper

GAINS = (20.0, 0.3)
GOAL = np.array([0.3, -0.5])


@pytest.fixture(scope="module")
def model():
    return skin_model()


def coupled(model, dt, time):
    run = stepper(Leg(), model, dt)
    system = CoupledSkeleton(run, stiffness=GAINS[0], damping=GAINS[1])
    simulator = Simulator(system)
    context = simulator.get_mutable_context()
    system.GetInputPort("desired_position").FixValue(context, GOAL)
    simulator.AdvanceTo(time)
    return system, context


def test_the_system_steps_as_the_stepper(model):
    system, context = coupled(model, DT, 0.05)
    run = stepper(Leg(), model)
    state = run.start()
    for _ in range(10):
        result = run.step(state, servo=Servo(*GAINS, GOAL))
        state = result.state
    found = system.coupled_state(context)
    assert np.array_equal(found.q, state.q)
    assert np.array_equal(found.skin.positions, state.skin.positions)
    out = {
        name: system.GetOutputPort(name).Eval(context)
        for name in ("position", "velocity", "state", "vertices", "stress", "torque")
    }
    assert np.array_equal(out["state"], np.concatenate([state.q, state.v]))
    n = len(model.space.mesh.vertices)
    assert np.array_equal(out["vertices"].reshape(-1, 3), state.skin.positions[:n])
    assert out["stress"].shape == (n,) and out["stress"].max() > 0
    assert np.array_equal(out["torque"], result.torques)


def test_the_system_takes_torques(model):
    run = stepper(Leg(), model)
    system = CoupledSkeleton(run)
    simulator = Simulator(system)
    context = simulator.get_mutable_context()
    system.GetInputPort("torque").FixValue(context, [0.2, 0.0])
    simulator.AdvanceTo(0.02)
    state = run.start()
    for _ in range(4):
        state = run.step(state, [0.2, 0.0]).state
    assert np.array_equal(system.GetOutputPort("position").Eval(context), state.q)
    system.set_coupled_state(context, run.start())
    assert np.array_equal(system.coupled_state(context).q, run.start().q)


def test_a_failed_frame_ends_the_simulation(model):
    system = CoupledSkeleton(stepper(Leg(), model))
    simulator = Simulator(system)
    system.GetInputPort("torque").FixValue(simulator.get_mutable_context(), [1e6, 0])
    with pytest.raises(RuntimeError, match="inverted"):
        simulator.AdvanceTo(0.05)


def test_bad_input(model):
    with pytest.raises(InvalidInput, match="stiffness"):
        CoupledSkeleton(stepper(Leg(), model), stiffness=-1.0)
    builder = DiagramBuilder()
    system = builder.AddSystem(CoupledSkeleton(stepper(Leg(), model)))
    context = system.CreateDefaultContext()
    wrong = stepper(Leg("free"), model).start()
    with pytest.raises(InvalidInput, match="coupled state"):
        system.set_coupled_state(context, wrong)
