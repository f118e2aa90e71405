"""HAMR-VI's jump, planned and executed, beside the RSS 2018 paper.

Planned by contact-implicit optimization and executed under the leg estimator and
controller. The paper: goal 12 mm, executed 9.65 +- 0.21 mm on average, 9.96 at best;
x, y and yaw at the end -3.25 +- 0.57 mm, -0.15 +- 1.98 mm, 11.1 +- 8.6 deg (Fig. 9).

    python scripts/papers/hamr/hamr_jump.py -o out
    python scripts/papers/hamr/hamr_jump.py --stored -o stored
    python scripts/papers/hamr/hamr_jump.py --quick

With --stored the jump that comes with drakebots is executed. Rises are distributions
over 20 starts whose base differs by up to 1e-9 m and 1e-9 rad.

JSON: verdict, apex_rise_mm, executed_apex_rise_mm, executed_share.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console

from drakebots.cli.output import one_line_errors
from drakebots.core.files import check_output
from drakebots.plots import write_figure
from drakebots.results import Result, load_result
from drakebots.robots.hamr import JumpProblem, Tracking, plan, stored_plan
from drakebots.robots.hamr.plan import store_plan

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from hamr_starts import STARTS, spread, spread_text, starts
from measurement import Measurement

LANDED = 0.15
"""Time after the apex, at which the robot stands again [s]."""


def landed(run: Result) -> np.ndarray:
    """x, y [mm] and yaw [deg] in the end, from the start."""
    pose = np.hstack([run.data.base_position.values, run.data.base_rpy.values])
    return (pose[-1] - pose[0])[[0, 1, 5]] * [1e3, 1e3, np.degrees(1.0)]


def run(
    result: Result,
    *,
    folder: Path | None = None,
    contacts=("sap", "stepping"),
    count: int = STARTS,
    workers: int | None = None,
) -> dict:
    """Executes a jump's plan from a count of starts; returns the facts."""
    m = result.metrics
    energy = m["spring_energy_mJ"]
    facts = {
        "seconds": sum(result.timings.values()),
        "verdict": str(result.verdict),
        "apex_rise_mm": m["apex_rise_mm"],
        "yaw_max_deg": float(np.degrees(np.abs(result.data.base_rpy[:, 2]).max())),
        "crouch_mm": m["crouch_mm"],
        "spring_energy_at_start_mJ": energy[0],
        "spring_energy_most_mJ": max(energy),
        "complementarity_max": m["complementarity_max"],
        "del_residual_max": m["del_residual_max"],
        "paper_executed_apex_rise_mm": 9.96,
    }
    first = {}
    for contact in contacts:
        posed = Tracking(result, contact=contact, after=LANDED)
        with tempfile.TemporaryDirectory() as place:
            out = (Path(place) if folder is None else folder) / f"jump_{contact}"
            runs = starts(posed, count, out=out, workers=workers).data
            each = [load_result(out / file) for file in runs.file.values]
        key = "executed" if contact == "sap" else "stepped"
        rise = facts[f"{key}_apex_rise_mm"] = spread(runs.apex_rise_mm.values)
        facts[f"{key}_share"] = rise["mean"] / m["apex_rise_mm"]
        ends = np.array([landed(one) for one in each]).T
        for name, values in zip(("x_mm", "y_mm", "yaw_deg"), ends):
            facts[f"{key}_landed_{name}"] = spread(values)
        first[contact] = each[0]
    if folder is not None:
        result.save(folder / "plan_jump.nc")
        store_plan(result, folder / "jump.npz")
        plot_jump(result, first, folder / "jump.png")
    return facts


def plot_jump(planned: Result, runs: Mapping[str, Result], path: str | Path) -> Path:
    """Height of the base and energy in the springs over a jump.

    Args:
        planned: plan of the jump.
        runs: executions of the plan by name.
    """
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    top, bottom = figure.subplots(2, sharex=True)
    start = planned.data.base_position.values[0, 2]
    for name, result in {"planned": planned, **runs}.items():
        data = result.data
        rise = 1e3 * (data.base_position.values[:, 2] - start)
        top.plot(1e3 * data.time.values, rise, label=name, lw=1.4)
    top.set_ylabel("base above standing [mm]")
    top.axhline(9.96, color="#bab0ac", ls="--", lw=1, label="paper, executed, best")
    top.legend(fontsize=8)
    energy = planned.metrics.get("spring_energy_mJ")
    if energy:
        bottom.plot(1e3 * planned.data.time.values, energy, color="#59a14f")
    bottom.set_ylabel("energy in springs [mJ]")
    bottom.set_xlabel("time [ms]")
    for axis in (top, bottom):
        axis.grid(alpha=0.3)
    top.set_title(f"{planned.model}: jump")
    return write_figure(figure, path)


def main(argv: list[str] | None = None) -> dict:
    """Parses arguments, runs, writes; returns the JSON object that is printed."""
    parser = Measurement(__doc__, quick="the stored jump from two starts, SAP only")
    parser.add_argument("-o", "--output", type=Path, help="folder for plan and plot")
    parser.add_argument("--rise", type=float, default=JumpProblem.rise, help="[m]")
    parser.add_argument("--knots", type=int, default=JumpProblem.knots)
    parser.add_argument("--contact", action="append", help="sap or stepping; both")
    parser.add_argument("--starts", type=int, default=STARTS, help="of each execution")
    parser.add_argument("--workers", type=int, help="processes, by default all cores")
    parser.add_argument(
        "--stored", action="store_true", help="execute the stored jump, plan nothing"
    )
    args = parser.parse_args(argv)
    if args.quick:
        args.stored, args.contact, args.starts, args.workers = True, ["sap"], 2, 1
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
        check_output(args.output / "jump.png")
    if args.stored:
        result = stored_plan("jump")
    else:
        result = plan(JumpProblem(rise=args.rise, knots=args.knots))
    facts = run(
        result,
        folder=args.output,
        contacts=args.contact or ("sap", "stepping"),
        count=args.starts,
        workers=args.workers,
    )
    console = Console()
    for name, value in facts.items():
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        text = spread_text(value) if isinstance(value, dict) else text
        console.print(f"{name:<32}{text}")
    return parser.report(facts)


if __name__ == "__main__":
    with one_line_errors("hamr_jump"):
        main(sys.argv[1:])
