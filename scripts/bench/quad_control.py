"""A skinned robot that trots under feedback, and open loop: rates and falls.

    python scripts/bench/quad_control.py             # 20 seeds; a quarter of an hour
    python scripts/bench/quad_control.py --quick
    python scripts/bench/quad_control.py --seeds 4 --push 40
    python scripts/bench/quad_control.py --plant full --seeds 5 --closed

Every seed has a push of 0.1 s at a random time in a random direction, on the skin of
the trunk, and one of four grounds in turn: flat, flat with a box of 10 mm across the
way, uphill and downhill by 10 degrees. The slope is known to the controller, pushes and
boxes are not, and a solve takes effect as late as it took. Open loop plays the servo
targets of a run under control on the same slope, without push and box: a trot that
holds as long as nothing happens. Falls are thus counted over seeds that differ by far
more than rounding (`seeds_differ_by`).

The plant is the robot in its reduced skin, whose torques over those of the full skin
are measured on a trot (`reduced_plant_torque_error`), or with `--plant full` in all its
tetrahedra. Figures of falls and of time begin with the skin. The rate is that of the
median solve, in processor time of the thread that solves; the real-time factor is
simulated time over processor time of the plant's steps.

JSON: push_N, seeds, seeds_differ_by, closed_loop_hz, closed_loop_p99_ms.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from measurement import Measurement

from drakebots.cli.output import print_rows
from drakebots.control import Push
from drakebots.multibody import Flat, Slope
from drakebots.results import Result
from drakebots.robots.quads import Box, Built, Control, Skinned, build, control

sys.path.append(str(Path(__file__).parents[1] / "papers" / "quads"))
from reduced_error import measure_reduced

PLANTS = ("reduced", "full")
GROUNDS = ("flat", "box", "up", "down")
SLOPES, BOX = {"up": np.radians(10.0), "down": -np.radians(10.0)}, 0.01
"""Angles of slopes [rad], height of boxes [m]."""


def calm(args: argparse.Namespace, ground: str) -> Control:
    """A run on a ground, without pushes and boxes."""
    angle = SLOPES.get(ground)
    terrain = Flat() if angle is None else Slope(-angle)
    return Control(
        args.robot,
        speed=args.speed,
        terrain=terrain,
        duration=args.duration,
        log_period=0.05,
        plant=Skinned(skin_period=10.0),
    )


def disturbed(args: argparse.Namespace, seed: int) -> tuple[str, Control]:
    """The run of a seed, and its ground: the same for both controllers."""
    random = np.random.default_rng(seed)
    ground = GROUNDS[seed % len(GROUNDS)]
    way = random.uniform(0, 2 * np.pi)
    push = Push(args.push, random.uniform(0.8, 1.6), 0.1, way)
    box = Box(BOX, at=random.uniform(0.2, 0.3))
    own = {"box": box} if ground == "box" else {}
    return ground, replace(calm(args, ground), pushes=(push,), **own)


def run_of(
    args: argparse.Namespace, seed: int | str, replay: Result | None, plant: str
) -> tuple[dict, Result]:
    """A row for the run of a seed, or for the calm run of a ground, and the run."""
    calm_run = isinstance(seed, str)
    ground, problem = (seed, calm(args, seed)) if calm_run else disturbed(args, seed)
    built = _built(args, ground if calm_run else _slope_of(args, seed))
    problem = replace(problem, plant=replace(problem.plant, skin=plant))
    run = control(problem, replay=replay, built=built)
    print("F" if run.metrics["fell"] else ".", end="", file=sys.stderr, flush=True)
    return {"seed": seed, "ground": ground, **_row(run)}, run


_BUILT: dict[str, Built] = {}


def _built(args: argparse.Namespace, ground: str) -> Built:
    """The controller of a ground, built once in each process."""
    if ground not in _BUILT:
        _BUILT[ground] = build(calm(args, ground))
    return _BUILT[ground]


def _row(run: Result) -> dict:
    names = ("fell", "fell_at_s", "forward_m", "sideways_m", "turned_deg")
    more = ("largest_roll_deg", "largest_pitch_deg", "saturated_share")
    solve = ("solve_ms", "solve_p99_ms", "solve_late", "solve_failures")
    steps = ("frames_refined", "plant_step_ms")
    return {name: run.metrics[name] for name in (*names, *more, *solve, *steps)}


def _slope_of(args: argparse.Namespace, seed: int) -> str:
    """The calm ground with the slope of a seed's."""
    ground = disturbed(args, seed)[0]
    return ground if ground in SLOPES else "flat"


def plant_error(args: argparse.Namespace, run: Result) -> float:
    """Error of the reduced plant's torques against the full skin's, on a run's targets:
    rms over joints and time steps, over the rms torque."""
    built, targets = _built(args, "flat"), run.data.command.values
    dt = built.problem.plant.time_step

    def at(time: float) -> np.ndarray:
        return targets[min(round(time / dt) - 1, len(targets) - 1)]

    skinned, steps = built.robot.skinned, args.error_steps
    figures = measure_reduced(skinned, built.skin, at, steps=steps, dt=dt)[0]
    return figures["torque_error"]


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints tables and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="one seed for 0.05 s, in the whole skin")
    parser.add_argument("--robot", default="monster", help="name or path of the robot")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--push", type=float, default=20.0, help="force [N]")
    parser.add_argument("--speed", type=float, default=0.2, help="of the trot [m/s]")
    parser.add_argument("--duration", type=float, default=2.5, help="of a run [s]")
    parser.add_argument("--plant", choices=PLANTS, default="reduced", help="the skin")
    parser.add_argument("--workers", type=int, default=2, help="number of processes")
    parser.add_argument(
        "--closed", action="store_true", help="runs under control only, pushed"
    )
    parser.add_argument(
        "--error-steps", type=int, default=60, help="time steps of the plant's error"
    )
    args = parser.parse_args(argv)
    if args.quick:
        # The whole skin needs no training.
        args.plant, args.seeds, args.workers, args.duration = "full", 1, 1, 0.05
    if args.plant == "reduced":
        _built(args, "flat").skin  # noqa: B018 - trained once, before many need it
    seeds, plant = range(args.seeds), args.plant
    slopes = set() if args.closed else {_slope_of(args, seed) for seed in seeds}
    with ProcessPoolExecutor(args.workers, get_context("spawn")) as pool:
        calm_jobs = {g: pool.submit(run_of, args, g, None, plant) for g in slopes}
        jobs = [pool.submit(run_of, args, seed, None, plant) for seed in seeds]
        calm_runs = {ground: job.result() for ground, job in calm_jobs.items()}
        alone = []
        for seed in () if args.closed else seeds:
            calm_run = calm_runs[_slope_of(args, seed)][1]
            alone.append(pool.submit(run_of, args, seed, calm_run, plant))
        closed, opened = ([job.result()[0] for job in some] for some in (jobs, alone))
    print(file=sys.stderr)
    print_rows(f"closed loop in the {plant} skin, pushes of {args.push:g} N", closed)
    ending = f"_of_{args.seeds}"
    step = float(np.median([row["plant_step_ms"] for row in closed]))
    facts = {
        "push_N": args.push,
        "seeds": args.seeds,
        "seeds_differ_by": "push, ground, distance of the box",
        "closed_loop_hz": 1e3 / float(np.median([r["solve_ms"] for r in closed])),
        "closed_loop_p99_ms": max(r["solve_p99_ms"] for r in closed),
        f"{plant}_skin_falls{ending}": sum(r["fell"] for r in closed),
        f"{plant}_skin_real_time_factor": 1e3 * Skinned().time_step / step,
    }
    if not args.closed:
        print_rows("undisturbed", [row for row, _ in calm_runs.values()])
        print_rows("open loop, the same seeds", opened)
        facts[f"open_loop_falls{ending}"] = sum(r["fell"] for r in opened)
    if args.error_steps and plant == "reduced" and not args.closed:
        facts["reduced_plant_torque_error"] = plant_error(args, calm_runs["flat"][1])
    return parser.report(facts)


if __name__ == "__main__":
    main()
