"""What a designer asks for, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.design.bracing import glue_distance, plates
from drakebots.design.geometry import Implicit, Surface
from drakebots.design.skeleton import Skeleton, Template
from drakebots.design.skin import FoldSettings, JointFold, Shell
from drakebots.fem.material import Material


@dataclass(frozen=True)
class SoftBall:
    """A part of the skin of another stiffness: what lies within a ball.

    Attributes:
        name: e.g. "belly".
        p_W, radius: of the ball, in the robot's frame at rest [m].
        modulus: relative to the rest of the skin.
    """

    name: str
    p_W: tuple[float, float, float]
    radius: float
    modulus: float

    def __post_init__(self):
        if not (self.radius > 0 and self.modulus > 0):
            raise InvalidInput(f"soft part {self.name}: radius and modulus must be > 0")


@dataclass(frozen=True)
class SkinSettings:
    """How the skin is made.

    Attributes:
        wall, foot_wall: thickness, and under and around the soles [m].
        vertices, glue: numbers of vertices wanted.
        layers: of elements through the wall.
        folds: teeth at the joints.
        fold_refine: edges there, relative to the others.
        material: of the skin; its density is replaced where `mass` is given.
        mass: of the skin [kg]; None to let the density decide.
        fold_modulus: modulus of the folds' elements over the material's, which
            takes back what P1 tets are too stiff there (docs/design.md).
        soft: parts of other stiffness.
        brace_length: of a bracing ring's region along its link [m], where rings are
            not trimmed to plates.

    Raises:
        InvalidInput: for a thickness that is not > 0 or another value out of range.
    """

    wall: float = 4e-3
    foot_wall: float = 8e-3
    vertices: int = 14000
    glue: int = 140
    layers: int = 1
    folds: FoldSettings = field(default_factory=FoldSettings)
    fold_refine: float = 1.0
    material: Material = field(default_factory=Material)
    mass: float | None = None
    fold_modulus: float = 1.0
    soft: tuple[SoftBall, ...] = ()
    brace_length: float = 0.04

    def __post_init__(self):
        for name in ("wall", "foot_wall", "fold_modulus", "brace_length"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                unit = "" if name == "fold_modulus" else " m"
                raise InvalidInput(f"skin {name} = {value}{unit}: must be > 0")
        if self.mass is not None and not (np.isfinite(self.mass) and self.mass > 0):
            raise InvalidInput(f"skin mass = {self.mass} kg: must be > 0")
        for name in ("vertices", "glue"):
            if getattr(self, name) < 10:
                raise InvalidInput(
                    f"skin {name} = {getattr(self, name)}: must be >= 10"
                )


@dataclass(frozen=True)
class DesignProblem:
    """A body, a template and a skin.

    Attributes:
        name: of the robot; of its files.
        template: the skeleton's; for a surface, fitted into it.
        body: drawn by formula around the template's skeleton, or
        surface: a closed surface, x forward and z up, soles lowest [m].
        skin: settings.
        scale: factor on a surface.
        limits: of the template's parameters in the fit, by dotted name.

    Raises:
        InvalidInput: unless there is just one of body and surface.
    """

    name: str
    template: Template
    body: Implicit | None = None
    surface: Surface | None = None
    skin: SkinSettings = SkinSettings()
    scale: float = 1.0
    limits: Mapping[str, tuple[float, float]] = field(
        default_factory=lambda: MappingProxyType({})
    )

    def __post_init__(self):
        if (self.body is None) == (self.surface is None):
            raise InvalidInput(f"design {self.name}: needs a body or a surface")
        if not self.name or not self.name.replace("_", "a").isalnum():
            raise InvalidInput(f"design name {self.name!r}: letters, digits, _ only")
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise InvalidInput(f"design scale = {self.scale}: must be > 0")


@dataclass(frozen=True)
class Design:
    """A skinned robot.

    Attributes:
        problem: what was asked.
        template: as fitted.
        skeleton: at rest.
        folds: regions of the joints.
        shell: the wall of tets; its regions: 0 plain, 1 folds, 2... soft parts.
        glue: vertices of the shell's mesh by link.
        materials: by region of the mesh.
        seconds: of each stage.
        notes: what was adjusted, one line each.
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

    @property
    def skin_mass(self) -> float:
        """Volume x density [kg]."""
        mesh = self.shell.mesh
        density = np.array([self.materials[k].density for k in mesh.regions])
        volume = np.array([mesh.volumes[mesh.region == k].sum() for k in mesh.regions])
        return float(density @ volume)

    @property
    def mass(self) -> float:
        """Of skeleton and skin [kg]."""
        return self.skeleton.mass + self.skin_mass

    @property
    def size(self) -> np.ndarray:
        """Length, width, height (3,) [m]."""
        return np.ptp(self.shell.mesh.vertices, axis=0)

    def report(self) -> dict:
        """Figures as JSON-able values."""
        shell = self.shell.report
        return {
            "name": self.problem.name,
            "joints": len(self.skeleton.hinges),
            "skin_vertices": len(self.shell.mesh.vertices),
            "skin_tets": len(self.shell.mesh.tets),
            "glue_vertices": int(sum(map(len, self.glue.values()))),
            "glue_to_plate_m": glue_distance(
                self.skeleton, self.shell.mesh.vertices, self.glue
            ),
            "plates": len(plates(self.skeleton)),
            "plate_thickness_m": _range(p.thickness for _, p in plates(self.skeleton)),
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


def _range(values) -> list[float]:
    values = list(values)
    return [min(values), max(values)] if values else []
