"""What the skin touches: links, itself, the ground.

Links and the skin itself push by explicit penalty forces of the frame's start, as in
the paper (section 4.2); what pushes the skin off a link pushes the link as hard, so
momentum is kept. The ground's springs are diagonal in the skin's matrix, so they are
implicit: a node below it, or about to be, gets

    f_z = k (h - z - du_z) - c du_z/dt,  f_t = -mu f_n0/max(|v_t|, v_s) du_t/dt

with f_n0 the normal force of the frame's start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable
from pydrake.systems.framework import Context

from drakebots.errors import InvalidInput
from drakebots.fem.assembly import FemModel
from drakebots.fem.collision import Penalty, SurfaceContact
from drakebots.fem.dynamics import SkinState
from drakebots.fem.mesh import surface_triangles
from drakebots.skin.coupled import CoupledFrame
from drakebots.skin.glue import Glue
from drakebots.skin.link_shapes import LinkShape, link_shapes


@dataclass(frozen=True)
class SkinGround:
    """The plane z = height under the skin.

    Attributes:
        friction: Coulomb's mu.
        stiffness: of each node [N/m].
        damping: of each node [N s/m].
        slip_speed: v_s, below which friction is viscous [m/s].
        height: [m].

    Raises:
        InvalidInput: for a value out of range.
    """

    friction: float = 0.8
    stiffness: float = 500.0
    damping: float = 0.5
    slip_speed: float = 1e-2
    height: float = 0.0

    def __post_init__(self):
        for name in ("friction", "stiffness", "damping", "slip_speed"):
            value = getattr(self, name)
            strict = name in ("stiffness", "slip_speed")
            if not (np.isfinite(value) and (value > 0 if strict else value >= 0)):
                sign = ">" if strict else ">="
                raise InvalidInput(f"skin on ground: {name} = {value} must be {sign} 0")
        if not np.isfinite(self.height):
            raise InvalidInput(f"skin on ground: height = {self.height} must be finite")

    def add_to(self, frame: CoupledFrame, skin: SkinState, dt: float) -> CoupledFrame:
        """The frame with the ground's forces on the skin."""
        z, v = skin.positions[:, 2], skin.velocities
        nodes = np.flatnonzero(z + dt * np.minimum(v[:, 2], 0.0) < self.height)
        # A node on its way out is let go: the spring would hold it.
        nodes = nodes[z[nodes] + dt * v[nodes, 2] < self.height]
        if not len(nodes):
            return frame
        A, b = frame.A_d.copy(), frame.b_d.copy()
        diagonal = frame.pattern.diagonal
        depth = self.height - z[nodes]
        A[diagonal[3 * nodes + 2]] += self.stiffness + self.damping / dt
        b[3 * nodes + 2] += self.stiffness * depth
        push = self.stiffness * depth - self.damping * v[nodes, 2]
        speed = np.linalg.norm(v[nodes, :2], axis=1)
        rub = self.friction * np.maximum(push, 0.0)
        rub /= np.maximum(speed, self.slip_speed) * dt
        for axis in (0, 1):
            A[diagonal[3 * nodes + axis]] += rub
        return replace(frame, A_d=A, b_d=b)


@dataclass(frozen=True)
class LinkContact:
    """Skin vertices against the collision shapes of links.

    Attributes:
        penalty: of each vertex.
        nodes: vertices that may touch (n,).
        shapes: of the links.
        margin: distance at which each shape begins to push each vertex
            (shapes, n) [m]: the asked one, or less where the two are nearer at
            rest.
    """

    penalty: Penalty
    nodes: np.ndarray
    shapes: tuple[LinkShape, ...]
    margin: np.ndarray

    def forces(
        self, plant: MultibodyPlant, context: Context, skin: SkinState
    ) -> tuple[np.ndarray, np.ndarray]:
        """On the skin's nodes (N, 3) [N], and on the skeleton (nv,) [N, N m]."""
        on_skin = np.zeros_like(skin.positions)
        on_links = np.zeros(plant.num_velocities())
        x, v = skin.positions[self.nodes], skin.velocities[self.nodes]
        world = plant.world_frame()
        for shape, margin in zip(self.shapes, self.margin):
            X_WB = plant.EvalBodyPoseInWorld(context, shape.body)
            X_WG = X_WB.multiply(shape.X_BG)
            R = X_WG.rotation().matrix()
            p_G = (x - X_WG.translation()) @ R
            distance, gradient = shape.distance(p_G)
            hit = np.flatnonzero(distance < margin)
            if not len(hit):
                continue
            arm = x[hit] - X_WB.translation()
            V = plant.EvalBodySpatialVelocityInWorld(context, shape.body)
            moving = V.translational() + np.cross(V.rotational(), arm)
            f = self.penalty.forces(
                margin[hit] - distance[hit], gradient[hit] @ R.T, v[hit] - moving
            )
            np.add.at(on_skin, self.nodes[hit], f)
            J = plant.CalcJacobianSpatialVelocity(
                context,
                JacobianWrtVariable.kV,
                shape.body.body_frame(),
                np.zeros(3),
                world,
                world,
            )
            moment = np.cross(arm, f).sum(axis=0)
            on_links -= J.T @ np.concatenate([moment, f.sum(axis=0)])
        return on_skin, on_links


def link_contact(
    model: FemModel,
    glue: Glue,
    plant: MultibodyPlant,
    context: Context,
    penalty: Penalty,
    *,
    margin: float = 1e-3,
) -> LinkContact:
    """The skin's free surface against all links, posed as the skin was made.

    Raises:
        InvalidInput: as :func:`~drakebots.skin.link_shapes.link_shapes`.
    """
    shapes = link_shapes(plant, context)
    nodes = np.setdiff1d(np.unique(surface_triangles(model.space.mesh)), glue.vertices)
    x = model.rest[nodes]
    margins = np.empty((len(shapes), len(nodes)))
    for row, shape in enumerate(shapes):
        X_WG = plant.EvalBodyPoseInWorld(context, shape.body).multiply(shape.X_BG)
        p_G = (x - X_WG.translation()) @ X_WG.rotation().matrix()
        margins[row] = np.minimum(margin, shape.distance(p_G)[0])
    return LinkContact(penalty, nodes, shapes, margins)


@dataclass(frozen=True)
class Collisions:
    """All that touches the skin.

    Attributes:
        links: or None.
        itself: or None.
        ground: or None.
    """

    links: LinkContact | None = None
    itself: SurfaceContact | None = None
    ground: SkinGround | None = None

    @property
    def explicit(self) -> bool:
        """Whether there are forces of the frame's start."""
        return self.links is not None or self.itself is not None

    def forces(
        self, plant: MultibodyPlant, context: Context, skin: SkinState
    ) -> tuple[np.ndarray, np.ndarray]:
        """Explicit forces on the nodes (N, 3) [N] and the skeleton (nv,)."""
        on_skin = np.zeros_like(skin.positions)
        on_links = np.zeros(plant.num_velocities())
        if self.links is not None:
            f, tau = self.links.forces(plant, context, skin)
            on_skin += f
            on_links += tau
        if self.itself is not None:
            on_skin += self.itself.forces(skin.positions, skin.velocities)[0]
        return on_skin, on_links
