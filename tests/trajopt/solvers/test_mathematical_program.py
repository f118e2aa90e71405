"""Lowered programs: values, derivatives, sparsity, names and bounds."""

import gc
import weakref

import casadi as ca
import numpy as np
import pytest
from pydrake.autodiffutils import ExtractGradient, ExtractValue, InitializeAutoDiff
from pydrake.solvers import MathematicalProgramResult, SnoptSolver

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.program import Block, ProgramBuilder
from drakebots.trajopt.solvers import Compute, lower
from drakebots.trajopt.solvers.mathematical_program import key_of
from tests.helpers.lowered_programs import chain, hopper


@pytest.fixture(scope="module", params=["chain", "hopper"])
def case(request, tmp_path_factory):
    """A program and a point where nothing is special."""
    if request.param == "chain":
        program, x = chain(scale=0.5), np.full(10, 0.3)
    else:
        program, x = hopper(tmp_path_factory.mktemp("hopper"))
    return program, x + 0.01 * np.random.default_rng(0).normal(size=len(x))


def rows_of(lowered):
    """(binding, its rows in the program) of all but bounding boxes."""
    for group in lowered.program.rows.values():
        for knot, rows in enumerate(group.indices):
            which = f"[{knot}]" if group.count > 1 else ""
            one = group.labels[0] if len(group.labels) == 1 else ""
            name = f"{group.name}{which}" + (f".{one}" if one else "")
            yield lowered.bindings[name], rows


def derivative(evaluator, z, seed=None):
    """dy/dz of an evaluator by AutoDiffXd, through any seed."""
    n = len(z)
    seed = np.eye(n) if seed is None else seed
    y = evaluator.Eval(InitializeAutoDiff(z, seed).ravel())
    gradient = ExtractGradient(y)
    return ExtractValue(y).ravel(), gradient if gradient.size else np.zeros((len(y), n))


@pytest.mark.parametrize("scaled", [False, True])
def test_values_and_jacobians_are_the_programs(case, scaled):
    program, x = case
    lowered = lower(program, scaled=scaled)
    z = lowered.values(x)
    np.testing.assert_allclose(lowered.physical(z), x)
    exact_g, exact_J = program.values(x), program.jacobian(x).toarray()
    if scaled:
        exact_J = exact_J * program.x_scale
    found = np.zeros(program.num_rows)
    for binding, rows in rows_of(lowered):
        e = binding.evaluator()
        index = lowered.prog.FindDecisionVariableIndices(binding.variables())
        scale = program.row_scale[rows]
        value, slope = derivative(e, z[index])
        # Linear constraints leave their offsets to their bounds.
        low, high = program.lower[rows] / scale, program.upper[rows] / scale
        offset = np.zeros(len(rows))
        for ours, theirs in ((low, e.lower_bound()), (high, e.upper_bound())):
            finite = np.isfinite(ours)
            np.testing.assert_array_equal(ours[~finite], theirs[~finite])
            offset[finite] = ours[finite] - theirs[finite]
        np.testing.assert_allclose((value + offset) * scale, exact_g[rows], atol=1e-12)
        np.testing.assert_allclose(e.Eval(z[index]), value, atol=1e-14)
        J = np.zeros((len(rows), len(x)))
        J[:, index] = slope * scale[:, None]
        np.testing.assert_allclose(J, exact_J[rows], atol=1e-9)
        found[rows] += 1
    assert (found == 1).all()
    costs = [lowered.prog.EvalBinding(b, z) for b in lowered.prog.GetAllCosts()]
    assert np.sum(costs) == pytest.approx(program.objective(x), rel=1e-12)


def test_patterns_cover_the_derivatives(case):
    program, x = case
    lowered, rng = lower(program), np.random.default_rng(1)
    nonlinear = (*lowered.prog.generic_constraints(), *lowered.prog.generic_costs())
    assert nonlinear
    for binding in nonlinear:
        evaluator = binding.evaluator()
        index = lowered.prog.FindDecisionVariableIndices(binding.variables())
        pattern = evaluator.gradient_sparsity_pattern()
        assert pattern is not None
        inside = np.zeros((evaluator.num_outputs(), len(index)), bool)
        inside[tuple(np.transpose(pattern))] = True
        _, slope = derivative(evaluator, x[index])
        assert not slope[~inside].any()
        # SNOPT scales its seed; a dense one must do too.
        for seed in (np.diag(rng.random(len(index))), rng.random((len(index), 3))):
            _, chained = derivative(evaluator, x[index], seed)
            np.testing.assert_allclose(chained, slope @ seed, atol=1e-10)


def test_affine_rows_are_linear(tmp_path):
    lowered = lower(chain())
    names = {b.evaluator().get_description() for b in lowered.prog.linear_constraints()}
    assert names == {f"order[{k}]" for k in range(4)}
    program, _ = hopper(tmp_path)
    prog = lower(program).prog
    names = {b.evaluator().get_description() for b in prog.linear_constraints()}
    assert names == {f"cone[{k}].foot" for k in range(5)}
    assert len(prog.linear_costs()) == 5  # the slack


def test_neighbours_share_an_evaluation(case, monkeypatch):
    """Each use of a block is computed once a point, for all bindings."""
    program, x = case
    lowered, calls = lower(program), []
    original = Compute.jacobian
    monkeypatch.setattr(
        Compute,
        "jacobian",
        lambda self, w, d: calls.append(self.block.name) or original(self, w, d),
    )
    for binding in lowered.prog.generic_constraints():
        index = lowered.prog.FindDecisionVariableIndices(binding.variables())
        derivative(binding.evaluator(), x[index])
    for term in program.terms:
        assert calls.count(term.block.name) <= sum(
            t.count for t in program.terms if t.block.name == term.block.name
        )


def test_names_and_bounds(case):
    program, x = case
    lowered = lower(program)
    names = [v.get_name() for v in lowered.prog.decision_variables()]
    group = next(iter(program.variables.values()))
    assert names[0] == group.label(0) and len(set(names)) == len(names)
    low, high = np.full(len(x), -np.inf), np.full(len(x), np.inf)
    for binding in lowered.prog.bounding_box_constraints():
        index = lowered.prog.FindDecisionVariableIndices(binding.variables())
        low[index] = binding.evaluator().lower_bound()
        high[index] = binding.evaluator().upper_bound()
    np.testing.assert_array_equal(low, program.x_lower)
    np.testing.assert_array_equal(high, program.x_upper)
    scaling = lowered.prog.GetVariableScaling()
    assert [scaling.get(i, 1.0) for i in range(len(x))] == list(program.x_scale)
    assert str(lowered.prog)


def test_infeasible_names():
    program = chain()
    lowered = lower(program)
    result = SnoptSolver().Solve(lowered.prog, np.full(10, 0.3))
    assert isinstance(result, MathematicalProgramResult) and result.is_success()
    x = np.full(10, 0.3)
    x[4:6] = 2.0, 3.5  # knot 2
    result.set_x_val(x)
    names = result.GetInfeasibleConstraintNames(lowered.prog)
    assert {n.split(":")[0] for n in names} == {
        "circle[2][0]",
        "sum[1] (p, q)[1]",
        "sum[2] (p, q)[1]",
        "order[1][0]",
        "order[2][0]",
        "bounds of x[2][1]",
    }


def test_view_and_keys():
    lowered = lower(chain())
    view = lowered.view()
    assert view["x"].shape == (5, 2)
    assert view["x"][3, 1].get_name() == "x[3].b"
    key = key_of(lowered.bindings["circle[2]"].evaluator())
    np.testing.assert_array_equal(key.rows, [2])
    assert key_of(lowered.bindings["order[2]"].evaluator()) is None


def test_nothing_is_kept_alive():
    lowered = lower(chain())
    key = key_of(lowered.bindings["circle[2]"].evaluator())
    watch = weakref.ref(key.origin)
    del lowered, key
    gc.collect()
    assert watch() is None


def test_repeated_variable():
    """A block that sees one variable twice."""
    builder = ProgramBuilder("twice")
    x = builder.add_variables("x", 1, ("a",))
    a, b = ca.SX.sym("a"), ca.SX.sym("b")
    rows = builder.add_rows("r", 1, [""])
    builder.add_term(
        Block("product", {"a": a, "b": b}, {"r": a * a * b}),
        {"a": x.indices, "b": x.indices},
        {"r": rows.indices},
    )
    lowered = lower(builder.build())
    value, slope = derivative(lowered.bindings["r"].evaluator(), np.array([2.0]))
    assert (value[0], slope[0, 0]) == (8, 12)


def test_a_row_without_blocks():
    builder = ProgramBuilder("empty")
    builder.add_variables("x", 1, ("a",))
    builder.add_rows("r", 2, [""], upper=1.0)
    assert not lower(builder.build()).prog.GetAllConstraints()
    builder.add_rows("s", 2, [""], lower=1.0)
    with pytest.raises(InvalidInput, match=r"s\[0\]: no block adds to it"):
        lower(builder.build())


def test_quadratic_costs_are_quadratic():
    """Those of their expression: an absolute value has a kink that its second
    derivative does not show."""
    b = ProgramBuilder("costs")
    x = b.add_variables("x", 3, ["a", "b"], scale=(2.0, 0.5)).indices
    other = x[:, ::-1].copy()
    b.cost("bowl", {"x": x, "y": other}, lambda x, y: ca.sumsqr(x - 3) + x[0] * y[1])
    b.cost("kink", {"x": x}, lambda x: ca.fabs(x[0]))
    b.cost("saddle", {"x": x}, lambda x: x[0] * x[1] - 2 * x[0] + 1)
    program = b.build()
    at, lowered = np.linspace(-1, 2, 6), lower(program, scaled=True)
    prog = lowered.prog
    found = {c.evaluator().get_description(): c for c in prog.quadratic_costs()}
    assert len(found) == 6 and len(prog.generic_costs()) == 3
    assert not found["cost saddle[0]"].evaluator().is_convex()
    assert found["cost bowl[1]"].evaluator().is_convex()
    costs = [prog.EvalBinding(c, lowered.values(at)) for c in prog.GetAllCosts()]
    assert sum(costs)[0] == pytest.approx(program.objective(at), rel=1e-14)


def test_merged_rows_are_the_same_rows(case):
    """Rows of a knot that are not affine share a binding, and nothing else changes."""
    program, x = case
    apart, merged = (lower(program, scaled=True, merged=m) for m in (False, True))
    assert len(merged.prog.generic_constraints()) <= len(
        apart.prog.generic_constraints()
    )
    z, found = apart.values(x), np.full(program.num_rows, np.nan)
    for binding in merged.prog.generic_constraints():
        e = binding.evaluator()
        rows = key_of(e).rows
        index = merged.prog.FindDecisionVariableIndices(binding.variables())
        y, slope = derivative(e, z[index])
        scale = program.row_scale[rows]
        np.testing.assert_allclose(y * scale, program.values(x)[rows], atol=1e-12)
        J = np.zeros((len(rows), len(x)))
        J[:, index] = slope * scale[:, None] / program.x_scale[index]
        np.testing.assert_allclose(J, program.jacobian(x).toarray()[rows], atol=1e-9)
        np.testing.assert_array_equal(e.lower_bound(), program.lower[rows] / scale)
        assert np.isnan(found[rows]).all()
        found[rows] = y
    linear = [len(p.prog.linear_constraints()) for p in (apart, merged)]
    assert linear[0] == linear[1]


def test_rows_of_a_knot_share_a_binding():
    b = ProgramBuilder("knots")
    x = b.add_variables("x", 3, ["a", "b"]).indices
    b.constraint("circle", {"x": x}, lambda x: ca.sumsqr(x), upper=1.0, scale=2.0)
    b.constraint("product", {"x": x}, lambda x: x[0] * x[1], lower=0.1)
    b.constraint("sum", {"x": x}, lambda x: x[0] + x[1], lower=0.0)
    prog = lower(b.build(), merged=True).prog
    names = [c.evaluator().get_description() for c in prog.generic_constraints()]
    assert names == [f"circle[{k}].0, product[{k}].0" for k in range(3)]
    assert len(prog.linear_constraints()) == 3
    result = SnoptSolver().Solve(prog, np.full(6, 0.5))
    assert result.is_success()
