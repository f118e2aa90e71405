"""Feedback on leg positions: a plan's voltages, altered where the legs err.

RSS 2018, eq. (22), per leg, x driving the swing actuator and z the lift:

    u = K_f u0 + K_p e + K_d de/dt

Stable gains, measured with a 10 Hz trot of three cycles at steps of 0.1 ms, one
run a point: at K_p = 40 V/mm, K_d of 20, 50 and 80 V ms/mm, not 0, 10 or 120,
in both contact models; at K_d = 50, K_p of 0 to 40 V/mm, not 80. Too little
damping and the sampled loop rings the legs; too much and it clips.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.systems.framework import DiscreteStateIndex, LeafSystem

from drakebots.core.errors import InvalidInput
from drakebots.robots.hamr.model import (
    FORWARD,
    UP,
    Bender,
    hamr_benders,
    hamr_encoder,
)
from drakebots.robots.hamr.reference import Reference
from drakebots.robots.hamr.track.leg_map import hamr_leg_map

KP = 40e3
"""[V/m]; the authors' code."""
KD = 50.0
"""[V s/m], that is V ms/mm; the authors' code."""
KF = 1.0


@dataclass(frozen=True)
class Gains:
    """Of eq. (22), the same for swing and lift.

    Attributes:
        kp: [V/m].
        kd: [V s/m].
        kf: of the feed-forward voltage about the middle of its range; a factor
            on the whole voltage would also move the legs' rest (ours).
    """

    kp: float = KP
    kd: float = KD
    kf: float = KF

    def __post_init__(self):
        for name in ("kp", "kd", "kf"):
            value = getattr(self, name)
            if not 0 <= value < np.inf:
                raise InvalidInput(f"{name} must be >= 0, got {value}")


@dataclass(frozen=True, eq=False)
class Command:
    """What to execute: a reference, faded in from rest.

    Attributes:
        reference: the plan.
        ramp: seconds over which voltages and legs go linearly from the middle
            voltage and the neutral place to the plan; 0 starts in the plan. A
            periodic plan runs meanwhile, another waits in its first state.
        bias: V_b [V].
    """

    reference: Reference
    ramp: float = 0.0
    bias: float = 225.0

    def __post_init__(self):
        if not 0 <= self.ramp < np.inf:
            raise InvalidInput(f"ramp must be >= 0 s, got {self.ramp}")

    def voltages(self, t: float) -> np.ndarray:
        """u0 (8,) [V] at time t [s]."""
        middle = 0.5 * self.bias
        planned = self.reference.voltages_at(self.plan_time(t))
        return middle + self._share(t) * (planned - middle)

    def legs(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities of the markers (4, 3) [m], [m/s]."""
        moment, share = self.plan_time(t), self._share(t)
        planned = self.reference.legs_at(moment)
        rate = self.reference.leg_velocities_at(moment)
        if share >= 1:
            return planned, rate
        away = planned - hamr_leg_map().neutral
        return hamr_leg_map().neutral + share * away, share * rate + away / self.ramp

    def plan_time(self, t: float) -> float:
        """The plan's own time at time t [s]."""
        return t if self.reference.periodic else t - self.ramp

    def _share(self, t: float) -> float:
        return 1.0 if t >= self.ramp else max(t, 0.0) / self.ramp


class LegController(LeafSystem):
    """Executes a command, correcting the legs.

                            ┌───────────────┐
        legs (12) m ───────▶│               │
                            │ LegController │──▶ voltages (8) V, 0..V_b
        velocity (12) m/s ─▶│               │
                            └───────────────┘

    Inputs are those of `LegEstimator`. The command is sampled at the encoders'
    rate and held; the output follows the inputs without a further delay. The
    sign of each actuator's feedback is that of d(voltage)/d(foot command): its
    orientation against the sense in which its force moves the foot.

    Args:
        command: what to execute.
        gains: of eq. (22).
        time_unit: of the diagram's clock [s].
        period: of sampling [s]; None for the encoders'.
        benders: the actuators, for their orientation.
    """

    def __init__(
        self,
        command: Command,
        gains: Gains | None = None,
        *,
        time_unit: float = 1.0,
        period: float | None = None,
        benders: Bender | None = None,
    ):
        super().__init__()
        self.set_name("leg_controller")
        self._command, self._gains = command, gains or Gains()
        self._period = period or hamr_encoder().period
        self._unit = time_unit
        self._signs = feedback_signs(benders)
        self.DeclareVectorInputPort("legs", 12)
        self.DeclareVectorInputPort("velocity", 12)
        # Samples so far, from -1: what follows the inputs alone would be
        # evaluated at every step of the plant.
        self.DeclareDiscreteState(np.array([-1.0]))
        self.DeclarePeriodicUnrestrictedUpdateEvent(
            self._period / time_unit, 0.0, self._tick
        )
        needs = {self.all_input_ports_ticket()}
        needs |= {self.discrete_state_ticket(DiscreteStateIndex(0))}
        self.DeclareVectorOutputPort("voltages", 8, self._calc, needs)

    def _tick(self, context, state):
        count = round(context.get_time() * self._unit / self._period)
        state.get_mutable_discrete_state().set_value([float(count)])

    def _calc(self, context, output):
        count = context.get_discrete_state_vector().value()[0]
        time, gains = max(count, 0.0) * self._period, self._gains
        middle = 0.5 * self._command.bias
        u = middle + gains.kf * (self._command.voltages(time) - middle)
        # Before the first sample nothing is known of the legs.
        if count >= 0 and (gains.kp or gains.kd):
            where, rate = self._command.legs(time)
            legs = self.EvalVectorInput(context, 0).value().reshape(4, 3)
            velocity = self.EvalVectorInput(context, 1).value().reshape(4, 3)
            error = gains.kp * (where - legs) + gains.kd * (rate - velocity)
            u = u + self._signs * error[:, [0, 2]].ravel()
        output.SetFromVector(np.minimum(np.maximum(u, 0.0), self._command.bias))


def feedback_signs(benders: Bender | None = None) -> np.ndarray:
    """Sign (8,) of the voltage that moves a foot forward (swing) or up (lift)."""
    law = benders or hamr_benders()
    senses = np.column_stack([FORWARD, UP]).ravel()
    # F = o C0 (V_b - 2 V): more voltage, less force where o = 1.
    return -law.orientation * senses
