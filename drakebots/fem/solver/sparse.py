"""Sparse symmetric solvers: analyse once, factor often, solve many, condense.

With the kept unknowns c and the others i, one factorization gives the Schur complement
S = A_cc - A_ci A_ii^-1 A_ic, and

    reduce:  y_i = A_ii^-1 b_i (within the solver),  b_c := b_c - A_ci A_ii^-1 b_i
    expand:  x_i = A_ii^-1 (b_i - A_ic x_c)

so that a caller can couple x_c to other equations without ever forming x_i.
"""

from __future__ import annotations

import ctypes
import sys
from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve
from scipy.sparse.linalg import splu

from drakebots.core import threads as mkl
from drakebots.core.checks import check_value, one_of
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.fem.assembly import SymmetricPattern

SOLVERS = ("auto", "pardiso", "scipy")
PRECISIONS = ("double", "single")


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
        """The state for `expand`, and b_c - A_ci A_ii^-1 b_i (k,) or (k, r)."""

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

    def _check_factored(self):
        if not self._factored:
            raise InvalidInput("sparse solver: factor a matrix before solving")

    def close(self) -> None:  # noqa: B027 - nothing to free by default
        """Frees the factors; the solver cannot be used afterwards."""


class ScipySolver(SparseSolver):
    """SuperLU: available everywhere, about ten times slower than PARDISO.

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


DEFINITE, INDEFINITE = 2, -2
"""PARDISO's types of real symmetric matrices."""

MESSAGES = {
    -1: "input inconsistent",
    -2: "not enough memory",
    -3: "reordering problem",
    -4: "zero or negative pivot: the matrix is singular or not positive definite",
    -7: "the diagonal matrix is singular",
    -8: "integer overflow: the matrix is too large for 32-bit indices",
}


class PardisoSolver(SparseSolver):
    """MKL PARDISO through ctypes; see :class:`SparseSolver`.

    The analysis runs at the first factorization and is kept; a factorization that
    fails leaves it usable. In Schur mode (iparm[35] = 2) the dense complement on the
    kept dofs comes out of the factorization, and phases 331 and 333 do the forward and
    backward sweeps around it. In single precision (iparm[27] = 1) values, right-hand
    sides and S are float32; answers are float64 arrays of float32 accuracy.

    Reference: Intel oneMKL developer reference, "pardiso iparm parameter".
    """

    name = "pardiso"

    def __init__(
        self, pattern, kept=None, *, definite=True, threads=None, precision="double"
    ):
        super().__init__(pattern, kept)
        self.exact = precision == "double"
        self._real = np.float64 if self.exact else np.float32
        self._mkl = mkl.find_mkl()
        if self._mkl is None:
            raise InvalidInput(
                "sparse solver pardiso: libmkl_rt was not found; install pypardiso "
                "(x86-64 only) or choose the solver 'scipy'"
            )
        self._type = DEFINITE if definite else INDEFINITE
        self._threads = threads
        self._handle = np.zeros(64, np.int64)
        self._iparm = np.zeros(64, np.int32)
        self._iparm[0] = 1  # use these values, not the defaults
        self._iparm[1] = 2  # nested dissection
        self._iparm[9] = 8  # perturb pivots below 1e-8 (indefinite only)
        self._iparm[20] = 1  # 1 x 1 and 2 x 2 pivots
        self._iparm[23] = int(definite)  # two-level factorization
        self._iparm[27] = int(not self.exact)
        self._iparm[34] = 1  # indices from 0
        self._indptr = np.ascontiguousarray(pattern.indptr, np.int32)
        self._indices = np.ascontiguousarray(pattern.indices, np.int32)
        self._mark = np.zeros(pattern.size, np.int32)
        if len(self.kept):
            self._mark[self.kept] = 1
            self._iparm[35] = 2
            # MKL returns S in increasing order of dofs.
            self._order = np.argsort(np.argsort(self.kept))
        self._values = self._schur = None
        self._analysed = False

    def factor(self, values):
        values = np.ascontiguousarray(values, float)
        if values.shape != (self.pattern.nnz,):
            raise InvalidInput(
                f"matrix values: shape {values.shape}, needs ({self.pattern.nnz},)"
            )
        if not np.isfinite(values).all():
            raise NoSolution("pardiso: the matrix holds values that are not finite")
        self._values = values.astype(self._real)
        self._schur = self._small = None
        self._factored = False
        k = len(self.kept)
        S = np.zeros((k, k) if k else 1, self._real)
        if not self._analysed:
            self._call(11, None, None)
            self._analysed = True
        self._call(22, None, S)
        self._factored = True
        if k:
            S = S[np.ix_(self._order, self._order)].astype(float)
            self._schur = (S + S.T) / 2

    @property
    def schur(self):
        self._check_factored()
        return self._schur

    def reduce(self, b):
        given = np.asarray(b, float)
        b = np.array(given, self._real, order="F")
        if not len(self.kept):
            return self._sweep(33, b).astype(float), np.empty((0, *b.shape[1:]))
        # In the sweep b_c would be rounded to single precision.
        b[self.kept] = 0.0
        state = self._sweep(331, b)
        return state, given[self.kept] + state[self.kept]

    def expand(self, state, x_kept):
        if not len(self.kept):
            return state
        state = np.array(state, order="F")
        state[self.kept] = x_kept
        x = self._sweep(333, state).astype(float, copy=False)
        x[self.kept] = x_kept
        return x

    def close(self):
        if self._analysed:
            self._analysed = False
            self._call(-1, None, None)

    def __del__(self):
        # At interpreter shutdown the modules are gone; the process frees the memory.
        if not sys.is_finalizing() and getattr(self, "_analysed", False):
            self.close()

    def _sweep(self, phase, b):
        self._check_factored()
        x = np.empty_like(b, order="F")
        self._call(phase, b, x)
        return x

    def _call(self, phase, b, x):
        def pointer(array):
            return None if array is None else array.ctypes.data_as(ctypes.c_void_p)

        def number(value):
            return ctypes.byref(ctypes.c_int32(value))

        columns = 1 if b is None or b.ndim == 1 else b.shape[1]
        error = ctypes.c_int32(0)
        before = 0
        if self._threads:
            before = self._mkl.MKL_Set_Num_Threads_Local(int(self._threads))
        self._mkl.pardiso(
            pointer(self._handle),
            number(1),
            number(1),
            number(self._type),
            number(phase),
            number(self.pattern.size),
            pointer(self._values),
            pointer(self._indptr),
            pointer(self._indices),
            pointer(self._mark),
            number(columns),
            pointer(self._iparm),
            number(0),
            pointer(b),
            pointer(x),
            ctypes.byref(error),
        )
        if self._threads:
            self._mkl.MKL_Set_Num_Threads_Local(before)
        if error.value:
            reason = MESSAGES.get(error.value, "internal error")
            raise NoSolution(f"pardiso: {reason} (code {error.value}, phase {phase})")


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
        name: "pardiso" (MKL, x86-64), "scipy" (everywhere), or "auto": the first
            of these that is installed.
        definite: whether the matrices are positive definite; PARDISO then uses
            Cholesky and refuses others. Otherwise it uses LDL' with Bunch-Kaufman
            pivots.
        threads: number of threads of MKL; MKL's own choice by default.
        precision: "double", or "single": PARDISO factors in float32, in about half
            the time. SciPy has no such factorization and stays in double, as the
            solver's `exact` says.

    Raises:
        UnknownName: for another name or precision.
        InvalidInput: when PARDISO is requested and not installed.
    """
    check_value("solver", name, one_of("sparse solver", SOLVERS))
    check_value("precision", precision, one_of("precision", PRECISIONS))
    if name == "scipy" or (name == "auto" and mkl.find_mkl() is None):
        return ScipySolver(pattern, kept)
    return PardisoSolver(
        pattern, kept, definite=definite, threads=threads, precision=precision
    )
