"""The rows of an interval against Drake, and every slope by finite differences."""

import numpy as np
import pytest
from pydrake.common.eigen_geometry import Quaternion
from pydrake.math import RotationMatrix
from pydrake.multibody.tree import JacobianWrtVariable
from scipy.optimize import minimize

from drakebots import build_robot, load
from drakebots.control import MpcCost, MpcProblem
from drakebots.control.riccati import (
    Knots,
    eliminate,
    gains,
    newton_step,
    rates,
    regulate,
)
from drakebots.control.stage import (
    Stage,
    barrier,
    contact_rows,
    cost_model,
    cost_value,
    difference,
    misses,
    retract,
    turn_columns,
    turn_rows,
    turns,
)
from tests.helpers.scripts import load_script

quadruped_urdf, written = load_script("program_robots", "quadruped_urdf", "written")

BASE = np.array([[0, 0]])


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """A floating quadruped: interpreted, for a few evaluations."""
    model = written(tmp_path_factory.mktemp("mpc"), "quad", quadruped_urdf())
    patch = pytest.MonkeyPatch()
    patch.setenv("DRAKEBOTS_COMPILE", "0")
    out = Stage(MpcProblem(build_robot(model), friction=0.6))
    assert len(out.functions) == 2
    patch.undo()
    return out


@pytest.fixture(scope="module")
def looped():
    """A robot with eight rows of loops."""
    patch = pytest.MonkeyPatch()
    patch.setenv("DRAKEBOTS_COMPILE", "0")
    out = Stage(MpcProblem(build_robot(load("minitaur"))))
    assert out.functions
    patch.undo()
    return out


def _random(stage, seed=0):
    rng, n = np.random.default_rng(seed), stage.sizes
    q = rng.normal(size=n["nq"])
    q[:4] /= np.linalg.norm(q[:4])
    sizes = n["nv"], n["nv"], 3 * n["nc"], n["nl"]
    return q, *(rng.normal(size=size) for size in sizes)


def _values(stage, *at):
    return [np.array(out) for out in stage.functions[0](*at)]


def _central(function, x, step=1e-6):
    columns = []
    for i in range(len(x)):
        d = np.zeros(len(x))
        d[i] = step
        columns.append((function(x + d) - function(x - d)) / (2 * step))
    return np.array(columns).T


def test_steps_and_differences_are_inverse_and_turn_as_drake_does():
    rng = np.random.default_rng(1)
    q = rng.normal(size=(5, 9))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1)[:, None]
    d = rng.normal(size=(5, 8))
    d[0] *= 1e-12
    there = retract(BASE, q, d)
    np.testing.assert_allclose(difference(BASE, there, q), d, atol=1e-14)
    # The other sign of a quaternion is the same rotation.
    there[:, :4] *= -1
    np.testing.assert_allclose(difference(BASE, there, q), d, atol=1e-14)
    turned = RotationMatrix(Quaternion(there[1, :4]))
    by = turned @ RotationMatrix(Quaternion(q[1, :4])).inverse()
    axis_angle = by.ToAngleAxis()
    np.testing.assert_allclose(axis_angle.axis() * axis_angle.angle(), d[1, :3])


@pytest.mark.parametrize("size", [0.0, 1e-5, 1.0])
def test_slopes_of_differences(size):
    rng = np.random.default_rng(2)
    q0 = np.array([[0.5, -0.5, 0.1, 0.7, 1.0, 2.0, 3.0, 4.0]])
    q0[:, :4] /= np.linalg.norm(q0[:, :4])
    d = size * rng.normal(size=7)
    q1 = retract(BASE, q0, d[None])
    E, same, zero = np.eye(7), np.eye(7), np.zeros(7)
    turn_rows(BASE, turns(BASE, d), E)
    turn_columns(BASE, turns(BASE, d), same)
    np.testing.assert_array_equal(E, same)
    by_1 = _central(lambda s: difference(BASE, retract(BASE, q1, s[None]), q0)[0], zero)
    by_0 = _central(lambda s: difference(BASE, q1, retract(BASE, q0, s[None]))[0], zero)
    np.testing.assert_allclose(E, by_1, atol=1e-8)
    np.testing.assert_allclose(-E.T, by_0, atol=1e-8)


def test_rows_equal_drakes(stage):
    q, v, a, f, _ = at = _random(stage)
    dynamics, gap, slide, _ = _values(stage, *at)
    robot = stage.problem.robot
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    plant.SetPositions(context, q)
    plant.SetVelocities(context, v)
    M = plant.CalcMassMatrix(context)
    bias = plant.CalcBiasTerm(context) - plant.CalcGravityGeneralizedForces(context)
    damping = np.array(stage.twin.joint_damping())
    world = plant.world_frame()
    force = np.zeros(len(v))
    for i, (foot, (frame, p)) in enumerate(
        zip(robot.model.feet, robot.frames(robot.model.feet))
    ):
        center = plant.CalcPointsPositions(context, frame, p, world).ravel()
        assert gap[i, 0] == pytest.approx(center[2] - foot.radius, abs=1e-12)
        low = center - [0, 0, foot.radius]
        p_BC = plant.CalcPointsPositions(context, world, low, frame)
        J = plant.CalcJacobianTranslationalVelocity(
            context, JacobianWrtVariable.kV, frame, p_BC, world, world
        )
        np.testing.assert_allclose(slide[2 * i : 2 * i + 2, 0], (J @ v)[:2], atol=1e-11)
        force += J.T @ f[3 * i : 3 * i + 3]
    expected = M @ a + bias + damping * v - force
    np.testing.assert_allclose(dynamics.ravel(), expected, atol=1e-10)


def test_rows_of_loops_equal_the_models(looped):
    q, v, a, f, l = at = _random(looped, 3)  # noqa: E741
    plant = looped.problem.robot.plant
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, q)
    closure = looped.problem.robot.closure
    dynamics, _, _, c = _values(looped, *at)
    free = _values(looped, q, v, a, f, np.zeros_like(l))[0]
    np.testing.assert_allclose(c.ravel(), closure.residual(context), atol=1e-12)
    C = closure.jacobian(context)
    np.testing.assert_allclose((free - dynamics).ravel(), C.T @ l, atol=1e-11)


@pytest.mark.parametrize("which", ["stage", "looped"])
def test_slopes_of_rows(which, request):
    stage = request.getfixturevalue(which)
    q, v, a, f, l = _random(stage, 4)  # noqa: E741
    out = [np.array(x) for x in stage.functions[1](q, v, a, f, l)]
    slopes = dict(
        zip(("dynamics_d", "dynamics_v", "mass", "feet", "slide_d", "loops_d"), out[4:])
    )

    def row(i, q=q, v=v, a=a):
        return _values(stage, q, v, a, f, l)[i].ravel()

    def moved(d):
        return retract(stage.bases, q[None], d[None])[0]

    zero = np.zeros(len(v))
    for name, expected in (
        ("dynamics_d", _central(lambda d: row(0, q=moved(d)), zero)),
        ("dynamics_v", _central(lambda v: row(0, v=v), v)),
        ("mass", _central(lambda a: row(0, a=a), a)),
        ("slide_d", _central(lambda d: row(2, q=moved(d)), zero)),
    ):
        np.testing.assert_allclose(slopes[name], expected, atol=3e-7, err_msg=name)
    if stage.sizes["nl"]:
        expected = _central(lambda d: row(3, q=moved(d)), zero)
        np.testing.assert_allclose(slopes["loops_d"], expected, atol=1e-8)
    # The slopes of gaps are the normals' rows of the feet's Jacobian.
    expected = _central(lambda d: row(1, q=moved(d)), zero)
    np.testing.assert_allclose(slopes["feet"][2::3], expected, atol=1e-8)


def test_relaxed_contact_means_its_product_and_friction_its_cone():
    scale, mu, slip = (0.02, 50.0, 1e-3), 0.6, 0.05
    barrier_ = scale[0] * scale[1] * scale[2]
    gap = np.array([1e-6, 1e-4, 0.1])
    n = barrier_ / gap
    p = np.array([[0.3, -0.4], [0.0, 0.0], [1e-3, 0]])
    w = np.sqrt((p**2).sum(1) + slip**2)
    t = -mu * n[:, None] * p / w[:, None]
    f = np.hstack([t, n[:, None]]).ravel()
    rows, *_ = contact_rows(gap, p.ravel(), f, scale, mu, slip)
    assert np.abs(rows).max() < 1e-12 * n.max()
    assert (np.linalg.norm(t, axis=1) <= mu * n).all()
    away = contact_rows(-gap, p.ravel(), -f, scale, mu, slip)[0]
    assert (np.abs(away[:, 2]) > 1e-3).all()


def test_slopes_of_relaxed_contact():
    rng = np.random.default_rng(5)
    gap, slide, f = rng.normal(size=4) * 0.01, rng.normal(size=8), rng.normal(size=12)
    f[2::3] = np.abs(f[2::3]) * 20
    args = (0.02, 30.0, 1e-3), 0.6, 0.05
    _, normal, drag, _ = contact_rows(gap, slide, f, *args)
    by_gap = _central(lambda x: contact_rows(x, slide, f, *args)[0][:, 2], gap, 1e-8)
    np.testing.assert_allclose(np.diag(by_gap), normal[:, 0], rtol=1e-6)
    by_f = _central(lambda x: contact_rows(gap, slide, x, *args)[0][:, 2], f)
    np.testing.assert_allclose(np.diag(by_f[:, 2::3]), normal[:, 1], rtol=1e-6)
    by_p = _central(lambda x: contact_rows(gap, x, f, *args)[0][:, :2].ravel(), slide)
    for i in range(4):
        block = by_p[2 * i : 2 * i + 2, 2 * i : 2 * i + 2]
        np.testing.assert_allclose(drag[i], block, rtol=1e-6)


@pytest.fixture(scope="module")
def step(looped):
    """A Newton step of two intervals, as `newton_step` takes it, and all rows, and
    velocities, after any steps of positions, efforts, forces and loops."""
    rng, stage, h, N = np.random.default_rng(6), looped, 0.03, 2
    n, bases = stage.sizes, looped.bases
    nv, nu = n["nv"], n["nu"]
    B = np.ascontiguousarray(looped.problem.robot.plant.MakeActuationMatrix())
    q, v = [_random(stage, 7)[0]], rng.normal(size=(N + 1, nv))
    for k in range(N):
        q.append(retract(bases, q[k][None], h * v[k + 1][None])[0])
    q, tau = np.array(q), rng.normal(size=(N, nu))
    f, l = rng.normal(size=(N, 3 * n["nc"])), rng.normal(size=(N, n["nl"]))  # noqa: E741
    f[:, 2::3] += 8  # within the cones of friction, where slopes are exact
    contact = (0.02, 60.0, 0.7, 0.05), np.full(N, 1e-3)
    a = np.diff(v, axis=0) / h
    each = [stage.functions[1](q[k + 1], v[k + 1], a[k], f[k], l[k]) for k in range(N)]
    out = [np.array([np.array(one[i]) for one in each]) for i in range(10)]
    values = tuple(x[:, :, 0] for x in out[:4])
    slopes = tuple(np.ascontiguousarray(x.transpose(0, 2, 1)) for x in out[4:])
    found = eliminate(bases, h, v[1:], B, tau, f, values, slopes, *contact)
    Q = rng.normal(size=(N + 1, nv, nv))
    Q, S = Q @ Q.transpose(0, 2, 1), rng.uniform(1, 2, size=(N + 1, nv))
    costs = Q, S, rng.normal(size=(N + 1, 2 * nv)), np.ones((N, nu)), tau[::-1].copy()
    free = np.full((N, nu), np.inf)
    now = misses(values, tau @ B.T, f, *contact)
    at = bases, h, B, costs, found, now, slopes, -free, free

    def rows(d, du, df, dl):
        there = np.array([q[0], *(retract(bases, q[1:], d))])
        rates = np.vstack([v[:1], difference(bases, there[1:], there[:-1]) / h])
        a = np.diff(rates, axis=0) / h
        each = [
            _values(stage, there[k + 1], rates[k + 1], a[k], f[k] + df[k], l[k] + dl[k])
            for k in range(N)
        ]
        values = tuple(np.array(x)[:, :, 0] for x in zip(*each))
        return misses(values, (tau + du) @ B.T, f + df, *contact), rates

    return at, rows


def _along(rows, moves, small=1e-6):
    """Slopes of rows, and of velocities, along steps."""
    up, v_up = rows(*(small * move for move in moves))
    down, v_down = rows(*(-small * move for move in moves))
    return (up - down) / (2 * small), (v_up - v_down) / (2 * small)


def test_a_newton_step_meets_the_linearised_rows(step):
    """By finite differences of all rows along it."""
    at, rows = step
    (x, u, df, dl), _, _ = newton_step(*at)
    nv = x.shape[1] // 2
    moves = x[1:, :nv], u, df, dl
    now, _ = rows(*(0 * move for move in moves))
    change, faster = _along(rows, moves)
    assert np.abs(now + change).max() < 1e-5 * np.abs(now).max()
    v = x[:, nv:]
    np.testing.assert_allclose(faster, v, atol=1e-5 * np.abs(v).max())


def test_a_newton_step_is_the_optimum_by_its_multipliers(step):
    """Costs and priced rows do not change along any steps of all unknowns."""
    at, rows = step
    (x, u, df, dl), y, _ = newton_step(*at)
    (Q, S, g, R, r), nv = at[3], x.shape[1] // 2
    rng = np.random.default_rng(8)
    by_d = np.einsum("kij,kj->ki", Q, x[:, :nv]) + g[:, :nv]
    by_v = S * x[:, nv:] + g[:, nv:]
    for scale in np.eye(4)[[0, 0, 0, 1, 2, 3]]:
        moves = [
            s * rng.normal(size=part.shape)
            for s, part in zip(scale, (x[1:, :nv], u, df, dl))
        ]
        change, faster = _along(rows, moves)
        parts = [y * change, by_d[1:] * moves[0], by_v * faster, (R * u + r) * moves[1]]
        size = max(np.abs(part).sum() for part in parts)
        assert abs(sum(part.sum() for part in parts)) < 1e-6 * size


def test_gains_of_free_coordinates_are_those_of_all(step):
    """On steps that keep the loops, by positions and velocities of each knot."""
    (bases, h, *_, (_, knots, _), _, _, _, _) = at = step[0]
    K = newton_step(*at)[2]
    found, rng, nf = (
        gains(bases, h, knots, K),
        np.random.default_rng(9),
        K.shape[2] // 2,
    )
    z = rng.normal(size=2 * nf)
    first = np.r_[z[:nf] @ knots.N[0], z[nf:] @ knots.N[0]]
    rate = z @ rates(bases, h, knots.E[0], knots.N[1], knots.N[0])
    second = np.r_[z[:nf] @ knots.N[1], rate]
    for k, x in enumerate((first, second)):
        np.testing.assert_allclose(
            found[k] @ x, K[k, :, :-1] @ z, atol=1e-9 * np.abs(K).max()
        )


def test_cost_model_is_the_costs_gradient():
    rng, N, h = np.random.default_rng(8), 3, 0.1
    q = rng.normal(size=(N + 1, 9))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1)[:, None]
    wanted = q[::-1].copy(), rng.normal(size=(N + 1, 8))
    v, tau = rng.normal(size=(N + 1, 8)), 0.9 * rng.normal(size=(N, 2))
    cost = MpcCost(
        position=rng.uniform(1, 2, 8),
        velocity=0.3,
        effort=0.5,
        terminal_position=4.0,
    )
    weights = (*(np.array(w) for w in cost.arrays(8, 2)), 0.2)
    # Of two coordinates, one on both sides; the other is passed by some knots.
    limits = np.array([[7, 6, 0.4, -2.0], [7, 6, -0.4, 3.0], [8, 7, -1.0, 0.1]])

    def of(function, q=q, v=v, tau=tau):
        return function(BASE, h, q, v, tau, wanted, weights, limits)

    Q, S, g, R, r = of(cost_model)
    zero = np.zeros(8)
    for k in range(N + 1):

        def moved(d, k=k):
            at = q.copy()
            at[k] = retract(BASE, q[k : k + 1], d[None])[0]
            return of(cost_value, q=at)

        def faster(d, k=k):
            at = v.copy()
            at[k] += d
            return of(cost_value, v=at)

        slopes = np.r_[_central(moved, zero), _central(faster, zero)]
        np.testing.assert_allclose(g[k], slopes if k else 0 * slopes, atol=2e-7)
        assert np.linalg.eigvalsh(Q[k]).min() > -1e-12
        assert (S[k] >= 0).all()
    flat = _central(lambda u: of(cost_value, tau=u.reshape(N, 2)), tau.ravel())
    np.testing.assert_allclose(r.ravel(), flat, atol=1e-7)
    bend = _central(
        lambda u: of(cost_model, tau=u.reshape(N, 2))[4].ravel(), tau.ravel()
    )
    np.testing.assert_allclose(R.ravel(), np.diag(bend), rtol=1e-6)


@pytest.mark.parametrize("z", [1.0, 0.03, 0.0200001, 0.0199999, 0.0, -0.5])
def test_relaxed_barrier_is_smooth(z):
    value, first, second = barrier(z)
    step = 1e-7
    up, down = barrier(z + step), barrier(z - step)
    assert first == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-5)
    assert second == pytest.approx((up[1] - down[1]) / (2 * step), rel=1e-4)
    if z >= 0.02:
        assert value == pytest.approx(-np.log(z))


@pytest.mark.parametrize("slope", [0.03, 1e3])
def test_many_limits_cost_the_sum_of_their_barriers(slope):
    """Whose product, of which the logarithm is taken, is beyond the largest numbers."""
    q = np.ones((2, 300))
    limits = np.column_stack(
        [np.arange(300), np.arange(300), np.full(300, slope), np.zeros(300)]
    )
    none = np.zeros((2, 300))
    weights = *(np.zeros(300) for _ in range(2)), np.zeros(1), *none, 1.0
    at = np.zeros((0, 2), int), 1.0, q, none, np.zeros((1, 1)), (q, none)
    value = cost_value(*at, weights, limits)
    assert value == pytest.approx(-300 * np.log(slope), rel=1e-12)


def test_steps_within_limits_are_the_quadratic_programs():
    """Against a dense quadratic program over the efforts, solved to its optimum."""
    rng, N, n, nv, nu = np.random.default_rng(9), 6, 4, 7, 2
    F = rng.normal(size=(N, n, 2 * n + nu + 1))
    F[:, :, : 2 * n] *= 0.3
    spans, E = np.tile([0, nv], (N + 1, n, 1)), np.zeros((N, 0, 3, 3))
    steps = (rng.normal(size=size) for size in ((n, nv), (nv,)))
    to, a = (np.repeat(x[None], N + 1, axis=0) for x in steps)
    w, bases, h = rng.normal(size=(N, nv)), np.zeros((0, 2), int), 3.0
    knots = Knots(to, a, w, np.zeros((N + 1, n), int), spans, E)
    Q = rng.normal(size=(N + 1, nv, nv))
    Q, S = 0.1 * Q @ Q.transpose(0, 2, 1), rng.uniform(0, 1, size=(N + 1, nv))
    g, R, r = rng.normal(size=(N + 1, 2 * nv)), np.full((N, nu), 0.3), np.ones((N, nu))
    limit = np.full((N, nu), 0.4)

    def ahead(k, z, u):
        return np.r_[F[k] @ np.r_[z, u, 1.0], z[:n]]

    def cost(u):
        z, total = np.zeros(2 * n), 0.0
        for k in range(N):
            total += 0.5 * u[k] @ (R[k] * u[k]) + r[k] @ u[k]
            z = ahead(k, z, u[k])
            d, v = z[:n] @ to[k + 1] + a[k + 1], (z[:n] - z[n:]) @ to[k] / h + w[k]
            total += 0.5 * d @ Q[k + 1] @ d + 0.5 * v @ (S[k + 1] * v)
            total += g[k + 1] @ np.r_[d, v]
        return total

    for low, high in ((-1e9 * limit, 1e9 * limit), (-limit, limit)):
        z, u, K = regulate(bases, h, F, knots, (Q, S, g, R, r), low, high)
        best = minimize(
            lambda u: cost(u.reshape(N, nu)),
            np.zeros(N * nu),
            bounds=list(zip(low.ravel(), high.ravel())),
            options={"ftol": 1e-15, "gtol": 1e-10},
        )
        assert cost(u) == pytest.approx(best.fun, rel=1e-6)
        assert (low <= u).all() and (u <= high).all()
        for k in range(N):
            np.testing.assert_allclose(z[k + 1], ahead(k, z[k], u[k]), atol=1e-6)
    assert np.sum(np.abs(u) == 0.4) > 3
    assert not K[np.abs(u) == 0.4, :-1].any()
