"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.track.reference import plan_model
    from drakebots.robots.quads.track.tracking import Replay, replay
    from drakebots.robots.quads.track.sap import SapTracking, track_sap
    from drakebots.robots.quads.track.servo_file import (
        UNITS,
        model_channels,
        read_channels,
        servo_table,
        write_servos,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
