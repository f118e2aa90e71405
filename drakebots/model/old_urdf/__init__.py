"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.model.old_urdf.read import is_old_urdf, read_old_urdf

__all__, __getattr__, __dir__ = lazy_face(__name__)
