"""The answer of a sparse positive definite system."""

from __future__ import annotations

import numpy as np
from scipy.sparse import sparray

from drakebots.fem.assembly import SymmetricPattern
from drakebots.fem.solver import make_solver


def solve_definite(K: sparray, b: np.ndarray) -> np.ndarray:
    """K^-1 b by the solver of skins, which is some ten times faster than SuperLU."""
    pattern, values = SymmetricPattern.of(K)
    solver = make_solver(pattern, threads=1)
    solver.factor(values)
    return solver.solve(b)
