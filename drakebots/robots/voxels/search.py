"""A gait for forward travel, searched on the Drake plant without derivatives.

The four actuators follow waves of the same period and a bounded stroke,

    u_i(k) = stroke clip(g cos(2 pi k/K - phi_i), -1, 1),   k = 1..K,

with phi_blue = 0; the search varies the other three phases and the squareness g. The
paper's gait is nearly phi = (0, pi, pi/4, -3 pi/4), squared. Travel jumps with
contacts and has no useful gradient: differential evolution (SciPy) maximises the
travel per cycle, once settled, less `turn_weight` times the turn, because the gait of
most travel alone walks in a circle.

What is found on one ground may be lost on another. With `over`, a gait counts by its
least share of what the paper's gait makes, over all grounds. That is searched by a
race: a (1+1) evolution strategy with the rule of a fifth (Rechenberg, 1973), in which
a gait walks the ground first that limits the best one so far, and is given up at the
first ground where it is behind that one's least share. So most trials cost one or two
walks, and the choice is the same as if each had walked on all grounds. Ours; the
paper's outlook names optimization.
"""

from __future__ import annotations

import time
from dataclasses import field, replace
from typing import Annotated, NamedTuple

import numpy as np
import xarray as xr
from scipy.optimize import differential_evolution

from drakebots.core.checks import array, check_value, non_negative, positive, whole
from drakebots.core.convert import as_yaml
from drakebots.core.fields import checked
from drakebots.core.run import CtrlC, Progress, Verdict, ended_by, silent
from drakebots.core.stages import spent, timed
from drakebots.model import parameters_of
from drakebots.results import Result, provenance
from drakebots.robots.voxels.model import ACTUATORS, MODEL
from drakebots.robots.voxels.simulate import Simulation, simulate

BOUNDS = ((-np.pi, np.pi),) * 3 + ((1.0, 3.0),)
"""Phases of yellow, red, green against blue [rad], and squareness."""

PAPER = (np.pi, np.pi / 4, -3 * np.pi / 4, 1.5)
"""The paper's gait in these numbers, nearly."""


@checked()
class SearchProblem:
    """A search for the gait of most travel."""

    walk: Simulation = field(default_factory=lambda: Simulation(cycles=2))
    """The simulation that each gait is tried in; its own gait is not used."""
    over: tuple[Simulation, ...] = ()
    """Further ones, such as other frictions and masses."""
    start: tuple[float, float, float, float] = PAPER
    """Phases [rad] and squareness that are tried first."""
    poses: Annotated[int, whole(3)] = 8
    """Number of poses in a cycle."""
    walks: Annotated[int, whole(1)] = 120
    """Largest number of simulations."""
    population: Annotated[int, whole(5)] = 12
    """Number of gaits in a generation."""
    turn_weight: Annotated[float, non_negative("m/rad")] = 0.02
    """Cost of a turn per cycle in either direction."""
    seed: Annotated[int, whole(0)] = 0
    """Seed of the random numbers."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time; the best gait so far is kept."""

    def __post_init__(self):
        check_value("start", self.start, array((4,)))


class Trial(NamedTuple):
    """A gait: its parameters, travel [m] and turn [rad] per cycle in each of the walks
    (W,), nan where it was given up before, and score."""

    parameters: np.ndarray
    travel: np.ndarray
    turn: np.ndarray
    score: float


# Standard deviation of a race's first and smallest steps [rad; 1 for the squareness].
_FIRST_STEP, _LAST_STEP = 0.4, 0.05
# Least travel of the paper's gait that others are shares of [m].
_LEAST_TRAVEL = 1e-4


class _Over(Exception):
    """Ends the search: walks or time are used up."""


def wave(parameters, poses: int = 8) -> np.ndarray:
    """A gait's table (poses, 4) in strokes, from (phi_2, phi_3, phi_4, g)."""
    phases = np.array([0.0, *parameters[:3]])
    k = np.arange(1, poses + 1)[:, None]
    turns = 2 * np.pi * k / poses - phases
    return np.clip(parameters[3] * np.cos(turns), -1, 1)


@timed("search")
def search_gait(
    problem: SearchProblem = SearchProblem(), *, progress: Progress | None = None
) -> Result:
    """Searches for a gait; a search that is cut short returns the best gait so far.

    Args:
        problem: the search.
        progress: called with the walks done and their largest number.

    Returns:
        A result of kind "voxels.gait_search", with the best gait's poses over time.
    """
    verdict, message = Verdict.SUCCESS, f"{problem.walks} walks"
    with CtrlC() as stop:
        search = _Search(problem, stop, progress)
        try:
            search.run()
        except _Over:
            if search.walks < problem.walks:
                verdict = Verdict.TIME_LIMIT
                message = f"stopped at the time limit after {len(search.tried)} gaits"
        except KeyboardInterrupt as error:
            verdict, message = ended_by(error)
    return _result(problem, search.tried, search.walks, verdict, message)


class _Search:
    """A search under way: the gaits tried, and the number of walks."""

    def __init__(self, problem: SearchProblem, stop: CtrlC, progress):
        self._problem, self._stop = problem, stop
        self._progress = progress or silent
        self._grounds = (problem.walk, *problem.over)
        self._order = list(range(len(self._grounds)))
        self._unit = np.ones(len(self._grounds))  # what scores are shares of [m]
        self._began, self.walks = time.perf_counter(), 0
        self.tried: list[Trial] = []

    def run(self) -> None:
        """Searches until :class:`_Over`, or the population is of one gait."""
        problem, random = self._problem, np.random.default_rng(self._problem.seed)
        if problem.over:
            paper = [self._walk(k, "forward")[0] for k in self._order]
            self._unit = np.maximum(paper, _LEAST_TRAVEL)
            self._race(random)
        low, high = np.array(BOUNDS).T
        first = random.uniform(low, high, (problem.population, len(BOUNDS)))
        first[0] = problem.start
        how = {"init": first, "seed": problem.seed, "polish": False, "tol": 0}
        differential_evolution(self._cost, BOUNDS, **how)

    def _race(self, random) -> None:
        """Rechenberg's (1+1) strategy from the start."""
        low, high = np.array(BOUNDS).T
        best, step = np.array(self._problem.start, float), _FIRST_STEP
        least = self._cost(best)
        while True:
            trial = best + step * random.standard_normal(len(best))
            trial[:3] = (trial[:3] + np.pi) % (2 * np.pi) - np.pi
            trial = np.clip(trial, low, high)
            if (found := self._cost(trial, -least)) < least:
                best, least, step = trial, found, step * 1.5
            else:
                step = max(step * 1.5**-0.25, _LAST_STEP)

    def _cost(self, parameters, behind: float = -np.inf) -> float:
        """Tries a gait; gives it up where it scores less than `behind`."""
        table = wave(parameters, self._problem.poses) * self._problem.walk.stroke
        gait = tuple(map(tuple, table.tolist()))
        each = np.full((len(self._grounds), 3), np.nan)
        for k in self._order:
            each[k] = self._walk(k, gait)
            if each[k, 2] < behind:
                break
        travel, turn, scores = each.T
        score = float(np.nanmin(scores))
        self.tried.append(Trial(np.array(parameters), travel, turn, score))
        if score >= behind:
            self._order.sort(key=lambda k: scores[k])
        return -score

    def _walk(self, k: int, gait) -> tuple[float, float, float]:
        """Travel [m], turn [rad] and score on a ground."""
        problem = self._problem
        self._stop.check()
        since = time.perf_counter() - self._began
        late = problem.time_limit is not None and since > problem.time_limit
        if self.walks >= problem.walks or late:
            raise _Over
        self.walks += 1
        self._progress("walks", self.walks, problem.walks)
        found = simulate(replace(self._grounds[k], gait=gait)).metrics
        turn = np.radians(found.get("turn_deg_per_cycle", 0.0))
        travel = 1e-3 * found.get("travel_mm_per_cycle", 0.0)
        score = (travel - problem.turn_weight * abs(turn)) / self._unit[k]
        # A robot that tips over has not travelled, however far its body slid.
        fell = found.get("tipped_over") or not np.isfinite(score)
        return travel, turn, -1.0 if fell else score


def _result(problem, tried, walks, verdict, message) -> Result:
    if tried:
        trial = max(tried, key=lambda trial: trial.score)
    else:
        none = np.full(1 + len(problem.over), np.nan)
        trial = Trial(np.array(PAPER), none, none, np.nan)
        verdict = Verdict.FAILED if verdict is Verdict.SUCCESS else verdict
    best = trial.parameters
    table = wave(best, problem.poses) * problem.walk.stroke
    period = problem.walk.pose_time
    travelled = [1e3 * float(np.nanmean(t.travel)) for t in tried]
    data = xr.Dataset(
        {"control": (("time", "actuator"), table, {"units": "m"})},
        {
            "time": ("time", period * np.arange(1, len(table) + 1), {"units": "s"}),
            "actuator": [a.name for a in ACTUATORS],
        },
    )
    return Result(
        kind="voxels.gait_search",
        model=MODEL,
        verdict=verdict,
        message=message,
        data=data,
        residuals={},
        timings=spent(),
        metrics={
            "travel_mm_per_cycle": 1e3 * float(trial.travel.mean()),
            "turn_deg_per_cycle": float(np.degrees(trial.turn.mean())),
            "travel_mm_of_the_best": (1e3 * trial.travel).tolist(),
            "score": trial.score,
            "walks": walks,
            "phase_deg": np.degrees(best[:3]).tolist(),
            "squareness": float(best[3]),
            "travel_mm_of_each_walk": travelled,
        },
        provenance=provenance(
            parameters_of(MODEL).path, as_yaml(problem), problem.seed
        ),
    )
