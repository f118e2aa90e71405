"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.skin.reduced.basis import harmonic_weights
    from drakebots.skin.reduced.loop import BaseController, Feedback, run_loop
    from drakebots.skin.reduced.skin import ReducedOptions, read_reduced, write_reduced
    from drakebots.skin.reduced.training import (
        measure_reduced,
        random_targets,
        train_on_random_motion,
        walk_targets,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
