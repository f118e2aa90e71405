"""HAMR-VI's parameters: `models/hamr/params.yaml` in SI, with its joints and loops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.core.units import quantity, si_factor
from drakebots.model import Parameters

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True)
class JointRow:
    """One joint of the front-left leg, in SI."""

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
    """One hinge that closes a chain of the front-left leg, in SI."""

    name: str
    axis: str
    link_A: str
    p_A: np.ndarray
    link_B: str
    p_B: np.ndarray


class HamrParameters(Parameters):
    """A parameter file with the layout of `models/hamr/params.yaml`.

    Attributes:
        joints, loops: joints and loops of the front-left leg, before mirroring.
        rear_origins: p_PJ of the joints of a rear leg that is not the mirror image of
            the front leg, by joint [m].
        links: (mass, p_LoLcm, (Ixx, Ixy, Ixz, Iyy, Iyz, Izz)) by link name.
        foot, marker: the leg's link, and the point in it [m], front-left.

    Raises:
        ModelProblem: when the file is missing, or lacks an entry.
    """

    def __init__(self, path: str | Path):
        super().__init__(path)
        try:
            self.joints = tuple(self._joints())
            self.loops = tuple(
                LoopRow(name, row["axis"], row["A"], row["p_A"], row["B"], row["p_B"])
                for name, row in self.table("loops").items()
            )
            self.rear_origins = self.table("rear_joint_origins")
            self.links = {
                name: (row["mass"], row["com"], row["inertia"])
                for name, row in self.table("inertials").items()
            }
            self.foot, self.marker = (
                (row["link"], row["p"]) for row in map(self.table, ("feet", "markers"))
            )
        except (KeyError, TypeError, ValueError, InvalidInput) as error:
            raise ModelProblem(
                self.path,
                f"entry missing or malformed: {error}; see models/hamr/params.yaml",
            ) from error

    def _joints(self) -> Iterable[JointRow]:
        """The rows of the table of joints, in SI."""
        # The units of the springs depend on the joint's type.
        unit = self.raw["joints"]["unit"]
        for name, row in self.raw["joints"]["value"].items():
            kind = row["type"]
            limit, stiffness, damping = (
                quantity({"value": row[key], "unit": unit[f"{key}_{kind}"]}, name)
                for key in ("limit", "stiffness", "damping")
            )
            yield JointRow(
                name=name,
                type=kind,
                axis=row["axis"],
                parent=row["parent"],
                child=row["child"],
                p_PJ=si_factor(unit["origin"]) * np.array(row["origin"], float),
                limit=limit,
                stiffness=stiffness,
                damping=damping,
                actuator=row.get("actuator"),
            )
