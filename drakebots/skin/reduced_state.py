"""State and result of a frame with a reduced skin."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class ReducedState:
    """Skeleton and reduced skin.

    Attributes:
        time: [s].
        q: positions of the plant (nq,).
        v: velocities (nv,).
        y: of the modes (r,) [sqrt(J)].
        points: velocities of the skin's mass points (p, 3) [m/s].
        dy: rates of y (r,) [sqrt(J)/s].
        normal: forces of the contact points at the frame's end, from which the next
            frame's friction starts (k,) [N].
    """

    time: float
    q: np.ndarray
    v: np.ndarray
    y: np.ndarray
    points: np.ndarray
    dy: np.ndarray
    normal: np.ndarray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class ReducedResult:
    """One frame; as :class:`~drakebots.skin.stepper.CoupledResult`.

    Attributes:
        state: after it; before it when it failed.
        converged: whether it can be used.
        message: one line.
        smallest_ratio: smallest det F of the cubature's points, before the frame.
        torques: applied, of servos and given (m,) [N m].
        patch_forces: of the ground on the contact points (k, 3) [N].
    """

    state: ReducedState
    converged: bool
    message: str
    smallest_ratio: float
    torques: np.ndarray | None = None
    patch_forces: np.ndarray | None = None
