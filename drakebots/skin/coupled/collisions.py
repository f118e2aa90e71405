"""Contact of the skin with links, itself and the ground.

Contact with links and with the skin itself is implicit along its normal
(:mod:`drakebots.skin.coupled.touch`). The vertices that may touch are found at the
start of the step, from their distances and velocities. The links are spheres, capsules,
cylinders and boxes; the opposite forces act on them, so momentum is conserved.

The springs of the ground are diagonal in the skin's matrix. On a node at height z that
is below the ground at height h, or about to be, act

    f_z = k (h - z - du_z) - c du_z/dt,  f_t = -mu f_n0/max(|v_t|, v_s) du_t/dt

with f_n0 the normal force at the start of the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydrake.geometry import Box, Capsule, Cylinder, SceneGraphInspector, Sphere
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, RigidBody
from pydrake.systems.framework import Context
from scipy.sparse import csr_array

from drakebots.core.checks import non_negative, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.fem import Penalty, SkinState, SurfaceContact
from drakebots.fem.assembly import FemModel
from drakebots.fem.mesh import surface_triangles
from drakebots.skin.coupled.equations import StepEquations
from drakebots.skin.coupled.glue import Glue
from drakebots.skin.coupled.laws import CompliantGround
from drakebots.skin.coupled.skeleton import spatial_jacobian
from drakebots.skin.coupled.touch import Pairs, joined, near_pairs

# Links.

SHAPES = (Sphere, Capsule, Cylinder, Box)


@dataclass(frozen=True)
class LinkShape:
    """A collision shape of a link.

    Attributes:
        body: the link.
        X_BG: pose of the shape in the link's frame.
        shape: one of SHAPES.
    """

    body: RigidBody
    X_BG: RigidTransform
    shape: object

    def distance(self, p_G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Signed distances (n,) [m] of points p_G (n, 3) [m], and gradients (n, 3).

        Points and gradients are in the shape's frame.
        """
        s = self.shape
        if isinstance(s, Sphere):
            return _round(p_G, s.radius())
        if isinstance(s, Capsule):
            half = s.length() / 2
            axis = np.zeros_like(p_G)
            axis[:, 2] = np.clip(p_G[:, 2], -half, half)
            return _round(p_G - axis, s.radius())
        if isinstance(s, Cylinder):
            # A rectangle in the plane of radius and z.
            r = np.linalg.norm(p_G[:, :2], axis=1)
            flat = np.stack([r, p_G[:, 2]], axis=1)
            d, g = _box(flat, np.array([s.radius(), s.length() / 2]))
            out = p_G[:, :2] / np.maximum(r, 1e-300)[:, None]
            return d, np.concatenate([g[:, :1] * out, g[:, 1:]], axis=1)
        return _box(p_G, np.asarray(s.size()) / 2)

    def in_world(
        self, plant: MultibodyPlant, context: Context, p_W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Signed distances (n,) [m] of world points and gradients (n, 3), world."""
        X_WG = plant.EvalBodyPoseInWorld(context, self.body).multiply(self.X_BG)
        R = X_WG.rotation().matrix()
        distance, gradient = self.distance((p_W - X_WG.translation()) @ R)
        return distance, gradient @ R.T


def _round(p, radius):
    length = np.linalg.norm(p, axis=1)
    return length - radius, p / np.maximum(length, 1e-300)[:, None]


def _box(p, half):
    q = np.abs(p) - half
    sign = np.where(p < 0, -1.0, 1.0)
    outside = np.maximum(q, 0.0)
    length = np.linalg.norm(outside, axis=1)
    inside = q.max(axis=1)
    nearest = np.zeros_like(p)
    nearest[np.arange(len(p)), np.argmax(q, axis=1)] = 1.0
    out = length > 0
    gradient = np.where(
        out[:, None], outside / np.maximum(length, 1e-300)[:, None], nearest
    )
    return np.where(out, length, inside), sign * gradient


def link_shapes(plant: MultibodyPlant, context: Context) -> tuple[LinkShape, ...]:
    """The collision shapes of all links except the world.

    Raises:
        InvalidInput: for a plant without SceneGraph, or a shape not in SHAPES.
    """
    port = plant.get_geometry_query_input_port()
    if not port.HasValue(context):
        raise InvalidInput("skin on links: the plant has no SceneGraph")
    inspector: SceneGraphInspector = port.Eval(context).inspector()
    found = []
    for index in map(BodyIndex, range(1, plant.num_bodies())):
        body = plant.get_body(index)
        for geometry in plant.GetCollisionGeometriesForBody(body):
            shape = inspector.GetShape(geometry)
            if not isinstance(shape, SHAPES):
                names = ", ".join(kind.__name__.lower() for kind in SHAPES)
                raise InvalidInput(
                    f"skin on links: {inspector.GetName(geometry)!r} of link "
                    f"{body.name()!r} is none of {names}; replace it, or leave "
                    "links out (--collisions itself)"
                )
            found.append(LinkShape(body, inspector.GetPoseInFrame(geometry), shape))
    return tuple(found)


SLACK = 5e-4
"""A vertex is pushed once it is nearer to a link than at rest by this much [m].

Much of a skin lies on its links. Without slack, every step would solve for a thousand
vertices that hardly move against them."""


@dataclass(frozen=True)
class LinkContact:
    """Contact of skin vertices with the collision shapes of links.

    Attributes:
        penalty: parameters of the contact at each vertex.
        nodes: vertices that may touch links (n,).
        shapes: shapes of the links.
        margin: distance at which each shape begins to push each vertex
            (shapes, n) [m].
    """

    penalty: Penalty
    nodes: np.ndarray
    shapes: tuple[LinkShape, ...]
    margin: np.ndarray

    def pairs(
        self, plant: MultibodyPlant, context: Context, skin: SkinState, dt: float
    ) -> list[Pairs]:
        """Vertices that may touch each shape within dt [s], at the context's q, v."""
        found, x = [], skin.positions[self.nodes]
        world, v_q = plant.world_frame(), plant.GetVelocities(context)
        speed = np.linalg.norm(skin.velocities[self.nodes], axis=1)
        for shape, margin in zip(self.shapes, self.margin):
            distance, gradient = shape.in_world(plant, context, x)
            X_WB = plant.EvalBodyPoseInWorld(context, shape.body)
            frame = shape.body.body_frame()
            J = spatial_jacobian(plant, context, frame, np.zeros(3), world)
            arm = x - X_WB.translation()
            V = J @ v_q
            quick = speed + np.linalg.norm(V[3:] + np.cross(V[:3], arm), axis=1)
            hit = np.flatnonzero(distance < margin + dt * quick)
            if not len(hit):
                continue
            turned = np.cross(J[:3].T[None], arm[hit, None])
            moving = J[3:] + turned.transpose(0, 2, 1)
            found.append(
                near_pairs(
                    _picks(self.nodes[hit, None], np.ones((len(hit), 1)), skin),
                    -moving.reshape(-1, len(v_q)),
                    gradient[hit],
                    margin[hit] - distance[hit],
                    self.penalty,
                    (skin.velocities, v_q),
                    dt,
                )
            )
        return found


def _picks(nodes, weights, skin):
    """The map of du (3 N,) to r weighted sums of nodes, sparse (3 r, 3 N).

    Args:
        nodes, weights: the m nodes of each sum, and their weights (r, m).
        skin: state of the skin, for N.
    """
    r, m = nodes.shape
    rows = np.repeat(np.arange(3 * r), m)
    columns = 3 * np.repeat(nodes, 3, axis=0) + np.tile(np.arange(3), r)[:, None]
    values = np.repeat(weights, 3, axis=0).ravel()
    shape = (3 * r, skin.positions.size)
    return csr_array((values, (rows, columns.ravel())), shape)


def own_pairs(
    contact: SurfaceContact, skin: SkinState, nv: int, dt: float
) -> list[Pairs]:
    """Vertices that may touch triangles of their own skin within dt [s]."""
    # Everything in reach is looked at, for it may come nearer in the step.
    near = replace(contact, margin=contact.reach).find(skin.positions)
    nodes = np.column_stack([near.points, contact.triangles[near.triangles]])
    weights = np.column_stack([np.ones(len(near.points)), -near.weights])
    pairs = near_pairs(
        _picks(nodes, weights, skin),
        np.zeros((3 * len(nodes), nv)),
        near.normal,
        near.depth - contact.reach + contact.margin,
        contact.penalty,
        (skin.velocities, np.zeros(nv)),
        dt,
    )
    return [pairs]


def link_contact(
    model: FemModel,
    glue: Glue,
    plant: MultibodyPlant,
    context: Context,
    penalty: Penalty,
    *,
    margin: float = 1e-3,
) -> LinkContact:
    """Contact of the skin's free surface with all links.

    Args:
        model, glue: the skin and its glue.
        plant, context: the skeleton in the rest pose.
        penalty: parameters of the contact.
        margin: distance at which contact begins [m]. For a vertex that is as near as
            that to a link at rest, contact begins SLACK below its distance there.

    Raises:
        InvalidInput: as for :func:`link_shapes`.
    """
    shapes = link_shapes(plant, context)
    nodes = np.setdiff1d(np.unique(surface_triangles(model.space.mesh)), glue.vertices)
    x = model.rest[nodes]
    margins = np.empty((len(shapes), len(nodes)))
    for row, shape in enumerate(shapes):
        margins[row] = np.minimum(margin, shape.in_world(plant, context, x)[0] - SLACK)
    return LinkContact(penalty, nodes, shapes, margins)


# The ground, and all contacts together.


@checked("ground")
class SkinGround(CompliantGround):
    """Compliant ground under the skin's nodes.

    Raises:
        InvalidInput: for a value out of range.
    """

    stiffness: Annotated[float, positive("N/m")] = 500.0
    """Stiffness k at each node."""
    damping: Annotated[float, non_negative("N s/m")] = 0.5
    """Damping c at each node."""
    slip_speed: Annotated[float, positive("m/s")] = 1e-2
    """Speed v_s below which friction is viscous."""

    def add_to(
        self, equations: StepEquations, skin: SkinState, dt: float
    ) -> StepEquations:
        """The equations of the step with the ground's forces on the skin."""
        z, v = skin.positions[:, 2], skin.velocities
        nodes = np.flatnonzero(z + dt * np.minimum(v[:, 2], 0.0) < self.height)
        # A node about to leave is released, since the implicit spring would hold it.
        nodes = nodes[z[nodes] + dt * v[nodes, 2] < self.height]
        if not len(nodes):
            return equations
        A, b = equations.A_d.copy(), equations.b_d.copy()
        diagonal = equations.pattern.diagonal
        depth = self.height - z[nodes]
        A[diagonal[3 * nodes + 2]] += self.stiffness + self.damping / dt
        b[3 * nodes + 2] += self.stiffness * depth
        push = self.stiffness * depth - self.damping * v[nodes, 2]
        speed = np.linalg.norm(v[nodes, :2], axis=1)
        rub = self.friction * np.maximum(push, 0.0)
        rub /= np.maximum(speed, self.slip_speed) * dt
        for axis in (0, 1):
            A[diagonal[3 * nodes + axis]] += rub
        return replace(equations, A_d=A, b_d=b)


@dataclass(frozen=True)
class Collisions:
    """All contacts of the skin.

    Attributes:
        links: contact with the links, or None.
        itself: contact with the skin itself, or None.
        ground: contact with the ground, or None.
    """

    links: LinkContact | None = None
    itself: SurfaceContact | None = None
    ground: SkinGround | None = None

    @property
    def paired(self) -> bool:
        """Whether the skin touches links or itself."""
        return self.links is not None or self.itself is not None

    def pairs(
        self, plant: MultibodyPlant, context: Context, skin: SkinState, dt: float
    ) -> Pairs | None:
        """Pairs of the skin that may touch within dt [s], or None."""
        found = []
        if self.links is not None:
            found += self.links.pairs(plant, context, skin, dt)
        if self.itself is not None:
            found += own_pairs(self.itself, skin, plant.num_velocities(), dt)
        return joined(found)
