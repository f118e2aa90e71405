"""Finds a skeleton for any surface: its parameters, scale, template and servo.

    found = fit(animal, grid, area, FitSettings())

For each servo, beginning with the smallest, a few scales and templates are tried. The
lines of the legs (:mod:`~drakebots.design.animal`) place hips, knees and ankles. From
there the parameters p of each pair of limbs (:mod:`~drakebots.design.skeleton`)
minimise

    sum_i max(phi(x_i(p)) + depth_i, 0)^2 + |stay (p - p_0)/change|^2

where phi is the signed distance of the surface, x_i are points of all printed boxes
and motors, and depth_i is the thickness of the skin plus its clearance there. The
scale and the template whose limbs stick out least get a torso, a neck and a tail; if
the servo holds the weight of that robot, it is the fit. What still sticks out is
mended by :mod:`~drakebots.design.thicken`, which makes the surface thicker.

:mod:`~drakebots.design.embed` has the least squares and the points; it is for users
who give a template and a scale of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from drakebots.core.checks import check, check_value, one_of, optional, positive
from drakebots.core.errors import DrakebotsError, NoSolution
from drakebots.core.units import GRAVITY
from drakebots.design.animal import Animal
from drakebots.design.embed import (
    Field,
    fitted_torso,
    free_numbers,
    least_squares_fit,
    link_points,
    lowest_ankle,
    protrusions,
    solid_points,
    worst_points,
)
from drakebots.design.skeleton import (
    SERVOS,
    Build,
    Crouched,
    FootShape,
    Limb,
    Long,
    Servo,
    Skeleton,
    Tail,
    Template,
    Torso,
    Upright,
    motor,
)

LONGEST = (0.35, 1.25)
"""Bounds of a robot's longest side, when its scale is chosen [m]; the paper's lizard
is 1.25 m long."""

TEMPLATES = {"crouched": Crouched, "upright": Upright, "long": Long}
"""Templates of the paper's Fig. 6: 12, 16 and 17 joints."""

SHORT = 5e-4
"""A link fits if it sticks out by no more than this [m]."""

CLEARANCE = 2e-3
"""Gap between the skeleton and the skin's inside [m]."""

_SMALLER = 0.65
"""The smallest scale that is tried, as a share of the largest that LONGEST allows."""

_CHANGE = 0.01
"""Cost of changing the scale by a factor of e. It is as bad as a protrusion of this
share of the longest side."""

_FEWER = 0.7
"""A template with fewer joints is chosen only if it costs less than this share."""

_RESERVE = 1.5
"""A servo's torque over that of standing: in a gait fewer feet bear the weight."""

_SKIN_TORQUE = 1.4
"""Least torque of a servo [N m] for a skin of 4 mm: twice the torque with which most
folds resist at 15 degrees (docs/design.md). It grows with the thickness squared."""

_SKIN_DENSITY = 1070.0
"""Density of the skin [kg/m^3], for the weight that the servos must hold."""

_RAYS = np.radians(np.arange(-50.0, 86.0, 5.0))
"""Pitches at which to look for room for a neck or a tail [rad]."""


@dataclass(frozen=True)
class FitSettings:
    """What the user gives of a fit; None leaves the choice to the fit.

    Attributes:
        scale: factor on the surface; by default within the bounds LONGEST.
        template: a name of TEMPLATES.
        servo: a name of SERVOS.

    Raises:
        InvalidInput: for a scale that is not > 0.
        UnknownName: for an unknown template or servo.
    """

    scale: float | None = None
    template: str | None = None
    servo: str | None = None

    def __post_init__(self):
        check(self, "fit", scale=optional(positive()))
        for name, known in (("template", TEMPLATES), ("servo", SERVOS)):
            value = getattr(self, name)
            if value is not None:
                check_value(name, value, one_of(name, known))


@dataclass(frozen=True)
class Fit:
    """A skeleton in a surface.

    Attributes:
        template: the fitted template.
        skeleton: its skeleton.
        scale: factor on the surface.
        lacking: how far each link sticks out [m], by name; only those above SHORT.
        torque: estimate of the largest torque of a joint when standing [N m].
        notes: what was chosen, one line each.
    """

    template: Template
    skeleton: Skeleton
    scale: float
    lacking: Mapping[str, float]
    torque: float
    notes: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Name of its template in TEMPLATES."""
        return type(self.template).__name__.lower()

    @property
    def load(self) -> float:
        """The torque of standing as a share of what the servo has."""
        return self.torque / self.template.build.servo.effort


def fit(
    animal: Animal,
    phi: Field,
    area: float,
    settings: FitSettings,
    skin: float = 4e-3,
    sole: float = 8e-3,
) -> Fit:
    """Fits a skeleton into a surface.

    Args:
        animal: the surface and its legs.
        phi: signed distance of the surface as it is, in the animal's frame.
        area: area of the surface [m^2].
        settings: what the user gives.
        skin, sole: thickness of the skin, and of that under the soles [m].

    Raises:
        NoSolution: when no servo, or not the given one, holds the robot, or no
            template can be built.
    """
    servos, reserve = _servos(settings, skin)
    scales, wished = _scales(settings, animal)
    kinds = [settings.template] if settings.template else ["upright", "crouched"]
    longest = float(animal.size.max())

    def cost(limbs: _Limbs) -> float:
        thicker = limbs.protrusion / (longest * limbs.scale)
        change = _CHANGE * abs(np.log(limbs.scale / wished))
        return (thicker + change) / (_FEWER if limbs.kind == "crouched" else 1.0)

    reasons: list[str] = []

    def fitted(servo: Servo, scales: Iterable[float]) -> Fit | None:
        """The best fit with a servo at one of the scales; None if none can be built."""
        build = Build(servo=servo, rib=0.003, skin=skin, sole_skin=sole)
        tried = [
            _fit_limbs(animal, phi, kind, build, float(scale), reasons)
            for kind in kinds
            for scale in scales
        ]
        tried = [limbs for limbs in tried if limbs is not None]
        if not tried:
            return None
        return _finished(phi, area, min(tried, key=cost), settings.template is None)

    def holds(found: Fit) -> bool:
        return reserve * found.load <= 1

    best = None
    for servo in servos:
        found = fitted(servo, scales)
        if found is None:
            continue
        if best is None or found.load < best.load:
            best = found
        if holds(found):
            return _noted(found, animal)
    if best is None:
        raise NoSolution(f"surface: no skeleton can be built in it: {reasons[-1]}")
    servo, found = best.template.build.servo, best
    # Ever smaller, as a refusal advises who gives a scale.
    while settings.scale is None and found is not None:
        scale = _lighter(found, reserve)
        found = fitted(servo, [scale]) if scale * longest >= LONGEST[0] else None
        if found is not None and holds(found):
            return _noted(found, animal)
    takes = f"{best.torque:.3g} N m of a joint"
    if reserve > 1:
        takes += f" and walking {reserve:g} times that, {reserve * best.torque:.3g} N m"
    other = "" if settings.servo is None else ", or choose another servo"
    raise NoSolution(
        f"surface: scaled by {best.scale:.3g}, standing takes {takes}; servo "
        f"{servo.name} has {servo.effort:.3g} N m; scale the surface by "
        f"{_lighter(best, reserve):.2g}{other}"
    )


def _lighter(found: Fit, reserve: float) -> float:
    """The scale at which its servo holds a fit: standing takes the cube of the size."""
    return 0.9 * found.scale * float(1 / (reserve * found.load)) ** (1 / 3)


def _servos(settings: FitSettings, skin: float) -> tuple[list[Servo], float]:
    """The servos to try, smallest first, and the reserve of torque that they need.

    Raises:
        NoSolution: when no servo is strong enough for the skin.
    """
    if settings.servo is not None:
        return [SERVOS[settings.servo]], 1.0
    least = _SKIN_TORQUE * (skin / 4e-3) ** 2
    servos = [servo for servo in SERVOS.values() if servo.effort >= least]
    if not servos:
        raise NoSolution(
            f"a skin of {1e3 * skin:g} mm needs a servo of {least:.3g} N m, and "
            "there is none; make it thinner, or choose a servo"
        )
    return sorted(servos, key=lambda servo: float(np.prod(servo.size))), _RESERVE


def _scales(settings: FitSettings, animal: Animal) -> tuple[np.ndarray, float]:
    """The scales of the surface to try, and the one that is best if all fit."""
    if settings.scale is not None:
        return np.array([settings.scale]), settings.scale
    low, high = (bound / float(animal.size.max()) for bound in LONGEST)
    wished = float(np.clip(1.0, low, high))
    return np.unique([_SMALLER * high, wished, high]), wished


def enough_scale(animal, phi, area, found: Fit, settings: FitSettings) -> float | None:
    """The smallest scale, of those tried, at which nothing sticks out; or None.

    Args:
        animal, phi, area, settings: as for :func:`fit`.
        found: fit whose template and servo are kept. Scales of up to 4 times its own
            are tried.
    """
    build = found.template.build
    for scale in found.scale * np.geomspace(1.05, 4.0, 12):
        limbs = _fit_limbs(animal, phi, found.kind, build, float(scale), [])
        if limbs is None or limbs.protrusion > SHORT:
            continue
        if not _finished(phi, area, limbs, settings.template is None).lacking:
            return limbs.scale
    return None


def _noted(found: Fit, animal: Animal) -> Fit:
    """The fit with a first note on what was chosen."""
    build, size = found.template.build, animal.size * found.scale
    line = (
        f"template {found.kind}, servo {build.servo.name}, surface scaled by "
        f"{found.scale:.3g} to {' x '.join(f'{s:.2f}' for s in size)} m; standing "
        f"takes {found.torque:.2g} of {build.servo.effort:.3g} N m"
    )
    return replace(found, notes=(line, *found.notes))


# One template, servo and scale: the limbs.


class _Limbs(NamedTuple):
    """A template whose limbs were fitted at one scale of the surface.

    Attributes:
        kind: name of the template in TEMPLATES.
        template: the template, with a torso that is not fitted yet.
        scale: factor on the surface.
        protrusion: root mean square of how far its links stick out [m].
    """

    kind: str
    template: Template
    scale: float
    protrusion: float


def _fit_limbs(animal, phi, kind, build, scale, reasons) -> _Limbs | None:
    """A template with fitted limbs; None, and why in `reasons`, if none can be built.

    Args:
        animal, phi: as for :func:`fit`.
        kind: name of the template in TEMPLATES.
        build: servo and thicknesses.
        scale: factor on the surface.
        reasons: list to which the reason of a failure is added.
    """
    here = _scaled(phi, scale)
    try:
        template = _start(animal, TEMPLATES[kind], build, scale)
        lacks = []
        for end, first in (("front", "FL"), ("hind", "RL")):
            template, lack = _fit_pair(template, end, first, here)
            lacks += list(lack.values())
    except DrakebotsError as error:
        reasons.append(str(error))
        return None
    return _Limbs(kind, template, scale, float(np.sqrt(np.mean(np.square(lacks)))))


def _scaled(phi: Field, scale: float) -> Field:
    """The signed distance of the scaled surface."""
    return lambda p: scale * np.asarray(phi(np.asarray(p) / scale), float)


def _both_sides(phi: Field) -> Field:
    """The larger of the values at points and at their images across y = 0."""

    def larger(p):
        values = phi(np.concatenate([p, p * [1.0, -1.0, 1.0]]))
        return np.maximum(values[: len(p)], values[len(p) :])

    return larger


def _start(animal, kind, build, scale) -> Template:
    """A template with its hips, knees and ankles on the lines of the legs."""
    limbs = {
        end: _start_limb(animal, end, build, scale, kind is not Crouched)
        for end in ("front", "hind")
    }
    torso = Torso(size=(0.2, 0.1, 0.06))
    more = {"tail": Tail()} if kind is Long else {}
    return kind("robot", torso, limbs["front"], limbs["hind"], build, **more)


def _start_limb(animal, end, build, scale, abducts) -> Limb:
    """A limb on the line of its legs; a pair's is the mean of left and mirrored right.

    Args:
        animal, build, scale: as for :func:`_fit_limbs`.
        end: "front" or "hind".
        abducts: whether the hip also turns about x, which takes a wider motor bay.
    """
    letter = end[0].upper() if end == "front" else "R"
    left, right = (animal.legs[letter + side] for side in "LR")
    top = scale * min(left.top, right.top)

    def line(z):
        a, b = left.at(z / scale), right.at(z / scale)
        return scale * np.array([(a[0] + b[0]) / 2, (a[1] - b[1]) / 2, z / scale])

    sole = scale * (left.sole + right.sole * [1.0, -1.0]) / 2
    ankle_height = lowest_ankle(build) + 0.001
    long, wide = np.abs(sole[1] - sole[0])
    ankle = line(ankle_height)
    hip = line(max(top, ankle_height + 1.7 * build.shortest))
    knee = line((hip[2] + ankle[2]) / 2)
    hip[1] = max(hip[1], narrowest(build, abducts))
    least = build.shortest + 1e-4
    upper, lower = (
        max(np.linalg.norm(d), least) for d in ((knee - hip)[::2], (ankle - knee)[::2])
    )
    up, low = _bent(hip[::2], knee[::2], ankle[::2], upper, lower)
    foot = FootShape(
        length=float(np.clip(long - 2 * build.sole_skin, 0.05, 0.11)),
        width=float(np.clip(wide - 2 * build.sole_skin, build.fork, 1.5 * build.fork)),
        ankle_height=ankle_height,
        forward=float(np.clip(sole[:, 0].mean() - ankle[0], -0.04, 0.04)),
    )
    out = (ankle[1] - hip[1]) / max(upper * np.cos(up), 1e-3)
    return Limb(
        x=float(hip[0]),
        y=float(hip[1]),
        upper=float(upper),
        lower=float(lower),
        upper_pitch=up,
        lower_pitch=low,
        splay=float(np.clip(np.arctan(out), -0.2, 0.6)),
        hip=build.gap + build.wall + build.bay[1] / 2 + 1e-3,
        foot=foot,
    )


def _bent(hip, knee, ankle, upper, lower) -> tuple[float, float]:
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


def narrowest(build: Build, abducts: bool) -> float:
    """Least distance of a hip from the middle, beside the torso's box [m].

    The board lies in the box, across, between the hips' motors.
    """
    half = build.bay[1] / 2 if abducts else build.bay[2] / 2
    return Torso.board[0][1] / 2 + build.wall + half + 3e-4


def _fit_pair(template, end, first, phi):
    """A pair of limbs fitted into the field, with the knees bent to the better side.

    Args:
        template: template to start from.
        end, first: "front" or "hind", and the name of the left limb of the pair.
        phi: signed distance of the surface.

    Returns:
        The template, and how far each link sticks out at most (>= 0) [m], by name.
    """
    both, best = _both_sides(phi), None

    def lack(t):
        parts = t.limb_parts(first)
        points = {link.name: link_points(link, rings=False) for link in parts.links}
        points["motor"] = solid_points(motor(t.build, *parts.mount))
        return protrusions(t, points, both, CLEARANCE)

    def residuals(t):
        return np.concatenate([worst_points(v) for v in lack(t).values()])

    for start in _bends(template, end):
        free = free_numbers(_limits(start, end), {})
        found = least_squares_fit(start, free, residuals, stay=4e-4, evaluations=12)
        lacks = {k: max(float(v.max()), 0.0) for k, v in lack(found).items()}
        cost = sum(v**2 for v in lacks.values())
        if best is None or cost < best[0]:
            best = cost, found, lacks
        if max(lacks.values()) <= SHORT:
            break
    return best[1], best[2]


def _bends(template, end):
    """The template, and with this pair's knees bent to the other side."""
    limb = getattr(template, end)
    hip = np.zeros(2)
    knee = limb.upper_vector(1)[::2]
    ankle = knee + limb.lower_vector()[::2]
    yield template
    d = ankle - hip
    image = knee - 2 * (knee - d * (knee @ d) / (d @ d))
    up, low = _bent(hip, image, ankle, limb.upper, limb.lower)
    yield replace(template, **{end: replace(limb, upper_pitch=up, lower_pitch=low)})


def _limits(template, end) -> dict[str, tuple[float, float]]:
    """Limits of a pair of limbs, by dotted name; wider than `embed`'s."""
    limb: Limb = getattr(template, end)
    build, foot = template.build, limb.foot
    low = narrowest(build, not isinstance(template, Crouched))
    ankle = lowest_ankle(build)
    least = build.shortest

    def turned(angle):
        return max(angle - 0.6, -1.35), min(angle + 0.6, 1.35)

    rows = {
        "x": (limb.x - 0.12, limb.x + 0.12),
        "y": (low, max(1.5 * limb.y, low + 0.04)),
        "upper": (least, max(2 * limb.upper, 1.3 * least)),
        "lower": (least, max(2 * limb.lower, 1.3 * least)),
        "upper_pitch": turned(limb.upper_pitch),
        "lower_pitch": turned(limb.lower_pitch),
        "splay": (-0.2, 0.7),
        "foot.length": (0.05, max(foot.length, 0.06)),
        "foot.width": (build.fork, max(foot.width, build.fork + 0.002)),
        "foot.ankle_height": (ankle, 1.5 * ankle),
        "foot.forward": (foot.forward - 0.03, foot.forward + 0.03),
    }
    return {f"{end}.{name}": row for name, row in rows.items()}


# The torso, the neck and the tail of the chosen template.


def _finished(phi: Field, area: float, limbs: _Limbs, tail: bool) -> Fit:
    """The fit of a template with fitted limbs.

    Args:
        phi, area: as for :func:`fit`.
        limbs: the template.
        tail: whether it may get a tail on a joint, where there is room for one.
    """
    scale, here = limbs.scale, _scaled(phi, limbs.scale)
    template = replace(limbs.template, torso=_torso(limbs.template, here))
    template = fitted_torso(template, here, {}, CLEARANCE)
    if tail and type(template) is Upright:
        template = _with_tail(template, here)
    template = replace(template, torso=_with_struts(template, here))
    skeleton = template.skeleton()
    lacks = _lacks(template, skeleton.links, here)
    mass = skeleton.mass + _SKIN_DENSITY * template.build.skin * area * scale**2
    struts = [name for name, *_ in template.torso.struts]
    notes = () if struts else ("no room for a strut in the neck or the tail",)
    return Fit(
        template,
        skeleton,
        scale,
        {k: v for k, v in lacks.items() if v > SHORT},
        _standing_torque(skeleton, mass),
        notes,
    )


def _lacks(template, links, phi) -> dict[str, float]:
    """How far each link sticks out at most [m], by name; < 0 inside."""
    points = {link.name: link_points(link, rings=False) for link in links}
    out = protrusions(template, points, phi, CLEARANCE)
    return {name: float(values.max()) for name, values in out.items()}


def _with_tail(template: Upright, phi: Field) -> Template:
    """The template with a tail on a joint, if that fits without a thicker surface."""
    shared = {f.name: getattr(template, f.name) for f in fields(template)}
    try:
        long = fitted_torso(Long(**shared), phi, {}, CLEARANCE)
        tail = long.tail_parts().links
        torso = long.skeleton().links[:1]
        worst = max(_lacks(long, (*torso, *tail), phi).values())
    except DrakebotsError:
        return template
    # Where the surface is as wide as a rump, a moving tail would not be seen.
    middle = (tail[0].p_WA + 2 * tail[0].p_WB) / 3
    rays = np.array([[0, 1, 0], [0, 0, 1], [0, 0, -1]])
    widest = max(_reach(phi, middle, ray) for ray in rays)
    slim = widest < template.build.fork + 2 * template.build.skin
    return long if slim and worst <= SHORT else template


def _standing_torque(skeleton: Skeleton, mass: float) -> float:
    """Largest torque of a joint with a quarter of the weight on each foot [N m]."""
    force = np.array([0.0, 0.0, mass * GRAVITY / 4])
    worst = 0.0
    for sole in skeleton.soles:
        p_WS = skeleton.link(sole.link).origin + sole.p_BP[4]
        for hinge in skeleton.hinges:
            if hinge.name.split("_")[0] == sole.foot:
                torque = np.cross(p_WS - hinge.p_WJ, force) @ hinge.axis
                worst = max(worst, abs(float(torque)))
    return worst


def _torso(template: Template, phi: Field) -> Torso:
    """The torso: a box between the motors of the hips, and rings around it.

    The box is as deep inside the surface as the motors allow; the rings are made from
    the room around it.
    """
    x, low, high = {}, [], []
    for name, (_, end, _) in template.limbs.items():
        corners = motor(template.build, *template.limb_parts(name).mount)[0].corners()
        x[end] = corners[:, 0].min() if end > 0 else corners[:, 0].max()
        low.append(corners[:, 2].min())
        high.append(corners[:, 2].max())
    size = np.array([max(abs(x[1] - x[-1]) + 0.03, 0.13), 0.075, 0.06])
    # The box overlaps each motor's height by 15 mm.
    lowest, highest = max(low) + 0.015 - size[2] / 2, min(high) - 0.015 + size[2] / 2
    places = np.linspace(min(lowest, highest), max(lowest, highest), 12)
    middles = np.array([[(x[1] + x[-1]) / 2, 0.0, z] for z in places])
    box = np.array(np.meshgrid(*[[-0.5, 0.0, 0.5]] * 3)).reshape(3, -1).T * size
    depth = phi((middles[:, None] + box).reshape(-1, 3)).reshape(len(places), -1)
    middle = middles[int(np.argmin(depth.max(axis=1)))]
    hips = (template.front.hip_height + template.hind.hip_height) / 2
    rays = np.array([[0, 1, 0], [0, 0, 1], [0, 0, -1]])
    inside = template.build.skin + CLEARANCE
    wide, up, down = (max(_reach(phi, middle, ray) - inside, 0.04) for ray in rays)
    return replace(
        template.torso,
        size=tuple(map(float, size)),
        centre=(float(middle[0]), float(middle[2] - hips)),
        brace=(float(1.4 * wide), float(0.7 * (up + down))),
        brace_centre=float((up - down) / 2),
    )


def _reach(phi: Callable, start, along, depth=0.0, free=0.0) -> float:
    """Length of the part of a ray that stays inside the surface [m], at most 1.5.

    Args:
        phi: signed distance of the surface.
        start, along: start (3,) [m] and direction (3,) of the ray.
        depth: depth at which the ray must stay [m].
        free: length of its first part, which may be anywhere [m].
    """
    s = np.arange(free, 1.5, 4e-3)
    outside = np.flatnonzero(phi(start + s[:, None] * along) > -depth)
    return float(s[outside[0]]) if len(outside) else float(s[-1])


def _with_struts(template: Template, phi: Field) -> Torso:
    """The torso with a strut in the neck, one in the head and one in the tail.

    Each is the longest of the rays from its start along which the smallest ring fits
    inside the skin. The first part of a ray does not count, as it lies beside the box.
    A strut that would be too short is left out.
    """
    torso, p_WO = template.torso, template.torso_centre
    half = np.array(torso.size) / 2
    depth = torso.strut_width / 2 + template.build.skin + CLEARANCE + 0.008
    struts = []
    for names, sign in ((("neck", "head"), 1), (("tail",), -1)):
        if sign < 0 and isinstance(template, Long):
            continue
        start = np.array([sign * (half[0] - 0.02), 0.0, half[2] - 0.01])
        for name in names:
            rays = [np.array([sign * np.cos(a), 0.0, np.sin(a)]) for a in _RAYS]
            far = [_reach(phi, p_WO + start, ray, depth, 0.06) for ray in rays]
            k = int(np.argmax(far))
            length = min(far[k] - 0.012, 0.45)
            least = 0.09 if name != "head" else 0.06
            if length < least:
                break
            end = start + length * rays[k]
            if name != "head" and sign * end[0] < half[0] + 0.03 and abs(end[2]) < 0.15:
                break
            struts.append((name, tuple(map(float, start)), tuple(map(float, end))))
            start = end
    return replace(torso, struts=tuple(struts))
