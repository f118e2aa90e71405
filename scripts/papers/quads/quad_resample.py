"""Other footfalls for a motion that fails: the paper's proposal for its failure case.

Section 7 asks for "the foot plan sampling step in [36]". Here that is a search over
a gait's duty and period (and with them the lengths of the steps): candidates in the
order of their distance from the gait that failed, each tried with the space-time
program, the first feasible ones with frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from drakebots.core.errors import DrakebotsError
from drakebots.robots.quads import Alternation
from drakebots.robots.quads.motion import (
    MotionInput,
    leg_height,
    library_motion,
    stride_length,
)
from drakebots.robots.quads.robot import PlannedRobot
from drakebots.robots.quads.space_time import SpaceTimePlan, plan_space_time

DUTIES = (0.54, 0.6, 0.66, 0.72)
PERIODS = (1.0, 0.8, 1.25)
"""Of the failed gait's period."""


@dataclass(frozen=True)
class Sample:
    """One footfall that was tried.

    Attributes:
        duty, period: of the gait; [s].
        motion: None where the gait cannot be made.
        plan: of the space-time program; None where the motion was refused.
        message: how it ended.
    """

    duty: float
    period: float
    motion: MotionInput | None
    plan: SpaceTimePlan | None
    message: str

    @property
    def ok(self) -> bool:
        """Whether the space-time program has a solution."""
        return self.plan is not None and self.plan.ok


def samples(
    robot: PlannedRobot,
    speed: float,
    *,
    duties: tuple[float, ...] = DUTIES,
    periods: tuple[float, ...] = PERIODS,
) -> Iterator[tuple[float, float]]:
    """Duties and periods [s], nearest to the library's trot first."""
    own = stride_length(speed, leg_height(robot.quad)) / speed
    pairs = [(d, p) for d in duties for p in periods]
    for duty, share in sorted(
        pairs, key=lambda x: 4 * abs(x[0] - duties[0]) + abs(x[1] - 1)
    ):
        yield duty, share * own


def try_sample(
    problem: Alternation, speed: float, duty: float, period: float, **options
) -> Sample:
    """The space-time program of a trot with another duty and period.

    Args:
        problem: whose robot, weights and limits to use.
        speed: of the trot [m/s].
        duty, period: of it; [s].
        options: for :func:`plan_space_time`.
    """
    motion = None
    try:
        motion = library_motion(
            "trot", problem.robot.quad, speed=speed, duty=duty, period=period
        )
        plan = plan_space_time(replace(problem, motion=motion).program(), **options)
    except DrakebotsError as error:
        return Sample(duty, period, motion, None, str(error))
    return Sample(duty, period, motion, plan, plan.solution.message)
