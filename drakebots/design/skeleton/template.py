"""The three skeleton templates of the paper's Fig. 6: from parameters to a skeleton.

* `Crouched` has a shoulder, a knee and an ankle on each limb (12 joints) and bent
  knees: the beetle.
* `Upright` has abduction, flexion, knee and ankle on each limb (16 joints): the
  monster and the cow.
* `Long` has the same four joints on each limb and one yaw joint of the tail
  (17 joints): the lizard. The paper gives 17 without saying where they are; 4 x 4 + 1
  lets each foot be placed in space and levelled.

The paper says only that the last two "vary in different initial poses and foot link
geometries" (section 6). Flexion, knee and ankle turn about y at rest, so that every
foot stays level in its sagittal plane.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from drakebots.core.checks import one_of
from drakebots.core.fields import checked
from drakebots.design.skeleton.links import (
    ABDUCTION,
    FLEXION,
    foot_link,
    foot_sole,
    hip_link,
    limb_link,
    tail_link,
    torso_link,
)
from drakebots.design.skeleton.parameters import Build, Limb, Tail, Torso
from drakebots.design.skeleton.skeleton import Hinge, Link, Skeleton, Sole

_SIDES = {"L": 1, "R": -1}
_X, _Y, _Z = np.eye(3)
_SHOULDER_AXES = {"pitch": _Y, "yaw": _Z, "abduction": _X}


@dataclass(frozen=True)
class LimbParts:
    """Parts that a limb or a tail adds to a skeleton.

    Attributes:
        links, hinges: its links and joints, parents before children.
        sole: sole of its foot; None for a tail.
        mount: its first motor, on the torso: name of the joint, middle of the servo's
            height (3,) [m], axis and direction of the servo's middle (3,).
    """

    links: tuple[Link, ...]
    hinges: tuple[Hinge, ...]
    sole: Sole | None
    mount: tuple[str, np.ndarray, np.ndarray, np.ndarray] | None


@checked("template")
class Template(ABC):
    """A named set of parameters from which :meth:`skeleton` makes the links."""

    name: str
    """Name of the robot."""
    torso: Torso
    """Parameters of the torso."""
    front: Limb
    """Parameters of the front pair of limbs."""
    hind: Limb
    """Parameters of the hind pair of limbs."""
    build: Build = field(default_factory=Build)
    """Construction of the printed parts."""

    @abstractmethod
    def limb_parts(self, name: str) -> LimbParts:
        """The parts of one limb (FL, FR, RL, RR).

        Raises:
            InvalidInput: naming the link that is too short for its motor.
        """

    def tail_parts(self) -> LimbParts | None:
        """The parts of the tail, where there is one."""
        return None

    def skeleton(self) -> Skeleton:
        """The skeleton at rest.

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
        """Parameters, end (1 front, -1 hind) and side (1 left, -1 right), by name."""
        ends = (("F", self.front, 1), ("R", self.hind, -1))
        return {
            end + side: (limb, sign, _SIDES[side])
            for end, limb, sign in ends
            for side in _SIDES
        }

    @property
    def torso_centre(self) -> np.ndarray:
        """Middle of the torso's box at rest, p_WO (3,) [m]."""
        hips = (self.front.hip_height + self.hind.hip_height) / 2
        return np.array([self.torso.centre[0], 0.0, hips + self.torso.centre[1]])


@checked("template")
class Crouched(Template):
    """Three joints on each limb: shoulder, knee, ankle."""

    shoulder: Annotated[str, one_of("shoulder", _SHOULDER_AXES)] = "pitch"
    """Axis of the shoulders, "pitch", "yaw" or "abduction". With "pitch" each foot
    moves in its sagittal plane and stays level; the others cannot do both."""

    def limb_parts(self, name: str) -> LimbParts:
        limb, end, side = self.limbs[name]
        hip = _hip_point(limb, side)
        axis = _SHOULDER_AXES[self.shoulder]
        row = ("shoulder", "torso", f"{name}_upper", hip, axis, 60.0)
        mount = (f"{name}_shoulder", hip, axis, -end * _X if axis[0] == 0 else _Z)
        leg = _leg(self.build, name, limb, side, "torso")
        hinges = (*_hinges(self.build, name, [row]), *leg.hinges)
        return LimbParts(leg.links, hinges, leg.sole, mount)


@checked("template")
class Upright(Template):
    """Four joints on each limb: abduction, flexion, knee, ankle."""

    def limb_parts(self, name: str) -> LimbParts:
        limb, end, side = self.limbs[name]
        hip = _hip_point(limb, side)
        # Abduction is inboard of the hip, and its servo inboard of that.
        p_WJ = hip - end * limb.hip * _X
        p_WM = p_WJ - end * self.build.bay[2] / 2 * _X
        rows = (
            ("abduction", "torso", f"{name}_hip", p_WJ, ABDUCTION, 30.0),
            ("flexion", f"{name}_hip", f"{name}_upper", hip, FLEXION, 60.0),
        )
        link = hip_link(self.build, name, p_WJ, hip, end)
        leg = _leg(self.build, name, limb, side, link.name)
        mount = (f"{name}_abduction", p_WM, ABDUCTION, _Z)
        hinges = (*_hinges(self.build, name, rows), *leg.hinges)
        return LimbParts((link, *leg.links), hinges, leg.sole, mount)


@checked("template")
class Long(Upright):
    """Four joints on each limb, a tail on a yaw joint; a long torso, short limbs."""

    tail: Tail = field(default_factory=Tail)
    """Parameters of the tail."""

    def tail_parts(self) -> LimbParts:
        # The motor bay is at the torso's rear end.
        behind = self.torso.size[0] / 2 + self.build.behind
        p_WJ = self.torso_centre - behind * _X
        rows = [("yaw", "torso", "tail", p_WJ, _Z, 45.0)]
        hinges = tuple(_hinges(self.build, "tail", rows))
        link = tail_link(self.build, self.tail, p_WJ)
        return LimbParts((link,), hinges, None, ("tail_yaw", p_WJ, _Z, _X))


def _hip_point(limb: Limb, side: int) -> np.ndarray:
    return np.array([limb.x, side * limb.y, limb.hip_height])


def _leg(build, name, limb, side, parent) -> LimbParts:
    """Upper link, lower link and foot; knee and ankle."""
    hip = _hip_point(limb, side)
    knee = hip + limb.upper_vector(side)
    ankle = knee + limb.lower_vector()
    upper, lower = f"{name}_upper", f"{name}_lower"
    links = (
        limb_link(build, limb, upper, parent, f"{name}_knee", hip, knee),
        limb_link(build, limb, lower, upper, f"{name}_ankle", knee, ankle),
        foot_link(build, limb.foot, name, ankle),
    )
    rows = (
        ("knee", upper, lower, knee, FLEXION, 80.0),
        ("ankle", lower, f"{name}_foot", ankle, FLEXION, 80.0),
    )
    hinges = tuple(_hinges(build, name, rows))
    return LimbParts(links, hinges, foot_sole(limb.foot, name), None)


def _hinges(build, limb, rows):
    for joint, parent, child, p_WJ, axis, most in rows:
        limit = float(np.radians(most))
        name = f"{limb}_{joint}"
        yield Hinge(name, parent, child, p_WJ, axis, -limit, limit, build.servo)
