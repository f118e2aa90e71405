"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.fem.solver.base import PRECISIONS, SparseSolver
    from drakebots.fem.solver.newton import Boundary, Prescribed, minimise, pinned
    from drakebots.fem.solver.sparse import make_solver

__all__, __getattr__, __dir__ = lazy_face(__name__)
