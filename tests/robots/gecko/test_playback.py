"""Poses between those stored."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.drake import reproduction, simulate_walk
from drakebots.robots.gecko.playback import between, frames, stored_poses


def test_playback_keeps_feet_and_stored_poses(course):
    """Between the poses stored, feet that hold stay within half a millimetre."""
    data = course.data
    poses = stored_poses(data)
    np.testing.assert_allclose(
        [p.markers for p in poses], data.marker_position, atol=1e-9
    )
    for k in range(len(poses) - 1):
        held = data.fixation.values[k + 1] > 0.5
        a, b = poses[k], poses[k + 1]
        for share in (0.2, 0.5, 0.8):
            slip = (between(a, b, held, share).feet - a.feet)[held]
            assert np.abs(slip).max() < 5e-4
        np.testing.assert_allclose(between(a, b, held, 0).markers, a.markers)
        np.testing.assert_allclose(between(a, b, held, 1).markers, b.markers, atol=1e-8)
    motion = frames(data, 100)
    np.testing.assert_allclose(motion.markers[-1], poses[-1].markers, atol=1e-8)
    with pytest.raises(InvalidInput, match="frames"):
        frames(data, 1)


def test_lengths_in_drake_follow_from_the_markers():
    """Chains of equal stiffness are arcs up to 0.1 mm."""
    data = simulate_walk(reproduction(cycles=1, time_limit=20.0)).data
    drawn = np.array([p.markers for p in stored_poses(data)])
    assert np.abs(drawn - data.marker_position.values).max() < 1e-4
