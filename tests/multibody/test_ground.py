"""Terrain in plants: its shapes agree with its equations, and things rest on it."""

import matplotlib.image
import numpy as np
import pytest
import trimesh
from pydrake.geometry import HalfSpace, Sphere
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.plant import (
    AddMultibodyPlant,
    CoulombFriction,
    MultibodyPlantConfig,
)
from pydrake.multibody.tree import SpatialInertia
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.convert import as_yaml, from_word, from_yaml
from drakebots.core.errors import FileProblem, InvalidInput, UnknownName
from drakebots.formats import load
from drakebots.multibody import (
    Blocks,
    Distances,
    Flat,
    Ground,
    HeightField,
    Image,
    Mesh,
    Plateau,
    SignedDistance,
    Slope,
    Stairs,
    Step,
    Terrain,
    build_robot,
)

G = 9.81


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A box of 20 x 20 x 10 cm, an L of two boxes in mm, and a ramp as a picture."""
    folder = tmp_path_factory.mktemp("terrain")
    box = trimesh.creation.box((0.2, 0.2, 0.1)).apply_translation([0.3, 0, 0.05])
    box.export(folder / "box.obj")
    low = trimesh.creation.box((400, 200, 50)).apply_translation([0, 0, 25])
    high = trimesh.creation.box((200, 200, 50)).apply_translation([100, 0, 75])
    trimesh.boolean.union([low, high], engine="manifold").export(folder / "L.stl")
    ramp = np.tile(np.linspace(0, 1, 64), (32, 1))
    matplotlib.image.imsave(folder / "ramp.png", ramp, cmap="gray", vmin=0, vmax=1)
    return folder


def tilted_field(slope):
    x, y = np.linspace(-1, 1, 6), np.linspace(-1, 1, 5)
    return HeightField(x, y, slope * x[:, None] + np.zeros(5))


CORNERS = [(x, y, -0.02) for x in (-0.03, 0.03) for y in (-0.03, 0.03)]
"""A stool: balls of 1 cm, its lowest points 3 cm below its centre. Of a box Drake's
point contact finds one corner at a time, so it rocks."""


def scene(ground, balls, radius, friction, X_WB, duration):
    """Pose and velocity of a body of 1 kg dropped onto a ground, after a time [s]."""
    builder = DiagramBuilder()
    config = MultibodyPlantConfig(time_step=1e-3, discrete_contact_approximation="sap")
    plant, _ = AddMultibodyPlant(config, builder)
    ground.add_to(plant)
    body = plant.AddRigidBody("body", SpatialInertia.SolidSphereWithMass(1.0, 0.05))
    friction = CoulombFriction(friction, friction)
    for number, at in enumerate(balls):
        X_BG, ball = RigidTransform(at), Sphere(radius)
        plant.RegisterCollisionGeometry(body, X_BG, ball, f"b{number}", friction)
    plant.Finalize()
    simulator = Simulator(builder.Build())
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    plant.SetFreeBodyPose(context, body, X_WB)
    simulator.AdvanceTo(duration)
    v = plant.EvalBodySpatialVelocityInWorld(context, body).translational()
    return plant.EvalBodyPoseInWorld(context, body).translation(), v


@pytest.mark.parametrize(
    "terrain",
    [
        Flat(0.1),
        Slope(0.3),
        Step(0.1, 0.4, 0.15),
        Stairs(0.04, 0.1, 3, start=0.0),
        Blocks(0.1, 0.15, 0.1, start=-0.3),
    ],
    ids=lambda terrain: type(terrain).__name__,
)
def test_shapes_have_the_distances_of_the_equations(terrain):
    """Outside the ground phi is Drake's distance from the nearest of its shapes."""
    p = np.random.default_rng(0).uniform(-0.5, 0.5, (300, 3))
    found = []
    for shape, X_WG in terrain.solids():
        q = X_WG.inverse().multiply(p.T).T
        found.append(Distances(shape)(q)[0])
    phi, distance = terrain.evaluate(p)[0], np.min(found, axis=0)
    outside = distance > 0
    assert 50 < outside.sum() < 300
    np.testing.assert_allclose(phi[outside], distance[outside], atol=1e-9)
    assert (phi[~outside] <= 1e-12).all()
    x, y = p[:, :2].T
    on_top = np.column_stack([x, y, terrain.heights(x, y)])
    np.testing.assert_allclose(terrain.evaluate(on_top)[0], 0.0, atol=1e-12)


def test_every_terrain_is_the_same_in_millimetres(files):
    for terrain in (Stairs(0.02), Mesh(files / "L.stl", scale=1e-3)):
        p = np.random.default_rng(1).uniform(0.0, 0.4, (20, 3))
        phi, n = terrain.evaluate(p)
        scaled, same = terrain.scaled(1e-3).evaluate(1e3 * p)
        np.testing.assert_allclose(scaled, 1e3 * phi, atol=1e-6)
        np.testing.assert_allclose(same, n, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "height"),
    [
        (lambda files: Flat(0.02), 0.02),
        (lambda files: Step(0.2, 0.4, 0.1), 0.1),
        (lambda files: Stairs(0.03, 0.1, 3, start=0.02), 0.09),
        (lambda files: Blocks(0.05, 0.2, 0.1, start=0.2), 0.05),
        (lambda files: Plateau(0.1, 0.5, 0.04), 0.04),
        (lambda files: Mesh(files / "box.obj"), 0.1),
        (lambda files: tilted_field(0.0), 0.0),
    ],
    ids=["flat", "step", "stairs", "blocks", "plateau", "mesh", "field"],
)
def test_a_stool_and_a_ball_rest_on_it(files, make, height):
    """They come to rest where the terrain says, sunk in by less than 0.1 mm."""
    terrain = make(files)
    assert terrain.heights(np.array(0.3), np.array(0.0)) == pytest.approx(height)
    ground = Ground(0.5, stiffness=1e6, terrain=terrain)
    for balls, radius in ((CORNERS, 0.01), ([np.zeros(3)], 0.03)):
        start = RigidTransform([0.3, 0.0, height + 0.0305])
        p, v = scene(ground, balls, radius, 0.5, start, 0.5)
        assert np.abs(v).max() < 1e-3
        assert p == pytest.approx([0.3, 0.0, height + 0.03], abs=1e-4)


@pytest.mark.parametrize("made_of", ["one plane", "triangles"])
def test_a_stool_on_a_slope_sticks_or_slides_by_coulomb(made_of):
    angle = 0.3
    terrain = Slope(-angle) if made_of == "one plane" else tilted_field(np.tan(angle))
    X_WB = terrain.footing(np.array([[0.1, 0, 0], [-0.1, 0.1, 0], [-0.1, -0.1, 0]]))
    X_WB = X_WB @ RigidTransform([0.0, 0.0, 0.03])
    for mu in (0.2, 0.5):
        ground = Ground(mu, stiffness=1e6, terrain=terrain)
        _, v = scene(ground, CORNERS, 0.01, mu, X_WB, 0.3)
        speed = max(0.0, G * 0.3 * (np.sin(angle) - mu * np.cos(angle)))
        assert np.linalg.norm(v) == pytest.approx(speed, rel=0.02, abs=2e-3)
        assert v[0] <= 1e-6  # downhill


def test_a_valley_of_triangles_holds_a_ball():
    """A ball rolls to the bottom of a bowl, over the seams between the triangles."""
    x = np.linspace(-0.5, 0.5, 21)
    bowl = HeightField(x, x, 0.5 * (x[:, None] ** 2 + x**2))
    ground = Ground(0.5, stiffness=1e6, dissipation=20.0, terrain=bowl)
    p, v = scene(
        ground, [np.zeros(3)], 0.05, 0.5, RigidTransform([0.2, 0.1, 0.08]), 0.4
    )
    away = np.linalg.norm(p[:2])
    assert away < 0.22 and 0 < np.linalg.norm(v) < np.sqrt(2 * G * 0.03)
    gap = bowl.evaluate(p[None])[0][0] - 0.05
    assert abs(gap) < 2e-3  # the chord of a square of 5 cm is 0.3 mm above the bowl


def test_a_mesh_on_the_floor(files):
    """A concave mesh is no convex hull, neither in heights and distances nor in SAP."""
    corner = Mesh(files / "L.stl", scale=1e-3)
    x, y = np.array([-0.1, 0.1, 0.5]), np.zeros(3)
    np.testing.assert_allclose(corner.heights(x, y), [0.05, 0.1, 0.0], atol=1e-9)
    phi, n = corner.evaluate([[-0.1, 0, 0.07], [0.4, 0, 0.03]])
    np.testing.assert_allclose(phi, [0.02, 0.03], atol=1e-9)
    np.testing.assert_allclose(n, [[0, 0, 1], [0, 0, 1]], atol=1e-9)
    rows, near, _ = corner.near(np.array([[-0.1, 0, 0.07], [0, 0, 2.0]]), 0.05)
    assert rows.tolist() == [0] and near == pytest.approx(0.02)
    ground = Ground(0.5, stiffness=1e6, terrain=corner)
    p, _ = scene(
        ground, [np.zeros(3)], 0.02, 0.5, RigidTransform([-0.1, 0, 0.0705]), 0.3
    )
    assert p == pytest.approx([-0.1, 0, 0.07], abs=1e-4)
    with pytest.raises(InvalidInput, match=r"no equation.*Stairs"):
        corner.gradient(None)


def test_a_picture_is_a_height_field(files):
    picture = Image(files / "ramp.png", length=2.0, height=0.2, points=11)
    x = np.linspace(-0.8, 0.8, 9)
    found = picture.heights(x, np.zeros(9))
    np.testing.assert_allclose(found, 0.1 * (1 + x), atol=0.012)
    assert picture.z.shape == (11, 6) and np.ptp(picture.y) == 1.0
    kinds = [type(shape) for shape, _ in picture.solids()]
    assert len(kinds) == 2 * 10 * 5 and HalfSpace not in kinds


@pytest.mark.parametrize("terrain", [Slope(0.2), Stairs(0.05, 0.3, start=0.1)])
def test_footing_puts_soles_onto_the_ground(terrain):
    soles = np.array([[0.3, 0.1, 0], [0.3, -0.1, 0], [-0.3, 0.1, 0], [-0.3, -0.1, 0]])
    X = terrain.footing(soles)
    gaps = X.multiply(soles.T).T[:, 2]
    gaps = gaps - terrain.heights(*X.multiply(soles.T)[:2])
    assert gaps.min() == pytest.approx(0.0, abs=1e-12) and gaps.max() < 5e-3
    flat = Flat().footing(soles)
    assert flat.IsExactlyIdentity()
    assert RollPitchYaw(X.rotation()).roll_angle() == pytest.approx(0.0, abs=1e-12)


def test_terrain_is_said_in_a_word_and_kept_in_yaml(files):
    stairs = from_word(Terrain, "stairs:rise=20mm,count=2", "--terrain")
    assert stairs == Stairs(0.02, count=2)
    for terrain in (stairs, Mesh(files / "box.obj"), Slope(0.1)):
        again = from_yaml(Terrain, as_yaml(terrain, Terrain), "terrain")
        assert as_yaml(again, Terrain) == as_yaml(terrain, Terrain)


def test_bad_terrain_is_refused(files, tmp_path):
    with pytest.raises(UnknownName, match=r"hills.*Flat.*Image.*Mesh.*Slope.*Stairs"):
        from_word(Terrain, "hills:height=1", "--terrain")
    with pytest.raises(InvalidInput, match="rise must be > 0"):
        from_word(Terrain, "stairs:rise=-20mm", "--terrain")
    for kind in (Mesh, Image):
        with pytest.raises(FileProblem, match=r"none.obj.*no such file"):
            kind(tmp_path / "none.obj")
        (tmp_path / "bad.obj").write_text("nothing")
        with pytest.raises(FileProblem, match=r"bad.obj.*is no"):
            kind(tmp_path / "bad.obj")
    with pytest.raises(InvalidInput, match="no shape for a plant; give Flat"):
        SignedDistance(lambda p: p[2]).solids()
    sheet = tmp_path / "sheet.obj"
    sheet.write_text("v 0 0 1\nv 1 0 1\nv 0 1 1\nf 1 2 3\n")
    with pytest.raises(InvalidInput, match=r"sheet.obj is open.*close it"):
        Mesh(sheet).evaluate(np.zeros((1, 3)))
    with pytest.raises(InvalidInput, match="no ground under the robot's feet"):
        Mesh(sheet, floor=False).footing(np.array([[5.0, 5.0, 0.0]]))
    many = np.linspace(0, 1, 50)
    hills = HeightField(many, many, 0.01 * np.sin(9 * many)[:, None] + np.zeros(50))
    with pytest.raises(InvalidInput, match=r"4802 triangles, too many.*3000"):
        hills.solids()


SLIDER = """<robot name="slider" xmlns:drake="http://drake.mit.edu"><link name="puck">
<inertial><mass value="0.4"/>
<inertia ixx="1e6" ixy="0" ixz="0" iyy="1e6" iyz="0" izz="1e6"/></inertial>
<collision><geometry><sphere radius="0.02"/></geometry>{material}</collision>
</link></robot>"""
RUBBER = """<drake:proximity_properties><drake:mu_static value="1.5"/>
<drake:mu_dynamic value="1.5"/></drake:proximity_properties>"""


@pytest.mark.parametrize("material", ["", RUBBER])
@pytest.mark.parametrize("friction", [0.0, 0.29, 1.02])
def test_the_grounds_friction_is_that_of_the_pair(tmp_path, material, friction):
    """Whatever the file gives its shapes, or leaves to Drake, which takes 1."""
    path = tmp_path / "slider.urdf"
    path.write_text(SLIDER.format(material=material))
    builder = DiagramBuilder()
    # "similar" would throw it up where it begins to slide.
    ground = Ground(friction)
    robot = build_robot(load(path), builder, ground=ground, contact="lagged")
    simulator = Simulator(builder.Build())
    context = robot.plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    robot.plant.SetPositions(context, [1, 0, 0, 0, 0, 0, 0.02])
    robot.plant.SetVelocities(context, [0, 0, 0, 3.0, 0, 0])
    simulator.AdvanceTo(0.1)  # it settles
    before = robot.plant.GetVelocities(context)[3]
    simulator.AdvanceTo(0.2)
    slower = before - robot.plant.GetVelocities(context)[3]
    assert slower == pytest.approx(0.1 * friction * G, rel=1e-2, abs=1e-9)
