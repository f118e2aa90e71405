"""Soft limbs that bend at constant curvature, as chains of joints for any robot.

    limbs = read_limbs("tail.yaml")
    write_limbs("robot.urdf", limbs, "tailed.dmd.yaml")       # as files, or
    add_limbs(plant, limbs)                                   # before Finalize()
    limb_map = LimbMap(plant, limbs)                          # and after it

The equations are in `drakebots.multibody.limbs.limbs`.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.multibody.limbs.limbs import (
        Limb,
        LimbMap,
        couple_joints,
        read_limbs,
    )
    from drakebots.multibody.limbs.sdf import (
        add_limbs,
        limb_parts,
        limbs_sdf,
        write_limbs,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
