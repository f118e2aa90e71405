"""Plans for a user's own legged model: a walk, hop, turn or the motion to a goal.

    result = plan_locomotion(LocomotionProblem("my_robot.urdf", "walk", forward=0.2))
    program = walk("my_robot.urdf", forward=0.2).mathematical_program()

The second line is one for Drake's users (:mod:`.motion`). :func:`stand` puts the model
on its ground in units of its own size. A motion by a gait has a given footfall:
:func:`plan_gait` chooses it, :func:`gait_program` writes the program and
:func:`kinematic_guess` its first guess. :func:`locomotion_program` writes the
contact-implicit program, which decides itself which foot touches when.
:func:`plan_locomotion` solves the one, and where it has no solution the other.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.trajopt.locomotion.attempts import HARD, OPTIONS
    from drakebots.trajopt.locomotion.gait import Gait, gait_program, plan_gait
    from drakebots.trajopt.locomotion.kinematic_guess import kinematic_guess
    from drakebots.trajopt.locomotion.motion import (
        Motion,
        MotionProgram,
        goal,
        hop,
        turn,
        walk,
    )
    from drakebots.trajopt.locomotion.plan import first_iterate, plan_locomotion
    from drakebots.trajopt.locomotion.problem import (
        GAITS,
        LocomotionProblem,
        LocomotionWeights,
    )
    from drakebots.trajopt.locomotion.program import first_guess, locomotion_program
    from drakebots.trajopt.locomotion.standing import Standing, base_axes, stand

__all__, __getattr__, __dir__ = lazy_face(__name__)
