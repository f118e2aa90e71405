"""Pipeline from a design problem to a skinned robot, in stages (paper, section 6.1).

A body or a surface becomes a distance grid; a skeleton is placed inside it; the skin is
folded at the joints, hollowed to a wall and meshed with tets, which get regions and
materials; bracing plates are trimmed to its inside, and vertices are glued to them;
printed parts that pass its inside are trimmed too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.run import Progress, silent
from drakebots.core.stages import spent, stage, timed
from drakebots.design.animal import Animal, stand
from drakebots.design.bracing import (
    Through,
    glue_by_link,
    through_skin,
    trim_to_skin,
    with_plates,
)
from drakebots.design.embed import (
    CLEARANCE,
    TOLERANCE,
    embed,
    scale_that_fits,
    scaled_field,
)
from drakebots.design.fit import Fit, enough_scale, fit
from drakebots.design.geometry import (
    DistanceGrid,
    Implicit,
    RoundBox,
    Surface,
    check_surface,
)
from drakebots.design.geometry.implicit import smooth_minimum
from drakebots.design.problem import Design, DesignProblem
from drakebots.design.skeleton import Build, Link, Skeleton, Template
from drakebots.design.skin import (
    FoldSettings,
    SkinSettings,
    fold_and_hollow,
    fold_moduli,
    joint_folds,
    region_materials,
    with_regions,
)
from drakebots.design.stride import side_by_side

STAGES = ("surface", "skeleton", "shell", "glue")
"""Stages of a design, as reported to `progress` and timed."""

SURFACE_SKIN = SkinSettings(
    vertices=12000, folds=FoldSettings(depth=6e-3, hip_shift=0.04)
)
"""Skin of a surface: shallower teeth, farther from the torso, than for bodies that are
made for them."""

_GRID = 3e-3
"""Spacing of the distance grid of a body [m]."""

LOST = 0.1
"""Share of a surface's area that may be left out when it is mended."""

_NODES = 1.5e6
"""Number of nodes of a surface's grid, about: its resolution follows its size."""

SEEN = 5e-5
"""Depth in the skin's inside below which a part is not named in the notes [m]."""

Watch = Callable[[str, Any], None]
"""Called after a stage with its name and what it made: a surface; a :class:`Fitted`,
before and after it is thickened; a shell."""


@dataclass(frozen=True)
class Fitted:
    """A skeleton in its body, and by how much links stick out [m], by name."""

    surface: Surface
    skeleton: Skeleton
    protrusions: Mapping[str, float]


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
            (progress or silent)(name, STAGES.index(name), len(STAGES))

        def show(name: str, made: Any) -> None:
            if watch is not None:
                watch(name, made)

        return _designed(problem, begin, show)


_REMEDY = "try another --scale of the surface, another --wall, or more --vertices"


def _designed(
    problem: DesignProblem, begin: Callable[[str], None], show: Watch
) -> Design:
    """The design, stage by stage; see :func:`design_robot`."""
    skin, found = problem.skin, problem.template is None
    begin("surface")
    if problem.surface is None:
        grid = DistanceGrid.from_implicit(problem.body, _GRID)
        begin("skeleton")
        template, notes = problem.template, ()
    else:
        grid, template, notes = _in_surface(problem, begin, show)
    skeleton = template.skeleton()
    folds = joint_folds(skeleton, skin.folds)
    if problem.surface is None:
        check_room(skeleton, grid)
    else:
        # The surface is as wide as it is: the folds measure its limbs.
        folds = tuple(replace(fold, radius=None) for fold in folds)
    begin("shell")
    shell, more = fold_and_hollow(grid, skeleton, folds, skin)
    notes += more
    shell = with_regions(shell, skin)
    show("shell", shell)
    begin("glue")
    braced = with_plates(skeleton, shell.inner, gap=template.build.gap, drop=found)
    notes += braced.notes
    glue, more = glue_by_link(shell, braced.skeleton, skin, fewer=found)
    notes += more
    materials = region_materials(shell.mesh, skin)
    if skin.fold_modulus is None:
        moduli = fold_moduli(braced.skeleton, folds, shell.mesh, glue, materials)
        materials = region_materials(shell.mesh, skin, moduli)
    # Glue lies on the skin's inside, to which the parts that hold it are trimmed.
    skeleton = trim_to_skin(braced.skeleton, shell.inner, template.build)
    through = through_skin(skeleton, shell.inner, shell.outer)
    made = template, skeleton, folds, shell, glue, materials
    return Design(problem, *made, spent(), (*notes, *_passing(through)), through)


def _in_surface(
    problem: DesignProblem, begin: Callable[[str], None], show: Watch
) -> tuple[DistanceGrid, Template, tuple[str, ...]]:
    """A surface on the ground, the template of a skeleton inside it, and notes."""
    found = problem.template is None
    if found:
        surface, mended = _closed(problem.surface)
        animal = side_by_side(stand(surface, problem.forward, problem.up))
        surface, notes = animal.surface, mended + animal.notes
    else:
        surface, notes = stood_up(problem.surface, problem.scale)
    grid = DistanceGrid.from_surface(surface, *_spacing(surface))
    show("surface", _coarse_surface(grid))
    begin("skeleton")
    if found:
        grid, template, more = _fitted(problem, animal, grid, show)
        return grid, template, notes + more
    template, skin = problem.template, problem.skin
    build = replace(template.build, skin=skin.wall, sole_skin=skin.foot_wall)
    template = replace(template, name=problem.name, build=build)
    template = embed(template, grid, problem.limits)
    show("skeleton", Fitted(_coarse_surface(grid), template.skeleton(), {}))
    return grid, template, notes


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


def _coarse_surface(grid: DistanceGrid) -> Surface:
    """A coarse surface for pictures."""
    values, spacing = grid.values[::3, ::3, ::3], 3 * grid.spacing
    return grid._replace(values=values, spacing=spacing).level_set()


def _fitted(
    problem: DesignProblem, animal: Animal, phi: DistanceGrid, show: Watch
) -> tuple[DistanceGrid, Template, tuple[str, ...]]:
    """The body around a skeleton that was found, its template, and notes."""
    skin, area = problem.skin, float(animal.surface.areas.sum())
    found = fit(animal, phi, area, problem.fit, skin.wall, skin.foot_wall)
    k = found.scale
    grid = DistanceGrid(*(k * row for row in phi))
    show("fit", Fitted(_coarse_surface(grid), found.skeleton, found.protrusions))
    template, notes = replace(found.template, name=problem.name), found.notes
    if not problem.thicken:
        if found.protrusions:
            enough = enough_scale(animal, phi, area, found, problem.fit)
            raise NoSolution(_misfits(found, problem.name, enough))
        return grid, template, notes
    build, grooves = found.template.build, 0.5 * skin.folds.depth
    wide = thicken(grid, found.skeleton, build, grooves)
    if wide.most:
        notes += (wide.note,)
    if joined := joined_feet(wide.grid, found.skeleton):
        (a, b), most = joined[0], 1e3 * max(wide.most.values(), default=0.0)
        raise NoSolution(
            f"{problem.name}: scaled by {k:.3g} the surface must be thickened by "
            f"{most:.0f} mm for its skeleton, and the feet {a} and {b} grow together; "
            "leave out --scale, or take a larger one"
        )
    show("skeleton", Fitted(_coarse_surface(wide.grid), found.skeleton, {}))
    return wide.grid, template, notes


def _misfits(found: Fit, name: str, enough: float | None) -> str:
    """All links that stick out, and the least change that mends all."""
    rows = sorted(found.protrusions.items(), key=lambda row: -row[1])
    links = ", ".join(f"{link} {1e3 * out:.0f} mm" for link, out in rows)
    scale = f", or --scale {enough:.3g}" if enough else ""
    return (
        f"{name}: scaled by {found.scale:.3g} the surface is too thin for its "
        f"skeleton: {links}; all of it is mended without --no-thicken{scale}"
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
    areas, away = surface.areas, grid(surface.middles)
    lost = float(areas[away > 2 * h].sum() / areas.sum())
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
    own = points[index == index[worst]]
    # Scaled about the middle of what sticks out.
    middle = own.mean(axis=0)
    scale = scale_that_fits(
        lambda k: scaled_field(lambda p: grid(middle + p), k)(own - middle).max() <= 0,
        most=20.0,
    )
    remedy = "move it" if scale is None else f"scale it by {scale:.2f} or more"
    raise InvalidInput(
        f"the body is {1e3 * phi[worst]:.1f} mm too thin for link {link}; {remedy}, or "
        "make that link thinner"
    )


# --- more room for a skeleton ----------------------------------------------
#
# What sticks out of a link gets a sleeve, the boxes of the link grown by the skin and
# its clearance. Sleeves and body are joined by the smooth minimum of
# geometry.implicit, so that elsewhere the surface stays as it is. A skeleton whose
# limbs are mirror images gets sleeves that are.

_BLEND = 0.018
"""Distance over which sleeves and body join [m]."""


@dataclass(frozen=True)
class Thickened:
    """A body around its skeleton.

    Attributes:
        grid: signed distance of the body, exact in its band.
        most: largest distance by which the surface moved outward at each link [m], by
            name.
        share: share of the surface that moved by more than a millimetre.
    """

    grid: DistanceGrid
    most: dict[str, float]
    share: float

    @property
    def note(self) -> str:
        """One line on what moved."""
        parts = ", ".join(f"{k} {1e3 * v:.0f} mm" for k, v in self.most.items())
        return (
            f"thickened where the skeleton needs room ({100 * self.share:.0f} % of the "
            f"surface): {parts}"
        )


def thicken(
    grid: DistanceGrid, skeleton: Skeleton, build: Build, grooves: float = 0.0
) -> Thickened:
    """Moves a surface outward where links stick out.

    Args:
        grid: signed distance of the surface, the ground at z = 0.
        skeleton: skeleton at rest.
        build: thickness of skin and soles.
        grooves: additional room of forks and motors at joints, for teeth [m].
    """
    values, h = grid.values.copy(), grid.spacing
    points, _ = skeleton.corners()
    low, high = points.min(axis=0) - 0.03, points.max(axis=0) + 0.03
    values, origin = _padded(values, grid.origin, h, low, high)
    before = values.copy()
    nodes = [origin[k] + h * np.arange(values.shape[k]) for k in range(3)]
    most = {}
    for link in skeleton.links:
        # A grid flattens the corners of boxes by about a quarter of its spacing.
        body = _sleeve(link, build, CLEARANCE + 0.25 * h, grooves)
        margin = np.array([[-2.0], [2.0]]) * _BLEND
        ends = np.array(body.bounds()) + margin
        part = tuple(slice(*np.searchsorted(nodes[k], ends[:, k])) for k in range(3))
        inner = [nodes[k][part[k]] for k in range(3)]
        points = np.stack(np.meshgrid(*inner, indexing="ij"), axis=-1)
        sleeve = body(points.reshape(-1, 3)).reshape(points.shape[:3])
        old = values[part]
        out = float(-(sleeve[old > 0].min(initial=0.0)))
        # Where the body is wide enough, nothing changes.
        values[part] = smooth_minimum(old, sleeve, _BLEND) if out > 0 else old
        if out > TOLERANCE:
            most[link.name] = out
    values = np.maximum(values, -nodes[2])
    surface = DistanceGrid(values, origin, h, grid.band).level_set()
    away = DistanceGrid(before, origin, h, grid.band)(surface.middles)
    share = float(surface.areas[away > 1e-3].sum() / surface.areas.sum())
    return Thickened(DistanceGrid.from_surface(surface, h, 3 * h), most, share)


def _sleeve(link: Link, build: Build, clearance: float, grooves: float) -> Implicit:
    """The boxes of a link, grown by the skin and its clearance, smoothly joined."""
    boxes = []
    for solid in link.solids:
        if solid.kind == "rib":
            continue
        grow = build.skin + clearance
        if link.parent is not None and solid.name.startswith("fork"):
            grow += grooves
        p, size = link.origin + solid.p_BG, solid.size
        if link.name.endswith("_foot") and solid.name == "plate":
            # The sole's skin below it, which is flat on the ground.
            grow = build.sole_skin
            size = size + np.array([0.0, 0.0, 2 * grow])
        boxes.append(RoundBox(p, size + 2 * grow, grow, solid.R_BG))
    return Implicit(tuple(boxes), blend=_BLEND)


def joined_feet(grid, skeleton: Skeleton) -> list[tuple[str, str]]:
    """Pairs of feet with nothing but body between them, 1 cm above the ground.

    Args:
        grid: signed distance of the body, of points (n, 3).
        skeleton: skeleton at rest, inside it.
    """
    above = [middle + np.array([0, 0, 0.01]) for middle in skeleton.sole_middles]
    middles = dict(zip([sole.foot for sole in skeleton.soles], above))
    share = np.linspace(0.0, 1.0, 50)[:, None]
    return [
        (a, b)
        for a, b in combinations(middles, 2)
        if (grid(middles[a] + share * (middles[b] - middles[a])) < 0).all()
    ]


def _padded(values, origin, h, low, high):
    """The grid, enlarged to a box; what is added is outside."""
    last = origin + h * (np.array(values.shape) - 1)
    before = np.maximum(np.ceil((origin - low) / h), 0).astype(int)
    after = np.maximum(np.ceil((high - last) / h), 0).astype(int)
    if before.any() or after.any():
        values = np.pad(values, np.stack([before, after], axis=1), mode="edge")
    return values, origin - h * before
