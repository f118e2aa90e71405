"""Weights of the slack that grow, and what goes on after a break."""

import numpy as np
import pytest

from drakebots.core.run import Verdict
from drakebots.trajopt.program import ProgramBuilder
from drakebots.trajopt.solvers import (
    Clock,
    Rung,
    penalty,
    solve,
    solve_penalty_continuation,
    start_from,
)


def sliding(weight):
    """min (a - 1)^2 + (c - 1)^2 + w s with a c <= s: the smaller of a and c is 0."""
    b = ProgramBuilder("sliding")
    x = b.add_variables("x", 1, ["a", "c"], lower=0, upper=5)
    s = b.add_variables("s", 1, [""], lower=0, upper=5)
    b.cost("goal", {"x": x.indices}, lambda x: (x[0] - 1) ** 2 + (x[1] - 1.1) ** 2)
    b.cost("slack", {"s": s.indices}, lambda s: weight * s[0])
    b.constraint(
        "product",
        {"x": x.indices, "s": s.indices},
        lambda x, s: x[0] * x[1] - s[0],
        upper=0.0,
    )
    return weight, b.build()


def climb(solver, path=None, clock=None):
    return solve_penalty_continuation(
        sliding,
        (0.5, 3.0, 30.0),
        start_from(path, lambda program: np.full(program.num_variables, 0.5)),
        solver,
        options=lambda program, x, later: {"mu_init": 1e-2 if later else 0.1},
        done=lambda stages: False,
        clock=clock or Clock(),
        rung=Rung.of(path),
    )


@pytest.mark.parametrize("stopped", [2, 3])
def test_a_stopped_continuation_goes_on_at_its_rung(tmp_path, stopped):
    """And comes to the bits and the stages of one that was not stopped."""
    path, solves = tmp_path / "best.npz", []

    def cut(program, x, *, monitor=None, **more):
        solves.append(x)
        late = len(solves) == stopped
        stop = (lambda iteration: iteration.number >= 2) if late else None
        solution = solve(program, x, checkpoint=path, monitor=stop, **more)
        if late:
            raise KeyboardInterrupt
        return solution

    whole = climb(solve)
    assert whole.solution.ok and whole.stages[-1].slack < 1e-6 < whole.stages[0].slack
    first = climb(cut)
    assert first.solution.verdict is Verdict.INTERRUPTED
    assert len(first.stages) == stopped - 1
    resumed = climb(solve, path)
    np.testing.assert_array_equal(resumed.solution.x, whole.solution.x)
    assert resumed.stages == whole.stages


def test_a_short_first_stage_is_repeated_a_long_one_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "best.npz"

    def cut(program, x, *, monitor=None, **more):
        stop = lambda iteration: iteration.number >= 3  # noqa: E731
        solve(program, x, checkpoint=path, monitor=stop, **more)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        climb(cut)
    starts = []

    def noted(program, x, **more):
        starts.append(x)
        return solve(program, x, **more)

    whole, resumed = climb(noted), climb(noted, path)
    np.testing.assert_array_equal(resumed.solution.x, whole.solution.x)
    first = starts[0]
    np.testing.assert_array_equal(starts[len(whole.stages)], first)
    monkeypatch.setattr(penalty, "LONG", 0.0)
    starts.clear()
    climb(noted, path)
    assert np.abs(starts[0] - first).max() > 1e-3


def test_a_weight_without_time_left_is_named():
    clock = Clock(60.0)

    def slow(program, x, *, time_limit, **more):
        clock.time_limit = 1e-9  # as if this solve had taken a minute
        return solve(program, x, time_limit=time_limit, **more)

    found = climb(slow, clock=clock)
    assert found.missed == 3.0 and len(found.stages) == 1
    late = found.out_of_time()
    assert late.verdict is Verdict.TIME_LIMIT and "slack weight 3;" in late.message
    np.testing.assert_array_equal(late.x, found.solution.x)
