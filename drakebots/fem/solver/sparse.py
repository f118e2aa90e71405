"""Sparse symmetric solves: analyse once, refactor, solve many, condense.

With the kept unknowns c and the rest i, one factorization gives the Schur
complement S = A_cc - A_ci A_ii^-1 A_ic, and

    reduce:  y_i = A_ii^-1 b_i (in the solver),  b_c := b_c - A_ci A_ii^-1 b_i
    expand:  x_i = A_ii^-1 (b_i - A_ic x_c)

so a caller may couple x_c to other equations and never sees the inside.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import splu

from drakebots.core import threads as mkl
from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.fem.assembly import SymmetricPattern
from drakebots.fem.solver.base import PRECISIONS, SOLVERS, SparseSolver
from drakebots.fem.solver.pardiso import PardisoSolver


class ScipySolver(SparseSolver):
    """SuperLU: everywhere, some ten times slower than PARDISO.

    Indefinite matrices factor as well as definite ones.
    """

    name = "scipy"

    def __init__(self, pattern, kept=None):
        super().__init__(pattern, kept)
        self._inner = np.setdiff1d(np.arange(pattern.size), self.kept)
        self._lu = self._schur = None

    def factor(self, values):
        self._small = self._schur = self._lu = None
        full = self.pattern.full(values)
        if len(self.kept):
            rows = full[self._inner]
            self._cross = rows[:, self.kept].toarray()
            self._corner = full[self.kept][:, self.kept].toarray()
            full = rows[:, self._inner]
        try:
            self._lu = splu(
                full.tocsc(),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError as error:
            raise NoSolution(f"scipy solver: {error}") from error

    def _need(self):
        if self._lu is None:
            raise InvalidInput("sparse solver: factor a matrix before solving")

    @property
    def schur(self):
        self._need()
        if self._schur is None:
            S = self._corner - self._cross.T @ self._lu.solve(self._cross)
            self._schur = (S + S.T) / 2
        return self._schur

    def reduce(self, b):
        self._need()
        if not len(self.kept):
            return self._lu.solve(np.asarray(b, float)), np.empty((0, *b.shape[1:]))
        inner = self._lu.solve(b[self._inner])
        return inner, b[self.kept] - self._cross.T @ inner

    def expand(self, state, x_kept):
        if not len(self.kept):
            return state
        x = np.empty((self.pattern.size, *state.shape[1:]))
        x[self.kept] = x_kept
        x[self._inner] = state - self._lu.solve(self._cross @ x_kept)
        return x


def make_solver(
    pattern: SymmetricPattern,
    kept: np.ndarray | None = None,
    *,
    name: str = "auto",
    definite: bool = True,
    threads: int | None = None,
    precision: str = "double",
) -> SparseSolver:
    """A solver of matrices of this pattern.

    Args:
        pattern: upper triangle of the matrices.
        kept: dofs to condense onto; none by default.
        name: "pardiso" (MKL, x86-64), "scipy" (everywhere), or "auto": the first
            of these that is installed.
        definite: the matrices are positive definite; PARDISO then uses Cholesky
            and refuses others. Otherwise LDL' with Bunch-Kaufman pivots.
        threads: of MKL; its own choice by default.
        precision: "double", or "single": PARDISO factors in float32, in about half
            the time. SciPy has no such factorization and stays in double, as the
            solver's `exact` tells.

    Raises:
        UnknownName: for another name or precision.
        InvalidInput: when PARDISO is asked for and not installed.
    """
    if name not in SOLVERS:
        raise UnknownName("sparse solver", name, SOLVERS)
    if precision not in PRECISIONS:
        raise UnknownName("precision", precision, PRECISIONS)
    if name == "scipy" or (name == "auto" and mkl.find_mkl() is None):
        return ScipySolver(pattern, kept)
    return PardisoSolver(
        pattern, kept, definite=definite, threads=threads, precision=precision
    )
