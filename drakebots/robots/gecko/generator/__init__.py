"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.gecko.generator.course import (
        MOTIONS,
        START_ANGLES,
        Course,
        Walker,
        prepare,
    )
    from drakebots.robots.gecko.generator.distance import (
        check_point,
        cycle_count,
        distance,
    )
    from drakebots.robots.gecko.generator.generator import (
        Decision,
        GaitPatternGenerator,
        course,
    )
    from drakebots.robots.gecko.generator.paths import PathGenerator
    from drakebots.robots.gecko.generator.planner import Plan, plan
    from drakebots.robots.gecko.generator.polynomial import COMPONENTS, MotionPolynomial
    from drakebots.robots.gecko.generator.polynomial_run import Decider
    from drakebots.robots.gecko.generator.pose_motion import PoseStepMotion
    from drakebots.robots.gecko.generator.velocity_space import (
        VelocitySpace,
        half_cycle_time,
        motion_of,
        simulate_velocity_space,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
