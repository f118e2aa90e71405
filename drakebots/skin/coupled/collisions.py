"""Contact of the skin with links, itself and the ground.

Contact with links and with the skin itself is implicit along its normal
(:mod:`drakebots.skin.coupled.touch`). The vertices that may touch are found at the
start of the step, from their distances and velocities. The opposite forces act on the
links, so momentum is conserved.

The springs of the ground are in the skin's matrix, a block for each node. On a node at
the depth d in the ground with the normal n, or about to be in it, act

    f = k d n - K du,  K = (k + c/dt) n n' + mu f_n0/max(|v_t|, v_s)/dt (1 - n n')

with f_n0 the normal force and v_t the slip at the start of the step, or at its end
where that makes another friction: where it lands, a step would be braked by what stops
it, up to h^2 k/m times mu.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context
from scipy.sparse import csc_array, csr_array

from drakebots.core.checks import non_negative, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.fem import Penalty, SkinState, SurfaceContact
from drakebots.fem.assembly import FemModel
from drakebots.fem.mesh import surface_triangles
from drakebots.skin.coupled.driven import SceneForces
from drakebots.skin.coupled.equations import StepEquations, StepSolution
from drakebots.skin.coupled.glue import Glue
from drakebots.skin.coupled.laws import CompliantGround
from drakebots.skin.coupled.shapes import RigidShape, moving, rigid_shapes, robot_bodies
from drakebots.skin.coupled.touch import Pairs, joined, near_pairs

# Links.

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
    shapes: tuple[RigidShape, ...]
    margin: np.ndarray

    def pairs(
        self, plant: MultibodyPlant, context: Context, skin: SkinState, dt: float
    ) -> list[Pairs]:
        """Vertices that may touch each shape within dt [s], at the context's q, v."""
        x, v = skin.positions[self.nodes], skin.velocities[self.nodes]
        found, v_q = [], plant.GetVelocities(context)
        for shape, margin in zip(self.shapes, self.margin):
            hit, distance, gradient = shape.near(plant, context, x, margin, v, dt)
            if not len(hit):
                continue
            J = moving(plant, context, shape.body, x[hit])
            picked = _picks(self.nodes[hit, None], np.ones((len(hit), 1)), skin)
            at = picked, -J.reshape(-1, len(v_q)), gradient, margin[hit] - distance
            found.append(near_pairs(*at, self.penalty, (skin.velocities, v_q), dt))
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


def own_pairs(contact: SurfaceContact, skin: SkinState, nv: int, dt: float) -> Pairs:
    """Vertices that may touch triangles of their own skin within dt [s]."""
    # Everything in reach is looked at, for it may come nearer in the step.
    near = replace(contact, margin=contact.reach).find(skin.positions)
    nodes = np.column_stack([near.points, contact.triangles[near.triangles]])
    weights = np.column_stack([np.ones(len(near.points)), -near.weights])
    depth, none = near.depth - contact.reach + contact.margin, np.zeros(nv)
    at = _picks(nodes, weights, skin), np.zeros((3 * len(nodes), nv)), near.normal
    return near_pairs(*at, depth, contact.penalty, (skin.velocities, none), dt)


def free_surface(model: FemModel, glue: Glue) -> np.ndarray:
    """Vertices of a skin's surface that are not glued (n,)."""
    return np.setdiff1d(np.unique(surface_triangles(model.space.mesh)), glue.vertices)


def link_contact(
    model: FemModel,
    glue: Glue,
    plant: MultibodyPlant,
    context: Context,
    penalty: Penalty,
    *,
    margin: float = 1e-3,
    bracing: Sequence[str] = (),
) -> LinkContact:
    """Contact of the skin's free surface with all links.

    Args:
        model, glue: the skin and its glue.
        plant, context: the skeleton in the rest pose.
        penalty: parameters of the contact.
        margin: distance at which contact begins [m]. For a vertex that is as near as
            that to a link at rest, contact begins SLACK below its distance there.
        bracing: names of visual shapes of the links that it also touches.

    Raises:
        InvalidInput: for a plant without SceneGraph, a shape without distances, or
            bracing that no link has.
    """
    port = plant.get_geometry_query_input_port()
    if not port.HasValue(context):
        raise InvalidInput("skin on links: the plant has no SceneGraph")
    bodies = robot_bodies(plant, glue.by_body())
    shapes = rigid_shapes(plant, port.Eval(context).inspector(), bodies, bracing)
    nodes = free_surface(model, glue)
    margins, x = np.full((len(shapes), len(nodes)), margin), model.rest[nodes]
    for row, shape in enumerate(shapes):
        near, distance, _ = shape.near(plant, context, x, margin + SLACK)
        margins[row, near] = np.minimum(margin, distance - SLACK)
    return LinkContact(penalty, nodes, shapes, margins)


# The ground, and all contacts together.

PULL = 1e-3
"""Largest pull on a vertex in terms of the largest push on another."""

RUB, RUBBED = 0.1, 3
"""Error of the friction of a piece of skin for which a step is solved again, as a share
of mu times the normal forces, and the largest number of these solves."""


@dataclass(frozen=True)
class Touched:
    """Vertices of the skin that touch the scene in one step, c of them.

    Attributes:
        nodes: the vertices (c,).
        shapes: number of the shape that each touches (c,).
        p_W: positions of the vertices at the start of the step (c, 3) [m].
        J: Jacobian in v of the touched points of bodies (c, 3, nv).
        K: stiffness (c, 3, 3) [N/m].
        push: forces without motion, k d n (c, 3) [N].
        friction: Coulomb's coefficients mu (c,).
        slip: v_s dt (c,) [m].
        normal: normals of the shapes (c, 3).
    """

    nodes: np.ndarray
    shapes: np.ndarray
    p_W: np.ndarray
    J: np.ndarray
    K: np.ndarray
    push: np.ndarray
    friction: np.ndarray
    slip: np.ndarray
    normal: np.ndarray

    def rubbed(self, solution: StepSolution, piece: np.ndarray) -> Touched:
        """The vertices with the friction of a solved step's normal forces and slips.

        They are themselves where this is, in sum over each piece of skin, the friction
        that they have, up to :data:`RUB` of its bound. Where they land, the step before
        knows nothing of it.

        Args:
            solution: the solved step.
            piece: number of each node's piece (N,).
        """
        across = np.eye(3) - self.normal[:, :, None] * self.normal[:, None, :]
        slide = np.einsum("cij,cj->ci", across, self.apart(solution))
        slide = np.linalg.norm(slide, axis=1)
        press = np.einsum("ci,ci->c", self.forces(solution), self.normal)
        bound = self.friction * np.maximum(press, 0.0)
        more = bound / np.maximum(slide, self.slip)
        more -= np.einsum("cij,cij->c", self.K, across) / 2
        of = piece[self.nodes]
        off, most = (np.bincount(of, each) for each in (np.abs(more) * slide, bound))
        more[~(off > RUB * most)[of]] = 0.0
        K = self.K + more[:, None, None] * across
        return replace(self, K=K) if more.any() else self

    def pushing(self, solution: StepSolution) -> Touched | None:
        """The vertices that are pushed in a solved step: all of them, or None.

        A pull of less than :data:`PULL` of the largest push is let be.
        """
        along = np.einsum("ci,ci->c", self.forces(solution), self.normal)
        keep = along >= -PULL * along.max()
        # A solution that is not finite fails as it is, and not without contact.
        if keep.all() or not np.isfinite(along).all():
            return self
        parts = [getattr(self, each.name)[keep] for each in fields(self)]
        return Touched(*parts) if keep.any() else None

    def add_to(self, equations: StepEquations) -> StepEquations:
        """The equations of the step with the forces on skin and bodies."""
        A, b = equations.A_d.copy(), equations.b_d.copy()
        start = equations.pattern.diagonal
        for i in range(3):
            for j in range(i, 3):
                # A row begins with its diagonal, and a node's three columns are one.
                np.add.at(A, start[3 * self.nodes + i] + j - i, self.K[:, i, j])
            np.add.at(b, 3 * self.nodes + i, self.push[:, i])
        equations, skeleton = replace(equations, A_d=A, b_d=b), equations.skeleton
        KJ = self.K @ self.J
        rows, nv = (3 * self.nodes[:, None] + np.arange(3)).ravel(), self.J.shape[2]
        at, column = np.nonzero(KJ.reshape(-1, nv))
        if not len(at):
            return equations
        values = KJ.reshape(-1, nv)[at, column]
        X = csc_array((values, (rows[at], column)), shape=(len(b), nv))
        on_bodies = np.einsum("cik,ci->k", self.J, self.push)
        JKJ = np.einsum("cik,cil->kl", self.J, KJ)
        skeleton = replace(skeleton, A=skeleton.A + JKJ, b=skeleton.b - on_bodies)
        return replace(equations, skeleton=skeleton, X=X, Z=JKJ)

    def forces(self, solution: StepSolution) -> np.ndarray:
        """Forces on the skin in a solved step (c, 3) [N], world."""
        return self.push - np.einsum("cij,cj->ci", self.K, self.apart(solution))

    def apart(self, solution: StepSolution) -> np.ndarray:
        """Motions of the vertices against what they touch (c, 3) [m]."""
        return solution.du[self.nodes] - self.J @ solution.dq

    def on_skin(self, owners: Sequence[str], solution: StepSolution) -> SceneForces:
        """Forces on the skin in a solved step by the owners of the shapes."""
        A, B = ("skin",) * len(self.nodes), tuple(owners[k] for k in self.shapes)
        return SceneForces(A, B, self.p_W, self.forces(solution), self.nodes)


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

    def touched(self, skin: SkinState, nv: int, dt: float) -> Touched | None:
        """Nodes that touch the ground in a step of dt [s] of a plant of nv speeds."""
        x, v = skin.positions, skin.velocities
        nodes, phi, n = self.terrain.near(x, dt * np.linalg.norm(v, axis=1))
        along = np.einsum("ci,ci->c", v[nodes], n)
        # A node about to leave is released, since the implicit spring would hold it.
        stays = np.flatnonzero(phi + dt * along < 0)
        if not len(stays):
            return None
        nodes, n, along = nodes[stays], n[stays], along[stays]
        slide = v[nodes] - along[:, None] * n
        law = self.springs(-phi[stays], n, along, slide, dt, self.damping)
        J, shapes = np.zeros((len(nodes), 3, nv)), np.full(len(nodes), -1)
        return Touched(nodes, shapes, x[nodes], J, *law, n)

    def springs(self, depth, normal, along, slide, dt, damping, friction=None):
        """Stiffness and push of points on what they touch.

        Args:
            depth: depths at the start of the step (c,) [m].
            normal: normals (c, 3).
            along, slide: relative velocities (c,), (c, 3) [m/s].
            dt: time step [s].
            damping: damping at each point, or at all [N s/m].
            friction: Coulomb's coefficient in place of the law's own.

        Returns:
            K, push, friction and slip of :class:`Touched`.
        """
        friction = self.friction if friction is None else friction
        press = np.maximum(self.stiffness * depth - damping * along, 0.0)
        speed = np.maximum(np.linalg.norm(slide, axis=1), self.slip_speed)
        rub = friction * press / speed / dt
        across = normal[:, :, None] * normal[:, None, :]
        K = np.reshape(self.stiffness + damping / dt, (-1, 1, 1)) * across
        K = K + rub[:, None, None] * (np.eye(3) - across)
        friction, slip = np.broadcast_arrays(friction, self.slip_speed * dt, depth)[:2]
        return K, (self.stiffness * depth)[:, None] * normal, friction, slip


def touching(equations: StepEquations, *touched: Touched | None) -> StepEquations:
    """The equations of the step with the forces of all that touches."""
    for each in touched:
        equations = equations if each is None else each.add_to(equations)
    return equations


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
            found.append(own_pairs(self.itself, skin, plant.num_velocities(), dt))
        return joined(found)
