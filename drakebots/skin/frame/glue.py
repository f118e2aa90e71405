"""Which vertices of a skin are fixed to which link, and where on it.

The paper's eq. (1): x_c = R(q) r + t, r the places on the links ("Fabricating and
controlling skinned quad-robots", section 4.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.fem.assembly import Space
from drakebots.model import find_body

BETWEEN = ("refuse", "nearest", "leave")
"""What to do with a vertex near two links."""


@dataclass(frozen=True)
class Glue:
    """Vertices fixed to links.

    Attributes:
        vertices: of the mesh, or nodes of its P2 tets, distinct (g,).
        bodies: the link of each, "body" or "model::body" (g,).
        p_BG: where on that link, in its frame (g, 3) [m].

    Raises:
        InvalidInput: for an empty set, wrong shapes, places that are not finite,
            or a vertex listed twice (on two links, or on one).
    """

    vertices: np.ndarray
    bodies: tuple[str, ...]
    p_BG: np.ndarray

    def __post_init__(self):
        vertices = np.asarray(self.vertices)
        if not vertices.size:
            raise InvalidInput("glue: no vertices; name some, or take a larger radius")
        if vertices.ndim != 1 or not np.issubdtype(vertices.dtype, np.integer):
            raise InvalidInput(
                f"glue vertices: shape {vertices.shape} of {vertices.dtype}, needs "
                "integers (g,)"
            )
        places = np.ascontiguousarray(self.p_BG, dtype=float)
        bodies = tuple(map(str, self.bodies))
        if len(bodies) != len(vertices) or places.shape != (len(vertices), 3):
            raise InvalidInput(
                f"glue: {len(vertices)} vertices need as many bodies and places; got "
                f"{len(bodies)} bodies and places of shape {places.shape}"
            )
        if vertices.min() < 0:
            raise InvalidInput(f"glue vertex {vertices.min()}: must be >= 0")
        bad = np.flatnonzero(~np.isfinite(places).all(axis=1))
        if bad.size:
            raise InvalidInput(
                f"glue vertex {vertices[bad[0]]}: its place {places[bad[0]].tolist()} "
                f"on {bodies[bad[0]]!r} is not finite"
            )
        _refuse_twice(vertices, bodies)
        object.__setattr__(self, "vertices", vertices.astype(np.int64))
        object.__setattr__(self, "bodies", bodies)
        object.__setattr__(self, "p_BG", places)

    def __len__(self) -> int:
        return len(self.vertices)

    @property
    def dofs(self) -> np.ndarray:
        """Dofs 3 vertex + axis of the glued vertices (3 g,)."""
        return (3 * self.vertices[:, None] + np.arange(3)).ravel()

    def by_body(self) -> dict[str, np.ndarray]:
        """Rows of this table on each link."""
        names = np.array(self.bodies)
        return {
            name: np.flatnonzero(names == name) for name in dict.fromkeys(self.bodies)
        }


def _refuse_twice(vertices, bodies):
    seen = {}
    for vertex, body in zip(vertices.tolist(), bodies):
        other = seen.setdefault(vertex, body)
        if other != body:
            raise InvalidInput(
                f"glue vertex {vertex}: glued to two links, {other!r} and {body!r}; "
                "keep it on one"
            )
    if len(seen) < len(vertices):
        unique, count = np.unique(vertices, return_counts=True)
        raise InvalidInput(
            f"glue vertex {unique[np.argmax(count)]}: listed twice; list it once"
        )


def glue_midside(glue: Glue, space: Space) -> Glue:
    """Adds the mid-edge nodes of P2 tets between two vertices on one link.

    Free, they would bulge between glued vertices. The places of straight edges:
    half way.
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
    """Glue from lists of vertices, in a rest pose.

    Args:
        vertices: of the mesh at rest, in the world (n, 3) [m].
        plant: finalized, in SI.
        context: of the plant, posed as the skin was made.
        on: vertices on each link.

    Raises:
        UnknownName: for a link that does not exist.
        InvalidInput: as :class:`Glue`; for a vertex that does not exist; for a
            skin far from the links, as one in mm is.
    """
    vertices = np.asarray(vertices, float)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    reach = np.linalg.norm(high - low)
    ids, bodies, places, origins = [], [], [], []
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
        places.append((X_BW.multiply(vertices[chosen].T)).T.reshape(-1, 3))
    if not bodies:
        raise InvalidInput("glue: no vertices; name some on at least one link")
    spread = np.linalg.norm(np.ptp(origins, axis=0))
    if 0 < 100 * spread < reach:
        raise InvalidInput(
            f"glue: the skin is {reach:.3g} m across, its links {spread:.3g} m apart; "
            "check the skin's unit (m)"
        )
    return Glue(np.concatenate(ids), tuple(bodies), np.concatenate(places))


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
        vertices: of the mesh at rest, in the world (n, 3) [m].
        plant: finalized, in SI, beside a SceneGraph.
        context: of the plant within its diagram, posed as the skin was made.
        radius: from a link's surface; vertices inside a link count [m].
        bodies: links to glue to; all with collision geometry by default.
        between: a vertex near two links: "refuse", glue it to the "nearest", or
            "leave" it free, which suits joints.

    Raises:
        UnknownName: for a link or a `between` that does not exist.
        InvalidInput: for a radius that is not > 0, a plant without SceneGraph, a
            link without collision geometry, no vertex within the radius (the skin
            is far from the skeleton), or a vertex near two links.
    """
    if between not in BETWEEN:
        raise UnknownName("choice for a vertex between links", between, BETWEEN)
    if not (np.isfinite(radius) and radius > 0):
        raise InvalidInput(f"glue radius = {radius} m must be > 0, e.g. 0.005")
    names, distance = link_distances(vertices, plant, context, bodies)
    near = distance <= radius
    count = near.sum(axis=1)
    if not count.any():
        raise InvalidInput(
            f"glue: no vertex within {radius:g} m of the skeleton, the nearest is "
            f"{distance.min():.3g} m away; check the rest pose and the skin's unit "
            "(m), or take a larger radius"
        )
    if between == "refuse" and count.max() > 1:
        vertex = int(np.argmax(count))
        two = [names[k] for k in np.flatnonzero(near[vertex])]
        raise InvalidInput(
            f"glue vertex {vertex}: within {radius:g} m of two links, {two[0]!r} and "
            f"{two[1]!r} ({(count > 1).sum()} such vertices); take a smaller radius, "
            "or between='nearest' or 'leave'"
        )
    wanted = np.flatnonzero(count == 1 if between == "leave" else count > 0)
    nearest = np.argmin(distance[wanted], axis=1)
    return glue_vertices(
        vertices,
        plant,
        context,
        {
            name: wanted[nearest == k]
            for k, name in enumerate(names)
            if (nearest == k).any()
        },
    )


def link_distances(
    vertices: np.ndarray,
    plant: MultibodyPlant,
    context: Context,
    bodies: Iterable[str] | None = None,
) -> tuple[list[str], np.ndarray]:
    """Signed distances from points to the links' collision geometry.

    Returns:
        The links' names and the distances (n, links) [m], negative inside.

    Raises:
        As :func:`glue_by_radius`.
    """
    port = plant.get_geometry_query_input_port()
    if not port.HasValue(context):
        raise InvalidInput(
            "glue by radius: the plant has no SceneGraph beside it; add both to a "
            "diagram and pass the plant's context of it, or list the vertices"
        )
    query = port.Eval(context)
    links = _links(plant, bodies)
    of_geometry = {}
    for column, (name, body) in enumerate(links):
        shapes = plant.GetCollisionGeometriesForBody(body)
        if not shapes:
            raise InvalidInput(
                f"glue by radius: link {name!r} has no collision geometry; add one, "
                "or list its vertices"
            )
        of_geometry |= dict.fromkeys(shapes, column)
    distance = np.full((len(vertices), len(links)), np.inf)
    for row, point in enumerate(np.asarray(vertices, float)):
        for found in query.ComputeSignedDistanceToPoint(point):
            column = of_geometry.get(found.id_G)
            if column is not None:
                distance[row, column] = min(distance[row, column], found.distance)
    return [name for name, _ in links], distance


def _links(plant, bodies):
    if bodies is not None:
        return [(name, find_body(plant, name)) for name in bodies]
    links = []
    # Body 0 is the world: a ground is not a link.
    for index in map(BodyIndex, range(1, plant.num_bodies())):
        body = plant.get_body(index)
        if plant.GetCollisionGeometriesForBody(body):
            one = plant.NumBodiesWithName(body.name()) == 1
            links.append((body.name() if one else body.scoped_name().get_full(), body))
    if not links:
        raise InvalidInput(
            "glue by radius: no link has collision geometry; list the vertices"
        )
    return links
