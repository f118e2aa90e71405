"""TODO: what this room is."""

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
        flips_of,
    )
    from drakebots.robots.quads.frames.objective import (
        FrameTargets,
        FrameWeights,
        frame_objective,
        position_error,
    )
    from drakebots.robots.quads.frames.planner import FramePlanner
    from drakebots.robots.quads.frames.problem import FrameOptions
    from drakebots.robots.quads.frames.rollout import FramePlan, make_planner, rollout

__all__, __getattr__, __dir__ = lazy_face(__name__)
