"""Ready-made motions for any quad-robot, scaled to its legs.

    motion = library_motion("walk_long", quad)

lift_single, lift_double   one foot or two are lifted and put down again
walk                       slow walk
walk_long                  0.11 m/s, long low strides
walk_short                 0.06 m/s, short high strides
turn                       turning on the spot
trot                       0.45 m/s, after a horse
lizard                     sprawled walk that bends tail and trunk
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drakebots.core.checks import check_value, finite
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.robots.quads.motion.gait import (
    Gait,
    horse_swing,
    leg_height,
    lift,
    roles,
    stride_length,
    synthesize,
)
from drakebots.robots.quads.motion.motion import MotionInput
from drakebots.robots.quads.robot import Quad

LATERAL = {"rl": 0.0, "fl": 0.25, "rr": 0.5, "fr": 0.75}
"""Phases of the touch-downs of a lateral-sequence walk [periods]."""

TROT = {"fl": 0.0, "rr": 0.0, "fr": 0.5, "rl": 0.5}
"""Phases of the touch-downs of a trot [periods]."""

CROUCH = 0.06
"""How far the body of a gait is below its standing height [legs' heights]. The knees'
skin, free of stress as the robot stands, then bears part of the weight. Without it some
motor of the monster is at its limit in 46 % of the steps of its planned walk (27 %),
and the rms torque is 0.55 of the limit (0.36).
"""


def _named(quad: Quad, phases: dict[str, float]) -> dict[str, float]:
    names = roles(quad)
    return {names[key]: value for key, value in phases.items()}


def walk(
    quad: Quad,
    speed: float = 0.1,
    turning_rate: float = 0.0,
    *,
    stride: float | None = None,
    lift: float | None = None,
    duty: float = 0.82,
    period: float | None = None,
    **options,
) -> MotionInput:
    """A slow walk with three or four feet on the ground.

    Args:
        quad: the robot.
        speed: speed of the body [m/s].
        turning_rate: turning rate of the body [rad/s].
        stride: distance the body travels in a period [m]; half the legs' height by
            default.
        lift: height of the swing feet [m]; a sixth of the legs' height by default.
        duty: duty factor; from 0.75 on at most one foot is in the air.
        period: period of the gait [s], in place of the stride.
        options: options of :class:`Gait` (height, :data:`CROUCH` below standing by
            default, clearance, spread), and `cycles`, `dt`, `skin` of
            :func:`synthesize`.

    Raises:
        InvalidInput: for values out of range.
        NoSolution: when no path of the COM keeps the ZMP in the support polygons.
    """
    check_value("speed", speed, finite("m/s"))
    check_value("turning rate", turning_rate, finite("rad/s"))
    h = leg_height(quad)
    rates = abs(speed) + abs(turning_rate) * _arm(quad)
    if period is None:
        stride = 0.5 * h if stride is None else stride
        period = stride / rates if rates > 0 else 2.5
    gait = Gait(
        _named(quad, LATERAL),
        duty,
        min(period, 5.0),
        h / 6 if lift is None else lift,
        name=options.pop("name", "walk"),
        **{
            "height": -CROUCH * h,
            **{k: options.pop(k) for k in _GAIT if k in options},
        },
    )
    return synthesize(quad, gait, speed=speed, turning_rate=turning_rate, **options)


_GAIT = ("height", "clearance", "spread", "reference", "swing")


def _arm(quad: Quad) -> float:
    centre = quad.rest_feet[:, :2].mean(axis=0)
    return float(np.linalg.norm(quad.rest_feet[:, :2] - centre, axis=1).max())


def walk_long(quad: Quad, speed: float = 0.11, **options) -> MotionInput:
    """Long low strides: length 0.85 and lift 0.1 of the legs' height."""
    h = leg_height(quad)
    options = {"stride": 0.85 * h, "lift": 0.1 * h} | options
    return walk(quad, speed, name="walk, long and low", **options)


def walk_short(quad: Quad, speed: float = 0.06, **options) -> MotionInput:
    """Short high strides: length 0.45 and lift 0.22 of the legs' height."""
    h = leg_height(quad)
    options = {"stride": 0.45 * h, "lift": 0.22 * h} | options
    return walk(quad, speed, name="walk, short and high", **options)


def turn(quad: Quad, turning_rate: float = 0.25, **options) -> MotionInput:
    """Turns on the spot, to the left for a positive rate [rad/s]."""
    h = leg_height(quad)
    options = {"stride": 0.4 * h} | options
    return walk(quad, 0.0, turning_rate, name="turn", **options)


def trot(
    quad: Quad,
    speed: float = 0.45,
    *,
    duty: float = 0.54,
    lift: float | None = None,
    period: float | None = None,
    turning_rate: float = 0.0,
    **options,
) -> MotionInput:
    """A trot after a horse's; see :func:`horse_swing`.

    Args:
        quad: the robot.
        speed: speed of the body [m/s].
        duty: duty factor; below 0.5 the trot has phases of flight.
        lift: height of the swing feet [m]; an eighth of the legs' height by default.
        period: period [s]; from the strides of animals of this size by default.
        turning_rate: turning rate of the body [rad/s].
        options: as of :func:`walk`.
    """
    h = leg_height(quad)
    period = stride_length(abs(speed), h) / abs(speed) if period is None else period
    gait = Gait(
        _named(quad, TROT),
        duty,
        period,
        h / 8 if lift is None else lift,
        name=options.pop("name", "trot"),
        **{
            "swing": horse_swing(duty),
            "height": -CROUCH * h,
            "clearance": 0.008,
            **{k: options.pop(k) for k in _GAIT if k in options},
        },
    )
    return synthesize(
        quad,
        gait,
        speed=speed,
        turning_rate=turning_rate,
        flight=duty < 0.5,
        **options,
    )


def lizard(
    quad: Quad,
    speed: float = 0.08,
    *,
    bend: float = 0.35,
    sway: float = 0.12,
    **options,
) -> MotionInput:
    """A lizard's walk: the trunk yaws to and fro, and trunk and tail bend against it.

    Args:
        quad: the robot; joints with spine, trunk or tail in their names bend.
        speed: speed of the body [m/s].
        bend: amplitude of those joints [rad].
        sway: amplitude of the heading [rad].
        options: as of :func:`walk`.
    """
    h = leg_height(quad)
    bending = [
        name
        for name in quad.coordinates[6:]
        if any(part in name.lower() for part in ("spine", "trunk", "tail"))
    ]
    options = {"stride": 0.6 * h, "lift": 0.14 * h} | options
    reference = {
        name: (lambda t: -bend * np.sin(2 * np.pi * (t - LIZARD_LEAD)))
        for name in bending
    }
    motion = walk(quad, speed, name="lizard", reference=reference, **options)
    t = np.arange(len(motion)) / (len(motion) - 1)
    heading = motion.heading + sway * np.sin(2 * np.pi * (t - LIZARD_LEAD))
    return replace(motion, heading=heading)


LIZARD_LEAD = 0.125
"""Phase lead [periods]: the trunk is turned furthest to one side when the forefoot
of that side touches down."""


MOTIONS = {
    "lift_single": lambda quad, **o: lift(quad, [roles(quad)["fl"]], **o),
    "lift_double": lambda quad, **o: lift(
        quad, [roles(quad)["fl"], roles(quad)["rr"]], **o
    ),
    "walk_long": walk_long,
    "walk_short": walk_short,
    "walk": walk,
    "turn": turn,
    "trot": trot,
    "lizard": lizard,
}
"""Functions (quad, **options) that make a motion, by its name."""


def library_motion(name: str, quad: Quad, **options) -> MotionInput:
    """A motion of the library for a robot.

    Raises:
        UnknownName: for a name that is not in :data:`MOTIONS`.
        InvalidInput: for an option that the motion does not have, or a value out of
            range.
    """
    if name not in MOTIONS:
        raise UnknownName("motion", name, MOTIONS)
    try:
        return MOTIONS[name](quad, **options)
    except TypeError as error:
        raise InvalidInput(f"motion {name}: {error}") from None
