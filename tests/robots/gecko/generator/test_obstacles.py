"""Ways around obstacles: clear, shortest, and named errors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import ConvexHull

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.robots.gecko.generator import (
    GaitPatternGenerator,
    GeneratorOptions,
    half_width,
    plan_route,
)
from drakebots.robots.gecko.generator.obstacles import (
    check_obstacles,
    distance_to_obstacles,
)
from tests.helpers.polynomial_gecko import run_polynomial


def square(x, y, r):
    return np.array([[x - r, y - r], [x + r, y - r], [x + r, y + r], [x - r, y + r]])


CUP = np.array(
    [
        *([0.3, -0.3], [0.9, -0.3], [0.9, 0.3], [0.3, 0.3]),
        *([0.3, 0.2], [0.8, 0.2], [0.8, -0.2], [0.3, -0.2]),
    ]
)


def dense(route, spacing=0.002):
    corners = np.vstack([route.start, route.waypoints])
    parts = []
    for a, b in pairwise(corners):
        count = int(np.ceil(np.linalg.norm(b - a) / spacing)) + 2
        parts.append(a + np.linspace(0, 1, count)[:, None] * (b - a))
    return np.vstack(parts)


def check_clear(route, obstacles, clearance):
    assert distance_to_obstacles(dense(route), obstacles).min() >= clearance - 1e-8


def grid_length(start, goal, obstacles, clearance, spacing=0.02):
    """Shortest way over a grid with 32 directions; start and goal are on it."""
    x = np.arange(-0.6, 1.6001, spacing)
    y = np.arange(-1.0, 1.0001, spacing)
    nodes = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)
    shape = nodes.shape[:2]
    free = distance_to_obstacles(nodes.reshape(-1, 2), obstacles).min(axis=1)
    free = (free >= clearance).reshape(shape)
    number = np.arange(free.size).reshape(shape)
    rows, columns, lengths = [], [], []
    moves = [(1, 0), (1, 1), (2, 1), (3, 1), (3, 2), (1, 2), (1, 3), (2, 3)]
    moves += [(0, 1)] + [(-i, j) for i, j in moves if i and j]
    for i, j in moves:
        at = np.s_[max(-i, 0) : shape[0] - max(i, 0), : shape[1] - j]
        to = np.s_[max(i, 0) : shape[0] + min(i, 0), j:]
        both = free[at] & free[to]
        rows.append(number[at][both])
        columns.append(number[to][both])
        lengths.append(np.full(both.sum(), spacing * np.hypot(i, j)))
    entries = (np.concatenate(lengths), (np.concatenate(rows), np.concatenate(columns)))
    graph = coo_array(entries, shape=(free.size,) * 2).tocsr()

    def at(p):
        return number[np.abs(x - p[0]).argmin(), np.abs(y - p[1]).argmin()]

    return dijkstra(graph, directed=False, indices=at(start))[at(goal)]


@pytest.mark.parametrize(
    "obstacles, goal",
    [
        ([square(0.5, 0, 0.1)], (1.0, 0.0)),
        ([CUP], (1.2, 0.0)),
        ([square(0.4, 0.1, 0.1), square(0.8, -0.2, 0.15)], (1.2, 0.0)),
        (
            [
                square(0.5, 0, 0.1),
                square(0.55, 0.12, 0.1),
                [[0.9, -0.3], [1, 0], [0.9, 0.2]],
            ],
            (1.3, 0.1),
        ),
    ],
)
def test_shortest_way(obstacles, goal):
    clearance = 0.1
    route = plan_route([0, 0], [goal], obstacles, clearance=clearance)
    check_clear(route, obstacles, clearance)
    # The grid's ways are up to 1.3 % longer than free ones, and keep a clearance
    # that is sampled: they may cut a corner between samples by a little.
    grid = grid_length((0, 0), goal, obstacles, clearance)
    assert 0.96 * grid <= route.length <= 1.01 * grid


def test_way_about_one_corner_is_the_string(monkeypatch):
    """Two tangents and an arc about one vertex of a thin triangle."""
    obstacle = [[0.5, 0.0], [0.55, -2.0], [0.45, -2.0]]
    coarse = plan_route([0, 0], [[1, 0]], [obstacle], clearance=0.2)
    monkeypatch.setattr(f"{plan_route.__module__}.STEP", 0.05)
    route = plan_route([0, 0], [[1, 0]], [obstacle], clearance=0.2)
    angle = 2 * np.arcsin(0.2 / 0.5)
    exact = 2 * np.sqrt(0.5**2 - 0.2**2) + 0.2 * angle
    assert exact <= route.length <= 1.001 * exact
    assert route.length <= coarse.length <= 1.02 * exact


def test_straight_where_nothing_is_in_the_way():
    for obstacles in ([], [square(0.5, 0.5, 0.1)]):
        route = plan_route([0, 0], [[1, 0], [1, 0], [1, -1]], obstacles)
        assert route.waypoints.tolist() == [[1, 0], [1, 0], [1, -1]]
        assert route.target.tolist() == [0, 1, 2]
        assert route.length == pytest.approx(2)


def test_several_targets():
    obstacles = [square(0.5, 0, 0.1), square(0.5, 0.8, 0.1)]
    targets = [[1.0, 0.0], [1.0, 0.8], [0, 0.8]]
    route = plan_route([0, 0], targets, obstacles)
    check_clear(route, obstacles, half_width())
    ends = route.waypoints[np.append(np.diff(route.target) > 0, True)]
    np.testing.assert_array_equal(ends, targets)


angles = st.lists(st.floats(0, 2 * np.pi), min_size=5, max_size=9)


@pytest.mark.long
@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.floats(0.3, 1.7), st.floats(-0.5, 0.5), st.floats(0.05, 0.2), angles
        ),
        min_size=1,
        max_size=4,
    ),
    st.floats(0.02, 0.15),
)
def test_random_convex_obstacles(shapes, clearance):
    obstacles = []
    for x, y, r, turns in shapes:
        turns = np.unique(np.round(turns, 1))
        assume(len(turns) >= 4)
        points = [x, y] + r * np.stack([np.cos(turns), np.sin(turns)], axis=1)
        obstacles.append(points[ConvexHull(points).vertices])
    stops = np.array([[-0.3, 0.0], [2.3, 0.0]])
    route = plan_route(stops[0], stops[1:], obstacles, clearance=clearance)
    check_clear(route, obstacles, clearance)
    # A way around everything is an upper bound, the straight line a lower one.
    wide = 0.5 + 0.2 + clearance + 0.01
    detour = np.hypot(0.3, wide) * 2 + 2.0
    assert 2.6 - 1e-9 <= route.length <= detour
    back = plan_route(stops[1], stops[:1], obstacles, clearance=clearance)
    assert back.length == pytest.approx(route.length, abs=1e-9)
    mirrored = [p[::-1] * [1, -1] for p in obstacles]
    other = plan_route(stops[0], stops[1:], mirrored, clearance=clearance)
    assert other.length == pytest.approx(route.length, abs=1e-9)


def test_distance_to_obstacles():
    points = [[0, 0], [0.45, 0], [0.55, 0], [0.6, 0.6], [0.7, 0.5]]
    near = distance_to_obstacles(points, [square(0.5, 0.5, 0.1), CUP])
    np.testing.assert_allclose(near[:, 0], [np.hypot(0.4, 0.4), 0.4, 0.4, 0, 0.1])
    # Between the cup's walls is outside.
    np.testing.assert_allclose(near[1:3, 1], [0.2, 0.2])
    assert distance_to_obstacles([[0.85, 0]], [CUP[::-1]])[0, 0] == 0


@pytest.mark.parametrize("heading", np.linspace(-np.pi, np.pi, 6, endpoint=False))
def test_walk_around_obstacles(heading):
    obstacles = [square(0.5, 0, 0.1), square(0.9, 0.3, 0.1)]
    route = plan_route([0, 0], [[1.4, 0.2]], obstacles)
    options = GeneratorOptions(arrival=0.1)
    generator = GaitPatternGenerator(route.targets(0.05), options)
    run = run_polynomial(generator, [0, 0], heading)
    assert run.reached and run.half_cycles < 100
    assert distance_to_obstacles(run.position, obstacles).min() > half_width() - 0.03


def test_targets_along_a_route():
    route = plan_route([0, 0], [[1, 0], [1, 0], [1, 1]], [square(0.5, 0, 0.1)])
    targets = route.targets(0.05)
    gaps = np.linalg.norm(np.diff(np.vstack([[0, 0], targets]), axis=0), axis=1)
    assert gaps.max() <= 0.05 + 1e-12
    assert gaps.sum() == pytest.approx(route.length)
    for waypoint in route.waypoints:
        assert (targets == waypoint).all(axis=1).any()
    with pytest.raises(InvalidInput, match="spacing"):
        route.targets(0)


def test_stops_within_the_clearance():
    obstacles = [square(3, 3, 0.1), square(0.5, 0, 0.1)]
    with pytest.raises(InvalidInput, match=r"start .* from obstacle 1, closer"):
        plan_route([0.5, 0.15], [[1, 1]], obstacles)
    with pytest.raises(InvalidInput, match=r"target 1 .* 0 m from obstacle 1"):
        plan_route([0, 0], [[1, 1], [0.5, 0]], obstacles)


def test_no_way():
    cup = np.vstack([CUP[:4], [[0.3, 0.06], [0.4, 0.06], [0.4, 0.2]]])
    cup = np.vstack([cup, [[0.8, 0.2], [0.8, -0.2], [0.4, -0.2], [0.4, -0.06]]])
    cup = np.vstack([cup, [[0.3, -0.06]]])
    with pytest.raises(
        NoSolution, match=r"start to target 0 .*straight line: 0; lower"
    ):
        plan_route([0, 0], [[0.6, 0]], [cup], clearance=0.07)
    assert plan_route([0, 0], [[0.6, 0]], [cup], clearance=0.05).length < 0.61


@pytest.mark.parametrize(
    "polygon, match",
    [
        ([[0, 0], [1, 0]], "has 2 vertices"),
        ([[0, 0], [1, 0], [0, 0]], "has 2 vertices"),
        ([[0, 0], [1, 0], [2, 0]], "no area"),
        ([[0, 0], [1, 0], [1, 0], [0, 1]], "repeats vertex 1"),
        ([[0, 0], [1, 1], [1, 0], [0, 1.5]], "crosses or touches itself"),
        ([[0, 0], [2, 0], [1, 0], [1, 1]], "crosses or touches itself"),
        ([[0, 0], [1, 0], [1, 1], [0.5, 0], [0, 1]], "crosses or touches itself"),
        ([[0, 0], [1, np.nan], [1, 1]], "finite"),
        ([[0, 0], [1, 0], [1]], "numbers"),
        ([0, 1, 2], "finite"),
    ],
)
def test_bad_polygons(polygon, match):
    with pytest.raises(InvalidInput, match=f"obstacle 1.*{match}"):
        check_obstacles([square(3, 3, 0.1), polygon])


def test_bad_settings():
    for clearance in (0, -1, np.nan):
        with pytest.raises(InvalidInput, match="clearance"):
            plan_route([0, 0], [[1, 0]], [], clearance=clearance)


def test_closing_vertex_and_sense_do_not_matter():
    p = square(0.5, 0, 0.1)
    lengths = [
        plan_route([0, 0], [[1, 0]], [q]).length for q in (p, p[::-1], [*p, p[0]])
    ]
    assert lengths == pytest.approx([lengths[0]] * 3)
