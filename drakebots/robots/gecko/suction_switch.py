"""The one who switches suction feet during a simulation.

What a weld does is a parameter of the plant's Context, which no other system of
the diagram may write. A Simulator's monitor is called between its steps, when
its context may change: the switch is that monitor.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, EventStatus, OutputPort

from drakebots.robots.gecko.suction import SuctionFeet

TINY = 1e-9

Guard = Callable[[Context, np.ndarray], np.ndarray]
"""Given the plant's context and the feet that hold, the feet that lose hold."""


class SuctionSwitch:
    """Switches suction feet as a port of the diagram commands.

    It is the simulator's monitor: called after every step, it reads `command`
    and changes the plant's Context where the command has changed. A guard may
    take hold from feet; such a foot stays free until its command goes off and
    on again.

    Args:
        suction: the feet.
        command: an output port of the diagram's, (F,): > 0.5 to hold.
        guard: asked every `guard_period`.
        guard_period: [s].
        stop: asked after every step with the root context; returns why to end
            the run, or None.

    Attributes:
        history: (time [s], held (F,) of bool) at the start and at each change.
        stopped: (time [s], reason), or None.
    """

    def __init__(
        self,
        suction: SuctionFeet,
        command: OutputPort,
        *,
        guard: Guard | None = None,
        guard_period: float = 0.01,
        stop: Callable[[Context], str | None] | None = None,
    ):
        self.suction, self._command = suction, command
        self._guard, self._guard_period, self._stop = guard, guard_period, stop
        self._system = command.get_system()
        self.history: list[tuple[float, np.ndarray]] = []
        self.stopped: tuple[float, str] | None = None

    def watch(self, simulator: Simulator, held) -> None:
        """Begins, with the feet that hold at first; before Initialize."""
        self._root = simulator.get_mutable_context()
        self._plant_context = self.suction.plant.GetMyMutableContextFromRoot(self._root)
        self._own_context = self._system.GetMyContextFromRoot(self._root)
        self._before = np.asarray(held, bool).copy()
        self._lost = np.zeros(len(self._before), bool)
        self._next_guard = 0.0
        self.stopped = None
        self.suction.place(self._plant_context, self._before)
        self.history = [(self._root.get_time(), self._before.copy())]
        simulator.set_monitor(self._after_step)

    def held_at(self, times) -> np.ndarray:
        """Which feet held up to times (T,) [s], as logs see it: (T, F) of bool."""
        changes = np.array([time for time, _ in self.history])
        # Drake publishes before it calls the monitor.
        rows = np.searchsorted(changes, np.asarray(times) - TINY) - 1
        return np.array([held for _, held in self.history])[np.maximum(rows, 0)]

    def _after_step(self, context: Context) -> EventStatus:
        time = context.get_time()
        if self.stopped is None:
            command = self._command.Eval(self._own_context) > 0.5
            self._lost &= command
            if self._guard is not None and time >= self._next_guard - TINY:
                self._next_guard = time + self._guard_period
                now = self.history[-1][1]
                self._lost |= self._guard(self._plant_context, now)
            held = command & ~self._lost
            if (held != self.history[-1][1]).any():
                self.suction.hold(self._plant_context, held)
                self.history.append((time, held.copy()))
            reason = None if self._stop is None else self._stop(context)
            if reason is not None:
                self.stopped = (time, reason)
        if self.stopped is not None:
            return EventStatus.ReachedTermination(self._system, self.stopped[1])
        return EventStatus.DidNothing()
