"""Programs whose linear systems are singular, empty, indefinite or large.

And solves within, beside and after others, since linear solvers keep state.
"""

from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.sparse.linalg

from drakebots.trajopt.program import Block, ProgramBuilder
from drakebots.trajopt.solvers import solve_exact
from tests.helpers.scripts import load_script

LINEAR_SOLVERS, TIGHT, kkt_error, solved = load_script(
    "published", "LINEAR_SOLVERS", "TIGHT", "kkt_error", "solved"
)

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(params=LINEAR_SOLVERS)
def linear_solver(request):
    return request.param


def found(builder: ProgramBuilder, x0, linear_solver: str, **options):
    """x at the optimum, KKT conditions checked, and what the solver gave."""
    program = builder.build()
    raw = solved(program, np.asarray(x0, float), linear_solver, **options)
    assert raw.status == "Solve_Succeeded"
    errors = kkt_error(program, raw)
    assert errors["stationarity"] < 1e-8 and errors["violation"] < 1e-8
    assert errors["product"] < 1e-7
    return raw.x, raw


def variables(name: str, count: int, **bounds):
    """A builder and the positions of `count` variables, one a knot."""
    b = ProgramBuilder(name)
    return b, b.add_variables("x", count, [""], **bounds).indices


def equal(b: ProgramBuilder, name: str, x: np.ndarray, function, value=0.0) -> None:
    b.constraint(name, {"x": x}, function, lower=value, upper=value)


# ------------------------------------------------------------------ rows
def test_equations_given_three_times(linear_solver):
    """Rank 1 of 3: the nearest point of a plane to the origin."""
    b, x = variables("repeated", 4)
    b.cost("distance", {"x": x.T}, lambda x: ca.sumsqr(x))
    plane = ca.DM([[1, 2, 2, 0]])
    for i, factor in enumerate((1, 1, 2)):
        equal(b, f"plane{i}", x.T, lambda x, c=factor: c * (plane @ x - 9))
    answer, _ = found(b, [3, -4, 5, 6], linear_solver)
    np.testing.assert_allclose(answer, [1, 2, 2, 0], atol=1e-7)


def test_curved_equations_given_twice(linear_solver):
    """As closed loops may be: the lowest point of a circle."""
    b, x = variables("circle", 2)
    b.cost("height", {"x": x.T}, lambda x: x[1])
    for i in range(2):
        equal(b, f"circle{i}", x.T, lambda x: ca.sumsqr(x) - 4)
    answer, _ = found(b, [1, 1], linear_solver)
    np.testing.assert_allclose(answer, [0, -2], atol=1e-6)


def test_more_rows_at_a_corner_than_variables(linear_solver):
    """Twelve half-planes meet in the optimum; no unique multipliers."""
    b, x = variables("corner", 2)
    b.cost("height", {"x": x.T}, lambda x: -x[1])
    angles = np.linspace(0.3, np.pi - 0.3, 12)
    normals = np.column_stack([np.cos(angles), np.sin(angles)])
    b.constraint("planes", {"x": x.T}, lambda x: ca.DM(normals) @ x, upper=0.0)
    answer, _ = found(b, [0.2, -3], linear_solver)
    np.testing.assert_allclose(answer, [0, 0], atol=1e-7)


def test_rows_without_bounds(linear_solver):
    b, x = variables("free row", 2)
    b.cost("distance", {"x": x.T}, lambda x: ca.sumsqr(x - ca.DM([1, 2])))
    b.constraint("free", {"x": x.T}, lambda x: x[0] * x[1])
    b.constraint("held", {"x": x.T}, lambda x: x[0] + x[1], upper=1.0)
    answer, _ = found(b, [0, 0], linear_solver)
    np.testing.assert_allclose(answer, [0, 1], atol=1e-7)


def test_no_rows(linear_solver):
    """A chain of ten Rosenbrock valleys has its optimum at one."""
    b, x = variables("valleys", 11)
    b.cost(
        "valley",
        {"a": x[:-1], "b": x[1:]},
        lambda a, b: 100 * (b - a**2) ** 2 + (1 - a) ** 2,
    )
    answer, _ = found(b, np.zeros(11), linear_solver)
    np.testing.assert_allclose(answer, 1.0, atol=1e-7)


def test_equations_that_contradict_each_other(linear_solver):
    b, x = variables("contradiction", 1)
    b.cost("cost", {"x": x}, lambda x: x**2)
    for i in range(2):
        equal(b, f"row{i}", x, lambda x: x, value=float(i))
    raw = solved(b.build(), np.zeros(1), linear_solver)
    assert not raw.success


# ------------------------------------------------------------------ variables
def test_free_variables(linear_solver):
    """An equality-constrained quadratic program is one linear system."""
    rng = np.random.default_rng(0)
    n, m = 12, 5
    L, A = rng.standard_normal((n, n)), rng.standard_normal((m, n))
    Q, c, r = L @ L.T, rng.standard_normal(n), rng.standard_normal(m)
    b, x = variables("free", n)
    b.cost("cost", {"x": x.T}, lambda x: x.T @ ca.DM(Q) @ x / 2 + ca.dot(c, x))
    equal(b, "rows", x.T, lambda x: ca.DM(A) @ x - ca.DM(r))
    answer, raw = found(b, np.zeros(n), linear_solver)
    kkt = np.block([[Q, A.T], [A, np.zeros((m, m))]])
    exact = np.linalg.solve(kkt, np.concatenate([-c, r]))
    np.testing.assert_allclose(answer, exact[:n], atol=1e-8)
    np.testing.assert_allclose(raw.multipliers, exact[n:], atol=1e-7)
    # One Newton step, exact.
    assert len(raw.log["obj"]) == 2


@pytest.mark.parametrize("treatment", ["make_parameter", "make_constraint"])
def test_fixed_variables(treatment, linear_solver):
    """x1 = 2 is held; the others are its closed form."""
    b, x = variables("fixed", 3)
    b.bound("x", 0, lower=2.0, upper=2.0)
    b.cost("cost", {"x": x.T}, lambda x: ca.sumsqr(x) - x[1])
    equal(b, "sum", x.T, lambda x: x[0] + x[1] + x[2] - 4)
    answer, _ = found(b, [0, 0, 0], linear_solver, fixed_variable_treatment=treatment)
    np.testing.assert_allclose(answer, [2, 1.25, 0.75], atol=1e-7)


def test_a_variable_that_nothing_uses(linear_solver):
    """Its row and column of the matrix are empty."""
    b, x = variables("unused", 3)
    b.cost("cost", {"x": x[:2].T}, lambda x: ca.sumsqr(x - 1))
    equal(b, "row", x[:2].T, lambda x: x[0] - 2 * x[1])
    answer, _ = found(b, [0, 0, 7], linear_solver)
    np.testing.assert_allclose(answer[:2], [1.2, 0.6], atol=1e-7)


# ------------------------------------------------------------------ Hessians
def test_a_linear_program(linear_solver):
    """An empty Hessian; against HiGHS."""
    rng = np.random.default_rng(1)
    n, m = 15, 8
    A, c = rng.standard_normal((m, n)), rng.uniform(0.1, 1, n)
    r = A @ rng.uniform(0, 1, n)
    peer = scipy.optimize.linprog(c, A_eq=A, b_eq=r, bounds=(0, 3))
    b, x = variables("linear", n, lower=0.0, upper=3.0)
    b.cost("cost", {"x": x.T}, lambda x: ca.dot(c, x))
    equal(b, "rows", x.T, lambda x: ca.DM(A) @ x - ca.DM(r))
    answer, _ = found(b, np.ones(n), linear_solver)
    np.testing.assert_allclose(answer, peer.x, atol=1e-6)


def test_an_indefinite_start(linear_solver):
    """Newton's step leads to the maximum between the wells; inertia is corrected."""
    b, x = variables("wells", 6)
    b.cost("well", {"x": x}, lambda x: (x**2 - 1) ** 2)
    b.cost("spring", {"a": x[:-1], "b": x[1:]}, lambda a, b: (b - a) ** 2 / 10)
    answer, raw = found(b, np.full(6, 0.05), linear_solver)
    np.testing.assert_allclose(answer, 1.0, atol=1e-7)
    assert max(raw.log["regularization_size"][:3]) > 0


def test_an_indefinite_start_under_an_equation(linear_solver):
    """min x y on a circle: -1, twice; the start is near its saddle."""
    b, x = variables("saddle", 2)
    b.cost("product", {"x": x.T}, lambda x: x[0] * x[1])
    equal(b, "circle", x.T, lambda x: ca.sumsqr(x) - 2)
    answer, _ = found(b, [1.0, 0.9], linear_solver)
    assert answer[0] * answer[1] == pytest.approx(-1, abs=1e-7)


# ------------------------------------------------------------------ sizes
def test_two_thousand_variables(linear_solver):
    """A mass moves by 1 and stops, least effort: the least-norm solution of A w = r."""
    N, h = 667, 1 / 666
    b = ProgramBuilder("double integrator")
    state = b.add_variables("state", N, ["position", "speed"]).indices
    force = b.add_variables("force", N - 1, [""]).indices
    b.cost("effort", {"u": force}, lambda u: h * u**2 / 2)
    b.constraint(
        "motion",
        {"a": state[:-1], "b": state[1:], "u": force},
        lambda a, b, u: b - a - h * ca.vertcat((a[1] + b[1]) / 2, u),
        lower=0.0,
        upper=0.0,
    )
    b.bound("state", 0, lower=0.0, upper=0.0)
    b.bound("state", N - 1, lower=[1.0, 0.0], upper=[1.0, 0.0])
    program = b.build()
    assert program.num_variables == 2000
    raw = solved(program, np.zeros(2000), linear_solver)
    assert raw.status == "Solve_Succeeded"
    # Speeds after a force stay; positions take it for the time that is left.
    left = 1 - h * (np.arange(N - 1) + 0.5)
    A = h * np.vstack([left, np.ones(N - 1)])
    exact = A.T @ np.linalg.solve(A @ A.T, [1.0, 0.0])
    np.testing.assert_allclose(program.view(raw.x)["force"][:, 0], exact, atol=1e-6)


def test_a_ring_of_two_thousand(linear_solver):
    """A closed chain, as a periodic plan is: its first knot meets its last."""
    n = 2000
    b, x = variables("ring", n, lower=-20.0, upper=20.0)
    rng = np.random.default_rng(2)
    pull = rng.standard_normal(n)
    a, c, d = ca.SX.sym("a"), ca.SX.sym("c"), ca.SX.sym("d")
    block = Block("link", {"a": a, "c": c}, {"e": (c - a) ** 2 + a**2 / 50 - d * a}, d)
    b.add_cost(block, {"a": x, "c": np.roll(x, -1)}, data=pull[:, None])
    answer, _ = found(b, np.zeros(n), linear_solver)
    step = sp.identity(n, format="csr")
    step = sp.vstack([step[1:], step[:1]]) - step
    Q = 2 * step.T @ step + sp.identity(n) / 25
    exact = scipy.sparse.linalg.spsolve(Q.tocsc(), pull)
    assert np.abs(exact).max() < 20
    np.testing.assert_allclose(answer, exact, atol=1e-6)


def test_an_obstacle(linear_solver):
    """A string of 2001 knots over a parabola: straight, on it, straight.

    It leaves 0.3 - 2 (t - 1/2)^2 where the tangent goes through its fixed end.
    """
    n = 2001
    t = np.linspace(0, 1, n)
    ground = 0.3 - 2 * (t - 0.5) ** 2
    b, x = variables("string", n, lower=np.reshape(ground, (-1, 1)))
    b.bound("x", 0, lower=0.0, upper=0.0)
    b.bound("x", n - 1, lower=0.0, upper=0.0)
    b.cost("length", {"a": x[:-1], "b": x[1:]}, lambda a, b: (b - a) ** 2 * n)
    answer, _ = found(b, np.maximum(ground, 0.0) + 0.1, linear_solver)
    leaves = np.sqrt(0.1)
    slope = 4 * (0.5 - leaves)
    string = np.where(
        np.abs(t - 0.5) > 0.5 - leaves, slope * np.minimum(t, 1 - t), ground
    )
    np.testing.assert_allclose(answer, string, atol=1e-5)


# ------------------------------------------------------------------ ways of calling
def chain(n: int, goal: float):
    """A bounded chain of springs whose optimum is `goal` at every knot."""
    b, x = variables(f"chain {n}", n, lower=-5.0, upper=5.0)
    b.cost("spring", {"a": x[:-1], "b": x[1:]}, lambda a, b: (b - a) ** 2)
    b.cost("end", {"a": x[:1]}, lambda a: (a - goal) ** 2)
    b.constraint("room", {"a": x[:-1], "b": x[1:]}, lambda a, b: a * b, upper=4.0)
    return b.build()


def test_one_variable(linear_solver):
    b, x = variables("one", 1, lower=0.0)
    b.cost("cost", {"x": x}, lambda x: ca.exp(x) + x)
    answer, _ = found(b, [3.0], linear_solver)
    assert answer[0] == pytest.approx(0, abs=1e-7)


def test_a_solve_within_a_solve(linear_solver):
    """A monitor may solve other programs; neither answer suffers."""
    inner = []

    def monitor(iteration):
        if iteration.number % 2:
            n = 30 + iteration.number
            raw = solved(chain(n, -1.0), np.zeros(n), linear_solver)
            inner.append(raw.x)
        return False

    program = chain(50, 1.5)
    alone = solved(program, np.zeros(50), linear_solver)
    raw = solve_exact(
        program,
        np.zeros(50),
        options=TIGHT | {"linear_solver": linear_solver},
        monitor=monitor,
    )
    np.testing.assert_array_equal(raw.x, alone.x)
    assert len(inner) > 2
    for x in inner:
        np.testing.assert_allclose(x, -1.0, atol=1e-6)


def test_solves_side_by_side(linear_solver):
    """Threads solve programs of their own."""
    sizes = [20, 31, 42, 53, 64, 75]
    programs = [chain(n, 1.0) for n in sizes]
    with ThreadPoolExecutor(3) as pool:
        answers = pool.map(
            lambda p: solved(p, p.pack({"x": 0.0}), linear_solver), programs
        )
        for raw, n in zip(answers, sizes):
            assert raw.status == "Solve_Succeeded"
            np.testing.assert_allclose(raw.x, np.ones(n), atol=1e-6)


def test_after_a_solve_that_was_stopped(linear_solver):
    """What an interrupted solve leaves behind does not reach the next."""

    def stop(iteration):
        if iteration.number == 2:
            raise KeyboardInterrupt
        return False

    options = TIGHT | {"linear_solver": linear_solver}
    raw = solve_exact(chain(40, 1.0), np.zeros(40), options=options, monitor=stop)
    assert raw.status == "interrupted"
    raw = solved(chain(41, 1.0), np.zeros(41), linear_solver)
    np.testing.assert_allclose(raw.x, 1.0, atol=1e-6)


def test_steps_to_where_nothing_is_defined(linear_solver):
    """A first step leads to a negative logarithm; it is shortened."""
    b, x = variables("logarithms", 20)
    b.cost("cost", {"x": x}, lambda x: x - ca.log(x))
    answer, _ = found(b, np.full(20, 5.0), linear_solver)
    np.testing.assert_allclose(answer, 1.0, atol=1e-7)


def test_sizes_of_all_kinds(linear_solver):
    """Variables and rows from 1e-6 to 1e6, scaled by their groups."""
    size = 10.0 ** np.arange(-6, 7)
    labels = [f"e{i}" for i in range(13)]
    b = ProgramBuilder("sizes")
    x = b.add_variables("x", 1, labels, scale=size, lower=-2 * size).indices
    b.cost("cost", {"x": x}, lambda x: ca.sumsqr(x / size - 1))
    rows = b.add_rows("half", 1, labels, scale=size, upper=size / 2)
    symbol = ca.SX.sym("x", 13)
    block = Block("half", {"x": symbol}, {"half": symbol})
    b.add_term(block, {"x": x}, {"half": rows.indices})
    raw = solved(b.build(), np.zeros(13), linear_solver)
    assert raw.status == "Solve_Succeeded"
    np.testing.assert_allclose(raw.x / size, 0.5, atol=1e-7)
