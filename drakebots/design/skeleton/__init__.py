"""Skeletons: from the parameters of a template to links, joints, soles and an SDF.

    template = edit(template, {"front.upper": 0.11})
    write_sdf(template.skeleton(), "out")

A :class:`Template` turns semantic parameters (lengths, widths, servos, feet) into a
:class:`Skeleton` of links, whose solids are printed boxes, servos and payload.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.design.skeleton.links import axes, motor, torso_link
    from drakebots.design.skeleton.parameters import (
        DS3218,
        SERVOS,
        Build,
        FootShape,
        Limb,
        Servo,
        Tail,
        Torso,
        edit,
        parameter,
    )
    from drakebots.design.skeleton.sdf import (
        link_meshes,
        skeleton_sdf,
        write_meshes,
        write_sdf,
    )
    from drakebots.design.skeleton.skeleton import (
        Hinge,
        Link,
        Plate,
        Skeleton,
        Sole,
        Solid,
        Trimmed,
        plate,
        trimmed,
    )
    from drakebots.design.skeleton.template import Crouched, Long, Template, Upright

__all__, __getattr__, __dir__ = lazy_face(__name__)
