"""The gait law: what the limbs are asked to do, by step length and steering.

With q1 the torso's bending [rad], q2 the steering in [-0.5, 0.5], and c1 the
robot's `leg_bend`,

    alpha_0 = alpha_3 = pi/4 - q1/2 - |q1| q2/2 + c1 q1 q2
    alpha_1 = alpha_4 = pi/4 + q1/2 + |q1| q2/2 + c1 q1 q2
    alpha_2 = q1 + |q1| q2

A half cycle flips the sign of q1 and negates the fixation f. Source: Schiller,
Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), eqs. (1), (14), (15).
"""

from __future__ import annotations

import numpy as np

from drakebots.robots.gecko.parameters import LEGS, scalar


def gait_law(q1, q2, *, leg_bend: float = 1.0) -> np.ndarray:
    """Reference angles of the limbs (..., 5) [rad].

    References of legs that would be negative become a small positive angle:
    the legs bend to one side only.

    Args:
        q1: step length with the sign of the half cycle [rad].
        q2: steering; positive turns right.
        leg_bend: c1.
    """
    q1, q2 = np.broadcast_arrays(np.asarray(q1, float), np.asarray(q2, float))
    torso = q1 + np.abs(q1) * q2
    extra = leg_bend * q1 * q2
    left, right = np.pi / 4 - torso / 2 + extra, np.pi / 4 + torso / 2 + extra
    alpha = np.stack([left, right, torso, left, right], axis=-1)
    legs = alpha[..., LEGS]
    alpha[..., LEGS] = np.where(legs < 0, scalar("least_leg_angle"), legs)
    return alpha


def straight_law(q1) -> np.ndarray:
    """The law without steering, eq. (1): angles (..., 5) [rad]."""
    return gait_law(q1, 0.0)


def fixation(q1: float) -> np.ndarray:
    """Feet (FL, FR, RL, RR) that hold while the torso goes to q1 (4,) of bool.

    Front right and rear left hold for q1 >= 0: the left front leg swings
    forward then. (Eq. (1) states the feet that hold in the pose reached, and
    on until the next is, so it reads the other way round.)
    """
    return np.array([False, True, True, False]) == (q1 >= 0)
