"""Finds a skeleton for any surface: its parameters, scale, template and servo.

    found = fit(animal, grid, area, FitSettings())

For each servo, beginning with the smallest, a few scales and templates are tried. The
lines of the legs (:mod:`~drakebots.design.animal`) place hips, knees and ankles, from
where each pair of limbs is fitted (:mod:`~drakebots.design.embed`). The scale and the
template whose limbs stick out least get a torso, a neck and a tail; if the servo holds
the weight of that robot, it is the fit. What still sticks out is mended by
:mod:`~drakebots.design.pipeline`, which makes the surface thicker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, NamedTuple

import numpy as np

from drakebots.core.checks import one_of, positive
from drakebots.core.errors import DrakebotsError, NoSolution
from drakebots.core.fields import checked
from drakebots.core.units import GRAVITY
from drakebots.design.animal import Animal
from drakebots.design.embed import (
    CLEARANCE,
    ENDS,
    TOLERANCE,
    Field,
    bent,
    fit_pair,
    fit_torso,
    largest_protrusions,
    lowest_ankle,
    motor_boxes,
    narrowest,
    scale_that_fits,
    scaled_field,
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
    Template,
    Torso,
    Upright,
)

LONGEST = (0.35, 1.25)
"""Bounds of a robot's longest side, when its scale is chosen [m]; the paper's lizard
is 1.25 m long."""

TEMPLATES = {"crouched": Crouched, "upright": Upright, "long": Long}
"""Templates of the paper's Fig. 6: 12, 16 and 17 joints."""

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
folds resist at 15 degrees (docs/evidence/design.md). It grows with the thickness
squared."""

_SKIN_DENSITY = 1070.0
"""Density of the skin [kg/m^3], for the weight that the servos must hold."""

_RAYS = np.radians(np.arange(-50.0, 86.0, 5.0))
"""Pitches at which to look for room for a neck or a tail [rad]."""

_AROUND = np.array([[0, 1, 0], [0, 0, 1], [0, 0, -1]])
"""Directions across a body: to the left, up and down."""


@checked("fit")
class FitSettings:
    """Choices of the user for a fit; None leaves the choice to the fit.

    Raises:
        InvalidInput: for a scale that is not > 0.
        UnknownName: for an unknown template or servo.
    """

    scale: Annotated[float | None, positive()] = None
    """Factor on the surface; by default it is found."""
    template: Annotated[str | None, one_of("template", TEMPLATES)] = None
    """Kind of skeleton."""
    servo: Annotated[str | None, one_of("servo", SERVOS)] = None
    """Motor of all joints."""


@dataclass(frozen=True)
class Fit:
    """A skeleton in a surface.

    Attributes:
        template: the fitted template.
        skeleton: its skeleton.
        scale: factor on the surface.
        protrusions: length by which links stick out [m], by name; those above
            TOLERANCE.
        torque: estimate of the largest torque of a joint when standing [N m].
        notes: choices, one line each.
    """

    template: Template
    skeleton: Skeleton
    scale: float
    protrusions: Mapping[str, float]
    torque: float
    notes: tuple[str, ...] = ()

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
        settings: choices of the user.
        skin, sole: thickness of the skin, and of that under the soles [m].

    Raises:
        NoSolution: when no servo, or not the given one, holds the robot, or no
            template can be built.
    """
    search = _Search(animal, phi, area, settings)
    servos, reserve = _servos(settings, skin)
    best = None
    for servo in servos:
        build = Build(servo=servo, rib=0.003, skin=skin, sole_skin=sole)
        found = search.best(build, search.scales)
        if found is not None and reserve * found.load <= 1:
            return found
        if found is not None and (best is None or found.load < best.load):
            best = found
    if best is None:
        reason = search.reasons[-1]
        raise NoSolution(f"surface: no skeleton can be built in it: {reason}")
    build, found = best.template.build, best
    # Ever smaller, as a refusal advises who gives a scale.
    while settings.scale is None and found is not None:
        scale = _lighter(found, reserve)
        small = scale * float(animal.size.max()) < LONGEST[0]
        found = None if small else search.best(build, [scale])
        if found is not None and reserve * found.load <= 1:
            return found
    raise NoSolution(_too_heavy(best, reserve, settings))


def _too_heavy(best: Fit, reserve: float, settings: FitSettings) -> str:
    """Why no servo holds a robot, and what to try."""
    servo = best.template.build.servo
    takes = f"{best.torque:.3g} N m of a joint"
    if reserve > 1:
        takes += f" and walking {reserve:g} times that, {reserve * best.torque:.3g} N m"
    other = "" if settings.servo is None else ", or choose another servo"
    return (
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


def enough_scale(
    animal: Animal, phi: Field, area: float, found: Fit, settings: FitSettings
) -> float | None:
    """The smallest scale up to 4 times a fit's at which nothing sticks out; or None.

    Args:
        animal, phi, area, settings: as for :func:`fit`.
        found: the fit, whose template and servo are kept.
    """
    search, build = _Search(animal, phi, area, settings), found.template.build

    def fits(k: float) -> bool:
        limbs = search.limbs(type(found.template), build, k * found.scale)
        if limbs is None or limbs.protrusion > TOLERANCE:
            return False
        return not search.finished(limbs).protrusions

    k = scale_that_fits(fits)
    return None if k is None else k * found.scale


class _Limbs(NamedTuple):
    """A template whose limbs were fitted at one scale of the surface.

    Attributes:
        template: the template, with a torso that is not fitted yet.
        scale: factor on the surface.
        protrusion: root mean square of how far its links stick out [m].
    """

    template: Template
    scale: float
    protrusion: float


class _Search:
    """The search of :func:`fit`, whose arguments it takes, among scales and templates.

    Attributes:
        scales: scales of the surface to try.
        desired: the scale that is best if all fit.
        reasons: why templates could not be built.
    """

    def __init__(self, animal: Animal, phi: Field, area: float, settings: FitSettings):
        self.animal, self.phi, self.area = animal, phi, area
        self.settings, self.reasons = settings, list[str]()
        self.longest = float(animal.size.max())
        if settings.scale is not None:
            self.scales, self.desired = np.array([settings.scale]), settings.scale
            return
        low, high = (bound / self.longest for bound in LONGEST)
        self.desired = float(np.clip(1.0, low, high))
        self.scales = np.unique([_SMALLER * high, self.desired, high])

    def best(self, build: Build, scales: Iterable[float]) -> Fit | None:
        """The best fit with a servo at one of the scales; None if none can be built."""
        kind = self.settings.template
        tried = [
            self.limbs(kind, build, float(scale))
            for kind in ([TEMPLATES[kind]] if kind else [Upright, Crouched])
            for scale in scales
        ]
        tried = [limbs for limbs in tried if limbs is not None]
        return self.finished(min(tried, key=self._cost)) if tried else None

    def _cost(self, limbs: _Limbs) -> float:
        thicker = limbs.protrusion / (self.longest * limbs.scale)
        change = _CHANGE * abs(np.log(limbs.scale / self.desired))
        fewer = isinstance(limbs.template, Crouched)
        return (thicker + change) / (_FEWER if fewer else 1.0)

    def limbs(self, kind: type[Template], build: Build, scale: float) -> _Limbs | None:
        """A template with fitted limbs; None, with a reason, if it cannot be built."""
        here = scaled_field(self.phi, scale)
        try:
            abducts = kind is not Crouched
            pairs = [_limb(self.animal, end, build, scale, abducts) for end in ENDS]
            template = kind("robot", Torso(size=(0.2, 0.1, 0.06)), *pairs, build)
            excess: list[float] = []
            for end in ENDS:
                template, most = fit_pair(template, end, here)
                excess += most.values()
        except DrakebotsError as error:
            self.reasons.append(str(error))
            return None
        return _Limbs(template, scale, float(np.sqrt(np.mean(np.square(excess)))))

    def finished(self, limbs: _Limbs) -> Fit:
        """The fit of a template with fitted limbs.

        It may get a tail on a joint, where there is room and no template was given.
        """
        scale, here = limbs.scale, scaled_field(self.phi, limbs.scale)
        template = replace(limbs.template, torso=_torso(limbs.template, here))
        template = fit_torso(template, here)
        if self.settings.template is None and type(template) is Upright:
            template = _with_tail(template, here)
        template = replace(template, torso=_with_struts(template, here))
        skeleton, build = template.skeleton(), template.build
        most = largest_protrusions(template, skeleton.links, here)
        out = {name: length for name, length in most.items() if length > TOLERANCE}
        mass = skeleton.mass + _SKIN_DENSITY * build.skin * self.area * scale**2
        torque = _standing_torque(skeleton, mass)
        size = " x ".join(f"{s:.2f}" for s in self.animal.size * scale)
        kind = type(template).__name__.lower()
        notes = [
            f"template {kind}, servo {build.servo.name}, surface scaled by {scale:.3g} "
            f"to {size} m; standing takes {torque:.2g} of {build.servo.effort:.3g} N m"
        ]
        if not template.torso.struts:
            notes.append("no room for a strut in the neck or the tail")
        return Fit(template, skeleton, scale, out, torque, tuple(notes))


# The limbs of a template on the lines of an animal's legs.


def _limb(animal, end, build, scale, abducts) -> Limb:
    """A limb on the line of its legs; a pair's is the mean of left and mirrored right.

    Args:
        animal, build, scale: as for :meth:`_Search.limbs`.
        end: "front" or "hind".
        abducts: whether the hip also turns about x, which takes a wider motor bay.
    """
    left, right = (animal.legs[ENDS[end][0] + side] for side in "LR")
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
    up, low = bent(hip[::2], knee[::2], ankle[::2], upper, lower)
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


# The torso, the neck and the tail of the chosen template.


def _with_tail(template: Upright, phi: Field) -> Template:
    """The template with a tail on a joint, if that fits without a thicker surface."""
    shared = {f.name: getattr(template, f.name) for f in fields(template)}
    try:
        long = fit_torso(Long(**shared), phi)
        tail = long.tail_parts().links
        torso = long.skeleton().links[:1]
        worst = max(largest_protrusions(long, (*torso, *tail), phi).values())
    except DrakebotsError:
        return template
    # Where the surface is as wide as a rump, a moving tail would not be seen.
    middle = (tail[0].p_WA + 2 * tail[0].p_WB) / 3
    widest = max(_reach(phi, middle, ray) for ray in _AROUND)
    slim = widest < template.build.fork + 2 * template.build.skin
    return long if slim and worst <= TOLERANCE else template


def _standing_torque(skeleton: Skeleton, mass: float) -> float:
    """Largest torque of a joint with a quarter of the weight on each foot [N m]."""
    force = np.array([0.0, 0.0, mass * GRAVITY / 4])
    worst = 0.0
    for sole, p_WS in zip(skeleton.soles, skeleton.sole_middles):
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
    low, high = motor_boxes(template)
    front, rear = low[:2, 0].min(), high[2:, 0].max()
    size = np.array([max(abs(front - rear) + 0.03, 0.13), 0.075, 0.06])
    # The box overlaps each motor's height by 15 mm.
    lowest = low[:, 2].max() + 0.015 - size[2] / 2
    highest = high[:, 2].min() - 0.015 + size[2] / 2
    places = np.linspace(min(lowest, highest), max(lowest, highest), 12)
    middles = np.array([[(front + rear) / 2, 0.0, z] for z in places])
    box = np.array(np.meshgrid(*[[-0.5, 0.0, 0.5]] * 3)).reshape(3, -1).T * size
    depth = phi((middles[:, None] + box).reshape(-1, 3)).reshape(len(places), -1)
    middle = middles[int(np.argmin(depth.max(axis=1)))]
    hips = (template.front.hip_height + template.hind.hip_height) / 2
    inside = template.build.skin + CLEARANCE
    wide, up, down = (max(_reach(phi, middle, ray) - inside, 0.04) for ray in _AROUND)
    return replace(
        template.torso,
        size=tuple(map(float, size)),
        centre=(float(middle[0]), float(middle[2] - hips)),
        brace=(float(1.4 * wide), float(0.7 * (up + down))),
        brace_centre=float((up - down) / 2),
    )


def _reach(phi: Field, start, along, depth=0.0, free=0.0) -> float:
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
