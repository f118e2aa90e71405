"""First guesses of HAMR's programs, from simulated open-loop gaits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.results import Result
from drakebots.robots.hamr.metrics import GRAVITY
from drakebots.robots.hamr.model import BIAS
from drakebots.robots.hamr.plan.programs import GaitProblem, JumpProblem, hamr_system
from drakebots.robots.hamr.reference import Reference, recorded_reference
from drakebots.robots.hamr.simulate import HamrSimulation, simulate
from drakebots.trajopt.program import Program

_CYCLES = 3
"""Cycles simulated after the ramp, of which the last one is taken."""

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


def simulated_gait(problem: GaitProblem) -> Guess:
    """The last cycle of the problem's open-loop gait, made periodic.

    Raises:
        InvalidInput: when the simulation ends early.
    """
    walk = _simulated(
        HamrSimulation(
            gait=problem.gait,
            frequency=problem.frequency,
            friction=problem.mu,
            phases=problem.phases,
            cycles=_CYCLES,
            swing_voltage=problem.warm_voltage,
            lift_voltage=problem.warm_voltage,
        )
    )
    end, period = float(walk.data.time.values[-1]), 1 / problem.frequency
    reference = recorded_reference(
        walk.data, end - period, end, periodic=False, friction=problem.mu
    )
    guess = _straightened(_resampled(reference, problem.knots))
    if problem.seed:
        random = np.random.default_rng(problem.seed)
        guess.u[:] = np.clip(
            guess.u + 5.0 * random.standard_normal(guess.u.shape), 0.0, BIAS
        )
        guess.q[:, 6:] += 0.01 * random.standard_normal((1, guess.q.shape[1] - 6))
    return guess


def simulated_jump(problem: JumpProblem) -> Guess:
    """The open-loop jump up to its apex.

    Raises:
        InvalidInput: when the simulation ends early.
    """
    jump = _simulated(HamrSimulation(gait="jump", friction=problem.mu))
    time = jump.data.time.values
    height = jump.data.base_position.values[:, 2]
    apex = float(time[height.argmax()])
    # In the first milliseconds the robot falls onto the ground.
    begin = max(apex - problem.duration, 3e-3)
    reference = recorded_reference(
        jump.data, begin, apex, periodic=False, friction=problem.mu
    )
    guess = _resampled(reference, problem.knots)
    guess.q[:, :2] -= guess.q[0, :2]
    guess.q[:, 3] -= guess.q[0, 3]
    return guess


def _simulated(problem: HamrSimulation) -> Result:
    result = simulate(problem)
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

    The gap between the cycle's ends, but for x, is spread over the cycle.
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
    return program.pack(
        {
            "h": h[:, None],
            "q": guess.q,
            "v0": (guess.q[1] - guess.q[0]) / h[0],
            "u": guess.u,
            "gam": weight / system.num_feet,
            "s": _SLACK,
        }
    )
