"""Overhead of a sweep a case, and two workers beside one.

python scripts/bench/sweep.py            # about a minute
python scripts/bench/sweep.py --quick

Overhead: what a case costs beside its own work, with one worker, that is sending the
problem, saving the result, its row of the table. It is the slope between a sweep of few
and one of many cases of the gecko's course, less what the course itself takes in the
worker; starting the worker is not in it and stands beside it. It is processor time of
both processes, which other load of the machine affects less than wall time (beside it).

Speedup: HAMR's trot at eight frequencies, by one worker and by two. One worker may use
no more threads than one of two. On a machine that others use as well, two workers get
less than two cores: `cores_free` says how much two busy processes got just before.

JSON: sweep_overhead_ms, two_worker_speedup, cores_free.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from measurement import Measurement

from drakebots import gecko, hamr, sweep
from drakebots.cli.output import print_table

TARGET_MS, TARGET_SPEEDUP = 50.0, 1.8


@dataclass(frozen=True)
class Spent:
    """Time of a sweep beside its cases' own work, wall and processor time, and the wall
    time in all [s]."""

    wall: float
    cpu: float
    whole: float


def timed(problem: Any, over: dict, workers: int) -> Spent:
    """Times a new sweep."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter(), processor_time()
        table = sweep(problem, over, out=folder, workers=workers)
        wall, cpu = time.perf_counter() - began[0], processor_time() - began[1]
    assert table.ok, table.message
    own = table.metrics
    return Spent(wall - own["cases_wall_s"], cpu - own["cases_processor_s"], wall)


def processor_time() -> float:
    """Processor time of this process and of all that have ended under it [s]."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in both)


def overhead(few: int, many: int) -> dict[str, float]:
    """Milliseconds a case, and seconds until the first can start."""
    problem = gecko.Simulation(targets=((0.2, 0.2),))
    timed(problem, {"epsilon": (0.1,)}, 1)  # compiles
    a, b = (
        timed(problem, {"epsilon": np.linspace(0.09, 0.11, count)}, 1)
        for count in (few, many)
    )
    return {
        "sweep_overhead_ms": 1e3 * (b.cpu - a.cpu) / (many - few),
        "overhead_wall_ms": 1e3 * (b.wall - a.wall) / (many - few),
        "start_processor_s": (a.cpu * many - b.cpu * few) / (many - few),
        "cases": many,
    }


def speedup(cases: int, cycles: int, time_step: float) -> dict[str, float]:
    """Wall time with one worker over that with two."""
    for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    problem = hamr.Simulation(cycles=cycles, time_step=time_step)
    over = {"frequency": np.linspace(10, 14, cases)}
    free = cores_free()
    one, two = (timed(problem, over, workers).whole for workers in (1, 2))
    return {
        "two_worker_speedup": one / two,
        "one_worker_s": one,
        "two_workers_s": two,
        "cores_free": free,
    }


def cores_free(seconds: float = 2.0) -> float:
    """Processor time that two busy processes get in a second."""
    code = (
        "import time\n"
        f"end = time.perf_counter() + {seconds}\n"
        "while time.perf_counter() < end: pass\n"
        "print(time.process_time())"
    )
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    return sum(float(p.communicate()[0]) for p in both) / seconds


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="few and short cases")
    args = parser.parse_args(argv)
    rows = overhead(2, 12) if args.quick else overhead(4, 44)
    rows |= speedup(2, 1, 5e-4) if args.quick else speedup(8, 3, 1e-4)
    print_table("sweep", rows)
    result = {
        "sweep_overhead_ms": {"unit": "ms", "target": TARGET_MS},
        "two_worker_speedup": {"unit": "1", "target": TARGET_SPEEDUP},
        "cores_free": {"unit": "1", "target": None},
    }
    result = {name: {"value": rows[name]} | entry for name, entry in result.items()}
    return parser.report(result)


if __name__ == "__main__":
    main()
