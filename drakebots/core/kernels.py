"""numba's njit; the compilation of kernels is a stage of the work that needs them.

@njit(cache=True)
def add_to(values, more): ...

numba keeps what it compiled beside the source, or in the user's cache.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np
from numba import njit
from numba.core import event

from drakebots.core.stages import stage

__all__ = ["cholesky", "njit"]


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
