"""A brick that falls on points of its underside, in a skin as light as a feather."""

import numpy as np
from pydrake.geometry import Box
from pydrake.math import RigidTransform
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction
from pydrake.multibody.tree import SpatialInertia
from pydrake.systems.framework import DiagramBuilder

from drakebots.fem.assembly import build_model
from drakebots.fem.material import Material
from drakebots.fem.mesh import box_mesh
from drakebots.skin.coupled import CoupledStepper, glue_vertices
from drakebots.skin.file.description import Patches
from tests.helpers.skinned_leg import DT

FEATHER = Material(youngs_modulus=1e-9, poisson_ratio=0.4, density=1e-9)
SIZE, MASS = 0.1, 2.0
CORNERS = [[x, y, -SIZE / 2] for x in (-0.05, 0.05) for y in (-0.05, 0.05)]
PATCHES = (Patches("foot", "brick", CORNERS),)

_ALIVE = []
"""Diagrams of the plants made, which must live as long."""


def brick(height=SIZE / 2, gravity=(0, 0, -9.81)):
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, 1e-3)
    inertia = SpatialInertia.SolidBoxWithMass(MASS, SIZE, SIZE, SIZE)
    body = plant.AddRigidBody("brick", inertia)
    friction = CoulombFriction(0.5, 0.5)
    box = Box(SIZE, SIZE, SIZE)
    plant.RegisterCollisionGeometry(body, RigidTransform(), box, "box", friction)
    plant.mutable_gravity_field().set_gravity_vector(np.array(gravity, float))
    plant.Finalize()
    diagram = builder.Build()
    root = diagram.CreateDefaultContext()
    context = plant.GetMyMutableContextFromRoot(root)
    plant.SetFreeBodyPose(context, body, RigidTransform([0, 0, height]))
    _ALIVE.append((diagram, root))
    return plant, context


def box_points():
    plant, context = brick(SIZE / 2 - 1e-3)
    return plant, context, PATCHES


def brick_stepper(plant, context, dt=DT, **options):
    model = build_model(box_mesh((SIZE,) * 3, (2, 2, 2)), FEATHER)
    held = {"brick": range(9)}
    glue = glue_vertices(model.rest - SIZE / 2, plant, context, held)
    return CoupledStepper(
        plant, model, glue, dt, context=context, patches=PATCHES, **options
    )


def run_brick(run, state, steps):
    for _ in range(steps):
        result = run.step(state)
        assert result.converged, result.message
        state = result.state
    return result
