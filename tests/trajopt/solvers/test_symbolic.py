"""Drake's symbolic costs and constraints, translated to CasADi."""

from itertools import pairwise

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydrake import symbolic as sym
from pydrake.solvers import MathematicalProgram, SnoptSolver

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.program import assemble
from drakebots.trajopt.solvers import ExactIpoptSolver, lower
from drakebots.trajopt.solvers.read_back import ReadBack, expressions_of, to_casadi
from tests.helpers.lowered_programs import chain

SOLVER = ExactIpoptSolver()
VARIABLES = [sym.Variable(name) for name in "xyz"]

# Each is defined, and smooth but on a set of measure zero, wherever its arguments are.
_UNARY = (
    sym.sin,
    sym.cos,
    sym.tanh,
    sym.atan,
    sym.abs,
    lambda e: sym.exp(sym.tanh(e)),
    lambda e: sym.log(1 + e**2),
    lambda e: sym.sqrt(1 + e**2),
    lambda e: sym.asin(e / sym.sqrt(2 + e**2)),
    lambda e: sym.acos(e / sym.sqrt(2 + e**2)),
    lambda e: sym.sinh(sym.sin(e)) + sym.cosh(sym.cos(e)),
    lambda e: sym.tan(sym.sin(e)),
    lambda e: e**3 - 2 * e**2,
    lambda e: sym.pow(1 + e**2, -1.5),
)
_BINARY = (
    lambda a, b: a + b,
    lambda a, b: a - 2 * b,
    lambda a, b: a * b,
    lambda a, b: a / (2 + sym.sin(b)),
    lambda a, b: sym.atan2(a, 3 + b**2),
    sym.min,
    sym.max,
    lambda a, b: sym.pow(1 + a**2, sym.sin(b)),
    lambda a, b: sym.if_then_else(sym.logical_and(a > b, b <= 1), a, a * b),
    lambda a, b: sym.if_then_else(sym.logical_or(a < b, b >= 1), b - a, 2 * b),
    lambda a, b: sym.if_then_else(sym.logical_not(a > b), a**2, sym.cos(b)),
)
_EXPRESSIONS = st.recursive(
    st.sampled_from([sym.Expression(v) for v in VARIABLES])
    | st.floats(-2, 2).map(sym.Expression),
    lambda inner: (
        st.builds(lambda f, e: f(e), st.sampled_from(_UNARY), inner)
        | st.builds(lambda f, a, b: f(a, b), st.sampled_from(_BINARY), inner, inner)
    ),
    max_leaves=8,
)
_POINTS = st.lists(st.floats(-2, 2), min_size=3, max_size=3)


def translated(expression):
    """Functions of (3,): value, gradient and Hessian of the translation."""
    w = ca.SX.sym("w", 3)
    r = to_casadi([expression], {v.get_id(): w[i] for i, v in enumerate(VARIABLES)})
    H, g = ca.hessian(r, w)
    return ca.Function("r", [w], [r]), ca.Function("gH", [w], [g, H])


@given(_EXPRESSIONS, _POINTS)
@settings(max_examples=60)
def test_values_and_derivatives(expression, point):
    """Values are Drake's; derivatives are central differences."""
    value, derivatives = translated(expression)
    x, e = np.array(point), 1e-5
    drakes = expression.Evaluate(dict(zip(VARIABLES, point)))
    assert float(value(x)) == pytest.approx(drakes, rel=1e-12, abs=1e-12)
    gradient, hessian = (np.array(a) for a in derivatives(x))
    scale = 1 + np.abs(hessian).max()
    functions = (value, lambda x: derivatives(x)[0], lambda x: derivatives(x)[1])
    for function, derivative, exact in (
        (*functions[:2], gradient.T),
        (*functions[1:], hessian),
    ):
        ahead, behind = ([x + s * d for d in e * np.eye(3)] for s in (1, -1))
        middle, right, left = (
            np.array([np.array(function(y)).ravel() for y in points]).T
            for points in ([x], ahead, behind)
        )
        near = [np.array(derivative(y)).reshape(exact.shape) for y in ahead + behind]
        jump = np.abs(right - 2 * middle + left).max() / e
        if max(jump, np.abs(near - exact).max()) > 1e-3 * scale:
            return  # a kink or a jump is nearer than a step
        slope = (right - left) / (2 * e)
        np.testing.assert_allclose(exact, slope, atol=1e-3 * scale)


def test_steps_and_numbers():
    x, w = VARIABLES[0], ca.SX.sym("w")
    given = [sym.floor(x), sym.ceil(x), sym.Expression(3.0), x, 2.5]
    found = ca.Function("f", [w], [to_casadi(given, {x.get_id(): w})])(1.2)
    np.testing.assert_allclose(np.array(found).ravel(), [1, 2, 3, 1.2, 2.5])


def test_refusals():
    x, symbols = VARIABLES[0], {VARIABLES[0].get_id(): ca.SX.sym("w")}
    with pytest.raises(InvalidInput, match="variable y is not among the program's"):
        to_casadi([x * VARIABLES[1]], symbols)
    with pytest.raises(InvalidInput, match=r"UninterpretedFunction in f\(x\) has no"):
        to_casadi([sym.uninterpreted_function("f", [x])], symbols)


def test_symbolic_program_agrees_with_snopt():
    """Rosenbrock in a ring, with knots that share their block."""
    prog = MathematicalProgram()
    x = prog.NewContinuousVariables(4, "x")
    for a, b in pairwise(x):
        prog.AddCost(100 * (b - a**2) ** 2 + (1 - a) ** 2)
        prog.AddConstraint(sym.exp(a) * sym.sin(b) <= 1.2)
    # A set of formulas is one binding.
    prog.AddConstraint(sym.logical_and(x[0] ** 3 >= 0.1, x[0] * x[1] ** 2 <= 0.6))
    exact, other = (
        SOLVER.Solve(prog, np.full(4, 0.5)),
        SnoptSolver().Solve(prog, np.full(4, 0.5)),
    )
    assert exact.is_success() and other.is_success()
    cost = other.get_optimal_cost()
    assert exact.get_optimal_cost() == pytest.approx(cost, rel=1e-5)
    np.testing.assert_allclose(exact.get_x_val(), other.get_x_val(), atol=1e-4)
    assert not exact.GetInfeasibleConstraintNames(prog, 1e-5)
    # Newton's steps: few iterations.
    assert len(exact.get_solver_details().log["obj"]) < 30
    blocks = [t.block.name for t in ReadBack(prog).program.terms]
    assert len(blocks) == 2, "three knots share one block"
    np.testing.assert_allclose(
        exact.GetDualSolution(prog.generic_constraints()[-1]),
        other.GetDualSolution(prog.generic_constraints()[-1]),
        atol=1e-3,
    )


def test_polynomial_costs():
    """Drake hides their coefficients; they are recovered to rounding."""
    prog, rng = MathematicalProgram(), np.random.default_rng(1)
    x = prog.NewContinuousVariables(4, "x")
    given = 100 * (x[1] - x[0] ** 2) ** 2 + 0.3 * x[2] * x[3] ** 3 * x[0] - 7 + x[3]
    binding = prog.AddCost(given)
    (found,) = expressions_of(binding)
    for point in rng.uniform(-5, 5, (5, 4)):
        env = dict(zip(x, point))
        assert found.Evaluate(env) == pytest.approx(given.Evaluate(env), rel=1e-10)
    assert "pow(x(0), 3)" not in str(found), "what is zero stays zero"
    y = prog.NewContinuousVariables(9, "y")
    prog.AddCost(sum(y) ** 4)
    with pytest.raises(InvalidInput, match=r"of 9 variables .* ExpressionCost"):
        SOLVER.Solve(prog)


@pytest.mark.parametrize("scale", [1e-4, 1e-3])
def test_polynomial_costs_of_coefficients_far_apart(scale):
    """One that rounding hides near the origin counts where its variable is large."""
    prog = MathematicalProgram()
    x = prog.NewContinuousVariables(2, "x")
    prog.AddCost((1e3 * x[0] - 1) ** 2 + (scale * x[1] - 1) ** 4)
    with pytest.raises(InvalidInput, match=r"too far apart.* ExpressionCost"):
        SOLVER.Solve(prog)


def test_hessian_of_what_a_user_adds():
    """The assembled Hessian of a lowered program with more, by differences."""
    lowered = lower(chain())
    prog, x = lowered.prog, lowered.x
    y = prog.NewContinuousVariables(1, "y")[0]
    prog.AddCost(sym.sin(x[0] * y) ** 2)
    prog.AddConstraint(sym.exp(x[1] - y) * x[2] >= 0.1)
    prog.AddLinearComplementarityConstraint(
        np.array([[2.0, 1], [1, 2]]), np.array([-1.0, 0.5]), x[4:6]
    )
    read = ReadBack(prog)
    program = read.program
    assert program.num_rows == lowered.program.num_rows + 1 + 6
    assert read.pairs.shape == (2, 3)
    functions = assemble(program)
    rng = np.random.default_rng(0)
    n, m = program.num_variables, program.num_rows
    y, mu, e = rng.uniform(-1, 1, n), rng.normal(size=m), 1e-6

    def slope(y):
        x = program.x_scale * y
        rows = program.jacobian(x).T @ (mu / program.row_scale)
        return np.array(functions.gradient(y, [])[1]).ravel() + program.x_scale * rows

    numeric = [(slope(y + d) - slope(y - d)) / (2 * e) for d in e * np.eye(n)]
    H = np.triu(np.array(functions.hessian(y, [], 1.0, mu)))
    np.testing.assert_allclose(H + np.triu(H, 1).T, numeric, atol=1e-5)


def test_linear_complementarity_program():
    """Drake's IPOPT refuses it; here its answer is Lemke's, known by hand."""
    prog = MathematicalProgram()
    z = prog.NewContinuousVariables(2, "z")
    M, q = np.array([[2.0, 1], [1, 2]]), np.array([-5.0, -6.0])
    prog.AddLinearComplementarityConstraint(M, q, z)
    result = SOLVER.Solve(prog, np.ones(2))
    assert result.is_success()
    np.testing.assert_allclose(result.GetSolution(z), [4 / 3, 7 / 3], atol=1e-6)
    prog.AddCost(sym.exp(z[0]))
    assert SOLVER.Solve(prog, np.ones(2)).is_success()
