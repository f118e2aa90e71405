"""TODO: what this room is."""

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

__all__, __getattr__, __dir__ = lazy_face(__name__)
