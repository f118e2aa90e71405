"""What files say of a model: a :class:`Reading`, and what lies beside the model's file.

Feet, points and loops are in a YAML, named poses in an SRDF. Beside `robot.urdf` lies
`robot.drakebots.yaml` (all in SI):

    feet:
      FL: {body: shank, p: [0, 0, -0.2], radius: 0.01}
    points:
      marker: {body: trunk, p: [0.1, 0, 0]}
    loops:
      four_bar:
        A: rod
        p_A: [0, 0, -0.1]
        B: shank
        p_B: [0.02, 0, 0]
        axis: [0, 1, 0]       # or axis_A and axis_B where the body frames differ
        side: [1, 0, 0]       # of a weld, across the axis; or side_A and side_B
        rows: hinge           # ball | planar | hinge | weld
        in_file: false        # true when the model file closes it for SAP itself
    parameters:               # in place of the model file's numbers; `identify` writes
      mass:trunk: 3.1         # them, with `model: robot.urdf` of a file elsewhere
      stiffness:FL_knee: 12.0
      damping:FL_knee: 0.02
      friction: 0.55          # of the ground, unless a problem says another

ROS keeps poses (standing, half sitting, home) as `<group_state>` in an SRDF file, in
the model's folder or in a folder `srdf` beside it:

    <robot name="dog">
      <group_state name="standing" group="legs">
        <joint name="FL_knee" value="-1.6"/>
      </group_state>
    </robot>
"""

from __future__ import annotations

import math
import os
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from drakebots.core.checks import array, non_negative
from drakebots.core.errors import ModelProblem, one_line
from drakebots.core.fields import checked
from drakebots.core.files import TOP, Fields, read_yaml, reading
from drakebots.model.couplers import Coupler
from drakebots.model.find import model_stem, parameters_in
from drakebots.model.loops import Loop

_TOP = ("feet", "points", "loops", "parameters", "model")
_POINT = ("body", "p", "radius")
_LOOP = (
    *("A", "B", "p_A", "p_B", "axis", "axis_A", "axis_B"),
    *("side", "side_A", "side_B", "rows", "in_file"),
)


@checked("point {name}")
class Point:
    """A named point F fixed in a body B; a foot when it may touch the ground."""

    name: str
    """Name of the point."""
    body: str
    """Name of the body."""
    p_BF: Annotated[np.ndarray, array((3,), "m")]
    """Position of the point in the body (3,)."""
    radius: Annotated[float, non_negative("m")] = 0.0
    """Radius of the sphere around the point; 0 for a point contact."""


@dataclass(frozen=True)
class Reading:
    """Input of Drake's parser, and what a file says besides.

    Attributes:
        text: in place of the file, with absolute paths; None for the file itself.
        ending: format of the text: "urdf" or "sdf".
        notes: changes, and parts left out, ignored or inferred, one line each.
        packages: folders of packages by name, for a file that Drake reads itself.
        efforts: the largest effort of joints by name [N m, N], which a URDF states
            without making motors of it.
        loops: of the file, or of the YAML beside it, in SI; the text closes those that
            say so.
        poses: joint positions by joint [rad, m], by the name that the file or one
            beside it gives them ("home", "standing").
        couplers: joints that follow others, which Drake couples in SAP by the text.
        uncoupled: included files whose joints follow others in SAP only.
        parameters: numbers in place of the file's by name, which the text has already;
            "friction" is the ground's. See :mod:`drakebots.model.description`.
        feet, points: that the file, or the YAML beside it, names, in SI.
        motors: joints with motors, of the YAML that joins frames.
        kind: "ROS" or "old Drake" for a URDF; else empty.
    """

    text: str | None = field(default=None, repr=False)
    ending: str = "sdf"
    notes: tuple[str, ...] = ()
    packages: Mapping[str, Path] = field(default_factory=dict)
    efforts: Mapping[str, float] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()
    poses: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    couplers: tuple[Coupler, ...] = ()
    uncoupled: tuple[str, ...] = ()
    parameters: Mapping[str, float] = field(default_factory=dict)
    feet: tuple[Point, ...] = ()
    points: tuple[Point, ...] = ()
    motors: tuple[str, ...] = ()
    kind: str = ""

    def parsed(self, path: Path) -> str:
        """The text that Drake parses, of the file itself where none replaces it."""
        text = self.text or path.read_text(encoding="utf-8-sig", errors="replace")
        return text.strip("\0 \t\r\n")


def read_sidecar(path: Path) -> Reading:
    """Reads a `.drakebots.yaml`; an absent file is an empty one.

    Raises:
        ModelProblem: naming the file and the entry that is wrong.
    """
    if not os.path.exists(path):
        return Reading()
    with reading(path, ModelProblem):
        return parse_sidecar(read_yaml(path, ModelProblem))


def parse_sidecar(raw: Any) -> Reading:
    """The description in a parsed YAML document.

    Raises:
        InvalidInput: for a missing entry or a bad number.
        UnknownName: for an unknown entry.
    """
    top = Fields({} if raw is None else raw, TOP, _TOP)
    rows = top.fields("loops")
    points = {name: _points(top, name) for name in ("feet", "points")}
    parameters = parameters_in(top)
    loops = [_loop(n, Fields(rows.get(n), f"loop {n}", _LOOP)) for n in rows]
    return Reading(loops=tuple(loops), parameters=parameters, **points)


def _points(top: Fields, section: str) -> tuple[Point, ...]:
    rows = top.fields(section)
    points = []
    for name in rows:
        row = Fields(rows.get(name), f"{section}.{name}", _POINT)
        body, p = row.text("body"), row.array("p", (3,), "m")
        points.append(Point(name, body, p, row.number("radius", 0.0)))
    return tuple(points)


def _loop(name: str, row: Fields) -> Loop:
    said: dict[str, Any] = {}
    for end, point in (("A", "p_AP"), ("B", "p_BQ")):
        said[f"body_{end}"] = row.text(end)
        said[point] = row.array(f"p_{end}", (3,), "m")
        for both in ("axis", "side"):
            own = f"{both}_{end}"
            if own in row or both in row:
                said[own] = row.array(own if own in row else both, (3,))
    rows, in_file = row.text("rows", "hinge"), row.flag("in_file", False)
    return Loop(name, **said, rows=rows, in_file=in_file)


# --- poses in an SRDF ---

_LARGEST = 4_000_000
"""An SRDF of more bytes is none."""


_STANDING = ("stand", "home", "half_sitting", "default", "neutral", "ready")
"""Parts of the names of poses that a robot stands in, the best first."""


def standing_poses(
    poses: Mapping[str, Mapping[str, float]],
) -> Iterator[tuple[str, Mapping[str, float]]]:
    """The poses whose names say that the robot stands, with their names, best first."""
    for part in _STANDING:
        for name, pose in poses.items():
            if part in name.lower():
                yield name, pose


def standing(poses: Mapping[str, Mapping[str, float]]) -> Mapping[str, float]:
    """The best of :func:`standing_poses`; empty without one."""
    return next((pose for _, pose in standing_poses(poses)), {})


def find_srdf(path: Path, robots: Collection[str] = ()) -> Path | None:
    """The SRDF that belongs to a model file.

    It has the model's stem, or one that the model's begins with ("talos.srdf" for
    "talos_reduced.urdf"), or a name that the model gives its robot.

    Args:
        path: the model file.
        robots: the names inside it.
    """
    stem, folder = model_stem(path).lower(), path.absolute().parent
    names: dict[str, Path] = {}
    for place in (folder, folder / "srdf", folder.parent / "srdf"):
        for file in sorted(place.glob("*.srdf")):
            names.setdefault(file.stem.lower(), file)
    for name in sorted(names, key=len, reverse=True):
        if stem == name or stem.startswith((name + "_", name + "-")):
            return names[name]
    return next((names[r.lower()] for r in robots if r.lower() in names), None)


def read_srdf(
    path: Path, joints: Collection[str]
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """The poses in an SRDF.

    Args:
        path: the file.
        joints: names of the model's joints of one degree of freedom; positions of
            others, as of the base, are left out.

    Returns:
        The poses that place at least half of the joints they name, by name, positions
        by joint [rad, m]; and notes, one line each. What is not readable is a note,
        because the model itself does without it.
    """
    try:
        if not os.path.isfile(path) or path.stat().st_size > _LARGEST:
            return {}, [f"{path.name} beside it is no SRDF: left out"]
        root = ET.fromstring(path.read_bytes())
    except (OSError, ET.ParseError) as error:
        return {}, [f"{path.name} beside it is left out: {one_line(error)}"]
    poses = {}
    for state in root.iter("group_state"):
        rows = {
            row.get("name", ""): row.get("value", "") for row in state.iter("joint")
        }
        values = {name: finite_number(rows[name]) for name in rows if name in joints}
        values = {name: value for name, value in values.items() if value is not None}
        single = [name for name in rows if len(rows[name].split()) == 1]
        if values and 2 * len(values) >= len(single):
            # A state of each limb may have the name of the whole pose.
            poses.setdefault(state.get("name", "pose"), {}).update(values)
    return poses, [f"poses from {path.name}: {', '.join(poses)}"] if poses else []


def finite_number(text: str) -> float | None:
    """A text as a finite number; None for one that is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
