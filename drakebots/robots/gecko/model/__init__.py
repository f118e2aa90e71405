"""Model of the gecko: parameters, constant-curvature kinematics, SDF.

    robot = gecko("small")
    pose = pose_at(robot, gait_law(q1, q2), heading, position)
    pose.markers, pose.foot_headings

`gait_law` and `fixation` are the open-loop gait: reference angles of the limbs, and
the feet that stay fixed, for each half cycle. The Drake robot of :mod:`..drake` is the
same robot as chains of segments (`gecko_sdf`).
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.gecko.model.robot import (
        FEET,
        FOOT_MARKERS,
        LEGS,
        LIMBS,
        MARKERS,
        MODEL,
        Bends,
        Calibration,
        Gecko,
        Pose,
        arc_end,
        fixation,
        gait_law,
        gecko,
        limb_curves,
        limb_pieces,
        limb_starts,
        markers,
        parameters,
        pose_at,
        saturate,
    )
    from drakebots.robots.gecko.model.sdf import (
        FRONT,
        REAR,
        bending_stiffness,
        gecko_limbs,
        gecko_sdf,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
