"""Joint servos whose torque saturates, implicit in the frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.skin.laws import Law
from drakebots.skin.skeleton import Servo


@dataclass(frozen=True)
class ServoLaw(Law):
    """tau = clip(a - g y, -limit, limit), y the joints' change over the frame.

    a = k (q_d - q) + d v_d + tau_0 and g = k + d/dt: the servo's torque at the end
    of the frame, a given torque tau_0 beside it, both within the limit.

    Attributes:
        rows: B' (m, nv).
        constant: a (m,) [N m].
        gain: g (m,) [N m/rad].
        limit: (m,) [N m]; inf without.
    """

    rows: np.ndarray
    constant: np.ndarray
    gain: np.ndarray
    limit: np.ndarray

    def _wish(self, y):
        return self.constant - self.gain * y

    def force(self, y: np.ndarray) -> np.ndarray:
        """Torques (m,) [N m]."""
        return np.clip(self._wish(y), -self.limit, self.limit)

    def energy(self, y: np.ndarray) -> float:
        """Quadratic within the limits, linear beyond [J]."""
        wish, force = self._wish(y), self.force(y)
        free = self.gain == 0
        gain = np.where(free, 1.0, self.gain)
        spring = force * (wish - force / 2) / gain
        return float(np.where(free, -force * y, spring).sum())

    def stiffness(self, y: np.ndarray) -> np.ndarray:
        """g where the limit is not reached (m, m)."""
        return np.diag(np.where(np.abs(self._wish(y)) < self.limit, self.gain, 0.0))


def servo_law(
    B: np.ndarray,
    servo: Servo,
    q: np.ndarray,
    dt: float,
    limit: np.ndarray,
    torques: np.ndarray | None = None,
) -> ServoLaw:
    """The law of a servo.

    Args:
        B: torques to generalized forces (nv, m).
        servo: gains and targets.
        q: joint positions at the frame's start (m,) [rad].
        dt: [s].
        limit: largest torque (m,) [N m].
        torques: beside the servo's, within the same limit (m,) [N m].

    Raises:
        InvalidInput: for sizes that do not fit.
    """
    m = B.shape[1]
    if len(servo.position) != m:
        raise InvalidInput(f"servo: {len(servo.position)} targets for {m} torques")
    a = servo.stiffness * (servo.position - q) + servo.damping * servo.velocity
    if torques is not None:
        a = a + torques
    return ServoLaw(B.T, a, servo.stiffness + servo.damping / dt, limit)


def check_limits(limits: np.ndarray, torques: int) -> np.ndarray:
    """Effort limits (m,), inf for none.

    Raises:
        InvalidInput: for another shape, or a limit that is not >= 0.
    """
    try:
        limits = np.broadcast_to(np.asarray(limits, float), (torques,))
    except ValueError as error:
        raise InvalidInput(f"effort limits: needs {torques}, one a torque") from error
    if not (limits >= 0).all():
        raise InvalidInput(f"effort limits {limits.tolist()}: must be >= 0 N m")
    return limits
