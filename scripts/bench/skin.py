"""A skin on a skeleton: our frame beside Drake's deformables and MuJoCo's flex.

python scripts/bench/skin.py            # a quarter of an hour
python scripts/bench/skin.py --quick    # small meshes only

Peers: the glued hinge of skin_hinge.py, same mesh, glue, servo, moduli and dt. All
engines run in this process, a step each in turn, every engine once before the clock
starts, all on one thread, as Drake is; ratios are those of all turns together, in CPU
seconds, which other jobs on the machine disturb less than the wall's: some of our steps
factor anew and others do not. Ours stands there once more with two threads of MKL,
against the others by the wall's clock; Drake's own threads are for internal use only.
`frame_s_14k` (`frame_s_1k` of --quick) is our step of the largest hinge on one thread,
the mean over all turns, and `condensed_frame_s_14k` the condensed frame below.

The error is that of the hinge angle after the last step, against ours extrapolated
from dt/2, dt/4 and dt/8 to none; most of it is the time step's. Drake moves vertices
by the mean of old and new velocity (Newmark, gamma 1, beta 1/2), ours and MuJoCo by
the new one. What our single linear solve leaves out stands apart, against the same
step converged.

Ours alone, in double precision: the condensed frame with 140 glued vertices and 20
contact patches, from the state to the maps of torques and contact forces and the
displacement of every node, without a QP; beside it the same frame by the paper's
right-hand sides (eq. 10) and by its multiplier system (eq. 2). Memory is
the peak of a process of its own that does only this.

JSON: vs_drake_neo_hookean_ratio, vs_drake_corotated_ratio, condensed_vs_rhs_ratio,
condensed_vs_multiplier_ratio, scaling_exponent, angle_error.
"""

from __future__ import annotations

import os

# Threads of OpenBLAS would fight with MKL's; to be set before NumPy loads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gc
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from measurement import Measurement, figure
from pydrake.multibody.fem import MaterialModel
from skin_frame import frame_cost, routes
from skin_hinge import GluedHinge, silicone_hinge
from skin_peers import Drake, Mujoco, Ours
from skin_reference import Converged

from drakebots.cli.output import print_table
from drakebots.core.threads import calm_threads

HERE = Path(__file__).resolve().parent
TARGETS = {
    "vs_drake_neo_hookean_ratio": 30.0,
    "vs_drake_corotated_ratio": 20.0,
    "frame_s_14k": 0.06,
    "condensed_frame_s_14k": 0.2,
    "peak_memory_gb_14k": 1.5,
}
OURS, TWO_THREADS = "drakebots", "drakebots, two threads"
NEO_HOOKEAN, COROTATED = "Drake neo-Hookean", "Drake corotated"
DEFAULT_CG, CONVERGED_CG = (100, 1e-8), (20000, 1e-10)
"""MuJoCo's iterations at most and tolerance: its defaults, and enough to meet it."""


def engines(hinge: GluedHinge) -> dict:
    """Every engine that is installed, by name."""
    out = {
        OURS: Ours(hinge, threads=1),
        TWO_THREADS: Ours(hinge, threads=2),
        NEO_HOOKEAN: Drake(hinge, MaterialModel.kNeoHookean),
        COROTATED: Drake(hinge, MaterialModel.kLinearCorotated),
    }
    if find_spec("mujoco") is not None:
        first = Mujoco(hinge, *DEFAULT_CG)
        out["MuJoCo, default"] = first
        out["MuJoCo, converged"] = Mujoco(hinge, *CONVERGED_CG, like=first)
    return out


def finer(hinge: GluedHinge, steps: int) -> tuple[float, float]:
    """The angle after these steps extrapolated to dt = 0, and ours with dt/2."""
    found = {}
    for parts in (2, 4, 8):
        engine = Ours(replace(hinge, dt=hinge.dt / parts), threads=1)
        for _ in range(steps * parts):
            engine.step()
        found[parts] = engine.angle
    # Errors a dt + b dt^2 cancelled (Richardson).
    return (found[2] - 6 * found[4] + 8 * found[8]) / 3, found[2]


def times(theirs: list[float], ours: list[float]) -> float:
    """How many times ours they took, all turns together."""
    return float(np.sum(theirs) / np.sum(ours))


def beside_peers(hinge: GluedHinge, turns: int) -> dict[str, dict]:
    """Seconds a step, ratios and errors of every engine."""
    running = engines(hinge)
    spent, cpu = ({name: [] for name in running} for _ in range(2))
    with calm_threads():  # MKL's would spin on, in the next engine's time
        for turn in range(turns + 1):
            for name, engine in running.items():
                gc.collect()
                start, busy = time.perf_counter(), time.process_time()
                engine.step()
                if turn:  # the first allocates, analyses, compiles
                    spent[name].append(time.perf_counter() - start)
                    cpu[name].append(time.process_time() - busy)
    want, half = finer(hinge, turns + 1)
    rows = {
        name: {
            "s_per_step": float(np.mean(spent[name])),
            "cpu_s_per_step": float(np.mean(cpu[name])),
            "times_ours": times(cpu[name], cpu[OURS]),
            "times_ours_by_wall": times(spent[name], spent[OURS]),
            "times_ours_two_threads_by_wall": times(spent[name], spent[TWO_THREADS]),
            "angle": engine.angle,
            "error": abs(engine.angle / want - 1),
        }
        for name, engine in running.items()
    }
    rows[OURS]["error_of_half_dt"] = abs(half / want - 1)
    exact = Converged(hinge)
    for _ in range(turns + 1):
        exact.step()
    rows[OURS]["error_of_one_solve"] = abs(running[OURS].angle / exact.angle - 1)
    for name, engine in running.items():
        if isinstance(engine, Mujoco):
            rows[name]["iterations_at_most"] = engine.iterations
            rows[name]["residual"] = engine.residual or engine.tolerance
    return rows


def peak_memory(vertices: int) -> float:
    """Peak GB of a process that runs condensed frames, everything loaded."""
    code = f"import skin_frame; print(skin_frame.memory_of_frames({vertices}))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, check=True, stdout=subprocess.PIPE
    )
    return float(run.stdout.split()[-1])


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="small meshes only")
    parser.add_argument("--turns", type=int, default=12, help="steps beside peers")
    args = parser.parse_args(argv)
    sizes = [400] if args.quick else [1000, 4000, 14000]
    scaling = [400, 1000, 2000] if args.quick else [1000, 4000, 14000, 30000, 50000]
    turns = 2 if args.quick else args.turns
    large, name, rounds = (1000, "1k", 2) if args.quick else (14000, "14k", 9)
    rows: dict = {}
    for size in sizes:
        hinge = silicone_hinge(size)
        found = beside_peers(hinge, turns)
        title = f"{len(hinge.mesh.vertices)} vertices, {hinge.glue_count} glued"
        for engine, row in found.items():
            rows[f"{title}: {engine}"] = row
    for threads in (1, 2):
        cost, parts = frame_cost(large, threads, rounds)
        title = f"condensed frame, {name}, {threads} MKL threads"
        rows[f"{title}, median [s]"] = float(np.median(cost))
        rows[f"{title}, fastest [s]"] = float(cost.min())
        rows[f"{title}, parts [ms]"] = parts
    ways = routes(large, 2, 1 if args.quick else 3)
    rows |= {f"routes, {name}: {way}": value for way, value in ways.items()}
    costs = [np.median(frame_cost(n, 2, max(2, rounds // 2))[0]) for n in scaling]
    exponent = float(np.polyfit(np.log(scaling), np.log(costs), 1)[0])
    rows["scaling [s]"] = {str(n): float(c) for n, c in zip(scaling, costs)}
    print_table("skin of 0.8 MPa, dt 5 ms", rows)
    values = {
        "vs_drake_neo_hookean_ratio": (found[NEO_HOOKEAN]["times_ours"], "1"),
        "vs_drake_corotated_ratio": (found[COROTATED]["times_ours"], "1"),
        "vs_drake_neo_hookean_two_threads_ratio": (
            found[NEO_HOOKEAN]["times_ours_two_threads_by_wall"],
            "1",
        ),
        "vs_drake_corotated_two_threads_ratio": (
            found[COROTATED]["times_ours_two_threads_by_wall"],
            "1",
        ),
        f"frame_s_{name}": (found[OURS]["cpu_s_per_step"], "s"),
        f"condensed_frame_s_{name}": (float(np.median(cost)), "s"),
        "condensed_vs_rhs_ratio": (ways["right-hand sides, times"], "1"),
        "condensed_vs_multiplier_ratio": (ways["multipliers, times"], "1"),
        "scaling_exponent": (exponent, "1"),
        f"peak_memory_gb_{name}": (peak_memory(large), "GB"),
        "angle_error": ({k: v["error"] for k, v in found.items()}, "1"),
    }
    if cg := {k: v for k, v in found.items() if k.startswith("MuJoCo")}:
        values["mujoco"] = (cg, "s")
    # Targets are those of the large meshes.
    targets = {} if args.quick else TARGETS
    result = {
        key: figure(value, unit, targets.get(key))
        for key, (value, unit) in values.items()
    }
    return parser.report(result)


if __name__ == "__main__":
    main()
