"""Blocks and programs: every derivative against finite differences or CasADi's
own, sums over rows, names, and bad input."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.trajopt.program import (
    Block,
    ProgramBuilder,
    assemble,
    machine,
)


def chain_block(name="link"):
    a, b, d = ca.SX.sym("a", 2), ca.SX.sym("b", 2), ca.SX.sym("d")
    rows = {
        "first": ca.vertcat(a[0] * b[1] - ca.sin(a[1]), b[0] - d * a[0] ** 2),
        "second": ca.exp(a[0] * b[0]),
    }
    return Block(name, {"a": a, "b": b}, rows, d)


def chain_program(count=5):
    b = ProgramBuilder("chain")
    x = b.add_variables("x", count, ["p", "q"], scale=[2.0, 0.5])
    rows = b.add_rows("link", count - 1, ["r", "s"], lower=0, upper=0, scale=3.0)
    shared = b.add_rows("shared", 1, [""], upper=50.0)
    b.add_term(
        chain_block(),
        {"a": x.indices[:-1], "b": x.indices[1:]},
        {"first": rows.indices, "second": shared.indices},
        signs={"first": -1.0},
        data=np.linspace(0.5, 1.5, count - 1)[:, None],
    )
    a = ca.SX.sym("a", 2)
    b.add_cost(Block("norm", {"a": a}, {"norm": ca.dot(a, a) ** 2}), {"a": x.indices})
    return b.build()


@pytest.fixture(scope="module")
def program():
    return chain_program()


def test_jacobian_agrees_with_central_differences(program):
    x = np.random.default_rng(0).standard_normal(program.num_variables)
    J = program.jacobian(x).toarray()
    step = 1e-6
    for i in range(len(x)):
        e = step * np.eye(len(x))[i]
        column = (program.values(x + e) - program.values(x - e)) / (2 * step)
        assert np.allclose(J[:, i], column, atol=1e-7)


def test_assembled_functions_agree_with_casadis_own_derivatives(program):
    functions = assemble(program)
    n, m = program.num_variables, program.num_rows
    random = np.random.default_rng(1)
    y, lam = random.standard_normal(n), random.standard_normal(m)
    X = ca.MX.sym("X", n)
    f, g = functions.objective(X, []), functions.rows(X, [])
    peer = ca.Function(
        "peer",
        [X],
        [
            ca.gradient(f, X),
            ca.jacobian(g, X),
            ca.hessian(1.7 * f + ca.dot(ca.DM(lam), g), X)[0],
        ],
    )
    gradient, jacobian, hessian = (np.array(o) for o in peer(y))
    assert np.allclose(np.array(functions.gradient(y, [])[1]), gradient, atol=1e-12)
    assert np.allclose(np.array(functions.jacobian(y, [])[1]), jacobian, atol=1e-12)
    ours = np.array(functions.hessian(y, [], 1.7, lam))
    assert np.allclose(ours, np.triu(hessian), atol=1e-12)
    x = y * program.x_scale
    assert np.allclose(
        np.array(functions.rows(y, [])).ravel(), program.values(x) / program.row_scale
    )
    assert float(functions.objective(y, [])) == pytest.approx(program.objective(x))


def test_shared_rows_sum_over_all_uses(program):
    x = np.zeros(program.num_variables)
    assert program.values(x)[-1] == pytest.approx(4.0)  # exp(0) of four links


def test_rows_of_no_interest_are_left_out():
    b = ProgramBuilder("partial")
    x = b.add_variables("x", 3, ["p", "q"])
    rows = b.add_rows("link", 1, ["r", "s"], lower=0, upper=0)
    where = np.vstack([rows.indices, np.full((1, 2), -1)])
    b.add_term(
        chain_block("partial_link"),
        {"a": x.indices[:-1], "b": x.indices[1:]},
        {"first": where, "second": np.full((2, 1), -1)},
        data=np.ones((2, 1)),
    )
    program = b.build()
    x = np.arange(6.0)
    assert program.values(x) == pytest.approx([0 * 3 - np.sin(1), 2 - 0])
    functions = assemble(program)
    lam = np.array([1.0, -2.0])
    jacobian = np.array(functions.jacobian(x, [])[1])
    assert np.allclose(jacobian, program.jacobian(x).toarray())
    hessian = np.array(functions.hessian(x, [], 0.0, lam))
    assert not hessian[4:, 4:].any()


def test_names_of_entries_and_residuals(program):
    assert program.variables["x"].label(3) == "x[1].q"
    assert program.rows["shared"].label(8) == "shared"
    worst = program.residuals(np.full(program.num_variables, 2.0))
    assert next(iter(worst)) == "shared"
    assert "chain: 10 variables, 9 rows" in str(program)


def test_pack_and_view_are_inverse(program):
    x = np.arange(10.0)
    assert (program.pack(program.view(x)) == x).all()


@pytest.mark.parametrize(
    ("parts", "error", "words"),
    [
        ({"y": 0.0}, UnknownName, "x"),
        ({"x": np.zeros((3, 2))}, InvalidInput, "shape"),
        ({"x": np.nan}, InvalidInput, "not finite"),
    ],
)
def test_pack_refuses(program, parts, error, words):
    with pytest.raises(error, match=words):
        program.pack(parts)


def test_bounds_that_exclude_each_other_are_named():
    b = ProgramBuilder("impossible")
    b.add_variables("x", 3, ["p", "q"], lower=0.0, upper=1.0)
    b.bound("x", 1, lower=2.0, labels=["q"])
    with pytest.raises(InvalidInput, match=r"x\[1\]\.q.*relax"):
        b.build()


@pytest.mark.parametrize(
    ("add", "words"),
    [
        ({"labels": ["p"]}, "c has 2 entries, and 1 rows or labels"),
        ({"scale": -1.0}, "scale of c must be > 0, got -1"),
        ({"upper": np.zeros(3)}, "upper of c must be one number or 4x2, got 3"),
        ({"inputs": {"x": [[6, 8]]}}, "whole numbers of 0 to 7"),
        ({"inputs": {"x": [[0, -1]]}}, "whole numbers of 0 to 7"),
        ({"inputs": {"x": [[0.0, 0.7]]}}, "whole numbers of 0 to 7"),
    ],
)
def test_constraints_that_do_not_fit_are_refused(add, words):
    """Rows of too few labels were summed, a position of 0.7 was that of 0."""
    b = ProgramBuilder("four knots")
    inputs = {"x": b.add_variables("x", 4, ["p", "q"]).indices}
    with pytest.raises(InvalidInput, match=words):
        b.constraint("c", **{"inputs": inputs, "function": lambda x: x, **add})


def test_a_constant_is_a_cost_and_a_row():
    b = ProgramBuilder("constant")
    inputs = {"x": b.add_variables("x", 4, ["p", "q"]).indices}
    b.cost("e", inputs, lambda x: 3.0)
    b.constraint("c", inputs, lambda x: 0.5)
    program = b.build()
    assert program.objective(np.zeros(8)) == 12.0
    np.testing.assert_array_equal(program.values(np.zeros(8)), np.full(4, 0.5))


def test_a_block_with_a_stray_symbol_is_refused():
    a, c = ca.SX.sym("a"), ca.SX.sym("stray")
    with pytest.raises(InvalidInput, match="stray"):
        Block("bad", {"a": a}, {"r": a * c})


@given(st.text(max_size=30))
@example("shank_lf__1_")
@example("null")
@example("3_jac")
@example("link:0,0,-0.2")
@example("\u8db3")
def test_a_block_may_have_any_name(name):
    """Links of published robots are called what CasADi takes for no name."""
    block = chain_block(name)
    r = block.value_function(np.ones(4), 0.5)
    assert np.isfinite(np.array(r)).all() and block.name == name
    assert block.jacobian_function(np.ones(4), 0.5)[1].numel() > 0


needs_compiler = pytest.mark.skipif(
    machine.compiler() is None, reason="needs a C compiler"
)


def _same_by_machine(f: ca.Function, columns: np.ndarray, patch) -> None:
    """Machine code of one column, and of any number at once, gives what CasADi does."""
    patch.setenv("DRAKEBOTS_COMPILE", "1")  # other tests of this file interpret
    patch.setattr(machine, "WORTH_IT", 0)
    (made,) = machine.compiled([f], ["a test"])
    assert made.has_function(f"{f.name()}_wide")
    one = [np.array(made(column)) for column in columns.T]
    np.testing.assert_array_equal(np.hstack(one), np.array(f.map(len(one))(columns)))
    for count in range(1, len(one) + 1):
        at = columns[:, :count]
        several = np.array(machine.many(made, count)(at))
        np.testing.assert_array_equal(several, np.hstack(one[:count]))


@needs_compiler
@pytest.mark.parametrize("length", [600, 4200], ids=["whole", "in basic blocks"])
def test_machine_code_gives_the_same_to_the_bit(length, tmp_path, monkeypatch):
    """Code that is long enough is divided, for GCC's sake."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    x = w = ca.SX.sym("w", 20)
    rows = []
    for n in range(length // 20):
        x = ca.sin(x) * ca.vertcat(x[1:], x[0]) + n * w
        rows.append(ca.sum1(x))
    f = ca.Function("chain", [w], [ca.vertcat(*rows)])
    at = np.random.default_rng(0).uniform(-1, 1, (20, 9))
    _same_by_machine(f, at, monkeypatch)
    assert len(list(tmp_path.rglob("*.so"))) == 1
    assert (" SPLIT(7)" in machine._code(f)) == (f.n_instructions() > 20_000)


@needs_compiler
def test_every_operation_is_the_same_by_machine_code(tmp_path, monkeypatch):
    """CasADi's own words for them, of numbers within and outside of their domains."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    w = ca.SX.sym("w", 3)
    x, y, z = ca.vertsplit(w)
    of_one = "sqrt sin cos tan exp log asin acos atan sinh cosh tanh asinh acosh atanh "
    of_one += "floor ceil fabs sign erf log1p expm1 logic_not"
    of_two = "fmin fmax atan2 copysign fmod hypot remainder logic_and logic_or power"
    rows = [getattr(ca, name)(x) for name in of_one.split()]
    rows += [getattr(ca, name)(x, y) for name in of_two.split()]
    rows += [x + y, x - y, x * y, x / y, -x, 2 * x, x * x, 1 / x, x**2.5, x < y]
    rows += [x <= y]
    rows += [x == z, x != z, ca.if_else(x < y, z, 1e-300), x + np.inf, 0 * x]
    f = ca.Function("operations", [w], [ca.vertcat(*rows)])
    random = np.random.default_rng(1)
    at = random.choice(
        [0.0, -0.0, 0.3, -0.7, 1.0, 5.5, -1e300, np.inf, np.nan], (3, 40)
    )
    at[:, :20] = random.normal(size=(3, 20))
    _same_by_machine(f, at, monkeypatch)


@needs_compiler
def test_what_has_no_machine_code_is_interpreted(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DRAKEBOTS_COMPILE", "1")
    monkeypatch.setattr(machine, "WORTH_IT", 0)
    x = ca.SX.sym("x")
    f = ca.Function("inverse", [x], [ca.erfinv(x)])
    assert machine.compiled([f], ["a test"]) == [f]
    assert not list(tmp_path.rglob("*.so"))
