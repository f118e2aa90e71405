"""Frames: nodes and beams, their supports and their loads.

A beam is straight, between two rigid nodes. It has six deformations: the relative
motion of its two halves, taken as rigid, at the midpoint (x along the beam, y along the
side d1 of the section, z along d2):

    e = [R (u2 - u1 + L/2 x cross (t1 + t2)),  R (t2 - t1)] = B [u1, t1, u2, t2]

with displacements u [m] and rotations t [rad] of its ends. They are orthogonal
in energy, so the 12 x 12 stiffness of the Euler-Bernoulli beam is

    K = B' D B,  D = diag(EA/L, 12 EI1/L^3, 12 EI2/L^3, GJ/L, EI2/L, EI1/L)

which is also why one bushing at the midpoint of a beam is exactly that beam. The
Timoshenko beam divides the second and third by 1 + Phi, Phi = 12 EI/(G As L^2),
As = k A, with Cowper's k = 10 (1 + nu)/(12 + 11 nu) of a rectangle. Sources:
Przemieniecki, "Theory of Matrix Structural Analysis" (1968), ch. 5; Cowper, J. Appl.
Mech. 33 (1966). The form at the midpoint was derived here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np
import scipy.sparse

from drakebots.core.checks import (
    array,
    check_value,
    each,
    either,
    flag,
    instance,
    numeric,
    optional,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.lattice.shape import Lattice, Strut, pieces, rigid_fields

MOTIONS = ("x", "y", "z", "rotation about x", "rotation about y", "rotation about z")
"""The six motions of a node, in the order of arrays (N, 6)."""


@dataclass(frozen=True, eq=False)
class Elements:
    """Properties of B beams, each quantity an array over beams.

    Attributes:
        length: lengths (B,) [m].
        axes: rows x, y, z of each beam's frame in the world (B, 3, 3).
        d1, d2: sides of the sections (B,) [m].
        masses: masses of the beams (B,) [kg].
        phi1, phi2: shear flexibility with EI1 and EI2, 0 for Euler-Bernoulli.
        D: stiffness of the six deformations (B, 6) [N/m, N m].
    """

    length: np.ndarray
    axes: np.ndarray
    d1: np.ndarray
    d2: np.ndarray
    masses: np.ndarray
    phi1: np.ndarray
    phi2: np.ndarray
    D: np.ndarray

    def B(self) -> np.ndarray:
        """Matrices from the ends' motions in the world to deformations (B, 6, 12)."""
        R, half = self.axes, self.length[:, None, None] / 2
        B = np.zeros((len(R), 6, 12))
        B[:, :3, :3], B[:, :3, 6:9] = -R, R
        # x cross t has the components (0, -t_z, t_y) in the beam's frame.
        arm = np.stack([np.zeros_like(R[:, 0]), -R[:, 2], R[:, 1]], axis=1) * half
        B[:, :3, 3:6] = B[:, :3, 9:] = arm
        B[:, 3:, 3:6], B[:, 3:, 9:] = -R, R
        return B

    def stiffness(self) -> np.ndarray:
        """Stiffness K = B' D B of each beam in the world (B, 12, 12)."""
        B = self.B()
        return np.matmul(B.transpose(0, 2, 1), self.D[:, :, None] * B)

    def to_local(self, motions: np.ndarray) -> np.ndarray:
        """Vectors (B, 12) of the ends from the world to the beams' frames."""
        parts = motions.reshape(-1, 4, 3)
        return np.einsum("bij,bkj->bki", self.axes, parts).reshape(-1, 12)

    def to_world(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors (B, 12) of the ends from the beams' frames to the world."""
        parts = vectors.reshape(-1, 4, 3)
        return np.einsum("bji,bkj->bki", self.axes, parts).reshape(-1, 12)

    def weight(self, gravity: np.ndarray) -> np.ndarray:
        """Fixed-end loads of a uniform weight, in the beams' frames (B, 12).

        w L/2 at each end and +-w L^2/12 about the axes across, w = rho A g.
        """
        total = self.masses[:, None] * np.einsum("bij,j->bi", self.axes, gravity)
        loads = np.zeros((len(total), 12))
        loads[:, :3] = loads[:, 6:9] = total / 2
        moment = total * self.length[:, None] / 12
        loads[:, 5], loads[:, 11] = moment[:, 1], -moment[:, 1]
        loads[:, 4], loads[:, 10] = -moment[:, 2], moment[:, 2]
        return loads


def elements(frame: Frame) -> Elements:
    """The elements of a frame's beams.

    Raises:
        InvalidInput: for a beam of no length, a wrong number of struts, or an
            `up` along its beam, naming the beam.
    """
    positions, beams, struts = frame.positions, frame.beams, frame.struts
    span = positions[beams[:, 1]] - positions[beams[:, 0]]
    length = np.linalg.norm(span, axis=1)
    size = np.ptp(positions, axis=0).max()
    if not (length > 1e-12 * size).all():
        bad = int(np.argmin(length))
        ends = tuple(beams[bad].tolist())
        raise InvalidInput(
            f"beam {bad} between nodes {ends} has no length; move a node or leave "
            "the beam out"
        )
    each = [struts] if isinstance(struts, Strut) else list(struts)
    n, m = len(each), len(beams)
    if n != m and each != [struts]:
        raise InvalidInput(f"{m} beams need one strut, or one each; got {n}")

    def over(value) -> np.ndarray:
        return np.broadcast_to([value(s) for s in each], m)

    EA, GJ = over(lambda s: s.E * s.area), over(lambda s: s.G * s.J)
    EI1, EI2 = over(lambda s: s.E * s.I1), over(lambda s: s.E * s.I2)
    stiff = over(lambda s: s.G * s.area * 10 * (1 + s.nu) / (12 + 11 * s.nu))
    flexible = 12 / (stiff * length**2) * bool(frame.shear)
    phi1, phi2 = EI1 * flexible, EI2 * flexible
    across = (12 * EI / (length**3 * (1 + p)) for EI, p in ((EI1, phi1), (EI2, phi2)))
    turning = (GJ / length, EI2 / length, EI1 / length)
    axes = _axes(span / length[:, None], frame.up)
    d1, d2 = over(lambda s: s.d1), over(lambda s: s.d2)
    masses = over(lambda s: s.rho * s.area) * length
    D = np.column_stack([EA / length, *across, *turning])
    return Elements(length, axes, d1, d2, masses, phi1, phi2, D)


def _axes(x: np.ndarray, up: np.ndarray | None) -> np.ndarray:
    if up is None:
        upright = np.abs(x[:, 2]) > 1 - 1e-9
        up = np.where(upright[:, None], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    up = np.broadcast_to(np.asarray(up, dtype=float), x.shape)
    z = np.cross(x, up)
    norm, size = np.linalg.norm(z, axis=1), np.linalg.norm(up, axis=1)
    if not (norm > 1e-6 * size).all() or not (size > 0).all():
        bad = int(np.argmin(norm))
        raise InvalidInput(
            f"beam {bad}: `up` {up[bad].tolist()} lies along it; give one across"
        )
    z = z / norm[:, None]
    return np.stack([x, np.cross(z, x), z], axis=1)


@checked("frame", eq=False)
class Frame:
    """Nodes and the beams between them.

    Raises:
        InvalidInput: for arrays of a wrong shape, a beam to no node or of no
            length, a node without a beam; naming it.
    """

    positions: Annotated[np.ndarray, array((None, 3), "m")]
    """Positions of the nodes (N, 3) [m]."""
    beams: Annotated[np.ndarray, array((None, 2), of=int)]
    """Nodes of each beam (B, 2)."""
    struts: Annotated[
        Strut | Sequence[Strut], either(Strut, each(instance(Strut), "struts"))
    ] = field(default_factory=Strut)
    """Section and material of all beams, or of each."""
    up: Annotated[np.ndarray | None, optional(numeric())] = None
    """Direction (3,) or (B, 3) in the plane of a beam and its side d1; None for world
    z, and world y for beams along z."""
    shear: Annotated[bool, flag()] = False
    """Timoshenko beams instead of Euler-Bernoulli beams."""

    def __post_init__(self):
        positions, beams, last = self.positions, self.beams, len(self.positions) - 1
        if not len(beams) or beams.min() < 0 or beams.max() > last:
            raise InvalidInput(f"beams must be one or more, between nodes 0..{last}")
        alone = np.setdiff1d(np.arange(len(positions)), beams)
        if len(alone):
            raise InvalidInput(
                f"node {alone[0]} has no beam; leave it out or join it to the frame"
            )
        self.elements  # noqa: B018  refuses a bad beam now

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self.positions)

    @cached_property
    def elements(self) -> Elements:
        """Properties of the beams."""
        return elements(self)

    @cached_property
    def beam_stiffness(self) -> np.ndarray:
        """Stiffness of each beam in the world (B, 12, 12)."""
        return self.elements.stiffness()

    @cached_property
    def pieces(self) -> np.ndarray:
        """The number of the connected piece that each node belongs to (N,)."""
        return pieces(len(self), self.beams)

    def assemble(self, of_beams: np.ndarray) -> scipy.sparse.csc_matrix:
        """The sparse sum (6 N, 6 N) of the beams' matrices (B, 12, 12)."""
        motions = (6 * self.beams[:, :, None] + np.arange(6)).reshape(-1, 12)
        rows, columns = np.repeat(motions, 12, axis=1), np.tile(motions, 12)
        places = rows.ravel(), columns.ravel()
        shape = (6 * len(self), 6 * len(self))
        return scipy.sparse.coo_matrix((of_beams.ravel(), places), shape).tocsc()

    @cached_property
    def stiffness(self) -> scipy.sparse.csc_matrix:
        """Stiffness K of the frame (6 N, 6 N)."""
        return self.assemble(self.beam_stiffness)

    def of_ends(self, motions: np.ndarray) -> np.ndarray:
        """Motions of the beams' ends (B, 12) from those of the nodes (N, 6)."""
        return motions[self.beams].reshape(-1, 12)

    def rigid_motions(self) -> np.ndarray:
        """The six rigid motions of the frame about its mean as columns (6 N, 6)."""
        motions = np.zeros((len(self), 6, 6))
        motions[:, :3] = rigid_fields(self.positions - self.positions.mean(axis=0))
        motions[:, 3:, 3:] = np.eye(3)
        return motions.reshape(-1, 6)

    def axis(self, first: int, second: int) -> np.ndarray:
        """Unit vector from one node to another (3,).

        Raises:
            InvalidInput: when there is no such node, or they coincide.
        """
        last = len(self) - 1
        for node in (first, second):
            if not 0 <= node <= last:
                raise InvalidInput(f"the frame has no node {node}, only 0..{last}")
        span = self.positions[second] - self.positions[first]
        if not span.any():
            raise InvalidInput(f"nodes {first} and {second} are at the same place")
        return span / np.linalg.norm(span)


def lattice_frame(
    lattice: Lattice, struts: Strut | Sequence[Strut] = Strut(), shear: bool = False
) -> Frame:
    """A voxel lattice as a frame; nodes and beams keep their numbers.

    Side d1 of a section is perpendicular to the square that its beam belongs to.

    Args:
        lattice: the voxels.
        struts: section and material of all beams, or of each.
        shear: Timoshenko beams instead of Euler-Bernoulli beams.
    """
    span = lattice.nodes[lattice.beams[:, 1]] - lattice.nodes[lattice.beams[:, 0]]
    return Frame(lattice.positions, lattice.beams, struts, (span == 0) * 1.0, shear)


@checked("supports", eq=False)
class Supports:
    """Held motions and actuators. They determine the factorization, which many loads
    can share.
    """

    held: Annotated[np.ndarray, array((None, 6), of=bool)]
    """Whether the value of each motion is prescribed (N, 6)."""
    actuators: Annotated[np.ndarray, node_pairs] = ()
    """Node pairs (A, 2); an actuator prescribes the change of distance of its nodes,
    and its force follows."""
    floating: Annotated[bool, flag()] = False
    """Whether unconstrained rigid motions are allowed; loads must then balance, and the
    mean motion of the nodes is zero."""


@dataclass(frozen=True, eq=False)
class Load:
    """Forces and prescribed motions; None stands for zero.

    Attributes:
        force: forces and moments on the nodes (N, 6) [N, N m].
        displacement: values of the held motions (N, 6) [m, rad].
        extension: extension of each actuator (A,), > 0 pushes its nodes apart [m].
        gravity: acceleration (3,) that acts on the beams' mass [m/s^2].
    """

    force: np.ndarray | None = None
    displacement: np.ndarray | None = None
    extension: np.ndarray | None = None
    gravity: np.ndarray | None = None


def node_pairs(nodes) -> np.ndarray:
    """Actuators as (A, 2) node numbers.

    Raises:
        InvalidInput: when they are anything else.
    """
    if np.size(nodes) == 0:
        return np.empty((0, 2), dtype=int)
    rule = array((None, 2), of=int)
    return check_value("actuators, pairs of node numbers,", nodes, rule)
