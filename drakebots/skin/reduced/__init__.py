"""Reduced skins: a few modes and points in place of all tets, fast enough for control.

    skin = train_on_random_motion(robot)
    write_reduced(skin, "beetle.reduced.npz")
    stepper = reduced_stepper(robot, skin, 5e-3)

:mod:`drakebots.skin.reduced.basis` describes the shape and its modes,
:mod:`~drakebots.skin.reduced.cubature` the points.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.skin.reduced.basis import harmonic_weights
    from drakebots.skin.reduced.skin import (
        ReducedOptions,
        ReducedSkin,
        read_reduced,
        train_reduced,
        write_reduced,
    )
    from drakebots.skin.reduced.stepper import reduced_stepper
    from drakebots.skin.reduced.training import (
        random_targets,
        train_on_random_motion,
        trained_once,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
