"""Contact of a skinned robot with whatever else is in its scene.

Terrain and other bodies of the plant are touched by the skin's vertices and by the
robot's links, and touch each other. All of it is implicit in the coupled step, by the
laws of :mod:`drakebots.skin.coupled.laws`.

A vertex i that is about to touch a shape of a body B, at depth d with the normal n,
moves by w = du_i - J_B dq relative to it, and has the force

    f = k d n - K w,  K = (k + c/dt) n n' + mu f_n0/max(|v_t|, v_s)/dt (1 - n n')

where c counts only if d > 0, with f_n0 and v_t those at the start of the step; so
thousands of vertices cost no more than their entries in the skin's matrix, and a body
that moves one right-hand side for each of its velocities. Where they are others at its
end, as where the skin lands, the step is solved again with those. Nothing is pulled:
where a vertex would be at the end of the step, it is solved once more without it.

Rigid shapes touch by their points (corners, the centres of balls, the ends of capsules,
:func:`~drakebots.model.shape_points`), which are contact points as a foot's are; edges
against edges are not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.geometry import SceneGraphInspector
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import RigidBody
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput
from drakebots.fem import SkinState
from drakebots.fem.assembly import FemModel
from drakebots.fem.mesh import connected_pieces
from drakebots.model import bodies_of, find_body, shape_points
from drakebots.skin.coupled.collisions import SkinGround, Touched, free_surface
from drakebots.skin.coupled.driven import SceneForces
from drakebots.skin.coupled.equations import StepSolution
from drakebots.skin.coupled.glue import Glue
from drakebots.skin.coupled.laws import PatchContact, Patches, PatchLaw
from drakebots.skin.coupled.shapes import (
    RigidShape,
    body_name,
    moving,
    rigid_shapes,
    robot_numbers,
)


@dataclass(frozen=True)
class Pressed:
    """Points of bodies near shapes of others in one step, k of them.

    Attributes:
        law: their law in the axes of their contacts, without friction.
        points: number of the points that each belongs to (k,).
        shapes: number of the shape that each touches (k,).
        p_WC: positions (k, 3) [m].
    """

    law: PatchLaw
    points: np.ndarray
    shapes: np.ndarray
    p_WC: np.ndarray


@dataclass(frozen=True)
class Points:
    """Points of a body by which it touches shapes of others.

    Attributes:
        body: the body.
        owner: its name, as in :class:`~.shapes.RigidShape`.
        p_B: the points in its frame (k, 3) [m].
        radius: radius of balls around them [m].
        friction: Coulomb's coefficient.
        touch: numbers of the shapes that they may touch.
    """

    body: RigidBody
    owner: str
    p_B: np.ndarray
    radius: float
    friction: float
    touch: tuple[int, ...]


@dataclass(frozen=True)
class Scene:
    """What a skinned robot may touch, and how.

    Attributes:
        shapes: all shapes.
        nodes: vertices of the skin that may touch each shape (n,).
        points: points of bodies that may touch shapes.
        skin: law of the skin's vertices.
        links: law of the points of bodies.
    """

    shapes: tuple[RigidShape, ...]
    nodes: tuple[np.ndarray, ...]
    points: tuple[Points, ...]
    skin: SkinGround
    links: PatchContact

    def touched(
        self, plant: MultibodyPlant, context: Context, skin: SkinState, dt: float
    ) -> Touched | None:
        """Vertices that touch a shape in a step of dt [s] from the context's q, v."""
        v_q, found, law = plant.GetVelocities(context), [], self.skin
        for number, (shape, nodes) in enumerate(zip(self.shapes, self.nodes)):
            if not len(nodes):
                continue
            x, v = skin.positions[nodes], skin.velocities[nodes]
            hit, distance, n = shape.near(plant, context, x, 0.0, v, dt)
            if not len(hit):
                continue
            J = moving(plant, context, shape.body, x[hit])
            slide = v[hit] - J @ v_q
            along = np.einsum("ci,ci->c", slide, n)
            stays = np.flatnonzero(distance + dt * np.minimum(along, 0.0) < 0)
            hit, n, J, along = hit[stays], n[stays], J[stays], along[stays]
            depth, slide = -distance[stays], slide[stays] - along[:, None] * n
            # No damping before they touch, as with the contact of links.
            damping = np.where(depth > 0, law.damping, 0.0)
            mu = _both(law.friction, shape.friction)
            own = law.springs(depth, n, along, slide, dt, damping, mu)
            found.append((nodes[hit], np.full(len(hit), number), x[hit], J, *own, n))
        if not any(len(each[0]) for each in found):
            return None
        return Touched(*map(np.concatenate, zip(*found)))

    def pressed(
        self, plant: MultibodyPlant, context: Context, dt: float
    ) -> Pressed | None:
        """Points of bodies that are near shapes of others, from the context's q, v."""
        found = []
        for number, points in enumerate(self.points):
            X_WB = plant.EvalBodyPoseInWorld(context, points.body)
            p_W = X_WB.multiply(points.p_B.T).reshape(3, -1).T
            v = moving(plant, context, points.body, p_W) @ plant.GetVelocities(context)
            for other in points.touch:
                shape = self.shapes[other]
                reach = points.radius
                hit, distance, n = shape.near(plant, context, p_W, reach, v, dt)
                if not len(hit):
                    continue
                p_WC = p_W[hit] - points.radius * n
                J = moving(plant, context, points.body, p_WC)
                J -= moving(plant, context, shape.body, p_WC)
                rows = J.reshape(3 * len(hit), -1)
                numbers = np.full(len(hit), number), np.full(len(hit), other)
                mu = np.full(len(hit), _both(points.friction, shape.friction))
                found.append((rows, n, points.radius - distance, mu, *numbers, p_WC))
        if not found:
            return None
        *at, points, shapes, p_WC = map(np.concatenate, zip(*found))
        return Pressed(self.links.at(*at, dt), points, shapes, p_WC)

    def forces(
        self,
        touched: Touched | None,
        pressed: Pressed | None,
        solution: StepSolution,
        on_points: np.ndarray,
    ) -> SceneForces:
        """The forces of a solved step; those of `pressed` are given (k, 3) [N]."""
        owner, found = [shape.owner for shape in self.shapes], SceneForces()
        if touched is not None:
            found += touched.on_skin(owner, solution)
        if pressed is not None:
            A = tuple(self.points[k].owner for k in pressed.points)
            B, none = tuple(owner[k] for k in pressed.shapes), np.full(len(A), -1)
            found += SceneForces(A, B, pressed.p_WC, on_points, none)
        return found

    def check_apart(self, plant: MultibodyPlant, context: Context, x: np.ndarray):
        """Refuses a skin at x (N, 3) [m] that begins inside a shape.

        Raises:
            InvalidInput: for a vertex more than a millimetre inside.
        """
        for shape, nodes in zip(self.shapes, self.nodes):
            deep, distance, _ = shape.near(plant, context, x[nodes], -1e-3)
            if len(deep):
                raise InvalidInput(
                    f"skin: {len(deep)} vertices begin inside {shape.name!r} of body "
                    f"{shape.owner!r}, by up to {-1e3 * distance.min():.3g} mm; "
                    "move the body or the robot's start"
                )


def _both(a: float, b: float | None) -> float:
    """Friction of two materials, as Drake combines it; b None: of a alone."""
    return a if b is None else 2 * a * b / max(a + b, 1e-300)


def _touching(plant, robot, of, model, glue) -> tuple[np.ndarray, ...]:
    """Free vertices that may touch each shape: not the robots of their own piece.

    Args:
        plant, model, glue: as for :func:`scene_of`.
        robot: number of the robot of each body, 0 for none.
        of: that of the body of each shape.
    """
    mesh, nodes = model.space.mesh, free_surface(model, glue)
    count, piece = connected_pieces(mesh.tets, len(mesh.vertices))
    glued = np.zeros((plant.num_bodies(), count), bool)
    for body, rows in glue.by_body().items():
        held = glue.vertices[rows[glue.vertices[rows] < len(piece)]]
        glued[robot[int(find_body(plant, body).index())], piece[held]] = True
    glued[0] = False
    return tuple(nodes[~glued[k, piece[nodes]]] for k in of)


def scene_of(
    plant: MultibodyPlant,
    inspector: SceneGraphInspector,
    model: FemModel,
    glue: Glue,
    *,
    patches: Sequence[Patches] = (),
    skin: SkinGround = SkinGround(),
    links: PatchContact = PatchContact(),
) -> Scene | None:
    """The scene around a skin: the plant's bodies that are not its robot's.

    A skin in pieces may be on several robots, which touch each other too, and so do
    each piece and the robots that it is not glued to.

    Args:
        plant: finalized plant of the robot, with everything that it may touch.
        inspector: inspector of the plant's scene graph.
        model, glue: the skin.
        patches: contact points of links, which touch in place of their links' shapes.
        skin, links: laws of the skin's vertices and of points of bodies; friction is
            combined with that of the shape's file as Drake does.

    Returns:
        The scene; None where the plant has no other shapes.

    Raises:
        InvalidInput: for a shape without signed distances.
    """
    robot = robot_numbers(plant, glue.by_body())
    shapes = rigid_shapes(plant, inspector, bodies_of(plant))
    of = [robot[shape.body.index()] for shape in shapes]
    touching = _touching(plant, robot, of, model, glue)
    if not any(map(len, touching)):
        return None
    points = []
    for patch in patches:
        body = find_body(plant, patch.body)
        own = robot[body.index()]
        outside = tuple(k for k, other in enumerate(of) if other != own)
        at = body_name(plant, body), patch.p_BC
        points.append(Points(body, *at, 0.0, links.friction, outside))
    by_patches = {each.body.index() for each in points}
    for number, shape in enumerate(shapes):
        corners, radius = shape_points(shape.shape)
        touch = tuple(
            k
            for k, other in enumerate(shapes)
            if not 0 < of[k] == of[number]
            and not inspector.CollisionFiltered(shape.id, other.id)
            and other.body.index() != shape.body.index()
        )
        if plant.IsAnchored(shape.body):
            touch = tuple(k for k in touch if not plant.IsAnchored(shapes[k].body))
        if not len(corners) or not touch or shape.body.index() in by_patches:
            continue
        friction = links.friction if shape.friction is None else shape.friction
        p_B = shape.X_BG.multiply(corners.T).reshape(3, -1).T
        points.append(Points(shape.body, shape.owner, p_B, radius, friction, touch))
    return Scene(shapes, touching, tuple(points), skin, links)
