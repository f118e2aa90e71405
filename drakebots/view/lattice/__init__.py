"""Lattices in Meshcat: still as one small page, moving as a recording.

show_lattice(load_lattice("lattice.json"), "lattice.html")
stage = record_nodes(result)          # a result of kind "voxels.plan"
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.view.lattice.page import rod_colour, rod_colours, show_lattice
    from drakebots.view.lattice.record import (
        ActuatorRods,
        actuators_of,
        draw_lattice,
        lattice_of,
        record_nodes,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
