"""Collision shapes of a plant's bodies, and distances of points from them.

Distances are Drake's, so every shape that SceneGraph has signed distances for may be
touched: half spaces, boxes, spheres, cylinders, capsules, ellipsoids, convex shapes and
closed meshes. Only points near a shape's box are looked at, at 2 microseconds a point
for the simple shapes and 20 to 45 for meshes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from pydrake.geometry import (
    GeometryId,
    Mesh,
    ProximityProperties,
    SceneGraphInspector,
    Shape,
)
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import RigidBody
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput
from drakebots.core.lazy import late
from drakebots.fem.mesh import connected_pieces
from drakebots.model import (
    bodies_of,
    find_body,
    joined_bodies,
    joints_of,
    point_jacobian,
)
from drakebots.multibody import Distances

trimesh = late("trimesh")


@dataclass(frozen=True)
class RigidShape:
    """A collision shape of a body.

    Attributes:
        name: name of the shape.
        id: its geometry in the plant's scene graph.
        body: the body.
        owner: name of the body, with its model where others have the same.
        X_BG: pose of the shape in the body's frame.
        shape: the shape.
        friction: Coulomb's coefficient that its file gives, or None.
        alone: its distances.
    """

    name: str
    id: GeometryId
    body: RigidBody
    owner: str
    X_BG: RigidTransform
    shape: Shape
    friction: float | None
    alone: Distances

    def near(
        self,
        plant: MultibodyPlant,
        context: Context,
        p_W: np.ndarray,
        reach: float | np.ndarray,
        v_W: np.ndarray | None = None,
        dt: float = 0.0,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points that are nearer to the shape than `reach`, or may come so near.

        Args:
            plant, context: the body's plant.
            p_W: points (n, 3) [m].
            reach: one signed distance, or one for each point (n,) [m].
            v_W, dt: velocities of the points (n, 3) [m/s] and a time [s], in which
                points and body go on straight; without them they rest.

        Returns:
            The near ones of the points (k,), their signed distances (k,) [m], negative
            inside, and the distances' gradients in the world (k, 3).
        """
        X_WB = plant.EvalBodyPoseInWorld(context, self.body)
        V = plant.EvalBodySpatialVelocityInWorld(context, self.body)
        X_WG, reach = X_WB @ self.X_BG, np.broadcast_to(reach, len(p_W))
        rows = np.arange(len(p_W))
        if self.alone.box is not None and len(rows):
            # First by a ball around the shape: most points of a skin are far away.
            p_WC = X_WG @ self.alone.box.pose().translation()
            radius, turn = np.linalg.norm(self.alone.box.half_width()), V.rotational()
            arm = np.linalg.norm(p_WC - X_WB.translation()) + radius
            spin, quick = dt * np.linalg.norm(turn), np.linalg.norm(V.translational())
            if v_W is not None:
                quick += np.sqrt(_squares(v_W).max())
            most = max(radius + reach.max() + dt * quick + spin * arm, 0.0)
            most = most / (1 - spin) if spin < 0.5 else np.inf
            rows = np.flatnonzero(_squares(p_W - p_WC) < most**2)
        p, reach = p_W[rows], reach[rows]
        if v_W is not None:
            arm = p - X_WB.translation()
            own = V.translational() + np.cross(V.rotational(), arm)
            quick = np.linalg.norm(v_W[rows], axis=1) + np.linalg.norm(own, axis=1)
            reach = reach + dt * quick
        R = X_WG.rotation().matrix()
        p_G = (p - X_WG.translation()) @ R
        some = np.flatnonzero(self.alone.beside_box(p_G) < reach)
        if not len(some):
            return some, np.zeros(0), np.zeros((0, 3))
        distance, gradient = self.alone(p_G[some])
        hit = distance < reach[some]
        return rows[some[hit]], distance[hit], gradient[hit] @ R.T


def _squares(rows: np.ndarray) -> np.ndarray:
    """Squared lengths (n,) of rows (n, 3)."""
    return np.einsum("ij,ij->i", rows, rows)


def moving(
    plant: MultibodyPlant, context: Context, body: RigidBody, p_W: np.ndarray
) -> np.ndarray:
    """Jacobians in v (k, 3, nv) of world points (k, 3) that move with a body."""
    X_BW = plant.EvalBodyPoseInWorld(context, body).inverse()
    p_B = np.ascontiguousarray(X_BW.multiply(p_W.T).reshape(3, -1))
    J = point_jacobian(plant, context, body.body_frame(), p_B)
    return J.reshape(len(p_W), 3, -1)


def body_name(plant: MultibodyPlant, body: RigidBody) -> str:
    """Name of a body, with its model where others have the same."""
    one = plant.NumBodiesWithName(body.name()) == 1
    return body.name() if one else body.scoped_name().get_full()


def robot_bodies(plant: MultibodyPlant, names: Iterable[str]) -> list[RigidBody]:
    """The bodies that joints connect with named ones, without the world."""
    number = robot_numbers(plant, names)
    return [body for body in bodies_of(plant)[1:] if number[body.index()]]


def robot_numbers(plant: MultibodyPlant, names: Iterable[str]) -> np.ndarray:
    """Of each body (n,), the number > 0 of its robot, 0 for what lies around.

    Robots are the bodies that joints connect with named ones, without the world.
    """
    ends = joined_bodies(joints_of(plant))
    # The world, body 0, connects nothing, and so has the tree 0.
    _, tree = connected_pieces(ends[ends.all(axis=1)], plant.num_bodies())
    named = [tree[find_body(plant, name).index()] for name in names]
    return np.where(np.isin(tree, named), tree, 0)


def rigid_shapes(
    plant: MultibodyPlant,
    inspector: SceneGraphInspector,
    bodies: Iterable[RigidBody],
    visual: Sequence[str] = (),
) -> tuple[RigidShape, ...]:
    """The collision shapes of bodies, and their visual shapes of some names.

    Raises:
        InvalidInput: for a shape without signed distances, or if no body has a visual
            shape of these names.
    """
    found, bodies = [], list(bodies)
    drawn = {
        body.index(): [
            one
            for one in plant.GetVisualGeometriesForBody(body)
            if inspector.GetName(one).rpartition("::")[2] in visual
        ]
        for body in bodies
    }
    if visual and not any(drawn.values()):
        raise InvalidInput(
            f"skin on bracing: no link has a visual shape named {' or '.join(visual)}"
        )
    for body in bodies:
        for id in plant.GetCollisionGeometriesForBody(body) + drawn[body.index()]:
            shape, name = inspector.GetShape(id), inspector.GetName(id)
            owner, alone = body_name(plant, body), Distances(shape, _pieces(shape))
            open_mesh = isinstance(shape, Mesh) and not _encloses(shape)
            if open_mesh or not len(alone(np.zeros((1, 3)))[0]):
                raise InvalidInput(
                    f"skin: no signed distance from {name!r} of body {owner!r}, a "
                    f"{type(shape).__name__}; make it convex, or a closed mesh"
                )
            X_BG = inspector.GetPoseInFrame(id)
            mu = _friction(inspector.GetProximityProperties(id))
            found.append(RigidShape(name, id, body, owner, X_BG, shape, mu, alone))
    return tuple(found)


def _friction(given: ProximityProperties | None) -> float | None:
    """Coulomb's coefficient of sliding that a shape's file gives, if any."""
    key = "material", "coulomb_friction"
    if given is None or not given.HasProperty(*key):
        return None
    return given.GetProperty(*key).dynamic_friction()


def _encloses(mesh: Mesh) -> bool:
    """Whether a mesh encloses a volume. Drake measures distances from any, and takes
    all that lies behind an open one, and beside it, to be inside."""
    # A VTK file is of tets.
    return mesh.source().extension() == ".vtk" or _surface(mesh).is_watertight


def _pieces(shape: Shape) -> list[tuple[np.ndarray, np.ndarray]]:
    """Boxes around the pieces of a mesh, as middles and half sizes [m]."""
    if not isinstance(shape, Mesh) or shape.source().extension() == ".vtk":
        return []
    bounds = [one.bounds for one in _surface(shape).split(only_watertight=False)]
    corners = (np.sort(each * shape.scale3(), axis=0) for each in bounds)
    return [((low + high) / 2, (high - low) / 2) for low, high in corners]


def _surface(mesh: Mesh) -> trimesh.Trimesh:
    """The triangles of a mesh's file, without its scale."""
    source = mesh.source()
    file = (
        str(source.path())
        if source.is_path()
        else BytesIO(source.in_memory().mesh_file.contents())
    )
    surface = trimesh.load(file, file_type=source.extension()[1:], force="mesh")
    surface.merge_vertices(merge_tex=True, merge_norm=True)
    return surface
