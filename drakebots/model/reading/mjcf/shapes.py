"""The shapes of an MJCF body: what Drake draws and collides, and their inertia."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from pydrake.math import RigidTransform

from drakebots.core.errors import InvalidInput
from drakebots.model.reading.mjcf.compiler import Compiler, along
from drakebots.model.reading.mjcf.inertia import Inertia, solid
from drakebots.model.reading.mjcf.mesh import Mesh
from drakebots.model.reading.mjcf.tree import Element

SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
"""The number of sizes of a shape: radius; radius and half length; half axes."""

WATER = 1000.0
"""Density of a shape that names none [kg/m^3]."""


@dataclass(frozen=True)
class Shape:
    """One <geom> in the frame of its body.

    Attributes:
        name: its name; empty for none.
        kind: one of :data:`SIZES`, or "mesh".
        sizes: as in :data:`SIZES` [m].
        X_BG: pose in the body.
        inertia: in the body; None where it has no mass.
        masks: `contype` and `conaffinity`.
        group: which decides whether MuJoCo draws it: 0 to 2 are drawn.
        rgba: color (4,).
        friction: coefficient of sliding friction.
        mesh: of kind "mesh".
    """

    name: str
    kind: str
    sizes: tuple[float, ...]
    X_BG: RigidTransform
    inertia: Inertia | None
    masks: tuple[int, int]
    group: int
    rgba: np.ndarray
    friction: float
    mesh: Mesh | None = None

    def placed(self, X_BF: RigidTransform) -> Shape:
        """The same, given in a frame F of the body."""
        inertia = None if self.inertia is None else self.inertia.inside(X_BF)
        return replace(self, X_BG=X_BF @ self.X_BG, inertia=inertia)

    @property
    def collides(self) -> bool:
        """Whether it may touch anything."""
        return any(self.masks)


def read_shape(
    element: Element,
    compiler: Compiler,
    meshes: dict[str, Mesh],
    colors: dict[str, np.ndarray],
) -> Shape | None:
    """Reads a <geom>; None for what Drake has no shape for (a plane, a height field).

    Raises:
        InvalidInput: for a wrong size, or a mesh that does not exist.
        ModelProblem: for a mesh file that cannot be used.
    """
    kind = element.get("type", "sphere")
    mesh = _mesh_of(element, meshes)
    if kind in ("plane", "hfield", "sdf"):
        return None
    if kind != "mesh" and kind not in SIZES:
        raise InvalidInput(f"{element}: unknown type {kind!r}; use {', '.join(SIZES)}")
    X_BG = compiler.pose(element)
    if kind == "mesh":
        if mesh is None:
            raise InvalidInput(f"{element}: needs the name of a mesh; add it")
        sizes = ()
    elif mesh is not None:
        sizes, X_GF = mesh.fitted(kind)
        X_BG, mesh = X_BG @ X_GF, None
    else:
        sizes = _sizes(element, kind)
    rgba = colors.get(element.get("material"), np.array([0.5, 0.5, 0.5, 1.0]))
    if "rgba" in element.attributes:
        rgba = np.array(element.vector("rgba", 4, ""))
    masks = (int(element.number("contype", 1)), int(element.number("conaffinity", 1)))
    return Shape(
        name=element.get("name"),
        kind=kind,
        sizes=sizes,
        X_BG=X_BG,
        inertia=_inertia(element, kind, sizes, mesh, X_BG),
        masks=masks,
        group=int(element.number("group", 0)),
        rgba=np.clip(rgba, 0.0, 1.0),
        friction=element.number("friction", 1.0),
        mesh=mesh,
    )


def _mesh_of(element: Element, meshes: dict[str, Mesh]) -> Mesh | None:
    name = element.get("mesh")
    if not name:
        return None
    if name not in meshes:
        raise InvalidInput(f"{element}: there is no mesh {name!r}; add it to <asset>")
    return meshes[name]


def _sizes(element: Element, kind: str) -> tuple[float, ...]:
    """The sizes, where `fromto` may give half the length."""
    if "fromto" in element.attributes and kind != "sphere":
        half = np.linalg.norm(along(element)) / 2
        radius = element.vector("size", 1, "")[0]
        sizes = [radius, half] if SIZES[kind] == 2 else [radius, radius, half]
    else:
        sizes = element.vector("size", SIZES[kind], "")
    if min(sizes) <= 0:
        raise InvalidInput(f"{element}: size={element.get('size')!r} must be > 0")
    return tuple(map(float, sizes))


def _inertia(element, kind, sizes, mesh, X_BG) -> Inertia | None:
    unit = mesh.inertia if mesh is not None else solid(kind, sizes)
    if "mass" in element.attributes:
        factor = element.number("mass", 0.0) / unit.mass if unit.mass > 0 else 0.0
    else:
        factor = element.number("density", WATER)
    if factor < 0:
        raise InvalidInput(f"{element}: its mass is negative; correct it")
    return unit.scaled(factor).inside(X_BG) if factor > 0 else None
