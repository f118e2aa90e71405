"""What every sparse solver of ours does: one pattern, many factorizations."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve

from drakebots.core.errors import InvalidInput
from drakebots.fem.assembly import SymmetricPattern

SOLVERS = ("auto", "pardiso", "scipy")


PRECISIONS = ("double", "single")


class SparseSolver(ABC):
    """Solves A x = b of one fixed pattern.

    Attributes:
        name: which library.
        pattern: of A.
        kept: dofs of the Schur complement (k,), in the caller's order.
        exact: whether answers have the accuracy of float64; those of single
            precision need refinement (:mod:`drakebots.skin.frame.frame_solver`).
    """

    name = ""
    exact = True

    def __init__(self, pattern: SymmetricPattern, kept: np.ndarray | None = None):
        kept = np.asarray([] if kept is None else kept, dtype=np.int64).ravel()
        if len(np.unique(kept)) != len(kept) or np.any(
            (kept < 0) | (kept >= pattern.size)
        ):
            raise InvalidInput(
                "kept dofs: must be distinct and lie in 0.."
                f"{pattern.size - 1}; got {len(kept)}"
            )
        self.pattern, self.kept = pattern, kept
        self._small = None

    @abstractmethod
    def factor(self, values: np.ndarray) -> None:
        """Factors A with these upper values (nnz,).

        Raises:
            NoSolution: when A is singular or, for a solver of positive definite
                matrices, not positive definite.
        """

    @property
    @abstractmethod
    def schur(self) -> np.ndarray:
        """S (k, k) of the last factorization, in the order of `kept`."""

    @abstractmethod
    def reduce(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state to expand from, and b_c - A_ci A_ii^-1 b_i (k,) or (k, r)."""

    @abstractmethod
    def expand(self, state: np.ndarray, x_kept: np.ndarray) -> np.ndarray:
        """The whole x, (n,) or (n, r), given its kept part."""

    def solve(self, b: np.ndarray) -> np.ndarray:
        """x (n,) or (n, r) with A x = b."""
        state, small = self.reduce(b)
        if not len(self.kept):
            return self.expand(state, small)
        if self._small is None:
            try:
                self._small = cho_solve, cho_factor(self.schur)
            except np.linalg.LinAlgError:
                self._small = lu_solve, lu_factor(self.schur)
        back, factors = self._small
        return self.expand(state, back(factors, small))

    def close(self) -> None:  # noqa: B027 - most have nothing to free
        """Frees the factors; the solver cannot be used afterwards."""
