"""Quadrupeds under an elastic skin: planning, tracking, control.

    from drakebots import quads

    plan = quads.plan(quads.Problem(model="beetle", motion="walk"))
    run = quads.track(quads.Tracking(plan))
    quads.export_servos(plan, "servo.csv")
    pushed = quads.control(quads.Control("monster", pushes=(Push(20.0, time=1.0),)))

After "Computational Design of Skinned Quad-Robots", section 5: a space-time program
plans the skeleton over knots (:mod:`space_time`), a step-by-step optimization (the
paper: frame-by-frame) follows it with the skin (:mod:`steps`), and both alternate
until they agree (:mod:`plan`). Tracking is open loop, or given the body's attitude
by an IMU, with other models of contact than the planners': the skinned robot on a
compliant ground, or its skeleton in Drake's SAP under the recorded forces of the skin.
Requested motions come from :mod:`motion`.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.design import Improved
    from drakebots.robots.quads.control import (
        Box,
        Built,
        Control,
        Skinned,
        build,
        control,
    )
    from drakebots.robots.quads.improve import improve
    from drakebots.robots.quads.live import Drive, LiveSkin, drive
    from drakebots.robots.quads.motion import MOTIONS
    from drakebots.robots.quads.plan import (
        follow,
        motion_difference,
        plan,
        skin_influence,
        step_planner,
    )
    from drakebots.robots.quads.plots import plot_plan, plot_track
    from drakebots.robots.quads.problem import Alternation, Limits, Problem
    from drakebots.robots.quads.robot import MODELS as MODEL
    from drakebots.robots.quads.space_time import SpaceTimeOptions
    from drakebots.robots.quads.steps import StepOptions
    from drakebots.robots.quads.track import (
        ServoTable,
        Start,
        Tracking,
        export_servos,
        track,
    )
    from drakebots.skin import SkinSimulation as Simulation
    from drakebots.skin import simulate_skinned as simulate

__all__, __getattr__, __dir__ = lazy_face(__name__)
