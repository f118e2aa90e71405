"""A skin's motion in few bytes: what a page plays (`view_skin_page`).

Positions are whole numbers of a step, 1/65535 of the largest extent of the motion;
each frame is stored as what changed since the one before, small numbers first
(zigzag), low bytes apart from high ones, deflated. A mesh for each frame, the only
other way in Meshcat, takes about ten times as much.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput

_STEPS = 65535


@dataclass(frozen=True)
class SkinStream:
    """Frames of a surface, encoded.

    Attributes:
        frames, vertices: counts T and V.
        origin: lowest corner of the motion (3,) [m].
        step: between neighbouring positions [m].
        text: base64 of zlib of T 3 V low bytes, as many high ones, T V values.
    """

    frames: int
    vertices: int
    origin: tuple[float, float, float]
    step: float
    text: str


def encode(positions: np.ndarray, fractions: np.ndarray) -> SkinStream:
    """Encodes a motion; good to half a step and to 1/510 of the scale.

    Args:
        positions: (T, V, 3) [m].
        fractions: what to colour by (T, V), within 0..1.

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
    whole = np.empty(
        (len(positions), 3, positions.shape[1]), np.uint16
    )  # x of all vertices, then y, then z
    for at, frame in zip(whole, positions):
        at[:] = np.rint((frame - low) / step).T
    change = np.diff(whole, axis=0, prepend=np.zeros_like(whole[:1])).view(np.int16)
    zigzag = ((change << 1) ^ (change >> 15)).view(np.uint16)
    tone = np.rint(255 * np.clip(fractions, 0, 1)).astype(np.uint8)
    tone = np.diff(tone, axis=0, prepend=np.zeros_like(tone[:1]))
    pressed = zlib.compressobj(9)
    parts = [
        pressed.compress(np.ascontiguousarray(plane).tobytes())
        for plane in ((zigzag & 255).astype(np.uint8), (zigzag >> 8).astype(np.uint8))
    ]
    parts += [pressed.compress(tone.tobytes()), pressed.flush()]
    return SkinStream(
        frames=len(positions),
        vertices=positions.shape[1],
        origin=tuple(low.tolist()),
        step=step,
        text=base64.b64encode(b"".join(parts)).decode(),
    )


def decode(stream: SkinStream) -> tuple[np.ndarray, np.ndarray]:
    """Positions (T, V, 3) [m] and fractions (T, V), as the page finds them."""
    raw = np.frombuffer(zlib.decompress(base64.b64decode(stream.text)), np.uint8)
    t, v = stream.frames, stream.vertices
    low, high, tone = np.split(raw, [3 * t * v, 6 * t * v])
    zigzag = low.astype(np.uint16) | (high.astype(np.uint16) << 8)
    change = (zigzag >> 1) ^ (-(zigzag & 1).astype(np.int16)).view(np.uint16)
    whole = np.cumsum(change.reshape(t, 3, v), axis=0, dtype=np.uint16)
    places = np.array(stream.origin) + stream.step * whole.transpose(0, 2, 1)
    return places, np.cumsum(tone.reshape(t, v), axis=0, dtype=np.uint8) / 255


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
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    triangles, n = np.asarray(triangles), len(rest)
    if triangles.ndim != 2 or triangles.shape[1:] != (3,) or not len(triangles):
        raise InvalidInput(f"skin triangles: shape {triangles.shape}, needs (F, 3)")
    if triangles.min() < 0 or triangles.max() >= n:
        raise InvalidInput(f"skin triangles: a corner is not among the {n} vertices")
    ends = np.vstack([triangles[:, :2], triangles[:, 1:]])
    linked = coo_array((np.ones(len(ends)), ends.T), shape=(n, n))
    piece = connected_components(linked, directed=False)[1][triangles[:, 0]]
    a, b, c = (np.asarray(rest, float)[triangles] - np.mean(rest, axis=0)).swapaxes(
        0, 1
    )
    volume = np.bincount(piece, np.einsum("fk,fk->f", a, np.cross(b, c)))
    seen = triangles[volume[piece] > 0]
    if not len(seen):  # an open sheet may have any sign
        seen = triangles
    used, corners = np.unique(seen, return_inverse=True)
    return used, corners.reshape(-1, 3)
