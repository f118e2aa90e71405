"""Recordings: every frame is its own, and a pace that is none is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.view import check_playback, play
from drakebots.view.motion import frame_times
from drakebots.view.page import Caption


class Times:
    """Stands in for Meshcat, which rounds a time down to a frame of its rate."""

    def __init__(self):
        self.frames, self.published = [], False

    def StartRecording(self, rate, set_visualizations_while_recording):
        self.rate = rate

    def StopRecording(self):
        pass

    def PublishRecording(self):
        self.published = True

    def show(self, frame, time):
        self.frames.append(int(np.floor(time * self.rate)))


@given(st.floats(0.05, 500.0), st.integers(2, 1500))
def test_every_frame_is_its_own(length, count):
    """None falls on the one before it, however long the recording."""
    meshcat = Times()
    stage = SimpleNamespace(meshcat=meshcat, caption=Caption())
    more = {"start": 0.0, "slow": 1.0, "publish": False}
    play(stage, count / length, count, meshcat.show, **more)
    assert meshcat.frames == list(range(count))
    assert not meshcat.published


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["slow", "frames_per_second", "magnify"])
def test_a_pace_that_is_none(name, value):
    with pytest.raises(InvalidInput, match=f"{name} must be > 0"):
        check_playback(**{"slow": 1.0, name: value})


def test_moments_of_frames():
    """Evenly spread, first and last among them, no more than allowed."""
    times = np.linspace(1.0, 3.0, 2001)
    rate, moments = frame_times(times, 2.0, 30.0, 600)
    assert (rate, len(moments)) == (30.0, 121)
    assert (moments[0], moments[-1]) == (1.0, 3.0)
    assert np.ptp(np.diff(moments)) < 1e-12
    rate, moments = frame_times(times, 100.0, 30.0, 600)
    assert len(moments) == 600
    assert rate * 100.0 * np.diff(moments) == pytest.approx(np.ones(599))
