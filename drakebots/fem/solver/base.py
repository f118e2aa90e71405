"""What every sparse solver does: analyse once, factor often, solve many, condense.

With the kept unknowns c and the others i, one factorization gives the Schur complement
S = A_cc - A_ci A_ii^-1 A_ic, and

    reduce:  y_i = A_ii^-1 b_i (within the solver),  b_c := b_c - A_ci A_ii^-1 b_i
    expand:  x_i = A_ii^-1 (b_i - A_ic x_c)

so that a caller can couple x_c to other equations without ever forming x_i.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.fem.assembly import SymmetricPattern


class SparseSolver(ABC):
    """Solves A x = b for matrices of one fixed pattern.

    Attributes:
        name: name of the library.
        pattern: pattern of A.
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
        self._factored = False

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
        """The state for `expand`, and b_c - A_ci A_ii^-1 b_i (k,) or (k, r).

        Args:
            b: right-hand side (n,), or r of them (n, r).
        """

    @abstractmethod
    def expand(self, state: np.ndarray, x_kept: np.ndarray) -> np.ndarray:
        """The whole x, (n,) or (n, r), from its kept part."""

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

    def checked(self, values: np.ndarray) -> np.ndarray:
        """A copy of the values (nnz,) of a matrix.

        Raises:
            InvalidInput: for another shape.
            NoSolution: for values that are not finite.
        """
        values = np.array(values, float)
        if values.shape != (self.pattern.nnz,):
            raise InvalidInput(
                f"matrix values: shape {values.shape}, needs ({self.pattern.nnz},)"
            )
        if not np.isfinite(values).all():
            raise NoSolution(
                f"{self.name}: the matrix holds values that are not finite"
            )
        return values

    def _check_factored(self):
        if not self._factored:
            raise InvalidInput("sparse solver: factor a matrix before solving")

    def close(self) -> None:  # noqa: B027 - nothing to free by default
        """Frees the factors; the solver cannot be used afterwards."""
