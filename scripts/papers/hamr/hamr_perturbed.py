"""HAMR-VI's planned gaits executed on robots other than the planned one.

Friction +-20 %, flexures +-10 %, noise of the motion capture, and a compliance in
series with the legs. Without a folder of plans, the stored ones are executed.

    python scripts/papers/hamr/hamr_perturbed.py --json
    python scripts/papers/hamr/hamr_gaits.py -o out
    python scripts/papers/hamr/hamr_perturbed.py out
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from drakebots.cli.output import one_line_errors
from drakebots.core.errors import FileProblem, UnknownName
from drakebots.results import load_result
from drakebots.robots.hamr import Tracking, stored_plan, stored_plans, track

CASES = {
    "as planned": {},
    "friction -20 %": {"friction_scale": 0.8},
    "friction +20 %": {"friction_scale": 1.2},
    "stiffness -10 %": {"stiffness_scale": 0.9},
    "stiffness +10 %": {"stiffness_scale": 1.1},
    "noise 50 um": {"mocap_noise": 50e-6},
    # The encoders do not see the twist: lower gains stay stable (docs/hamr.md).
    "serial compliance": {"serial_stiffness": 1e-3, "kp": 1e4, "kd": 5.0},
}


def run(plans: Mapping[str, Path | None], *, cycles: int, cases=CASES, say=print):
    """Executes every plan in every case; a row a plan.

    Args:
        plans: files by name; None for a plan that came with drakebots.
        cycles: of each execution.
        cases: changes of the execution by name.
        say: called with a line after each.
    """
    rows = []
    for name, path in plans.items():
        plan = stored_plan(name) if path is None else load_result(path)
        row = {"plan": name, "planned_stride_mm": plan.metrics["stride_mm"]}
        for case, change in cases.items():
            done = track(Tracking(plan, cycles=cycles, **change))
            stride = done.metrics.get("stride_mm_per_cycle")
            row[case] = stride if done.ok else None
            say(f"{name}, {case}: {stride}")
        strides = [row[case] or 0.0 for case in cases]
        row["least_share"] = min(strides) / strides[0] if strides[0] else 0.0
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


def _plans(folder: Path | None, wanted: Sequence[str] | None) -> dict[str, Path | None]:
    """The plans to execute, by name.

    Raises:
        FileProblem: for a folder without plans.
        UnknownName: for a name that is none of theirs.
    """
    plans: dict[str, Path | None]
    if folder is None:
        plans = {name: None for name in stored_plans() if name != "jump"}
    else:
        found = sorted(folder.glob("plan_*hz_*.nc"))
        plans = {path.stem.removeprefix("plan_"): path for path in found}
    if not plans:
        raise FileProblem(
            folder,
            "holds no plan_*hz_*.nc; make them with scripts/papers/hamr/hamr_gaits.py",
        )
    for name in wanted or ():
        if name not in plans:
            raise UnknownName("plan", name, plans)
    return {name: plans[name] for name in wanted or plans}


def main(argv: list[str] | None = None) -> list[dict]:
    """Parses arguments and runs; returns the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder", type=Path, nargs="?", help="of plan_*.nc of gaits to execute"
    )
    parser.add_argument("--plan", action="append", help="name: 30hz_card, ...")
    parser.add_argument("--cycles", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="rows as JSON on stdout")
    parser.add_argument("--quick", action="store_true", help="one plan, two cases")
    args = parser.parse_args(argv)
    plans = _plans(args.folder, args.plan)
    console = Console(stderr=args.json)
    cases, cycles = CASES, args.cycles
    if args.quick:
        plans, cycles = dict(list(plans.items())[:1]), 1
        cases = {name: CASES[name] for name in ("as planned", "friction -20 %")}
    rows = run(plans, cycles=cycles, cases=cases, say=console.print)
    console.print(table(rows))
    if args.folder is not None:
        (args.folder / "perturbed.json").write_text(json.dumps(rows, indent=1))
    if args.json:
        print(json.dumps(rows))
    return rows


if __name__ == "__main__":
    with one_line_errors("hamr_perturbed"):
        main(sys.argv[1:])
