"""How a robot stands, and what holds it there.

    posture = find_posture(load("my_robot.urdf"))

A posture is that of the robot's file, if it stands, or one found by least squares. The
rest is what holds it: torques and loads at rest, and servos. Read `posture.py` first,
then `search.py`; `stance.py` has the posed robot that both measure.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.multibody.posture.equilibrium import Equilibrium, equilibrium
    from drakebots.multibody.posture.posture import find_posture
    from drakebots.multibody.posture.servos import Servos, connect_targets, servos
    from drakebots.multibody.posture.stance import Posture, Stance, centre_of_mass

__all__, __getattr__, __dir__ = lazy_face(__name__)
