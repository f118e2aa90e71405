"""The loop of long work: every way in which it can end."""

import ctypes
import logging
import os
import signal
import sys
import threading
import time

import pytest

from drakebots.core import run as core_run
from drakebots.core.errors import DrakebotsWarning, NoSolution
from drakebots.core.run import (
    Command,
    CtrlC,
    Stop,
    Stopped,
    Verdict,
    check_stop,
    ended_by,
    failed,
    keeping,
    run_steps,
    saving,
    watching,
)


def press(number=signal.SIGINT):
    os.kill(os.getpid(), number)


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


def test_time_limit(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(core_run.time, "perf_counter", lambda: clock[0])

    def step(k):
        clock[0] += 0.02

    end = run_steps(step, 100, stage="walk", time_limit=0.05)
    assert end.verdict is Verdict.TIME_LIMIT and "0.05 s; raise it" in end.message
    assert end.steps == 3 and end.wall == pytest.approx(0.06)
    # A run that is complete is a success, however long it took.
    assert run_steps(step, 1, stage="walk", time_limit=1e-3).ok


def test_a_run_saves_what_it_has_reached(monkeypatch):
    clock, kept = [0.0], []
    monkeypatch.setattr(core_run.time, "monotonic", lambda: clock[0])

    def step(k):
        clock[0] += 10.0

    def save(result):
        kept.append(result)
        clock[0] += 5.0  # so that the next time is not before 100 s
        if len(kept) == 2:
            raise OSError("no space left")

    with (
        keeping(save),
        pytest.warns(DrakebotsWarning, match="could not be saved: no space"),
    ):
        assert run_steps(step, 30, stage="walk", reached=lambda end: end).ok
    assert [end.steps for end in kept] == [4, 15, 26]
    assert kept[0].verdict is Verdict.INTERRUPTED
    assert kept[0].message == "killed; this is what was reached after 4 of 30"
    run_steps(step, 30, stage="walk", reached=lambda end: end)
    assert len(kept) == 3


def test_a_picture_that_fails_ends_the_pictures_and_not_the_run():
    shown = []

    def show(seen):
        shown.append(seen())
        if len(shown) == 2:
            raise OSError("no port is free")

    with (
        pytest.warns(DrakebotsWarning, match="not shown any more: no port is free"),
        watching(show),
    ):
        end = run_steps(lambda k: None, 5, stage="test", seen=lambda: "robot")
    assert end.verdict == "success" and end.steps == 5
    assert shown == ["robot", "robot"]


def test_a_run_that_cannot_be_shown_is_said():
    with (
        pytest.warns(DrakebotsWarning, match="nothing of this run can be shown"),
        watching(print),
    ):
        assert run_steps(lambda k: None, 3, stage="test").steps == 3


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


# --- commands ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_a_signal_ends_a_command_at_once_before_its_work(number, code):
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with Command() as command, pytest.raises(Stopped) as caught:
        press(number)
        time.sleep(5)
    verdict, message = ended_by(caught.value)
    assert verdict is Verdict.INTERRUPTED and signal.Signals(number).name in message
    assert command.exit_code == code
    assert before == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]


def test_a_command_keeps_what_its_work_reached():
    """SIGTERM ends a run as Ctrl-C does, and nothing begins after it but saving."""
    saved = []
    with Command() as command:
        end = run_steps(
            lambda k: press(signal.SIGTERM) if k == 3 else None, 9, stage=""
        )
        later = run_steps(lambda k: None, 9, stage="later")
        with saving():
            saved.append(end.steps)
        with pytest.raises(Stopped):
            check_stop()
    assert end.verdict is later.verdict is Verdict.INTERRUPTED
    assert (end.steps, later.steps, saved) == (3, 1, [3])
    assert "SIGTERM" in end.message and command.exit_code == 143


def test_work_that_does_not_look_is_ended(monkeypatch):
    """After a while, and once; a second signal does so at once."""
    monkeypatch.setattr(core_run, "GRACE", 0.05)
    began = time.monotonic()
    with Command():
        end = run_steps(lambda k: press() or time.sleep(5), 9, stage="long")
        time.sleep(0.1)
    assert end.verdict is Verdict.INTERRUPTED and end.steps == 0
    monkeypatch.setattr(core_run, "GRACE", 60.0)
    with Command():
        end = run_steps(lambda k: press() or press() or time.sleep(5), 9, stage="long")
    assert end.verdict is Verdict.INTERRUPTED and time.monotonic() - began < 5


def test_an_end_within_a_callback_of_c_prints_nothing(monkeypatch):
    """What Python swallows there comes again; other errors are reported as ever."""
    monkeypatch.setattr(core_run, "GRACE", 0.05)
    raised = []
    monkeypatch.setattr(
        sys, "unraisablehook", lambda what: raised.append(what.exc_type)
    )

    @ctypes.CFUNCTYPE(None)
    def stopped():
        signal.raise_signal(signal.SIGINT)
        sum(range(10))

    @ctypes.CFUNCTYPE(None)
    def wrong():
        raise ValueError

    with Command() as command:
        with pytest.raises(Stopped):
            stopped()
            wrong()
            time.sleep(5)
        assert command.exit_code == 130
    assert raised == [ValueError]
    assert sys.unraisablehook is not command._unraisable


def test_saving_is_ended_by_a_second_signal_only(monkeypatch):
    monkeypatch.setattr(core_run, "GRACE", 0.02)
    saved = []
    with Command() as command:
        with saving():
            press(signal.SIGTERM)
            time.sleep(0.1)
            saved.append("whole")
        with pytest.raises(Stopped), saving():
            press()
            time.sleep(5)
    assert saved == ["whole"] and command.exit_code == 130


def test_a_commands_time_counts_from_its_beginning(monkeypatch):
    """A build, the work, and what comes after it."""
    monkeypatch.setattr(core_run, "GRACE", 0.05)
    with Command() as command:
        time.sleep(0.1)
        command.limit(0.15)
        end = run_steps(lambda k: time.sleep(0.02), 1000, stage="walk")
        assert command.exit_code is None and command.cause == signal.SIGALRM
    assert end.verdict is Verdict.TIME_LIMIT and "0.15 s; raise it" in end.message
    assert end.steps < 10
    with Command() as command, pytest.raises(Stopped) as caught:
        command.limit(0.05)
        time.sleep(5)
    assert ended_by(caught.value)[0] is Verdict.TIME_LIMIT
    time.sleep(0.1)  # nothing comes after the command


def test_saving_without_a_command():
    with pytest.raises(KeyboardInterrupt), saving():
        press()
        time.sleep(0.01)
