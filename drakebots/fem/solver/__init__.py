"""Solvers of the finite elements: sparse symmetric systems and Newton's method.

A :class:`SparseSolver` keeps the analysis of one sparsity pattern and can condense a
matrix onto a few dofs; :func:`minimise` is Newton's method on the elastic energy with
prescribed nodes.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.fem.solver.base import SolverFault
    from drakebots.fem.solver.mumps import fast_blas
    from drakebots.fem.solver.newton import (
        Boundary,
        NewtonResult,
        Prescribed,
        equilibrium,
        minimise,
        pinned,
    )
    from drakebots.fem.solver.sparse import (
        PRECISIONS,
        SparseSolver,
        installed_solvers,
        make_solver,
        symmetric_lu,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
