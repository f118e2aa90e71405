"""numba's njit; the compilation of kernels is a stage of the work that needs them.

@njit(cache=True)
def add_to(values, more): ...

numba keeps what it compiled beside the source, or in the user's cache. It compiles
kernels of other files into those that call them, and takes what it kept to be current
as long as the caller's own file is as it was. Here files that are called count, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.core.dispatcher import Dispatcher

from drakebots.core.stages import stage


class _Compilation(event.Listener):
    """Says that kernels are compiled. Those that a kernel calls are compiled inside.

    numba compiles under a lock, so that this happens in one thread at a time.
    """

    def __init__(self):
        self._stages: list[AbstractContextManager[None]] = []

    def on_start(self, event: event.Event) -> None:
        compiling = stage("compile", "compiling kernels, once")
        compiling.__enter__()
        self._stages.append(compiling)

    def on_end(self, event: event.Event) -> None:
        self._stages.pop().__exit__(None, None, None)


event.register("numba:compile", _Compilation())

_DIGESTS: dict[str, str] = {}
"""Of the files of kernels with all that they call, by their paths."""


def _digest(path: str, names: Mapping[str, Any]) -> str:
    """The digest of a file that has these names when its first kernel is made."""
    if path not in _DIGESTS:
        kernels = [each for each in names.values() if isinstance(each, Dispatcher)]
        called = {each.py_func.__code__.co_filename for each in kernels}
        parts = sorted(_DIGESTS.get(other, other) for other in called - {path})
        text = Path(path).read_bytes() + "".join(parts).encode()
        _DIGESTS[path] = sha256(text).hexdigest()
    return _DIGESTS[path]


def njit(function: Callable | None = None, *, cache: bool = False, **options: Any):
    """numba's njit; drops what it kept when the file of a called kernel changes."""
    if function is None:
        return partial(njit, cache=cache, **options)
    kernel = numba.njit(cache=cache, **options)(function)
    if cache:
        digest = _digest(function.__code__.co_filename, function.__globals__)
        kept = kernel._cache._cache_file
        kept._source_stamp = (kept._source_stamp, digest)
    return kernel


@njit(cache=True)
def cholesky(M):
    """Factorizes M in place, lower; False when M is not positive definite."""
    for i in range(len(M)):
        for j in range(i + 1):
            total = M[i, j]
            for k in range(j):
                total -= M[i, k] * M[j, k]
            if i == j:
                if not total > 0.0:
                    return False
                M[i, i] = np.sqrt(total)
            else:
                M[i, j] = total / M[j, j]
    return True


# --- vectors of three, as tuples: arrays would be allocated in each call -----------


@njit(cache=True, inline="always")
def minus(a, b):
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@njit(cache=True, inline="always")
def dot(a, b):
    """a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(cache=True, inline="always")
def cross(a, b):
    """a x b."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


# --- matrices, compiled once for all kernels that take them ------------------------


@njit(cache=True)
def product(A, B):
    """A B of a matrix and a matrix or vector."""
    return A @ B


@njit(cache=True)
def t_product(A, B):
    """A' B of two matrices; A B' takes BLAS half as long again."""
    return A.T @ B


@njit(cache=True)
def transposed(A):
    """A', contiguous."""
    return np.ascontiguousarray(A.T)


@njit(cache=True, inline="always")
def _less(X, A, i, first, last):
    """Subtracts the sum of A[i, k] X[k], first <= k < last, from X[i], four rows at
    once."""
    k = first
    while k + 4 <= last:
        a, b, c, d = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
        for j in range(X.shape[1]):
            X[i, j] -= a * X[k, j] + b * X[k + 1, j] + c * X[k + 2, j] + d * X[k + 3, j]
        k += 4
    while k < last:
        a = A[i, k]
        for j in range(X.shape[1]):
            X[i, j] -= a * X[k, j]
        k += 1


@njit(cache=True)
def solved(A, B):
    """X of A X = B, by elimination with partial pivoting.

    For matrices of a leg or a robot, n <= 26, it takes a third to a half of LAPACK's
    time, for a single right side and at n = 68 four fifths; numba takes a fifth of the
    time to compile it.

    Raises:
        LinAlgError: where A is singular.
    """
    A, X = A.copy(), B.copy()
    n, m = X.shape
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        if A[best, k] == 0:
            raise np.linalg.LinAlgError("a matrix is singular")
        if best != k:
            for j in range(n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
            for j in range(m):
                X[k, j], X[best, j] = X[best, j], X[k, j]
        for i in range(k + 1, n):
            A[i, k] = factor = A[i, k] / A[k, k]
            for j in range(k + 1, n):
                A[i, j] -= factor * A[k, j]
    for i in range(n):
        _less(X, A, i, 0, i)
    for i in range(n - 1, -1, -1):
        _less(X, A, i, i + 1, n)
        pivot = A[i, i]
        for j in range(m):
            X[i, j] /= pivot
    return X


@njit(cache=True)
def reduced(C):
    """Solves C x = e, of fewer rows than x, for one x a row: by Gauss-Jordan
    elimination with the largest pivot of each row, x_d = C_d^-1 (e - C_f x_f).

    Args:
        C: (m, n), m <= n.

    Returns:
        the index of the x that each row is solved for (m,), and C_d^-1 (C, 1)
        (m, n + m), with C_d the columns of these x in the order of the rows.

    Raises:
        LinAlgError: where the rows depend on each other.
    """
    m, n = C.shape
    R, dependent = np.zeros((m, n + m)), np.full(m, -1)
    for i in range(m):
        R[i, n + i] = 1.0
        for j in range(n):
            R[i, j] = C[i, j]
    for i in range(m):
        best, most = 0, 0.0
        for j in range(n):
            most = max(most, abs(C[i, j]))
            if abs(R[i, j]) > abs(R[i, best]):
                best = j
        pivot, dependent[i] = R[i, best], best
        if abs(pivot) < 1e-12 * most or pivot == 0:
            raise np.linalg.LinAlgError("rows depend on each other")
        for j in range(n + m):
            R[i, j] /= pivot
        for k in range(m):
            factor = R[k, best]
            if k != i and factor != 0.0:
                for j in range(n + m):
                    R[k, j] -= factor * R[i, j]
    return dependent, R
