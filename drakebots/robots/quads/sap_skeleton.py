"""A skeleton in Drake's SAP simulation: servos, patches as small spheres, and
wrenches on links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydrake.common.value import AbstractValue
from pydrake.geometry import (
    AddContactMaterial,
    CollisionFilterDeclaration,
    GeometrySet,
    ProximityProperties,
    Sphere,
)
from pydrake.math import RigidTransform
from pydrake.multibody.math import SpatialForce
from pydrake.multibody.plant import (
    AddMultibodyPlant,
    CoulombFriction,
    ExternallyAppliedSpatialForce,
    MultibodyPlantConfig,
)
from pydrake.multibody.tree import JointActuatorIndex, PdControllerGains
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots.multibody.base import attach_base
from drakebots.multibody.loops import find_body
from drakebots.multibody.plant import Ground
from drakebots.robots.quads.planned_robot import PlannedRobot

RADIUS = 1e-3
"""Of the sphere at a contact point [m]."""


class SapSkeleton:
    """One robot's skeleton, ready to run.

    Args:
        robot: whose skeleton it is.
        time_step: [s].
        friction: of the ground and the patches.
        stiffness: of a patch on the ground [N/m].

    Attributes:
        plant: finalized, SI.
    """

    def __init__(
        self,
        robot: PlannedRobot,
        *,
        time_step: float,
        friction: float,
        stiffness: float,
    ):
        skinned, builder = robot.skinned, DiagramBuilder()
        config = MultibodyPlantConfig(
            time_step=time_step,
            discrete_contact_approximation="sap",
            contact_model="point",
        )
        plant, scene = AddMultibodyPlant(config, builder)
        skinned.model.add_to(plant)
        attach_base(plant, "quaternion")
        gains = skinned.skin.servos
        for k in range(plant.num_actuators()):
            plant.get_joint_actuator(JointActuatorIndex(k)).set_controller_gains(
                PdControllerGains(p=gains.stiffness, d=gains.damping)
            )
        # Two bodies of stiffness 2 k in series make k.
        Ground(friction, stiffness=2 * stiffness, dissipation=1.0).add_to(plant)
        self._number = self._add_patches(plant, robot, friction, 2 * stiffness)
        plant.Finalize()
        # Links may overlap within the skin; only the ground is hit.
        bodies = [plant.get_body(i) for i in plant.GetBodyIndices(_instance(plant))]
        own = GeometrySet()
        for body in bodies:
            own.Add(plant.GetCollisionGeometriesForBody(body))
        scene.collision_filter_manager().Apply(
            CollisionFilterDeclaration().ExcludeWithin(own)
        )
        self.plant, self.diagram = plant, builder.Build()
        self.simulator = Simulator(self.diagram)
        self.root = self.simulator.get_mutable_context()
        self.context = plant.GetMyMutableContextFromRoot(self.root)
        self._patches = sum(len(p.p_BC) for p in skinned.skin.patches)
        self._aim = plant.get_desired_state_input_port(_instance(plant))
        self._push = plant.get_applied_spatial_force_input_port()
        self.push([], np.zeros((0, 6)))

    def _add_patches(self, plant, robot, friction, stiffness) -> dict:
        """Spheres whose lowest point is the patch's; numbers by geometry."""
        number = {}
        for patches, sole in zip(robot.skinned.skin.patches, robot.quad.soles):
            body = find_body(plant, patches.body)
            up = RADIUS * sole.R_BS[:, 2]
            for p in patches.p_BC:
                properties = ProximityProperties()
                AddContactMaterial(
                    friction=CoulombFriction(friction, friction),
                    dissipation=1.0,
                    point_stiffness=stiffness,
                    properties=properties,
                )
                key = plant.RegisterCollisionGeometry(
                    body,
                    RigidTransform(p + up),
                    Sphere(RADIUS),
                    f"patch_{len(number)}",
                    properties,
                )
                number[key] = len(number)
        return number

    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Puts it there at time 0, servos at those angles."""
        self.plant.SetPositions(self.context, q)
        self.plant.SetVelocities(self.context, v)
        at = self.plant.GetPositionsFromArray(_instance(self.plant), q)
        goal = self._actuated(at)
        self.aim(goal, np.zeros(len(goal)))
        self.simulator.Initialize()

    def _actuated(self, q: np.ndarray) -> np.ndarray:
        joints = [
            self.plant.get_joint_actuator(JointActuatorIndex(k)).joint()
            for k in range(self.plant.num_actuators())
        ]
        return q[[joint.position_start() for joint in joints]]

    def aim(self, angles: np.ndarray, speeds: np.ndarray) -> None:
        """Targets of the servos (m,) [rad], [rad/s]."""
        self._aim.FixValue(self.context, np.concatenate([angles, speeds]))

    def push(self, links: Sequence[str], wrenches: np.ndarray) -> None:
        """Wrenches [moment, force] on links about their origins, world (L, 6)."""
        applied = []
        for name, row in zip(links, wrenches):
            one = ExternallyAppliedSpatialForce()
            one.body_index = find_body(self.plant, name).index()
            one.p_BoBq_B = np.zeros(3)
            one.F_Bq_W = SpatialForce(tau=row[:3], f=row[3:])
            applied.append(one)
        self._push.FixValue(
            self.context, AbstractValue.Make(applied) if applied else applied
        )

    def advance(self, time: float) -> None:
        """To a time [s]."""
        self.simulator.AdvanceTo(time)

    def row(self, target: np.ndarray) -> dict[str, np.ndarray]:
        """State, torques and contact forces now."""
        plant, context = self.plant, self.context
        force = np.zeros((self._patches, 3))
        contacts = plant.get_contact_results_output_port().Eval(context)
        for k in range(contacts.num_point_pair_contacts()):
            info = contacts.point_pair_contact_info(k)
            pair = info.point_pair()
            # The force is on body B.
            for key, sign in ((pair.id_B, 1.0), (pair.id_A, -1.0)):
                if key in self._number:
                    force[self._number[key]] += sign * info.contact_force()
        return {
            "position": plant.GetPositions(context).copy(),
            "velocity": plant.GetVelocities(context).copy(),
            "target": np.array(target, float),
            "torque": plant.get_net_actuation_output_port().Eval(context).copy(),
            "patch_force": force,
        }


def _instance(plant):
    """Of the first actuated joint."""
    return plant.get_joint_actuator(JointActuatorIndex(0)).model_instance()
