"""The linear algebra of the interior point: kkt.c, as IPOPT calls it.

IPOPT spends nine tenths of a trajectory's program in factorizations of its KKT matrix

    [W + Sigma   J']
    [J           0 ]

with W the Hessian of the Lagrangian, Sigma the barrier's diagonal and J the Jacobian of
the rows. `kkt.c` factorizes it by fronts of dense columns and is handed to IPOPT as if
it were HSL's MA27 (option `hsllib`), so that the interior point stays IPOPT's. Before
that `embed.c` eliminates rows that bind the variables of one knot alone, as closed
loops at knots do. Nearly singular systems mislead kkt.c more often than MUMPS
(docs/evidence/planning.md), which is tried after it where that was seen. Where no C
compiler was at hand when drakebots was installed the library is missing.

The sequence of elimination decides about the time. METIS dissects the graph of the
unknowns, which finds the chain of knots. Multipliers have zeros on the diagonal: those
that would come before all their variables are delayed in the first factorization, and
the sequence that came out is kept. (Pairs of a multiplier and a variable as vertices
would need no delays, but they make the separators of HAMR's knots half as wide again.)
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import scipy.sparse as sp
from scipy.linalg import cython_blas, cython_lapack

from drakebots.core.errors import InvalidInput
from drakebots.core.installed import c_part, function_of
from drakebots.trajopt.program import Program

_KEPT = 16
"""Number of patterns whose orders are kept."""

_INT = ctypes.POINTER(ctypes.c_int)
_ORDER = ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_int,) * 3, _INT, _INT, _INT)
_KEEP = 1  # what C asks of an order; 0 asks for one
_FOUND, _KNOWN, _FAILED = range(3)


# --- the library --------------------------------------------------------------


@cache
def library() -> ctypes.CDLL | None:
    """The compiled kkt.c with the functions it needs, or None where it is missing."""
    lib = c_part(Path(__file__).with_name("_kkt"))
    if lib is None:
        return None
    address = ctypes.c_void_p
    blas = [function_of(cython_blas, name) for name in ("dgemm", "dgemv", "dtrsm")]
    lapack = [function_of(cython_lapack, name) for name in ("dsytrf", "dsyconv")]
    order = ctypes.cast(_order_callback(), address)
    lib.kkt_use((address * 6)(*blas, *lapack, order))
    lib.kkt_release.restype = None
    return lib


def doubted() -> bool:
    """Whether the signs of a factorization were in doubt, within the `with` block of a
    :func:`socket`."""
    return library().kkt_doubts() > 0


def available() -> bool:
    """Whether the library was compiled and can be loaded."""
    return library() is not None


@contextmanager
def socket(program: Program) -> Iterator[dict[str, str]]:
    """IPOPT's options that make it use the library, within the `with` block."""
    lib = library()
    if lib is None:
        raise InvalidInput(
            "linear_solver structured was not compiled; install a C compiler and then "
            "drakebots once more, or use linear_solver mumps"
        )
    solves = _open.__dict__.setdefault("solves", [])
    solves.append(embedded_unknowns(program))
    _embed(lib, *solves[-1])
    try:
        yield {
            "linear_solver": "ma27",
            "hsllib": lib._name,
            "linear_system_scaling": "none",
        }
    finally:
        # All of this thread's factors go, so not while a monitor solves within a solve,
        # which goes on with its own embedded rows.
        solves.pop()
        if solves:
            _embed(lib, *solves[-1])
        else:
            lib.kkt_release()


def _embed(lib: ctypes.CDLL, size: int, unknowns: np.ndarray) -> None:
    """Names the embedded rows of this thread's matrices; C keeps their address."""
    lib.kkt_embed(size, len(unknowns), unknowns.ctypes.data_as(_INT))


_open = threading.local()
"""`solves`: what :func:`embedded_unknowns` gave for each solve of this thread that is
within its `with` block, the innermost last."""


# --- embedded rows ----------------------------------------------------------------


def embedded_rows(program: Program) -> np.ndarray:
    """Positions of the equalities that bind the variables of one knot alone.

    So closed loops at knots do, and joints that follow others. embed.c eliminates them
    together with as many of their variables.
    """
    # A knot of a group goes by the position of its first variable.
    groups = program.variables.values()
    first = [np.broadcast_to(g.indices[:, :1], g.shape).ravel() for g in groups]
    knot, m = np.concatenate(first), program.num_rows
    low, high = np.full(m, program.num_variables), np.full(m, -1)
    for term in program.terms:
        i, j = term.block.jacobian_pattern
        rows, at = term.rows[:, i], knot[term.columns[:, j]]
        kept = rows >= 0
        np.minimum.at(low, rows[kept], at[kept])
        np.maximum.at(high, rows[kept], at[kept])
    return np.flatnonzero((low == high) & (program.lower == program.upper))


def embedded_unknowns(program: Program) -> tuple[int, np.ndarray]:
    """The size of IPOPT's KKT matrices, and the embedded rows among their unknowns.

    IPOPT leaves out fixed variables. Then come a slack for every inequality, the
    multipliers of the equalities, and those of the inequalities.
    """
    equal = program.lower == program.upper
    free = np.count_nonzero(program.x_lower < program.x_upper)
    first = free + np.count_nonzero(~equal)
    unknowns = (np.cumsum(equal) - 1 + first)[embedded_rows(program)]
    return int(first) + program.num_rows, unknowns.astype(np.int32)


# --- the sequence of elimination ------------------------------------------------


@cache
def _order_callback() -> Callable:
    """:func:`elimination_order` as a function of C, kept alive.

    The sequence that came out for a pattern is kept: rungs of a continuation share one.
    """
    kept: dict[bytes, np.ndarray] = {}

    def order(what, n, entries, i, j, out):
        try:
            rows, columns = (
                np.ctypeslib.as_array(x, (max(entries, 1),))[:entries] for x in (i, j)
            )
            out = np.ctypeslib.as_array(out, (max(n, 1),))[:n]
            key = hashlib.sha256(rows.tobytes() + columns.tobytes()).digest()
            if what == _KEEP:
                while len(kept) >= _KEPT:
                    kept.pop(next(iter(kept)))
                kept[key] = out.copy()
            elif key in kept:
                out[:] = kept[key]
                return _KNOWN
            else:
                out[:] = elimination_order(rows, columns, n)
        except Exception:  # an exception cannot pass through C
            return _FAILED
        return _FOUND

    return _ORDER(order)


def elimination_order(rows: np.ndarray, columns: np.ndarray, n: int) -> np.ndarray:
    """A sequence in which to eliminate the unknowns of a KKT matrix (n,).

    Args:
        rows, columns: places of the entries on one side of the diagonal, or on it.
        n: number of unknowns.
    """
    apart = rows != columns
    i, j = rows[apart], columns[apart]
    ends = np.r_[i, j], np.r_[j, i]
    graph = sp.coo_matrix((np.ones(2 * len(i)), ends), (n, n)).tocsr()
    # By nested dissection of the graph.
    if (metis := _metis()) is not None and n > 1 and graph.nnz:
        # METIS changes what it is given.
        start = graph.indptr.astype(np.int32)
        index = graph.indices.astype(np.int32)
        count, base = np.array([n], np.int32), np.zeros(1, np.int32)
        options, order, inverse = np.zeros(8, np.int32), *np.zeros((2, n), np.int32)
        arrays = (count, start, index, base, options, order, inverse)
        metis.METIS_NodeND(*(a.ctypes.data_as(ctypes.c_void_p) for a in arrays))
        # It reports no errors.
        if np.array_equal(np.sort(order), np.arange(n)):
            return order.astype(int)
    pattern = ca.Sparsity(n, n, graph.indptr.tolist(), graph.indices.tolist())
    return np.array(pattern.amd(), int)


@cache
def _metis() -> ctypes.CDLL | None:
    """The METIS 4 that CasADi carries for MUMPS, or None."""
    for path in sorted(Path(ca.__file__).parent.glob("libcoinmetis*")):
        if ".so" in path.name or path.suffix == ".dylib":
            try:
                library = ctypes.CDLL(os.fspath(path))
            except OSError:
                continue
            # METIS 5 takes other arguments; only METIS 4 has this name.
            if hasattr(library, "METIS_EstimateMemory"):
                return library
    return None
