"""Plans a motion step by step with the skin (the paper: frame-by-frame, section 5.2).

Each step of 5 ms is an optimization of its own: torques and contact forces that follow
the requested poses and keep the centre of pressure (COP) inside the support polygon,
with contacts that break, stick or slide. That is a quadratic program with
complementarity constraints (QPCC); it is solved by flipping the states of contacts.

    planner = make_planner(robot.skinned, dt=5e-3)
    result = plan_frames(planner, FrameProblem(q_ref, contact))

What the paper calls a frame is a *step* of the plan here, in all texts; names in the
code (`FramePlanner`, kind "quads.frames") keep the paper's word. A frame in the sense
of Drake is a coordinate frame.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.quads.frames.contact_state import (
        FREE,
        STICK,
        centre_of_pressure,
        cop_margin,
        support_edges,
    )
    from drakebots.robots.quads.frames.labelled_qp import (
        FrameQpcc,
        LabelledQp,
        QpPoint,
        requested_flips,
    )
    from drakebots.robots.quads.frames.objective import (
        FrameTargets,
        FrameWeights,
        frame_objective,
        position_error,
    )
    from drakebots.robots.quads.frames.plan import (
        FrameProblem,
        make_planner,
        plan_frames,
    )
    from drakebots.robots.quads.frames.planner import FrameOptions, FramePlanner

__all__, __getattr__, __dir__ = lazy_face(__name__)
