"""A body hollowed to a wall, with teeth at its folds as deep as can be meshed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.design.geometry import DistanceGrid
from drakebots.design.problem import SkinSettings
from drakebots.design.skeleton import Skeleton
from drakebots.design.skin.fold import JointFold, teeth
from drakebots.design.skin.shell import Shell, shell_mesh
from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh

# Regions of a skin's mesh, and the material of each.

FOLDS, SOFT = 1, 2
"""Regions of the mesh: of the folds, of the first soft part; 0 is the rest."""


def with_regions(shell: Shell, skin: SkinSettings) -> Shell:
    """The shell with regions 0 plain, 1 folds, 2... soft parts."""
    mesh = shell.mesh
    region = np.where(mesh.region > 0, FOLDS, 0)
    middle = mesh.vertices[mesh.tets].mean(axis=1)
    for k, soft in enumerate(skin.soft):
        inside = np.linalg.norm(middle - soft.p_W, axis=1) < soft.radius
        region[inside & (region == 0)] = SOFT + k
    return replace(shell, mesh=TetMesh(mesh.vertices, mesh.tets, region))


def region_materials(mesh: TetMesh, skin: SkinSettings) -> dict[int, Material]:
    """The material of each region; the density from the mass, where it is given."""
    plain = skin.material
    if skin.mass is not None:
        plain = replace(plain, density=skin.mass / float(mesh.volumes.sum()))
    factors = {0: 1.0, FOLDS: skin.fold_modulus}
    factors |= {SOFT + k: soft.modulus for k, soft in enumerate(skin.soft)}
    return {
        k: plain.with_modulus(factors[k] * plain.youngs_modulus) for k in mesh.regions
    }


SHARES = {1.0: 0.5, 0.5: 0.0}
"""Of the depth of teeth: what is tried next where a wall cannot be meshed."""

TRIES = 6
"""Of the wall; the last has no teeth."""


def fold_and_hollow(
    grid: DistanceGrid,
    skeleton: Skeleton,
    folds: tuple[JointFold, ...],
    skin: SkinSettings,
) -> tuple[Shell, tuple[str, ...]]:
    """The shell; teeth are made shallower, or left out, where they cannot be.

    Returns:
        the shell, and a note for each joint whose teeth were changed.

    Raises:
        NoSolution: when even a smooth wall cannot be meshed.
    """
    share = np.full(len(folds), 1.0 if skin.folds.depth > 0 else 0.0)
    why = np.full(len(folds), "", object)
    for number in range(TRIES):
        finer = 0.8 if number == 1 and share.min(initial=1) == 1 else 1.0
        kept = tuple(
            replace(fold, depth=part * fold.depth)
            for fold, part in zip(teeth(folds, skin.folds), share)
            if part > 0
        )
        try:
            shell = shell_mesh(
                grid,
                wall_of(skeleton, skin),
                target_vertices=skin.vertices,
                layers=skin.layers,
                folds=kept,
                fold_refine=finer * skin.fold_refine,
            )
        except (NoSolution, InvalidInput) as error:
            if not kept:
                raise
            if number == 0 and isinstance(error, NoSolution):
                # Shorter edges in the folds often do.
                continue
            bad = _folds_at(folds, getattr(error, "places", None))
            if number == TRIES - 2 or not share[bad].any():
                bad[:], share[:] = True, 0.0
            share[bad] = [SHARES.get(part, 0.0) for part in share[bad]]
            why[bad] = str(error)
            continue
        return shell, tuple(
            f"{', '.join(fold.joints)}: teeth "
            + (f"{1e3 * part * skin.folds.depth:g} mm deep" if part else "left out")
            + f", not {1e3 * skin.folds.depth:g} mm: {said}"
            for fold, part, said in zip(folds, share, why)
            if said
        )
    raise AssertionError("the last try has no teeth")


def _folds_at(folds, places) -> np.ndarray:
    """Which folds are the nearest to a place, and their twins of the other side."""
    if places is None or not len(places):
        return np.ones(len(folds), bool)
    middles = np.array([fold.p_W for fold in folds])
    away = np.linalg.norm(places[:, None] - middles, axis=2)
    hit = np.unique(away.argmin(axis=1))
    twins = np.linalg.norm(middles * [1, -1, 1] - middles[hit][:, None], axis=2)
    bad = np.zeros(len(folds), bool)
    bad[hit] = bad[twins.argmin(axis=1)] = True
    return bad


def wall_of(skeleton: Skeleton, skin: SkinSettings) -> Callable:
    """Thickness at points (n, 3) -> (n,) [m]: `foot_wall` around the soles."""
    soles = [
        (skeleton.link(s.link).origin + s.p_BP[4], np.array(s.size))
        for s in skeleton.soles
    ]

    def thickness(points: np.ndarray) -> np.ndarray:
        t = np.full(len(points), skin.wall)
        for middle, size in soles:
            near = (np.abs(points[:, :2] - middle[:2]) <= size / 2 + 0.02).all(axis=1)
            # From the plate's top on the wall thins over 10 mm.
            w = np.clip((0.024 - (points[:, 2] - middle[2])) / 0.010, 0, 1)
            w = w * w * (3 - 2 * w)
            t = np.where(near, skin.wall + (skin.foot_wall - skin.wall) * w, t)
        return t

    return thickness
