"""A locomotion plan as functions of time: state, forces, and which feet carry load.

A plan is known at its knots. Between them positions are cubic with the knots' rates
(Hermite), feet are monotone cubics (they never dip below the ground between two knots
on it), and forces are linear. A periodic plan goes on beyond its last knot, a cycle's
advance further on; another plan ends at rest in its last pose.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator

from drakebots.model import contexts_along, gravity
from drakebots.multibody import Robot
from drakebots.results import Result, in_order

LOADED = 0.02
"""A foot carries load where its planned normal force exceeds this share of the
weight."""

_PADDING = 4
"""Number of knots of the next and last cycle that shape a foot's path at the wrap."""


class Sample:
    """A plan at one time, in the plant's units.

    Args:
        plan: the plan.
        time: not before its start.

    Attributes:
        q, v, vdot: coordinates, their rates and accelerations (nq,).
        base: position of the base, world (3,).
        com, com_velocity, com_acceleration: motion of the centre of mass, world (3,).
        feet, feet_velocity, feet_acceleration: motion of the feet's centres, world
            (nc, 3).
        input: inputs of the actuators (nu,).
        force: forces of the ground on the feet, world (nc, 3).
        loaded: whether a foot carries load (nc,).
        swing: share of its swing that a foot has behind it (nc,), 0 while loaded.
        landing: time until it lands (nc,), 0 while loaded.
    """

    def __init__(self, plan: Reference, time: float):
        cycle, phase = plan._phase(time)
        n, nc = plan.q.shape[1], plan.feet.shape[1]
        moving, still = plan._curves
        x, dx, ddx = moving(phase), moving(phase, 1), moving(phase, 2)
        p, dp, ddp = still(phase), still(phase, 1), still(phase, 2)
        if not plan.periodic and time >= plan.duration:
            dx, ddx, dp, ddp = 0 * dx, 0 * ddx, 0 * dp, 0 * ddp
        x = x + cycle * (np.concatenate([plan.q[-1] - plan.q[0], plan._stride]))
        self.q, self.com = x[:n], x[n:]
        self.v, self.com_velocity = dx[:n], dx[n:]
        self.vdot, self.com_acceleration = ddx[:n], ddx[n:]
        p = p.reshape(-1, 3) + cycle * plan._stride
        self.feet, self.base = p[:nc], p[nc]
        self.feet_velocity = dp.reshape(-1, 3)[:nc]
        self.feet_acceleration = ddp.reshape(-1, 3)[:nc]
        k = int(np.searchsorted(plan.time, phase, "right")) - 1
        k = min(max(k, 0), len(plan.time) - 2)
        share = (phase - plan.time[k]) / (plan.time[k + 1] - plan.time[k])
        self.input = plan.input[k]
        self.force = (1 - share) * plan.force[k] + share * plan.force[k + 1]
        self.loaded, self.swing, self.landing = plan._contacts(phase)


@dataclass(frozen=True)
class Reference:
    """A plan at its N knots, in the plant's units.

    Attributes:
        time: times from 0 on (N,).
        q, v: coordinates and their rates, in the plant's order (N, nq).
        base: position of the base, world (N, 3).
        com, com_velocity: motion of the centre of mass, world (N, 3).
        feet: centres of the feet, world (N, nc, 3).
        input: inputs (N, nu); each holds over the interval after its knot.
        force: forces of the ground on the feet, world (N, nc, 3).
        loaded: whether a foot carries load at a knot (N, nc).
        turn: the change of the base's yaw [rad].
        periodic: whether the plan repeats.
    """

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    base: np.ndarray
    com: np.ndarray
    com_velocity: np.ndarray
    feet: np.ndarray
    input: np.ndarray
    force: np.ndarray
    loaded: np.ndarray
    turn: float
    periodic: bool

    @property
    def duration(self) -> float:
        """Duration of the plan, or of a cycle."""
        return float(self.time[-1])

    @property
    def height(self) -> float:
        """Mean height of the centre of mass above the lowest foot."""
        return float((self.com[:, 2] - self.feet[:, :, 2].min(axis=1)).mean())

    def at(self, time: float) -> Sample:
        """The plan at a time >= 0."""
        return Sample(self, time)

    def _phase(self, time: float) -> tuple[int, float]:
        """Cycles before a time, and the time within its cycle."""
        if not self.periodic:
            return 0, min(time, self.duration)
        # Rounding must not make the last moment of a cycle the first of the next.
        cycle = int(np.floor(time / self.duration + 1e-9))
        return cycle, max(time - cycle * self.duration, 0.0)

    @cached_property
    def _stride(self) -> np.ndarray:
        """Advance of a cycle (3,)."""
        return self.com[-1] - self.com[0]

    @cached_property
    def _curves(self):
        x = np.hstack([self.q, self.com])
        dx = np.hstack([self.v, self.com_velocity])
        feet, time = self.feet.reshape(len(self.time), -1), self.time
        feet = np.hstack([feet, self.base])
        if self.periodic:
            step = np.tile(self._stride, self.feet.shape[1] + 1)
            P, T = _PADDING, self.duration
            feet = np.vstack([feet[-1 - P : -1] - step, feet, feet[1 : P + 1] + step])
            time = np.concatenate([time[-1 - P : -1] - T, time, time[1 : P + 1] + T])
        return CubicHermiteSpline(self.time, x, dx), PchipInterpolator(time, feet)

    def _contacts(self, phase: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mask of the loaded feet; the share of their swings behind the others, and the
        time until they land.

        The contact of a knot lasts from the middle of the interval before it to the
        middle of the one after.
        """
        middles = (self.time[1:] + self.time[:-1]) / 2
        knot = int(np.searchsorted(middles, phase))
        loaded = self.loaded[knot].copy()
        start, end = self._swings[:, knot].T
        swing = np.clip((phase - start) / (end - start), 0.0, 1.0)
        landing = np.maximum(end - phase, 0.0)
        return loaded, np.where(loaded, 0.0, swing), np.where(loaded, 0.0, landing)

    @cached_property
    def _swings(self) -> np.ndarray:
        """Start and end of the swing around each knot (nc, N, 2); NaN on the ground."""
        middles = (self.time[1:] + self.time[:-1]) / 2
        T, N = self.duration, len(self.time)
        first, last = np.r_[0.0, middles], np.r_[middles, T]
        swings = np.full((*self.loaded.T.shape, 2), np.nan)
        for foot, loaded in enumerate(self.loaded.T):
            turns = np.flatnonzero(np.diff(loaded, prepend=True, append=True))
            for a, after in turns.reshape(-1, 2).tolist():
                start, end = first[a], last[after - 1]
                if self.periodic and loaded.any():
                    if a == 0:
                        before = N - 1 - int(np.argmax(loaded[::-1]))
                        start = first[before + 1] - T if before < N - 1 else 0.0
                    if after == N:
                        next_down = int(np.argmax(loaded))
                        end = first[next_down] + T if next_down > 0 else T
                swings[foot, a:after] = start, end
        return swings


def reference(plan: Result, robot: Robot) -> Reference:
    """A plan of kind "locomotion.plan" for a robot.

    Args:
        plan: the result.
        robot: robot of the plan's model, on the plan's base.

    Raises:
        InvalidInput: for a plan of another model.
    """
    data, plant = plan.data, robot.plant
    names = plant.GetPositionNames(always_add_suffix=False)
    q = in_order(data.position.values, data.coordinate.values.tolist(), names)
    names = plant.GetVelocityNames(always_add_suffix=False)
    v = in_order(data.velocity.values, data.rate.values.tolist(), names)
    q, v = q / robot.position_units(), v / robot.velocity_units()
    com, rate = np.zeros((2, len(q), 3))
    feet = np.zeros((len(q), len(robot.model.feet), 3))
    for k, context in enumerate(contexts_along(plant, np.hstack([q, v]))):
        com[k] = plant.CalcCenterOfMassPositionInWorld(context)
        rate[k] = plant.CalcCenterOfMassTranslationalVelocityInWorld(context)
        feet[k] = robot.feet_positions(context) / robot.scaling.length
    yaw = np.unwrap(data.base_rpy.values[:, 2])
    force = data.foot_force.values / robot.scaling.force
    weight = robot.model.summary.mass / robot.scaling.mass * gravity(robot.plant)
    return Reference(
        time=data.time.values / robot.scaling.time,
        q=q,
        v=v,
        base=data.base_position.values / robot.scaling.length,
        com=com,
        com_velocity=rate,
        feet=feet,
        input=data.input.values / robot.input_units(),
        force=force,
        loaded=force[:, :, 2] > LOADED * weight,
        turn=float(yaw[-1] - yaw[0]),
        periodic=bool(plan.metrics["periodic"]),
    )
