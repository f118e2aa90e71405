"""What a frame is asked for: its options, its goal and what the one before left."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.robots.quads.frames.objective import COMPLIANCE, FrameWeights
from drakebots.robots.quads.frames.qpcc import COP, MAX_ITERATIONS

SETTLING = 0.025
"""Of deviations [s]: as long as from knot to knot. See
`frame_objective.settling_step`."""


@dataclass(frozen=True)
class FrameOptions:
    """How frames are optimized.

    Attributes:
        weights: of the objective.
        friction: mu of feet on the ground.
        compliance: of a patch [m/N].
        reach: patches below this height can meet the ground in a frame [m].
        touch: scheduled ones that would come below this height as they moved in the
            frame before are held at first, eq. (18) [m].
        cop: "drop" its rows where they have no solution, "require" or "ignore".
        cop_margin: from the polygon's edges [m].
        max_iterations: QPs a frame.
        settling: time constant in which a deviation from the motion dies away,
            critically damped; 0 for the paper's, all of it in one frame [s].

    Raises:
        InvalidInput: for a value that cannot be.
    """

    weights: FrameWeights = field(default_factory=FrameWeights)
    friction: float = 0.8
    compliance: float = COMPLIANCE
    reach: float = 5e-3
    touch: float = 2e-4
    cop: str = "drop"
    cop_margin: float = 0.0
    max_iterations: int = MAX_ITERATIONS
    settling: float = SETTLING

    def __post_init__(self):
        for name in ("friction", "compliance", "reach", "touch"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"{name} = {value} must be > 0")
        for name, unit in (("cop_margin", "m"), ("settling", "s")):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise InvalidInput(f"{name} = {value} {unit} must be >= 0")
        if self.cop not in COP:
            raise InvalidInput(f"cop {self.cop!r}: choose one of {', '.join(COP)}")
        if not (self.max_iterations >= 2):
            raise InvalidInput(f"max_iterations = {self.max_iterations}: needs >= 2")


@dataclass(frozen=True)
class FrameMemory:
    """What a frame needs of the one before.

    Attributes:
        dq: (nv,) [rad, m].
        torques: (m,) [N m]; None before the first frame.
        anchors: of the patches on the ground (P, 3) [m].
        away: from the motion before that frame (nv,) [rad, m]; None before the
            first.
    """

    dq: np.ndarray
    torques: np.ndarray | None
    anchors: np.ndarray
    away: np.ndarray | None = None


@dataclass(frozen=True)
class FrameGoal:
    """What a frame shall reach.

    Attributes:
        q: (nq,).
        contact: feet on the ground at its end (F,).
        standing: feet on the ground at both ends (F,).
        flat: feet whose soles shall face the ground (F,).
        q_now: where it should be now (nq,); None asks for q at once.
    """

    q: np.ndarray
    contact: np.ndarray
    standing: np.ndarray
    flat: np.ndarray
    q_now: np.ndarray | None = None
