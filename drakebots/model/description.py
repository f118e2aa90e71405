"""What a model file cannot say: feet, named points and loops, in a YAML beside it.

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
        axis: [0, 1, 0]       # or axis_A and axis_B where the bodies are turned
        rows: hinge           # ball | planar | hinge
        in_file: false        # true when the model file closes it for SAP itself
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.errors import DrakebotsError, InvalidInput, ModelProblem
from drakebots.core.files import read_yaml
from drakebots.model.loops import Loop

_SECTIONS = {"feet", "points", "loops"}
_LOOP_KEYS = {"A", "B", "p_A", "p_B", "axis", "axis_A", "axis_B", "rows", "in_file"}


@dataclass(frozen=True)
class Point:
    """A named point F fixed in a body B; a foot when it may touch the ground.

    Attributes:
        name: of the point.
        body: name of the body.
        p_BF: position in the body (3,) [m].
        radius: of the sphere around it [m]; 0 for a point.
    """

    name: str
    body: str
    p_BF: np.ndarray
    radius: float = 0.0

    def __post_init__(self):
        try:
            p = np.array(self.p_BF, dtype=float)
        except (TypeError, ValueError):
            p = np.zeros(0)
        if p.shape != (3,) or not np.isfinite(p).all():
            raise InvalidInput(f"point {self.name}: p must be three finite numbers")
        if not np.isfinite(self.radius) or self.radius < 0:
            raise InvalidInput(f"point {self.name}: radius must be >= 0")
        p.setflags(write=False)
        object.__setattr__(self, "p_BF", p)


@dataclass(frozen=True)
class Sidecar:
    """The contents of a `.drakebots.yaml` file."""

    feet: tuple[Point, ...] = ()
    points: tuple[Point, ...] = ()
    loops: tuple[Loop, ...] = ()


def model_stem(path: Path) -> str:
    """The file name without its (double) ending: scene.dmd.yaml -> scene."""
    name = path.name
    for ending in (".dmd.yaml", ".urdf", ".sdf", ".xml", ".mjcf"):
        if name.lower().endswith(ending):
            return name[: -len(ending)]
    return path.stem


def sidecar_path(path: Path) -> Path:
    """Where the YAML beside a model file would be."""
    return path.with_name(f"{model_stem(path)}.drakebots.yaml")


def read_sidecar(path: Path) -> Sidecar:
    """Reads a `.drakebots.yaml`; an absent file is an empty one.

    Raises:
        ModelProblem: naming the file and the entry that is wrong.
    """
    if not path.exists():
        return Sidecar()
    raw = read_yaml(path, ModelProblem)
    try:
        return parse_sidecar(raw)
    except (DrakebotsError, TypeError, ValueError) as error:
        raise ModelProblem(path, str(error)) from error


def parse_sidecar(raw: Any) -> Sidecar:
    """The description in a parsed YAML document.

    Raises:
        InvalidInput: for an unknown key, a missing entry or a bad number.
    """
    raw = _mapping({} if raw is None else raw, "the file", _SECTIONS)
    return Sidecar(
        feet=_points(raw.get("feet", {}), "feet"),
        points=_points(raw.get("points", {}), "points"),
        loops=tuple(
            _loop(str(name), _mapping(row, f"loop {name}", _LOOP_KEYS))
            for name, row in _mapping(raw.get("loops", {}), "loops").items()
        ),
    )


def _mapping(node: Any, where: str, keys: set[str] | None = None) -> Mapping:
    if not isinstance(node, Mapping):
        raise InvalidInput(f"{where} must be a mapping, got {type(node).__name__}")
    unknown = {str(k) for k in node} - keys if keys else set()
    if unknown:
        raise InvalidInput(
            f"{where}: unknown key {', '.join(sorted(unknown))}; "
            f"known: {', '.join(sorted(keys or ()))}"
        )
    return node


def _need(row: Mapping, key: str, where: str) -> Any:
    if key not in row:
        raise InvalidInput(f"{where}: `{key}` is missing")
    return row[key]


def _points(node: Any, section: str) -> tuple[Point, ...]:
    points = []
    for name, row in _mapping(node, section).items():
        where = f"{section}.{name}"
        row = _mapping(row, where, {"body", "p", "radius"})
        points.append(
            Point(
                str(name),
                str(_need(row, "body", where)),
                _need(row, "p", where),
                _number(row.get("radius", 0.0), f"{where}: radius"),
            )
        )
    return tuple(points)


def _loop(name: str, row: Mapping) -> Loop:
    where = f"loop {name}"
    axis = row.get("axis", [0.0, 0.0, 1.0])
    return Loop(
        name=name,
        body_A=str(_need(row, "A", where)),
        p_AP=_need(row, "p_A", where),
        body_B=str(_need(row, "B", where)),
        p_BQ=_need(row, "p_B", where),
        axis_A=row.get("axis_A", axis),
        axis_B=row.get("axis_B", axis),
        rows=str(row.get("rows", "hinge")),
        in_file=_flag(row.get("in_file", False), f"{where}: in_file"),
    )


def _number(value: Any, where: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{where} must be a number, got {value!r}") from None


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{where} must be true or false, got {value!r}")
    return value
