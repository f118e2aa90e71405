"""The line inside a body, and the weights of the skin."""

import numpy as np
import pytest

from drakebots.design.distance_grid import DistanceGrid
from drakebots.design.implicit import Implicit, RoundCone, capsule, mirrored
from drakebots.design.skeletal_line import skeletal_line
from drakebots.design.skinning import nearest_link, skinning_weights
from drakebots.errors import InvalidInput


def quadruped():
    legs = [
        RoundCone([x, 0.07, 0.2], [x, 0.09, 0.03], 0.03, 0.022) for x in (-0.13, 0.13)
    ]
    torso = capsule([-0.17, 0, 0.22], [0.17, 0, 0.22], 0.06)
    return Implicit((torso, *mirrored(legs)), blend=0.02)


def test_a_capsule_has_its_axis():
    body = Implicit((capsule([-0.1, 0, 0], [0.1, 0, 0], 0.03),))
    line = skeletal_line(DistanceGrid.from_implicit(body))
    assert len(line.ends) == 2 and len(line.junctions) == 0
    assert np.abs(line.points[:, 1:]).max() < 4e-3
    assert np.ptp(line.points[:, 0]) > 0.18
    way = line.path(*line.ends)
    assert len(way) == len(line.points)


def test_a_quadruped_has_an_end_in_every_foot():
    line = skeletal_line(DistanceGrid.from_implicit(quadruped(), 4e-3))
    ends = line.points[line.ends]
    for x in (-0.13, 0.13):
        for y in (-0.09, 0.09):
            foot = np.array([x, y, 0.03])
            assert np.linalg.norm(ends - foot, axis=1).min() < 0.03
    assert len(line.ends) <= 6 and len(line.junctions) >= 2
    assert (line.radius > 0).all()
    assert len(line.edges) == len(line.points) - 1


def test_the_line_is_the_same_twice():
    grid = DistanceGrid.from_implicit(quadruped(), 6e-3)
    one, two = skeletal_line(grid), skeletal_line(grid)
    np.testing.assert_array_equal(one.points, two.points)


def test_weights_follow_the_links():
    segments = np.array([[[0, 0, 0], [1, 0, 0]], [[1, 0, 0], [2, 0, 0]]], float)
    points = np.array([[0.5, 0.1, 0], [1.5, 0.1, 0], [1.0, 0.1, 0], [0.2, 0, 0]])
    weights = skinning_weights(points, segments)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(weights[2], 0.5)
    assert weights[3, 0] == pytest.approx(1)
    np.testing.assert_array_equal(nearest_link(points[:2], segments), [0, 1])
    line = np.linspace([0, 0.1, 0], [2, 0.1, 0], 400)
    assert np.abs(np.diff(skinning_weights(line, segments), axis=0)).max() < 0.12


def test_bad_asks_are_named():
    grid = DistanceGrid.from_implicit(quadruped(), 8e-3)
    with pytest.raises(InvalidInput, match="spacing"):
        skeletal_line(grid, -1.0)
    with pytest.raises(InvalidInput, match="segments"):
        skinning_weights(np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(InvalidInput, match="power"):
        skinning_weights(np.zeros((2, 3)), np.zeros((1, 2, 3)), 0.0)
