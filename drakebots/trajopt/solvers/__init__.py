"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.trajopt.solvers.continuation import (
        Continuation,
        MultiStart,
        Stage,
        multi_start,
        solve_continuation,
    )
    from drakebots.trajopt.solvers.drake import solve_drake
    from drakebots.trajopt.solvers.ipopt_exact import Raw, solve_exact
    from drakebots.trajopt.solvers.mathematical_program import Compute
    from drakebots.trajopt.solvers.solve import (
        SOLVERS,
        TOLERANCE,
        Solution,
        solve,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
