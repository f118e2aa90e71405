"""MKL PARDISO through ctypes, for x86-64: Cholesky or LDL', in double or single."""

from __future__ import annotations

import ctypes

import numpy as np

from drakebots.core import threads as mkl
from drakebots.core.errors import InvalidInput, SolverProblem
from drakebots.fem.solver.base import Engine

DEFINITE = 2
"""PARDISO's types of real symmetric matrices."""

SINGULAR = "the matrix is singular or not positive definite"

MESSAGES = {
    -1: "input inconsistent",
    -2: "not enough memory",
    -3: "reordering problem",
    -4: f"zero or negative pivot: {SINGULAR}",
    -7: "the diagonal matrix is singular",
    -8: "integer overflow: the matrix is too large for 32-bit indices",
}


class PardisoEngine(Engine):
    """MKL PARDISO through ctypes; see :class:`~drakebots.fem.solver.base.Engine`.

    The analysis runs at the first factorization and is kept; a factorization that
    fails leaves it usable. In Schur mode (iparm[35] = 2) the dense complement on the
    kept dofs comes out of the factorization, and phases 331 and 333 do the forward and
    backward sweeps around it. In single precision (iparm[27] = 1) values, right-hand
    sides and S are float32; answers are float64 arrays of float32 accuracy.

    Reference: Intel oneMKL developer reference, "pardiso iparm parameter".
    """

    name = "pardiso"
    _analysed = False

    def __init__(self, pattern, kept, *, threads=None, precision="double"):
        super().__init__(pattern, kept)
        self.exact = precision == "double"
        self._real = np.float64 if self.exact else np.float32
        self._mkl = mkl.find_mkl()
        if self._mkl is None:
            raise InvalidInput(
                "sparse solver pardiso: libmkl_rt was not found; install mkl "
                "(x86-64 only) or choose the solver 'mumps'"
            )
        self._threads = threads
        self._handle = np.zeros(64, np.int64)
        self._iparm = np.zeros(64, np.int32)
        self._iparm[0] = 1  # use these values, not the defaults
        self._iparm[1] = 2  # nested dissection
        self._iparm[23] = 1  # two-level factorization
        self._iparm[27] = int(not self.exact)
        self._iparm[34] = 1  # indices from 0
        self._iparm[55] = 1  # keep the pivots for pardiso_getdiag
        self._indptr = np.ascontiguousarray(pattern.indptr, np.int32)
        self._indices = np.ascontiguousarray(pattern.indices, np.int32)
        self._mark = np.zeros(pattern.size, np.int32)
        if len(self.kept):
            self._mark[self.kept] = 1
            self._iparm[35] = 2
            # MKL returns S in increasing order of dofs.
            self._order = np.argsort(np.argsort(self.kept))
        self._values = None

    def factor(self, values):
        self._values = values.astype(self._real, copy=False)
        k = len(self.kept)
        S = np.zeros((k, k) if k else 1, self._real)
        if not self._analysed:
            self._call(11, None, None)
            self._analysed = True
        self._call(22, None, S)
        self._check_pivots()
        if k:
            S = S[np.ix_(self._order, self._order)].astype(float)
            self.schur = (S + S.T) / 2

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
        state = np.array(state, order="F")
        state[self.kept] = x_kept
        x = self._sweep(333, state).astype(float, copy=False)
        x[self.kept] = x_kept
        return x

    def close(self):
        if self._analysed:
            self._analysed = False
            self._call(-1, None, None)

    def _check_pivots(self):
        """Refuses what is singular up to rounding, which PARDISO takes.

        Whether the last pivot of a singular matrix is above zero is a matter of chance.
        Answers of single precision are refined, and those of singular matrices do not
        converge.

        Raises:
            NoSolution: where a pivot is no larger than its rounding errors.
        """
        if not self.exact:
            return
        # Where MKL writes none, NaN is refused.
        pivots, given = np.full((2, self.pattern.size), np.nan, self._real)
        self._mkl.pardiso_getdiag(*map(_reference, (self._handle, pivots, given, 1, 0)))
        pivots = pivots[: pivots.size - len(self.kept)]  # the kept ones are last
        least, most = pivots.min(initial=np.inf), pivots.max(initial=0.0)
        if not least > self.pattern.size * np.finfo(float).eps * most:
            raise SolverProblem(
                f"pardiso: the smallest pivot is {least:.1e} beside {most:.1e}: "
                f"{SINGULAR}"
            )

    def _sweep(self, phase, b):
        x = np.empty_like(b, order="F")
        self._call(phase, b, x)
        return x

    def _call(self, phase, b, x):
        """Calls PARDISO for a phase, with right-hand sides b and solutions x.

        Raises:
            NoSolution: for an error that it returns.
        """
        columns = 1 if b is None or b.ndim == 1 else b.shape[1]
        error = ctypes.c_int32(0)
        before = 0
        if self._threads:
            before = self._mkl.MKL_Set_Num_Threads_Local(int(self._threads))
        A = self.pattern.size, self._values, self._indptr, self._indices
        task = self._handle, 1, 1, DEFINITE, phase
        given = *task, *A, self._mark, columns, self._iparm, 0, b, x
        self._mkl.pardiso(*map(_reference, given), ctypes.byref(error))
        if self._threads:
            self._mkl.MKL_Set_Num_Threads_Local(before)
        if error.value:
            reason = MESSAGES.get(error.value, "internal error")
            raise SolverProblem(
                f"pardiso: {reason} (code {error.value}, phase {phase})"
            )


def _reference(value: np.ndarray | int | None):
    """What C is given for an array, a whole number, or None: a null pointer."""
    if isinstance(value, int):
        return ctypes.byref(ctypes.c_int32(value))
    return None if value is None else value.ctypes.data_as(ctypes.c_void_p)
