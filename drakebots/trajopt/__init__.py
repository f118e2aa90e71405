"""Trajectory optimization through contact, for any model.

Rooms: `program` (programs made of blocks with exact derivatives), `solvers` (IPOPT with
exact Hessians, Drake's SNOPT and IPOPT, complementarity), `contact_implicit` (a robot's
dynamics and hard contact as a program), `locomotion` (plans for a user's own legged
model). Here are the loop that refines a plan by executing it (`refine_plan`), and what
opens the program of a planner's problem (`PlanProgram`).
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.trajopt.plan_program import Add, Bodies, PlanProgram
    from drakebots.trajopt.refine import (
        Refinable,
        Refined,
        RefineOptions,
        Trial,
        best_of,
        refine_plan,
    )
    from drakebots.trajopt.solvers import planning

__all__, __getattr__, __dir__ = lazy_face(__name__)
