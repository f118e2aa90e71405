"""Prescribed positions: which nodes follow which motion, and the pinned matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from drakebots.errors import InvalidInput
from drakebots.fem.pattern import SymmetricPattern


@dataclass(frozen=True)
class Prescribed:
    """Nodes whose positions are given.

    Attributes:
        nodes: (k,).
        motion: time [s] -> positions (k, 3) [m], or positions that stay.
        axes: which of x, y, z are prescribed.
    """

    nodes: np.ndarray
    motion: Callable[[float], np.ndarray] | np.ndarray
    axes: tuple[bool, bool, bool] = (True, True, True)

    def at(self, time: float) -> np.ndarray:
        """Positions (k, 3) [m] at a time [s].

        Raises:
            InvalidInput: when the motion has another shape or is not finite.
        """
        place = self.motion(time) if callable(self.motion) else self.motion
        place = np.asarray(place, float)
        if place.shape != (len(self.nodes), 3):
            raise InvalidInput(
                f"prescribed motion at {time:g} s: shape {place.shape}, needs "
                f"({len(self.nodes)}, 3)"
            )
        if not np.isfinite(place).all():
            row = int(np.argmin(np.isfinite(place).all(axis=1)))
            raise InvalidInput(
                f"prescribed motion at {time:g} s: node {self.nodes[row]} goes to "
                f"{place[row].tolist()}, not finite"
            )
        return place


class Boundary:
    """All prescribed dofs of a model as one set.

    Attributes:
        dofs: prescribed dofs, sorted (p,).
        mask: over all dofs (3 N,), True where prescribed.
    """

    def __init__(self, nodes: int, parts: Sequence[Prescribed] | Prescribed = ()):
        self._parts = (parts,) if isinstance(parts, Prescribed) else tuple(parts)
        self.mask = np.zeros(3 * nodes, bool)
        for part in self._parts:
            ids = np.asarray(part.nodes)
            if ids.ndim != 1 or ids.size == 0:
                raise InvalidInput("prescribed nodes: the set is empty; name some")
            bad = ids[(ids < 0) | (ids >= nodes)]
            if bad.size:
                raise InvalidInput(
                    f"prescribed node {bad[0]}: the model has nodes 0..{nodes - 1}"
                )
            dofs = self._dofs(part)
            if self.mask[dofs].any() or len(np.unique(dofs)) != len(dofs):
                twice = dofs[self.mask[dofs]] if self.mask[dofs].any() else dofs
                raise InvalidInput(
                    f"prescribed node {twice[0] // 3}: given twice; keep one"
                )
            self.mask[dofs] = True
        self.dofs = np.flatnonzero(self.mask)

    @staticmethod
    def _dofs(part):
        axes = np.flatnonzero(part.axes)
        return (3 * np.asarray(part.nodes)[:, None] + axes).ravel()

    def displacement(self, x: np.ndarray, time: float) -> np.ndarray:
        """What takes x (N, 3) to the prescribed positions; 0 elsewhere (3 N,)."""
        step = np.zeros(x.size)
        for part in self._parts:
            axes = np.flatnonzero(part.axes)
            move = part.at(time)[:, axes] - x[part.nodes][:, axes]
            step[self._dofs(part)] = move.ravel()
        return step


def pinned(
    pattern: SymmetricPattern, values: np.ndarray, boundary: Boundary
) -> np.ndarray:
    """The matrix with prescribed rows and columns replaced by the identity.

    The pattern stays, so an analysis stays valid. The identity is scaled to the
    size of the diagonal.
    """
    if not len(boundary.dofs):
        return values
    size = float(np.abs(values[pattern.diagonal]).mean())
    out = values.copy()
    _pin(pattern.indptr, pattern.indices, out, boundary.mask, size)
    return out


@njit(cache=True)
def _pin(indptr, indices, values, mask, size):
    for i in range(len(mask)):
        for p in range(indptr[i], indptr[i + 1]):
            if mask[i] or mask[indices[p]]:
                values[p] = size if indices[p] == i else 0.0
