"""Feedback on leg positions: a plan's voltages, corrected by the legs' errors.

RSS 2018, eq. (22), per leg, x driving the swing actuator and z the lift:

    u = K_f u0 + K_p e + K_d de/dt

Stable gains, measured with a 10 Hz trot of three cycles at time steps of 0.1 ms, one
run a point: at K_p = 40 V/mm, K_d of 20, 50 and 80 V ms/mm are stable, 0, 10 and 120
are not, in both contact models; at K_d = 50, K_p of 0 to 40 V/mm is stable, 80 is not.
With too little damping the sampled loop makes the legs ring; with too much it clips.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.systems.framework import DiscreteStateIndex, LeafSystem

from drakebots.core.checks import check, non_negative
from drakebots.robots.hamr.model import (
    BIAS,
    FORWARD,
    UP,
    hamr_benders,
    hamr_encoder,
)
from drakebots.robots.hamr.reference import Reference
from drakebots.robots.hamr.track.leg_map import hamr_leg_map

KP = 40e3
"""Gain of the leg positions in the authors' code [V/m]."""

KD = 50.0
"""Gain of the leg velocities in the authors' code [V s/m], that is V ms/mm."""


@dataclass(frozen=True, eq=False)
class Command:
    """A reference to execute, faded in from rest.

    Attributes:
        reference: the plan.
        ramp: time over which voltages and legs go linearly from the middle voltage
            and the neutral position to the plan [s]; 0 starts in the plan. A
            periodic plan runs meanwhile, any other waits in its first state.
    """

    reference: Reference
    ramp: float = 0.0

    def __post_init__(self):
        check(self, "command", ramp=non_negative("s"))

    def voltages(self, t: float) -> np.ndarray:
        """u0 (8,) [V] at time t [s]."""
        middle = 0.5 * BIAS
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

    Inputs are the outputs of `LegEstimator`. The command is sampled at the encoders'
    rate and held; the output follows the inputs without further delay.

    Args:
        command: what to execute.
        kp: K_p [V/m], the same for swing and lift, like the other gains.
        kd: K_d [V s/m].
        kf: K_f, a factor on the planned voltage about the middle of its range; a factor
            on the whole voltage would also move the legs' rest position (ours).
        time_unit: unit of the diagram's clock [s].
    """

    def __init__(
        self,
        command: Command,
        *,
        kp: float = KP,
        kd: float = KD,
        kf: float = 1.0,
        time_unit: float = 1.0,
    ):
        super().__init__()
        self.set_name("leg_controller")
        self._command, self._gains = command, (kp, kd, kf)
        self._period, self._unit = hamr_encoder().period, time_unit
        self._signs = feedback_signs()
        self.DeclareVectorInputPort("legs", 12)
        self.DeclareVectorInputPort("velocity", 12)
        # The number of samples so far, from -1: an output that depended on time
        # instead would be evaluated at every step of the plant.
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
        time, (kp, kd, kf) = max(count, 0.0) * self._period, self._gains
        middle = 0.5 * BIAS
        u = middle + kf * (self._command.voltages(time) - middle)
        # Before the first sample nothing is known of the legs.
        if count >= 0 and (kp or kd):
            position, rate = self._command.legs(time)
            legs = self.EvalVectorInput(context, 0).value().reshape(4, 3)
            velocity = self.EvalVectorInput(context, 1).value().reshape(4, 3)
            error = kp * (position - legs) + kd * (rate - velocity)
            u = u + self._signs * error[:, [0, 2]].ravel()
        output.SetFromVector(np.minimum(np.maximum(u, 0.0), BIAS))


def feedback_signs() -> np.ndarray:
    """Sign (8,) of the voltage that moves a foot forward (swing) or up (lift)."""
    senses = np.column_stack([FORWARD, UP]).ravel()
    # F = o C0 (V_b - 2 V): more voltage, less force where o = 1.
    return -hamr_benders().orientation * senses
