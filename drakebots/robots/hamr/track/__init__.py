"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.hamr.track.leg_map import build_leg_map
    from drakebots.robots.hamr.track.reference import (
        Reference,
        coordinate_names,
        reference_robot,
    )
    from drakebots.robots.hamr.track.track import Tracking, track

__all__, __getattr__, __dir__ = lazy_face(__name__)
