"""A lattice as rigid octahedra on ball joints: how it is cut into tree and loops.

Beams are much stiffer along than across, so a voxel keeps its shape and its
neighbours turn against it about the node they share:

    shared node in the spanning tree      ball joint
    every other shared node               ball constraint (SAP closes the loop)
    every shared node                     torsion bushing

The bushing stands for the bending of the beams around the node. With x along the
line through both voxels' centres its stiffness is

    k = (k_t, k_b, k_b),  k_t = 5.272 EI/L,  k_b = 7.007 EI/L

the values that give a block's elastic planes of motion (square section, nu 0.35;
derived and checked against a frame FEM). Axial compliance and the weak coupling
between a voxel's own nodes are left out: under small forces 2x2x2 extends by 0.7 %
less than the FEM has it, 3x3x3 by 2.7 % more. Large turns are exact here: pulling
stiffens (2x2x2 under 0.5 N: 2.2 % less), pushing softens. Blocks of 3 and more in
all directions are redundant (self-stress); there layers that tilt unlike lock by
the second order of their angles, which real beams soften and SAP's compliance
hides in part: 3x3x3 under 0.5 N extends by 7 % less, by 0.6 % less at 1 ms steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

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

from drakebots.core.errors import InvalidInput
from drakebots.lattice.shape import BEAMS, OFFSETS, Lattice, Strut

# Rigid octahedra in a Drake plant, added through its API.


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


TWIST, BEND = 5.272, 7.007
"""k_t and k_b in EI/L, for square struts of nu = 0.35."""

VOXEL_MASS = 1.814e-3
"""Of a bare voxel [kg] (PFEA)."""

DAMPING_RATIO = 0.1
"""Of a voxel on one joint's bending stiffness. Ours."""

AXIS_RPY = np.array([[0, 0, 0], [0, 0, np.pi / 2], [0, -np.pi / 2, 0]])
"""Roll, pitch, yaw that turn x onto axis 0, 1, 2."""


@dataclass(frozen=True)
class SharedNode:
    """Where two voxels meet.

    Attributes:
        A, B: rows of the voxels; in the tree A carries B.
        node: row of the node.
        axis: of the line through both centres (0, 1, 2).
        in_tree: whether a ball joint holds it, and no constraint.
    """

    A: int
    B: int
    node: int
    axis: int
    in_tree: bool


@dataclass(frozen=True, eq=False)
class Octahedra:
    """A lattice cut for a multibody plant.

    Body frames lie at the voxels' centres, aligned with the lattice at rest.

    Attributes:
        lattice: its voxels.
        strut: their beams.
        masses: of the voxels (V,) [kg]; a number for all alike.
        damping_ratio: zeta of one voxel on one joint, c = 2 zeta sqrt(k_b I).
        shared: where voxels meet: the tree's nodes first, each after the one that
            carries it, then the others.

    Raises:
        InvalidInput: for masses that are not > 0 or do not fit, a negative
            damping ratio, or a lattice that is not in one piece.
    """

    lattice: Lattice
    strut: Strut = field(default_factory=Strut)
    masses: np.ndarray | float = VOXEL_MASS
    damping_ratio: float = DAMPING_RATIO
    shared: tuple[SharedNode, ...] = field(init=False, repr=False)

    def __post_init__(self):
        count = len(self.lattice.voxels)
        masses = np.asarray(self.masses, float)
        if masses.ndim and masses.shape != (count,):
            raise InvalidInput(
                f"masses must be one number or {count}, got {masses.shape}"
            )
        masses = np.broadcast_to(masses, (count,))
        if not (np.isfinite(masses).all() and masses.min() > 0):
            raise InvalidInput("the voxels' masses must be > 0 kg")
        if not (np.isfinite(self.damping_ratio) and self.damping_ratio >= 0):
            raise InvalidInput(f"damping ratio must be >= 0, got {self.damping_ratio}")
        object.__setattr__(self, "masses", masses)
        object.__setattr__(self, "shared", _cut(self.lattice))

    @property
    def tree(self) -> tuple[SharedNode, ...]:
        """The nodes with ball joints, each after the one that carries it."""
        return tuple(s for s in self.shared if s.in_tree)

    @property
    def loops(self) -> tuple[SharedNode, ...]:
        """The nodes that constraints close."""
        return tuple(s for s in self.shared if not s.in_tree)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the voxels' bodies."""
        return tuple(
            "voxel_" + "_".join(map(str, voxel)) for voxel in self.lattice.voxels
        )

    @property
    def centres(self) -> np.ndarray:
        """Of the voxels at rest (V, 3) [m]."""
        return self.lattice.centres * (self.lattice.pitch / 2)

    def in_body(self, voxel: int, node: int) -> np.ndarray:
        """p_BN of a node in a voxel's body (3,) [m]."""
        return self.lattice.positions[node] - self.centres[voxel]

    def inertia(self, voxel: int) -> np.ndarray:
        """Of a voxel about its centre (3, 3) [kg m^2]: twelve thin rods.

        I = 4/9 m r^2 about any axis, r = pitch/2.
        """
        r, mass = self.lattice.pitch / 2, self.masses[voxel]
        ends = r * OFFSETS[BEAMS]
        middle, along = ends.mean(axis=1), ends[:, 1] - ends[:, 0]
        total = np.zeros((3, 3))
        for c, a in zip(middle, along):
            total += (c @ c + a @ a / 12) * np.eye(3)
            total -= np.outer(c, c) + np.outer(a, a) / 12
        return mass / len(BEAMS) * total

    @property
    def stiffness(self) -> np.ndarray:
        """(k_t, k_b, k_b) of a shared node [N m/rad]."""
        if not np.isclose(self.strut.d1, self.strut.d2):
            raise InvalidInput(
                "rigid octahedra know square struts only; use the frame FEM for others"
            )
        unit = self.strut.E * self.strut.I1 / self.lattice.beam_length
        return unit * np.array([TWIST, BEND, BEND])

    def damping(self, shared: SharedNode) -> np.ndarray:
        """Of a shared node's bushing (3,) [N m s/rad], by its lighter voxel."""
        inertia = min(self.inertia(v)[0, 0] for v in (shared.A, shared.B))
        k = self.stiffness
        return self.damping_ratio * 2 * np.sqrt(k[1] * inertia) * k / k[1]

    def longest_step(self) -> float:
        """Step at which explicit bushings begin to blow up [s].

        2/omega of the fastest voxel turning about its centre against its n joints,
        omega^2 = n k_b/I. Half of it is a good step.
        """
        joints = np.zeros(len(self.masses))
        for shared in self.shared:
            joints[[shared.A, shared.B]] += 1
        inertia = np.array([self.inertia(v)[0, 0] for v in range(len(joints))])
        fastest = (joints * self.stiffness[1] / inertia).max()
        return float(2 / np.sqrt(fastest)) if fastest else np.inf


def _cut(lattice: Lattice) -> tuple[SharedNode, ...]:
    """Breadth first from the first voxel, so that chains stay short."""
    owners: dict[int, list[int]] = {}
    for voxel, nodes in enumerate(lattice.voxel_nodes):
        for node in nodes:
            owners.setdefault(int(node), []).append(voxel)
    meets: dict[int, list[tuple[int, int]]] = {}
    for node, pair in owners.items():
        if len(pair) == 2:
            meets.setdefault(pair[0], []).append((node, pair[1]))
            meets.setdefault(pair[1], []).append((node, pair[0]))
    axis = lattice.even_axis
    reached, queue, tree = {0}, [0], []
    for voxel in queue:
        for node, other in sorted(meets.get(voxel, ())):
            if other not in reached:
                reached.add(other)
                queue.append(other)
                tree.append(SharedNode(voxel, other, node, int(axis[node]), True))
    if len(reached) < len(lattice.voxels):
        lost = min(set(range(len(lattice.voxels))) - reached)
        raise InvalidInput(
            f"voxel {tuple(lattice.voxels[lost].tolist())} hangs on no other one; "
            "a plant needs a lattice in one piece"
        )
    held = {shared.node for shared in tree}
    loops = [
        SharedNode(pair[0], pair[1], node, int(axis[node]), False)
        for node, pair in sorted(owners.items())
        if len(pair) == 2 and node not in held
    ]
    return (*tree, *loops)


__all__ = [
    "AXIS_RPY",
    "BEND",
    "DAMPING_RATIO",
    "TWIST",
    "VOXEL_MASS",
    "Octahedra",
    "SharedNode",
]
