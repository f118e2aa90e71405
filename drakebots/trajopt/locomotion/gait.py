"""A motion by a gait: a program whose contacts are given, and its first guess.

Where it is known which foot touches when, what makes a motion one that a robot can use
is stated as bounds: feet rise in their swings, every leg that stands carries a share of
the weight (so the robot does not tip over), forces keep away from the friction cone and
inputs from their limits, the base keeps its height and does not tilt. The cost is that
of :mod:`.program` without slip and slack.

In the first guess the base moves evenly and sways towards the feet that carry the
robot. Every foot stays where it stands and swings on an arc to its next foothold;
footholds are where the foot of the standing robot would be halfway through the time
that it stands there. Joints follow by inverse kinematics, and forces and inputs by
statics:

    J(q) dq = p_W - p(q)  (damped least squares),    B u + C'lam + J'f + g(q) = 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import casadi as ca
import numpy as np
from scipy.ndimage import uniform_filter1d

from drakebots.core.errors import InvalidInput
from drakebots.model import (
    contexts_along,
    effort_limits,
    plane_rotation,
    position_limits,
)
from drakebots.multibody import Flat
from drakebots.trajopt.contact_implicit import (
    ContactImplicit,
    Schedule,
    ScheduledBuilder,
)
from drakebots.trajopt.locomotion.problem import (
    LocomotionProblem,
    Targets,
    eased,
    targets,
)
from drakebots.trajopt.locomotion.program import add_aims, add_costs, mechanics
from drakebots.trajopt.locomotion.standing import Standing, height_to_touch
from drakebots.trajopt.program import Program

REACH = 0.5
"""Longest step of a foot [l]."""

LOAD = 0.05
"""Least share of the weight on the legs that stand, over the number of legs."""

RESERVE = 0.8
"""Share of the friction coefficient, of the inputs' and of the speed limits that a plan
uses, where the model stands with so much."""

HEIGHT = 0.15
"""Bound of the base's change in height, but in hops [l]."""

TILT = 0.2
"""Bound of the base's roll and pitch from standing, and of its yaw from its course, but
in hops [rad]."""

MARGIN = 0.02
"""Distance from joint limits, as a share of the joint's range, where the model stands
that far inside."""

FORCE = 0.1
"""Weight of the squared contact forces, which shares the load among the feet."""

GENERIC = 0.05
"""Size of the changes that make a standing pose generic [rad, l]."""

DAMPING = 1e-3
"""Weight of the distance from the pose before in inverse kinematics."""

STEPS = 12
"""Steps of inverse kinematics."""


@dataclass(frozen=True)
class Gait:
    """A motion by a gait, in plant units.

    Attributes:
        name: name of the gait, one of :data:`.problem.GAITS`; "" in a hop.
        aim: the motion of one cycle, or the whole motion from rest to rest, with the
            number of its knots.
        total: the whole motion.
        rounds: number of steps of every leg in `aim`.
        schedule: its contacts.
        swings: for each foot, the first and last interval in which it is not loaded,
            of each of its swings in time; they may run past the end of a cycle. Those
            of a series are in its row.
        row: the gait of every motion of a series; () for a single motion.
    """

    name: str
    aim: Targets
    total: Targets
    rounds: int
    schedule: Schedule
    swings: tuple[tuple[tuple[int, int], ...], ...]
    row: tuple[Gait, ...] = ()

    @property
    def cycles(self) -> int:
        """Number of cycles in the whole motion; 1 from rest to rest."""
        return (self.total.problem.knots - 1) // (self.aim.problem.knots - 1)


def plan_gait(problem: LocomotionProblem, standing: Standing, name: str) -> Gait:
    """The footfall and the number of steps of a motion.

    Steps are at most :data:`REACH` long, so a long stride takes several cycles, a far
    goal several steps of every leg.

    Args:
        problem: the problem.
        standing: the standing model.
        name: the gait, one of the problem's.

    Raises:
        InvalidInput: for too few knots, or a base that cannot make the motion.
    """
    row = problem.motion.row
    if len(row) == 1:
        return _single(replace(problem, motion=row[0]), standing, name, standing.q)
    gaits, start = [], standing.q
    for motion in row:
        names = motion.gaits(standing)
        own = replace(problem, motion=motion, duration=None)
        own_name = name if name in names else names[0]
        gaits.append(_single(own, standing, own_name, start))
        start = gaits[-1].aim.end
    return _joined(problem, name, gaits)


def _joined(problem: LocomotionProblem, name: str, gaits: Sequence[Gait]) -> Gait:
    """Motions in a row as one; a duration that is given is shared out among them."""
    row = [gait.aim for gait in gaits]
    if problem.duration is not None:
        time = problem.duration / row[0].standing.scaling.time
        share = time / sum(aim.nominal for aim in row)
        row = [replace(aim, duration=(share * aim.nominal,) * 2) for aim in row]
    low, high = np.sum([aim.duration for aim in row], axis=0)
    whole = replace(problem, knots=1 + sum(aim.intervals for aim in row))
    ends = row[0].start, row[-1].end
    aim = Targets(whole, row[0].standing, (low, high), *ends, tuple(row))
    tables = zip(*(vars(gait.schedule).values() for gait in gaits))
    schedule = Schedule(*map(np.concatenate, tables))
    gaits = tuple(replace(gait, aim=own) for gait, own in zip(gaits, row))
    return Gait(name, aim, aim, sum(g.rounds for g in gaits), schedule, (), gaits)


def _single(
    problem: LocomotionProblem, standing: Standing, name: str, start: np.ndarray
) -> Gait:
    """A single motion by a gait from a pose (nq,)."""
    motion, length = problem.motion, standing.scaling.length
    way = targets(problem, standing, start=start).course(np.linspace(0, 1, 101))
    x, y, yaw = np.diff(way, axis=0).T
    points = standing.system.foot_positions(standing.q)[0][:, :2]
    radius = np.linalg.norm(points - points.mean(axis=0), axis=1).max()
    reach = np.hypot(x, y).sum() + np.abs(yaw).sum() * radius
    steps = max(1, ceil(reach / REACH - 1e-9))
    cycle, whole, rounds = motion.divided(problem, steps, standing)
    natural = motion.natural(length, name, rounds)
    aim = targets(cycle, standing, natural=natural, start=start)
    cycles = (whole.knots - 1) // (cycle.knots - 1)
    total = targets(whole, standing, natural=natural * cycles, start=start)
    return Gait(name, aim, total, rounds, *_footfall(aim, name, rounds))


def _footfall(aim: Targets, gait: str, rounds: int):
    """Schedule and swings of a motion in which every leg makes so many steps."""
    K, nc, legs = aim.intervals, len(aim.standing.feet), len(aim.standing.legs)
    loaded, grounded = np.ones((2, K, nc), bool)
    height = np.zeros((K, nc))
    swings: list[list[tuple[int, int]]] = [[] for _ in range(nc)]
    for i, first, last in aim.motion.swings(gait, rounds, aim.standing, K):
        count = last - first + 1
        if count < 2:
            raise InvalidInput(
                f"{K + 1} knots are too few for the swings of "
                f"{aim.standing.feet[i]}; give more"
            )
        # The highest knot is at the clearance, also where the arc's top is between two.
        top = np.sin(np.pi * (count // 2) / count)
        swings[i].append((first, last))
        k = np.arange(first, last + 1) % K
        loaded[k, i] = False
        # The last interval of a swing ends on the ground, not yet loaded.
        grounded[k[:-1], i] = False
        height[k[:-1], i] = aim.rise * np.sin(np.pi * np.arange(1, count) / count) / top
    load = np.where(loaded, LOAD / max(legs, 1) / (nc / max(legs, 1)), 0.0)
    schedule = Schedule(loaded, grounded, height, load)
    return schedule, tuple(map(tuple, swings))


def gait_program(gait: Gait) -> tuple[ContactImplicit, Program]:
    """The program of a gait, and the contact-implicit problem that it tightens."""
    aim, standing = gait.aim, gait.aim.standing
    implicit = mechanics(aim)
    rng = np.random.default_rng(0)
    generic = standing.q + GENERIC * rng.uniform(-1, 1, standing.system.nq)
    own = replace(implicit, name=f"{implicit.name} by a gait")
    mu, rests = RESERVE * aim.problem.friction, aim.rests
    b = ScheduledBuilder(own, gait.schedule, generic, friction=mu, rests=rests)
    add_aims(b, aim)
    add_costs(b, aim)

    def force(h: ca.SX, gam: ca.SX, beta: ca.SX) -> ca.SX:
        return FORCE / 2 * h * (ca.sumsqr(gam) + ca.sumsqr(beta))

    b.cost("force", {n: b[n].indices for n in ("h", "gam", "beta")}, force)
    _keep_reserves(b, aim)
    return implicit, b.build()


def _keep_reserves(b: ScheduledBuilder, aim: Targets) -> None:
    """Tighter bounds of the base, the joints and the inputs."""
    standing = aim.standing
    q, u = standing.q, b["u"]
    low, high = position_limits(standing.system.robot.plant)
    inner = slice(1, None)
    for i in standing.joints:
        margin = MARGIN * (high[i] - low[i])
        if np.isfinite(margin) and low[i] + margin <= q[i] <= high[i] - margin:
            name = [standing.system.coordinates[i]]
            b.bound("q", inner, low[i] + margin, high[i] - margin, labels=name)
    u.lower[:] *= RESERVE
    u.upper[:] *= RESERVE
    if not isinstance(aim.problem.terrain, Flat):
        return
    for at, part in aim.parts:
        bounds = {} if part.flies else {"z": HEIGHT, "roll": TILT, "pitch": TILT}
        if part.motion.steady:
            bounds["yaw"] = TILT
        knots = slice(at.start + 1, at.stop + 1)
        for axis, i in standing.indices(*bounds).items():
            low, high = part.start[i] - bounds[axis], part.start[i] + bounds[axis]
            b.bound("q", knots, low, high, labels=[standing.base[axis]])


# --- the first guess ------------------------------------------------------------


def kinematic_guess(gait: Gait) -> dict[str, np.ndarray]:
    """Parts of x by name, plant units: h, q, v0, u, gam, beta and lam."""
    if gait.row:
        guesses = [kinematic_guess(own) for own in gait.row]
        parts = {n: np.vstack([guess[n] for guess in guesses]) for n in guesses[0]}
        # The knot where two motions meet is one of both.
        twice = [at.start + i for i, (at, _) in enumerate(gait.aim.parts) if i]
        parts["q"] = np.delete(parts["q"], twice, axis=0)
        return parts | {"v0": parts["v0"][:1]}
    aim, standing, repeats = gait.aim, gait.aim.standing, gait.aim.motion.repeats
    K = aim.intervals
    if aim.flies:
        share = np.clip(np.linspace(-0.75, 1.75, K + 1), 0, 1)
        q = aim.start + share[:, None] * (aim.end - aim.start)
        q[:, standing.index("z")] += 4 * aim.rise * share * (1 - share)
    else:
        q = _follow(standing, _course(gait), _feet(gait))
        if not repeats:
            q[0] = aim.start
    h = aim.nominal / K
    gam = _shares(gait, q)
    u, lam = holding(standing, q[1:], gam)
    limits = effort_limits(standing.system.robot.plant)
    parts = {
        "h": np.full((K, 1), h),
        "q": q,
        "v0": (q[1:2] - q[:1]) / h if repeats else np.zeros((1, len(q[0]))),
        "u": np.clip(u, -limits, limits),
        "gam": gam,
        "beta": np.zeros((K, 4 * gam.shape[1])),
    }
    return parts | ({"lam": lam} if standing.system.num_loop_rows else {})


def _course(gait: Gait) -> np.ndarray:
    """q of the base's even motion with its sway, joints standing (K+1, nq)."""
    aim, standing, loaded = gait.aim, gait.aim.standing, gait.schedule.loaded
    K, repeats = len(loaded), aim.motion.repeats
    q = np.repeat(aim.start[None], K + 1, axis=0)
    way = aim.course(np.linspace(0, 1, K + 1))
    at = standing.indices("x", "y", "yaw")
    for axis, along in zip(("x", "y", "yaw"), way.T):
        if axis in at:
            q[:, at[axis]] = along
    if not {"x", "y"} <= set(at):
        return q
    points = standing.system.foot_positions(standing.q)[0][:, :2]
    counts = np.maximum(loaded.sum(axis=1, keepdims=True), 1)
    carried = (loaded @ points) / counts - points.mean(axis=0)
    # An inverted pendulum that is supported at +-w in turn, for t each, sways by
    # w (1 - 1/cosh(t/2)).
    support = aim.nominal / (2 * gait.rounds)
    sway = 1 - 1 / np.cosh(support / 2)
    # Averaged over a third of the time, around a cycle or with its ends repeated.
    width, mode = 2 * max(K // 6, 1) + 1, "wrap" if repeats else "nearest"
    lift = sway * uniform_filter1d(carried, width, axis=0, mode=mode)
    # Intervals to knots.
    ends = np.vstack([lift[-1:] if repeats else np.zeros((1, 2)), lift])
    if not repeats:
        ends[-1] = 0.0
    if "yaw" in at:
        way[:, 2] -= standing.q[at["yaw"]]
    c, s = np.cos(way[:, 2]), np.sin(way[:, 2])
    q[:, at["x"]] += c * ends[:, 0] - s * ends[:, 1]
    q[:, at["y"]] += s * ends[:, 0] + c * ends[:, 1]
    return q


def _feet(gait: Gait) -> np.ndarray:
    """p_WF of every foot at every knot (K+1, nc, 3)."""
    (K, nc), periodic = gait.schedule.loaded.shape, gait.aim.motion.repeats
    out = np.zeros((K + 1, nc, 3))
    times = np.arange(K + 1)
    for i in range(nc):
        swings = gait.swings[i]
        if periodic and swings:
            # The swings of the cycles before and after as well.
            swings = [(a + n * K, b + n * K) for n in (-1, 0, 1) for a, b in swings]
        # Holds [from, to] between swings, in knots; each at the middle of its time.
        starts = [-2 * K if periodic else 0] + [b + 1 for _, b in swings]
        stops = [a for a, _ in swings] + [3 * K if periodic else K]
        if periodic and swings:
            length = K - (swings[0][1] - swings[0][0] + 1)
            starts[0], stops[-1] = stops[0] - length, starts[-1] + length
        middles = [(a + b) / 2 for a, b in zip(starts, stops)]
        if not periodic:
            middles[0], middles[-1] = 0, K
        holds = np.array([_foothold(gait.aim, i, m / K) for m in middles])
        for start, stop, hold in zip(starts, stops, holds):
            out[(times >= start) & (times <= stop), i] = hold
        for (a, b), before, after in zip(swings, holds[:-1], holds[1:]):
            rise = gait.schedule.height[:, i].max(initial=0.0)
            inside = np.flatnonzero((times > a) & (times < b + 1))
            share = ((times[inside] - a) / (b + 1 - a))[:, None]
            arc = before + eased(share) * (after - before)
            arc[:, 2:] += 1.1 * rise * np.sin(np.pi * share)
            out[inside, i] = arc
    return out


def _foothold(aim: Targets, foot: int, share: float) -> np.ndarray:
    """Position of a standing robot's foot after a share of the way (3,)."""
    standing = aim.standing
    point = standing.system.foot_positions(aim.start)[0][foot]
    before, after = aim.course(np.array([0.0, share]))
    turned = plane_rotation(after[2] - before[2]) @ (point[:2] - before[:2])
    found = np.array([*(after[:2] + turned), point[2]])
    found[2] += height_to_touch(standing, found[None], standing.radii[[foot]])
    return found


def _follow(standing: Standing, course: np.ndarray, feet: np.ndarray) -> np.ndarray:
    """q whose feet are where they should be, the base on its course (K+1, nq)."""
    system, joints = standing.system, standing.joints
    symbol = ca.SX.sym("q", system.nq)
    points = ca.vertcat(*system.feet(symbol))
    loops, _ = system.loop_force(symbol, ca.SX.zeros(system.num_loop_rows))
    rows = ca.vertcat(points, loops)
    count = course.shape[0]
    function = ca.Function("rows", [symbol], [rows, ca.jacobian(rows, symbol)])
    mapped = function.map(count)
    closed = np.zeros((count, system.num_loop_rows))
    target = np.hstack([feet.reshape(count, -1), closed])
    low, high = position_limits(system.robot.plant)
    # A first pose outside its limits may stay there.
    low, high = np.minimum(low, standing.q), np.maximum(high, standing.q)
    # Without coordinates along z or about y the base is where its joints put it.
    moved = joints if len(joints) else np.arange(system.nq)
    q = course.copy()
    for _ in range(STEPS):
        value, jacobian = (np.array(a) for a in mapped(q.T))
        gap = target - value.T
        J = jacobian.reshape(rows.numel(), count, system.nq)[:, :, moved]
        J = J.transpose(1, 0, 2)
        normal = np.einsum("kij,kil->kjl", J, J) + DAMPING * np.eye(len(moved))
        step = np.linalg.solve(normal, np.einsum("kij,ki->kj", J, gap)[..., None])
        q[:, moved] += np.clip(step[..., 0], -0.3, 0.3)
        q[:, moved] = np.clip(q[:, moved], low[moved], high[moved])
    return q


def _shares(gait: Gait, q: np.ndarray) -> np.ndarray:
    """Normal forces (K, nc) that carry the weight about the centre of mass."""
    standing = gait.aim.standing
    loaded, least = gait.schedule.loaded, gait.schedule.load
    plant = standing.system.robot.plant
    points = standing.system.foot_positions(q[1:])
    gam = np.zeros(loaded.shape)
    for k, context in enumerate(contexts_along(plant, q[1:])):
        feet = np.flatnonzero(loaded[k])
        if not len(feet):
            continue
        com = plant.CalcCenterOfMassPositionInWorld(context)[:2]
        A = np.vstack([np.ones(len(feet)), (points[k, feet, :2] - com).T])
        share = np.linalg.lstsq(A, np.array([1.0, 0, 0]), rcond=None)[0]
        share = np.maximum(share, least[k, feet])
        gam[k, feet] = share / share.sum()
    return gam


def holding(
    standing: Standing, q: np.ndarray, gam: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (T, nu) and loop forces of least size that hold poses (T, nq) at rest
    under normal forces (T, nc), plant units."""
    system = standing.system
    symbol, f = ca.SX.sym("q", system.nq), ca.SX.sym("f", system.num_feet)
    u, lam = ca.SX.sym("u", system.nu), ca.SX.sym("lam", system.num_loop_rows)
    still = ca.SX.zeros(system.nq)
    D1, _ = system.lagrangian_gradients(symbol, still)
    _, held = system.loop_force(symbol, lam)
    driven = system.inputs(system.twin, symbol, still, u) + held
    carried = system.contact_force(symbol, f, ca.SX.zeros(4 * system.num_feet))
    unknown = ca.vertcat(u, lam)
    sums = [D1 + carried, ca.jacobian(driven, unknown)]
    function = ca.Function("statics", [symbol, f], sums)
    found = []
    for pose, force in zip(q, gam):
        load, A = (np.array(a) for a in function(pose, force))
        found.append(np.linalg.lstsq(A, -load.ravel(), rcond=None)[0])
    return np.split(np.array(found), [system.nu], axis=1)
