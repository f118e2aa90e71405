"""Plans for a user's own legged model: a walk, a hop, a turn or the way to a goal.

    problem = LocomotionProblem("my_robot.urdf", Walk(forward=0.2))
    result = plan_locomotion(problem)
    program = mathematical_program(problem)

The last line is one for Drake's users (:mod:`.plan`). A :class:`Walk`, :class:`Hop`,
:class:`Goal` or :class:`Footfall` says where the robot goes and when its feet lift, a
:class:`Series` has several of them in a row.
:func:`stand` puts the model on its ground in units of its own size, and :func:`targets`
are what a problem asks of it there. A motion by a gait has a given footfall:
:func:`plan_gait` chooses it, :func:`gait_program` writes the program and
:func:`kinematic_guess` its first guess.
:func:`locomotion_program` writes the contact-implicit program, which decides itself
which foot touches when. :func:`plan_locomotion` solves the one, and where it has no
solution the other.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.trajopt.locomotion.attempts import HARD, OPTIONS
    from drakebots.trajopt.locomotion.gait import (
        Gait,
        gait_program,
        kinematic_guess,
        plan_gait,
    )
    from drakebots.trajopt.locomotion.plan import (
        first_iterate,
        mathematical_program,
        plan_locomotion,
    )
    from drakebots.trajopt.locomotion.problem import (
        GAITS,
        Footfall,
        Goal,
        Hop,
        LocomotionProblem,
        LocomotionWeights,
        Motion,
        Series,
        Targets,
        Walk,
        WayPoint,
        footfall,
        targets,
    )
    from drakebots.trajopt.locomotion.program import first_guess, locomotion_program
    from drakebots.trajopt.locomotion.standing import Standing, base_axes, stand

__all__, __getattr__, __dir__ = lazy_face(__name__)
