"""Ctrl-C noted, so that long work ends between two steps instead of inside one.

An exception raised in the middle of a Python system's callback passes through
C++, and does not always arrive as KeyboardInterrupt.
"""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from drakebots.core.errors import InvalidInput


class CtrlC:
    """While in the `with` block, notes Ctrl-C; a second one raises at once.

    Outside the main thread nothing changes.

    Attributes:
        asked: whether Ctrl-C came.
    """

    def __init__(self):
        self.asked, self._before = False, None

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
        if self.asked:
            raise KeyboardInterrupt

    def _note(self, number, frame) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


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
        time: reached in the simulation [s].
        wall: spent [s].
    """

    verdict: Verdict
    message: str
    time: float
    wall: float


def check_duration(duration: float) -> float:
    """The duration if it is finite and > 0.

    Raises:
        InvalidInput: otherwise.
    """
    if not (np.isfinite(duration) and duration > 0):
        raise InvalidInput(f"duration must be > 0 s, got {duration}")
    return float(duration)
