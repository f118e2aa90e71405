"""Simulated time beside the wall clock."""

from __future__ import annotations

import math
import time
from collections import deque

GRAIN = 1.5e-3
"""Simulated time may be this far ahead of the wall clock [s]: sleeping is coarse."""

SLIP = 0.05
"""Simulated time that is later than this is not made up for [s]: it runs slow."""

WINDOW = 1.0
"""Time over which the real-time factor is measured [s]."""


class Pace:
    """Keeps simulated time from running ahead of the wall clock; it never waits for
    what is late.

    Args:
        speed: simulated over wall time; infinite to run as fast as it goes.

    Attributes:
        speed: may be changed at any time.
        paused: whether time stands still, but for steps asked for.
    """

    def __init__(self, speed: float = 1.0):
        self.speed, self.paused = speed, False
        self._marks: deque[tuple[float, float]] = deque()
        self._anchor: tuple[float, float, float] | None = None

    def wait(self, now: float) -> None:
        """Returns when simulated time `now` [s] is due."""
        wall = time.perf_counter()
        self._note(wall, now)
        if math.isinf(self.speed):
            return
        if self._anchor is None or self._anchor[2] != self.speed:
            self._anchor = wall, now, self.speed
        ahead = self._anchor[0] + (now - self._anchor[1]) / self.speed - wall
        if ahead > GRAIN:
            time.sleep(ahead)
        elif ahead < -SLIP:
            self._anchor = None

    def rest(self, seconds: float) -> None:
        """Lets wall time pass while simulated time stands still [s]."""
        time.sleep(seconds)
        self._anchor = None
        self._marks.clear()

    def _note(self, wall: float, now: float) -> None:
        marks = self._marks
        if not marks or wall > marks[-1][0] + WINDOW / 20:
            marks.append((wall, now))
        while wall - marks[0][0] > WINDOW and len(marks) > 1:
            marks.popleft()

    @property
    def factor(self) -> float:
        """Simulated over wall time of the last second; NaN before there is one."""
        if len(self._marks) < 2:
            return math.nan
        (wall_0, now_0), (wall, now) = self._marks[0], self._marks[-1]
        return (now - now_0) / (wall - wall_0)
