"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.gecko.drake.climbing import Climb, climb
    from drakebots.robots.gecko.drake.pressure import Calibration, saturate
    from drakebots.robots.gecko.drake.run import DrakeGecko, run

__all__, __getattr__, __dir__ = lazy_face(__name__)
