"""The gecko on its wall as a Drake plant: options, limbs, suction feet, gravity.

The wall is the world's xy plane; on an incline gravity is tilted instead, with
+x uphill.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant
from pydrake.systems.framework import Context, DiagramBuilder

from drakebots.core.checks import between, flag, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.units import GRAVITY, SI
from drakebots.formats import load
from drakebots.model import LoopClosure
from drakebots.multibody import LimbMap, Robot, couple_joints
from drakebots.robots.gecko.engines.controllers import TORSION, Camera, Gains
from drakebots.robots.gecko.engines.engine import Engine, PhaseTimes
from drakebots.robots.gecko.engines.suction import Cup, CupLimits, SuctionFeet
from drakebots.robots.gecko.model import (
    FEET,
    FRONT,
    MODEL,
    REAR,
    Gecko,
    Pose,
    bending_stiffness,
    gecko_limbs,
    gecko_sdf,
    parameters,
)


@checked("engine Drake")
class Drake(Engine):
    """The robot of many joints and switched suction feet, in time.

    Raises:
        InvalidInput: for numbers out of range, or a reproduction on a wall.
    """

    incline: Annotated[float, between(0, np.pi, "rad")] = 0.0
    """Inclination of a wall, +x uphill, where feet come off over their limits; beyond
    pi/2 it overhangs, and pi is a ceiling, from which only suction keeps the robot."""
    limits: CupLimits = field(default_factory=CupLimits)
    """Limits of the suction feet on a wall."""
    pressure: Annotated[bool | None, flag()] = None
    """Whether the low-level control of Fig. 11B lies between references and limbs and
    limits their angles; by default unless it is a reproduction."""
    reproduction: Annotated[bool, flag()] = False
    """Whether it follows the pose step: limbs of equal stiffness stay arcs, and cups
    have the pose step's weights; it predicts nothing that the pose step does not. By
    default limbs are elastic beams, and cups springs of one stiffness."""
    gains: Gains = field(default_factory=Gains)
    """Gains of the low-level control; angle_p and angle_i of 0 leave its feedforward,
    by which limbs bend as their own calibration says."""
    modulus: Annotated[float | None, positive("Pa")] = None
    """Young's modulus of the limbs; in a reproduction its ratio to the file's scales
    the equal stiffness; None for the file's."""
    torsion: Annotated[float | None, positive()] = None
    """Stiffness of a cup's spring per leg's; None for the file's."""
    segments: Annotated[int | None, whole(1)] = None
    """Number of segments of each limb's chain; None for the file's."""
    times: PhaseTimes = field(default_factory=PhaseTimes)
    """Durations of the phases of a half cycle."""
    camera: Camera = field(default_factory=Camera)
    """Camera that the generator sees the robot by."""
    time_step: Annotated[float, positive("s")] = 1e-3
    """Time step of the plant, at most 1e-3."""
    log_period: Annotated[float, positive("s")] = 0.02
    """Sampling period of the result."""

    def __post_init__(self):
        if self.time_step > 1e-3:
            raise InvalidInput(
                f"time step {self.time_step:g} s lets fixed feet drift; "
                "use 1e-3 s or less"
            )
        if self.incline and self.reproduction:
            raise InvalidInput(
                "a wall needs limbs and feet that give way; leave the reproduction out"
            )

    @property
    def limited(self) -> bool:
        """Whether the pressure limits the limbs' angles."""
        return not self.reproduction if self.pressure is None else self.pressure

    @property
    def phases(self) -> PhaseTimes:
        """The phases' durations as whole numbers of time steps."""
        return self.times.rounded(self.time_step)

    def stiffness(self, robot: Gecko) -> dict[str, float]:
        """Bending stiffness of "leg" and "torso" [N m/rad]."""
        if not self.reproduction:
            return bending_stiffness(robot, self.modulus)
        own = parameters()
        scale = 1.0 if self.modulus is None else self.modulus / own.number("modulus")
        return dict.fromkeys(("leg", "torso"), scale * own.number("equal_stiffness"))


@dataclass(frozen=True)
class GeckoPlant:
    """The robot on its wall, in a finalized plant.

    Attributes:
        robot: lengths and weights.
        drake: plant, model and units.
        limbs: map between bending angles and positions.
        suction: the suction feet.
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
        """Puts the robot at rest in a pose; its limbs keep their own lengths."""
        plant = self.plant
        q = self.limbs.positions(np.zeros(plant.num_positions()), pose.alpha)
        start = plant.GetJointByName("planar").position_start()
        q[start : start + 3] = [*pose.position, pose.heading - pose.alpha[2] / 2]
        plant.SetPositions(context, q)
        plant.SetVelocities(context, np.zeros(plant.num_velocities()))

    def pose(self, q) -> np.ndarray:
        """x, y [m] and mean heading [rad] (..., 3) of positions (..., nq)."""
        return np.asarray(q) @ self.pose_matrix.T

    @property
    def pose_matrix(self) -> np.ndarray:
        """Matrix (3, nq) to x, y of the front end and eps = its heading + alpha_2/2."""
        start = self.plant.GetJointByName("planar").position_start()
        matrix = np.zeros((3, self.plant.num_positions()))
        matrix[range(3), range(start, start + 3)] = 1.0
        matrix[2] += self.limbs.sum_matrix[2] / 2
        return matrix

    def markers(self, context: Context) -> np.ndarray:
        """Markers p0..p5 (6, 2) [m]."""
        names = ("FL_tip", FRONT, "FR_tip", "RL_tip", REAR, "RR_tip")
        bodies = (self.plant.GetBodyByName(name) for name in names)
        return np.array([b.EvalPoseInWorld(context).translation()[:2] for b in bodies])


def default_cup(stiffness: float, torsion: float | None = None) -> Cup:
    """The cup of `params.yaml`.

    Args:
        stiffness: bending stiffness of a leg [N m/rad].
        torsion: torsional stiffness of the cup divided by that; None for the file's.
    """
    cup = parameters().table("cup")
    torsion = cup["torsion"] if torsion is None else torsion
    k = stiffness * torsion
    return Cup(k, k * cup["damping_time"], cup["mass"], cup["radius"])


def build_gecko_plant(
    builder: DiagramBuilder, robot: Gecko, engine: Drake
) -> GeckoPlant:
    """The robot with suction feet in a plant of its own, which the builder receives."""
    stiffness = engine.stiffness(robot)
    limbs = gecko_limbs(robot, engine.segments, stiffness)
    plant = builder.AddSystem(MultibodyPlant(engine.time_step))
    plant.set_name("plant")
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kLagged)
    model = replace(load(MODEL), text=gecko_sdf(robot, engine.segments, stiffness))
    model.add_to(plant)
    if engine.reproduction:
        couple_joints(plant, limbs)
    torsion = TORSION if engine.reproduction else engine.torsion
    cup = default_cup(limbs[0].stiffness, torsion)
    suction = SuctionFeet(plant, [f"{foot}_tip" for foot in FEET], cup)
    tilted = [-np.sin(engine.incline), 0.0, -np.cos(engine.incline)]
    plant.mutable_gravity_field().set_gravity_vector(GRAVITY * np.array(tilted))
    plant.Finalize()
    drake = Robot(model, plant, None, SI, LoopClosure(plant, ()))
    return GeckoPlant(robot, drake, LimbMap(plant, limbs), suction)
