"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.trajopt.contact_implicit.audit import audit
    from drakebots.trajopt.contact_implicit.dynamics import INTEGRATORS
    from drakebots.trajopt.contact_implicit.penalty import (
        Clock,
        PenaltyContinuation,
        PenaltyStage,
        solve_penalty_continuation,
        start_from,
    )
    from drakebots.trajopt.contact_implicit.program import (
        ContactImplicit,
        ContactImplicitBuilder,
        Scales,
        cost_friction_power,
        cost_input_steps,
        cost_loop_forces,
        cost_velocity_steps,
    )
    from drakebots.trajopt.contact_implicit.result import plan_dataset, plan_result
    from drakebots.trajopt.contact_implicit.stepping import VariationalStepper
    from drakebots.trajopt.contact_implicit.system import ContactSystem, joint_inputs

__all__, __getattr__, __dir__ = lazy_face(__name__)
