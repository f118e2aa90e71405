"""The gecko on its wall as a Drake plant: limbs, suction feet, gravity.

The wall is the world's xy plane; on an incline gravity is tilted instead, with
+x uphill.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant
from pydrake.systems.framework import (
    Context,
    DiagramBuilder,
    DiscreteStateIndex,
    LeafSystem,
)

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.units import SI
from drakebots.model import LoopClosure, load
from drakebots.multibody import Robot
from drakebots.multibody.limbs import LimbMap, couple_joints
from drakebots.robots.gecko.drake.suction import Cup, SuctionFeet
from drakebots.robots.gecko.model import (
    FEET,
    FRONT,
    REAR,
    Gecko,
    Pose,
    gecko_limbs,
    gecko_sdf,
    table,
)

# The give of suction cups in torsion: a spring, or the pose step's weights.
#
# A cup with a spring resists a twist psi with a moment k psi; the robot then comes
# to rest where sum K |alpha - alpha_ref|^2 + sum k psi^2 is least. The pose step
# minimises f_a |alpha - alpha_ref| + f_o |psi| instead, norms without squares.
# Its minimum is that of springs with the ratio
#
#     k/K = (f_o/f_a) |alpha - alpha_ref| / |psi|
#
# at the minimum itself. :class:`WeightedCups` follows that ratio while the robot
# moves, as iteratively reweighted least squares do, and comes to rest in it.
# Source: the pose step's objective, RA-L 5:1199 (2020); the law is ours.

CUP_LAWS = ("weighted", "spring")
"""How a cup resists being twisted."""

TORSION = 3.0
"""k/K of the gains in the plant that the law of weights acts through."""

RATIOS = (0.05, 3.5)
"""Least and largest k/K: norms have kinks, springs have not."""

LEAST_TWIST = np.radians(0.02)


class WeightedCups(LeafSystem):
    """Desired state of the cups that makes their stiffness follow the ratio.

    With gains k0 = TORSION K in the plant, a desired twist of (1 - r/TORSION)
    psi leaves the moment r K psi.

                    ┌──────────────┐
        twist (4) ─▶│ WeightedCups │──▶ desired (8) twists, zeros
        bend (5) ──▶└──────────────┘

    Inputs: the twists psi, zero for feet that do not hold [rad], and what the
    limbs lack, alpha - alpha_ref [rad].

    Args:
        weight: f_o/f_a.
        period: of sampling [s].
        lag: time constant with which the ratio follows [s].

    Raises:
        InvalidInput: for a number <= 0.
    """

    def __init__(self, weight: float, *, period: float = 0.005, lag: float = 0.005):
        super().__init__()
        self.set_name("weighted_cups")
        for name, value in (("weight", weight), ("period", period), ("lag", lag)):
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"cups: {name} must be > 0, got {value}")
        self._weight, self._share = weight, 1 - np.exp(-period / lag)
        self.DeclareVectorInputPort("twist", 4)
        self.DeclareVectorInputPort("bend", 5)
        # log of the ratio, then the desired twists
        self.DeclareDiscreteState(np.array([np.log(TORSION), 0, 0, 0, 0]))
        self.DeclarePeriodicUnrestrictedUpdateEvent(period, 0.0, self._update)
        state = {self.discrete_state_ticket(DiscreteStateIndex(0))}
        self.DeclareVectorOutputPort("desired", 8, self._desired, state)

    def _update(self, context, state):
        x = context.get_discrete_state_vector().value().copy()
        twist = self.EvalVectorInput(context, 0).value()
        bend = self.EvalVectorInput(context, 1).value()
        size = max(float(np.linalg.norm(twist)), LEAST_TWIST)
        ratio = self._weight * float(np.linalg.norm(bend)) / size
        x[0] += self._share * (np.log(min(max(ratio, RATIOS[0]), RATIOS[1])) - x[0])
        x[1:] = (1 - np.exp(x[0]) / TORSION) * twist
        state.get_mutable_discrete_state().set_value(x)

    def _desired(self, context, output):
        x = context.get_discrete_state_vector().value()
        output.SetFromVector(np.concatenate([x[1:], np.zeros(4)]))


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
