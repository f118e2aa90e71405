"""Robots under contact-implicit control: how fast it solves, and how often they fall.

    python scripts/bench/mpc.py                       # all, 20 seeds
    python scripts/bench/mpc.py --quick
    python scripts/bench/mpc.py --only quadruped --seeds 3
    python scripts/bench/mpc.py --only quadruped climb --feedback gains
    python scripts/bench/mpc.py --only self_righting --first 20     # other twenty seeds
    python scripts/bench/mpc.py --only hamr    # eight goals, and the seeds

A quadruped like MIT's Mini Cheetah trots at 0.4 m/s, ahead or turning, and takes a push
of 0.1 s at a random time in a random direction, on ground and with masses that are off
by 20 %, each up or down. Beside contact-implicit control it is held by whole-body
control of the same motion, planned once, and by a sampling planner (MPPI), all from the
same starts. The sampling planner plans 20 times a second and takes all of a processor,
several times what contact-implicit control does. `climb` has the quadruped trot at 0.3
m/s up a step of 6 cm, at a random distance, and not pushed; `self_righting` begins on
its left side and has 8 s to get up and stand. Falls are counted over seeds that differ
by far more than rounding (`seeds_differ_by`), so that a fall is a share of robots.

HAMR-VI, 12 mm high, trots without a plan, its solves on the clock: the delay of each is
what it took. It has 2 s for each of eight goals 45 to 60 mm ahead, which it reaches
within a tenth of the way, and trots on or turns as it is pushed for 5 ms by a tenth of
its weight, friction and masses off.

A rate is that of the median solve; `ms` are of the processor time of the thread that
solves, and the delay of an answer in the simulation is that time. `step_ms` is the
median solve over its number of Newton steps, with its reference and its shift.

JSON: push_N, seeds, seeds_differ_by, first_seed, feedback, quadruped_hz,
quadruped_step_ms, quadruped_p99_ms, hopper_hz, hopper_p99_ms.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat

import numpy as np
from control_baselines import sampling, tracking
from measurement import Measurement

from drakebots import load
from drakebots.cli.output import print_rows
from drakebots.control import FEEDBACK
from drakebots.core.units import GRAVITY
from drakebots.model import Model
from drakebots.multibody import Step
from drakebots.robots.legged import Control, Mpc, Push, Rigid, control

OFF = 0.2
"""Share by which friction and masses are off."""

CASES = {"quadruped": None, "without_mpc": tracking, "sampling": sampling}
"""Controllers of the quadruped that falls or not, by case."""

DIFFER = "push, turn, friction and masses; of climb the step's distance, not the push"
"""Differences between seeds; `self_righting` has friction and masses only."""

SPEEDS = {"hopper": "monopod", "closed_loop": "minitaur"}
"""Robots of which only the speed counts, by case."""

ITERATIONS = {"hopper": 4, "closed_loop": 2, "climb": 4}
"""Newton steps of a solve: with two or three, the hopper falls at some pushes."""

STEP = 0.06
"""Height of the step to climb [m]: a fifth of the height at which the robot stands."""

SELF_RIGHTING = 8.0
"""Time in which the robot has to get up from its side [s]."""

CLIMB_PERIOD = 0.025
"""Between two solves on the way up [s]: four Newton steps take up to 20 ms."""


def pushed(
    model: Model, seed: int, force: float, duration: float = 3.0, **more
) -> Control:
    """The quadruped of a seed: the same for every controller."""
    random = np.random.default_rng(seed)
    push = Push(force, random.uniform(0.8, 1.6), 0.1, random.uniform(0, 2 * np.pi))
    return Control(
        model,
        gait="trot",
        speed=0.4,
        turn=float(random.choice([-0.3, 0.0, 0.3])),
        pushes=(push,),
        plant=_other(random, [-OFF, OFF], time_step=2e-3),
        controller=Mpc(**more),
        duration=duration,
    )


def _other(random: np.random.Generator, either: list[float], **more) -> Rigid:
    """A plant whose friction and masses are off, each by one of two shares."""
    friction, mass = (float(random.choice(either)) for _ in range(2))
    return Rigid(mass, friction, **more)


def quadruped(case: str, seeds: range, force: float, feedback: str, **more) -> dict:
    """Falls and times of one controller over all seeds."""
    model, controller = load("mini_cheetah"), CASES[case]
    more |= {"period": 0.05} if controller is sampling else {"feedback": feedback}
    posed = [pushed(model, s, force, **more) for s in seeds]
    if controller is sampling:
        return _falls(case, posed, [partial(sampling, seed=s) for s in seeds])[0]
    return _falls(case, posed, [controller] * len(posed))[0]


def climbing(model: Model, seed: int) -> Control:
    """The quadruped of a seed that trots up a step of :data:`STEP`."""
    random = np.random.default_rng(seed)
    start = random.uniform(0.4, 0.7)
    return Control(
        model,
        gait="trot",
        goal=(1.5, 0.0),
        speed=0.3,
        terrain=Step(start, start + 3.0, STEP),
        plant=_other(random, [-OFF, OFF]),
        controller=Mpc(period=CLIMB_PERIOD, iterations=ITERATIONS["climb"]),
        duration=5.0,
    )


def climb(seeds: range, feedback: str) -> dict:
    """Falls and times on the way up a step."""
    model = load("mini_cheetah")
    posed = (climbing(model, seed) for seed in seeds)
    return _falls("climb", [_fed_back(p, feedback) for p in posed])[0]


def lying(model: Model, seed: int) -> Control:
    """The quadruped of a seed that lies on its side."""
    random = np.random.default_rng(seed)
    friction, mass = (float(random.uniform(-OFF, OFF)) for _ in range(2))
    plant = Rigid(mass, friction)
    return Control(model, start="side", plant=plant, duration=SELF_RIGHTING)


def self_righting(seeds: range, feedback: str) -> dict:
    """Robots that do not stand in the end, as falls, and when the others stood."""
    model = load("mini_cheetah")
    posed = (lying(model, seed) for seed in seeds)
    return _falls("self_righting", [_fed_back(p, feedback) for p in posed])[0]


def _fed_back(problem: Control, feedback: str) -> Control:
    """The same with another feedback between solves."""
    return replace(problem, controller=replace(problem.controller, feedback=feedback))


def _falls(
    case: str, problems: Sequence[Control], controllers=repeat(None)
) -> tuple[dict, list]:
    """The row of some runs, and the runs."""
    runs, began = [], time.process_time()
    for problem, controller in zip(problems, controllers):
        runs.append(control(problem, controller=controller))
        fell = runs[-1].metrics["fell"]
        print("F" if fell else ".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return _row(case, runs, time.process_time() - began), runs


def _row(case: str, runs: list, spent: float) -> dict:
    seconds = np.concatenate([run.data.solve_seconds.values[1:] for run in runs])
    return {
        "case": case,
        "runs": len(runs),
        "falls": sum(run.metrics["fell"] for run in runs),
        "hz": float(1 / np.median(seconds)),
        "median_ms": float(1e3 * np.median(seconds)),
        "p99_ms": float(1e3 * np.quantile(seconds, 0.99)),
        "failures": sum(run.metrics["solve_failures"] for run in runs),
        "late": sum(run.metrics["solve_late"] for run in runs),
        "tilt_deg": float(np.median([run.metrics["tilt_max_deg"] for run in runs])),
        "upright_s": _middle_and_last([run.metrics["upright_at_s"] for run in runs]),
        "processor_s": spent,
    }


def _middle_and_last(times: list[float | None]) -> str:
    """Median and largest of the times from which robots stood [s]; "" for none."""
    stood = [t for t in times if t is not None]
    return f"{np.median(stood):.3g}, {max(stood):.3g}" if stood else ""


def speed(case: str) -> dict:
    """Times of a robot that stands and takes a light push."""
    name, began = SPEEDS[case], time.process_time()
    push = Push(5.0, 0.5, 0.1, 0.0)
    given = {"pushes": (push,), "duration": 1.5, "plant": Rigid(time_step=2e-3)}
    run = control(Control(name, controller=Mpc(iterations=ITERATIONS[case]), **given))
    return _row(case, [run], time.process_time() - began)


OTHERS = {"climb": climb, "self_righting": self_righting}
"""Other tasks of the quadruped, by case."""


def trotting(**more) -> Control:
    """HAMR-VI at half the speed that its size would ask for, solves on the clock."""
    plant = more.pop("plant", Rigid())
    given = {
        "gait": "trot",
        "speed": 0.05,
        "controller": Mpc(period=10e-3, iterations=3),
    } | more
    return Control("hamr", plant=replace(plant, time_step=1e-4), **given)


def goals() -> dict:
    """What HAMR misses of its eight goals."""
    ahead, missed = np.linspace(0.045, 0.06, 8), []
    posed = [trotting(goal=(x, 0.0), duration=2.0) for x in ahead]
    row, runs = _falls("hamr_goals", posed)
    for run, x in zip(runs, ahead):
        place = run.data.base_position.values[-1, :2]
        missed.append(np.linalg.norm(place - (x, 0.0)) / x)
    reached = int(sum(share < 0.1 for share in missed))
    return row | {"reached": reached, "missed": float(max(missed))}


def hamr(seeds: range) -> dict:
    """HAMR that trots, or turns by half a radian a second, and is pushed."""
    model, posed = load("hamr"), []
    force = 0.1 * GRAVITY * model.summary.mass
    for seed in seeds:
        random = np.random.default_rng(seed)
        way = random.uniform(0, 2 * np.pi)
        push = Push(force, random.uniform(0.3, 0.7), 5e-3, way)
        turn, plant = (
            float(random.choice([-0.5, 0.0, 0.5])),
            _other(random, [-OFF, OFF]),
        )
        posed.append(trotting(turn=turn, pushes=(push,), plant=plant, duration=1.0))
    return _falls("hamr", posed)[0]


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="a second of one quadruped, and the hopper")
    parser.add_argument("--only", choices=[*CASES, *SPEEDS, *OTHERS, "hamr"], nargs="*")
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--push", type=float, default=50.0, help="force [N]")
    parser.add_argument(
        "--feedback", choices=FEEDBACK, default=FEEDBACK[0], help="between solves"
    )
    args = parser.parse_args(argv)
    more = {}
    if args.quick:
        args.only, args.seeds, more = ["quadruped", "hopper"], 1, {"duration": 1.0}
    wanted = args.only or [*CASES, *SPEEDS, *OTHERS, "hamr"]
    seeds = range(args.first, args.first + args.seeds)
    rows = {}
    for case in wanted:
        if case in OTHERS:
            rows[case] = OTHERS[case](seeds, args.feedback)
        elif case in SPEEDS:
            rows[case] = speed(case)
        elif case == "hamr":
            rows |= {"hamr_goals": goals(), "hamr": hamr(seeds)}
        else:
            rows[case] = quadruped(case, seeds, args.push, args.feedback, **more)
    print_rows(
        f"control; pushes of {args.push:g} N but for climb, self_righting, hamr",
        list(rows.values()),
    )
    facts = {"push_N": args.push, "seeds": args.seeds, "first_seed": args.first}
    facts["seeds_differ_by"] = DIFFER
    facts["feedback"] = args.feedback
    for case, row in rows.items():
        if case in ("quadruped", *SPEEDS):
            facts[f"{case}_hz"] = row["hz"]
            steps = ITERATIONS.get(case, Mpc().iterations)
            facts[f"{case}_step_ms"] = row["median_ms"] / steps
            facts[f"{case}_p99_ms"] = row["p99_ms"]
        if case in OTHERS:
            name = "climbing_falls" if case == "climb" else f"{case}_falls"
            facts[f"{name}_of_20" if args.seeds == 20 else name] = row["falls"]
        if case == "hamr_goals":
            facts["hamr_goals_of_8"] = row["reached"]
        if case == "hamr":
            facts["hamr_falls_of_20" if args.seeds == 20 else "hamr_falls"] = row[
                "falls"
            ]
            facts["hamr_hz"] = row["hz"]
        if case in CASES:
            name = "falls_of_20" + ("" if case == "quadruped" else f"_{case}")
            facts[name if args.seeds == 20 else f"{name}_seeds"] = row["falls"]
    return parser.report(facts)


if __name__ == "__main__":
    main()
