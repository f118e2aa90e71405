"""Which foot carries when: footfalls of gaits as schedules of contacts.

Feet of one body are one leg: the corners of a flat foot land together. A gait gives
every leg a share of the cycle at which it lifts:

    alternating   every other leg around the robot at once: the trot of four legs,
                  the tripod of six, the walk of two
    crawl         one leg after the other, hind before fore, one side after the
                  other: the robot always stands on all legs but one

A crawl needs legs that move their feet along and up: the body shifts over the legs that
carry it, sideways where they can, else lengthwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.core.checks import check_value, finite
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.trajopt.contact_implicit import Schedule
from drakebots.trajopt.locomotion.problem import GAITS, SWING, LocomotionProblem
from drakebots.trajopt.locomotion.standing import Standing

LOAD = 0.05
"""Least share of the weight on the legs that stand, over the number of legs."""

REACH = 0.5
"""Longest step of a foot, as a share of the height of the centre of mass."""


@dataclass(frozen=True)
class Footfall:
    """A schedule of contacts and what it was made from.

    Attributes:
        gait: name of the gait, one of :data:`.problem.GAITS`; "" in a hop.
        schedule: the contacts, plant units.
        swings: for each foot, the first and last interval in which it is not loaded,
            of each of its swings in time; they may run past the end of a cycle.
    """

    gait: str
    schedule: Schedule
    swings: tuple[tuple[tuple[int, int], ...], ...]


def legs_of(standing: Standing) -> list[list[int]]:
    """Indices of the feet of every leg: those on one body."""
    found: dict[str, list[int]] = {}
    for i, foot in enumerate(standing.system.robot.model.feet):
        found.setdefault(foot.body, []).append(i)
    return list(found.values())


def _centres(standing: Standing, legs: list[list[int]]) -> np.ndarray:
    """Positions of the legs' feet about their mean (num_legs, 2), plant units."""
    points = standing.system.foot_positions(standing.q)[0]
    centres = np.array([points[leg].mean(axis=0)[:2] for leg in legs])
    return centres - centres.mean(axis=0)


def choose_gait(problem: LocomotionProblem, standing: Standing) -> str:
    """The problem's gait, or the calmest that the legs allow.

    A crawl needs four legs or more with two actuators each and a base that is free to
    move sideways.
    """
    if problem.gait is not None:
        return problem.gait
    legs = len(legs_of(standing))
    sideways = "y" in standing.base and standing.system.nu >= 2 * legs
    given = problem.phases is not None
    return "crawl" if legs >= 4 and sideways and not given else "alternating"


def phases_of(standing: Standing, gait: str) -> np.ndarray:
    """Share of the cycle at which every foot lifts (num_feet,).

    Raises:
        UnknownName: for a gait that does not exist.
    """
    if gait not in GAITS:
        raise UnknownName("gait", gait, GAITS)
    legs = legs_of(standing)
    x, y = _centres(standing, legs).T
    if gait == "crawl":
        order = np.lexsort((x, -np.sign(np.round(y, 6))))
        lift = np.arange(len(legs)) / len(legs)
    else:
        order = np.argsort(np.arctan2(y, x), kind="stable")
        lift = 0.5 * (np.arange(len(legs)) % 2)
    phases = np.zeros(standing.system.num_feet)
    for leg, phase in zip(order, lift):
        phases[legs[leg]] = phase
    return phases


def footfalls(problem: LocomotionProblem, standing: Standing) -> dict[str, float]:
    """Phases by foot: the problem's, or every other foot around the robot at once.

    Raises:
        UnknownName: for the phase of an unknown foot.
        InvalidInput: for a phase that is not a finite number.
    """
    names = [foot.name for foot in standing.system.robot.model.feet]
    for name, phase in (problem.phases or {}).items():
        if name not in names:
            raise UnknownName("foot", name, names)
        check_value(f"phase of {name}", phase, finite())
    if problem.kind != "walk" or problem.phases is not None:
        return dict(problem.phases or {})
    phases = phases_of(standing, "alternating")
    return dict(zip(names, phases.tolist()))


def footfall(
    problem: LocomotionProblem, standing: Standing, clearance: float, rounds: int
) -> Footfall:
    """The schedule of a motion.

    Args:
        problem: the motion, with its number of knots.
        standing: the standing model.
        clearance: height of the feet halfway through their swings, plant units.
        rounds: number of steps of every leg.

    Raises:
        InvalidInput: for too few knots.
    """
    K, nc = problem.knots - 1, standing.system.num_feet
    loaded = np.ones((K, nc), bool)
    grounded = np.ones((K, nc), bool)
    height = np.zeros((K, nc))
    gait, swings = "", [[] for _ in range(nc)]
    if problem.kind == "hop":
        spans = [(i, *_flight(K)) for i in range(nc)]
    else:
        gait = choose_gait(problem, standing)
        spans = _spans(problem, standing, gait, rounds)
    for i, first, last in spans:
        count = last - first + 1
        if count < 2:
            raise InvalidInput(
                f"{problem.knots} knots are too few for {rounds} steps of "
                f"{standing.system.num_feet} feet; give more"
            )
        # The highest knot is at the clearance, also where the arc's top is between two.
        top = np.sin(np.pi * (count // 2) / count)
        swings[i].append((first, last))
        for j in range(count):
            k = (first + j) % K
            loaded[k, i] = False
            # The last interval of a swing ends on the ground, not yet loaded.
            if j < count - 1:
                grounded[k, i] = False
                height[k, i] = clearance * np.sin(np.pi * (j + 1) / count) / top
    legs = len(legs_of(standing))
    load = np.where(loaded, LOAD / max(legs, 1) / (nc / max(legs, 1)), 0.0)
    schedule = Schedule(loaded, grounded, height, load)
    return Footfall(gait, schedule, tuple(map(tuple, swings)))


def _flight(K: int) -> tuple[int, int]:
    """First and last interval of a hop's flight: the middle two fifths."""
    first = round(0.3 * K)
    return first, K - 1 - first


def _spans(problem, standing: Standing, gait: str, rounds: int):
    """(foot, first, last interval) of every swing."""
    K, nc = problem.knots - 1, standing.system.num_feet
    phases = phases_of(standing, gait)
    if problem.phases is not None:
        names = [foot.name for foot in standing.system.robot.model.feet]
        given = footfalls(problem, standing)
        phases = np.array([given.get(name, np.nan) for name in names])
    share = SWING
    if gait == "crawl":
        # One leg after the other, with a pause on all legs in between.
        share = 0.8 / len(legs_of(standing))
    pad = 0
    if not problem.repeats:
        pad = max(1, round(0.1 * K / rounds)) if gait == "crawl" else 1
    length = (K - 2 * pad) / rounds
    out = []
    for turn in range(rounds):
        for i in range(nc):
            if np.isnan(phases[i]):
                continue
            lift = pad + (turn + phases[i] % 1.0) * length
            first = round(lift)
            last = round(lift + share * length) - 1
            out.append((i, first, last))
    return out
