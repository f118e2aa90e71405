"""A motion by a gait: a program whose contacts are given by its footfall.

Where the footfall is known, what makes a motion one that a robot can use is stated as
bounds: feet rise in their swings, every leg that stands carries a share of the weight
(so the robot does not tip over), forces keep away from the friction cone and inputs
from their limits, the base keeps its height and does not tilt. The cost is that of
:mod:`.program` without slip and slack.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import casadi as ca
import numpy as np

from drakebots.trajopt.contact_implicit import (
    ContactImplicit,
    Schedule,
    ScheduledBuilder,
)
from drakebots.trajopt.locomotion.footfall import (
    REACH,
    Footfall,
    choose_gait,
    footfall,
)
from drakebots.trajopt.locomotion.problem import LocomotionProblem, Targets, targets
from drakebots.trajopt.locomotion.program import add_aims, add_costs, mechanics
from drakebots.trajopt.locomotion.standing import Standing
from drakebots.trajopt.program import Program
from drakebots.trajopt.terrain import Flat

CLEARANCE = 0.1
"""Height of a foot halfway through its swing by default [l]."""

RESERVE = 0.8
"""Share of the friction coefficient, of the inputs' and of the speed limits that a plan
uses, where the model stands with so much."""

HEIGHT = 0.15
"""Bound of the base's change in height, but in hops [l]."""

TILT = 0.2
"""Bound of the base's roll and pitch from standing, and of its yaw from its course, but
in hops [rad]."""

MARGIN = 0.02
"""Distance from joint limits, as a share of the joint's range, where the model stands
that far inside."""

FORCE = 0.1
"""Weight of the squared contact forces, which shares the load among the feet."""

GENERIC = 0.05
"""Size of the changes that make a standing pose generic [rad, l]."""


@dataclass(frozen=True)
class Gait:
    """A motion by a gait, in plant units.

    Attributes:
        problem: the motion of one cycle, or the whole motion from rest to rest, with
            the number of its knots.
        cycles: how many cycles make the motion that was asked for; 1 from rest to
            rest.
        rounds: number of steps of every leg in `problem`.
        aim: its targets.
        fall: its footfall.
    """

    problem: LocomotionProblem
    cycles: int
    rounds: int
    aim: Targets
    fall: Footfall

    @property
    def schedule(self) -> Schedule:
        """Its contacts."""
        return self.fall.schedule


def plan_gait(problem: LocomotionProblem, standing: Standing) -> Gait:
    """The footfall and the number of steps of a motion.

    Steps are at most :data:`.footfall.REACH` long, so a long stride takes several
    cycles, a far goal several steps of every leg.
    """
    aim = targets(problem, standing)
    points = standing.system.foot_positions(standing.q)[0][:, :2]
    radius = np.linalg.norm(points - points.mean(axis=0), axis=1).max()
    reach = np.hypot(aim.forward, aim.sideways) + abs(aim.turn) * radius
    steps = max(1, ceil(reach / REACH - 1e-9))
    cycles, rounds = 1, 1
    if problem.kind == "walk":
        cycles = steps
        share: dict[str, Any] = {
            "forward": aim.forward * standing.scaling.length / cycles,
            "duration": None if problem.duration is None else problem.duration / cycles,
        }
        if standing.system.num_loop_rows:
            # Loops close at midpoints: around an even number of intervals, knots that
            # are off by turns would have them closed, too, and their rows depend.
            share["knots"] = problem.knots + problem.knots % 2
        problem = replace(problem, **share)
    elif problem.kind != "hop":
        rounds = steps
        problem = replace(problem, knots=(problem.knots - 1) * rounds + 1)
    natural = None
    if problem.kind != "hop":
        crawls = choose_gait(problem, standing) == "crawl"
        natural = (10.0 if crawls else 3.0) * rounds + 2.0 * (not problem.repeats)
    aim = targets(problem, standing, natural=natural)
    clearance = CLEARANCE
    if problem.clearance is not None:
        clearance = problem.clearance / standing.scaling.length
    if problem.kind == "hop" or problem.height is not None:
        clearance = aim.height
    fall = footfall(problem, standing, clearance, rounds)
    return Gait(problem, cycles, rounds, aim, fall)


def gait_program(gait: Gait, standing: Standing) -> tuple[ContactImplicit, Program]:
    """The program of a gait, and the contact-implicit problem that it tightens."""
    problem, aim = gait.problem, gait.aim
    implicit = mechanics(problem, standing, aim)
    rng = np.random.default_rng(0)
    generic = standing.q + GENERIC * rng.uniform(-1, 1, standing.system.nq)
    b = ScheduledBuilder(
        replace(implicit, name=f"{implicit.name} by a gait"),
        gait.schedule,
        generic,
        friction=RESERVE * problem.friction,
        rests=not problem.repeats,
    )
    if problem.duration is None:
        b.equal_steps()
    add_aims(b, problem, standing, aim)
    add_costs(b, problem, standing)
    h, gam, beta = (b[name].indices for name in ("h", "gam", "beta"))
    b.cost(
        "force",
        {"h": h, "gam": gam, "beta": beta},
        lambda h, gam, beta: FORCE / 2 * h * (ca.sumsqr(gam) + ca.sumsqr(beta)),
    )
    _keep_reserves(b, problem, standing)
    return implicit, b.build()


def _keep_reserves(b: ScheduledBuilder, problem, standing: Standing) -> None:
    """Tighter bounds of the base, the joints and the inputs."""
    q, u = standing.q, b["u"]
    plant = standing.system.robot.plant
    low, high = plant.GetPositionLowerLimits(), plant.GetPositionUpperLimits()
    inner = slice(1, None)
    for i in standing.joints:
        margin = MARGIN * (high[i] - low[i])
        if np.isfinite(margin) and low[i] + margin <= q[i] <= high[i] - margin:
            name = [standing.system.coordinates[i]]
            b.bound("q", inner, low[i] + margin, high[i] - margin, labels=name)
    u.lower[:] *= RESERVE
    u.upper[:] *= RESERVE
    if problem.kind == "hop" or not isinstance(problem.terrain, Flat):
        return
    bounds = {"z": HEIGHT, "roll": TILT, "pitch": TILT}
    if problem.kind == "walk":
        bounds["yaw"] = TILT
    for axis, size in bounds.items():
        if axis in standing.base:
            at = q[standing.index(axis)]
            b.bound("q", inner, at - size, at + size, labels=[standing.base[axis]])
