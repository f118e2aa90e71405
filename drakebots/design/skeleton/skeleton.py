"""A skeleton at rest: links of boxes and plates, hinges with servos, soles.

At rest all joint angles are zero and the frame of every link is parallel to the
robot's, whose origin is on the ground below the torso: x forward, y left, z up. The
origin of a link is at its joint, that of the torso in the middle of its box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import manifold3d as m
import numpy as np

from drakebots.core.errors import check_names
from drakebots.core.lazy import late
from drakebots.design.geometry import Surface, distances, to_manifold, to_surface
from drakebots.design.skeleton.parameters import Servo

trimesh = late("trimesh")


@dataclass(frozen=True)
class Solid:
    """A box with a concentric cavity, fixed in a link B.

    Attributes:
        name: its name within the link.
        kind: "shell" (printed), "servo", "payload" (battery, board) or "rib" (bracing).
        size: outer sides of the box (3,) [m].
        p_BG, R_BG: pose in the link of the frame G at the box's centre.
        mass: its mass [kg].
        cavity: sides of the cavity (3,) [m]: zeros for none; as long as the box or
            longer in the direction of a hole through it.
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
        """Sides of the part of the cavity within the box (3,) [m]."""
        return np.minimum(self.cavity, self.size)

    @property
    def volume(self) -> float:
        """Volume of the material [m^3]."""
        return float(np.prod(self.size) - np.prod(self.hole))

    @property
    def p_BGcm(self) -> np.ndarray:
        """Its centre of mass in the link (3,) [m]."""
        return self.p_BG

    @cached_property
    def inertia(self) -> np.ndarray:
        """Inertia about its centre of mass, in the link's axes (3, 3) [kg m^2]."""
        density = self.mass / self.volume
        about_G = _box_inertia(self.size, density) - _box_inertia(self.hole, density)
        return self.R_BG @ about_G @ self.R_BG.T

    def boxes(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Sizes and middles, in the solid's frame, of boxes that fill it [m].

        These are the four sides around a hole that goes through, else the outer box.
        """
        through = np.flatnonzero((self.cavity >= self.size) & (self.cavity > 0))
        if not through.size:
            return [(self.size, np.zeros(3))]
        a, b = (i for i in range(3) if i != through[0])
        sides = []
        for i, j, full in ((a, b, True), (b, a, False)):
            thick = (self.size[i] - self.hole[i]) / 2
            for sign in (1, -1):
                size, p = self.size.copy(), np.zeros(3)
                size[i] = thick
                if not full:
                    size[j] = self.hole[j]
                p[i] = sign * (self.size[i] - thick) / 2
                sides.append((size, p))
        return sides

    def corners(self) -> np.ndarray:
        """Corners of the outer box, in the link (8, 3) [m]."""
        signs = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, -1).T
        return self.p_BG + (signs * self.size) @ self.R_BG.T

    def placed(self, body: m.Manifold, p_GV: Sequence[float]) -> m.Manifold:
        """A body from the solid's frame, moved by p_GV (3,) [m] there, in the link."""
        X_BV = np.column_stack([self.R_BG, self.p_BG + self.R_BG @ p_GV])
        return body.transform(X_BV)

    def box(self, size: Sequence[float], p_GV: Sequence[float] = (0, 0, 0)):
        """A box with its middle at p_GV in the solid's frame, in the link [m]."""
        return self.placed(m.Manifold.cube(np.array(size).tolist(), True), p_GV)

    def body(self) -> m.Manifold:
        """Union of :meth:`boxes`, as a solid in the link [m]."""
        cubes = [
            m.Manifold.cube(size.tolist(), True).translate(p_GV.tolist())
            for size, p_GV in self.boxes()
        ]
        body = m.Manifold.batch_boolean(cubes, m.OpType.Add)
        return body.transform(np.column_stack([self.R_BG, self.p_BG]))

    def distance(self, p_B: np.ndarray) -> np.ndarray:
        """Distances of points (n, 3) from the box, its hole filled; 0 inside (n,)."""
        away = np.abs((p_B - self.p_BG) @ self.R_BG) - self.size / 2
        return np.linalg.norm(np.maximum(away, 0.0), axis=1)


def _box_inertia(size, density):
    x, y, z = np.square(size)
    return density * np.prod(size) / 12 * np.diag([y + z, x + z, x + y])


@dataclass(frozen=True)
class Trimmed(Solid):
    """Rest of a box where the skin takes away a part; see :func:`trimmed`.

    Its size, pose and cavity are still those of the box, around which everything is
    arranged; mass, centre of mass and inertia are those of what is left.

    Attributes:
        shape: the closed surface of what is left, in the link [m].
    """

    shape: Surface

    @cached_property
    def _mesh(self):
        """Its surface, as a body with a density of 1, about p_BG."""
        x, f = self.shape.vertices - self.p_BG, self.shape.triangles
        return trimesh.Trimesh(x, f, process=False)

    @property
    def volume(self) -> float:
        """Volume of what is left [m^3]."""
        return float(self._mesh.volume)

    @property
    def p_BGcm(self) -> np.ndarray:
        """Its centre of mass in the link (3,) [m]."""
        return self.p_BG + self._mesh.center_mass

    @property
    def inertia(self) -> np.ndarray:
        """Inertia about its centre of mass, in the link's axes (3, 3) [kg m^2]."""
        return self.mass / self.volume * self._mesh.moment_inertia

    def surface(self) -> Surface:
        """Its closed surface, in the link [m]."""
        return self.shape

    def body(self) -> m.Manifold:
        """Itself as a solid, in the link [m]."""
        return to_manifold(self.shape, self.name)

    def distance(self, p_B: np.ndarray) -> np.ndarray:
        """Distances of points (n, 3) from its surface, also of points inside (n,)."""
        return distances(self.shape, p_B)


def trimmed(solid: Solid, shape: Surface) -> Trimmed:
    """Rest of a solid, of the same material.

    Args:
        solid: the solid.
        shape: closed surface of what is left, in the link [m].
    """
    base = {f.name: getattr(solid, f.name) for f in fields(Solid)}
    whole = Trimmed(**base, shape=shape)
    return replace(whole, mass=solid.mass * whole.volume / solid.volume)


@dataclass(frozen=True)
class Plate:
    """A flat printed plate of any outline fixed in a link B: a trimmed bracing ring.

    Attributes:
        name: its name within the link.
        contours: contours of its section in the x-y plane of its frame G, outlines
            counterclockwise, holes clockwise (n, 2) [m]; G is at the centroid.
        thickness: thickness along G's z, half of it on each side [m].
        p_BG, R_BG: pose in the link of its frame G, at its centre of mass.
        mass: its mass [kg].
        kind: "rib" (bracing).
    """

    name: str
    contours: tuple[np.ndarray, ...]
    thickness: float
    p_BG: np.ndarray
    R_BG: np.ndarray
    mass: float
    kind: str = "rib"

    @cached_property
    def area(self) -> float:
        """Area of the section [m^2]."""
        return _section_moments(self.contours)[0]

    @property
    def volume(self) -> float:
        """Volume of the plate [m^3]."""
        return self.area * self.thickness

    p_BGcm = Solid.p_BGcm

    @cached_property
    def inertia(self) -> np.ndarray:
        """Inertia about the centre of mass, in the link's axes (3, 3) [kg m^2]."""
        area, _, second = _section_moments(self.contours)
        xx, yy, xy = second * self.mass / area
        zz = self.mass * self.thickness**2 / 12
        about_G = np.array([[yy + zz, -xy, 0], [-xy, xx + zz, 0], [0, 0, xx + yy]])
        return self.R_BG @ about_G @ self.R_BG.T

    @cached_property
    def size(self) -> np.ndarray:
        """Sides of the box about G's origin that contains the plate (3,) [m]."""
        half = np.abs(np.concatenate(self.contours)).max(axis=0)
        return np.array([*(2 * half), self.thickness])

    def corners(self) -> np.ndarray:
        """Vertices of the contours on both faces, in the link (2 n, 3) [m]."""
        flat = np.concatenate(self.contours)
        sides = [np.column_stack([flat, np.full(len(flat), s)]) for s in (-0.5, 0.5)]
        p_G = np.concatenate(sides) * [1.0, 1.0, self.thickness]
        return self.p_BG + p_G @ self.R_BG.T

    def surface(self) -> Surface:
        """The plate's closed surface, in the link [m]."""
        return to_surface(self.body())

    def body(self, grow: float = 0.0) -> m.Manifold:
        """The plate as a solid, in the link [m].

        Args:
            grow: distance by which it is enlarged on every side [m].
        """
        flat = self._section()
        if grow:
            flat = flat.offset(1e3 * grow, m.JoinType.Miter)
        height = self.thickness + 2 * grow
        prism = flat.extrude(1e3 * height).translate([0, 0, -5e2 * height])
        return prism.transform(np.column_stack([1e-3 * self.R_BG, self.p_BG]))

    def pieces(self) -> list[tuple[np.ndarray, list[np.ndarray]]]:
        """Outline and holes of each connected piece of the section (n, 2) [m]."""
        found = []
        for piece in self._section().decompose():
            loops = [np.array(c) / 1e3 for c in piece.to_polygons()]
            loops.sort(key=lambda c: -_section_moments((c,))[0])
            found.append((loops[0], loops[1:]))
        return found

    def _section(self):
        # In mm, as the library's 2D operations round to 1e-8 of the unit.
        return m.CrossSection([1e3 * c for c in self.contours])

    def distance(self, p_B: np.ndarray) -> np.ndarray:
        """Distance of points (n, 3) of the link from the plate (n,) [m]; 0 inside."""
        p_G = (np.asarray(p_B, float) - self.p_BG) @ self.R_BG
        across = np.maximum(np.abs(p_G[:, 2]) - self.thickness / 2, 0.0)
        return np.hypot(_distance_in_plane(self.contours, p_G[:, :2]), across)


def plate(name, contours, thickness, p_BC, R_BC, density) -> Plate:
    """A plate of a material.

    Args:
        name: its name within the link.
        contours: see :class:`Plate`, but in the frame C.
        thickness: its thickness [m].
        p_BC, R_BC: pose in the link of a frame C whose x-y plane is the plate's middle.
        density: density of the material [kg/m^3].
    """
    area, middle, _ = _section_moments(contours)
    about = tuple(np.asarray(c, float) - middle for c in contours)
    p_BG = p_BC + R_BC[:, :2] @ middle
    mass = float(density * area * thickness)
    return Plate(name, about, float(thickness), p_BG, R_BC, mass)


def _section_moments(contours) -> tuple[float, np.ndarray, np.ndarray]:
    """Area [m^2], centroid (2,) [m], integrals of x^2, y^2 and x y (3,) [m^4].

    They are about the origin, by Green's theorem over the edges of the contours.
    """
    area, first, second = 0.0, np.zeros(2), np.zeros(3)
    for contour in contours:
        x, y = contour.T
        u, v = np.roll(x, -1), np.roll(y, -1)
        cross = x * v - u * y
        area += cross.sum() / 2
        first += [cross @ (x + u) / 6, cross @ (y + v) / 6]
        second += [
            cross @ (x * x + x * u + u * u) / 12,
            cross @ (y * y + y * v + v * v) / 12,
            cross @ (x * v + 2 * x * y + 2 * u * v + u * y) / 24,
        ]
    return float(area), first / area, second


def _distance_in_plane(contours, points: np.ndarray) -> np.ndarray:
    """Distance of points (n, 2) from a section (n,) [m]; 0 inside it."""
    best = np.full(len(points), np.inf)
    turns = np.zeros(len(points), int)
    for contour in contours:
        for a, b in zip(contour, np.roll(contour, -1, axis=0)):
            d, r = b - a, points - a
            s = np.clip(r @ d / max(d @ d, 1e-30), 0, 1)
            away = r - s[:, None] * d
            best = np.minimum(best, np.einsum("ni,ni->n", away, away))
            left = d[0] * r[:, 1] - d[1] * r[:, 0]
            up = (a[1] <= points[:, 1]) & (points[:, 1] < b[1]) & (left > 0)
            down = (b[1] <= points[:, 1]) & (points[:, 1] < a[1]) & (left < 0)
            turns += up.astype(int) - down.astype(int)
    return np.where(turns > 0, 0.0, np.sqrt(best))


@dataclass(frozen=True)
class Link:
    """A rigid link.

    Attributes:
        name: its name.
        parent: name of its parent; None for the torso.
        p_WA, p_WB: ends of its axis at rest, A at its joint (3,) [m].
        solids: its boxes and, inside a skin, its bracing plates.
        stations: places of the bracing rings on its axis, from 0 at A to 1 at B.
        struts: ends of its struts at rest (3,) [m]; each carries two rings.
        p_WO: origin of its frame at rest (3,) [m]; A by default.
    """

    name: str
    parent: str | None
    p_WA: np.ndarray
    p_WB: np.ndarray
    solids: tuple[Solid | Plate, ...]
    stations: tuple[float, ...] = ()
    struts: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    p_WO: np.ndarray | None = None

    @property
    def origin(self) -> np.ndarray:
        """Origin of the link's frame at rest (3,) [m]."""
        return self.p_WA if self.p_WO is None else self.p_WO

    @property
    def length(self) -> float:
        """Length of its axis [m]."""
        return float(np.linalg.norm(self.p_WB - self.p_WA))

    @cached_property
    def mass(self) -> float:
        """Mass of all solids [kg]."""
        return float(sum(s.mass for s in self.solids))

    @cached_property
    def com(self) -> np.ndarray:
        """Centre of mass in the link, p_BBcm (3,) [m]."""
        return sum(s.mass * s.p_BGcm for s in self.solids) / self.mass

    @cached_property
    def inertia(self) -> np.ndarray:
        """Inertia about the centre of mass (3, 3) [kg m^2]."""
        total = np.zeros((3, 3))
        for solid in self.solids:
            r = solid.p_BGcm - self.com
            total += solid.inertia + solid.mass * (r @ r * np.eye(3) - np.outer(r, r))
        return 0.5 * (total + total.T)

    def mass_of(self, kind: str) -> float:
        """Mass of the solids of one kind [kg]."""
        return float(sum(s.mass for s in self.solids if s.kind == kind))


@dataclass(frozen=True)
class Hinge:
    """A revolute joint, whose angle is 0 at rest.

    Attributes:
        name: its name.
        parent, child: names of the links it joins.
        p_WJ: its position at rest (3,) [m].
        axis: unit vector of its axis, the same in all frames at rest (3,).
        lower, upper: limits of its angle [rad].
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
        foot: name of the foot, e.g. "FL".
        link: name of the foot's link.
        size: length and width (2,) [m].
        p_BP: the patches in the link: front left, front right, rear left, rear right,
            middle (5, 3) [m].
    """

    foot: str
    link: str
    size: tuple[float, float]
    p_BP: np.ndarray


@dataclass(frozen=True)
class Skeleton:
    """The links, joints and soles of a robot at rest.

    Attributes:
        name: name of the robot.
        links: the links, the torso first and parents before children.
        hinges: the joints.
        soles: the soles of the feet.
    """

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
        check_names("link", [name], self.by_name)
        return self.by_name[name]

    @property
    def sole_middles(self) -> list[np.ndarray]:
        """Middles of the soles at rest (3,) [m]."""
        return [self.link(sole.link).origin + sole.p_BP[4] for sole in self.soles]

    @property
    def mass(self) -> float:
        """Mass of all links [kg]."""
        return float(sum(link.mass for link in self.links))

    def corners(self, kinds: Iterable[str] = ("shell", "servo", "payload")):
        """Corners of the solids of some kinds, at rest.

        Returns:
            The corners (n, 3) [m], and the index of the link of each (n,).
        """
        kinds = set(kinds)
        points, index = [np.zeros((0, 3))], []
        for k, link in enumerate(self.links):
            for solid in link.solids:
                if solid.kind in kinds:
                    points.append(link.origin + solid.corners())
                    index += [k] * len(points[-1])
        return np.concatenate(points), np.array(index, dtype=int)

    def solids(self, kind: type = object) -> list[tuple[Link, Any]]:
        """All solids, or those of a kind, as Plate or Trimmed, with their links."""
        pairs = [(link, solid) for link in self.links for solid in link.solids]
        return [(link, solid) for link, solid in pairs if isinstance(solid, kind)]

    def with_solids(self, of: Callable[[Link], Iterable[Any]]) -> Skeleton:
        """The skeleton with the solids that a function gives for each link."""
        links = (replace(link, solids=tuple(of(link))) for link in self.links)
        return replace(self, links=tuple(links))

    def hinge_columns(
        self, links: Sequence[str], p: np.ndarray, joints: Sequence[str]
    ) -> np.ndarray:
        """Velocities of points by those of m hinges (3 g, m), at rest.

        They are a x (p - p_J) for the hinges between the base and the link of a point,
        with the hinge's axis a through p_J, and 0 for all others.

        Args:
            links: the link of each point (g,).
            p: the points (g, 3) [m].
            joints: names of the hinges (m,).
        """
        hinges = {hinge.name: hinge for hinge in self.hinges}
        owner, J = np.array(links), np.zeros((len(p), 3, len(joints)))
        for name in dict.fromkeys(links):
            rows, above, link = owner == name, set(), name
            while link is not None:
                above.add(link)
                link = self.by_name[link].parent
            for k, joint in enumerate(joints):
                if (hinge := hinges[joint]).child in above:
                    J[rows, :, k] = np.cross(hinge.axis, p[rows] - hinge.p_WJ)
        return J.reshape(3 * len(p), -1)
