"""The gecko in Drake: soft limbs as chains of joints, feet that are welds.

    result = simulate_walk(DrakeWalk(q1=np.radians(80), q2=0.2, cycles=3))
    result = simulate_climb(Climb())          # up a wall, with limits of the suction

`plant` makes the robot, `suction` attaches and releases its feet between two steps,
`sequencer` plays the gait law in time, `pressure` is the optional low-level control,
`diagram` connects them, `walk` and `climb` simulate.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.gecko.drake.climb import Climb, CupLimits, simulate_climb
    from drakebots.robots.gecko.drake.diagram import DrakeWalk, build, reproduction
    from drakebots.robots.gecko.drake.walk import motion_dataset, simulate_walk

__all__, __getattr__, __dir__ = lazy_face(__name__)
