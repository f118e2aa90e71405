"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.multibody.limbs.limb import Limb
    from drakebots.multibody.limbs.limbs import LimbMap, couple_joints, read_limbs
    from drakebots.multibody.limbs.sdf import limb_parts, sdf_of, write_limbs

__all__, __getattr__, __dir__ = lazy_face(__name__)
