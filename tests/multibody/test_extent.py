"""How far shapes reach: the lowest point of each, turned."""

import numpy as np
import pytest
from pydrake.geometry import (
    Box,
    Capsule,
    Convex,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Sphere,
)
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction
from pydrake.multibody.tree import SpatialInertia
from pydrake.systems.framework import DiagramBuilder

from drakebots.multibody import covers, lowest_points

R_WB = RollPitchYaw(0.4, -0.3, 1.0).ToRotationMatrix()
DOWN = R_WB.matrix()[2]
"""The world's z axis in the body; supports along it are known in closed form."""


def lowest(shape, *, visual=False) -> np.ndarray:
    builder = DiagramBuilder()
    plant, scene_graph = AddMultibodyPlantSceneGraph(builder, 0.0)
    body = plant.AddRigidBody("body", SpatialInertia.SolidSphereWithMass(1, 0.1))
    X_BG = RigidTransform([0.1, 0.2, 0.3])
    if visual:
        plant.RegisterVisualGeometry(body, X_BG, shape, "shape", np.ones(4))
    else:
        friction = CoulombFriction(1, 1)
        plant.RegisterCollisionGeometry(body, X_BG, shape, "shape", friction)
    plant.Finalize()
    shapes = covers(plant, scene_graph)
    context = plant.CreateDefaultContext()
    plant.SetFreeBodyPose(context, body, RigidTransform(R_WB, [5, 6, 7]))
    return lowest_points(plant, context, shapes)


def expected(reach: float) -> float:
    return 7 + DOWN @ [0.1, 0.2, 0.3] - reach


@pytest.mark.parametrize(
    "shape, reach, tolerance",
    [
        (Sphere(0.2), 0.2, 1e-12),
        (Box(0.2, 0.4, 0.6), np.abs(DOWN) @ [0.1, 0.2, 0.3], 1e-12),
        (Capsule(0.1, 0.6), 0.1 + 0.3 * abs(DOWN[2]), 1e-12),
        (Cylinder(0.1, 0.6), 0.3 * abs(DOWN[2]) + 0.1 * np.hypot(*DOWN[:2]), 1e-3),
        (Ellipsoid(0.1, 0.2, 0.3), np.linalg.norm(DOWN * [0.1, 0.2, 0.3]), 1e-3),
    ],
)
def test_the_lowest_point_of_a_shape(shape, reach, tolerance):
    assert lowest(shape) == pytest.approx([expected(reach)], abs=tolerance)


def test_a_mesh_reaches_as_far_as_its_corners(tmp_path):
    corners = np.array([[0.1, 0, 0], [0, 0.2, 0], [0, 0, 0.3], [-0.1, -0.1, -0.1]])
    path = tmp_path / "tetrahedron.obj"
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    faces = ["f 1 2 3", "f 1 4 2", "f 2 4 3", "f 3 4 1"]
    path.write_text("\n".join(lines + faces) + "\n")
    reach = -(corners @ DOWN).min()
    assert lowest(Convex(str(path))) == pytest.approx([expected(reach)], abs=1e-9)


def test_what_is_drawn_counts_where_nothing_collides():
    assert lowest(Sphere(0.2), visual=True) == pytest.approx([expected(0.2)])


def test_half_spaces_do_not_count():
    assert not len(lowest(HalfSpace()))
