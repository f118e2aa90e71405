"""Any legged robot from a file: it stands, held by servos, executes and refines plans.

standing = simulate(Simulation("my_robot.urdf"))
run = track(Tracking(plan, cycles=5))
better = refine(Refinement(plan))
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.legged.plots import plot_track
    from drakebots.robots.legged.reference import Reference, reference
    from drakebots.robots.legged.refine import Refinement, refine
    from drakebots.robots.legged.simulate import Simulation, simulate
    from drakebots.robots.legged.track import Tracking, track
    from drakebots.robots.legged.whole_body import Gains, WholeBodyControl

__all__, __getattr__, __dir__ = lazy_face(__name__)
