"""A camera above the gecko, and the planner that looks through it."""

from __future__ import annotations

import numpy as np
from pydrake.systems.framework import DiscreteStateIndex, LeafSystem

from drakebots.errors import InvalidInput


class Camera(LeafSystem):
    """Sees the torso's front end and the mean heading.

                   ┌────────┐
        pose (3) ─▶│ Camera │──▶ measured (3) x, y [m], heading [rad]
                   └────────┘

    Sampled and held; the first sample is taken at Initialize.

    Args:
        period: of sampling [s].
        position_noise: standard deviation of x and of y [m].
        heading_noise: standard deviation [rad].
        seed: of the noise.

    Raises:
        InvalidInput: for a period <= 0 or a negative noise.
    """

    def __init__(
        self,
        period: float = 0.1,
        *,
        position_noise: float = 0.0,
        heading_noise: float = 0.0,
        seed: int = 0,
    ):
        super().__init__()
        self.set_name("camera")
        if not (np.isfinite(period) and period > 0):
            raise InvalidInput(f"camera: period must be > 0 s, got {period}")
        noise = np.array([position_noise, position_noise, heading_noise], float)
        if not (np.isfinite(noise).all() and (noise >= 0).all()):
            raise InvalidInput("camera: noise must be >= 0 and finite")
        self._noise, self._random = noise, np.random.default_rng(seed)
        self.DeclareVectorInputPort("pose", 3)
        self.DeclareDiscreteState(3)
        self.DeclareInitializationUnrestrictedUpdateEvent(self._sample)
        self.DeclarePeriodicUnrestrictedUpdateEvent(period, period, self._sample)
        state = {self.discrete_state_ticket(DiscreteStateIndex(0))}
        self.DeclareVectorOutputPort("measured", 3, self._measured, state)

    def _sample(self, context, state):
        seen = self.EvalVectorInput(context, 0).value().copy()
        if self._noise.any():
            seen += self._noise * self._random.standard_normal(3)
        state.get_mutable_discrete_state().set_value(seen)

    def _measured(self, context, output):
        output.SetFromVector(context.get_discrete_state_vector().value())


class GeneratorSystem(LeafSystem):
    """Asks a gait pattern generator once per half cycle.

                       ┌─────────────────┐
        measured (3) ─▶│ GeneratorSystem │──▶ q (3) q1 > 0 [rad], q2, walk 0 or 1
                       └─────────────────┘──▶ target (2) number, distance foretold [m]

    The generator is any object with `decide(position, heading)`, which returns
    a decision with `q1`, `q2`, `target`, `distance`, or None when it has
    arrived. It remembers its target itself: a run needs a new one.

    Args:
        generator: to ask.
        period: of a half cycle [s].
    """

    def __init__(self, generator, period: float):
        super().__init__()
        self.set_name("generator")
        self._generator = generator
        self.DeclareVectorInputPort("measured", 3)
        self.DeclareDiscreteState(np.array([0.0, 0, 0, np.nan, np.nan]))
        self.DeclarePeriodicUnrestrictedUpdateEvent(period, 0.0, self._decide)
        state = {self.discrete_state_ticket(DiscreteStateIndex(0))}
        self.DeclareVectorOutputPort("q", 3, self._output(slice(0, 3)), state)
        self.DeclareVectorOutputPort("target", 2, self._output(slice(3, 5)), state)
        self.arrived = False

    @staticmethod
    def _output(part: slice):
        def calc(context, output):
            output.SetFromVector(context.get_discrete_state_vector().value()[part])

        return calc

    def _decide(self, context, state):
        x, y, heading = self.EvalVectorInput(context, 0).value()
        x_new = context.get_discrete_state_vector().value().copy()
        decision = self._generator.decide(np.array([x, y]), heading)
        self.arrived = decision is None
        if decision is None:
            x_new[2] = 0.0
        else:
            x_new[:3] = decision.q1, decision.q2, 1.0
            x_new[3:5] = decision.target, decision.distance
        state.get_mutable_discrete_state().set_value(x_new)
