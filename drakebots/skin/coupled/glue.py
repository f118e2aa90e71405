"""Glue: the vertices of a skin that are fixed to points of links.

The paper's eq. (1): x_c = R(q) r + t, with r the points on the links ("Fabricating and
controlling skinned quad-robots", section 4.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.core.checks import array, check_value, one_of, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.fem.assembly import FemModel, Space, force_and_tangent
from drakebots.fem.solver import make_solver
from drakebots.model import bodies_of, driven_joints, find_body
from drakebots.skin.coupled.shapes import body_name, rigid_shapes, robot_bodies

BETWEEN = ("refuse", "nearest", "leave")
"""Choices for a vertex near two links."""


@checked("glue")
class Glue:
    """Vertices fixed to links.

    Raises:
        InvalidInput: for an empty set, wrong shapes, points that are not finite,
            or a vertex listed twice (on two links, or on one).
    """

    vertices: Annotated[np.ndarray, array((None,), of=int, entry=whole())]
    """Distinct vertices of the mesh, or nodes of its P2 tets (g,)."""
    bodies: tuple[str, ...]
    """Link of each, "body" or "model::body" (g,)."""
    p_BG: Annotated[np.ndarray, array((None, 3), "m")]
    """Fixed points in the links' frames (g, 3) [m]."""

    def __post_init__(self):
        if not len(self.vertices):
            raise InvalidInput("glue: no vertices; name some, or use a larger radius")
        bodies = tuple(map(str, self.bodies))
        if not len(bodies) == len(self.p_BG) == len(self.vertices):
            raise InvalidInput(
                f"glue: {len(self.vertices)} vertices need as many bodies and points; "
                f"got {len(bodies)} bodies and {len(self.p_BG)} points"
            )
        _refuse_twice(self.vertices, bodies)
        object.__setattr__(self, "bodies", bodies)

    def __len__(self) -> int:
        return len(self.vertices)

    @property
    def dofs(self) -> np.ndarray:
        """Dofs 3 vertex + axis of the glued vertices (3 g,)."""
        return (3 * self.vertices[:, None] + np.arange(3)).ravel()

    def by_body(self) -> dict[str, np.ndarray]:
        """Rows of the glue on each link."""
        names, each = np.array(self.bodies), dict.fromkeys(self.bodies)
        return {name: np.flatnonzero(names == name) for name in each}


def _refuse_twice(vertices, bodies):
    unique, count = np.unique(vertices, return_counts=True)
    vertex = unique[np.argmax(count)]
    if count.max() > 1:
        on = dict.fromkeys(bodies[k] for k in np.flatnonzero(vertices == vertex))
        if len(on) == 1:
            raise InvalidInput(f"glue vertex {vertex}: listed twice; list it once")
        raise InvalidInput(
            f"glue vertex {vertex}: glued to two links, {' and '.join(map(repr, on))}; "
            "keep it on one"
        )


def glue_stiffness(model: FemModel, glue: Glue, J: np.ndarray) -> np.ndarray:
    """Static stiffness of a skin at rest against motions of its glue, without weight.

        K = J' S J,  S = A_cc - A_ci A_ii^-1 A_ic the condensed stiffness of the skin

    Args:
        model: the skin, stress-free at rest.
        glue: its glue, of g vertices.
        J: velocities of the glue per speed of each of m joints (3 g, m).

    Returns:
        K (m, m) [N m/rad], symmetric.
    """
    solver = make_solver(model.pattern, glue.dofs)
    solver.factor(rest_tangent(model))
    K = J.T @ solver.schur @ J
    solver.close()
    return (K + K.T) / 2


def rest_tangent(model: FemModel) -> np.ndarray:
    """Values of the tangent A of a free skin at rest, made definite [N/m].

    A is singular, which PARDISO refuses, so weak springs tie every node to the world.
    At 1e-7 of the diagonal they add 4 % to the torque of a knee, and with the many
    nodes of P2 tets 45 % to that of a shoulder. At 1e-11, used here, they add 4e-6 to
    the torque of a knee.
    """
    values, diagonal = force_and_tangent(model, model.rest)[1], model.pattern.diagonal
    values[diagonal] += 1e-11 * values[diagonal].mean()
    return values


def glue_midside(glue: Glue, space: Space) -> Glue:
    """Adds the mid-edge nodes of P2 tets between two vertices on one link.

    Without this the free nodes would bulge between glued vertices. The points of the
    added nodes are the middles of the edges.
    """
    row = np.full(len(space.nodes), -1)
    row[glue.vertices] = np.arange(len(glue))
    ends = row[space.midside].reshape(-1, 2)
    link = np.array(glue.bodies)
    held = np.flatnonzero((ends >= 0).all(axis=1))
    held = held[link[ends[held, 0]] == link[ends[held, 1]]]
    return Glue(
        np.concatenate([glue.vertices, len(space.mesh.vertices) + held]),
        (*glue.bodies, *link[ends[held, 0]].tolist()),
        np.concatenate([glue.p_BG, glue.p_BG[ends[held]].mean(axis=1)]),
    )


def glue_vertices(
    vertices: np.ndarray,
    plant: MultibodyPlant,
    context: Context,
    on: Mapping[str, Iterable[int]],
) -> Glue:
    """Glue from lists of vertices, in the rest pose.

    Args:
        vertices: vertices of the mesh at rest, in the world (n, 3) [m].
        plant: finalized plant in SI.
        context: context of the plant in the rest pose.
        on: vertices on each link.

    Raises:
        UnknownName: for a link that does not exist.
        InvalidInput: as :class:`Glue`; for a vertex that does not exist; for a
            skin far from the links, for example one in mm.
    """
    vertices = np.asarray(vertices, float)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    reach = np.linalg.norm(high - low)
    ids, bodies, points, origins = [], [], [], []
    for name, chosen in on.items():
        body = find_body(plant, name)
        chosen = np.array(list(chosen), dtype=np.int64)
        bad = chosen[(chosen < 0) | (chosen >= len(vertices))]
        if bad.size:
            raise InvalidInput(
                f"glue vertex {bad[0]} on {name!r}: the mesh has {len(vertices)} "
                "vertices"
            )
        X_BW = plant.EvalBodyPoseInWorld(context, body).inverse()
        away = X_BW.inverse().translation()
        gap = np.linalg.norm(away - np.clip(away, low, high))
        if gap > reach and body.index() != plant.world_body().index():
            raise InvalidInput(
                f"glue: link {name!r} lies {gap:.3g} m from a skin {reach:.3g} m "
                "across; check the rest pose and the skin's unit (m)"
            )
        origins.append(away)
        ids.append(chosen)
        bodies += [name] * len(chosen)
        points.append((X_BW.multiply(vertices[chosen].T)).T.reshape(-1, 3))
    if not bodies:
        raise InvalidInput("glue: no vertices; name some on at least one link")
    spread = np.linalg.norm(np.ptp(origins, axis=0))
    if 0 < 100 * spread < reach:
        raise InvalidInput(
            f"glue: the skin is {reach:.3g} m across, its links {spread:.3g} m apart; "
            "check the skin's unit (m)"
        )
    return Glue(np.concatenate(ids), tuple(bodies), np.concatenate(points))


def glue_by_radius(
    vertices: np.ndarray,
    plant: MultibodyPlant,
    context: Context,
    radius: float,
    *,
    bodies: Iterable[str] | None = None,
    between: str = "refuse",
) -> Glue:
    """Glues the vertices within a radius of the links' collision geometry.

    Args:
        vertices: vertices of the mesh at rest, in the world (n, 3) [m].
        plant: finalized plant in SI, connected to a SceneGraph.
        context: context of the plant within its diagram, in the rest pose.
        radius: largest distance from a link's surface [m]; vertices inside a link
            are glued too.
        bodies: links to glue to; by default all with collision geometry that joints
            connect with motors, or all bodies of a plant without motors.
        between: choice for a vertex near two links: "refuse" it, glue it to the
            "nearest", or "leave" it free, which suits joints.

    Raises:
        UnknownName: for a link or a `between` that does not exist.
        InvalidInput: for a radius that is not > 0, a plant without SceneGraph, a
            link without collision geometry, no vertex within the radius (the skin
            is far from the skeleton), or a vertex near two links.
    """
    choice = one_of("choice for a vertex between links", BETWEEN)
    check_value("between", between, choice)
    check_value("glue radius", radius, positive("m"))
    names, distance = _link_distances(vertices, plant, context, bodies)
    near = distance <= radius
    count = near.sum(axis=1)
    if not count.any():
        raise InvalidInput(
            f"glue: no vertex within {radius:g} m of the skeleton, the nearest is "
            f"{distance.min():.3g} m away; check the rest pose and the skin's unit "
            "(m), or use a larger radius"
        )
    if between == "refuse" and count.max() > 1:
        vertex = int(np.argmax(count))
        two = [names[k] for k in np.flatnonzero(near[vertex])]
        raise InvalidInput(
            f"glue vertex {vertex}: within {radius:g} m of two links, {two[0]!r} and "
            f"{two[1]!r} ({(count > 1).sum()} such vertices); use a smaller radius, "
            "or choose between (--between): nearest, or leave them free"
        )
    glued = np.flatnonzero(count == 1 if between == "leave" else count > 0)
    nearest = np.argmin(distance[glued], axis=1)
    on = {name: glued[nearest == k] for k, name in enumerate(names)}
    on = {name: ids for name, ids in on.items() if len(ids)}
    return glue_vertices(vertices, plant, context, on)


def _link_distances(vertices, plant, context, bodies):
    """Names of links, and signed distances of points to their collision geometry.

    The distances (n, links) [m] are negative inside.
    """
    port = plant.get_geometry_query_input_port()
    if not port.HasValue(context):
        raise InvalidInput(
            "glue by radius: the plant has no SceneGraph; add both to a diagram and "
            "pass the plant's context in it, or list the vertices"
        )
    inspector, links = port.Eval(context).inspector(), _links(plant, bodies)
    distance = np.full((len(vertices), len(links)), np.inf)
    for column, (name, body) in enumerate(links):
        shapes = rigid_shapes(plant, inspector, [body])
        if not shapes:
            raise InvalidInput(
                f"glue by radius: link {name!r} has no collision geometry; add one, "
                "or list its vertices"
            )
        for shape in shapes:
            each = shape.near(plant, context, np.asarray(vertices, float), np.inf)[1]
            distance[:, column] = np.minimum(distance[:, column], each)
    return [name for name, _ in links], distance


def _links(plant, bodies):
    if bodies is not None:
        return [(name, find_body(plant, name)) for name in bodies]
    # What lies around is no link: a robot is what motors move.
    moved = [body_name(plant, joint.child_body()) for joint in driven_joints(plant)]
    own = robot_bodies(plant, moved) if moved else bodies_of(plant)[1:]
    own = [body for body in own if plant.GetCollisionGeometriesForBody(body)]
    links = [(body_name(plant, body), body) for body in own]
    if not links:
        raise InvalidInput(
            "glue by radius: no link has collision geometry; list the vertices"
        )
    return links
