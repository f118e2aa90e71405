"""Gait synthesis: a motion from speed and turning rate.

The body's path P(t), heading psi(t) = w t, P' = v [cos psi, sin psi]; every foot
stands where its nominal place is in the middle of its stance,

    p_j = P(t_m) + R(psi(t_m)) r_j,

swings between such places, and the COM follows by :func:`com_path`. Steady
cycles only: the motion is periodic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.robots.quads.com_path import com_path, to_frames
from drakebots.robots.quads.footfall import gait_footfall
from drakebots.robots.quads.links_skin import LinkSkin
from drakebots.robots.quads.motion import MotionInput
from drakebots.robots.quads.quad import Quad
from drakebots.robots.quads.support import support_polygon

STRIDE = 5
"""Frames between the knots of a COM path, as of a plan."""

Swing = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Progress in [0, 1] of the swing to (share of the step, share of the lift)."""


def smooth_swing(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At rest at both ends, velocity and acceleration: quintic and 64 s^3 (1-s)^3."""
    s = np.asarray(s, float)
    return s**3 * (10 - 15 * s + 6 * s**2), 64 * (s * (1 - s)) ** 3


@dataclass(frozen=True)
class Gait:
    """When feet are down and how they swing.

    Attributes:
        phases: moment of landing of each foot [periods].
        duty: share of the period a foot is down.
        period: T [s].
        lift: of the swing feet [m].
        swing: how they move.
        height: of the COM above that at rest [m].
        clearance: of the ZMP from the polygon's sides [m].
        spread: of the feet's nominal places, against those at rest.
    """

    phases: Mapping[str, float]
    duty: float
    period: float
    lift: float
    swing: Swing = smooth_swing
    height: float = 0.0
    clearance: float = 0.015
    spread: float = 1.0
    name: str = "gait"
    reference: Mapping[str, Callable] = field(default_factory=dict)


def synthesize(
    quad: Quad,
    gait: Gait,
    *,
    speed: float,
    turning_rate: float = 0.0,
    cycles: int = 1,
    dt: float = 5e-3,
    flight: bool = False,
    skin: LinkSkin | None = None,
) -> MotionInput:
    """Whole cycles of a gait.

    Args:
        quad: the robot: its feet and COM at rest.
        gait: see :class:`Gait`; its period is rounded to whole knots.
        speed: v [m/s], backwards if negative.
        turning_rate: w [rad/s], to the left.
        cycles: at least 1.
        dt: of the frames [s].
        flight: whether the pattern may have frames without support.
        skin: on the links, for the COM at rest.

    Raises:
        InvalidInput: for values that cannot be, a gait without support.
        NoSolution: when no COM path keeps the ZMP above the feet.
    """
    for what, value in (
        ("speed", speed),
        ("turning rate", turning_rate),
        ("lift", gait.lift),
        ("height", gait.height),
    ):
        if not np.isfinite(value):
            raise InvalidInput(f"{what} {value} must be a number")
    if int(cycles) != cycles or cycles < 1:
        raise InvalidInput(f"cycles = {cycles} must be a whole number >= 1")
    knot = STRIDE * dt
    knots = max(8, round(gait.period / knot))
    period = knots * knot
    K = cycles * knots + 1
    N = (K - 1) * STRIDE + 1
    footfall = gait_footfall(
        quad.feet, gait.phases, period=period, duty=gait.duty, frames=N, dt=dt
    )
    t = footfall.times
    body = _Path(speed, turning_rate)
    centre = quad.rest_com(skin)
    places = gait.spread * (quad.rest_feet[:, :2] - centre[:2])
    feet = np.zeros((N, len(quad.feet), 3))
    for j, foot in enumerate(quad.feet):
        # As in gait_footfall: on the boundary counts what begins there.
        u = t / period - gait.phases[foot] + 1e-9
        k = np.floor(u)
        s = np.clip((u - k - gait.duty) / max(1 - gait.duty, 1e-9), 0, 1)
        way, rise = gait.swing(s)
        middle = (k + gait.phases[foot] + gait.duty / 2) * period
        here = body.place(middle, places[j])
        there = body.place(middle + period, places[j])
        feet[:, j, :2] = here + way[:, None] * (there - here)
        feet[:, j, 2] = gait.lift * rise
    heading = turning_rate * t
    at = STRIDE * np.arange(K)
    contact = footfall.at(at)
    height = centre[2] + gait.height
    c = com_path(
        body.place(t[at], np.zeros(2)),
        [
            support_polygon(quad, feet[i], contact[k], heading[i])
            for k, i in enumerate(at)
        ],
        height,
        knot,
        clearance=gait.clearance,
        periodic=True,
        turn=float(heading[-1]),
    )
    com = np.column_stack([to_frames(c, STRIDE, N, rest=False), np.full(N, height)])
    com[:, :2] += centre[:2]
    feet[:, :, :2] += centre[:2]
    return MotionInput(
        footfall,
        com,
        feet,
        heading,
        period="cycle",
        flight=flight,
        reference={k: f(t / period) for k, f in gait.reference.items()},
        name=gait.name,
    )


@dataclass(frozen=True)
class _Path:
    """An arc through the origin."""

    speed: float
    turning_rate: float

    def place(self, t: np.ndarray, r: np.ndarray) -> np.ndarray:
        """P(t) + R(psi(t)) r (T, 2)."""
        t = np.asarray(t, float)
        psi = self.turning_rate * t
        # sinc keeps the straight walk in the same formula.
        chord = self.speed * t * np.sinc(psi / (2 * np.pi))
        P = chord[..., None] * np.stack([np.cos(psi / 2), np.sin(psi / 2)], axis=-1)
        c, s = np.cos(psi), np.sin(psi)
        turned = np.stack([c * r[0] - s * r[1], s * r[0] + c * r[1]], axis=-1)
        return P + turned
