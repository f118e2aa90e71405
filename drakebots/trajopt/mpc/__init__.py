"""Contact-implicit model predictive control, of any model, in real time.

    problem = MpcProblem(robot, step=0.05, knots=20, period=1 / 60)
    controller = builder.AddSystem(ContactImplicitMpc(problem, reference))

No one says which foot touches when: every solve decides anew, with relaxed hard contact
and a few Newton steps on a banded program (docs/control.md). Between solves the gains
of the last factorization act.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.trajopt.mpc.problem import (
        MpcCost,
        MpcPlan,
        MpcProblem,
        Reference,
        standing,
    )
    from drakebots.trajopt.mpc.references import (
        Push,
        Trot,
        Way,
        default_cost,
        follow_feet,
    )
    from drakebots.trajopt.mpc.solver import MpcSolver
    from drakebots.trajopt.mpc.system import ContactImplicitMpc, MpcLog

__all__, __getattr__, __dir__ = lazy_face(__name__)
