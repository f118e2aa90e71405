"""The robot's stride as a distribution over what is not published of its walk.

python scripts/papers/voxels/voxel_spread.py -o out/spread.csv --plot out/spread.png
python scripts/papers/voxels/voxel_spread.py          # reads the table of this folder
python scripts/papers/voxels/voxel_spread.py --quick

Known are the voxels' mass, the mass of a core with its actuators, and the stroke: the
recorded markers move by 2.3 to 2.7 mm to either side, not by the commanded 5 mm. Not
known are

    front_mass          parts on each front voxel       0 to 10 g
    friction_front      of the "sticky" front feet      0.15 to 0.8
    friction_back       of the printed back feet        0.15 to 0.8
    joint_damping       of the ball joints              2e-4 to 1e-2 N m s/rad
    heel_and_toe        half the length of a back foot  10 to 30 mm

and the time of a pose, for which all walks take 1 s. 200 points of a Latin hypercube
are walked for two cycles at 2 ms, of which the second counts. The table is written
after each walk, and a run goes on where the one before it ended. How much an unknown
decides is what a quadratic in all of them no longer foretells when it is left out.

JSON: walks, tipped_over, stride_mm_p10_p50_p90, stride_mm_least_and_most,
forward_share, percentile_of_the_measured, variance_foretold, variance_lost_without.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import qmc

from drakebots.cli.output import one_line_errors, print_table
from drakebots.cli.progress import progress_bar
from drakebots.core.errors import FileProblem
from drakebots.core.files import replacing
from drakebots.plots import check_ending, save
from drakebots.robots.voxels import Feet, Simulation, simulate

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

UNKNOWN = {
    "front_mass": (0.0, 10e-3, "g", 1e3),
    "friction_front": (0.15, 0.8, "", 1.0),
    "friction_back": (0.15, 0.8, "", 1.0),
    "joint_damping": (2e-4, 1e-2, "mN m s/rad", 1e3),
    "heel_and_toe": (10e-3, 30e-3, "mm", 1e3),
    "stroke": (2.3e-3, 2.7e-3, "mm", 1e3),
}
"""Fields of the simulation: lowest and highest value in SI; unit of the figure."""

LOGARITHMIC = ("joint_damping",)
MEASURED = 3.9
"""The experiment's stride [mm a cycle]."""
TABLE = Path(__file__).with_name("spread.csv")
"""The walks that docs/evidence/voxel.md tells of."""
COLUMNS = (*UNKNOWN, "stride_mm", "turn_deg", "front_load_share", "tipped_over")


def samples(count: int, seed: int = 0) -> list[dict[str, float]]:
    """Points of a Latin hypercube over the unknowns; logarithms where they span
    decades."""
    unit = qmc.LatinHypercube(len(UNKNOWN), seed=seed).random(count)
    found = []
    for row in unit:
        point = {}
        for share, (name, (low, high, *_)) in zip(row, UNKNOWN.items()):
            value = low + share * (high - low)
            if name in LOGARITHMIC:
                value = low * (high / low) ** share
            point[name] = float(f"{value:.4g}")
        found.append(point)
    return found


def simulation(point: dict, **options) -> Simulation:
    """The walk of one sample."""
    names = {"friction_front": "front", "friction_back": "back"}
    names["heel_and_toe"] = "heel_and_toe"
    feet = Feet(**{names[n]: value for n, value in point.items() if n in names})
    rest = {n: value for n, value in point.items() if n not in names}
    return Simulation(feet=feet, **(options | rest))


def walk(point: dict, time_step: float = 2e-3, **options) -> dict:
    """The stride of one sample: the second of two cycles."""
    options = {"cycles": 2, "log_period": 0.1, "time_step": time_step} | options
    metrics = simulate(simulation(point, **options)).metrics
    return point | {
        "stride_mm": round(metrics.get("travel_mm_per_cycle", np.nan), 3),
        "turn_deg": round(metrics.get("turn_deg_per_cycle", np.nan), 2),
        "front_load_share": round(metrics["front_load_share"], 4),
        "tipped_over": int(metrics["tipped_over"]),
    }


def read(path: Path) -> list[dict[str, float]]:
    """The rows of a table of walks.

    Raises:
        FileProblem: for a file without these columns.
    """
    try:
        with Path(path).open() as text:
            rows = list(csv.DictReader(text))
        return [{name: float(row[name]) for name in COLUMNS} for row in rows]
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise FileProblem(path, f"is no table of walks: {error!r}") from None


def walked(points: list[dict], path: Path, workers: int) -> list[dict]:
    """Walks what the table lacks, and writes it in the samples' order."""
    found = {}
    if path.exists():
        rows = {tuple(row[n] for n in UNKNOWN): row for row in read(path)}
        found = {k: rows.get(tuple(p.values())) for k, p in enumerate(points)}
        found = {k: row for k, row in found.items() if row is not None}
    missing = [k for k in range(len(points)) if k not in found]
    with progress_bar("walks") as progress, ProcessPoolExecutor(workers) as pool:
        jobs = {pool.submit(walk, points[k]): k for k in missing}
        for job in as_completed(jobs):
            found[jobs[job]] = job.result()
            with replacing(path) as part, part.open("w", newline="") as text:
                rows = csv.DictWriter(text, COLUMNS, lineterminator="\n")
                rows.writeheader()
                rows.writerows(found[k] for k in sorted(found))
            progress("walks", len(found), len(points))
    return [found[k] for k in sorted(found)]


def predicted(rows: list[dict], without: str = "") -> float:
    """Share of the strides' variance that a quadratic in the unknowns foretells.

    Each walk is predicted from all others (leave one out), so that chance earns nothing
    and too many terms cost.

    Args:
        rows: walks.
        without: an unknown that is left out.
    """
    columns = [
        np.log([row[name] for row in rows])
        if name in LOGARITHMIC
        else np.array([row[name] for row in rows])
        for name in UNKNOWN
        if name != without
    ]
    x = [np.ones(len(rows)), *((c - c.mean()) / c.std() for c in columns)]
    basis = np.array([x[i] * x[k] for i in range(len(x)) for k in range(i, len(x))]).T
    y = np.array([row["stride_mm"] for row in rows])
    hat = basis @ np.linalg.pinv(basis)
    missed = (y - hat @ y) / (1 - np.diag(hat))
    return float(1 - (missed**2).mean() / y.var())


def facts_of(rows: list[dict]) -> dict:
    """Percentiles of the stride, where the measured one lies, and what decides."""
    upright = [row for row in rows if not row["tipped_over"]]
    strides = np.array([row["stride_mm"] for row in upright])
    whole = predicted(upright)
    lost = {name: whole - predicted(upright, name) for name in UNKNOWN}
    return {
        "walks": len(rows),
        "tipped_over": len(rows) - len(upright),
        "stride_mm_p10_p50_p90": np.percentile(strides, (10, 50, 90)).tolist(),
        "stride_mm_least_and_most": [float(strides.min()), float(strides.max())],
        "forward_share": float((strides > 0).mean()),
        "percentile_of_the_measured": float(100 * (strides < MEASURED).mean()),
        "variance_foretold": whole,
        "variance_lost_without": dict(sorted(lost.items(), key=lambda s: -s[1])),
    }


def plot_spread(rows: list[dict], path: str | Path) -> Path:
    """Histogram of the strides, and the stride over each unknown.

    Raises:
        InvalidInput: for another ending of the file.
    """
    path = check_ending(path)
    facts = facts_of(rows)
    figure = Figure(figsize=(13, 6), layout="constrained")
    grid = figure.add_gridspec(2, 4, width_ratios=[1.5, 1, 1, 1])
    strides = np.array([row["stride_mm"] for row in rows])
    axes = figure.add_subplot(grid[:, 0])
    axes.hist(strides, 24, orientation="horizontal", color="#8fa6c4")
    low, middle, high = facts["stride_mm_p10_p50_p90"]
    for value in (low, middle, high):
        axes.axhline(value, color="#24466f", lw=1, ls=":")
    axes.axhline(MEASURED, color="#c2571a", ls="--", lw=1.2)
    axes.set(xlabel="walks", ylabel="stride [mm a cycle]")
    axes.set_title(
        f"{len(rows)} walks: 10, 50, 90 % at {low:.1f}, {middle:.1f}, {high:.1f} mm;\n"
        f"measured {MEASURED} mm (dashed)", fontsize=11,
    )  # fmt: skip
    for k, name in enumerate(facts["variance_lost_without"]):
        *_, unit, factor = UNKNOWN[name]
        axes = figure.add_subplot(grid[k // 3, 1 + k % 3])
        axes.plot([factor * row[name] for row in rows], strides, ".", color="#24466f")
        axes.axhline(MEASURED, color="#c2571a", ls="--", lw=1)
        axes.set_xlabel(name.replace("_", " ") + (f" [{unit}]" if unit else ""))
        if name in LOGARITHMIC:
            axes.set_xscale("log")
        share = facts["variance_lost_without"][name]
        axes.set_title(f"without it {max(share, 0):.0%} less predicted", fontsize=10)
    return save(figure, path)


def main(argv: Sequence[str] | None = None) -> dict:
    """Walks or reads; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="walk two of the table again")
    parser.add_argument("-o", "--output", type=Path, help="table to write or go on")
    parser.add_argument("--table", type=Path, default=TABLE, help="read, do not walk")
    parser.add_argument("--plot", type=Path, help="picture of the distribution")
    parser.add_argument("--walks", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args(argv)
    if args.output is None:
        rows = read(args.table)
    else:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        rows = walked(samples(args.walks), args.output, args.workers)
    facts = facts_of(rows)
    if args.quick:
        again = [walk({name: row[name] for name in UNKNOWN}) for row in rows[:2]]
        both = zip(rows, again)
        facts["changed_mm"] = max(abs(a["stride_mm"] - b["stride_mm"]) for a, b in both)
    if args.plot is not None:
        args.plot.parent.mkdir(parents=True, exist_ok=True)
        facts["plot"] = str(plot_spread(rows, args.plot))
    print_table("voxel robot: strides over what is unknown", facts)
    return parser.report(facts)


if __name__ == "__main__":
    with one_line_errors("voxel_spread"):
        main()
