"""A motion to plan with skin, and the space-time program of each iteration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.robots.quads.frame_problem import FrameOptions
from drakebots.robots.quads.motion import MotionInput
from drakebots.robots.quads.planned_robot import PlannedRobot
from drakebots.robots.quads.space_time import SpaceTime, Weights

GROWTH = 0.1
"""Of the weight to follow, an iteration (section 5.1)."""

FLAT = 100.0
"""Weight of E_O in the space-time program, in place of the paper's 10. Lengths count
there in cm; the paper's lets a sole that carries tilt by 6 degrees, its edge 5 mm
below the ground, and frames know edges."""


@dataclass(frozen=True)
class Alternation:
    """A motion to plan with skin.

    Attributes:
        robot: in both views.
        motion: what the user asks.
        weights: of the space-time program.
        frames: of the frame-by-frame pass.
        growth: of the weight to follow, an iteration.
        tolerance: of the difference of both motions.
        max_iterations: passes of frames.
        min_iterations: passes made though the difference is small.
        friction: mu of both; at most `frames.friction` should be.
        cop_share: of the soles, in the space-time program.
        stride: frames from knot to knot.
        torque_limits: by joint, in place of the model's [N m].
        base: see :class:`~drakebots.robots.quads.links_skin.SkinInfluence`.
        ignore_skin: leave the skin out of the space-time program (Fig. 13c).
        fall: distance from the reference that ends a pass [rad or m].
        skin_every: frames between stored shapes of the skin.
        solver: of the program.
        solver_options: its own.
        threads: of the sparse solver.
        time_limit: of wall time, all together [s].

    Raises:
        InvalidInput: for a value that cannot be; UnknownName for a joint.
    """

    robot: PlannedRobot
    motion: MotionInput
    weights: Weights = field(default_factory=lambda: Weights(flat=FLAT))
    frames: FrameOptions = field(default_factory=FrameOptions)
    growth: float = GROWTH
    tolerance: float = 0.02
    max_iterations: int = 3
    min_iterations: int = 1
    friction: float = 0.7
    cop_share: float = 0.9
    stride: int = 5
    torque_limits: Mapping[str, float] = field(default_factory=dict)
    base: bool = False
    ignore_skin: bool = False
    fall: float = 0.5
    skin_every: int = 10
    solver: str = "exact"
    solver_options: Mapping[str, float | str] = field(default_factory=dict)
    threads: int = 1
    time_limit: float | None = None

    def __post_init__(self):
        for name in ("growth", "tolerance"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise InvalidInput(f"{name} = {value} must be >= 0")
        if not 1 <= self.min_iterations <= self.max_iterations:
            raise InvalidInput(
                f"min_iterations = {self.min_iterations} must be between 1 and "
                f"max_iterations = {self.max_iterations}"
            )
        if self.time_limit is not None and not self.time_limit > 0:
            raise InvalidInput(f"time_limit = {self.time_limit} s must be > 0")
        self.program()

    def program(self, iteration: int = 0, influence=None, follow=None) -> SpaceTime:
        """The space-time problem of an iteration, from 0."""
        rise = (1 + self.growth) ** iteration
        return SpaceTime(
            self.robot.quad,
            self.motion,
            skin=None if self.ignore_skin else self.robot.link_skin,
            influence=influence,
            follow=follow,
            weights=replace(self.weights, follow=self.weights.follow * rise),
            friction=self.friction,
            cop_share=self.cop_share,
            stride=self.stride,
            torque_limits=self.torque_limits,
        )

    @property
    def limits(self) -> np.ndarray:
        """Of the torques (m,) [N m]."""
        return self.program().limits
