"""A reference that is steered while it is followed, over any ground.

gaits = {name: Gait.named(name, legs=4, size=1.0) for name in STEPS}
reference = SteeredMotion(robot, q, step=0.05, knots=20, gaits=gaits, pace=0.4)
reference.orders = Orders(ahead=0.5, turn=0.3)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drakebots.control.references import STEPS, Gait, ReferenceMotion, crouched, raised
from drakebots.multibody import Flat, Robot, Terrain

LEAD = 0.3
"""The heading asked for is at most so far from the robot's [rad]: a robot that was
turned round does not owe the way back."""

OWED = 0.3
"""The place asked for is at most as far from the robot as its pace takes it in this
time [s]: a robot that was pushed away does not owe the way back."""

NUDGE = 0.3
"""Share of the pace from which on a robot that was asked for nothing steps."""

CLOCKS = ("stand", "auto", *STEPS)
"""Clocks of the feet: none; that of the first gait while there is somewhere to go, or
the robot is pushed; that of a gait at all times."""


@dataclass(frozen=True)
class Orders:
    """What a steered robot is to do, in its own axes.

    Attributes:
        ahead, left: speed [m/s].
        turn: rate of the heading, to the left [rad/s].
        rise: height of the base over that of the standing pose [m].
        gait: one of CLOCKS.
    """

    ahead: float = 0.0
    left: float = 0.0
    turn: float = 0.0
    rise: float = 0.0
    gait: str = "auto"

    @property
    def goes(self) -> bool:
        """Whether they lead anywhere."""
        return any((self.ahead, self.left, self.turn))


class SteeredMotion(ReferenceMotion):
    """Reference by orders that may change before every call.

    The base goes on from where it is measured at the velocity that is asked for, along
    a heading that turns as asked. The joints are those of feet that step on the spot,
    and to first order of feet that the base passes ahead, sideways and turning: tables
    by phase for each, added in proportion. A lower or higher base has the feet where
    they were.

    Args:
        robot, q, step, knots: as for :class:`ReferenceMotion`.
        gaits: clocks of the feet by name; the first is that of "auto".
        pace: speed for which the tables are made [m/s], of a gait with longer steps
            less; they turn at its share of a circle through the feet.
        terrain: the ground.

    Attributes:
        orders: the orders in force.
        shares: of the speeds of the first gait by name of a gait, at which it makes
            steps of the same length.
    """

    def __init__(
        self,
        robot: Robot,
        q: np.ndarray,
        *,
        step: float,
        knots: int,
        gaits: Mapping[str, Gait],
        pace: float,
        terrain: Terrain | None = None,
    ):
        self.orders, self._robot = Orders(), robot
        self._usual, *_ = gaits
        q = crouched(robot, q, gaits[self._usual], pace)
        super().__init__(robot, q, step=step, knots=knots, terrain=terrain)
        stances = {name: gait.duty * gait.period for name, gait in gaits.items()}
        self.shares = {n: stances[self._usual] / time for n, time in stances.items()}
        self._clocks = {}
        for name, self.gait in gaits.items():
            self._pace = pace * self.shares[name]
            self._by_clock(robot)
            still, *moving = self._table
            moving = [(m - still) / u for m, u in zip(moving, self._speeds)]
            self._clocks[name] = self.gait, self.phases, self._lifts, still, moving
        self._take(self._usual)
        self._nudge, self._risen = NUDGE * pace, (0.0, self.q)
        self._usual_pace, self._place = pace, np.array(q)[self._plane]
        self._heading, self._time, self._until = 0.0, 0.0, -np.inf

    def _take(self, name: str) -> None:
        """Takes a gait."""
        self.gait, self.phases, self._lifts, *self._tabled = self._clocks[name]

    def _passings(self) -> list[np.ndarray]:
        self._turning = turning = np.cross([0, 0, 1.0], self._arms)
        pace, most = self._pace, np.linalg.norm(turning, axis=1).max()
        self._speeds = pace, pace, pace / max(most, 1e-9)
        x, y, none = *pace * np.eye(3)[:2], np.zeros_like(self._arms)
        return [none, none + x, none + y, self._speeds[2] * turning]

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> Any:
        """Positions (knots + 1, nq) and velocities (knots + 1, nv) from time t on."""
        orders, plane = self.orders, self._plane
        if orders.gait == "stand":
            orders = replace(orders, ahead=0.0, left=0.0, turn=0.0)
        as_needed = orders.gait == "auto"
        pushed = np.linalg.norm(v[plane]) > self._nudge
        if orders.gait in self._clocks or (as_needed and (orders.goes or pushed)):
            self._take(self._usual if as_needed else orders.gait)
            self._until = t + self.gait.period
        elif orders.gait == "stand":
            self._until = -np.inf
        times, took = t + self._times, max(t - self._time, 0.0)
        self._time = t
        base = self._raised(orders.rise)
        out = np.tile(base, (len(times), 1))
        rates = np.zeros_like(out)
        yaw = self._turned(q, orders.turn * took) + orders.turn * self._times
        c, s = np.cos(yaw), np.sin(yaw)
        ahead, left = orders.ahead, orders.left
        velocity = np.stack([ahead * c - left * s, ahead * s + left * c], axis=1)
        rates[:, plane] = velocity[:, : len(plane)]
        out[:, plane] = self._moved(q[plane], rates[0, plane] * took)
        means = (rates[1:, plane] + rates[:-1, plane]) / 2
        out[1:, plane] += np.cumsum(self._step * means, axis=0)
        if "yaw" in self.axes:
            out[:, self.axes["yaw"]] += yaw
            rates[:, self.axes["yaw"]] = orders.turn
        share = None
        if t <= self._until:
            share = np.ones(len(times))
            speeds, joints = (ahead, left, orders.turn), self._joints
            still, moving = self._tabled
            table = sum((u * m for u, m in zip(speeds, moving)), still)
            self._table = [table + (base - self.q)[joints]] * 2
            stepping = self._stepping(times, np.zeros(len(times)))
            out[:, joints], rates[:, joints] = stepping
        if not isinstance(self.terrain, Flat):
            going = np.array([ahead, left])
            self._passing = np.append(going, 0.0) + orders.turn * self._turning
            if going.any():
                self._ahead = (going / np.linalg.norm(going))[: len(plane)]
            self._over_ground(times, share, out, rates)
        self.wind(out, q)
        return out, rates

    def _moved(self, here: np.ndarray, way: np.ndarray) -> np.ndarray:
        """The place asked for, a way further than last time, for a robot that is here;
        all (2,) [m], or (1,) in a plane."""
        due = self._place + way - here
        far = float(np.linalg.norm(due)) / (OWED * self._usual_pace)
        self._place = here + due / max(far, 1.0)
        return self._place

    def _turned(self, q: np.ndarray, angle: float) -> float:
        """The heading asked for, an angle further than last time, from that of the
        standing pose [rad]."""
        if "yaw" not in self.axes:
            return 0.0
        here = float((q - self.q)[self.axes["yaw"]])
        due = self._heading + angle - here
        due -= 2 * np.pi * np.round(due / (2 * np.pi))
        self._heading = here + float(np.clip(due, -LEAD, LEAD))
        return self._heading

    def _raised(self, rise: float) -> np.ndarray:
        """The standing pose with its base higher, its feet where they were (nq,)."""
        if rise != self._risen[0] and "z" in self.axes:
            self._risen = rise, raised(self._robot, self.q, rise, self._feet)
        return self._risen[1]
