"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.trajopt.locomotion.plan import HARD, OPTIONS, plan_locomotion
    from drakebots.trajopt.locomotion.problem import LocomotionPlan
    from drakebots.trajopt.locomotion.program import first_guess, locomotion_program
    from drakebots.trajopt.locomotion.standing import Standing, stand

__all__, __getattr__, __dir__ = lazy_face(__name__)
