"""Draws geckos into plots: curved limbs in the colours of the paper.

Front left leg red, front right dark red, torso orange, rear left blue, rear right
dark blue, heading green; x and y in cm. Source of the colours: Schiller, Seibel,
Schlattmann, Front. Robot. AI 7:87 (2020), Fig. 6.
"""

from __future__ import annotations

import numpy as np

from drakebots.robots.gecko.kinematics import Pose, limb_curves
from drakebots.robots.gecko.parameters import FEET

LIMB_COLOURS = ("#e41a1c", "#8b0000", "#ff8c00", "#2c7fe0", "#0b2e83")
"""FL, FR, torso, RL, RR."""

FOOT_COLOURS = tuple(LIMB_COLOURS[i] for i in (0, 1, 3, 4))
"""FL, FR, RL, RR."""

HEADING_COLOUR = "#1b9e3a"

TARGET_COLOUR = "#73299a"

CM = 100.0
"""Centimetres in a metre."""


def draw_robot(
    axis,
    pose: Pose,
    *,
    held=None,
    scale: float = CM,
    alpha: float = 1.0,
    width: float = 2.0,
    feet: bool = True,
    zorder: float = 3.0,
) -> None:
    """Draws a pose.

    Args:
        axis: of matplotlib.
        pose: to draw.
        held: feet that hold (4,); legs of free feet are dashed. None: all hold.
        scale: units of the axis in a metre.
        alpha: opacity.
        width: of the limbs [points].
        feet: whether to mark feet: filled where they hold.
        zorder: of the drawing.
    """
    held = np.ones(len(FEET), bool) if held is None else np.asarray(held, bool)
    solid = [held[0], held[1], True, held[2], held[3]]
    for curve, color, firm in zip(limb_curves(pose), LIMB_COLOURS, solid, strict=True):
        axis.plot(
            *(scale * curve.T),
            color=color,
            lw=width,
            ls="-" if firm else (0, (1.6, 1.0)),
            alpha=alpha,
            zorder=zorder,
            solid_capstyle="round",
        )
    if not feet:
        return
    for point, color, firm in zip(pose.feet, FOOT_COLOURS, held, strict=True):
        axis.plot(
            *(scale * point),
            "o",
            ms=2.2 * width,
            mec=color,
            mfc=color if firm else "white",
            mew=0.5 * width,
            alpha=alpha,
            zorder=zorder + 0.1,
        )


def draw_arrow(axis, start, end, color: str, width: float = 1.6, zorder=5.0) -> None:
    """An arrow from a point to another, in the axis's units."""
    axis.annotate(
        "",
        xy=tuple(end),
        xytext=tuple(start),
        arrowprops={
            "arrowstyle": "-|>,head_width=0.18,head_length=0.35",
            "color": color,
            "lw": width,
            "shrinkA": 0,
            "shrinkB": 0,
        },
        zorder=zorder,
    )
    # Annotations do not count when the axis chooses its limits.
    axis.plot(*np.transpose([start, end]), alpha=0)
