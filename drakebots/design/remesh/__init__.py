"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.design.remesh.remesh import Ring, remesh

__all__, __getattr__, __dir__ = lazy_face(__name__)
