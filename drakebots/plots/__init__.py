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
        legend_below,
        legend_beside,
        line_style,
        literal,
        save,
        write_figure,
    )
    from drakebots.plots.lattice import (
        MM,
        draw_nodes,
        draw_rods,
        draw_struts,
        frame,
        plot_lattice,
        rod_colour,
    )
    from drakebots.plots.plan import plot_convergence
    from drakebots.plots.shaded import Solid, box, shaded, turned
    from drakebots.plots.skin import plot_skin
    from drakebots.plots.summary import plot_motion

__all__, __getattr__, __dir__ = lazy_face(__name__)
