"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.gecko.model.kinematics import (
        Pose,
        arc_end,
        fixation,
        gait_law,
        limb_curves,
        limb_starts,
        markers,
        pose_at,
    )
    from drakebots.robots.gecko.model.parameters import (
        FEET,
        FOOT_MARKERS,
        LEGS,
        LIMBS,
        MARKERS,
        Gecko,
        array,
        gecko,
        raw,
        scalar,
        table,
    )
    from drakebots.robots.gecko.model.sdf import (
        FRONT,
        REAR,
        gecko_limbs,
        gecko_scene,
        gecko_sdf,
        gecko_sidecar,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
