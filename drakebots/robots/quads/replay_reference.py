"""The motion of a stored plan, to be followed, and the robot it was made for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.results import Result
from drakebots.robots.quads.planned_robot import PlannedRobot


@dataclass(frozen=True)
class Reference:
    """The motion of a plan.

    Attributes:
        times: (N,) [s].
        q, v: of the plant (N, nq), (N, nv).
        joints: angles and speeds of the actuated joints (N, m) [rad], [rad/s].
        contact: feet on the ground (N, feet).
        com: (N, 3) [m].
        periodic: whether the joints repeat.
        name: of the motion.
    """

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    joints: tuple[np.ndarray, np.ndarray]
    contact: np.ndarray
    com: np.ndarray
    periodic: bool
    name: str

    def at(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Angles (m,) and speeds at a time [s]; repeated, or held at the end."""
        end = self.times[-1]
        held = not self.periodic and time > end
        if self.periodic:
            time = time % end if time > end * (1 + 1e-12) else time
        rows = [
            np.array([np.interp(time, self.times, c) for c in x.T]) for x in self.joints
        ]
        return rows[0], 0 * rows[1] if held else rows[1]

    def row(self, time: float) -> int:
        """The frame nearest to a time."""
        end = self.times[-1]
        if self.periodic and time > end * (1 + 1e-12):
            time = time % end
        return int(np.argmin(np.abs(self.times - time)))


def plan_reference(plan: Result, robot: PlannedRobot) -> Reference:
    """The motion of a stored plan.

    Raises:
        InvalidInput: when it is no plan of this robot.
    """
    data, skinned = plan.data, robot.skinned
    needed = ("position", "velocity", "contact", "com")
    missing = [name for name in needed if name not in data]
    if plan.kind != "plan" or missing:
        raise InvalidInput(
            f"the result is no plan of a quad-robot (kind {plan.kind!r}"
            + (f", without {missing[0]}" if missing else "")
            + "); make one with drakebots plan"
        )
    plant = skinned.plant
    if list(data.position_name.values) != list(
        plant.GetPositionNames(always_add_suffix=False)
    ):
        raise InvalidInput(
            f"the plan is of {plan.model}, whose positions are not those of "
            f"{robot.name}; name the robot it was made for"
        )
    if len(data.time) < 2:
        raise InvalidInput("the plan has no frames to replay; see its message")
    q, v = data.position.values, data.velocity.values
    at = [int(plant.GetJointByName(n).position_start()) for n in skinned.joints]
    rate = [int(plant.GetJointByName(n).velocity_start()) for n in skinned.joints]
    period = plan.metrics.get("period", "none")
    return Reference(
        data.time.values,
        q,
        v,
        (q[:, at], v[:, rate]),
        data.contact.values > 0,
        data.com.values,
        period in ("joints", "cycle"),
        str(plan.metrics.get("motion", "motion")),
    )


def plan_model(plan: Result) -> str:
    """The file of the robot that a plan was made for.

    Raises:
        InvalidInput: when the plan does not tell.
    """
    files = plan.provenance.get("files", {})
    found = [f for f in files if not str(f).endswith((".yaml", ".vtu", ".vtk"))]
    if not found:
        raise InvalidInput("the plan does not say of which robot it is; give --model")
    return str(found[0])
