"""HAMR-VI's jump as a contact-implicit program (RSS 2018, eq. (17)).

The robot stands still for an interval, stores energy in its flexures by
crouching, and leaves the ground; the last knot is the apex. The cost is

    w_goal (z_N - z_1 - rise)^2 + w_level int |rpy|^2 dt + w_swing int |q_s|^2 dt
    + w_du/2 sum |dV|^2 + w_dv sum |v_k+1 - v_k|^2 + w_slip sum h psi'mu gam
    + w_lam sum |lam|^2 + s_weight sum s

with q_s the swing actuators.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from drakebots.errors import InvalidInput
from drakebots.robots.hamr.gait_program import TILT
from drakebots.robots.hamr.grounded_plan import GroundedPlan
from drakebots.robots.hamr.plan_system import SCALES, base_coordinates, hamr_system
from drakebots.trajopt.contact_implicit import ContactImplicit
from drakebots.trajopt.costs import (
    cost_friction_power,
    cost_input_steps,
    cost_loop_forces,
    cost_velocity_steps,
)
from drakebots.trajopt.program import Program


@dataclass(frozen=True)
class JumpPlan(GroundedPlan):
    """A jump to be planned.

    Attributes:
        rise: of the base from standing to the apex [m].
        surface: a name from `params.yaml`, or use `friction`.
        friction: coefficient instead of the surface's.
        knots: N.
        duration: the guess for standing to apex [s]; the plan may take from
            half of it to half as much again.
        goal, level, swing, effort, smooth, slip, loops: weights of the cost,
            for mm, g, ms, N.
        slack: exact penalties; see `GaitWeights`.
    """

    rise: float = 12e-3
    surface: str = "card"
    friction: float | None = None
    knots: int = 61
    duration: float = 0.14
    goal: float = 10.0
    level: float = 0.1
    swing: float = 1.0
    effort: float = 1.0
    smooth: float = 0.5
    slip: float = 20.0
    loops: float = 1e-3
    slack: tuple[float, ...] = (50.0, 500.0, 5e3, 5e4)

    def __post_init__(self):
        self.check_ground_and_knots()
        for name in ("rise", "duration"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise InvalidInput(f"{name} must be within 0..1, got {value}")

    @property
    def name(self) -> str:
        """For reports."""
        return f"jump {1e3 * self.rise:g} mm"


def jump_program(
    plan: JumpPlan, *, slack_weight: float | None = None
) -> tuple[ContactImplicit, Program]:
    """A jump's program; see the module."""
    system = hamr_system()
    unit = system.robot.scaling
    step = plan.duration / (plan.knots - 1) / unit.time
    problem = ContactImplicit(
        system,
        plan.knots,
        (0.5 * step, 1.5 * step),
        plan.mu,
        input_bounds=(0.0, system.inputs.bias),
        slack=(1e-7, 1.0),
        slack_weight=plan.slack[0] if slack_weight is None else slack_weight,
        scales=SCALES,
        name=f"hamr {plan.name}",
    )
    b = problem.builder()
    b.equal_steps()
    base = base_coordinates()
    b.bound("v0", 0, 0.0, 0.0)
    b.bound("q", 0, 0.0, 0.0, labels=[base[n] for n in ("x", "y", "yaw")])
    turns = [base[name] for name in ("yaw", "pitch", "roll")]
    b.bound("q", slice(None), -TILT, TILT, labels=turns)
    q, h = b["q"].indices, b["h"].indices
    # At rest for an interval with the actuators in the middle, so that the first
    # knot is the equilibrium of standing and no energy is stored yet.
    middle = system.inputs.bias / 2
    b.bound("u", 0, middle, middle)
    rest = b.add_rows("at_rest", 1, system.coordinates, lower=0.0, upper=0.0)
    b.difference(q[1:2], q[:1], rest.indices)
    rise = plan.rise / unit.length
    b.cost(
        "goal",
        {"a": q[:1, 2:3], "b": q[-1:, 2:3]},
        lambda a, b: plan.goal * (b - a - rise) ** 2,
    )
    swings = [tip for i, tip in enumerate(system.inputs.tips) if i % 2 == 0]
    b.cost(
        "level",
        {"q": q[1:, 3:6], "h": h},
        lambda q, h: plan.level * h * ca.sumsqr(q),
    )
    b.cost(
        "swing",
        {"q": q[1:, swings], "h": h},
        lambda q, h: plan.swing * h * ca.sumsqr(q) / 100,
    )
    cost_input_steps(b, plan.effort, system.inputs.per_volt)
    cost_velocity_steps(b, plan.smooth)
    cost_friction_power(b, plan.slip)
    cost_loop_forces(b, plan.loops)
    return problem, b.build()
