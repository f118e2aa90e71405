"""Stages: where wall time goes, what is said of them, whose equations failed."""

from __future__ import annotations

import pickle
import time

import pytest

from drakebots.core.errors import NoSolution, SolverProblem
from drakebots.core.run import run_steps
from drakebots.core.stages import doing, spent, stage, timed


def test_each_moment_counts_for_one_stage():
    began = time.perf_counter()

    @timed("load")
    def inner() -> dict[str, float]:
        with stage("compile", "compiling it, once"):
            time.sleep(0.02)
            assert doing() == "compiling it, once"
        return spent()

    @timed("load")
    def outer() -> tuple[dict[str, float], dict[str, float]]:
        time.sleep(0.01)
        with stage("solve"):
            time.sleep(0.01)
            return inner(), spent()

    of_inner, of_outer = outer()
    wall = time.perf_counter() - began
    assert doing() == "" and spent() == {}
    assert set(of_inner) == {"load", "compile"}
    assert set(of_outer) == {"load", "solve", "compile"}
    assert of_outer["compile"] == pytest.approx(of_inner["compile"], abs=2e-3)
    assert of_outer["load"] > 0.009 and of_outer["solve"] > 0.009
    assert wall - 5e-3 < sum(of_outer.values()) <= wall


def test_a_run_is_a_stage():
    @timed("load")
    def run() -> dict[str, float]:
        run_steps(lambda k: time.sleep(5e-3), 4, stage="simulate")
        return spent()

    assert run()["simulate"] > 0.02 > run()["load"]


def test_a_librarys_words_come_with_the_stage_and_a_remedy():
    @timed("load")
    def fails() -> None:
        with stage("glue", remedy="try another --scale"):
            raise SolverProblem("pardiso: the smallest pivot is 7.2e-06")

    with pytest.raises(NoSolution, match=r"^glue: .*pivot.*; try another") as caught:
        fails()
    assert not isinstance(caught.value, SolverProblem)  # named once

    @timed("load")
    def unnamed() -> None:
        raise SolverProblem("mumps: singular")

    with pytest.raises(NoSolution, match=r"^load: .*mumps: singular.*nothing holds"):
        unnamed()

    def step(k: int) -> None:
        raise SolverProblem("mumps: singular")

    end = run_steps(step, 1, stage="track")
    assert not end.ok and end.message.startswith("track: ")
    error = pickle.loads(pickle.dumps(SolverProblem("mumps: singular")))
    assert str(error) == str(SolverProblem("mumps: singular"))
