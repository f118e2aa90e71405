"""Dense QPs: agreement with Clarabel, conditions of an optimum, broken solvers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydrake.solvers import ClarabelSolver, MathematicalProgram

from drakebots.core.errors import DrakebotsWarning, NoSolution
from drakebots.trajopt.solvers import qp, solve_qp


def random_qp(seed: int, rows: int, n: int = 6):
    """H, g, limits, A, low, high of a feasible QP."""
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, n))
    H = H @ H.T + 0.1 * np.eye(n)
    g, A = rng.normal(size=n), rng.normal(size=(rows, n))
    low = -rng.uniform(0, 1, rows)
    high = np.full(rows, np.inf)
    return H, g, (-np.full(n, 0.5), np.full(n, 0.5)), A, low, high


@given(st.integers(0, 2**31), st.integers(0, 12))
def test_dense_qp_agrees_with_clarabel(seed, rows):
    H, g, limits, A, low, high = random_qp(seed, rows)
    n = len(g)
    at, multipliers = solve_qp(H, g, limits, A, low, high)
    prog = MathematicalProgram()
    x = prog.NewContinuousVariables(n)
    prog.AddQuadraticCost(H, g, x)
    prog.AddBoundingBoxConstraint(*limits, x)
    if rows:
        prog.AddLinearConstraint(A, low, high, x)
    other = ClarabelSolver().Solve(prog)
    assert other.is_success()
    cost = 0.5 * at @ H @ at + g @ at
    assert cost == pytest.approx(other.get_optimal_cost(), rel=1e-6, abs=1e-7)
    assert np.abs(at).max() <= 0.5 + 1e-9
    assert (A @ at - low).min(initial=0) > -1e-9
    # Stationary, with multipliers of the right signs at active rows only.
    full = np.concatenate([np.eye(n), A])
    assert np.allclose(H @ at + g + full.T @ multipliers, 0, atol=1e-7)


def test_dense_qp_says_infeasible():
    A = np.array([[1.0, 0], [-1, 0]])
    limits = np.full(2, -9.0), np.full(2, 9.0)
    with pytest.raises(NoSolution, match="infeasible"):
        solve_qp(np.eye(2), np.zeros(2), limits, A, np.ones(2), np.full(2, np.inf))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x, dual: (x + 1e-5, dual),
        lambda x, dual: (1.00001 * x, dual),
        lambda x, dual: (x, dual + 1e-5),
        lambda x, dual: (x * np.nan, dual),
        lambda x, dual: (x, dual * np.nan),
    ],
)
def test_a_broken_solver_is_caught_and_the_next_one_asked(wrong, monkeypatch):
    problem = random_qp(3, 8)
    exact, multipliers = solve_qp(*problem)
    assert np.abs(multipliers).max() > 0.1
    plain, other = qp._daqp, qp._clarabel
    monkeypatch.setattr(qp, "_daqp", lambda *a: (*wrong(*plain(*a)[:2]), ""))
    reported = "QP of 6 unknowns and 8 rows: the answer of daqp misses"
    with pytest.warns(DrakebotsWarning, match=reported + ".*clarabel goes on"):
        x, dual = solve_qp(*problem)
    np.testing.assert_allclose(x, exact, atol=1e-8)
    np.testing.assert_allclose(dual, multipliers, atol=1e-7)
    monkeypatch.setattr(qp, "_clarabel", lambda *a: (*wrong(*other(*a)[:2]), ""))
    with (
        pytest.warns(DrakebotsWarning),
        pytest.raises(NoSolution, match="answer of clarabel misses"),
    ):
        solve_qp(*problem)


def test_what_one_solver_calls_infeasible_another_may_solve(monkeypatch):
    problem = random_qp(3, 8)
    exact, _ = solve_qp(*problem)
    monkeypatch.setattr(qp, "_daqp", lambda H, g, *a: (0 * g, 0 * g, "infeasible"))
    x, _ = solve_qp(*problem)
    np.testing.assert_allclose(x, exact, atol=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_large_answers_are_not_called_infeasible(seed, monkeypatch):
    """Of a whole-body controller's form, with a foot in the air: 0 is feasible. At
    1e-12 alone, below the rounding of x in its units, no point was found."""
    nothing = "infeasible"
    monkeypatch.setattr(qp, "_clarabel", lambda H, g, *a: (0 * g, 0 * g, nothing))
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(18, 24))
    H, g = J.T @ J + 1e-6 * np.eye(24), -J.T @ rng.normal(size=18)
    most = np.r_[np.full(12, 2.0), np.full(9, 50.0), np.zeros(3)]
    least = np.where(np.arange(24) % 3 == 2, 0.0, -most)
    least[:12] = -2.0
    foot = np.column_stack([[1, 1, -1, -1], [1, -1, 1, -1], np.full(4, -0.56)])
    A = np.hstack([np.zeros((16, 12)), np.kron(np.eye(4), foot)])
    x, dual = solve_qp(H, g, (least, most), A, np.full(16, -np.inf), np.zeros(16))
    assert max((x - most).max(), (least - x).max(), (A @ x).max()) < 1e-6
    left = H @ x + g + dual[:24] + A.T @ dual[24:]
    assert np.abs(left).max() < 1e-6 * np.abs(g).max()
