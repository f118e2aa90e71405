"""A model for other tools: MJCF for MuJoCo, URDF for everything else.

write_mjcf(load("hamr"), "hamr.xml")
write_urdf(load("hamr"), "hamr.urdf")
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.multibody.exchange.mjcf import write_mjcf
    from drakebots.multibody.exchange.parts import Part, plain_robot, read_parts
    from drakebots.multibody.exchange.urdf import write_urdf

__all__, __getattr__, __dir__ = lazy_face(__name__)
