"""Shape of a piezoelectric bending actuator. Lengths in mm.

The plate lies along x, bends along y and is wide along z; its tip, at the
origin, points forward.
"""

from __future__ import annotations

import numpy as np

from .parameters import HamrParameters
from .pieces import Piece, block, solid
from .shapes import Mesh, loft, merge

# Ours: nothing published was found.
BASE = (2.5, 0.3)  # an actuator's base: length, how much thicker it is
ELECTRODE = (0.5, 0.012)  # an electrode: margin to the piezo's edge, height
CLAMP = 0.35  # by how much the tip's extension overlaps the piezo


def mm(p: np.ndarray) -> np.ndarray:
    """Metres to millimetres."""
    return np.asarray(p, float) * 1e3


def actuator_taper(parameters: HamrParameters) -> tuple[float, float]:
    """Width of an actuator at its base and at its tip [mm]."""
    width = mm(parameters.number("actuator", "width"))
    ratio = parameters.number("actuator", "width_ratio")
    return float(width * ratio), float(width * (2 - ratio))


def tapered(x: float, X: float, t: float, width: float, Width: float, y=0.0) -> Mesh:
    """A plate in the xz plane, `width` high at x and `Width` high at X."""

    def ring(y):
        w, W = width / 2, Width / 2
        return np.array([(x, y, -w), (x, y, w), (X, y, W), (X, y, -W)])

    return loft(ring(y - t / 2), ring(y + t / 2))


def actuator_thickness(parameters: HamrParameters, kind: str) -> tuple[float, float]:
    """Thickness of the carbon core and of each piezo plate [mm]."""
    core = {"s": "thickness_carbon_swing", "l": "thickness_carbon_lift"}[kind]
    return (
        float(mm(parameters.number("actuator", core))),
        float(mm(parameters.number("actuator", "thickness_piezo"))),
    )


def actuator_pieces(parameters: HamrParameters, kind: str) -> list[Piece]:
    """The parts of an actuator that stay on the chassis; kind is "s" or "l"."""
    core, piezo = actuator_thickness(parameters, kind)
    length = float(mm(parameters.number("actuator", "length")))
    tip = -float(mm(parameters.number("actuator", "extension")))
    base = tip - length
    width, narrow = actuator_taper(parameters)
    margin, height = ELECTRODE

    def slope(x):
        return width + (narrow - width) * (x - base) / length

    y = core / 2 + piezo / 2
    plates = [tapered(base, tip, piezo, width, narrow, s * y) for s in (1, -1)]
    a, b = base + margin, tip - 2 * margin
    face = core / 2 + piezo + height / 2
    metal = [
        tapered(a, b, height, slope(a) - 2 * margin, slope(b) - 2 * margin, s * face)
        for s in (1, -1)
    ]
    reach, more = BASE
    total = core + 2 * piezo
    return [
        solid(
            "core", "carbon", tapered(base, tip, core, width, narrow), f"core_{kind}"
        ),
        solid("piezo", "piezo", merge(plates), f"piezo_{kind}"),
        solid("electrode", "electrode", merge(metal), f"electrode_{kind}"),
        block(
            "base",
            "ceramic",
            (reach, total + more, width),
            (base - reach / 2 + 0.2, 0, 0),
        ),
    ]


def tip_pieces(parameters: HamrParameters, kind: str) -> list[Piece]:
    """The glass-fibre extension of an actuator, and the clamp about its end."""
    core, piezo = actuator_thickness(parameters, kind)
    length = float(mm(parameters.number("actuator", "extension")))
    _, width = actuator_taper(parameters)
    mesh = tapered(
        -length - CLAMP, 0, core + 2 * piezo + 0.06, width + 0.1, width * 0.9
    )
    return [solid("extension", "glass", mesh, f"tip_{kind}")]
