"""The stages of long work: where its wall time goes, and what is being done now.

    @timed("load")
    def simulate(problem):
        ...                                     # "load", until another stage begins
        end = run_steps(step, 2000, stage="simulate")
        return Result(..., timings=spent())     # {"load": 0.8, "simulate": 12.1}

    with stage("compile", "compiling the controller, once"):
        ...                                     # deep inside, or outside of it

Each moment counts for one stage, so that the times of a result add up to the wall time
of the call that made it.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from drakebots.core.errors import NoSolution, SolverProblem

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Here(threading.local):
    """The clocks of the timed calls that this thread is in, the innermost last."""

    def __init__(self):
        self.clocks: list[_Clock] = []


class _Clock:
    """Wall time by stage [s], and the stages that it is in."""

    def __init__(self, first: str):
        self.seconds: dict[str, float] = {}
        self.names, self.since = [first], time.perf_counter()

    def read(self) -> None:
        """Counts the time since the last reading for the stage that it is in."""
        now, name = time.perf_counter(), self.names[-1]
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self.since
        self.since = now


_here = _Here()
_said: list[str] = []


def timed(first: str) -> Callable[[_Function], _Function]:
    """Makes a function whose stages are timed; see :func:`spent`.

    Args:
        first: name of the stage that it begins in, and is in between others.
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            _here.clocks.append(_Clock(first))
            try:
                with _named(first):
                    return function(*args, **options)
            finally:
                _here.clocks.pop()

        return call  # type: ignore[return-value]

    return decorate


def spent() -> dict[str, float]:
    """Wall time by stage of the timed call that this is in, until now [s].

    Stages of timed calls within it count by their own names. Outside of timed calls
    there is nothing.
    """
    if not _here.clocks:
        return {}
    clock = _here.clocks[-1]
    clock.read()
    return dict(clock.seconds)


@contextmanager
def _named(name: str, remedy: str = "") -> Iterator[None]:
    """Names the stage where a library could not solve its equations."""
    try:
        yield
    except SolverProblem as error:
        more = f"; {remedy}" if remedy else ""
        raise NoSolution(f"{name}: {error}{more}") from error


@contextmanager
def stage(name: str, saying: str = "", remedy: str = "") -> Iterator[None]:
    """Counts what is done in the block as a stage of the timed calls that it is in.

    Args:
        name: of the stage; blocks of one name add up.
        saying: message on work that shows no progress, e.g. "compiling the
            controller, once"; see :func:`doing`.
        remedy: advice where its equations cannot be solved.

    Raises:
        NoSolution: naming the stage, for equations in it that no library could solve.
    """
    clocks = list(_here.clocks)
    for clock in clocks:
        clock.read()
        clock.names.append(name)
    if saying:
        _said.append(saying)
    try:
        with _named(name, remedy):
            yield
    finally:
        if saying:
            _said.remove(saying)
        for clock in clocks:
            clock.read()
            clock.names.pop()


def doing() -> str:
    """Current work of the process that shows no progress; "" for none."""
    return _said[-1] if _said else ""
