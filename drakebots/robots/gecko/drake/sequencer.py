"""The gait in time: half cycles of three phases, from the planner's q.

Every half cycle lasts t_fix + t_free + t_move:

    fix   all feet are fixed; the limbs keep their references
    free  only the feet of the new half cycle are fixed
    move  the references go evenly to those of the gait law

with q = (q1, q2) of the half cycle's start. Source: Front. Robot. AI 7:87 (2020),
Algorithm 1; the phases are those of the authors' description.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from drakebots.core.checks import array, between, check, check_value, positive
from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.drake.sampled import Sampled
from drakebots.robots.gecko.model import fixation, gait_law, parameters


@dataclass(frozen=True)
class PhaseTimes:
    """Durations of a half cycle's phases.

    Attributes:
        fix: duration of the phase with all feet fixed [s].
        free: duration of the phase in which feet let go [s].
        move: duration of the phase in which the limbs move [s].
    """

    fix: float = 0.2
    free: float = 0.1
    move: float = 1.0

    def __post_init__(self):
        rule = positive("s")
        check(self, "phase times", fix=rule, free=rule, move=rule)

    @property
    def half_cycle(self) -> float:
        """Duration of all three phases [s]."""
        return self.fix + self.free + self.move

    def rounded(self, step: float) -> PhaseTimes:
        """Each phase rounded to a whole number, >= 1, of time steps [s]."""
        return PhaseTimes(*(max(1, round(t / step)) * step for t in astuple(self)))


def phase_times() -> PhaseTimes:
    """The durations of `params.yaml`."""
    return PhaseTimes(**parameters().table("phase_times"))


# Parts of the sequencer's state.
_GAIT, _SIGN = slice(0, 4), 4
_BEFORE, _NEXT, _FEET, _BEGAN = slice(5, 10), slice(10, 15), slice(15, 19), 19


class GaitSequencer(Sampled):
    """Commands reference angles and fixed feet by the gait law, phase by phase.

                              ┌───────────────┐──▶ desired_bending (5) rad
        gait_parameters (3) ─▶│ GaitSequencer │──▶ fixation (4) 0 or 1
                              └───────────────┘──▶ gait (4) phase, q1 signed, q2,
                                                   half cycles

    `gait_parameters` holds q1 > 0 [rad], q2, and whether to walk (> 0.5). It is read
    at the beginning of the free phase, so its source has the fix phase to decide.
    While the robot does not walk, all feet are fixed.

    Args:
        start: reference angles at first (5,) [rad].
        times: durations of the phases.
        first: sign of q1 in the first half cycle, 1 or -1.
        leg_bend: coefficient c1 of the gait law.
        ramp: share of the move phase in which the references go from the old to the
            new ones. After a jump, limbs of constant curvature can end in a pose far
            from the one that a slow motion reaches (our choice).
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
        start = check_value("start", start, array((5,), "rad"))
        if first not in (-1, 1):
            raise InvalidInput(f"first must be 1 or -1, got {first}")
        check_value("ramp", ramp, between(0, 1))
        held = fixation(-first).astype(float)
        super().__init__(
            "gait_sequencer",
            np.concatenate([[2.0, 0, 0, 0, first], start, start, held, [np.inf]]),
        )
        self._ramp = max(ramp * times.move, 1e-12)
        self.times, self._leg_bend = times, leg_bend
        self.DeclareVectorInputPort("gait_parameters", 3)
        self._declare_update(self._fix, times.half_cycle)
        self._declare_update(self._free, times.half_cycle, times.fix)
        self._declare_update(self._move, times.half_cycle, times.fix + times.free)
        self.DeclareVectorOutputPort("desired_bending", 5, self._alpha_ref)
        self._declare_output("fixation", _FEET)
        self._declare_output("gait", _GAIT)

    def _alpha_ref(self, context, output):
        x = self._state(context)
        share = min(max((context.get_time() - x[_BEGAN]) / self._ramp, 0.0), 1.0)
        output.SetFromVector(x[_BEFORE] + share * (x[_NEXT] - x[_BEFORE]))

    def _fix(self, context, x):
        x[0] = 0.0
        x[_FEET] = 1.0
        return x

    def _free(self, context, x):
        q1, q2, walk = self._input(context)
        x[0] = 1.0
        x[_BEFORE], x[_BEGAN] = x[_NEXT], np.inf
        if walk > 0.5:
            sign = x[_SIGN]
            x[1:3] = sign * abs(q1), q2
            x[3] += 1
            x[_SIGN] = -sign
            x[_NEXT] = gait_law(x[1], q2, leg_bend=self._leg_bend)
            x[_FEET] = fixation(sign)
        return x

    def _move(self, context, x):
        x[0], x[_BEGAN] = 2.0, context.get_time()
        return x
