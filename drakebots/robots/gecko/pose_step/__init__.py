"""The lightweight simulation model: quasi-static poses of the gecko, one after another.

    step = pose_step(robot, pose, gait_law(q1, q2), fixation(q1))
    poses = walk(robot, q1, q2, half_cycles=6)
    motion = cycle_motion(robot, q1, q2)      # rotation, forward, left per cycle

Each pose minimises a weighted sum of norms (stretch, rotation of the fixed feet,
distance from the gait law) with the fixed feet in place: `problem` has the norms and
the feet with their derivatives, `solver` the Newton method, `pose_step` the bounds.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.gecko.pose_step.gait import (
        CycleMotion,
        Saturation,
        check_gait,
        cycle_motion,
        half_cycle,
        relative_motion,
        walk,
    )
    from drakebots.robots.gecko.pose_step.pose_step import Step, pose_step

__all__, __getattr__, __dir__ = lazy_face(__name__)
