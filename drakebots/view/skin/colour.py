"""What a skin is coloured by, and the scale that says so.

values, scale = skin_values(result.data, "stress"), None
scale = colour_scale("stress", values)
scale.rgb(values)                      # (..., 3) in sRGB
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib import colormaps

from drakebots.core.errors import InvalidInput, UnknownName

COLOURS = ("stress", "displacement")
"""What a skin can be coloured by."""

_LABELS = {"stress": "von Mises stress", "displacement": "displacement from rest shape"}
_UNITS = {
    "stress": ((1e6, "MPa"), (1e3, "kPa"), (1.0, "Pa")),
    "displacement": ((1.0, "m"), (1e-3, "mm"), (1e-6, "um")),
}
_ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
_MAP = "YlOrRd"  # pale where there is little: the skeleton is seen there

SHARE = 99.0
"""The scale's top is the round number at or above this percentile; a few
vertices in a fold would take all the colours otherwise."""


@dataclass(frozen=True)
class ColourScale:
    """Colours from 0 to `top`; values above it have the last colour.

    Attributes:
        quantity: one of `COLOURS`.
        top: of the scale (SI).
        largest: value there is (SI).
        unit: of the numbers drawn, e.g. "kPa".
        unit_size: one unit (SI).
    """

    quantity: str
    top: float
    largest: float
    unit: str
    unit_size: float

    @property
    def label(self) -> str:
        """E.g. "von Mises stress [kPa]"."""
        return f"{_LABELS[self.quantity]} [{self.unit}]"

    @property
    def ticks(self) -> tuple[float, ...]:
        """Numbers on the scale, in `unit`, from 0 to the top."""
        return tuple(np.linspace(0.0, self.top / self.unit_size, 6).tolist())

    @property
    def note(self) -> str:
        """Text on the values beyond the end of the scale, or ""."""
        if self.largest <= self.top:
            return ""
        return f"largest {self.largest / self.unit_size:.3g} {self.unit}"

    def fraction(self, values: np.ndarray) -> np.ndarray:
        """Fractions of the scale (0..1) of values in SI."""
        return np.clip(np.asarray(values, float) / self.top, 0.0, 1.0)

    def rgb(self, values: np.ndarray) -> np.ndarray:
        """sRGB colours (..., 3) within 0..1, of values in SI."""
        return colormaps[_MAP](self.fraction(values))[..., :3]


def palette(count: int = 256) -> np.ndarray:
    """The scale's colours from bottom to top (count, 3) in sRGB."""
    return colormaps[_MAP](np.linspace(0.0, 1.0, count))[:, :3]


def linear_rgb(srgb: np.ndarray) -> np.ndarray:
    """Linear colours of sRGB; three.js takes those of vertices as linear."""
    srgb = np.asarray(srgb, float)
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def colour_scale(quantity: str, values: np.ndarray) -> ColourScale:
    """The scale for values >= 0, of any shape (SI).

    Raises:
        UnknownName: for a quantity that is not among `COLOURS`.
        InvalidInput: for values that are not finite.
    """
    check_colour(quantity)
    values = np.asarray(values)
    if not values.size or not np.isfinite(values).all():
        raise InvalidInput(f"the skin's {quantity}: needs finite values")
    largest = float(values.max())
    high = float(np.percentile(values, SHARE))
    # All at zero: any scale will do.
    top = round_up(high if high > 0 else largest) if largest > 0 else 1.0
    size, unit = next(
        ((size, unit) for size, unit in _UNITS[quantity] if top >= size),
        _UNITS[quantity][-1],
    )
    return ColourScale(quantity, top, largest, unit, size)


def check_colour(quantity: str) -> None:
    """Raises UnknownName unless a skin can be coloured by it."""
    if quantity not in COLOURS:
        raise UnknownName("colour", quantity, COLOURS)


def round_up(value: float) -> float:
    """The smallest of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times 10^k that is >= value."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(min(m * power for m in _ROUND if m * power >= value * (1 - 1e-9)))


def skin_values(data: xr.Dataset, quantity: str) -> np.ndarray:
    """The coloured quantity at each vertex (skin_time, vertex), in SI.

    Args:
        data: with skin_stress, or skin_position and skin_rest.
        quantity: "stress": von Mises; "displacement": the distance |x - (R X + p)|
            from the shape at rest, X, in the pose (R, p) that fits best (least
            squares): a body that only moves as a whole has none.

    Raises:
        UnknownName: for another quantity.
        InvalidInput: when the data lack it.
    """
    check_colour(quantity)
    needs = ("skin_stress",) if quantity == "stress" else ("skin_position", "skin_rest")
    for name in needs:
        if name not in data:
            raise InvalidInput(f"the result has no {name!r} to colour its skin by")
    if quantity == "stress":
        return data.skin_stress.transpose("skin_time", "vertex").values
    places = data.skin_position.transpose("skin_time", "vertex", "axis").values
    rest = data.skin_rest.transpose("vertex", "axis").values
    return np.stack([_away(rest.astype(float), x.astype(float)) for x in places])


def _away(rest: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Distances (V,) from the rest shape, best placed (Kabsch's rotation)."""
    at, to = rest - rest.mean(axis=0), x - x.mean(axis=0)
    u, _, vt = np.linalg.svd(at.T @ to)
    turn = u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))]) @ vt
    return np.linalg.norm(to - at @ turn, axis=1)
