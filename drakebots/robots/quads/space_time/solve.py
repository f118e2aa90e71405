"""Solve a space-time program: guess, warm start, solver, answer.

plan = plan_space_time(SpaceTime(quad, motion))
plan.result().save("walk.nc")
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress
from drakebots.robots.quads.motion import carry
from drakebots.robots.quads.space_time.check import MotionReport, check_motion
from drakebots.robots.quads.space_time.problem import SpaceTime
from drakebots.trajopt.program import Program
from drakebots.trajopt.solvers import Solution, solve

OPTIONS = {"max_iter": 400, "mu_strategy": "monotone", "mu_init": 1e-2}
"""IPOPT's, over the project's defaults; its adaptive strategy takes twice as long."""

WARM = {"mu_init": 1e-4}
"""Further ones from an earlier answer."""


@dataclass(frozen=True)
class SpaceTimePlan:
    """An answer, or the best iterate of a failed attempt.

    Attributes:
        problem: that was solved.
        solution: of the nonlinear program.
        report: of the check before it.
        posture: poses of inverse kinematics (K, nv).
        seconds: wall time by phase.
    """

    problem: SpaceTime
    solution: Solution = field(repr=False)
    report: MotionReport = field(repr=False)
    posture: np.ndarray = field(repr=False)
    seconds: Mapping[str, float]

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.solution.ok

    @property
    def parts(self) -> dict[str, np.ndarray]:
        """Variables at the knots by name."""
        return self.solution.parts

    def result(self):
        """At every frame, as a :class:`~drakebots.results.Result`."""
        from drakebots.robots.quads.space_time.solve import plan_result

        return plan_result(self)


def plan_space_time(
    problem: SpaceTime,
    *,
    warm: SpaceTimePlan | None = None,
    solver: str = "exact",
    options: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> SpaceTimePlan:
    """Checks a motion, and optimizes it.

    Args:
        problem: what to solve.
        warm: an earlier plan of the same robot, motion and knots to start from.
        solver: "exact" (IPOPT, exact Hessians), "ipopt" or "snopt" (Drake's).
        options: the solver's.
        time_limit: of the solver [s].
        progress: called at every iteration.
        checkpoint: file that keeps the best iterate.

    Returns:
        The plan; its verdict tells a failed, interrupted or late one, whose worst
        rows the solution names.

    Raises:
        InvalidInput: as from :func:`check_motion`, or a warm start that does not
            fit.
    """
    began = time.perf_counter()
    report = check_motion(problem)
    posture = report.poses.q
    checked = time.perf_counter()
    program = problem.program(posture)
    built = time.perf_counter()
    settings = dict(options or {})
    multipliers = None
    if warm is None:
        x0 = initial_guess(problem, program, posture)
    else:
        x0 = np.array(warm.solution.x)
        if x0.shape != (program.num_variables,):
            raise InvalidInput(
                f"warm start: {len(x0)} variables, the program has "
                f"{program.num_variables}; it must be of the same robot and knots"
            )
        x0 = np.clip(x0, program.x_lower, program.x_upper)
    if solver == "exact":
        settings = OPTIONS | (WARM if warm is not None else {}) | settings
    guessed = time.perf_counter()
    solution = solve(
        program,
        x0,
        solver=solver,
        options=settings,
        time_limit=time_limit,
        progress=progress,
        checkpoint=checkpoint,
        multipliers=multipliers,
    )
    seconds = {
        "check": checked - began,
        "build": built - checked,
        "guess": guessed - built,
        "compile": solution.seconds.get("build", 0.0),
        "solve": solution.seconds["total"] - solution.seconds.get("build", 0.0),
    }
    return SpaceTimePlan(problem, solution, report, posture, seconds)


def initial_guess(
    problem: SpaceTime, program: Program, posture: np.ndarray
) -> np.ndarray:
    """Poses of inverse kinematics at the knots, their differences, and contact
    forces that carry them at rest."""
    quad, h = problem.quad, problem.step
    q = posture
    v = np.gradient(q, h, axis=0)
    a = np.zeros_like(q)
    a[1:-1] = (q[2:] - 2 * q[1:-1] + q[:-2]) / h**2
    zero = np.zeros(quad.nv)
    carried = [
        carry(
            quad,
            q[k],
            zero,
            zero,
            problem.loaded[k],
            inertia=problem.inertia[k],
            delta=problem.delta[k],
        )
        for k in range(len(q))
    ]
    F = np.array([c.F.ravel() for c in carried])
    # Least squares may pull at a foot; an interior point cannot start there.
    floor = 0.05 * problem.weight
    F[:, 2::3] = np.where(problem.loaded, np.maximum(F[:, 2::3], floor), 0.0)
    guess = program.pack(
        {
            "q": q,
            "v": v,
            "a": a,
            "p": quad.foot_positions(q).reshape(len(q), -1),
            "c": quad.com(q, problem.inertia),
            "F": F,
            "T": np.array([c.T.ravel() for c in carried]),
            "tau": np.array([c.tau for c in carried]),
        }
    )
    return np.clip(guess, program.x_lower, program.x_upper)
