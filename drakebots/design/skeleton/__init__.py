"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.design.skeleton.clashes import solid_boxes
    from drakebots.design.skeleton.links import torso_link
    from drakebots.design.skeleton.parameters import (
        Build,
        FootShape,
        Limb,
        Torso,
        edit,
        parameter,
    )
    from drakebots.design.skeleton.plates import Plate, plate
    from drakebots.design.skeleton.sdf import skeleton_sdf, write_plates, write_sdf
    from drakebots.design.skeleton.skeleton import Hinge, Link, Skeleton, Sole, Solid
    from drakebots.design.skeleton.solids import axes, motor
    from drakebots.design.skeleton.table1 import GLUE, MASSES, SIZES, table1_template
    from drakebots.design.skeleton.template import Long, Template

__all__, __getattr__, __dir__ = lazy_face(__name__)
