"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.lattice.frame.model import Frame, lattice_frame
    from drakebots.lattice.frame.solution import FrameSolution, actuate
    from drakebots.lattice.frame.solve import FactoredFrame, solve_frame

__all__, __getattr__, __dir__ = lazy_face(__name__)
