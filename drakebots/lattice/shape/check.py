"""Findings about the shape of a lattice: loose, singly attached and thin parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.lattice.shape.lattice import Lattice
from drakebots.lattice.shape.planes import neighbours, pieces

Voxel = tuple[int, int, int]


@dataclass(frozen=True)
class LatticeReport:
    """The findings of :func:`check_lattice`.

    Attributes:
        voxels, nodes, beams: their numbers.
        pieces: voxels of each connected piece, the largest first.
        single: voxels attached to the rest by one node only; just the bending of
            beams resists their three rotations about it.
        thin: for each axis, voxels without a neighbour along it. Such sheets and rods
            have motions that planes of motion do not describe.
    """

    voxels: int
    nodes: int
    beams: int
    pieces: tuple[tuple[Voxel, ...], ...]
    single: tuple[Voxel, ...]
    thin: tuple[tuple[Voxel, ...], ...]

    @property
    def connected(self) -> bool:
        """Whether the lattice is in one piece."""
        return len(self.pieces) == 1

    @property
    def sound(self) -> bool:
        """Whether there is no finding."""
        return self.connected and not self.single and not any(self.thin)

    def lines(self) -> list[str]:
        """The numbers of parts, then one line for each finding."""
        lines = [f"{self.voxels} voxels, {self.nodes} nodes, {self.beams} beams"]
        if not self.connected:
            lines.append(f"it consists of {_pieces_text(self.pieces)}")
        if self.single:
            lines.append(
                "hanging on one node, free to rotate but for the bending of beams: "
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
    near = neighbours(lattice)
    counts = np.zeros((len(voxels), 3), int)
    np.add.at(counts, (near[:, :2].T, near[:, 2]), 1)
    return LatticeReport(
        voxels=len(voxels),
        nodes=len(lattice.nodes),
        beams=len(lattice.beams),
        pieces=_pieces(lattice),
        single=tuple(v for v, c in zip(voxels, counts) if c.sum() == 1),
        thin=tuple(
            tuple(v for v, c in zip(voxels, counts) if c[axis] == 0)
            for axis in range(3)
        ),
    )


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
    shown = "; ".join(_some(piece) for piece in found[:4])
    more = f"; and {len(found) - 4} more" if len(found) > 4 else ""
    return f"{len(found)} pieces: {shown}{more}"


def _some(voxels: tuple[Voxel, ...], most: int = 6) -> str:
    shown = " ".join(f"({i},{j},{k})" for i, j, k in voxels[:most])
    more = f" and {len(voxels) - most} more" if len(voxels) > most else ""
    return f"voxel{'s' * (len(voxels) > 1)} {shown}{more}"
