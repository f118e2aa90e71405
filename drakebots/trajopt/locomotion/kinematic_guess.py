"""A first guess of a gait: feet on their arcs, the base over the feet that carry.

The base moves evenly and sways towards the feet that carry the robot. Every foot stays
where it stands and swings on an arc to its next foothold; footholds are where the foot
of the standing robot would be halfway through the time that it stands there. Joints
follow by inverse kinematics, and forces and inputs by statics:

    J(q) dq = p_W - p(q)  (damped least squares),    B u + C'lam + J'f + g(q) = 0
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from drakebots.trajopt.locomotion.gait import Gait
from drakebots.trajopt.locomotion.program import actuators_of
from drakebots.trajopt.locomotion.standing import Standing

DAMPING = 1e-3
"""Weight of the distance from the pose before in inverse kinematics."""

STEPS = 12
"""Steps of inverse kinematics."""


def kinematic_guess(gait: Gait, standing: Standing) -> dict[str, np.ndarray]:
    """Parts of x by name, plant units: h, q, v0, u, gam, beta and lam."""
    aim, problem = gait.aim, gait.problem
    K = problem.knots - 1
    course = _course(gait, standing)
    feet = _feet(gait, standing)
    if problem.kind == "hop":
        q = np.repeat(standing.q[None], K + 1, axis=0)
        share = np.clip(np.linspace(-0.75, 1.75, K + 1), 0, 1)
        q[:, standing.index("z")] += 4 * aim.height * share * (1 - share)
    else:
        q = _follow(standing, course, feet)
        if not problem.repeats:
            q[0] = standing.q
    h = aim.nominal / K
    gam = _shares(gait, standing, q)
    parts = {
        "h": np.full((K, 1), h),
        "q": q,
        "v0": (q[1:2] - q[:1]) / h if problem.repeats else np.zeros((1, len(q[0]))),
        "gam": gam,
        "beta": np.zeros((K, 4 * gam.shape[1])),
    }
    return parts | _statics(standing, q[1:], gam)


def _course(gait: Gait, standing: Standing) -> np.ndarray:
    """q of the base's even motion with its sway, joints standing (K+1, nq)."""
    K = gait.problem.knots - 1
    aim, loaded = gait.aim, gait.schedule.loaded
    q = np.repeat(standing.q[None], K + 1, axis=0)
    share = _progress(gait)
    for axis, by in (("x", aim.forward), ("y", aim.sideways), ("yaw", aim.turn)):
        if by:
            q[:, standing.index(axis)] += share * by
    if gait.problem.kind == "hop" or not {"x", "y"} <= set(standing.base):
        return q
    points = standing.system.foot_positions(standing.q)[0][:, :2]
    counts = np.maximum(loaded.sum(axis=1, keepdims=True), 1)
    carried = (loaded @ points) / counts - points.mean(axis=0)
    # An inverted pendulum that is supported at +-w in turn, for t each, sways by
    # w (1 - 1/cosh(t/2)).
    support = aim.nominal / (2 * gait.rounds)
    sway = 1 - 1 / np.cosh(support / 2)
    lift = sway * _smooth(carried, max(K // 6, 1), gait.problem.repeats)
    # Intervals to knots.
    ends = np.vstack([lift[-1:], lift]) if gait.problem.repeats else None
    if ends is None:
        ends = np.vstack([np.zeros((1, 2)), lift])
        ends[-1] = 0.0
    yaw = q[:, standing.index("yaw")] - standing.q[standing.index("yaw")]
    if "yaw" not in standing.base:
        yaw = np.zeros(K + 1)
    c, s = np.cos(yaw), np.sin(yaw)
    q[:, standing.index("x")] += c * ends[:, 0] - s * ends[:, 1]
    q[:, standing.index("y")] += s * ends[:, 0] + c * ends[:, 1]
    return q


def _progress(gait: Gait) -> np.ndarray:
    """Share of the way at every knot: even, from rest to rest with a smooth start."""
    share = np.linspace(0, 1, gait.problem.knots)
    return share if gait.problem.repeats else share * share * (3 - 2 * share)


def _smooth(values: np.ndarray, width: int, periodic: bool) -> np.ndarray:
    """Moving average over 2 width + 1 rows, around a cycle or with ends repeated."""
    mode = "wrap" if periodic else "edge"
    padded = np.pad(values, ((width, width), (0, 0)), mode=mode)
    kernel = np.ones(2 * width + 1) / (2 * width + 1)
    return np.column_stack(
        [np.convolve(column, kernel, mode="valid") for column in padded.T]
    )


def _feet(gait: Gait, standing: Standing) -> np.ndarray:
    """p_WF of every foot at every knot (K+1, nc, 3)."""
    K, nc = gait.problem.knots - 1, standing.system.num_feet
    periodic = gait.problem.repeats
    out = np.zeros((K + 1, nc, 3))
    times = np.arange(K + 1)
    for i in range(nc):
        swings = gait.fall.swings[i]
        if periodic and swings:
            # The swings of the cycles before and after as well.
            swings = tuple(
                (a + n * K, b + n * K) for n in (-1, 0, 1) for a, b in swings
            )
        # Holds [from, to] between swings, in knots; each at the middle of its time.
        starts = [-2 * K if periodic else 0] + [b + 1 for _, b in swings]
        stops = [a for a, _ in swings] + [3 * K if periodic else K]
        if periodic and swings:
            length = K - (swings[0][1] - swings[0][0] + 1)
            starts[0], stops[-1] = stops[0] - length, starts[-1] + length
        middles = [(a + b) / 2 for a, b in zip(starts, stops)]
        if not periodic:
            middles[0], middles[-1] = 0, K
        holds = np.array([_foothold(gait, standing, i, m / K) for m in middles])
        for start, stop, hold in zip(starts, stops, holds):
            out[(times >= start) & (times <= stop), i] = hold
        for (a, b), before, after in zip(swings, holds[:-1], holds[1:]):
            rise = gait.schedule.height[:, i].max(initial=0.0)
            inside = np.flatnonzero((times > a) & (times < b + 1))
            share = ((times[inside] - a) / (b + 1 - a))[:, None]
            even = share * share * (3 - 2 * share)
            arc = before + even * (after - before)
            arc[:, 2:] += 1.1 * rise * np.sin(np.pi * share)
            out[inside, i] = arc
    return out


def _foothold(gait: Gait, standing: Standing, foot: int, share: float) -> np.ndarray:
    """Where a standing robot's foot is after a share of the way (3,)."""
    aim, q = gait.aim, standing.q
    point = standing.system.foot_positions(q)[0][foot]
    if not gait.problem.repeats:
        share = share * share * (3 - 2 * share)
    here = np.array(
        [
            q[standing.index(axis)] if axis in standing.base else 0.0
            for axis in ("x", "y")
        ]
    )
    c, s = np.cos(share * aim.turn), np.sin(share * aim.turn)
    turned = np.array([[c, -s], [s, c]]) @ (point[:2] - here)
    moved = here + share * np.array([aim.forward, aim.sideways])
    found = np.array([*(moved + turned), point[2]])
    return _on_ground(standing, foot, found)


def _on_ground(standing: Standing, foot: int, p: np.ndarray) -> np.ndarray:
    """p moved along z until the foot touches the ground."""
    unit = standing.scaling.length
    radius = standing.system.robot.model.feet[foot].radius
    p = p.copy()
    for _ in range(20):
        phi, slope = standing.system.terrain.evaluate(p[None] * unit)
        gap = (phi[0] - radius) / unit
        if abs(gap) < 1e-9:
            break
        p[2] -= gap / max(slope[0, 2], 0.1)
    return p


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
    target = np.hstack(
        [feet.reshape(count, -1), np.zeros((count, system.num_loop_rows))]
    )
    plant = system.robot.plant
    low, high = plant.GetPositionLowerLimits(), plant.GetPositionUpperLimits()
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


def _shares(gait: Gait, standing: Standing, q: np.ndarray) -> np.ndarray:
    """Normal forces (K, nc) that carry the weight about the centre of mass."""
    loaded, least = gait.schedule.loaded, gait.schedule.load
    plant = standing.system.robot.plant
    context = plant.CreateDefaultContext()
    points = standing.system.foot_positions(q[1:])
    gam = np.zeros(loaded.shape)
    for k, feet in enumerate(loaded):
        feet = np.flatnonzero(feet)
        if not len(feet):
            continue
        plant.SetPositions(context, q[k + 1])
        com = plant.CalcCenterOfMassPositionInWorld(context)[:2]
        A = np.vstack([np.ones(len(feet)), (points[k, feet, :2] - com).T])
        share = np.linalg.lstsq(A, np.array([1.0, 0, 0]), rcond=None)[0]
        share = np.maximum(share, least[k, feet])
        gam[k, feet] = share / share.sum()
    return gam


def _statics(standing: Standing, q: np.ndarray, gam: np.ndarray) -> Mapping:
    """Inputs within their limits, and loop forces, that hold poses under forces."""
    u, lam = holding(standing, q, gam)
    limits = np.array([a.effort_limit() for a in actuators_of(standing)])
    parts = {"u": np.clip(u, -limits, limits)}
    return parts | ({"lam": lam} if standing.system.num_loop_rows else {})


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
    function = ca.Function(
        "statics", [symbol, f], [D1 + carried, ca.jacobian(driven, unknown)]
    )
    found = []
    for pose, force in zip(q, gam):
        load, A = (np.array(a) for a in function(pose, force))
        found.append(np.linalg.lstsq(A, -load.ravel(), rcond=None)[0])
    return np.split(np.array(found), [system.nu], axis=1)
