"""Bracing: printed plates between skin and skeleton, and the vertices glued to them.

braced = with_plates(skeleton, shell.inner)
glue, notes = glue_by_link(shell, braced.skeleton, skin)
skeleton = trim_to_skin(braced.skeleton, shell.inner, build)
left = through_skin(skeleton, shell.inner, shell.outer)
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.design.bracing.glue import glue_by_link, glue_distance
    from drakebots.design.bracing.plates import with_plates
    from drakebots.design.bracing.trim import Through, through_skin, trim_to_skin

__all__, __getattr__, __dir__ = lazy_face(__name__)
