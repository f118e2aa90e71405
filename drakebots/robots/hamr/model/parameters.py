"""HAMR-VI's parameters: `models/hamr/params.yaml` as named values in SI."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from drakebots.core.errors import ModelProblem
from drakebots.core.units import quantity, si_factor
from drakebots.model import package_root

LEGS = ("FL", "RL", "FR", "RR")
"""The legs in the authors' order: front-left, rear-left, front-right, rear-right."""

ACTUATORS = tuple(leg + kind for leg in LEGS for kind in "sl")
"""The actuators in the authors' order: swing and lift of each leg."""

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True)
class JointRow:
    """One joint of the front-left leg, before mirroring. SI."""

    name: str
    type: str
    axis: str
    parent: str
    child: str
    p_PJ: np.ndarray
    limit: float
    stiffness: float
    damping: float
    actuator: str | None


@dataclass(frozen=True)
class LoopRow:
    """One hinge that closes a chain of the front-left leg. SI."""

    name: str
    axis: str
    link_A: str
    p_A: np.ndarray
    link_B: str
    p_B: np.ndarray


@dataclass(frozen=True)
class Parameters:
    """The parameter file of HAMR-VI, in SI.

    Attributes:
        raw: the file as parsed, in the units it states.
        joints, rear_origins, loops: the leg's table (front-left) and where a
            rear leg differs.
        links: (mass, p_LoLcm, (Ixx, Ixy, Ixz, Iyy, Iyz, Izz)) by link name.
    """

    raw: dict[str, Any]
    joints: tuple[JointRow, ...]
    rear_origins: dict[str, np.ndarray]
    loops: tuple[LoopRow, ...]
    links: dict[str, tuple[float, np.ndarray, np.ndarray]]

    def scalar(self, *keys: str) -> float:
        """The scalar at `raw[keys[0]][keys[1]]...`, in SI."""
        node: Any = self.raw
        for key in keys:
            node = node[key]
        return quantity(node, ".".join(keys))

    @property
    def foot(self) -> tuple[str, np.ndarray]:
        """The leg link and the foot point in it, front-left [m]."""
        return self._point("feet")

    @property
    def marker(self) -> tuple[str, np.ndarray]:
        """The leg link and the motion-capture marker in it, front-left [m]."""
        return self._point("markers")

    def _point(self, key: str) -> tuple[str, np.ndarray]:
        node = self.raw[key]
        scale = si_factor(node["unit"])
        return node["value"]["link"], scale * np.array(node["value"]["p"])

    @property
    def friction(self) -> dict[str, float]:
        """The static friction coefficient by surface."""
        return {k: v["mu"] for k, v in self.raw["friction"]["value"].items()}


def mirror(leg: str) -> np.ndarray:
    """The signs (3,) that take a front-left position to `leg`."""
    return np.array(
        [1.0 if leg[0] == "F" else -1.0, 1.0 if leg[1] == "L" else -1.0, 1.0]
    )


def load_parameters(path: str | Path) -> Parameters:
    """Reads a parameter file with the layout of `models/hamr/params.yaml`.

    Raises:
        ModelProblem: when the file is missing or lacks an entry.
    """
    path = Path(path)
    try:
        raw = yaml.safe_load(path.read_text())
        return _parse(raw)
    except OSError as error:
        raise ModelProblem(path, f"cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ModelProblem(path, f"is not YAML: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ModelProblem(
            path, f"entry missing or malformed: {error}; see models/hamr/params.yaml"
        ) from error


def _parse(raw: dict[str, Any]) -> Parameters:
    unit = raw["joints"]["unit"]
    mm = si_factor(unit["origin"])
    joints = tuple(
        JointRow(
            name=name,
            type=row["type"],
            axis=row["axis"],
            parent=row["parent"],
            child=row["child"],
            p_PJ=mm * np.array(row["origin"], float),
            limit=row["limit"] * si_factor(unit[f"limit_{row['type']}"]),
            stiffness=row["stiffness"] * si_factor(unit[f"stiffness_{row['type']}"]),
            damping=row["damping"] * si_factor(unit[f"damping_{row['type']}"]),
            actuator=row.get("actuator"),
        )
        for name, row in raw["joints"]["value"].items()
    )
    rear = raw["rear_joint_origins"]
    loops_mm = si_factor(raw["loops"]["unit"])
    inertials = raw["inertials"]
    scale = {k: si_factor(u) for k, u in inertials["unit"].items()}
    return Parameters(
        raw=raw,
        joints=joints,
        rear_origins={
            name: si_factor(rear["unit"]) * np.array(p, float)
            for name, p in rear["value"].items()
        },
        loops=tuple(
            LoopRow(
                name,
                row["axis"],
                row["A"],
                loops_mm * np.array(row["p_A"], float),
                row["B"],
                loops_mm * np.array(row["p_B"], float),
            )
            for name, row in raw["loops"]["value"].items()
        ),
        links={
            name: (
                row["mass"] * scale["mass"],
                scale["com"] * np.array(row["com"], float),
                scale["inertia"] * np.array(row["inertia"], float),
            )
            for name, row in inertials["value"].items()
        },
    )


@cache
def parameters() -> Parameters:
    """The parameters of `models/hamr`, read once."""
    return load_parameters(package_root() / "hamr" / "params.yaml")
