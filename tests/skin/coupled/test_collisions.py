"""What the skin touches: links, ground."""

import numpy as np
import pytest
import trimesh
from pydrake.geometry import Box, Capsule, Cylinder, Mesh, Sphere
from pydrake.math import RigidTransform
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction
from pydrake.multibody.tree import SpatialInertia
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import InvalidInput
from drakebots.fem import Penalty, SkinState
from drakebots.fem.assembly import build_model
from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh, box_mesh
from drakebots.multibody import Slope
from drakebots.skin.coupled import (
    Collisions,
    CoupledState,
    CoupledStepper,
    Glue,
    Servo,
    SkinGround,
    glue_vertices,
    link_contact,
)
from drakebots.skin.coupled.shapes import rigid_shapes
from drakebots.skin.coupled.touch import joined
from tests.helpers.skin_energy import momentum
from tests.helpers.skinned_brick import MASS, brick
from tests.helpers.skinned_leg import DT, Leg, skin_model


@pytest.fixture(scope="module")
def model():
    return skin_model()


def test_shapes_measure_as_drake_does():
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, 1e-3)
    shapes = (
        Sphere(0.03),
        Capsule(0.02, 0.1),
        Cylinder(0.03, 0.08),
        Box(0.05, 0.08, 0.1),
    )
    rng = np.random.default_rng(2)
    for k, shape in enumerate(shapes):
        body = plant.AddRigidBody(
            f"b{k}", SpatialInertia.SolidSphereWithMass(1.0, 0.01)
        )
        pose = RigidTransform(rng.normal(size=3) * 0.02)
        plant.RegisterCollisionGeometry(
            body, pose, shape, "g", CoulombFriction(0.5, 0.5)
        )
    plant.Finalize()
    diagram = builder.Build()
    root = diagram.CreateDefaultContext()
    context = plant.GetMyMutableContextFromRoot(root)
    query = plant.get_geometry_query_input_port().Eval(context)
    bodies = [plant.GetBodyByName(f"b{k}") for k in range(4)]
    found = rigid_shapes(plant, query.inspector(), bodies)
    assert len(found) == 4
    points = rng.normal(size=(60, 3)) * 0.05
    for k, one in enumerate(found):
        (geometry,) = plant.GetCollisionGeometriesForBody(plant.GetBodyByName(f"b{k}"))
        near, d, g = one.near(plant, context, points, 0.03)
        drake = {
            i: each
            for i, p in enumerate(points)
            for each in query.ComputeSignedDistanceToPoint(p, 0.03)
            if each.id_G == geometry
        }
        assert near.tolist() == list(drake)
        for i, distance, gradient in zip(near, d, g):
            assert distance == pytest.approx(drake[i].distance, abs=1e-12)
            assert np.allclose(gradient, drake[i].grad_W, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, -0.5])
def test_plates_of_one_visual_mesh_measure_as_boxes(tmp_path, scale):
    """Two plates far apart, drawn and not for collisions, touched by their name."""
    sizes, places = [(0.1, 0.1, 0.006), (0.08, 0.1, 0.006)], [-0.1, 0.2]
    plates = [trimesh.creation.box(size) for size in sizes]
    for plate, z in zip(plates, places):
        plate.apply_translation([0, 0, z])
    file = tmp_path / "plates.obj"
    trimesh.util.concatenate(plates).export(file)
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, 1e-3)
    bodies = [
        plant.AddRigidBody(name, SpatialInertia.SolidSphereWithMass(1.0, 0.01))
        for name in ("drawn", "boxes")
    ]
    mesh, grey, mu = Mesh(str(file), scale), np.full(4, 0.5), CoulombFriction(0.5, 0.5)
    plant.RegisterVisualGeometry(bodies[0], RigidTransform(), mesh, "plates", grey)
    for size, z in zip(sizes, places):
        X, box = RigidTransform([0, 0, scale * z]), Box(*(abs(scale) * np.array(size)))
        plant.RegisterCollisionGeometry(bodies[1], X, box, f"at {z}", mu)
    plant.Finalize()
    diagram = builder.Build()
    root = diagram.CreateDefaultContext()
    context = plant.GetMyMutableContextFromRoot(root)
    inspector = plant.get_geometry_query_input_port().Eval(context).inspector()
    assert not rigid_shapes(plant, inspector, bodies[:1])
    (drawn,) = rigid_shapes(plant, inspector, bodies[:1], ("plates", "ribs"))
    boxes = rigid_shapes(plant, inspector, bodies[1:], ())
    points = np.random.default_rng(5).uniform(-0.3, 0.3, (4000, 3)) * [0.25, 0.25, 1]
    want = np.full(len(points), np.inf)
    for box in boxes:
        near, distance, _ = box.near(plant, context, points, 1.0)
        want[near] = np.minimum(want[near], distance)
    near, distance, _ = drawn.near(plant, context, points, 4e-3)
    assert near.tolist() == np.flatnonzero(want < 4e-3).tolist() and len(near) > 20
    assert np.allclose(distance, want[near], atol=1e-9)
    assert (distance < 0).any()
    with pytest.raises(InvalidInput, match="no link has a visual shape named ribs"):
        rigid_shapes(plant, inspector, bodies, ("ribs",))


def test_skin_on_links_keeps_momentum():
    """A free link with a ring around it: what one gains the other loses."""
    leg = Leg("free", knee=False, centred=True, gravity=False)
    model = skin_model(Material(youngs_modulus=1e5, poisson_ratio=0.3))
    glue = Glue(np.array([0]), ("thigh",), np.array([model.rest[0]]))
    rng = np.random.default_rng(1)
    contact = link_contact(model, glue, leg.plant, leg.context, Penalty(50.0, 0.1))
    x = model.rest + rng.normal(size=model.rest.shape) * 2e-3
    v = rng.normal(size=x.shape) * 0.1
    leg.plant.SetVelocities(leg.context, rng.normal(size=6) * 0.1)
    skin = SkinState(0.0, x, v)
    pairs = joined(contact.pairs(leg.plant, leg.context, skin, DT))
    G, L = pairs.rows()
    push = rng.uniform(size=len(pairs))
    f, tau = (G.T @ push).reshape(-1, 3), L.T @ push
    assert np.abs(f).max() > 0
    # Velocities are the base's angular and linear ones about its origin.
    origin = leg.plant.EvalBodyPoseInWorld(
        leg.context, leg.plant.GetBodyByName("thigh")
    ).translation()
    assert np.allclose(tau[3:], -f.sum(axis=0), atol=1e-12)
    moment = np.cross(x - origin, f).sum(axis=0)
    assert np.allclose(tau[:3], -moment, atol=1e-12)


@pytest.mark.long
def test_links_keep_the_skin_out(model):
    """A skin sucked inward at the knee stops at the links."""
    leg = Leg()
    wall = tube_model()
    glue = glue_vertices(
        wall.rest,
        leg.plant,
        leg.context,
        {"thigh": np.flatnonzero(wall.rest[:, 2] > 0.19),
         "shin": np.flatnonzero(wall.rest[:, 2] < 0.01)},
    )  # fmt: skip
    push = np.zeros_like(wall.rest)
    middle = np.abs(wall.rest[:, 2] - 0.1) < 0.06
    push[middle, 0] = -4e-4 * np.sign(wall.rest[middle, 0])

    def deepest(collisions):
        context = leg.diagram.CreateDefaultContext()
        run = CoupledStepper(
            leg.plant,
            wall,
            glue,
            DT,
            context=leg.plant.GetMyMutableContextFromRoot(context),
            collisions=collisions,
        )
        state = run.start()
        for _ in range(150):
            result = run.step(state, servo=Servo(50.0, 1.0, np.zeros(2)),
                              skin_forces=push)  # fmt: skip
            assert result.converged, result.message
            state = result.state
        depth = 0.0
        run.pose(state.q, state.v)
        contact = link_contact(wall, glue, leg.plant, leg.context, Penalty(1.0))
        for shape in contact.shapes:
            at = leg.plant, run.context, state.skin.positions
            depth = max(depth, -shape.near(*at, 0.0)[1].min(initial=0.0))
        return depth

    free = deepest(Collisions())
    penalty = Penalty(2e3, 5.0)
    met = deepest(
        Collisions(links=link_contact(wall, glue, leg.plant, leg.context, penalty))
    )
    assert free > 1e-3
    assert met < 1e-4


def tube_model():
    """Two thin plates beside the leg, soft."""
    soft = Material("stable-neo-hookean", youngs_modulus=1e5, poisson_ratio=0.3)
    plate = box_mesh((0.002, 0.02, 0.2), (1, 4, 24))
    one = TetMesh(plate.vertices + np.array([0.012, -0.01, 0]), plate.tets)
    vertices = np.concatenate([one.vertices, one.vertices - [0.026, 0, 0]])
    tets = np.concatenate([one.tets, one.tets + len(one.vertices)])
    return build_model(TetMesh(vertices, tets), soft)


@pytest.mark.long
@pytest.mark.parametrize("dt", [2e-3, DT])
def test_a_soft_block_rests_on_the_ground(dt):
    """Free on an almost massless link: the ground carries its weight, at 5 ms."""
    plant, context = brick(0.1)
    block = box_mesh((0.06, 0.06, 0.06), (4, 4, 4))
    # Damped, or it would rock for long.
    soft = Material(youngs_modulus=2e5, poisson_ratio=0.4, stiffness_damping=0.02)
    rest = TetMesh(block.vertices + np.array([-0.03, -0.03, 0.001]), block.tets)
    model = build_model(rest, soft)
    top = np.flatnonzero(rest.vertices[:, 2] > 0.0609)
    glue = glue_vertices(rest.vertices, plant, context, {"brick": top})
    ground = SkinGround(friction=0.5, stiffness=2e3, damping=20.0)
    run = CoupledStepper(
        plant, model, glue, dt, context=context, collisions=Collisions(ground=ground)
    )
    state = run.start()
    weight = np.array([0, 0, 9.81 * (MASS + model.node_mass.sum())])

    def momentum(state):
        return MASS * state.v[3:] + model.node_mass @ state.skin.velocities

    for _ in range(round(2.0 / dt)):
        result = run.step(state)
        assert result.converged, result.message
        gained, state = momentum(result.state) - momentum(state), result.state
        pushed = dt * (result.forces.on("skin") - weight)
        np.testing.assert_allclose(gained, pushed, atol=1e-9)
    low = state.skin.positions[:, 2]
    carried = 2e3 * np.maximum(-low, 0).sum()
    assert carried == pytest.approx(weight[2], rel=1e-3)
    bottom = np.flatnonzero(rest.vertices[:, 2] < 0.002)
    assert np.array_equal(result.forces.on("skin", bottom), -result.forces.on("ground"))
    assert not result.forces.on("skin", top).any()
    assert np.abs(state.v).max() < 1e-3


@pytest.mark.parametrize("angle", [0.0, 0.3])
def test_ground_brakes_a_sliding_skin(angle):
    """A free skin, no weight on links: friction mu g, once it lies; on a slope it is
    g (sin - mu cos) downhill."""
    leg, terrain = Leg(), Slope(angle)
    down, n = (np.array(e) for e in ([1.0, 0, 0], [0, 0, 1.0]))
    R = terrain.footing(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])).rotation()
    down, n = R.multiply(down), R.multiply(n)
    block = box_mesh((0.06, 0.06, 0.02), (3, 3, 1))
    rest = TetMesh(
        (block.vertices + np.array([1.0, 0, -1e-4])) @ R.matrix().T, block.tets
    )
    two = TetMesh(
        np.concatenate([rest.vertices, rest.vertices * [0.1, 1, 1] + [0, 0, 0.6]]),
        np.concatenate([rest.tets, rest.tets + len(rest.vertices)]),
    )
    model = build_model(two, Material(youngs_modulus=1e6, poisson_ratio=0.3))
    count = len(rest.vertices)
    at = np.arange(count, 2 * count)
    glue = Glue(at, ("world",) * count, two.vertices[count:])
    ground = SkinGround(0.3, 2e3, damping=5.0, slip_speed=1e-3, terrain=terrain)
    run = CoupledStepper(
        leg.plant, model, glue, DT, context=leg.context,
        collisions=Collisions(ground=ground),
    )  # fmt: skip
    state = run.start()
    for _ in range(60):
        state = run.step(state).state
    x, v = state.skin.positions, np.zeros_like(state.skin.positions)
    v[:count] = down
    state = CoupledState(state.q, state.v, SkinState(0.0, x, v))
    mass = model.node_mass[:count].sum()
    slid = []
    for _ in range(25):
        state = run.step(state).state
        slid.append(momentum(model, state.skin)[0] @ down / mass)
    rate = np.polyfit(DT * np.arange(25), slid, 1)[0]
    pull = 9.81 * (np.sin(angle) - 0.3 * np.cos(angle))
    assert rate == pytest.approx(pull, rel=0.05, abs=0.05)
    assert abs((state.skin.velocities[:count] @ n).mean()) < 0.02


@pytest.mark.parametrize(("cells", "stiffness"), [((6, 6, 2), 500.0), ((3, 3, 1), 2e3)])
def test_a_skin_lands_by_coulombs_law(cells, stiffness):
    """A free skin lands at 1 m/s ahead and down: while it slides, friction's impulse is
    mu times the ground's. By the forces at the start of each step it were up to 2.5
    times that."""
    leg, mu = Leg(), 0.2
    block = box_mesh((0.06, 0.06, 0.02), cells)
    rest = TetMesh(block.vertices + np.array([1.0, 0, 0.0113]), block.tets)
    count = len(rest.vertices)
    both = TetMesh(  # of which another far away is glued
        np.concatenate([rest.vertices, rest.vertices + np.array([0, 0, 0.6])]),
        np.concatenate([rest.tets, rest.tets + count]),
    )
    soft = Material(youngs_modulus=1e6, poisson_ratio=0.3, stiffness_damping=1e-3)
    at = np.arange(count, 2 * count)
    glue = Glue(at, ("world",) * count, both.vertices[count:])
    ground = SkinGround(mu, stiffness, damping=stiffness / 1e3)
    run = CoupledStepper(
        leg.plant, build_model(both, soft), glue, DT, context=leg.context,
        collisions=Collisions(ground=ground),
    )  # fmt: skip
    state, impulse = run.start(), np.zeros(3)
    v = np.zeros_like(state.skin.positions)
    v[:count] = [1.0, 0, -1.0]
    state = CoupledState(state.q, state.v, SkinState(0.0, state.skin.positions, v))
    for _ in range(8):
        result = run.step(state)
        assert result.converged, result.message
        state, impulse = result.state, impulse + result.forces.on("skin")
    assert state.skin.velocities[:count, 0].mean() > 0.5  # it slides on
    assert -impulse[0] == pytest.approx(mu * impulse[2], rel=0.1)


def test_links_without_a_scene_are_refused(model):
    plant = Leg(build=False).plant
    glue = Glue(np.array([0]), ("thigh",), np.array([model.rest[0]]))
    with pytest.raises(InvalidInput, match="SceneGraph"):
        link_contact(model, glue, plant, plant.CreateDefaultContext(), Penalty(1.0))
