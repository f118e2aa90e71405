"""HAMR-VI's nine gaits, planned and executed, beside the figures of the RSS 2018 paper.

2, 10 and 30 Hz on Teflon, card and sandpaper: planned by contact-implicit optimization,
then executed for 15 cycles under the leg estimator and controller.

    python scripts/papers/hamr/hamr_gaits.py -o out
    python scripts/papers/hamr/hamr_gaits.py --refined -o refined
    python scripts/papers/hamr/hamr_gaits.py --quick

With --refined nothing is planned: the gaits that come with drakebots are executed.
Strides are distributions over 20 starts whose base differs by up to 1e-9 m and 1e-9
rad: impacts amplify such differences, and those of another processor's rounding. Runs
are kept in the folder, and a second call goes on where the first one ended. On one core
a start takes some 10 s at 30 Hz, 30 s at 10 Hz and 140 s at 2 Hz.

JSON: gaits.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from drakebots.cli.output import one_line_errors
from drakebots.core.files import check_output
from drakebots.plots import write_figure
from drakebots.results import Result, load_result
from drakebots.robots.hamr import (
    GaitProblem,
    Tracking,
    plan,
    plot_track,
    stored_plan,
)
from drakebots.robots.hamr.plan import store_plan

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from hamr_starts import STARTS, spread, spread_text, starts
from measurement import Measurement

FREQUENCIES = (2.0, 10.0, 30.0)
SURFACES = ("teflon", "card", "sandpaper")
PAPER = {2.0: 9.77, 10.0: 8.98, 30.0: 4.24}
"""Executed stride in mm a cycle, averaged over surfaces (RSS 2018, Fig. 7)."""


GOALS = {(30.0, "teflon"): 5e-3}
"""Strides [m] where 10 mm is no goal: at 30 Hz on Teflon no hard contact was
found that makes it (docs/evidence/hamr.md)."""


def run(
    frequencies=FREQUENCIES,
    surfaces=SURFACES,
    *,
    folder: Path | None = None,
    cycles: int = 15,
    contacts=("sap", "stepping"),
    knots: int = GaitProblem.knots,
    refined: bool = False,
    count: int = STARTS,
    workers: int | None = None,
    say=lambda line: None,
) -> list[dict]:
    """Plans every gait and executes it from a count of starts; one row each."""
    rows = []
    for frequency in frequencies:
        for surface in surfaces:
            name = f"{frequency:g}hz_{surface}"
            if refined:
                planned = stored_plan(name)
            else:
                goal = GOALS.get((frequency, surface), GaitProblem.stride)
                planned = plan(
                    GaitProblem(
                        frequency=frequency, surface=surface, stride=goal, knots=knots
                    )
                )
            row = _row(planned)
            rows.append(row)
            if folder is not None:
                planned.save(folder / f"plan_{name}.nc")
                store_plan(planned, folder / f"{name}.npz")
            for contact in contacts:
                posed = Tracking(planned, cycles=cycles, contact=contact)
                out = None if folder is None else folder / f"{name}_{contact}"
                row |= _executed(posed, out, count, workers)
            say(
                f"{frequency:g} Hz {surface}: {row['verdict']}, "
                f"{row['seconds']:.0f} s, planned {row['stride_mm']:.2f} mm, executed "
                f"{spread_text(row.get('executed_stride_mm'))} mm"
            )
    return rows


def _row(planned: Result) -> dict:
    """A plan's own figures."""
    m, options = planned.metrics, planned.provenance["options"]
    frequency, surface = m["frequency_hz"], m["surface"]
    return {
        "gait": m["gait"],
        "frequency_hz": frequency,
        "surface": surface,
        "seconds": sum(planned.timings.values()),
        "verdict": str(planned.verdict),
        "message": planned.message,
        "goal_mm": 1e3 * options["stride"],
        "timings_s": dict(planned.timings),
        "iterations": m["iterations"],
        "stride_mm": m["stride_mm"],
        "slip": m["slip"],
        "complementarity_max": m["complementarity_max"],
        "del_residual_max": m["del_residual_max"],
        "momentum_defect": m["momentum_defect"],
        "voltage_min": m["voltage_min"],
        "voltage_max": m["voltage_max"],
        "flexure_max_deg": m["flexure_max_deg"],
        "planned_clearance_min_mm": m["clearance_min_mm"],
        "planned_loaded_slip": m["loaded_slip"],
        "paper_executed_stride_mm": PAPER.get(frequency),
    }


def _executed(
    posed: Tracking, out: Path | None, count: int, workers: int | None
) -> dict:
    """Figures of a plan's executions: strides as distributions, others as means.

    Args:
        posed: one execution.
        out: folder of the runs, beside which a picture of the first is written.
        count, workers: number of starts and of processes.
    """
    runs = starts(posed, count, out=out, workers=workers).data
    key = "executed" if posed.contact == "sap" else "stepped"
    names = {
        "stride_mm": "stride_mm_per_cycle",
        "settled_stride_mm": "settled_stride_mm",
    }
    row: dict = {f"{key}_{k}": spread(runs[n].values) for k, n in names.items()}
    means = ("stride_deviation_mm", "slip", "loaded_slip", "clearance_min_mm")
    more = ("yaw_deg_per_cycle", "leg_error_x_mm", "leg_error_z_mm")
    row |= {f"{key}_{n}": float(runs[n].mean()) for n in (*means, *more)}
    first = runs.file.values[0]
    if out is not None and first:
        plot_track(load_result(out / first), out.with_suffix(".png"))
    return row


def table(rows: list[dict]) -> Table:
    """Ours beside the paper's."""
    out = Table(title="HAMR-VI: planned and executed strides [mm a cycle]")
    for name in (
        *("Hz", "surface", "plan", "s", "planned", "slip", "executed", "settled"),
        *("slip", "loaded slip", "yaw", "clearance"),
        *("own stepping", "paper executed", "compl.", "DEL"),
    ):
        out.add_column(name, justify="right")
    for r in rows:
        cells = [
            f"{r['frequency_hz']:g}",
            r["surface"],
            r["verdict"],
            f"{r['seconds']:.0f}",
            f"{r['stride_mm']:.2f}",
            f"{r['slip']:.3f}",
            spread_text(r.get("executed_stride_mm")),
            spread_text(r.get("executed_settled_stride_mm")),
            *(
                _number(r.get(f"executed_{name}"))
                for name in (
                    *("slip", "loaded_slip"),
                    *("yaw_deg_per_cycle", "clearance_min_mm"),
                )
            ),
            spread_text(r.get("stepped_stride_mm")),
            _number(r["paper_executed_stride_mm"]),
            f"{r['complementarity_max']:.0e}",
            f"{r['del_residual_max']:.0e}",
        ]
        out.add_row(*cells)
    return out


def _number(value) -> str:
    return "-" if value is None else f"{value:.2f}"


def plot_gaits(rows: Sequence[dict], path: str | Path) -> Path:
    """Planned, executed and published strides of several gaits, as bars.

    Bars of executions are means, and their lines reach down to the worst start.
    """
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    axis = figure.subplots()
    bars = {
        "planned": ("stride_mm", "#f28e2b"),
        "executed (SAP)": ("executed_stride_mm", "#4e79a7"),
        "executed (own stepping)": ("stepped_stride_mm", "#76b7b2"),
        "paper, executed, mean of surfaces": ("paper_executed_stride_mm", "#bab0ac"),
    }
    place = np.arange(len(rows))
    for i, (label, (key, color)) in enumerate(bars.items()):
        at = place + 0.2 * (i - 1.5)
        found = [row.get(key) for row in rows]
        pairs = np.array([_mean_and_worst(value) for value in found])
        axis.bar(at, pairs[:, 0], 0.2, label=label, color=color)
        axis.vlines(at, pairs[:, 1], pairs[:, 0], color="0.2", lw=1)
    axis.set_xticks(
        place, [f"{r['frequency_hz']:g} Hz\n{r['surface']}" for r in rows], fontsize=8
    )
    axis.set_ylabel("stride [mm a cycle]")
    axis.set_title("HAMR-VI: planned and executed gaits")
    axis.legend(fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    axis.grid(axis="y", alpha=0.3)
    return write_figure(figure, path)


def _mean_and_worst(value) -> tuple[float, float]:
    """Of a spread; a number is both."""
    pair = (value["mean"], value["worst"]) if isinstance(value, dict) else (value,) * 2
    return tuple(np.nan if one is None else one for one in pair)


def main(argv: list[str] | None = None) -> dict:
    """Parses arguments, runs, writes; returns the JSON object that is printed."""
    parser = Measurement(__doc__, quick="a stored gait, one cycle from two starts")
    parser.add_argument("-o", "--output", type=Path, help="folder for plans and plots")
    parser.add_argument("--frequency", type=float, action="append", help="[Hz]")
    parser.add_argument("--surface", action="append")
    parser.add_argument("--contact", action="append", help="sap or stepping; both")
    parser.add_argument("--cycles", type=int, default=15)
    parser.add_argument("--knots", type=int, default=GaitProblem.knots)
    parser.add_argument("--starts", type=int, default=STARTS, help="of each execution")
    parser.add_argument("--workers", type=int, help="processes, by default all cores")
    parser.add_argument(
        "--refined", action="store_true", help="execute the stored gaits, plan nothing"
    )
    args = parser.parse_args(argv)
    console = Console(width=160)
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
        check_output(args.output / "gaits.png")
    quick = {"frequencies": (30.0,), "surfaces": ("card",), "contacts": ("sap",)}
    chosen = quick if args.quick else {}
    if args.frequency:
        chosen["frequencies"] = tuple(args.frequency)
    if args.surface:
        chosen["surfaces"] = tuple(args.surface)
    if args.contact:
        chosen["contacts"] = tuple(args.contact)
    rows = run(
        folder=args.output,
        cycles=1 if args.quick else args.cycles,
        knots=args.knots,
        refined=args.refined or args.quick,
        count=2 if args.quick else args.starts,
        workers=1 if args.quick else args.workers,
        say=lambda line: console.print(line),
        **chosen,
    )
    console.print(table(rows))
    if args.output is not None:
        (args.output / "gaits.json").write_text(json.dumps(rows, indent=1))
        console.print(str(plot_gaits(rows, args.output / "gaits.png")))
    return parser.report({"gaits": rows})


if __name__ == "__main__":
    with one_line_errors("hamr_gaits"):
        main(sys.argv[1:])
