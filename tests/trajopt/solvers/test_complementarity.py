"""Programs with complementarity constraints, given as MathematicalPrograms."""

import time
from itertools import product

import numpy as np
import pytest
from pydrake import symbolic as sym
from pydrake.solvers import (
    ClarabelSolver,
    IpoptSolver,
    MathematicalProgram,
    SolutionResult,
    SolverOptions,
    UnrevisedLemkeSolver,
)

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.solvers import (
    ComplementaritySolver,
    add_complementarity,
    lower,
)
from tests.helpers.lowered_programs import chain
from tests.helpers.scripts import last_json, load_script

handbook_bilevel = load_script("published.handbook_bilevel")
macmpec = load_script("published.macmpec")

pytestmark = pytest.mark.usefixtures("interpreted")

SAMPLE = (
    *macmpec.PROBLEMS[::4],
    *macmpec.NOT_STATIONARY,
    *(p for p in macmpec.MORE if p.name in ("bilin", "dempe", "scale4", "qpec1")),
    *(p for p in handbook_bilevel.PROBLEMS if p.name in ("ex9.1.1", "ex9.2.2")),
)


@pytest.mark.parametrize("problem", SAMPLE, ids=lambda p: p.name)
def test_published(problem):
    """The printed optimum, also where no penalty is exact (ralph1, scholtes4)."""
    prog = problem.mathematical_program()
    result = ComplementaritySolver().Solve(prog)
    assert problem.solved_by(prog, result)
    rows = np.concatenate(
        [
            b.evaluator().Eval(result.GetSolution(b.variables()))
            for b in prog.generic_constraints()
            if b.evaluator().num_constraints() == 3
        ]
    ).reshape(-1, 3)
    # One side of every pair is zero, not only its product.
    assert np.abs(rows[:, :2]).min(axis=1).max() < 1e-7
    held = result.get_solver_details().pairs
    assert np.abs(rows[np.arange(len(held)), held]).max() < 1e-7


@pytest.mark.slow
def test_bench_mpcc(capsys):
    """Nine of ten of the collection, and more than Drake's SNOPT solves."""
    found = load_script("mpcc").main([])
    assert last_json(capsys.readouterr().out) == found
    assert found["complementarity_problems"] >= 40
    assert found["complementarity_solved_of_40"] >= 36
    assert found["complementarity_solved_ours"] > found["complementarity_solved_snopt"]


def quadratic(seed, n=4):
    """A strictly convex QP over z and x with 0 <= z _|_ M z + N x + q >= 0."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(2 * n, 2 * n)), rng.normal(size=(n, n))
    Q, M = A @ A.T + np.eye(2 * n), B @ B.T + 0.5 * np.eye(n)
    return Q, rng.normal(size=2 * n), M, rng.normal(size=(n, n)), rng.normal(size=n)


@pytest.mark.parametrize("seed", range(4))
def test_beside_all_branches(seed):
    """The answer is its branch's optimum, and no branch that it lies on is better.

    A peer: each of the 2^n branches is a convex QP, solved by Drake's Clarabel.
    """
    Q, c, M, N, q = quadratic(seed)
    n = len(q)

    def program():
        prog = MathematicalProgram()
        v = prog.NewContinuousVariables(2 * n, "v")
        prog.AddQuadraticCost(Q, c, v)
        # Drake's expressions are NaNs to the processor, of which NumPy warns.
        with np.errstate(invalid="ignore"):
            return prog, v, v[:n], M @ v[:n] + N @ v[n:] + q

    prog, v, z, w = program()
    add_complementarity(prog, z, w, "contact")
    result = ComplementaritySolver().Solve(prog)
    assert result.is_success()
    found, details = result.GetSolution(v), result.get_solver_details()
    at_w = M @ found[:n] + N @ found[n:] + q
    costs = {}
    for side in product((0, 1), repeat=n):
        prog, v, z, w = program()
        for i, which in enumerate(side):
            zero, free = (z[i], w[i]) if which == 0 else (w[i], z[i])
            prog.AddLinearConstraint(zero == 0)
            prog.AddLinearConstraint(free >= 0)
        branch = ClarabelSolver().Solve(prog)
        if branch.is_success():
            costs[side] = branch.get_optimal_cost()
    ours = result.get_optimal_cost()
    assert ours == pytest.approx(costs[tuple(details.pairs)], abs=1e-5)
    near = [
        cost
        for side, cost in costs.items()
        if all((found[i], at_w[i])[k] < 1e-6 for i, k in enumerate(side))
    ]
    assert ours <= min(near) + 1e-5
    assert ours >= min(costs.values()) - 1e-5


@pytest.mark.parametrize("guess", [(0.0, 0.0), (2.0, 0.0), (1.0, 1.0)])
def test_equations_that_agree_may_outnumber_the_variables(guess):
    """Of x + y = 2, written three times, with 0 <= x _|_ y >= 0 there are two points;
    from everywhere the lower one is found, to 1e-8."""
    prog = MathematicalProgram()
    x, y = v = prog.NewContinuousVariables(2, "v")
    prog.AddQuadraticCost((x - 1) ** 2 + (y - 2) ** 2)
    for factor in (1.0, 2.0, 3.0):
        prog.AddLinearEqualityConstraint(factor * (x + y), 2 * factor)
    add_complementarity(prog, [x], [y], "axes")
    result = ComplementaritySolver().Solve(prog, np.array(guess))
    assert result.is_success(), result.get_solver_details().status
    assert result.get_optimal_cost() == pytest.approx(1.0, abs=1e-7)
    np.testing.assert_allclose(result.GetSolution(v), [0, 2], atol=1e-8)


def test_drakes_own_constraint():
    """A LinearComplementarityConstraint alone has Lemke's answer; with a cost, ours."""
    prog, rng = MathematicalProgram(), np.random.default_rng(0)
    B = rng.normal(size=(5, 5))
    M, q = B @ B.T + np.eye(5), rng.normal(size=5)
    z = prog.NewContinuousVariables(5, "z")
    prog.AddLinearComplementarityConstraint(M, q, z)
    lemke = UnrevisedLemkeSolver().Solve(prog)
    result = ComplementaritySolver().Solve(prog)
    assert result.is_success() and lemke.is_success()
    np.testing.assert_allclose(result.GetSolution(z), lemke.GetSolution(z), atol=1e-7)
    # The answer is unique, so that a cost changes nothing.
    prog.AddCost(sym.exp(z[0]) + z[1] ** 2)
    assert not IpoptSolver().AreProgramAttributesSatisfied(prog)
    again = ComplementaritySolver().Solve(prog)
    np.testing.assert_allclose(again.GetSolution(z), lemke.GetSolution(z), atol=1e-7)


def test_on_a_lowered_program():
    """Pairs join blocks; the answer beats or equals every branch of the one pair."""
    lowered, start = lower(chain()), np.full(10, 0.3)
    x, prog = lowered.view()["x"], lowered.prog
    add_complementarity(prog, [1.2 - x[0, 0]], [x[4, 1] + 0.5], "ends")
    result = ComplementaritySolver().Solve(prog, start)
    assert result.is_success()
    found = result.GetSolution(x)
    assert abs((1.2 - found[0, 0]) * (found[4, 1] + 0.5)) < 1e-7
    assert result.get_solver_id().name() == "Complementarity"
    held = result.get_solver_details().pairs
    assert held.shape == (1,) and held[0] in (0, 1)


def test_what_fails_keeps_its_best_point():
    prog = MathematicalProgram()
    x = prog.NewContinuousVariables(2, "x")
    add_complementarity(prog, x[:1], x[1:], "wall")
    prog.AddLinearConstraint(x[0] + x[1] <= -1).evaluator().set_description("pull")
    result = ComplementaritySolver().Solve(prog, np.array([1.0, 2.0]))
    assert not result.is_success()
    assert result.get_solution_result() == SolutionResult.kInfeasibleConstraints
    assert np.isfinite(result.get_x_val()).all()
    details = result.get_solver_details()
    names = "".join(details.residuals)
    assert "pull" in names and "wall" in names and "worst: " in details.status
    assert "\n" not in details.status


def test_stopped_solves_are_marked():
    problem = next(p for p in macmpec.PROBLEMS if p.name == "gnash19m")
    prog, calls = problem.mathematical_program(), []

    def interrupt(x):
        calls.append(x)
        if len(calls) > 5:
            raise KeyboardInterrupt

    prog.AddVisualizationCallback(interrupt, prog.decision_variables())
    result = ComplementaritySolver().Solve(prog)
    assert not result.is_success() and len(calls) == 6
    assert result.get_solver_details().status.startswith("interrupted")
    assert np.isfinite(result.get_x_val()).all()
    prog = problem.mathematical_program()
    prog.SetSolverOption(ComplementaritySolver.id(), "max_iter", 1)
    assert not ComplementaritySolver().Solve(prog).is_success()


def test_a_time_limit_is_that_of_all_programs():
    """None of a dozen programs takes as long as the limit, and together they do."""
    problem = next(p for p in macmpec.PROBLEMS if p.name == "gnash19m")
    prog, calls = problem.mathematical_program(), []

    def wait(x):
        calls.append(time.perf_counter())
        time.sleep(0.02)

    prog.AddVisualizationCallback(wait, prog.decision_variables())
    options = SolverOptions()
    options.SetOption(ComplementaritySolver.id(), "max_wall_time", 0.6)
    result = ComplementaritySolver().Solve(prog, None, options)
    assert calls[-1] - calls[0] < 0.6
    assert result.get_solution_result() == SolutionResult.kIterationLimit
    assert result.get_solver_details().status.startswith("time limit after")
    assert np.isfinite(result.get_x_val()).all()


@pytest.mark.long
def test_an_answer_outlasts_the_time_limit():
    """Once there is an optimum, the limit ends only the search for a lower one."""
    problem = next(p for p in macmpec.PROBLEMS if p.name == "gnash19m")
    calls, slow = [], np.inf

    def wait(x):
        calls.append(x)
        if len(calls) == slow:
            time.sleep(5.0)

    def solved(limit):
        prog = problem.mathematical_program()
        prog.AddVisualizationCallback(wait, prog.decision_variables())
        prog.SetSolverOption(ComplementaritySolver.id(), "max_wall_time", limit)
        return ComplementaritySolver().Solve(prog)

    whole = solved(60.0)
    assert "time limit" not in whole.get_solver_details().status
    slow, calls[:] = int(0.8 * len(calls)), []
    late = solved(4.0)
    assert late.is_success()
    assert "time limit ended the search" in late.get_solver_details().status
    assert max(late.get_solver_details().residuals.values(), default=0) <= 1e-6
    assert late.get_optimal_cost() >= whole.get_optimal_cost() - 1e-6


def test_refusals():
    prog = MathematicalProgram()
    x = prog.NewContinuousVariables(2, "x")
    with pytest.raises(InvalidInput, match="no complementary pairs: use add_compl"):
        ComplementaritySolver().Solve(prog)
    with pytest.raises(
        InvalidInput, match="complementarity feet: 2 expressions beside"
    ):
        add_complementarity(prog, x, x[:1], "feet")
    with pytest.raises(InvalidInput, match="tolerance"):
        ComplementaritySolver(tolerance=-1.0)
    with pytest.raises(InvalidInput, match="weight"):
        ComplementaritySolver(weights=(1.0, float("nan")))
    with pytest.raises(InvalidInput, match="weights: give one or more"):
        ComplementaritySolver(weights=())
    add_complementarity(prog, x[:1], x[1:])
    prog.AddCost(lambda x: x[0] ** 3, x[:1])
    with pytest.raises(InvalidInput, match="has no block"):
        ComplementaritySolver().Solve(prog)
