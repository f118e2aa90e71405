"""Legs in mid-stride are moved side by side, and the body follows."""

import numpy as np
import pytest

from drakebots.design.animal import stand
from drakebots.design.geometry import (
    DistanceGrid,
    HalfSpaceCut,
    Implicit,
    RoundCone,
    check_surface,
)
from drakebots.design.stride import side_by_side

RADIUS = 0.035


def striding(front: float, hind: float, lift: float = 0.0):
    """A body whose left and right legs are turned about their hips [rad].

    Left legs are turned forward by front and hind, right ones backward; the left front
    foot hangs in the air [m].
    """
    parts = [
        RoundCone([-0.25, 0, 0.40], [0.25, 0, 0.40], 0.12, 0.12),
        RoundCone([0.3, 0, 0.45], [0.42, 0, 0.55], 0.07, 0.06),
    ]
    for x, angle in ((0.22, front), (-0.22, hind)):
        for side in (1, -1):
            high = lift if side > 0 and x > 0 else 0.0
            foot = x + side * 0.38 * np.tan(angle)
            y = 0.1 * side
            parts.append(RoundCone([x, y, 0.38], [foot, y, high], RADIUS, RADIUS))
    cut = HalfSpaceCut([0, 0, 0.0], [0, 0, -1.0])
    body = Implicit(tuple(parts), (cut,), 0.02)
    return stand(DistanceGrid.from_implicit(body, 8e-3).level_set(), "x", "z")


def apart(animal, end):
    """Largest distance of a pair's lines along x below their tops [m]."""
    left, right = animal.legs[end + "L"], animal.legs[end + "R"]
    z = np.linspace(0.01, 0.2, 20)
    return max(abs(left.at(h)[0] - right.at(h)[0]) for h in z)


def test_who_stands_straight_is_left_alone():
    animal = striding(0.0, 0.0)
    assert side_by_side(animal) is animal


@pytest.mark.parametrize("hind", [np.radians(-25), np.radians(25)])
def test_legs_come_side_by_side(hind):
    """A trot and a pace at 25 degrees: legs straight down, as wide as they were."""
    animal = striding(np.radians(25), hind)
    assert min(apart(animal, end) for end in "FR") > 0.2
    moved = side_by_side(animal)
    assert max(apart(moved, end) for end in "FR") < 0.02
    for end, x in (("F", 0.22), ("R", -0.22)):
        for side in "LR":
            leg = moved.legs[end + side]
            below = leg.line[:, 2] < 0.2
            assert np.abs(leg.line[below, 0] - x).max() < 0.02
            # Across, a leg is as wide as it was; its sections stay whole.
            assert leg.radius[below].min() > 0.8 * RADIUS
    said = " ".join(moved.notes)
    assert "front legs are in mid-stride" in said
    assert "hind legs are in mid-stride" in said


def test_a_pair_that_stands_stays_and_the_body_is_whole():
    """Only the front legs are moved; what is far from them is as it was."""
    animal = striding(np.radians(20), 0.0)
    moved = side_by_side(animal)
    assert "hind" not in " ".join(moved.notes)
    before, after = animal.surface, moved.surface
    shift = (after.vertices - before.vertices) - (after.vertices - before.vertices)[
        np.argmax(before.vertices[:, 2])
    ]
    far = before.vertices[:, 2] > 0.5
    assert np.abs(shift[far]).max() < 1e-12
    far = (before.vertices[:, 0] < -0.1) & (before.vertices[:, 2] < 0.2)
    assert np.abs(shift[far]).max() < 1e-12
    whole, report = check_surface(after)
    assert report.pieces == 1
    assert whole.volume == pytest.approx(before.volume, rel=0.05)


def test_a_foot_in_the_air_is_put_down():
    moved = side_by_side(striding(np.radians(20), 0.0, lift=0.08))
    lowest = {name: leg.line[0, 2] for name, leg in moved.legs.items()}
    assert max(lowest.values()) - min(lowest.values()) < 0.02
