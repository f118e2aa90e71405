"""Seconds of each stage from a body to a skinned robot.

python scripts/bench/design.py                       # 5k, 14k, 30k vertices
python scripts/bench/design.py --quick               # 3k only
python scripts/bench/design.py --animals             # 12 surfaces of animals.py
python scripts/bench/design.py --animals dog pig -o out/animals
python scripts/bench/design.py --animals --stride 20  # they trot; joints turned 20 deg
python scripts/bench/design.py --animals --spread 25  # left legs spread; --flex: lifted

The last line is JSON: surface_to_robot_s of Table 1's 14k (or the last measured), and
the number of different silicones in the models. Of animals it is how many become
robots that stand for 2 s by `drakebots design X.obj`, without further words, and the
median of the processor time that the command takes, pictures included; `with_standing`
adds the 2 s of simulation that check it.

JSON: surface_to_robot_s, runs, densities.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import numpy as np
from animals import ANIMALS, STANDING, Pose, add_pose, pose_of, write_animal
from measurement import Measurement, figure

from drakebots import cli
from drakebots.core.errors import DrakebotsError
from drakebots.design import JOINTS, STAGES, design_robot, table1_problem
from drakebots.skin import SkinSimulation, simulate_skinned
from drakebots.skin.file import load_skinned

SUNK = 0.02
"""Largest sinking of a robot that stands [m]."""

SMOOTH = 10_000
"""Number of vertices below which edges are longer than teeth, which are left out."""


def measure(robot: str, vertices: int) -> dict:
    """The report of one design, with its processor time."""
    problem = table1_problem(robot)
    skin = replace(problem.skin, vertices=vertices)
    if vertices < SMOOTH:
        skin = replace(skin, folds=replace(skin.folds, depth=0.0))
    began = time.process_time()
    report = design_robot(replace(problem, skin=skin)).report()
    return report | {"processor_s": time.process_time() - began}


def densities() -> int:
    """Number of different silicones in the models of skinned robots."""
    return len({load_skinned(name).skin.material for name in (*JOINTS, "skinned_leg")})


def measure_animal(name: str, folder: Path, pose: Pose) -> dict:
    """One animal through the command line, then 2 s on its servos."""
    path = write_animal(name, folder, pose)
    with open(path) as file:
        triangles = sum(line.startswith("f ") for line in file)
    row = {"name": name, "triangles": triangles, "stands": False}
    out, began = folder / name, time.process_time()
    said, failed = io.StringIO(), io.StringIO()
    with redirect_stdout(said), redirect_stderr(failed):
        status = cli.main(["design", str(path), "-o", str(out), "--json"])
    row["design_cpu_s"] = time.process_time() - began
    if status != 0:
        row["why"] = failed.getvalue().strip().splitlines()[-1]
        return row | {"cpu_s": row["design_cpu_s"]}
    report = json.loads(said.getvalue().strip().splitlines()[-1])
    try:
        result = simulate_skinned(
            SkinSimulation(
                model=str(out / f"{name}.sdf"),
                duration=2.0,
                time_step=0.01,  # a thin tail vibrates from step to step at 20 ms
                motion="hold",
                collisions="none",
            )
        )
    except DrakebotsError as error:
        return row | {"why": str(error), "cpu_s": time.process_time() - began}
    sunk = float(np.ptp(result.data.com.values[:, 2]))
    return row | {
        "stands": bool(result.ok and sunk < SUNK),
        "why": "" if result.ok else result.message,
        "sunk_m": sunk,
        "largest_torque_N_m": result.metrics["largest_torque_N_m"],
        "cpu_s": time.process_time() - began,
        "joints": report["joints"],
        "mass_kg": report["mass_kg"],
        "size_m": report["size_m"],
        "notes": report["notes"],
    }


def measure_animals(names: Sequence[str], folder: Path, pose: Pose) -> dict:
    """All animals, a row each; the figures of the last line."""
    print(
        "| animal | triangles | joints | size [m] | mass [kg] | sinks [mm] "
        "| torque [N m] | stands | design [s] | all [s] | |"
    )
    print("| --- " * 11 + "|")
    rows = []
    for name in names:
        row = measure_animal(name, folder, pose)
        rows.append(row)
        figures = (
            f"{row['joints']} | {' x '.join(f'{s:.2f}' for s in row['size_m'])} "
            f"| {row['mass_kg']:.1f} | {1e3 * row['sunk_m']:.1f} "
            f"| {row['largest_torque_N_m']:.2f}"
            if "sunk_m" in row
            else " |  |  |  | "
        )
        stands = "yes" if row["stands"] else "no"
        seconds = f"{row['design_cpu_s']:.1f} | {row['cpu_s']:.1f}"
        print(
            f"| {name} | {row['triangles']} | {figures} | {stands} "
            f"| {seconds} | {row.get('why', '')} |",
            flush=True,
        )
    kind = "" if pose == STANDING else "striding_" if pose.stride else "posed_"
    return {
        f"{kind}animals_of_12": figure(
            sum(row["stands"] for row in rows), "1", 12, tried=len(rows)
        ),
        "animal_median_cpu_s": figure(
            float(np.median([row["design_cpu_s"] for row in rows])),
            "s",
            60,
            with_standing=float(np.median([row["cpu_s"] for row in rows])),
        ),
        "animals": rows,
    }


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="3000 vertices only")
    parser.add_argument("--robot", default="beetle", help="robot of Table 1")
    parser.add_argument("--vertices", type=int, nargs="*", default=[5000, 14000, 30000])
    parser.add_argument(
        "--animals", nargs="*", help="surfaces of animals: all, or some"
    )
    add_pose(parser)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/animals"))
    args = parser.parse_args(argv)
    if args.animals is not None:
        names = args.animals or list(ANIMALS)
        result = measure_animals(names, args.output, pose_of(args))
        return parser.report(result)
    counts = [3000] if args.quick else args.vertices
    if not args.quick:
        # Compiles the kernels, which is not measured.
        measure(args.robot, 3000)
    print("| skin vertices | " + " | ".join(STAGES) + " | whole [s] | processor [s] |")
    print("| --- " * (len(STAGES) + 3) + "|")
    reports = []
    for vertices in counts:
        report = measure(args.robot, vertices)
        reports.append(report)
        stages = " | ".join(f"{report['seconds'][s]:.2f}" for s in STAGES)
        print(
            f"| {report['skin_vertices']} | {stages} "
            f"| {report['surface_to_robot_s']:.2f} | {report['processor_s']:.2f} |",
            flush=True,
        )
    chosen = min(reports, key=lambda r: abs(r["skin_vertices"] - 14000))
    result = {
        "surface_to_robot_s": figure(chosen["surface_to_robot_s"], "s", 120),
        "runs": [
            {
                key: r[key]
                for key in ("skin_vertices", "seconds", "processor_s", "notes")
            }
            for r in reports
        ],
        "densities": figure(densities(), "1", 1),
    }
    return parser.report(result)


if __name__ == "__main__":
    main()
