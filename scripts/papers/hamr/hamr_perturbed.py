"""HAMR-VI's planned gaits executed on robots other than the planned one.

Friction +-20 %, flexures +-10 %, noise of the motion capture, and a compliance in
series with the legs. Without a folder of plans, the stored ones are executed.

    python scripts/papers/hamr/hamr_perturbed.py
    python scripts/papers/hamr/hamr_perturbed.py --quick
    python scripts/papers/hamr/hamr_gaits.py -o out
    python scripts/papers/hamr/hamr_perturbed.py out

Strides are distributions over 20 starts whose base differs by up to 1e-9 m and 1e-9 rad
(and the noise with them).

JSON: perturbed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from drakebots.cli.output import one_line_errors
from drakebots.core.errors import FileProblem, UnknownName
from drakebots.results import load_result
from drakebots.robots.hamr import (
    Gains,
    Mismatch,
    Noise,
    Tracking,
    stored_plan,
    stored_plans,
)

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from hamr_starts import STARTS, spread, spread_text, starts
from measurement import Measurement

CASES = {
    "as planned": {},
    "friction -20 %": {"mismatch": Mismatch(friction=0.8)},
    "friction +20 %": {"mismatch": Mismatch(friction=1.2)},
    "stiffness -10 %": {"mismatch": Mismatch(stiffness=0.9)},
    "stiffness +10 %": {"mismatch": Mismatch(stiffness=1.1)},
    "noise 50 um": {"noise": Noise(mocap=50e-6)},
    # The encoders do not see the twist: lower gains are stable (docs/evidence/hamr.md).
    "serial compliance": {
        "mismatch": Mismatch(serial_stiffness=1e-3),
        "gains": Gains(kp=1e4, kd=5.0),
    },
}


def run(
    plans: Mapping[str, Path | None],
    *,
    cycles: int,
    cases=CASES,
    count: int = STARTS,
    workers: int | None = None,
    say=print,
) -> list[dict]:
    """Executes every plan in every case; a row a plan.

    Args:
        plans: files by name; None for a plan that came with drakebots.
        cycles: of each execution.
        cases: changes of the execution by name.
        count, workers: number of starts and of processes.
        say: called with a line after each.
    """
    rows = []
    for name, path in plans.items():
        plan = stored_plan(name) if path is None else load_result(path)
        row = {"plan": name, "planned_stride_mm": plan.metrics["stride_mm"]}
        for case, change in cases.items():
            posed = Tracking(plan, cycles=cycles, **change)
            runs = starts(posed, count, workers=workers).data
            row[case] = spread(runs.stride_mm_per_cycle.values)
            say(f"{name}, {case}: {spread_text(row[case])}")
        strides = [row[case]["mean"] or 0.0 for case in cases]
        row["least_share"] = min(strides) / strides[0] if strides[0] else 0.0
        rows.append(row)
    return rows


def table(rows: list[dict]) -> Table:
    """Strides in mm a cycle, a column a case; the least share is that of means."""
    out = Table(title="executed strides of perturbed robots [mm a cycle]")
    names = [n for n in rows[0] if n != "plan"]
    for name in ("plan", *names):
        out.add_column(name, justify="right")
    for row in rows:
        values = (
            spread_text(v) if isinstance(v, dict) else f"{v:.2f}"
            for v in (row[n] for n in names)
        )
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


def main(argv: list[str] | None = None) -> dict:
    """Parses arguments and runs; returns the JSON object that is printed."""
    parser = Measurement(
        __doc__, quick="one plan (30hz_card), one cycle, two cases, one start"
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", help="of plan_*.nc of gaits to execute"
    )
    parser.add_argument("--plan", action="append", help="name: 30hz_card, ...")
    parser.add_argument("--cycles", type=int, default=15)
    parser.add_argument("--starts", type=int, default=STARTS, help="of each execution")
    parser.add_argument("--workers", type=int, help="processes, by default all cores")
    args = parser.parse_args(argv)
    cases = CASES
    if args.quick:
        if args.folder is None and not args.plan:
            args.plan = ["30hz_card"]
        args.cycles, args.starts, args.workers = 1, 1, 1
        cases = {name: CASES[name] for name in ("as planned", "friction -20 %")}
    plans = _plans(args.folder, args.plan)
    if args.quick:
        plans = dict(list(plans.items())[:1])
    console = Console(width=160)
    rows = run(
        plans,
        cycles=args.cycles,
        cases=cases,
        count=args.starts,
        workers=args.workers,
        say=console.print,
    )
    console.print(table(rows))
    if args.folder is not None:
        (args.folder / "perturbed.json").write_text(json.dumps(rows, indent=1))
    return parser.report({"perturbed": rows})


if __name__ == "__main__":
    with one_line_errors("hamr_perturbed"):
        main(sys.argv[1:])
