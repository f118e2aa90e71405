"""The skeletons' SDF in Drake."""

import logging

import numpy as np
import pytest
from pydrake.geometry import (
    AddContactMaterial,
    AddRigidHydroelasticProperties,
    HalfSpace,
    ProximityProperties,
)
from pydrake.math import RigidTransform
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction
from pydrake.multibody.tree import (
    JacobianWrtVariable,
    JointActuatorIndex,
    MultibodyForces,
    PdControllerGains,
)
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

import drakebots
from drakebots.design import table1_template
from drakebots.design.skeleton import edit, skeleton_sdf, write_sdf
from drakebots.design.skeleton.sdf import feet_yaml
from drakebots.model import read_sidecar, sidecar_path
from tests.helpers.standing import com_of, standing_torques

ROBOTS = ("beetle", "monster", "lizard", "cow")


class Parsed:
    """A skeleton, and its SDF in a plant."""

    def __init__(self, name, ground=False, gains=None):
        self.template = table1_template(name)
        self.skeleton = self.template.skeleton()
        builder = DiagramBuilder()
        self.plant, _ = AddMultibodyPlantSceneGraph(builder, 2e-3)
        text = skeleton_sdf(self.skeleton)
        (self.instance,) = Parser(self.plant).AddModelsFromString(text, "sdf")
        if ground:
            rigid = ProximityProperties()
            AddRigidHydroelasticProperties(rigid)
            AddContactMaterial(0, 100, CoulombFriction(0.8, 0.8), rigid)
            self.plant.RegisterCollisionGeometry(
                self.plant.world_body(), RigidTransform(), HalfSpace(), "ground", rigid
            )
        for k in range(self.plant.num_actuators() if gains else 0):
            actuator = self.plant.get_joint_actuator(JointActuatorIndex(k))
            actuator.set_controller_gains(PdControllerGains(p=gains[0], d=gains[1]))
        self.plant.Finalize()
        self.diagram = builder.Build()
        self.root = self.diagram.CreateDefaultContext()
        self.context = self.plant.GetMyMutableContextFromRoot(self.root)


@pytest.fixture(scope="module", params=ROBOTS)
def parsed(request):
    return Parsed(request.param)


class _Heard(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


@pytest.mark.parametrize("name", ROBOTS)
def test_parser_says_nothing(name):
    log, heard = logging.getLogger("drake"), _Heard()
    level = log.level
    log.addHandler(heard)
    log.setLevel(logging.WARNING)
    try:
        Parsed(name)
    finally:
        log.setLevel(level)
        log.removeHandler(heard)
    assert heard.lines == []


def test_joints_and_actuators(parsed):
    plant, hinges = parsed.plant, parsed.skeleton.hinges
    assert plant.num_actuators() == plant.num_velocities() - 6 == len(hinges)
    assert plant.GetUniqueFloatingBaseBodyOrThrow(parsed.instance).name() == "torso"
    for k, hinge in enumerate(hinges):
        actuator = plant.get_joint_actuator(JointActuatorIndex(k))
        joint = actuator.joint()
        assert actuator.name() == joint.name() == hinge.name
        assert actuator.effort_limit() == hinge.servo.effort
        assert joint.velocity_upper_limit() == pytest.approx(hinge.servo.speed)
        assert joint.position_lower_limit() == pytest.approx(hinge.lower)
        np.testing.assert_allclose(joint.revolute_axis(), hinge.axis)


def test_poses_and_masses_at_rest(parsed):
    plant, context, skeleton = parsed.plant, parsed.context, parsed.skeleton
    assert plant.CalcTotalMass(context) == pytest.approx(skeleton.mass, rel=1e-9)
    com = plant.CalcCenterOfMassPositionInWorld(context)
    np.testing.assert_allclose(com, com_of(skeleton), atol=1e-9)
    for link in skeleton.links:
        body = plant.GetBodyByName(link.name)
        X_WB = plant.EvalBodyPoseInWorld(context, body)
        np.testing.assert_allclose(X_WB.translation(), link.origin, atol=1e-9)
        np.testing.assert_allclose(X_WB.rotation().matrix(), np.eye(3), atol=1e-9)
        M = body.CalcSpatialInertiaInBodyFrame(context)
        about = M.Shift(M.get_com()).CalcRotationalInertia().CopyToFullMatrix3()
        np.testing.assert_allclose(about, link.inertia, rtol=1e-6, atol=1e-12)
        assert M.IsPhysicallyValid()


def test_soles_touch_the_ground_and_links_do_not_touch(parsed):
    query = parsed.plant.get_geometry_query_input_port().Eval(parsed.context)
    assert query.ComputePointPairPenetration() == []
    inspector = query.inspector()
    low = []
    for sole in parsed.skeleton.soles:
        body = parsed.plant.GetBodyByName(sole.link)
        for shape in parsed.plant.GetCollisionGeometriesForBody(body):
            box = inspector.GetShape(shape)
            X_WG = query.GetPoseInWorld(shape)
            low.append(X_WG.translation()[2] - box.size()[2] / 2)
    np.testing.assert_allclose(low, 0, atol=1e-9)


def test_every_link_has_collision_geometry_to_glue_to(parsed):
    for link in parsed.skeleton.links:
        body = parsed.plant.GetBodyByName(link.name)
        assert 1 <= len(parsed.plant.GetCollisionGeometriesForBody(body)) <= 2


def test_standing_torques_are_drakes_inverse_dynamics(parsed):
    """Vertical forces at the soles' middles and gravity leave no other force."""
    plant, context, skeleton = parsed.plant, parsed.context, parsed.skeleton
    n = plant.num_velocities()
    forces = MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, forces)
    tau = plant.CalcInverseDynamics(context, np.zeros(n), forces)
    world = plant.world_frame()
    middle = np.array(
        [skeleton.link(s.link).origin + s.p_BP[4] for s in skeleton.soles]
    )
    arm = middle - com_of(skeleton)
    balance = np.stack([np.ones(4), arm[:, 0], arm[:, 1]])
    f = np.linalg.pinv(balance) @ [9.81 * skeleton.mass, 0, 0]
    for sole, force in zip(skeleton.soles, f):
        frame = plant.GetBodyByName(sole.link).body_frame()
        J = plant.CalcJacobianTranslationalVelocity(
            context, JacobianWrtVariable.kV, frame, sole.p_BP[4], world, world
        )
        tau -= J.T @ [0, 0, force]
    np.testing.assert_allclose(tau[:6], 0, atol=1e-6)
    np.testing.assert_allclose(tau[6:], standing_torques(skeleton), atol=1e-6)


@pytest.mark.parametrize("name", ROBOTS)
def test_stands_two_seconds_in_drake(name):
    robot = Parsed(name, ground=True, gains=(60.0, 1.0))
    plant, context = robot.plant, robot.context
    start = plant.GetPositions(context).copy()
    port = plant.get_desired_state_input_port(robot.instance)
    port.FixValue(context, np.zeros(2 * plant.num_actuators()))
    Simulator(robot.diagram, robot.root).AdvanceTo(2.0)
    q = plant.GetPositions(context)
    np.testing.assert_allclose(q[4:7], start[4:7], atol=1.5e-3)
    assert abs(q[0]) > np.cos(np.radians(0.5) / 2)
    assert np.abs(plant.GetVelocities(context)).max() < 1e-2


def test_text_is_the_same_again_and_changes_with_a_parameter():
    template = table1_template("cow")
    text = skeleton_sdf(template.skeleton())
    assert text == skeleton_sdf(table1_template("cow").skeleton())
    assert text != skeleton_sdf(edit(template, {"front.upper": 0.11}).skeleton())


def test_written_files_are_a_drakebots_model(tmp_path):
    skeleton = table1_template("lizard").skeleton()
    path = write_sdf(skeleton, tmp_path / "new")
    assert sorted(p.name for p in path.parent.iterdir()) == [
        "lizard.drakebots.yaml",
        "lizard.sdf",
    ]
    first = path.read_bytes()
    assert write_sdf(skeleton, tmp_path / "new").read_bytes() == first
    model = drakebots.load(str(path))
    assert len(model.feet) == 20
    feet = read_sidecar(sidecar_path(path)).feet
    for sole in skeleton.soles:
        mine = [foot for foot in feet if foot.name.startswith(f"{sole.foot}_")]
        np.testing.assert_allclose([m.p_BF for m in mine], sole.p_BP, atol=1e-9)
        assert {m.body for m in mine} == {sole.link}
    assert feet_yaml(skeleton) == sidecar_path(path).read_text()
