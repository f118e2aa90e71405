"""Space-time optimization of the skeleton over knots (paper, section 5.1).

    plan = plan_space_time(SpaceTime(quad, motion, skin=robot.link_skin))

The program knows the skin as mass on the links and, from the second iteration of the
alternation on, by its forces at the last motion. A motion that the robot cannot perform
is refused before solving, naming what is out of reach.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.space_time.check import (
        MotionReport,
        check_motion,
        nearest_poses,
    )
    from drakebots.robots.quads.space_time.problem import SpaceTime, Weights, widened
    from drakebots.robots.quads.space_time.program import AXES, KnotBuilder
    from drakebots.robots.quads.space_time.solve import (
        SpaceTimePlan,
        frame_motion,
        plan_space_time,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
