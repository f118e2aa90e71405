"""Two ways to solve a locomotion problem, and whether a robot can use the answer.

By a gait the footfall is given, and one program is solved from a kinematic guess. With
free contacts the search starts from the standing pose alone and the program decides
which foot touches when; it is solved with increasing weights of the penalty on the
complementarity slack until the contacts are hard (Manchester et al., IJRR 2019).

A program may be solved and its motion still be none that a robot makes: one leg never
carries, feet sweep a millimetre above the ground, the base tilts or sinks, the speed
is out of reach, the robot slides. These are judged from the plan alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from drakebots.core.run import Verdict
from drakebots.multibody import Flat
from drakebots.trajopt.contact_implicit import (
    ContactImplicit,
    audit,
    with_free_contacts,
)
from drakebots.trajopt.locomotion.gait import Gait, gait_program, kinematic_guess
from drakebots.trajopt.locomotion.problem import Targets
from drakebots.trajopt.locomotion.program import FROUDE, first_guess, locomotion_program
from drakebots.trajopt.locomotion.standing import Standing
from drakebots.trajopt.program import Program, belongs, load_checkpoint
from drakebots.trajopt.solvers import (
    Clock,
    PenaltyStage,
    Rung,
    Solution,
    near,
    solve_penalty_continuation,
    start_from,
)

HARD = 1e-6
"""Largest slack of a plan whose contacts count as hard [m g l]."""

GAIT_OPTIONS = {"tol": 1e-4, "acceptable_tol": 1e-2, "max_iter": 200}
"""Options of IPOPT for a gait."""

OPTIONS = {"tol": 1e-4, "acceptable_tol": 1e-2, "max_iter": 500}
"""Options of IPOPT for the first stage with free contacts."""

FINISH = {"tol": 1e-6, "acceptable_tol": 1e-3} | near(1e-4, 1e-6)
"""Options of IPOPT for later stages, which start near the answer."""

LIFT = 0.02
"""Least clearance of a leg's feet in its swing [l]."""

RAISED = 1.25 * LIFT
"""Height that a leg is asked for that lifted less than that [l]."""

CARRY = 0.1
"""Least share of the time for which a leg carries load, and of the weight then."""

FLIGHT = 0.1
"""Largest share of the time for which a walk has no foot on the ground."""

TILT = 0.4
"""Largest roll and pitch from standing [rad]."""

HEIGHT = 0.3
"""Largest change of the base's height [l]."""

SLIP = 0.05
"""Largest slip, as a share of the distance, and of l."""

STEP = 0.05
"""Motions shorter than this need no steps [l]."""

Solve = Callable[..., Solution]
"""(program, x, options=..., time_limit=...) -> solution."""


@dataclass(frozen=True)
class Attempt:
    """The outcome of one way of solving.

    Attributes:
        implicit: the contact-implicit problem of the whole motion.
        solution: its solution, judged.
        stages: the programs that were solved.
        gait: the gait; None with free contacts.
    """

    implicit: ContactImplicit
    solution: Solution
    stages: tuple[PenaltyStage, ...]
    gait: Gait | None = None

    @property
    def stopped(self) -> bool:
        """Whether the user or the time limit stopped it."""
        return self.solution.verdict in (Verdict.INTERRUPTED, Verdict.TIME_LIMIT)


def by_gait(
    gait: Gait, solve: Solve, clock: Clock, *, resume: str | Path | None = None
) -> Attempt | None:
    """Solves by a gait; None for a checkpoint that is not one of this gait."""
    _, program = gait_program(gait)
    if resume is None:
        x = program.pack(kinematic_guess(gait))
    elif belongs(resume, program):
        x = load_checkpoint(resume, program)
    else:
        return None
    left = clock.check_left()
    found = solve(program, x, options=GAIT_OPTIONS, time_limit=left)
    return gait_attempt(gait, found)


def gait_attempt(gait: Gait, solution: Solution) -> Attempt:
    """The attempt that a solution of a gait's program is: one of the contact-implicit
    program of all its cycles."""
    implicit, program = locomotion_program(gait.total)
    parts = _repeated(solution.parts, gait.cycles)
    x = with_free_contacts(implicit.system, implicit.friction, parts, program)
    found = program.residuals(x) if solution.ok else solution.residuals
    own = {"residuals": MappingProxyType(dict(found)), "multipliers": None}
    whole = replace(solution, program=program, x=x, **own)
    stage = PenaltyStage.of(0.0, solution, float(whole.parts["s"].max()))
    return attempt_of(gait.aim, implicit, whole, (stage,), gait)


def _repeated(parts: Mapping[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    """n cycles of a periodic motion, each where the one before ended."""
    q = parts["q"]
    ahead = q[-1] - q[0]
    cycles = [q[:-1] + n * ahead for n in range(count)]
    tiled = {name: np.tile(part, (count, 1)) for name, part in parts.items()}
    last = q[-1:] + (count - 1) * ahead
    return tiled | {"v0": parts["v0"], "q": np.vstack([*cycles, last])}


def by_freedom(
    aim: Targets, solve: Solve, clock: Clock, *, resume: str | Path | None = None
) -> Attempt:
    """Solves with free contacts. Legs of a walk that hardly lift with one weight of the
    slack must with the next one, each when it was highest.

    Raises:
        FileProblem: for a file that is not a checkpoint, or of another program.
    """
    weights = aim.problem.weights.slack
    lifts: dict[str, tuple[int, float]] = {}
    low: dict[str, tuple[int, float]] = {}

    def build(weight: float) -> tuple[ContactImplicit, Program]:
        lifts.update(low)
        return locomotion_program(aim, slack_weight=weight, lifts=lifts)

    def solve_one(program: Program, x: np.ndarray, **more: Any) -> Solution:
        solution = solve(program, x, **more)
        low.clear()
        found = _low_legs(aim, solution.parts["q"]) if solution.ok else {}
        for leg, knot in found.items():
            feet = [aim.standing.feet[i] for i in aim.standing.legs[leg]]
            low.update(dict.fromkeys(feet, (knot, RAISED)))
        return solution

    def settled(stages: Sequence[PenaltyStage]) -> bool:
        last = stages[-1]
        # The penalty is exact: once the slack is zero, larger weights change nothing.
        # Nor do they help rows that cannot be satisfied.
        hopeless = len(stages) > 1 and not (last.ok or stages[-2].ok)
        hard = last.ok and last.slack <= HARD
        enough = hard or len(stages) == len(weights)
        return hopeless or (enough and not low.keys() - lifts)

    found = solve_penalty_continuation(
        build,
        (*weights, weights[-1]),
        start_from(resume, lambda program: first_guess(aim, program)),
        solve_one,
        options=lambda program, x, later: OPTIONS | (FINISH if later else {}),
        done=settled,
        clock=clock,
        rung=Rung.of(resume),
    )
    solution = found.solution if found.missed is None else found.out_of_time()
    return attempt_of(aim, found.problem, solution, found.stages)


def judged(implicit: ContactImplicit, solution: Solution) -> Solution:
    """The solution; soft contacts count as failed, failures name their worst rows."""
    products = audit(implicit, solution.parts)["complementarity_max"]
    group, slack = solution.program.variables["s"], solution.parts["s"][:, 0]
    soft, message = {}, ""
    if slack.max() > HARD:
        worst = group.label(group.start + int(slack.argmax()))
        soft = {worst: float(slack.max())}
        message = (
            f"contacts stay soft: slack {worst} = {slack.max():.2g} of m g l; try "
            "larger slack weights, phases, more time or a nearer goal"
        )
    # The program bounds sums against the slack; terms of either sign may cancel.
    elif products > 2 * HARD:
        soft = {"complementarity of a contact": products}
        message = (
            f"a contact's complementarity is {products:.2g} of m g l though the sum "
            "over contacts is zero; lower bound_relax_factor"
        )
    if solution.ok and soft:
        found, verdict = soft | dict(solution.residuals), Verdict.FAILED
        return replace(solution, verdict=verdict, message=message, residuals=found)
    if solution.verdict is Verdict.FAILED:
        named = ", ".join(f"{k} = {v:.2g}" for k, v in solution.worst().items())
        return replace(solution, message=f"{solution.message}; worst: {named}")
    return solution


def attempt_of(
    aim: Targets,
    implicit: ContactImplicit,
    solution: Solution,
    stages: tuple[PenaltyStage, ...],
    gait: Gait | None = None,
) -> Attempt:
    """An attempt, failed where its contacts are soft or its motion is of no use."""
    solution = judged(implicit, solution)
    found = list(faults(aim, solution.parts)) if solution.ok else []
    if found:
        message = f"solved, but {'; '.join(found)}"
        solution = replace(solution, verdict=Verdict.FAILED, message=message)
    return Attempt(implicit, solution, stages, gait)


def slip_of(parts: Mapping[str, np.ndarray]) -> float:
    """Distance that feet slide, weighted by their share of the load, plant units."""
    return float((parts["h"] * parts["gam"] * parts["psi"]).sum())


def faults(aim: Targets, parts: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Faults that make a plan useless to a robot, one line each; those of motions in a
    row say in which.

    Args:
        aim: the motion.
        parts: decision variables of its plan by name, plant units.
    """
    if not aim.row:
        yield from _faults(aim, parts)
        return
    for i, (at, part) in enumerate(aim.parts, 1):
        own = {name: parts[name][at] for name in ("h", "gam", "psi")}
        own["q"] = parts["q"][at.start : at.stop + 1]
        for fault in _faults(part, own):
            yield f"in motion {i} ({part.motion.name}) {fault}"


def _faults(aim: Targets, parts: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Faults of a single motion."""
    standing, unit, q = aim.standing, aim.standing.scaling, parts["q"]
    distance, _ = _course(standing, q)
    yield from _legs(aim, q, parts["gam"])
    duration = float(parts["h"].sum())
    if (distance / duration) ** 2 > FROUDE:
        yield (
            f"it moves at {distance / duration * unit.velocity:.2g} m/s, faster than "
            "its legs can walk; give it more time"
        )
    slip = slip_of(parts)
    if slip > SLIP * max(distance, 1.0):
        yield f"its feet slide by {slip * unit.length:.2g} m"
    if aim.flies or not isinstance(aim.problem.terrain, Flat):
        return
    for axis, i in standing.indices("roll", "pitch").items():
        tilt = np.abs(q[:, i] - standing.q[i]).max()
        if tilt > TILT:
            yield f"its base tilts by {tilt:.2g} rad in {axis}"
    if "z" in standing.base:
        i = standing.index("z")
        change = q[:, i] - standing.q[i]
        worst = change[np.argmax(np.abs(change))]
        if abs(worst) > HEIGHT:
            how = "rises" if worst > 0 else "sinks"
            yield f"its base {how} by {abs(worst) * unit.length:.2g} m"


def _course(standing: Standing, q: np.ndarray) -> tuple[float, float]:
    """Distance and turn between the first and the last of some poses [l, rad]."""
    moved = standing.moved(q)
    distance = np.hypot(moved.get("x", 0.0), moved.get("y", 0.0))
    return float(distance), abs(moved.get("yaw", 0.0))


def _steps(aim: Targets, q: np.ndarray) -> bool:
    """Whether a motion takes steps: it does not fly, nor stay."""
    return not aim.flies and max(_course(aim.standing, q)) >= STEP


def _legs(aim: Targets, q: np.ndarray, gam: np.ndarray) -> Iterator[str]:
    """Legs that never carry, and in a motion that takes steps, legs that hardly lift
    and flight in a walk."""
    standing, unit = aim.standing, aim.standing.scaling
    legs = standing.legs
    carried = np.column_stack([gam[:, leg].sum(axis=1) for leg in legs])
    share = (carried > CARRY / len(legs)).mean(axis=0)
    names = [standing.feet[leg[0]] for leg in legs]
    idle = [name for name, part in zip(names, share) if part < CARRY]
    if idle:
        yield f"{_named(idle)} carr{'ies' if len(idle) == 1 else 'y'} no load"
    if not _steps(aim, q):
        return
    low = [names[leg] for leg in _low_legs(aim, q)]
    if low:
        how = "" if aim.motion.steady else ", with contacts by a gait"
        yield (
            f"{_named(low)} rise{'s' if len(low) == 1 else ''} less than "
            f"{LIFT * unit.length:.2g} m; give --clearance{how}"
        )
    flight = (gam.sum(axis=1) < 1e-6).mean()
    if len(legs) > 1 and aim.motion.steady and flight > FLIGHT:
        yield f"all feet are in the air for {flight:.0%} of the time"


def _low_legs(aim: Targets, q: np.ndarray) -> dict[int, int]:
    """Legs that hardly lift in a motion that takes steps, those that are not to lift
    aside, and the knot where each is highest."""
    if not _steps(aim, q):
        return {}
    standing, length = aim.standing, aim.standing.scaling.length
    gap = standing.clearances(standing.system.foot_positions(q) * length) / length
    rise = np.column_stack([gap[:, leg].min(axis=1) for leg in standing.legs])
    fast = aim.motion.standing_feet(standing)
    low = np.flatnonzero(rise.max(axis=0) < LIFT)
    swung = [i for i in low if standing.legs[i][0] not in fast]
    return {int(i): int(rise[:, i].argmax()) for i in swung}


def _named(names: list[str]) -> str:
    what = "leg" if len(names) == 1 else "legs"
    return f"{what} {', '.join(names)}"
