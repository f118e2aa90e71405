"""Constant-curvature kinematics of the gecko in the plane.

A limb of length l that bends by a starts at p in direction th and ends at

    p + l sinc(a/2) [cos(th + a/2), sin(th + a/2)],   sinc x = sin(x)/x.

The torso's front end p1 is the robot's position; eps is the mean heading, so
the headings of the torso's ends are eps -+ alpha_2/2. Left legs leave the torso
at +90 degrees, right legs at -90. Angles in rad, lengths in m, x forward and y
left of a heading of 0. Source: Front. Robot. AI 7:87 (2020), eq. (2); the
authors' public model for the chain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.model.parameters import FOOT_MARKERS, LEGS, Gecko, scalar

# The gait law: what the limbs are asked to do, by step length and steering.
#
# With q1 the torso's bending [rad], q2 the steering in [-0.5, 0.5], and c1 the
# robot's `leg_bend`,
#
#     alpha_0 = alpha_3 = pi/4 - q1/2 - |q1| q2/2 + c1 q1 q2
#     alpha_1 = alpha_4 = pi/4 + q1/2 + |q1| q2/2 + c1 q1 q2
#     alpha_2 = q1 + |q1| q2
#
# A half cycle flips the sign of q1 and negates the fixation f. Source: Schiller,
# Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), eqs. (1), (14), (15).


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


# Sign of a leg's bending, by foot.
_BEND = np.array([-1.0, 1.0, 1.0, -1.0])


@dataclass(frozen=True)
class Pose:
    """Where the robot is and how its limbs are.

    Attributes:
        alpha: bending of the limbs (5,) [rad].
        ell: lengths of the limbs (5,) [m].
        heading: eps, mean heading of the torso [rad].
        position: of the torso's front end in the world (2,) [m].
    """

    alpha: np.ndarray
    ell: np.ndarray
    heading: float
    position: np.ndarray

    def __post_init__(self):
        for name, size in (("alpha", 5), ("ell", 5), ("position", 2)):
            value = np.array(getattr(self, name), float)
            if value.shape != (size,) or not np.isfinite(value).all():
                raise InvalidInput(
                    f"pose: {name} must be {size} finite numbers, got {value}"
                )
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        if not np.isfinite(self.heading):
            raise InvalidInput(f"pose: heading must be finite, got {self.heading}")
        if not (self.ell > 0).all():
            raise InvalidInput(f"pose: lengths must be > 0 m, got {self.ell}")
        object.__setattr__(self, "heading", float(self.heading))

    @property
    def markers(self) -> np.ndarray:
        """p0..p5 in the world (6, 2) [m]: FL, front, FR, RL, rear, RR."""
        return markers(self.alpha, self.ell, self.heading, self.position)

    @property
    def feet(self) -> np.ndarray:
        """Feet FL, FR, RL, RR in the world (4, 2) [m]."""
        return self.markers[list(FOOT_MARKERS)]

    @property
    def foot_headings(self) -> np.ndarray:
        """phi of the feet FL, FR, RL, RR (4,) [rad], eq. (2)."""
        return foot_headings(self.alpha, self.heading)


def pose_at(
    robot: Gecko, alpha, heading: float = 0.0, position=(0.0, 0.0), ell=None
) -> Pose:
    """A pose with limbs of their unstretched length, if none is given."""
    return Pose(alpha, robot.lengths if ell is None else ell, heading, position)


def arc_end(p, direction, bend, length) -> np.ndarray:
    """Where an arc ends (..., 2) that starts at p in a direction."""
    chord = np.asarray(length) * np.sinc(np.asarray(bend) / (2 * np.pi))
    middle = np.asarray(direction) + np.asarray(bend) / 2
    return p + np.stack([chord * np.cos(middle), chord * np.sin(middle)], axis=-1)


def limb_starts(alpha, heading) -> tuple[np.ndarray, np.ndarray]:
    """Directions at which the limbs leave (5,), and their signed bend (5,).

    The torso is the arc from p1 back to p4.
    """
    front, rear = heading - alpha[2] / 2, heading + alpha[2] / 2
    leave = np.pi * np.array([0.5, -0.5, 1.0, 0.5, -0.5])
    directions = leave + np.array([front, front, front, rear, rear])
    signs = np.array([-1.0, 1.0, 1.0, 1.0, -1.0])
    return directions, signs * alpha


def markers(alpha, ell, heading, position) -> np.ndarray:
    """p0..p5 (6, 2) [m] of a pose; arguments as in :class:`Pose`."""
    directions, bends = limb_starts(alpha, heading)
    p1 = np.asarray(position, float)
    p4 = arc_end(p1, directions[2], bends[2], ell[2])
    starts = (p1, p1, p1, p4, p4)
    ends = [
        arc_end(p, *limb)
        for p, *limb in zip(starts, directions, bends, ell, strict=True)
    ]
    return np.array([ends[0], p1, ends[1], ends[3], ends[2], ends[4]])


def foot_headings(alpha, heading) -> np.ndarray:
    """phi of the feet FL, FR, RL, RR (4,) [rad]."""
    front, rear = heading - alpha[2] / 2, heading + alpha[2] / 2
    legs = np.array([alpha[0], alpha[1], alpha[3], alpha[4]])
    return np.array([front, front, rear + np.pi, rear + np.pi]) + _BEND * legs


def limb_curves(pose: Pose, points: int = 24) -> np.ndarray:
    """Centre lines of the limbs (5, points, 2) [m], from where each leaves."""
    directions, bends = limb_starts(pose.alpha, pose.heading)
    corners = pose.markers
    starts = corners[[1, 1, 1, 4, 4]]
    share = np.linspace(0, 1, points)
    return np.array(
        [
            arc_end(starts[i], directions[i], share * bends[i], share * pose.ell[i])
            for i in range(5)
        ]
    )
