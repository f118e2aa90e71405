"""Linear feedback of a robot's outputs, and its slopes about a plan.

Outputs y(q) are taken where the discrete mechanics take positions and rates, at an
interval's midpoint, or a delay before it: linear between midpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from drakebots.core.checks import array, check, non_negative
from drakebots.core.errors import InvalidInput
from drakebots.multibody.twin import Twin
from drakebots.trajopt.contact_implicit.system import ContactSystem


@dataclass(frozen=True)
class Feedback:
    """u = u_plan + K_p (y_plan - y) + K_d d(y_plan - y)/dt, all in plant units.

    Attributes:
        outputs: function from the twin and q to the outputs y (ny,).
        position_gain, rate_gain: K_p and K_d (nu, ny).
        delay, rate_delay: how late y and dy/dt are, including the hold of a sample.
    """

    outputs: Callable[[Twin, ca.SX], ca.SX]
    position_gain: np.ndarray
    rate_gain: np.ndarray
    delay: float = 0.0
    rate_delay: float = 0.0

    def __post_init__(self):
        matrix = array((None, None))
        check(self, "feedback", delay=non_negative(), rate_delay=non_negative())
        check(self, "feedback", position_gain=matrix, rate_gain=matrix)
        shapes = self.position_gain.shape, self.rate_gain.shape
        if shapes[0] != shapes[1]:
            raise InvalidInput(f"gains must be two (nu, ny) matrices, got {shapes}")


class LinearFeedback:
    """Feedback about a plan: gains on the ends of an interval and on past outputs.

    The past holds (y, dy/dt) at the midpoints of earlier intervals, the newest first.

    Args:
        system: the robot.
        feedback: the law; None for no feedback.
        h: time steps of the plan's intervals (N-1,).

    Attributes:
        past: number of past outputs that the law needs.

    Raises:
        InvalidInput: for gains that do not fit the inputs and outputs.
    """

    def __init__(self, system: ContactSystem, feedback: Feedback | None, h: np.ndarray):
        self._feedback, self._h, self.past = feedback, h, 0
        self._nq, self._nu = system.nq, system.nu
        if feedback is None:
            return
        q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nq)
        y = feedback.outputs(system.twin, q)
        rate = ca.jtimes(y, q, v)
        slopes = [ca.jacobian(y, q), ca.jacobian(rate, q)]
        self._slopes = ca.Function("outputs", [q, v], slopes)
        self._ny = y.numel()
        shape = np.shape(feedback.position_gain)
        if shape != (system.nu, self._ny):
            raise InvalidInput(
                f"gains must be ({system.nu}, {self._ny}) for as many inputs and "
                f"outputs, got {shape}"
            )
        late = max(feedback.delay, feedback.rate_delay)
        self._depth = int(np.ceil(late / h.min() - 1e-9))
        self.past = 2 * self._ny * self._depth
        self._ends: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def gains(self, k: int, ends) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """du/dq0, du/dq1, du/d(past) of interval k."""
        if self._feedback is None:
            zero = np.zeros((self._nu, self._nq))
            return zero, zero, np.zeros((self._nu, 0))
        h, f = ends["h"], self._feedback
        q, v = (ends["q0"] + ends["q1"]) / 2, (ends["q1"] - ends["q0"]) / h
        Y, R = (np.array(a) for a in self._slopes(q, v))
        if k == 0:
            self._first = np.vstack([Y, R]), np.vstack([np.zeros_like(Y), Y])
        q0 = np.vstack([Y / 2, R / 2 - Y / h])
        q1 = np.vstack([Y / 2, R / 2 + Y / h])
        self._ends[k] = q0, q1
        K = np.hstack(
            [
                np.hstack([-a * f.position_gain, -b * f.rate_gain])
                for a, b in zip(
                    self._weights(f.delay / h), self._weights(f.rate_delay / h)
                )
            ]
        )
        now, ny = K[:, : 2 * self._ny], 2 * self._ny
        return now @ q0, now @ q1, K[:, ny:]

    def _weights(self, late: float) -> np.ndarray:
        """Weights of this interval's outputs and of the past's, linear in between."""
        at = np.arange(self._depth + 1)
        return np.maximum(1 - np.abs(at - min(late, self._depth)), 0.0)

    def shifted(self, k: int, start: np.ndarray, q1: np.ndarray) -> np.ndarray:
        """The past at the end of interval k, from dq0 (nq, ...) and dq1 (nq, ...)."""
        if not self.past:
            return np.zeros((0, q1.shape[1]))
        now = self._ends[k][0] @ start + self._ends[k][1] @ q1
        old = np.eye(self.past - len(now), q1.shape[1], 2 * self._nq)
        return np.vstack([now, old])

    def start(self, dq: np.ndarray, dv: np.ndarray) -> np.ndarray:
        """The past of a plan's start, as if its deviation had always been there.

        Args:
            dq, dv: deviations of positions and velocities at the first knot (nq, ...).
        """
        if not self.past:
            return np.zeros((0, *dq.shape[1:]))
        now = self._first[0] @ dq + self._first[1] @ dv
        return np.concatenate([now] * self._depth)
