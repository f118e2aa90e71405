"""URDF as robots' authors write it, made into what Drake's parser accepts."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.model.reading.urdf.joined_frames import (
        Joined,
        joined_loops,
        read_joined_frames,
        with_joint_types,
        with_small_masses,
    )
    from drakebots.model.reading.urdf.repair import make_urdf_absolute, repair_urdf
    from drakebots.model.reading.urdf.turn import TURNS

__all__, __getattr__, __dir__ = lazy_face(__name__)
