"""A gait for forward travel, searched on the Drake plant (derivative-free).

The four actuators follow waves of the same period and a bounded stroke,

    u_i(k) = stroke clip(g cos(2 pi k/K - phi_i), -1, 1),   k = 1..K,

with phi_blue = 0; searched are the other three phases and the squareness g. The
paper's gait is phi = (0, pi, pi/2 or so, ...), squared. Travel jumps with contacts
and has no useful gradient: differential evolution (SciPy) looks for the most travel
a cycle, once settled, less `turn_weight` times the turn: the gait of most travel
alone walks in a circle. Ours; the paper's outlook names optimization.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.optimize import differential_evolution

from drakebots.core.errors import InvalidInput
from drakebots.core.run import CtrlC, Verdict
from drakebots.model import package_root
from drakebots.results import Result, provenance
from drakebots.robots.voxels.model import ACTUATORS
from drakebots.robots.voxels.walk.walk import VoxelWalk, run

BOUNDS = ((-np.pi, np.pi),) * 3 + ((1.0, 3.0),)
"""Phases of yellow, red, green against blue [rad], and squareness."""

PAPER = (np.pi, np.pi / 4, -3 * np.pi / 4, 1.5)
"""The paper's gait in these numbers, nearly."""

Progress = Callable[[int, float], None]
"""Called with the walks done and the best score so far [m]."""


@dataclass(frozen=True)
class GaitSearch:
    """What to search.

    Attributes:
        walk: how gaits are walked; its own gait is not used.
        poses: K, of a cycle.
        walks: simulations at most.
        population: gaits at a time.
        turn_weight: what a turn a cycle costs, either way [m/rad].
        seed: of the search.
        time_limit: of wall time [s]; the best so far is kept.
    """

    walk: VoxelWalk = field(default_factory=lambda: VoxelWalk(cycles=2))
    poses: int = 8
    walks: int = 120
    population: int = 12
    turn_weight: float = 0.02
    seed: int = 0
    time_limit: float | None = None

    def __post_init__(self):
        for name, least in (("poses", 3), ("walks", 1), ("population", 5)):
            value = getattr(self, name)
            if int(value) != value or value < least:
                raise InvalidInput(f"{name} must be whole, >= {least}, got {value}")
        if not (np.isfinite(self.turn_weight) and self.turn_weight >= 0):
            raise InvalidInput(f"turn_weight must be >= 0, got {self.turn_weight}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise InvalidInput(f"time_limit must be > 0 s, got {self.time_limit}")


class Trial(NamedTuple):
    """A walk: its gait's parameters, travel [m], turn [rad] a cycle, and score."""

    parameters: np.ndarray
    travel: float
    turn: float
    score: float


class _Over(Exception):
    """The search ends: walks or time are used up."""


def wave(parameters, poses: int = 8) -> np.ndarray:
    """A gait's table (poses, 4) in strokes, from (phi_2, phi_3, phi_4, g)."""
    phases = np.array([0.0, *parameters[:3]])
    k = np.arange(1, poses + 1)[:, None]
    turns = 2 * np.pi * k / poses - phases
    return np.clip(parameters[3] * np.cos(turns), -1, 1)


def search(
    problem: GaitSearch = GaitSearch(), *, progress: Progress | None = None
) -> Result:
    """Searches; the best gait so far is returned even when cut short.

    Raises:
        InvalidInput: for a walk that cannot be simulated.
    """
    began = time.perf_counter()
    tried: list[Trial] = []

    def travel(parameters) -> float:
        stop.check()
        spent = time.perf_counter() - began
        if len(tried) >= problem.walks or (
            problem.time_limit is not None and spent > problem.time_limit
        ):
            raise _Over
        table = wave(parameters, problem.poses) * problem.walk.stroke
        walk = replace(problem.walk, gait=tuple(map(tuple, table.tolist())))
        metrics = run(walk).metrics
        turn = abs(np.radians(metrics.get("turn_deg_per_cycle", 0.0)))
        found = metrics.get("travel_mm_per_cycle", 0.0) * 1e-3
        score = found - problem.turn_weight * turn
        # A robot that tips over has not travelled, however far its body slid.
        if metrics.get("tipped_over") or not np.isfinite(score):
            score = -1.0
        tried.append(Trial(np.array(parameters), found, turn, score))
        if progress is not None:
            progress(len(tried), max(trial.score for trial in tried))
        return -score

    verdict, message = Verdict.SUCCESS, f"{problem.walks} walks"
    with CtrlC() as stop:
        try:
            random = np.random.default_rng(problem.seed)
            low, high = np.array(BOUNDS).T
            first = random.uniform(low, high, (problem.population, len(BOUNDS)))
            first[0] = PAPER
            differential_evolution(
                travel, BOUNDS, init=first, seed=problem.seed, polish=False, tol=0
            )
        except _Over:
            if len(tried) < problem.walks:
                verdict = Verdict.TIME_LIMIT
                message = f"stopped at the time limit after {len(tried)} walks"
        except KeyboardInterrupt:
            verdict, message = Verdict.INTERRUPTED, "interrupted; the best is kept"
    return _result(problem, tried, verdict, message, time.perf_counter() - began)


def _result(problem, tried, verdict, message, seconds) -> Result:
    if tried:
        trial = max(tried, key=lambda trial: trial.score)
    else:
        trial = Trial(np.array(PAPER), np.nan, np.nan, np.nan)
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
        model="voxel",
        verdict=verdict,
        message=message,
        data=data,
        residuals={},
        timings={"search": seconds},
        metrics={
            "travel_mm_per_cycle": 1e3 * trial.travel,
            "turn_deg_per_cycle": float(np.degrees(trial.turn)),
            "walks": len(tried),
            "phase_deg": np.degrees(best[:3]).tolist(),
            "squareness": float(best[3]),
            "travel_mm_of_each_walk": [1e3 * t.travel for t in tried],
        },
        provenance=provenance(
            package_root() / "voxel" / "params.yaml", asdict(problem), problem.seed
        ),
    )
