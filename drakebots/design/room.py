"""Whether a box (a servo) fits inside a body, and at what scale it would."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.design.distance_grid import DistanceGrid
from drakebots.errors import InvalidInput


@dataclass(frozen=True)
class Room:
    """How a box lies in a body.

    Attributes:
        fits: whether the whole box keeps the clearance.
        sticks_out: largest shortfall [m]; negative is room to spare.
        p_W: where on the box [m].
        scale: the least factor on the body, about the box's centre, with which
            it fits; 1 when it fits, inf when twenty times is not enough.
    """

    fits: bool
    sticks_out: float
    p_W: np.ndarray
    scale: float


def box_room(
    grid: DistanceGrid,
    size: np.ndarray,
    p_W: np.ndarray,
    R_WB: np.ndarray | None = None,
    clearance: float = 0.0,
) -> Room:
    """Whether a box of `size` at p_W lies deeper than `clearance` in the body.

    Scaled by k about p, a body has the distance k phi(p + (x - p)/k).

    Args:
        grid: signed distance of the body.
        size: three full lengths [m]; a servo is 0.0408, 0.02, 0.038.
        p_W: centre [m].
        R_WB: orientation (3, 3).
        clearance: wanted depth of every point of the box: the wall and a gap [m].

    Raises:
        InvalidInput: for lengths <= 0.
    """
    size, p_W = np.asarray(size, float), np.asarray(p_W, float)
    if size.shape != (3,) or not (size > 0).all():
        raise InvalidInput(f"box size {size.tolist()}: needs three lengths > 0")
    R = np.eye(3) if R_WB is None else np.asarray(R_WB, float)
    offsets = _box_points(size, grid.spacing) @ R.T

    def shortfall(scale):
        phi = scale * grid(p_W + offsets / scale)
        worst = int(np.argmax(phi))
        return phi[worst] + clearance, worst

    out, worst = shortfall(1.0)
    scale = 1.0
    if out > 0:
        low, high = 1.0, 1.25
        while shortfall(high)[0] > 0 and high < 20:
            low, high = high, 1.25 * high
        if shortfall(high)[0] > 0:
            high = np.inf
        else:
            for _ in range(30):
                mid = (low + high) / 2
                low, high = (mid, high) if shortfall(mid)[0] > 0 else (low, mid)
        scale = float(high)
    return Room(bool(out <= 0), float(out), p_W + offsets[worst], scale)


def _box_points(size, h):
    """Points on the faces of a box about the origin, at most h apart."""
    axes = [np.linspace(-s / 2, s / 2, max(2, int(np.ceil(s / h)) + 1)) for s in size]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    return x[(np.abs(np.abs(x) - size / 2) < 1e-12).any(axis=1)]
