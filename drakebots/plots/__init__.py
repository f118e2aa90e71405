"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.plots.file import check_ending, save, write_figure
    from drakebots.plots.lattice import (
        MM,
        draw_nodes,
        draw_rods,
        draw_struts,
        frame,
        plot_lattice,
        rod_colour,
    )
    from drakebots.plots.plan import plot_convergence, plot_gaits, plot_jump
    from drakebots.plots.summary import plot_summary

__all__, __getattr__, __dir__ = lazy_face(__name__)
