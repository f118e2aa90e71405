"""Simulated time beside the wall clock."""

from __future__ import annotations

import math
import time
from collections import deque

GRAIN = 1.5e-3
"""Simulated time may be this far ahead of the wall clock [s]: sleeping is coarse."""

SLIP = 0.05
"""What is later than this is not made up for [s]: the simulation runs slow."""

MARKS = 20
"""Number of readings of both clocks in the last second."""


class Pace:
    """Keeps simulated time from running ahead of the wall clock, and waits for nothing
    that is late.

    Args:
        speed: simulated over wall time; infinite to run as fast as it goes.

    Attributes:
        speed: may be changed at any time.
        paused: whether time stands still.
    """

    def __init__(self, speed: float = 1.0):
        self.speed, self.paused, self._anchor = speed, False, (0.0, 0.0, math.nan)
        self._marks: deque[tuple[float, float]] = deque(maxlen=MARKS)

    def wait(self, now: float) -> None:
        """Returns when simulated time `now` [s] is due."""
        wall = time.perf_counter()
        if not self._marks or wall > self._marks[-1][0] + 1 / MARKS:
            self._marks.append((wall, now))
        began, at, speed = self._anchor
        late = wall - began - (now - at) / self.speed
        if speed != self.speed or late > SLIP:
            self._anchor = wall, now, self.speed
        elif -late > GRAIN:
            time.sleep(-late)

    @property
    def factor(self) -> float:
        """Simulated over wall time of the last second; NaN before there is one."""
        if len(self._marks) < 2:
            return math.nan
        (wall_0, now_0), (wall, now) = self._marks[0], self._marks[-1]
        return (now - now_0) / (wall - wall_0)
