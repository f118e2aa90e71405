"""Skinned quadrupeds: planning their motion."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.alternate import Alternation, alternate, skin_influence
    from drakebots.robots.quads.plan import QuadProblem, plan_quad
    from drakebots.robots.quads.plots import (
        COLOURS,
        draw_bars,
        draw_cop,
        draw_margin,
        draw_torques,
        plot_contacts,
        tidy,
    )
    from drakebots.robots.quads.view import draw_motion

__all__, __getattr__, __dir__ = lazy_face(__name__)
