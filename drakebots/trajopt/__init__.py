"""Trajectory optimization through contact, for any model.

Rooms: `program` (programs made of blocks with exact derivatives), `solvers` (IPOPT with
exact Hessians, Drake's SNOPT and IPOPT, continuation), `contact_implicit` (a robot's
dynamics and hard contact as a program and as a simulator) and `locomotion` (plans for
a user's own legged model). Here is the loop that refines a plan by executing it
(`refine_plan`), the ground that all of them stand on, and motions of a user's model:

    Flat(), Slope(0.1), Step(0.25, 1.05, 0.11), HeightField(x, y, z)
    Plateau(0.25, 1.05, 0.11)  # a step without a wall: its normals point up
    SignedDistance(lambda p: p[2] - 0.02 * ca.sin(p[0]))
    walk("my.urdf", forward=0.3).plan()  # a Result
    walk("my.urdf", forward=0.3).mathematical_program()  # for costs of your own
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.trajopt.locomotion import goal, hop, turn, walk
    from drakebots.trajopt.refine import (
        Refinable,
        Refined,
        RefineOptions,
        Trial,
        best_of,
        refine_plan,
    )
    from drakebots.trajopt.terrain import (
        Flat,
        Frame,
        HeightField,
        Plateau,
        SignedDistance,
        Slope,
        Step,
        Terrain,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
