"""Fits a template of a skeleton into a surface: first the limbs, then the torso.

    found = embed(table1_template("cow"), DistanceGrid.from_surface(surface))
    skeleton = found.skeleton

This is section 6.1 of "Computational Design of Skinned Quad-Robots". The surface is
given as a signed distance phi, negative inside, in the robot's frame with the ground at
z = 0. Every printed box, servo and bracing ring must lie inside it at a depth d of the
skin's thickness plus a clearance. After a global scale is chosen, the numbers p of each
pair of limbs, and then those of the torso, minimise

    sum_i max(phi(x_i(p)) + d_i, 0)^2 + |stay (p - p_0)/change|^2,  lower <= p <= upper

over points x_i of all solids (:func:`least_squares_fit`). The second term keeps the
numbers near those of the template, p_0.

Here the user gives the template and its limits. :mod:`~drakebots.design.fit` finds a
template for any animal; it shares the points, the torso and the least squares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from drakebots.core.checks import check_value, one_of
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.design.skeleton import (
    Limb,
    Link,
    Long,
    Skeleton,
    Solid,
    Template,
    edit,
    motor,
    parameter,
    torso_link,
)

Field = Callable[[np.ndarray], np.ndarray]
"""Signed distance at points (n, 3) [m] -> (n,) [m], negative inside."""

Limits = Mapping[str, tuple[float, float]]
"""Lower and upper limits of numbers of a template, in SI, by name; see `value_of`."""

TOLERANCE = 5e-4
"""A link fits if it sticks out by less than this [m]."""

_STARTS = (0.7, 0.85, 1.0, 1.2, 1.45, 1.75)
"""Global scales that are tried; the fit begins with the one that sticks out least."""

_POINTS = 60
"""Number of points of each link that count in a fit."""

_CHANGES = {
    "upper_pitch": 0.3,
    "lower_pitch": 0.3,
    "splay": 0.2,
    "x": 0.03,
    "y": 0.02,
}
"""Typical changes of parameters in a fit, in SI; 0.05 m for other lengths."""

_ENDS = {"front": ("FL", "FR"), "hind": ("RL", "RR")}
"""Names of the limbs of each pair."""


@dataclass(frozen=True)
class Embedding:
    """A template inside a surface.

    Attributes:
        template: the template with the fitted parameters.
        skeleton: its skeleton.
        scale: global scale that the fit began with.
        margin: depth of each link beyond the depth it needs [m], by name; slightly
            negative within the tolerance.
    """

    template: Template
    skeleton: Skeleton
    scale: float
    margin: dict[str, float]


def embed(
    template: Template,
    field: Field,
    *,
    limits: Limits | None = None,
    clearance: float = 0.002,
) -> Embedding:
    """Fits a template into a surface.

    Args:
        template: template to start from.
        field: signed distance of the surface, with the soles at z = 0.
        limits: limits that replace the default ones, e.g. {"front.upper": (0.08, 0.12),
            "hind.splay": (0, 0)}; "scale" limits the global scale.
        clearance: gap between the skeleton and the skin's inside [m].

    Raises:
        UnknownName: for limits of something that does not exist.
        InvalidInput: for limits that leave nothing between them, or a field that does
            not return finite numbers.
        NoSolution: naming the link that sticks out, by how much, and the scale.
    """
    limits = dict(limits or {})
    _check_names(template, limits)
    _check_field(field)
    scale, fitted = _scaled_start(template, field, limits, clearance)
    for end in _ENDS:
        fitted = _fit_limbs(fitted, end, field, limits, clearance)
        _check_limbs(template, fitted, end, field, limits, clearance)
    fitted = fitted_torso(fitted, field, limits, clearance)
    skeleton = fitted.skeleton()
    points = {link.name: link_points(link) for link in skeleton.links}
    out = protrusions(fitted, points, field, clearance)
    margin = {name: -float(value.max()) for name, value in out.items()}
    worst = min(margin, key=margin.get)
    if margin[worst] < -TOLERANCE:
        raise NoSolution(
            f"{template.name}: link {worst} sticks out of the skin's inside by "
            f"{-1e3 * margin[worst]:.1f} mm; make the surface wider there, make the "
            f"template's {worst.split('_')[-1]} smaller, or widen the limits"
        )
    return Embedding(fitted, skeleton, scale, margin)


def _check_names(template, limits):
    known = ["scale", *torso_limits(template)]
    known += [name for end in _ENDS for name in limb_limits(template, end)]
    for name in limits:
        check_value("limits", name, one_of("limit", known))


def _check_field(field):
    try:
        values = np.asarray(field(np.zeros((2, 3))), float)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"field: must map (n, 3) to (n,): {error}") from error
    if values.shape != (2,) or not np.isfinite(values).all():
        raise InvalidInput(
            f"field: two points gave values of shape {values.shape}; it must map "
            "(n, 3) [m] to finite (n,) [m]"
        )


# The stages: the global scale, each pair of limbs, the torso.


def _scaled_start(template, field, limits, clearance):
    """The global scale, of those tried, at which the limbs stick out least.

    Returns:
        The scale, and the template scaled by it.
    """
    low, high = limits.get("scale", (_STARTS[0], _STARTS[-1]))
    tried = []
    for scale in sorted({float(np.clip(s, low, high)) for s in _STARTS}):
        scaled = scaled_template(template, scale)
        cost = sum(
            np.square(_limb_residuals(scaled, end, field, clearance)).sum()
            for end in _ENDS
        )
        tried.append((cost + 1e-6 * np.log(scale) ** 2, scale, scaled))
    _, scale, scaled = min(tried, key=lambda row: row[0])
    return scale, scaled


def _fit_limbs(template, end, field, limits, clearance, stays=(1e-3, 1e-4), most=60):
    """The template with a pair of limbs fitted, "front" or "hind".

    The first fit stays near the template's own numbers, the next hardly does.

    Args:
        stays: weight of the distance from the start, for each fit in turn [m].
        most: largest number of gradients of each fit.
    """
    chosen = free_numbers(limb_limits(template, end), limits)

    def residuals(t):
        return _limb_residuals(t, end, field, clearance)

    for stay in stays:
        template = least_squares_fit(
            template, chosen, residuals, stay=stay, evaluations=most
        )
    return template


def _limb_residuals(template, end, field, clearance):
    out = _limb_protrusions(template, end, field, clearance)
    return np.concatenate([worst_points(values) for values in out.values()])


def worst_points(out):
    """The largest protrusions of a link (60,) [m]; 0 for points inside.

    Their number is fixed, as least squares need: a beam or a ring may vanish during a
    fit, and its points with it.

    Args:
        out: protrusions of the link's points (n,) [m].
    """
    worst = np.sort(np.maximum(out, 0.0))[::-1][:_POINTS]
    return np.pad(worst, (0, _POINTS - len(worst)))


def _worst_limb(template, end, field, clearance):
    """Name of the part of a pair of limbs that sticks out most, and by how much."""
    out = _limb_protrusions(template, end, field, clearance)
    name = max(out, key=lambda key: out[key].max())
    return name, float(out[name].max())


def _check_limbs(start, fitted, end, field, limits, clearance):
    """Raises NoSolution if a pair of limbs sticks out, naming the scale that helps."""
    name, depth = _worst_limb(fitted, end, field, clearance)
    if depth <= TOLERANCE:
        return
    k = _scale_that_fits(start, end, field, limits, clearance)
    remedy = (
        f"scale the surface by {k:.2f}"
        if k is not None
        else "no scale up to 3 helps, so make that limb of the surface thicker"
    )
    raise NoSolution(
        f"{start.name}: {end} limbs do not fit: {name} sticks out of the skin's "
        f"inside by {1e3 * depth:.1f} mm; {remedy}"
    )


def _scale_that_fits(template, end, field, limits, clearance):
    """The smallest scale of the surface, of those tried, at which a pair fits; or None.

    The given limits of angles hold. Those of lengths do not, as they would have to
    grow with the surface.
    """
    angles = {k: row for k, row in limits.items() if "pitch" in k or "splay" in k}

    def fits(k):
        def scaled(points):
            return k * np.asarray(field(points / k), float)

        best = _scaled_start(template, scaled, {}, clearance)[1]
        best = _fit_limbs(best, end, scaled, angles, clearance, (1e-4,), 25)
        return _worst_limb(best, end, scaled, clearance)[1] <= TOLERANCE

    low, high = 1.0, None
    for k in (1.1, 1.25, 1.5, 1.8, 2.2, 3.0):
        if fits(k):
            high = k
            break
        low = k
    if high is None:
        return None
    for _ in range(2):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def fitted_torso(template, field, limits, clearance):
    """Fits the torso's box, rings and struts, and the tail; the limbs stay.

    Args:
        template: template with fitted limbs.
        field, limits, clearance: as for :func:`embed`.
    """
    defaults = torso_limits(template)
    chosen = free_numbers(defaults, limits)

    def residuals(t):
        torso = torso_link(t.build, t.torso, t.torso_centre, ())
        points = {"torso": link_points(torso)}
        tail = t.tail_parts()
        if tail is not None:
            points["tail"] = link_points(tail.links[0])
        out = protrusions(t, points, field, clearance)
        # Rings and struts grow until they touch the skin's inside.
        most = [defaults[f"torso.brace[{k}]"][1] for k in (0, 1)]
        grow = 2e-3 * (1.0 - np.array(t.torso.brace) / most)
        return np.concatenate([*(worst_points(v) for v in out.values()), grow])

    for stay in (1e-3, 2e-4):
        template = least_squares_fit(template, chosen, residuals, stay=stay)
    return template


# The points that must lie inside, and how far they stick out.

# Corners, middles of the faces and of the edges of a box.
_GRID = (-0.5, 0.0, 0.5)
_PATTERN = np.array(
    [(x, y, z) for x in _GRID for y in _GRID for z in _GRID if (x, y, z) != (0, 0, 0)]
)


def link_points(link: Link, rings: bool = True) -> np.ndarray:
    """Points of all solids of a link, or all but rings, at rest (26 n, 3) [m]."""
    solids = [s for s in link.solids if rings or s.kind != "rib"]
    return link.origin + solid_points(solids)


def solid_points(solids: Iterable[Solid]) -> np.ndarray:
    """Corners, middles of edges and of faces, in the link (26 n, 3) [m]."""
    return np.concatenate([s.p_BG + (_PATTERN * s.size) @ s.R_BG.T for s in solids])


def _limb_protrusions(template, end, field, clearance):
    """Protrusions of a pair of limbs, as :func:`protrusions`.

    The motors on the torso that drive the limbs belong to them.
    """
    points = {}
    for name in _ENDS[end]:
        parts = template.limb_parts(name)
        points |= {link.name: link_points(link) for link in parts.links}
        first = motor(template.build, *parts.mount)
        points[f"{parts.mount[0]} motor"] = solid_points(first)
    return protrusions(template, points, field, clearance)


def protrusions(template, points: dict[str, np.ndarray], field: Field, clearance):
    """How far each point sticks out of the space for the skeleton [m]; < 0 inside.

    Points of a foot must be as deep as the skin of the sole, on which the foot's plate
    rests; all others as deep as the skin and the clearance.

    Args:
        template: gives the thicknesses of the skin.
        points: points of links or motors (n, 3) [m], by name.
        field: signed distance of the surface.
        clearance: gap between the skeleton and the skin's inside [m].

    Returns:
        Protrusions (n,) [m], by name.
    """
    values = np.asarray(field(np.concatenate(list(points.values()))), float)
    split = np.split(values, np.cumsum([len(p) for p in points.values()])[:-1])
    build = template.build
    depth, foot = build.skin + clearance, build.sole_skin
    return {
        name: value + (foot if name.endswith("_foot") else depth)
        for name, value in zip(points, split)
    }


# Default limits, and scaled templates.


def scaled_template(template: Template, scale: float) -> Template:
    """A template with all lengths scaled, but not below what the motors need.

    Walls, pilot holes, clearances, skin, battery and servos keep their size.
    """
    build = template.build

    def scaled(values):
        return tuple(scale * value for value in values)

    def limb(shape: Limb) -> Limb:
        foot = replace(
            shape.foot,
            length=scale * shape.foot.length,
            width=scale * shape.foot.width,
            ankle_height=max(scale * shape.foot.ankle_height, lowest_ankle(build)),
            forward=scale * shape.foot.forward,
        )
        return replace(
            shape,
            x=scale * shape.x,
            y=scale * shape.y,
            upper=max(scale * shape.upper, build.shortest),
            lower=max(scale * shape.lower, build.shortest),
            hip=max(scale * shape.hip, build.gap + build.wall + build.bay[1] / 2),
            foot=foot,
        )

    torso = replace(
        template.torso,
        size=scaled(template.torso.size),
        centre=scaled(template.torso.centre),
        brace=scaled(template.torso.brace),
        brace_centre=scale * template.torso.brace_centre,
        struts=tuple((n, scaled(a), scaled(b)) for n, a, b in template.torso.struts),
        strut_brace=scaled(template.torso.strut_brace),
    )
    changes = {"front": limb(template.front), "hind": limb(template.hind)}
    if isinstance(template, Long):
        tail = template.tail
        changes["tail"] = replace(
            tail,
            length=scale * tail.length,
            drop=scale * tail.drop,
            brace=scaled(tail.brace),
        )
    return replace(template, torso=torso, **changes)


def lowest_ankle(build) -> float:
    """Smallest height of an ankle for its motor [m]."""
    return build.swing + build.gap + 2 * build.wall + build.sole_skin


def limb_limits(template: Template, end: str) -> dict[str, tuple[float, float]]:
    """Default limits of a pair of limbs, "front" or "hind", by dotted name.

    Links may be as short as their motors allow and 1.6 times as long as they are;
    angles may change by 25 degrees.
    """
    limb: Limb = getattr(template, end)
    build, foot, ankle = template.build, limb.foot, lowest_ankle(template.build)
    rows = {
        "x": (limb.x - 0.06, limb.x + 0.06),
        "y": (0.6 * limb.y, 1.5 * limb.y),
        "upper": (build.shortest, max(1.6 * limb.upper, 1.2 * build.shortest)),
        "lower": (build.shortest, max(1.6 * limb.lower, 1.2 * build.shortest)),
        "upper_pitch": _turned(limb.upper_pitch),
        "lower_pitch": _turned(limb.lower_pitch),
        "splay": (max(_turned(limb.splay)[0], 0.0), _turned(limb.splay)[1]),
        "foot.length": (0.6 * foot.length, 1.1 * foot.length),
        # Not narrower than the fork above it.
        "foot.width": (
            min(max(0.6 * foot.width, build.fork), foot.width),
            1.1 * foot.width,
        ),
        "foot.ankle_height": (ankle, max(1.4 * foot.ankle_height, 1.2 * ankle)),
    }
    return {f"{end}.{name}": row for name, row in rows.items()}


def _turned(angle: float) -> tuple[float, float]:
    """25 degrees to either side, within what a limb's angles may be."""
    turn, most = np.radians(25), np.radians(79)
    return float(max(angle - turn, -most)), float(min(angle + turn, most))


def torso_limits(template: Template) -> dict[str, tuple[float, float]]:
    """Default limits of the torso and the tail, by dotted name.

    The torso's box fits between the left and the right motors of the limbs, and
    overlaps each of them along x and z, where it is joined to their bays.
    """
    torso, build = template.torso, template.build
    centre = template.torso_centre
    # Of the motors: least |y|, rear end of the front ones, front end of the hind ones,
    # and the heights of their lower and upper sides.
    inner = np.inf
    front, rear = np.inf, -np.inf
    for name, (_, end, _) in template.limbs.items():
        points = motor(build, *template.limb_parts(name).mount)[0].corners()
        low, high = points.min(axis=0), points.max(axis=0)
        inner = min(inner, np.abs(points[:, 1]).min())
        if end > 0:
            front, top_front = low[0], (low[2], high[2])
        else:
            rear, top_rear = high[0], (low[2], high[2])
    x = centre[0]
    # Along x the box overlaps the motors by 13 mm at the end that is further away.
    reach = 2 * max(front - x, x - rear) + 0.026
    # Battery and board lie in the box.
    payload = np.array([torso.battery[0], torso.board[0]]).max(axis=0) + 2 * build.wall
    wide = 2 * inner - 2e-4
    # Along z it overlaps each of them by 12 mm.
    floor = max(top_front[0], top_rear[0]) + 0.012 - centre[2]
    ceiling = min(top_front[1], top_rear[1]) - 0.012 - centre[2]
    tall = max(2 * floor, -2 * ceiling, 0.03)
    middle, strut = torso.brace_centre, torso.strut_width + 0.008
    rows = {
        "torso.size[0]": (max(reach, payload[0]), max(1.1 * reach, 1.2 * payload[0])),
        "torso.size[1]": (min(payload[1], wide), wide),
        "torso.size[2]": (tall, max(1.5 * torso.size[2], 1.1 * tall)),
        "torso.brace[0]": (0.5 * torso.brace[0], 1.5 * torso.brace[0]),
        "torso.brace[1]": (0.3 * torso.brace[1], 1.5 * torso.brace[1]),
        "torso.brace_centre": (middle - 0.05, middle + 0.05),
        "torso.strut_brace[0]": (strut, 1.5 * torso.strut_brace[0]),
        "torso.strut_brace[1]": (strut, 1.5 * torso.strut_brace[1]),
    }
    if isinstance(template, Long):
        tail = template.tail
        least = build.swing + build.gap + build.wall + 0.021
        longest = max(1.2 * tail.length, 1.2 * least)
        rows |= {
            "tail.length": (max(0.5 * tail.length, least), longest),
            "tail.drop": (tail.drop - 0.08, tail.drop + 0.08),
            "tail.brace[0]": (tail.width + 0.008, 1.3 * tail.brace[0]),
            "tail.brace[1]": (tail.width + 0.008, 1.3 * tail.brace[1]),
        }
    return rows


# Least-squares fits of numbers of a template within limits.


def value_of(template: Template, name: str) -> float:
    """A number of a template, in SI.

    Args:
        template: the template.
        name: dotted name of the number, e.g. "front.upper"; "torso.size[0]" is an
            entry of a tuple.
    """
    base, index = _split(name)
    value = parameter(template, base)
    return float(value if index is None else value[index])


def with_values(template: Template, names, values) -> Template:
    """The template with these numbers; see :func:`value_of` for the names."""
    changes = {}
    for name, value in zip(names, values):
        base, index = _split(name)
        if index is None:
            changes[base] = float(value)
        else:
            row = list(changes.get(base, parameter(template, base)))
            row[index] = float(value)
            changes[base] = tuple(row)
    return edit(template, changes)


def _split(name: str) -> tuple[str, int | None]:
    if not name.endswith("]"):
        return name, None
    base, index = name[:-1].split("[")
    return base, int(index)


@dataclass(frozen=True)
class _Free:
    """Numbers of a template that may change.

    Attributes:
        names: their names; see :func:`value_of`.
        lower, upper: their limits (n,), in SI.
        change: a typical change of each (n,), in SI.
    """

    names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    change: np.ndarray


def free_numbers(defaults: Limits, limits: Limits) -> _Free:
    """The numbers that have default limits, and their limits.

    Equal limits fix a number.

    Args:
        defaults: default limits, by name.
        limits: limits that replace them; names without a default are ignored.

    Raises:
        InvalidInput: for limits that leave nothing between them.
    """
    rows = {name: tuple(limits.get(name, defaults[name])) for name in defaults}
    for name, (low, high) in rows.items():
        if not (np.isfinite([low, high]).all() and low <= high):
            raise InvalidInput(
                f"limits of {name}: ({low:g}, {high:g}) leave nothing between them; "
                "give (lower, upper) in SI, or enlarge the surface"
            )
    lower, upper = np.array(list(rows.values())).T
    change = [_CHANGES.get(name.split(".")[-1], 0.05) for name in rows]
    return _Free(tuple(rows), lower, upper, np.array(change))


def least_squares_fit(
    template: Template,
    free: _Free,
    residuals: Callable[[Template], np.ndarray],
    *,
    stay: float = 1e-3,
    evaluations: int = 60,
) -> Template:
    """The template that minimises |residuals|^2 + |stay (p - p_0)/change|^2.

    Args:
        template: template to start from; p_0 are its numbers, moved into the limits.
        free: the numbers p that may change.
        residuals: residuals of a template [m].
        stay: weight of the distance from the start [m].
        evaluations: largest number of gradients.
    """
    start = np.array([value_of(template, name) for name in free.names])
    start = np.clip(start, free.lower, free.upper)
    moves = free.upper > free.lower + 1e-12
    if not moves.any():
        return with_values(template, free.names, start)
    change = free.change[moves]
    lower, upper = free.lower[moves], free.upper[moves]

    def at(x):
        values = start.copy()
        values[moves] = np.clip(start[moves] + x * change, lower, upper)
        return with_values(template, free.names, values)

    found = least_squares(
        lambda x: np.concatenate([residuals(at(x)), stay * x]),
        np.zeros(len(change)),
        bounds=(
            (lower - start[moves]) / change - 1e-9,
            (upper - start[moves]) / change + 1e-9,
        ),
        diff_step=1e-4,
        max_nfev=evaluations,
        xtol=1e-4,
        ftol=1e-5,
    )
    return at(found.x)
