"""A gait for forward travel, searched on the Drake plant without derivatives.

The four actuators follow waves of the same period and a bounded stroke,

    u_i(k) = stroke clip(g cos(2 pi k/K - phi_i), -1, 1),   k = 1..K,

with phi_blue = 0; the search varies the other three phases and the squareness g. The
paper's gait is nearly phi = (0, pi, pi/4, -3 pi/4), squared. Travel jumps with
contacts and has no useful gradient: differential evolution (SciPy) maximises the
travel per cycle, once settled, less `turn_weight` times the turn, because the gait of
most travel alone walks in a circle. What is found on one ground may be lost on
another: with `over`, each gait is tried on all of them, and counts by the mean of its
scores less a share of their standard deviation. Ours; the paper's outlook names
optimization.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.optimize import differential_evolution

from drakebots.core.checks import check, non_negative, optional, positive, whole
from drakebots.core.run import CtrlC, Progress, Verdict, ended_by
from drakebots.model import parameters_of
from drakebots.results import Result, provenance
from drakebots.robots.voxels.model import ACTUATORS, MODEL
from drakebots.robots.voxels.simulate import VoxelSimulation, simulate

BOUNDS = ((-np.pi, np.pi),) * 3 + ((1.0, 3.0),)
"""Phases of yellow, red, green against blue [rad], and squareness."""

PAPER = (np.pi, np.pi / 4, -3 * np.pi / 4, 1.5)
"""The paper's gait in these numbers, nearly."""


@dataclass(frozen=True)
class GaitSearch:
    """A search for the gait of most travel.

    Attributes:
        walk: the simulation that each gait is tried in; its own gait is not used.
        over: further ones, such as other frictions and masses.
        spread_weight: share of the standard deviation over all of them that is taken
            from the mean.
        poses: number of poses in a cycle.
        walks: largest number of simulations.
        population: number of gaits in a generation.
        turn_weight: cost of a turn per cycle in either direction [m/rad].
        seed: seed of the random numbers.
        time_limit: limit of the wall time [s]; the best gait so far is kept.
    """

    walk: VoxelSimulation = field(default_factory=lambda: VoxelSimulation(cycles=2))
    over: tuple[VoxelSimulation, ...] = ()
    spread_weight: float = 1.0
    poses: int = 8
    walks: int = 120
    population: int = 12
    turn_weight: float = 0.02
    seed: int = 0
    time_limit: float | None = None

    def __post_init__(self):
        check(
            self,
            "",
            poses=whole(3),
            walks=whole(1),
            population=whole(5),
            turn_weight=non_negative("m/rad"),
            spread_weight=non_negative(),
            seed=whole(0),
            time_limit=optional(positive("s")),
        )


class Trial(NamedTuple):
    """A gait: its parameters, travel [m] and turn [rad] per cycle in each of the walks
    (W,), and score."""

    parameters: np.ndarray
    travel: np.ndarray
    turn: np.ndarray
    score: float


class _Over(Exception):
    """Ends the search: walks or time are used up."""


def wave(parameters, poses: int = 8) -> np.ndarray:
    """A gait's table (poses, 4) in strokes, from (phi_2, phi_3, phi_4, g)."""
    phases = np.array([0.0, *parameters[:3]])
    k = np.arange(1, poses + 1)[:, None]
    turns = 2 * np.pi * k / poses - phases
    return np.clip(parameters[3] * np.cos(turns), -1, 1)


def search_gait(
    problem: GaitSearch = GaitSearch(), *, progress: Progress | None = None
) -> Result:
    """Searches for a gait; a search that is cut short returns the best gait so far.

    Args:
        problem: the search.
        progress: called with the walks done and their largest number.

    Returns:
        A result of kind "voxels.gait_search", with the best gait's poses over time.
    """
    began = time.perf_counter()
    tried: list[Trial] = []
    grounds = (problem.walk, *problem.over)

    def cost(parameters) -> float:
        stop.check()
        spent = time.perf_counter() - began
        if len(tried) * len(grounds) >= problem.walks or (
            problem.time_limit is not None and spent > problem.time_limit
        ):
            raise _Over
        table = wave(parameters, problem.poses) * problem.walk.stroke
        gait = tuple(map(tuple, table.tolist()))
        each = [simulate(replace(walk, gait=gait)).metrics for walk in grounds]
        turn = np.radians([abs(m.get("turn_deg_per_cycle", 0.0)) for m in each])
        found = 1e-3 * np.array([m.get("travel_mm_per_cycle", 0.0) for m in each])
        scores = found - problem.turn_weight * turn
        score = float(scores.mean() - problem.spread_weight * scores.std())
        # A robot that tips over has not travelled, however far its body slid.
        if any(m.get("tipped_over") for m in each) or not np.isfinite(score):
            score = -1.0
        tried.append(Trial(np.array(parameters), found, turn, score))
        if progress is not None:
            progress("walks", len(tried) * len(grounds), problem.walks)
        return -score

    verdict, message = Verdict.SUCCESS, f"{problem.walks} walks"
    with CtrlC() as stop:
        try:
            random = np.random.default_rng(problem.seed)
            low, high = np.array(BOUNDS).T
            first = random.uniform(low, high, (problem.population, len(BOUNDS)))
            first[0] = PAPER
            differential_evolution(
                cost, BOUNDS, init=first, seed=problem.seed, polish=False, tol=0
            )
        except _Over:
            if len(tried) * len(grounds) < problem.walks:
                verdict = Verdict.TIME_LIMIT
                message = f"stopped at the time limit after {len(tried)} gaits"
        except KeyboardInterrupt as error:
            verdict, message = ended_by(error)
    return _result(problem, tried, verdict, message, time.perf_counter() - began)


def _result(problem, tried, verdict, message, seconds) -> Result:
    if tried:
        trial = max(tried, key=lambda trial: trial.score)
    else:
        none = np.full(1 + len(problem.over), np.nan)
        trial = Trial(np.array(PAPER), none, none, np.nan)
        verdict = Verdict.FAILED if verdict is Verdict.SUCCESS else verdict
    best = trial.parameters
    table = wave(best, problem.poses) * problem.walk.stroke
    period = problem.walk.pose_time
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
        timings={"search": seconds},
        metrics={
            "travel_mm_per_cycle": 1e3 * float(trial.travel.mean()),
            "turn_deg_per_cycle": float(np.degrees(trial.turn.mean())),
            "travel_mm_of_the_best": (1e3 * trial.travel).tolist(),
            "walks": len(tried) * len(trial.travel),
            "phase_deg": np.degrees(best[:3]).tolist(),
            "squareness": float(best[3]),
            "travel_mm_of_each_walk": [1e3 * float(t.travel.mean()) for t in tried],
        },
        provenance=provenance(parameters_of(MODEL).path, asdict(problem), problem.seed),
    )
