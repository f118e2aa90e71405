"""MUMPS through ctypes, from the library that CasADi's wheel carries.

CasADi brings the sequential MUMPS 5.8 with METIS (libcoinmumps) on every platform, for
IPOPT; so skins are fast where MKL is absent: on ARM, and in small installations.

MUMPS is handed one large C structure, whose layout changes between versions. It is
trusted only where the library itself writes its version 5.8 at the place where
:class:`_Structure` expects it (:func:`find_mumps`).

Two thirds of the time of a factorization are matrix products. CasADi's BLAS is compiled
for any x86-64 processor; blas.c, where a C compiler was at hand when drakebots was
installed, hands them to SciPy's, which uses what the processor has.

Reference: MUMPS 5.8 users' guide; control numbers count from 1 there, from 0 here.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.linalg import cython_blas

from drakebots.core.errors import InvalidInput, NoSolution, SolverProblem
from drakebots.core.installed import c_part, function_of
from drakebots.core.threads import ThreadpoolController  # which knows CasADi's BLAS
from drakebots.fem.solver.base import Engine

VERSION = b"5.8."
"""Version of the library whose structure is written down here."""

_ROOM = 1 << 16
"""Bytes given to a library of unknown version; no version's structure needs more."""

_KINDS = {
    "i": ctypes.c_int,
    "l": ctypes.c_int64,
    "d": ctypes.c_double,
    "p": ctypes.c_void_p,
    "c": ctypes.c_char,
}

_FIELDS = """
i sym par job comm_fortran  i icntl:60 keep:500  d cntl:15 dkeep:230  l keep8:150
i n nblk nz_alloc nz  l nnz  p irn jcn a
i nz_loc  l nnz_loc  p irn_loc jcn_loc a_loc
i nelt  p eltptr eltvar a_elt blkptr blkvar perm_in sym_perm uns_perm colsca rowsca
i colsca_from_mumps rowsca_from_mumps
p colsca_loc rowsca_loc rowind colind pivots
p rhs redrhs rhs_sparse sol_loc rhs_loc rhsintr
p irhs_sparse irhs_ptr isol_loc irhs_loc glob2loc_rhs glob2loc_sol
i nrhs lrhs lredrhs nz_rhs lsol_loc nloc_rhs lrhs_loc nsol_loc
i schur_mloc schur_nloc schur_lld mblock nblock nprow npcol ld_rhsintr
i info:80 infog:80  d rinfo:40 rinfog:40
i deficiency  p pivnul_list mapping singular_values
i size_schur  p listvar_schur schur wk_user
c version_number:32 ooc_tmpdir:1024 ooc_prefix:256 write_problem:1024
i lwk_user  c save_dir:1024 save_prefix:256
i metis_options:40 instance_number
"""
"""DMUMPS_STRUC_C of dmumps_c.h, release 5.8: kinds, and their fields with sizes."""


def _fields() -> Iterator[tuple[str, type]]:
    for word in _FIELDS.split():
        if word in _KINDS:
            kind = _KINDS[word]
            continue
        name, _, size = word.partition(":")
        yield name, kind * int(size) if size else kind


class _Structure(ctypes.Structure):
    _fields_ = tuple(_fields())


START, END, ANALYSE, FACTOR, SOLVE = -1, -2, 1, 2, 3
"""Jobs of MUMPS."""

ON_HOST = 1
"""The calling process takes part in the work (`par`); it is the only one here."""

NO_MPI = -987654
"""The communicator of the sequential library."""

DEFINITE = 1
"""Kinds of matrices (`sym`): LDL' without and with pivoting."""

ORDERING, SCALING, SPACE, SCHUR, FIND_NULL, HALF = 6, 7, 13, 18, 23, 25
"""Places of the controls (`icntl`) that are set here; HALF is that of half a solve."""

QUIET = (-1, -1, -1, 0)
"""First four entries of `icntl`: no printing."""

METIS, BY_ROWS, FORWARD, BACKWARD = 5, 1, 1, 2
"""Values of ORDERING, of SCHUR, and the two of HALF."""

NEGATIVE, NULL, SMALLEST, LARGEST = 11, 27, 18, 20
"""Indices of the reports on pivots: two numbers (`infog`), two sizes (`rinfog`)."""

TOO_SMALL = (-8, -9, -14, -20)
"""Errors that say that the estimated work space, or a buffer, was too small."""

MESSAGES = {-6: "the pattern is singular", -10: "the matrix is singular"}
MESSAGES |= dict.fromkeys((-5, -7, -13, -19), "not enough memory")

_one_at_a_time = threading.RLock()
"""MUMPS keeps what an instance works on in variables of its modules. Whoever holds the
lock may take it again: garbage is collected anywhere, solvers included."""


@functools.cache
def find_mumps() -> ctypes.CDLL | None:
    """The MUMPS that CasADi carries, or None where there is none of release 5.8."""
    spec = find_spec("casadi")
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    for name, own in (
        ("libcoinmumps.so.3", "libcoinmumps.so"),
        ("libcoinmumps.3.dylib", "libcoinmumps.dylib"),
    ):
        try:
            # The first is IPOPT's: loaded before, it keeps the BLAS it always had, and
            # plans do not depend on whether there was a skin. The wheel has the same
            # library once more, which is ours.
            library = ctypes.CDLL(str(folder / name))
            if fast_blas() is not None and os.path.exists(folder / own):
                library = ctypes.CDLL(str(folder / own))
            library.dmumps_c.restype = None
        except (OSError, AttributeError):
            continue
        if version(library) is not None:
            return library
    return None


@functools.cache
def fast_blas() -> ctypes.CDLL | None:
    """blas.c, opened for a MUMPS that is loaded after; None if it was not compiled."""
    library = c_part(Path(__file__).with_name("_blas"), ctypes.RTLD_GLOBAL)
    if library is not None:
        functions = [function_of(cython_blas, name) for name in ("dgemm", "dtrsm")]
        library.blas_use((ctypes.c_void_p * len(functions))(*functions))
    return library


def version(library: ctypes.CDLL) -> str | None:
    """MUMPS's version, "5.8.2", or None where the structure is another's."""
    room = ctypes.create_string_buffer(_ROOM)
    data = _Structure.from_buffer(room)
    data.sym, data.par, data.comm_fortran = DEFINITE, ON_HOST, NO_MPI
    data.job = START
    with _one_at_a_time:
        library.dmumps_c(room)
        found = data.version_number
        # The first fields, with the controls, are those of all versions.
        data.icntl[0:4] = QUIET
        data.job = END
        library.dmumps_c(room)
    return found.decode() if found.startswith(VERSION) else None


@functools.cache
def _blas() -> ThreadpoolController:
    """The libraries that MUMPS multiplies with: CasADi's OpenBLAS, and SciPy's."""
    return ThreadpoolController().select(internal_api="openblas")


class MumpsEngine(Engine):
    """MUMPS through ctypes; see :class:`~drakebots.fem.solver.base.Engine`.

    The analysis runs at the first factorization and is kept; a factorization that
    fails leaves it usable. In Schur mode the dense complement on the kept dofs comes
    out of the factorization. `reduce` and `expand` are the two halves of a solve. MUMPS
    holds the first half of one right-hand side for one second half; another `expand`
    repeats its first half.

    Matrices are factored as LDL' without pivoting, and refused where a pivot is
    negative or no more than rounding. Only the BLAS within MUMPS uses `threads`; its
    matrices are small, and more than one thread seldom helps.
    """

    name = "mumps"
    _data = None

    def __init__(self, pattern, kept, *, threads=None):
        super().__init__(pattern, kept)
        self._library = find_mumps()
        if self._library is None:
            raise InvalidInput(
                "sparse solver mumps: no MUMPS 5.8 in the installed CasADi; install "
                "casadi >= 3.8 or choose the solver 'scipy'"
            )
        self._threads = threads
        row = np.repeat(np.arange(pattern.size), np.diff(pattern.indptr))
        self._row = (row + 1).astype(np.int32)
        self._column = (np.asarray(pattern.indices) + 1).astype(np.int32)
        self._listed = (self.kept + 1).astype(np.int32)
        k = len(self.kept)
        self._above = np.triu(np.ones((k, k), bool), 1)
        self._values = self._held = None

    def factor(self, values):
        self._values, self._held = values, None
        if self._data is None:
            self._start()
        data = self._data
        data.a = self._values.ctypes.data
        # A new array: whoever holds the last complement keeps it.
        S = self.schur = np.zeros(self._above.shape)
        data.schur = S.ctypes.data
        while (error := self._call(FACTOR)) in TOO_SMALL and data.icntl[SPACE] < 1000:
            data.icntl[SPACE] *= 2
        self._check(error, "factorization")
        negative, null = data.infog[NEGATIVE], data.infog[NULL]
        smallest, largest = data.rinfog[SMALLEST], data.rinfog[LARGEST]
        rounding = self.pattern.size * np.finfo(float).eps * largest
        # Which pivots of the size of rounding MUMPS itself calls zero depends on how
        # the processor rounds.
        if negative or null or not smallest > rounding:
            raise SolverProblem(
                f"mumps: {negative} pivots are negative, the smallest is "
                f"{smallest:.1e} beside {largest:.1e}: the matrix is not positive "
                "definite"
            )
        # MUMPS writes the lower triangle and leaves above it whatever its work array
        # held, NaN included: that must be overwritten, and take part in no sum.
        np.copyto(S, S.T, where=self._above)

    def reduce(self, b):
        b = np.array(b, float, order="F")
        if not len(self.kept):
            return self._solve(b, 0)[0], np.empty((0, *b.shape[1:]))
        _, small = self._solve(b.copy(order="F"), FORWARD)
        self._held = b  # whose first half MUMPS holds
        return b, small

    def expand(self, state, x_kept):
        if state is not self._held:
            self._solve(state.copy(order="F"), FORWARD)
        self._held = None
        return self._solve(state.copy(order="F"), BACKWARD, x_kept)[0]

    def close(self):
        if self._data is not None:
            self._call(END)
            self._data = None

    def _start(self):
        """Analyses the pattern."""
        data = self._data = _Structure()
        data.sym, data.par, data.comm_fortran = DEFINITE, ON_HOST, NO_MPI
        self._check(self._call(START), "start")
        data.icntl[0:4] = QUIET
        data.icntl[FIND_NULL] = 1
        data.icntl[ORDERING] = METIS
        data.icntl[SCALING] = 0
        data.n, data.nnz = self.pattern.size, len(self._row)
        data.irn, data.jcn = self._row.ctypes.data, self._column.ctypes.data
        if len(self.kept):
            data.icntl[SCHUR] = BY_ROWS
            data.size_schur = data.lredrhs = len(self.kept)
            data.listvar_schur = self._listed.ctypes.data
        try:
            self._check(self._call(ANALYSE), "analysis")
        except NoSolution:
            self.close()
            raise

    def _solve(self, b, half, x_kept=None):
        """Sweeps over b (n, ...), which becomes x; and over the reduced b or x_kept."""
        data, columns = self._data, 1 if b.ndim == 1 else b.shape[1]
        small = np.empty((len(self.kept), *b.shape[1:]), order="F")
        if x_kept is not None:
            small[...] = x_kept
        data.rhs, data.nrhs, data.lrhs = b.ctypes.data, columns, len(b)
        data.redrhs = small.ctypes.data
        data.icntl[HALF] = half
        self._held = None
        self._check(self._call(SOLVE), "solve")
        return b, small

    def _call(self, job):
        self._data.job = job
        with _one_at_a_time, _blas().limit(limits=self._threads):
            self._library.dmumps_c(ctypes.byref(self._data))
        return self._data.infog[0]

    def _check(self, error, work):
        if error < 0:
            reason = MESSAGES.get(error, "internal error")
            raise SolverProblem(
                f"mumps: {reason} (code {error}, {self._data.infog[1]}, {work})"
            )
