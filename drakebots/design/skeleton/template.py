"""The three skeleton templates of Fig. 6: from parameters to a skeleton.

* `Crouched`: shoulder, knee, ankle on each limb (12 joints), bent knees: beetle.
* `Long`: abduction, flexion, knee, ankle on each limb and one yaw joint of the tail
  (17 joints): lizard. The paper prints 17 without saying where; 4 x 4 + 1 lets
  each foot be placed in space and levelled.
* `Upright`: abduction, flexion, knee, ankle (16 joints): monster, cow.

The paper says only that the last two "vary in different initial poses and foot link
geometries" (section 6). Flexion, knee and ankle turn about y at rest, so that every
foot stays level in its sagittal plane.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.design.skeleton.links import (
    ABDUCTION,
    FLEXION,
    SHOULDER_AXES,
    abduction_joint,
    foot_link,
    hip_link,
    lower_link,
    sole,
    tail_joint,
    tail_link,
    torso_link,
    upper_link,
)
from drakebots.design.skeleton.parameters import Build, Limb, Tail, Torso
from drakebots.design.skeleton.skeleton import Hinge, Link, Skeleton, Sole

SIDES = {"L": 1, "R": -1}


@dataclass(frozen=True)
class LimbParts:
    """What a limb or a tail adds to a skeleton.

    Attributes:
        links, hinges: parents before children.
        sole: of its foot, None for a tail.
        mount: of its first motor on the torso: joint, middle of the servo's height,
            axis and the direction of the servo's bulk (3,) [m].
    """

    links: tuple[Link, ...]
    hinges: tuple[Hinge, ...]
    sole: Sole | None
    mount: tuple[str, np.ndarray, np.ndarray, np.ndarray] | None


@dataclass(frozen=True)
class Template(ABC):
    """A named set of semantic parameters; `skeleton()` makes the links.

    Attributes:
        name: of the robot.
        torso, front, hind: the torso and the pairs of limbs.
        build: how parts are made.
    """

    name: str
    torso: Torso
    front: Limb
    hind: Limb
    build: Build = field(default_factory=Build)

    @property
    @abstractmethod
    def joints(self) -> int:
        """Number of joints."""

    @abstractmethod
    def limb_parts(self, name: str) -> LimbParts:
        """One limb (FL, FR, RL, RR).

        Raises:
            InvalidInput: naming the link that is too short for its motor.
        """

    def tail_parts(self) -> LimbParts | None:
        """The tail, where there is one."""
        return None

    def skeleton(self) -> Skeleton:
        """Links, hinges and soles at rest.

        Raises:
            InvalidInput: naming the link that is too short for its motor.
        """
        parts = [self.limb_parts(name) for name in self.limbs]
        tail = self.tail_parts()
        parts += [] if tail is None else [tail]
        mounts = [part.mount for part in parts]
        torso = torso_link(self.build, self.torso, self.torso_centre, mounts)
        return Skeleton(
            self.name,
            (torso, *(link for part in parts for link in part.links)),
            tuple(hinge for part in parts for hinge in part.hinges),
            tuple(part.sole for part in parts if part.sole is not None),
        )

    @property
    def limbs(self) -> dict[str, tuple[Limb, int, int]]:
        """By name (FL, FR, RL, RR): its parameters, its end (+-1) and side (+-1)."""
        ends = (("F", self.front, 1), ("R", self.hind, -1))
        return {
            end + side: (limb, sign, SIDES[side])
            for end, limb, sign in ends
            for side in SIDES
        }

    @property
    def torso_centre(self) -> np.ndarray:
        """p_WO of the torso at rest (3,) [m]."""
        hips = (self.front.hip_height + self.hind.hip_height) / 2
        return np.array([self.torso.centre[0], 0.0, hips + self.torso.centre[1]])


@dataclass(frozen=True)
class Crouched(Template):
    """Three joints a limb; `shoulder` is "pitch", "yaw" or "abduction".

    With "pitch" each foot moves and stays level in its sagittal plane; the others
    cannot do both.
    """

    shoulder: str = "pitch"

    def __post_init__(self):
        if self.shoulder not in SHOULDER_AXES:
            raise UnknownName("shoulder", self.shoulder, SHOULDER_AXES)

    @property
    def joints(self) -> int:
        return 12

    def limb_parts(self, name: str) -> LimbParts:
        limb, end, side = self.limbs[name]
        hip = _hip_point(limb, side)
        axis = np.array(SHOULDER_AXES[self.shoulder], float)
        joint = f"{name}_shoulder"
        ends = ("torso", f"{name}_upper")
        limits = np.radians([-60.0, 60.0])
        hinge = Hinge(joint, *ends, hip, axis, *limits, self.build.servo)
        inward = np.array([-end, 0.0, 0.0]) if axis[0] == 0 else np.array([0, 0, 1.0])
        mount = (joint, hip, axis, inward)
        leg = _leg(self.build, name, limb, side, "torso")
        return LimbParts(leg.links, (hinge, *leg.hinges), leg.sole, mount)


@dataclass(frozen=True)
class Upright(Template):
    """Four joints a limb: abduction, flexion, knee, ankle."""

    @property
    def joints(self) -> int:
        return 16

    def limb_parts(self, name: str) -> LimbParts:
        return _four_joint_limb(self, name)


@dataclass(frozen=True)
class Long(Template):
    """Four joints a limb and a tail on a yaw joint; a long torso, short limbs."""

    tail: Tail = field(default_factory=Tail)

    @property
    def joints(self) -> int:
        return 17

    def limb_parts(self, name: str) -> LimbParts:
        return _four_joint_limb(self, name)

    def tail_parts(self) -> LimbParts:
        p_WJ = tail_joint(self.build, self.torso, self.torso_centre)
        up, forward = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
        limits = np.radians([-45.0, 45.0])
        ends = ("torso", "tail")
        hinge = Hinge("tail_yaw", *ends, p_WJ, up, *limits, self.build.servo)
        link = tail_link(self.build, self.tail, p_WJ)
        return LimbParts((link,), (hinge,), None, ("tail_yaw", p_WJ, up, forward))


def with_skeleton_mass(template: Template, mass: float) -> Template:
    """Thickens or thins the bracing rings until the skeleton weighs `mass` [kg].

    Raises:
        InvalidInput: when the links without rings weigh more, or the rings would
            be thicker than 15 mm.
    """
    skeleton = template.skeleton()
    ribs = sum(link.mass_of("rib") for link in skeleton.links)
    rest = skeleton.mass - ribs
    rib = (mass - rest) / ribs * template.build.rib
    if not 0.0005 <= rib <= 0.015:
        raise InvalidInput(
            f"{template.name}: a skeleton of {mass:g} kg needs bracing rings "
            f"{1e3 * rib:.3g} mm thick (0.5 to 15 can be made); the rest weighs "
            f"{rest:.3g} kg; change build.wall or torso.brace"
        )
    return replace(template, build=replace(template.build, rib=rib))


def _hip_point(limb: Limb, side: int) -> np.ndarray:
    return np.array([limb.x, side * limb.y, limb.hip_height])


def _four_joint_limb(template, name) -> LimbParts:
    build = template.build
    limb, end, side = template.limbs[name]
    hip = _hip_point(limb, side)
    p_WJ, p_WM = abduction_joint(build, limb, hip, end)
    rows = (
        ("abduction", "torso", f"{name}_hip", p_WJ, ABDUCTION, 30.0),
        ("flexion", f"{name}_hip", f"{name}_upper", hip, FLEXION, 60.0),
    )
    link = hip_link(build, name, p_WJ, hip, end)
    leg = _leg(build, name, limb, side, link.name)
    mount = (f"{name}_abduction", p_WM, ABDUCTION, np.array([0.0, 0.0, 1.0]))
    hinges = (*_hinges(build, name, rows), *leg.hinges)
    return LimbParts((link, *leg.links), hinges, leg.sole, mount)


def _leg(build, name, limb, side, parent) -> LimbParts:
    """Upper link, lower link and foot; knee and ankle."""
    hip = _hip_point(limb, side)
    knee = hip + limb.upper_vector(side)
    ankle = knee + limb.lower_vector()
    links = (
        upper_link(build, limb, name, parent, hip, knee),
        lower_link(build, limb, name, knee, ankle),
        foot_link(build, limb.foot, name, ankle),
    )
    rows = (
        ("knee", f"{name}_upper", f"{name}_lower", knee, FLEXION, 80.0),
        ("ankle", f"{name}_lower", f"{name}_foot", ankle, FLEXION, 80.0),
    )
    hinges = tuple(_hinges(build, name, rows))
    return LimbParts(links, hinges, sole(build, limb.foot, name), None)


def _hinges(build, limb, rows):
    for joint, parent, child, p_WJ, axis, most in rows:
        limit = float(np.radians(most))
        name = f"{limb}_{joint}"
        yield Hinge(name, parent, child, p_WJ, axis, -limit, limit, build.servo)
