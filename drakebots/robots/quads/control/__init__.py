"""A skinned quadruped under feedback: contact-implicit control through the skin.

run = control(Control("monster", speed=0.2, pushes=(Push(20.0, time=1.0),)))
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.control.believed import believed_robot
    from drakebots.robots.quads.control.control import TRAINING, Built, build, control
    from drakebots.robots.quads.control.ground import TerrainContact
    from drakebots.robots.quads.control.problem import Control
    from drakebots.trajopt.mpc import Push, Trot

__all__, __getattr__, __dir__ = lazy_face(__name__)
