"""What the skin and the feet touch: links, ground; and servos that saturate."""

import numpy as np
import pytest
from pydrake.geometry import Box, Capsule, Cylinder, Sphere
from pydrake.math import RigidTransform
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction
from pydrake.multibody.tree import SpatialInertia
from pydrake.systems.framework import DiagramBuilder
from scipy.optimize import minimize
from skinned_leg import DT, INSTANCE, Leg, skin_model, stepper

from drakebots.errors import InvalidInput
from drakebots.fem.assembly import build_model
from drakebots.fem.collision import Penalty
from drakebots.fem.dynamics import SkinState, momentum
from drakebots.fem.materials import Material
from drakebots.fem.mesh import TetMesh
from drakebots.fem.mesh_shapes import box_mesh
from drakebots.skin.collisions import Collisions, SkinGround, link_contact
from drakebots.skin.contact import PatchContact, minimise_rubbing
from drakebots.skin.coupled import ReducedSystem
from drakebots.skin.description import Patches
from drakebots.skin.glue import Glue, glue_vertices
from drakebots.skin.laws import minimise
from drakebots.skin.link_shapes import LinkShape, link_shapes
from drakebots.skin.servo import ServoLaw, servo_law
from drakebots.skin.skeleton import Servo
from drakebots.skin.stepper import CoupledState, CoupledStepper

FEATHER = Material(youngs_modulus=1e-9, poisson_ratio=0.4, density=1e-9)
LIMIT = np.array([0.4, 0.1])


@pytest.fixture(scope="module")
def model():
    return skin_model()


# --- servos -----------------------------------------------------------------


def test_a_servo_within_its_limit_is_the_implicit_servo(model):
    servo = Servo(20.0, 0.3, np.array([0.1, -0.1]))
    free = stepper(Leg(), model)
    limited = stepper(Leg(), model, effort_limits=np.array([100.0, 100.0]))
    a, b = (run.step(run.start(), servo=servo) for run in (free, limited))
    assert np.allclose(a.state.q, b.state.q, rtol=1e-9)
    assert np.allclose(a.torques, b.torques, rtol=1e-9)
    assert np.allclose(a.state.skin.positions, b.state.skin.positions, atol=1e-9 * 1e-3)
    expected = 20.0 * (servo.position - a.state.q) - 0.3 * a.state.v
    assert np.allclose(a.torques, expected, rtol=1e-9)


def test_a_saturated_servo_is_a_constant_torque(model):
    servo = Servo(200.0, 0.0, np.array([1.0, -1.0]))
    run = stepper(Leg(), model, effort_limits=LIMIT)
    result = run.step(run.start(), servo=servo)
    assert np.array_equal(result.torques, LIMIT * [1, -1])
    plain = stepper(Leg(), model)
    expected = plain.step(plain.start(), LIMIT * [1, -1])
    assert np.allclose(result.state.q, expected.state.q, rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_saturation_solves_its_complementarity(model, seed):
    """Some joints at their limit, some not: tau = clip(wish(q+))."""
    rng = np.random.default_rng(seed)
    run = stepper(Leg(), model, effort_limits=LIMIT)
    state = run.start(v=rng.normal(size=2) * 3)
    k, d = rng.uniform(0, 300, 2), rng.uniform(0, 1, 2)
    servo = Servo(k, d, rng.normal(size=2) * 0.2, rng.normal(size=2))
    given = rng.normal(size=2) * 0.2
    result = run.step(state, given, servo=servo)
    after = result.state
    wish = k * (servo.position - after.q) + d * (servo.velocity - after.v) + given
    expected = np.clip(wish, -LIMIT, LIMIT)
    assert np.allclose(result.torques, expected, rtol=1e-7, atol=1e-9)


def test_effort_limits_hold_over_a_motion(model):
    run = stepper(Leg(), model, effort_limits=LIMIT)
    state, torques = run.start(), []
    for k in range(60):
        servo = Servo(60.0, 0.5, np.array([0.8, -0.8]) * np.sin(12 * k * DT))
        result = run.step(state, servo=servo)
        assert result.converged, result.message
        state = result.state
        torques.append(result.torques)
    share = np.abs(torques) / LIMIT
    assert share.max() == 1.0 and (share < 1).any()


def test_limits_refused(model):
    for bad, said in (([1.0], "needs 2"), ([-1.0, 1.0], ">= 0"), ([np.nan, 1], ">= 0")):
        limits = np.array(bad) if len(bad) > 1 else np.ones(3)
        with pytest.raises(InvalidInput, match=said):
            stepper(Leg(), model, effort_limits=limits)


# --- contact points ---------------------------------------------------------


@pytest.mark.parametrize("bound", [0.0, 3.0])
def test_laws_are_gradients_of_their_energies(bound):
    rng = np.random.default_rng(0)
    law = (
        PatchContact(stiffness=1e3)
        .law(*_box_points(), DT)
        .rubbing(np.full(4, bound), DT)
    )
    servo = ServoLaw(np.eye(2), np.array([0.3, 5.0]), np.array([4.0, 0.0]), LIMIT)
    for one, size in ((law, 1e-3), (servo, 0.1)):
        n = len(one.rows)
        for _ in range(5):
            y, h = size * rng.normal(size=n), 1e-9
            slope = np.array(
                [(one.energy(y + h * e) - one.energy(y - h * e)) / 2 / h
                 for e in np.eye(n)]
            )  # fmt: skip
            assert np.allclose(-slope, one.force(y), rtol=1e-5, atol=1e-4)
            moved = [
                (one.force(y + h * e) - one.force(y - h * e)) / 2 / h for e in np.eye(n)
            ]
            assert np.allclose(-np.array(moved), one.stiffness(y), rtol=1e-4, atol=1e-2)


SIZE, MASS = 0.1, 2.0
CORNERS = [[x, y, -SIZE / 2] for x in (-0.05, 0.05) for y in (-0.05, 0.05)]
PATCHES = (Patches("foot", "brick", CORNERS),)


_ALIVE = []
"""Diagrams of the plants below, which must live as long."""


def _brick(height=SIZE / 2, gravity=(0, 0, -9.81)):
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, 1e-3)
    inertia = SpatialInertia.SolidBoxWithMass(MASS, SIZE, SIZE, SIZE)
    body = plant.AddRigidBody("brick", inertia)
    friction = CoulombFriction(0.5, 0.5)
    box = Box(SIZE, SIZE, SIZE)
    plant.RegisterCollisionGeometry(body, RigidTransform(), box, "box", friction)
    plant.mutable_gravity_field().set_gravity_vector(np.array(gravity, float))
    plant.Finalize()
    diagram = builder.Build()
    root = diagram.CreateDefaultContext()
    context = plant.GetMyMutableContextFromRoot(root)
    plant.SetFreeBodyPose(context, body, RigidTransform([0, 0, height]))
    _ALIVE.append((diagram, root))
    return plant, context


def _box_points():
    plant, context = _brick(SIZE / 2 - 1e-3)
    return plant, context, PATCHES


def brick_stepper(plant, context, dt=DT, **options):
    model = build_model(box_mesh((SIZE,) * 3, (2, 2, 2)), FEATHER)
    held = {"brick": range(9)}
    glue = glue_vertices(model.rest - SIZE / 2, plant, context, held)
    return CoupledStepper(
        plant, model, glue, dt, context=context, patches=PATCHES, **options
    )


def run_brick(run, state, frames, tau=None):
    for _ in range(frames):
        result = run.step(state)
        assert result.converged, result.message
        state = result.state
    return result


@pytest.mark.parametrize("dt", [1e-3, DT])
def test_a_dropped_brick_rests_on_its_points(dt):
    plant, context = _brick(SIZE / 2 + 0.02)
    contact = PatchContact(stiffness=2e4, damping=50.0)
    run = brick_stepper(plant, context, dt, patch_contact=contact)
    result = run_brick(run, run.start(), round(1.0 / dt))
    sink = MASS * 9.81 / (4 * 2e4)
    assert np.allclose(result.state.q[6], SIZE / 2 - sink, atol=1e-7)
    assert np.abs(result.state.v).max() < 1e-6
    assert np.allclose(result.patch_forces.sum(axis=0), [0, 0, MASS * 9.81], atol=1e-5)


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_friction_holds_or_brakes_as_coulomb(share):
    """On an incline of tan = share mu: it sticks, or slides as it should."""
    mu, g = 0.5, 9.81
    slope = np.arctan(share * mu)
    gravity = g * np.array([np.sin(slope), 0, -np.cos(slope)])
    plant, context = _brick(SIZE / 2 - MASS * g / 8e4, gravity)
    contact = PatchContact(friction=mu, slip_speed=1e-4)
    run = brick_stepper(plant, context, patch_contact=contact)
    state = run_brick(run, run.start(), 20).state
    v0 = state.v[3]
    result = run_brick(run, state, 40)
    gain = (result.state.v[3] - v0) / (40 * DT)
    f = result.patch_forces.sum(axis=0)
    if share < 1:
        # It creeps at its share of slip_speed.
        assert np.isclose(result.state.v[3], share * 1e-4, rtol=0.02)
        assert np.isclose(f[0], -MASS * gravity[0], rtol=1e-3)
    else:
        assert np.isclose(gain, gravity[0] + mu * gravity[2], rtol=1e-3)
        assert np.isclose(f[0], -mu * f[2], rtol=1e-3)


def test_a_point_never_pulls():
    plant, context = _brick()
    run = brick_stepper(plant, context, patch_contact=PatchContact(damping=500.0))
    state = run.start(v=[0, 0, 0, 0, 0, 1.0])
    for _ in range(5):
        result = run.step(state)
        assert (result.patch_forces[:, 2] >= 0).all()
        state = result.state
    assert np.isclose(state.v[5], 1.0 - 9.81 * 5 * DT, rtol=1e-9)


def test_newton_finds_the_minimum(model):
    """Against SciPy's minimiser, servos and points together."""
    leg = Leg()
    contact = PatchContact(stiffness=1e3, height=0.005)
    patches = (Patches("toe", "shin", [[0, 0, -0.1], [0.01, 0, -0.1]]),)
    run = stepper(leg, model, patches=patches, patch_contact=contact)
    state = run.start(v=[2.0, -3.0])
    frame = run.frame(state)
    system = ReducedSystem(frame, run.solver)
    servo = servo_law(
        frame.skeleton.B, Servo(50.0, 0.5, [0.5, -0.1]), state.q, DT, LIMIT
    )
    patch = contact.law(leg.plant, run.context, patches, DT).rubbing([2.0, 1.0], DT)
    r = system.right_side()
    z = minimise(system, [servo, patch], r, system.back(r))

    def merit(z):
        own = servo.energy(servo.rows @ z) + patch.energy(patch.rows @ z)
        return 1e3 * (0.5 * z @ system.matrix @ z - r @ z + own)

    best = minimize(merit, z + 1e-3, method="Nelder-Mead", options={"xatol": 1e-10})
    assert merit(z) <= best.fun + 1e-9
    assert np.allclose(z, best.x, atol=1e-5)
    found, forces = minimise_rubbing(system, [servo], patch, r, DT)
    y = (patch.rows @ found).reshape(-1, 3)
    slip = np.linalg.norm(y[:, :2], axis=1)
    assert (slip > 0).all()
    rubbed = np.linalg.norm(forces[:, :2], axis=1)
    assert np.allclose(
        rubbed,
        0.8 * forces[:, 2] * np.minimum(1.0, slip / (contact.slip_speed * DT)),
        rtol=5e-3,
        atol=1e-9,
    )


def test_contact_numbers_refused():
    for kind in (PatchContact, SkinGround):
        for name, value in (
            ("friction", -1.0),
            ("stiffness", 0.0),
            ("damping", np.nan),
            ("slip_speed", 0.0),
            ("height", np.inf),
        ):
            with pytest.raises(InvalidInput, match=name) as caught:
                kind(**{name: value})
            assert "\n" not in str(caught.value)


# --- the skin ---------------------------------------------------------------


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
    found = link_shapes(plant, context)
    assert len(found) == 4
    points = rng.normal(size=(60, 3)) * 0.05
    for k, one in enumerate(found):
        assert isinstance(one, LinkShape)
        (geometry,) = plant.GetCollisionGeometriesForBody(plant.GetBodyByName(f"b{k}"))
        X_WG = query.inspector().GetPoseInFrame(geometry)
        d, g = one.distance(points - X_WG.translation())
        for i, p in enumerate(points):
            drake = next(
                r for r in query.ComputeSignedDistanceToPoint(p) if r.id_G == geometry
            )
            assert d[i] == pytest.approx(drake.distance, abs=1e-12)
            assert np.allclose(g[i], drake.grad_W, atol=1e-9)


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
    f, tau = contact.forces(leg.plant, leg.context, SkinState(0.0, x, v))
    assert np.abs(f).max() > 0
    # Velocities are the base's angular and linear ones about its origin.
    origin = leg.plant.EvalBodyPoseInWorld(
        leg.context, leg.plant.GetBodyByName("thigh")
    ).translation()
    assert np.allclose(tau[3:], -f.sum(axis=0), atol=1e-12)
    moment = np.cross(x - origin, f).sum(axis=0)
    assert np.allclose(tau[:3], -moment, atol=1e-12)


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
        for shape in link_shapes(leg.plant, leg.context):
            X = leg.plant.EvalBodyPoseInWorld(run.context, shape.body)
            X_WG = X.multiply(shape.X_BG)
            p = X_WG.inverse().multiply(state.skin.positions.T).T
            depth = max(depth, -shape.distance(p)[0].min())
        return depth

    free = deepest(Collisions())
    penalty = Penalty(20.0, 0.02)
    met = deepest(
        Collisions(links=link_contact(wall, glue, leg.plant, leg.context, penalty))
    )
    assert free > 1e-3
    assert met < 0.3 * free


def tube_model():
    """Two thin plates beside the leg, soft."""
    soft = Material("stable-neo-hookean", youngs_modulus=1e5, poisson_ratio=0.3)
    plate = box_mesh((0.002, 0.02, 0.2), (1, 4, 24))
    one = TetMesh(plate.vertices + np.array([0.012, -0.01, 0]), plate.tets)
    vertices = np.concatenate([one.vertices, one.vertices - [0.026, 0, 0]])
    tets = np.concatenate([one.tets, one.tets + len(one.vertices)])
    return build_model(TetMesh(vertices, tets), soft)


@pytest.mark.parametrize("dt", [2e-3, DT])
def test_a_soft_block_rests_on_the_ground(dt):
    """Free on an almost massless link: the ground carries its weight, at 5 ms."""
    plant, context = _brick(0.1)
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
    for _ in range(round(2.0 / dt)):
        result = run.step(state)
        assert result.converged, result.message
        state = result.state
    low = state.skin.positions[:, 2]
    carried = 2e3 * np.maximum(-low, 0).sum()
    weight = 9.81 * (MASS + model.total_mass)
    assert carried == pytest.approx(weight, rel=1e-3)
    assert np.abs(state.v).max() < 1e-3


def test_ground_brakes_a_sliding_skin():
    """A free skin, no weight on links: friction mu g, once it lies."""
    leg = Leg()
    block = box_mesh((0.06, 0.06, 0.02), (3, 3, 1))
    rest = TetMesh(block.vertices + np.array([1.0, 0, -1e-4]), block.tets)
    two = TetMesh(
        np.concatenate([rest.vertices, rest.vertices * [0.1, 1, 1] + [0, 0, 0.2]]),
        np.concatenate([rest.tets, rest.tets + len(rest.vertices)]),
    )
    model = build_model(two, Material(youngs_modulus=1e6, poisson_ratio=0.3))
    n = len(rest.vertices)
    glue = Glue(np.arange(n, 2 * n), ("world",) * n, two.vertices[n:])
    ground = SkinGround(friction=0.3, stiffness=2e3, damping=5.0, slip_speed=1e-3)
    run = CoupledStepper(
        leg.plant, model, glue, DT, context=leg.context,
        collisions=Collisions(ground=ground),
    )  # fmt: skip
    state = run.start()
    for _ in range(60):
        state = run.step(state).state
    x, v = state.skin.positions, np.zeros_like(state.skin.positions)
    v[:n, 0] = 1.0
    state = CoupledState(state.q, state.v, SkinState(0.0, x, v))
    mass = model.node_mass[:n].sum()
    slid = []
    for _ in range(25):
        state = run.step(state).state
        slid.append(momentum(model, state.skin)[0][0] / mass)
    rate = np.polyfit(DT * np.arange(25), slid, 1)[0]
    assert rate == pytest.approx(-0.3 * 9.81, rel=0.05)


def test_a_mesh_on_a_link_is_refused():
    leg = Leg(build=False)
    plant = leg.plant
    assert INSTANCE and plant.is_finalized()
    with pytest.raises(InvalidInput, match="SceneGraph"):
        link_shapes(plant, plant.CreateDefaultContext())
