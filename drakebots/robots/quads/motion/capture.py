"""A gait from motion capture: an animal's stride on the legs of any quad-robot.

    motion = captured_motion(read_capture("trot.csv"), quad, speed=0.45)

A capture has positions of points over time, the root of the skeleton (hips) first. Of
one stride these are taken, as functions of the phase: when each foot is on the ground,
and how it swings from one place to the next. A foot is on the ground where it moves at
less than :data:`SLOW` of the animal's speed. Lengths scale with the height of the legs
h, times with the Froude number Fr = v^2/(g h) as in :func:`stride_length`,

    stride = stride' (h / h') (Fr / Fr')^0.34,

with primes for the animal, whose h' is the mean height of its root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.ndimage import binary_closing, binary_opening
from scipy.spatial.transform import Rotation

from drakebots.core.checks import check_value, positive
from drakebots.core.convert import names_of
from drakebots.core.errors import FileProblem, InvalidInput, check_names
from drakebots.core.files import csv_table, reading
from drakebots.core.units import si_factor
from drakebots.robots.quads.motion.gait import (
    Gait,
    Swing,
    leg_height,
    roles,
    stride_length,
    synthesize,
)
from drakebots.robots.quads.motion.motion import MotionInput, runs
from drakebots.robots.quads.robot import Quad

CHANNELS = [f"{axis}{kind}" for kind in ("position", "rotation") for axis in "XYZ"]
"""Channels of a joint of a BVH file."""

SLOW = 1 / 3
"""Speed of a foot on the ground at most, as a share of the animal's."""

LOW = 0.25
"""Height below which a foot comes at times, as a share of the root's."""

SAMPLES = 400
"""Number of samples of a stride."""

SHORT = SAMPLES // 16
"""Samples for which a foot must be fast, or slow, to count."""

TOGETHER = 1 / 8
"""Feet that land within this share of the stride land together; in a walk the next
foot lands after a quarter."""

LARGEST = 5.0
"""Greatest height of a root that is taken for metres [m]."""


@dataclass(frozen=True)
class Capture:
    """Positions of an animal's points over time.

    Attributes:
        names: names of the points, the root of the skeleton first.
        time: evenly spaced (T,) [s].
        points: positions (T, n, 3) [m], in axes of the capture.
        name: name of the motion.
    """

    names: tuple[str, ...]
    time: np.ndarray
    points: np.ndarray
    name: str = "capture"

    def between(self, start: float | None, end: float | None) -> Capture:
        """The part from a time to another [s]."""
        low = -np.inf if start is None else start - 1e-9
        high = np.inf if end is None else end + 1e-9
        kept = (low <= self.time) & (self.time <= high)
        if kept.sum() < 8:
            raise InvalidInput(f"{self.name}: {kept.sum()} frames; needs 8 of a stride")
        return replace(self, time=self.time[kept], points=self.points[kept])


# --- files ------------------------------------------------------------------


def is_capture(table: str) -> bool:
    """Whether a table has points, rather than the COM and feet of a motion."""
    heads = [head.strip() for head in table.split("\n", 1)[0].split(",")]
    return "com.x" not in heads and any(head.endswith("_x") for head in heads)


def read_capture(path: str | Path, *, unit: str = "m") -> Capture:
    """Reads a capture: BVH, or a table with columns time_s, NAME_x, NAME_y, NAME_z.

    Args:
        path: file ending in .bvh or .csv.
        unit: of its lengths.

    Raises:
        FileProblem: naming what is wrong in it.
    """
    path = Path(path)
    with reading(path):
        text = path.read_text(encoding="utf-8")
        read = {".csv": _from_csv, ".bvh": _from_bvh}.get(path.suffix.lower())
        if read is None:
            raise FileProblem(path, "is no .csv or .bvh file; captures are")
        names, time, points = read(text)
        if not np.isfinite(points).all():
            raise InvalidInput("has points that are not finite")
        steps = np.diff(time)
        least, step = steps.min(initial=np.inf), np.ptp(time) / len(time)
        if not (
            0 < least < np.inf and np.abs(steps - steps.mean()).max() < 1e-2 * step
        ):
            raise InvalidInput("times must increase in even steps, and be two or more")
        return Capture(tuple(names), time, si_factor(unit) * points, path.stem)


def _from_csv(text: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    heads, table = csv_table(text)
    columns = dict(zip(heads, table.T))
    names = [head[:-2] for head in heads if head.endswith("_x")]
    keys = [f"{name}_{x}" for name in names for x in "xyz"]
    missing = [key for key in ("time_s", *keys) if key not in columns]
    if missing:
        raise InvalidInput(f"lacks the column {missing[0]!r}")
    points = np.stack([columns[key] for key in keys], axis=1)
    return names, columns["time_s"], points.reshape(len(table), -1, 3)


def _from_bvh(text: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Points of a BVH file by forward kinematics, ends of limbs included."""
    joints = []
    head, _, motion = text.partition("MOTION")
    words = iter([*head.split(), "its end"])

    def expect(*these: str) -> str:
        if (word := next(words)) not in these:
            raise ValueError(f"has {word!r} in place of {' or '.join(these)}")
        return word

    def add(kind: str, parent: int | None) -> None:
        name = next(words)
        name = name if kind != "End" else f"{joints[parent].name}End"
        expect("{")
        expect("OFFSET")
        offset, channels = [float(next(words)) for _ in range(3)], []
        if kind != "End":
            expect("CHANNELS")
            channels = [expect(*CHANNELS) for _ in range(int(next(words)))]
        joints.append(_Joint(name, parent, offset, channels))
        number = len(joints) - 1
        while (word := expect("JOINT", "End", "}")) != "}":
            add(word, number)

    try:
        expect("HIERARCHY")
        add(expect("ROOT"), None)
        frames, step, *rows = (row for row in motion.splitlines() if row.strip())
        values = np.array([row.split() for row in rows], float)
        time = float(step.partition("Frame Time:")[2]) * np.arange(len(values))
        count = sum(len(joint.channels) for joint in joints)
        expected = int(frames.partition("Frames:")[2]), count
        if values.shape != expected:
            raise ValueError(f"has frames by numbers {values.shape}, not {expected}")
    except (ValueError, StopIteration) as error:
        raise InvalidInput(f"is no whole BVH: {error}") from None
    return [joint.name for joint in joints], time, _positions(joints, values)


class _Joint(NamedTuple):
    """A joint of a BVH skeleton: its place in that of its parent, and what moves."""

    name: str
    parent: int | None
    offset: list[float]
    channels: list[str]


def _positions(joints: list[_Joint], values: np.ndarray) -> np.ndarray:
    """Positions of the joints (T, n, 3) by the values of their channels."""
    turns, places = [], []
    for joint in joints:
        own = dict(zip(joint.channels, values.T))
        values = values[:, len(own) :]
        p = np.tile(joint.offset, (len(values), 1))
        for k, axis in enumerate("XYZ"):
            p[:, k] += own.get(f"{axis}position", 0.0)
        R = Rotation.identity(len(values))
        for channel in (c for c in own if c.endswith("rotation")):
            R = R * Rotation.from_euler(channel[0], own[channel][:, None], degrees=True)
        if joint.parent is not None:
            p = places[joint.parent] + turns[joint.parent].apply(p)
            R = turns[joint.parent] * R
        places.append(p)
        turns.append(R)
    return np.stack(places, axis=1)


# --- the stride -------------------------------------------------------------


def captured_motion(
    capture: Capture,
    quad: Quad,
    *,
    speed: float | None = None,
    up: str | None = None,
    feet: Mapping[str, str] | None = None,
    start: float | None = None,
    end: float | None = None,
    duty: float | None = None,
    height: float = 0.0,
    **options,
) -> MotionInput:
    """A motion of whole cycles of a captured stride.

    Args:
        capture: a stride straight ahead, or more of which a part is taken.
        quad: the robot.
        speed: speed of the body [m/s]; that of an animal of its size by default.
        up: axis of the capture that points up, x, y or z; found by default.
        feet: points that are feet, by fl, fr, rl, rr; found by default.
        start, end: times between which the stride is [s].
        duty: mean duty factor of the feet; the animal's by default.
        height: height of the COM above that at rest [m].
        options: `cycles`, `dt`, `skin` of :func:`synthesize`.

    Raises:
        UnknownName: for a point or an axis that does not exist.
        InvalidInput: when there are no four feet that land once.
        NoSolution: when no path of the COM keeps the ZMP in the support polygons.
    """
    capture = capture.between(start, end)
    points = _levelled(capture, up)
    size, stride = _size(capture, points)
    feet = _feet(capture, points) if feet is None else names_of(feet, "feet")
    names = roles(quad)
    check_names("place of a foot", feet, names)
    check_names("foot", feet.values(), capture.names)
    if len(set(feet.values())) < len(feet):
        raise InvalidInput(f"feet: name each point once, got {dict(feet)}")
    own = {foot: points[:, capture.names.index(foot)] for foot in feet.values()}
    paths = {foot: _repeated(capture.time, p, stride) for foot, p in own.items()}
    stances = _stances(capture, paths, stride, duty)
    swings = {names[r]: _swing(paths[f], stances[f], stride) for r, f in feet.items()}
    stances = {names[role]: stances[foot] for role, foot in feet.items()}
    scale, animal = leg_height(quad) / size, stride / float(np.ptp(capture.time))
    speed = animal * np.sqrt(scale) if speed is None else speed
    # How much longer than the animal's: by its legs, and by the speed.
    longer = stride_length(abs(speed), scale * size) / stride_length(animal, size)
    gait = Gait(
        {foot: landing % 1 for foot, (landing, _) in stances.items()},
        duty={foot: leaving - landing for foot, (landing, leaving) in stances.items()},
        period=longer * stride / abs(speed),
        lift={foot: scale * lift for foot, (lift, _) in swings.items()},
        swing={foot: swing for foot, (_, swing) in swings.items()},
        height=height,
        clearance=0.008,
        name=capture.name,
    )
    return synthesize(quad, gait, speed=speed, flight=True, **options)


def _size(capture: Capture, points: np.ndarray) -> tuple[float, float]:
    """Mean height of the root, and how far it goes [m]; refuses what is no stride."""
    size = float(points[:, 0, 2].mean())
    stride = float(points[-1, 0, 0] - points[0, 0, 0])
    if not 0 < size < LARGEST or stride < 0.1 * size:
        raise InvalidInput(
            f"{capture.name}: its root {capture.names[0]} is {size:.3g} m high and "
            f"goes {stride:.3g} m ahead; name the unit of lengths, the axis that is "
            "up, and start and end of a stride in a YAML (capture: FILE, unit: cm, "
            "up: y, ...)"
        )
    return size, stride


def _levelled(capture: Capture, up: str | None) -> np.ndarray:
    """The points with x along the way of the root and z up, the lowest at z = 0."""
    points, root = capture.points, capture.points[:, 0]
    way = root[-1] - root[0]
    if up is None:
        above = root.mean(axis=0) - points.min(axis=(0, 1))
        above[np.abs(way).argmax()] = 0.0
        up = "xyz"[above.argmax()]
    check_names("axis", [up], "xyz")
    z = np.eye(3)["xyz".index(up)]
    x = way - (way @ z) * z
    x = x / max(np.linalg.norm(x), 1e-12)
    levelled = points @ np.column_stack([x, np.cross(z, x), z])
    levelled[..., 2] -= levelled[..., 2].min()
    return levelled


def _feet(capture: Capture, points: np.ndarray) -> dict[str, str]:
    """The lowest point of each quarter, among those that come near the ground.

    An animal may go a little sideways, so left and right are of the two in front, and
    of those behind.
    """
    least = points[..., 2].min(axis=0)
    low = np.flatnonzero(least < LOW * points[:, 0, 2].mean())
    x, y, _ = (points[:, low] - points[:, :1]).mean(axis=0).T
    found = {}
    for end, these in zip("fr", _parted(x, np.full(len(low), True))):
        for side, those in zip("lr", _parted(y, these)):
            for k in low[those][np.argsort(-least[low[those]])]:
                found[end + side] = capture.names[k]
    if len(found) < 4:
        raise InvalidInput(
            f"{capture.name}: no four feet are found; name them in a YAML (capture: "
            f"FILE, feet: {{fl: POINT, ...}}) among {', '.join(capture.names)}"
        )
    return found


def _parted(x: np.ndarray, these: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Those of some values (n,) above the middle of their extremes, and the others."""
    if not these.any():
        return these, these
    middle = (x[these].min() + x[these].max()) / 2
    return these & (x > middle), these & (x <= middle)


Stance = tuple[float, float]
"""Phases at which a foot lands and leaves the ground [periods]."""


def _repeated(time: np.ndarray, path: np.ndarray, stride: float) -> CubicSpline:
    """Three strides of a foot's path (T, 3) [m] over the phase; the middle one counts.

    A stride does not end quite as it began: the difference is spread over it.
    """
    phase = (time - time[0]) / np.ptp(time)
    ahead = np.array([stride, 0.0, 0.0])
    path = (path - np.outer(phase, path[-1] - path[0] - ahead))[:-1]
    return CubicSpline(
        np.concatenate([phase[:-1] + k for k in (-1, 0, 1)]),
        np.concatenate([path + k * ahead for k in (-1, 0, 1)]),
    )


def _stances(
    capture: Capture,
    paths: Mapping[str, CubicSpline],
    stride: float,
    duty: float | None,
) -> dict[str, Stance]:
    """When each foot is on the ground; of a mean duty factor if one is given."""
    found = {}
    for foot, path in paths.items():
        speed = np.linalg.norm(path(np.arange(SAMPLES) / SAMPLES, 1), axis=1)
        slow = np.tile(speed < SLOW * stride, 3)
        for without_short in (binary_closing, binary_opening):
            slow = without_short(slow, np.ones(SHORT))
        down = slow[SAMPLES : 2 * SAMPLES]
        begin = int(np.argmin(down))
        bars = runs(np.roll(down, -begin))
        if len(bars) != 1:
            raise InvalidInput(
                f"{capture.name}: foot {foot} lands {len(bars)} times; name start and "
                "end of one stride in a YAML (capture: FILE, start: 0.4, end: 0.9)"
            )
        found[foot] = (np.array(bars[0]) + begin) / SAMPLES
    found = {foot: _together(foot, found) for foot in found}
    if duty is not None:
        check_value("duty", duty, positive())
        longer = duty / np.mean([np.diff(stance) for stance in found.values()])
        found = {f: x.mean() + longer * (x - x.mean()) for f, x in found.items()}
    return {foot: tuple(stance.tolist()) for foot, stance in found.items()}


def _together(foot: str, stances: Mapping[str, np.ndarray]) -> np.ndarray:
    """The stance of a foot joined with those that begin together with it.

    An animal that lands on one foot first turns about it; a plan by its ZMP would take
    the COM there.
    """
    landing = stances[foot][0]
    # All of them about this landing.
    moved = np.array(list(stances.values()))
    moved -= np.round(moved[:, :1] - landing)
    near = moved[np.abs(moved[:, 0] - landing) < TOGETHER]
    return np.array([near[:, 0].min(), near[:, 1].max()])


def _swing(path: CubicSpline, stance: Stance, stride: float) -> tuple[float, Swing]:
    """Lift [m] and shape of the swing from one stance to the next."""
    landing, leaving = stance
    share = np.linspace(0, 1, 50)
    phase = leaving + share * (1 + landing - leaving)
    p = path(phase % 1) + np.outer(np.floor(phase), [stride, 0, 0])
    ahead, rise = (p - p[0])[:, [0, 2]].T
    rise = rise - share * rise[-1]
    lift = max(float(rise.max()), 1e-9)
    shape = np.stack([ahead / ahead[-1], rise / lift])
    curve = CubicSpline(share, shape, axis=1, bc_type="clamped")

    def swing(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        advance, rise = curve(s)
        return advance, np.maximum(rise, 0.0)

    return lift, swing
