"""Quad-robots for planning: the skeleton, its feet, and the skin on its links.

Words of this room: a *foot* is the end of a leg, known by its name; its *sole* is the
flat area that touches the ground, the convex hull of its *patches*, which are single
contact points (the paper has five per sole). Space-time programs have one force and
torque per sole, step-by-step plans have one force per patch.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.robot.feet import (
        Feet,
        FeetKinematics,
        feet_kinematics,
        make_feet,
    )
    from drakebots.robots.quads.robot.links_skin import (
        LinkSkin,
        SkinInfluence,
        SkinShare,
        coupling_forces,
        frame_inertia,
        skin_on_links,
        skin_share,
        whole_com,
    )
    from drakebots.robots.quads.robot.planned_robot import (
        PlannedRobot,
        load_planned,
        moving_state,
        settled_state,
    )
    from drakebots.robots.quads.robot.quad import (
        MODELS,
        RPY,
        Coordinates,
        Quad,
        Sole,
        euler_rates,
        half_planes,
        load_quad,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
