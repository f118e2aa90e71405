"""What a model file cannot state: feet, named points and loops, in a YAML beside it.

Beside `robot.urdf` lies `robot.drakebots.yaml` (all in SI):

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
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.checks import array, check, non_negative
from drakebots.core.errors import DrakebotsError, ModelProblem
from drakebots.core.files import TOP, Fields, read_yaml
from drakebots.model.loops import Loop

_POINT = ("body", "p", "radius")
_LOOP = (
    *("A", "B", "p_A", "p_B", "axis", "axis_A", "axis_B"),
    *("side", "side_A", "side_B", "rows", "in_file"),
)


@dataclass(frozen=True)
class Point:
    """A named point F fixed in a body B; a foot when it may touch the ground.

    Attributes:
        name: name of the point.
        body: name of the body.
        p_BF: position of the point in the body (3,) [m].
        radius: radius of the sphere around the point [m]; 0 for a point contact.
    """

    name: str
    body: str
    p_BF: np.ndarray
    radius: float = 0.0

    def __post_init__(self):
        check(
            self, f"point {self.name}", p_BF=array((3,), "m"), radius=non_negative("m")
        )


@dataclass(frozen=True)
class Sidecar:
    """The contents of a `.drakebots.yaml` file."""

    feet: tuple[Point, ...] = ()
    points: tuple[Point, ...] = ()
    loops: tuple[Loop, ...] = ()


def read_sidecar(path: Path) -> Sidecar:
    """Reads a `.drakebots.yaml`; an absent file is an empty one.

    Raises:
        ModelProblem: naming the file and the entry that is wrong.
    """
    if not os.path.exists(path):
        return Sidecar()
    raw = read_yaml(path, ModelProblem)
    try:
        return parse_sidecar(raw)
    except DrakebotsError as error:
        raise ModelProblem(path, str(error)) from error


def parse_sidecar(raw: Any) -> Sidecar:
    """The description in a parsed YAML document.

    Raises:
        InvalidInput: for a missing entry or a bad number.
        UnknownName: for an unknown entry.
    """
    top = Fields({} if raw is None else raw, TOP, ("feet", "points", "loops"))
    loops = top.fields("loops")
    return Sidecar(
        feet=_points(top, "feet"),
        points=_points(top, "points"),
        loops=tuple(
            _loop(name, Fields(loops.get(name), f"loop {name}", _LOOP))
            for name in loops
        ),
    )


def _points(top: Fields, section: str) -> tuple[Point, ...]:
    rows = top.fields(section)
    points = []
    for name in rows:
        row = Fields(rows.get(name), f"{section}.{name}", _POINT)
        body, p = row.text("body"), row.array("p", (3,), "m")
        points.append(Point(name, body, p, row.number("radius", 0.0)))
    return tuple(points)


def _loop(name: str, row: Fields) -> Loop:
    axis = row.get("axis", [0.0, 0.0, 1.0])
    sides = {
        key: row.array(key if key in row else "side", (3,))
        for key in ("side_A", "side_B")
        if key in row or "side" in row
    }
    return Loop(
        name=name,
        body_A=row.text("A"),
        p_AP=row.array("p_A", (3,), "m"),
        body_B=row.text("B"),
        p_BQ=row.array("p_B", (3,), "m"),
        axis_A=row.array("axis_A", (3,), default=axis),
        axis_B=row.array("axis_B", (3,), default=axis),
        **sides,
        rows=row.text("rows", "hinge"),
        in_file=row.flag("in_file", False),
    )
