"""Explicit penalty contact: ground, skeleton and the skin with itself.

As in the paper (section 4.2), contact enters a step as forces at its start:
a spring k along the normal, a damper c against approach, and Coulomb friction
mu f_n, viscous at rest. Explicit forces are stable only with a stiffness below
about m/dt^2 of the vertices they act on; :func:`stable_penalty` keeps to that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.fem.assembly import FemModel
from drakebots.fem.collision_kernels import grid, nearest
from drakebots.fem.mesh import surface_triangles

MAX_CELLS = 2_000_000


@dataclass(frozen=True)
class Penalty:
    """Numbers of a penalty contact; :func:`stable_penalty` chooses them.

    Attributes:
        stiffness: force a depth at each vertex [N/m].
        damping: force a speed of approach [N s/m].
        friction: Coulomb's coefficient.
        slip_damping: friction is min(friction f_n, slip_damping speed), so that an
            explicit step does not turn the sliding round [N s/m]; `damping` when
            left out.

    Raises:
        InvalidInput: for a value outside its range.
    """

    stiffness: float
    damping: float = 0.0
    friction: float = 0.0
    slip_damping: float | None = None

    def __post_init__(self):
        if self.slip_damping is None:
            object.__setattr__(self, "slip_damping", self.damping)
        if not (np.isfinite(self.stiffness) and self.stiffness > 0):
            raise InvalidInput(f"contact stiffness {self.stiffness} N/m must be > 0")
        for name in ("damping", "friction", "slip_damping"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise InvalidInput(f"contact {name} {getattr(self, name)} must be >= 0")
        if self.friction > 0 and self.slip_damping == 0:
            raise InvalidInput(
                "contact friction needs a slip_damping > 0 N s/m; see stable_penalty"
            )

    def forces(self, depth, normal, velocity):
        """Forces (n, 3) [N] on points this deep (n,) [m], 0 where depth <= 0.

        Args:
            depth: of penetration (n,) [m].
            normal: unit, the way out (n, 3).
            velocity: against the other side (n, 3) [m/s].
        """
        speed = np.einsum("ij,ij->i", velocity, normal)
        push = np.maximum(self.stiffness * depth - self.damping * speed, 0.0)
        push = np.where(depth > 0, push, 0.0)
        slide = velocity - speed[:, None] * normal
        fast = np.maximum(np.linalg.norm(slide, axis=1), 1e-300)
        drag = np.minimum(self.slip_damping, self.friction * push / fast)
        return push[:, None] * normal - drag[:, None] * slide


def stable_penalty(model: FemModel, dt: float, friction: float = 0.0) -> Penalty:
    """The stiffest contact explicit steps of dt stay stable with.

    With m the lightest node: stiffness m/(4 dt^2), dampings m/(2 dt). Below the
    speed at which slip_damping gives friction f_n, about
    friction f_n 2 dt/m, the contact creeps instead of sticking.
    """
    if not (np.isfinite(dt) and dt > 0):
        raise InvalidInput(f"contact: time step {dt} s must be > 0")
    mass = float(model.node_mass[model.node_mass > 0].min())
    return Penalty(mass / dt**2 / 4, mass / dt / 2, friction)


def ground_forces(
    x: np.ndarray,
    v: np.ndarray,
    penalty: Penalty,
    *,
    height: float = 0.0,
    nodes: np.ndarray | None = None,
) -> np.ndarray:
    """Forces of the plane z = height on the nodes (N, 3) [N].

    Args:
        x, v: positions [m] and velocities [m/s] (N, 3).
        penalty: stiffness, damping, friction.
        height: of the ground [m].
        nodes: those that may touch; all by default.
    """
    forces = np.zeros_like(x)
    ids = np.flatnonzero(x[:, 2] < height)
    if nodes is not None:
        ids = np.intersect1d(ids, nodes)
    up = np.tile([0.0, 0.0, 1.0], (len(ids), 1))
    forces[ids] = penalty.forces(height - x[ids, 2], up, v[ids])
    return forces


@dataclass(frozen=True)
class Contacts:
    """Points that touch triangles.

    Attributes:
        points: nodes (c,).
        triangles: what each touches (c,).
        weights: barycentric, of the nearest point (c, 3).
        depth: of penetration into the margin (c,) [m].
        normal: the way out for the point (c, 3).
    """

    points: np.ndarray
    triangles: np.ndarray
    weights: np.ndarray
    depth: np.ndarray
    normal: np.ndarray


@dataclass(frozen=True)
class SurfaceContact:
    """Skin vertices against a triangle surface: another, or the skin's own.

    A vertex within `margin` outside its nearest triangle, or within `reach`
    behind it, is pushed along the outward normal; deeper ones count as lost.

    Attributes:
        points: skin nodes that may touch (p,).
        triangles: outward, of the surface (f, 3).
        penalty: stiffness, damping, friction.
        margin: distance at which contact begins [m].
        reach: greatest depth still pushed out [m]; below the wall's thickness,
            else a vertex is caught by the far side of its own wall.
        rest: for self-contact the rest positions, else None.
        clearance: for self-contact, pairs nearer than this at rest never
            touch [m].
    """

    points: np.ndarray
    triangles: np.ndarray
    penalty: Penalty
    margin: float = 0.5e-3
    reach: float = 2e-3
    rest: np.ndarray | None = None
    clearance: float = 0.0

    def __post_init__(self):
        if not (self.reach > 0 and 0 <= self.margin <= self.reach):
            raise InvalidInput(
                f"contact margin {self.margin} m and reach {self.reach} m: need "
                "0 <= margin <= reach and reach > 0"
            )
        if len(self.points) == 0 or len(self.triangles) == 0:
            raise InvalidInput("contact: no points or no triangles; name some")

    def find(self, x: np.ndarray, surface: np.ndarray | None = None) -> Contacts:
        """Contacts of skin positions x (N, 3) and surface vertices (s, 3) [m].

        Raises:
            InvalidInput: when positions are not finite.
        """
        same = surface is None
        other = np.ascontiguousarray(x if same else surface, dtype=float)
        x = np.ascontiguousarray(x, dtype=float)
        if not (np.isfinite(x).all() and np.isfinite(other).all()):
            raise InvalidInput("contact: positions are not finite")
        corners = other[self.triangles]
        span = float(np.ptp(corners, axis=1).max(axis=1).mean())
        low = corners.reshape(-1, 3).min(axis=0) - self.reach
        size = corners.reshape(-1, 3).max(axis=0) + self.reach - low
        # Cells of a triangle's size, fewer where the surface is huge.
        cell = max(span + 2 * self.reach, float(np.cbrt(size.prod() / MAX_CELLS)))
        shape = (np.floor(size / cell) + 1).astype(np.int64)
        start, items = grid(other, self.triangles, self.reach, cell, low, shape)
        rest = x if self.rest is None else self.rest
        found, weights = nearest(
            x, self.points, other, self.triangles, self.reach, cell, low, shape,
            start, items, same, rest, self.clearance,
        )  # fmt: skip
        hit = np.flatnonzero(found >= 0)
        return self._contacts(x, other, self.points[hit], found[hit], weights[hit])

    def _contacts(self, x, other, points, triangles, weights):
        a, b, c = (other[self.triangles[triangles, k]] for k in range(3))
        normal = np.cross(b - a, c - a)
        area = np.linalg.norm(normal, axis=1, keepdims=True)
        normal /= np.where(area == 0, 1.0, area)
        nearest_point = np.einsum("ck,ckj->cj", weights, np.stack([a, b, c], axis=1))
        gap = x[points] - nearest_point
        distance = np.linalg.norm(gap, axis=1)
        # On an edge or a corner which side is out follows from the triangles
        # around it: their mean normal (Baerentzen and Aanaes 2005).
        corners = self.triangles[triangles]
        around = np.einsum("ck,ckj->cj", weights, self._normals(other)[corners])
        around = np.where((weights > 0).all(axis=1)[:, None], normal, around)
        side = np.einsum("ij,ij->i", gap, around)
        # Outside, the way out is along the gap, which on an edge or a corner is
        # not the triangle's normal; the pair of forces then makes no moment.
        outside = (side > 0) & (distance > 1e-9)
        away = gap / np.where(distance > 0, distance, 1.0)[:, None]
        inside_way = np.where((distance > 1e-9)[:, None], -away, normal)
        way = np.where(outside[:, None], away, inside_way)
        depth = np.where(outside, self.margin - distance, self.margin + distance)
        keep = depth > 0
        return Contacts(
            points[keep], triangles[keep], weights[keep], depth[keep], way[keep]
        )

    def _normals(self, vertices):
        a, b, c = (vertices[self.triangles[:, k]] for k in range(3))
        face = np.repeat(np.cross(b - a, c - a), 3, axis=0)
        ids = self.triangles.ravel()
        return np.stack(
            [np.bincount(ids, face[:, k], minlength=len(vertices)) for k in range(3)],
            axis=1,
        )

    def forces(
        self,
        x: np.ndarray,
        v: np.ndarray,
        surface: np.ndarray | None = None,
        surface_velocity: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Forces on the skin's nodes (N, 3) and on the surface's (s, 3) [N].

        They add to zero. For self-contact (surface None) all are in the first,
        and the second is empty.
        """
        same = surface is None
        contacts = self.find(x, surface)
        corners = self.triangles[contacts.triangles]
        moving = v if same else surface_velocity
        velocity = v[contacts.points]
        if moving is not None:
            velocity = velocity - np.einsum(
                "ck,ckj->cj", contacts.weights, moving[corners]
            )
        push = self.penalty.forces(contacts.depth, contacts.normal, velocity)
        forces = np.zeros_like(x)
        back = forces if same else np.zeros_like(surface)
        np.add.at(forces, contacts.points, push)
        np.add.at(back, corners, -contacts.weights[:, :, None] * push[:, None])
        return forces, (np.zeros((0, 3)) if same else back)


def self_contact(
    model: FemModel, penalty: Penalty, *, margin: float, reach: float
) -> SurfaceContact:
    """The skin against itself; pairs nearer than 2 reach at rest never touch."""
    mesh = model.space.mesh
    triangles = surface_triangles(mesh)
    return SurfaceContact(
        points=np.unique(triangles),
        triangles=triangles,
        penalty=penalty,
        margin=margin,
        reach=reach,
        rest=model.rest,
        clearance=2 * reach,
    )
