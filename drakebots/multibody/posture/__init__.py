"""How a robot stands: a posture of the file, or one found by least squares, and what
holds it there: torques and loads at rest, servos.

Read `posture.py` first, then `search.py`; `stance.py` is the robot that both measure.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.multibody.posture.equilibrium import Equilibrium, equilibrium
    from drakebots.multibody.posture.posture import find_posture
    from drakebots.multibody.posture.servos import Servos, servos
    from drakebots.multibody.posture.stance import Posture, Stance, centre_of_mass

__all__, __getattr__, __dir__ = lazy_face(__name__)
