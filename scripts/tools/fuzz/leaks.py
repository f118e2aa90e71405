"""Growth of the memory of long simulations, besides their logs.

    python scripts/tools/fuzz/leaks.py

Each robot is simulated in a process of its own that notes its resident memory after the
allocator has given back what is free. What is measured is the slope over the simulated
time, the median over all pairs of the second and the last third, so that what is made
once does not count. HAMR's and the gecko's logs have few samples, and count; the
skinned leg's has one a step, and what its data grow by is taken off.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from drakebots.results import Result

ROOT = Path(__file__).resolve().parents[3]


def _hamr(seconds: float, progress) -> Result:
    from drakebots.robots import hamr

    cycles = max(round(10 * seconds), 2)
    problem = hamr.Simulation(cycles=cycles, frequency=10, log_period=0.1)
    return hamr.simulate(problem, progress=progress)


def _skinned_leg(seconds: float, progress) -> Result:
    from drakebots.skin import SkinSimulation, simulate_skinned

    problem = SkinSimulation("skinned_leg", duration=seconds, skin_period=seconds)
    return simulate_skinned(problem, progress=progress)


def _gecko(seconds: float, progress) -> Result:
    from drakebots.robots.gecko.engines import Drake, Walk, simulate_walk

    engine = Drake(pressure=False, log_period=1.0)
    cycles = max(round(seconds / (2 * engine.phases.half_cycle)), 2)
    problem = Walk(cycles=cycles, engine=engine)
    return simulate_walk(problem, progress=progress)


ROBOTS: dict[str, tuple[Callable, float, bool]] = {
    "hamr": (_hamr, 30.0, False),
    "skinned leg": (_skinned_leg, 15.0, True),
    "gecko": (_gecko, 600.0, False),
}
"""Simulation of each robot, its duration [s], and whether its log is taken off."""


def growth(name: str, seconds: float) -> dict[str, float]:
    """Slopes [MB] over a simulated minute: of the memory, of the log, besides it."""
    times, memory = [], []
    trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda pad: 0)

    def note(stage: str, done: float, end: float) -> None:
        if done >= end / 60 * len(times):
            gc.collect()
            trim(0)
            times.append(done / 60)
            memory.append(_resident() / 1e6)

    result = ROBOTS[name][0](seconds, note)
    t, m = np.array(times), np.array(memory)
    third = len(t) // 3
    early, late = slice(third, 2 * third), slice(2 * third, None)
    rise = m[late, None] - m[None, early]
    slope = float(np.median(rise / (t[late, None] - t[None, early])))
    data = result.data
    log = sum(v.nbytes for v in data.values() if "time" in v.dims) / 1e6 / t[-1]
    log *= ROBOTS[name][2]
    return {"minutes": t[-1], "all": slope, "log": log, "besides": slope - log}


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def mb_per_minute(share: float = 1.0) -> float:
    """The largest growth of any robot besides its log [MB a simulated minute].

    Args:
        share: of the time that each is simulated.
    """
    worst = -np.inf
    for name, (_, seconds, _) in ROBOTS.items():
        words = [sys.executable, __file__, "--robot", name]
        done = subprocess.run(
            [*words, "--seconds", str(share * seconds)],
            env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found = json.loads(done.stdout.splitlines()[-1])
        words = ", ".join(f"{key} {value:.2f}" for key, value in found.items())
        print(f"{name}: MB a minute: {words}", file=sys.stderr, flush=True)
        worst = max(worst, found["besides"])
    return round(worst, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the usual times")
    parser.add_argument("--robot", choices=ROBOTS)
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    if args.robot:
        print(json.dumps(growth(args.robot, args.seconds)))
    else:
        print(json.dumps({"leak_mb_per_minute": mb_per_minute(args.share)}))


if __name__ == "__main__":
    main()
