"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.motion.gait import leg_height, stride_length
    from drakebots.robots.quads.motion.io import read_motion
    from drakebots.robots.quads.motion.library import MOTIONS, library_motion
    from drakebots.robots.quads.motion.motion import (
        GRAVITY,
        MotionInput,
        cop_of_forces,
        margin,
        sole_corners,
        support_polygon,
        zmp,
    )
    from drakebots.robots.quads.motion.wrenches import carry, cone_rows

__all__, __getattr__, __dir__ = lazy_face(__name__)
