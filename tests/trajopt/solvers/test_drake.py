"""SNOPT and IPOPT of Drake on lowered programs."""

import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest

from drakebots.core.errors import DrakebotsError, InvalidInput, UnknownName
from drakebots.trajopt.solvers import (
    drake_solvers,
    ipopt_exact,
    solve_drake,
    solve_exact,
)
from drakebots.trajopt.solvers.drake_solvers import SOLVERS
from tests.helpers.lowered_programs import chain, hopper

START = np.full(10, 0.3)


def worst(program, x):
    return max(value for value, _ in program.violations(x).values())


@pytest.fixture(scope="module")
def long_hop(tmp_path_factory):
    """A program that takes both solvers a while."""
    return hopper(tmp_path_factory.mktemp("hopper"), knots=60)


@pytest.mark.parametrize("solver", SOLVERS)
def test_same_optimum_as_exact(solver):
    program = chain(scale=0.5)
    exact = solve_exact(program, START)
    raw = solve_drake(program, START, solver=solver)
    assert raw.success
    np.testing.assert_allclose(raw.x, exact.x, atol=1e-3)
    assert program.objective(raw.x) == pytest.approx(program.objective(exact.x), 1e-4)
    assert worst(program, raw.x) < 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_hopper(solver, tmp_path):
    program, guess = hopper(tmp_path, knots=4)
    exact = solve_exact(program, guess)
    raw = solve_drake(program, 1.001 * exact.x, solver=solver)
    assert raw.success and worst(program, raw.x) < 1e-6
    assert program.objective(raw.x) == pytest.approx(program.objective(exact.x), 1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_log(solver):
    program, seen = chain(), []
    raw = solve_drake(
        program, START, solver=solver, monitor=lambda i: bool(seen.append(i))
    )
    log = raw.log
    assert {"number", "objective", "infeasibility", "optimality"} <= set(log)
    assert len({len(column) for column in log.values()}) == 1
    assert log["number"] == list(range(len(log["number"])))
    assert log["objective"][-1] == pytest.approx(program.objective(raw.x), 1e-4)
    assert log["infeasibility"][-1] < 1e-6 and log["optimality"][-1] < 1e-3
    assert [i.number for i in seen] == list(range(len(seen)))
    assert any(np.array_equal(i.x, raw.x) for i in seen)
    assert raw.seconds["total"] > 0


def test_print_file_is_kept_and_appended(tmp_path):
    """Only the last run's table counts."""
    path = tmp_path / "snopt.txt"
    first, second = (
        solve_drake(chain(), START, options={"Print file": str(path)}) for _ in "ab"
    )
    assert path.read_text().count("Major Minors") >= 2
    assert first.log == second.log and first.log["number"][0] == 0


def test_log_of_linear_programs():
    """Without nonlinear constraints the table has other columns."""
    text = """
   Itns Major Minors    Step   nObj  Feasible  Optimal      Objective     nS
      2     0      2               1           2.0E+00  5.0000000E+00
      3     1      1 1.0E+00       2          (1.0E-07)  1.0000000E+00      1 _
"""
    log = drake_solvers.read_log(text.replace("Feasible", "        "))
    assert log["objective"] == [5, 1] and log["optimality"] == [2, 1e-7]
    assert log["step"] == [0, 1] and log["infeasibility"] == [0, 0]
    assert drake_solvers.read_log("nothing") == {}


@pytest.mark.parametrize(
    "solver, options, message",
    [
        ("snopt", {"Major iteration limt": 3}, "did you mean 'Major iterations limit'"),
        ("snopt", {"Foo": 3}, "unknown option of SNOPT 'Foo'"),
        ("snopt", {"Major iterations limit": "a"}, "within -inf..inf, got 'a'"),
        ("snopt", {"Scale option": None}, "within -inf..inf, got None"),
        ("snopt", {"Major step limit": np.nan}, "within -inf..inf, got nan"),
        ("snopt", {"QPSolver": 1}, "must be a text, got 1"),
        ("snopt", {"QPSolver": "blah"}, "QPSolver=blah"),
        ("snopt", {"Total real workspace": 3}, "smaller than the minimum"),
        ("ipopt", {"max_itr": 3}, "max_itr"),
        ("ipopt", {"linear_solver": "ma27"}, "ma27"),
        ("ipopt", {"max_iter": [3]}, "must be a number or a text"),
    ],
)
def test_options_are_checked(solver, options, message):
    with pytest.raises(DrakebotsError, match=message) as error:
        solve_drake(chain(), START, solver=solver, options=options)
    assert "\n" not in str(error.value)


def test_every_snopt_option_is_snopts():
    """Drake's SNOPT takes each name on our list, alone."""
    values = {"Print file": None, "QPSolver": "CG", "Solution": "no"}
    values |= {"Sticky parameters": "no", "System information": "no"}
    usual = {"Time limit": 100, "Derivative level": 3, "Derivative option": 1}
    usual |= {f"Total {kind} workspace": 600 for kind in ("real", "integer")}
    for name in drake_solvers.OPTIONS:
        value = values.get(
            name, "" if name in drake_solvers.TEXTS else usual.get(name, 1)
        )
        if value is not None:
            raw = solve_drake(
                chain(2), START[:4], options={"Major iterations limit": 1, name: value}
            )
            assert raw.status.startswith("SNOPT"), name


def test_options_have_effect():
    few = solve_drake(chain(), START, options={"major  Iterations limit": np.int64(3)})
    assert "major iteration limit" in few.status and not few.success
    assert few.log["number"][-1] == 3
    raw = solve_drake(chain(), START, solver="ipopt", options={"max_iter": 3})
    assert not raw.success and len(raw.log["number"]) == 4


@pytest.mark.parametrize("solver", SOLVERS)
def test_time_limit_gives_the_best(solver, long_hop, monkeypatch):
    program, guess = long_hop
    seen = []
    # Every look takes two hundred seconds, so that the solver comes to sixteen.
    clock = SimpleNamespace(monotonic=lambda: 200.0 * len(seen))
    for module in (drake_solvers, ipopt_exact):
        monkeypatch.setattr(module, "time", clock)
    raw = solve_drake(
        program,
        guess,
        solver=solver,
        time_limit=3000.0,
        monitor=lambda i: bool(seen.append(i)),
    )
    assert len(seen) == 16
    assert raw.status == "Time_Limit" and not raw.success
    best = min(seen, key=lambda i: (max(i.infeasibility, 1e-6), i.objective))
    np.testing.assert_array_equal(raw.x, best.x)
    assert best.infeasibility < seen[0].infeasibility
    assert len(raw.log["number"]) > 1


def test_time_limit_within_subproblems(long_hop):
    """SNOPT's own clock stops it where nobody is called."""
    program, guess = long_hop
    raw = solve_drake(program, guess, options={"Time limit": 0.3}, time_limit=300)
    assert raw.status == "Time_Limit"
    assert raw.x.shape == guess.shape


@pytest.mark.parametrize("solver", SOLVERS)
def test_monitor_stops(solver):
    raw = solve_drake(chain(), START, solver=solver, monitor=lambda i: i.number >= 4)
    assert raw.status == "User_Requested_Stop" and not raw.success

    def broken(iteration):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        solve_drake(chain(), START, solver=solver, monitor=broken)


@pytest.mark.parametrize("solver", SOLVERS)
def test_interrupt(solver, long_hop):
    program, guess = long_hop

    def press(iteration):
        if iteration.number == 3:
            os.kill(os.getpid(), signal.SIGINT)

    raw = solve_drake(program, guess, solver=solver, time_limit=300, monitor=press)
    assert raw.status == "interrupted"
    assert raw.x.shape == guess.shape and np.isfinite(raw.x).all()


@pytest.mark.long
def test_more_workspace_is_tried(monkeypatch):
    """A run out of storage is repeated with four times as much."""
    sizes = []
    original = drake_solvers._set

    def spy(options, solver, name, value):
        if name == "Total real workspace":
            sizes.append(value)
        original(options, solver, name, value)

    monkeypatch.setattr(drake_solvers, "_set", spy)
    monkeypatch.setattr(drake_solvers, "STORAGE", (1,))
    raw = solve_drake(chain(), START, options={"Total real workspace": 1000.0})
    assert raw.success and sizes == [1000, 4000, 16000, 64000]


def test_refusals():
    with pytest.raises(UnknownName, match="snopt"):
        solve_drake(chain(), START, solver="snop")
    with pytest.raises(InvalidInput, match="10 variables"):
        solve_drake(chain(), START[:3])
    with pytest.raises(InvalidInput, match="is nan"):
        solve_drake(chain(), START * np.nan)
