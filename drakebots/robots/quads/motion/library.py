"""Motions for any quad-robot: ready-made, scaled to its legs, or in files.

    motion = library_motion("walk_long", quad)      # or read_motion("walk.yaml", quad)

lift_single, lift_double   one foot or two are lifted and put down again
walk                       slow walk
walk_long                  0.11 m/s, long low strides
walk_short                 0.06 m/s, short high strides
turn                       turning on the spot
trot                       0.45 m/s, after a horse
lizard                     sprawled walk that bends tail and trunk

A YAML file names a motion of the library, a gait, or feet to lift:

    motion: walk_long            # of the library, with its options
    speed: 0.11

    gait: {period: 2.0, duty: 0.8, lift: 0.03, phases: {FL: 0.25, ...}}
    speed: 0.1
    turning_rate: 0.0

    lift: [FL, RR]               # feet to lift and put down again
    height: 0.04
    duration: 2.5

    capture: trot.bvh            # a stride of an animal, see captured_motion
    unit: cm
    speed: 0.45

Options that are given besides take the place of those in the file. A CSV file has one
row per step and, by name, the columns

    time, com.x, com.y, com.z, FL.x, FL.y, FL.z, FL.contact, ...,
    heading (optional), and q.JOINT of reference positions (optional)

or it is a capture, as a BVH file is (:mod:`capture`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.checks import check_value, finite
from drakebots.core.convert import build, names_of
from drakebots.core.errors import FileProblem, InvalidInput, UnknownName, check_names
from drakebots.core.files import (
    TOP,
    Fields,
    csv_table,
    read_yaml,
    reading,
    with_numbers,
)
from drakebots.robots.quads.motion.capture import (
    Capture,
    captured_motion,
    is_capture,
    read_capture,
)
from drakebots.robots.quads.motion.gait import (
    Gait,
    horse_swing,
    leg_height,
    lift,
    roles,
    stride_length,
    synthesize,
)
from drakebots.robots.quads.motion.motion import Footfall, MotionInput
from drakebots.robots.quads.robot import Quad

LATERAL = {"rl": 0.0, "fl": 0.25, "rr": 0.5, "fr": 0.75}
"""Phases of the touch-downs of a lateral-sequence walk [periods]."""

TROT = {"fl": 0.0, "rr": 0.0, "fr": 0.5, "rl": 0.5}
"""Phases of the touch-downs of a trot [periods]."""

CROUCH = 0.06
"""Depth of a gait's body below its standing height [legs' heights]. The knees'
skin, free of stress as the robot stands, then bears part of the weight. Without it some
motor of the monster is at its limit in 46 % of the steps of its planned walk (27 %),
and the rms torque is 0.55 of the limit (0.36).
"""


_GAIT = ("name", "height", "clearance", "spread", "reference", "swing")
"""Options of a motion that are fields of its gait."""


def _gait(
    quad: Quad, phases: Mapping[str, float], options: dict, **defaults: Any
) -> Gait:
    """A gait with phases by roles; what options hold for it is taken out of them."""
    names = roles(quad)
    own = {"height": -CROUCH * leg_height(quad)} | defaults
    own |= {key: options.pop(key) for key in _GAIT if key in options}
    return Gait({names[role]: phase for role, phase in phases.items()}, **own)


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
    period, lift = min(period, 5.0), h / 6 if lift is None else lift
    shape = {"duty": duty, "period": period, "lift": lift, "name": "walk"}
    gait = _gait(quad, LATERAL, options, **shape)
    return synthesize(quad, gait, speed=speed, turning_rate=turning_rate, **options)


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
    options = {"stride": 0.4 * leg_height(quad)} | options
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
    lift = h / 8 if lift is None else lift
    shape = {"duty": duty, "period": period, "lift": lift, "name": "trot"}
    shape |= {"swing": horse_swing(duty), "clearance": 0.008}
    gait = _gait(quad, TROT, options, **shape)
    return synthesize(
        quad, gait, speed=speed, turning_rate=turning_rate, flight=duty < 0.5, **options
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
    joints = quad.coordinates[6:]
    bending = [name for name in joints if re.search("spine|trunk|tail", name.lower())]

    def bent(t: np.ndarray) -> np.ndarray:
        return -bend * np.sin(2 * np.pi * (t - LIZARD_LEAD))

    reference = dict.fromkeys(bending, bent)
    options = {"stride": 0.6 * h, "lift": 0.14 * h} | options
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


def library_motion(name: str, quad: Quad, /, **options) -> MotionInput:
    """A motion of the library for a robot.

    Raises:
        UnknownName: for a name that is not in :data:`MOTIONS`.
        InvalidInput: for an option that the motion does not have, or a value out of
            range.
    """
    check_names("motion", [name], MOTIONS)
    return _made(MOTIONS[name], quad, **options)


# --- motions in files -----------------------------------------------------------

KINDS = ("motion", "gait", "lift", "capture")
"""The entry that says what a YAML file describes."""


def read_motion(path: str | Path, quad: Quad, /, **options: Any) -> MotionInput:
    """Reads a motion from a YAML, CSV or BVH file.

    Args:
        path: file ending in .yaml, .yml, .csv or .bvh.
        quad: the robot with its feet and its size.
        options: entries of a YAML file, in place of its own; of a capture.

    Raises:
        FileProblem: when it cannot be read, or describes no motion of this robot;
            the message names the entry, row or column.
    """
    path, ending = Path(path), Path(path).suffix.lower()
    with reading(path):
        if ending in (".yaml", ".yml"):
            return _from_yaml(read_yaml(path), quad, path, options)
        if ending == ".csv":
            text = path.read_text(encoding="utf-8")
            if not is_capture(text):
                if options:
                    raise InvalidInput(f"its steps are given; leave out {min(options)}")
                return motion_from_csv(text, quad, path.stem)
        if ending in (".csv", ".bvh"):
            return _captured(read_capture(path), quad, options)
    raise FileProblem(path, "must end in .yaml, .csv or .bvh")


def _from_yaml(raw: Any, quad: Quad, path: Path, given: dict[str, Any]) -> MotionInput:
    fields = Fields(raw, TOP)
    kinds = [key for key in KINDS if key in fields]
    if len(kinds) != 1:
        raise InvalidInput(f"needs one of {', '.join(KINDS)}; has {kinds or 'none'}")
    what = fields.get(kinds[0])
    options = {key: with_numbers(fields.get(key)) for key in fields} | given
    del options[kinds[0]]
    if kinds[0] == "motion":
        return library_motion(str(what), quad, **options)
    if kinds[0] == "capture":
        capture = read_capture(path.parent / str(what), unit=options.pop("unit", "m"))
        return _captured(capture, quad, options)
    if kinds[0] == "lift":
        feet = what if isinstance(what, list) else [what]
        return _made(lift, quad, [str(f) for f in feet], **options)
    gait = build(Gait, {"name": path.stem} | names_of(what, "gait"), "gait")
    return _made(synthesize, quad, gait, **{"speed": 0.0} | options)


def _captured(capture: Capture, quad: Quad, options: dict[str, Any]) -> MotionInput:
    crouched = {"height": -CROUCH * leg_height(quad)}
    return _made(captured_motion, capture, quad, **crouched | options)


def _made(
    make: Callable[..., MotionInput], /, *args: Any, **options: Any
) -> MotionInput:
    """A motion with options; InvalidInput for one that it does not have."""
    try:
        return make(*args, **options)
    except TypeError as error:
        raise InvalidInput(str(error)) from None


def motion_from_csv(text: str, quad: Quad, name: str = "motion") -> MotionInput:
    """Motion from the text of a CSV file; its `time` column gives dt.

    Raises:
        InvalidInput, UnknownName: naming the line or column.
    """
    header, table = csv_table(text)
    if len(table) < 2:
        raise InvalidInput("needs a header and at least two steps")
    for column in header:
        if header.count(column) > 1:
            raise InvalidInput(f"column {column!r} is there twice")
    columns = dict(zip(header, table.T))
    needed = ["time", *(f"com.{x}" for x in "xyz")]
    needed += [f"{f}.{x}" for f in quad.feet for x in ("x", "y", "z", "contact")]
    missing = [c for c in needed if c not in columns]
    if missing:
        raise InvalidInput(f"lacks the column {missing[0]!r}")
    joints = [c[2:] for c in header if c.startswith("q.")]
    for column in header:
        if column not in (*needed, "heading") and not column.startswith("q."):
            raise UnknownName("column", column, [*needed, "heading", "q.JOINT"])
    check_names("joint", joints, quad.coordinates[6:])
    t = columns["time"]
    dt = (t[-1] - t[0]) / (len(t) - 1)
    uneven = np.abs(np.diff(t) - dt)
    if not dt > 0 or uneven.max() > 1e-3 * dt:
        k = int(uneven.argmax())
        raise InvalidInput(
            f"times must be evenly spaced; line {k + 3} comes {t[k + 1] - t[k]:.6g} s "
            f"after the previous one, the mean is {dt:.6g} s"
        )
    contact = np.stack([columns[f"{f}.contact"] for f in quad.feet], axis=1)
    if not np.isin(contact, (0, 1)).all():
        k, j = np.argwhere(~np.isin(contact, (0, 1)))[0]
        raise InvalidInput(
            f"line {k + 2}, column {quad.feet[j]}.contact: must be 0 or 1"
        )
    feet = [columns[f"{f}.{x}"] for f in quad.feet for x in "xyz"]
    return MotionInput(
        Footfall(quad.feet, contact > 0, float(dt)),
        np.stack([columns[f"com.{x}"] for x in "xyz"], axis=1),
        np.stack(feet, axis=1).reshape(len(t), -1, 3),
        columns.get("heading", 0.0),
        reference={j: columns[f"q.{j}"] for j in joints},
        name=name,
    )
