"""The coupled step as a LeafSystem steps as the stepper does."""

import numpy as np
import pytest
from pydrake.geometry import (
    Box,
    ClippingRange,
    ColorRenderCamera,
    DepthRange,
    DepthRenderCamera,
    HalfSpace,
    MakeRenderEngineVtk,
    Meshcat,
    RenderCameraCore,
    RenderEngineVtkParams,
    SceneGraph,
    Sphere,
)
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.math import SpatialForce
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import (
    AddMultibodyPlantSceneGraph,
    CoulombFriction,
    ExternallyAppliedSpatialForce,
    MultibodyPlant,
)
from pydrake.multibody.tree import SpatialInertia
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder
from pydrake.systems.sensors import CameraInfo, RgbdSensor

from drakebots.core.errors import InvalidInput
from drakebots.live import live
from drakebots.model import package_root
from drakebots.skin import CoupledSkeleton, PlacedSkin, add_skin
from drakebots.skin.coupled import Servo
from drakebots.skin.file import load_skinned
from tests.helpers.rendering import needs_camera
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
        for name in (
            "position",
            "velocity",
            "state",
            "vertices",
            "stress",
            "net_actuation",
        )
    }
    assert np.array_equal(out["state"], np.concatenate([state.q, state.v]))
    n = len(model.space.mesh.vertices)
    assert np.array_equal(out["vertices"].reshape(-1, 3), state.skin.positions[:n])
    assert out["stress"].shape == (n,) and out["stress"].max() > 0
    assert np.array_equal(out["net_actuation"], result.torques)


def test_the_system_takes_torques(model):
    run = stepper(Leg(), model)
    system = CoupledSkeleton(run)
    simulator = Simulator(system)
    context = simulator.get_mutable_context()
    system.GetInputPort("actuation").FixValue(context, [0.2, 0.0])
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
    system.GetInputPort("actuation").FixValue(simulator.get_mutable_context(), [1e6, 0])
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


# --- a scene: other bodies, other plants, cameras ------------------------------


def add_body(plant, name, shape, X_WB, mass=0.1):
    """A free body that is seen and touched."""
    inertia = SpatialInertia.SolidBoxWithMass(mass, 0.06, 0.06, 0.06)
    body = plant.AddRigidBody(name, plant.AddModelInstance(name), inertia)
    mu = CoulombFriction(0.4, 0.4)
    plant.RegisterCollisionGeometry(body, RigidTransform(), shape, "touched", mu)
    blue = np.array([0.2, 0.4, 0.8, 1.0])
    plant.RegisterVisualGeometry(body, RigidTransform(), shape, "seen", blue)
    plant.SetDefaultFloatingBaseBodyPose(body, X_WB)
    return body


def scene_with_box(builder, X_WB):
    """The leg above a floor, with a box beside its foot."""
    scene_graph = builder.AddSystem(SceneGraph())
    plant = MultibodyPlant(0.0)
    plant.RegisterAsSourceForSceneGraph(scene_graph)
    Parser(plant).AddModels(str(FOLDER / "skinned_leg.sdf"))
    world, mu = plant.world_body(), CoulombFriction(0.4, 0.4)
    plant.RegisterCollisionGeometry(world, RigidTransform(), HalfSpace(), "floor", mu)
    add_body(plant, "box", Box(0.06, 0.06, 0.06), X_WB)
    plant.Finalize()
    return plant, scene_graph


WEIGHT = np.array([0, 0, -0.1 * 9.81])
BESIDE = RigidTransform([0.09, 0, 0.0301])


def add_ball(builder, scene_graph):
    """Another plant in the same scene: a ball that falls on the first plant's floor."""
    plant = builder.AddSystem(MultibodyPlant(1e-3))
    plant.set_name("other")
    plant.RegisterAsSourceForSceneGraph(scene_graph)
    add_body(plant, "ball", Sphere(0.03), RigidTransform([0, 0.3, 0.1]))
    plant.Finalize()
    source = plant.get_source_id()
    poses = plant.get_geometry_pose_output_port()
    builder.Connect(poses, scene_graph.get_source_pose_port(source))
    query = scene_graph.get_query_output_port()
    builder.Connect(query, plant.get_geometry_query_input_port())
    return plant


@pytest.mark.long
@pytest.mark.parametrize("first", [True, False])
def test_a_leg_kicks_a_box_beside_another_plant(first):
    """In either order: the box moves by what pushes it, the ball falls past."""
    builder = DiagramBuilder()
    plant, scene_graph = scene_with_box(builder, BESIDE)
    other = None if first else add_ball(builder, scene_graph)
    system = add_skin(builder, plant, FOLDER / "skinned_leg.skin.yaml")
    other = add_ball(builder, scene_graph) if first else other
    builder.ExportInput(system.GetInputPort("desired_position"), "goal")
    diagram = builder.Build()
    simulator = Simulator(diagram)
    diagram.GetInputPort("goal").FixValue(simulator.get_context(), [-0.8, 0.2])
    context = system.GetMyContextFromRoot(simulator.get_context())
    box, touched = plant.GetBodyByName("box"), 0.0
    momentum = np.zeros(3)
    dt = system.stepper.dt
    for k in range(1, 31):
        simulator.AdvanceTo(k * dt)
        forces = system.GetOutputPort("contact_results").Eval(context)
        momentum += dt * (forces.on("box") + WEIGHT)
        touched += np.abs(forces.on("skin")).sum()
    V = system.GetOutputPort("body_spatial_velocities").Eval(context)[box.index()]
    assert touched > 0.1 and V.translational()[0] > 0.5
    np.testing.assert_allclose(0.1 * V.translational(), momentum, atol=1e-9)
    fallen = other.GetMyContextFromRoot(simulator.get_context())
    ball = other.GetBodyByName("ball").EvalPoseInWorld(fallen).translation()
    assert ball[2] == pytest.approx(0.1 - 9.81 * 0.15**2 / 2, abs=2e-3)


def test_a_live_run_keeps_the_positions_of_its_plant():
    builder = DiagramBuilder()
    plant, _ = scene_with_box(builder, BESIDE)
    system = add_skin(builder, plant, FOLDER / "skinned_leg.skin.yaml")
    builder.ExportInput(system.GetInputPort("desired_position"), "goal")
    simulator = Simulator(builder.Build())
    root, port = simulator.get_mutable_context(), simulator.get_system()
    port.GetInputPort("goal").FixValue(root, [-0.8, 0.2])
    run = live(simulator, headless=True, duration=0.05)
    assert run.data.coordinate.values.tolist() == plant.GetPositionNames()
    state = system.coupled_state(system.GetMyContextFromRoot(root))
    np.testing.assert_array_equal(run.data.position.values[-1], state.q)


def test_ports_are_those_of_the_plant():
    builder = DiagramBuilder()
    plant, _ = scene_with_box(builder, BESIDE)
    system = add_skin(builder, plant, FOLDER / "skinned_leg.skin.yaml")
    context = system.CreateDefaultContext()
    state = system.coupled_state(context)
    own = plant.CreateDefaultContext()
    plant.SetPositionsAndVelocities(own, np.concatenate([state.q, state.v]))
    for name in ("body_poses", "body_spatial_velocities"):
        mine, its = system.GetOutputPort(name), plant.GetOutputPort(name)
        both = zip(mine.Eval(context), its.Eval(own), strict=True)
        get = "GetAsMatrix4" if name == "body_poses" else "get_coeffs"
        for a, b in both:
            assert np.array_equal(getattr(a, get)(), getattr(b, get)())
    for name in ("state", "skinned_leg_state", "box_state"):
        a, b = (x.GetOutputPort(name) for x in (system, plant))
        assert np.array_equal(a.Eval(context), b.Eval(own))


def test_applied_forces_push():
    """A spatial force at a point of the box, and the same on the velocities."""
    ends = []
    for port in ("applied_spatial_force", "applied_generalized_force"):
        builder = DiagramBuilder()
        plant, _ = scene_with_box(builder, RigidTransform([1, 0, 1]))
        system = add_skin(builder, plant, FOLDER / "skinned_leg.skin.yaml")
        simulator = Simulator(system)
        box = plant.GetBodyByName("box")
        force = ExternallyAppliedSpatialForce()
        force.body_index, force.p_BoBq_B = box.index(), [0, 0, 0.01]
        force.F_Bq_W = SpatialForce(tau=[0, 0, 0], f=[0.5, 0, 0])
        on = np.zeros(plant.num_velocities())
        start = box.floating_velocities_start_in_v()
        on[start : start + 6] = 0, 0.005, 0, 0.5, 0, 0
        value = [force] if port == "applied_spatial_force" else on
        system.GetInputPort(port).FixValue(simulator.get_mutable_context(), value)
        simulator.AdvanceTo(0.004)  # one step, at 0 s
        ends.append(system.GetOutputPort("box_state").Eval(simulator.get_context()))
    np.testing.assert_allclose(*ends, atol=1e-12)
    assert ends[0][-3] == pytest.approx(0.5 / 0.1 * 5e-3, rel=1e-9)


@pytest.mark.long
def test_a_camera_sees_the_skin_where_it_is():
    """Pixels of the skin's colour fill what its vertices are projected to."""
    needs_camera()
    builder = DiagramBuilder()
    plant, scene_graph = own_plant(builder)
    system = add_skin(builder, plant, FOLDER / "skinned_leg.skin.yaml")
    scene_graph.AddRenderer("vtk", MakeRenderEngineVtk(RenderEngineVtkParams()))
    lens = CameraInfo(240, 240, np.pi / 4)
    core = RenderCameraCore("vtk", lens, ClippingRange(0.01, 5.0), RigidTransform())
    depth = DepthRenderCamera(core, DepthRange(0.02, 4.0))
    X_WC = RigidTransform(RollPitchYaw(-np.pi / 2, 0, 0), [0, -0.6, 0.12])
    camera = builder.AddSystem(
        RgbdSensor(scene_graph.world_frame_id(), X_WC, ColorRenderCamera(core), depth)
    )
    query = scene_graph.get_query_output_port()
    builder.Connect(query, camera.GetInputPort("geometry_query"))
    builder.ExportInput(system.GetInputPort("desired_position"), "goal")
    diagram = builder.Build()
    simulator = Simulator(diagram)
    diagram.GetInputPort("goal").FixValue(simulator.get_context(), [0.6, -0.9])
    simulator.AdvanceTo(0.1)
    context = simulator.get_context()
    picture = camera.color_image_output_port().Eval(
        camera.GetMyContextFromRoot(context)
    )
    red, _, blue = np.moveaxis(picture.data[:, :, :3].astype(int), 2, 0)
    rows, columns = np.nonzero(red > blue + 15)
    own = system.GetMyContextFromRoot(context)
    x = system.GetOutputPort("vertices").Eval(own).reshape(-1, 3)
    p_C = X_WC.inverse().multiply(x.T)
    u = lens.focal_x() * p_C[0] / p_C[2] + lens.center_x()
    v = lens.focal_y() * p_C[1] / p_C[2] + lens.center_y()
    assert np.abs([columns.min() - u.min(), columns.max() - u.max()]).max() < 2
    assert np.abs([rows.min() - v.min(), rows.max() - v.max()]).max() < 2


def test_two_skinned_robots_side_by_side():
    """Two plants, each with its skin, in one scene: each moves as it does alone."""
    builder = DiagramBuilder()
    scene_graph, systems = builder.AddSystem(SceneGraph()), []
    for _ in range(2):
        plant = MultibodyPlant(0.0)
        plant.RegisterAsSourceForSceneGraph(scene_graph)
        Parser(plant).AddModels(str(FOLDER / "skinned_leg.sdf"))
        plant.Finalize()
        systems.append(add_skin(builder, plant, FOLDER / "skinned_leg.skin.yaml"))
    for k, system in enumerate(systems):
        builder.ExportInput(system.GetInputPort("desired_position"), f"goal_{k}")
    diagram = builder.Build()
    simulator = Simulator(diagram)
    context = simulator.get_context()
    for k in range(2):
        diagram.GetInputPort(f"goal_{k}").FixValue(context, GOAL)
    simulator.AdvanceTo(0.02)
    states = [s.coupled_state(s.GetMyContextFromRoot(context)) for s in systems]
    assert np.array_equal(states[0].q, states[1].q) and np.any(states[0].q)


LEG = FOLDER / "skinned_leg.skin.yaml"


def legs(*apart, floor=False):
    """A plant of legs of the same file, one at each place along y [m]."""
    builder = DiagramBuilder()
    scene_graph = builder.AddSystem(SceneGraph())
    plant = MultibodyPlant(0.0)
    plant.RegisterAsSourceForSceneGraph(scene_graph)
    text = (FOLDER / "skinned_leg.sdf").read_text()
    begin, end = text.index('<joint name="weld"'), text.index('<joint name="hip"')
    skins = []
    for k, y in enumerate(apart):
        parser = Parser(plant, f"leg_{k}")
        (leg,) = parser.AddModelsFromString(text[:begin] + text[end:], "sdf")
        X_WB = RigidTransform([0, y, 0.272])
        base = plant.GetBodyByName("base", leg).body_frame()
        plant.WeldFrames(plant.world_frame(), base, X_WB)
        name = plant.GetModelInstanceName(leg)
        skins.append(PlacedSkin(LEG, name, RigidTransform([0, y, 0])))
    if floor:
        world, mu = plant.world_body(), CoulombFriction(0.4, 0.4)
        X = RigidTransform([0, 0, 9e-4])
        plant.RegisterCollisionGeometry(world, X, HalfSpace(), "floor", mu)
    plant.Finalize()
    return builder, plant, skins


def ran(builder, system, goal, steps):
    builder.ExportInput(system.GetInputPort("desired_position"), "goal")
    diagram = builder.Build()
    simulator = Simulator(diagram)
    diagram.GetInputPort("goal").FixValue(simulator.get_context(), goal)
    simulator.AdvanceTo(steps * system.stepper.dt)
    own = system.GetMyContextFromRoot(simulator.get_context())
    return system.coupled_state(own), own


@pytest.mark.long
def test_two_skins_in_one_plant_move_as_alone():
    """On two legs that do different things, from a floor that they press on."""
    goals, apart = [[0.2, -0.1], [-0.1, 0.2]], (0.0, 0.3)
    builder, plant, skins = legs(*apart, floor=True)
    system = add_skin(builder, plant, skins)
    both, _ = ran(builder, system, np.ravel(goals), 8)
    n = len(both.skin.positions) // 2
    for k, y in enumerate(apart):
        builder, plant, skins = legs(0.0, floor=True)
        system = add_skin(builder, plant, skins)
        alone, _ = ran(builder, system, goals[k], 8)
        np.testing.assert_allclose(both.q[2 * k : 2 * k + 2], alone.q, atol=1e-9)
        x = both.skin.positions[k * n : (k + 1) * n] - [0, y, 0]
        np.testing.assert_allclose(x, alone.skin.positions, atol=1e-9)


def test_two_skins_of_one_plant_touch_each_others_robots():
    """And not the robot that they are glued to."""
    builder, plant, skins = legs(0.0, 0.3)
    system = add_skin(builder, plant, skins)
    shapes, nodes = system.stepper.scene.shapes, system.stepper.scene.nodes
    n = len(system.stepper.model.rest) // 2
    for shape, may in zip(shapes, nodes, strict=True):
        other = shape.owner.startswith("leg_0")
        assert len(may) and ((may >= n) == other).all()


def test_skins_that_share_glue_are_refused():
    builder, plant, skins = legs(0.0)
    with pytest.raises(InvalidInput, match="two skins share glue"):
        add_skin(builder, plant, [*skins, *skins])


def test_a_second_skin_on_a_plant_is_refused():
    builder = DiagramBuilder()
    plant, _ = own_plant(builder)
    add_skin(builder, plant, FOLDER / "skinned_leg.skin.yaml")
    with pytest.raises(InvalidInput, match="the plant has a skin"):
        add_skin(builder, plant, FOLDER / "skinned_leg.skin.yaml")


def test_a_body_inside_the_skin_is_refused():
    builder = DiagramBuilder()
    plant, _ = scene_with_box(builder, RigidTransform([0.03, 0, 0.1]))
    with pytest.raises(InvalidInput, match=r"vertices begin inside .* of body 'box'"):
        add_skin(builder, plant, FOLDER / "skinned_leg.skin.yaml")
