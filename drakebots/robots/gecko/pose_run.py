"""The gecko walks to its targets: generator and pose step in a closed loop.

Once per half cycle the generator sees position and heading, chooses (q1, q2),
and the pose step takes the robot to the gait law's pose. Source: Schiller,
Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), Algorithm 1, Fig. 12.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from drakebots.errors import NoSolution
from drakebots.interrupt import CtrlC
from drakebots.results import Verdict
from drakebots.robots.gecko.gait import Saturation, half_cycle
from drakebots.robots.gecko.gait_law import fixation
from drakebots.robots.gecko.generator import Decision
from drakebots.robots.gecko.kinematics import Pose
from drakebots.robots.gecko.parameters import Gecko
from drakebots.robots.gecko.polynomial_run import Decider
from drakebots.robots.gecko.pose_motion import PoseStepMotion
from drakebots.robots.gecko.pose_step import Step

Progress = Callable[[float, float], None]
"""Called with the half cycles done and the most there may be."""


@dataclass
class Track:
    """What a run did so far; grows by a half cycle at a time.

    Attributes:
        poses: before the first half cycle and after each.
        decisions, steps: of each half cycle.
        signs: of q1 in each half cycle.
        verdict, message: how it ended.
        seconds: of wall time, in total and for the generator's decisions.
    """

    poses: list[Pose]
    decisions: list[Decision] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    signs: list[int] = field(default_factory=list)
    verdict: Verdict = Verdict.SUCCESS
    message: str = ""
    seconds: float = 0.0
    deciding: float = 0.0

    @property
    def fixed(self) -> np.ndarray:
        """Feet that hold, by half cycle and foot (T, 4)."""
        return np.array([fixation(s) for s in self.signs]).reshape(-1, 4)


def run_poses(
    robot: Gecko,
    generator: Decider,
    start: Pose,
    *,
    sign: int = 1,
    most: int = 400,
    saturate: Saturation | None = None,
    motion: PoseStepMotion | None = None,
    progress: Progress | None = None,
    time_limit: float | None = None,
) -> Track:
    """Runs until the generator is done; keeps what was reached if it is not.

    Args:
        robot: lengths and weights.
        generator: as it stands; it is not reset.
        start: the first pose.
        sign: of the first half cycle's q1.
        most: half cycles before giving up.
        saturate: what the pressure supply makes of the references.
        motion: the generator's motion model, to be shown every pose, if it is
            the pose step itself.
        progress: called after every half cycle.
        time_limit: of wall time [s].
    """
    track, began = Track([start]), time.perf_counter()
    try:
        with CtrlC() as stop:
            while True:
                pose = track.poses[-1]
                if motion is not None:
                    motion.observe(pose, sign)
                decision = _decide(generator, pose, track)
                late = time_limit is not None
                late = late and time.perf_counter() - began > time_limit
                if _over(track, decision, most, time_limit if late else None):
                    break
                stop.check()
                q1 = sign * decision.q1
                step = half_cycle(robot, pose, q1, decision.q2, saturate)
                track.poses.append(step.pose)
                track.steps.append(step)
                track.decisions.append(decision)
                track.signs.append(sign)
                sign = -sign
                if progress is not None:
                    progress(len(track.steps), most)
    except KeyboardInterrupt:
        track.verdict = Verdict.INTERRUPTED
        track.message = "interrupted; what was reached is kept"
    except NoSolution as error:
        track.verdict, track.message = Verdict.FAILED, str(error)
    track.seconds = time.perf_counter() - began
    return track


def _decide(generator: Decider, pose: Pose, track: Track) -> Decision | None:
    clock = time.perf_counter()
    decision = generator.decide(pose.position, pose.heading)
    track.deciding += time.perf_counter() - clock
    return decision


def _over(track: Track, decision, most: int, limit: float | None) -> bool:
    """Notes in the track how the run ended, if it did."""
    done = len(track.steps)
    if decision is None:
        track.message = f"done after {done} half cycles"
    elif done >= most:
        track.verdict = Verdict.FAILED
        track.message = (
            f"target {decision.target} was not reached in {most} half cycles "
            f"({100 * decision.d0:.1f} cm left); try a larger epsilon"
        )
    elif limit is not None:
        track.verdict = Verdict.TIME_LIMIT
        track.message = f"stopped at the time limit of {limit:g} s"
    else:
        return False
    return True
