"""The same drive of many legged robots: how often they fall, and how fast they go.

    python scripts/bench/drives.py
    python scripts/bench/drives.py mini_cheetah a1.urdf robots/ --drives 10
    python scripts/bench/drives.py --quick

A drive of 60 s is a script of `drakebots live`: ahead at 0.5 m/s, sideways at 0.2,
turning at 0.8 rad/s both ways, stop, ahead again, height up and down, then from a
restart up 8 degrees and from another one over blocks of 30 mm. Six pushes, each a
change of velocity by 0.4 m/s, come at random times from random sides, by the number of
the drive. Robots whose centre of mass is below 0.2 m get less by Froude, those without
four legs half the speeds. All have the same weights, and answers act 8 ms late, so that
a drive can be repeated.

A drive has fallen where the run says so once, or is no success. The velocities are
means from a second after a command to the first push, on flat ground; `velocity_miss`
is the largest deviation of that which was asked for, as a share. Robots are names,
files, folders that are searched, or those of installed packages (`--packages`).
`failed` says why a robot was not driven.

JSON: drives, drive_s, drives_fallen, velocity_miss, solve_ms, failed.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from measurement import Measurement, figure

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
from robot_zoo.finding import find_files

from drakebots.core.errors import DrakebotsError
from drakebots.live.script import HEADING
from drakebots.results import Result
from drakebots.robots.legged import Drive, Driven, drive

ROBOT = "mini_cheetah"
SIDES = ("ahead", "left", "back", "right")
SETTLES = 1.0
"""Time after which a velocity that was asked for is judged [s]."""


@dataclass(frozen=True)
class Leg:
    """A part of the drive.

    Attributes:
        duration: [s].
        orders: values of sliders, of a large robot; the others are 0.
        pushed: whether a push comes in the part of it that is not judged.
        terrain: that it restarts on; None to go on.
    """

    duration: float
    orders: dict[str, float]
    pushed: bool = False
    terrain: int | None = None


DRIVE = (
    Leg(6, {"ahead": 0.5}, pushed=True),
    Leg(6, {"left": 0.2}, pushed=True),
    Leg(6, {"turn": 0.8}, pushed=True),
    Leg(6, {"turn": -0.8}, pushed=True),
    Leg(3, {}),
    Leg(6, {"ahead": 0.5}, pushed=True),
    Leg(3, {"height": 0.02}),
    Leg(3, {"height": -0.06}),
    Leg(9, {"ahead": 0.5}, pushed=True, terrain=1),
    Leg(12, {"ahead": 0.5}, terrain=3),
)
QUICK = (Leg(3, {"ahead": 0.5}, pushed=True),)


def orders_of(leg: Leg, clock: float, share: float) -> dict[str, float]:
    """What a robot is asked for.

    Args:
        leg: part of the drive.
        clock: its times, as a share of a large robot's.
        share: of the speeds.
    """
    units = {"ahead": clock, "left": clock, "turn": 1 / clock, "height": clock**2}
    speeds = dict.fromkeys(units, share) | {"height": 1.0}
    given = dict.fromkeys(units, 0.0) | leg.orders
    return {name: given[name] * units[name] * speeds[name] for name in units}


def write_drive(
    path: Path, legs: Sequence[Leg], seed: int, clock: float, share: float
) -> list[tuple[float, float, dict[str, float]]]:
    """Writes the script of a drive.

    Returns:
        What is judged: begin and end [s], and the orders, of parts on the first ground.
    """
    rng, at, rows, judged, flat = np.random.default_rng(seed), 0.0, [], [], True
    for leg in legs:
        orders, begin = orders_of(leg, clock, share), at
        if leg.terrain is not None:
            rows += [(at, "terrain", leg.terrain), (at, "restart", 1)]
            begin, flat = at + 0.1, False
        rows += [(begin, name, value) for name, value in orders.items()]
        first = end = at + leg.duration
        if leg.pushed:
            first = at + leg.duration * rng.uniform(0.5, 0.8)
            rows.append((first, f"push {rng.choice(SIDES)}", 1))
        if flat and any(orders[name] for name in ("ahead", "left", "turn")):
            judged.append((at + SETTLES, first, orders))
        at = end
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADING, *rows])
    return judged


def velocity(run: Result, begin: float, end: float) -> dict[str, float]:
    """Mean velocity in the robot's own axes [m/s] and turning rate [rad/s]."""
    data = run.data.sel(time=slice(begin, end))
    yaw = np.unwrap(data.base_rpy.values[:, 2])
    took = np.diff(data.time.values)
    x, y = (np.diff(data.base_position.values[:, :2], axis=0) / took[:, None]).T
    middle = (yaw[1:] + yaw[:-1]) / 2
    c, s = np.cos(middle), np.sin(middle)
    turned = (yaw[-1] - yaw[0]) / (data.time.values[-1] - data.time.values[0])
    ahead, left = np.mean(c * x + s * y), np.mean(c * y - s * x)
    return {"ahead": float(ahead), "left": float(left), "turn": float(turned)}


def miss(run: Result, judged: Sequence[tuple[float, float, dict]]) -> float:
    """The largest deviation from the velocities that were asked for, as a share."""
    worst = 0.0
    reached = float(run.data.time[-1])
    for begin, end, orders in (one for one in judged if one[1] <= reached):
        found = velocity(run, begin, end)
        asked = {name: orders[name] for name in found if orders[name]}
        worst = max([worst, *(abs(found[n] / v - 1) for n, v in asked.items())])
    return worst


def drive_robot(
    model: str | Path, legs: Sequence[Leg], seeds: Sequence[int], folder: Path
) -> dict[str, float]:
    """Falls and velocities of a robot's drives.

    Raises:
        DrakebotsError: for a robot that cannot be driven.
    """
    first = Drive(model, headless=True, duration=sum(leg.duration for leg in legs))
    first = replace(first, controller=replace(first.controller, delay=8e-3))
    sized = Driven(first)
    sized.controller.stop()
    count = len({foot.body for foot in sized.model.feet})
    size = float(sized.clock), 1.0 if count == 4 else 0.5
    fallen, missed, solves = 0, [], []
    for seed in seeds:
        script = folder / f"{sized.model.name}-{seed}.csv"
        judged = write_drive(script, legs, seed, *size)
        run = drive(replace(first, model=sized.model, script=script))
        fallen += bool(run.metrics["falls"]) or not run.ok
        missed.append(miss(run, judged))
        solves.append(run.metrics["solve_ms"])
        said = f"{run.metrics['falls']} falls, velocities off by {missed[-1]:.0%}"
        if run.metrics["falls"]:
            said += f", fell first at {run.metrics['fell_at_s']:.1f} s"
        print(f"{sized.model.name}, drive {seed}: {said}", flush=True)
    return {
        "drives_fallen": figure(fallen, "1", len(seeds) // 10),
        "velocity_miss": figure(float(np.max(missed)), "1", 0.2),
        "solve_ms": figure(float(np.median(solves)), "ms"),
    }


def main(argv: Sequence[str] | None = None) -> dict:
    """Drives and prints."""
    measurement = Measurement(__doc__, quick="3 s of one drive")
    measurement.add_argument("robots", nargs="*", help="names, files and folders")
    measurement.add_argument("--packages", action="store_true", help="search packages")
    measurement.add_argument("--drives", type=int, default=10, help="number (10)")
    args = measurement.parse_args(argv)
    names = [word for word in args.robots if not os.path.exists(word)]
    words = [word for word in args.robots if os.path.exists(word)]
    robots = {name: name for name in names}
    if words or args.packages:
        found = find_files(words, packages=args.packages)
        robots |= {robot.name: robot.path for robot in found}
    robots = robots or {ROBOT: ROBOT}
    legs, seeds = (QUICK, range(1)) if args.quick else (DRIVE, range(args.drives))
    figures, failed = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, model in robots.items():
            try:
                figures[name] = drive_robot(model, legs, seeds, Path(folder))
            except DrakebotsError as error:
                failed[name] = str(error)
                print(f"{name}: {error}", flush=True)
    said = {
        "drives": len(seeds),
        "drive_s": sum(leg.duration for leg in legs),
        "failed": failed,
    }
    for key in ("drives_fallen", "velocity_miss", "solve_ms"):
        said[key] = {name: own[key] for name, own in figures.items()}
    return measurement.report(said)


if __name__ == "__main__":
    main()
