"""The gecko: a soft robot of four legs, a torso and four suction feet.

    from drakebots.robots import gecko

    result = gecko.simulate(gecko.Simulation(epsilon=0.10))         # the paper's course
    gecko.plot_course(result, "course.png")
    space = gecko.plan(gecko.Problem())                 # the motion of every gait
    climb = gecko.simulate_walk(                        # up a wall of 84 degrees
        gecko.Walk(engine=gecko.Drake(incline=gecko.STEEPEST))
    )

Two `engines` walk it: the authors' quasi-static pose step, and a Drake robot with
switched suction feet. The gait pattern generator (`generator`) chooses its gaits.
Source: Schiller, Seibel, Schlattmann, "A Gait Pattern Generator for Closed-Loop
Position Control of a Soft Walking Robot", Front. Robot. AI 7:87 (2020).
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.gecko.engines import (
        STEEPEST,
        CupLimits,
        Drake,
        Gains,
        PoseStep,
        Walk,
        simulate_walk,
    )
    from drakebots.robots.gecko.generator import LeastTime, Published
    from drakebots.robots.gecko.live import Drive, Walking, drive
    from drakebots.robots.gecko.model import MODEL, Gecko, gecko
    from drakebots.robots.gecko.plan import Problem, motion_of, plan
    from drakebots.robots.gecko.plots import (
        draw_robot,
        plot_course,
        plot_velocity_space,
    )
    from drakebots.robots.gecko.simulate import MOTIONS, Simulation, simulate
    from drakebots.robots.gecko.view import record_gecko

__all__, __getattr__, __dir__ = lazy_face(__name__)
