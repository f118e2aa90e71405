"""One loop for long work: progress, Ctrl-C, a time limit, and a verdict at the end.
And what ends a whole command: SIGINT, SIGTERM, and the end of the time it is given.

def step(k):                                # k = 1, 2, ..., 2000
    state = stepper.step(state)
    if not state.converged:
        return failed("the step did not converge")

    end = run_steps(step, 2000, stage="simulate", until=2.0, progress=progress)
    print(end.verdict, end.message)
"""

from __future__ import annotations

import logging
import math
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from drakebots.core import stages
from drakebots.core.errors import DrakebotsWarning, NoSolution, one_line

LOG = logging.getLogger(__name__)

Progress = Callable[[str, float, float], None]
"""Called as progress(stage, done, end) by all long work.

`stage` says in a word or two what is being done. `done` and `end` have the unit of that
stage: seconds of simulated time, iterations, files; `end` is 0 where it is unknown.
An exception that the function raises ends the work: KeyboardInterrupt as Ctrl-C does,
any other by passing through."""


def silent(stage: str, done: float, end: float) -> None:
    """A :data:`Progress` that nobody follows."""


class Verdict(StrEnum):
    """Outcome of a simulation or a plan."""

    SUCCESS = "success"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    TIME_LIMIT = "time limit"


@dataclass(frozen=True)
class RunEnd:
    """End of a run.

    Attributes:
        verdict: verdict of the run.
        message: one line on why it ended.
        time: progress reached, in the unit of the run's `until`: mostly the
            simulated time [s].
        wall: wall time spent [s].
        steps: number of completed steps.
    """

    verdict: Verdict
    message: str
    time: float
    wall: float
    steps: int = 0

    @property
    def ok(self) -> bool:
        """Whether the verdict is success."""
        return self.verdict is Verdict.SUCCESS


@dataclass(frozen=True)
class Stop:
    """Return value of a step that ends its run.

    Attributes:
        verdict: verdict of the run; after FAILED this step does not count as completed.
        message: one line on why it ended.
    """

    verdict: Verdict
    message: str


def failed(message: str) -> Stop:
    """Ends a run as failed."""
    return Stop(Verdict.FAILED, message)


def run_steps(
    step: Callable[[int], Stop | None],
    count: int,
    *,
    stage: str,
    until: float | None = None,
    progress: Progress | None = None,
    time_limit: float | None = None,
    success: str | None = None,
    reached: Callable[[RunEnd], Any] | None = None,
    seen: Callable[[], tuple] | None = None,
) -> RunEnd:
    """Calls step(1) .. step(count) and says how the run ended.

    A step that returns a :class:`Stop` or raises NoSolution ends the run early; so do
    Ctrl-C and the time limit, which are checked between two steps. None of these
    raises: what the steps have gathered until then stays with the caller.

    Args:
        step: does one step, numbered from 1.
        count: number of steps.
        stage: name of the work, for `progress`.
        until: target of the last step, e.g. the end time [s]; the number of steps
            by default.
        progress: called as progress(stage, reached, until) after each step.
        time_limit: limit of the wall time [s].
        success: message of a run that was not ended early.
        reached: makes the result of a run that ended so, for :func:`keeping`.
        seen: what there is to see after a step, for :func:`watching`.
    """
    began = time.perf_counter()
    limit = math.inf if time_limit is None else time_limit
    until, progress = float(count) if until is None else until, progress or silent
    done, keeper = 0, _keeper

    def end(verdict: Verdict, message: str) -> RunEnd:
        wall = time.perf_counter() - began
        return RunEnd(verdict, message, until * done / max(count, 1), wall, done)

    def run() -> RunEnd:
        nonlocal done
        for k in range(1, count + 1):
            stopped = step(k)
            if stopped is None or stopped.verdict is not Verdict.FAILED:
                done = k
            if stopped is not None:
                return end(stopped.verdict, stopped.message)
            progress(stage, until * k / count, until)
            stop.check()
            if seen is not None and _watcher is not None:
                _watcher.look(seen)
            if reached is not None and keeper is not None and keeper.is_due:
                far = f"reached after {until * k / count:.6g} of {until:g}"
                killed = f"killed; this is what was {far}"
                keeper.keep(reached, end(Verdict.INTERRUPTED, killed))
            if time.perf_counter() - began > limit and k < count:
                return end(Verdict.TIME_LIMIT, out_of_time(limit))
        return end(Verdict.SUCCESS, success or f"reached {until:g} s")

    try:
        with CtrlC() as stop, stages.stage(stage):
            ended = run()
    except KeyboardInterrupt as error:
        ended = end(*ended_by(error))
    except NoSolution as error:
        ended = end(Verdict.FAILED, str(error))
    LOG.info("%s: %s, %s (%.1f s)", stage, ended.verdict, ended.message, ended.wall)
    return ended


def out_of_time(limit: float) -> str:
    """Message of work that ended at its time limit [s]."""
    return f"stopped at the time limit of {limit:g} s; raise it to go on further"


KEEP_PERIOD = 30.0
"""Time between two savings of what a run has reached, at least [s]."""


class _Keeper:
    """Saves what a run has reached, and takes a twentieth of its time at most."""

    def __init__(self, save: Callable[[Any], object]):
        self._save, self._due = save, time.monotonic() + KEEP_PERIOD

    @property
    def is_due(self) -> bool:
        return time.monotonic() > self._due

    def keep(self, reached: Callable[[RunEnd], Any], end: RunEnd) -> None:
        began = time.monotonic()
        try:
            self._save(reached(end))
        except Exception as error:  # the run itself goes on
            text = f"what was reached could not be saved: {one_line(error)}"
            warnings.warn(text, DrakebotsWarning, stacklevel=3)
        now = time.monotonic()
        self._due = now + max(KEEP_PERIOD, 20 * (now - began))


_keeper: _Keeper | None = None


@contextmanager
def keeping(save: Callable[[Any], object]) -> Iterator[None]:
    """While it lasts, runs save what they have reached every :data:`KEEP_PERIOD`.

    So a run that is killed leaves a result; it says how far it came. Runs that give
    `reached` to :func:`run_steps` do.

    Args:
        save: called with a result.
    """
    global _keeper
    before, _keeper = _keeper, _Keeper(save)
    try:
        yield
    finally:
        _keeper = before


class _Watcher:
    """Shows runs; a picture that fails ends the pictures and not the run."""

    def __init__(self, show: Callable[[Callable[[], tuple]], None]):
        self._show, self.failed, self.looked = show, False, False

    def look(self, seen: Callable[[], tuple]) -> None:
        self.looked = True
        try:
            if not self.failed:
                self._show(seen)
        except Exception as error:
            self.failed = True
            text = f"the run goes on and is not shown any more: {one_line(error)}"
            warnings.warn(text, DrakebotsWarning, stacklevel=3)


_watcher: _Watcher | None = None


@contextmanager
def watching(show: Callable[[Callable[[], tuple]], None]) -> Iterator[None]:
    """While it lasts, runs that can be seen are shown after each of their steps.

    Args:
        show: called with a function that gives the robot, its positions (nq,), and of a
            skin its mesh and the positions of its nodes.
    """
    global _watcher
    before, _watcher = _watcher, _Watcher(show)
    try:
        yield
        if not _watcher.looked:
            text = "nothing of this run can be shown while it is computed"
            warnings.warn(text, DrakebotsWarning, stacklevel=3)
    finally:
        _watcher = before


class CtrlC:
    """Notes Ctrl-C while in the `with` block; a second Ctrl-C raises at once.

    Long work can thus end between two steps: an exception raised in the middle of a
    Python system's callback passes through C++ and does not always arrive as
    KeyboardInterrupt. Outside the main thread no signal is noted. In a
    :class:`Command` it notes all that ends the command.

    Attributes:
        pressed: whether Ctrl-C was pressed, or the command is to end.
    """

    def __init__(self):
        self._pressed, self._before = False, None

    @property
    def pressed(self) -> bool:
        return self._pressed or is_ending()

    def __enter__(self) -> CtrlC:
        if _command is not None:
            _command.begin()
        elif threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *error) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def check(self) -> None:
        """Raises KeyboardInterrupt if Ctrl-C was pressed, or the command is to end."""
        check_stop()
        if self._pressed:
            raise KeyboardInterrupt

    def _note(self, number, frame) -> None:
        if self._pressed:
            raise KeyboardInterrupt
        self._pressed = True


# --- what ends a command ------------------------------------------------------

GRACE = 3.0
"""Time that work has to end by itself, once its command is to end [s]."""

_LONGEST = 1e8
"""Timers take no longer time than this [s]: three years."""


class Stopped(KeyboardInterrupt):
    """Ends a command from wherever it is; `args` are a verdict and a message."""


def ended_by(error: KeyboardInterrupt) -> tuple[Verdict, str]:
    """Verdict and message of work that this exception ended."""
    if _command is not None and _command.cause is not None:
        _command.rest()
        return _command.why
    if isinstance(error, Stopped):
        return error.args
    return Verdict.INTERRUPTED, "interrupted; what was reached is kept"


class Command:
    """A command, and what ends it: SIGINT, SIGTERM, and the end of its time.

        with Command() as command:
            command.limit(60)
            ...
            with saving():
                result.save(path)
        sys.exit(command.exit_code or 0)

    They raise :class:`Stopped` at once until long work begins (a `CtrlC` block). Then
    there is something to keep: they are noted, and work ends with what it has at its
    next look. Where none comes within :data:`GRACE`, Stopped is raised after all; a
    second signal raises it at once. So a command ends in seconds and keeps what it
    has, provided that long work catches KeyboardInterrupt.

    The signals are the process's: enter it in the main thread. In a call of C or C++
    they wait until it returns.

    Attributes:
        cause: end of the command, a signal's number (SIGALRM: its time); or None.
    """

    def __init__(self):
        self.cause: int | None = None
        self._since, self._limit = time.monotonic(), 0.0
        self._began = self._saving = False
        self._before: dict[int, Any] = {}
        self._hook = sys.unraisablehook
        self._outer: Command | None = None

    def __enter__(self) -> Command:
        global _command
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
                self._before[number] = signal.signal(number, self._note)
            self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
        self._outer, _command = _command, self
        return self

    def __exit__(self, *error) -> None:
        global _command
        self._saving = True  # The end of its time comes too late now.
        _command = self._outer
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            sys.unraisablehook = self._hook
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _unraisable(self, what) -> None:
        # A callback from C, as numba's compiler has them, swallows a Stopped and would
        # print it. It comes again.
        if not isinstance(what.exc_value, Stopped):
            self._hook(what)

    @property
    def exit_code(self) -> int | None:
        """128 + the number of the signal that ended it; None where none did."""
        signals = (signal.SIGINT, signal.SIGTERM)
        return 128 + self.cause if self.cause in signals else None

    @property
    def why(self) -> tuple[Verdict, str]:
        """Verdict and message of work that the cause ended."""
        if self.cause == signal.SIGALRM:
            return Verdict.TIME_LIMIT, out_of_time(self._limit)
        name = signal.Signals(self.cause or signal.SIGINT).name
        return Verdict.INTERRUPTED, f"stopped by {name}; what was reached is kept"

    def limit(self, seconds: float) -> None:
        """Limits the time of the command, from its beginning [s]."""
        self._limit = seconds
        if self._before and self.cause is None:
            left = self._since + seconds - time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, min(max(left, 1e-3), _LONGEST))

    def begin(self) -> None:
        """From now on there is something to keep."""
        self._began = True

    def check(self) -> None:
        """Raises Stopped if the command is to end."""
        if self.cause is not None:
            self.rest()
            raise Stopped(*self.why)

    def rest(self) -> None:
        """Lets the work that was asked to end take the time it needs."""
        if self._before and self.cause is not None:
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    @contextmanager
    def saving(self) -> Iterator[None]:
        """While it lasts, only a second signal raises; then nothing is to be kept."""
        before, self._saving = self._saving, True
        try:
            yield
        finally:
            self._saving = before
        self._began = False

    def _note(self, number, frame) -> None:
        first, timer = self.cause is None, number == signal.SIGALRM
        if first:
            # Again and again: CasADi swallows what is raised in some of its calls.
            signal.setitimer(signal.ITIMER_REAL, GRACE, 1.0)
        if first or not timer:
            self.cause = number
        if first and self._began:
            return
        if self._saving and (first or timer):
            return
        raise Stopped(*self.why)


_command: Command | None = None


def is_ending() -> bool:
    """Whether the command is to end: nothing more should begin."""
    return _command is not None and _command.cause is not None


def check_stop() -> None:
    """Raises Stopped if the command is to end: for work between two stages."""
    if _command is not None:
        _command.check()


@contextmanager
def saving() -> Iterator[None]:
    """Context whose work is done whole: only a second signal ends it.

    Afterwards a command has nothing to lose any more, and signals raise at once.
    """
    if _command is None:
        with CtrlC() as stop:
            yield
        stop.check()
        return
    with _command.saving():
        yield
