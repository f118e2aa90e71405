"""From a design problem to a skinned robot, stage by stage (paper, section 6.1).

body or surface -> distance grid -> skeleton inside it -> folding regions -> hollow
to a wall -> tets -> regions and masses -> glue at the bracing units.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.design.bracing import (
    around_limbs,
    brace_vertices,
    mean_edge,
    with_plates,
)
from drakebots.design.embed import embed
from drakebots.design.geometry import DistanceGrid, Surface, check_surface
from drakebots.design.problem import Design, DesignProblem, SkinSettings
from drakebots.design.skeleton import Skeleton
from drakebots.design.skin import (
    FOLDS,
    Shell,
    fold_and_hollow,
    joint_folds,
    region_materials,
    with_regions,
)

STAGES = ("surface", "skeleton", "shell", "glue")

Progress = Callable[[str, int, int], None]

GRID, BAND = 3e-3, 9e-3
"""Spacing of the distance grid, and how far from a surface it is exact [m]."""

TOUCH = 0.5
"""Of the mean edge of the skin's inside: farthest that glue is from its plate."""

LEAST_GLUE = 6
"""Glue vertices of a link with bracing; fewer let it slip."""


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
