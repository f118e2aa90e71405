"""A locomotion problem as a contact-implicit program.

In the units of :mod:`drakebots.trajopt.locomotion.standing` (length l, force m g, time
sqrt(l/g)), with v the difference quotients and q_j the joints' positions, the
cost is

    w_effort/2 sum h |u|^2  +  w_smooth sum |v_k+1 - v_k|^2
    + w_pose/2 sum h |q_j - q_stand|^2                 (and the base's tilt)
    + w_friction sum h mu gam psi                      power lost in slip
    + w_slack sum s                                    exact penalty

Without the friction term the cheapest gaits shuffle (docs/evidence/hamr.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from types import MappingProxyType

import casadi as ca
import numpy as np

from drakebots.core.errors import InvalidInput, check_names
from drakebots.model import effort_limits, position_limits
from drakebots.multibody import Flat
from drakebots.trajopt.contact_implicit import (
    ContactImplicit,
    ContactImplicitBuilder,
    Scales,
    ScheduledBuilder,
    Slack,
    cost_friction_power,
    cost_velocity_steps,
)
from drakebots.trajopt.locomotion.problem import (
    SWING,
    LocomotionProblem,
    Targets,
    WayPoint,
)
from drakebots.trajopt.locomotion.standing import Standing
from drakebots.trajopt.program import Program

SLACK = (1e-7, 1.0)
"""Bounds of the complementarity slack, m g l."""

TILT = np.pi / 3
"""Bound of the change of roll, and of pitch, away from its singularity [rad]."""

STRAIGHT = 0.3
"""Bound of the change of yaw in a walk [rad]."""

END = 0.1
"""Bound of the difference between the last pose and standing [l, rad]."""

FROUDE = 1.0
"""Largest v^2/(g l): nothing walks faster, since its weight no longer holds it down."""

FASTEST = 10.0
"""Bound of the slip speeds psi, and half the bound of eta [sqrt(g l)]. Without it a
solver that relaxes gam >= 0 by 1e-9 exploits the friction term: psi of a foot in the
air costs nothing, and grows to 1e9."""


def input_limits(problem: LocomotionProblem, standing: Standing) -> np.ndarray:
    """Largest magnitude of every input (nu,), plant units.

    Raises:
        UnknownName: for the limit of an unknown actuator.
    """
    robot = standing.system.robot
    names, units = standing.system.inputs_labels, robot.input_units()
    limits = effort_limits(robot.plant)
    if isinstance(problem.torque, Mapping):
        for name, value in problem.torque.items():
            check_names("actuator", [name], names)
            limits[names.index(name)] = value / units[names.index(name)]
    elif problem.torque is not None:
        limits = problem.torque / units
    return limits


def locomotion_program(
    aim: Targets,
    *,
    slack_weight: float | None = None,
    lifts: Mapping[str, tuple[int, float]] = MappingProxyType({}),
) -> tuple[ContactImplicit, Program]:
    """The contact-implicit problem of a motion, and its program.

    Both are in plant units.

    Args:
        aim: the motion, from :func:`.problem.targets`.
        slack_weight: weight of the exact penalty; None for the problem's first.
        lifts: knots and heights of feet, by name, beside those of the motion.

    Raises:
        InvalidInput: for bounds that exclude each other, by name.
    """
    problem, standing = aim.problem, aim.standing
    implicit = mechanics(aim, slack_weight=slack_weight)
    b = implicit.builder()
    # To interpret derivatives takes seconds; to compile them first, half a minute.
    b.compiles = False
    b.bound("psi", slice(None), upper=FASTEST)
    b.bound("eta", slice(None), upper=2 * FASTEST)
    add_aims(b, aim)
    asked = aim.motion.lifts(standing, problem.knots)
    for name, (knot, height) in {**lifts, **asked}.items():
        _add_lift(b, standing.feet.index(name), knot, height)
    add_costs(b, aim)
    cost_friction_power(b, problem.weights.friction)
    return implicit, b.build()


def mechanics(aim: Targets, *, slack_weight: float | None = None) -> ContactImplicit:
    """Knots, bounds and scales of a motion's programs, plant units."""
    problem, standing = aim.problem, aim.standing
    weight = problem.weights.slack[0] if slack_weight is None else slack_weight
    limits = input_limits(problem, standing)
    finite = limits[np.isfinite(limits) & (limits > 0)]
    size = float(min(finite.mean(), 1.0)) if len(finite) else 1.0
    repeats = aim.motion.repeats
    steps = [np.divide(part.duration, part.intervals) for _, part in aim.parts]
    # On ground that is not level a cycle may end higher or lower too.
    free = ("x",) if isinstance(problem.terrain, Flat) else ("x", "z")
    advances = [standing.base[a] for a in free if a in standing.base and aim.forward]
    return ContactImplicit(
        standing.system,
        problem.knots,
        (min(low for low, _ in steps), max(high for _, high in steps)),
        problem.friction,
        integrator=problem.integrator,
        input_bounds=(-limits, limits),
        position_bounds=_position_bounds(aim),
        periodic=advances if repeats else None,
        # A given first pose closes them already, and so does the last one of a cycle,
        # or midpoints if the number of intervals is odd.
        loops_at_start=(
            repeats and problem.integrator == "midpoint" and aim.intervals % 2 == 0
        ),
        slack=Slack(*SLACK, weight),
        scales=Scales(force=0.5, input=size, slack=0.1, momentum=0.1),
        name=f"{standing.system.robot.model.name} {aim.motion.name}",
    )


def _position_bounds(aim: Targets) -> tuple[np.ndarray, np.ndarray]:
    standing = aim.standing
    low, high = position_limits(standing.system.robot.plant)
    sizes = {"roll": TILT, "pitch": TILT}
    if aim.motion.steady:
        sizes["yaw"] = STRAIGHT
    for axis, i in standing.indices(*sizes).items():
        # Files may turn a base about x or z, so that level is not zero.
        middle = 0.0 if axis == "pitch" else aim.start[i]
        low[i] = max(low[i], middle - sizes[axis])
        high[i] = min(high[i], middle + sizes[axis])
    return low, high


def add_aims(b: ContactImplicitBuilder, aim: Targets) -> None:
    """Start, end, time steps and speed limits of the motion, of every one in a row."""
    standing, start, q = aim.standing, aim.start, b["q"].indices
    b.equal_steps([at for at, p in aim.parts if p.duration[0] < p.duration[1]])
    moving = list(standing.indices("x", "y", "yaw").values())
    labels = [b.system.coordinates[i] for i in moving]
    if aim.motion.repeats:
        _add_advance(b, aim)
    else:
        b.bound("q", 0, start, start)
        b.bound("v0", 0, 0.0, 0.0)
        for at, part in aim.parts:
            low, high = np.divide(part.duration, part.intervals)
            b.bound("h", at, low, high)
            b.bound("q", at.stop, part.end[moving], part.end[moving], labels=labels)
            # In an interval at rest the whole robot stands, near its first pose.
            if at.stop - 1 in aim.rests:
                b.bound("q", at.stop, part.end - END, part.end + END)
        k = np.array(aim.rests)
        rest = b.equalities("rest", len(k), b.system.coordinates)
        b.difference(q[k + 1], q[k], rest)
    numbers = count(1)
    for at, part in aim.parts:
        for point in part.motion.waypoints:
            _add_way_point(b, part, at.start, point, next(numbers))
    fast = np.flatnonzero(np.isfinite(standing.speeds))
    if len(fast):
        most, at = standing.speeds[fast], {"h": b["h"].indices}
        at |= {"a": q[:-1, fast], "b": q[1:, fast]}
        bounds = {"lower": -most, "upper": most}
        labels = [b.system.coordinates[i] for i in fast]
        b.constraint("speed", at, lambda h, a, b: (b - a) / h, labels=labels, **bounds)


def _add_way_point(
    b: ContactImplicitBuilder, aim: Targets, first: int, point: WayPoint, number: int
) -> None:
    """Rows that let the base or a foot pass a way point of a motion.

    Args:
        b: the program.
        aim: the motion, which begins at the knot `first`.
        first, point, number: knot, way point, and its number in the row of motions.

    Raises:
        UnknownName: for one that is neither base nor foot.
        InvalidInput: for one that cannot be passed, whatever the solver does.
    """
    standing, K, unit = aim.standing, aim.intervals, aim.standing.scaling.length
    knot = first + min(max(round(aim.share_of(point) * K), 1), K - 1)
    yaw = [] if point.heading is None else [standing.index("yaw")]
    _check_way_point(b, aim, first, knot, point)
    if point.time is not None and aim.duration[0] < aim.duration[1]:
        # It stays the nearest knot whatever duration is found.
        after, k = point.time / standing.scaling.time, knot - first
        most = after / (k - 0.5) if k > 1 else None
        b.bound("h", slice(first, first + K), after / (k + 0.5), most)
    size = np.array([unit, unit, unit, 1.0])
    wanted = np.array([*point.p_W, point.heading], float) / size
    kept, play = np.flatnonzero(np.isfinite(wanted)).tolist(), point.tolerance / size
    b.constraint(
        f"way_point_{number}_{point.what}",
        {"q": b["q"].indices[[knot]]},
        lambda q: ca.vertcat(standing.point(q, point.what), q[yaw])[kept],
        lower=(wanted - play)[kept],
        upper=(wanted + play)[kept],
        labels=[("x", "y", "z", "yaw")[i] for i in kept],
    )


def _check_way_point(b, aim: Targets, first: int, knot: int, point: WayPoint) -> None:
    """Refuses one that the base would have to run to, or a foot to fly or dig to."""
    standing, unit = aim.standing, aim.standing.scaling
    if point.what not in standing.feet:
        own = [p for p in aim.motion.waypoints if p.what == "base"]
        shares = np.array([0.0, *sorted(set(map(aim.share_of, own))), 1.0])
        steps = np.abs(np.diff(aim.course(shares)[:, :2], axis=0)).max(axis=1)
        speed = (steps / np.diff(shares)).max() / aim.duration[1]
        if speed**2 > FROUDE and not aim.flies:
            raise InvalidInput(
                f"way point of {point.what}: the base would move at "
                f"{speed * unit.velocity:.2g} m/s, faster than its legs can walk "
                f"({FROUDE**0.5 * unit.velocity:.2g} m/s); give it more time"
            )
        return
    (x, y, z), i = point.p_W, standing.feet.index(point.what)
    if z is None or (None in (x, y) and not isinstance(aim.problem.terrain, Flat)):
        return
    at = np.full((1, len(standing.feet), 3), (x or 0.0, y or 0.0, z))
    gap, air = standing.clearances(at)[0, i], np.ones(aim.intervals, bool)
    if isinstance(b, ScheduledBuilder):
        air = ~b.schedule.grounded[first : first + aim.intervals, i]
    if gap < -point.tolerance or (gap > point.tolerance and not air[knot - first - 1]):
        whole, what = 1.0, "share"
        if point.time is not None:
            whole, what = aim.nominal * unit.time, "second"
        times = [f"{k / len(air) * whole:.2g}" for k in np.flatnonzero(air) + 1]
        raise InvalidInput(
            f"way point of {point.what}: {gap:.3g} m above the ground, at {what} "
            f"{(knot - first) / len(air) * whole:.2g}; it is in the air after {what}s "
            f"{', '.join(times) or 'none'}, its centre {standing.radii[i]:.3g} m high "
            "where it stands"
        )


def _add_advance(b: ContactImplicitBuilder, aim: Targets) -> None:
    """Where a cycle starts, and how far on it ends."""
    standing, start, end = aim.standing, aim.start, aim.end
    at = list(standing.indices("x", "y").values())
    names = [b.system.coordinates[i] for i in at]
    b.bound("q", 0, start[at], start[at], labels=names)
    if not aim.forward:
        return
    x, q = standing.index("x"), b["q"].indices
    b.bound("q", -1, end[x], end[x], labels=[standing.base["x"]])
    if "z" in standing.base and not isinstance(aim.problem.terrain, Flat):
        # The next cycle must start on the ground as this one did.
        z = standing.index("z")
        fall = end[z] - start[z]
        rows = b.add_rows("descent", 1, [""], lower=fall, upper=fall)
        b.difference(q[-1:, [z]], q[:1, [z]], rows.indices)


def _add_lift(b: ContactImplicitBuilder, foot: int, knot: int, height: float) -> None:
    """Keeps a foot above the ground at a knot."""
    b.constraint(
        f"lift_{b.system.robot.model.feet[foot].name}",
        {"q": b["q"].indices[[knot]]},
        lambda q: b.system.contact_motion(q, ca.SX.zeros(b.system.nq))[0][foot],
        lower=height,
        labels=[""],
    )


def add_costs(b: ContactImplicitBuilder, aim: Targets) -> None:
    """Effort, deviation from the standing pose, and velocity changes."""
    w, standing = aim.problem.weights, aim.standing
    q, h = b["q"].indices, b["h"].indices
    kept = [*standing.joints, *standing.indices("roll", "pitch").values()]
    target = standing.q[kept]
    driven, posed = {"h": h, "u": b["u"].indices}, {"h": h, "q": q[1:, kept]}
    b.cost("effort", driven, lambda h, u: w.effort / 2 * h * ca.sumsqr(u))
    b.cost("pose", posed, lambda h, q: w.pose / 2 * h * ca.sumsqr(q - target))
    cost_velocity_steps(b, w.smooth, bool(aim.row))


def first_guess(aim: Targets, program: Program) -> np.ndarray:
    """Standing, moved evenly to the goal; a hop rises in between.

    The feet share the weight; the slack is at its upper bound.
    """
    standing, knots = aim.standing, aim.problem.knots
    share = np.linspace(0, 1, knots)[:, None]
    q = standing.q + share * (aim.end - standing.q)
    if aim.flies:
        q[:, standing.index("z")] += 4 * aim.rise * (share * (1 - share))[:, 0]
    h = aim.nominal / (knots - 1)
    parts = {
        "h": h,
        "q": q,
        "v0": (q[1] - q[0]) / h if aim.motion.repeats else 0.0,
        "gam": _loads(aim),
        "s": SLACK[1],
    }
    return program.pack(parts)


def _loads(aim: Targets) -> np.ndarray:
    """Share of the weight on every foot in the first guess (N-1, num_feet)."""
    names, K = aim.standing.feet, aim.problem.knots - 1
    down = np.ones((K, len(names)))
    time = (np.arange(K) + 0.5) / K
    for name, phase in aim.motion.lift_phases(aim.standing).items():
        down[(time - phase) % 1.0 < SWING, names.index(name)] = 0.0
    return down / np.maximum(down.sum(axis=1, keepdims=True), 1.0)
