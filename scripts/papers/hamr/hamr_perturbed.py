"""HAMR-VI's planned gaits executed on a robot that is not the planned one:
friction +-20 %, flexures +-10 %, and a compliance in series with the legs.

    python scripts/papers/hamr/hamr_gaits.py -o out
    python scripts/papers/hamr/hamr_perturbed.py out --json
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from drakebots.cli.output import one_line_errors
from drakebots.core.errors import FileProblem
from drakebots.results import load_result
from drakebots.robots.hamr import Tracking, track

CASES = {
    "as planned": {},
    "friction -20 %": {"friction_scale": 0.8},
    "friction +20 %": {"friction_scale": 1.2},
    "stiffness -10 %": {"stiffness_scale": 0.9},
    "stiffness +10 %": {"stiffness_scale": 1.1},
    # The encoders do not see the twist: lower gains stay stable (docs/hamr.md).
    "serial compliance": {"serial_stiffness": 1e-3, "kp": 1e4, "kd": 5.0},
}


def run(plans: list[Path], *, cycles: int, cases=CASES, say=lambda line: None):
    """Executes every plan in every case; a row a plan."""
    rows = []
    for path in plans:
        plan = load_result(path)
        row = {
            "plan": path.stem,
            "planned_stride_mm": plan.metrics["stride_mm"],
        }
        for name, change in cases.items():
            done = track(Tracking(plan, cycles=cycles, **change))
            stride = done.metrics.get("stride_mm_per_cycle")
            row[name] = stride if done.ok else None
            say(f"{path.stem}, {name}: {stride}")
        rows.append(row)
    return rows


def table(rows: list[dict]) -> Table:
    """Strides in mm a cycle, a column a case."""
    out = Table(title="executed strides of perturbed robots [mm a cycle]")
    names = [n for n in rows[0] if n != "plan"]
    for name in ("plan", *names):
        out.add_column(name, justify="right")
    for row in rows:
        values = ("-" if row[n] is None else f"{row[n]:.2f}" for n in names)
        out.add_row(row["plan"], *values)
    return out


def main(argv: list[str] | None = None) -> list[dict]:
    """Parses arguments and runs; returns the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of plan_*.nc of gaits")
    parser.add_argument("--cycles", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="rows as JSON on stdout")
    parser.add_argument("--quick", action="store_true", help="one plan, two cases")
    args = parser.parse_args(argv)
    plans = sorted(args.folder.glob("plan_*hz_*.nc"))
    if not plans:
        raise FileProblem(
            args.folder,
            "holds no plan_*hz_*.nc; make them with scripts/papers/hamr/hamr_gaits.py",
        )
    console = Console(stderr=args.json)
    cases, cycles = CASES, args.cycles
    if args.quick:
        plans, cycles = plans[:1], 1
        cases = {name: CASES[name] for name in ("as planned", "friction -20 %")}
    rows = run(plans, cycles=cycles, cases=cases, say=console.print)
    console.print(table(rows))
    (args.folder / "perturbed.json").write_text(json.dumps(rows, indent=1))
    if args.json:
        print(json.dumps(rows))
    return rows


if __name__ == "__main__":
    with one_line_errors("hamr_perturbed"):
        main(sys.argv[1:])
