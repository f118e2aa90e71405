"""What a replay came to: whether it fell, how far, how level, how near to tipping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from drakebots.core.errors import InvalidInput
from drakebots.results import Result
from drakebots.robots.quads.frames import centre_of_pressure, cop_margin
from drakebots.robots.quads.robot import PlannedRobot
from drakebots.skin.frame import patch_points

# The motion of a stored plan, to be followed, and the robot it was made for.


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
    if plan.kind not in ("quads.plan", "quads.space_time") or missing:
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


class Judge:
    """Looks at poses while a replay runs.

    Args:
        robot: that runs.
        reference: that it shall follow.
        tipped: roll or pitch off the plan's that counts as a fall [rad].
        sunk: share of the planned height of the base that does.
    """

    def __init__(
        self,
        robot: PlannedRobot,
        reference: Reference,
        tipped: float = np.radians(45.0),
        sunk: float = 0.5,
    ):
        self.convert, self.reference = robot.coordinates, reference
        self.tipped, self.sunk = tipped, sunk
        self.planned = self.convert.from_positions(reference.q)

    def fell(self, q: np.ndarray, time: float) -> str:
        """Why it fell; empty while it stands."""
        wanted = self.planned[self.reference.row(time)]
        here = self.convert.from_positions(q[None])[0]
        for name, k in (("pitched", 4), ("rolled", 5)):
            away = here[k] - wanted[k]
            if abs(away) > self.tipped:
                return f"fell: {name} by {np.degrees(away):.0f} degrees off the plan"
        if here[2] < self.sunk * wanted[2]:
            return f"fell: the base sank to {here[2]:.3f} m of {wanted[2]:.3f} m"
        return ""


def with_cop(
    data: xr.Dataset, robot: PlannedRobot, reference: Reference, judge: Judge
) -> tuple[xr.Dataset, dict[str, object]]:
    """Adds roll, pitch, COP and the plan's to a record, and sums it up."""
    q = judge.convert.from_positions(data.position.values)
    times = data.time.values
    rows = np.array([reference.row(t) for t in times])
    planned = judge.planned[rows]
    points = patch_positions(robot, data.position.values)
    force = data.patch_force.values
    cop = np.array([centre_of_pressure(p, f) for p, f in zip(points, force)])
    foot_of = np.repeat(
        np.arange(len(robot.quad.feet)),
        [len(p.p_BC) for p in robot.skinned.skin.patches],
    )
    # Any loaded point's polygon holds its own COP: only the planned one says much.
    down = reference.contact[rows][:, foot_of]
    margins = [cop_margin(p, on, f) for p, on, f in zip(points, down, force)]
    tilt = q[:, [5, 4]]
    data = data.assign_coords(plane=["x", "y"], tilt=["roll", "pitch"])
    data["roll_pitch"] = (("time", "tilt"), tilt, {"units": "rad"})
    wanted = planned[:, [5, 4]]
    data["planned_roll_pitch"] = (("time", "tilt"), wanted, {"units": "rad"})
    data["patch_position"] = (("time", "patch", "axis"), points, {"units": "m"})
    data["cop"] = (("time", "plane"), cop, {"units": "m"})
    data["cop_margin"] = (("time",), np.array(margins), {"units": "m"})
    data["planned_com"] = (
        ("time", "axis"),
        reference.com[rows] + _cycles(reference, times),
        {"units": "m"},
    )
    return data, summary(data, robot, tilt, wanted)


def _cycles(reference: Reference, times: np.ndarray) -> np.ndarray:
    """Way of whole cycles before each time (n, 3) [m]."""
    end = reference.times[-1]
    if not reference.periodic:
        return np.zeros((len(times), 3))
    passed = np.maximum(np.ceil(times / end * (1 - 1e-9)) - 1, 0)
    way = reference.com[-1] - reference.com[0]
    return passed[:, None] * way * [1, 1, 0]


def patch_positions(robot: PlannedRobot, q: np.ndarray) -> np.ndarray:
    """Contact points (T, k, 3) [m]."""
    plant = robot.skinned.plant
    context = plant.CreateDefaultContext()
    out = []
    for row in q:
        plant.SetPositions(context, row)
        out.append(patch_points(plant, context, robot.skinned.skin.patches)[0])
    return np.array(out)


def summary(data, robot, tilt, wanted) -> dict[str, object]:
    """Of a replay, for a result's metrics."""
    com, planned = data.com.values, data.planned_com.values
    way, asked = com[-1, :2] - com[0, :2], planned[-1, :2] - planned[0, :2]
    length = float(np.linalg.norm(asked))
    # Along the planned way, if there is one to speak of.
    distance = float(way @ asked / length) if length > 0.01 else 0.0
    time = float(data.time.values[-1])
    torque = np.abs(data.torque.values).max(axis=0)
    worst = int(np.argmax(torque / robot.quad.torque_limits))
    margin = data.cop_margin.values
    known = np.isfinite(margin)
    return {
        "distance_m": distance,
        "planned_distance_m": length,
        "speed_m_s": distance / time if time else 0.0,
        "planned_speed_m_s": length / time if time else 0.0,
        "com_drift_m": float(np.linalg.norm(way - asked)),
        "largest_roll_deg": float(np.degrees(np.abs(tilt[:, 0]).max())),
        "planned_roll_deg": float(np.degrees(np.abs(wanted[:, 0]).max())),
        "planned_pitch_deg": float(np.degrees(np.abs(wanted[:, 1]).max())),
        "largest_pitch_deg": float(np.degrees(np.abs(tilt[:, 1]).max())),
        "roll_range_deg": float(np.degrees(np.ptp(tilt[:, 0]))),
        "planned_roll_range_deg": float(np.degrees(np.ptp(wanted[:, 0]))),
        "least_cop_margin_m": float(margin[known].min()) if known.any() else np.nan,
        "cop_outside_share": float((margin[known] < 0).mean()) if known.any() else 0.0,
        "peak_torque_share": float((torque / robot.quad.torque_limits).max()),
        "peak_torque_joint": robot.quad.joints[worst],
        "peak_torques_N_m": dict(zip(robot.quad.joints, torque.tolist())),
    }
