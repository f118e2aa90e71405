"""A horse's trot as foot paths for any quad-robot.

What is used of a trot, as the plates of Muybridge and the textbooks after them
show it: diagonal feet move together, half a period apart; a limb goes on backwards
after it leaves the ground, folds to its shortest before the middle of the swing,
reaches furthest forward before it lands and is already moving back when it does.
The keyframes below are our own drawing of that; no recorded data is in them, and
the paper's labelled pictures are not available to us.

Retargeting is by limb angle and length at the hip, hence by foot path:

    x = x_m f(s),  z = lift r(s),   s in [0, 1] the progress of the swing

with f from -1 (left behind) to 1 (landed), and f' at both ends that of a foot
at rest on the ground. Stride and period follow the scaling of gaits with Froude
number Fr = v^2/(g h) over animals of very different size,

    stride / h = 2.4 Fr^0.34         (Alexander and Jayes, J. Zool. 201, 1983)
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator

from drakebots.errors import InvalidInput
from drakebots.robots.quads.gait import Swing
from drakebots.robots.quads.support import GRAVITY

FOLD = np.array(
    [
        [0.0, 0.0],
        [0.15, 0.42],
        [0.30, 0.86],
        [0.42, 1.0],
        [0.60, 0.80],
        [0.80, 0.36],
        [1.0, 0.0],
    ]
)
"""s, and how far the foot is off the ground, of its highest."""

REACH = np.array([[0.0, -1.0], [0.18, -1.02], [0.5, 0.05], [0.85, 1.05], [1.0, 1.0]])
"""s, and where the foot is behind (-1) or ahead (1) of the hip."""


def stride_length(speed: float, hip_height: float) -> float:
    """Way of the body in one period [m].

    Args:
        speed: [m/s].
        hip_height: h [m].

    Raises:
        InvalidInput: unless both are > 0.
    """
    for what, value in (("speed", speed), ("hip height", hip_height)):
        if not (np.isfinite(value) and value > 0):
            raise InvalidInput(f"{what} = {value} must be > 0")
    froude = speed**2 / (GRAVITY * hip_height)
    return 2.4 * hip_height * froude**0.34


def horse_swing(duty: float) -> Swing:
    """The swing of a trotting horse, for a gait of this duty.

    Over a swing of (1 - beta) T the hip advances (1 - beta) of the step and the
    foot from -beta/2 to beta/2 of it relative to the hip: the share of the step is
    beta (f + 1)/2 + (1 - beta) s, at rest at both ends.
    """
    slope = -2 * (1 - duty) / duty
    s, f = REACH.T
    inner = PchipInterpolator(s, f).derivative()(s)
    inner[[0, -1]] = slope
    reach = CubicHermiteSpline(s, f, inner)
    t, r = FOLD.T
    rise = np.gradient(r, t)
    rise[[0, -1]] = 0.0
    fold = CubicHermiteSpline(t, r, rise)

    def swing(s):
        s = np.asarray(s, float)
        way = duty * (reach(s) + 1) / 2 + (1 - duty) * s
        return way, np.maximum(fold(s), 0.0)

    return swing
