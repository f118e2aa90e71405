"""Whether a plan is a motion that a robot can use.

A program may be solved and its motion still be none that a robot makes: one leg never
carries, feet sweep a millimetre above the ground, the base tilts or sinks, the speed
is out of reach, the robot slides. These are judged from the plan alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from drakebots.trajopt.locomotion.footfall import legs_of
from drakebots.trajopt.locomotion.problem import LocomotionProblem
from drakebots.trajopt.locomotion.standing import Standing
from drakebots.trajopt.terrain import Flat

LIFT = 0.02
"""Least clearance of a leg's feet in its swing [l]."""

CARRY = 0.1
"""Least share of the time for which a leg carries load, and of the weight then."""

FLIGHT = 0.1
"""Largest share of the time for which a walk has no foot on the ground."""

TILT = 0.4
"""Largest roll and pitch from standing [rad]."""

HEIGHT = 0.3
"""Largest change of the base's height [l]."""

FROUDE = 1.0
"""Largest v^2/(g l): nothing walks faster, since its weight no longer holds it down."""

SLIP = 0.05
"""Largest slip, as a share of the distance, and of l."""

STEP = 0.05
"""Motions shorter than this need no steps [l]."""


def faults(
    problem: LocomotionProblem,
    standing: Standing,
    parts: Mapping[str, np.ndarray],
    slip: float,
) -> Iterator[str]:
    """Faults that make a plan useless to a robot, one line each.

    Args:
        problem: the motion.
        standing: the standing model.
        parts: decision variables by name, plant units.
        slip: distance that feet slide, plant units.
    """
    q, gam = parts["q"], parts["gam"]
    moved = {
        axis: q[-1, standing.index(axis)] - q[0, standing.index(axis)]
        for axis in ("x", "y", "yaw")
        if axis in standing.base
    }
    distance = float(np.hypot(moved.get("x", 0.0), moved.get("y", 0.0)))
    yield from _legs(problem, standing, q, gam, distance, moved.get("yaw", 0.0))
    duration = float(parts["h"].sum())
    if (distance / duration) ** 2 > FROUDE:
        unit = standing.scaling
        yield (
            f"it moves at {distance / duration * unit.velocity:.2g} m/s, faster than "
            "its legs can walk; give it more time"
        )
    if slip > SLIP * max(distance, 1.0):
        yield f"its feet slide by {slip * standing.scaling.length:.2g} m"
    if problem.kind == "hop" or not isinstance(problem.terrain, Flat):
        return
    for axis, most, unit in (("roll", TILT, 1.0), ("pitch", TILT, 1.0)):
        if axis in standing.base:
            i = standing.index(axis)
            tilt = np.abs(q[:, i] - standing.q[i]).max() * unit
            if tilt > most:
                yield f"its base tilts by {tilt:.2g} rad in {axis}"
    if "z" in standing.base:
        i = standing.index("z")
        change = q[:, i] - standing.q[i]
        worst = change[np.argmax(np.abs(change))]
        if abs(worst) > HEIGHT:
            how = "rises" if worst > 0 else "sinks"
            yield f"its base {how} by {abs(worst) * standing.scaling.length:.2g} m"


def _legs(problem, standing: Standing, q, gam, distance, turn) -> Iterator[str]:
    """Legs that never carry or never lift, and flight in a walk."""
    system, unit = standing.system, standing.scaling
    feet = system.robot.model.feet
    legs = legs_of(standing)
    carried = np.column_stack([gam[:, leg].sum(axis=1) for leg in legs])
    share = (carried > CARRY / len(legs)).mean(axis=0)
    names = [feet[leg[0]].name for leg in legs]
    idle = [name for name, part in zip(names, share) if part < CARRY]
    if idle:
        yield f"{_named(idle)} carr{'ies' if len(idle) == 1 else 'y'} no load"
    if problem.kind == "hop" or max(distance, abs(turn)) < STEP:
        return
    points = system.foot_positions(q)
    phi, _ = problem.terrain.evaluate(points.reshape(-1, 3) * unit.length)
    gap = (phi.reshape(points.shape[:2]) - [f.radius for f in feet]) / unit.length
    rise = [gap[:, leg].min(axis=1).max() for leg in legs]
    low = [name for name, most in zip(names, rise) if most < LIFT]
    if low:
        how = "" if problem.kind == "walk" else ", with contacts by a gait"
        yield (
            f"{_named(low)} rise{'s' if len(low) == 1 else ''} less than "
            f"{LIFT * unit.length:.2g} m; ask for clearance{how}"
        )
    flight = (gam.sum(axis=1) < 1e-6).mean()
    if len(legs) > 1 and problem.kind == "walk" and flight > FLIGHT:
        yield f"all feet are in the air for {flight:.0%} of the time"


def _named(names: list[str]) -> str:
    what = "leg" if len(names) == 1 else "legs"
    return f"{what} {', '.join(names)}"
