"""The gait in time: half cycles of three phases, from the planner's q.

Every half cycle of t_fix + t_free + t_move:

    fix   all feet hold; the torso still bends as before
    free  the feet of the new half cycle hold, the others let go
    move  the limbs go to the gait law's new references, evenly over a ramp

q = (q1, q2) is that of the half cycle's start. Source: Front. Robot. AI 7:87
(2020), Algorithm 1; the phases as in the authors' description.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.systems.framework import DiscreteStateIndex, LeafSystem

from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.model import fixation, gait_law, table

PHASES = ("fix", "free", "move")


@dataclass(frozen=True)
class PhaseTimes:
    """Durations of a half cycle's phases [s]."""

    fix: float = 0.2
    free: float = 0.1
    move: float = 1.0

    def __post_init__(self):
        for name in PHASES:
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"phase time {name} must be > 0 s, got {value}")

    @property
    def half_cycle(self) -> float:
        """Of all three phases [s]."""
        return self.fix + self.free + self.move

    def rounded(self, step: float) -> PhaseTimes:
        """Each as a whole number of steps [s], one at least."""
        values = (getattr(self, name) for name in PHASES)
        return PhaseTimes(*(max(1, round(value / step)) * step for value in values))


def phase_times() -> PhaseTimes:
    """Those of `params.yaml`."""
    return PhaseTimes(**table("phase_times"))


class GaitSequencer(LeafSystem):
    """Plays the gait law in phases.

                   ┌───────────────┐──▶ alpha_ref (5) rad
        q (3)   ──▶│ GaitSequencer │──▶ fixation (4) 0 or 1
                   └───────────────┘──▶ gait (4) phase, q1 signed, q2, half cycles

    Input q: q1 > 0 [rad], q2, and whether to walk (> 0.5); it is read when
    the free phase begins, so give what was decided at the half cycle's start.
    At rest all feet hold. Unrestricted updates, as the plant's own step: Drake
    does those before discrete ones, which would see the plant a step ahead.

    Args:
        start: reference angles at first (5,) [rad].
        times: of the phases.
        first: sign of the first half cycle's q1.
        leg_bend: c1 of the gait law.
        ramp: share of the move phase in which the references go from the old
            to the new ones. A jump can leave limbs of constant curvature in a
            pose far from the one that a slow motion reaches (ours).
    """

    def __init__(
        self,
        start,
        times: PhaseTimes = PhaseTimes(),
        *,
        first: int = 1,
        leg_bend: float = 1.0,
        ramp: float = 0.3,
    ):
        super().__init__()
        self.set_name("gait_sequencer")
        start = np.asarray(start, float)
        if start.shape != (5,) or not np.isfinite(start).all():
            raise InvalidInput(f"start must be 5 finite angles [rad], got {start}")
        if first not in (-1, 1):
            raise InvalidInput(f"first must be 1 or -1, got {first}")
        if not 0 <= ramp <= 1:
            raise InvalidInput(f"ramp must be within 0..1 of the move, got {ramp}")
        self._ramp = max(ramp * times.move, 1e-12)
        self.times, self._leg_bend = times, leg_bend
        self.DeclareVectorInputPort("q", 3)
        held = fixation(-first).astype(float)
        # phase, signed q1, q2, half cycles, next sign; angles before and next;
        # feet; when the move began
        state = np.concatenate(
            [[2.0, 0.0, 0.0, 0.0, first], start, start, held, [np.inf]]
        )
        self.DeclareDiscreteState(state)
        period = times.half_cycle
        for offset, update in (
            (0.0, self._fix),
            (times.fix, self._free),
            (times.fix + times.free, self._move),
        ):
            self.DeclarePeriodicUnrestrictedUpdateEvent(period, offset, update)
        ticket = {self.discrete_state_ticket(DiscreteStateIndex(0))}
        self.DeclareVectorOutputPort("alpha_ref", 5, self._alpha_ref)
        for name, part in (
            ("fixation", slice(15, 19)),
            ("gait", slice(0, 4)),
        ):
            size = part.stop - part.start
            self.DeclareVectorOutputPort(name, size, self._output(part), ticket)

    @staticmethod
    def _output(part: slice):
        def calc(context, output):
            output.SetFromVector(context.get_discrete_state_vector().value()[part])

        return calc

    def _alpha_ref(self, context, output):
        x = context.get_discrete_state_vector().value()
        share = min(max((context.get_time() - x[19]) / self._ramp, 0.0), 1.0)
        output.SetFromVector(x[5:10] + share * (x[10:15] - x[5:10]))

    @staticmethod
    def _values(context) -> np.ndarray:
        return context.get_discrete_state_vector().value().copy()

    def _fix(self, context, state):
        x = self._values(context)
        x[0] = 0.0
        x[15:19] = 1.0
        state.get_mutable_discrete_state().set_value(x)

    def _free(self, context, state):
        x = self._values(context)
        q1, q2, walk = self.EvalVectorInput(context, 0).value()
        x[0] = 1.0
        x[5:10], x[19] = x[10:15], np.inf
        if walk > 0.5:
            sign = x[4]
            x[1:3] = sign * abs(q1), q2
            x[3] += 1
            x[4] = -sign
            x[10:15] = gait_law(x[1], q2, leg_bend=self._leg_bend)
            x[15:19] = fixation(sign)
        state.get_mutable_discrete_state().set_value(x)

    def _move(self, context, state):
        x = self._values(context)
        x[0], x[19] = 2.0, context.get_time()
        state.get_mutable_discrete_state().set_value(x)
