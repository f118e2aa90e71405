"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.gecko.pose_step.gait import (
        PHASES,
        CyclePhases,
        Saturation,
        check_gait,
        cycle_motion,
        cycle_phases,
        half_cycle,
        relative_motion,
        walk,
    )
    from drakebots.robots.gecko.pose_step.pose_step import Step, pose_step

__all__, __getattr__, __dir__ = lazy_face(__name__)
