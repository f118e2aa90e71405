"""The condensed step of a skin by PARDISO, MUMPS and SciPy, in one run.

python scripts/bench/platforms.py            # two minutes
python scripts/bench/platforms.py --quick    # the skinned leg alone

MKL's PARDISO is there on x86-64 only, and by choice; MUMPS comes with CasADi on every
platform. A condensed step is that of scripts/bench/skin_frame.py: assembly, factor with
Schur complement, maps of torques, displacement of every node, in double precision. The
solvers take their steps in turn, all with one thread, in processor seconds; ratios are
medians of each turn's. A step refined from single precision, which only PARDISO has,
stands beside them as users get it with MKL. The differences are those of the
displacements from SciPy's, relative to the largest.

The file is not named platform.py, which would hide Python's own module of that name.

JSON: models, scipy_vs_mumps_ratio, targets.
"""

from __future__ import annotations

import os

# Threads of OpenBLAS would fight with MKL's; to be set before NumPy loads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gc
import time
from collections.abc import Sequence

import numpy as np
from measurement import Measurement
from skin_frame import unit_loads

from drakebots.cli.output import print_rows
from drakebots.core.threads import calm_threads, find_mkl
from drakebots.fem.solver.mumps import find_mumps
from drakebots.skin.coupled import ReducedSystem
from drakebots.skin.file import load_skinned

MODELS = ("beetle", "lizard", "skinned_leg")
TARGETS = {"mumps_vs_pardiso_ratio": 2.0, "scipy_vs_mumps_ratio": 10.0}
DT = 5e-3
REFINED = "pardiso, refined"


def condensed(stepper, state) -> np.ndarray:
    """Displacement of every node in one condensed step (N, 3) [m]."""
    system = ReducedSystem(stepper.equations(state), stepper.solver)
    system.back(unit_loads(system))
    return system.solve().du


def measure(name: str, rounds: int) -> dict:
    """Processor seconds of a model's steps by solver, and their differences."""
    robot = load_skinned(name)
    here = {"pardiso": find_mkl(), "mumps": find_mumps(), "scipy": True}
    steppers = {
        solver: robot.stepper(DT, solver=solver, threads=1, precision="double")
        for solver, found in here.items()
        if found is not None
    }
    state = steppers["scipy"].start()
    runs = {k: lambda s=s: condensed(s, state) for k, s in steppers.items()}
    if "pardiso" in runs:
        options = {"precision": "single", "keep_factors": False}
        quick = robot.stepper(DT, solver="pardiso", threads=1, **options)
        runs[REFINED] = lambda: quick.step(state).solution.du
    spent, answers = {name: [] for name in runs}, {}
    with calm_threads():
        for turn in range(rounds + 1):
            for solver, run in runs.items():
                gc.collect()
                start = time.process_time()
                answers[solver] = run()
                if turn:  # the first has the analysis
                    spent[solver].append(time.process_time() - start)
    size = np.abs(answers["scipy"]).max()
    return {
        "nodes": len(robot.fem.rest),
        "kept": len(steppers["scipy"].solver.kept),
        "s": {k: np.array(v) for k, v in spent.items()},
        "difference": {
            k: np.abs(x - answers["scipy"]).max() / size
            for k, x in answers.items()
            if k in steppers
        },
    }


def ratio(seconds: dict, one: str, other: str) -> float | None:
    """Median of the ratio of each turn, None where one is not installed."""
    if one not in seconds or other not in seconds:
        return None
    return float(np.median(seconds[one] / seconds[other]))


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="the skinned leg alone")
    parser.add_argument("--rounds", type=int, default=5, help="turns (5)")
    arguments = parser.parse_args(argv)
    models = MODELS[-1:] if arguments.quick else MODELS
    out: dict = {"models": {}}
    rows, ratios = [], {name: [] for name in TARGETS}
    for model in models:
        found = measure(model, arguments.rounds)
        seconds = found["s"]
        both = {
            "mumps_vs_pardiso_ratio": ratio(seconds, "mumps", "pardiso"),
            "scipy_vs_mumps_ratio": ratio(seconds, "scipy", "mumps"),
        }
        for name, value in both.items():
            ratios[name].append(value)
        out["models"][model] = {
            "nodes": found["nodes"],
            "kept": found["kept"],
            **{f"{k} [s]": float(np.median(v)) for k, v in seconds.items()},
            **{f"{k} difference": v for k, v in found["difference"].items()},
            **both,
        }
        for solver, each in seconds.items():
            away = found["difference"].get(solver)
            rows.append(
                {
                    "model": model,
                    "nodes": found["nodes"],
                    "solver": solver,
                    "s per step": f"{np.median(each):.4f}",
                    "difference": "" if away is None else f"{away:.0e}",
                }
            )
    # The worst model counts.
    worst = {"mumps_vs_pardiso_ratio": max, "scipy_vs_mumps_ratio": min}
    for name, values in ratios.items():
        out[name] = None if None in values else worst[name](values)
    out["targets"] = TARGETS
    print_rows("condensed step", rows)
    return parser.report(out)


if __name__ == "__main__":
    main()
