"""One robot on every kind of base: the same mass, at the same pose."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, RevoluteJoint, SpatialInertia
from pydrake.systems.framework import DiagramBuilder

import drakebots
from drakebots import build_robot
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.units import MM_G_MS
from drakebots.multibody import EULER_JOINTS, Ground, root_bodies
from drakebots.multibody.base import BASES

INERTIAL = """<inertial><pose>0.02 0 0.01 0 0 0</pose><mass>{}</mass><inertia>
  <ixx>0.02</ixx><iyy>0.03</iyy><izz>0.04</izz></inertia></inertial>"""
ARM = f"""<sdf version="1.9"><model name="m"><link name="trunk">{INERTIAL.format(2)}
  </link><link name="arm"><pose>0.3 0 0 0 0 0</pose>{INERTIAL.format(0.5)}</link>
  <joint name="j" type="revolute"><parent>trunk</parent><child>arm</child>
  <axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"""
TWO = f"""<sdf version="1.9"><model name="m"><link name="a">{INERTIAL.format(1)}</link>
  <link name="b">{INERTIAL.format(1)}</link></model></sdf>"""
WELDED = f"""<sdf version="1.9"><model name="m"><link name="a">{INERTIAL.format(1)}
  </link><joint name="w" type="fixed"><parent>world</parent><child>a</child></joint>
  </model></sdf>"""
RAIL = f"""<sdf version="1.9"><model name="m"><link name="a">{INERTIAL.format(1)}
  </link><joint name="rail" type="prismatic"><parent>world</parent><child>a</child>
  <axis><xyz>1 0 0</xyz></axis></joint></model></sdf>"""
FLOATING = ("quaternion", "rpy", "euler")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("base"), {}
    for name, text in {"arm": ARM, "two": TWO, "weld": WELDED, "rail": RAIL}.items():
        (folder / f"{name}.sdf").write_text(text)
        found[name] = drakebots.load(folder / f"{name}.sdf")
    return found


@pytest.fixture(scope="module")
def arms(models):
    return {
        base: build_robot(models["arm"], base=base, scaling=MM_G_MS, time_step=0)
        for base in BASES
    }


@pytest.fixture(scope="module")
def hamrs():
    model = drakebots.load("hamr")
    return {
        base: build_robot(model, base=base, scaling=MM_G_MS, time_step=0)
        for base in BASES
    }


length = st.floats(-2, 2)
pose = st.builds(
    lambda rpy, p: RigidTransform(RollPitchYaw(*rpy), p),
    st.tuples(st.floats(-3, 3), st.floats(-1.5, 1.5), st.floats(-3, 3)),
    st.tuples(length, length, length),
)


@settings(max_examples=50, deadline=None)
@given(X_WB=pose, angle=st.floats(-3, 3))
def test_all_bases_reach_a_pose(arms, X_WB, angle):
    """Trunk and arm are where the pose (in m) and the joint put them, on every
    floating base; so is the centre of mass."""
    tip = X_WB @ RigidTransform([0.3, 0, 0])
    turn = RigidTransform(RotationMatrix.MakeYRotation(angle), np.zeros(3))
    for base in FLOATING:
        robot = arms[base]
        plant, context = robot.plant, robot.plant.CreateDefaultContext()
        robot.set_base_pose(context, X_WB)
        plant.GetJointByName("j").set_angle(context, angle)
        coms = []
        for name, expected, mass in (("trunk", X_WB, 2), ("arm", tip @ turn, 0.5)):
            X = plant.EvalBodyPoseInWorld(context, plant.GetBodyByName(name))
            np.testing.assert_allclose(
                X.translation() / 1e3, expected.translation(), atol=1e-12
            )
            np.testing.assert_allclose(
                X.rotation().matrix(), expected.rotation().matrix(), atol=1e-12
            )
            coms.append(mass * (expected @ [0.02, 0, 0.01]))
        com = plant.CalcCenterOfMassPositionInWorld(context) / 1e3
        np.testing.assert_allclose(com, sum(coms) / 2.5, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(X_WB=pose, seed=st.integers(0, 1000))
def test_all_bases_have_the_same_inertia(arms, X_WB, seed):
    """The kinetic energy of one motion of the trunk is the same on every base:
    the massless bodies of the euler base add nothing. (The pitch stays clear of
    90 degrees, where roll and yaw coincide.)"""
    rng = np.random.default_rng(seed)
    twist, rate = rng.uniform(-1, 1, 6), rng.uniform(-1, 1)
    energies = []
    for base in FLOATING:
        plant = arms[base].plant
        context = plant.CreateDefaultContext()
        arms[base].set_base_pose(context, X_WB)
        v = np.zeros(plant.num_velocities())
        trunk = plant.GetBodyByName("trunk")
        joint = plant.GetJointByName("j").velocity_start()
        columns = np.zeros((6, len(v)))
        for i in range(len(v)):  # of the trunk's spatial velocity
            plant.SetVelocities(context, np.eye(len(v))[i])
            V = plant.EvalBodySpatialVelocityInWorld(context, trunk)
            columns[:, i] = V.get_coeffs()
        free = np.delete(np.arange(len(v)), joint)
        v[free] = np.linalg.solve(columns[:, free], twist)
        v[joint] = rate
        plant.SetVelocities(context, v)
        M = plant.CalcMassMatrix(context)
        assert plant.CalcKineticEnergy(context) == pytest.approx(v @ M @ v / 2)
        energies.append(plant.CalcKineticEnergy(context))
    np.testing.assert_allclose(energies, energies[0], rtol=1e-8)


@settings(max_examples=10, deadline=None)
@given(X_WB=pose)
def test_hamr_bodies_are_in_place_on_every_base(hamrs, X_WB):
    """All of HAMR's bodies are where they are on its fixed base, moved by the
    pose of the base; its loops stay closed."""
    fixed = hamrs["fixed"].plant
    at_home = fixed.CreateDefaultContext()
    for base in FLOATING:
        robot = hamrs[base]
        context = robot.plant.CreateDefaultContext()
        robot.set_base_pose(context, X_WB)
        assert robot.closure.gaps(context).max() < 1e-6
        expected = RigidTransform(X_WB.rotation(), X_WB.translation() * 1e3)
        for i in range(1, fixed.num_bodies()):
            body = fixed.get_body(BodyIndex(i))
            X = fixed.EvalBodyPoseInWorld(at_home, body)
            other = robot.plant.GetBodyByName(body.name())
            X_other = robot.plant.EvalBodyPoseInWorld(context, other)
            assert X_other.IsNearlyEqualTo(expected @ X, 1e-8), body.name()


def test_all_bases_have_the_same_mass(arms, hamrs):
    """The mass does not depend on the base; the coordinates do as documented."""
    sizes = {"quaternion": (7, 6), "rpy": (6, 6), "euler": (6, 6), "fixed": (0, 0)}
    for robots, joints in ((arms, 1), (hamrs, 32)):
        masses = []
        for base, (nq, nv) in sizes.items():
            plant = robots[base].plant
            masses.append(plant.CalcTotalMass(plant.CreateDefaultContext()))
            assert plant.num_positions() == nq + joints
            assert plant.num_velocities() == nv + joints
        np.testing.assert_allclose(masses, masses[0], rtol=1e-14)
    assert masses[0] * 1e-3 == pytest.approx(drakebots.load("hamr").summary.mass)


def test_euler_velocities_are_rates(arms):
    """On the euler base qdot = v, and R_WB = Rz(yaw) Ry(pitch) Rx(roll)."""
    plant = arms["euler"].plant
    context = plant.CreateDefaultContext()
    rng = np.random.default_rng(1)
    v = rng.normal(size=7)
    plant.SetPositions(context, rng.uniform(-1, 1, 7))
    np.testing.assert_array_equal(plant.MapVelocityToQDot(context, v), v)
    values = dict(zip(EULER_JOINTS, rng.uniform(-1, 1, 6)))
    q = np.zeros(7)
    for name, value in values.items():
        q[plant.GetJointByName(f"trunk_{name}").position_start()] = value
    plant.SetPositions(context, q)
    X = plant.EvalBodyPoseInWorld(context, plant.GetBodyByName("trunk"))
    R = (
        RotationMatrix.MakeZRotation(values["yaw"])
        @ RotationMatrix.MakeYRotation(values["pitch"])
        @ RotationMatrix.MakeXRotation(values["roll"])
    )
    np.testing.assert_allclose(X.rotation().matrix(), R.matrix(), atol=1e-14)
    np.testing.assert_allclose(X.translation(), [values[k] for k in "xyz"], atol=1e-14)


def test_a_free_fall_is_one_on_every_base(arms):
    """Weight acts alike: at rest, all bases accelerate by g downwards."""
    for base in FLOATING:
        robot = arms[base]
        plant, context = robot.plant, robot.plant.CreateDefaultContext()
        X = RigidTransform(RollPitchYaw(0.3, 0.2, -0.5), [0.1, 0.2, 0.3])
        robot.set_base_pose(context, X)
        M = plant.CalcMassMatrix(context)
        vdot = np.linalg.solve(M, plant.CalcGravityGeneralizedForces(context))
        # From rest a small step of vdot moves the trunk with the same velocity.
        plant.SetVelocities(context, vdot)
        V = plant.EvalBodySpatialVelocityInWorld(context, plant.GetBodyByName("trunk"))
        np.testing.assert_allclose(V.rotational(), 0, atol=1e-10)
        np.testing.assert_allclose(V.translational(), [0, 0, -9.81e-3], atol=1e-10)


def test_unknown_base(models):
    """The bases that exist are listed."""
    with pytest.raises(UnknownName, match=r"euler.*fixed.*quaternion.*rpy"):
        build_robot(models["arm"], base="eulr", time_step=0)


@pytest.mark.parametrize("base", ["rpy", "euler", "fixed"])
def test_two_free_bodies(models, base):
    """Only a model with one free body has "the" base; else Drake's default."""
    with pytest.raises(InvalidInput, match=r"2 \(a, b\)"):
        build_robot(models["two"], base=base, time_step=0)
    robot = build_robot(models["two"], time_step=0)
    assert robot.plant.num_positions() == 14


def test_model_welded_to_the_world(models):
    """A model that is already fixed has no base to float or to place."""
    for base in ("rpy", "euler"):
        with pytest.raises(InvalidInput, match="none"):
            build_robot(models["weld"], base=base, time_step=0)
    robot = build_robot(models["weld"], base="fixed", time_step=0)
    assert root_bodies(robot.plant) == []
    with pytest.raises(InvalidInput, match="no floating base"):
        robot.set_base_pose(robot.plant.CreateDefaultContext(), RigidTransform())


def test_fixed_base_has_no_pose_to_set(arms):
    """A welded trunk cannot be placed."""
    context = arms["fixed"].plant.CreateDefaultContext()
    with pytest.raises(InvalidInput, match="no floating base"):
        arms["fixed"].set_base_pose(context, RigidTransform())


def test_slider_on_the_world_is_no_base(models):
    """A model on a rail of its own has no floating base to place."""
    robot = build_robot(models["rail"], base="fixed", time_step=0)
    with pytest.raises(InvalidInput, match="no floating base"):
        robot.set_base_pose(robot.plant.CreateDefaultContext(), RigidTransform())


def test_robots_of_one_builder_have_names_of_their_own(models):
    builder = DiagramBuilder()
    robots = [build_robot(models["arm"], builder) for _ in range(2)]
    diagram = builder.Build()
    names = [system.get_name() for system in diagram.GetSystems()]
    assert names == ["plant", "scene_graph", "plant_2", "scene_graph_2"]
    assert diagram.GetSubsystemByName("plant_2") is robots[1].plant


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model": "arm.sdf"}, r"model must be a model, as load\(file\) gives one"),
        ({"ground": 0.6}, "ground must be a Ground, got 0.6"),
        ({"ground": Ground(0.6), "builder": None}, "a ground needs a builder"),
    ],
)
def test_a_robot_of_something_else_is_refused(models, given, words):
    with pytest.raises(InvalidInput, match=words):
        build_robot(**{"model": models["arm"], "builder": DiagramBuilder(), **given})


def test_a_rod_that_bears_a_link_of_the_robot_is_no_base():
    """As the achilles rods of Cassie, parents of springs that shins bear already."""
    plant = MultibodyPlant(0.0)
    for name in ("pelvis", "shin", "rod"):
        plant.AddRigidBody(name, SpatialInertia.SolidSphereWithMass(1.0, 0.1))
    for parent, child in (("pelvis", "shin"), ("rod", "shin")):
        frames = (plant.GetFrameByName(each) for each in (parent, child))
        plant.AddJoint(RevoluteJoint(f"{parent}_{child}", *frames, [0, 1, 0]))
    assert [body.name() for body in root_bodies(plant)] == ["pelvis"]
