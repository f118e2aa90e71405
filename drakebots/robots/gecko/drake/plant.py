"""The gecko on its wall as a Drake plant: limbs, suction feet, gravity.

The wall is the world's xy plane; on an incline gravity is tilted instead, with
+x uphill.

**Cups.** A cup with a torsional spring k resists a twist psi with a moment k psi; the
robot then comes to rest where sum K |alpha - alpha_ref|^2 + sum k psi^2 is least. The
pose step minimises f_a |alpha - alpha_ref| + f_o |psi| instead, norms without squares.
Its minimum is that of springs with the ratio

    k/K = (f_o/f_a) |alpha - alpha_ref| / |psi|

at the minimum itself. :class:`WeightedCups` follows that ratio while the robot moves,
as iteratively reweighted least squares do. Source: the pose-step objective, RA-L
5:1199 (2020); the control law is ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant
from pydrake.systems.framework import Context, DiagramBuilder

from drakebots.core.checks import check_value, one_of, positive
from drakebots.core.units import GRAVITY, SI
from drakebots.model import LoopClosure, load
from drakebots.multibody import Robot
from drakebots.multibody.limbs import LimbMap, couple_joints
from drakebots.robots.gecko.drake.sampled import Sampled
from drakebots.robots.gecko.drake.suction import Cup, SuctionFeet
from drakebots.robots.gecko.model import (
    FEET,
    FRONT,
    MODEL,
    REAR,
    Gecko,
    Pose,
    gecko_limbs,
    gecko_sdf,
    parameters,
)

LIMB_LAWS = ("arc", "beam")
"""How limbs bend under a force: they stay arcs, or bend as elastic beams."""

CUP_LAWS = ("weighted", "spring")
"""How cups resist twisting: as the pose step's weights say, or as springs."""

TORSION = 3.0
"""k/K of the plant's gains with weighted cups."""

RATIOS = (0.05, 3.5)
"""Smallest and largest k/K: unlike springs, norms have kinks."""

LEAST_TWIST = np.radians(0.02)
"""Smallest |psi| in the ratio [rad]."""


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
    k = stiffness * check_value("the cup's torsion", torsion, positive())
    return Cup(k, k * cup["damping_time"], cup["mass"], cup["radius"])


def build_gecko_plant(
    builder: DiagramBuilder,
    robot: Gecko,
    *,
    segments: int | None = None,
    limb_law: str = "beam",
    stiffness: dict[str, float] | None = None,
    torsion: float | None = None,
    incline: float = 0.0,
    time_step: float = 1e-3,
) -> GeckoPlant:
    """The robot with suction feet in a plant of its own.

    Args:
        builder: receives the plant.
        robot: lengths.
        segments: number of segments of each limb; None for the file's.
        limb_law: "arc" keeps limbs arcs under any force, as the pose step does;
            "beam" lets them bend as elastic beams.
        stiffness: bending stiffness of the limbs, as in :func:`gecko_limbs`.
        torsion: as in :func:`default_cup`.
        incline: inclination of the wall [rad].
        time_step: time step of the plant [s].
    """
    check_value("limb_law", limb_law, one_of("law of the limbs", LIMB_LAWS))
    limbs = gecko_limbs(robot, segments, stiffness)
    plant = builder.AddSystem(MultibodyPlant(time_step))
    plant.set_name("plant")
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kLagged)
    model = replace(load(MODEL), text=gecko_sdf(robot, segments, stiffness))
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


class WeightedCups(Sampled):
    """Desired twist of the cups that makes their stiffness follow the ratio.

    With gains k0 = TORSION K in the plant, a desired twist of (1 - r/TORSION)
    psi leaves the moment r K psi.

                               ┌──────────────┐
        twist (4) ────────────▶│              │
        bending (5) ──────────▶│ WeightedCups │──▶ desired_state (8) twists, zeros
        desired_bending (5) ──▶└──────────────┘

    Inputs are the twists psi, zero for free feet, and the limbs' angles [rad].

    Args:
        weight: f_o/f_a.
        period: sampling period [s].
        lag: time constant with which the ratio follows [s].

    Raises:
        InvalidInput: for a number <= 0.
    """

    def __init__(self, weight: float, *, period: float = 0.005, lag: float = 0.005):
        for name, value in (("weight", weight), ("period", period), ("lag", lag)):
            check_value(f"cups: {name}", value, positive())
        # The state: log of the ratio, the desired twists, and their rates, zero.
        super().__init__("weighted_cups", [np.log(TORSION), *np.zeros(8)])
        self._weight, self._share = weight, 1 - np.exp(-period / lag)
        self.DeclareVectorInputPort("twist", 4)
        self.DeclareVectorInputPort("bending", 5)
        self.DeclareVectorInputPort("desired_bending", 5)
        self._declare_update(self._update, period)
        self._declare_output("desired_state", slice(1, 9))

    def _update(self, context, x):
        twist = self._input(context)
        bend = self._input(context, 1) - self._input(context, 2)
        size = max(float(np.linalg.norm(twist)), LEAST_TWIST)
        ratio = self._weight * float(np.linalg.norm(bend)) / size
        x[0] += self._share * (np.log(min(max(ratio, RATIOS[0]), RATIOS[1])) - x[0])
        x[1:5] = (1 - np.exp(x[0]) / TORSION) * twist
        return x
