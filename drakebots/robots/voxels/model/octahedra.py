"""A lattice as rigid octahedra on ball joints: cut into a tree and loops, and found in
a Drake plant.

Beams are much stiffer along their axes than across, so a voxel keeps its shape and
rotates relative to each neighbour about the node they share:

    shared node in the spanning tree      ball joint
    every other shared node               ball constraint (SAP closes the loop)
    every shared node                     torsion bushing

The bushing stands for the bending of the beams around the node. With x along the
line through both voxels' centres its stiffness is

    k = (k_t, k_b, k_b),  k_t = 5.272 EI/L,  k_b = 7.007 EI/L

the values that give a block's elastic planes of motion (square section, nu 0.35;
derived and checked against a frame FEM). Axial compliance and the weak coupling
between a voxel's own nodes are left out: under small forces a 2x2x2 block extends by
0.7 % less than in the FEM, a 3x3x3 block by 2.7 % more. Large rotations are exact
here: pulling stiffens (2x2x2 under 0.5 N: 2.2 % less), pushing softens. Blocks of 3
and more voxels in all directions are redundant (self-stress); their layers lock
against each other at second order in the tilt angles, which real beams soften and
SAP's compliance hides in part: 3x3x3 under 0.5 N extends by 7 % less, by 0.6 % less at
1 ms steps.

An actuator of a walk is a spring of commanded length between two nodes: Drake's
distance constraint with stiffness k and damping d pulls along the line through its two
points with

    f = -k (length - commanded) - d (dlength/dt)

and SAP integrates it implicitly. The commanded length is a parameter of the plant's
Context, which no other system of a diagram may write: it is set between two steps
(:mod:`drakebots.robots.voxels.simulate`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np
from pydrake.math import RigidTransform
from pydrake.multibody.plant import DistanceConstraintParams, MultibodyPlant
from pydrake.multibody.tree import MultibodyConstraintId, RigidBody
from pydrake.systems.framework import Context

from drakebots.core.checks import array, non_negative, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import check, checked
from drakebots.lattice.pom import Control
from drakebots.lattice.shape import (
    Lattice,
    Strut,
    neighbours,
    require_connected,
)

TWIST, BEND = 5.272, 7.007
"""k_t and k_b in EI/L, for square struts of nu = 0.35."""

VOXEL_MASS = 1.814e-3
"""Mass of a bare voxel [kg] (PFEA)."""

DAMPING_RATIO = 0.1
"""Damping ratio of a voxel on one joint's bending stiffness. Ours."""

AXIS_RPY = np.array([[0, 0, 0], [0, 0, np.pi / 2], [0, -np.pi / 2, 0]])
"""Roll, pitch, yaw [rad] that rotate x onto axis 0, 1, 2."""


@dataclass(frozen=True)
class SharedNode:
    """A node where two voxels meet.

    Attributes:
        A, B: rows of the voxels; in the tree A carries B.
        node: row of the node.
        axis: direction of the line through both centres (0, 1, 2).
        in_tree: whether a ball joint holds the node rather than a constraint.
    """

    A: int
    B: int
    node: int
    axis: int
    in_tree: bool


@checked("octahedra", eq=False)
class Octahedra:
    """A lattice cut for a multibody plant.

    Body frames lie at the voxels' centres, aligned with the lattice at rest.

    Raises:
        InvalidInput: for masses that are not > 0 or do not fit, a negative
            damping ratio, or a lattice that is not in one piece.
    """

    lattice: Lattice
    """The voxels."""
    strut: Strut = field(default_factory=Strut)
    """Section and material of their beams."""
    masses: np.ndarray | float = VOXEL_MASS
    """Masses of the voxels (V,) [kg], or one number for all."""
    damping_ratio: Annotated[float, non_negative()] = DAMPING_RATIO
    """Damping ratio zeta of one voxel on one joint, c = 2 zeta sqrt(k_b I)."""
    shared: tuple[SharedNode, ...] = field(init=False, repr=False)
    """The nodes where voxels meet: the tree's nodes first, each after the one that
    carries it, then the others."""

    def __post_init__(self):
        count = len(self.lattice.voxels)
        if np.ndim(self.masses) == 0:
            object.__setattr__(self, "masses", np.full(count, self.masses, float))
        check(self, "octahedra", masses=array((count,), "kg", entry=positive("kg")))
        object.__setattr__(self, "shared", _cut(self.lattice))

    @property
    def tree(self) -> tuple[SharedNode, ...]:
        """The nodes with ball joints, each after the one that carries it."""
        return tuple(s for s in self.shared if s.in_tree)

    @property
    def loops(self) -> tuple[SharedNode, ...]:
        """The nodes that ball constraints close."""
        return tuple(s for s in self.shared if not s.in_tree)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the voxels' bodies."""
        return tuple("voxel_{}_{}_{}".format(*voxel) for voxel in self.lattice.voxels)

    @property
    def centres(self) -> np.ndarray:
        """Centres of the voxels at rest (V, 3) [m]."""
        return self.lattice.centres * (self.lattice.pitch / 2)

    def in_body(self, voxel: int, node: int) -> np.ndarray:
        """p_BN of a node in a voxel's body (3,) [m]."""
        return self.lattice.positions[node] - self.centres[voxel]

    def inertia(self, voxel: int) -> np.ndarray:
        """Inertia of a voxel about its centre (3, 3) [kg m^2]: twelve thin rods.

        I = 4/9 m r^2 about any axis, r = pitch/2.
        """
        r = self.lattice.pitch / 2
        return 4 / 9 * self.masses[voxel] * r**2 * np.eye(3)

    @property
    def stiffness(self) -> np.ndarray:
        """Torsion stiffness (k_t, k_b, k_b) of a shared node [N m/rad].

        Raises:
            InvalidInput: for struts that are not square.
        """
        if not np.isclose(self.strut.d1, self.strut.d2):
            raise InvalidInput(
                "rigid octahedra need square struts; use the frame FEM for others"
            )
        unit = self.strut.E * self.strut.I1 / self.lattice.beam_length
        return unit * np.array([TWIST, BEND, BEND])

    def damping(self, shared: SharedNode) -> np.ndarray:
        """Damping of a shared node's bushing (3,) [N m s/rad], by its lighter voxel."""
        inertia = min(self.inertia(v)[0, 0] for v in (shared.A, shared.B))
        k = self.stiffness
        return self.damping_ratio * 2 * np.sqrt(k[1] * inertia) * k / k[1]


def _cut(lattice: Lattice) -> tuple[SharedNode, ...]:
    """Spanning tree, breadth first from the first voxel (short chains), and loops."""
    require_connected(lattice)
    shared = sorted(
        (int(lattice.voxel_nodes[v, 3 + axis]), *sorted((v, w)), axis)
        for v, w, axis in neighbours(lattice).tolist()
    )
    meets = defaultdict(list)
    for node, v, w, axis in shared:
        meets[v].append((node, w, axis))
        meets[w].append((node, v, axis))
    reached, queue, tree = {0}, [0], []
    for voxel in queue:
        for node, other, axis in meets[voxel]:
            if other not in reached:
                reached.add(other)
                queue.append(other)
                tree.append(SharedNode(voxel, other, node, axis, True))
    held = {one.node for one in tree}
    left = [one for one in shared if one[0] not in held]
    loops = [SharedNode(v, w, node, axis, False) for node, v, w, axis in left]
    return (*tree, *loops)


# --- the lattice in a plant --------------------------------------------------


@dataclass(frozen=True, eq=False)
class OctahedraPlant:
    """A lattice in a plant that has read its SDF.

    Attributes:
        octahedra: cut of the lattice that the SDF was written for.
        plant: the plant; see :func:`drakebots.robots.voxels.model.octahedra_sdf`.
    """

    octahedra: Octahedra
    plant: MultibodyPlant

    @cached_property
    def bodies(self) -> tuple[RigidBody, ...]:
        """The voxels' bodies, in the lattice's order."""
        return tuple(map(self.plant.GetBodyByName, self.octahedra.names))

    def poses(self, context: Context) -> np.ndarray:
        """X_WB of the voxels (V, 4, 4)."""
        eval_pose = self.plant.EvalBodyPoseInWorld
        return np.array([eval_pose(context, b).GetAsMatrix4() for b in self.bodies])


def node_positions(cut: Octahedra, X_WB: np.ndarray) -> np.ndarray:
    """p_WN of all nodes (..., N, 3) [m], each from the first voxel that owns it.

    Args:
        cut: the lattice.
        X_WB: poses of the voxels (..., V, 4, 4).
    """
    lattice = cut.lattice
    _, first = np.unique(lattice.voxel_nodes.ravel(), return_index=True)
    owner = first // 6
    p_BN = lattice.positions - cut.centres[owner]
    turned = np.einsum("...nij,nj->...ni", X_WB[..., owner, :3, :3], p_BN)
    return X_WB[..., :3, 3][..., owner, :] + turned


def place_at_rest(built: OctahedraPlant, context: Context, X_WL=None) -> None:
    """Places an undeformed lattice in the world, at rest.

    Args:
        built: the lattice in a finalized plant.
        context: the plant's.
        X_WL: pose of the lattice's corner; None for the origin.
    """
    X_WL = RigidTransform() if X_WL is None else X_WL
    plant = built.plant
    plant.SetPositions(context, plant.GetDefaultPositions())
    plant.SetVelocities(context, np.zeros(plant.num_velocities()))
    X_LB = RigidTransform(built.octahedra.centres[0])
    plant.SetFreeBodyPose(context, built.bodies[0], X_WL @ X_LB)


# --- the actuators ---


class Actuators:
    """The actuators of a lattice, added to its plant before Finalize.

    Args:
        built: the lattice.
        controls: actuators, each between its node and the node one pitch further.
        stiffness: stiffness of each actuator [N/m].
        damping: damping of each actuator [N s/m].

    Attributes:
        rest: the length of every actuator at rest, the pitch [m].

    Raises:
        InvalidInput: for a node that is not in the lattice, or two nodes of one voxel.
    """

    def __init__(
        self,
        built: OctahedraPlant,
        controls: Sequence[Control],
        *,
        stiffness: float = 5e4,
        damping: float = 50.0,
    ):
        self.built, self.stiffness, self.damping = built, stiffness, damping
        # Of each its distance constraint, and its ends: body A, p_AP, body B, p_BQ.
        self._rods: list[tuple[MultibodyConstraintId, list]] = []
        cut = built.octahedra
        self.rest = float(cut.lattice.pitch)
        for control in controls:
            ends = []
            for place in (control.node, control.other):
                node = cut.lattice.node(place)
                voxel, _ = cut.lattice.voxel_of(node)
                ends += [built.bodies[voxel], cut.in_body(voxel, node)]
            if ends[0] is ends[2]:
                raise InvalidInput(
                    f"actuator {control.name}: both nodes belong to one rigid voxel; "
                    "put it between two voxels"
                )
            drive = self.rest, stiffness, damping
            self._rods.append((built.plant.AddDistanceConstraint(*ends, *drive), ends))

    def command(self, context: Context, lengths) -> None:
        """Sets the commanded lengths (M,) [m] in the plant's Context."""
        for (key, (A, p_AP, B, p_BQ)), length in zip(self._rods, lengths, strict=True):
            drive = float(length), self.stiffness, self.damping
            rod = DistanceConstraintParams(A.index(), p_AP, B.index(), p_BQ, *drive)
            self.built.plant.SetDistanceConstraintParams(context, key, rod)

    def lengths(self, context: Context) -> tuple[np.ndarray, np.ndarray]:
        """Lengths (M,) [m] and their rates (M,) [m/s]."""
        found = np.zeros((2, len(self._rods)))
        for k, (_, (A, p_AP, B, p_BQ)) in enumerate(self._rods):
            ends = []
            for body, p in ((A, p_AP), (B, p_BQ)):
                X_WB = body.EvalPoseInWorld(context)
                arm = X_WB.rotation() @ p
                V_WP = body.EvalSpatialVelocityInWorld(context).Shift(arm)
                ends.append((X_WB.translation() + arm, V_WP.translational()))
            line, rate = np.subtract(ends[1], ends[0])
            length = np.linalg.norm(line)
            found[:, k] = length, line @ rate / length
        return found[0], found[1]

    def forces(self, commanded, length, rate) -> np.ndarray:
        """Forces (M,) [N] at these lengths; > 0 pushes the nodes apart."""
        return self.stiffness * (np.asarray(commanded) - length) - self.damping * rate
