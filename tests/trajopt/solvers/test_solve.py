"""Solving: verdicts, best iterates, limits, checkpoints."""

import os
import signal
import sys
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from drakebots.core.errors import (
    DrakebotsWarning,
    FileProblem,
    InvalidInput,
    NoSolution,
    UnknownName,
)
from drakebots.core.run import Verdict
from drakebots.trajopt.program import (
    Block,
    ProgramBuilder,
    load_checkpoint,
    save_checkpoint,
)
from drakebots.trajopt.solvers import solve


def rosenbrock(count=6, radius=None):
    b = ProgramBuilder("rosenbrock")
    x = b.add_variables("x", count, [""], lower=-5, upper=5)
    a, c = ca.SX.sym("a"), ca.SX.sym("c")
    value = 100 * (c - a**2) ** 2 + (1 - a) ** 2
    block = Block("banana", {"a": a, "c": c}, {"banana": value})
    b.add_cost(block, {"a": x.indices[:-1], "c": x.indices[1:]})
    norm = ca.SX.sym("n", count)
    rows = b.add_rows("norm", 1, [""], upper=radius or np.inf, lower=0)
    b.add_term(
        Block("norm", {"n": norm}, {"norm": ca.dot(norm, norm)}),
        {"n": x.indices.reshape(1, -1)},
        {"norm": rows.indices},
    )
    return b.build()


def impossible():
    """x^2 <= -1: no bounds exclude each other, no x satisfies it."""
    b = ProgramBuilder("impossible")
    x = b.add_variables("x", 1, [""])
    a = ca.SX.sym("a")
    rows = b.add_rows("square", 1, [""], upper=-1.0)
    block = Block("square", {"a": a}, {"square": a**2})
    b.add_term(block, {"a": x.indices}, {"square": rows.indices})
    b.add_cost(Block("cost", {"a": a}, {"cost": a**2}), {"a": x.indices})
    return b.build()


def test_the_optimum_is_found_with_exact_hessians():
    solution = solve(rosenbrock(), np.zeros(6))
    assert solution.ok, solution.summary()
    assert np.allclose(solution.x, 1.0, atol=1e-6)
    assert solution.objective < 1e-12
    assert solution.seconds["total"] > 0
    assert len(solution.log["obj"]) == solution.iterations


def test_a_constraint_is_kept():
    solution = solve(rosenbrock(radius=3.0), np.zeros(6))
    assert solution.ok
    assert solution.x @ solution.x == pytest.approx(3.0, abs=1e-6)


def test_what_cannot_be_solved_fails_by_name():
    solution = solve(impossible(), [2.0])
    assert solution.verdict is Verdict.FAILED
    assert next(iter(solution.residuals)) == "square"
    with pytest.raises(NoSolution, match="square"):
        solution.require()


@pytest.mark.parametrize("solver, name", [("exact", "exact"), ("snopt", "drake")])
@pytest.mark.parametrize("wrong", [lambda x: x * 1.5, lambda x: x * np.nan])
def test_a_broken_solver_is_not_believed(solver, name, wrong, monkeypatch):
    """It says that it succeeded; the program's own rows say that it did not."""
    module = sys.modules[solve.__module__]
    plain = getattr(module, f"solve_{name}")

    def lies(*args, **options):
        raw = plain(*args, **options)
        assert raw.success
        return replace(raw, x=wrong(raw.x))

    monkeypatch.setattr(module, f"solve_{name}", lies)
    solution = solve(rosenbrock(radius=3.0), np.full(6, 0.5), solver=solver)
    assert solution.verdict is Verdict.FAILED
    assert "exceeds" in solution.message and solution.residuals["norm"] > 1


def test_a_monitor_stops_and_the_best_iterate_is_kept():
    seen = []

    def stop_at_five(iteration):
        seen.append(iteration)
        return iteration.number >= 5

    solution = solve(rosenbrock(), np.full(6, -1.0), monitor=stop_at_five)
    assert solution.verdict is Verdict.FAILED
    assert len(seen) == 6
    best = min(i.objective for i in seen)
    assert solution.objective == pytest.approx(best)


def test_the_time_limit_is_kept_and_said():
    solution = solve(rosenbrock(40), np.full(40, -1.0), time_limit=1e-9)
    assert solution.verdict is Verdict.TIME_LIMIT


def test_ctrl_c_in_a_callback_returns_the_best_iterate():
    def interrupt(stage, done, end):
        assert stage.startswith(f"iteration {done}: cost ")
        assert end == 3000
        if done == 3:
            raise KeyboardInterrupt

    solution = solve(rosenbrock(), np.full(6, -1.0), progress=interrupt)
    assert solution.verdict is Verdict.INTERRUPTED
    assert solution.objective < rosenbrock().objective(np.full(6, -1.0))


def test_ctrl_c_while_ipopt_runs_stops_it():
    """CasADi makes a warning of it, unless it is only noted."""

    def press(iteration):
        if iteration.number == 3:
            os.kill(os.getpid(), signal.SIGINT)

    start = np.full(6, -1.0)
    solution = solve(rosenbrock(), start, monitor=press)
    assert solution.verdict is Verdict.INTERRUPTED and solution.iterations <= 5
    assert solution.objective < rosenbrock().objective(start)


def test_a_checkpoint_that_cannot_be_written_is_a_warning(tmp_path):
    path = tmp_path / "gone" / "best.npz"
    with pytest.warns(DrakebotsWarning, match="checkpoint .*no folder"):
        solution = solve(rosenbrock(), np.full(6, -1.0), checkpoint=path)
    assert solution.ok


def test_checkpoints_are_written_and_resumed(tmp_path):
    program, path = rosenbrock(), tmp_path / "best.npz"
    stopped = solve(
        program, np.full(6, -1.0), monitor=lambda i: i.number >= 5, checkpoint=path
    )
    x = load_checkpoint(path, program)
    assert np.allclose(x, stopped.x)
    resumed = solve(program, x)
    assert resumed.ok
    assert list(tmp_path.iterdir()) == [path]


def test_checkpoints_of_others_are_refused(tmp_path):
    path = tmp_path / "best.npz"
    save_checkpoint(path, rosenbrock(4), np.zeros(4))
    with pytest.raises(FileProblem, match="another program"):
        load_checkpoint(path, rosenbrock(5))
    path.write_bytes(b"nonsense")
    with pytest.raises(FileProblem):
        load_checkpoint(path, rosenbrock(4))
    with pytest.raises(FileProblem, match="no such"):
        load_checkpoint(tmp_path / "none.npz", rosenbrock(4))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"solver": "snoopt"}, UnknownName, "snopt"),
        ({"options": {"max_itr": 3}}, InvalidInput, "option"),
        ({"time_limit": 0.0}, InvalidInput, "time limit"),
        ({"x0": np.zeros(3)}, InvalidInput, "6 variables"),
        ({"x0": np.full(6, np.nan)}, InvalidInput, r"x\[0\]"),
    ],
)
def test_bad_input_is_refused_before_any_work(change, error, words):
    arguments = {"x0": np.zeros(6)} | change
    with pytest.raises(error, match=words):
        solve(rosenbrock(), arguments.pop("x0"), **arguments)
