"""The skin beside a plant, and the coupled frame as a system: same motion."""

import numpy as np
import pytest
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder
from skinned_leg import DT, INSTANCE, Leg, skin_model, stepper

from drakebots.errors import InvalidInput
from drakebots.fem.dynamics import SkinState
from drakebots.fem.materials import Material
from drakebots.skin.coupled_system import CoupledSkeleton
from drakebots.skin.skeleton import Servo
from drakebots.skin.system import Skin, add_skin

GAINS = (20.0, 0.3)
GOAL = np.array([0.3, -0.5])


@pytest.fixture(scope="module")
def model():
    return skin_model()


class Exchange:
    """A leg in a diagram with its skin."""

    def __init__(self, model, dt, *, gains=GAINS, **options):
        self.leg = Leg(dt=options.pop("plant_dt", dt), gains=gains, build=False)
        plant = self.plant = self.leg.plant
        glue = Leg().glue(model.rest)
        self.skin = Skin(plant, model, glue, dt, **options)
        add_skin(self.leg.builder, plant, self.skin)
        self.simulator = Simulator(self.leg.builder.Build())
        root = self.simulator.get_mutable_context()
        self.context = plant.GetMyMutableContextFromRoot(root)
        self.own = self.skin.GetMyMutableContextFromRoot(root)
        if gains:
            instance = plant.GetModelInstanceByName(INSTANCE)
            plant.get_desired_state_input_port(instance).FixValue(
                self.context, np.concatenate([GOAL, np.zeros(2)])
            )
        else:
            plant.get_actuation_input_port().FixValue(self.context, [0.05, -0.02])
        self.skin.prepare(self.own, self.context)

    def run(self, time):
        self.simulator.AdvanceTo(time)
        return self.plant.GetPositions(self.context).copy()


def coupled(model, dt, time):
    run = stepper(Leg(), model, dt)
    system = CoupledSkeleton(run, stiffness=GAINS[0], damping=GAINS[1])
    simulator = Simulator(system)
    context = simulator.get_mutable_context()
    system.GetInputPort("desired_position").FixValue(context, GOAL)
    simulator.AdvanceTo(time)
    return system, context


@pytest.mark.parametrize("implicit", [False, True])
def test_both_modes_settle_alike_at_5_ms(model, implicit):
    system, context = coupled(model, DT, 1.0)
    expected = system.coupled_state(context)
    run = Exchange(model, DT, implicit=implicit)
    q = run.run(1.0)
    assert np.abs(expected.q).max() > 0.2
    assert np.allclose(q, expected.q, atol=1e-4)
    x = run.skin.skin(run.own).positions
    assert np.allclose(x, expected.skin.positions, atol=2e-5)


def test_both_modes_converge_to_each_other(model):
    def apart(dt):
        system, context = coupled(model, dt, 0.04)
        q = system.coupled_state(context).q
        assert np.abs(q).max() > 0.05
        return np.abs(Exchange(model, dt, implicit=True).run(0.04) - q).max()

    # A quarter of the step: a quarter of the difference, or less.
    coarse, fine = apart(2e-3), apart(5e-4)
    assert coarse / fine > 4
    assert fine < 1e-3


def test_the_plain_exchange_has_a_limit_and_implicit_lifts_it():
    """Servos of 20 N m/rad cannot carry a skin of 300 MPa explicitly."""
    stiff = skin_model(Material(youngs_modulus=3e8, poisson_ratio=0.4, density=1000.0))
    with pytest.raises(RuntimeError, match="implicit=True"):
        Exchange(stiff, DT).run(0.5)
    q = Exchange(stiff, DT, implicit=True).run(1.0)
    system, context = coupled(stiff, DT, 1.0)
    assert np.allclose(q, system.coupled_state(context).q, atol=1e-5)


def test_the_plant_may_step_finer_than_the_skin(model):
    q = Exchange(model, DT, implicit=True).run(0.8)
    finer = Exchange(model, DT, plant_dt=1e-3, implicit=True).run(0.8)
    assert np.allclose(q, finer, atol=2e-3)


def test_spatial_forces_are_the_skins_weight_at_rest(model):
    """A leg that hangs still carries its skin: forces on links add to m g."""
    run = Exchange(model, DT, implicit=True, gains=(200.0, 2.0))
    instance = run.plant.GetModelInstanceByName(INSTANCE)
    run.plant.get_desired_state_input_port(instance).FixValue(run.context, np.zeros(4))
    run.run(1.0)
    total = sum(
        f.F_Bq_W.translational()
        for f in run.skin.GetOutputPort("spatial_forces").Eval(run.own)
    )
    assert np.allclose(total, [0, 0, -9.81 * model.total_mass], atol=2e-3)


def test_the_state_lies_in_the_context(model):
    """Two simulations of one diagram, turn by turn, do not know of each other."""
    alone = Exchange(model, DT, implicit=True)
    expected = alone.run(0.05)
    both = Exchange(model, DT, implicit=True)
    other = Simulator(both.simulator.get_system(), both.simulator.get_context().Clone())
    for k in range(1, 6):
        both.simulator.AdvanceTo(0.01 * k)
        other.AdvanceTo(0.01 * k)
    assert np.array_equal(both.plant.GetPositions(both.context), expected)
    context = both.plant.GetMyContextFromRoot(other.get_context())
    assert np.array_equal(both.plant.GetPositions(context), expected)


def test_coupled_system_is_the_stepper(model):
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


def test_coupled_system_takes_torques(model):
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
    with pytest.raises(RuntimeError, match="turned over"):
        simulator.AdvanceTo(0.05)


def test_bad_input(model):
    glue = Leg().glue(model.rest)
    for dt, said in ((0.0, "must be > 0"), (7e-4, "multiple")):
        with pytest.raises(InvalidInput, match=said):
            Skin(Leg(dt=1e-3).plant, model, glue, dt)
    with pytest.raises(InvalidInput, match="discrete"):
        Skin(Leg(dt=0.0).plant, model, glue, DT)
    with pytest.raises(InvalidInput, match="stiffness"):
        CoupledSkeleton(stepper(Leg(), model), stiffness=-1.0)
    run = Exchange(model, DT)
    with pytest.raises(InvalidInput, match="shape"):
        run.skin.set_skin(run.own, SkinState(0.0, np.zeros((3, 3)), np.zeros((3, 3))))
    builder = DiagramBuilder()
    system = builder.AddSystem(CoupledSkeleton(stepper(Leg(), model)))
    context = system.CreateDefaultContext()
    wrong = stepper(Leg("free"), model).start()
    with pytest.raises(InvalidInput, match="coupled state"):
        system.set_coupled_state(context, wrong)
