"""The gecko in the plane: parameters, kinematics, the gait law, angles by pressure.

All numbers are those of `models/gecko/params.yaml`, in SI.

**Kinematics.** A limb of length l and bending angle a that starts at p in direction
th ends at

    p + l sinc(a/2) [cos(th + a/2), sin(th + a/2)],   sinc x = sin(x)/x.

The torso's front end p1 is the robot's position; eps is the mean heading, so
the headings of the torso's ends are eps -+ alpha_2/2. Left legs leave the torso
at +90 degrees, right legs at -90. Angles are in rad, lengths in m, x points forward
and y to the left at a heading of 0.

**Gait law.** With the torso's bending angle q1 [rad], also called the step length,
the steering q2 in [-0.5, 0.5], and the robot's coefficient c1 (`leg_bend`), the
reference angles are

    alpha_0 = alpha_3 = pi/4 - q1/2 - |q1| q2/2 + c1 q1 q2
    alpha_1 = alpha_4 = pi/4 + q1/2 + |q1| q2/2 + c1 q1 q2
    alpha_2 = q1 + |q1| q2

Every half cycle flips the sign of q1 and negates the fixation f.

Source: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), eqs. (1), (2),
(14), (15); the authors' public model for the chain of limbs.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

import numpy as np

from drakebots.core.checks import (
    array,
    between,
    check_value,
    each,
    finite,
    one_of,
    positive,
)
from drakebots.core.fields import checked
from drakebots.model import Parameters, given, parameters_of

MODEL = "gecko"
"""Name of the robot's folder in `models`."""

FEET = ("FL", "FR", "RL", "RR")
"""The feet, in the order of every fixation f and foot heading phi."""

LIMBS = ("FL", "FR", "torso", "RL", "RR")
"""The limbs, in the order of every alpha and ell."""

MARKERS = ("FL", "front", "FR", "RL", "rear", "RR")
"""The points p0..p5: the feet, and the two ends of the torso."""

FOOT_MARKERS = (0, 2, 3, 5)
"""The feet among the markers."""

LEGS = (0, 1, 3, 4)
"""The legs among the limbs, in the order of the feet."""


Bends = Annotated[tuple[float, ...], each(positive(), "shares", 6)]
"""How far each actuator bends its limb at a pressure, as a share of what its
calibration says (6,): FL, FR, torso to the left, torso to the right, RL, RR."""


@checked("weights")
class Weights:
    """Weights of the pose-step objective, in the authors' units."""

    length: Annotated[float, positive("1/cm")] = 89.0
    """f_l, weight of the limbs' stretch."""
    orientation: Annotated[float, positive("1/deg")] = 10.0
    """f_o, weight of the turning of fixed feet."""
    angle: Annotated[float, positive("1/deg")] = 5.9
    """f_a, weight of the angles' distance from the gait law."""


@checked("gecko")
class Gecko:
    """A gecko robot: its lengths, their bounds, and the pose step's weights."""

    leg: Annotated[float, positive("m")] = 0.091
    """Length of an unstretched leg."""
    torso: Annotated[float, positive("m")] = 0.103
    """Length of the unstretched torso."""
    weights: Weights = field(default_factory=Weights)
    """Weights of the pose-step objective."""
    stretch: Annotated[float, between(0, 1, open_ends=True)] = given(MODEL, "stretch")
    """Largest change of a limb's length, as a share of that length."""
    bend: Annotated[float, between(0, 2 * np.pi, "rad", open_ends=True)] = given(
        MODEL, "bend"
    )
    """Largest distance of an angle from its reference."""
    leg_bend: Annotated[float, finite()] = given(MODEL, "leg_bend")
    """Coefficient c1 of the gait law."""
    bends: Bends = (1.0,) * 6
    """How far each actuator bends its limb at a pressure, as a share of what its
    calibration says (6,): FL, FR, torso to the left, torso to the right, RL, RR."""

    def __post_init__(self):
        check_value("bends", self.bends, array((6,)))

    @property
    def lengths(self) -> np.ndarray:
        """Unstretched lengths of the limbs (5,) [m]."""
        return np.array([self.leg, self.leg, self.torso, self.leg, self.leg])

    def reference(self, q1, q2, limited: bool = False) -> np.ndarray:
        """Reference angles (..., 5) [rad] of a half cycle, q1 with its sign: the gait
        law's, as far as the pressure reaches if that limits them."""
        alpha = gait_law(q1, q2, leg_bend=self.leg_bend)
        return saturate(alpha) if limited else alpha

    def bent(self, alpha) -> np.ndarray:
        """Angles (..., 5) [rad] of free limbs at the pressures for the angles alpha."""
        left, right = np.array(self.bends)[[[0, 1, 2, 4, 5], [0, 1, 3, 4, 5]]]
        return np.where(np.asarray(alpha) > 0, left, right) * alpha


def parameters() -> Parameters:
    """All numbers of the gecko's models and planners."""
    return parameters_of(MODEL)


def gecko(
    size: str = "small", weights: str = "velocity_space", bends=Gecko.bends
) -> Gecko:
    """The robot of a named size with named weights.

    Raises:
        UnknownName: listing the sizes or the weights.
    """
    own = parameters()
    sizes, sets = own.table("sizes"), own.raw["weights"]["value"]
    check_value("size", size, one_of("gecko size", sizes))
    check_value("weights", weights, one_of("weights", sets))
    own_weights = Weights(*map(float, sets[weights]))
    return Gecko(**sizes[size], weights=own_weights, bends=bends)


# --- kinematics ----------------------------------------------------------------


def gait_law(q1, q2, *, leg_bend: float = 1.0) -> np.ndarray:
    """Reference angles of the limbs (..., 5) [rad].

    Legs bend to one side only: a negative reference becomes a small positive angle.

    Args:
        q1: step length with the sign of the half cycle [rad].
        q2: steering; positive turns right.
        leg_bend: coefficient c1.
    """
    q1, q2 = np.broadcast_arrays(np.asarray(q1, float), np.asarray(q2, float))
    torso = q1 + np.abs(q1) * q2
    extra = leg_bend * q1 * q2
    left, right = np.pi / 4 - torso / 2 + extra, np.pi / 4 + torso / 2 + extra
    alpha = np.stack([left, right, torso, left, right], axis=-1)
    legs, least = alpha[..., LEGS], parameters().number("least_leg_angle")
    alpha[..., LEGS] = np.where(legs < 0, least, legs)
    return alpha


def fixation(q1: float) -> np.ndarray:
    """Feet (FL, FR, RL, RR) that are fixed while the torso bends to q1 (4,) of bool.

    Front right and rear left are fixed for q1 >= 0: the left front leg swings
    forward then. (Eq. (1) states the feet that are fixed in the pose reached, and
    until the next pose is reached, so it reads the other way round.)
    """
    return np.array([False, True, True, False]) == (q1 >= 0)


@checked("pose")
class Pose:
    """Position and heading of the robot, angles and lengths of its limbs."""

    alpha: Annotated[np.ndarray, array((5,), "rad")]
    """Bending angles of the limbs (5,)."""
    ell: Annotated[np.ndarray, array((5,), "m", entry=positive("m"))]
    """Lengths of the limbs (5,)."""
    heading: Annotated[float, finite("rad")]
    """Mean heading eps of the torso."""
    position: Annotated[np.ndarray, array((2,), "m")]
    """Position of the torso's front end in the world (2,)."""

    def __post_init__(self):
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
        """Headings phi of the feet FL, FR, RL, RR (4,) [rad], eq. (2)."""
        directions, bends = limb_starts(self.alpha, self.heading)
        # Feet of straight legs head forward in front, and backward in the rear.
        turned = np.pi * np.array([-0.5, 0.5, 0.5, 1.5])
        return (directions + bends)[list(LEGS)] + turned


def pose_at(robot: Gecko, alpha, heading: float = 0.0, position=(0.0, 0.0)) -> Pose:
    """A pose with unstretched limbs."""
    return Pose(alpha, robot.lengths, heading, position)


def arc_end(p, direction, bend, length) -> np.ndarray:
    """End point (..., 2) of an arc that starts at p in a direction."""
    chord = np.asarray(length) * np.sinc(np.asarray(bend) / (2 * np.pi))
    middle = np.asarray(direction) + np.asarray(bend) / 2
    return p + np.stack([chord * np.cos(middle), chord * np.sin(middle)], axis=-1)


def limb_starts(alpha, heading) -> tuple[np.ndarray, np.ndarray]:
    """Directions in which the limbs start (5,) and their signed bending (5,) [rad].

    The torso is the arc from p1 back to p4.
    """
    front, rear = heading - alpha[2] / 2, heading + alpha[2] / 2
    leave = np.pi * np.array([0.5, -0.5, 1.0, 0.5, -0.5])
    directions = leave + np.array([front, front, front, rear, rear])
    return directions, np.array([-1.0, 1.0, 1.0, 1.0, -1.0]) * alpha


def markers(alpha, ell, heading, position) -> np.ndarray:
    """p0..p5 (6, 2) [m] of a pose; arguments as in :class:`Pose`."""
    directions, bends = limb_starts(alpha, heading)
    p1 = np.asarray(position, float)
    p4 = arc_end(p1, directions[2], bends[2], ell[2])
    limbs = np.array([directions, bends, ell])[:, list(LEGS)]
    legs = arc_end(np.array([p1, p1, p4, p4]), *limbs)
    return np.array([legs[0], p1, legs[1], legs[2], p4, legs[3]])


def limb_pieces(pose: Pose, joints=None, pieces: int = 8):
    """The limbs as chains of straight pieces: of arcs, or of the joints' own shape.

    Args:
        pose: the pose.
        joints: angles of the joints of each limb (5, N + 1) [rad], whose sums are
            alpha; None for arcs, whose chains end where they end.
        pieces: number of pieces of an arc.

    Returns:
        Directions of the limbs' starts (5,), the angle of each piece to the one before
        (5, P) [rad], and the length of a piece (5,) [m].
    """
    directions, bends = limb_starts(pose.alpha, pose.heading)
    if joints is not None:
        signs = limb_starts(np.ones(5), 0.0)[1]
        turns = signs[:, None] * np.asarray(joints)[:, :-1]
        return directions, turns, pose.ell / turns.shape[1]
    turns = np.repeat(bends[:, None] / pieces, pieces, axis=1)
    turns[:, 0] /= 2
    chords = pose.ell / pieces * np.sinc(bends / pieces / (2 * np.pi))
    return directions, turns, chords


def limb_curves(pose: Pose, joints=None, points: int = 24) -> np.ndarray:
    """Centre lines of the limbs (5, n, 2) [m], each from its start.

    Args:
        pose: the pose.
        joints: as in :func:`limb_pieces`; the ends of their pieces are the points.
        points: number of points of an arc.
    """
    directions, turns, lengths = limb_pieces(pose, joints, points - 1)
    angles = directions[:, None] + np.cumsum(turns, axis=1)
    steps = np.stack([np.cos(angles), np.sin(angles)], -1) * lengths[:, None, None]
    curves = np.concatenate([np.zeros((5, 1, 2)), np.cumsum(steps, axis=1)], axis=1)
    curves += pose.position
    curves[3:] += curves[2, -1] - pose.position
    return curves


# --- the pressure of an angle ---------------------------------------------------


@checked("calibration")
class Calibration:
    """The pressure that keeps a free limb at an angle, and its inverse.

        p(a) = sign(a) p_max ((1 + k) x - k x^2),   x = |a|/a_max <= 1

    The curve is odd, and increasing for 0 <= k < 1, so that it can be inverted.
    Angles beyond a_max would need more than p_max.
    """

    limit: Annotated[float, positive("Pa")] = given(MODEL, "pressure", "limit")
    """Largest pressure p_max."""
    angle: Annotated[float, positive("rad")] = given(MODEL, "pressure", "angle")
    """Angle a_max at the largest pressure."""
    curvature: Annotated[float, between(0, 0.99)] = given(
        MODEL, "pressure", "curvature"
    )
    """Coefficient k; the further a soft limb bends, the less pressure each further
    degree needs."""

    def pressure(self, alpha) -> np.ndarray:
        """Pressures [Pa] of angles (...) [rad], at most the limit."""
        x = np.minimum(np.abs(alpha) / self.angle, 1.0)
        k = self.curvature
        return np.sign(alpha) * self.limit * ((1 + k) * x - k * x**2)

    def bending(self, pressure) -> np.ndarray:
        """Angles [rad] of pressures (...) [Pa]."""
        y = np.minimum(np.abs(pressure) / self.limit, 1.0)
        b = 1 + self.curvature
        # The root without cancellation, also for k = 0.
        x = 2 * y / (b + np.sqrt(b**2 - 4 * self.curvature * y))
        return np.sign(pressure) * self.angle * x


def saturate(alpha_ref, curve: Calibration | None = None) -> np.ndarray:
    """Reference angles (..., 5) [rad] limited to what the pressure can reach."""
    curve = curve or Calibration()
    return np.clip(alpha_ref, -curve.angle, curve.angle)
