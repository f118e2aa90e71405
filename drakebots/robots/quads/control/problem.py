"""What is asked of a skinned quadruped under feedback, and what happens to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from drakebots.core.checks import (
    between,
    check,
    finite,
    non_negative,
    one_of,
    optional,
    positive,
    whole,
)
from drakebots.trajopt import Flat, Slope, Terrain
from drakebots.trajopt.mpc import Push, Trot

PLANTS = ("reduced", "full")
"""Skins of the robot that is controlled: the reduced one, or all tetrahedra."""


@dataclass(frozen=True)
class Control:
    """A robot in its skin that trots under feedback, pushed and on uneven ground.

    Attributes:
        model: the robot: a name, or the path of a skeleton with a `.skin.yaml`.
        speed: of the trot along +x [m/s].
        gait: clock of the feet.
        pushes: forces on the skin of the trunk; no controller knows of them.
        slope: angle by which the ground rises along +x [rad]; the controller knows it.
        step: height of a box that lies across the way [m]; nobody knows of it.
        step_at: where it begins, from the middle of the feet at the start [m].
        step_length: its length along the way [m].
        friction: of the ground.
        plant: skin of the robot that is controlled: reduced or full.
        duration: of the run [s].
        period: time between two solves [s]; an answer takes effect a period later.
        horizon_step: of the controller's horizon [s].
        knots: number of intervals of the horizon.
        iterations: Newton steps of a solve.
        time_step: of the plant [s]; servo targets are set as often.
        log_period: period of the stored samples [s].
        skin_period: period of the stored shapes of the skin [s].
        time_limit: limit of the wall time [s]; what was reached is kept.

    Raises:
        InvalidInput: for a value out of range.
    """

    model: str | Path = "monster"
    speed: float = 0.2
    gait: Trot = field(default_factory=lambda: Trot(0.5, 0.6, 0.035))
    pushes: tuple[Push, ...] = ()
    slope: float = 0.0
    step: float = 0.0
    step_at: float = 0.25
    step_length: float = 0.25
    friction: float = 0.8
    plant: str = "reduced"
    duration: float = 3.0
    period: float = 0.02
    horizon_step: float = 0.05
    knots: int = 20
    iterations: int = 2
    time_step: float = 5e-3
    log_period: float = 0.02
    skin_period: float = 0.1
    time_limit: float | None = None

    def __post_init__(self):
        check(
            self,
            "",
            speed=non_negative("m/s"),
            slope=between(-0.7, 0.7),
            step=non_negative("m"),
            step_at=finite("m"),
            step_length=positive("m"),
            friction=positive(),
            plant=one_of("plant", PLANTS),
            duration=positive("s"),
            period=positive("s"),
            horizon_step=positive("s"),
            knots=whole(2),
            iterations=whole(1),
            time_step=positive("s"),
            log_period=positive("s"),
            skin_period=positive("s"),
            time_limit=optional(positive("s")),
        )

    @property
    def known(self) -> Terrain:
        """The ground that the controller knows."""
        return Slope(-self.slope) if self.slope else Flat()

    @property
    def rise(self) -> float:
        """Rise of the ground for each metre along x."""
        return float(np.tan(self.slope))
