"""How a skin is made: a body hollowed to a wall, with teeth as deep as can be meshed.

shell, notes = fold_and_hollow(grid, skeleton, joint_folds(skeleton, folds), skin)
shell = with_regions(shell, skin)
materials = region_materials(shell.mesh, skin)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from drakebots.core.checks import (
    array,
    between,
    check,
    check_value,
    optional,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.design.geometry import DistanceGrid, Ring
from drakebots.design.skeleton import Skeleton
from drakebots.design.skin.fold import FoldSettings, JointFold, teeth
from drakebots.design.skin.shell import Shell, shell_mesh
from drakebots.fem.material import SILICONE, Material
from drakebots.fem.mesh import TetMesh

SOFT = 101
"""Region of the first soft part in a skin's mesh; 0 is the plain skin, 1 to 100 are the
folds."""

_RIM = 3e-3
"""Height of the rims of soles [m]."""

_SHARES = {1.0: 0.5, 0.5: 0.0}
"""Share of the teeth's depth that is tried next where a wall cannot be meshed."""

_TRIES = 6
"""Number of times that a wall is tried; the last one has no teeth."""


@dataclass(frozen=True)
class SoftBall:
    """A part of the skin of another stiffness: what lies within a ball.

    Attributes:
        name: its name, e.g. "belly".
        p_W: centre of the ball at rest (3,) [m].
        radius: radius of the ball [m].
        modulus: Young's modulus of the part over that of the plain skin.

    Raises:
        InvalidInput: for a radius or a modulus that is not > 0.
    """

    name: str
    p_W: tuple[float, float, float]
    radius: float
    modulus: float

    def __post_init__(self):
        what = f"soft part {self.name}"
        check_value(f"{what}: p_W", self.p_W, array((3,), "m"))
        check(self, what, radius=positive("m"), modulus=positive())


@dataclass(frozen=True)
class SkinSettings:
    """How the skin is made.

    Attributes:
        wall: thickness of the skin [m].
        foot_wall: thickness of the skin under and around the soles [m].
        vertices: requested number of vertices.
        glue: number of vertices glued to the links.
        layers: number of layers of elements through the wall.
        folds: teeth at the joints.
        fold_refine: length of the edges in folds over that of the others.
        material: material of the skin.
        fold_modulus: Young's modulus of the folds' elements over that of the material;
            None finds one for each fold, with which its P1 tets are as stiff as P2
            tets (:func:`~drakebots.design.resistance.fold_moduli`).
        soft: parts of another stiffness.
        rims: whether edges of the mesh run along the rims of the soles, which are
            ragged without; not where a wall is hard to mesh.

    Raises:
        InvalidInput: for a value out of range.
    """

    wall: float = 4e-3
    foot_wall: float = 8e-3
    vertices: int = 14000
    glue: int = 140
    layers: int = 1
    folds: FoldSettings = field(default_factory=FoldSettings)
    fold_refine: float = 1.0
    material: Material = SILICONE
    fold_modulus: float | None = None
    soft: tuple[SoftBall, ...] = ()
    rims: bool = True

    def __post_init__(self):
        check(self, "skin", wall=positive("m"), foot_wall=positive("m"))
        check(self, "skin", vertices=whole(10), glue=whole(10), layers=whole(1))
        check(self, "skin", fold_refine=between(0.1, 2))
        check(self, "skin", fold_modulus=optional(positive()))


def _sole_rims(skeleton: Skeleton) -> tuple[Ring, ...]:
    """A ring around each sole, where its sides begin."""
    middles = [skeleton.link(s.link).origin + s.p_BP[4] for s in skeleton.soles]
    return tuple(
        Ring(
            np.array([x, y, _RIM]),
            np.array([0.0, 0.0, 1.0]),
            float(np.hypot(*sole.size)) / 2 + 0.02,
        )
        for (x, y, _), sole in zip(middles, skeleton.soles)
    )


def fold_and_hollow(
    grid: DistanceGrid,
    skeleton: Skeleton,
    folds: tuple[JointFold, ...],
    skin: SkinSettings,
) -> tuple[Shell, tuple[str, ...]]:
    """Folds and hollows a body; teeth that cannot be meshed get shallower or vanish.

    Args:
        grid: signed distance of the body.
        skeleton: skeleton inside it.
        folds: folding regions of its joints.
        skin: how the skin is made.

    Returns:
        the shell, and a note for each region whose teeth were changed.

    Raises:
        NoSolution: when even a smooth wall cannot be meshed.
    """
    share = np.full(len(folds), 1.0 if skin.folds.depth > 0 else 0.0)
    why = np.full(len(folds), "", object)
    for number in range(_TRIES):
        finer = 0.8 if number == 1 and share.min(initial=1) == 1 else 1.0
        kept = tuple(
            replace(fold, depth=part * fold.depth)
            for fold, part in zip(teeth(folds, skin.folds), share)
            if part > 0
        )
        try:
            shell = shell_mesh(
                grid,
                _wall_of(skeleton, skin),
                target_vertices=skin.vertices,
                layers=skin.layers,
                folds=kept,
                # Where walls are hard to mesh, teeth matter more than rims.
                rings=_sole_rims(skeleton) if skin.rims and number == 0 else (),
                fold_refine=finer * skin.fold_refine,
            )
        except (NoSolution, InvalidInput) as error:
            if number == 0 and isinstance(error, NoSolution) and (kept or skin.rims):
                # No rims, or shorter edges in the folds, are often enough.
                continue
            if not kept:
                raise
            bad = _folds_at(folds, getattr(error, "places", None))
            if number == _TRIES - 2 or not share[bad].any():
                bad[:], share[:] = True, 0.0
            share[bad] = [_SHARES.get(part, 0.0) for part in share[bad]]
            why[bad] = str(error)
            continue
        changed: dict[tuple[float, str], list[str]] = {}
        for fold, part, reason in zip(folds, share, why):
            if reason:
                changed.setdefault((part, reason), []).extend(fold.joints)
        return shell, tuple(
            f"{', '.join(joints)}: teeth "
            + (f"{1e3 * part * skin.folds.depth:g} mm deep" if part else "left out")
            + f", not {1e3 * skin.folds.depth:g} mm: {reason}"
            for (part, reason), joints in changed.items()
        )
    raise AssertionError("the last try has no teeth")


def _folds_at(folds, places) -> np.ndarray:
    """Which folds are nearest to one of the places, with their mirror images."""
    if places is None or not len(places):
        return np.ones(len(folds), bool)
    middles = np.array([fold.p_W for fold in folds])
    away = np.linalg.norm(places[:, None] - middles, axis=2)
    hit = np.unique(away.argmin(axis=1))
    twins = np.linalg.norm(middles * [1, -1, 1] - middles[hit][:, None], axis=2)
    bad = np.zeros(len(folds), bool)
    bad[hit] = bad[twins.argmin(axis=1)] = True
    return bad


def _wall_of(skeleton: Skeleton, skin: SkinSettings) -> Callable:
    """Thickness of the wall at points (n, 3) -> (n,) [m], `foot_wall` at the soles."""
    soles = [
        (skeleton.link(s.link).origin + s.p_BP[4], np.array(s.size))
        for s in skeleton.soles
    ]

    def thickness(points: np.ndarray) -> np.ndarray:
        t = np.full(len(points), skin.wall)
        for middle, size in soles:
            near = (np.abs(points[:, :2] - middle[:2]) <= size / 2 + 0.02).all(axis=1)
            # Above the foot's plate the wall gets thinner over 10 mm.
            w = np.clip((0.024 - (points[:, 2] - middle[2])) / 0.010, 0, 1)
            w = w * w * (3 - 2 * w)
            t = np.where(near, skin.wall + (skin.foot_wall - skin.wall) * w, t)
        return t

    return thickness


# Regions of the mesh, and the material of each.


def with_regions(shell: Shell, skin: SkinSettings) -> Shell:
    """The shell with its soft parts as regions of the mesh, outside of the folds."""
    mesh = shell.mesh
    region = mesh.region.copy()
    middle = mesh.vertices[mesh.tets].mean(axis=1)
    for k, soft in enumerate(skin.soft):
        inside = np.linalg.norm(middle - soft.p_W, axis=1) < soft.radius
        region[inside & (region == 0)] = SOFT + k
    return replace(shell, mesh=TetMesh(mesh.vertices, mesh.tets, region))


def in_folds(mesh: TetMesh) -> np.ndarray:
    """Which tets of a skin are in folds (m,)."""
    return (mesh.region > 0) & (mesh.region < SOFT)


def region_materials(
    mesh: TetMesh, skin: SkinSettings, folds: Mapping[int, float] | None = None
) -> dict[int, Material]:
    """The material of each region.

    Args:
        mesh: mesh of the skin.
        skin: how it is made.
        folds: Young's moduli of folds over that of the material, by region; those of
            `skin.fold_modulus`, or the same, where none is given.
    """
    plain = skin.material
    factors = dict.fromkeys(mesh.regions, skin.fold_modulus or 1.0) | {0: 1.0}
    factors |= {SOFT + k: soft.modulus for k, soft in enumerate(skin.soft)}
    factors |= folds or {}
    return {
        k: plain.with_modulus(factors[k] * plain.youngs_modulus) for k in mesh.regions
    }
