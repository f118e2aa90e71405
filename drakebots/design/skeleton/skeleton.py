"""A skeleton: links of boxes and plates, hinges with servos, soles; at rest.

At rest all joint angles are zero and every link's frame is parallel to the robot's
frame, whose origin is on the ground below the torso: x forward, y left, z up. A
link's origin is its joint's; the torso's is the middle of its box.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.design.skeleton.parameters import Servo
from drakebots.design.skeleton.plates import Plate

KINDS = ("shell", "servo", "payload", "rib")


@dataclass(frozen=True)
class Solid:
    """A box with a concentric cavity, fixed in a link B.

    Attributes:
        name: within its link.
        kind: "shell" printed, "servo", "payload" battery or board, "rib" bracing.
        size: outer sides (3,) [m].
        p_BG, R_BG: its frame at the box's centre, in the link.
        mass: [kg].
        cavity: sides of the cavity (3,) [m]; as long as the box or longer along a
            hole through it; zeros for none.
    """

    name: str
    kind: str
    size: np.ndarray
    p_BG: np.ndarray
    R_BG: np.ndarray
    mass: float
    cavity: np.ndarray

    @property
    def hole(self) -> np.ndarray:
        """The cavity cut off at the box (3,) [m]."""
        return np.minimum(self.cavity, self.size)

    @property
    def volume(self) -> float:
        """Of the material [m^3]."""
        return float(np.prod(self.size) - np.prod(self.hole))

    @cached_property
    def inertia(self) -> np.ndarray:
        """About the box's centre, in the link (3, 3) [kg m^2]."""
        density = self.mass / self.volume
        about_G = _box_inertia(self.size, density) - _box_inertia(self.hole, density)
        return self.R_BG @ about_G @ self.R_BG.T

    def corners(self) -> np.ndarray:
        """Of the outer box, in the link (8, 3) [m]."""
        signs = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, -1).T
        return self.p_BG + (signs * self.size) @ self.R_BG.T


def _box_inertia(size, density):
    x, y, z = np.square(size)
    return density * np.prod(size) / 12 * np.diag([y + z, x + z, x + y])


@dataclass(frozen=True)
class Link:
    """A rigid link.

    Attributes:
        name, parent: names; parent None for the torso.
        p_WA, p_WB: its axis at rest, from its joint to its far end (3,) [m].
        width, depth: of its printed section, for drawing and collision [m].
        solids: what it is made of: boxes and, inside a skin, bracing plates.
        stations: bracing rings on its axis, fractions of A to B.
        struts: further axes, pairs p_WA, p_WB at rest [m], each with two rings.
    """

    name: str
    parent: str | None
    p_WA: np.ndarray
    p_WB: np.ndarray
    width: float
    depth: float
    solids: tuple[Solid | Plate, ...]
    stations: tuple[float, ...] = ()
    struts: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    p_WO: np.ndarray | None = None

    @property
    def origin(self) -> np.ndarray:
        """Of the link's frame in the robot's at rest (3,) [m]."""
        return self.p_WA if self.p_WO is None else self.p_WO

    @property
    def length(self) -> float:
        """Of its axis [m]."""
        return float(np.linalg.norm(self.p_WB - self.p_WA))

    @cached_property
    def mass(self) -> float:
        """Of all solids [kg]."""
        return float(sum(s.mass for s in self.solids))

    @cached_property
    def com(self) -> np.ndarray:
        """p_BBcm (3,) [m]."""
        return sum(s.mass * s.p_BG for s in self.solids) / self.mass

    @cached_property
    def inertia(self) -> np.ndarray:
        """About the centre of mass (3, 3) [kg m^2]."""
        total = np.zeros((3, 3))
        for solid in self.solids:
            r = solid.p_BG - self.com
            total += solid.inertia + solid.mass * (r @ r * np.eye(3) - np.outer(r, r))
        return 0.5 * (total + total.T)

    def mass_of(self, kind: str) -> float:
        """Mass of one kind of solid [kg]."""
        return float(sum(s.mass for s in self.solids if s.kind == kind))


@dataclass(frozen=True)
class Hinge:
    """A revolute joint; angle 0 at rest.

    Attributes:
        name, parent, child: names.
        p_WJ: at rest (3,) [m].
        axis: unit vector, the same in all frames at rest (3,).
        lower, upper: limits [rad].
        servo: its motor.
    """

    name: str
    parent: str
    child: str
    p_WJ: np.ndarray
    axis: np.ndarray
    lower: float
    upper: float
    servo: Servo


@dataclass(frozen=True)
class Sole:
    """A rectangular sole with five contact patches.

    Attributes:
        foot: name, e.g. "FL".
        link: the foot's link.
        size: length, width (2,) [m].
        p_BP: front left, front right, rear left, rear right, middle, in the link
            (5, 3) [m].
    """

    foot: str
    link: str
    size: tuple[float, float]
    p_BP: np.ndarray


@dataclass(frozen=True)
class Skeleton:
    """Links, the first the torso, parents before children; hinges; soles."""

    name: str
    links: tuple[Link, ...]
    hinges: tuple[Hinge, ...]
    soles: tuple[Sole, ...]

    @cached_property
    def by_name(self) -> dict[str, Link]:
        """Links by name."""
        return {link.name: link for link in self.links}

    def link(self, name: str) -> Link:
        """A link by name.

        Raises:
            UnknownName: when there is none.
        """
        if name not in self.by_name:
            raise UnknownName("link", name, self.by_name)
        return self.by_name[name]

    @property
    def mass(self) -> float:
        """Of all links [kg]."""
        return float(sum(link.mass for link in self.links))

    @property
    def com(self) -> np.ndarray:
        """Centre of mass at rest (3,) [m]."""
        moment = sum(link.mass * (link.origin + link.com) for link in self.links)
        return moment / self.mass

    def corners(self, kinds: Iterable[str] = ("shell", "servo", "payload")):
        """Corners of the solids of some kinds, at rest.

        Returns:
            Points (n, 3) [m], the index of each one's link (n,).
        """
        kinds = set(kinds)
        points, index = [np.zeros((0, 3))], []
        for k, link in enumerate(self.links):
            for solid in link.solids:
                if solid.kind in kinds:
                    points.append(link.origin + solid.corners())
                    index += [k] * len(points[-1])
        return np.concatenate(points), np.array(index, dtype=int)

    @property
    def size(self) -> np.ndarray:
        """Of the box around everything at rest, soles on the ground (3,) [m]."""
        points, _ = self.corners(KINDS)
        high = points.max(axis=0)
        low = np.minimum(points.min(axis=0), [np.inf, np.inf, 0.0])
        return high - low


def standing_torques(skeleton: Skeleton, mass: float | None = None) -> np.ndarray:
    """Torques that hold the rest pose on four feet, static.

    Each sole carries a vertical force f at its middle P; the four are the smallest
    that balance the weight and its moments. For the links k beyond joint j

        tau_j = -axis_j . [(p_P - p_J) x f - sum_k (p_k - p_J) x m_k g z]

    Args:
        skeleton: at rest.
        mass: of the whole robot [kg], spread as the skeleton's is; the skeleton's
            by default.

    Returns:
        One a hinge (m,) [N m].

    Raises:
        InvalidInput: when a force would pull, as the centre of mass is outside
            the feet.
    """
    weight = 9.81 * (skeleton.mass if mass is None else mass)
    middle = np.array(
        [skeleton.link(s.link).origin + s.p_BP[4] for s in skeleton.soles]
    )
    arm = middle - skeleton.com
    balance = np.stack([np.ones(len(arm)), arm[:, 0], arm[:, 1]])
    force = np.linalg.pinv(balance) @ np.array([weight, 0.0, 0.0])
    if force.min() < 0:
        foot = skeleton.soles[int(np.argmin(force))].foot
        raise InvalidInput(
            f"skeleton {skeleton.name}: foot {foot} would have to pull; move the feet "
            f"or the torso's mass (centre of mass at x = {skeleton.com[0]:.3f} m)"
        )
    loads = [
        (sole.link, p, np.array([0.0, 0.0, f]))
        for sole, p, f in zip(skeleton.soles, middle, force)
    ]
    for link in skeleton.links:
        pull = np.array([0.0, 0.0, -weight * link.mass / skeleton.mass])
        loads.append((link.name, link.origin + link.com, pull))
    torque = np.zeros(len(skeleton.hinges))
    for name, p, f in loads:
        above = _ancestors(skeleton, name)
        for k, hinge in enumerate(skeleton.hinges):
            if hinge.child in above:
                torque[k] -= hinge.axis @ np.cross(p - hinge.p_WJ, f)
    return torque


def _ancestors(skeleton, name):
    names = set()
    while name is not None:
        names.add(name)
        name = skeleton.link(name).parent
    return names
