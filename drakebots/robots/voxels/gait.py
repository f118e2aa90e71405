"""Gaits of the walking robot: poses of its actuators that repeat in a loop.

The paper's gait has eight poses, in which blue and yellow, and red and green, are
opposite, and red lags blue by a quarter of the cycle. Poses 2 to 4 lift the front
left foot, 6 to 8 the front right one; the back feet shift between heel and toe. The
reverse order walks backward. Source: Tebyani et al. (2022), section 3.1, Fig. 5; the
table from the authors' notebook.

A gait is read from a CSV table, with one column for each actuator,

    blue [mm],yellow [mm],red [mm],green [mm]
    5,-5,0,0

or from YAML: {unit: mm, actuators: [blue, ...], poses: [[5, -5, 0, 0], ...]}, or from
the result of a search (.nc).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drakebots.core.checks import check_value, positive
from drakebots.core.errors import InvalidInput, check_names
from drakebots.core.files import (
    TOP,
    Fields,
    read_yaml,
    reading,
    with_ending,
    write_csv,
)
from drakebots.core.files import number as finite_number
from drakebots.lattice.pom import length_factor, read_lengths, table
from drakebots.model import parameters_of
from drakebots.results import load_result
from drakebots.robots.voxels.model import ACTUATORS

NAMES = tuple(actuator.name for actuator in ACTUATORS)

_BLUE, _RED = np.array([[1, 1, 0, -1, -1, -1, 0, 1], [0, 1, 1, 1, 0, -1, -1, -1]])
PAPER_POSES = np.column_stack([_BLUE, -_BLUE, _RED, -_RED])
"""Poses 1 to 8 of (blue, yellow, red, green), in strokes."""


@dataclass(frozen=True, eq=False)
class Gait:
    """Poses that are repeated in a loop.

    Attributes:
        poses: displacements of the actuators' lower nodes (K, 4), in the order
            blue, yellow, red, green [m].
        name: name of the gait.
        stroke: largest displacement allowed [m]; by default the robot's.

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
        stroke = self.stroke
        if stroke is None:
            stroke = parameters_of("voxel").number("stroke")
        check_value(f"{self.name}: stroke", stroke, positive("m"))
        # Millimetres of a file may exceed the stroke by rounding.
        over = np.argwhere(np.abs(poses) > stroke * (1 + 1e-9))
        if len(over):
            pose, actuator = over[0]
            raise InvalidInput(
                f"{self.name}: pose {pose + 1} moves {NAMES[actuator]} by "
                f"{poses[pose, actuator] * 1e3:.6g} mm, the stroke is "
                f"{stroke * 1e3:.6g} mm; scale the table down"
            )
        poses.setflags(write=False)
        object.__setattr__(self, "poses", poses)

    def write(self, path: str | Path) -> None:
        """Writes the gait as CSV in mm, atomically."""
        # What a cosine leaves of 0 is written as 0.
        poses = np.round(1e3 * np.asarray(self.poses), 9) + 0.0
        rows = [[f"{v:.12g}" for v in pose] for pose in poses]
        write_csv(path, [f"{name} [mm]" for name in NAMES], rows)


def paper_gait(stroke: float | None = None) -> Gait:
    """The paper's eight poses, each actuator at full stroke or at rest."""
    stroke = parameters_of("voxel").number("stroke") if stroke is None else stroke
    return Gait(PAPER_POSES * float(stroke), "forward", stroke)


GAITS = ("forward", "backward", "reverse")
"""Gaits by name; "reverse" is another name of "backward"."""


def find_gait(gait: str | Gait | np.ndarray, stroke: float | None = None) -> Gait:
    """A gait by its name, from a table of poses, or as it is.

    Args:
        gait: one of `GAITS`, a table's file (.csv, .yaml, .nc), poses (K, 4) [m], or a
            gait.
        stroke: amplitude of the gaits by name, and largest displacement allowed in
            a table [m]; by default the robot's.

    Raises:
        UnknownName: for another name.
        InvalidInput: for a table of another shape, or one that exceeds the stroke.
    """
    if isinstance(gait, Gait):
        return gait
    if not isinstance(gait, str):
        return Gait(gait, "table", stroke)
    if Path(gait).suffix:
        return read_gait(gait, stroke)
    check_names("gait", [gait], GAITS)
    forward = paper_gait(stroke)
    if gait == "forward":
        return forward
    return Gait(forward.poses[::-1], "backward", stroke)


def gait_motion(
    poses, pose_time: float, ramp: float, settle: float
) -> Callable[[float], np.ndarray]:
    """Displacements u (M,) [m] of the actuators' lower nodes, of a time [s].

    The robot rests for `settle`, then goes through the poses again and again. Within
    a pose's time the actuators leave the previous pose along 3 s^2 - 2 s^3 over the
    ramp.

    Args:
        poses: poses (K, M) [m].
        pose_time: duration of each pose [s].
        ramp: share of that duration.
        settle: time at rest before the gait [s].
    """
    poses = np.asarray(poses, float)

    def at(time: float) -> np.ndarray:
        elapsed = time - settle
        if elapsed <= 0:
            return np.zeros(poses.shape[1])
        number = int(elapsed / pose_time)
        after = poses[number % len(poses)]
        before = poses[number % len(poses) - 1] if number else 0 * after
        s = min((elapsed - number * pose_time) / (ramp * pose_time), 1)
        return before + (3 * s**2 - 2 * s**3) * (after - before)

    return at


# --- files ------------------------------------------------------------------


def read_gait(path: str | Path, stroke: float | None = None) -> Gait:
    """A gait from a CSV or YAML table.

    Args:
        path: a file that ends in .csv, .yaml, .yml or .nc.
        stroke: largest displacement of any actuator [m]; by default the robot's.

    Raises:
        FileProblem: for a file that is missing, of another kind or malformed, or
            whose poses `Gait` refuses; it names the line, pose or actuator.
    """
    readers = {".csv": read_lengths, ".yaml": _from_yaml, ".yml": _from_yaml}
    readers[".nc"] = _from_search
    path = with_ending(path, readers)
    with reading(path):
        names, values = readers[path.suffix.lower()](path)
        return Gait(_in_order(names, values), path.stem, stroke)


def _from_yaml(path: Path) -> tuple[list[str], np.ndarray]:
    top = Fields(read_yaml(path), TOP, ("unit", "actuators", "poses"))
    names = top.items("actuators") if "actuators" in top else list(NAMES)
    rows = []
    for number, row in enumerate(top.items("poses"), 1):
        if not isinstance(row, list) or len(row) != len(names):
            raise InvalidInput(f"pose {number} must be a list of {len(names)} numbers")
        rows.append([finite_number(cell, f"pose {number}") for cell in row])
    values = np.array(rows, float).reshape(-1, len(names))
    return list(map(str, names)), values * length_factor(top.text("unit", "m"))


def _from_search(path: Path) -> tuple[list[str], np.ndarray]:
    result = load_result(path)
    if result.kind != "voxels.gait_search":
        raise InvalidInput("its result is no search of a gait (plan voxel --search)")
    return result.data.actuator.values.tolist(), result.data.control.values


def _in_order(names: list[str], values: np.ndarray) -> np.ndarray:
    """The columns in the order of `NAMES`."""
    check_names("actuator", names, NAMES)
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"actuator {name!r} has two columns; keep one")
    missing = [name for name in NAMES if name not in names]
    if missing:
        raise InvalidInput(f"no column for {', '.join(missing)}; add it")
    return values[:, [names.index(name) for name in NAMES]]
