"""A plant in mm, g, ms is the SI plant in other units: all numbers agree."""

import numpy as np
import pytest
from pydrake.geometry import Box, Capsule, Sphere
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, MultibodyPlant
from pydrake.multibody.tree import (
    ForceElementIndex,
    JointActuatorIndex,
    LinearSpringDamper,
    MultibodyForces,
    PrismaticSpring,
    RevoluteSpring,
    SpatialInertia,
    UnitInertia,
)
from pydrake.systems.framework import DiagramBuilder

import drakebots
from drakebots import build_robot
from drakebots.core.errors import InvalidInput
from drakebots.core.units import MM_G_MS, SI, Scaling
from drakebots.multibody.scaled import copy_scaled, scaled_shape

ODD = Scaling(length=0.02, mass=3e-3, time=0.7)
INERTIAL = """<inertial><pose>0.01 0.02 -0.01 0 0 0</pose><mass>0.3</mass><inertia>
  <ixx>1e-3</ixx><iyy>1.2e-3</iyy><izz>0.9e-3</izz><ixy>1e-5</ixy><ixz>-2e-5</ixz>
  <iyz>3e-5</iyz></inertia></inertial>"""


def link(name, extra=""):
    return f"<link name='{name}'>{INERTIAL}{extra}</link>"


def collision(name, shape):
    return f"""<collision name="{name}"><pose>0.01 0 0.03 0.1 0 0</pose><geometry>
      {shape}</geometry><drake:proximity_properties>
      <drake:mu_dynamic>0.4</drake:mu_dynamic><drake:mu_static>0.4</drake:mu_static>
      <drake:point_contact_stiffness>1234</drake:point_contact_stiffness>
      <drake:hunt_crossley_dissipation>0.7</drake:hunt_crossley_dissipation>
      </drake:proximity_properties></collision>"""


SDF = f"""<?xml version="1.0"?>
<sdf version="1.9" xmlns:drake="http://drake.mit.edu"><model name="zoo">
{link("trunk", collision("s", "<sphere><radius>0.05</radius></sphere>"))}
{link("arm", collision("b", "<box><size>0.1 0.2 0.3</size></box>"))}
{
    link(
        "slide",
        collision(
            "c",
            "<capsule><radius>0.02</radius><length>0.1</length></capsule>",
        ),
    )
}
{link("cardan")}{link("ball")}{link("plate")}
<joint name="hinge" type="revolute"><parent>trunk</parent><child>arm</child>
  <pose>0.1 0 0.2 0.3 0 0</pose><axis><xyz>0 0.6 0.8</xyz>
  <limit><lower>-1.1</lower><upper>1.3</upper><effort>7</effort></limit>
  <dynamics><damping>0.02</damping><spring_stiffness>0.5</spring_stiffness>
  <spring_reference>0.1</spring_reference></dynamics></axis>
  <drake:rotor_inertia>2e-5</drake:rotor_inertia>
  <drake:gear_ratio>9</drake:gear_ratio></joint>
<joint name="rail" type="prismatic"><parent>trunk</parent><child>slide</child>
  <pose>0 0.1 0 0 0.2 0</pose><axis><xyz>1 0 0</xyz>
  <limit><lower>-0.2</lower><upper>0.4</upper><effort>11</effort></limit>
  <dynamics><damping>0.3</damping><spring_stiffness>40</spring_stiffness>
  <spring_reference>0.03</spring_reference></dynamics></axis>
  <drake:rotor_inertia>1e-5</drake:rotor_inertia>
  <drake:gear_ratio>50</drake:gear_ratio></joint>
<joint name="cardan_joint" type="universal"><parent>arm</parent><child>cardan</child>
  <pose>0 0 0.1 0 0 0</pose><axis><xyz>1 0 0</xyz>
  <dynamics><damping>0.004</damping></dynamics></axis>
  <axis2><xyz>0 1 0</xyz><dynamics><damping>0.004</damping></dynamics></axis2></joint>
<joint name="ball_joint" type="ball"><parent>slide</parent><child>ball</child>
  <pose>0 0 0.1 0 0 0</pose><axis><dynamics><damping>0.003</damping></dynamics></axis>
  </joint>
<drake:joint name="planar_joint" type="planar"><drake:parent>trunk</drake:parent>
  <drake:child>plate</drake:child>
  <drake:damping>0.2 0.3 0.01</drake:damping></drake:joint>
<drake:linear_spring_damper>
  <drake:linear_spring_damper_body_A>arm</drake:linear_spring_damper_body_A>
  <drake:linear_spring_damper_p_AP>0.1 0 0</drake:linear_spring_damper_p_AP>
  <drake:linear_spring_damper_body_B>slide</drake:linear_spring_damper_body_B>
  <drake:linear_spring_damper_p_BQ>0 0.2 0.3</drake:linear_spring_damper_p_BQ>
  <drake:linear_spring_damper_free_length>0.15</drake:linear_spring_damper_free_length>
  <drake:linear_spring_damper_stiffness>60</drake:linear_spring_damper_stiffness>
  <drake:linear_spring_damper_damping>0.8</drake:linear_spring_damper_damping>
</drake:linear_spring_damper>
</model></sdf>"""


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    path = tmp_path_factory.mktemp("zoo") / "zoo.sdf"
    path.write_text(SDF)
    return drakebots.load(path)


@pytest.fixture(scope="module")
def hamr():
    return drakebots.load("hamr")


def pair(model, base, scaling):
    return [
        build_robot(model, scaling=s, base=base, time_step=0) for s in (SI, scaling)
    ]


def forces(plant, context):
    """Springs, dampers, gravity and velocity terms, by inverse dynamics."""
    applied = MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, applied)
    rest = np.zeros(plant.num_velocities())
    return -plant.CalcInverseDynamics(context, rest, applied)


def assert_same_dynamics(si, other, seed, spread):
    """M and tau of both plants at random q, v; compared where numbers are near
    1, in the scaled units."""
    rng = np.random.default_rng(seed)
    unit, v_unit = other.scaling, other.velocity_units()
    for _ in range(3):
        q = rng.uniform(-spread, spread, other.plant.num_positions())
        v = rng.uniform(-0.1, 0.1, other.plant.num_velocities())
        contexts = [robot.plant.CreateDefaultContext() for robot in (si, other)]
        si.plant.SetPositions(contexts[0], q * other.position_units())
        si.plant.SetVelocities(contexts[0], v * v_unit)
        other.plant.SetPositions(contexts[1], q)
        other.plant.SetVelocities(contexts[1], v)
        M, M_scaled = (r.plant.CalcMassMatrix(c) for r, c in zip((si, other), contexts))
        M = M * np.outer(v_unit, v_unit) / unit.torque
        assert np.abs(M - M_scaled).max() < 1e-10 * np.abs(M).max()
        tau, tau_scaled = (forces(r.plant, c) for r, c in zip((si, other), contexts))
        tau = tau * v_unit / (unit.torque / unit.time)
        assert np.abs(tau - tau_scaled).max() < 1e-10 * np.abs(tau).max()
        bias, bias_scaled = (
            r.plant.CalcBiasTerm(c) for r, c in zip((si, other), contexts)
        )
        bias = bias * v_unit / (unit.torque / unit.time)
        assert np.abs(bias - bias_scaled).max() < 1e-10 * np.abs(bias).max()


@pytest.mark.parametrize("base", ["fixed", "euler"])
def test_hamr_dynamics_do_not_depend_on_units(hamr, base):
    """Inertia, gravity, flexure springs, damping and Coriolis terms of HAMR."""
    assert_same_dynamics(*pair(hamr, base, MM_G_MS), 4, 0.3)


@pytest.mark.parametrize("scaling", [MM_G_MS, ODD], ids=["mm_g_ms", "odd"])
@pytest.mark.parametrize("base", ["fixed", "euler", "rpy"])
def test_zoo_dynamics_do_not_depend_on_units(zoo, base, scaling):
    """The same for every kind of joint, spring, damper and actuator inertia,
    also in units that are no power of ten of each other."""
    assert_same_dynamics(*pair(zoo, base, scaling), 5, 0.4)


def test_closure_does_not_depend_on_units(hamr):
    """Loop residuals are lengths or directions; C takes velocities to them."""
    si, mm = pair(hamr, "fixed", MM_G_MS)
    q = np.random.default_rng(6).uniform(-0.2, 0.2, 32)
    contexts = [r.plant.CreateDefaultContext() for r in (si, mm)]
    si.plant.SetPositions(contexts[0], q * mm.position_units())
    mm.plant.SetPositions(contexts[1], q)
    np.testing.assert_allclose(
        si.closure.gaps(contexts[0]), 1e-3 * mm.closure.gaps(contexts[1]), rtol=1e-10
    )
    feet = [r.feet_positions(c) for r, c in zip((si, mm), contexts)]
    np.testing.assert_allclose(*feet, atol=1e-15)


def test_everything_is_copied(zoo):
    """Counts, limits, defaults, springs, actuators: value over unit."""
    si, mm = pair(zoo, "fixed", MM_G_MS)
    a, b, unit = si.plant, mm.plant, MM_G_MS
    for count in (
        "num_bodies",
        "num_joints",
        "num_force_elements",
        "num_actuators",
        "num_positions",
        "num_velocities",
    ):
        assert getattr(a, count)() == getattr(b, count)(), count
    assert a.GetPositionNames() == b.GetPositionNames()
    assert a.num_force_elements() == 4 and a.num_actuators() == 2
    q_unit = mm.position_units()
    np.testing.assert_allclose(
        b.GetPositionLowerLimits() * q_unit, a.GetPositionLowerLimits()
    )
    np.testing.assert_allclose(
        b.GetPositionUpperLimits() * q_unit, a.GetPositionUpperLimits()
    )
    rail = b.GetJointByName("rail")
    assert rail.position_lower_limits()[0] == pytest.approx(-200)
    assert rail.position_upper_limits()[0] == pytest.approx(400)
    hinge = b.GetJointByName("hinge")
    assert hinge.position_upper_limits()[0] == pytest.approx(1.3)
    np.testing.assert_allclose(b.gravity_field().gravity_vector()[2], -9.81e-3)
    assert b.CalcTotalMass(b.CreateDefaultContext()) == pytest.approx(6 * 300)
    springs = {
        type(b.get_force_element(ForceElementIndex(i))): b.get_force_element(
            ForceElementIndex(i)
        )
        for i in range(b.num_force_elements())
    }
    revolute, prismatic = springs[RevoluteSpring], springs[PrismaticSpring]
    assert revolute.default_stiffness() == pytest.approx(0.5 / unit.torque)
    assert revolute.default_nominal_angle() == pytest.approx(0.1)
    assert prismatic.stiffness() == pytest.approx(40e-3)  # N/mm
    assert prismatic.nominal_position() == pytest.approx(30)  # mm
    damper = springs[LinearSpringDamper]
    assert damper.free_length() == pytest.approx(150)
    assert damper.stiffness() == pytest.approx(60e-3)
    assert damper.damping() == pytest.approx(0.8)  # N s/m is N ms/mm
    np.testing.assert_allclose(damper.p_BQ(), [0, 200, 300])
    for i in range(2):
        x, y = (p.get_joint_actuator(JointActuatorIndex(i)) for p in (a, b))
        linear = x.joint().name() == "rail"
        effort = unit.force if linear else unit.torque
        assert y.effort_limit() * effort == pytest.approx(11 if linear else 7)
        assert y.default_rotor_inertia() * unit.inertia == pytest.approx(
            x.default_rotor_inertia()
        )
        gear = y.default_gear_ratio() / (unit.length if linear else 1)
        assert gear == pytest.approx(50 if linear else 9)
    rotors = [
        a.get_joint_actuator(JointActuatorIndex(i)).default_rotor_inertia()
        for i in range(2)
    ]
    assert rotors == [2e-5, 1e-5]


def test_collision_geometry_is_copied(zoo):
    """Shapes shrink with the unit of length, materials keep their meaning."""
    builder = DiagramBuilder()
    robot = build_robot(zoo, builder, scaling=MM_G_MS, time_step=1e-3)
    inspector = robot.scene_graph.model_inspector()
    shapes = {}
    for name in ("trunk", "arm", "slide"):
        (geometry,) = robot.plant.GetCollisionGeometriesForBody(
            robot.plant.GetBodyByName(name)
        )
        shapes[name] = inspector.GetShape(geometry)
        pose = inspector.GetPoseInFrame(geometry)
        np.testing.assert_allclose(pose.translation(), [10, 0, 30])
        assert pose.rotation().ToRollPitchYaw().roll_angle() == pytest.approx(0.1)
        material = inspector.GetProximityProperties(geometry)
        stiffness = material.GetProperty("material", "point_contact_stiffness")
        assert stiffness == pytest.approx(1.234)  # N/mm
        dissipation = material.GetProperty("material", "hunt_crossley_dissipation")
        assert dissipation == pytest.approx(0.7)  # s/m is ms/mm
        friction = material.GetProperty("material", "coulomb_friction")
        assert friction.static_friction() == pytest.approx(0.4)
    assert isinstance(shapes["trunk"], Sphere)
    assert shapes["trunk"].radius() == pytest.approx(50)
    assert isinstance(shapes["arm"], Box)
    np.testing.assert_allclose(shapes["arm"].size(), [100, 200, 300])
    assert isinstance(shapes["slide"], Capsule)
    assert shapes["slide"].length() == pytest.approx(100)


def test_filters_of_collisions_are_copied(tmp_path):
    """Links that a file keeps from touching pass through one another in any units."""
    ball = "<sphere><radius>0.05</radius></sphere>"
    links = "".join(link(name, collision(name, ball)) for name in "abcd")
    joints = "".join(
        f"""<joint name="to_{name}" type="revolute"><parent>a</parent>
          <child>{name}</child><axis><xyz>0 0 1</xyz></axis></joint>"""
        for name in "bcd"
    )
    sdf = f"""<sdf version="1.9" xmlns:drake="http://drake.mit.edu"><model name="m">
      {links}{joints}<drake:collision_filter_group name="g">
      <drake:member>b</drake:member><drake:member>c</drake:member>
      <drake:ignored_collision_filter_group>g</drake:ignored_collision_filter_group>
      </drake:collision_filter_group></model></sdf>"""
    path = tmp_path / "m.sdf"
    path.write_text(sdf)

    def candidates(scaling):
        builder = DiagramBuilder()
        robot = build_robot(drakebots.load(path), builder, scaling=scaling)
        inspector = robot.scene_graph.model_inspector()
        return {
            frozenset(inspector.GetName(g).rpartition("::")[2] for g in pair)
            for pair in inspector.GetCollisionCandidates()
        }

    left = {frozenset("bd"), frozenset("cd")}
    assert candidates(SI) == candidates(MM_G_MS) == left


def test_a_point_of_mass_is_copied():
    """Rounding to other units may not make its inertia one that no body has."""
    source = MultibodyPlant(0.0)
    inertia = SpatialInertia(
        13.715, [0, 0.03, 0.043794], UnitInertia.PointMass([0, 0.03, 0.043794])
    )
    source.AddRigidBody("ball", inertia)
    source.Finalize()
    target = MultibodyPlant(0.0)
    copy_scaled(source, None, target, MM_G_MS)
    copy = target.GetBodyByName("ball").default_spatial_inertia()
    assert copy.get_mass() == pytest.approx(13715)
    np.testing.assert_allclose(copy.get_com(), [0, 30, 43.794])


def test_what_has_no_copy_is_refused():
    """A joint that cannot be scaled is an error, not left out."""
    from pydrake.multibody.parsing import Parser

    sdf = f"""<sdf version="1.9"><model name="m">{link("a")}{link("b")}
      <joint name="thread" type="screw"><parent>a</parent><child>b</child>
      <axis><xyz>0 0 1</xyz></axis><screw_thread_pitch>0.01</screw_thread_pitch>
      </joint></model></sdf>"""
    source, geometry = AddMultibodyPlantSceneGraph(DiagramBuilder(), 1e-3)
    Parser(source).AddModelsFromString(sdf, "sdf")
    source.Finalize()
    with pytest.raises(InvalidInput, match="thread"):
        copy_scaled(source, geometry, MultibodyPlant(0.0), MM_G_MS)
    with pytest.raises(InvalidInput, match="MeshcatCone"):
        from pydrake.geometry import MeshcatCone

        scaled_shape(MeshcatCone(1.0), 1e-3)
