"""Gaits and jumps of HAMR-VI as contact-implicit programs (RSS 2018, eqs. (14)-(17)).

The cost of a gait is, with dV the change of an input's force from one interval to
the next and v the difference quotients of q,

    w_goal (x_N - stride)^2 + w_pose/2 |q_N - q_g|^2    at the end of the cycle
    + w_effort/2 sum |dV|^2 + w_smooth sum |v_k+1 - v_k|^2
    + w_friction sum h psi'mu gam                       power lost in friction
    + w_loops sum |lam|^2 + w_slack sum s

The terms of friction and of loops' forces are ours, and the authors' of normal forces,
|gam_k+1 - gam_k|^2, is left out; all others are theirs. Without that of friction the
cheapest gaits shuffle: feet slide forward under little load. A plan can time that to
the millisecond, but no execution repeats it (docs/evidence/hamr.md). Nothing feeds back
the body's pose, so a gait must also be an orbit that holds by itself. Calm bodies hold
better. A problem can request them by bounds of the tilt, by the cost w_rates int
|rpy'|^2 dt, and by a `clearance` of the feet above the ground in the middle of their
swings.

In a jump the robot stands still for an interval, stores energy in its flexures by
crouching, and leaves the ground. The last knot is the apex, where the centre of mass
stops rising and the robot does not spin: p+ of the last interval is 0 along z and about
yaw. The terms at the end of the cycle are replaced by

    w_goal (z_N - z_1 - rise)^2 + w_level int |rpy|^2 dt + w_swing int |q_s|^2 dt

with q_s the swing actuators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

import casadi as ca
import numpy as np

from drakebots.core.checks import (
    between,
    check_knots,
    each,
    flag,
    non_negative,
    one_of,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.lazy import late
from drakebots.results import Result
from drakebots.robots.hamr.gaits import gait_names, make_waveform
from drakebots.robots.hamr.model import ACTUATORS, BIAS, DriveLaw, OnSurface
from drakebots.robots.hamr.reference import reference_robot
from drakebots.trajopt import PlanProgram
from drakebots.trajopt.contact_implicit import (
    INTEGRATORS,
    ContactImplicit,
    ContactImplicitBuilder,
    ContactSystem,
    Scales,
    Slack,
    cost_friction_power,
    cost_input_steps,
    cost_loop_forces,
    cost_rates,
    cost_velocity_steps,
)
from drakebots.trajopt.program import Block, Program

SCALES = Scales(
    force=0.01, loop_force=0.1, input=100.0, speed=0.1, slack=1e-3, momentum=0.01
)
"""Typical sizes in mm, g, ms (N, V): a foot carries 4 mN, strides 0.1 mm/ms."""

SLACK = (1e-7, 1.0)
"""Bounds of the complementarity slack [mm N]."""

TILT = 0.15
"""Bound of roll, pitch and yaw [rad], so that gaits walk straight ahead."""

SWING = 0.1
"""Share of a cycle, about a foot's highest knot, in which `clearance` is kept."""


_POSITIVE = each(positive(), "weights", least=1)

_plans = late("drakebots.robots.hamr.plan.plan")


# --- problems ---------------------------------------------------------------


@checked("weights")
class _Weights:
    """Weights of a cost, for mm, g, ms, N."""

    goal: Annotated[float, non_negative()] = 10.0
    """Weight of the goal's squared error: of the stride, or the rise."""
    effort: Annotated[float, non_negative()] = 1.0
    """Weight of the changes of the inputs' forces."""
    smooth: Annotated[float, non_negative()] = 20.0
    """Weight of the changes of the velocities."""
    friction: Annotated[float, non_negative()] = 20.0
    """Weight of the power lost in friction."""
    loops: Annotated[float, non_negative()] = 1e-3
    """Weight of the loop forces."""
    slack: Annotated[tuple[float, ...], _POSITIVE] = (50.0, 500.0, 5e3, 5e4)
    """Weights of the complementarity slack (exact penalties), used in turn. Each after
    the first starts from the answer before; those after the second are used only while
    the slack is not at its bound."""


@checked("weights")
class GaitWeights(_Weights):
    """Weights of a gait's cost, for mm, g, ms, N."""

    pose: Annotated[float, non_negative()] = 1.0
    """Weight of the squared distance of the last pose from the warm start's."""
    rates: Annotated[float, non_negative()] = 0.0
    """Weight of the squared rates of roll, pitch and yaw, in time."""
    near: Annotated[float, non_negative()] = 0.0
    """Weight of the squared distance of all poses from those at which the search
    starts, x and y left out: near a gait that holds, gaits hold."""


@checked("weights")
class JumpWeights(_Weights):
    """Weights of a jump's cost, for mm, g, ms, N."""

    smooth: Annotated[float, non_negative()] = 0.5
    level: Annotated[float, non_negative()] = 0.3
    """Weight of the chassis' roll, pitch and yaw."""
    swing: Annotated[float, non_negative()] = 1.0
    """Weight of the deflections of the swing actuators."""


@checked(kw_only=True)
class _PlanProblem(OnSurface):
    """Common fields of gaits and jumps to be planned."""

    knots: Annotated[int, whole(5)] = 51
    """Number of knots; the last knot of a gait repeats the first."""
    integrator: Annotated[str, one_of("integrator", INTEGRATORS)] = "shake"
    """Rule of integration: "shake" closes the loops at knots, "midpoint" between
    them."""
    tilt: Annotated[float, between(0, np.pi / 2, "rad", open_ends=True)] = TILT
    """Bound of the chassis' roll, pitch and yaw."""
    symmetric: Annotated[bool, flag()] = False
    """Whether the right legs are driven as the mirror image of the left legs (a jump; a
    laterally symmetric gait: bound, pronk)."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time, warm start included."""

    def __post_init__(self):
        super().__post_init__()
        check_knots(self.knots)

    def mathematical_program(
        self, *, start: Result | None = None, slack_weight: float | None = None
    ) -> PlanProgram[Result]:
        """Its program with one weight of the slack; see
        :func:`.plan.mathematical_program`."""
        how = {"start": start, "slack_weight": slack_weight}
        return _plans.mathematical_program(self, **how)


@checked("start")
class WarmStart:
    """The gait from which the search for a plan starts."""

    phases: Mapping[str, float] | None = None
    """Shares of the cycle at which legs lift, by leg (FL, RL, FR, RR), instead of the
    open-loop gait's."""
    voltage: Annotated[float | None, between(0, BIAS / 2, "V")] = None
    """Voltage amplitude instead of the open-loop gait's."""
    seed: Annotated[int, whole()] = 0
    """Seed of a random perturbation, 0 for none."""
    run: str | Path | Result | None = None
    """An executed or simulated gait of the same frequency, a result or its file, whose
    settled cycle is taken instead of an open-loop gait."""


@checked(kw_only=True)
class GaitProblem(_PlanProblem):
    """A gait to be planned."""

    gait: Annotated[str, one_of("gait", gait_names())] = "trot"
    """Name of the open-loop gait that starts the search."""
    frequency: Annotated[float, positive("Hz")] = 10.0
    """Stride frequency."""
    stride: Annotated[float, between(0, 0.05, "m", open_ends=True)] = 10e-3
    """Desired forward distance per cycle."""
    clearance: Annotated[float, between(0, 0.01, "m")] = 0.0
    """Least height of every foot above the ground in the middle of its swing: for a
    tenth of the cycle about the knot at which the foot is highest in what the search
    starts from. 0 asks for none."""
    free_period: Annotated[float, between(0, 0.5)] = 0.0
    """Fraction by which the period may change, 0 for a fixed period."""
    weights: GaitWeights = GaitWeights()
    """Weights of the cost."""
    start: WarmStart = WarmStart()
    """Where the search starts, instead of the open-loop gait of that name."""

    def __post_init__(self):
        if not make_waveform(self.gait).periodic:
            raise InvalidInput(
                f"{self.gait} is not periodic; plan a JumpProblem (--jump) instead"
            )
        make_waveform(self.gait, phases=self.start.phases)
        super().__post_init__()

    @property
    def name(self) -> str:
        """A name for reports."""
        on = self.surface
        ground = on if isinstance(on, str) else f"mu {on:g}"
        return f"{self.gait} {self.frequency:g} Hz {ground}"


@checked(kw_only=True)
class JumpProblem(_PlanProblem):
    """A jump to be planned."""

    rise: Annotated[float, between(0, 1, "m", open_ends=True)] = 12e-3
    """Desired rise of the chassis from standing to the apex."""
    knots: Annotated[int, whole(5)] = 61
    duration: Annotated[float, between(0, 1, "s", open_ends=True)] = 0.14
    """First guess of the time from standing to the apex; the plan may take 0.5 to
    1.5 times as long."""
    weights: JumpWeights = JumpWeights()
    """Weights of the cost."""

    @property
    def name(self) -> str:
        """A name for reports."""
        return f"jump {1e3 * self.rise:g} mm"


# --- the robot --------------------------------------------------------------


class PiezoInputs(DriveLaw):
    """The actuators' law as a generalized force, exactly affine in voltage."""

    def __call__(self, twin, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        force = ca.SX(self.offset) - ca.SX(self.per_volt) * u
        force -= ca.SX(self.slope) * q[self.tips.tolist()]
        return ca.SX(twin.actuation_matrix()) @ force


@cache
def hamr_system() -> ContactSystem:
    """HAMR-VI on flat ground, driven by voltages; mm, g, ms."""
    robot = reference_robot()
    inputs = PiezoInputs(robot.plant, robot.scaling)
    return ContactSystem(robot, inputs=inputs, input_names=ACTUATORS)


def _base_coordinates() -> dict[str, str]:
    """Names of the base's coordinates: x, y, z, yaw, pitch, roll."""
    names = hamr_system().coordinates[:6]
    return dict(zip(("x", "y", "z", "yaw", "pitch", "roll"), names))


# --- programs ---------------------------------------------------------------


def swings(q: np.ndarray) -> np.ndarray:
    """Mask of the feet in the middle of their swing at an interval's end (N-1, 4).

    A foot is so for a share :data:`SWING` of the cycle, about the knot at which it is
    highest.

    Args:
        q: positions of one cycle (N, 38), in plant units; the last repeats the first.
    """
    height = hamr_system().foot_positions(q[1:])[..., 2]
    count, half = len(height), int(SWING * len(height) / 2)
    away = np.arange(count)[:, None] - height.argmax(axis=0)
    return np.minimum(away % count, -away % count) <= half


def gait_program(
    problem: GaitProblem,
    pose: np.ndarray,
    *,
    path: np.ndarray | None = None,
    swinging: np.ndarray | None = None,
    slack_weight: float | None = None,
) -> tuple[ContactImplicit, Program]:
    """The program of a gait.

    Args:
        problem: the gait.
        pose: q_g (38,), in plant units; its x and y are ignored.
        path: poses (N, 38) that the weight `near` is about, in plant units.
        swinging: mask of feet in the middle of their swings (N-1, 4), see
            :func:`swings`; None for no foot, without a clearance.
        slack_weight: weight of the slack; None for the first of the problem's.
    """
    weights, base = problem.weights, _base_coordinates()
    system = hamr_system()
    period = 1 / problem.frequency / system.robot.scaling.time
    step, free = period / (problem.knots - 1), problem.free_period
    steps = step * (1 - free), step * (1 + free)
    contact = _mechanics(problem, steps, slack_weight, periodic=(base["x"],))
    b = contact.builder()
    if free:
        b.equal_steps()
    b.bound("q", 0, 0.0, 0.0, labels=[base["x"], base["y"]])
    _bound_tilt(b, base, problem.tilt)
    if swinging is not None:
        height = problem.clearance / system.robot.scaling.length
        b.raise_feet(np.where(swinging, height, 0.0))
    if problem.symmetric:
        _mirror_inputs(b, b["u"].indices)
    q = b["q"].indices
    stride = problem.stride / system.robot.scaling.length
    b.cost("goal", {"x": q[-1:, :1]}, lambda x: weights.goal * (x - stride) ** 2)
    _cost_distance(b, "pose", weights.pose, q[-1:, 2:], np.asarray(pose)[None, 2:])
    if weights.near and path is not None:
        _cost_distance(b, "near", weights.near, q[1:, 2:], np.asarray(path)[1:, 2:])
    if weights.rates:
        turns = [system.coordinates.index(base[n]) for n in ("yaw", "pitch", "roll")]
        cost_rates(b, weights.rates, turns)
    _shared_costs(b, weights)
    return contact, b.build()


def _mechanics(
    problem: GaitProblem | JumpProblem,
    steps: tuple[float, float],
    slack_weight: float | None,
    **end: Sequence[str],
) -> ContactImplicit:
    """The mechanics of a motion between bounds of time steps, and how it ends."""
    return ContactImplicit(
        hamr_system(),
        problem.knots,
        steps,
        problem.mu,
        input_bounds=(0.0, BIAS),
        integrator=problem.integrator,
        loops_at_start=False,
        slack=Slack(*SLACK, slack_weight or problem.weights.slack[0]),
        scales=SCALES,
        name=f"hamr {problem.name}",
        **end,
    )


def _cost_distance(
    b: ContactImplicitBuilder, name: str, weight: float, q: np.ndarray, to: np.ndarray
) -> None:
    """Costs of squared distances of poses, by indices (n, m), from others (n, m)."""
    poses, there = ca.SX.sym("q", q.shape[1]), ca.SX.sym("d", q.shape[1])
    distance = 0.5 * weight * ca.sumsqr(poses - there)
    block = Block(name, {"q": poses}, {name: distance}, there)
    b.add_cost(block, {"q": q}, data=to)


def jump_program(
    problem: JumpProblem, *, slack_weight: float | None = None
) -> tuple[ContactImplicit, Program]:
    """The program of a jump; `slack_weight` as in :func:`gait_program`."""
    weights, base = problem.weights, _base_coordinates()
    system = hamr_system()
    unit = system.robot.scaling
    step = problem.duration / (problem.knots - 1) / unit.time
    # Loops are not closed at the start: the first two knots are alike.
    rest, steps = (base["z"], base["yaw"]), (0.5 * step, 1.5 * step)
    contact = _mechanics(problem, steps, slack_weight, end_rest=rest)
    b = contact.builder()
    b.equal_steps()
    b.bound("v0", 0, 0.0, 0.0)
    b.bound("q", 0, 0.0, 0.0, labels=[base[n] for n in ("x", "y", "yaw")])
    _bound_tilt(b, base, problem.tilt)
    if problem.symmetric:
        _mirror_inputs(b, b["u"].indices[1:])  # the first are given
    q, h = b["q"].indices, b["h"].indices
    # At rest for an interval with the actuators in the middle, so that the first
    # knot is the equilibrium of standing and no energy is stored yet.
    b.bound("u", 0, BIAS / 2, BIAS / 2)
    b.difference(q[1:2], q[:1], b.equalities("at_rest", 1, system.coordinates))
    rise, height = problem.rise / unit.length, {"a": q[:1, 2:3], "b": q[-1:, 2:3]}
    b.cost("goal", height, lambda a, b: weights.goal * (b - a - rise) ** 2)
    turned = {"q": q[1:, 3:6], "h": h}
    b.cost("level", turned, lambda q, h: weights.level * h * ca.sumsqr(q))
    swung = {"q": q[1:, system.inputs.tips[::2]], "h": h}
    b.cost("swing", swung, lambda q, h: weights.swing * h * ca.sumsqr(q) / 100)
    _shared_costs(b, weights)
    return contact, b.build()


def _bound_tilt(b: ContactImplicitBuilder, base: dict[str, str], tilt: float) -> None:
    turns = [base[name] for name in ("yaw", "pitch", "roll")]
    b.bound("q", slice(None), -tilt, tilt, labels=turns)


def _shared_costs(b: ContactImplicitBuilder, weights: GaitWeights | JumpWeights):
    cost_input_steps(b, weights.effort, b.system.inputs.per_volt)
    cost_velocity_steps(b, weights.smooth)
    cost_friction_power(b, weights.friction)
    cost_loop_forces(b, weights.loops)


def _mirror_inputs(b: ContactImplicitBuilder, u: np.ndarray) -> None:
    """V_left + V_right = V_b: mirrored actuators are mounted alike, so that the
    mirror image of a motion needs the opposite force."""
    sides = {"left": u[:, :4], "right": u[:, 4:]}
    bias = {"lower": BIAS, "upper": BIAS, "scale": 100.0}
    b.constraint("symmetric", sides, lambda left, right: left + right, **bias)
