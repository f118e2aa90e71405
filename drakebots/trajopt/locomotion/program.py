"""A locomotion problem as a contact-implicit program.

In the units of :mod:`drakebots.trajopt.locomotion.standing` (length l, force m g, time
sqrt(l/g)), with v the difference quotients and q_j the joints' positions, the
cost is

    w_effort/2 sum h |u|^2  +  w_smooth sum |v_k+1 - v_k|^2
    + w_pose/2 sum h |q_j - q_stand|^2                 (and the base's tilt)
    + w_friction sum h mu gam psi                      power lost in slip
    + w_slack sum s                                    exact penalty

Without the friction term the cheapest gaits shuffle (docs/hamr.md).
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from drakebots.core.errors import UnknownName
from drakebots.trajopt.contact_implicit import (
    ContactImplicit,
    ContactImplicitBuilder,
    Scales,
    cost_friction_power,
    cost_velocity_steps,
)
from drakebots.trajopt.locomotion.footfall import footfalls
from drakebots.trajopt.locomotion.problem import (
    SWING,
    LocomotionProblem,
    Targets,
    targets,
)
from drakebots.trajopt.locomotion.standing import Standing, lowered
from drakebots.trajopt.program import Program
from drakebots.trajopt.terrain import Flat

SLACK = (1e-7, 1.0)
"""Bounds of the complementarity slack, m g l."""

TILT = np.pi / 3
"""Bound of roll and pitch [rad]: away from the singularity of Euler angles."""

STRAIGHT = 0.3
"""Bound of yaw in a walk [rad]."""

END = 0.1
"""Bound of the difference between the last pose and standing [l, rad]."""

FASTEST = 10.0
"""Bound of the slip speeds psi, and half the bound of eta [sqrt(g l)]. Without it a
solver that relaxes gam >= 0 by 1e-9 exploits the friction term: psi of a foot in the
air costs nothing, and grows to 1e9."""


def input_limits(problem: LocomotionProblem, standing: Standing) -> np.ndarray:
    """Largest magnitude of every input (nu,), plant units.

    Raises:
        UnknownName: for the limit of an unknown actuator.
    """
    names, units = standing.system.inputs_labels, input_units(standing)
    limits = np.array([a.effort_limit() for a in actuators_of(standing)])
    if isinstance(problem.torque, Mapping):
        for name, value in problem.torque.items():
            if name not in names:
                raise UnknownName("actuator", name, names)
            limits[names.index(name)] = value / units[names.index(name)]
    elif problem.torque is not None:
        limits = problem.torque / units
    return limits


def input_units(standing: Standing) -> np.ndarray:
    """SI value of one unit of every input (nu,) [N m, or N for prismatic joints]."""
    unit, joints = standing.scaling, [a.joint() for a in actuators_of(standing)]
    slides = [joint.type_name() == "prismatic" for joint in joints]
    return np.where(slides, unit.force, unit.torque)


def actuators_of(standing: Standing) -> list:
    """The actuators of the standing plant, in the order of its inputs."""
    plant = standing.system.robot.plant
    return [plant.get_joint_actuator(i) for i in plant.GetJointActuatorIndices()]


def locomotion_program(
    problem: LocomotionProblem,
    standing: Standing,
    *,
    slack_weight: float | None = None,
    aim: Targets | None = None,
) -> tuple[ContactImplicit, Program]:
    """The contact-implicit problem of a locomotion problem, and its program.

    Both are in plant units.

    Args:
        problem: the motion.
        standing: the standing model, from :func:`.standing.stand`.
        slack_weight: weight of the exact penalty; None for the problem's first.
        aim: the targets; None for :func:`.problem.targets`.

    Raises:
        InvalidInput: for a base that cannot make the motion, or bounds that
            exclude each other, by name.
    """
    aim = targets(problem, standing) if aim is None else aim
    implicit = mechanics(problem, standing, aim, slack_weight=slack_weight)
    b = implicit.builder()
    b.bound("psi", slice(None), upper=FASTEST)
    b.bound("eta", slice(None), upper=2 * FASTEST)
    if problem.duration is None:
        b.equal_steps()
    add_aims(b, problem, standing, aim)
    for name, knots in lifts(problem, standing).items():
        _add_lift(b, name, b["q"].indices[knots], _lift_height(problem, standing, aim))
    add_costs(b, problem, standing)
    cost_friction_power(b, problem.weights.friction)
    return implicit, b.build()


def mechanics(
    problem: LocomotionProblem,
    standing: Standing,
    aim: Targets,
    *,
    slack_weight: float | None = None,
) -> ContactImplicit:
    """Knots, bounds and scales of a problem's programs, plant units."""
    weight = problem.weights.slack[0] if slack_weight is None else slack_weight
    limits = input_limits(problem, standing)
    finite = limits[np.isfinite(limits) & (limits > 0)]
    K = problem.knots - 1
    # On ground that is not level a cycle may end higher or lower too.
    free = ("x",) if isinstance(problem.terrain, Flat) else ("x", "z")
    advances = [standing.base[a] for a in free if a in standing.base and aim.forward]
    return ContactImplicit(
        standing.system,
        problem.knots,
        (aim.duration[0] / K, aim.duration[1] / K),
        problem.friction,
        integrator=problem.integrator,
        input_bounds=(-limits, limits),
        position_bounds=_position_bounds(problem, standing),
        periodic=advances if problem.repeats else None,
        # A given first pose closes them already. Around a cycle, midpoints determine
        # all knots if the number of intervals is odd.
        loops_at_start=problem.repeats and K % 2 == 0,
        slack=SLACK,
        slack_weight=weight,
        scales=Scales(
            force=0.5,
            input=float(min(finite.mean(), 1.0)) if len(finite) else 1.0,
            slack=0.1,
            momentum=0.1,
        ),
        name=f"{standing.system.robot.model.name} {problem.kind}",
    )


def _position_bounds(problem, standing: Standing) -> tuple[np.ndarray, np.ndarray]:
    plant = standing.system.robot.plant
    low, high = plant.GetPositionLowerLimits(), plant.GetPositionUpperLimits()
    bounds = {"roll": TILT, "pitch": TILT}
    if problem.kind == "walk":
        bounds["yaw"] = STRAIGHT
    for axis, size in bounds.items():
        if axis in standing.base:
            i = standing.index(axis)
            low[i], high[i] = max(low[i], -size), min(high[i], size)
    return low, high


def final_pose(problem: LocomotionProblem, standing: Standing) -> np.ndarray:
    """The standing pose at the end of the motion (nq,).

    Raises:
        InvalidInput: when the base cannot make this motion.
    """
    aim, q = targets(problem, standing), standing.q.copy()
    moves = {"x": aim.forward, "y": aim.sideways, "yaw": aim.turn}
    for axis, by in moves.items():
        if by:
            q[standing.index(axis)] += by
    return lowered(standing, q) if any(moves.values()) else q


def add_aims(b: ContactImplicitBuilder, problem, standing: Standing, aim: Targets):
    """Start, end and speed limits of the motion."""
    start, end = standing.q, final_pose(problem, standing)
    q = b["q"].indices
    moving = [standing.index(a) for a in ("x", "y", "yaw") if a in standing.base]
    labels = [b.system.coordinates[i] for i in moving]
    if problem.repeats:
        where = [
            i for i in moving if b.system.coordinates[i] != standing.base.get("yaw")
        ]
        names = [b.system.coordinates[i] for i in where]
        b.bound("q", 0, start[where], start[where], labels=names)
        if aim.forward:
            x = standing.index("x")
            b.bound("q", -1, end[x], end[x], labels=[standing.base["x"]])
        if (
            aim.forward
            and "z" in standing.base
            and not isinstance(problem.terrain, Flat)
        ):
            # The next cycle must start on the ground as this one did.
            z = standing.index("z")
            fall = end[z] - start[z]
            b.constraint(
                "descent",
                {"a": q[:1, [z]], "b": q[-1:, [z]]},
                lambda a, b: b - a,
                lower=fall,
                upper=fall,
                labels=[""],
            )
    else:
        b.bound("q", 0, start, start)
        b.bound("v0", 0, 0.0, 0.0)
        # The whole robot stands in the last interval, near its first pose.
        b.bound("q", -1, end - END, end + END)
        b.bound("q", -1, end[moving], end[moving], labels=labels)
        rest = b.add_rows("rest", 1, b.system.coordinates, lower=0.0, upper=0.0)
        b.difference(q[-1:], q[-2:-1], rest.indices)
    fast = np.flatnonzero(np.isfinite(standing.speeds))
    if len(fast):
        b.constraint(
            "speed",
            {"h": b["h"].indices, "a": q[:-1, fast], "b": q[1:, fast]},
            lambda h, a, b: (b - a) / h,
            lower=-standing.speeds[fast],
            upper=standing.speeds[fast],
            labels=[b.system.coordinates[i] for i in fast],
        )


def _add_lift(b: ContactImplicitBuilder, name: str, q: np.ndarray, height: float):
    """Keeps a foot above the ground at the knots whose positions are given."""
    names = [foot.name for foot in b.system.robot.model.feet]
    at = names.index(name)
    b.constraint(
        f"lift_{name}",
        {"q": q},
        lambda q: b.system.contact_motion(q, ca.SX.zeros(b.system.nq))[0][at],
        lower=height,
        labels=[""],
    )


def lifts(problem: LocomotionProblem, standing: Standing) -> dict[str, list[int]]:
    """The knots at which each foot must be :func:`_lift_height` above the ground."""
    names = [foot.name for foot in standing.system.robot.model.feet]
    K = problem.knots - 1
    if problem.kind == "hop":
        standing.index("z")
        return {name: [problem.knots // 2] for name in names}
    if problem.height is None and (problem.kind != "walk" or not problem.clearance):
        return {}
    middles = {n: p + SWING / 2 for n, p in footfalls(problem, standing).items()}
    return {n: [round(middle % 1.0 * K)] for n, middle in middles.items()}


def _lift_height(problem, standing: Standing, aim: Targets) -> float:
    """The height of lifted feet, plant units: a walk's clearance has no default."""
    if problem.kind != "walk" or problem.height is not None:
        return aim.height
    return problem.clearance / standing.scaling.length


def add_costs(b: ContactImplicitBuilder, problem, standing: Standing) -> None:
    """Effort, deviation from the standing pose, and velocity changes."""
    w = problem.weights
    q, h = b["q"].indices, b["h"].indices
    kept = list(standing.joints)
    kept += [standing.index(a) for a in ("roll", "pitch") if a in standing.base]
    target = standing.q[kept]
    b.cost(
        "effort",
        {"h": h, "u": b["u"].indices},
        lambda h, u: w.effort / 2 * h * ca.sumsqr(u),
    )
    b.cost(
        "pose",
        {"h": h, "q": q[1:, kept]},
        lambda h, q: w.pose / 2 * h * ca.sumsqr(q - target),
    )
    cost_velocity_steps(b, w.smooth)


def first_guess(
    problem: LocomotionProblem, standing: Standing, program: Program
) -> np.ndarray:
    """Standing, moved evenly to the goal; a hop rises in between.

    The feet share the weight; the slack is at its upper bound.
    """
    aim, end = targets(problem, standing), final_pose(problem, standing)
    share = np.linspace(0, 1, problem.knots)[:, None]
    q = standing.q + share * (end - standing.q)
    if problem.kind == "hop":
        q[:, standing.index("z")] += 4 * aim.height * (share * (1 - share))[:, 0]
    h = aim.nominal / (problem.knots - 1)
    parts = {
        "h": h,
        "q": q,
        "v0": (q[1] - q[0]) / h if problem.repeats else 0.0,
        "gam": loads(problem, standing),
        "s": SLACK[1],
    }
    return program.pack(parts)


def loads(problem: LocomotionProblem, standing: Standing) -> np.ndarray:
    """Share of the weight on every foot in the first guess (N-1, num_feet)."""
    names = [foot.name for foot in standing.system.robot.model.feet]
    down = np.ones((problem.knots - 1, len(names)))
    time = (np.arange(problem.knots - 1) + 0.5) / (problem.knots - 1)
    for name, phase in footfalls(problem, standing).items():
        down[(time - phase) % 1.0 < SWING, names.index(name)] = 0.0
    return down / np.maximum(down.sum(axis=1, keepdims=True), 1.0)
