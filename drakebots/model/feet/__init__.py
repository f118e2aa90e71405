"""Feet that nobody named, by the shapes of links, and which way is up."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.model.feet.candidates import (
        FootCandidate,
        foot_candidates,
        named_feet,
        split_names,
    )
    from drakebots.model.feet.links import Links
    from drakebots.model.feet.upright import upright_axis

__all__, __getattr__, __dir__ = lazy_face(__name__)
