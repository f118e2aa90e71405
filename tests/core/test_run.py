"""The loop of long work: every way in which it can end."""

import logging
import os
import signal
import threading
import time

import pytest

from drakebots.core.errors import NoSolution
from drakebots.core.run import (
    CtrlC,
    Stop,
    Verdict,
    failed,
    run_steps,
)


def press():
    os.kill(os.getpid(), signal.SIGINT)


def test_success_and_progress(caplog):
    caplog.set_level(logging.INFO, "drakebots")
    done, heard = [], []
    end = run_steps(
        done.append,
        4,
        stage="walk",
        until=2.0,
        progress=lambda *news: heard.append(news),
    )
    assert end.ok and end.message == "reached 2 s" and (end.time, end.steps) == (2.0, 4)
    assert done == [1, 2, 3, 4]
    assert heard == [("walk", k / 2, 2.0) for k in (1, 2, 3, 4)]
    assert 0 <= end.wall < 1
    assert caplog.messages == ["walk: success, reached 2 s (0.0 s)"]
    named = run_steps(done.append, 0, stage="walk", success="nothing to do")
    assert named.ok and named.message == "nothing to do" and named.steps == 0


@pytest.mark.parametrize(
    ("stop", "steps"),
    [
        (failed("diverged"), 2),
        (Stop(Verdict.SUCCESS, "arrived"), 3),
        (NoSolution("no step", {"slack": 2.0}), 2),
    ],
)
def test_a_step_ends_the_run(stop, steps):
    """A step that failed does not count as completed."""

    def step(k):
        if k < 3:
            return None
        if isinstance(stop, Exception):
            raise stop
        return stop

    end = run_steps(step, 10, stage="walk", until=1.0)
    assert end.steps == steps and end.time == pytest.approx(steps / 10)
    if isinstance(stop, NoSolution):
        assert end.verdict is Verdict.FAILED and "slack = 2" in end.message
    else:
        assert (end.verdict, end.message) == (stop.verdict, stop.message)


def test_ctrl_c_lets_the_step_finish():
    before, finished = signal.getsignal(signal.SIGINT), []

    def step(k):
        if k == 3:
            press()
        time.sleep(0.001)
        finished.append(k)

    end = run_steps(step, 10, stage="walk")
    assert end.verdict is Verdict.INTERRUPTED and "kept" in end.message
    assert finished == [1, 2, 3] and end.steps == 3
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_ends_the_step():
    def step(k):
        press()
        time.sleep(0.001)
        press()
        time.sleep(5)

    end = run_steps(step, 10, stage="walk")
    assert end.verdict is Verdict.INTERRUPTED and end.steps == 0 and end.wall < 1


def test_progress_may_end_the_run():
    def interrupt(stage, done, end):
        raise KeyboardInterrupt

    end = run_steps(lambda k: None, 10, stage="walk", progress=interrupt)
    assert end.verdict is Verdict.INTERRUPTED and end.steps == 1

    def fail(stage, done, end):
        raise OSError("the terminal is gone")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(OSError, match="terminal"):
        run_steps(lambda k: None, 10, stage="walk", progress=fail)
    assert signal.getsignal(signal.SIGINT) is before


def test_time_limit():
    end = run_steps(lambda k: time.sleep(0.02), 100, stage="walk", time_limit=0.05)
    assert end.verdict is Verdict.TIME_LIMIT and "0.05 s; raise it" in end.message
    assert 2 <= end.steps < 10
    # A run that is complete is a success, however long it took.
    late = run_steps(lambda k: time.sleep(0.02), 1, stage="walk", time_limit=1e-3)
    assert late.ok


def test_other_errors_pass_through():
    def step(k):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_steps(step, 3, stage="walk")


def test_outside_the_main_thread():
    ends = []

    def work():
        with CtrlC() as stop:
            stop.check()
        ends.append(run_steps(lambda k: None, 3, stage="walk"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ends[0].ok


def test_ctrl_c_is_noted():
    with CtrlC() as stop:
        stop.check()
        press()
        time.sleep(0.001)
        assert stop.pressed
        with pytest.raises(KeyboardInterrupt):
            stop.check()
