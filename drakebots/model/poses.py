"""Poses that a file beside the model names: standing, half sitting, home.

ROS keeps them as `<group_state>` in an SRDF file, in the model's folder or in a folder
`srdf` beside it:

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

from drakebots.core.errors import one_line
from drakebots.model.find import model_stem

_LARGEST = 4_000_000
"""An SRDF of more bytes is none."""


@dataclass(frozen=True)
class Poses:
    """Named poses of a model.

    Attributes:
        poses: positions by joint [rad, m], by the pose's name.
        notes: what was found or left out, one line each.
    """

    poses: dict[str, dict[str, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


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


def read_srdf(path: Path, joints: Collection[str]) -> Poses:
    """The poses in an SRDF.

    Args:
        path: the file.
        joints: names of the model's joints of one degree of freedom; positions of
            others, as of the base, are left out.

    Returns:
        The poses that place at least half of the joints they name; what is not
        readable is a note, because the model itself does without it.
    """
    try:
        if not os.path.isfile(path) or path.stat().st_size > _LARGEST:
            return Poses(notes=(f"{path.name} beside it is no SRDF: left out",))
        root = ET.fromstring(path.read_bytes())
    except (OSError, ET.ParseError) as error:
        return Poses(notes=(f"{path.name} beside it is left out: {one_line(error)}",))
    poses = {}
    for state in root.iter("group_state"):
        rows = {
            row.get("name", ""): row.get("value", "") for row in state.iter("joint")
        }
        values = {name: _number(rows[name]) for name in rows if name in joints}
        values = {name: value for name, value in values.items() if value is not None}
        single = [name for name in rows if len(rows[name].split()) == 1]
        if values and 2 * len(values) >= len(single):
            # A state of each limb may have the name of the whole pose.
            poses.setdefault(state.get("name", "pose"), {}).update(values)
    notes = (f"poses from {path.name}: {', '.join(poses)}",) if poses else ()
    return Poses(poses, notes)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
