"""Forces on the skeleton that depend on where a frame ends.

A law acts along rows P of the velocities, with y = P dq, and has a convex potential
psi whose force is -psi'(y): a servo that saturates, a contact point. A frame with
laws is the minimum of

    z' R z/2 - r' z + sum psi(P dq),  z = [dq, u_p]

found by Newton's method on the small system of :mod:`drakebots.skin.frame.coupled`: the
skin is factored once, however often a law changes its mind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from drakebots.core.errors import NoSolution
from drakebots.skin.frame.coupled import FrameSolution, ReducedSystem

TOLERANCE = 1e-10
"""Of the residual against the largest force, in scaled coordinates."""

MAX_ITERATIONS = 300


class SmallFrame(Protocol):
    """R z = r of a frame of a full or a reduced skin.

    Attributes:
        nv: velocities of the skeleton, the first of z.
        matrix: R.
    """

    nv: int
    matrix: np.ndarray

    def right_side(self, torques=None, forces=None) -> np.ndarray:
        """r for torques (m,) and contact forces (p, 3) [N]."""

    def back(self, r: np.ndarray) -> np.ndarray:
        """R^-1 r."""


class Law(ABC):
    """A force along rows of the skeleton's velocities.

    Attributes:
        rows: P (n, nv).
    """

    rows: np.ndarray

    @abstractmethod
    def energy(self, y: np.ndarray) -> float:
        """psi(y) [J]."""

    @abstractmethod
    def force(self, y: np.ndarray) -> np.ndarray:
        """-psi'(y) (n,) [N, N m]."""

    @abstractmethod
    def stiffness(self, y: np.ndarray) -> np.ndarray:
        """psi''(y) (n, n), positive semidefinite."""


def minimise(
    system: SmallFrame, laws: Sequence[Law], r: np.ndarray, z: np.ndarray
) -> np.ndarray:
    """z of a frame with laws (nv + 3 p,).

    Args:
        system: of the frame.
        laws: any number.
        r: of :meth:`ReducedSystem.right_side` (nv + 3 p,).
        z: to start from.

    Raises:
        NoSolution: when Newton's method does not end.
    """
    R, nv = system.matrix, system.nv
    scale = 1 / np.sqrt(np.diag(R))

    def merit(z):
        own = sum(law.energy(law.rows @ z[:nv]) for law in laws)
        return 0.5 * z @ (R @ z) - r @ z + own

    def gradient(z):
        g = R @ z - r
        size = max(np.abs(scale * r).max(), np.abs(scale * (R @ z)).max())
        for law in laws:
            push = law.rows.T @ law.force(law.rows @ z[:nv])
            g[:nv] -= push
            size = max(size, np.abs(scale[:nv] * push).max(initial=0.0))
        return g, np.abs(scale * g).max() / max(size, 1e-300)

    g, error = gradient(z)
    for _ in range(MAX_ITERATIONS):
        if error <= TOLERANCE:
            return z
        if not np.isfinite(error):
            break
        H = R.copy()
        for law in laws:
            y = law.rows @ z[:nv]
            H[:nv, :nv] += law.rows.T @ law.stiffness(y) @ law.rows
        step = -scale * cho_solve(cho_factor(H * np.outer(scale, scale)), scale * g)
        now, slope, t = merit(z), g @ step, 1.0
        while t > 1e-6:
            trial = gradient(z + t * step)
            # Near the end energies differ by rounding only, gradients do not; before
            # it a smaller gradient may lie uphill, and the steps go in a circle.
            better = merit(z + t * step) <= now + 1e-4 * t * slope
            if better or (error < 1e-5 and trial[1] < 0.5 * error):
                break
            t *= 0.5
        else:
            # Nothing lowers either: as exact as rounding lets it be.
            if error < 1e-6:
                return z
            break
        z, (g, error) = z + t * step, trial
    raise NoSolution(f"coupled frame: servos and contacts not solved ({error:.1e})")


def whole_frame(system: ReducedSystem, z: np.ndarray) -> FrameSolution:
    """The frame of z, the skin's displacement by one backward sweep."""
    u_k = system.kept(z)
    return FrameSolution(
        z[: system.nv],
        system.displacement(u_k).reshape(-1, 3),
        system.glue_forces(u_k).reshape(-1, 3),
    )
