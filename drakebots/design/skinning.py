"""Which link a point of the skin follows: smooth weights, and the nearest."""

from __future__ import annotations

import numpy as np

from drakebots.errors import InvalidInput


def segment_distances(points: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Distances (n, L) of points (n, 3) from segments (L, 2, 3) [m].

    Raises:
        InvalidInput: for wrong shapes or numbers that are not finite.
    """
    points, segments = np.asarray(points, float), np.asarray(segments, float)
    if points.ndim != 2 or points.shape[1] != 3:
        raise InvalidInput(f"skinning points: shape {points.shape}, needs (n, 3)")
    if segments.ndim != 3 or segments.shape[1:] != (2, 3) or len(segments) == 0:
        raise InvalidInput(
            f"skinning segments: shape {segments.shape}, needs (L, 2, 3), L >= 1"
        )
    if not (np.isfinite(points).all() and np.isfinite(segments).all()):
        raise InvalidInput("skinning: points and segments must be finite")
    out = np.empty((len(points), len(segments)))
    for k, (a, b) in enumerate(segments):
        along = b - a
        square = max(along @ along, np.finfo(float).tiny)
        t = np.clip((points - a) @ along / square, 0, 1)
        out[:, k] = np.linalg.norm(points - a - t[:, None] * along, axis=1)
    return out


def skinning_weights(
    vertices: np.ndarray, segments: np.ndarray, power: float = 4.0
) -> np.ndarray:
    """Weights (n, L), rows sum to 1:  w_l ~ d_l^-power  of the distances to links.

    Args:
        vertices: (n, 3) [m].
        segments: ends of the links (L, 2, 3) [m].
        power: larger is sharper.

    Raises:
        InvalidInput: for wrong shapes or a power <= 0.
    """
    if not (np.isfinite(power) and power > 0):
        raise InvalidInput(f"skinning power {power}: must be > 0")
    distance = segment_distances(vertices, segments)
    nearest = distance.min(axis=1, keepdims=True)
    # Ratios keep the powers from overflowing; on a link itself the weight is 1.
    ratio = np.maximum(nearest, 1e-9) / np.maximum(distance, 1e-9)
    weight = ratio**power
    return weight / weight.sum(axis=1, keepdims=True)


def nearest_link(vertices: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Index of the nearest segment of each vertex (n,)."""
    return np.argmin(segment_distances(vertices, segments), axis=1)
