"""Gait tables: poses of the actuators, one after the other.

The paper's gait has eight poses, in which blue and yellow, and red and green, are
opposite, and red lags blue by a quarter of the cycle. Poses 2 to 4 lift the front
left foot, 6 to 8 the front right one; the back feet shift between heel and toe. The
reverse order walks backward. Source: Tebyani et al. (2022), section 3.1, Fig. 5; the
table from the authors' notebook.

Tables are read from CSV, a column for each actuator whose unit stands in its head,

    blue [mm],yellow [mm],red [mm],green [mm]
    5,-5,0,0

or from YAML: {unit: mm, actuators: [blue, ...], poses: [[5, -5, 0, 0], ...]}.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput, UnknownName
from drakebots.core.files import parse_yaml, replacing
from drakebots.core.units import si_factor
from drakebots.lattice.pom import table
from drakebots.robots.voxels.model import ACTUATORS, scalar

# From a gait's poses to the smooth motion of the actuators.

ALIASES = {"reverse": "backward"}


def find_gait(wish, stroke: float) -> Gait:
    """A gait by name, from a table, or as it is.

    Args:
        wish: "forward", "backward" (also "reverse"), poses (K, 4) [m], or a gait.
        stroke: of the gaits by name, and most of any table's entry [m].

    Raises:
        UnknownName: for another name.
        InvalidInput: for a table of another shape, or that exceeds the stroke.
    """
    if isinstance(wish, Gait):
        return wish
    if isinstance(wish, str):
        return gait(ALIASES.get(wish, wish), stroke)
    return Gait(wish, "table", stroke)


class GaitMotion:
    """Displacements u (M,) [m] of the actuators' lower nodes over time.

    At rest for `settle`, then pose after pose, again and again. Within a pose's
    time each goes from the pose before along 3 s^2 - 2 s^3 over the ramp.

    Args:
        table: poses (K, M) [m].
        pose_time: of each [s].
        ramp: share of it.
        settle: [s].
    """

    def __init__(self, table, pose_time: float, ramp: float, settle: float):
        self.table = np.asarray(table, float)
        self.pose_time, self.ramp, self.settle = pose_time, ramp, settle

    def __call__(self, time: float) -> np.ndarray:
        """At a time [s]."""
        elapsed = time - self.settle
        if elapsed <= 0:
            return np.zeros(self.table.shape[1])
        number = int(elapsed / self.pose_time)
        after = self.table[number % len(self.table)]
        before = self.table[number % len(self.table) - 1] if number else 0 * after
        s = min((elapsed - number * self.pose_time) / (self.ramp * self.pose_time), 1)
        return before + (3 * s**2 - 2 * s**3) * (after - before)


__all__ = ["GaitMotion", "find_gait"]


NAMES = tuple(actuator.name for actuator in ACTUATORS)

PAPER_POSES = np.array(
    [
        [1, -1, 0, 0],
        [1, -1, 1, -1],
        [0, 0, 1, -1],
        [-1, 1, 1, -1],
        [-1, 1, 0, 0],
        [-1, 1, -1, 1],
        [0, 0, -1, 1],
        [1, -1, -1, 1],
    ]
)
"""Poses 1 to 8 of (blue, yellow, red, green), in strokes."""

PAPER_WISHES = {
    "FL": np.array([0, 1, 1, 1, 0, -1, -1, -1]),
    "FR": np.array([0, -1, -1, -1, 0, 1, 1, 1]),
    "BL y": np.array([1, 1, 0, -1, -1, -1, 0, 1]),
    "BR x": np.array([-1, -1, 0, 1, 1, 1, 0, -1]),
}
"""The node motions of `robot.WISHES` in these poses, in strokes."""


@dataclass(frozen=True, eq=False)
class Gait:
    """Poses that are repeated in a loop.

    Attributes:
        poses: displacements of the actuators' lower nodes (K, 4), in the order
            blue, yellow, red, green [m].
        name: of the gait.
        stroke: most of any of them [m]; by default the robot's.

    Raises:
        InvalidInput: for no pose, a table of another shape or not finite, a stroke
            that is not > 0 or is exceeded, naming actuator and pose (from 1).
    """

    poses: np.ndarray
    name: str = "gait"
    stroke: float | None = None

    def __post_init__(self):
        poses = table(self.poses, len(NAMES), "poses", "actuator")
        if not len(poses):
            raise InvalidInput(f"{self.name}: a gait has at least one pose")
        stroke = scalar("stroke") if self.stroke is None else self.stroke
        if not (np.isfinite(stroke) and stroke > 0):
            raise InvalidInput(f"{self.name}: stroke must be > 0 m, got {stroke}")
        # A hair over is rounding of millimetres.
        over = np.argwhere(np.abs(poses) > stroke * (1 + 1e-9))
        if len(over):
            pose, actuator = over[0]
            raise InvalidInput(
                f"{self.name}: pose {pose + 1} asks {NAMES[actuator]} for "
                f"{poses[pose, actuator] * 1e3:.6g} mm, the stroke is "
                f"{stroke * 1e3:.6g} mm; scale the table down"
            )
        poses.setflags(write=False)
        object.__setattr__(self, "poses", poses)
        object.__setattr__(self, "stroke", float(stroke))

    def __len__(self) -> int:
        return len(self.poses)

    @property
    def reversed(self) -> Gait:
        """The same poses the other way round: backward."""
        return Gait(self.poses[::-1], f"{self.name} reversed", self.stroke)

    def at(self, cycles, start=None) -> np.ndarray:
        """Controls after a time in cycles, straight from pose to pose.

        Args:
            cycles: (T,), >= 0; pose k is reached at k/K.
            start: controls at 0 (4,) in the first 1/K; by default the last pose,
                so that the loop is closed. Zeros start from rest.

        Returns:
            (T, 4) [m].

        Raises:
            InvalidInput: for a time < 0 or not finite, or another start.
        """
        time = np.atleast_1d(np.asarray(cycles, float)) * len(self)
        if not np.isfinite(time).all() or (time < 0).any():
            raise InvalidInput("a gait's time is finite and >= 0 cycles")
        last = np.floor(time).astype(int)
        share = (time - last)[:, None]
        before = self.poses[(last - 1) % len(self)].copy()
        if start is not None:
            before[last == 0] = table(start, len(NAMES), "start", "actuator")[0]
        return before + share * (self.poses[last % len(self)] - before)

    def write(self, path: str | Path) -> None:
        """As CSV in mm, atomically."""
        head = ",".join(f"{name} [mm]" for name in NAMES)
        rows = [",".join(f"{v * 1e3:.12g}" for v in pose) for pose in self.poses]
        with replacing(Path(path)) as part:
            part.write_text("\n".join([head, *rows]) + "\n")


def paper_gait(stroke: float | None = None) -> Gait:
    """The paper's eight poses, each actuator at full stroke or at rest."""
    stroke = scalar("stroke") if stroke is None else stroke
    return Gait(PAPER_POSES * float(stroke), "forward", stroke)


GAITS = ("forward", "backward")


def gait(name: str, stroke: float | None = None) -> Gait:
    """The paper's gait by name, forward or backward.

    Raises:
        UnknownName: for another name.
    """
    if name not in GAITS:
        raise UnknownName("gait", name, GAITS)
    forward = paper_gait(stroke)
    if name == "forward":
        return forward
    return Gait(forward.poses[::-1], "backward", stroke)


def read_gait(path: str | Path, stroke: float | None = None) -> Gait:
    """A gait from a CSV or YAML table.

    Args:
        path: ends in .csv, .yaml or .yml.
        stroke: most of any actuator [m]; by default the robot's.

    Raises:
        FileProblem: for a file that is missing, of another kind or malformed, or
            whose poses `Gait` refuses; it names line, pose or actuator.
    """
    path = Path(path)
    readers = {".csv": _from_csv, ".yaml": _from_yaml, ".yml": _from_yaml}
    if path.suffix.lower() not in readers:
        raise FileProblem(path, "a gait is read from .csv, .yaml or .yml")
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise FileProblem(path, f"cannot be read: {error}") from None
    try:
        heads, rows = readers[path.suffix.lower()](text)
        return Gait(_ordered(heads, rows), path.stem, stroke)
    except (DrakebotsError, csv.Error) as error:
        raise FileProblem(path, str(error)) from None


def _from_csv(text: str):
    lines = [
        (number, line)
        for number, line in enumerate(csv.reader(text.splitlines()), 1)
        if any(cell.strip() for cell in line)
    ]
    if len(lines) < 2:
        raise InvalidInput("needs a line of actuators and a line for each pose")
    heads = []
    for head in lines[0][1]:
        match = re.fullmatch(r"\s*([^\[\]]+?)\s*(?:\[([^\]]*)\])?\s*", head)
        if not match:
            raise InvalidInput(f"head {head!r} is not a name and a [unit]")
        heads.append((match[1], match[2] or "m"))
    rows = []
    for number, line in lines[1:]:
        if len(line) != len(heads):
            raise InvalidInput(
                f"line {number} has {len(line)} cells, the head has {len(heads)}"
            )
        rows.append(_numbers(line, f"line {number}"))
    return heads, rows


def _from_yaml(text: str):
    node = parse_yaml(text)
    if not isinstance(node, dict) or not isinstance(node.get("poses"), list):
        raise InvalidInput("needs a mapping with `poses`, `actuators` and `unit`")
    names = node.get("actuators", list(NAMES))
    if not isinstance(names, list):
        raise InvalidInput("actuators must be a list of names")
    rows = []
    for number, row in enumerate(node["poses"], 1):
        if not isinstance(row, list) or len(row) != len(names):
            raise InvalidInput(f"pose {number} must be a list of {len(names)} numbers")
        rows.append(_numbers(row, f"pose {number}"))
    return [(str(name), str(node.get("unit", "m"))) for name in names], rows


def _numbers(cells: Sequence, where: str) -> list[float]:
    try:
        return [float(cell) for cell in cells]
    except (TypeError, ValueError):
        raise InvalidInput(f"{where} holds something that is no number") from None


def _ordered(heads, rows) -> np.ndarray:
    names = [name for name, _ in heads]
    for name in names:
        if name not in NAMES:
            raise UnknownName("actuator", name, NAMES)
        if names.count(name) > 1:
            raise InvalidInput(f"actuator {name!r} has two columns; keep one")
    missing = [name for name in NAMES if name not in names]
    if missing:
        raise InvalidInput(f"no column for {', '.join(missing)}; add it")
    factors = np.array([_length(unit) for _, unit in heads])
    values = np.array(rows, float).reshape(-1, len(heads)) * factors
    return values[:, [names.index(name) for name in NAMES]]


def _length(unit: str) -> float:
    if unit not in ("m", "cm", "mm", "um"):
        raise UnknownName("unit of length", unit, ("m", "cm", "mm", "um"))
    return si_factor(unit)
