"""Frames: nodes and beams, their supports and their loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np
import scipy.sparse

from drakebots.core.checks import (
    array,
    each,
    either,
    flag,
    instance,
    numeric,
    optional,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.lattice.frame.element import Elements, elements
from drakebots.lattice.shape import Lattice, Strut, pieces

MOTIONS = ("x", "y", "z", "rotation about x", "rotation about y", "rotation about z")
"""The six motions of a node, in the order of arrays (N, 6)."""


@checked("frame", eq=False)
class Frame:
    """Nodes and the beams between them.

    Raises:
        InvalidInput: for arrays of a wrong shape, a beam to no node or of no
            length, a node without a beam; naming it.
    """

    positions: Annotated[np.ndarray, array((None, 3), "m")]
    """Positions of the nodes (N, 3) [m]."""
    beams: Annotated[np.ndarray, array((None, 2), integers=True)]
    """Nodes of each beam (B, 2)."""
    struts: Annotated[
        Strut | Sequence[Strut], either(Strut, each(instance(Strut), "struts"))
    ] = field(default_factory=Strut)
    """Section and material of all beams, or of each."""
    up: Annotated[np.ndarray | None, optional(numeric())] = field(
        default=None, repr=False
    )
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
        return elements(self.positions, self.beams, self.struts, self.up, self.shear)

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
        n, beams = len(self), self.beams
        blocks = of_beams.reshape(-1, 2, 6, 2, 6).transpose(0, 1, 3, 2, 4)
        # Blocks on the diagonal are summed here: searching for duplicates in the
        # sparse format would take most of the time.
        ends = beams.T.ravel()
        order = np.argsort(ends, kind="stable")
        own = np.concatenate([blocks[:, 0, 0], blocks[:, 1, 1]])[order]
        starts = np.searchsorted(ends[order], np.arange(n))
        data = [np.add.reduceat(own, starts), blocks[:, 0, 1], blocks[:, 1, 0]]
        rows = np.concatenate([np.arange(n), beams[:, 0], beams[:, 1]])
        columns = np.concatenate([np.arange(n), beams[:, 1], beams[:, 0]])
        by_row = np.lexsort((columns, rows))
        pointers = np.r_[0, np.cumsum(np.bincount(rows, minlength=n))]
        return scipy.sparse.bsr_matrix(
            (np.concatenate(data)[by_row], columns[by_row], pointers),
            shape=(6 * n, 6 * n),
        ).tocsc()

    @cached_property
    def stiffness(self) -> scipy.sparse.csc_matrix:
        """Stiffness K of the frame (6 N, 6 N)."""
        return self.assemble(self.beam_stiffness)

    @cached_property
    def elimination(self) -> np.ndarray:
        """The nodes in an order of elimination with little fill (N,)."""
        return nested_dissection(self.positions, self.beams)

    def of_ends(self, motions: np.ndarray) -> np.ndarray:
        """Motions of the beams' ends (B, 12) from those of the nodes (N, 6)."""
        return motions[self.beams].reshape(-1, 12)

    def rigid_motions(self) -> np.ndarray:
        """The six rigid motions of the frame about its mean as columns (6 N, 6)."""
        r = self.positions - self.positions.mean(axis=0)
        motions = np.zeros((len(self), 6, 6))
        motions[:, :3, :3] = motions[:, 3:, 3:] = np.eye(3)
        for axis in range(3):
            motions[:, :3, 3 + axis] = np.cross(np.eye(3)[axis], r)
        return motions.reshape(-1, 6)

    def axis(self, first: int, second: int) -> np.ndarray:
        """Unit vector from one node to another (3,).

        Raises:
            InvalidInput: when there is no such node, or they coincide.
        """
        for node in (first, second):
            if not 0 <= node < len(self):
                raise InvalidInput(
                    f"the frame has no node {node}, only 0..{len(self) - 1}"
                )
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


@dataclass(frozen=True, eq=False)
class Supports:
    """Held motions and actuators. They determine the factorization, which many loads
    can share.

    Attributes:
        held: whether the value of each motion is prescribed (N, 6).
        actuators: node pairs (A, 2); an actuator prescribes the change of distance
            of its nodes, and its force follows.
        floating: whether unconstrained rigid motions are allowed; loads must then
            balance, and the mean motion of the nodes is zero.
    """

    held: np.ndarray
    actuators: np.ndarray = field(default_factory=lambda: np.empty((0, 2), int))
    floating: bool = False

    def __post_init__(self):
        try:
            held = np.array(self.held, dtype=bool)
        except (TypeError, ValueError):  # lists of different lengths
            raise InvalidInput("held must be (N, 6) of true or false") from None
        object.__setattr__(self, "held", held)
        object.__setattr__(self, "actuators", node_pairs(self.actuators))


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
    pairs = np.array(nodes)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=int)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidInput(
            f"actuators must be pairs of node numbers (A, 2), got {pairs.shape}"
        )
    return pairs


# --- order of elimination ---------------------------------------------------
#
# Nested dissection by position, for little fill: a plane across the longest side
# splits the nodes; those of one side that beams join to the other are the separator
# and come last; both parts are split in turn. Source: George, SIAM J. Numer. Anal. 10
# (1973). In a voxel lattice one layer meets the next in few nodes, so separators are
# small. Measured with SuperLU on one core, beside its own minimum degree (seconds to
# factor, million entries of L): 8 x 8 x 8 voxels 0.09 and 1.5 against 0.15 and 1.9;
# 12 x 12 x 12 0.77 and 8.3 against 1.95 and 12.8.

LEAF = 10
"""Parts with at most so many nodes are not split."""


def nested_dissection(positions: np.ndarray, beams: np.ndarray) -> np.ndarray:
    """The nodes in the order of elimination (N,).

    Args:
        positions: positions of the nodes (N, 3).
        beams: node pairs (B, 2).
    """
    # Rounded to levels, so that a layer of nodes is one level.
    size = max(np.ptp(positions, axis=0).max(), np.finfo(float).tiny)
    level = np.rint((positions - positions.min(axis=0)) / size * 1e6).astype(int)
    place = np.zeros(len(positions), dtype=int)
    pieces: list[np.ndarray] = []
    # Depth first with the separator written before its parts, then reversed.
    stack = [(np.arange(len(positions)), beams)]
    while stack:
        nodes, inner = stack.pop()
        found = _part(level, nodes, inner) if len(nodes) > LEAF else None
        if found is None:
            pieces.append(nodes)
            continue
        separator, below = found
        pieces.append(separator)
        place[nodes] = 1
        place[below] = 2
        place[separator] = 0
        for side in (1, 2):
            mine = nodes[place[nodes] == side]
            kept = inner[(place[inner] == side).all(axis=1)]
            stack.append((mine, kept))
    return np.concatenate(pieces[::-1])


def _part(level, nodes, inner) -> tuple[np.ndarray, np.ndarray] | None:
    """The separator, and the nodes below the cut (which include some of it).

    None when the nodes cannot be split.
    """
    places = level[nodes]
    along = level[:, int(np.argmax(np.ptp(places, axis=0)))]
    mine = along[nodes]
    levels = np.unique(mine)
    if len(levels) < 2:
        return None
    middle = int(np.searchsorted(levels, np.median(mine)))
    best = None
    low, high = along[inner].min(axis=1), along[inner].max(axis=1)
    for cut in levels[max(middle - 2, 0) : min(middle + 2, len(levels) - 1)]:
        crossing = inner[(low <= cut) & (high > cut)].ravel()
        is_low = along[crossing] <= cut
        below = nodes[mine <= cut]
        for side in (is_low, ~is_low):
            separator = np.unique(crossing[side])
            balance = min(len(below), len(nodes) - len(below))
            score = len(separator) / balance
            if best is None or score < best[0]:
                best = score, separator, below
    return best[1:]
