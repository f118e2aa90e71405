"""The gecko's two engines: quasi-static poses, and a robot of many joints in Drake.

    step = pose_step(robot, pose, gait_law(q1, q2), fixation(q1))
    motion = cycle_motion(robot, q1, q2)      # rotation, forward, left per cycle
    by_gait = cycle_jacobian(robot, q1, q2)   # its derivative (3, 2) by q1 and q2
    result = simulate_walk(Walk(q1=np.radians(80), q2=0.2, cycles=3))
    result = simulate_walk(Walk(engine=Drake(incline=STEEPEST)))    # up a wall

`pose_step` is the authors' lightweight model: each pose minimises a weighted sum of
norms (stretch, rotation of the fixed feet, distance from the gait law) with the fixed
feet in place. `drake` connects the `plant`, the feet that `suction` attaches and
releases between two steps, and the `controllers`.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.gecko.engines.controllers import Gains
    from drakebots.robots.gecko.engines.drake import Walk, run_drake, simulate_walk
    from drakebots.robots.gecko.engines.engine import (
        Decision,
        Engine,
        Generator,
        PhaseTimes,
        check_gait,
        motion_dataset,
    )
    from drakebots.robots.gecko.engines.plant import Drake
    from drakebots.robots.gecko.engines.pose_step import (
        CycleMotion,
        PoseStep,
        Step,
        cycle_motion,
        follow,
        half_cycle,
        pose_step,
        poses_dataset,
        references,
        relative_motion,
        run_poses,
        walk,
    )
    from drakebots.robots.gecko.engines.sensitivity import (
        cycle_jacobian,
        motion_jacobian,
    )
    from drakebots.robots.gecko.engines.suction import STEEPEST, CupLimits

__all__, __getattr__, __dir__ = lazy_face(__name__)
