"""Beams as bushings: nodes are rigid bodies, a bushing at each beam's midpoint.

With the frames A and C of a `LinearBushingRollPitchYaw` both at the middle of a
beam, x along it, and

    k_torque = (GJ/L, EI/L, EI/L),   k_force = (EA/L, 12 EI/L^3, 12 EI/L^3)

the bushing is the Euler-Bernoulli beam:

    K = B^T diag(k_force, k_torque) B

is its 12 x 12 stiffness, where B takes the motions of both ends to the relative
motion of the two frames (:func:`relative_motion`). Node masses of a third of a
gram on springs of EA/L force steps of 25 us: a cross-check for few voxels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    FixedOffsetFrame,
    LinearBushingRollPitchYaw,
    QuaternionFloatingJoint,
    RigidBody,
    SpatialInertia,
    UnitInertia,
)
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput
from drakebots.lattice.shape import Lattice, Strut
from drakebots.robots.voxels.model.octahedra import VOXEL_MASS

MOST_VOXELS = 8


@dataclass(frozen=True, eq=False)
class BushingBeams:
    """A lattice of bushings within a plant.

    Attributes:
        lattice: its nodes are the bodies, in their order.
        plant: the plant.
        bodies: of the nodes.
    """

    lattice: Lattice
    plant: MultibodyPlant
    bodies: tuple[RigidBody, ...]

    def node_positions(self, context: Context) -> np.ndarray:
        """p_WN of all nodes (N, 3) [m]."""
        eval_pose = self.plant.EvalBodyPoseInWorld
        return np.array([eval_pose(context, b).translation() for b in self.bodies])

    def place_at_rest(self, context: Context) -> None:
        """Puts all nodes where they belong in an undeformed lattice, at rest."""
        for body, p in zip(self.bodies, self.lattice.positions):
            self.plant.SetFreeBodyPose(context, body, RigidTransform(p))
        nv = self.plant.num_velocities()
        self.plant.SetVelocities(context, np.zeros(nv))


def beam_constants(strut: Strut, length: float) -> tuple[np.ndarray, np.ndarray]:
    """k_torque (3,) [N m/rad] and k_force (3,) [N/m] of a beam's bushing.

    Bending in the beam's xy plane is by I1, in its xz plane by I2.
    """
    E, L = strut.E, length
    torque = np.array([strut.G * strut.J, E * strut.I2, E * strut.I1]) / L
    force = np.array([E * strut.area / L, 12 * E * strut.I1, 12 * E * strut.I2])
    force[1:] /= L**3
    return torque, force


def relative_motion(length: float) -> np.ndarray:
    """B (6, 12): motion of C relative to A, both at the middle of the beam.

    Rows x, y, z and turns about them; columns are the displacement and the turn of
    the first end, then those of the second, all along the beam's axes.
    """
    h = length / 2
    # A point p beyond an end moves by u + theta x p: before (second) or after it.
    lever = np.array([[0, 0, 0], [0, 0, h], [0, -h, 0]])
    eye, zero = np.eye(3), np.zeros((3, 3))
    return np.block([[-eye, -lever, eye, -lever], [zero, -eye, zero, eye]])


def add_bushing_beams(
    plant: MultibodyPlant,
    lattice: Lattice,
    strut: Strut = Strut(),
    *,
    voxel_mass: float = VOXEL_MASS,
    damping: float = 2.0,
    axial: float = 1.0,
    name: str = "beams",
) -> BushingBeams:
    """Adds a lattice of bushings to a plant before Finalize.

    Args:
        plant: its step must be 25 us or less at the defaults.
        lattice: at most 8 voxels.
        strut: its beams.
        voxel_mass: shared out to its nodes [kg].
        damping: of each node against the world [1/s]: it settles, and is no model
            of anything.
        axial: factor on EA, to trade accuracy for longer steps.
        name: of the model instance.

    Raises:
        InvalidInput: for more voxels, or numbers out of range.
    """
    if len(lattice.voxels) > MOST_VOXELS:
        raise InvalidInput(
            f"{len(lattice.voxels)} voxels as bushing beams would take hours; use at "
            f"most {MOST_VOXELS}, or rigid octahedra (add_octahedra)"
        )
    for key, value in (("voxel_mass", voxel_mass), ("axial", axial)):
        if not (np.isfinite(value) and value > 0):
            raise InvalidInput(f"{key} must be > 0, got {value}")
    if not (np.isfinite(damping) and damping >= 0):
        raise InvalidInput(f"damping must be >= 0, got {damping}")
    instance = plant.AddModelInstance(name)
    L = lattice.beam_length
    counts = np.bincount(lattice.voxel_nodes.ravel())
    bodies = []
    for k, count in enumerate(counts):
        mass = float(voxel_mass * count / 6)
        # A node turns with its halves of four beams a voxel.
        unit = UnitInertia.SolidSphere(L / 4)
        inertia = SpatialInertia(mass, np.zeros(3), unit)
        body = plant.AddRigidBody(f"node_{k}", instance, inertia)
        I_B = unit.get_moments()[0] * mass
        joint = QuaternionFloatingJoint(
            f"node_{k}",
            plant.world_frame(),
            body.body_frame(),
            damping * I_B,
            damping * mass,
        )
        plant.AddJoint(joint)
        bodies.append(body)
    torque, force = beam_constants(strut, L)
    force[0] *= axial
    for k, (i, j) in enumerate(lattice.beams):
        along = lattice.positions[j] - lattice.positions[i]
        turned = RotationMatrix.MakeFromOneVector(along / L, 0)
        frames = [
            plant.AddFrame(
                FixedOffsetFrame(
                    f"beam_{k}_{side}",
                    bodies[n],
                    RigidTransform(turned, sign * along / 2),
                )
            )
            for side, n, sign in (("A", i, 1.0), ("C", j, -1.0))
        ]
        zero = np.zeros(3)
        plant.AddForceElement(
            LinearBushingRollPitchYaw(*frames, torque, zero, force, zero)
        )
    return BushingBeams(lattice, plant, tuple(bodies))


__all__ = [
    "MOST_VOXELS",
    "BushingBeams",
    "add_bushing_beams",
    "beam_constants",
    "relative_motion",
]
