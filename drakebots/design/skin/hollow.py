"""Skin from a body: a wall with teeth as deep as can be meshed, and its materials.

folds = joint_folds(skeleton, skin.folds)
shell, notes = fold_and_hollow(grid, skeleton, folds, skin)
shell = with_regions(shell, skin)
moduli = fold_moduli(skeleton, folds, shell.mesh, glue, materials)
materials = region_materials(shell.mesh, skin, moduli)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated

import numpy as np

from drakebots.core.checks import array, between, check_value, positive, whole
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.fields import checked
from drakebots.design.geometry import DistanceGrid, Ring
from drakebots.design.skeleton import Skeleton
from drakebots.design.skin.fold import FoldSettings, JointFold, teeth
from drakebots.design.skin.shell import Shell, shell_mesh
from drakebots.fem.assembly import build_model
from drakebots.fem.material import SILICONE, Material
from drakebots.fem.mesh import TetMesh
from drakebots.skin.coupled import Glue, glue_midside, glue_stiffness

SOFT = 101
"""Region of the first soft part in a skin's mesh; 0 is the plain skin, 1 to 100 are the
folds."""

_RIM = 3e-3
"""Height of the rims of soles [m]."""

_SHARES = {1.0: 0.5, 0.5: 0.0}
"""Share of the teeth's depth that is tried next where a wall cannot be meshed."""

_TRIES = 6
"""Number of times that a wall is tried; the last one has no teeth."""

_TRIALS = (0.2, 0.4)
"""Moduli of P1 folds over the material's, between which slopes are interpolated."""

_MODULI = (0.02, 1.0)
"""Smallest and largest modulus of P1 folds over the material's."""


@checked("soft part {name}")
class SoftBall:
    """A part of the skin of another stiffness: what lies within a ball.

    Raises:
        InvalidInput: for a radius or a modulus that is not > 0.
    """

    name: str
    """Name of the fold, e.g. "belly"."""
    p_W: tuple[float, float, float]
    """Centre of the ball at rest (3,) [m]."""
    radius: Annotated[float, positive("m")]
    """Radius of the ball."""
    modulus: Annotated[float, positive()]
    """Young's modulus of the part over that of the plain skin."""

    def __post_init__(self):
        what = f"soft part {self.name}"
        check_value(f"{what}: p_W", self.p_W, array((3,), "m"))


@checked("skin")
class SkinSettings:
    """Settings of a skin.

    Raises:
        InvalidInput: for a value out of range.
    """

    wall: Annotated[float, positive("m")] = 4e-3
    """Thickness of the skin."""
    foot_wall: Annotated[float, positive("m")] = 8e-3
    """Thickness of the skin under and around the soles."""
    vertices: Annotated[int, whole(10)] = 14000
    """Requested number of vertices."""
    glue: Annotated[int, whole(10)] = 140
    """Number of vertices glued to the links."""
    layers: Annotated[int, whole(1)] = 1
    """Number of layers of elements through the wall."""
    folds: FoldSettings = field(default_factory=FoldSettings)
    """Teeth at the joints."""
    fold_refine: Annotated[float, between(0.1, 2)] = 1.0
    """Length of the edges in folds over that of the others."""
    material: Material = SILICONE
    """Material of the skin."""
    fold_modulus: Annotated[float | None, positive()] = None
    """Young's modulus of the folds' elements over that of the material; None finds one
    for each fold, with which its P1 tets are as stiff as P2 tets
    (:func:`~drakebots.design.skin.fold_moduli`)."""
    soft: tuple[SoftBall, ...] = ()
    """Parts of another stiffness."""
    rims: bool = True
    """Whether edges of the mesh run along the rims of the soles, which are ragged
    without; not where a wall is hard to mesh."""


def _sole_rims(skeleton: Skeleton) -> tuple[Ring, ...]:
    """A ring around each sole, where its sides begin."""
    up = np.array([0.0, 0.0, 1.0])
    rims = []
    for (x, y, _), sole in zip(skeleton.sole_middles, skeleton.soles):
        radius = float(np.hypot(*sole.size)) / 2 + 0.02
        rims.append(Ring(np.array([x, y, _RIM]), up, radius))
    return tuple(rims)


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
        skin: settings of the skin.

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
        return shell, _changes(folds, share, why, skin.folds.depth)
    raise AssertionError("the last try has no teeth")


def _changes(folds, share, why, depth: float) -> tuple[str, ...]:
    """A note for each share of the teeth's depth and reason for it."""
    changed: dict[tuple[float, str], list[str]] = {}
    for fold, part, reason in zip(folds, share, why):
        if reason:
            changed.setdefault((part, reason), []).extend(fold.joints)
    return tuple(
        f"{', '.join(joints)}: teeth "
        + (f"{1e3 * part * depth:g} mm deep" if part else "left out")
        + f", not {1e3 * depth:g} mm: {reason}"
        for (part, reason), joints in changed.items()
    )


def _folds_at(folds, places) -> np.ndarray:
    """Mask of the folds nearest to a place, and of their mirror images."""
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
    soles = list(zip(skeleton.sole_middles, [np.array(s.size) for s in skeleton.soles]))

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
    """Mask of the tets of a skin in folds (m,)."""
    return (mesh.region > 0) & (mesh.region < SOFT)


def region_materials(
    mesh: TetMesh, skin: SkinSettings, folds: Mapping[int, float] | None = None
) -> dict[int, Material]:
    """The material of each region.

    Args:
        mesh: mesh of the skin.
        skin: its settings.
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


def fold_moduli(
    skeleton: Skeleton,
    folds: Sequence[JointFold],
    mesh: TetMesh,
    glue: Mapping[str, np.ndarray],
    materials: Mapping[int, Material],
) -> dict[int, float]:
    """The modulus of each fold with which P1 tets are as stiff as P2 tets.

    P1 tets lock in folds. With P2 tets everywhere and the material's own modulus, joint
    j has the slope s_j at rest; with P1 tets and folds of f times the modulus it has
    s_j(f), nearly a power of f. The f of a fold is where the two are equal, in the
    geometric mean of its joints, after one interpolation and one correction.

    Args:
        skeleton: skeleton at rest.
        folds: the folds; a region of the mesh belongs to the nearest.
        mesh: mesh of the skin, whose folds are regions.
        glue: glued vertices by link.
        materials: material of each region, in folds that of the plain skin.

    Returns:
        f by region.
    """
    names = [hinge.name for hinge in skeleton.hinges]
    joints = _joints_of_folds(names, folds, mesh)
    if not joints:
        return {}
    ids = np.concatenate([np.asarray(ids, int) for ids in glue.values()])
    links = tuple(link for link, ids in glue.items() for _ in ids)
    held = Glue(ids, links, mesh.vertices[ids])

    def slopes(shares: np.ndarray, order: int) -> np.ndarray:
        """log of the stiffness against the joints of each fold, their mean."""
        soft = {
            k: materials[k].with_modulus(f * materials[k].youngs_modulus)
            for k, f in zip(joints, shares)
        }
        second = mesh.regions if order == 2 else ()
        fem = build_model(mesh, {**materials, **soft}, quadratic=second)
        on = glue_midside(held, fem.space)
        J = skeleton.hinge_columns(on.bodies, on.p_BG, names)
        found = np.diag(glue_stiffness(fem, on, J))
        found = np.log(np.maximum(found, 1e-9))  # links without glue are free
        return np.array([found[numbers].mean() for numbers in joints.values()])

    exact = slopes(np.ones(len(joints)), 2)
    low, high = (slopes(np.full(len(joints), f), 1) for f in _TRIALS)
    power = np.maximum((high - low) / np.log(_TRIALS[1] / _TRIALS[0]), 0.1)
    shares = np.clip(_TRIALS[0] * np.exp((exact - low) / power), *_MODULI)
    off = exact - slopes(shares, 1)
    shares = np.clip(shares * np.exp(off / power), *_MODULI)
    return dict(zip(joints, shares.round(3).tolist()))


def _joints_of_folds(names: list[str], folds: Sequence[JointFold], mesh: TetMesh):
    """Numbers of the joints of each region of folds, whose nearest fold has them."""
    middles = np.array([fold.p_W for fold in folds])
    centres = mesh.vertices[mesh.tets].mean(axis=1)
    found = {}
    for k in np.unique(mesh.region[in_folds(mesh)]).tolist():
        middle = centres[mesh.region == k].mean(axis=0)
        near = np.linalg.norm(middles - middle, axis=1).argmin()
        found[k] = [names.index(joint) for joint in folds[near].joints]
    return found
