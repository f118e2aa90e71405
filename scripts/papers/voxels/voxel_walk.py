"""Stride of the voxel robot in a cycle: over friction, step size and timing.

python scripts/papers/voxels/voxel_walk.py                  # some five minutes
python scripts/papers/voxels/voxel_walk.py --quick          # one walk at 2 ms
python scripts/papers/voxels/voxel_walk.py --plot walk.png

JSON: walks.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.cli.output import one_line_errors, print_table
from drakebots.core.convert import as_yaml
from drakebots.plots import check_ending, save
from drakebots.results import Result
from drakebots.robots.voxels import Feet, Simulation, draw_markers, simulate

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

FRICTIONS = (0.15, 0.3, 0.5, 0.8, 1.0)
STEPS = (3e-3, 2e-3, 1e-3, 5e-4)

VARIATIONS = {
    "default": {},
    "default, 2 ms": {"time_step": 2e-3},
    "default, 0.5 ms": {"time_step": 5e-4},
    "reverse": {"gait": "reverse"},
    "stroke 2.5 mm": {"stroke": 2.5e-3},
    "0.25 s a pose": {"pose_time": 0.25},
    "0.5 s a pose": {"pose_time": 0.5},
    "2 s a pose": {"pose_time": 2.0},
    "front 0.8, back 0.15": {"feet": Feet(back=0.15)},
    "front 1.2, back 0.1": {"feet": Feet(1.2, 0.1)},
    "front 0.3, back 0.8": {"feet": Feet(0.3, 0.8)},
    "no joint damping": {"joint_damping": 0.0},
    "joint damping x 5": {"joint_damping": 1e-2},
    "point back feet": {"feet": Feet(points=True)},
    "point back feet, 0.5 s a pose": {"feet": Feet(points=True), "pose_time": 0.5},
}
"""Walks of 1 ms steps that differ from the default ones in one thing."""

SHOWN = (
    *("travel_mm_per_cycle", "travel_spread_mm", "left_mm_per_cycle"),
    *("turn_deg_per_cycle", "marker_slope_vs_pom", "marker_max_error_mm"),
    *("front_load_share", "tipped_over", "real_time_factor"),
)


def cases(quick: bool) -> dict[str, dict]:
    """The options of each walk, by a name."""
    if quick:
        return {"default, 2 ms": {"time_step": 2e-3, "cycles": 2}}
    grid = {
        f"mu {mu:g}, {1e3 * step:g} ms": {
            "feet": Feet(mu, mu),
            "time_step": step,
        }
        for mu in FRICTIONS
        for step in STEPS
    }
    return grid | VARIATIONS


def plot_walks(path: str | Path, rows: Sequence[dict], result: Result) -> Path:
    """Travel per cycle over friction, a line per step size, and the markers' paths.

    Args:
        path: file to write.
        rows: rows of :func:`main`, with `options` and `travel_mm_per_cycle`.
        result: a walk, whose markers are drawn.

    Raises:
        InvalidInput: for another ending of the file.
    """
    path = check_ending(path)
    lines = _lines(rows)
    wide = 10 if lines else 5
    figure = Figure(figsize=(wide, 4.4), layout="constrained")
    *travel, markers = np.atleast_1d(figure.subplots(1, 2 if lines else 1))
    if lines:
        _draw_travel(travel[0], lines)
    draw_markers(markers, result)
    return save(figure, path)


def _lines(rows: Sequence[dict]) -> dict[float, list]:
    """(friction, travel) of the walks with one friction for all feet, by step."""
    lines: dict[float, list] = {}
    for row in rows:
        options = row["options"]
        feet, step = options.get("feet"), options.get("time_step")
        if feet is None or step is None or feet["front"] != feet["back"]:
            continue
        lines.setdefault(step, []).append((feet["front"], row["travel_mm_per_cycle"]))
    return lines


def _draw_travel(axes, lines: dict[float, list]) -> None:
    for k, (step, points) in enumerate(sorted(lines.items())):
        shade = str(0.75 * k / max(len(lines) - 1, 1))
        mu, mm = np.array(points, float).T
        axes.plot(mu, mm, "o-", color=shade, label=f"step {1e3 * step:g} ms")
    axes.axhline(3.9, color="#c2571a", ls="--", lw=1)
    axes.annotate(
        "experiment 3.9 mm", (0.02, 3.9), (0, 3), textcoords="offset points",
        xycoords=("axes fraction", "data"), color="#c2571a",
    )  # fmt: skip
    axes.axhline(0, color="0.7", lw=0.8)
    axes.set(xlabel="friction of all feet", ylabel="travel [mm a cycle]")
    axes.legend(frameon=False)


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the walks; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="one short walk")
    parser.add_argument("--plot", type=Path, default=None, help="picture to write")
    args = parser.parse_args(argv)
    rows, results = [], {}
    for name, options in cases(args.quick).items():
        result = results[name] = simulate(Simulation(**options))
        found = {key: result.metrics.get(key) for key in SHOWN}
        said = {key: as_yaml(value) for key, value in options.items()}
        rows.append({"case": name, "options": said, **found})
    table = {r["case"]: {k: r[k] for k in SHOWN} for r in rows}
    print_table("Voxel robot, travel per cycle", table)
    if args.plot is not None:
        plot_walks(args.plot, rows, next(iter(results.values())))
    return parser.report({"walks": rows})


if __name__ == "__main__":
    with one_line_errors("voxel_walk"):
        main()
