"""Plans for a user's own legged model: a walk, hop, turn or the motion to a goal.

    result = plan_locomotion(LocomotionProblem("my_robot.urdf", "walk", forward=0.2))

:func:`stand` puts the model on its ground in units of its own size,
:func:`locomotion_program` writes the contact-implicit program, and
:func:`plan_locomotion` solves it until the contacts are hard.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.trajopt.locomotion.plan import HARD, OPTIONS, plan_locomotion
    from drakebots.trajopt.locomotion.problem import (
        LocomotionProblem,
        LocomotionWeights,
    )
    from drakebots.trajopt.locomotion.program import first_guess, locomotion_program
    from drakebots.trajopt.locomotion.standing import Standing, base_axes, stand

__all__, __getattr__, __dir__ = lazy_face(__name__)
