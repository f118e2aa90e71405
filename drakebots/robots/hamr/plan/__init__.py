"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.hamr.plan.plan import plan_gait, plan_jump, plan_reference
    from drakebots.robots.hamr.plan.programs import (
        GaitPlan,
        JumpPlan,
        gait_program,
        jump_program,
    )
    from drakebots.robots.hamr.plan.voltages import export_voltages
    from drakebots.robots.hamr.plan.warm_start import Guess, packed, simulated_gait

__all__, __getattr__, __dir__ = lazy_face(__name__)
