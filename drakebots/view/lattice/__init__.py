"""Voxel lattices in Meshcat: struts, nodes, actuators, and how they move."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.view.lattice.page import show_lattice
    from drakebots.view.lattice.record import actuators_of, lattice_of, record_nodes

__all__, __getattr__, __dir__ = lazy_face(__name__)
