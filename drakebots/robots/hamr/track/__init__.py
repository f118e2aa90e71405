"""Execution of plans on HAMR-VI with feedback on its legs (RSS 2018, section IV).

    track(Tracking(plan, cycles=15))

Motion capture is late and the encoders measure only the actuators, so an estimator
carries late frames forward through the legs' kinematics (`leg_map`); the controller
corrects the plan's voltages by the legs' errors (`feedback`).
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.hamr.track.feedback import Gains
    from drakebots.robots.hamr.track.leg_map import build_leg_map
    from drakebots.robots.hamr.track.track import Mismatch, Noise, Tracking, track

__all__, __getattr__, __dir__ = lazy_face(__name__)
