"""The coupled step as a LeafSystem steps as the stepper does."""

import numpy as np
import pytest
from pydrake.geometry import Meshcat, SceneGraph
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, MultibodyPlant
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import InvalidInput
from drakebots.model import package_root
from drakebots.skin import CoupledSkeleton, add_skin
from drakebots.skin.coupled import Servo
from drakebots.skin.file import load_skinned
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


# --- a skin on a plant of one's own -----------------------------------------

FOLDER = package_root() / "skinned_leg"


def own_plant(builder):
    """The leg by Drake's own parser, beside the scene graph of a diagram."""
    scene_graph = builder.AddSystem(SceneGraph())
    plant = MultibodyPlant(0.0)
    plant.RegisterAsSourceForSceneGraph(scene_graph)
    Parser(plant).AddModels(str(FOLDER / "skinned_leg.sdf"))
    plant.Finalize()
    return plant, scene_graph


def test_a_skin_on_a_plant_of_ones_own():
    """It moves as the robot that drakebots loads, its shapes with it, and is drawn."""
    builder = DiagramBuilder()
    plant, scene_graph = own_plant(builder)
    meshcat = Meshcat()
    file = FOLDER / "skinned_leg.skin.yaml"
    system = add_skin(builder, plant, file, meshcat=meshcat, time_step=5e-3)
    builder.ExportInput(system.GetInputPort("desired_position"), "goal")
    builder.ExportOutput(scene_graph.get_query_output_port(), "query")
    diagram = builder.Build()
    simulator = Simulator(diagram)
    diagram.GetInputPort("goal").FixValue(simulator.get_context(), GOAL)
    simulator.AdvanceTo(0.05)
    found = system.coupled_state(system.GetMyContextFromRoot(simulator.get_context()))
    robot = load_skinned("skinned_leg")
    run = robot.stepper(5e-3)
    state = run.start()
    for _ in range(10):
        state = run.step(state, servo=robot.servo(GOAL)).state
    np.testing.assert_allclose(found.q, state.q, atol=1e-12)
    np.testing.assert_allclose(found.skin.positions, state.skin.positions, atol=1e-12)
    # What is drawn and touched stands where the system says.
    query = diagram.GetOutputPort("query").Eval(simulator.get_context())
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, found.q)
    for name in ("thigh", "shin"):
        body = plant.GetBodyByName(name)
        X_WB = query.GetPoseInWorld(plant.GetBodyFrameIdOrThrow(body.index()))
        assert X_WB.IsNearlyEqualTo(body.EvalPoseInWorld(context), 1e-12)
    assert meshcat.HasPath("/skin")


def test_plants_that_get_no_skin():
    file = FOLDER / "skinned_leg.skin.yaml"
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, 1e-3)
    Parser(plant).AddModels(str(FOLDER / "skinned_leg.sdf"))
    plant.Finalize()
    with pytest.raises(InvalidInput, match="the plant is in the builder"):
        add_skin(builder, plant, file)
    plant, _ = own_plant(DiagramBuilder())
    with pytest.raises(InvalidInput, match="not registered with a scene graph"):
        add_skin(DiagramBuilder(), plant, file)
