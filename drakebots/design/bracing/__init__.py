"""Bracing: printed plates between skin and skeleton, and the vertices glued to them.

braced = with_plates(skeleton, shell.inner)
glue = brace_vertices(shell.mesh.vertices, braced.skeleton, 140, touch=5e-3)
skeleton = trim_to_skin(braced.skeleton, shell.inner, build)
left = through_skin(skeleton, shell.inner, shell.outer)
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.design.bracing.glue import (
        around_limbs,
        brace_vertices,
        glue_distance,
        mean_edge,
    )
    from drakebots.design.bracing.plates import plates, with_plates
    from drakebots.design.bracing.through import Through, through_skin
    from drakebots.design.bracing.trim import trim_to_skin

__all__, __getattr__, __dir__ = lazy_face(__name__)
