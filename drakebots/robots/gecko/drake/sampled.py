"""A base class for the controllers of the gecko's diagram: sampled and held."""

from __future__ import annotations

import numpy as np
from pydrake.systems.framework import DiscreteStateIndex, LeafSystem


class Sampled(LeafSystem):
    """A system with one vector of discrete state, updated at fixed times.

    Updates are unrestricted, as the plant's own step: Drake makes those before discrete
    updates, which would see the plant a step ahead.

    Args:
        name: name of the system.
        start: state at first.
    """

    def __init__(self, name: str, start):
        super().__init__()
        self.set_name(name)
        self.DeclareDiscreteState(np.asarray(start, float))
        self._ticket = {self.discrete_state_ticket(DiscreteStateIndex(0))}

    def _declare_update(self, update, period: float, offset: float = 0) -> None:
        """Replaces the state x by update(context, x) at `offset` + k `period` [s]."""

        def event(context, state):
            state.get_mutable_discrete_state().set_value(
                update(context, self._state(context).copy())
            )

        self.DeclarePeriodicUnrestrictedUpdateEvent(period, offset, event)

    def _declare_output(self, name: str, part: slice, function=lambda x: x) -> None:
        """An output port with a part of the state, or a function of it."""

        def calc(context, output):
            output.SetFromVector(function(self._state(context)[part]))

        size = part.stop - part.start
        self.DeclareVectorOutputPort(name, size, calc, self._ticket)

    @staticmethod
    def _state(context) -> np.ndarray:
        return context.get_discrete_state_vector().value()

    def _input(self, context, port: int = 0) -> np.ndarray:
        return self.EvalVectorInput(context, port).value()
