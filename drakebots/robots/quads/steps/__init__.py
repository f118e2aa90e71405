"""Plans a motion step by step, with the skin.

    planner = make_planner(robot.skinned, dt=5e-3)
    result = plan_steps(planner, StepsProblem(q_ref, contact))

Source: "Computational Design of Skinned Quad-Robots", section 5.2; equation numbers in
these files are those of the paper. Each step of 5 ms is an optimization of its own. It
finds torques and contact forces that follow the requested poses and keep the centre of
pressure (COP) inside the support polygon, with contacts that break, stick or slide.
That is a quadratic program with complementarity constraints (QPCC); it is solved by
flipping the states of contacts.

Where to start reading: `objective` has the equations of a step and what is minimised,
`contact_state` the states of a contact, `labelled_qp` the QP for given states, `qpcc`
the search over the states, `planner` one step and `plan` the whole motion.

The paper calls a step a frame; so do results that are stored, of kind "quads.frames".
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.steps.contact_state import (
        FREE,
        STICK,
        centre_of_pressure,
        cop_margin,
        support_edges,
    )
    from drakebots.robots.quads.steps.labelled_qp import (
        LabelledQp,
        QpPoint,
        StepQpcc,
        requested_flips,
    )
    from drakebots.robots.quads.steps.objective import (
        StepTargets,
        StepWeights,
        position_error,
        step_objective,
    )
    from drakebots.robots.quads.steps.plan import (
        StepsProblem,
        make_planner,
        plan_steps,
    )
    from drakebots.robots.quads.steps.planner import StepOptions, StepPlanner

__all__, __getattr__, __dir__ = lazy_face(__name__)
