"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.skin.gradients.adjoint import MotionCost, MotionGradient
    from drakebots.skin.gradients.sensitivity import (
        link_length,
        meet_target,
        modulus,
        setup_of,
        thickness,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
