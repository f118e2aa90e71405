"""Skins and what else is in their scene: balls, boxes, slopes, meshes."""

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from pydrake.geometry import (
    Box,
    Capsule,
    Convex,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Mesh,
    Sphere,
)
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.math import SpatialVelocity
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction
from pydrake.multibody.tree import PrismaticJoint, SpatialInertia, UnitInertia
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import InvalidInput
from drakebots.fem.assembly import build_model, elastic_energy
from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh, box_mesh
from drakebots.skin.coupled import (
    CoupledStepper,
    SkinGround,
    StepSolution,
    glue_vertices,
    scene_of,
)
from drakebots.skin.coupled import solver as step_solver

G, UP = 9.81, np.array([0, 0, 1.0])
MIDDLE = np.array([0.05, 0.05, -1e-4])
PAD = Material(youngs_modulus=2e5, poisson_ratio=0.4, density=1000.0)


class Pad:
    """A plate with a pad of skin on it, and whatever else a test puts in the plant.

    Attributes:
        plant: the plant; its `plate` slides along z without friction, or hardly.
        mesh, model: the pad.
        poses, speeds: starts of the free bodies by name.
    """

    def __init__(self, mesh=None, material=PAD, gravity=0.0, slides=True):
        self.builder = DiagramBuilder()
        self.plant, self.graph = AddMultibodyPlantSceneGraph(self.builder, 1e-3)
        self.plant.mutable_gravity_field().set_gravity_vector([0, 0, -gravity])
        self.material, self.shapes = material, 0
        self.poses, self.speeds = {}, {}
        self.mesh = mesh or box_mesh((0.1, 0.1, 0.06), (6, 6, 4))
        plate = self.body("plate", SpatialInertia.SolidBoxWithMass(1, 0.1, 0.1, 0.01))
        along = (-np.inf, np.inf, 0.0) if slides else (0.0, 0.0, 1e9)
        frames = self.plant.world_frame(), plate.body_frame()
        self.plant.AddJoint(PrismaticJoint("lift", *frames, [0, 0, 1], *along))

    def body(self, name, inertia, shape=None, friction=0.6):
        body = self.plant.AddRigidBody(name, inertia)
        if shape is not None:
            self.shape(shape, friction, body=body)
        return body

    def shape(self, shape, friction=0.6, X=None, body=None):
        body = body or self.plant.world_body()
        self.shapes += 1
        name, X = f"shape_{self.shapes}", X or RigidTransform()
        mu = CoulombFriction(friction, friction)
        self.plant.RegisterCollisionGeometry(body, X, shape, name, mu)

    def built(self, dt, *, skin=SkinGround(), glued=np.min, **options):
        """The stepper; the pad's lowest vertices are glued to the plate."""
        self.plant.Finalize()
        self.diagram = self.builder.Build()
        self.roots = [self.diagram.CreateDefaultContext() for _ in range(2)]
        context, self.other = map(self.plant.GetMyMutableContextFromRoot, self.roots)
        for each in (context, self.other):
            self.posed(each)
        self.model = build_model(self.mesh, self.material)
        z = self.model.rest[:, 2]
        held = {"plate": np.flatnonzero(np.abs(z - glued(z)) < 1e-9)}
        glue = glue_vertices(self.model.rest, self.plant, context, held)
        inspector = self.graph.model_inspector()
        scene = scene_of(
            self.plant, inspector, self.model, glue, skin=skin or SkinGround()
        )
        return CoupledStepper(
            self.plant, self.model, glue, dt, context=context, scene=scene, **options
        )

    def posed(self, context):
        """Puts the free bodies where they start."""
        for name, X in self.poses.items():
            body = self.plant.GetBodyByName(name)
            self.plant.SetFreeBodyPose(context, body, X)
        for name, v in self.speeds.items():
            body = self.plant.GetBodyByName(name)
            V = SpatialVelocity(np.zeros(3), np.array(v, float))
            self.plant.SetFreeBodySpatialVelocity(context, body, V)

    def at(self, state):
        self.plant.SetPositions(self.other, state.q)
        self.plant.SetVelocities(self.other, state.v)
        return self.other

    def momentum(self, state):
        L = self.plant.CalcSpatialMomentumInWorldAboutPoint(self.at(state), np.zeros(3))
        return L.translational() + self.model.node_mass @ state.skin.velocities

    def energy(self, state):
        """Kinetic energy and that of the skin [J]."""
        moving = self.plant.CalcKineticEnergy(self.at(state))
        v = state.skin.velocities
        moving += 0.5 * self.model.node_mass @ (v**2).sum(axis=1)
        return moving + elastic_energy(self.model, state.skin.positions)


def runs(stepper, state, steps):
    for _ in range(steps):
        result = stepper.step(state)
        assert result.converged, result.message
        state = result.state
        yield result


@pytest.mark.parametrize("precision", ["double", "single"])
def test_a_ball_on_a_pad_keeps_momentum_and_gains_no_energy(precision):
    pad = Pad()
    pad.body("ball", SpatialInertia.SolidSphereWithMass(0.05, 0.02), Sphere(0.02))
    pad.poses = {"ball": RigidTransform([0.05, 0.05, 0.0801])}
    pad.speeds = {"ball": [0, 0, -0.5]}
    stepper = pad.built(2e-3, precision=precision)
    state = stepper.start()
    before, energies, touched = pad.momentum(state), [pad.energy(state)], 0
    for result in runs(stepper, state, 25):
        touched += len(result.forces.A)
        np.testing.assert_allclose(pad.momentum(result.state), before, atol=1e-12)
        # What the contact's springs hold is not counted: it comes back.
        energies.append(pad.energy(result.state))
    assert touched > 10
    assert max(energies) <= energies[0] * (1 + 1e-9)
    up = result.state.v[-1]
    assert 0.1 < up < 0.5  # it bounces off


def test_kept_factors_do_not_change_what_is_touched(monkeypatch):
    """Contact comes and goes, and some steps are solved again without it."""
    ends, systems, refined = [], [], step_solver.refined

    def seen(system, *args):
        systems.append(system)
        return refined(system, *args)

    monkeypatch.setattr(step_solver, "refined", seen)
    for precision in ("single", "double"):
        pad = Pad(gravity=9.81)
        inertia = SpatialInertia.SolidSphereWithMass(0.05, 0.02)
        pad.body("ball", inertia, Sphere(0.02))
        pad.poses = {"ball": RigidTransform([0.05, 0.05, 0.0801])}
        pad.speeds = {"ball": [0.2, 0, -0.5]}
        stepper = pad.built(2e-3, precision=precision, threads=1)
        *_, last = runs(stepper, stepper.start(), 30)
        ends.append(last)
    one, other = (each.state for each in ends)
    np.testing.assert_allclose(one.v, other.v, rtol=1e-8, atol=1e-8)
    change = np.abs(one.skin.velocities - other.skin.velocities).max()
    assert change < 1e-8
    np.testing.assert_allclose(ends[0].forces.on("ball"), ends[1].forces.on("ball"))
    touched = [each.matrix for each in systems if each.touched is not None]
    assert touched
    for R in touched:  # also where Y has the accuracy of float32 only
        assert np.abs(R - R.T).max() < 1e-12 * np.abs(R).max()


def test_forces_are_the_impulses():
    """Of a box that a pad throws into the air against a floor: all that moves it."""
    pad = Pad(gravity=G)
    inertia = SpatialInertia.SolidBoxWithMass(0.1, 0.04, 0.04, 0.04)
    pad.body("box", inertia, Box(0.04, 0.04, 0.04))
    pad.shape(Box(1, 1, 1), X=RigidTransform([0.59, 0.05, -0.44]))
    # On the pad with one half, over the step beside it with the other.
    pad.poses = {"box": RigidTransform([0.1, 0.05, 0.081])}
    stepper = pad.built(2e-3)
    state, met = stepper.start(), set()
    state.v[0] = 0.3  # the plate rises
    for result in runs(stepper, state, 60):
        before = pad.plant.GetBodyByName("box").EvalSpatialVelocityInWorld(
            pad.at(state)
        )
        after = pad.plant.GetBodyByName("box").EvalSpatialVelocityInWorld(
            pad.at(result.state)
        )
        gained = 0.1 * (after.translational() - before.translational())
        impulse = stepper.dt * (result.forces.on("box") - 0.1 * G * UP)
        np.testing.assert_allclose(gained, impulse, atol=1e-9)
        np.testing.assert_allclose(
            result.forces.on("skin")
            + result.forces.on("box")
            + result.forces.on("world"),
            0.0,
            atol=1e-9,
        )
        met |= set(zip(result.forces.A, result.forces.B))
        state = result.state
    assert {("skin", "box"), ("box", "world")} <= met


@pytest.mark.parametrize("slope", [10, 25])
def test_a_box_on_a_slope_sticks_or_slides(slope):
    """With mu = 0.3 it creeps up to 16.7 degrees, and slides beyond them."""
    angle, mu = np.deg2rad(slope), 0.3
    tilt = RotationMatrix.MakeYRotation(angle)
    pad = Pad(gravity=G)
    inertia = SpatialInertia.SolidBoxWithMass(0.2, 0.1, 0.1, 0.04)
    pad.body("box", inertia, Box(0.1, 0.1, 0.04), mu)
    pad.shape(HalfSpace(), mu, X=RigidTransform(tilt, [0, 0, -1]))
    pad.poses = {"box": RigidTransform(tilt, tilt @ [0, 0, 0.02] - UP)}
    stepper, down = pad.built(5e-3), tilt @ [1, 0, 0]
    speeds = []
    for result in runs(stepper, stepper.start(), 80):
        V = pad.plant.GetBodyByName("box").EvalSpatialVelocityInWorld(
            pad.at(result.state)
        )
        speeds.append(V.translational() @ down)
    if slope < 16:
        assert speeds[-1] < 1e-3  # the speed at which friction creeps
        return
    fall = np.polyfit(stepper.dt * np.arange(40, 80), speeds[40:], 1)[0]
    assert fall == pytest.approx(G * (np.sin(angle) - mu * np.cos(angle)), rel=1e-3)


def test_a_slab_lands_on_a_pad_by_coulombs_law():
    """At 1 m/s ahead and down, on stiff springs: friction's impulse is mu times the
    pad's, of the step's own forces (by those at its start it were 1.26 mu)."""
    pad, mu = Pad(slides=False), 0.3
    inertia = SpatialInertia(0.2, np.zeros(3), UnitInertia(1e6, 1e6, 1e6))
    pad.body("slab", inertia, Box(1, 1, 0.02), mu)
    pad.poses = {"slab": RigidTransform([0.05, 0.05, 0.0713])}
    pad.speeds = {"slab": [1.0, 0, -1.0]}
    law = SkinGround(friction=mu, stiffness=5e3, damping=5.0)
    stepper = pad.built(5e-3, skin=law)
    pushes = [r.forces.on("slab") for r in runs(stepper, stepper.start(), 8)]
    impulse = np.sum(pushes, axis=0)
    assert -impulse[0] == pytest.approx(mu * impulse[2], rel=0.05)


@pytest.fixture(scope="module")
def meshes(tmp_path_factory):
    """A block as an .obj, 0.2 m wide with its top at 0."""
    path = tmp_path_factory.mktemp("mesh") / "block.obj"
    block = trimesh.creation.box((0.2, 0.2, 0.1))
    block.apply_translation([0, 0, -0.05])
    block.export(path)
    return str(path)


@pytest.mark.parametrize("kind", ["box", "half space", "mesh", "convex", "cylinder"])
def test_a_pad_rests_alike_on_every_flat_top(kind, meshes):
    """Below its plate, it carries the plate's weight and its own."""
    top = {
        "box": (Box(0.2, 0.2, 0.1), [0, 0, -0.05]),
        "half space": (HalfSpace(), [0, 0, 0]),
        "mesh": (Mesh(meshes), [0, 0, 0]),
        "convex": (Convex(meshes), [0, 0, 0]),
        "cylinder": (Cylinder(0.2, 0.1), [0, 0, -0.05]),
    }
    shape, at = top[kind]
    mesh = box_mesh((0.1, 0.1, 0.06), (5, 5, 3))
    mesh = TetMesh(mesh.vertices - MIDDLE, mesh.tets)
    pad = Pad(mesh, gravity=G)
    pad.shape(shape, X=RigidTransform(at))
    stepper = pad.built(5e-3, glued=np.max)
    *_, last = runs(stepper, stepper.start(), 120)
    weight = G * (1.0 + pad.model.node_mass.sum())
    assert last.forces.on("skin")[2] == pytest.approx(weight, rel=0.01)
    assert last.forces.on("skin")[:2] == pytest.approx([0, 0], abs=1e-3 * weight)
    # 36 vertices with springs of 500 N/m.
    low = last.state.skin.positions[:, 2].min()
    assert low == pytest.approx(-weight / 36 / 500, rel=0.4)


@pytest.mark.parametrize(
    "shape", [Sphere(0.05), Capsule(0.05, 0.2), Ellipsoid(0.05, 0.05, 0.05)]
)
def test_round_ground_is_touched_where_it_is(shape):
    """Forces pass through the axis of the ball, and are normal where it is smooth."""
    mesh = box_mesh((0.1, 0.1, 0.04), (8, 8, 2))
    pad = Pad(TetMesh(mesh.vertices - MIDDLE, mesh.tets), gravity=G)
    lying = RotationMatrix.MakeYRotation(np.pi / 2)
    pad.shape(shape, 0.0, X=RigidTransform(lying, [0.004, 0.003, -0.05]))
    stepper = pad.built(5e-3, glued=np.max, skin=SkinGround(friction=0.0))
    *_, last = runs(stepper, stepper.start(), 30)
    forces = last.forces
    assert len(forces.A) > 3
    out = forces.p_WC - [0.004, 0.003, -0.05]
    if isinstance(shape, Capsule):
        out[:, 0] = 0.0
    turned = np.cross(out, forces.f_AC_W)
    size = np.linalg.norm(out, axis=1) * np.linalg.norm(forces.f_AC_W, axis=1)
    assert np.linalg.norm(turned, axis=1).max() < 1e-6 * size.max()


@settings(max_examples=25)
@given(
    st.lists(st.floats(0.01, 0.1), min_size=3, max_size=3),
    st.lists(st.floats(-0.2, 0.2), min_size=3, max_size=3),
)
def test_distances_from_ellipsoids(axes, p):
    """The nearest point is on the ellipsoid, along the gradient, and none is nearer."""
    axes, p = np.array(axes), np.array(p)
    pad = Pad()
    pad.shape(Ellipsoid(*axes))
    (shape,) = pad.built(2e-3).scene.shapes
    at = pad.plant, pad.other
    _, (distance,), (n,) = shape.near(*at, p[None], np.inf)
    nearest = p - distance * n
    assert ((nearest / axes) ** 2).sum() == pytest.approx(1, abs=1e-6)
    normal = nearest / axes**2
    assert n @ normal == pytest.approx(np.linalg.norm(normal), rel=1e-6)
    rng = np.random.default_rng(0)
    others = rng.standard_normal((4000, 3))
    others *= axes / np.linalg.norm(others, axis=1, keepdims=True)
    assert np.linalg.norm(others - p, axis=1).min() >= abs(distance) - 1e-7
    assert (distance < 0) == (((p / axes) ** 2).sum() < 1) or abs(distance) < 1e-9


@pytest.mark.long
def layer_force(depth, radius, E, nu, height):
    """Force [N] on a ball that is pressed into a layer, whose bottom is held.

    Hertz's, for a half space, times the series of Dimitriadis et al. (2002) in the
    contact's radius over the layer's height.
    """
    a = -(1.2876 - 1.4678 * nu + 1.3442 * nu**2) / (1 - nu)
    b = (0.6387 - 1.0277 * nu + 1.5164 * nu**2) / (1 - nu)
    chi, pi = np.sqrt(radius * depth) / height, np.pi
    series = 1 - 2 * a / pi * chi + 4 * a**2 / pi**2 * chi**2
    series -= 8 / pi**3 * (a**3 + 4 * pi**2 / 15 * b) * chi**3
    series += 16 * a / pi**4 * (a**3 + 3 * pi**2 / 5 * b) * chi**4
    return 4 / 3 * E / (1 - nu**2) * np.sqrt(radius * depth**3) * series


@pytest.mark.long
def test_a_ball_sinks_in_nearly_as_hertz_has_it():
    """On a block that is graded towards the contact, twenty contact radii wide.

    Linear tets are too stiff there: with 20, 24, 28 and 36 cells a side the depth is
    0.889, 0.922, 0.947 and 0.963 of a layer's, which is 0.971 of a half space's.
    """
    radius, mass, E, nu, height = 0.1, 0.5, 1e5, 0.3, 0.3
    depths = np.linspace(1e-3, 3e-3, 2001)
    force = layer_force(depths, radius, E, nu, height)
    sunk = np.interp(mass * G, force, depths)
    mesh = box_mesh((2.0, 2.0, 1.0), (24, 24, 16))
    x = mesh.vertices - [1, 1, 1]
    graded = height * np.sign(x) * np.abs(x) ** 3
    material = Material(youngs_modulus=E, poisson_ratio=nu, density=100.0)
    pad = Pad(TetMesh(graded, mesh.tets), material, slides=False)
    pad.body("ball", SpatialInertia.SolidSphereWithMass(mass, radius), Sphere(radius))
    pad.poses = {"ball": RigidTransform([0, 0, radius - 0.9 * sunk])}
    stepper = pad.built(2e-2, skin=SkinGround(stiffness=2e4, damping=0.0))
    weight = np.zeros(pad.plant.num_velocities())
    weight[-1] = -mass * G
    state = stepper.start()
    for _ in range(16):
        result = stepper.step(state, generalized_forces=weight)
        assert result.converged, result.message
        state = result.state
    assert abs(state.v[-1]) < 1e-5
    assert result.forces.on("ball")[2] == pytest.approx(mass * G, rel=1e-4)
    depth = radius - (state.q[-1] - state.q[0])
    assert 0.915 * sunk < depth < 0.93 * sunk


def test_a_block_between_plates_is_pressed_as_scikit_fem_has_it():
    """Its bottom held by one plate, its top under the other, which has no friction."""
    skfem = pytest.importorskip("skfem")
    from skfem.models.elasticity import linear_elasticity

    force = 1.5
    pad = Pad(slides=False)
    plate = Box(0.3, 0.3, 0.02)
    pad.body("press", SpatialInertia.SolidBoxWithMass(0.2, 0.3, 0.3, 0.02), plate, 0.0)
    pad.poses = {"press": RigidTransform([0.05, 0.05, 0.07 - 1e-6])}
    law = SkinGround(stiffness=1e6, damping=0.0, friction=0.0)
    stepper = pad.built(2e-2, skin=law)
    weight = np.zeros(pad.plant.num_velocities())
    weight[-1] = -force
    state = stepper.start()
    for _ in range(60):
        result = stepper.step(state, generalized_forces=weight)
        assert result.converged, result.message
        state = result.state
    assert result.forces.on("press")[2] == pytest.approx(force, rel=1e-6)

    cells = pad.mesh.vertices.T.copy(), pad.mesh.tets.T.astype(np.int32).copy()
    vector = skfem.ElementVector(skfem.ElementTetP1())
    basis = skfem.Basis(skfem.MeshTet(*cells), vector)
    mu, lam = PAD.lame
    K = linear_elasticity(lam, mu).assemble(basis)
    z = pad.mesh.vertices[:, 2]
    held = basis.nodal_dofs[:, z < 1e-9].ravel()
    top = basis.nodal_dofs[2, z > 0.06 - 1e-9]
    u = np.zeros(K.shape[0])
    u[top] = -1.0
    u = skfem.solve(*skfem.condense(K, x=u, D=np.concatenate([held, top])))
    u *= force / -(K @ u)[top].sum()
    found = (state.skin.positions - pad.model.rest)[:, 2]
    theirs = u[basis.nodal_dofs[2]]
    assert np.abs(found - theirs).max() < 2e-3 * np.abs(theirs).max()


def test_bad_scenes():
    pad = Pad()
    pad.body("ball", SpatialInertia.SolidSphereWithMass(0.05, 0.02), Sphere(0.02))
    pad.poses = {"ball": RigidTransform([0.05, 0.05, 0.06])}
    stepper = pad.built(2e-3)
    with pytest.raises(InvalidInput, match=r"begin inside .*body 'ball'.*mm; move"):
        stepper.scene.check_apart(pad.plant, stepper.context, pad.model.rest)
    with pytest.raises(InvalidInput, match="generalized forces: 3 numbers, needs 7"):
        stepper.step(stepper.start(), generalized_forces=np.zeros(3))


@pytest.mark.parametrize("spin", [0.0, 30.0, 400.0])
def test_what_comes_near_is_found(spin):
    """Of a turning plate: whatever may come within reach, and nothing else."""
    pad, dt = Pad(), 2e-3
    inertia = SpatialInertia.SolidBoxWithMass(0.05, 0.2, 0.02, 0.02)
    pad.body("bar", inertia, Box(0.2, 0.02, 0.02))
    pad.poses = {"bar": RigidTransform([0.3, -0.1, 0.2])}
    (shape,) = pad.built(dt).scene.shapes
    V = SpatialVelocity(np.array([0, spin / 2, spin]), np.array([3.0, 0, -1.0]))
    pad.plant.SetFreeBodySpatialVelocity(pad.other, shape.body, V)
    rng = np.random.default_rng(5)
    p = rng.uniform([0.1, -0.3, 0], [0.5, 0.1, 0.4], (400, 3))
    v = rng.standard_normal((400, 3))
    reach = rng.uniform(-0.01, 0.02, 400)
    at = pad.plant, pad.other
    _, distance, _ = shape.near(*at, p, np.inf)
    turning = np.cross(V.rotational(), p - [0.3, -0.1, 0.2])
    quick = np.linalg.norm(v, axis=1)
    quick += np.linalg.norm(V.translational() + turning, axis=1)
    expected = np.flatnonzero(distance < reach + dt * quick)
    found, *_ = shape.near(*at, p, reach, v, dt)
    assert len(expected) > 0 and np.array_equal(found, expected)


def test_an_open_mesh_is_refused(tmp_path):
    """Drake takes all that lies behind it, and beside it, to be inside."""
    sheet = trimesh.creation.box((0.2, 0.2, 0.1))
    sheet.update_faces(np.arange(len(sheet.faces)) > 1)
    sheet.export(tmp_path / "sheet.obj")
    pad = Pad()
    pad.shape(Mesh(str(tmp_path / "sheet.obj")))
    with pytest.raises(InvalidInput, match=r"'shape_1' of body 'world', a Mesh; make"):
        pad.built(2e-3)


def test_bodies_of_one_name_are_told_apart():
    pad = Pad()
    inertia, mu = SpatialInertia.SolidSphereWithMass(0.05, 0.02), CoulombFriction(0, 0)
    for model in ("left", "right"):
        instance = pad.plant.AddModelInstance(model)
        ball = pad.plant.AddRigidBody("ball", instance, inertia)
        name = f"{model}_ball"
        pad.plant.RegisterCollisionGeometry(
            ball, RigidTransform(), Sphere(0.02), name, mu
        )
    scene = pad.built(2e-3).scene
    assert {shape.owner for shape in scene.shapes} == {"left::ball", "right::ball"}


def test_a_solution_that_is_not_finite_keeps_its_contacts():
    """Without them the step might succeed, through the floor."""
    pad = Pad()
    pad.body("ball", SpatialInertia.SolidSphereWithMass(0.05, 0.02), Sphere(0.02))
    pad.poses = {"ball": RigidTransform([0.05, 0.05, 0.0795])}
    stepper = pad.built(2e-3)
    state = stepper.start()
    at = pad.plant, stepper.context
    touched = stepper.scene.touched(*at, state.skin, stepper.dt)
    nodes, nv = state.skin.positions.shape, pad.plant.num_velocities()
    broken = StepSolution(np.full(nv, np.nan), np.zeros(nodes), np.zeros((0, 3)))
    assert touched.pushing(broken) is touched


def test_a_plant_without_other_bodies_has_no_scene():
    assert Pad().built(2e-3).scene is None
