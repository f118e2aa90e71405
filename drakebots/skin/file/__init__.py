"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.skin.file.attach import Attachment, attach
    from drakebots.skin.file.description import (
        GlueRadius,
        Patches,
        ServoGains,
        SkinDescription,
        read_skin,
        write_skin,
    )
    from drakebots.skin.file.robot import (
        SkinnedRobot,
        actuated_joints,
        load_skinned,
        rest_positions,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
