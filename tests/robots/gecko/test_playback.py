"""Poses between those stored."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.model import gecko, limb_curves
from drakebots.robots.gecko.playback import (
    between,
    frames,
    stored_joints,
    stored_poses,
)


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


def test_beams_are_drawn_with_their_own_shape(driven):
    """Chains end at the stored markers, keep their length, and are no arcs."""
    data, rows = driven.data, slice(0, None, 10)
    stored = zip(stored_poses(data, rows), stored_joints(data, rows))
    curves = np.array([limb_curves(*pair) for pair in stored])
    ends = data.marker_position.values[rows][:, [0, 2, 4, 3, 5]]
    np.testing.assert_allclose(curves[:, :, -1], ends, atol=1e-9)
    lengths = np.linalg.norm(np.diff(curves, axis=2), axis=-1).sum(axis=-1)
    np.testing.assert_allclose(lengths - gecko().lengths, 0, atol=1e-9)
    arcs = np.array([pose.feet for pose in stored_poses(data, rows)])
    assert np.abs(arcs - ends[:, [0, 1, 3, 4]]).max() > 1e-3
