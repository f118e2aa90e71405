"""One loop for long work: progress, Ctrl-C, a time limit, and a verdict at the end.

def step(k):                                # k = 1, 2, ..., 2000
    state = stepper.step(state)
    if not state.converged:
        return failed("the step did not converge")

end = run_steps(step, 2000, stage="simulate", until=2.0, progress=progress)
print(end.verdict, end.message)
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from drakebots.core.errors import NoSolution

LOG = logging.getLogger(__name__)

Progress = Callable[[str, float, float], None]
"""Called as progress(stage, done, end) by all long work.

`stage` says in a word or two what is being done. `done` and `end` have the unit of that
stage: seconds of simulated time, iterations, files; `end` is 0 where it is unknown.
An exception that the function raises ends the work: KeyboardInterrupt as Ctrl-C does,
any other by passing through."""


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
        verdict: verdict of the run.
        message: one line on why it ended.
        time: what was reached, in the unit of the run's `until`: mostly the
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
    """What a step returns to end its run.

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
) -> RunEnd:
    """Calls step(1) .. step(count) and says how the run ended.

    A step that returns a :class:`Stop` or raises NoSolution ends the run early; so do
    Ctrl-C and the time limit, which are checked between two steps. None of these
    raises: what the steps have gathered until then stays with the caller.

    Args:
        step: does one step, numbered from 1.
        count: number of steps.
        stage: name of the work, for `progress`.
        until: what the last step reaches, e.g. the end time [s]; the number of steps
            by default.
        progress: called as progress(stage, reached, until) after each step.
        time_limit: limit of the wall time [s].
        success: message of a run that was not ended early.
    """
    began = time.perf_counter()
    until = float(count) if until is None else until
    done = 0

    def end(verdict: Verdict, message: str) -> RunEnd:
        wall = time.perf_counter() - began
        LOG.info("%s: %s, %s (%.1f s)", stage, verdict, message, wall)
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
                spent = time.perf_counter() - began
                if time_limit is not None and spent > time_limit and k < count:
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
    """Notes Ctrl-C while in the `with` block; a second Ctrl-C raises at once.

    Long work can thus end between two steps: an exception raised in the middle of a
    Python system's callback passes through C++ and does not always arrive as
    KeyboardInterrupt. Outside the main thread nothing changes.

    Attributes:
        pressed: whether Ctrl-C was pressed.
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
        """Raises KeyboardInterrupt if Ctrl-C was pressed."""
        if self.pressed:
            raise KeyboardInterrupt

    def _note(self, number, frame) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True
