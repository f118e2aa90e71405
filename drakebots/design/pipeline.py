"""From a design problem to a skinned robot, stage by stage (paper, section 6.1).

A body or a surface becomes a distance grid; a skeleton is placed inside it; the skin is
folded at the joints, hollowed to a wall and meshed with tets, which get regions and
materials; bracing plates are trimmed to its inside, and vertices are glued to them.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress
from drakebots.design.bracing import (
    around_limbs,
    brace_vertices,
    mean_edge,
    with_plates,
)
from drakebots.design.embed import embed
from drakebots.design.geometry import DistanceGrid, Surface, check_surface
from drakebots.design.problem import Design, DesignProblem
from drakebots.design.skeleton import Skeleton
from drakebots.design.skin import (
    FOLDS,
    Shell,
    SkinSettings,
    fold_and_hollow,
    joint_folds,
    region_materials,
    with_regions,
)

STAGES = ("surface", "skeleton", "shell", "glue")
"""Stages of a design, as reported to `progress` and timed."""

TOUCH = 0.5
"""Largest distance of glue from its plate, over the mean edge of the skin's inside."""

_GRID, _BAND = 3e-3, 9e-3
"""Spacing of the distance grid, and distance from a surface within which it is exact
[m]."""

_LEAST_GLUE = 6
"""Smallest number of glue vertices of a link with bracing; fewer let it slip."""


def design_robot(problem: DesignProblem, *, progress: Progress | None = None) -> Design:
    """Designs a skinned robot.

    Args:
        problem: the problem.
        progress: called before each stage with its name, the number of stages done
            and the number of all stages.

    Raises:
        InvalidInput: for a surface that is open or crosses itself, a body too thin
            for its motors (by how much, and what scale would fit), or glue that
            cannot be placed.
        NoSolution: for a template that cannot be fitted into a surface (names the
            limb and the scale that would do), or a wall that cannot be meshed even
            without teeth.
    """
    times = []

    def stage(name):
        times.append(time.perf_counter())
        if progress is not None:
            progress(name, STAGES.index(name), len(STAGES))

    skin, template, mended = problem.skin, problem.template, ()
    stage("surface")
    if problem.surface is None:
        grid = DistanceGrid.from_implicit(problem.body, _GRID)
    else:
        surface, mended = stood_up(problem.surface, problem.scale)
        grid = DistanceGrid.from_surface(surface, _GRID, _BAND)
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
        # The surface is as wide as it is: the folds measure its limbs.
        folds = tuple(
            replace(fold, radius=None) for fold in joint_folds(skeleton, skin.folds)
        )
    stage("shell")
    shell, notes = fold_and_hollow(grid, skeleton, folds, skin)
    shell = with_regions(shell, skin)
    materials = region_materials(shell.mesh, skin)
    stage("glue")
    braced = with_plates(skeleton, shell.inner, gap=template.build.gap)
    glue = glue_by_link(shell, braced.skeleton, skin)
    times.append(time.perf_counter())
    return Design(
        problem,
        template,
        braced.skeleton,
        folds,
        shell,
        glue,
        materials,
        dict(zip(STAGES, np.diff(times).tolist())),
        (*mended, *notes, *braced.notes),
    )


def stood_up(surface: Surface, scale: float) -> tuple[Surface, tuple[str, ...]]:
    """A checked surface, scaled, on the ground, with its middle above the origin.

    Returns:
        the surface, and a note for each thing that was mended.

    Raises:
        InvalidInput: for a surface that is open, crosses itself or has one side only.
    """
    surface, report = check_surface(surface)
    x = surface.vertices * scale
    middle = (x.min(axis=0) + x.max(axis=0)) / 2
    place = [middle[0], middle[1], x[:, 2].min()]
    return Surface(x - place, surface.triangles), report.notes


def check_room(skeleton: Skeleton, grid: DistanceGrid) -> None:
    """Checks that links, motors and payload lie inside the body.

    Args:
        skeleton: skeleton at rest.
        grid: signed distance of the body.

    Raises:
        InvalidInput: naming the link, by how much it sticks out and the scale of the
            body that would do.
    """
    points, index = skeleton.corners()
    phi = grid(points)
    worst = int(np.argmax(phi))
    if phi[worst] <= 0:
        return
    link = skeleton.links[index[worst]].name
    scale = _scale_that_fits(grid, points[index == index[worst]])
    remedy = f"scale it by {scale:.2f} or more" if np.isfinite(scale) else "move it"
    raise InvalidInput(
        f"the body is {1e3 * phi[worst]:.1f} mm too thin for link {link}; {remedy}, or "
        "make that link thinner"
    )


def _scale_that_fits(grid, points) -> float:
    """The smallest scale of the body, about the points' middle, that contains them."""
    middle = points.mean(axis=0)

    def out(k):
        # Scaled by k about p, a body has the distance k phi(p + (x - p)/k).
        return (k * grid(middle + (points - middle) / k)).max()

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
    """Glue vertices by link: on the inside of the skin, on a plate, none in a fold."""
    mesh = shell.mesh
    inner = np.zeros(len(mesh.vertices), bool)
    inner[shell.inner_vertices] = True
    inner[np.unique(mesh.tets[mesh.region == FOLDS])] = False
    ids = np.flatnonzero(inner)
    inner[ids] = around_limbs(mesh.vertices[ids], skeleton)
    return brace_vertices(
        mesh.vertices,
        skeleton,
        skin.glue,
        touch=TOUCH * mean_edge(shell.inner),
        joint_clearance=skin.folds.length / 2 + 0.004,
        inner=inner,
        least=_LEAST_GLUE,
    )
