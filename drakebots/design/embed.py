"""Fits the numbers of a template into a surface: pairs of limbs, then the torso.

    template = embed(table1_template("cow"), DistanceGrid.from_surface(surface))

This is section 6.1 of "Computational Design of Skinned Quad-Robots". The surface is
given as a signed distance phi, negative inside, in the robot's frame with the ground at
z = 0. Every printed box and servo must lie inside it at a depth d of the skin's
thickness plus a clearance. The numbers p of each pair of limbs, and then those of the
torso, minimise

    sum_i max(phi(x_i(p)) + d_i, 0)^2 + |stay (p - p_0)/change|^2,  lower <= p <= upper

over points x_i of all solids (:func:`least_squares_fit`). The second term keeps the
numbers near those of the template, p_0. Bracing rings of limbs may stick out, as they
are cut to the skin's inside (:mod:`~drakebots.design.bracing.plates`).

The template is the user's, scaled to the surface (:func:`embed`), or one on the lines
of an animal's legs (:mod:`~drakebots.design.fit`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product

import numpy as np
from scipy.optimize import least_squares

from drakebots.core.checks import array, check_value, one_of
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.design.skeleton import (
    Build,
    Crouched,
    Limb,
    Link,
    Long,
    Solid,
    Template,
    Torso,
    edit,
    motor,
    parameter,
    torso_link,
)

Field = Callable[[np.ndarray], np.ndarray]
"""Signed distance at points (n, 3) [m] -> (n,) [m], negative inside."""

Limits = Mapping[str, tuple[float, float]]
"""Lower and upper limits of numbers of a template, in SI, by dotted name."""

CLEARANCE = 2e-3
"""Gap between the skeleton and the skin's inside [m]."""

TOLERANCE = 5e-4
"""A link fits if it sticks out by no more than this [m]."""

_STARTS = (0.7, 0.85, 1.0, 1.2, 1.45, 1.75)
"""Scales of a user's template that are tried; the fit begins with the one that sticks
out least."""

_POINTS = 60
"""Number of points of each link that count in a fit."""

_CHANGES = {"upper_pitch": 0.3, "lower_pitch": 0.3, "splay": 0.2, "x": 0.03, "y": 0.02}
"""Typical changes of parameters in a fit, in SI; 0.05 m for other lengths."""

ENDS = {"front": "FL", "hind": "RL"}
"""Name of the left limb of each pair."""


def embed(template: Template, field: Field, limits: Limits | None = None) -> Template:
    """A template fitted into a surface.

    Args:
        template: template to start from.
        field: signed distance of the surface, with the soles at z = 0.
        limits: limits that replace the default ones, e.g. {"front.upper": (0.08, 0.12),
            "hind.splay": (0, 0)}; "scale" limits the scale of the template.

    Raises:
        UnknownName: for limits of something that does not exist.
        InvalidInput: for limits that leave nothing between them, or a field that does
            not give a finite number a point: NaN would count as inside.
        NoSolution: naming the link that sticks out, by how much, and the scale.
    """
    limits = dict(limits or {})
    known = ["scale", *torso_limits(template)]
    known += [name for end in ENDS for name in limb_limits(template, end)]
    for name in limits:
        check_value("limits", name, one_of("limit", known))
    check_value("field: at two points", field(np.zeros((2, 3))), array((2,), "m"))
    fitted = _scaled_start(template, field, limits)
    for end in ENDS:
        fitted, out = fit_pair(fitted, end, field, limits)
        if max(out.values()) > TOLERANCE:
            raise NoSolution(_too_thin(template, end, field, limits, out))
    fitted = fit_torso(fitted, field, limits)
    out = largest_protrusions(fitted, fitted.skeleton().links, field)
    worst = max(out, key=out.__getitem__)
    if out[worst] > TOLERANCE:
        raise NoSolution(
            f"{template.name}: link {worst} sticks out of the skin's inside by "
            f"{1e3 * out[worst]:.1f} mm; make the surface wider there, make the "
            f"template's {worst.split('_')[-1]} smaller, or widen the limits"
        )
    return fitted


def _scaled_start(template: Template, field: Field, limits: Limits) -> Template:
    """The template at the scale, of those tried, at which its limbs stick out least."""
    low, high = limits.get("scale", (_STARTS[0], _STARTS[-1]))
    tried = []
    for scale in sorted({float(np.clip(s, low, high)) for s in _STARTS}):
        scaled = scaled_template(template, scale)
        out = [_worst_points(_limb_protrusions(scaled, end, field)) for end in ENDS]
        cost = np.square(np.concatenate(out)).sum() + 1e-6 * np.log(scale) ** 2
        tried.append((cost, scale, scaled))
    return min(tried, key=lambda row: row[:2])[2]


def _too_thin(template, end, field, limits, out: Mapping[str, float]) -> str:
    """What sticks out of a pair of limbs most, and the scale of the surface that helps.

    At other scales the given limits of angles hold. Those of lengths do not, as they
    would have to grow with the surface.
    """
    angles = {k: row for k, row in limits.items() if "pitch" in k or "splay" in k}

    def fits(k: float) -> bool:
        here = scaled_field(field, k)
        pair = fit_pair(_scaled_start(template, here, {}), end, here, angles)
        return max(pair[1].values()) <= TOLERANCE

    k = scale_that_fits(fits)
    remedy = (
        f"scale the surface by {k:.2f}"
        if k is not None
        else "no scale up to 4 helps, so make that limb of the surface thicker"
    )
    name = max(out, key=out.__getitem__)
    return (
        f"{template.name}: {end} limbs do not fit: {name} sticks out of the skin's "
        f"inside by {1e3 * out[name]:.1f} mm; {remedy}"
    )


def scale_that_fits(fits: Callable[[float], bool], most: float = 4.0) -> float | None:
    """The smallest scale above 1 at which something fits, within 1 %; None for none.

    Args:
        fits: whether it fits at a scale.
        most: largest scale that is tried.
    """
    low, high = 1.0, 1.12
    while not fits(high):
        low, high = high, 1.12 * high
        if high > most:
            return None
    for _ in range(4):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def scaled_field(field: Field, scale: float) -> Field:
    """The signed distance of the scaled surface."""
    return lambda p: scale * np.asarray(field(np.asarray(p) / scale), float)


# A pair of limbs, and the torso.


def fit_pair(
    template: Template, end: str, field: Field, limits: Limits | None = None
) -> tuple[Template, dict[str, float]]:
    """A template with a pair of limbs fitted, knees bent to the side that fits better.

    Args:
        template: template to start from.
        end: "front" or "hind".
        field: signed distance of the surface.
        limits: limits that replace those of :func:`limb_limits`, by name.

    Returns:
        The template, and how far each part sticks out at most (>= 0) [m], by name.
    """
    best = None
    for start in _bends(template, end):
        found = least_squares_fit(
            start,
            _within(limb_limits(start, end), limits or {}),
            lambda t: _worst_points(_limb_protrusions(t, end, field)),
            stay=4e-4,
            evaluations=12,
        )
        out = _limb_protrusions(found, end, field)
        most = {name: max(float(v.max()), 0.0) for name, v in out.items()}
        cost = sum(v**2 for v in most.values())
        if best is None or cost < best[0]:
            best = cost, found, most
        if max(most.values()) <= TOLERANCE:
            break
    return best[1], best[2]


def _limb_protrusions(template, end: str, field: Field) -> dict[str, np.ndarray]:
    """Protrusions of a pair of limbs; see :func:`_protrusions`.

    They are those of the left limb, the larger of both sides of the surface. The motor
    on the torso that drives a limb belongs to it.
    """

    def both(p: np.ndarray) -> np.ndarray:
        values = field(np.concatenate([p, p * [1.0, -1.0, 1.0]]))
        return np.maximum(values[: len(p)], values[len(p) :])

    parts = template.limb_parts(ENDS[end])
    points = {link.name: _link_points(link, rings=False) for link in parts.links}
    name, *place = parts.mount
    points[f"{name} motor"] = _points(motor(template.build, name, *place))
    return _protrusions(template, points, both)


def _bends(template: Template, end: str) -> Iterator[Template]:
    """The template, and with this pair's knees bent to the other side."""
    yield template
    limb = getattr(template, end)
    knee = limb.upper_vector(1)[::2]
    ankle = knee + limb.lower_vector()[::2]
    image = knee - 2 * (knee - ankle * (knee @ ankle) / (ankle @ ankle))
    up, low = bent(np.zeros(2), image, ankle, limb.upper, limb.lower)
    yield replace(template, **{end: replace(limb, upper_pitch=up, lower_pitch=low)})


def bent(hip, knee, ankle, upper: float, lower: float) -> tuple[float, float]:
    """Pitches of the upper and the lower link [rad], 0 downwards, within 1.3 rad.

    The knee bends to the side of the line from hip to ankle on which it is.

    Args:
        hip, knee, ankle: places in x and z (2,) [m].
        upper, lower: lengths of the links [m].
    """
    d = ankle - hip
    reach = float(np.linalg.norm(d))
    cross = d[0] * (knee - hip)[1] - d[1] * (knee - hip)[0]
    bend = 1.0 if cross >= 0 else -1.0
    cosine = (upper**2 + reach**2 - lower**2) / (2 * upper * max(reach, 1e-6))
    at_hip = np.arccos(np.clip(cosine, -1, 1))
    straight = np.arctan2(d[0], -d[1])
    up = float(np.clip(straight + bend * at_hip, -1.3, 1.3))
    rest = d - upper * np.array([np.sin(up), -np.cos(up)])
    return up, float(np.clip(np.arctan2(rest[0], -rest[1]), -1.3, 1.3))


def fit_torso(
    template: Template, field: Field, limits: Limits | None = None
) -> Template:
    """A template with the torso's box, rings and struts, and its tail fitted.

    Args:
        template: template with fitted limbs, which stay.
        field: signed distance of the surface.
        limits: limits that replace those of :func:`torso_limits`, by name.
    """
    defaults = torso_limits(template)
    rows = _within(defaults, limits or {})
    most = np.array([defaults[f"torso.brace[{k}]"][1] for k in (0, 1)])

    def residuals(t: Template) -> np.ndarray:
        torso = torso_link(t.build, t.torso, t.torso_centre, ())
        points = {"torso": _link_points(torso)}
        tail = t.tail_parts()
        if tail is not None:
            points["tail"] = _link_points(tail.links[0])
        # Rings and struts grow until they touch the skin's inside.
        grow = 2e-3 * (1.0 - np.array(t.torso.brace) / most)
        out = _worst_points(_protrusions(t, points, field))
        return np.concatenate([out, grow])

    for stay in (1e-3, 2e-4):
        template = least_squares_fit(template, rows, residuals, stay=stay)
    return template


# The points that must lie inside, and how far they stick out.

# Corners, middles of the faces and of the edges of a box.
_PATTERN = np.array([p for p in product((-0.5, 0.0, 0.5), repeat=3) if any(p)])


def _link_points(link: Link, rings: bool = True) -> np.ndarray:
    """Points of all solids of a link, or all but rings, at rest (26 n, 3) [m]."""
    return link.origin + _points(s for s in link.solids if rings or s.kind != "rib")


def _points(solids: Iterable[Solid]) -> np.ndarray:
    """Corners, middles of edges and of faces, in the link (26 n, 3) [m]."""
    return np.concatenate([s.p_BG + (_PATTERN * s.size) @ s.R_BG.T for s in solids])


def _protrusions(
    template: Template, points: Mapping[str, np.ndarray], field: Field
) -> dict[str, np.ndarray]:
    """Distance of each point outside the space for the skeleton [m]; < 0 inside.

    Points of a foot must be as deep as the skin of the sole, on which the foot's plate
    rests; all others as deep as the skin and the clearance.

    Args:
        template: gives the thicknesses of the skin.
        points: points of links or motors (n, 3) [m], by name.
        field: signed distance of the surface.

    Returns:
        Protrusions (n,) [m], by name.
    """
    values = np.asarray(field(np.concatenate(list(points.values()))), float)
    split = np.split(values, np.cumsum([len(p) for p in points.values()])[:-1])
    build = template.build
    depth, foot = build.skin + CLEARANCE, build.sole_skin
    return {
        name: value + (foot if name.endswith("_foot") else depth)
        for name, value in zip(points, split)
    }


def largest_protrusions(
    template: Template, links: Iterable[Link], field: Field
) -> dict[str, float]:
    """Largest distance of each link outside the space [m], by name; < 0 inside."""
    points = {link.name: _link_points(link, rings=False) for link in links}
    out = _protrusions(template, points, field)
    return {name: float(values.max()) for name, values in out.items()}


def _worst_points(out: Mapping[str, np.ndarray]) -> np.ndarray:
    """The largest protrusions of each part, in turn (60 n,) [m]; 0 for points inside.

    Their number is fixed, as least squares need: a beam or a ring may vanish during a
    fit, and its points with it.
    """
    rows = []
    for values in out.values():
        worst = np.sort(np.maximum(values, 0.0))[::-1][:_POINTS]
        rows.append(np.pad(worst, (0, _POINTS - len(worst))))
    return np.concatenate(rows)


# Default limits, and scaled templates.


def scaled_template(template: Template, scale: float) -> Template:
    """A template with all lengths scaled, but not below what the motors need.

    Walls, pilot holes, clearances, skin, battery and servos keep their size.
    """
    build, torso = template.build, template.torso
    least = {
        "upper": build.shortest,
        "lower": build.shortest,
        "hip": build.gap + build.wall + build.bay[1] / 2,
        "foot.ankle_height": lowest_ankle(build),
    }
    limb = ("x", "y", *least, "foot.length", "foot.width", "foot.forward")
    changes = {}
    for name in (f"{end}.{name}" for end in ENDS for name in limb):
        low = least.get(name.partition(".")[2], -np.inf)
        changes[name] = max(scale * parameter(template, name), low)
    names = ["torso.brace_centre"]
    names += [f"torso.{k}" for k in ("size", "centre", "brace", "strut_brace")]
    if isinstance(template, Long):
        names += ["tail.length", "tail.drop", "tail.brace"]
    for name in names:
        value = parameter(template, name)
        lengths = isinstance(value, tuple)
        changes[name] = tuple(scale * v for v in value) if lengths else scale * value
    changes["torso.struts"] = tuple(
        (name, *(tuple(scale * x for x in p) for p in ends))
        for name, *ends in torso.struts
    )
    return edit(template, changes)


def lowest_ankle(build: Build) -> float:
    """Smallest height of an ankle for its motor [m]."""
    return build.swing + build.gap + 2 * build.wall + build.sole_skin


def narrowest(build: Build, abducts: bool) -> float:
    """Least distance of a hip from the middle, beside the torso's box [m].

    The board lies in the box, across, between the hips' motors.
    """
    half = build.bay[1] / 2 if abducts else build.bay[2] / 2
    return Torso.board[0][1] / 2 + build.wall + half + 3e-4


def motor_boxes(template: Template) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest corners of the limbs' first motor bays (4, 3) [m].

    The rows are FL, FR, RL and RR.
    """
    mounts = [template.limb_parts(name).mount for name in template.limbs]
    corners = [motor(template.build, *mount)[0].corners() for mount in mounts]
    return np.min(corners, axis=1), np.max(corners, axis=1)


def limb_limits(template: Template, end: str) -> dict[str, tuple[float, float]]:
    """Default limits of a pair of limbs, "front" or "hind", by dotted name.

    Links may be as short as their motors allow and twice as long as they are; angles
    may change by 34 degrees.
    """
    limb: Limb = getattr(template, end)
    build, foot = template.build, limb.foot
    low = narrowest(build, not isinstance(template, Crouched))
    ankle, least = lowest_ankle(build), build.shortest

    def turned(angle: float) -> tuple[float, float]:
        return max(angle - 0.6, -1.35), min(angle + 0.6, 1.35)

    rows = {
        "x": (limb.x - 0.12, limb.x + 0.12),
        "y": (low, max(1.5 * limb.y, low + 0.04)),
        "upper": (least, max(2 * limb.upper, 1.3 * least)),
        "lower": (least, max(2 * limb.lower, 1.3 * least)),
        "upper_pitch": turned(limb.upper_pitch),
        "lower_pitch": turned(limb.lower_pitch),
        "splay": (min(limb.splay, -0.2), max(limb.splay, 0.7)),
        "foot.length": (0.05, max(foot.length, 0.06)),
        # Not narrower than the fork above it.
        "foot.width": (build.fork, max(foot.width, build.fork + 0.002)),
        "foot.ankle_height": (ankle, max(foot.ankle_height, 1.5 * ankle)),
        "foot.forward": (foot.forward - 0.03, foot.forward + 0.03),
    }
    return {f"{end}.{name}": row for name, row in rows.items()}


def torso_limits(template: Template) -> dict[str, tuple[float, float]]:
    """Default limits of the torso and the tail, by dotted name.

    The torso's box fits between the left and the right motors of the limbs, and
    overlaps each of them along x and z, where it is joined to their bays.
    """
    torso, build = template.torso, template.build
    centre = template.torso_centre
    low, high = motor_boxes(template)
    # Along x the box overlaps the motors by 13 mm at the end that is further away.
    reach = 2 * max(low[:2, 0].min() - centre[0], centre[0] - high[2:, 0].max()) + 0.026
    # Battery and board lie in the box.
    payload = np.array([torso.battery[0], torso.board[0]]).max(axis=0) + 2 * build.wall
    wide = 2 * np.abs([low[:, 1], high[:, 1]]).min() - 2e-4
    # Along z it overlaps each of them by 12 mm.
    floor = low[:, 2].max() + 0.012 - centre[2]
    ceiling = high[:, 2].min() - 0.012 - centre[2]
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


def _within(defaults: Limits, limits: Limits) -> dict[str, tuple[float, float]]:
    """The limits of the numbers that have default ones; equal limits fix a number.

    Args:
        defaults: default limits, by name.
        limits: limits that replace them; names without a default are ignored.

    Raises:
        InvalidInput: for limits that leave nothing between them.
    """
    rows = {name: tuple(limits.get(name, row)) for name, row in defaults.items()}
    for name, (low, high) in rows.items():
        if not (np.isfinite([low, high]).all() and low <= high):
            raise InvalidInput(
                f"limits of {name}: ({low:g}, {high:g}) leave nothing between them; "
                "give (lower, upper) in SI, or enlarge the surface"
            )
    return rows


def least_squares_fit(
    template: Template,
    limits: Limits,
    residuals: Callable[[Template], np.ndarray],
    *,
    stay: float,
    evaluations: int = 60,
) -> Template:
    """The template that minimises |residuals|^2 + |stay (p - p_0)/change|^2.

    Args:
        template: template to start from; p_0 are its numbers, moved into the limits.
        limits: the numbers p that may change, and their limits.
        residuals: residuals of a template [m].
        stay: weight of the distance from the start [m].
        evaluations: largest number of gradients.
    """
    lower, upper = np.array(list(limits.values()), float).T
    start = np.clip([parameter(template, name) for name in limits], lower, upper)
    moves = upper > lower + 1e-12
    change = np.array([_CHANGES.get(name.split(".")[-1], 0.05) for name in limits])
    change, lower, upper = change[moves], lower[moves], upper[moves]

    def at(x: np.ndarray) -> Template:
        values = start.copy()
        values[moves] = np.clip(start[moves] + x * change, lower, upper)
        return edit(template, dict(zip(limits, values.tolist())))

    if not moves.any():
        return at(np.zeros(0))
    least = (lower - start[moves]) / change - 1e-9
    most = (upper - start[moves]) / change + 1e-9

    def misfit(x: np.ndarray) -> np.ndarray:
        return np.concatenate([residuals(at(x)), stay * x])

    how = {"diff_step": 1e-4, "max_nfev": evaluations, "xtol": 1e-4, "ftol": 1e-5}
    found = least_squares(misfit, np.zeros(len(change)), bounds=(least, most), **how)
    return at(found.x)
