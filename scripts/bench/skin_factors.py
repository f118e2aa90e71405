"""Factors of a skin that are kept over time steps, beside factors of every step.

python scripts/bench/skin_factors.py            # ten minutes
python scripts/bench/skin_factors.py --quick    # coarse hinge and pad, some steps
python scripts/bench/skin_factors.py --plan beetle.nc    # of `drakebots plan beetle`

A stepper that keeps its factors moves the skin; at each state one that factors every
step in single precision takes the same step, and one in double precision. All have one
thread; the times are means of processor seconds a step, the steps that are factored
anew included, the first not. The difference is that of the displacements from those in
double precision, relative to the largest.

The cases: a hinge that a servo turns (skin_hinge.py); a beetle on its feet, and walking
if there is a plan; the skinned leg by a sine; a pad of skin under a plate while it
settles, and at rest.

JSON: kept_vs_single_ratio, kept_vs_double_ratio, kept_difference, kept_step_s,
kept_passes, kept_factored_share.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable, Sequence

import numpy as np
from measurement import Measurement, figure
from pydrake.geometry import Box
from skin_hinge import silicone_hinge
from skin_peers import Ours
from skin_scene import RADIUS, SETTLE, pad_mesh
from skin_scene import Ours as Pad

from drakebots import load_result
from drakebots.cli.output import print_rows
from drakebots.core.threads import calm_threads
from drakebots.robots.quads import Tracking, track
from drakebots.skin.coupled import CoupledStepper, PatchContact, Servo
from drakebots.skin.file import load_skinned

DT = 5e-3
WAYS = {
    "kept": {},
    "single": {"keep_factors": False},
    "double": {"precision": "double"},
}
"""Options of the steppers."""


class Beside:
    """Steps one stepper, the others beside it from the same states.

    Args:
        make: makes a stepper with options.

    Attributes:
        stepper: the one that keeps factors; its `step` steps all.
        spent: processor seconds of each step, by way.
        away: differences from double precision.
        passes: passes of each step with kept factors, and whether it factored.
    """

    def __init__(self, make: Callable[..., CoupledStepper]):
        self.all = {way: make(threads=1, **options) for way, options in WAYS.items()}
        self.stepper = self.all["kept"]
        self.spent: dict[str, list[float]] = {way: [] for way in WAYS}
        self.away: list[float] = []
        self.passes: list[tuple[int, bool]] = []
        self._steps = {way: each.step for way, each in self.all.items()}
        self.stepper.step = self.step
        solve = self.stepper._solver.solve

        def counted(*args, **options):
            quick = self.stepper._solver._quick
            held = quick.held
            solved = solve(*args, **options)
            # A step whose kept factors failed was factored, too.
            new = not held or quick._number == 1
            self.passes.append((solved.passes, new))
            return solved

        self.stepper._solver.solve = counted

    def step(self, state, *args, **options):
        """A step of each; the result of the first."""
        found = {}
        for way, step in self._steps.items():
            start = time.process_time()
            found[way] = step(state, *args, **options)
            self.spent[way].append(time.process_time() - start)
        ends = [found[way].state.skin.positions for way in ("kept", "double")]
        moved = np.abs(ends[1] - state.skin.positions).max()
        self.away.append(float(np.abs(ends[0] - ends[1]).max() / moved))
        return found["kept"]

    def row(self, case: str, first: int = 1, last: int | None = None) -> dict:
        """What the steps from `first` to `last` cost."""
        cost = {k: float(np.mean(v[first:last])) for k, v in self.spent.items()}
        # A scene solves some steps twice.
        passes, factored = np.array(self.passes[first:], float).T
        return {
            "case": case,
            "nodes": len(self.stepper.model.rest),
            **{f"{way} [s]": value for way, value in cost.items()},
            "single/kept": cost["single"] / cost["kept"],
            "double/kept": cost["double"] / cost["kept"],
            "passes": float(passes.mean()),
            "factored": float(factored.mean()),
            "difference": max(self.away[first:last]),
        }


def held(run: Beside, servo: Callable[[float], Servo], steps: int) -> Beside:
    """Steps from the stepper's start with servos of a time [s]."""
    state = run.stepper.start()
    for _ in range(steps):
        result = run.stepper.step(state, servo=servo(state.time))
        if not result.converged:
            raise RuntimeError(result.message)
        state = result.state
    return run


def hinge(vertices: int, steps: int) -> Beside:
    """The glued hinge."""
    problem = silicone_hinge(vertices)
    one = "single" if vertices < 2000 else "auto"
    run = Beside(lambda **o: Ours(problem, **{"precision": one, **o}).stepper)
    gains = problem.stiffness, problem.damping
    return held(run, lambda _: Servo(*gains, [problem.target]), steps)


def robot(name: str, swing: float, steps: int) -> Beside:
    """A robot whose joints swing by so much [rad] at 1 Hz, on its feet if any."""
    made = load_skinned(name)
    patches = made.skin.patches
    ground = {"patches": patches, "patch_contact": PatchContact()} if patches else {}
    run = Beside(lambda **o: made.stepper(DT, **ground, **o))
    home = run.stepper.home[0][run.stepper.actuated]
    gains = made.skin.servos

    def servo(t: float) -> Servo:
        angle = home + swing * np.sin(2 * np.pi * t)
        return Servo(gains.stiffness, gains.damping, angle)

    return held(run, servo, steps)


def walk(path: str) -> Beside:
    """A robot that tracks a plan."""
    runs = []

    class Both(Tracking):
        def stepper(self, time_step=None):
            def make(**options):
                skinned = self.robot.skinned
                contact = {
                    "patches": skinned.skin.patches,
                    "patch_contact": self.ground,
                }
                dt = self.time_step if time_step is None else time_step
                return skinned.stepper(dt, **contact, **options)

            runs.append(Beside(make))
            return runs[-1].stepper

    track(Both(load_result(path), imu=True))
    return max(runs, key=lambda run: len(run.passes))


def pad(cells: Sequence[int], steps: int) -> Beside:
    """A plate laid on a pad."""
    run = Pad(pad_mesh(cells), shape=Box(0.08, 0.08, 2 * RADIUS), every=7)
    run.state.q[-1] = RADIUS + 1e-4
    own = run.stepper
    beside = Beside(
        lambda **options: CoupledStepper(
            own.plant,
            own.model,
            own.glue,
            own.dt,
            context=own.context,
            scene=own.scene,
            **options,
        )
    )
    run.stepper = beside.stepper
    for _ in range(steps):
        run.step()
    return beside


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="coarse hinge and pad, some steps")
    parser.add_argument("--plan", help="a plan to track")
    args = parser.parse_args(argv)
    quick = args.quick
    with calm_threads():
        rows = [hinge(1000 if quick else 14000, 8 if quick else 40).row("hinge")]
        rows.append(robot("skinned_leg", 0.3, 8 if quick else 100).row("skinned leg"))
        laid = pad((14, 14, 8) if quick else (30, 30, 14), 10 if quick else SETTLE + 15)
        rows.append(laid.row("plate on a pad", 1, 10 if quick else SETTLE))
        if not quick:
            rows.append(laid.row("plate at rest", SETTLE))
            rows.append(robot("beetle", 0.0, 60).row("beetle stands"))
            rows.append(robot("beetle", 0.1, 60).row("beetle swings"))
        if args.plan:
            rows.append(walk(args.plan).row("beetle walks"))
    print_rows("a step of a skin, one thread", rows)
    names = {
        "kept_vs_single_ratio": ("single/kept", "1"),
        "kept_vs_double_ratio": ("double/kept", "1"),
        "kept_difference": ("difference", "1"),
        "kept_step_s": ("kept [s]", "s"),
        "kept_passes": ("passes", "1"),
        "kept_factored_share": ("factored", "1"),
    }
    return parser.report(
        {
            key: figure({row["case"]: row[of] for row in rows}, unit)
            for key, (of, unit) in names.items()
        }
    )


if __name__ == "__main__":
    main()
