"""Quad-robots for planning: the skeleton, its feet, and the skin on its links.

Words of this room: a *foot* is the end of a leg, known by its name; its *sole* is the
flat area that touches the ground, the convex hull of its *patches*, which are single
contact points (the paper has five per sole). Space-time programs have one force and
torque per sole, step-by-step plans have one force per patch.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.robot.planned_robot import (
        LinkSkin,
        PlannedRobot,
        SkinInfluence,
        SkinShare,
        carried_forces,
        coupling_forces,
        inertia_at,
        load_planned,
        moving_state,
        settled_state,
        skin_on_links,
        skin_share,
    )
    from drakebots.robots.quads.robot.quad import (
        MODELS,
        RPY,
        Coordinates,
        Feet,
        FeetKinematics,
        Quad,
        Sole,
        euler_rates,
        feet_kinematics,
        half_planes,
        load_quad,
        make_feet,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
