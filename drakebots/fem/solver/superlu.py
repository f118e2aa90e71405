"""SuperLU through SciPy, which is everywhere."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import splu

from drakebots.core.errors import SolverProblem
from drakebots.fem.solver.base import Engine


class SciPyEngine(Engine):
    """SuperLU: available everywhere, ten and more times slower than the others.

    It factors indefinite matrices as well as definite ones.
    """

    name = "scipy"

    def __init__(self, pattern, kept):
        super().__init__(pattern, kept)
        self._inner = np.setdiff1d(np.arange(pattern.size), self.kept)
        self._lu = self._schur = None

    def factor(self, values):
        self._schur = None
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
            raise SolverProblem(f"scipy solver: {error}") from error

    @property
    def schur(self):
        if self._schur is None:
            S = self._corner - self._cross.T @ self._lu.solve(self._cross)
            self._schur = (S + S.T) / 2
        return self._schur

    def reduce(self, b):
        if not len(self.kept):
            return self._lu.solve(b), np.empty((0, *b.shape[1:]))
        inner = self._lu.solve(b[self._inner])
        return inner, b[self.kept] - self._cross.T @ inner

    def expand(self, state, x_kept):
        if not len(self.kept):
            return state
        x = np.empty((self.pattern.size, *state.shape[1:]))
        x[self.kept] = x_kept
        x[self._inner] = state - self._lu.solve(self._cross @ x_kept)
        return x
