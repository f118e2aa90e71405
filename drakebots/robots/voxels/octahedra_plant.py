"""Rigid octahedra in a Drake plant, added through its API."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    BallRpyJoint,
    FixedOffsetFrame,
    LinearBushingRollPitchYaw,
    RigidBody,
    SpatialInertia,
    UnitInertia,
)
from pydrake.systems.framework import Context

from drakebots.errors import InvalidInput
from drakebots.robots.voxels.octahedra import AXIS_RPY, Octahedra


@dataclass(frozen=True, eq=False)
class OctahedraPlant:
    """A lattice within a plant.

    Attributes:
        octahedra: how it was cut.
        plant: the plant.
        bodies: of the voxels, in their order.
    """

    octahedra: Octahedra
    plant: MultibodyPlant
    bodies: tuple[RigidBody, ...]

    def node_positions(self, context: Context) -> np.ndarray:
        """p_WN of all nodes (N, 3) [m], each by the first voxel that owns it."""
        poses = self.poses(context)
        return node_positions(self.octahedra, poses[:, :3, 3], poses[:, :3, :3])

    def poses(self, context: Context) -> np.ndarray:
        """X_WB of the voxels (V, 4, 4)."""
        eval_pose = self.plant.EvalBodyPoseInWorld
        return np.array([eval_pose(context, b).GetAsMatrix4() for b in self.bodies])

    def gaps(self, context: Context) -> np.ndarray:
        """Distance of the two images of every shared node (S,) [m]."""
        poses, cut = self.poses(context), self.octahedra
        gaps = np.zeros(len(cut.shared))
        for k, shared in enumerate(cut.shared):
            images = [
                poses[v, :3, :3] @ cut.in_body(v, shared.node) + poses[v, :3, 3]
                for v in (shared.A, shared.B)
            ]
            gaps[k] = np.linalg.norm(images[0] - images[1])
        return gaps


def node_positions(cut: Octahedra, p_WB: np.ndarray, R_WB: np.ndarray) -> np.ndarray:
    """p_WN of all nodes (..., N, 3) [m] from the voxels' poses.

    Args:
        cut: the lattice.
        p_WB: centres (..., V, 3) [m].
        R_WB: rotations (..., V, 3, 3).
    """
    lattice = cut.lattice
    _, first = np.unique(lattice.voxel_nodes.ravel(), return_index=True)
    owner = first // 6
    p_BN = lattice.positions - cut.centres[owner]
    turned = np.einsum("...nij,nj->...ni", R_WB[..., owner, :, :], p_BN)
    return p_WB[..., owner, :] + turned


def add_octahedra(
    plant: MultibodyPlant, octahedra: Octahedra, *, name: str = "lattice"
) -> OctahedraPlant:
    """Adds a lattice to a discrete plant before Finalize.

    The bodies' geometry is not added: drawings and feet come with the SDF of
    :func:`drakebots.robots.voxels.octahedra_sdf.octahedra_sdf`. The first voxel
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
    return OctahedraPlant(octahedra, plant, tuple(bodies))


def found_octahedra(plant: MultibodyPlant, octahedra: Octahedra) -> OctahedraPlant:
    """The same for a plant that has read the lattice's SDF."""
    bodies = tuple(plant.GetBodyByName(name) for name in octahedra.names)
    return OctahedraPlant(octahedra, plant, bodies)


def place_at_rest(built: OctahedraPlant, context: Context, X_WL=None) -> None:
    """Puts an undeformed lattice into the world, at rest.

    Args:
        built: in a finalized plant.
        context: the plant's.
        X_WL: pose of the lattice's corner; None for the origin.
    """
    X_WL = RigidTransform() if X_WL is None else X_WL
    plant = built.plant
    plant.SetPositions(context, plant.GetDefaultPositions())
    plant.SetVelocities(context, np.zeros(plant.num_velocities()))
    X_LB = RigidTransform(built.octahedra.centres[0])
    plant.SetFreeBodyPose(context, built.bodies[0], X_WL @ X_LB)


__all__ = [
    "OctahedraPlant",
    "add_octahedra",
    "found_octahedra",
    "node_positions",
    "place_at_rest",
]
