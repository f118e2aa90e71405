"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.hamr.gaits import GaitSource, make_waveform
    from drakebots.robots.hamr.plots import plot_tracking
    from drakebots.robots.hamr.simulate import (
        GROUND_DISSIPATION,
        GROUND_STIFFNESS,
        HamrSimulation,
        build,
        simulate,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
