"""Low-level control of the limbs: angles through pressures (Fig. 11B).

                       ┌───────────┐ desired_pressure ┌──────────────┐ valve
    desired_bending ──▶│ AngleLoop │─────────────────▶│ PressureLoop │──────▶
    bending ──────────▶│ p(a) + PI │      pressure ──▶│ PID          │
                       └───────────┘                  └──────────────┘
                       ┌───────────┐
    valve ────────────▶│ Chambers  │──▶ pressure
                       │ dp/dt     │──▶ bending
                       └───────────┘

A calibration curve p(alpha) gives a feedforward pressure, which a saturated PI
controller corrects; a PID controller drives the proportional valve of each chamber.
The limb's desired angle is then the one that the pressure gives a free limb. Source of
the structure and of the limit of 1.1 bar: Schiller, Seibel, Schlattmann, Front. Robot.
AI 7:87 (2020), section 5. The curve, the gains and the chamber's time constant are
ours; none is published.

The torso has a chamber on either side; its pressure and its angle have the sign of the
pressurised side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.core.checks import check, check_value, non_negative, positive
from drakebots.robots.gecko.drake.sampled import Sampled
from drakebots.robots.gecko.model import parameters, saturate


def _default(name: str) -> float:
    return parameters().table("pressure")[name]


@dataclass(frozen=True)
class Gains:
    """Gains of both loops.

    Attributes:
        angle_p: proportional gain of the angle loop [Pa/rad].
        angle_i: integral gain of the angle loop [Pa/(rad s)].
        lag: time constant of the angle loop's reference model [s].
        correction: largest pressure that the angle loop adds [Pa].
        pressure_p: proportional gain of the pressure loop, valve per p/p_max.
        pressure_i: integral gain of the pressure loop [1/s].
        pressure_d: derivative gain of the pressure loop [s].
    """

    angle_p: float = 0.1e5
    angle_i: float = 0.6e5
    lag: float = 0.06
    correction: float = 0.2e5
    pressure_p: float = 4.0
    pressure_i: float = 20.0
    pressure_d: float = 0.01

    def __post_init__(self):
        others = {name: non_negative() for name in vars(self) if name != "lag"}
        check(self, "gains", lag=positive("s"), **others)


def _period(name: str, value: float | None, default: str) -> float:
    """The sampling period of a loop [s]; None for the file's."""
    value = _default(default) if value is None else value
    return check_value(f"{name}: period", value, positive("s"))


class AngleLoop(Sampled):
    """p_ref = p(alpha_ref) + sat(PI(alpha_m - alpha)), within the limit.

    alpha_m is alpha_ref behind a lag like that of the chambers: the delay of the
    feedforward is not an error.

    Against wind-up the integral stands still while the output is saturated and the
    error would drive it further.

    Ports: inputs `desired_bending` alpha_ref, `bending` alpha (n) [rad]; output
    `desired_pressure` p_ref (n) [Pa].

    Args:
        size: number n of limbs.
        curve: calibration of every limb.
        gains: gains of every limb.
        one_sided: whether each limb has one chamber only, without negative p_ref
            (n,) of bool; False by default.
        period: sampling period [s]; None for the file's.
    """

    def __init__(self, size, curve, gains, one_sided=False, period=None):
        super().__init__("angle_loop", np.zeros(3 * size))
        self._period = _period("angle_loop", period, "angle_period")
        self._n, self._curve, self._gains = size, curve, gains
        self._low = np.where(one_sided, 0.0, -curve.limit)
        self.DeclareVectorInputPort("desired_bending", size)
        self.DeclareVectorInputPort("bending", size)
        self._declare_update(self._update, self._period)
        self._declare_output("desired_pressure", slice(size, 2 * size))

    def _update(self, context, x):
        n, g = self._n, self._gains
        integral, model = x[:n], x[2 * n :]
        reference = saturate(self._input(context), self._curve)
        model = model + (1 - np.exp(-self._period / g.lag)) * (reference - model)
        error = model - self._input(context, 1)
        forward = self._curve.pressure(reference)
        tried = integral + g.angle_i * self._period * error
        raw_sum = g.angle_p * error + tried
        added = np.clip(raw_sum, -g.correction, g.correction)
        p_ref = np.clip(forward + added, self._low, self._curve.limit)
        stuck = (p_ref - forward != raw_sum) & (
            (raw_sum - (p_ref - forward)) * error > 0
        )
        return np.concatenate([np.where(stuck, integral, tried), p_ref, model])


class PressureLoop(Sampled):
    """u = sat(p_ref/p_max + PID((p_ref - p)/p_max)) within -1..1.

    The derivative is that of the pressure, so that a step of p_ref gives no kick.

    Ports: inputs `desired_pressure` p_ref, `pressure` p (n) [Pa]; output `valve` u (n).
    Arguments are those of :class:`AngleLoop`.
    """

    def __init__(self, size, curve, gains, period=None):
        super().__init__("pressure_loop", np.zeros(3 * size))
        self._period = _period("pressure_loop", period, "period")
        self._n, self._limit, self._gains = size, curve.limit, gains
        self.DeclareVectorInputPort("desired_pressure", size)
        self.DeclareVectorInputPort("pressure", size)
        self._declare_update(self._update, self._period)
        self._declare_output("valve", slice(2 * size, 3 * size))

    def _update(self, context, x):
        n, g = self._n, self._gains
        integral, before = x[:n], x[n : 2 * n]
        reference = self._input(context) / self._limit
        p = self._input(context, 1) / self._limit
        error = reference - p
        tried = integral + g.pressure_i * self._period * error
        rate = (p - before) / self._period
        full = reference + g.pressure_p * error + tried - g.pressure_d * rate
        u = np.clip(full, -1.0, 1.0)
        integral = np.where((full - u) * error > 0, integral, tried)
        return np.concatenate([integral, p, u])


class Chambers(Sampled):
    """dp/dt = (u p_max - p)/rise, exact between samples; |u| <= 1.

    Ports: input `valve` u (n); outputs `pressure` p (n) [Pa] and `bending` (n) [rad],
    the angles that the pressures give free limbs.

    Args:
        size: number n of limbs.
        curve: calibration of every limb.
        rise: time constant of a chamber behind its valve [s]; None for the file's.
        alpha: angles of the pressures at first (n,) [rad]; 0 by default.
        period: sampling period [s]; None for the file's.
    """

    def __init__(self, size, curve, *, rise=None, alpha=None, period=None):
        super().__init__("chambers", np.zeros(size))
        period = _period("chambers", period, "period")
        rise = _default("rise") if rise is None else rise
        check_value("chambers: rise", rise, positive("s"))
        self._decay, self._limit = np.exp(-period / rise), curve.limit
        self._start = curve.pressure(np.zeros(size) if alpha is None else alpha)
        self.DeclareVectorInputPort("valve", size)
        self.DeclareInitializationUnrestrictedUpdateEvent(self._fill)
        self._declare_update(self._update, period)
        self._declare_output("pressure", slice(0, size))
        self._declare_output("bending", slice(0, size), curve.bending)

    def _fill(self, context, state):
        state.get_mutable_discrete_state().set_value(self._start)

    def _update(self, context, x):
        rest = np.clip(self._input(context), -1.0, 1.0) * self._limit
        return rest + (x - rest) * self._decay
