"""The folding-region experiment (paper, Fig. 17): smooth skin against folded skin.

python scripts/papers/quads/fold_experiment.py -o out/fold

2 s to 70 degrees at the beetle's ankle, 1.96 N m, P2 elements, 1 MPa. The paper: 20
degrees with a smooth skin, 70 with teeth 8 mm deep.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from fold_bending import FoldExperiment, turn_ankle, write_ankle
from matplotlib.figure import Figure

from drakebots import record
from drakebots.cli.output import one_line_errors
from drakebots.cli.progress import progress_bar
from drakebots.core.files import replacing
from drakebots.design import design_robot, smooth, table1_problem


def draw(path: Path, results: dict, limit: float) -> None:
    """Angle and torque over time of each skin."""
    figure = Figure(figsize=(10, 4), dpi=120)
    left, right = figure.subplots(1, 2)
    for name, result in results.items():
        data = result.data
        angle = np.degrees(data.position.values[:, -1])
        left.plot(data.time, angle, label=f"{name}: {angle[-1]:.0f} degrees")
        right.plot(data.time, data.torque.values[:, 0], label=name)
    left.set(xlabel="time [s]", ylabel="angle of the ankle [degrees]")
    right.set(xlabel="time [s]", ylabel="torque of the servo [N m]")
    for sign in (-1, 1):
        right.axhline(sign * limit, color="0.6", lw=0.8)
    left.legend()
    with replacing(path) as part:
        figure.savefig(part, format="png")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("out/fold"))
    parser.add_argument("--angle", type=float, default=70.0, help="[degrees]")
    parser.add_argument("--duration", type=float, default=2.0, help="[s]")
    parser.add_argument("--vertices", type=int, help="of the skin; the robot's")
    parser.add_argument("--time-step", type=float, default=1e-2, help="[s]")
    parser.add_argument("--robot", default="beetle")
    parser.add_argument(
        "--youngs-modulus",
        type=float,
        default=1e6,
        help="[Pa] (default 1e6, where folds decide; the models have 7e5)",
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    experiment = FoldExperiment(
        angle=float(np.radians(args.angle)),
        duration=args.duration,
        time_step=args.time_step,
    )
    folded = table1_problem(args.robot)
    if args.vertices is not None:
        skin = replace(folded.skin, vertices=args.vertices)
        folded = replace(folded, skin=skin)
    material = folded.skin.material.with_modulus(args.youngs_modulus)
    folded = replace(folded, skin=replace(folded.skin, material=material))
    results = {}
    for name, problem in (("smooth", smooth(folded)), ("folded", folded)):
        design = design_robot(problem)
        path = write_ankle(design, args.output / name)
        with progress_bar(name) as progress:
            results[name] = turn_ankle(path, experiment, progress=progress)
        results[name].save(args.output / f"{name}.nc")
        record(results[name]).save(args.output / f"{name}.html")
        reached = results[name].metrics["angle_reached_deg"]
        torque = results[name].metrics["largest_torque_N_m"]
        print(
            f"{name}: {results[name].message}; reaches {reached:.1f} of "
            f"{args.angle:g} degrees, torque {torque:.2f} N m",
            flush=True,
        )
    draw(args.output / "fold.png", results, design.skeleton.hinges[0].servo.effort)
    print(args.output / "fold.png")
    if args.json:
        reached = {k: r.metrics["angle_reached_deg"] for k, r in results.items()}
        print(json.dumps(reached))
    return 0


if __name__ == "__main__":
    with one_line_errors("fold_experiment"):
        sys.exit(main())
