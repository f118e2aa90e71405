"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.model.description import Point, model_stem
    from drakebots.model.load import (
        ENDINGS,
        Model,
        available_models,
        find_model,
        load,
        loop_half_length,
        package_root,
    )
    from drakebots.model.loops import Loop, LoopClosure, add_ball_constraints, find_body

__all__, __getattr__, __dir__ = lazy_face(__name__)
