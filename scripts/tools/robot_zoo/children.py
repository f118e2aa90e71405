"""Runs one command in a process of its own, within limits of time and memory.

A crash, an endless loop or a hunger for memory of the child is an :class:`Outcome`.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

WALL_FACTOR = 4.0
"""A child that waits, or shares a busy machine, is ended after so many times the limit
of its processor time."""


@dataclass(frozen=True)
class Limits:
    """Limits of a child.

    Attributes:
        seconds: of processor time [s].
        memory: that it may write to [GB].
    """

    seconds: float
    memory: float = 16.0


@dataclass(frozen=True)
class Outcome:
    """Outcome of a child.

    Attributes:
        word: "ok", "failed" (exit code 1: it says itself that it did not succeed),
            "refused" (2: it does not take the input), "traceback", "crashed", "time
            limit" or "out of memory".
        cpu: processor time of the child and its children [s].
        wall: duration [s].
        printed: what it printed on stdout.
        errors: what it printed on stderr.
    """

    word: str
    cpu: float
    wall: float
    printed: str
    errors: str


class Children:
    """Starts children, and ends those that still run when it is closed.

    with Children() as children:
        outcome = children.run([...], Limits(60.0), log=folder / "show")
    """

    def __init__(self):
        self._running: set[int] = set()
        self._closed = False

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def close(self) -> None:
        """Ends all children; none starts any more."""
        self._closed = True
        for pid in list(self._running):
            _end(pid)

    def run(self, command: Sequence[str], limits: Limits, *, log: Path) -> Outcome:
        """Runs a command to its end.

        Args:
            command: program and arguments.
            limits: of the process; memory counts for each of its children apart.
            log: its output is kept in files of this name, .out and .err.

        Raises:
            KeyboardInterrupt: when closed.
        """
        out, err = log.with_suffix(".out"), log.with_suffix(".err")
        began = time.perf_counter()
        with open(out, "wb") as stdout, open(err, "wb") as stderr:
            if self._closed:
                raise KeyboardInterrupt
            # A process group of its own, so that its children end with it.
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=lambda: _limit(limits),
                env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"},
            )
        self._running.add(child.pid)
        late = threading.Event()
        timer = threading.Timer(
            WALL_FACTOR * limits.seconds, lambda: (late.set(), _end(child.pid))
        )
        timer.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
        finally:
            timer.cancel()
            _end(child.pid)
            self._running.discard(child.pid)
        child.returncode = os.waitstatus_to_exitcode(status)
        if self._closed:
            raise KeyboardInterrupt
        printed, errors = (x.read_text(errors="replace") for x in (out, err))
        return Outcome(
            _word(child.returncode, late.is_set(), errors),
            usage.ru_utime + usage.ru_stime,
            time.perf_counter() - began,
            printed,
            errors,
        )


def _limit(limits: Limits) -> None:
    seconds = math.ceil(limits.seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    size = int(limits.memory * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end(pid: int) -> None:
    """Kills the process group of a child, if it is still there."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _word(code: int, late: bool, errors: str) -> str:
    if late or code == -signal.SIGXCPU:
        return "time limit"
    if "MemoryError" in errors or "bad_alloc" in errors:
        return "out of memory"
    if code < 0:
        return "crashed"
    if "Traceback (most recent call last)" in errors:
        return "traceback"
    return {0: "ok", 1: "failed"}.get(code, "refused")
