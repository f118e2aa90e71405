"""Still pictures of solids: their outlines, light and what is seen through them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from drakebots.plots import Solid, box, shaded

CORNERS = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
SIZE = (180, 120)


def test_a_ball_is_round_and_lit_from_the_upper_left():
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
    assert middle[width // 4] > middle[3 * width // 4]
    assert width == pytest.approx(0.9 * SIZE[1], rel=0.05) or height > 0.8 * SIZE[1]


@pytest.mark.long
def test_what_is_clear_shows_what_is_inside():
    inner = box(0.5 * CORNERS, (0.1, 0.1, 0.9))
    hull = box(CORNERS, (0.9, 0.9, 0.9))
    blue = []
    for opacity in (0.2, 1.0):
        outer = Solid(hull.vertices, hull.triangles, hull.colour, opacity)
        pixels = shaded([[outer, inner]], SIZE)
        blue.append((pixels[..., 2] - pixels[..., 0]).max())
    assert blue[0] > 0.2 > 0.1 > blue[1]


@pytest.mark.parametrize("size", [(0.1, 0.1, 1.0), (1.0, 0.1, 0.1)])
def test_the_picture_is_filled_and_nothing_is_cut(size):
    pixels = shaded([[box(CORNERS * size, (0.8, 0.5, 0.3))]], SIZE)
    rows, columns = np.nonzero((pixels < 1).any(axis=2))
    share = np.ptp(columns) / SIZE[0], np.ptp(rows) / SIZE[1]
    assert max(share) == pytest.approx(0.9, abs=0.04)
    assert rows.min() > 0 and rows.max() < SIZE[1] - 1
