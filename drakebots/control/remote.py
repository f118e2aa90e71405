"""Replanning in a process of its own: the plant waits for nothing.

    controller = RemoteReplanning("my_module:make", problem)   # begins at once there
    controller.own = make(problem)                             # meanwhile here

States go there, plans come back (80 kB in 0.04 ms for 18 coordinates, without the
gains 10 kB). In a thread
beside the plant a solve took twice as long, and a step of the plant up to 5 ms, as both
hold Python's lock.
"""

from __future__ import annotations

from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from drakebots.control.problem import MpcPlan
from drakebots.control.system import Command, MpcLog, Replanning, _Held
from drakebots.core.errors import DrakebotsError, NoSolution
from drakebots.core.lazy import resolve
from drakebots.core.threads import Child

AHEAD = 2e-3
"""The plant may be ahead by so much of what the other process had time for [s]."""


class RemoteReplanning:
    """A controller in a loop whose solves are another process's.

    An answer to the state at t acts at t and the processor time that it took: late as
    on a robot, whatever the pace of the simulation. The plant waits for nothing, but
    where the machine gives the other process no time to compute (AHEAD): there the
    simulation runs slower, and stays right. With a `delay` answers act exactly then,
    and runs can be repeated.

    Args:
        make: "module:function", called there and here as make(problem); it returns a
            :class:`Replanning` whose problem has no delay.
        problem: can be pickled.
        delay: of every answer [s].

    Attributes:
        own: the same here, which commands by plans and solves none.
        orders: of the reference, in force for the next solve.
        plan: the last answer.
    """

    name = "mpc"

    def __init__(self, make: str, problem: Any, *, delay: float | None = None):
        self._child, self._delay = Child(f"{__name__}:serve"), delay
        self._child.pipe.send((make, problem))
        self.own: Replanning
        self.log, self.orders = MpcLog(), None
        self.plan: MpcPlan | None = None
        self._asked: float | None = None
        self._began = 0.0
        self._held, self._fresh = _Held(), True

    @property
    def period(self) -> float:
        """Between two solves [s]."""
        return self.own.period

    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Begins a run from a state; the next update makes a plan from nothing, for
        the orders that the reference was made with: going is found from standing."""
        if self._asked is not None:
            self._receive()
        self._held, self._fresh = _Held(), True

    def update(self, time: float, q: np.ndarray, v: np.ndarray) -> None:
        """Asks for a plan from the state at the beginning of a period [s]."""
        if not self._settled(time):
            self.log.late += 1
            return
        self._asked, self._began = time, self._child.seconds
        self._child.pipe.send((time, q, v, self.orders, self._fresh))
        if self._fresh:
            self._fresh = False
            self._receive()
            self._held = _Held(self.plan)

    def command(self, now: float, q: np.ndarray, v: np.ndarray) -> Command:
        """The motors' command at a time [s]."""
        self._settled(now)
        return self.own.commanded(self._held.at(now), now, q, v)

    def _settled(self, now: float) -> bool:
        """Whether no answer is out, after one was taken that is due or has come."""
        if self._asked is not None:
            if self._delay is None:
                come, enough = self._child.has_answered(), now - self._asked - AHEAD
                while not come and self._child.seconds - self._began < enough:
                    come = self._child.has_answered(AHEAD / 4)
            else:
                come = now >= self._asked + self._delay - 1e-9
            if come:
                self._receive(now)
        return self._asked is None

    def _receive(self, now: float = 0.0) -> None:
        asked, self._asked = self._asked or 0.0, None
        try:
            answer = self._child.pipe.recv()
        except (EOFError, OSError) as error:
            raise NoSolution("the controller's process has ended") from error
        if isinstance(answer, DrakebotsError):
            raise answer
        self.plan, log = answer
        for name in ("times", "seconds", "ok", "cost"):
            getattr(self.log, name).extend(getattr(log, name))
        self.log.bad_states += log.bad_states
        took = sum(log.seconds) if self._delay is None else self._delay
        self._held = _Held(self._held.at(now), self.plan, asked + took)

    def stop(self) -> None:
        """Ends the other process."""
        self._child.stop()


def serve(pipe: Connection) -> None:
    """The work of the other process: plans from the states that come."""
    make, problem = pipe.recv()
    held = _Held()
    try:
        own = resolve(make)(problem)
        first = own.reference.orders
        while True:
            time, q, v, orders, fresh = pipe.recv()
            own.log, own.reference.orders = MpcLog(), first if fresh else orders
            held = own.replanned(_Held() if fresh else held, time, q, v)
            own.log.horizons.clear()
            plan = held.at(time)
            if own.servos:  # which have gains of their own; these are nine tenths of it
                plan = replace(plan, gains=plan.gains[:0])
            pipe.send((plan, own.log))
    except (EOFError, OSError):
        return
    except DrakebotsError as error:
        pipe.send(error)
