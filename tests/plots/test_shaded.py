"""Still pictures show a mesh as what it approximates, in one light."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from drakebots.plots import Solid, box, shaded, turned

CORNERS = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
SIZE = (180, 120)


def cut(solid: Solid, parts: int) -> Solid:
    """The same solid, each triangle cut into parts^2 alike."""
    vertices, triangles = [], []
    for a, b, c in solid.vertices[solid.triangles]:
        start, number = sum(map(len, vertices)), {}
        for i in range(parts + 1):
            for j in range(parts + 1 - i):
                number[i, j] = start + len(number)
        at = np.array(list(number)) / parts
        vertices.append(a + at[:, :1] * (b - a) + at[:, 1:] * (c - a))
        for i, j in number:
            if i + j < parts:
                triangles.append([number[p] for p in ((i, j), (i + 1, j), (i, j + 1))])
            if i + j < parts - 1:
                corners = ((i + 1, j), (i + 1, j + 1), (i, j + 1))
                triangles.append([number[p] for p in corners])
    return Solid(np.concatenate(vertices), np.array(triangles), solid.colour)


def test_edges_of_a_mesh_are_not_seen():
    """A box of 12 triangles and one of 300 are the same picture."""
    plain = box(CORNERS, (0.8, 0.5, 0.3))
    few, many = (shaded([turned([x], 30)], SIZE) for x in (plain, cut(plain, 5)))
    assert abs(few - many).mean() < 1e-3
    assert np.quantile(abs(few - many), 0.999) < 0.02


def test_a_ball_is_round_and_casts_a_shadow():
    """Its 24 facets around are not seen; light comes from the upper left; the ground
    beside it, away from the light, is darker than open ground."""
    turn = 2 * np.pi * np.arange(24) / 24 + np.zeros((13, 1))
    up = np.pi * np.arange(13)[:, None] / 12
    r, z = np.sin(up), np.cos(up) + 0 * turn
    x = np.stack([r * np.cos(turn), r * np.sin(turn), z], -1)
    k = np.arange(12 * 24).reshape(12, 24)
    side = np.roll(k, -1, axis=1)
    faces = np.concatenate(
        [np.stack([k, k + 24, side], -1), np.stack([side, k + 24, side + 24], -1)]
    ).reshape(-1, 3)
    ball = Solid(0.1 * x.reshape(-1, 3), faces, (0.8, 0.2, 0.2))
    pixels = shaded([[ball]], SIZE)
    red = pixels[..., 0] - pixels[..., 2] > 0.2
    rows, columns = np.nonzero(red)
    width, height = np.ptp(columns) + 1, np.ptp(rows) + 1
    assert width == pytest.approx(height, rel=0.06)
    assert red.sum() == pytest.approx(np.pi / 4 * width * height, rel=0.04)
    middle = pixels[rows.min() + height // 3, columns.min() : columns.max(), 0]
    inside = middle[width // 10 : -(width // 10)]
    assert abs(np.diff(inside)).max() < 0.02
    assert middle[width // 4] > middle[3 * width // 4]
    row = pixels[rows.max() - height // 12].mean(axis=1)
    assert row[columns.max() + 3] < 0.8 * row[columns.min() - 40]


def test_what_is_clear_shows_what_is_inside():
    inner = box(0.5 * CORNERS, (0.1, 0.1, 0.9))
    hull = box(CORNERS, (0.9, 0.9, 0.9))
    blue = []
    for opacity in (0.2, 1.0):
        outer = Solid(hull.vertices, hull.triangles, hull.colour, opacity)
        pixels = shaded([[outer, inner]], SIZE)
        blue.append((pixels[..., 2] - pixels[..., 0]).max())
    assert blue[0] > 0.2 > 0.1 > blue[1]
