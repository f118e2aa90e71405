"""Low-level control of the limbs: angles through pressures (Fig. 11B).

                 ┌──────────────┐       ┌──────────────┐    ┌──────────┐
    alpha_ref ──▶│  AngleLoop   │ p_ref │ PressureLoop │ u  │ Chambers │─▶ p
    alpha ──────▶│ p(a) + PI    │──────▶│ PID          │───▶│ dp/dt    │─▶ target
                 └──────────────┘       └──────────────┘    └──────────┘

A calibration curve p(alpha) feeds forward, a saturated PI controller corrects
it; a PID controller drives the proportional valve of each chamber; the limb is
asked for the angle that the pressure holds when nothing else pulls on it.
Source of the structure and of the limit of 1.1 bar: Schiller, Seibel,
Schlattmann, Front. Robot. AI 7:87 (2020), section 5. The curve, the gains and
the chamber's time are ours; none is published.

The torso has a chamber on either side; its pressure is counted with the sign of
the side that is blown up, as are its angles.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from pydrake.systems.framework import DiscreteStateIndex, LeafSystem

from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.model import table


@dataclass(frozen=True)
class Calibration:
    """The pressure that holds a free limb at an angle, and back.

        p(a) = sign(a) p_max ((1 + k) x - k x^2),   x = |a|/a_max <= 1

    Odd and increasing for 0 <= k < 1, so that it can be inverted; angles beyond
    a_max would need more than p_max.

    Attributes:
        limit: p_max [Pa].
        angle: a_max, where the limit is reached [rad].
        curvature: k; soft limbs bend the more easily the more they bend.
    """

    limit: float = field(default_factory=lambda: table("pressure")["limit"])
    angle: float = field(default_factory=lambda: table("pressure")["angle"])
    curvature: float = field(default_factory=lambda: table("pressure")["curvature"])

    def __post_init__(self):
        for name in ("limit", "angle"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"calibration: {name} must be > 0, got {value}")
        if not 0 <= self.curvature < 1:
            raise InvalidInput(
                f"calibration: curvature must be within 0..1, got {self.curvature}"
            )

    def pressure(self, alpha) -> np.ndarray:
        """p [Pa] of angles (...) [rad], at most the limit."""
        x = np.minimum(np.abs(alpha) / self.angle, 1.0)
        k = self.curvature
        return np.sign(alpha) * self.limit * ((1 + k) * x - k * x**2)

    def bending(self, pressure) -> np.ndarray:
        """alpha [rad] of pressures (...) [Pa]."""
        y = np.minimum(np.abs(pressure) / self.limit, 1.0)
        b = 1 + self.curvature
        # The root without cancellation, also for k = 0.
        x = 2 * y / (b + np.sqrt(b**2 - 4 * self.curvature * y))
        return np.sign(pressure) * self.angle * x


def saturate(alpha_ref, curve: Calibration | None = None) -> np.ndarray:
    """Reference angles (..., 5) [rad] as far as the pressure goes.

    For the pose step: `walk(..., saturate=saturate)`.
    """
    curve = curve or Calibration()
    return np.clip(alpha_ref, -curve.angle, curve.angle)


@dataclass(frozen=True)
class Gains:
    """Of both loops.

    Attributes:
        angle_p: [Pa/rad].
        angle_i: [Pa/(rad s)].
        lag: of the reference that the PI controller compares with [s].
        correction: most that the PI controller adds [Pa].
        pressure_p: share of the valve per share of the limit.
        pressure_i: [1/s].
        pressure_d: [s].
    """

    angle_p: float = 0.1e5
    angle_i: float = 0.6e5
    lag: float = 0.06
    correction: float = 0.2e5
    pressure_p: float = 4.0
    pressure_i: float = 20.0
    pressure_d: float = 0.01

    def __post_init__(self):
        for name, value in vars(self).items():
            if not (np.isfinite(value) and value >= 0) or (name == "lag" and not value):
                raise InvalidInput(f"gains: {name} must be >= 0, got {value}")


class _Sampled(LeafSystem):
    """Holds its state between updates that come with the plant's own step."""

    def _declare(self, name: str, size: int, period: float) -> None:
        if not (np.isfinite(period) and period > 0):
            raise InvalidInput(f"{name}: period must be > 0 s, got {period}")
        self.set_name(name)
        self._period = period
        self.DeclareDiscreteState(size)
        self.DeclarePeriodicUnrestrictedUpdateEvent(period, 0.0, self._update)
        self._ticket = {self.discrete_state_ticket(DiscreteStateIndex(0))}

    @staticmethod
    def _x(context) -> np.ndarray:
        return context.get_discrete_state_vector().value().copy()

    def _output(self, name: str, part: slice, function=lambda x: x) -> None:
        def calc(context, output):
            output.SetFromVector(
                function(context.get_discrete_state_vector().value()[part])
            )

        self.DeclareVectorOutputPort(name, part.stop - part.start, calc, self._ticket)


class AngleLoop(_Sampled):
    """p_ref = p(alpha_ref) + sat(PI(alpha_m - alpha)), within the limit.

    alpha_m is alpha_ref behind a lag like the chambers': what the feed forward
    brings about by itself is no error.

    The integral stands still while what it adds to is saturated and the error
    would drive it further: no wind-up.

    Ports: in `alpha_ref`, `alpha` (n) [rad]; out `p_ref` (n) [Pa].

    Args:
        size: n.
        curve, gains: of every limb.
        one_sided: limbs that have one chamber (n,) of bool: no negative p_ref.
        period: of sampling [s].
    """

    def __init__(self, size, curve, gains, one_sided=None, period=None):
        super().__init__()
        period = table("pressure")["angle_period"] if period is None else period
        self._declare("angle_loop", 3 * size, period)
        self._n, self._curve, self._gains = size, curve, gains
        one_sided = np.zeros(size, bool) if one_sided is None else one_sided
        self._low = np.where(one_sided, 0.0, -curve.limit)
        self.DeclareVectorInputPort("alpha_ref", size)
        self.DeclareVectorInputPort("alpha", size)
        self._output("p_ref", slice(size, 2 * size))

    def _update(self, context, state):
        n, g = self._n, self._gains
        integral, model = self._x(context)[:n], self._x(context)[2 * n :]
        wish = saturate(self.EvalVectorInput(context, 0).value(), self._curve)
        model = model + (1 - np.exp(-self._period / g.lag)) * (wish - model)
        error = model - self.EvalVectorInput(context, 1).value()
        forward = self._curve.pressure(wish)
        tried = integral + g.angle_i * self._period * error
        raw_sum = g.angle_p * error + tried
        added = np.clip(raw_sum, -g.correction, g.correction)
        p_ref = np.clip(forward + added, self._low, self._curve.limit)
        stuck = (p_ref - forward != raw_sum) & (
            (raw_sum - (p_ref - forward)) * error > 0
        )
        integral = np.where(stuck, integral, tried)
        x = np.concatenate([integral, p_ref, model])
        state.get_mutable_discrete_state().set_value(x)


class PressureLoop(_Sampled):
    """u = sat(p_ref/p_max + PID((p_ref - p)/p_max)) within -1..1.

    The derivative is of the pressure, so that a step of p_ref does not kick.

    Ports: in `p_ref`, `p` (n) [Pa]; out `u` (n).
    """

    def __init__(self, size, curve, gains, period=None):
        super().__init__()
        period = table("pressure")["period"] if period is None else period
        self._declare("pressure_loop", 3 * size, period)
        self._n, self._limit, self._gains = size, curve.limit, gains
        self.DeclareVectorInputPort("p_ref", size)
        self.DeclareVectorInputPort("p", size)
        self._output("u", slice(2 * size, 3 * size))

    def _update(self, context, state):
        n, g = self._n, self._gains
        x = self._x(context)
        integral, before = x[:n], x[n : 2 * n]
        wish = self.EvalVectorInput(context, 0).value() / self._limit
        p = self.EvalVectorInput(context, 1).value() / self._limit
        error = wish - p
        tried = integral + g.pressure_i * self._period * error
        rate = (p - before) / self._period
        full = wish + g.pressure_p * error + tried - g.pressure_d * rate
        u = np.clip(full, -1.0, 1.0)
        integral = np.where((full - u) * error > 0, integral, tried)
        state.get_mutable_discrete_state().set_value(np.concatenate([integral, p, u]))


class Chambers(_Sampled):
    """dp/dt = (u p_max - p)/rise, exact between samples; |u| <= 1.

    Ports: in `u` (n); out `p` (n) [Pa] and `alpha` (n) [rad], the angles that
    the pressures hold.

    Args:
        rise: time constant of a chamber behind its valve [s].
        alpha: what the pressures hold at first (n,) [rad].
    """

    def __init__(self, size, curve, *, rise=None, alpha=None, period=None):
        super().__init__()
        period = table("pressure")["period"] if period is None else period
        rise = table("pressure")["rise"] if rise is None else rise
        if not (np.isfinite(rise) and rise > 0):
            raise InvalidInput(f"chambers: rise must be > 0 s, got {rise}")
        self._declare("chambers", size, period)
        self._decay, self._limit = np.exp(-period / rise), curve.limit
        self._start = curve.pressure(np.zeros(size) if alpha is None else alpha)
        self.DeclareVectorInputPort("u", size)
        self.DeclareInitializationUnrestrictedUpdateEvent(self._fill)
        self._output("p", slice(0, size))
        self._output("alpha", slice(0, size), curve.bending)

    def _fill(self, context, state):
        state.get_mutable_discrete_state().set_value(self._start)

    def _update(self, context, state):
        u = np.clip(self.EvalVectorInput(context, 0).value(), -1.0, 1.0)
        rest = u * self._limit
        p = rest + (self._x(context) - rest) * self._decay
        state.get_mutable_discrete_state().set_value(p)
