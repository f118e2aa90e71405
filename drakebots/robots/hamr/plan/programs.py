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
import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.robots.hamr.gaits import make_waveform
from drakebots.robots.hamr.plan.system import (
    SCALES,
    GroundedPlan,
    base_coordinates,
    hamr_system,
)
from drakebots.trajopt.contact_implicit import (
    ContactImplicit,
    ContactImplicitBuilder,
    cost_friction_power,
    cost_input_steps,
    cost_loop_forces,
    cost_velocity_steps,
)
from drakebots.trajopt.program import Program

# HAMR-VI's gait as a contact-implicit program (RSS 2018, eqs. (14)-(16)).
#
# The cost is, with dV the change of an input's force from one interval to the
# next and v the difference quotients,
#
#     w_goal (x_N - stride)^2 + 1/2 |q_N - q_g|^2     where the cycle ends
#     + w_du/2 sum |dV|^2 + w_dv sum |v_k+1 - v_k|^2   smoothness
#     + w_slip sum h psi'mu gam                        power lost in friction
#     + w_lam sum |lam|^2 + s_weight sum s
#
# All but the friction term are the authors'. Without it the cheapest gaits
# shuffle: feet slide forward under little load, which a plan times to the
# millisecond and no execution repeats (docs/hamr.md).

TILT = 0.15
"""Bound of roll, pitch and yaw [rad]: a gait that walks straight ahead."""


@dataclass(frozen=True)
class GaitWeights:
    """Weights of the cost, for mm, g, ms, N.

    Attributes:
        goal: of the stride's error.
        pose: of the last pose's distance from the warm start's.
        effort: of the inputs' steps.
        smooth: of the velocities' steps.
        friction: of the power lost in slip.
        loops: of loop forces.
        slack: exact penalties: each after the first starts from the last
            answer; those after the second only while the slack is not at its bound.
    """

    goal: float = 10.0
    pose: float = 1.0
    effort: float = 1.0
    smooth: float = 20.0
    friction: float = 20.0
    loops: float = 1e-3
    slack: tuple[float, ...] = (50.0, 500.0, 5e3, 5e4)


@dataclass(frozen=True)
class GaitPlan(GroundedPlan):
    """A gait to be planned.

    Attributes:
        gait: whose open-loop waveform starts the search.
        frequency: of the stride [Hz].
        surface: a name from `params.yaml`, or use `friction`.
        friction: coefficient instead of the surface's.
        knots: of the cycle, the last repeating the first.
        stride: goal of a cycle [m].
        free_period: share by which the period may change, 0 for fixed.
        symmetric: whether the right legs are driven as the mirror image of
            the left ones (a laterally symmetric gait: bound, pronk).
        weights: of the cost.
        warm_voltage: amplitude of the warm start [V]; None for the gait's.
        seed: of a perturbation of the warm start; 0 for none.
    """

    gait: str = "trot"
    frequency: float = 10.0
    surface: str = "card"
    friction: float | None = None
    knots: int = 51
    stride: float = 10e-3
    free_period: float = 0.0
    symmetric: bool = False
    weights: GaitWeights = GaitWeights()
    warm_voltage: float | None = None
    seed: int = 0

    def __post_init__(self):
        if not make_waveform(self.gait).periodic:
            raise InvalidInput(f"{self.gait} is not periodic; plan it with --jump")
        make_waveform(self.gait, self.frequency)
        self.check_ground_and_knots()
        if not 0 < self.stride < 0.05:
            raise InvalidInput(f"stride must be within 0..0.05 m, got {self.stride}")
        if not 0 <= self.free_period < 0.5:
            raise InvalidInput(
                f"free_period must be within 0..0.5, got {self.free_period}"
            )

    @property
    def name(self) -> str:
        """For reports."""
        ground = self.surface if self.friction is None else f"mu {self.friction:g}"
        return f"{self.gait} {self.frequency:g} Hz {ground}"


def gait_problem(plan: GaitPlan, *, slack_weight: float) -> ContactImplicit:
    """The contact-implicit part of a gait's program."""
    system = hamr_system()
    period = 1 / plan.frequency / system.robot.scaling.time
    step, free = period / (plan.knots - 1), plan.free_period
    return ContactImplicit(
        system,
        plan.knots,
        (step * (1 - free), step * (1 + free)),
        plan.mu,
        input_bounds=(0.0, system.inputs.bias),
        periodic=(base_coordinates()["x"],),
        loops_at_start=False,
        slack=(1e-7, 1.0),
        slack_weight=slack_weight,
        scales=SCALES,
        name=f"hamr {plan.name}",
    )


def gait_program(
    plan: GaitPlan, pose: np.ndarray, *, slack_weight: float | None = None
) -> tuple[ContactImplicit, Program]:
    """A gait's program.

    Args:
        plan: the gait.
        pose: q_g (38,), plant units; its x and y are of no interest.
        slack_weight: of the exact penalty; None for the first of the plan's.
    """
    weights = plan.weights
    weight = weights.slack[0] if slack_weight is None else slack_weight
    problem = gait_problem(plan, slack_weight=weight)
    b = problem.builder()
    base = base_coordinates()
    if plan.free_period:
        b.equal_steps()
    b.bound("q", 0, 0.0, 0.0, labels=[base["x"], base["y"]])
    turns = [base[name] for name in ("yaw", "pitch", "roll")]
    b.bound("q", slice(None), -TILT, TILT, labels=turns)
    if plan.symmetric:
        _mirror_inputs(b)
    _add_costs(b, plan, weights, pose)
    return problem, b.build()


def _add_costs(b: ContactImplicitBuilder, plan, weights: GaitWeights, pose) -> None:
    q = b["q"].indices
    stride = plan.stride / b.system.robot.scaling.length
    b.cost("goal", {"x": q[-1:, :1]}, lambda x: weights.goal * (x - stride) ** 2)
    target = ca.SX(np.asarray(pose)[2:])
    b.cost(
        "pose",
        {"q": q[-1:, 2:]},
        lambda q: 0.5 * weights.pose * ca.sumsqr(q - target),
    )
    cost_input_steps(b, weights.effort, b.system.inputs.per_volt)
    cost_velocity_steps(b, weights.smooth)
    cost_friction_power(b, weights.friction)
    cost_loop_forces(b, weights.loops)


def _mirror_inputs(b: ContactImplicitBuilder) -> None:
    """V_left + V_right = V_b: mirrored actuators are mounted alike, so that the
    mirror image of a motion takes the opposite force."""
    u, bias = b["u"].indices, b.system.inputs.bias
    b.constraint(
        "symmetric",
        {"left": u[:, :4], "right": u[:, 4:]},
        lambda left, right: left + right,
        lower=bias,
        upper=bias,
        scale=100.0,
    )


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
