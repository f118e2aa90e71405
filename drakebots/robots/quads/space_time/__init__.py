"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.space_time.check import nearest_poses
    from drakebots.robots.quads.space_time.kinematic import (
        KinematicPlan,
        plan_kinematic,
    )
    from drakebots.robots.quads.space_time.problem import SpaceTime, Weights
    from drakebots.robots.quads.space_time.solve import frame_motion
    from drakebots.robots.quads.space_time.solve import SpaceTimePlan, plan_space_time

__all__, __getattr__, __dir__ = lazy_face(__name__)
