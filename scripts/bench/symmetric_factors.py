"""kkt.c and embed.c by themselves, without IPOPT; a module without a command.

factors = SymmetricFactors(A)              # the lower triangle, sparse
factors.factor(values)
x = factors.solve(b)
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.solvers import kkt

THRESHOLD = 1e-8
"""Least size of a pivot in terms of its column, as IPOPT's default for MA27."""

_SOLVER = ctypes.c_void_p
_INT, _REAL = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_double)
_FUNCTIONS = {
    "embed_new": (
        _SOLVER,
        *(ctypes.c_int, ctypes.c_int, _INT, _INT),
        *(ctypes.c_int, _INT),
    ),
    "embed_factor": (ctypes.c_int, _SOLVER, _REAL, ctypes.c_double),
    "embed_learn": (None, _SOLVER, ctypes.c_double),
    "embed_solve": (None, _SOLVER, _REAL),
    "embed_report": (ctypes.c_int, _SOLVER, _INT, _REAL),
    "embed_free": (None, _SOLVER),
}
"""What each function of the library returns, and what it takes."""


@dataclass(frozen=True)
class FactorReport:
    """Report of a factorization.

    Attributes:
        negative: number of negative eigenvalues.
        zero: number of zero pivots; the matrix is singular if there are any.
        delayed: number of times a column was left to the next front.
        fronts: number of fronts.
        largest: number of rows of the largest front.
        entries: number of entries of the factors.
        products: number of multiplications that were planned.
        embedded: number of rows that were eliminated with columns of their own.
    """

    negative: int
    zero: int
    delayed: int
    fronts: int
    largest: int
    entries: int
    products: float
    embedded: int


class SymmetricFactors:
    """P L D L' P' of sparse symmetric matrices of one pattern.

    Args:
        A: a lower or upper triangle with its diagonal (n, n); stored zeros count.
        embedded: places of rows that are to be embedded.

    Raises:
        InvalidInput: where the library was not compiled.
    """

    def __init__(self, A: sp.coo_matrix, embedded: Sequence[int] = ()):
        lib = kkt.library()
        if lib is None:
            raise InvalidInput("the library kkt was not compiled; install a C compiler")
        for name, (returned, *taken) in _FUNCTIONS.items():
            function = getattr(lib, name)
            function.restype, function.argtypes = returned, taken
        A = A.tocoo()
        self._lib, self.size = lib, A.shape[0]
        i, j = (np.ascontiguousarray(x, np.int32) for x in (A.row, A.col))
        self._entries, rows = len(i), np.ascontiguousarray(embedded, np.int32)
        pattern = (len(i), i.ctypes.data_as(_INT), j.ctypes.data_as(_INT))
        bound = len(rows), rows.ctypes.data_as(_INT)
        self._solver = lib.embed_new(self.size, *pattern, *bound)

    def __del__(self):
        if getattr(self, "_solver", None):
            self._lib.embed_free(self._solver)
            self._solver = None

    def factor(self, values: np.ndarray, threshold: float = THRESHOLD) -> FactorReport:
        """Factorizes the matrix with these values in the pattern's order.

        Args:
            values: values of the entries (entries,).
            threshold: bound of a pivot in terms of its column, 0 to 0.5.
        """
        values = np.ascontiguousarray(values, float)
        if values.shape != (self._entries,):
            raise InvalidInput(
                f"the pattern has {self._entries} entries, not {values.shape}"
            )
        self._lib.embed_factor(self._solver, values.ctypes.data_as(_REAL), threshold)
        report = self.report()
        self._lib.embed_learn(self._solver, 0.01)
        return report

    def report(self) -> FactorReport:
        """Report of the last factorization."""
        counts, sizes = np.zeros(7, np.int32), np.zeros(2)
        embedded = self._lib.embed_report(
            self._solver, counts.ctypes.data_as(_INT), sizes.ctypes.data_as(_REAL)
        )
        negative, zero, delayed, fronts, largest, *_ = counts.tolist()
        entries, products = int(sizes[0]), float(sizes[1])
        return FactorReport(
            negative, zero, delayed, fronts, largest, entries, products, embedded
        )

    def solve(self, b: np.ndarray) -> np.ndarray:
        """A^-1 b (n,) by the last factorization."""
        x = np.array(b, float)
        self._lib.embed_solve(self._solver, x.ctypes.data_as(_REAL))
        return x
