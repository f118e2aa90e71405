"""A design problem, and the designed robot with the folder of its files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import yaml

from drakebots.core.checks import array, by_name, positive, text
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.files import write_text
from drakebots.design.bracing import Through, glue_distance
from drakebots.design.fit import FitSettings
from drakebots.design.geometry import Implicit, Surface
from drakebots.design.skeleton import (
    Plate,
    Skeleton,
    Template,
    Trimmed,
    write_sdf,
)
from drakebots.design.skin import JointFold, Shell, SkinSettings
from drakebots.fem.material import Material
from drakebots.fem.mesh import write_mesh
from drakebots.results import freeze, to_json
from drakebots.skin.file import Patches, ServoGains, SkinDescription, write_skin


@checked("design")
class DesignProblem:
    """A body, a template of the skeleton, and a skin.

    Raises:
        InvalidInput: unless there is either a body or a surface, for a body without
            template, for a scale or limits without template, and for a value out of
            range.
    """

    name: Annotated[str, text(r"\w+", "letters, digits and _ only")]
    """Name of the robot and of its files: letters, digits and underscores."""
    template: Template | None = None
    """Template of the skeleton, fitted into a surface from its own parameters; None,
    with a surface, to find everything (`fit`)."""
    body: Implicit | None = None
    """Body defined by formulas around the template's skeleton; None for a surface."""
    surface: Surface | None = None
    """Closed surface, x forward and z up, soles lowest [m]; None for a body."""
    skin: SkinSettings = field(default_factory=SkinSettings)
    """Settings of the skin."""
    fit: FitSettings = field(default_factory=FitSettings)
    """Settings of the fit, for a surface without template."""
    thicken: bool = True
    """Whether a surface without template is moved outward where its skeleton sticks
    out; otherwise that is an error."""
    forward: str | None = None
    """Axis of a surface without template that points forward; None to find it."""
    up: str | None = None
    """Axis of a surface without template that points up; None to find it."""
    scale: Annotated[float, positive()] = 1.0
    """Factor on the surface; with a template only."""
    limits: Annotated[Mapping[str, tuple[float, float]], by_name(array((2,)))] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """Lower and upper limits of the template's parameters in the fit, in SI, by dotted
    name; with a template only."""

    def __post_init__(self):
        if (self.body is None) == (self.surface is None):
            raise InvalidInput(f"design {self.name}: needs a body or a surface")
        if self.template is None and self.surface is None:
            raise InvalidInput(f"design {self.name}: a body needs a template")
        if self.template is None and (self.limits or self.scale != 1):
            raise InvalidInput(
                f"design {self.name}: scale and limits are for a template; without "
                "one, give fit=FitSettings(scale=...)"
            )


@dataclass(frozen=True)
class Design:
    """A skinned robot.

    Attributes:
        problem: the problem that was solved.
        template: the template as fitted.
        skeleton: the skeleton at rest, with bracing plates, trimmed to the skin.
        folds: folding regions of the joints.
        shell: the wall of tets; its regions are 0 plain, 1 folds, 2... soft parts.
        glue: glue vertices of the shell's mesh, by link.
        materials: materials by region of the mesh.
        seconds: time spent in each stage [s].
        notes: adjustments, one line each.
        through: the rigid parts that still pass the skin's inside, the deepest first.
    """

    problem: DesignProblem
    template: Template
    skeleton: Skeleton
    folds: tuple[JointFold, ...]
    shell: Shell
    glue: Mapping[str, np.ndarray]
    materials: Mapping[int, Material]
    seconds: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[str, ...] = ()
    through: tuple[Through, ...] = ()

    @property
    def skin_mass(self) -> float:
        """Mass of the skin [kg]."""
        mesh = self.shell.mesh
        density = np.array([self.materials[k].density for k in mesh.regions])
        volume = np.array([mesh.volumes[mesh.region == k].sum() for k in mesh.regions])
        return float(density @ volume)

    @property
    def mass(self) -> float:
        """Mass of skeleton and skin [kg]."""
        return self.skeleton.mass + self.skin_mass

    @property
    def size(self) -> np.ndarray:
        """Length, width, height of the skin (3,) [m]."""
        return np.ptp(self.shell.mesh.vertices, axis=0)

    def report(self) -> dict:
        """Figures of the design, as values that JSON can hold."""
        shell, braces = self.shell.report, self.skeleton.solids(Plate)
        vertices = self.shell.mesh.vertices
        return {
            "name": self.problem.name,
            "joints": len(self.skeleton.hinges),
            "skin_vertices": len(vertices),
            "skin_tets": len(self.shell.mesh.tets),
            "glue_vertices": int(sum(map(len, self.glue.values()))),
            "glue_to_plate_m": glue_distance(self.skeleton, vertices, self.glue),
            "plates": len(braces),
            "plate_thickness_m": _range(plate.thickness for _, plate in braces),
            "trimmed_parts": len(self.skeleton.solids(Trimmed)),
            "through_skin": [row.figures() for row in self.through],
            "skeleton_mass_kg": self.skeleton.mass,
            "skin_mass_kg": self.skin_mass,
            "mass_kg": self.mass,
            "skin_density_kg_m3": self.materials[0].density,
            "size_m": self.size.tolist(),
            "wall_m": list(shell.wall_m),
            "quality": list(shell.quality),
            "inverted": shell.inverted,
            "surface_to_robot_s": float(sum(self.seconds.values())),
            "seconds": dict(self.seconds),
            "notes": list(self.notes),
        }


def _range(values: Iterable[float]) -> list[float]:
    values = list(values)
    return [min(values), max(values)] if values else []


# --- the robot in files ---------------------------------------------------------

GAINS = ServoGains(stiffness=40.0, damping=0.6)
"""Gains of a servo's own control; no data sheet gives them."""


def write_design(design: Design, folder: Path | str) -> Path:
    """Writes a design as a folder of files that Drake's parser and `load_skinned` read.

    These are NAME.sdf, NAME.drakebots.yaml, NAME.skin.yaml, skin.vtu, params.yaml,
    scene.dmd.yaml and meshes/. They depend on the design only.

    Returns:
        the path of the SDF.
    """
    folder = Path(folder)
    name = design.problem.name
    path = write_sdf(design.skeleton, folder)
    write_mesh(folder / "skin.vtu", design.shell.mesh, small=True)
    write_skin(folder / f"{name}.skin.yaml", skin_description(design))
    write_text(folder / "scene.dmd.yaml", _scene(name))
    write_text(folder / "params.yaml", params_text(design))
    return path


def skin_description(design: Design) -> SkinDescription:
    """The contents of the `.skin.yaml` of a design."""
    materials, soles = design.materials, design.skeleton.soles
    return SkinDescription(
        mesh="skin.vtu",
        glue={link: tuple(map(int, ids)) for link, ids in design.glue.items()},
        material=materials[0],
        regions={k: m for k, m in materials.items() if m != materials[0]},
        servos=GAINS,
        patches=tuple(Patches(s.foot, s.link, np.round(s.p_BP, 9)) for s in soles),
    )


def _scene(name: str) -> str:
    return (
        "# The skeleton as it stands at rest; the skin is no part of it.\n"
        "directives:\n"
        "- add_model:\n"
        f"    name: {name}\n"
        f"    file: package://drakebots/{name}/{name}.sdf\n"
    )


def params_text(design: Design) -> str:
    """The text of params.yaml: every number of a design, and its measurements."""
    skin = design.problem.skin
    measured = {k: v for k, v in design.report().items() if "second" not in k}
    measured.pop("surface_to_robot_s")
    raw = {
        "name": design.problem.name,
        "template": {"kind": type(design.template).__name__} | asdict(design.template),
        "skin": asdict(skin),
        "measured": measured,
    }
    return yaml_text(raw)


def yaml_text(raw: dict[str, Any]) -> str:
    """The numbers of a design as the text of its params.yaml."""
    head = "# Written by drakebots.design; every number of the design, SI.\n"
    text = to_json(freeze(raw, "design"))
    plain = json.loads(text, parse_float=lambda digits: float(f"{float(digits):.9g}"))
    return head + yaml.safe_dump(plain, sort_keys=False, width=100)
