"""Space-time optimization: the motion of the skeleton over all knots at once.

    plan = plan_space_time(SpaceTime(quad, motion, skin=robot.link_skin))

Source: "Computational Design of Skinned Quad-Robots", section 5.1; equation numbers in
these files are those of the paper. The program does not simulate the skin. It has the
skin's mass on the links and, from the second iteration of the alternation
(:mod:`drakebots.robots.quads.plan`) on, the forces of the skin at the last
motion. A motion that the robot cannot perform is refused before solving, by an error
that names what is out of reach.

Where to start reading: `problem` states the optimization, `program` has its equations,
`check` finds out beforehand whether a motion is possible, and `solve` puts it together.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.space_time.check import (
        MotionReport,
        carry,
        check_motion,
        cone_rows,
        nearest_poses,
    )
    from drakebots.robots.quads.space_time.problem import (
        SpaceTime,
        SpaceTimeOptions,
        Weights,
        widened,
    )
    from drakebots.robots.quads.space_time.program import AXES, KnotBuilder
    from drakebots.robots.quads.space_time.solve import (
        SpaceTimePlan,
        mathematical_program,
        motion_at_steps,
        plan_space_time,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
