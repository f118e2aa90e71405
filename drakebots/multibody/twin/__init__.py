"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.multibody.twin.joints import rotation
    from drakebots.multibody.twin.kinematics import Pose, joint_slices
    from drakebots.multibody.twin.twin import Twin

__all__, __getattr__, __dir__ = lazy_face(__name__)
