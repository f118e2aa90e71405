"""First guesses of HAMR's programs, from simulated open-loop gaits or executed runs.

guess = first_gait(problem)
x0 = packed(program, guess)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.units import GRAVITY
from drakebots.model import plane_rotation
from drakebots.results import Result, load_result
from drakebots.robots.hamr.model import BIAS
from drakebots.robots.hamr.plan.programs import GaitProblem, JumpProblem, hamr_system
from drakebots.robots.hamr.reference import Reference, recorded_reference
from drakebots.robots.hamr.simulate import TIME_STEP, Simulation, simulate
from drakebots.trajopt.program import Program

_CYCLES = 3
"""Number of cycles simulated after the ramp; the last one is the guess."""

_STEPS = 200
"""Number of time steps of the simulation per cycle, each 0.1 to 1 ms long: enough for a
first guess."""

_SAMPLES = 100
"""Least number of samples of a cycle."""

_SETTLED = 5
"""Number of cycles at the end of a run; the most nearly periodic one is the guess."""

_SLACK = 1e-2
"""Complementarity slack of the guess [mm N]."""


@dataclass(frozen=True)
class Guess:
    """A trajectory to start from, in plant units.

    Attributes:
        time: times of the knots (N,) [ms].
        q: positions at the knots (N, 38) [mm, rad].
        u: voltages of the intervals (N-1, 8) [V].
        stride: forward distance of the simulated cycle [m].
    """

    time: np.ndarray
    q: np.ndarray
    u: np.ndarray
    stride: float


def first_gait(problem: GaitProblem) -> Guess:
    """The guess of a gait, from the problem's run or else from its open-loop gait.

    Raises:
        InvalidInput: for a run of another frequency or with no whole cycle, and when
            a simulation ends early.
        FileProblem: for a run that cannot be read.
    """
    start = problem.start
    guess = executed_gait(problem) if start.run else simulated_gait(problem)
    if start.seed:
        random = np.random.default_rng(start.seed)
        other = guess.u + 5.0 * random.standard_normal(guess.u.shape)
        guess.u[:] = np.clip(other, 0.0, BIAS)
        guess.q[:, 6:] += 0.01 * random.standard_normal((1, guess.q.shape[1] - 6))
    return guess


def executed_gait(problem: GaitProblem) -> Guess:
    """A settled cycle of the problem's run, made periodic and straight.

    It is the one of the last cycles whose end is nearest to its start: a limit cycle,
    or the closest that the run comes to one. Its voltages are those that drove the
    robot, with the controller's corrections.

    Raises:
        InvalidInput, FileProblem: as for :func:`first_gait`.
    """
    run = problem.start.run
    run = run if isinstance(run, Result) else load_result(run)
    if run.kind not in ("hamr.track", "hamr.simulation"):
        raise InvalidInput(f"cannot start from a {run.kind}; give an executed gait")
    metrics, end = run.metrics, float(run.data.time.values[-1])
    frequency = metrics.get("frequency_hz") or 1 / metrics.get("period_s", np.inf)
    # The period of an executed plan may have been free.
    off = abs(frequency / problem.frequency - 1)
    if off > problem.free_period + 0.01 or not metrics.get("cycles"):
        raise InvalidInput(
            f"the run holds no whole cycle at {problem.frequency:g} Hz, only "
            f"{metrics.get('cycles', 0)} at {frequency:.4g} Hz; give another"
        )
    ends = [end - k / frequency for k in range(min(_SETTLED, metrics["cycles"]))]
    cycles = [_recorded(run, last - 1 / frequency, last, problem) for last in ends]
    return _straightened(_resampled(_ahead(min(cycles, key=_gap)), problem.knots))


def _recorded(
    run: Result, start: float, end: float, problem: GaitProblem | JumpProblem
) -> Reference:
    """A part of a run that need not be periodic."""
    how = {"periodic": False, "friction": problem.mu}
    return recorded_reference(run.data, start, end, **how)


def _gap(cycle: Reference) -> float:
    """Gap of a cycle to a periodic one: rms of that between its ends [mm, rad].

    The base's x, y and yaw are left out.
    """
    gap = (cycle.q[-1] - cycle.q[0]) / hamr_system().robot.position_units()
    return float(np.sqrt(np.mean(np.square(np.delete(gap, (0, 1, 3))))))


def _ahead(cycle: Reference) -> Reference:
    """A cycle turned about the vertical so that its mean yaw is 0."""
    q, yaw = cycle.q.copy(), cycle.q[:, 3].mean()
    q[:, :2] = (q[:, :2] - q[0, :2]) @ plane_rotation(yaw)
    q[:, 3] -= yaw
    return replace(cycle, q=q)


def simulated_gait(problem: GaitProblem) -> Guess:
    """The last cycle of the problem's open-loop gait, made periodic.

    Raises:
        InvalidInput: when the simulation ends early.
    """
    period = 1 / problem.frequency
    walk = _simulated(
        problem,
        gait=problem.gait,
        frequency=problem.frequency,
        phases=problem.start.phases,
        cycles=_CYCLES,
        swing_voltage=problem.start.voltage,
        lift_voltage=problem.start.voltage,
        time_step=float(np.clip(period / _STEPS, TIME_STEP, 1e-3)),
        log_period=period / max(_SAMPLES, problem.knots - 1),
    )
    end = float(walk.data.time.values[-1])
    reference = _recorded(walk, end - period, end, problem)
    return _straightened(_resampled(reference, problem.knots))


def simulated_jump(problem: JumpProblem) -> Guess:
    """The open-loop jump up to its apex.

    Raises:
        InvalidInput: when the simulation ends early.
    """
    jump = _simulated(problem, gait="jump")
    time = jump.data.time.values
    height = jump.data.base_position.values[:, 2]
    apex = float(time[height.argmax()])
    # In the first milliseconds the robot falls onto the ground.
    begin = max(apex - problem.duration, 3e-3)
    reference = _recorded(jump, begin, apex, problem)
    guess = _resampled(reference, problem.knots)
    guess.q[:, :2] -= guess.q[0, :2]
    guess.q[:, 3] -= guess.q[0, 3]
    return guess


def _simulated(problem: GaitProblem | JumpProblem, **gait: Any) -> Result:
    """The simulation of an open-loop gait on a problem's ground."""
    result = simulate(Simulation(surface=problem.mu, **gait))
    if not result.ok:
        raise InvalidInput(f"the warm start's simulation ended: {result.message}")
    return result


def _resampled(reference: Reference, knots: int) -> Guess:
    """A reference at equally spaced knots."""
    robot = hamr_system().robot
    time = np.linspace(0, reference.duration, knots)
    middle = (time[:-1] + time[1:]) / 2
    q = np.column_stack([np.interp(time, reference.time, c) for c in reference.q.T])
    starts = reference.time[:-1]
    u = np.column_stack([np.interp(middle, starts, c) for c in reference.voltages.T])
    q = q / robot.position_units()
    stride = float(reference.q[-1, 0] - reference.q[0, 0])
    return Guess(time / robot.scaling.time, q, u, stride)


def _straightened(guess: Guess) -> Guess:
    """The guess made periodic and straight ahead, starting at x = y = 0.

    The gap between the cycle's ends, except that in x, is spread over the cycle.
    """
    share = (guess.time / guess.time[-1])[:, None]
    drift = guess.q[-1] - guess.q[0]
    drift[0] = 0.0
    q = guess.q - share * drift
    q[:, :2] -= q[0, :2]
    # A straight gait has no mean yaw.
    q[:, 3] -= q[:, 3].mean()
    return Guess(guess.time, q, guess.u, guess.stride)


def packed(program: Program, guess: Guess) -> np.ndarray:
    """The guess as a program's x, with a quarter of the weight on each foot."""
    system = hamr_system()
    weight = system.robot.model.summary.mass * GRAVITY / system.robot.scaling.force
    h = np.diff(guess.time)
    parts = {"q": guess.q, "u": guess.u, "h": h[:, None], "s": _SLACK}
    parts |= {"v0": (guess.q[1] - guess.q[0]) / h[0], "gam": weight / system.num_feet}
    return program.pack(parts)
