"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.gecko.plots import (
        CM,
        FOOT_COLOURS,
        HEADING_COLOUR,
        LIMB_COLOURS,
        TARGET_COLOUR,
        draw_arrow,
        draw_robot,
        plot_course,
        plot_gait_law,
        plot_velocity_space,
    )
    from drakebots.robots.gecko.simulate import ENGINES, GeckoSimulation, simulate_gecko
    from drakebots.robots.gecko.view import record_gecko

__all__, __getattr__, __dir__ = lazy_face(__name__)
