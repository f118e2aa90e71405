"""First guesses of HAMR's programs from simulated open-loop gaits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from pydrake.math import RollPitchYaw

from drakebots.core.errors import InvalidInput
from drakebots.robots.hamr.plan.programs import GaitPlan, JumpPlan
from drakebots.robots.hamr.plan.system import hamr_system
from drakebots.robots.hamr.simulate import HamrSimulation, simulate
from drakebots.robots.hamr.track import Reference, coordinate_names
from drakebots.trajopt.program import Program

# A reference recorded from a simulated walk: what worked once, to be repeated.

_BASE = 6


def recorded_reference(
    data: xr.Dataset,
    start: float,
    end: float,
    *,
    periodic: bool,
    friction: float,
    stride: int = 1,
    name: str = "recorded",
) -> Reference:
    """The part of a run between two moments as a reference.

    Args:
        data: of a HAMR simulation with the base "quaternion".
        start, end: moments [s], rounded to samples.
        periodic: whether the part is a cycle.
        friction: of the ground it walked on.
        stride: every how many samples there is a knot.
        name: of the reference.

    Raises:
        InvalidInput: when the run does not cover the part.
    """
    times = data.time.values
    first, last = (int(np.abs(times - moment).argmin()) for moment in (start, end))
    step = np.diff(times).max()
    if abs(times[first] - start) > step or abs(times[last] - end) > step:
        raise InvalidInput(
            f"the run covers {times[0]:g}..{times[-1]:g} s, "
            f"not {start:g}..{end:g} s; simulate longer"
        )
    index = np.unique(np.r_[np.arange(first, last, stride), last])
    names = coordinate_names()
    part = data.isel(time=index)
    rpy = part.base_rpy.values
    q, v = np.zeros((2, len(index), len(names)))
    q[:, :3], q[:, 3:_BASE] = part.base_position.values, rpy[:, ::-1]
    q[:, _BASE:] = part.position.sel(coordinate=names[_BASE:]).values
    rates = part.velocity.values
    # Velocities of a free base in Drake: angular, then linear, in the world.
    v[:, :3] = rates[:, 3:6]
    for k, (angles, w_WB) in enumerate(zip(rpy, rates[:, :3])):
        turn = RollPitchYaw(angles)
        v[k, 3:_BASE] = turn.CalcRpyDtFromAngularVelocityInParent(w_WB)[::-1]
    v[:, _BASE:] = rates[:, 6:]
    return Reference(
        time=part.time.values - part.time.values[0],
        q=q,
        v=v,
        voltages=part.voltage.values[:-1],
        periodic=periodic,
        friction=friction,
        name=name,
    )


CYCLES = 3
"""Simulated after the ramp; the last one is taken."""

FIRST_SLACK = 1e-2
"""Of the complementarity at the guess, mm N."""


@dataclass(frozen=True)
class Guess:
    """A trajectory to start from, plant units.

    Attributes:
        time: knots (N,) [ms].
        q: (N, 38) [mm, rad].
        u: (N-1, 8) [V].
        stride: of the simulated cycle [m].
    """

    time: np.ndarray
    q: np.ndarray
    u: np.ndarray
    stride: float


def resampled(reference: Reference, knots: int) -> Guess:
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


def straightened(guess: Guess) -> Guess:
    """The guess made periodic: what a cycle does not close is spread over it,
    but for the way ahead; it starts at x = y = 0."""
    share = (guess.time / guess.time[-1])[:, None]
    drift = guess.q[-1] - guess.q[0]
    drift[0] = 0.0
    q = guess.q - share * drift
    q[:, :2] -= q[0, :2]
    # Heading: the mean yaw is no part of a straight gait.
    q[:, 3] -= q[:, 3].mean()
    return Guess(guess.time, q, guess.u, guess.stride)


def simulated_gait(plan: GaitPlan, *, progress=None) -> Guess:
    """The last cycle of the plan's open-loop gait, made periodic.

    Raises:
        InvalidInput: when the simulation does not come to its end.
    """
    result = simulate(
        HamrSimulation(
            gait=plan.gait,
            frequency=plan.frequency,
            friction=plan.mu,
            cycles=CYCLES,
            swing_voltage=plan.warm_voltage,
            lift_voltage=plan.warm_voltage,
        ),
        progress=progress,
    )
    if not result.ok:
        raise InvalidInput(f"the warm start's simulation ended: {result.message}")
    end = float(result.data.time.values[-1])
    period = 1 / plan.frequency
    reference = recorded_reference(
        result.data, end - period, end, periodic=False, friction=plan.mu
    )
    guess = straightened(resampled(reference, plan.knots))
    if plan.seed:
        random = np.random.default_rng(plan.seed)
        guess.u[:] = np.clip(
            guess.u + 5.0 * random.standard_normal(guess.u.shape), 0.0, 225.0
        )
        guess.q[:, 6:] += 0.01 * random.standard_normal((1, guess.q.shape[1] - 6))
    return guess


def simulated_jump(plan: JumpPlan) -> Guess:
    """The open-loop jump of the table up to its apex."""
    result = simulate(HamrSimulation(gait="jump", friction=plan.mu))
    if not result.ok:
        raise InvalidInput(f"the warm start's simulation ended: {result.message}")
    time = result.data.time.values
    height = result.data.base_position.values[:, 2]
    apex = float(time[height.argmax()])
    # The first milliseconds are the fall onto the ground.
    begin = max(apex - plan.duration, 3e-3)
    reference = recorded_reference(
        result.data, begin, apex, periodic=False, friction=plan.mu
    )
    guess = resampled(reference, plan.knots)
    guess.q[:, :2] -= guess.q[0, :2]
    guess.q[:, 3] -= guess.q[0, 3]
    return guess


def packed(program: Program, guess: Guess) -> np.ndarray:
    """The guess as a program's x: a quarter of the weight on each foot."""
    system = hamr_system()
    weight = system.robot.model.summary.mass * 9.81 / system.robot.scaling.force
    h = np.diff(guess.time)
    return program.pack(
        {
            "h": h[:, None],
            "q": guess.q,
            "v0": (guess.q[1] - guess.q[0]) / h[0],
            "u": guess.u,
            "gam": weight / system.num_feet,
            "s": FIRST_SLACK,
        }
    )
