"""IPOPT with exact Hessians behind MathematicalProgram."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from pydrake.solvers import (
    CommonSolverOption,
    IpoptSolver,
    MathematicalProgram,
    MathematicalProgramResult,
    SnoptSolver,
    SolutionResult,
    SolverInterface,
    SolverOptions,
)
from pydrake.symbolic import sin

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.solvers import ExactIpoptSolver, lower
from drakebots.trajopt.solvers.exact_solver import CALLABLE_BY_DRAKE
from tests.helpers.lowered_programs import chain, hopper

START = np.full(10, 0.3)
SOLVER = ExactIpoptSolver()


def agree(prog, start, *, rel=1e-4, atol=1e-3):
    """Exact IPOPT and SNOPT find the same; the exact result."""
    exact, other = SOLVER.Solve(prog, start), SnoptSolver().Solve(prog, start)
    assert exact.is_success() and other.is_success()
    cost = other.get_optimal_cost()
    assert exact.get_optimal_cost() == pytest.approx(cost, rel=rel, abs=1e-7)
    np.testing.assert_allclose(exact.get_x_val(), other.get_x_val(), atol=atol)
    assert not exact.GetInfeasibleConstraintNames(prog, 1e-5)
    return exact


def test_chain_has_one_optimum():
    lowered = lower(chain(scale=0.5))
    result = agree(lowered.prog, START)
    ipopt = IpoptSolver().Solve(lowered.prog, START)
    assert ipopt.get_optimal_cost() == pytest.approx(
        result.get_optimal_cost(), rel=1e-4
    )
    np.testing.assert_allclose(result.GetSolution(lowered.x), result.get_x_val())
    assert result.get_optimal_cost() == pytest.approx(
        lowered.program.objective(result.get_x_val()), rel=1e-12
    )
    details = result.get_solver_details()
    assert details.status == "Solve_Succeeded" and len(details.log["obj"]) > 3
    assert result.get_solver_id().name() == "ExactIpopt"


def test_hopper(tmp_path):
    """All three find one optimum near the one they start at."""
    program, guess = hopper(tmp_path, knots=4)
    lowered = lower(program)
    first = SOLVER.Solve(lowered.prog, guess)
    near = first.get_x_val() * 1.001
    costs = [
        s.Solve(lowered.prog, near).get_optimal_cost()
        for s in (SOLVER, SnoptSolver(), IpoptSolver())
    ]
    np.testing.assert_allclose(costs, first.get_optimal_cost(), rtol=1e-3)
    again = SOLVER.Solve(lowered.prog.Clone(), guess)
    np.testing.assert_allclose(again.get_x_val(), first.get_x_val())
    worst = max(v for v, _ in program.violations(first.get_x_val()).values())
    assert worst < 1e-6


def test_what_users_add():
    """Bounds, linear and quadratic costs and constraints, a new variable."""
    lowered = lower(chain(scale=0.5))
    prog, x = lowered.prog, lowered.view()["x"]
    plain = SOLVER.Solve(prog, START).GetSolution(x)
    y = prog.NewContinuousVariables(2, "y")
    prog.AddBoundingBoxConstraint(0.2, 0.4, x[2, 0])
    prog.AddLinearConstraint(x[0, 0] + x[1, 1] + y[0] <= 0.9)
    prog.AddLinearConstraint(x[0, 1] - y[1] == 0.1)
    prog.AddLinearCost(0.3 * x[4, 1] + 7)
    prog.AddQuadraticErrorCost(np.array([[2.0, 0.5], [0.5, 1]]), [1, -1], y)
    prog.AddQuadraticCost(x[3, 0] ** 2 - x[3, 0] * y[0] + y[1] ** 2, is_convex=False)
    prog.AddQuadraticConstraint(np.eye(2), np.zeros(2), -np.inf, 0.5, y)
    result = agree(prog, np.append(START, [0, 0]))
    found = result.GetSolution(x)
    assert 0.2 - 1e-6 <= found[2, 0] <= 0.4 + 1e-6
    assert np.abs(found - plain).max() > 0.1
    assert len(result.GetSolution(y)) == 2
    # Exact: IPOPT's steps are Newton's, so that few are needed.
    assert len(result.get_solver_details().log["obj"]) < 40


def test_removed_bindings_and_moved_bounds():
    lowered = lower(chain())
    prog = lowered.prog
    for k in range(5):
        evaluator = lowered.bindings[f"circle[{k}]"].evaluator()
        evaluator.UpdateUpperBound([0.2])
    tight = agree(prog, START)
    for k in range(5):
        prog.RemoveConstraint(lowered.bindings[f"circle[{k}]"])
    loose = agree(prog, START)
    assert loose.get_optimal_cost() < 0.5 * tight.get_optimal_cost()
    prog.RemoveCost(prog.generic_costs()[2])
    assert agree(prog, START, atol=2.0).get_optimal_cost() < 1


def test_duals_are_snopts():
    lowered = lower(chain(scale=0.5))
    prog = lowered.prog
    prog.AddLinearConstraint(lowered.x[0] + lowered.x[2] <= 0.9)
    exact, other = SOLVER.Solve(prog, START), SnoptSolver().Solve(prog, START)
    bindings = (*prog.generic_constraints(), *prog.linear_constraints())
    for binding in bindings:
        ours, theirs = exact.GetDualSolution(binding), other.GetDualSolution(binding)
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert any(np.abs(exact.GetDualSolution(b)).max() > 0.01 for b in bindings)
    with pytest.raises(InvalidInput, match="no dual solution of 'bounds of x"):
        exact.GetDualSolution(prog.bounding_box_constraints()[0])


def test_without_lowering():
    """A quadratic program has all it takes."""
    prog = MathematicalProgram()
    x = prog.NewContinuousVariables(2, "x")
    prog.AddQuadraticErrorCost(np.eye(2), [1, 2], x)
    assert SOLVER.Solve(prog).GetSolution(x) == pytest.approx([1, 2])
    prog.AddLinearConstraint(x[0] + x[1] <= 1)
    assert SOLVER.Solve(prog).GetSolution(x) == pytest.approx([0, 1], abs=1e-6)


@pytest.mark.skipif(not CALLABLE_BY_DRAKE, reason="this Drake would abort Python")
def test_drake_calls_it():
    """Through the C++ interface, into a plain result."""
    prog = lower(chain()).prog
    direct = SOLVER.Solve(prog, START)
    result = MathematicalProgramResult()
    SolverInterface.Solve(SOLVER, prog, START, None, result)
    assert result.is_success()
    assert result.get_optimal_cost() == direct.get_optimal_cost()
    np.testing.assert_array_equal(result.get_x_val(), direct.get_x_val())
    assert SolverInterface.AreProgramAttributesSatisfied(SOLVER, prog)
    assert SOLVER.available() and SOLVER.enabled()


@pytest.mark.skipif(CALLABLE_BY_DRAKE, reason="this Drake may call it")
def test_drake_refuses_what_would_abort_it():
    prog = lower(chain()).prog
    result = MathematicalProgramResult()
    with pytest.raises(TypeError, match="incompatible function arguments"):
        SolverInterface.Solve(SOLVER, prog, START, None, result)
    assert SOLVER.AreProgramAttributesSatisfied(prog)
    assert SOLVER.available() and SOLVER.enabled()


def test_options_and_guess():
    lowered = lower(chain())
    prog = lowered.prog
    prog.SetSolverOption(ExactIpoptSolver.id(), "max_iter", 2)
    result = SOLVER.Solve(prog, START)
    assert result.get_solution_result() == SolutionResult.kIterationLimit
    assert np.isfinite(result.get_x_val()).all()
    options = SolverOptions()
    options.SetOption(ExactIpoptSolver.id(), "max_iter", 100)
    prog.SetInitialGuessForAllVariables(START)
    assert SOLVER.Solve(prog, solver_options=options).is_success()
    options.SetOption(ExactIpoptSolver.id(), "max_itr", 100)
    with pytest.raises(InvalidInput, match="max_itr"):
        SOLVER.Solve(prog, START, options)
    with pytest.raises(InvalidInput, match="3 values, the program has 10"):
        SOLVER.Solve(prog, START[:3])


def test_print_file(tmp_path):
    options = SolverOptions()
    path = tmp_path / "ipopt.txt"
    options.SetOption(CommonSolverOption.kPrintFileName, str(path))
    assert SOLVER.Solve(lower(chain()).prog, START, options).is_success()
    assert "inf_pr" in path.read_text()


def test_visualization_callback():
    lowered, seen = lower(chain()), []
    lowered.prog.AddVisualizationCallback(
        lambda x: seen.append(x.copy()), lowered.view()["x"][1]
    )
    result = SOLVER.Solve(lowered.prog, START)
    assert len(seen) > 3
    np.testing.assert_allclose(seen[-1], result.get_x_val()[2:4], atol=1e-3)


def test_infeasible():
    lowered = lower(chain())
    lowered.prog.AddLinearConstraint(lowered.x[0] + lowered.x[1] >= 5)
    result = SOLVER.Solve(lowered.prog, START)
    assert result.get_solution_result() == SolutionResult.kInfeasibleConstraints
    assert result.GetInfeasibleConstraintNames(lowered.prog)


def test_scaled_variables_and_terms_of_every_kind():
    """Whether decision variables are x or x / x_scale, the answer is the same."""
    chained = chain()
    (group,) = chained.variables.values()
    scale = np.linspace(0.5, 4.0, len(group.labels))  # chain() has labels a, b
    program = replace(chained, variables={group.name: replace(group, scale=scale)})
    found = []
    for scaled in (False, True):
        lowered = lower(program, scaled=scaled)
        prog, x = lowered.prog, lowered.x * lowered.unit
        prog.AddLinearConstraint(x[0] + 2 * x[1] <= 0.9)
        prog.AddQuadraticCost(0.1 * (x[2] - 1) ** 2)
        prog.AddLinearCost(0.05 * x[3])
        prog.AddCost(sin(x[4]) ** 2)
        prog.AddConstraint(x[1] * x[2] <= 0.5)
        prog.AddBoundingBoxConstraint(-1, 1 / lowered.unit[5], lowered.x[5])
        result = SOLVER.Solve(prog, lowered.values(START))
        assert result.is_success()
        found.append([result.get_optimal_cost(), *lowered.physical(result.get_x_val())])
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_refusals():
    def refused(change, match):
        lowered = lower(chain())
        change(lowered.prog, lowered.x)
        text = SOLVER.ExplainUnsatisfiedProgramAttributes(lowered.prog)
        assert not SOLVER.AreProgramAttributesSatisfied(lowered.prog)
        with pytest.raises(InvalidInput, match=match) as error:
            SOLVER.Solve(lowered.prog, START)
        assert str(error.value) == text and "\n" not in text

    def cube(x):
        return [x[0] ** 3]

    refused(
        lambda p, x: p.AddConstraint(cube, [0], [1], x[:1], description="my cube"),
        "^my cube has no block",
    )
    refused(
        lambda p, x: p.AddCost(lambda x: x[0] ** 3, x[3:4]),
        r"a binding of x\[1\].b has",
    )
    refused(
        lambda p, x: p.AddLorentzConeConstraint(np.eye(3), np.zeros(3), x[:3]),
        "has no block",
    )
    refused(lambda p, x: p.NewBinaryVariables(1, "z"), "not continuous")
    refused(
        lambda p, x: p.AddConstraint(p.generic_constraints()[0].evaluator(), x[4:6]),
        r"circle\[0\] was moved to other variables",
    )
    refused(
        lambda p, x: p.AddConstraint(p.generic_constraints()[0]),
        r"circle\[0\] is in the program twice",
    )


@pytest.mark.long
def test_a_solve_says_nothing_by_itself():
    """CasADi warns where IPOPT is loaded twice, into what a command prints."""
    program = """
from pydrake.solvers import MathematicalProgram
from drakebots.trajopt.solvers import ExactIpoptSolver, is_installed
prog = MathematicalProgram()
x = prog.NewContinuousVariables(2, "x")
prog.AddConstraint(x[0] ** 2 + x[1] == 1)
prog.AddCost((x[0] - 2) ** 2 + x[1] ** 2)
assert is_installed("exact")
assert ExactIpoptSolver().Solve(prog).is_success()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
