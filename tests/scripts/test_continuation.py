"""A continuation leads where its last program alone does not, and says how."""

from __future__ import annotations

import logging

import casadi as ca
import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.program import Block, ProgramBuilder
from tests.helpers.scripts import load_script

Stage, multi_start, solve_continuation = load_script(
    "continuation", "Stage", "multi_start", "solve_continuation"
)


def corner(relaxed: float, weight: float = 1.0, size: int = 2, least: float = 0.0):
    """min (a - 2)^2 + weight (b - 1)^2, a b <= relaxed, a, b >= least.

    With relaxed = 0 the optima are (2, 0) of objective `weight` and (0, 1) of
    objective 4.
    """
    builder = ProgramBuilder("corner")
    builder.add_variables("ab", 1, ["a", "b", "c"][:size], lower=least, upper=10.0)
    builder.add_rows("product", 1, [""], upper=relaxed)
    w = ca.SX.sym("w", size)
    columns = {"w": builder["ab"].indices}
    rows = {"product": builder._rows["product"].indices}
    builder.add_term(
        Block("product", {"w": w}, {"product": w[0] * w[1]}), columns, rows
    )
    cost = (w[0] - 2) ** 2 + weight * (w[1] - 1) ** 2
    builder.add_cost(Block("cost", {"w": w}, {"cost": cost}), columns)
    return builder.build()


def stages(**options):
    """Three tightening stages."""
    return [
        Stage(corner(t), label=f"{t:g}", max_iterations=100, **options)
        for t in (1.0, 1e-2, 1e-7)
    ]


def test_leads_to_the_last_program(caplog):
    """The answer is the last program's optimum; the logs have every stage."""
    caplog.set_level(logging.INFO, "drakebots")
    result = solve_continuation(stages(), [1.0, 3.0])
    assert result.feasible
    assert result.x == pytest.approx([2, 0], abs=1e-5)
    assert result.objective == pytest.approx(1, abs=1e-5)
    assert [r.label for r in result.stages] == ["1", "0.01", "1e-07"]
    assert all(r.iterations > 0 and r.seconds > 0 for r in result.stages)
    assert sum(r.seconds for r in result.stages) == pytest.approx(result.seconds)
    # What a relaxed stage ends with does not satisfy the problem.
    assert [r.feasible for r in result.stages] == [False, False, True]
    assert "feasible, objective 1" in str(result)
    assert caplog.messages == [str(stage) for stage in result.stages]


def test_keeps_the_best_feasible_iterate():
    """A last stage that fails falls back on an earlier one."""
    good = Stage(corner(1e-7, weight=2.0), label="good", same_rows=True)
    bad = Stage(corner(1e-7), label="bad", max_iterations=1)
    result = solve_continuation([good, bad], [2.0, 0.5], problem=corner(1e-7))
    assert result.feasible
    assert result.source == "good"
    # The objective is the problem's, not the stage's.
    assert result.objective == pytest.approx(1, abs=1e-5)
    assert result.stages[0].objective == pytest.approx(2, abs=1e-5)


def test_least_violation_without_an_answer():
    """Where nothing is feasible the answer says so, with its residual."""
    result = solve_continuation(
        stages()[:1], [1.0, 3.0], problem=corner(-1e-3, least=0.0)
    )
    assert not result.feasible
    assert result.worst[0].startswith("product")
    assert result.worst[1] > 0.9e-3
    assert "NOT feasible" in str(result)


def test_accept_judges_answers():
    """An optimum that the caller refuses is no answer."""
    result = solve_continuation(stages(), [1.0, 3.0], accept=lambda x: x[0] < 1)
    assert not result.feasible


def test_spare_stages_run_only_without_an_answer():
    """A spare is skipped after success and used after failure."""
    spare = Stage(corner(1e-7), label="spare", spare=True)
    labels = [
        r.label for r in solve_continuation([*stages(), spare], [1.0, 3.0]).stages
    ]
    assert "spare" not in labels
    broken = [Stage(corner(1e-7), label="broken", max_iterations=1), spare]
    result = solve_continuation(broken, [1.0, 3.0])
    assert [r.label for r in result.stages] == ["broken", "spare"]
    assert result.feasible
    assert result.source == "spare"


def test_stops_when_told():
    """The monitor and the clock both end the continuation."""
    seen = []
    result = solve_continuation(
        stages(), [1.0, 3.0], monitor=lambda i: seen.append(i) or True
    )
    assert len(seen) == len(result.stages) == 1
    result = solve_continuation(stages(), [1.0, 3.0], time_limit=1e-9)
    assert [r.status for r in result.stages] == ["Time_Limit"]
    assert np.isfinite(result.x).all()


def test_interrupted():
    """Ctrl-C ends the continuation with what there is, and the starts after it."""

    def monitor(iteration):
        if iteration.number == 3:
            raise KeyboardInterrupt

    result = solve_continuation(stages(), [1.0, 3.0], monitor=monitor)
    assert result.interrupted
    assert len(result.stages) == 1
    starts = multi_start(
        lambda seed: solve_continuation(stages(), [1.0, 3.0], monitor=monitor), range(3)
    )
    assert starts.seeds == (0,)


def test_refuses():
    """Bad stages and guesses are named before anything is solved."""
    with pytest.raises(InvalidInput, match="one stage or more"):
        solve_continuation([], [1.0, 3.0])
    with pytest.raises(InvalidInput, match="stage odd: its variables differ"):
        solve_continuation(
            [Stage(corner(1, size=3), label="odd"), *stages()], [1.0, 3.0]
        )
    with pytest.raises(InvalidInput, match="2 variables, the guess has 1"):
        solve_continuation(stages(), [1.0])
    with pytest.raises(InvalidInput, match=r"the guess of .* is nan"):
        solve_continuation(stages(), [1.0, np.nan])
    with pytest.raises(InvalidInput, match="max_iterations"):
        Stage(corner(1), max_iterations=0)


def run(seed: int):
    """A start of `multi_start`; processes find it by its name."""
    guess = np.random.default_rng(seed).uniform(0, 3, 2)
    return solve_continuation(stages(), guess)


@pytest.mark.parametrize("processes", [1, 2])
def test_multi_start(processes):
    """All starts come back in order, the best one is found."""
    ended = []
    result = multi_start(
        run, range(3), processes=processes, done=lambda s, c: ended.append(s)
    )
    assert sorted(ended) == [0, 1, 2] == list(result.seeds)
    assert result.num_feasible == 3
    assert result.best.objective == pytest.approx(1, abs=1e-4)
    assert result.best.objective == min(c.objective for c in result.runs)
    assert "3 of 3" in str(result)


def test_multi_start_refuses():
    """No seeds, equal seeds, no processes."""
    with pytest.raises(InvalidInput, match="no starts"):
        multi_start(run, [])
    with pytest.raises(InvalidInput, match="twice"):
        multi_start(run, [1, 1])
    with pytest.raises(InvalidInput, match="processes"):
        multi_start(run, [1], processes=0)
