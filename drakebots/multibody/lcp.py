"""Linear complementarity problems, with every answer checked."""

from __future__ import annotations

import numpy as np
from pydrake.solvers import MathematicalProgram, MobyLcpSolver

from drakebots.errors import NoSolution


def solve_lcp(Z: np.ndarray, z0: np.ndarray) -> np.ndarray:
    """z >= 0 with Z z + z0 >= 0 and z'(Z z + z0) = 0.

    Lemke's method (Drake's Moby solver), with rows and columns scaled to a
    unit diagonal, then as given. Moby regularises a problem it finds hard and
    may claim success with the answer of another one, so every answer is
    checked; where both fail, Murty's least-index pivoting is tried, which
    always ends well when Z is a P-matrix.

    Raises:
        NoSolution: when no answer is one, with its worst rows.
    """
    # Unit diagonal: contact rows of light links differ by orders of magnitude.
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(Z)), 1e-12))
    scale[np.diag(Z) == 0] = 1.0
    size = 1.0 + np.abs(z0).max(initial=0.0)
    worst: dict[str, float] = {}
    for solve in (_lemke(scale), _lemke(np.ones(len(z0))), _murty):
        z = solve(Z, z0)
        if not np.isfinite(z).all():
            continue
        slack = Z @ z + z0
        worst = {
            "slack": float(max(0.0, -slack.min(initial=0.0))),
            "complementarity": float(np.abs(z * slack).max(initial=0.0)),
        }
        if max(worst.values()) <= 1e-8 * size:
            return z
    raise NoSolution("the contact problem of a time step was not solved", worst)


def _lemke(scale: np.ndarray):
    def solve(Z, z0):
        prog = MathematicalProgram()
        z = prog.NewContinuousVariables(len(z0), "z")
        prog.AddLinearComplementarityConstraint(
            scale[:, None] * Z * scale, scale * z0, z
        )
        return np.maximum(scale * MobyLcpSolver().Solve(prog).GetSolution(z), 0.0)

    return solve


def _murty(Z: np.ndarray, z0: np.ndarray) -> np.ndarray:
    n = len(z0)
    basic, z = np.zeros(n, bool), np.zeros(n)
    tolerance = 1e-12 * (1.0 + np.abs(z0).max(initial=0.0))
    for _ in range(50 * n):
        z[:] = 0.0
        if basic.any():
            z[basic] = np.linalg.lstsq(Z[np.ix_(basic, basic)], -z0[basic], rcond=None)[
                0
            ]
        wrong = np.where(basic, z, Z @ z + z0) < -tolerance
        if not wrong.any():
            break
        first = np.argmax(wrong)
        basic[first] = not basic[first]
    return np.maximum(z, 0.0)
