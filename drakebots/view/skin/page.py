"""Puts a skin's motion into a static Meshcat page.

Meshcat's animations move objects, not vertices. The page gets the skin as a mesh at
rest, an encoded stream of its vertices and a script that sets them, in between frames
too, by the clock of the page's own animation: pause, seek and time scale work as for
the skeleton. Nothing is loaded from elsewhere; browsers since 2023 can inflate.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from drakebots.core.errors import InvalidInput
from drakebots.view.page import at_end, linear_rgb

# Positions are whole numbers of a step, 1/65535 of the largest extent of the motion;
# each frame is stored as what changed since the one before, small numbers first
# (zigzag), low bytes apart from high ones, deflated. A mesh for each frame, the only
# other way in Meshcat, takes about ten times as much.

_STEPS = 65535


def encode(positions: np.ndarray, fractions: np.ndarray) -> tuple[dict[str, Any], str]:
    """Encodes a motion; good to half a step and to 1/510 of the scale.

    Args:
        positions: positions of the vertices (T, V, 3) [m].
        fractions: values to colour by (T, V), within 0..1.

    Returns:
        What the page is told: the number of `vertices`, the lowest corner of the motion
        (`origin`) and the `step` between neighbouring positions [m]; and base64 of zlib
        of T 3 V low bytes, as many high ones, T V values.

    Raises:
        InvalidInput: for other shapes, no frames, or what is not finite.
    """
    positions, fractions = np.asarray(positions), np.asarray(fractions)
    if positions.ndim != 3 or positions.shape[2] != 3 or not positions.size:
        raise InvalidInput(f"skin frames: shape {positions.shape}, needs (T, V, 3)")
    if fractions.shape != positions.shape[:2]:
        raise InvalidInput(
            f"skin colours: shape {fractions.shape}, needs {positions.shape[:2]}"
        )
    if not (np.isfinite(positions).all() and np.isfinite(fractions).all()):
        raise InvalidInput("skin frames: positions and colours must be finite")
    low = positions.min(axis=(0, 1)).astype(float)
    extent = float((positions.max(axis=(0, 1)) - low).max())
    step = extent / _STEPS if extent > 0 else 1.0
    # x of all vertices, then y, then z; frame by frame, for memory.
    whole = np.array([np.rint((x - low) / step).T.astype(np.uint16) for x in positions])
    change = np.diff(whole, axis=0, prepend=np.zeros_like(whole[:1])).view(np.int16)
    zigzag = ((change << 1) ^ (change >> 15)).view(np.uint16)
    tone = np.rint(255 * np.clip(fractions, 0, 1)).astype(np.uint8)
    tone = np.diff(tone, axis=0, prepend=np.zeros_like(tone[:1]))
    planes = ((zigzag & 255).astype(np.uint8), (zigzag >> 8).astype(np.uint8), tone)
    pressed = zlib.compress(b"".join(plane.tobytes() for plane in planes), 9)
    about = {"vertices": positions.shape[1], "origin": low.tolist(), "step": step}
    return about, base64.b64encode(pressed).decode()


def drawn_surface(rest: np.ndarray, triangles: np.ndarray) -> tuple:
    """The surface without closed inner walls, which nobody sees.

    A closed piece of an outward surface with negative volume bounds a cavity.

    Args:
        rest: vertices (N, 3) [m].
        triangles: outward (F, 3).

    Returns:
        The numbers (V,) of the vertices drawn, and triangles (f, 3) of those.

    Raises:
        InvalidInput: for no triangles, or a corner that is no vertex.
    """
    triangles, n = np.asarray(triangles), len(rest)
    if triangles.ndim != 2 or triangles.shape[1:] != (3,) or not len(triangles):
        raise InvalidInput(f"skin triangles: shape {triangles.shape}, needs (F, 3)")
    if triangles.min() < 0 or triangles.max() >= n:
        raise InvalidInput(f"skin triangles: a corner is not among the {n} vertices")
    ends = np.vstack([triangles[:, :2], triangles[:, 1:]])
    linked = coo_array((np.ones(len(ends)), ends.T), shape=(n, n))
    piece = connected_components(linked, directed=False)[1][triangles[:, 0]]
    around = np.asarray(rest, float) - np.mean(rest, axis=0)
    a, b, c = around[triangles].swapaxes(0, 1)
    volume = np.bincount(piece, np.einsum("fk,fk->f", a, np.cross(b, c)))
    seen = triangles[volume[piece] > 0]
    if not len(seen):  # an open sheet may have any sign
        seen = triangles
    used, corners = np.unique(seen, return_inverse=True)
    return used, corners.reshape(-1, 3)


BRIGHTNESS = 0.30
"""Share of the scene's light the skin throws back: about its scale's colours."""


def with_skin(
    page: str,
    about: Mapping[str, Any],
    stream: str,
    times: Sequence[float],
    palette: np.ndarray,
    *,
    path: str,
) -> str:
    """A Meshcat page with the skin's motion in it.

    Args:
        page: page with a triangle mesh at `path`, and a caption with a clock, which is
            that of the skin, too.
        about, stream: the frames, as :func:`encode` gives them.
        times: times of the frames in the page's animation (T,), rising [s].
        palette: sRGB colours of the values from 0 to 1 (256, 3).
        path: path of the mesh in the scene.

    Raises:
        InvalidInput: for times that do not rise, or a page that is none.
    """
    if (np.diff(times) <= 0).any():
        raise InvalidInput("the times of a skin's frames must rise")
    told = {
        **about,
        "path": [part for part in path.split("/") if part],
        "times": [round(float(t), 6) for t in times],
        "palette": np.round(linear_rgb(palette), 4).ravel().tolist(),
        "brightness": BRIGHTNESS * np.pi,
    }
    player = Path(__file__).with_name("player.html").read_text(encoding="utf-8")
    script = player.replace("@ABOUT@", json.dumps(told))
    return at_end(page, script.replace("@STREAM@", stream))
