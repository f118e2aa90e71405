"""Fitting a template into a surface: limbs first, then the torso.

The paper's section 6.1: a global scale and local rotations put the template inside
the surface, then the links' lengths are edited, then the torso's. The surface is a
signed distance field, negative inside, in the robot's frame with the ground at
z = 0. Every printed box, servo and bracing ring must lie as deep inside as the skin
is thick, plus a clearance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import least_squares

from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.design.embed.limits import (
    SCALES,
    Field,
    limb_limits,
    limb_points,
    link_points,
    scaled_template,
    sticks_out,
    torso_limits,
)
from drakebots.design.skeleton import Skeleton, Template, edit, parameter, torso_link

# Least-squares fits of named template parameters within limits.

Limits = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Free:
    """Free numbers of a template: dotted names, "[k]" for one of a tuple.

    Attributes:
        names: e.g. "front.upper" or "torso.size[0]".
        lower, upper: limits (n,) in SI.
        scale: a typical change of each (n,), SI.
    """

    names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray


def value_of(template: Template, name: str) -> float:
    """A number of a template; see :class:`Free`."""
    base, index = _split(name)
    value = parameter(template, base)
    return float(value if index is None else value[index])


def with_values(template: Template, names, values) -> Template:
    """The template with these numbers."""
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


def free(rows: Limits, override: Limits, scales: Mapping[str, float]) -> Free:
    """Free parameters with default limits, some overridden.

    Equal limits fix a parameter.

    Raises:
        InvalidInput: for limits that are not numbers in order.
    """
    limits = {name: tuple(override.get(name, rows[name])) for name in rows}
    for name, (low, high) in limits.items():
        if not (np.isfinite([low, high]).all() and low <= high):
            raise InvalidInput(
                f"limits of {name}: ({low:g}, {high:g}) leave nothing between them; "
                "give (lower, upper) in SI, or enlarge the surface"
            )
    names = tuple(limits)
    return Free(
        names,
        np.array([limits[name][0] for name in names]),
        np.array([limits[name][1] for name in names]),
        np.array([scales.get(name.split(".")[-1], 0.05) for name in names]),
    )


def fit(
    template: Template,
    chosen: Free,
    residuals: Callable[[Template], np.ndarray],
    *,
    stay: float = 1e-3,
    evaluations: int = 60,
) -> Template:
    """Minimises |residuals|^2 + |stay (p - p_0)/scale|^2 over the limits.

    Args:
        template: the start; p_0 are its values, moved within the limits.
        chosen: what may change.
        residuals: of a template [m].
        stay: weight of the start [m per typical change].
        evaluations: of the gradient, at most.
    """
    start = np.array([value_of(template, name) for name in chosen.names])
    start = np.clip(start, chosen.lower, chosen.upper)
    moves = chosen.upper > chosen.lower + 1e-12
    if not moves.any():
        return with_values(template, chosen.names, start)
    scale = chosen.scale[moves]

    def at(x):
        values = start.copy()
        values[moves] = np.clip(
            start[moves] + x * scale, chosen.lower[moves], chosen.upper[moves]
        )
        return with_values(template, chosen.names, values)

    def cost(x):
        return np.concatenate([residuals(at(x)), stay * x])

    low = (chosen.lower - start)[moves] / scale - 1e-9
    high = (chosen.upper - start)[moves] / scale + 1e-9
    found = least_squares(
        cost,
        np.zeros(len(scale)),
        bounds=(low, high),
        diff_step=1e-4,
        max_nfev=evaluations,
        xtol=1e-4,
        ftol=1e-5,
    )
    return at(found.x)


STARTS = (0.7, 0.85, 1.0, 1.2, 1.45, 1.75)
"""Global scales the fit starts from; that which sticks out least is taken."""

TOLERANCE = 5e-4
"""A link may lie this much nearer to the surface than asked for [m]."""

POINTS = 60
"""Of a link that count in a fit."""

JOINTS = {"hip": 0, "knee": 1, "ankle": 2}


@dataclass(frozen=True)
class Embedding:
    """A template inside a surface.

    Attributes:
        template: with the fitted parameters.
        skeleton: its links.
        scale: the global scale that the fit began with.
        margin: by link, how much deeper inside than needed it lies [m]; slightly
            negative within the tolerance.
        landmark_error: by landmark, its distance from the joint [m].
    """

    template: Template
    skeleton: Skeleton
    scale: float
    margin: dict[str, float]
    landmark_error: dict[str, float] = field(default_factory=dict)


def embed(
    template: Template,
    field: Field,
    skeletal_line: Mapping[str, np.ndarray] | None = None,
    *,
    limits: Limits | None = None,
    clearance: float = 0.002,
    say_scale: bool = True,
) -> Embedding:
    """Fits a template into a surface.

    Args:
        template: the start.
        field: signed distance (n, 3) [m] -> (n,) [m], negative inside; soles at
            z = 0.
        skeletal_line: landmarks on it where joints should be, "FL_hip", "FL_knee",
            "FL_ankle" and so on -> (3,) [m]; none are needed.
        limits: of parameters, in place of the defaults, e.g. {"front.upper":
            (0.08, 0.12), "hind.splay": (0, 0)}; "scale" limits the global scale.
        clearance: between the skeleton and the skin's inside [m].
        say_scale: on failure, find the scale of the surface that would fit.

    Raises:
        UnknownName: for limits or a landmark of something that does not exist.
        InvalidInput: for limits or a field that are no numbers.
        NoSolution: naming the link that sticks out, by how much and the scale.
    """
    limits = dict(limits or {})
    landmarks = _landmarks(template, skeletal_line)
    _check_limits(template, limits)
    _check_field(field)
    scale, fitted = _scaled_start(template, field, limits, landmarks, clearance)
    for end in ("front", "hind"):
        fitted = _fit_limbs(fitted, end, field, limits, landmarks, clearance)
        _check_limb(template, fitted, end, field, limits, clearance, say_scale)
    fitted = _fit_torso(fitted, field, limits, clearance)
    skeleton = fitted.skeleton()
    points = {link.name: link_points(link) for link in skeleton.links}
    out = sticks_out(fitted, points, field, clearance)
    margin = {name: -float(value.max()) for name, value in out.items()}
    worst = min(margin, key=margin.get)
    if margin[worst] < -TOLERANCE:
        raise NoSolution(
            f"{template.name}: link {worst} sticks out of the skin's inside by "
            f"{-1e3 * margin[worst]:.1f} mm; make the surface wider there, the "
            f"template's {worst.split('_')[-1]} smaller, or widen the limits"
        )
    errors = {
        name: float(np.linalg.norm(_joint(fitted, name) - p))
        for name, p in landmarks.items()
    }
    return Embedding(fitted, skeleton, scale, margin, errors)


def _landmarks(template, line):
    landmarks = {}
    known = [f"{limb}_{joint}" for limb in template.limbs for joint in JOINTS]
    for name, p in (line or {}).items():
        if name not in known:
            raise UnknownName("landmark", name, known)
        p = np.asarray(p, float)
        if p.shape != (3,) or not np.isfinite(p).all():
            raise InvalidInput(f"landmark {name}: needs three finite numbers [m]")
        landmarks[name] = p
    return landmarks


def _joint(template, name):
    limb, joint = name.split("_")
    shape, _, side = template.limbs[limb]
    p = np.array([shape.x, side * shape.y, shape.hip_height])
    steps = (shape.upper_vector(side), shape.lower_vector())
    return p + sum(steps[: JOINTS[joint]], np.zeros(3))


def _check_limits(template, limits):
    known = {
        "scale",
        *limb_limits(template, "front"),
        *limb_limits(template, "hind"),
        *torso_limits(template),
    }
    for name in limits:
        if name not in known:
            raise UnknownName("limit", name, known)


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


def _names(template, end):
    first = {"front": "F", "hind": "R"}[end]
    return [name for name in template.limbs if name[0] == first]


def _limb_residuals(template, end, field, landmarks, clearance):
    points = {}
    for name in _names(template, end):
        points |= limb_points(template, name)
    out = sticks_out(template, points, field, clearance)
    pull = [
        0.3 * (_joint(template, name) - p)
        for name, p in landmarks.items()
        if name.split("_")[0] in _names(template, end)
    ]
    return np.concatenate([*(_worst_points(v) for v in out.values()), *pull])


def _worst_points(out):
    """The part outside of the points that stick out most, as many for any link.

    A beam or a ring may vanish in a fit, and its points with it.
    """
    worst = np.sort(np.maximum(out, 0.0))[::-1][:POINTS]
    return np.pad(worst, (0, POINTS - len(worst)))


def _scaled_start(template, field, limits, landmarks, clearance):
    """The global scale whose limbs stick out least, of a few."""
    low, high = limits.get("scale", (STARTS[0], STARTS[-1]))
    starts = sorted({float(np.clip(s, low, high)) for s in STARTS})
    tried = []
    for scale in starts:
        scaled = scaled_template(template, scale)
        cost = sum(
            np.square(_limb_residuals(scaled, end, field, landmarks, clearance)).sum()
            for end in ("front", "hind")
        )
        tried.append((cost + 1e-6 * np.log(scale) ** 2, scale, scaled))
    _, scale, scaled = min(tried, key=lambda row: row[0])
    return scale, scaled


def _fit_limbs(
    template, end, field, limits, landmarks, clearance, stays=(1e-3, 1e-4), most=60
):
    chosen = free(limb_limits(template, end), limits, SCALES)

    def residuals(t):
        return _limb_residuals(t, end, field, landmarks, clearance)

    # First held loosely to the template, then only as far as it matters.
    for stay in stays:
        template = fit(template, chosen, residuals, stay=stay, evaluations=most)
    return template


def _worst_limb(template, end, field, clearance):
    points = {}
    for name in _names(template, end):
        points |= limb_points(template, name)
    out = sticks_out(template, points, field, clearance)
    name = max(out, key=lambda key: out[key].max())
    return name, float(out[name].max())


def _check_limb(start, fitted, end, field, limits, clearance, say_scale):
    name, depth = _worst_limb(fitted, end, field, clearance)
    if depth <= TOLERANCE:
        return
    remedy = "enlarge the surface, or widen the limits"
    if say_scale:
        k = _scale_that_fits(start, end, field, limits, clearance)
        remedy = (
            f"scale the surface by {k:.2f}"
            if k is not None
            else "no scale up to 3 helps; thicken that limb"
        )
    raise NoSolution(
        f"{start.name}: {end} limbs do not fit: {name} sticks out of the skin's "
        f"inside by {1e3 * depth:.1f} mm; {remedy}"
    )


def _scale_that_fits(template, end, field, limits, clearance):
    """The smallest scale of the surface at which a pair of limbs fits, or None."""

    def fits(k):
        def scaled(points):
            return k * np.asarray(field(points / k), float)

        # Limits of lengths would not grow with the surface; those of angles hold.
        wider = {
            name: row
            for name, row in limits.items()
            if "pitch" in name or "splay" in name
        }
        best = _scaled_start(template, scaled, {}, {}, clearance)[1]
        best = _fit_limbs(best, end, scaled, wider, {}, clearance, (1e-4,), 25)
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


def _fit_torso(template, field, limits, clearance):
    """Box, rings, struts and tail, with the limbs where they are."""
    defaults = torso_limits(template)
    chosen = free(defaults, limits, SCALES)

    def residuals(t):
        torso = torso_link(t.build, t.torso, t.torso_centre, ())
        points = {"torso": link_points(torso)}
        tail = t.tail_parts()
        if tail is not None:
            points["tail"] = link_points(tail.links[0])
        out = sticks_out(t, points, field, clearance)
        # Rings and struts grow until they touch the skin's inside.
        most = [defaults[f"torso.brace[{k}]"][1] for k in (0, 1)]
        grow = 2e-3 * (1.0 - np.array(t.torso.brace) / most)
        return np.concatenate([*(_worst_points(v) for v in out.values()), grow])

    for stay in (1e-3, 2e-4):
        template = fit(template, chosen, residuals, stay=stay)
    return template
