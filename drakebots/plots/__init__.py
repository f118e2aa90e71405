"""Figures of results: motions, skins, lattices, the progress of solvers.

Each `plot_*(result, path)` writes one picture, atomically. The room knows no robot;
robots have further figures of their own, and the registry says which is whose.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.plots.file import (
        COLOURS,
        check_ending,
        draw_largest,
        draw_lines,
        legend_below,
        legend_beside,
        line_style,
        literal,
        panels,
        save,
        write_figure,
    )
    from drakebots.plots.lattice import (
        MM,
        draw_rods,
        draw_struts,
        frame,
        plot_lattice,
    )
    from drakebots.plots.solids import Solid, box, shaded, turned
    from drakebots.plots.summary import plot_convergence, plot_motion, plot_skin
    from drakebots.plots.sweep import AS_NAMED, plot_sweep, shown_metrics
    from drakebots.view.lattice import rod_colour

__all__, __getattr__, __dir__ = lazy_face(__name__)
