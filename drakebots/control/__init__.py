"""Robots under control: predictive control through contact, and one loop for all.

    problem = MpcProblem(robot, step=0.05, knots=20, period=1 / 60)
    controller = builder.AddSystem(ContactImplicitMpc(problem, reference))

No one says which foot touches when: every solve decides anew, with relaxed hard contact
and a few Newton steps on a banded program (docs/control.md). Between solves the gains
of the last factorization act. A :class:`ControlRun` has a controller, a plant and
pushes: :class:`Replanning` and :class:`SapPlant`, or others with the same methods.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.control.loop import (
        Controller,
        ControlRun,
        Law,
        Plant,
        Push,
        course_findings,
        run_figures,
        with_solves,
    )
    from drakebots.control.problem import (
        FEEDBACK,
        Mpc,
        MpcCost,
        MpcPlan,
        MpcProblem,
        Reference,
        standing,
    )
    from drakebots.control.references import (
        STEPS,
        Gait,
        ReferenceMotion,
        default_cost,
        feet_miss,
        follow_feet,
        raised,
    )
    from drakebots.control.remote import RemoteReplanning
    from drakebots.control.rigid import (
        ContactModel,
        Hard,
        HardPlant,
        Sap,
        SapPlant,
        stiff_ground,
    )
    from drakebots.control.solver import MpcSolver
    from drakebots.control.steered import CLOCKS, Orders, SteeredMotion
    from drakebots.control.system import Command, ContactImplicitMpc, MpcLog, Replanning
    from drakebots.multibody import DiagramRun, SimulatedRun

__all__, __getattr__, __dir__ = lazy_face(__name__)
