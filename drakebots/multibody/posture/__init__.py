"""Postures of standing robots, and the loads that hold them.

    posture = find_posture(load("my_robot.urdf"))

A posture is that of the robot's file, if it stands, or one found by least squares. The
rest is what holds it: torques and loads at rest, and servos. Read `posture.py` first,
then `search.py`; `stance.py` has the posed robot that both measure.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.multibody.posture.posture import find_posture
    from drakebots.multibody.posture.servos import (
        Equilibrium,
        Servos,
        connect_targets,
        equilibrium,
        servos,
        target_ports,
    )
    from drakebots.multibody.posture.stance import Posture, Stance, centre_of_mass

__all__, __getattr__, __dir__ = lazy_face(__name__)
