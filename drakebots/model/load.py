"""Find, check and load robot models.

model = drakebots.load("hamr")            # by name, from the models folder
model = drakebots.load("my_robot.urdf")   # or any URDF, SDF, MJCF, dmd.yaml
print(model.report())
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ModelInstanceIndex

import drakebots
from drakebots.core.errors import InvalidInput, ModelProblem, UnknownName
from drakebots.core.units import SI, Scaling
from drakebots.model.check_file import check_model_file
from drakebots.model.contents import Summary, inspect_model, parse_model
from drakebots.model.description import Point, model_stem, read_sidecar, sidecar_path
from drakebots.model.loops import Loop, add_ball_constraints
from drakebots.model.old_urdf import is_old_urdf, read_old_urdf

ENDINGS = (".urdf", ".sdf", ".xml", ".mjcf", ".dmd.yaml")


def package_root() -> Path:
    """The folder of the models (and of package.xml) that came with drakebots."""
    override = os.environ.get("DRAKEBOTS_MODELS")
    if override:
        return Path(override)
    inside = Path(drakebots.__file__).parent / "_models"
    return inside if inside.is_dir() else inside.parents[1] / "models"


def available_models() -> list[str]:
    """The names of the models that came with drakebots, sorted."""
    root = package_root()
    if not root.is_dir():
        return []
    return sorted(p.name for p in root.iterdir() if (p / f"{p.name}.sdf").is_file())


@dataclass(frozen=True)
class Model:
    """A model file that was found to be good, and what lies beside it.

    Attributes:
        name: the file's stem, or the name it was loaded by.
        path: the model file.
        loops, feet, points: from the file or the YAML beside it, in SI.
        summary: what it contains.
        notes: what was ignored or inferred, one line each.
        text: SDF text in place of the file, for files in the old format.
    """

    name: str
    path: Path
    loops: tuple[Loop, ...]
    feet: tuple[Point, ...]
    points: tuple[Point, ...]
    summary: Summary
    notes: tuple[str, ...] = ()
    text: str | None = field(default=None, repr=False)

    def add_to(
        self, plant: MultibodyPlant, *, close_loops: bool = True
    ) -> list[ModelInstanceIndex]:
        """Parses the model into a plant (SI), before Finalize.

        Args:
            plant: to add to.
            close_loops: whether to add SAP ball constraints for the loops that
                the file does not close itself.

        Returns:
            The model instances that were added.
        """
        instances = parse_model(plant, self.path, self.text, package_root())
        if close_loops:
            open_loops = [loop for loop in self.loops if not loop.in_file]
            add_ball_constraints(plant, open_loops, half_length=loop_half_length(self))
        return instances

    def report(self) -> dict[str, Any]:
        """The contents as JSON-able values, lengths in m, mass in kg."""
        s = self.summary
        return {
            "name": self.name,
            "path": str(self.path),
            "mass_kg": s.mass,
            "bodies": s.bodies,
            "num_positions": len(s.positions),
            "num_velocities": len(s.velocities),
            "positions": list(s.positions),
            "velocities": list(s.velocities),
            "actuators": list(s.actuators),
            "springs_and_dampers": s.springs,
            "sap_constraints_in_file": s.constraints,
            "loops": [loop.name for loop in self.loops],
            "loop_rows": s.loop_rows,
            "independent_loop_rows": s.independent_rows,
            "loop_gap_m": s.loop_gap,
            "feet": {
                foot.name: {
                    "body": foot.body,
                    "p_BF_m": foot.p_BF.tolist(),
                    "radius_m": foot.radius,
                }
                for foot in self.feet
            },
            "points": [point.name for point in self.points],
            "notes": list(self.notes),
        }


def loop_half_length(model: Model) -> float:
    """Half the distance between a hinge's two ball constraints [m].

    A twentieth of the largest coordinate of the loops' points: of the order of
    a link, so that the two balls hold a hinge's direction well.
    """
    points = [p for loop in model.loops for p in (loop.p_AP, loop.p_BQ)]
    reach = max((float(np.abs(p).max()) for p in points), default=0.0)
    return reach / 20 or 1e-3


def find_model(name_or_path: str | Path) -> Path:
    """The model file for a name or a path.

    Raises:
        UnknownName: for a name that is not among the models.
        ModelProblem: for a path that is no file or has no known ending.
    """
    text = str(name_or_path)
    path = Path(text)
    looks_like_path = path.suffix or "/" in text or os.sep in text
    if not looks_like_path:
        if text not in available_models() and "-" in text:
            text = text.replace("-", "_")
        if text not in available_models():
            raise UnknownName("model", text, available_models())
        return package_root() / text / f"{text}.sdf"
    if "\0" in text:
        raise InvalidInput("a model path cannot contain a NUL character")
    if path.is_dir():
        raise ModelProblem(path, "is a folder; name the model file in it")
    if not path.is_file():
        raise ModelProblem(
            path, "no such file; give a path or one of " + ", ".join(available_models())
        )
    if not text.lower().endswith(ENDINGS):
        raise ModelProblem(path, f"unknown ending; use one of {', '.join(ENDINGS)}")
    return path


def load(
    name_or_path: str | Path,
    *,
    units: Scaling = SI,
    feet: Sequence[str] | None = None,
) -> Model:
    """Loads and checks a model.

    Args:
        name_or_path: a name from :func:`available_models`, or a path to a
            URDF, SDF, MJCF or dmd.yaml; URDFs in the format of old Drake
            (loop_joint, force_element) load too.
        units: the units of the numbers in an old-format URDF.
        feet: names to use as feet, of feet or of bodies that have one: those
            the file or the YAML beside it name, and last links with a sphere.

    Returns:
        The checked model.

    Raises:
        UnknownName: for an unknown name, or a foot that is no body.
        ModelProblem: for a file that Drake or our checks refuse.
    """
    path = find_model(name_or_path)
    check_model_file(path)
    sidecar = read_sidecar(sidecar_path(path))
    loops, found, notes, text = sidecar.loops, sidecar.feet, [], None
    if path.suffix.lower() == ".urdf" and is_old_urdf(path):
        old = read_old_urdf(path, units=units)
        text, loops = old.sdf, loops or _fewest_rows(path, old.sdf, old.loops)
        found = found or tuple(Point(k, b, p) for k, (b, p) in old.feet.items())
        notes += ["read as an old-Drake URDF", *old.notes]
    elif units != SI:
        raise InvalidInput(
            f"{path}: units apply to URDFs in the old Drake format only; "
            "this file is read in SI"
        )
    try:
        summary, detected = inspect_model(
            path, text, loops, sidecar.points + found, package_root()
        )
    except UnknownName as error:
        raise ModelProblem(sidecar_path(path), str(error)) from error
    if not found and detected:
        found = detected
        notes.append("feet inferred from spheres on the last link of each chain")
    if feet is not None:
        found = tuple(_named_foot(name, found + detected, summary) for name in feet)
    return Model(
        name=model_stem(path),
        path=path,
        loops=loops,
        feet=found,
        points=sidecar.points,
        summary=summary,
        notes=tuple(notes),
        text=text,
    )


def _fewest_rows(path: Path, text: str, loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """Hinges as planar loops where the rows left out hold by themselves.

    In a mechanism of few freedoms most rows of its hinges depend on the
    others; programs and time stepping need independent ones.
    """
    planar = tuple(replace(loop, rows="planar") for loop in loops)
    all_rows, fewer = (
        inspect_model(path, text, rows, (), package_root())[0]
        for rows in (loops, planar)
    )
    same = fewer.independent_rows == all_rows.independent_rows
    return planar if same else loops


def _named_foot(name: str, known: Sequence[Point], summary: Summary) -> Point:
    for point in known:
        if name in (point.name, point.body):
            return point
    raise UnknownName("foot", name, {p.name for p in known} | {p.body for p in known})
