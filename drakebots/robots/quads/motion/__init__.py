"""Requested motions of quad-robots: COM, feet and footfall over time.

    motion = library_motion("walk", quad, speed=0.1)     # or read_motion("walk.yaml")

A motion comes from the library, from a gait (footfall pattern, speed, turning rate) or
from a file. Here too are support polygons, and the contact forces that a motion needs.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.motion.gait import leg_height, stride_length
    from drakebots.robots.quads.motion.ground import ground_axes, onto
    from drakebots.robots.quads.motion.library import (
        MOTIONS,
        library_motion,
        read_motion,
    )
    from drakebots.robots.quads.motion.motion import (
        LEVEL,
        MotionInput,
        cop_of_forces,
        height_over,
        margin,
        near_contact,
        sole_corners,
        support_polygon,
        zmp,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
