"""SciPy's solver, which is everywhere, and the choice of a solver by name."""

from __future__ import annotations

import functools
import warnings

import numpy as np
from scipy.sparse.linalg import splu

from drakebots.core import threads as mkl
from drakebots.core.checks import check_value, one_of
from drakebots.core.errors import DrakebotsWarning, NoSolution
from drakebots.fem.assembly import SymmetricPattern
from drakebots.fem.solver import mumps
from drakebots.fem.solver.base import SparseSolver
from drakebots.fem.solver.pardiso import PardisoSolver

SOLVERS = ("auto", "pardiso", "mumps", "scipy")
PRECISIONS = ("double", "single")


class ScipySolver(SparseSolver):
    """SuperLU: available everywhere, ten and more times slower than the others.

    It factors indefinite matrices as well as definite ones.
    """

    name = "scipy"

    def __init__(self, pattern, kept=None):
        super().__init__(pattern, kept)
        self._inner = np.setdiff1d(np.arange(pattern.size), self.kept)
        self._lu = self._schur = None

    def factor(self, values):
        self._small = self._schur = None
        self._factored = False
        full = self.pattern.full(self.checked(values))
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
        self._factored = True

    @property
    def schur(self):
        self._check_factored()
        if self._schur is None:
            S = self._corner - self._cross.T @ self._lu.solve(self._cross)
            self._schur = (S + S.T) / 2
        return self._schur

    def reduce(self, b):
        self._check_factored()
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
    """A solver for matrices of this pattern.

    Args:
        pattern: upper triangle of the matrices.
        kept: dofs to condense onto; none by default.
        name: "pardiso" (MKL, x86-64), "mumps" (CasADi's), "scipy" (everywhere), or
            "auto": the first of these that is installed.
        definite: whether the matrices are positive definite; PARDISO and MUMPS then
            do not pivot, and refuse a matrix that is not. Otherwise they pivot.
        threads: number of threads of MKL, or of MUMPS's BLAS; their own choice by
            default.
        precision: "double", or "single": PARDISO factors in float32, in about half
            the time. The others have no such factorization and stay in double, as the
            solver's `exact` says.

    Raises:
        UnknownName: for another name or precision.
        InvalidInput: when PARDISO or MUMPS is requested and not installed.
    """
    check_value("solver", name, one_of("sparse solver", SOLVERS))
    check_value("precision", precision, one_of("precision", PRECISIONS))
    if name == "auto":
        name = _best()
    if name == "scipy":
        return ScipySolver(pattern, kept)
    options = {"definite": definite, "threads": threads}
    if name == "mumps":
        return mumps.MumpsSolver(pattern, kept, **options)
    return PardisoSolver(pattern, kept, precision=precision, **options)


@functools.cache
def _best() -> str:
    """The fastest solver that is installed; says once where that is SciPy's."""
    if mkl.find_mkl() is not None:
        return "pardiso"
    if mumps.find_mumps() is not None:
        return "mumps"
    warnings.warn(
        "neither MKL nor the MUMPS 5.8 of casadi >= 3.8 was found: skins are solved by "
        "SciPy, ten and more times slower; install one of them",
        DrakebotsWarning,
        stacklevel=3,
    )
    return "scipy"
