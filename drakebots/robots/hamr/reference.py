"""References: trajectories of states and voltages that HAMR-VI can execute.

A reference comes from a plan (:func:`as_reference`) or from a part of a simulation
(:func:`recorded_reference`); the tracking controller executes it, and
:func:`export_voltages` writes its voltages for a real drive.
"""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import xarray as xr
from pydrake.math import RollPitchYaw
from scipy.interpolate import CubicSpline

from drakebots.core.checks import (
    array,
    check_memory,
    flag,
    non_negative,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import check, checked
from drakebots.core.files import write_csv
from drakebots.core.units import MM_G_MS
from drakebots.formats import load
from drakebots.model import contexts_along
from drakebots.multibody import Robot, build_robot
from drakebots.results import Result
from drakebots.robots.hamr.model import ACTUATORS, BIAS, LEGS, MODEL, check_voltages

CHASSIS = "Chassis"
"""The body in whose frame leg positions are expressed."""

MAX_LEG_GAP = 1e-3
"""Largest distance between a leg's first and last position in a periodic reference
[m]."""

FEEDFORWARD = "feedforward"
"""Variable of a plan's data: the voltages to be fed, where they are not its own."""

_SNAP = 1e-9
"""Fraction of the duration: a time this little before a knot counts as the knot's."""

_BASE = 6
"""Number of the chassis' coordinates."""


@cache
def reference_robot() -> Robot:
    """The robot whose coordinates references use: base "euler"; mm, g, ms inside."""
    return build_robot(load(MODEL), base="euler", time_step=0, scaling=MM_G_MS)


def coordinate_names() -> list[str]:
    """The names of the 38 coordinates, in order."""
    return list(reference_robot().plant.GetPositionNames(always_add_suffix=False))


def leg_positions(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Legs (T, 4, 3) [m] in the chassis frame, at positions q (T, nq) in SI."""
    along = contexts_along(robot.plant, q / robot.position_units())
    return np.array([robot.points_positions(context, CHASSIS) for context in along])


@checked("reference", eq=False)
class Reference:
    """States and voltages over time, in SI.

    The coordinates are those of :func:`coordinate_names`: x, y, z, yaw, pitch,
    roll of the chassis, then eight for each leg.

    Raises:
        InvalidInput: for arrays of a wrong shape or with values that are not finite,
            times that do not increase from 0, voltages outside 0..225 V, or
            a periodic reference whose legs do not return to their start.
    """

    time: Annotated[np.ndarray, array((None,))]
    """Times of the knots (N,) [s], from 0, increasing."""
    q: np.ndarray
    """Positions at the knots (N, 38) [m, rad]."""
    v: np.ndarray
    """Rates of the positions at the knots (N, 38) [m/s, rad/s]."""
    voltages: np.ndarray
    """Voltages held from each knot to the next (N-1, 8) [V]."""
    periodic: Annotated[bool, flag()]
    """Whether the last knot is the first knot of the next cycle, except for the pose of
    the chassis."""
    friction: Annotated[float, non_negative()]
    """Friction coefficient of the ground it was made for."""
    name: str = "plan"
    """Name of the reference."""

    def __post_init__(self):
        knots, nq = len(self.time), len(coordinate_names())
        if knots < 2 or self.time[0] != 0 or np.diff(self.time).min() <= 0:
            raise InvalidInput(
                "reference: time must be two or more knots that increase from 0 s"
            )
        rows, fed = array((knots, nq)), array((knots - 1, 8), "V")
        check(self, "reference", q=rows, v=rows, voltages=fed)
        check_voltages(self.voltages)
        if self.periodic:
            gap = np.linalg.norm(self.legs[-1] - self.legs[0], axis=1)
            worst = int(gap.argmax())
            if gap[worst] > MAX_LEG_GAP:
                raise InvalidInput(
                    f"reference {self.name} is not periodic: leg {LEGS[worst]} ends "
                    f"{1e3 * gap[worst]:.2g} mm from where it starts; set "
                    "periodic=False or give a whole cycle"
                )

    @property
    def duration(self) -> float:
        """Duration of a cycle, or of the whole reference [s]."""
        return float(self.time[-1])

    @property
    def base_position(self) -> np.ndarray:
        """Position of the chassis at the knots (N, 3) [m]."""
        return self.q[:, :3]

    @property
    def base_rpy(self) -> np.ndarray:
        """Roll, pitch and yaw of the chassis at the knots (N, 3) [rad]."""
        return self.q[:, 5:2:-1]

    @cached_property
    def legs(self) -> np.ndarray:
        """Positions of the legs' markers in the chassis frame, at the knots
        (N, 4, 3) [m]."""
        legs = leg_positions(reference_robot(), self.q)
        legs.setflags(write=False)
        return legs

    @cached_property
    def _curve(self) -> CubicSpline:
        legs = self.legs
        if not self.periodic:
            return CubicSpline(self.time, legs)
        # The gap between the cycle's ends is spread over the cycle, so that the
        # repeated curve has no jump.
        share = (self.time / self.duration)[:, None, None]
        closed = legs - share * (legs[-1] - legs[0])
        closed[-1] = closed[0]
        return CubicSpline(self.time, closed, bc_type="periodic")

    @cached_property
    def _slope(self) -> CubicSpline:
        return self._curve.derivative()

    def phase(self, t: float) -> float:
        """The reference's own time at time t [s]: wrapped, or clamped to its ends."""
        if self.periodic:
            t = np.mod(t + _SNAP * self.duration, self.duration)
        return float(min(max(t, 0.0), self.duration))

    def poses_at(self, times: np.ndarray) -> np.ndarray:
        """x, y, z, roll, pitch, yaw of the chassis (T, 6) [m, rad] at the
        reference's own times (T,) [s], linear between the knots."""
        poses = np.column_stack([self.base_position, self.base_rpy])
        return np.column_stack([np.interp(times, self.time, c) for c in poses.T])

    def voltages_at(self, t: float) -> np.ndarray:
        """Voltages of the actuators (8,) [V] at time t [s]."""
        moment = self.phase(t) + _SNAP * self.duration
        k = int(np.searchsorted(self.time, moment, "right")) - 1
        return self.voltages[min(k, len(self.voltages) - 1)]

    def legs_at(self, t: float) -> np.ndarray:
        """Positions of the legs' markers in the chassis frame (4, 3) [m] at time t
        [s], by a cubic spline through the knots."""
        return self._curve(self.phase(t))

    def leg_velocities_at(self, t: float) -> np.ndarray:
        """The time derivative of :meth:`legs_at` (4, 3) [m/s]."""
        if not self.periodic and not 0 <= t <= self.duration:
            return np.zeros((4, 3))
        return self._slope(self.phase(t))


# --- from a plan or a simulation --------------------------------------------


def as_reference(plan: Result | Reference) -> Reference:
    """The reference of a plan; a reference is returned as it is.

    Raises:
        InvalidInput: for a result that is not a plan of HAMR.
    """
    if isinstance(plan, Reference):
        return plan
    kind = getattr(plan, "kind", type(plan).__name__)
    if kind != "hamr.plan":
        raise InvalidInput(
            f"needs a plan of HAMR, got {kind!r}; make one with `drakebots plan hamr`"
        )
    data, metrics = plan.data, plan.metrics
    voltages = data.voltage.values[:-1]
    if FEEDFORWARD in data:
        # Each of M samples is held for 1/M of the duration.
        fed, knots = data[FEEDFORWARD].values, data.time.values
        middles = (knots[:-1] + knots[1:]) / 2 - knots[0]
        index = (middles / (knots[-1] - knots[0]) * len(fed)).astype(int)
        voltages = fed[index]
    return Reference(
        time=data.time.values - data.time.values[0],
        q=data.position.sel(coordinate=coordinate_names()).values,
        v=data.velocity.values,
        voltages=voltages,
        periodic=bool(metrics["periodic"]),
        friction=float(metrics["friction"]),
        name=str(metrics.get("gait", "plan")),
    )


def recorded_reference(
    data: xr.Dataset,
    start: float,
    end: float,
    *,
    periodic: bool,
    friction: float,
    every: int = 1,
    name: str = "recorded",
) -> Reference:
    """A part of a simulation as a reference.

    Args:
        data: dataset of a HAMR simulation, or of an executed plan.
        start, end: first and last time of the part [s], rounded to samples.
        periodic: whether the part is a cycle.
        friction: friction coefficient of the simulated ground.
        every: number of samples between two knots.
        name: name of the reference.

    Raises:
        InvalidInput: when the simulation does not cover the part.
    """
    times = data.time.values
    first, last = (int(np.abs(times - moment).argmin()) for moment in (start, end))
    step = np.diff(times).max()
    if abs(times[first] - start) > step or abs(times[last] - end) > step:
        raise InvalidInput(
            f"the run covers {times[0]:g}..{times[-1]:g} s, "
            f"not {start:g}..{end:g} s; simulate longer"
        )
    index = np.unique(np.r_[np.arange(first, last, every), last])
    names = coordinate_names()
    part = data.isel(time=index)
    if names[3] in part.coordinate.values:
        # An executed plan has a reference's base, "euler"; a variant of the model
        # may have more coordinates.
        place = [part.coordinate.values.tolist().index(name) for name in names]
        q, v = part.position.values[:, place], part.velocity.values[:, place]
        q[:, 3] = np.unwrap(q[:, 3])
    else:
        q, v = _from_quaternion(part, names)
    time, fed = part.time.values - part.time.values[0], part.voltage.values[:-1]
    return Reference(time, q, v, fed, periodic, friction, name)


def _from_quaternion(
    part: xr.Dataset, names: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and rates (N, 38) of a simulation, whose base is "quaternion"."""
    rpy, rates = part.base_rpy.values, part.velocity.values
    q, v = np.zeros((2, part.sizes["time"], len(names)))
    q[:, :3], q[:, 3:_BASE] = part.base_position.values, rpy[:, ::-1]
    q[:, _BASE:] = part.position.sel(coordinate=names[_BASE:]).values
    # A free base in Drake has angular, then linear velocities, in the world frame.
    v[:, :3] = rates[:, 3:6]
    for k, (angles, w_WB) in enumerate(zip(rpy, rates[:, :3])):
        turn = RollPitchYaw(angles)
        v[k, 3:_BASE] = turn.CalcRpyDtFromAngularVelocityInParent(w_WB)[::-1]
    v[:, _BASE:] = rates[:, 6:]
    return q, v


# --- voltages for a real drive ----------------------------------------------


@checked()
class VoltageTable:
    """Voltages of a plan of HAMR at a constant rate, for a drive to play."""

    plan: Result | Reference
    """A plan of HAMR, or a reference."""
    rate: Annotated[float, positive("Hz")] = 2500.0
    """Sampling rate."""
    cycles: Annotated[int, whole(1)] = 1
    """Number of times a periodic plan is repeated."""
    ramp: Annotated[float, non_negative()] = 0.0
    """Number of cycles over which the voltages grow from the middle of their range."""

    def sampled(self) -> tuple[np.ndarray, np.ndarray]:
        """Times (n,) [s] and voltages (n, 8) [V].

        Raises:
            InvalidInput: for a rate too low for the plan's knots.
        """
        reference, rate = as_reference(self.plan), self.rate
        fastest = 1 / np.diff(reference.time).min()
        if rate < fastest * (1 - 1e-9):
            raise InvalidInput(
                f"rate must be at least {fastest:.4g} Hz to play every knot, got "
                f"{rate:g}"
            )
        length = reference.duration * (self.cycles if reference.periodic else 1)
        check_memory(f"a table of {length * rate:.3g} rows", length * rate, 500)
        times = np.arange(round(length * rate)) / rate
        values = np.array([reference.voltages_at(t) for t in times])
        if self.ramp > 0 and reference.periodic:
            grown = np.minimum(times / (self.ramp * reference.duration), 1.0)
            values = BIAS / 2 + grown[:, None] * (values - BIAS / 2)
        return times, check_voltages(values)


def export_voltages(
    plan: Result | Reference | VoltageTable, path: str | Path, **options: Any
) -> Path:
    """Writes the voltages of a plan as CSV: time_s, then a column for each actuator.

    Args:
        plan: the plan, or its table.
        path: file to write (.csv).
        options: fields of the table, for a plan.

    Raises:
        InvalidInput: as :meth:`VoltageTable.sampled`.
        FileProblem: when the file cannot be written.
    """
    table = plan if isinstance(plan, VoltageTable) else VoltageTable(plan, **options)
    times, values = table.sampled()
    heads = ["time_s", *(f"{name}_V" for name in ACTUATORS)]
    rows = ([f"{t:.7f}", *(f"{v:.4f}" for v in row)] for t, row in zip(times, values))
    return write_csv(path, heads, rows)
