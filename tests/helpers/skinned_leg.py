"""A two-link leg in a soft box, and free bodies in one, for the tests."""

import numpy as np
from pydrake.geometry import Capsule
from pydrake.math import RigidTransform
from pydrake.multibody.plant import (
    AddMultibodyPlant,
    CoulombFriction,
    MultibodyPlantConfig,
)
from pydrake.multibody.tree import (
    FixedOffsetFrame,
    JointActuatorIndex,
    PdControllerGains,
    RevoluteJoint,
    SpatialInertia,
)
from pydrake.systems.framework import DiagramBuilder

from drakebots.fem.assembly import build_model
from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh, box_mesh
from drakebots.skin.coupled import CoupledStepper, glue_by_radius

INSTANCE = "DefaultModelInstance"
WIDTH, LENGTH, RADIUS = 0.04, 0.2, 0.008
DT = 5e-3
SOFT = Material(youngs_modulus=3e5, poisson_ratio=0.4, density=1000.0)


class Leg:
    """Thigh over shin along z, knee about y at half the length.

    Attributes:
        plant, diagram, root: in a diagram with a SceneGraph, posed straight.
        context: of the plant.
    """

    def __init__(
        self,
        base="hip",
        dt=1e-3,
        damping=0.0,
        gravity=True,
        knee=True,
        centred=False,
        gains=None,
        build=True,
    ):
        self.builder = builder = DiagramBuilder()
        config = MultibodyPlantConfig(time_step=dt, use_sampled_output_ports=False)
        plant, _ = AddMultibodyPlant(config, builder)
        if not gravity:
            plant.mutable_gravity_field().set_gravity_vector(np.zeros(3))
        half = LENGTH / 2
        inertia = SpatialInertia.SolidCylinderWithMass(0.3, RADIUS, half, [0, 0, 1])
        # From the link's origin to its centre of mass, which is half way down.
        back = [0, 0, 0 if centred else half / 2]
        links = {}
        for name in ("thigh", "shin") if knee else ("thigh",):
            links[name] = body = plant.AddRigidBody(name, inertia.Shift(back))
            plant.RegisterCollisionGeometry(
                body,
                RigidTransform([0, 0, -half / 2]),
                Capsule(RADIUS, half - 2 * RADIUS),
                name,
                CoulombFriction(0.5, 0.5),
            )
        down = RigidTransform([0, 0, -half])
        y = [0, 1, 0]
        if base == "hip":
            top = RigidTransform([0, 0, LENGTH])
            hip = plant.AddJoint(
                RevoluteJoint(
                    "hip",
                    _fixed(plant, top),
                    links["thigh"].body_frame(),
                    y,
                    damping=damping,
                )
            )
            plant.AddJointActuator("hip", hip)
        if knee:
            joint = plant.AddJoint(
                RevoluteJoint(
                    "knee",
                    _fixed(plant, down, links["thigh"]),
                    links["shin"].body_frame(),
                    y,
                    damping=damping,
                )
            )
            plant.AddJointActuator("knee", joint)
        for k in range(plant.num_actuators() if gains else 0):
            plant.get_joint_actuator(JointActuatorIndex(k)).set_controller_gains(
                PdControllerGains(p=gains[0], d=gains[1])
            )
        plant.Finalize()
        self.plant = plant
        if not build:
            return  # for whoever adds more to the builder
        self.diagram = builder.Build()
        self.root = self.diagram.CreateDefaultContext()
        self.context = plant.GetMyMutableContextFromRoot(self.root)
        if base == "free":
            plant.SetFreeBodyPose(
                self.context, links["thigh"], RigidTransform([0, 0, LENGTH])
            )

    def glue(self, vertices, **options):
        """Vertices within 4 mm of a link; those near both stay free."""
        options = {"between": "leave"} | options
        return glue_by_radius(vertices, self.plant, self.context, 0.004, **options)


def _fixed(plant, pose, body=None):
    frame = plant.world_frame() if body is None else body.body_frame()
    return plant.AddFrame(FixedOffsetFrame(f"at_{pose.translation()}", frame, pose))


def skin_mesh(cells=(4, 4, 12)) -> TetMesh:
    """A box about the leg, a layer of vertices on its axis."""
    mesh = box_mesh((WIDTH, WIDTH, LENGTH), cells)
    return TetMesh(mesh.vertices - [WIDTH / 2, WIDTH / 2, 0], mesh.tets)


def skin_model(material=SOFT):
    """The box with a material."""
    return build_model(skin_mesh(), material)


def stepper(leg, model, dt=DT, **options):
    """A stepper with the glue by radius."""
    glue = leg.glue(model.rest)
    return CoupledStepper(leg.plant, model, glue, dt, context=leg.context, **options)


def sole(model, glue):
    """Free vertices of the lowest layer."""
    low = np.flatnonzero(model.rest[:, 2] < 1e-9)
    return np.setdiff1d(low, glue.vertices)[::-2]


def deformed(leg, model, **options):
    """A stepper with contacts and a state after some steps of a kick."""
    contacts = sole(model, leg.glue(model.rest))
    run = stepper(leg, model, contacts=contacts, **options)
    v = np.linspace(1.0, -2.0, leg.plant.num_velocities())
    state = run.start(v=v)
    for _ in range(5):
        result = run.step(state, np.full(leg.plant.num_actuators(), 0.1))
        assert result.converged, result.message
        state = result.state
    return run, state, contacts
