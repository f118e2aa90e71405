"""Contact-implicit programs: forces, slips and time steps are variables of one program.

No one says which foot touches when. A :class:`ContactSystem` is a robot on its terrain;
a :class:`ContactImplicit` states the knots, bounds and scales of a program over it, and
its builder takes costs and goals:

    system = ContactSystem(robot, Flat())
    problem = ContactImplicit(system, knots=21, step=(0.01, 0.05), friction=1.0)
    b = problem.builder()
    b.bound("q", 0, q_start, q_start)
    cost_velocity_steps(b, 0.1)
    solution = solve(program := b.build(), program.pack(guess))

Where it is known which foot touches when, a :class:`ScheduledBuilder` states the same
mechanics without complementarity, and :func:`with_free_contacts` turns its answer into
one of the contact-implicit program.

:func:`solve_penalty_continuation` makes the contacts hard, :func:`plan_result` labels
the answer in SI, and :func:`audit` judges it without the solver's rows.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.trajopt.contact_implicit.program import (
        ContactImplicit,
        ContactImplicitBuilder,
        Scales,
        Slack,
        cost_friction_power,
        cost_input_steps,
        cost_loop_forces,
        cost_rates,
        cost_velocity_steps,
    )
    from drakebots.trajopt.contact_implicit.result import (
        audit,
        open_program,
        plan_dataset,
        plan_result,
    )
    from drakebots.trajopt.contact_implicit.schedule import (
        Schedule,
        ScheduledBuilder,
        with_free_contacts,
    )
    from drakebots.trajopt.contact_implicit.system import (
        INTEGRATORS,
        ContactSystem,
        check_legged,
        joint_inputs,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
