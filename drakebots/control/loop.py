"""One loop for robots under control in simulation: rigid ones, and ones in a skin.

            q, v ┌────────────┐ command ┌───────────────────────┐
        ┌───────▶│ controller │────────▶│ plant                 │──┐
        │        └────────────┘  pushes─▶ its ground, its skin  │  │
        │                               └───────────────────────┘  │
        └──────────────────────────────────────────────────────────┘

Controllers, plants and pushes are objects with the methods that :class:`Controller`,
:class:`Plant` and :class:`Push` show. In every time step of the plant the controller
commands the motors, and where a period begins it updates its plan: from the state
before the step, for the next one at the earliest, as two systems of a diagram would. A
:class:`ControlRun` holds all of it, judges what came of it and makes the result.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Protocol

import numpy as np
import xarray as xr

from drakebots.control.system import Command, MpcLog
from drakebots.core.checks import finite, non_negative, positive
from drakebots.core.convert import finite_word
from drakebots.core.errors import InvalidInput, one_line
from drakebots.core.fields import checked, declared
from drakebots.core.run import Progress, Stop, failed, run_steps
from drakebots.multibody import (
    MISSED,
    Finding,
    SimulatedRun,
    asked,
    drifted,
    went,
)
from drakebots.results import Result


@checked("push")
class Push:
    """A horizontal force on the base at its centre of mass."""

    force: Annotated[float, finite("N")]
    """Size of the force."""
    time: Annotated[float, non_negative("s")]
    """Time at which it begins."""
    duration: Annotated[float, positive("s")] = 0.1
    """Time for which it acts."""
    direction: Annotated[float, finite("rad")] = np.pi / 2
    """Direction of the force: 0 ahead (+x), pi/2 to the left (+y)."""

    word = "50N@1s"

    @classmethod
    def from_word(cls, text: str, what: str) -> Push:
        """The push of "50N@1s", "50N@1s,0.2s" or "50N@1s,0.2s,90deg".

        Raises:
            InvalidInput: naming what is no push.
        """
        size, at, rest = text.partition("@")
        words = [size, *rest.split(",")]
        if not at or len(words) > 4:
            raise InvalidInput(
                f"{what}: {text!r} is no push; write 50N@1s, or with duration and "
                "direction 50N@1s,0.1s,90deg"
            )
        fields = zip(declared(cls).values(), words)
        return cls(*(finite_word(w, f"{what} {f.name}", f.unit) for f, w in fields))

    def at(self, time: float, step: float) -> np.ndarray:
        """Its mean force over a time step from `time` on, in the world (3,) [N].

        So the impulse is the one asked for, whatever the steps.
        """
        begin, end = max(time, self.time), min(time + step, self.time + self.duration)
        share = round(max(end - begin, 0.0) / step, 9)
        ahead = [np.cos(self.direction), np.sin(self.direction), 0.0]
        return share * self.force * np.array(ahead)


class Controller(Protocol):
    """A controller in a loop.

    Attributes:
        name: of the controller.
        period: between two updates [s]; None for a controller without them.
        log: of its solves.
    """

    name: str
    period: float | None
    log: MpcLog

    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Begins a run from a state, before the robot moves."""

    def update(self, time: float, q: np.ndarray, v: np.ndarray) -> None:
        """Plans from the state at the beginning of a period [s]."""

    def command(self, time: float, q: np.ndarray, v: np.ndarray) -> Command:
        """The motors' command at a time [s]."""


class Law(Controller):
    """A controller that begins and plans nothing: a function of time and state.

    Args:
        name: of the controller.
        command: the motors' command at a time [s] from q and v.
    """

    def __init__(
        self, name: str, command: Callable[[float, np.ndarray, np.ndarray], Command]
    ):
        self.name, self.command = name, command
        self.period, self.log = None, MpcLog()


class Plant(Protocol):
    """A robot on its ground that takes commands step by step, in SI.

    Attributes:
        time_step: its time step [s].
    """

    time_step: float

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """Measured q and v, in the controller's coordinates."""

    def advance(self, command: Command, forces: Sequence[np.ndarray] = ()) -> None:
        """One time step under a command and horizontal forces (3,) [N] on its trunk;
        raises NoSolution or RuntimeError where there is none."""


_SAME = 1e-9  # instants that are nearer to each other are one [s]


class ControlRun(SimulatedRun):
    """A robot under control in simulation, and what comes of it.

    Attributes:
        problem: with its `time_limit`, and as a rule `duration`, `log_period` and
            `pushes`.
        plant, controller: see :class:`Plant` and :class:`Controller`.
        stage: of the work for `progress`.
        fell: time [s] and description of a fall that ended the run, or None.
    """

    stage = "simulate"
    plant: Plant
    controller: Controller
    fell: tuple[float, str] | None = None

    @abstractmethod
    def keep(self, time: float, *, last: bool) -> None:
        """Stores a sample of the plant at a time [s]."""

    def fall(self, time: float) -> str:
        """Description of a fall that ends the run; "" where it goes on."""
        return ""

    def simulate(
        self,
        progress: Progress | None = None,
        *,
        duration: float | None = None,
        log_period: float | None = None,
        success: str | None = None,
    ) -> Result:
        """Runs to the end, or as far as it comes.

        Args:
            progress: called as progress(stage, time, duration) [s].
            duration, log_period: in place of the problem's [s].
            success: message of a run that was not ended early.
        """
        self._samples = self._updates = 0
        duration = self.problem.duration if duration is None else duration
        self._log_period = self.problem.log_period if log_period is None else log_period
        self.steps = max(1, int(np.ceil(duration / self.plant.time_step - 1e-6)))
        self.controller.start(*self.plant.state())
        self._sample(0.0)
        end = run_steps(
            self.step,
            self.steps,
            stage=self.stage,
            until=duration,
            progress=progress,
            time_limit=self.problem.time_limit,
            success=success,
            reached=self.result,
            seen=getattr(self.plant, "seen", None),
        )
        return self.result(end)

    def step(self, k: int) -> Stop | None:
        """The k-th time step, from (k - 1) dt to k dt."""
        dt = self.plant.time_step
        time, end = (k - 1) * dt, k * dt
        while self._update_time < time:  # by rounding too, as in a diagram
            self._update()
        command = self.controller.command(time, *self.plant.state())
        if self._update_time < time + _SAME:
            self._update()
        forces = [push.at(time, dt) for push in self.pushes]
        try:
            self.plant.advance(command, [f for f in forces if f.any()])
        except RuntimeError as error:
            reason = one_line(error)[:160]
            return failed(f"the simulation failed ({reason}); reduce the time step")
        if not all(np.isfinite(x).all() for x in self.plant.state()):
            return failed(
                f"the state diverged before {end:.4g} s; reduce the time step"
            )
        why = self.fall(end)
        self._sample(end, last=bool(why) or k == self.steps)
        if why:
            self.fell = end, why
            return failed(f"{why} at {end:.3g} s")
        return None

    @property
    def pushes(self) -> Sequence[Push]:
        """The forces on its base, of the problem."""
        return getattr(self.problem, "pushes", ())

    @property
    def _update_time(self) -> float:
        period = self.controller.period
        return np.inf if period is None else self._updates * period

    def _update(self) -> None:
        self.controller.update(self._update_time, *self.plant.state())
        self._updates += 1

    def _sample(self, time: float, *, last: bool = False) -> None:
        """Stores the samples due up to a time [s], and the last in any case."""
        while (due := self._samples * self._log_period) < time + _SAME:
            self._samples += 1
            self.keep(due, last=last and due > time - _SAME)
        if last and due - self._log_period < time - _SAME:
            self.keep(time, last=True)


# --- what came of it ----------------------------------------------------------


def with_solves(data: xr.Dataset, log: MpcLog) -> xr.Dataset:
    """A dataset with the solves of a run: solve_time, solve_seconds and solve_ok."""
    return data.assign(
        solve_time=("solve", np.array(log.times), {"units": "s"}),
        solve_seconds=("solve", np.array(log.seconds), {"units": "s"}),
        solve_ok=("solve", np.array(log.ok, int), {"units": "1"}),
    )


def run_figures(
    data: xr.Dataset, controller: Controller, pushes: Sequence[Push]
) -> dict:
    """Figures of any controlled run: where it ends, and how fast it was solved."""
    rpy, base = data.base_rpy.values, data.base_position.values
    log = controller.log
    # The first solve is from nothing, before the robot moves.
    seconds = np.array(log.seconds[1:] or [np.nan])
    return {
        "forward_m": float(base[-1, 0] - base[0, 0]),
        "sideways_m": float(base[-1, 1] - base[0, 1]),
        "turned_deg": float(np.degrees(rpy[-1, 2] - rpy[0, 2])),
        "controller": controller.name,
        "pushes": [vars(push) for push in pushes],
        "solves": len(log.seconds),
        "solve_failures": log.failures,
        "solve_late": log.late,
        "solve_ms": float(1e3 * np.median(seconds)),
        "solve_p99_ms": float(1e3 * np.quantile(seconds, 0.99)),
        "solve_hz": float(1 / np.median(seconds)),
    }


def course_findings(
    figures: Mapping, problem: Any, height: float, *, stands: bool = True
) -> list[Finding]:
    """Findings on its plans, and on the distance and turn asked for, or on standing.

    Args:
        figures: of :func:`run_figures`, with goal_distance_m where there is a goal.
        problem: its speed, pushes and duration, and where it has them goal and turn.
        height: of the robot's centre of mass [m].
        stands: whether a robot that is asked to go nowhere should stay where it is.
    """
    unsound = figures["solve_failures"] / max(1, figures["solves"])
    words = f"{unsound:.0%} of its solves found no sound plan"
    found = [Finding("solves without a plan", unsound, "1", MISSED, np.inf, words)]
    moved = np.array([figures["forward_m"], figures["sideways_m"]])
    due, how = problem.speed * problem.duration, "ahead"
    goal, rate = getattr(problem, "goal", None), getattr(problem, "turn", 0.0)
    turn, came = rate * problem.duration, float(moved[0])
    if goal is not None:
        away = float(np.hypot(*goal))
        due, came = min(away, due), away - figures["goal_distance_m"]
        turn, how = 0.0, "nearer to its goal"
    if due and not turn:
        found.append(went(came, due, how))
    if turn:
        share = np.radians(figures["turned_deg"]) / turn
        words = f"turned by {figures['turned_deg']:.3g} of {np.degrees(turn):.3g} deg"
        found.append(asked("turn missed", min(share, 1.0), words))
    if not (due or turn) and stands:
        pushed = bool(problem.pushes)
        found.append(drifted(np.linalg.norm(moved), height, pushed=pushed))
    return found
