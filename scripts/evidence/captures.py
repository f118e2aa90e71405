"""A dog's trot and pace on skinned quad-robots: from motion capture to a tracked plan.

python scripts/evidence/captures.py ../shared/data -o captures.png     # half an hour
python scripts/evidence/captures.py --only monster,trot,0.45,0.5
python scripts/evidence/captures.py --quick    # the footfall only, nothing is planned

The pack real/dog_mocap has one stride each of a real dog (60 Hz). Each row puts one on
a robot at a speed and a mean duty factor (`-` for the animal's own), plans it with the
skin, and tracks the plan open loop in the full skin. `flight` is the share of the
stride in which no foot is on the ground by the capture, and in which the feet of the
plan and of the run carry less than a tenth of the weight.

JSON: trot_from_capture, pace_from_capture, flight_share, rows.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from packs import add_pack, pack_folder

from drakebots.cli.output import one_line_errors, print_rows
from drakebots.core.units import GRAVITY
from drakebots.plots import save
from drakebots.results import Result
from drakebots.robots import quads
from drakebots.robots.quads.motion import MotionInput, read_motion
from drakebots.robots.quads.robot import load_planned

sys.path.append(str(Path(__file__).parents[1] / "bench"))
from measurement import Measurement, figure

PACK = "dog_mocap"
FILES = {gait: f"{gait}_joint_positions.csv" for gait in ("trot", "pace")}
LOADED = 0.1
"""Share of the weight that feet together carry at least when they are down."""


@dataclass(frozen=True)
class Case:
    """A stride on a robot; the duty factor is None for the animal's."""

    robot: str
    gait: str
    speed: float
    duty: float | None = None

    @classmethod
    def read(cls, text: str) -> Case:
        """Of "robot,gait,speed,duty"."""
        robot, gait, speed, duty = text.split(",")
        return cls(robot, gait, float(speed), None if duty == "-" else float(duty))


CASES = (
    Case("monster", "trot", 0.45),
    Case("monster", "trot", 0.45, 0.48),
    Case("monster", "trot", 0.45, 0.54),
    Case("beetle", "trot", 0.45),
    Case("beetle", "trot", 0.45, 0.48),
    Case("monster", "pace", 0.45),
)


def load_share(result: Result, force: str, mass: float) -> np.ndarray:
    """Share of the weight that all feet carry (T,), by the forces of their patches."""
    return result.data[force].values[..., 2].sum(axis=1) / (mass * GRAVITY)


def measured(case: Case, motion: MotionInput, folder: Path) -> tuple[dict, list]:
    """The row of a case that is planned and tracked, and the loads over time."""
    problem = quads.Problem(case.robot, motion=motion)
    plan = quads.plan(problem)
    run = quads.track(quads.Tracking(plan, model=problem.model))
    name = f"{case.robot}_{case.gait}_{case.speed}_{case.duty}"
    for kind, result in (("plan", plan), ("track", run)):
        result.save(folder / f"{name}_{kind}.nc")
    mass = float(plan.metrics["mass_kg"])
    loads = [load_share(plan, "contact_force", mass)]
    loads.append(load_share(run, "patch_force", mass))
    row = {
        "plan": str(plan.verdict),
        "difference": float(plan.metrics["difference"]),
        "planned_m_s": float(plan.metrics["speed_m_s"]),
        "tracked_m_s": float(run.metrics["speed_m_s"]),
        "distance_share": float(run.metrics["speed_m_s"]) / motion.speed,
        "tilt_deg": float(run.metrics["tilt_off_plan_deg"]),
        "flight_planned": float((loads[0] < LOADED).mean()),
        "flight_tracked": float((loads[1] < LOADED).mean()),
    }
    return row, loads


def asked(case: Case, motion: MotionInput) -> dict:
    """What the capture asks of a robot."""
    contact = motion.footfall.contact[:-1]
    return {
        "robot": case.robot,
        "gait": case.gait,
        "asked_m_s": motion.speed,
        "duty": float(contact.mean()),
        "period_s": motion.duration,
        "lift_mm": float(1e3 * motion.feet[..., 2].max()),
        "flight": float((~contact.any(axis=1)).mean()),
    }


def plot(path: Path, motions: Sequence[MotionInput], rows, loads) -> Path:
    """Footfall and load of the cases over their strides, three beside each other."""
    lines = -(-len(motions) // 3)
    figure = Figure(figsize=(10, 3.8 * lines), layout="constrained")
    axes = figure.subplots(2 * lines, 3, squeeze=False)
    tops, belows = axes[::2].ravel(), axes[1::2].ravel()
    for unused in (*tops[len(motions) :], *belows[len(motions) :]):
        unused.axis("off")
    cases = zip(tops, belows, motions, rows, loads)
    for top, below, motion, row, (planned, run) in cases:
        top.sharex(below)
        for k, foot in enumerate(motion.footfall.feet):
            for start, stop in motion.footfall.bars(foot):
                width = (stop - start) * motion.dt
                top.barh(k, width, left=start * motion.dt, color=f"C{k}", height=0.7)
        top.set_yticks(range(len(motion.footfall.feet)), motion.footfall.feet)
        duty = f"{row['robot']}, {row['gait']}, duty {row['duty']:.2f}"
        top.set_title(f"{duty}\n{row['asked_m_s']:.2f} m/s", fontsize=9)
        times = motion.dt * np.arange(len(planned))
        below.plot(times, planned, label="planned")
        below.plot(motion.dt * np.arange(len(run)), run, label="tracked")
        below.axhline(LOADED, color="0.7", lw=0.8)
        below.set_xlabel("time [s]")
    belows[0].set_ylabel("load of all feet [weight]")
    belows[0].legend(fontsize=8)
    return save(figure, path)


def main(argv: Sequence[str] | None = None) -> dict:
    """Plans and tracks; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="the footfall only")
    add_pack(parser, PACK)
    parser.add_argument("--only", type=Case.read, action="append", help="a row")
    parser.add_argument("-o", "--output", type=Path, help="picture to write")
    args = parser.parse_args(argv)
    folder = pack_folder(PACK, args.data, FILES.values())
    cases, rows, motions, loads = args.only or CASES, [], [], []
    robots = {case.robot: load_planned(case.robot).quad for case in cases}
    for case in cases:
        options = {} if case.duty is None else {"duty": case.duty}
        quad, file = robots[case.robot], folder / FILES[case.gait]
        motions.append(read_motion(file, quad, speed=case.speed, **options))
        rows.append(asked(case, motions[-1]))
        if not args.quick:
            place = args.output.parent if args.output else Path(".")
            more, load = measured(case, motions[-1], place)
            rows[-1] |= more
            loads.append(load)
            print_rows("so far", rows[-1:])
    print_rows("a dog's strides on skinned robots", rows)
    if args.output and loads:
        plot(args.output, motions, rows, loads)
    shares = {
        gait: [row.get("distance_share") for row in rows if row["gait"] == gait]
        for gait in FILES
    }
    return parser.report(
        {
            **{f"{gait}_from_capture": figure(own) for gait, own in shares.items()},
            "flight_share": figure([row["flight"] for row in rows]),
            "rows": rows,
        }
    )


if __name__ == "__main__":
    with one_line_errors("captures"):
        main()
