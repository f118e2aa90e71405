"""The reference and the evaluation of tracking runs.

:class:`Reference` is the motion of a stored plan, :func:`fall_off_plan` looks for falls
during the run, :func:`evaluate` adds tilt and centre of pressure (COP) to its record,
and :func:`summary` are its figures.

A servo of stiffness k and damping d sags under its load: it holds the torque tau at an
angle q, turning at v, that is (tau + d v)/k short of its target. :func:`servo_targets`
moves the targets by what the plan's torques and speeds make of that, so that the joints
are where the plan has them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import xarray as xr
from scipy.ndimage import uniform_filter1d

from drakebots.core.errors import InvalidInput
from drakebots.core.run import RunEnd, Verdict
from drakebots.formats import model_folders
from drakebots.model import contexts_along
from drakebots.multibody import (
    Finding,
    Flat,
    Terrain,
    asked,
    fall,
    judged,
    saturated,
    tilt,
    tilted,
)
from drakebots.results import Result, require, with_units
from drakebots.robots.quads.motion.motion import PERIODS
from drakebots.robots.quads.robot import RPY, PlannedRobot
from drakebots.robots.quads.steps import centre_of_pressure, cop_margin
from drakebots.skin.coupled import patch_points
from drakebots.skin.file import ServoGains

MOVES = 0.01
"""Planned distance from which on a run's distance is stated [m]."""

SMOOTHED = 0.02
"""Time over which the loads are averaged that move the targets of servos [s]."""


@dataclass(frozen=True)
class Reference:
    """The motion of a stored plan.

    Attributes:
        times: times of the steps (N,) [s].
        q, v: positions and velocities of the plant (N, nq), (N, nv).
        targets: angles for the servos of the actuated joints (N, m) [rad].
        angles: planned angles of the actuated joints (N, m) [rad].
        contact: feet on the ground (N, feet).
        com: path of the COM (N, 3) [m].
        periodic: whether the motion of the joints repeats.
        name: name of the motion.
    """

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    targets: np.ndarray
    angles: np.ndarray
    contact: np.ndarray
    com: np.ndarray
    periodic: bool
    name: str

    def at(self, time: float) -> np.ndarray:
        """Targets (m,) at a time [s]; they repeat, or stay at the end."""
        time = time - self.cycle(time) * self.times[-1]
        return np.array([np.interp(time, self.times, c) for c in self.targets.T])

    def row(self, time: float) -> int:
        """Index of the step nearest to a time [s]."""
        time = time - self.cycle(time) * self.times[-1]
        return int(np.argmin(np.abs(self.times - time)))

    def cycle(self, time: float) -> int:
        """Number of whole cycles before a time [s]; a cycle's end is part of it."""
        if not self.periodic:
            return 0
        return max(int(np.ceil(time / self.times[-1] * (1 - 1e-9))) - 1, 0)


def servo_targets(
    angles: np.ndarray,
    torques: np.ndarray,
    gains: ServoGains,
    dt: float,
    *,
    periodic: bool = False,
) -> np.ndarray:
    """Targets with which servos hold planned torques at planned angles (N, m) [rad].

        q_d = q + mean of (tau + d v) over 20 ms / k

    The mean keeps what changes from step to step out of the targets: it is the
    plan's answer to its own contacts, and not to those of the run.

    Args:
        angles: planned angles q (N, m) [rad].
        torques: planned torques tau; row i acts during the step that ends there, so
            that the first row says nothing (N, m) [N m].
        gains: gains of the servos.
        dt: time between rows [s].
        periodic: whether the last row is the first of a next cycle.
    """
    if gains.stiffness == 0:
        return angles
    window = 1 + 2 * round(SMOOTHED / dt / 2)
    load = (torques + gains.damping * np.gradient(angles, dt, axis=0))[1:]
    mode = "wrap" if periodic else "nearest"
    mean = uniform_filter1d(load, window, axis=0, mode=mode)
    mean = np.vstack([mean[-1] if periodic else mean[0], mean])
    return angles + mean / gains.stiffness


def plan_reference(
    plan: Result, robot: PlannedRobot, *, plain: bool = False
) -> Reference:
    """Takes the motion out of a stored plan.

    Args:
        plan: the plan.
        robot: its robot.
        plain: leave the sag of the servos out of their targets; so it is also for
            plans without torques.

    Raises:
        InvalidInput: when the result is no plan of this robot.
    """
    data, skinned = plan.data, robot.skinned
    if plan.kind not in ("quads.plan", "quads.space_time"):
        raise InvalidInput(
            f"the result is no plan of a quad-robot (kind {plan.kind!r}); make one "
            "with `drakebots plan`"
        )
    require(data, "position velocity contact com", "plan of a quad-robot to track")
    plant = skinned.plant
    names = plant.GetPositionNames(always_add_suffix=False)
    if list(data.position_name.values) != names:
        raise InvalidInput(
            f"the plan is for {plan.model}, whose positions differ from those of "
            f"{robot.name}; give the robot it was made for"
        )
    if len(data.time) < 2:
        raise InvalidInput("the plan has no steps to track; see its message")
    q, v = data.position.values, data.velocity.values
    at = [int(plant.GetJointByName(n).position_start()) for n in skinned.joints]
    periodic = plan.metrics.get("period") in PERIODS
    times, angles = data.time.values, q[:, at]
    contact, com = data.contact.values > 0, data.com.values
    targets, name = angles, str(plan.metrics.get("motion", "motion"))
    if not plain and "torque" in data:
        gains, dt = skinned.skin.servos, float(times[1] - times[0])
        torque = data.torque.values
        targets = servo_targets(angles, torque, gains, dt, periodic=periodic)
    return Reference(times, q, v, targets, angles, contact, com, periodic, name)


def findings(robot: PlannedRobot, data: xr.Dataset, metrics: dict) -> list[Finding]:
    """Findings on a run's distance, tilt and torques, the gravest first."""
    planned, found = float(metrics["planned_distance_m"]), []
    if planned > MOVES:
        share = float(metrics["distance_m"]) / planned
        short = asked("distance missed", share, f"did not walk: {_said(metrics)}")
        if not short.failed:
            short = replace(short, words=f"it makes {share:.0%} of its distance")
        found.append(short)
    found.append(tilted(np.radians(metrics["tilt_off_plan_deg"])))
    joints, limits = robot.quad.joints, robot.quad.torque_limits
    return found + saturated(data.torque.values, limits, joints)


def _said(metrics: dict) -> str:
    return f"{metrics['distance_m']:.3f} of {metrics['planned_distance_m']:.3f} m"


def verdict(
    end: RunEnd, plan: Result, metrics: dict, found: list[Finding]
) -> tuple[Verdict, str]:
    """Verdict and message of a run.

    It fails with a plan that ends early, and with less than half of the distance.
    """
    if metrics["planned_distance_m"] > MOVES:
        end = replace(end, message=f"{end.message}, {_said(metrics)}")
    made, message = judged(end, found, "it moves")
    if plan.ok:
        return made, message
    lead, times = f"the plan did not succeed ({plan.message})", plan.data.time.values
    whole = plan.data.plan_time.values[-1] if "plan_time" in plan.data else times[-1]
    if whole > times[-1] * (1 + 1e-9):
        lead += f" and has {times[-1]:g} of {whole:g} s"
        made = Verdict.FAILED if made is Verdict.SUCCESS else made
    return made, f"{lead}; its run: {message}"


def plan_model(plan: Result) -> str:
    """Path of the model that a plan was made for.

    Raises:
        InvalidInput: when the plan's provenance does not name it.
    """
    files = plan.provenance.get("files", {})
    found = [f for f in files if not str(f).endswith((".yaml", ".vtu", ".vtk"))]
    if not found:
        raise InvalidInput("the plan does not name its model; give --model")
    path = Path(found[0])
    places = [folder / path.name for folder in model_folders(plan, path)]
    return str(next((place for place in places if os.path.isfile(place)), path))


def fall_off_plan(
    robot: PlannedRobot,
    reference: Reference,
    q: np.ndarray,
    time: float,
    terrain: Terrain = Flat(),
) -> str:
    """Description of a fall from the plan at a time [s]; empty while q (nq,) stands on
    a terrain."""
    rows = np.stack([q, reference.q[reference.row(time)]])
    here, planned = positions = robot.coordinates.from_positions(rows)
    height, due = terrain.evaluate(positions[:, :3])[0]
    return fall(float(tilt(here[RPY], planned[RPY])), float(height / due))


def _rows(data: xr.Dataset, reference: Reference) -> np.ndarray:
    """Indices of the planned steps nearest to a run's times (T,)."""
    return np.array([reference.row(t) for t in data.time.values])


def evaluate(data: xr.Dataset, robot: PlannedRobot, reference: Reference) -> xr.Dataset:
    """Adds roll, pitch and COP, and the plan's, to a record."""
    convert, rows = robot.coordinates, _rows(data, reference)
    points = patch_positions(robot, data.position.values)
    force = data.patch_force.values
    cop = np.array([centre_of_pressure(p, f) for p, f in zip(points, force)])
    foot_of = np.repeat(
        np.arange(len(robot.quad.feet)),
        [len(p.p_BC) for p in robot.skinned.skin.patches],
    )
    # The COP is always inside the polygon of the loaded patches, so the margin refers
    # to the polygon of the feet that the plan has on the ground.
    down = reference.contact[rows][:, foot_of]
    margins = [cop_margin(p, on, f) for p, on, f in zip(points, down, force)]
    q, planned = map(convert.from_positions, (data.position.values, reference.q))
    passed = np.array([reference.cycle(t) for t in data.time.values])
    a_cycle = reference.com[-1] - reference.com[0]
    com = reference.com[rows] + passed[:, None] * a_cycle
    added = {
        "roll_pitch": (("time", "tilt"), q[:, RPY[:2]], "rad"),
        "planned_roll_pitch": (("time", "tilt"), planned[rows][:, RPY[:2]], "rad"),
        "patch_position": (("time", "patch", "axis"), points, "m"),
        "cop": (("time", "plane"), cop, "m"),
        "cop_margin": (("time",), np.array(margins), "m"),
        "planned_com": (("time", "axis"), com, "m"),
    }
    data = data.assign_coords(plane=["x", "y"], tilt=["roll", "pitch"])
    return data.assign(with_units(added))


def patch_positions(robot: PlannedRobot, q: np.ndarray) -> np.ndarray:
    """Positions of the patches (T, k, 3) [m]."""
    plant, patches = robot.skinned.plant, robot.skinned.skin.patches
    along = contexts_along(plant, q)
    return np.array([patch_points(plant, at, patches)[0] for at in along])


def summary(
    data: xr.Dataset, robot: PlannedRobot, reference: Reference
) -> dict[str, object]:
    """Metrics of a run, from its dataset with what :func:`evaluate` adds."""
    angles, planned_angles = data.roll_pitch.values, data.planned_roll_pitch.values
    joints = [robot.skinned.joint_positions(row) for row in data.position.values]
    off = joints - reference.angles[_rows(data, reference)]
    tilts = tilt(*(np.pad(x, ((0, 0), (0, 1))) for x in (angles, planned_angles)))
    com, planned = data.com.values, data.planned_com.values
    moved, desired = com[-1, :2] - com[0, :2], planned[-1, :2] - planned[0, :2]
    length = float(np.linalg.norm(desired))
    # Distance in the planned direction, if the plan moves at all.
    distance = float(moved @ desired / length) if length > MOVES else 0.0
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
        "com_drift_m": float(np.linalg.norm(moved - desired)),
        "largest_roll_deg": float(np.degrees(np.abs(angles[:, 0]).max())),
        "planned_roll_deg": float(np.degrees(np.abs(planned_angles[:, 0]).max())),
        "planned_pitch_deg": float(np.degrees(np.abs(planned_angles[:, 1]).max())),
        "largest_pitch_deg": float(np.degrees(np.abs(angles[:, 1]).max())),
        "roll_range_deg": float(np.degrees(np.ptp(angles[:, 0]))),
        "planned_roll_range_deg": float(np.degrees(np.ptp(planned_angles[:, 0]))),
        "least_cop_margin_m": float(margin[known].min()) if known.any() else np.nan,
        "cop_outside_share": float((margin[known] < 0).mean()) if known.any() else 0.0,
        "peak_torque_share": float((torque / robot.quad.torque_limits).max()),
        "peak_torque_joint": robot.quad.joints[worst],
        "peak_torques_N_m": dict(zip(robot.quad.joints, torque.tolist())),
        "tracking_error_rad": float(np.abs(off).max()),
        "tilt_off_plan_deg": float(np.degrees(tilts.max())),
    }
