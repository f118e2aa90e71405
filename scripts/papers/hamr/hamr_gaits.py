"""HAMR-VI's nine gaits, planned and executed, beside the figures of the RSS 2018 paper.

2, 10 and 30 Hz on Teflon, card and sandpaper: planned by contact-implicit optimization,
then executed for 15 cycles under the leg estimator and controller.

    python scripts/papers/hamr/hamr_gaits.py -o out --json
    python scripts/papers/hamr/hamr_gaits.py --refined --json

With --refined nothing is planned: the gaits that come with drakebots are executed.
"""

from __future__ import annotations

import argparse
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
from drakebots.robots.hamr import (
    GaitProblem,
    Tracking,
    plan,
    plot_track,
    stored_plan,
    track,
)
from drakebots.robots.hamr.plan import store_plan

FREQUENCIES = (2.0, 10.0, 30.0)
SURFACES = ("teflon", "card", "sandpaper")
PAPER = {2.0: 9.77, 10.0: 8.98, 30.0: 4.24}
"""Executed stride in mm a cycle, averaged over surfaces (RSS 2018, Fig. 7)."""


GOALS = {(30.0, "teflon"): 5e-3}
"""Strides [m] where 10 mm is no goal: at 30 Hz on Teflon no hard contact was
found that makes it (docs/hamr.md)."""


def run(
    frequencies=FREQUENCIES,
    surfaces=SURFACES,
    *,
    folder: Path | None = None,
    cycles: int = 15,
    contacts=("sap", "stepping"),
    knots: int = GaitProblem.knots,
    refined: bool = False,
    say=lambda line: None,
) -> list[dict]:
    """Plans and executes every gait; one row each."""
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
            row = _executed(planned, name, folder, cycles, contacts)
            rows.append(row)
            say(
                f"{frequency:g} Hz {surface}: {row['verdict']}, "
                f"{row['seconds']:.0f} s, planned {row['stride_mm']:.2f} mm, executed "
                f"{row['executed_stride_mm']} mm"
            )
    return rows


def _executed(planned, name, folder, cycles, contacts) -> dict:
    """A plan's row: its own figures, and those of its executions."""
    m, options = planned.metrics, planned.provenance["options"]
    frequency, surface = m["frequency_hz"], m["surface"]
    row = {
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
        "floquet_max": m.get("floquet_max"),
        "predicted_stride_mm": m.get("predicted_stride_mm"),
        "paper_executed_stride_mm": PAPER.get(frequency),
    }
    if folder is not None:
        planned.save(folder / f"plan_{name}.nc")
        store_plan(planned, folder / f"{name}.npz")
    for contact in contacts:
        done = track(Tracking(planned, cycles=cycles, contact=contact))
        key = "executed" if contact == "sap" else "stepped"
        row |= {
            f"{key}_stride_mm": done.metrics.get("stride_mm_per_cycle"),
            f"{key}_deviation_mm": done.metrics.get("stride_deviation_mm"),
            f"{key}_slip": done.metrics.get("slip"),
            f"{key}_yaw_deg_per_cycle": done.metrics.get("yaw_deg_per_cycle"),
            f"{key}_leg_error_x_mm": done.metrics.get("leg_error_x_mm"),
            f"{key}_leg_error_z_mm": done.metrics.get("leg_error_z_mm"),
        }
        if contact == "sap":
            strides = done.metrics.get("stride_mm", ())
            row |= {
                name: done.metrics.get(name)
                for name in ("clearance_min_mm", "loaded_slip", "yaw_deg_per_cycle")
            }
            row["settled_stride_mm"] = float(np.mean(strides[-5:] or [np.nan]))
        if folder is not None:
            done.save(folder / f"run_{name}_{contact}.nc")
            if done.ok:
                plot_track(done, folder / f"track_{name}_{contact}.png")
    return row


def table(rows: list[dict]) -> Table:
    """Ours beside the paper's."""
    out = Table(title="HAMR-VI: planned and executed strides [mm a cycle]")
    for name in (
        *("Hz", "surface", "plan", "s", "planned", "slip", "executed", "slip"),
        *("settled", "yaw", "clearance", "loaded slip", "Floquet"),
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
            *(_number(r.get(k)) for k in ("executed_stride_mm", "executed_slip")),
            *(
                _number(r.get(k))
                for k in (
                    *("settled_stride_mm", "yaw_deg_per_cycle", "clearance_min_mm"),
                    *("loaded_slip", "floquet_max", "stepped_stride_mm"),
                )
            ),
            _number(r["paper_executed_stride_mm"]),
            f"{r['complementarity_max']:.0e}",
            f"{r['del_residual_max']:.0e}",
        ]
        out.add_row(*cells)
    return out


def _number(value) -> str:
    return "-" if value is None else f"{value:.2f}"


def plot_gaits(rows: Sequence[dict], path: str | Path) -> Path:
    """Planned, executed and published strides of several gaits, as bars."""
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
        heights = [row.get(key) or np.nan for row in rows]
        axis.bar(place + 0.2 * (i - 1.5), heights, 0.2, label=label, color=color)
    axis.set_xticks(
        place, [f"{r['frequency_hz']:g} Hz\n{r['surface']}" for r in rows], fontsize=8
    )
    axis.set_ylabel("stride [mm a cycle]")
    axis.set_title("HAMR-VI: planned and executed gaits")
    axis.legend(fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    axis.grid(axis="y", alpha=0.3)
    return write_figure(figure, path)


def main(argv: list[str] | None = None) -> list[dict]:
    """Parses arguments, runs, writes; returns the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, help="folder for plans and plots")
    parser.add_argument("--frequency", type=float, action="append", help="[Hz]")
    parser.add_argument("--surface", action="append")
    parser.add_argument("--contact", action="append", help="sap or stepping; both")
    parser.add_argument("--cycles", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="rows as JSON on stdout")
    parser.add_argument(
        "--refined", action="store_true", help="execute the stored gaits, plan nothing"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one coarse gait, two cycles"
    )
    args = parser.parse_args(argv)
    console = Console(stderr=args.json)
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
        check_output(args.output / "gaits.png")
    quick = {"frequencies": (10.0,), "surfaces": ("card",), "contacts": ("sap",)}
    quick["knots"] = 17
    chosen = quick if args.quick else {}
    if args.frequency:
        chosen["frequencies"] = tuple(args.frequency)
    if args.surface:
        chosen["surfaces"] = tuple(args.surface)
    if args.contact:
        chosen["contacts"] = tuple(args.contact)
    rows = run(
        folder=args.output,
        cycles=2 if args.quick else args.cycles,
        refined=args.refined,
        say=lambda line: console.print(line),
        **chosen,
    )
    console.print(table(rows))
    if args.output is not None:
        (args.output / "gaits.json").write_text(json.dumps(rows, indent=1))
        console.print(str(plot_gaits(rows, args.output / "gaits.png")))
    if args.json:
        print(json.dumps(rows))
    return rows


if __name__ == "__main__":
    with one_line_errors("hamr_gaits"):
        main(sys.argv[1:])
