"""The planes of motion of a lattice: which voxels tilt together, and how.

A plane of motion (p, q) is the layer of voxels whose centres have the odd
coordinate q along the axis p, the normal of the square that rotates. With voxel
indices v and centre c in half pitches, its unit field at a node of voxel v is

    u(node) = s e_p x (node - c),    s = (-1)^(v_a + v_b),  a, b != p

the same for both voxels that own the node: neighbours tilt in opposite senses, as
corner-sharing octahedra do. The nodes c -+ e_p do not move. Source: Tebyani et al.
(2022), section 2.1, Figs. 2 to 4; the closed form is ours.

A layer in several pieces that share no node within it is as many planes, since each
piece can tilt alone: `part` numbers them. Layers of the paper's blocks have one part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array

from drakebots.core.errors import InvalidInput, UnknownName, some
from drakebots.fem.mesh import connected_pieces
from drakebots.lattice.shape.lattice import OFFSETS, Lattice

AXES = "xyz"


def axis_number(axis: int | str) -> int:
    """An axis as 0, 1 or 2, given as a number or by its letter.

    Raises:
        UnknownName: for anything else.
    """
    if isinstance(axis, str) and axis in tuple(AXES):
        return AXES.index(axis)
    number = isinstance(axis, int | np.integer | float) and not isinstance(axis, bool)
    if number and axis in (0, 1, 2):
        return int(axis)
    raise UnknownName("axis", axis, AXES)


def neighbours(lattice: Lattice) -> np.ndarray:
    """Voxels that share a node: rows (v, w, axis) with w = v + e_axis (n, 3)."""
    owned, rows = lattice.voxel_nodes, []
    for axis in range(3):
        _, v, w = np.intersect1d(
            owned[:, 3 + axis], owned[:, axis], assume_unique=True, return_indices=True
        )
        rows.append(np.stack([v, w, np.full(len(v), axis)], axis=1))
    return np.concatenate(rows)


def pieces(size: int, pairs: np.ndarray) -> np.ndarray:
    """Number of the piece of each of `size` things that pairs (n, 2) join (size,)."""
    return connected_pieces(pairs, size)[1]


@dataclass(frozen=True, order=True)
class Plane:
    """A plane of motion.

    Attributes:
        axis: p, its normal.
        coordinate: q, odd [half pitches].
        part: number of the piece of the layer, from the voxel of lowest index.
    """

    axis: int
    coordinate: int
    part: int = 0

    def __str__(self) -> str:
        part = f", part {self.part}" if self.part else ""
        return f"{AXES[self.axis]} = {self.coordinate}{part}"


class Planes:
    """All the planes of motion of a lattice, sorted.

    Attributes:
        lattice: the lattice.
        all: the planes, P of them.
        label: index in `all` of each voxel's plane with each normal (3, V).
        sign: sign s of each voxel in that plane (3, V).
    """

    def __init__(self, lattice: Lattice):
        self.lattice = lattice
        self.label = np.empty((3, len(lattice.voxels)), int)
        voxels, near = lattice.voxels, neighbours(lattice)
        total = voxels.sum(axis=1)
        self.sign = np.array([1 - 2 * ((total - voxels[:, p]) % 2) for p in range(3)])
        found: list[Plane] = []
        order = np.lexsort(voxels.T[::-1])
        for p in range(3):
            piece = pieces(len(voxels), near[near[:, 2] != p, :2])
            # Numbered by coordinate first, then by the lowest voxel of the piece.
            first: dict[int, int] = {}
            for v in order[np.argsort(voxels[order, p], kind="stable")]:
                if piece[v] not in first:
                    first[piece[v]] = len(found)
                    q = int(2 * voxels[v, p] + 1)
                    part = sum(g.axis == p and g.coordinate == q for g in found)
                    found.append(Plane(p, q, part))
            self.label[p] = [first[k] for k in piece]
        self.all = tuple(found)

    def __len__(self) -> int:
        return len(self.all)

    @cached_property
    def fields(self) -> csc_array:
        """The unit field of each plane as a column (3 N, P); entries 0, +-1."""
        owned = self.lattice.voxel_nodes
        rows, columns, values = [], [], []
        for p in range(3):
            tilt = np.cross(np.eye(3, dtype=int)[p], OFFSETS)  # (6, 3)
            for n, k in np.argwhere(tilt):
                # A node of two voxels gets its entry from the first one only.
                node, first = np.unique(owned[:, n], return_index=True)
                rows.append(3 * node + k)
                columns.append(self.label[p, first])
                values.append(self.sign[p, first] * tilt[n, k])
        place = np.stack([np.concatenate(rows), np.concatenate(columns)])
        place, first = np.unique(place, axis=1, return_index=True)
        values = np.concatenate(values)[first].astype(float)
        shape = (3 * len(self.lattice.nodes), len(self.all))
        return csc_array((values, tuple(place)), shape=shape)

    def driven(self, place: Sequence[int], axis: int | str) -> int:
        """Index of the plane that moves a node [half pitches] along an axis.

        Its normal is neither that axis nor the node's even axis.

        Raises:
            InvalidInput: for a node not in the lattice, or the even axis, along
                which no plane moves it.
            UnknownName: for an axis other than x, y, z.
        """
        axis = axis_number(axis)
        node = self.lattice.node(place)
        voxel, number = self.lattice.voxel_of(node)
        even = number % 3
        if axis == even:
            free = " and ".join(AXES[a] for a in range(3) if a != even)
            where = tuple(np.asarray(place).tolist())
            raise InvalidInput(
                f"node {where} moves only along {free}: its coordinate along "
                f"{AXES[even]} is even; push along {free.replace('and', 'or')}"
            )
        return int(self.label[3 - axis - even, voxel])


# --- findings about the shape ---------------------------------------------------

Voxel = tuple[int, int, int]
_PARTS = ("voxels", "nodes", "beams")


@dataclass(frozen=True)
class LatticeReport:
    """The findings of :func:`check_lattice`.

    Attributes:
        lattice: the voxels.
        pieces: voxels of each connected piece, the largest first.
        single: voxels attached to the rest by one node only; just the bending of
            beams resists their three rotations about it.
        thin: for each axis, voxels without a neighbour along it. Such sheets and rods
            have motions that planes of motion do not describe.
    """

    lattice: Lattice
    pieces: tuple[tuple[Voxel, ...], ...]
    single: tuple[Voxel, ...]
    thin: tuple[tuple[Voxel, ...], ...]

    @property
    def numbers(self) -> dict[str, int]:
        """Numbers of voxels, nodes and beams."""
        return {name: len(getattr(self.lattice, name)) for name in _PARTS}

    def lines(self) -> list[str]:
        """The numbers of parts, then one line for each finding."""
        found = []
        if len(self.pieces) > 1:
            found.append(f"it consists of {_pieces_text(self.pieces)}")
        if self.single:
            found.append(
                "hanging on one node, free to rotate but for the bending of beams: "
                f"{_some(self.single)}"
            )
        found += [
            f"one voxel thick along {axis}: {_some(voxels)}; it has motions that "
            "planes of motion miss"
            for axis, voxels in zip(AXES, self.thin)
            if voxels
        ]
        head = ", ".join(f"{count} {name}" for name, count in self.numbers.items())
        return [head, *(found or ["in one piece, nowhere thin"])]


def check_lattice(lattice: Lattice) -> LatticeReport:
    """Looks for loose, singly attached and one-thick parts."""
    voxels = [tuple(v) for v in lattice.voxels.tolist()]
    near = neighbours(lattice)
    counts = np.zeros((len(voxels), 3), int)
    np.add.at(counts, (near[:, :2].T, near[:, 2]), 1)

    def where(rows: np.ndarray) -> tuple[Voxel, ...]:
        return tuple(voxels[i] for i in np.flatnonzero(rows))

    single = where(counts.sum(axis=1) == 1)
    thin = tuple(where(along == 0) for along in counts.T)
    return LatticeReport(lattice, _pieces(lattice), single, thin)


def require_connected(lattice: Lattice) -> None:
    """Refuses a lattice in several pieces, before anything is simulated.

    Raises:
        InvalidInput: when the lattice is in pieces, naming them.
    """
    found = _pieces(lattice)
    if len(found) > 1:
        raise InvalidInput(
            f"the lattice consists of {_pieces_text(found)}; join them face to face, "
            "or simulate one"
        )


def _pieces(lattice: Lattice) -> tuple[tuple[Voxel, ...], ...]:
    """Voxels of each connected piece, the largest first."""
    voxels = [tuple(v) for v in lattice.voxels.tolist()]
    label = pieces(len(voxels), neighbours(lattice)[:, :2])
    rows = [np.flatnonzero(label == k) for k in np.unique(label)]
    rows = sorted(rows, key=lambda piece: (-len(piece), piece[0]))
    return tuple(tuple(voxels[i] for i in piece) for piece in rows)


def _pieces_text(found: tuple[tuple[Voxel, ...], ...]) -> str:
    return f"{len(found)} pieces: {some(map(_some, found), separator='; ')}"


def _some(voxels: tuple[Voxel, ...]) -> str:
    shown = some((f"({i},{j},{k})" for i, j, k in voxels), 6, " ")
    return f"voxel{'s' * (len(voxels) > 1)} {shown}"
