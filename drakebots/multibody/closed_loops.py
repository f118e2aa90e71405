"""One time step's velocities with the loops eliminated.

With loop forces lam that keep c + h C v+ = 0, a generalized force f besides tau
gives

    v+ = v_free + h P M^-1 f,      P = 1 - M^-1 C' S^-1 C,   S = C M^-1 C'
    v_free = w - M^-1 C' S^-1 (c/h + C w),                    w = v + h M^-1 tau
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from drakebots.errors import InvalidInput


class ClosedLoops:
    """Velocities after a step that keep the loops closed.

    Args:
        M: mass matrix (nv, nv).
        tau: generalized force that is known (nv,).
        c, C: the loops' rows and their Jacobian (m,) and (m, nv).
        v: velocities before (nv,).
        h: the step.

    Attributes:
        free: v+ without further forces.

    Raises:
        InvalidInput: for rows that depend on each other.
    """

    def __init__(self, M, tau, c, C, v, h: float):
        self._M, self._tau, self._C, self._v, self._h = M, tau, C, v, h
        self._factor = scipy.linalg.cho_factor(M)
        w = v + h * self._solve(tau)
        self._MiCt = self._solve(C.T)
        if C.size:
            try:
                self._S = scipy.linalg.cho_factor(C @ self._MiCt)
            except scipy.linalg.LinAlgError as error:
                raise InvalidInput(
                    "the loops' rows depend on each other; give the loops "
                    "`rows: planar` or leave redundant ones out"
                ) from error
            correction = scipy.linalg.cho_solve(self._S, c / h + C @ w)
            w = w - self._MiCt @ correction
        self.free = w

    def _solve(self, force: np.ndarray) -> np.ndarray:
        return scipy.linalg.cho_solve(self._factor, force)

    def _project(self, x: np.ndarray) -> np.ndarray:
        if not self._C.size:
            return x
        return x - self._MiCt @ scipy.linalg.cho_solve(self._S, self._C @ x)

    def velocity(self, force: np.ndarray) -> np.ndarray:
        """v+ under a further generalized force."""
        return self.free + self._h * self._project(self._solve(force))

    def response(self, rows: np.ndarray) -> np.ndarray:
        """d(J v+)/d(forces along the rows J) (k, k)."""
        return self._h * rows @ self._project(self._solve(rows.T))

    def loop_forces(self, v_next: np.ndarray, force: np.ndarray) -> np.ndarray:
        """lam (m,) of a step to v_next under a further force."""
        if not self._C.size:
            return np.zeros(0)
        rest = self._M @ (v_next - self._v) / self._h - self._tau - force
        return np.linalg.lstsq(self._C.T, rest, rcond=None)[0]
