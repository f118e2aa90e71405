"""The gecko on its wall as a Drake plant: limbs, suction feet, gravity.

The wall is the world's xy plane; on an incline gravity is tilted instead, with
+x uphill.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant
from pydrake.systems.framework import Context, DiagramBuilder

from drakebots.errors import InvalidInput, UnknownName
from drakebots.models import load
from drakebots.multibody.limbs import LimbMap, couple_joints
from drakebots.multibody.loops import LoopClosure
from drakebots.multibody.plant import Robot
from drakebots.robots.gecko.kinematics import Pose
from drakebots.robots.gecko.parameters import FEET, Gecko
from drakebots.robots.gecko.sdf import FRONT, REAR, gecko_limbs, gecko_sdf
from drakebots.robots.gecko.suction import Cup, SuctionFeet
from drakebots.robots.gecko.tables import table
from drakebots.units import SI

GRAVITY = 9.81

LIMB_LAWS = ("arc", "beam")
"""How limbs bend under a force: stay arcs, or bend as elastic beams."""


@dataclass(frozen=True)
class GeckoPlant:
    """The robot on its wall, in a finalized plant.

    Attributes:
        robot: lengths and weights.
        drake: the plant as drakebots has it, in SI.
        limbs: bending angles to and from positions.
        suction: the feet.
    """

    robot: Gecko
    drake: Robot
    limbs: LimbMap
    suction: SuctionFeet

    @property
    def plant(self) -> MultibodyPlant:
        """The finalized plant."""
        return self.drake.plant

    def place(self, context: Context, pose: Pose) -> None:
        """Puts the robot at rest in a pose; its lengths are the chain's own."""
        plant = self.plant
        q = self.limbs.positions(np.zeros(plant.num_positions()), pose.alpha)
        start = plant.GetJointByName("planar").position_start()
        q[start : start + 3] = [*pose.position, pose.heading - pose.alpha[2] / 2]
        plant.SetPositions(context, q)
        plant.SetVelocities(context, np.zeros(plant.num_velocities()))

    def pose(self, q) -> np.ndarray:
        """x, y [m] and mean heading [rad] of positions (..., nq): (..., 3)."""
        return np.asarray(q) @ self.pose_matrix.T

    @property
    def pose_matrix(self) -> np.ndarray:
        """(3, nq): front end's x, y; eps = front heading + alpha_torso/2."""
        start = self.plant.GetJointByName("planar").position_start()
        matrix = np.zeros((3, self.plant.num_positions()))
        matrix[range(3), range(start, start + 3)] = 1.0
        matrix[2] += self.limbs.sum_matrix[2] / 2
        return matrix

    def markers(self, context: Context) -> np.ndarray:
        """p0..p5 (6, 2) [m]."""
        names = ("FL_tip", FRONT, "FR_tip", "RL_tip", REAR, "RR_tip")
        bodies = (self.plant.GetBodyByName(name) for name in names)
        return np.array([b.EvalPoseInWorld(context).translation()[:2] for b in bodies])


def default_cup(stiffness: float, torsion: float | None = None) -> Cup:
    """The cup of `params.yaml`, for limbs of a stiffness [N m/rad].

    Args:
        torsion: the cup's stiffness per limb's; None for the file's.
    """
    value = table("cup")
    torsion = value["torsion"] if torsion is None else torsion
    if not (np.isfinite(torsion) and torsion > 0):
        raise InvalidInput(f"the cup's torsion must be > 0, got {torsion}")
    k = stiffness * torsion
    return Cup(k, k * value["damping_time"], value["mass"], value["radius"])


def build_gecko_plant(
    builder: DiagramBuilder,
    robot: Gecko,
    *,
    segments: int | None = None,
    limb_law: str = "arc",
    torsion: float | None = None,
    incline: float = 0.0,
    time_step: float = 1e-3,
) -> GeckoPlant:
    """The robot with suction feet in a plant of its own.

    Args:
        builder: to add the plant to.
        robot: lengths.
        segments: of each limb; None for the file's.
        limb_law: "arc" keeps limbs arcs whatever pulls on them, as the pose
            step has them; "beam" lets them bend as elastic beams.
        torsion: as in :func:`default_cup`.
        incline: of the wall [rad].
        time_step: [s].
    """
    if limb_law not in LIMB_LAWS:
        raise UnknownName("law of the limbs", limb_law, LIMB_LAWS)
    limbs = gecko_limbs(robot, segments)
    plant = builder.AddSystem(MultibodyPlant(time_step))
    plant.set_name("plant")
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kLagged)
    model = replace(load("gecko"), text=gecko_sdf(robot, segments))
    model.add_to(plant)
    if limb_law == "arc":
        couple_joints(plant, limbs)
    cup = default_cup(limbs[0].stiffness, torsion)
    suction = SuctionFeet(plant, [f"{foot}_tip" for foot in FEET], cup)
    plant.mutable_gravity_field().set_gravity_vector(
        [-GRAVITY * np.sin(incline), 0.0, -GRAVITY * np.cos(incline)]
    )
    plant.Finalize()
    drake = Robot(model, plant, None, SI, LoopClosure(plant, ()))
    return GeckoPlant(robot, drake, LimbMap(plant, limbs), suction)
