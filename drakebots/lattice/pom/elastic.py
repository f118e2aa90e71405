"""Elastic planes of motion, and how far to trust either model beside the beam frame.

The nodes move as x = Phi a, with Phi the mechanisms of the lattice (planes of motion
first) and a their amplitudes. The beams then bend and twist without elongation, and
the nodes rotate so that the energy is least:

    K_red = Phi^T (K_tt - K_tr K_rr^-1 K_rt) Phi

with K the frame's stiffness, split into translations t and rotations r. Actuators of
given extension e = G a push with the forces p, the multipliers of

    minimise  a^T K_red a / 2   subject to  G a = e.

A Galerkin reduction of ours, not in the paper. It neglects the beams' axial compliance
and so is too stiff where planes lose displacement with distance: by 0.2 % in a 2x2x2
block of slender struts, 3 % at 4x4x4, 23 % at 8x2x8.

**Validity.** Planes of motion are accurate where they are all the mechanisms there are:
in blocks two or more voxels thick, and in shapes made of such blocks. Where parts hang
on one node, or are one voxel thick, those parts rotate with what they hang on, and
planes of motion have the wrong sign. The elastic model includes all mechanisms. Source:
ours, measured with slender struts (L/d 42). Of 1000 random shapes of 2 to 60 voxels
with one to three actuators, planes of motion hold in 20 and the elastic model in 566
more: no node is off by more than a tenth of the stroke in any pose.
docs/evidence/voxel.md has the ranges of slopes and forces, which are samples, not
bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from scipy.sparse.linalg import splu

from drakebots.core.errors import InvalidInput
from drakebots.lattice.frame import (
    FactoredFrame,
    FrameSolution,
    actuate,
    lattice_frame,
    solve_frame,
)
from drakebots.lattice.pom.pom import (
    Control,
    PlanesOfMotion,
    actuator_nodes,
    check_independent,
    extension_rows,
    table,
)
from drakebots.lattice.shape import (
    Lattice,
    Mechanisms,
    Strut,
    find_mechanisms,
    rigid_motions,
)


@dataclass(frozen=True, eq=False)
class ElasticMotion:
    """The equilibria under given controls.

    Attributes:
        amplitude: amplitudes of the mechanisms (T, m) [m].
        displacement: displacements of the nodes (T, N, 3) [m].
        force: force with which each actuator pushes its nodes apart (T, M) [N].
        energy: elastic energy (T,) [J].
    """

    amplitude: np.ndarray
    displacement: np.ndarray
    force: np.ndarray
    energy: np.ndarray


class ElasticPOM:
    """A lattice reduced to the stiffness of its mechanisms.

    Args:
        lattice: the voxels.
        strut: section and material of all beams.
        mechanisms: the lattice's mechanisms, when already at hand.
        mounts: actuators whose mounts keep their nodes from rotating. Mounts on
            other planes than the driven one stiffen the lattice: by 17 % in the
            paper's robot. The actuators' forces themselves need no mounts.

    Attributes:
        mechanisms: the basis, m of them.
        basis: Phi (3 N, m).
        stiffness: K_red (m, m) [N/m], positive definite.

    Raises:
        InvalidInput: when the lattice is too large for its mechanisms, or is one
            voxel and has none.
    """

    def __init__(
        self,
        lattice: Lattice,
        strut: Strut = Strut(),
        mechanisms: Mechanisms | None = None,
        mounts: Sequence[Control] = (),
    ):
        self.lattice, self.strut = lattice, strut
        self.mechanisms = find_mechanisms(lattice) if mechanisms is None else mechanisms
        if not self.mechanisms.all:
            raise InvalidInput("a lone voxel is rigid; take a lattice of two or more")
        self.basis = self.mechanisms.basis
        self.stiffness = self._condensed(mounts)
        self._factor = sla.cho_factor(self.stiffness)

    def _condensed(self, mounts: Sequence[Control]) -> np.ndarray:
        K = lattice_frame(self.lattice, self.strut).stiffness
        moving = np.arange(K.shape[0]) % 6 < 3
        turning = ~moving.reshape(-1, 6)
        turning[actuator_nodes(self.lattice, mounts).ravel()] = False
        turning = turning.ravel()
        # Nodes that cannot rotate fix the orientation in the world, so the lattice as
        # a whole is left free to rotate.
        body = rigid_motions(self.lattice)[:, 3:] if len(mounts) else self.basis[:, :0]
        fields = np.hstack([self.basis, body])
        rr = K[turning][:, turning].tocsc()
        bent = K[turning][:, moving] @ fields
        whole = fields.T @ (K[moving][:, moving] @ fields)
        whole -= bent.T @ splu(rr).solve(bent)
        m = self.basis.shape[1]
        cross = whole[:m, m:]
        reduced = whole[:m, :m] - cross @ np.linalg.solve(whole[m:, m:], cross.T)
        return (reduced + reduced.T) / 2

    def amplitudes(self, force) -> np.ndarray:
        """Amplitudes of the mechanisms (..., m) [m] under generalized forces [N]."""
        force = np.asarray(force, float)
        flat = force.reshape(-1, len(self.stiffness))
        return sla.cho_solve(self._factor, flat.T).T.reshape(force.shape)

    def move(self, actuators: Sequence[Control], u) -> ElasticMotion:
        """Equilibrium for given controls; each actuator's length changes by -2 u.

        Args:
            actuators: M of them.
            u: displacements of their lower nodes (T, M) or (M,) [m].

        Raises:
            InvalidInput: when actuators move nothing or depend on each other, or
                u has another shape or is not finite.
        """
        u = table(u, len(actuators), "u", "actuator")
        G = extension_rows(self.lattice, actuators, self.basis)
        soft = self.amplitudes(G).T  # (m, M), K^-1 G^T
        compliance = G @ soft
        check_independent(actuators, G)
        force = np.linalg.solve(compliance, -2 * u.T).T
        a = force @ soft.T
        moved = (a @ self.basis.T).reshape(len(u), -1, 3)
        energy = (force * -2 * u).sum(axis=1) / 2
        return ElasticMotion(a, moved, force, energy)


# --- beside the frame ----------------------------------------------------------


def frame_motion(
    lattice: Lattice,
    actuators: Sequence[Control],
    u,
    strut: Strut = Strut(),
    convention: str = "free",
) -> FrameSolution:
    """The linear frame under actuators that change their length by -2 u.

    Args:
        lattice: the voxels.
        actuators: M of them; their nodes do not rotate.
        u: displacements of their lower nodes (M,) [m].
        strut: section and material of all beams.
        convention: support of the actuators' nodes; see `frame.CONVENTIONS`.

    Raises:
        InvalidInput: for an actuator that does not fit the lattice, or another u.
        UnknownName: for another convention.
    """
    u = table(u, len(actuators), "u", "actuator")[0]
    frame = lattice_frame(lattice, strut)
    pairs = actuator_nodes(lattice, actuators)
    supports, load = actuate(frame, pairs, -2 * u, convention)
    return solve_frame(frame, supports, load)


def frame_response(
    lattice: Lattice, actuators: Sequence[Control], strut: Strut = Strut(), nodes=None
) -> tuple[np.ndarray, np.ndarray]:
    """Response of the frame to each actuator, relative to the body's mean pose.

    Args:
        lattice: the voxels.
        actuators: M of them; their nodes do not rotate.
        strut: section and material of all beams.
        nodes: rows of the nodes that make the body; by default all.

    Returns:
        Displacements of the nodes per unit of each u (M, N, 3), without the rigid
        motion that fits those nodes best; forces of the actuators per unit (M, M)
        [N/m], row i for u_i.

    Raises:
        InvalidInput: for an actuator that does not fit the lattice, or depends on
            the others.
    """
    frame, units = lattice_frame(lattice, strut), -2 * np.eye(len(actuators))
    pairs = actuator_nodes(lattice, actuators)
    both = [actuate(frame, pairs, extension) for extension in units]
    found = FactoredFrame(frame, both[0][0]).solve(*(load for _, load in both))
    still = np.zeros((len(lattice.nodes), 3))
    moved = [f.displacement[:, :3] for f in found]
    moved = [without_rigid_motion(lattice, motion, still, nodes) for motion in moved]
    return np.array(moved), np.array([f.actuator_force for f in found])


def without_rigid_motion(
    lattice: Lattice, motion: np.ndarray, reference: np.ndarray, nodes=None
) -> np.ndarray:
    """A motion minus the rigid motion that brings it nearest to a reference.

    Args:
        lattice: the voxels.
        motion, reference: displacements of the nodes (N, 3) [m].
        nodes: rows of the nodes that count; by default all.
    """
    rigid = rigid_motions(lattice).reshape(-1, 3, 6)
    nodes = np.arange(len(rigid)) if nodes is None else np.asarray(nodes)
    gap = (motion - reference)[nodes].ravel()
    share = np.linalg.lstsq(rigid[nodes].reshape(-1, 6), gap, rcond=None)[0]
    return motion - rigid @ share


@dataclass(frozen=True)
class Agreement:
    """Planes of motion against the frame, over several actuators and poses.

    Attributes:
        slope: least-squares factor, frame = slope * planes of motion.
        rms: root mean square of the difference [m].
        max: largest difference [m].
    """

    slope: float
    rms: float
    max: float


def agreement(expected: np.ndarray, actual: np.ndarray) -> Agreement:
    """The agreement of two sets of displacements of the same shape."""
    slope = float((expected * actual).sum() / (expected**2).sum())
    gap = actual - expected
    return Agreement(slope, float(np.sqrt((gap**2).mean())), float(np.abs(gap).max()))


HOLDS = 0.1
"""A model holds where no node is further off than this share of the stroke."""


@dataclass(frozen=True)
class Bound:
    """Error bound of a reduced model with these actuators.

    Attributes:
        error: largest error of a node in any pose within the stroke, as a share of
            the stroke.
        voxel: a voxel that the node belongs to.
    """

    error: float
    voxel: tuple[int, int, int]

    def __str__(self) -> str:
        return f"off by up to {self.error:.1%} of the stroke, at voxel {self.voxel}"


def error_bound(lattice: Lattice, model: np.ndarray, frame: np.ndarray) -> Bound:
    """The bound of a model by its and the frame's motions (M, N, 3).

    Each actuator's share of a node's error is known from motions per unit of its
    displacement, so their sum bounds the node's error in every pose within the stroke.
    For the motion in one pose (1, N, 3) the error is that in the pose [m].
    """
    off = np.zeros(len(lattice.nodes))
    for expected, actual in zip(model, frame):
        gap = without_rigid_motion(lattice, actual, expected) - expected
        off += np.linalg.norm(gap, axis=1)
    worst = int(np.argmax(off))
    voxel = lattice.voxels[lattice.voxel_of(worst)[0]]
    return Bound(float(off[worst]), tuple(voxel.tolist()))


@dataclass(frozen=True)
class Comparison:
    """Both reduced models against the frame.

    Attributes:
        missed: number of mechanisms that planes of motion miss.
        planes: agreement of the displacements of planes of motion in the pose.
        elastic: agreement of the displacements of the elastic model in the pose.
        force: largest error of the elastic model's actuator forces in the pose, as a
            share of the largest force.
        planes_bound: error of planes of motion in all poses.
        elastic_bound: error of the elastic model in all poses.
    """

    missed: int
    planes: Agreement
    elastic: Agreement
    force: float
    planes_bound: Bound
    elastic_bound: Bound

    @property
    def advice(self) -> str:
        """The model to use, and how far it is off, in one line."""
        if self.planes_bound.error <= HOLDS:
            return f"planes of motion hold here: {self.planes_bound}"
        wrong = f"planes of motion do not hold: {self.planes_bound}"
        if self.elastic_bound.error <= HOLDS:
            return f"use the elastic model here ({self.elastic_bound}); {wrong}"
        return f"use the frame here; the elastic model is {self.elastic_bound}; {wrong}"


def compare(
    lattice: Lattice, actuators: Sequence[Control], u, strut: Strut = Strut()
) -> Comparison:
    """Planes of motion and the elastic model against the frame.

    Args:
        lattice: the voxels, connected.
        actuators: M of them; their nodes do not rotate.
        u: displacements of their lower nodes in the pose (M,) [m].
        strut: section and material of all beams.

    Raises:
        InvalidInput: for actuators that do not fit the lattice, or another u.
    """
    u = table(u, len(actuators), "u", "actuator")[0]
    units = np.eye(len(actuators))
    planes = PlanesOfMotion(lattice, actuators).displacements(units)
    mechanisms = find_mechanisms(lattice)
    model = ElasticPOM(lattice, strut, mechanisms, mounts=actuators)
    elastic = model.move(actuators, units)
    moved, pushed = frame_response(lattice, actuators, strut)

    def agree(expected: np.ndarray) -> Agreement:
        at, motion = np.tensordot(u, expected, 1), np.tensordot(u, moved, 1)
        return agreement(at, without_rigid_motion(lattice, motion, at))

    error = np.abs(u @ elastic.force - u @ pushed).max() / np.abs(u @ pushed).max()
    return Comparison(
        len(mechanisms.missed),
        agree(planes),
        agree(elastic.displacement),
        float(error),
        error_bound(lattice, planes, moved),
        error_bound(lattice, elastic.displacement, moved),
    )
