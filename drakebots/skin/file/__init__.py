"""Skinned robots as files: a skeleton's model and a `.skin.yaml` beside it.

    robot = load_skinned("skinned_leg")
    found = attach("robot.urdf", "skin.vtk", GlueRadius(0.005))

:mod:`drakebots.skin.file.description` documents the entries of the file.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.skin.coupled.laws import Patches
    from drakebots.skin.file.description import (
        UNITS,
        GlueRadius,
        ServoGains,
        SkinDescription,
        check_modulus,
        read_skin,
        write_skin,
    )
    from drakebots.skin.file.robot import (
        Attachment,
        SkinnedRobot,
        attach,
        check_above_ground,
        load_skinned,
        rest_positions,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
