"""From a design problem to a skinned robot, stage by stage (paper, section 6.1).

body or surface -> distance grid -> skeleton inside it -> folding regions -> hollow
to a wall -> tets -> regions and masses -> glue at the bracing units -> weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from drakebots.design.bracing import brace_vertices, mean_edge
from drakebots.design.bracing_plates import with_plates
from drakebots.design.distance_grid import DistanceGrid
from drakebots.design.embed import embed
from drakebots.design.folding import JointFold, joint_folds, teeth
from drakebots.design.glue_room import around_limbs
from drakebots.design.problem import Design, DesignProblem, SkinSettings
from drakebots.design.shell import Shell, shell_mesh
from drakebots.design.skeleton import Skeleton
from drakebots.design.skinning import skinning_weights
from drakebots.design.surface import Surface
from drakebots.design.surface_check import check_surface
from drakebots.errors import InvalidInput, NoSolution
from drakebots.fem.materials import Material
from drakebots.fem.mesh import TetMesh

STAGES = ("surface", "skeleton", "shell", "weights", "glue")

Progress = Callable[[str, int, int], None]

SHARES = {1.0: 0.5, 0.5: 0.0}
"""Of the depth of teeth: what is tried next where a wall cannot be meshed."""

TRIES = 6
"""Of the wall; the last has no teeth."""

GRID, BAND = 3e-3, 9e-3
"""Spacing of the distance grid, and how far from a surface it is exact [m]."""

TOUCH = 0.5
"""Of the mean edge of the skin's inside: farthest that glue is from its plate."""

LEAST_GLUE = 6
"""Glue vertices of a link with bracing; fewer let it slip."""

FOLDS, SOFT = 1, 2
"""Regions of the mesh: of the folds, of the first soft part; 0 is the rest."""


def design_robot(problem: DesignProblem, *, progress: Progress | None = None) -> Design:
    """Runs all stages.

    Args:
        problem: what to design.
        progress: called before each stage with its name, its number and how many
            there are.

    Raises:
        InvalidInput: for a surface that is open or crosses itself, a body too thin
            for its motors (by how much, and what scale would fit), glue that
            cannot be placed.
        NoSolution: for a template that cannot be put into a surface (names the
            limb and the scale that would do), a wall that cannot be meshed even
            without teeth.
    """
    seconds: dict[str, float] = {}
    began = time.perf_counter()

    def stage(name):
        nonlocal began
        now = time.perf_counter()
        if seconds:
            last = list(seconds)[-1]
            seconds[last] = now - began
        began = now
        seconds[name] = 0.0
        if progress is not None:
            progress(name, STAGES.index(name), len(STAGES))

    skin, template, found = problem.skin, problem.template, ()
    stage("surface")
    if problem.surface is None:
        grid = DistanceGrid.from_implicit(problem.body, GRID)
    else:
        surface, found = stood_up(problem.surface, problem.scale)
        grid = DistanceGrid.from_surface(surface, GRID, BAND)
    stage("skeleton")
    if problem.surface is None:
        skeleton = template.skeleton()
        check_room(skeleton, grid)
        folds = joint_folds(skeleton, skin.folds)
    else:
        template = replace(template, name=problem.name)
        build = replace(template.build, skin=skin.wall, sole_skin=skin.foot_wall)
        template = replace(template, build=build)
        template = embed(template, grid, limits=problem.limits).template
        skeleton = template.skeleton()
        # The limb is as wide as it is: the folds measure it.
        folds = tuple(
            replace(fold, radius=None) for fold in joint_folds(skeleton, skin.folds)
        )
    stage("shell")
    shell, notes = fold_and_hollow(grid, skeleton, folds, skin)
    shell = with_regions(shell, skin)
    materials = region_materials(shell.mesh, skin)
    stage("weights")
    segments = np.array([[link.p_WA, link.p_WB] for link in skeleton.links])
    weights = skinning_weights(shell.mesh.vertices, segments)
    stage("glue")
    braced = with_plates(skeleton, shell.inner, gap=template.build.gap)
    skeleton, notes = braced.skeleton, (*notes, *braced.notes)
    glue = glue_by_link(shell, skeleton, skin)
    seconds["glue"] = time.perf_counter() - began
    return Design(
        problem,
        template,
        skeleton,
        folds,
        shell,
        glue,
        weights,
        materials,
        seconds,
        (*found, *notes),
    )


def stood_up(surface: Surface, scale: float) -> tuple[Surface, tuple[str, ...]]:
    """A checked surface, scaled, on the ground, its middle over the origin.

    Returns:
        the surface, and a note for each thing that was mended.

    Raises:
        InvalidInput: for a surface that is open, crosses itself or cannot be told
            inside from outside.
    """
    surface, report = check_surface(surface)
    x = surface.vertices * scale
    middle = (x.min(axis=0) + x.max(axis=0)) / 2
    place = [middle[0], middle[1], x[:, 2].min()]
    return Surface(x - place, surface.triangles), report.notes


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


def check_room(skeleton: Skeleton, grid: DistanceGrid, least: float = 0.0) -> None:
    """That links, motors and payload lie inside the body.

    Args:
        skeleton: at rest.
        grid: the body's signed distance.
        least: distance they must keep from its surface [m].

    Raises:
        InvalidInput: naming the link, by how much it sticks out and the scale of
            the body that would do.
    """
    points, index = skeleton.corners()
    phi = grid(points)
    worst = int(np.argmax(phi))
    if phi[worst] <= -least:
        return
    link = skeleton.links[index[worst]].name
    out = float(phi[worst]) + least
    scale = _scale_that_fits(grid, points[index == index[worst]], least)
    remedy = f"scale it by {scale:.2f} or more" if np.isfinite(scale) else "move it"
    raise InvalidInput(
        f"the body is {1e3 * out:.1f} mm too thin for link {link}; {remedy}, or make "
        "that link thinner"
    )


def _scale_that_fits(grid, points, least) -> float:
    """The least factor on the body, about the points' middle, that holds them."""
    middle = points.mean(axis=0)

    def out(k):
        # Scaled by k about p, a body has the distance k phi(p + (x - p)/k).
        return (k * grid(middle + (points - middle) / k)).max() + least

    low, high = 1.0, 1.1
    while out(high) > 0 and high < 20:
        low, high = high, 1.1 * high
    if high >= 20:
        return np.inf
    for _ in range(20):
        k = (low + high) / 2
        low, high = (k, high) if out(k) > 0 else (low, k)
    return float(high)


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


def glue_by_link(shell: Shell, skeleton: Skeleton, skin: SkinSettings) -> dict:
    """Glue vertices by link, on the inside of the skin, none in a fold.

    They touch the bracing plates: within half of the inside's mean edge.
    """
    mesh = shell.mesh
    inner = np.zeros(len(mesh.vertices), bool)
    inner[shell.inner_vertices] = True
    inner[np.unique(mesh.tets[mesh.region == FOLDS])] = False
    room = np.flatnonzero(inner)
    inner[room] = around_limbs(mesh.vertices[room], skeleton)
    return brace_vertices(
        mesh.vertices,
        skeleton,
        skin.glue,
        radius=skin.brace_length / 2,
        touch=TOUCH * mean_edge(shell.inner),
        joint_clearance=skin.folds.length / 2 + 0.004,
        inner=inner,
        least=LEAST_GLUE,
    )
