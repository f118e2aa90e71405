"""Tracks plans of quad-robots, and exports them to servo boards.

result = track(Tracking(plan))        # skin, servos, compliant ground
export_servos(plan, "servo.csv")
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.track.reference import plan_model
    from drakebots.robots.quads.track.servo_file import ServoTable, export_servos
    from drakebots.robots.quads.track.tracking import Start, Tracking, track

__all__, __getattr__, __dir__ = lazy_face(__name__)
