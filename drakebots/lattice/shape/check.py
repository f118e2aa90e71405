"""What is wrong or weak in the shape of a lattice, in plain words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from drakebots.core.errors import InvalidInput
from drakebots.lattice.shape.lattice import Lattice

Voxel = tuple[int, int, int]


@dataclass(frozen=True)
class LatticeReport:
    """The findings of :func:`check_lattice`.

    Attributes:
        voxels, nodes, beams: how many there are.
        pieces: voxels of each connected piece, the largest first.
        single: voxels that one node alone joins to the rest. Nothing but the
            bending of beams holds their three turns about it.
        thin: by axis 0..2, voxels with no neighbour along it. Such sheets and
            rods have motions that planes of motion do not describe.
    """

    voxels: int
    nodes: int
    beams: int
    pieces: tuple[tuple[Voxel, ...], ...]
    single: tuple[Voxel, ...]
    thin: tuple[tuple[Voxel, ...], ...]

    @property
    def connected(self) -> bool:
        """Whether it is in one piece."""
        return len(self.pieces) == 1

    @property
    def sound(self) -> bool:
        """Whether nothing was found."""
        return self.connected and not self.single and not any(self.thin)

    def lines(self) -> list[str]:
        """The findings, one line each; a first line says what there is."""
        lines = [f"{self.voxels} voxels, {self.nodes} nodes, {self.beams} beams"]
        if not self.connected:
            lines.append(f"it falls into {_pieces_text(self.pieces)}")
        if self.single:
            lines.append(
                f"hanging on one node, free to turn but for the bending of beams: "
                f"{_some(self.single)}"
            )
        for axis, voxels in zip("xyz", self.thin):
            if voxels:
                lines.append(
                    f"one voxel thick along {axis}: {_some(voxels)}; it has motions "
                    "that planes of motion miss"
                )
        return lines if not self.sound else [*lines, "in one piece, nowhere thin"]


def check_lattice(lattice: Lattice) -> LatticeReport:
    """Looks for loose, singly attached and one-thick parts."""
    voxels = [tuple(v) for v in lattice.voxels.tolist()]
    there = set(voxels)

    def neighbours(voxel: Voxel, axis: int) -> int:
        beside = [list(voxel), list(voxel)]
        beside[0][axis] -= 1
        beside[1][axis] += 1
        return sum(tuple(v) in there for v in beside)

    counts = np.array([[neighbours(v, a) for a in range(3)] for v in voxels])
    pieces = _pieces(lattice)
    return LatticeReport(
        voxels=len(voxels),
        nodes=len(lattice.nodes),
        beams=len(lattice.beams),
        pieces=tuple(tuple(voxels[i] for i in piece) for piece in pieces),
        single=tuple(v for v, c in zip(voxels, counts) if c.sum() == 1),
        thin=tuple(
            tuple(v for v, c in zip(voxels, counts) if c[axis] == 0)
            for axis in range(3)
        ),
    )


def require_connected(lattice: Lattice) -> None:
    """Call before anything is simulated.

    Raises:
        InvalidInput: when the lattice is in pieces, naming them.
    """
    pieces = _pieces(lattice)
    if len(pieces) > 1:
        voxels = [tuple(v) for v in lattice.voxels.tolist()]
        named = tuple(tuple(voxels[i] for i in piece) for piece in pieces)
        raise InvalidInput(
            f"the lattice falls into {_pieces_text(named)}; join them face to face, or "
            "simulate one"
        )


def split(lattice: Lattice) -> tuple[Lattice, ...]:
    """The connected pieces as lattices, the largest first."""
    return tuple(Lattice(lattice.voxels[p], lattice.pitch) for p in _pieces(lattice))


def _pieces(lattice: Lattice) -> list[np.ndarray]:
    """Rows of the voxels of each piece, the largest first."""
    n, m = len(lattice.voxels), len(lattice.nodes)
    owner = np.repeat(np.arange(n), 6)
    corner = n + lattice.voxel_nodes.ravel()
    graph = scipy.sparse.coo_array(
        (np.ones(6 * n), (owner, corner)), shape=(n + m, n + m)
    )
    label = connected_components(graph, directed=False)[1][:n]
    pieces = [np.flatnonzero(label == k) for k in np.unique(label)]
    return sorted(pieces, key=lambda piece: (-len(piece), piece[0]))


def _pieces_text(pieces: tuple[tuple[Voxel, ...], ...]) -> str:
    shown = "; ".join(_some(piece) for piece in pieces[:4])
    more = f"; and {len(pieces) - 4} more" if len(pieces) > 4 else ""
    return f"{len(pieces)} pieces: {shown}{more}"


def _some(voxels: tuple[Voxel, ...], most: int = 6) -> str:
    shown = " ".join(f"({i},{j},{k})" for i, j, k in voxels[:most])
    more = f" and {len(voxels) - most} more" if len(voxels) > most else ""
    return f"voxel{'s' * (len(voxels) > 1)} {shown}{more}"
