"""States and frames of a skinned skeleton."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.fem.dynamics import SkinState
from drakebots.skin.coupled import FrameSolution


@dataclass(frozen=True)
class CoupledState:
    """Skeleton and skin.

    Attributes:
        q: positions of the plant (nq,).
        v: velocities (nv,).
        skin: with the time [s].
    """

    q: np.ndarray
    v: np.ndarray
    skin: SkinState


@dataclass(frozen=True)
class CoupledResult:
    """One frame.

    Attributes:
        state: after it; before it when it failed.
        converged: whether it can be used.
        message: one line.
        solution: None when there is none.
        worst_tet, smallest_ratio: the tet with the smallest det F.
        torques: applied, of servos and given, within the limits (m,) [N m].
        patch_forces: of the ground on the contact points (k, 3) [N].
    """

    state: CoupledState
    converged: bool
    message: str
    solution: FrameSolution | None
    worst_tet: int
    smallest_ratio: float
    torques: np.ndarray | None = None
    patch_forces: np.ndarray | None = None
