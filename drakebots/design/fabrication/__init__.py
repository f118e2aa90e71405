"""Fabrication: the skin's pieces and their moulds, printed parts, lists.

made = fabricate(design, "out/fabrication")
made.moulds["FL"].undercut
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.design.fabrication.fabricate import Fabrication, fabricate, servo_map

__all__, __getattr__, __dir__ = lazy_face(__name__)
