"""Planning of HAMR-VI's gaits and jumps as contact-implicit programs.

    plan(GaitProblem(frequency=10, surface="card"))
    plan(JumpProblem(rise=0.012))

`programs` writes the problems as programs with voltages as inputs, `warm_start`
makes their first guess from an open-loop simulation, and `plan` solves them with
growing penalties on soft contact. `stored` keeps plans as files, which are evaluated
and not solved again: `stored_plan("30hz_card")`.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.hamr.plan.plan import mathematical_program, plan
    from drakebots.robots.hamr.plan.programs import (
        GaitProblem,
        GaitWeights,
        JumpProblem,
        JumpWeights,
        WarmStart,
        gait_program,
        jump_program,
    )
    from drakebots.robots.hamr.plan.stored import (
        open_plan,
        problem_of,
        store_plan,
        stored_plan,
        stored_plans,
    )
    from drakebots.robots.hamr.plan.warm_start import Guess, packed, simulated_gait

__all__, __getattr__, __dir__ = lazy_face(__name__)
