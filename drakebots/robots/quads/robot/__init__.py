"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.robot.feet import (
        Coordinates,
        Feet,
        FeetFrame,
        euler_rates,
        feet_frame,
        make_feet,
    )
    from drakebots.robots.quads.robot.links_skin import (
        LinkSkin,
        SkinInfluence,
        coupling_forces,
        frame_inertia,
        skin_share,
        whole_com,
    )
    from drakebots.robots.quads.robot.planned_robot import (
        PlannedRobot,
        load_planned,
        moving_state,
        settled_state,
        variant,
    )
    from drakebots.robots.quads.robot.quad import Quad, Sole

__all__, __getattr__, __dir__ = lazy_face(__name__)
