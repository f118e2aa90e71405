"""Rigid octahedra added to a plant through Drake's API, without the SDF."""

from __future__ import annotations

import numpy as np
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    BallRpyJoint,
    FixedOffsetFrame,
    LinearBushingRollPitchYaw,
    SpatialInertia,
    UnitInertia,
)
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput
from drakebots.robots.voxels.model import Octahedra, OctahedraPlant
from drakebots.robots.voxels.model.octahedra import AXIS_RPY


def add_octahedra(
    plant: MultibodyPlant, octahedra: Octahedra, *, name: str = "lattice"
) -> OctahedraPlant:
    """Adds a lattice to a discrete plant before Finalize.

    The bodies' geometry is not added: drawings and feet come with the SDF of
    :func:`drakebots.robots.voxels.model.sdf.octahedra_sdf`. The first voxel
    floats.

    Args:
        plant: discrete, with a SAP contact approximation.
        octahedra: the lattice.
        name: of the model instance.

    Raises:
        InvalidInput: for a continuous plant where the lattice has loops.
    """
    if plant.time_step() == 0 and octahedra.loops:
        raise InvalidInput(
            "a lattice with loops needs a discrete plant; give it a time step > 0"
        )
    instance = plant.AddModelInstance(name)
    bodies = []
    for voxel, body in enumerate(octahedra.names):
        mass = float(octahedra.masses[voxel])
        unit = UnitInertia(*np.diag(octahedra.inertia(voxel)) / mass)
        inertia = SpatialInertia(mass, np.zeros(3), unit)
        bodies.append(plant.AddRigidBody(body, instance, inertia))
    for shared in octahedra.shared:
        A, B = bodies[shared.A], bodies[shared.B]
        p_A = octahedra.in_body(shared.A, shared.node)
        p_B = octahedra.in_body(shared.B, shared.node)
        label = f"node_{shared.node}"
        if shared.in_tree:
            frame_A, frame_B = (
                plant.AddFrame(
                    FixedOffsetFrame(f"{label}_{side}", body, RigidTransform(p))
                )
                for side, body, p in (("parent", A, p_A), ("child", B, p_B))
            )
            plant.AddJoint(BallRpyJoint(label, frame_A, frame_B))
        else:
            plant.AddBallConstraint(A, p_A, B, p_B)
        turned = RollPitchYaw(AXIS_RPY[shared.axis]).ToRotationMatrix()
        frames = [
            plant.AddFrame(
                FixedOffsetFrame(f"{label}_{side}", body, RigidTransform(turned, p))
            )
            for side, body, p in (("A", A, p_A), ("C", B, p_B))
        ]
        plant.AddForceElement(
            LinearBushingRollPitchYaw(
                *frames,
                octahedra.stiffness,
                octahedra.damping(shared),
                np.zeros(3),
                np.zeros(3),
            )
        )
    return OctahedraPlant(octahedra, plant)


def gaps(built: OctahedraPlant, context: Context) -> np.ndarray:
    """Distance between the two images of every shared node (S,) [m]."""
    poses, cut = built.poses(context), built.octahedra
    found = np.zeros(len(cut.shared))
    for k, shared in enumerate(cut.shared):
        images = [
            poses[v, :3, :3] @ cut.in_body(v, shared.node) + poses[v, :3, 3]
            for v in (shared.A, shared.B)
        ]
        found[k] = np.linalg.norm(images[0] - images[1])
    return found
