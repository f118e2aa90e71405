"""Long work: one loop that shows progress, heeds Ctrl-C and a time limit, and always
ends with a verdict.

    end = run_steps(step, 2000, stage="simulate", until=2.0, progress=progress)
    print(end.verdict, end.message)
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from drakebots.core.errors import InvalidInput, NoSolution

Progress = Callable[[str, float, float], None]
"""Called as progress(stage, done, end) by all long work.

`stage` says in a few words what is being done; `done` and `end` count in what that
stage counts in: seconds of simulated time, iterations, files. `end` is 0 where nobody
knows it. Exceptions that it raises end the work."""


class Verdict(StrEnum):
    """How a simulation or a plan ended."""

    SUCCESS = "success"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    TIME_LIMIT = "time limit"


@dataclass(frozen=True)
class RunEnd:
    """How a run ended.

    Attributes:
        verdict: of the run.
        message: one line on why it ended.
        time: reached, in the unit of the run's `until` (simulated time [s]).
        wall: wall time spent [s].
        steps: completed.
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
    """What a step returns to end its run.

    Attributes:
        verdict: of the run.
        message: one line on why.
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
) -> RunEnd:
    """Calls step(1) .. step(count); never raises for what ends a run early.

    A step that returns a :class:`Stop` or raises NoSolution ends the run; so do
    Ctrl-C and the time limit, which are looked at between two steps. What the steps
    have gathered until then stays with the caller.

    Args:
        step: does one step, numbered from 1.
        count: number of steps.
        stage: for `progress`.
        until: what the last step reaches, e.g. the end time [s]; the number of steps
            by default.
        progress: called after each step.
        time_limit: of wall time [s].
        success: message of a run that was not ended early.
    """
    began = time.perf_counter()
    until = float(count) if until is None else until
    done = 0

    def end(verdict: Verdict, message: str) -> RunEnd:
        wall = time.perf_counter() - began
        return RunEnd(verdict, message, until * done / max(count, 1), wall, done)

    try:
        with CtrlC() as stop:
            for k in range(1, count + 1):
                stopped = step(k)
                if stopped is not None and stopped.verdict is Verdict.FAILED:
                    return end(stopped.verdict, stopped.message)
                done = k
                if stopped is not None:
                    return end(stopped.verdict, stopped.message)
                if progress is not None:
                    progress(stage, until * k / count, until)
                stop.check()
                late = time.perf_counter() - began
                if time_limit is not None and late > time_limit and k < count:
                    return end(
                        Verdict.TIME_LIMIT,
                        f"stopped at the time limit of {time_limit:g} s; "
                        "raise it to go on further",
                    )
    except KeyboardInterrupt:
        return end(Verdict.INTERRUPTED, "interrupted; what was reached is kept")
    except NoSolution as error:
        return end(Verdict.FAILED, str(error))
    return end(Verdict.SUCCESS, success or f"reached {until:g} s")


class CtrlC:
    """While in the `with` block, notes Ctrl-C; a second one raises at once.

    Long work so ends between two steps instead of inside one: an exception raised in
    the middle of a Python system's callback passes through C++, and does not always
    arrive as KeyboardInterrupt. Outside the main thread nothing changes.

    Attributes:
        pressed: whether Ctrl-C came.
    """

    def __init__(self):
        self.pressed, self._before = False, None

    def __enter__(self) -> CtrlC:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *error) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def check(self) -> None:
        """Raises KeyboardInterrupt if Ctrl-C came."""
        if self.pressed:
            raise KeyboardInterrupt

    def _note(self, number, frame) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True


def check_duration(duration: float) -> float:
    """The duration if it is finite and > 0.

    Raises:
        InvalidInput: otherwise.
    """
    if not (np.isfinite(duration) and duration > 0):
        raise InvalidInput(f"duration must be > 0 s, got {duration}")
    return float(duration)
