"""Common face of sparse solvers: analyse once, factor often, condense.

With the kept unknowns c and the others i, one factorization gives the Schur complement
S = A_cc - A_ci A_ii^-1 A_ic, and

    reduce:  y_i = A_ii^-1 b_i (within the library),  b_c := b_c - A_ci A_ii^-1 b_i
    expand:  x_i = A_ii^-1 (b_i - A_ic x_c)

so that a caller can couple x_c to other equations without ever forming x_i.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod

import numpy as np

from drakebots.core.errors import InvalidInput, SolverProblem
from drakebots.fem.assembly import SymmetricPattern


class Engine(ABC):
    """One library's factorization of matrices of one fixed pattern.

    Nothing of its answers is checked here: :class:`.SparseSolver` does that.

    Attributes:
        name: name of the library.
        pattern: pattern of A.
        kept: dofs of the Schur complement (k,), in the caller's order.
        exact: whether answers have the accuracy of float64; those of single
            precision need refinement (:mod:`drakebots.skin.coupled.solver`).
        schur: S (k, k) of the last factorization, in the order of `kept`.
    """

    name = ""
    exact = True
    schur: np.ndarray

    def __init__(self, pattern: SymmetricPattern, kept: np.ndarray):
        self.pattern, self.kept = pattern, kept

    @abstractmethod
    def factor(self, values: np.ndarray) -> None:
        """Factors A with these upper values (nnz,), which nobody may change after.

        Raises:
            NoSolution: when A is singular or, for an engine of positive definite
                matrices, not positive definite.
        """

    @abstractmethod
    def reduce(self, b: np.ndarray) -> tuple[object, np.ndarray]:
        """The state for `expand`, and b_c - A_ci A_ii^-1 b_i (k,) or (k, r).

        The state is the whole x where no dof is kept.

        Args:
            b: right-hand side (n,), or r of them (n, r).
        """

    @abstractmethod
    def expand(self, state: object, x_kept: np.ndarray) -> np.ndarray:
        """The whole x, (n,) or (n, r), from its kept part, where dofs are kept."""

    def close(self) -> None:  # noqa: B027 - nothing to free by default
        """Frees the factors; the engine cannot be used afterwards."""

    def __del__(self):
        # At interpreter shutdown the modules are gone; the process frees the memory.
        if not sys.is_finalizing():
            self.close()


def kept_dofs(pattern: SymmetricPattern, kept: np.ndarray | None) -> np.ndarray:
    """The dofs to keep (k,), none by default.

    Raises:
        InvalidInput: where one is listed twice or is not of the pattern.
    """
    kept = np.asarray([] if kept is None else kept, dtype=np.int64).ravel()
    if len(np.unique(kept)) != len(kept) or np.any((kept < 0) | (kept >= pattern.size)):
        raise InvalidInput(
            f"kept dofs: must be distinct and lie in 0..{pattern.size - 1}; got "
            f"{len(kept)}"
        )
    return kept


class SolverFault(SolverProblem):
    """A library's answer that misses its own equations.

    Its solver has gone on to the next library: whoever factors and solves anew gets
    that one's answer.
    """
