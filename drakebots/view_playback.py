"""Recordings in Meshcat: how fast they play, and their frames."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from pydrake.geometry import Meshcat

from drakebots.errors import InvalidInput


def check_playback(**values: float) -> None:
    """Refuses a speed, rate or magnification that is not > 0.

    Raises:
        InvalidInput: naming it.
    """
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise InvalidInput(f"{name} must be > 0, got {value}")


def frame_samples(
    times: np.ndarray, slow: float, frames_per_second: float, most: int
) -> tuple[float, np.ndarray]:
    """The playback's rate [1/s], and the sample that each of its frames shows (n,).

    Args:
        times: of the samples (T,) [s].
        slow: how many times slower than these to play.
        frames_per_second: wanted; fewer when there would be too many frames.
        most: of frames.
    """
    length = slow * float(times[-1] - times[0])
    count = int(np.clip(length * frames_per_second, 2, most))
    samples = np.searchsorted(times, np.linspace(times[0], times[-1], count))
    return count / length, np.minimum(samples, len(times) - 1)


def play(
    meshcat: Meshcat,
    rate: float,
    count: int,
    show: Callable[[int, float], None],
    *,
    publish: bool = True,
) -> None:
    """Records frames 0 .. count - 1.

    Args:
        meshcat: where.
        rate: frames per second of the playback.
        count: of frames.
        show: called with the frame and its time [s].
        publish: to the browsers that look on.
    """
    meshcat.StartRecording(rate, False)
    for frame in range(count):
        # Meshcat rounds the time down to a frame.
        show(frame, (frame + 0.25) / rate)
    meshcat.StopRecording()
    if publish:
        meshcat.PublishRecording()
