"""Legs in mid-stride are moved side by side, and the body follows."""

from itertools import pairwise

import manifold3d
import numpy as np
import pytest

from drakebots.core.errors import NoSolution
from drakebots.design.animal import stand
from drakebots.design.geometry import (
    DistanceGrid,
    HalfSpaceCut,
    Implicit,
    RoundCone,
    check_surface,
    to_manifold,
    to_surface,
)
from drakebots.design.stride import side_by_side

RADIUS = 0.035


def standing(legs, radius=RADIUS):
    """The surface of a body on legs, each a chain of points above the ground [m]."""
    parts = [
        RoundCone([-0.25, 0, 0.40], [0.25, 0, 0.40], 0.12, 0.12),
        RoundCone([0.3, 0, 0.45], [0.42, 0, 0.55], 0.07, 0.06),
    ]
    parts += [RoundCone(a, b, radius, radius) for leg in legs for a, b in pairwise(leg)]
    cut = HalfSpaceCut([0, 0, 0.0], [0, 0, -1.0])
    body = Implicit(tuple(parts), (cut,), 0.02)
    return DistanceGrid.from_implicit(body, 8e-3).level_set()


def straight(x, side, angle=0.0, out=0.0, high=0.0):
    """A leg from its hip at x, turned forward and outward [rad], its foot lifted."""
    foot = [x + 0.38 * np.tan(angle), side * (0.1 + 0.38 * np.tan(out)), high]
    return [[x, 0.1 * side, 0.38], foot]


def striding(front: float, hind: float, lift: float = 0.0):
    """A body whose left and right legs are turned about their hips [rad].

    Left legs are turned forward by front and hind, right ones backward; the left front
    foot hangs in the air [m].
    """
    legs = [
        straight(x, side, side * angle, high=lift if side > 0 and x > 0 else 0.0)
        for x, angle in ((0.22, front), (-0.22, hind))
        for side in (1, -1)
    ]
    return stand(standing(legs), "x", "z")


def apart(animal, end):
    """Largest distance of a pair's lines, one mirrored, below their tops [m]."""
    left, right = animal.legs[end + "L"], animal.legs[end + "R"]
    z = np.linspace(0.01, 0.2, 20)
    mirror = np.array([1.0, -1.0, 1.0])
    return max(np.linalg.norm(left.at(h) - right.at(h) * mirror) for h in z)


def back(animal):
    """y of the middle of the back [m]."""
    y = animal.surface.vertices[animal.surface.vertices[:, 2] > 0.5, 1]
    return (y.min() + y.max()) / 2


def test_who_stands_straight_is_left_alone():
    animal = striding(0.0, 0.0)
    assert side_by_side(animal) is animal


@pytest.mark.long
@pytest.mark.parametrize("hind", [np.radians(-25), np.radians(25)])
def test_legs_come_side_by_side(hind):
    """A trot and a pace at 25 degrees: legs straight down, as wide as they were."""
    animal = striding(np.radians(25), hind)
    assert min(apart(animal, end) for end in "FR") > 0.2
    moved = side_by_side(animal)
    assert max(apart(moved, end) for end in "FR") < 0.02
    inside = DistanceGrid.from_surface(moved.surface, 8e-3, 0.05)
    for end, x in (("F", 0.22), ("R", -0.22)):
        for side in "LR":
            leg = moved.legs[end + side]
            below = leg.line[:, 2] < 0.2
            assert np.abs(leg.line[below, 0] - x).max() < 0.02
            # Across, a leg is as wide as it was; its sections stay whole.
            shin = below & (leg.line[:, 2] > RADIUS)
            assert -inside(leg.line[shin]).max() > 0.8 * RADIUS
    said = " ".join(moved.notes)
    assert "front legs differ left and right" in said
    assert "hind legs differ left and right" in said


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


@pytest.mark.parametrize("both", [False, True])
def test_a_leg_that_is_spread_to_one_side_comes_under_its_body(both):
    """25 degrees outward on the left: both legs come to the mean of the two angles.

    The plane of symmetry is the trunk's, not the middle of the feet.
    """
    out = np.radians(25)
    legs = [
        straight(x, side, out=out if side > 0 and (both or x > 0) else 0.0)
        for x in (0.22, -0.22)
        for side in (1, -1)
    ]
    animal = stand(standing(legs), "x", "z")
    assert abs(back(animal)) > 0.04
    moved = side_by_side(animal)
    assert abs(back(moved)) < 4e-3
    assert max(apart(moved, end) for end in "FR") < 0.02
    # Their common angle is half of that of the one that was spread.
    foot = 0.1 + 0.38 * np.tan(out) / 2
    for side, sign in (("L", 1), ("R", -1)):
        for end, y in (("F", foot), ("R", foot if both else 0.1)):
            found = sign * moved.legs[end + side].line[1, 1]
            assert found == pytest.approx(y, abs=0.01)


def test_a_lifted_foot_on_a_shin_that_is_nearly_level():
    """A hind leg whose knee and ankle are bent until its shin is 20 degrees from level.

    Where the level shin begins, the centre of the section jumps by more than its
    radius; the leg goes on above it.
    """
    level = [[-0.22, -0.1, 0.38], [-0.18, -0.1, 0.25], [-0.34, -0.1, 0.19]]
    level.append([-0.36, -0.1, 0.06])
    bent = [[-0.22, 0.1, 0.38], [-0.18, 0.1, 0.25], [-0.26, 0.1, 0.14]]
    bent.append([-0.25, 0.1, 0.0])
    legs = [straight(0.22, 1), straight(0.22, -1), bent, level]
    animal = stand(standing(legs, radius=0.015), "x", "z")
    assert apart(animal, "R") > 0.1
    moved = side_by_side(animal)
    assert apart(moved, "R") < 0.02
    lowest = [leg.line[0, 2] for leg in moved.legs.values()]
    assert max(lowest) - min(lowest) < 0.02
    _, report = check_surface(moved.surface)
    assert report.pieces == 1


def with_a_bar(surface, p, q):
    """A surface with a straight bar from p to q, half a millimetre thick [m]."""
    low, high = np.minimum(p, q), np.maximum(p, q)
    size = np.maximum(high - low, 5e-4)
    bar = manifold3d.Manifold.cube(size.tolist()).translate(low.tolist())
    return to_surface(to_manifold(surface) + bar)


def test_legs_that_are_joined_low_are_named():
    """A bar that voxels do not see joins two legs: neither can be moved alone."""
    angle = np.radians(20)
    animal = striding(angle, -angle)
    left = [animal.legs[name].at(0.05) for name in ("RL", "FL")]
    barred = with_a_bar(animal.surface, *left)
    animal = stand(barred, "x", "z")
    with pytest.raises(NoSolution, match=r"legs FL and RL are joined below 35 %.*cut"):
        side_by_side(animal)


def test_a_pair_that_stays_may_be_joined():
    animal = striding(np.radians(20), 0.0)
    feet = [animal.legs[name].at(0.05) for name in ("RR", "RL")]
    animal = stand(with_a_bar(animal.surface, *feet), "x", "z")
    assert apart(side_by_side(animal), "F") < 0.02
