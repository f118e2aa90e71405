"""An elastic skin in Meshcat, whose recordings hold transforms but no vertices.

Live, the skin is drawn as a mesh at every moment; a page carries all its shapes,
quantized, and plays them by a script of its own.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.view.skin.live import (
        SkinView,
        colour_scale,
        draw_scale,
        scale_corners,
    )
    from drakebots.view.skin.record import record_skin

__all__, __getattr__, __dir__ = lazy_face(__name__)
