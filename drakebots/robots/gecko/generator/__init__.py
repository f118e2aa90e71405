"""The gait pattern generator: which gait takes the gecko to its targets.

    generator = GaitPatternGenerator([[0.65, 0.0], [0.65, 0.65]])
    decision = generator.decide(position, heading)      # q1, q2; None at the end

`motion` predicts where a gait takes the robot, `planner` finds the gait that takes it
nearest to a target, `generator` walks to one target after the other, `paths` walks to a
pose, `obstacles` plans around polygons.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.gecko.generator.generator import (
        ArrivalTimes,
        GaitPatternGenerator,
        GeneratorOptions,
        LeastTime,
        Published,
        Rule,
        check_targets,
    )
    from drakebots.robots.gecko.generator.motion import (
        COMPONENTS,
        PAPER_UNITS,
        Fit,
        MotionPolynomial,
        PoseStepMotion,
    )
    from drakebots.robots.gecko.generator.obstacles import (
        Route,
        half_width,
        plan_route,
    )
    from drakebots.robots.gecko.generator.paths import (
        Blocked,
        PathGenerator,
        plan_approach,
        plan_cubic,
    )
    from drakebots.robots.gecko.generator.planner import (
        BestGait,
        best_gait,
        check_point,
        cycle_count,
        distance,
        rotated_back,
        wrapped,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
