"""Any legged robot from a file: it stands, is controlled, executes and refines plans.

standing = simulate(Simulation("my_robot.urdf"))
pushed = control(Control("mini_cheetah", goal=(1, 0), pushes=(Push(50, time=1),)))
run = track(Tracking(plan, cycles=5))
better = refine(Refinement(plan))
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.control import Gait, Hard, Mpc, Push, Sap
    from drakebots.robots.legged.control import Control, Rigid, control
    from drakebots.robots.legged.live import Drive, Driven, drive
    from drakebots.robots.legged.reference import Reference, reference
    from drakebots.robots.legged.refine import Refinement, refine
    from drakebots.robots.legged.simulate import Simulation, simulate
    from drakebots.robots.legged.track import Tracking, track
    from drakebots.robots.legged.whole_body import (
        Gains,
        Servos,
        WholeBody,
        WholeBodyControl,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
