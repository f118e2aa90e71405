"""From a design problem to a skinned robot, stage by stage (paper, section 6.1).

A body or a surface becomes a distance grid; a skeleton is placed inside it; the skin is
folded at the joints, hollowed to a wall and meshed with tets, which get regions and
materials; bracing plates are trimmed to its inside, and vertices are glued to them;
printed parts that pass its inside are trimmed too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.run import Progress
from drakebots.core.stages import spent, stage, timed
from drakebots.design.animal import stand
from drakebots.design.bracing import (
    Through,
    around_limbs,
    brace_vertices,
    mean_edge,
    through_skin,
    trim_to_skin,
    with_plates,
)
from drakebots.design.embed import embed
from drakebots.design.fit import CLEARANCE, Fit, enough_scale, fit
from drakebots.design.geometry import DistanceGrid, Surface, check_surface
from drakebots.design.problem import Design, DesignProblem
from drakebots.design.resistance import fold_moduli
from drakebots.design.skeleton import Skeleton
from drakebots.design.skin import (
    FoldSettings,
    Shell,
    SkinSettings,
    fold_and_hollow,
    in_folds,
    joint_folds,
    region_materials,
    with_regions,
)
from drakebots.design.stride import side_by_side
from drakebots.design.thicken import joined_feet, thicken

STAGES = ("surface", "skeleton", "shell", "glue")
"""Stages of a design, as reported to `progress` and timed."""

SURFACE_SKIN = SkinSettings(
    vertices=12000, folds=FoldSettings(depth=6e-3, hip_shift=0.04)
)
"""Skin of a surface: shallower teeth, farther from the torso, than for bodies that are
made for them."""

TOUCH = 0.5
"""Largest distance of glue from its plate, over the mean edge of the skin's inside."""

_GRID = 3e-3
"""Spacing of the distance grid of a body [m]."""

LOST = 0.1
"""Share of a surface's area that may be left out when it is mended."""

_NODES = 1.5e6
"""Number of nodes of a surface's grid, about: its resolution follows its size."""

SEEN = 5e-5
"""Depth in the skin's inside below which a part is not named in the notes [m]."""

_LEAST_GLUE = 6
"""Smallest number of glue vertices of a link with bracing; fewer let it slip."""


Watch = Callable[[str, Any], None]
"""Called after a stage with its name and what it made: a surface; a :class:`Fitted`,
before and after it is thickened; a shell."""


@dataclass(frozen=True)
class Fitted:
    """A skeleton in its body, and by how much links stick out [m], by name."""

    surface: Surface
    skeleton: Skeleton
    lacking: Mapping[str, float]


@timed("surface")
def design_robot(
    problem: DesignProblem,
    *,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Design:
    """Designs a skinned robot.

    Args:
        problem: the problem.
        progress: called before each stage with its name, the number of stages done
            and the number of all stages.
        watch: called after each stage, so that a picture of it can be made.

    Raises:
        InvalidInput: for a surface that cannot be mended, a body too thin for its
            motors (by how much, and what scale would fit), or glue that cannot be
            placed.
        NoSolution: for a skeleton that cannot be fitted into a surface (names the
            links and what would do), or a wall that cannot be meshed even without
            teeth.
    """
    with ExitStack() as stack:

        def begin(name: str) -> None:
            stack.close()
            stack.enter_context(stage(name, remedy=_REMEDY))
            if progress is not None:
                progress(name, STAGES.index(name), len(STAGES))

        def seen(name: str, made: Any) -> None:
            if watch is not None:
                watch(name, made)

        return _designed(problem, begin, seen)


_REMEDY = "try another --scale of the surface, another --wall, or more --vertices"


def _designed(
    problem: DesignProblem, begin: Callable[[str], None], seen: Watch
) -> Design:
    """The design, stage by stage; see :func:`design_robot`."""
    skin, template, notes = problem.skin, problem.template, ()
    begin("surface")
    if problem.surface is None:
        grid = DistanceGrid.from_implicit(problem.body, _GRID)
    elif template is not None:
        surface, notes = stood_up(problem.surface, problem.scale)
        grid = DistanceGrid.from_surface(surface, *_spacing(surface))
        seen("surface", _seen_surface(grid))
    else:
        surface, notes = _closed(problem.surface)
        animal = side_by_side(stand(surface, problem.forward, problem.up))
        notes += animal.notes
        grid = DistanceGrid.from_surface(animal.surface, *_spacing(animal.surface))
        seen("surface", _seen_surface(grid))
    begin("skeleton")
    if problem.surface is None:
        skeleton = template.skeleton()
        check_room(skeleton, grid)
        folds = joint_folds(skeleton, skin.folds)
    else:
        if template is None:
            grid, template, more = _fitted(problem, animal, grid, seen)
            notes += more
        else:
            template = replace(template, name=problem.name)
            build = replace(template.build, skin=skin.wall, sole_skin=skin.foot_wall)
            template = replace(template, build=build)
            template = embed(template, grid, limits=problem.limits).template
            fitted = Fitted(_seen_surface(grid), template.skeleton(), {})
            seen("skeleton", fitted)
        skeleton = template.skeleton()
        # The surface is as wide as it is: the folds measure its limbs.
        folds = tuple(
            replace(fold, radius=None) for fold in joint_folds(skeleton, skin.folds)
        )
    begin("shell")
    shell, more = fold_and_hollow(grid, skeleton, folds, skin)
    notes += more
    shell = with_regions(shell, skin)
    seen("shell", shell)
    begin("glue")
    found = problem.template is None
    braced = with_plates(skeleton, shell.inner, gap=template.build.gap, drop=found)
    glue, more = glue_by_link(shell, braced.skeleton, skin, fewer=found)
    materials = region_materials(shell.mesh, skin)
    if skin.fold_modulus is None:
        moduli = fold_moduli(braced.skeleton, folds, shell.mesh, glue, materials)
        materials = region_materials(shell.mesh, skin, moduli)
    # Glue lies on the skin's inside, to which the parts that hold it are trimmed.
    skeleton = trim_to_skin(braced.skeleton, shell.inner, template.build)
    through = through_skin(skeleton, shell.inner, shell.outer)
    return Design(
        problem,
        template,
        skeleton,
        folds,
        shell,
        glue,
        materials,
        spent(),
        (*notes, *braced.notes, *more, *_passing(through)),
        through,
    )


def _passing(through: Sequence[Through]) -> tuple[str, ...]:
    """A line on the parts that pass the skin's inside by more than SEEN."""
    rows = [
        f"{row.link}/{row.solid} {1e3 * row.inner.depth:.1f} mm"
        for row in through
        if row.inner.depth > SEEN
    ]
    return (f"these parts pass the skin's inside: {', '.join(rows)}",) if rows else ()


def _spacing(surface: Surface) -> tuple[float, float]:
    """Spacing of a grid that follows the surface's size, and its exact band [m]."""
    volume = float(np.prod(np.ptp(surface.vertices, axis=0)))
    h = float(np.cbrt(volume / _NODES))
    return h, 3 * h


def _seen_surface(grid: DistanceGrid) -> Surface:
    """A coarse surface for pictures."""
    coarse = replace(grid, values=grid.values[::3, ::3, ::3], spacing=3 * grid.spacing)
    return coarse.level_set()


def _fitted(problem, animal, grid, seen):
    """The body around a skeleton that was found, its template, and notes."""
    skin = problem.skin
    phi, area = grid, float(animal.surface.areas.sum())
    found = fit(animal, phi, area, problem.fit, skin.wall, skin.foot_wall)
    k = found.scale
    grid = DistanceGrid(
        k * grid.values, k * grid.origin, k * grid.spacing, k * grid.band
    )
    seen("fit", Fitted(_seen_surface(grid), found.skeleton, found.lacking))
    template, notes = replace(found.template, name=problem.name), found.notes
    if not problem.thicken:
        if found.lacking:
            enough = enough_scale(animal, phi, area, found, problem.fit)
            raise NoSolution(_misfits(found, problem.name, enough))
        return grid, template, notes
    wide = thicken(
        grid, found.skeleton, found.template.build, CLEARANCE, 0.5 * skin.folds.depth
    )
    if wide.most:
        notes += (wide.note,)
    if joined := joined_feet(wide.grid, found.skeleton):
        (a, b), most = joined[0], 1e3 * max(wide.most.values(), default=0.0)
        raise NoSolution(
            f"{problem.name}: scaled by {k:.3g} the surface must be thickened by "
            f"{most:.0f} mm for its skeleton, and the feet {a} and {b} grow together; "
            "leave out --scale, or take a larger one"
        )
    seen("skeleton", Fitted(_seen_surface(wide.grid), found.skeleton, {}))
    return wide.grid, template, notes


def _misfits(found: Fit, name: str, enough: float | None) -> str:
    """All links that stick out, and the least change that mends all."""
    rows = sorted(found.lacking.items(), key=lambda row: -row[1])
    links = ", ".join(f"{link} {1e3 * lack:.0f} mm" for link, lack in rows)
    scale = f", or --scale {enough:.3g}" if enough else ""
    return (
        f"{name}: scaled by {found.scale:.3g} the surface is too thin for its "
        f"skeleton: {links}; all of it is mended by --thicken auto{scale}"
    )


def _closed(surface: Surface) -> tuple[Surface, tuple[str, ...]]:
    """A surface that is closed and does not cross itself, and what was mended.

    Raises:
        InvalidInput: when mending would lose more than LOST of its area.
    """
    try:
        whole, report = check_surface(surface)
        if report.pieces == 1:
            return whole, report.notes
        # They may overlap, as the parts of a modeller's animal do.
        flaw = InvalidInput(f"surface: {report.pieces} separate pieces")
    except InvalidInput as error:
        flaw = error
    h = _spacing(surface)[0]
    try:
        grid = DistanceGrid.mended(surface, h)
    except InvalidInput:
        raise flaw from None
    middle = surface.vertices[surface.triangles].mean(axis=1)
    lost = float(surface.areas[grid(middle) > 2 * h].sum() / surface.areas.sum())
    # The largest piece stays; marching cubes cross in a cell or two, which the grid
    # that is made of it does not see.
    body = grid.level_set()
    whole, report = check_surface(body, crossings=False)
    lost += float(1 - whole.areas.sum() / body.areas.sum())
    if lost > LOST:
        raise InvalidInput(
            f"{flaw}; mended by itself it would lose {100 * lost:.0f} % of its area"
        ) from None
    size = float(np.ptp(surface.vertices, axis=0).max())
    note = (
        f"{str(flaw).split(', first')[0]}: mended by winding numbers to "
        f"{100 * h / size:.1f} % of its length, {100 * lost:.1f} % of its area left out"
    )
    return whole, (note, *report.notes)


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


def glue_by_link(
    shell: Shell, skeleton: Skeleton, skin: SkinSettings, *, fewer: bool = False
) -> tuple[dict, tuple[str, ...]]:
    """Glue vertices by link: on the inside of the skin, on a plate, none in a fold.

    Args:
        shell: the wall.
        skeleton: skeleton with plates.
        skin: settings of the skin, with the number of vertices to glue.
        fewer: whether fewer vertices than requested will do, where plates touch fewer.

    Returns:
        the vertices by link, and a note where they are fewer.
    """
    mesh = shell.mesh
    inner = np.zeros(len(mesh.vertices), bool)
    inner[shell.inner_vertices] = True
    inner[np.unique(mesh.tets[in_folds(mesh)])] = False
    ids = np.flatnonzero(inner)
    inner[ids] = around_limbs(mesh.vertices[ids], skeleton)
    glue = brace_vertices(
        mesh.vertices,
        skeleton,
        skin.glue,
        touch=TOUCH * mean_edge(shell.inner),
        joint_clearance=skin.folds.length / 2 + 0.004,
        inner=inner,
        least=_LEAST_GLUE,
        fewer=fewer,
    )
    count = sum(map(len, glue.values()))
    bare = [
        link.name
        for link in skeleton.links
        if link.name not in glue and not link.name.endswith("_hip")
    ]
    notes = []
    if count < skin.glue:
        notes.append(
            f"{count} vertices are glued, not {skin.glue}: plates touch no more"
        )
    if bare:
        notes.append(f"no skin is glued to {', '.join(bare)}")
    return glue, tuple(notes)
