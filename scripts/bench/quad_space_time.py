"""Measures a space-time program for `scripts/bench/quad_planning.py`."""

from __future__ import annotations

import time

from drakebots.core.errors import NoSolution
from drakebots.robots.quads.motion import library_motion
from drakebots.robots.quads.robot import load_planned
from drakebots.robots.quads.space_time import SpaceTime, plan_space_time

TARGET = 10.0
"""[s] on two cores; the paper's took about 40."""


def space_time_figures(quick: bool = False) -> dict[str, tuple[float, str, float]]:
    """Plans the beetle's long walk with its skin; {name: (value, unit, target)}.

    The second of two solves counts: the first compiles the program's functions.

    Args:
        quick: whether to plan a foot lift with a fourth of the knots, once.

    Raises:
        NoSolution: when the program does not converge.
    """
    robot = load_planned("beetle")
    motion = library_motion(
        "lift_single" if quick else "walk_long", robot.quad, skin=robot.link_skin
    )
    spacing = 20 if quick else 5
    problem = SpaceTime(robot.quad, motion, skin=robot.link_skin, knot_spacing=spacing)
    for _ in range(1 if quick else 2):
        start = time.perf_counter()
        plan = plan_space_time(problem)
        seconds = time.perf_counter() - start
    if not plan.ok:
        raise NoSolution("space-time program of the benchmark: did not converge")
    return {"space_time_s": (seconds, "s", TARGET)}
