"""HAMR-VI's contact forces: planned, and executed with and without serial compliance.

The paper's robot "is unable to push as forcefully into the ground as planned, most
likely because of unmodeled serial compliance in the transmissions" (RSS 2018, section
V-A). It measured no forces. Here a stored gait's forces on the feet stand beside those
that its execution makes, on the model as it is and with a hinge in series with each
leg (`hamr_variant`), in two contact models.

    python scripts/papers/hamr/hamr_forces.py -o out
    python scripts/papers/hamr/hamr_forces.py --frequency 30 --contact sap
    python scripts/papers/hamr/hamr_forces.py --quick

Forces are means over the plan's intervals, in which a plan holds them; of an execution
the settled third of its cycles. Of the hinges' stiffnesses 1e-3 N m/rad is ours, and
1e-4 N m/rad what would bring the body's vertical mode from the model's 26.7 Hz to the
measured 10 Hz (see `stiffness_for`).

JSON: forces, stiffness_for_10_hz.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from drakebots import load
from drakebots.cli.output import one_line_errors
from drakebots.core.files import check_output
from drakebots.core.units import GRAVITY
from drakebots.plots import write_figure
from drakebots.results import Result
from drakebots.robots.hamr import Gains, Mismatch, Tracking, stored_plan, track
from drakebots.robots.hamr.model import LEGS

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

CASES: dict[str, dict] = {
    "as it is": {},
    "low gains": {"gains": Gains(kp=1e4, kd=5.0)},
    "1e-3 N m/rad": {
        "mismatch": Mismatch(serial_stiffness=1e-3),
        "gains": Gains(kp=1e4, kd=5.0),
    },
    "3e-4 N m/rad": {
        "mismatch": Mismatch(serial_stiffness=3e-4),
        "gains": Gains(kp=1e4, kd=5.0),
    },
    "1e-4 N m/rad": {
        "mismatch": Mismatch(serial_stiffness=1e-4),
        "gains": Gains(kp=1e4, kd=5.0),
    },
}
"""Executions by name. With a hinge the authors' gains are unstable, so the gains that
are stable with it are measured without it too."""

CYCLES = {2.0: 1, 10.0: 4, 30.0: 9}
"""Cycles of an execution by frequency [Hz], after one in which it is faded in."""

LEVER = 7.58e-3
"""Distance [m] of a foot from the line of its hinge, across the robot."""

MODEL_HZ, MEASURED_HZ = 26.7, 10.0
"""The body's vertical mode on frictionless feet, and the experiments' (RSS 2018)."""

WEIGHT = load("hamr").summary.mass * GRAVITY
"""Weight of the robot [N]."""


def stiffness_for(hertz: float) -> float:
    """Stiffness of the hinges [N m/rad] with which the body bounces at a frequency.

    With K = m (2 pi f)^2 the vertical stiffness of the model's four legs, and four
    hinges of k at a lever r in series, 1/K' = 1/K + r^2/(4 k). An upper bound of what
    compliance could explain, as all of the difference is put into the hinges.
    """
    mass = WEIGHT / GRAVITY
    own, other = (mass * (2 * np.pi * f) ** 2 for f in (MODEL_HZ, hertz))
    return LEVER**2 / 4 / (1 / other - 1 / own)


def binned(run: Result, start: float, period: float, intervals: int) -> np.ndarray:
    """Forces of an execution (cycles, intervals, 4, 3) [N], means over intervals.

    Args:
        run: stored at every time step, so that means are impulses over time.
        start: start of the first cycle that counts [s].
        period: of the plan [s].
        intervals: of the plan.
    """
    time, force = run.data.time.values, run.data.foot_force.values
    whole = int((time[-1] - start) / period + 1e-6)
    count = max(1, -(-whole // 3))
    first = start + (whole - count) * period
    edges = first + period * np.arange(count * intervals + 1) / intervals
    # What is stored at a time is the force of the step that ends there.
    index = np.searchsorted(time, edges + 1e-9)
    means = [force[a:b].mean(axis=0) for a, b in pairwise(index)]
    return np.array(means).reshape(count, intervals, 4, 3)


def figures(planned: np.ndarray, executed: np.ndarray, period: float) -> dict:
    """Forces planned (K, 4, 3) and executed (cycles, K, 4, 3) [N] beside each other.

    Forces are over the robot's weight, impulses those of the whole robot in a cycle
    over the weight's, m g T: `drive` of forward and `brake` of backward friction.
    `steps` are the normal impulses of the feet in a cycle [uN s].
    """
    normal, pressed = planned[..., 2], executed[..., 2]
    both = planned, executed
    lateral, rubbed = (np.linalg.norm(f[..., :2], axis=-1) for f in both)
    alike = np.corrcoef(normal.ravel(), pressed.mean(axis=0).ravel())[0, 1]
    out: dict = {"normal_correlation": float(alike)}
    pairs = ("normal", normal, pressed), ("friction", lateral, rubbed)
    for name, plan, run in pairs:
        out |= {
            f"{name}_rms_planned": _rms(plan) / WEIGHT,
            f"{name}_rms_executed": _rms(run) / WEIGHT,
            f"{name}_rms_difference": _rms(run - plan) / WEIGHT,
            f"{name}_peak_planned": float(plan.max() / WEIGHT),
            f"{name}_peak_executed": float(run.max(axis=(1, 2)).mean() / WEIGHT),
        }
    for name, sign in (("drive", 1.0), ("brake", -1.0)):
        for which, f in (("planned", planned[None]), ("executed", executed)):
            share = np.maximum(sign * f[..., 0], 0.0).sum(axis=2).mean()
            out[f"{name}_impulse_{which}"] = float(share / WEIGHT)
    feet = planned[None, ..., 2].mean(axis=1), pressed.mean(axis=1)
    out["steps_planned"], out["steps_executed"] = (
        (period * f.mean(axis=0) * 1e6).tolist() for f in feet
    )
    out["weight_carried"] = float(pressed.sum(axis=2).mean() / WEIGHT)
    return out


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def run(
    frequencies=(10.0, 30.0),
    contacts=("sap", "stepping"),
    cases=CASES,
    *,
    surface: str = "card",
    cycles: int | None = None,
    folder: Path | None = None,
    say=print,
) -> list[dict]:
    """A row for every frequency, contact model and case; a picture a frequency."""
    rows = []
    for frequency in frequencies:
        plan = stored_plan(f"{frequency:g}hz_{surface}")
        planned = plan.data.foot_force.values[1:]
        drawn = {}
        for contact in contacts:
            for case, change in cases.items():
                posed = Tracking(
                    plan,
                    contact=contact,
                    cycles=cycles or CYCLES[frequency],
                    ramp=1.0,
                    time_step=_step(contact, change),
                    log_period=1e-4,
                    **change,
                )
                result = track(posed)
                period = posed.reference.duration
                forces = binned(result, posed.start, period, len(planned))
                stride = result.metrics.get("stride_mm_per_cycle", float("nan"))
                known = {"frequency_hz": frequency, "contact": contact, "case": case}
                row = known | {"stride_mm": stride, "verdict": str(result.verdict)}
                rows.append(row | figures(planned, forces, period))
                say(told(rows[-1]))
                if contact == contacts[0]:
                    drawn[case] = forces.mean(axis=0)
        if folder is not None:
            say(str(draw(planned, drawn, folder / f"forces_{frequency:g}hz.png")))
    return rows


def _step(contact: str, change: dict) -> float:
    """Time step [s]: hinges need half of it in hard contact (see MAX_SERIAL), and soft
    ones do not converge there (docs/evidence/hamr.md)."""
    return 5e-5 if contact == "stepping" and "mismatch" in change else 1e-4


def told(row: dict) -> str:
    """A row in a line."""
    numbers = (f"{k} {v:.3f}" for k, v in row.items() if isinstance(v, float))
    return f"{row['contact']}, {row['case']}: " + ", ".join(numbers)


def table(rows: list[dict]) -> Table:
    """Planned and executed, over the weight; a plan's own in its first row."""
    out = Table(title="HAMR-VI's contact forces over its weight")
    heads = ("Hz", "contact", "robot", "stride", "normal rms", "difference", "alike")
    for head in (*heads, "peak", "friction rms", "difference", "peak", "drive, brake"):
        out.add_column(head, justify="right")
    last = None
    for r in rows:
        if r["frequency_hz"] != last:
            last = r["frequency_hz"]
            out.add_row(f"{last:g}", "", "plan", "", *_cells(r, "planned"))
        head = f"{last:g}", r["contact"], r["case"], f"{r['stride_mm']:.2f}"
        out.add_row(*head, *_cells(r, "executed"))
    return out


def _cells(row: dict, which: str) -> list[str]:
    """The cells of a plan or its execution."""
    done, out = which == "executed", []
    for kind in ("normal", "friction"):
        out.append(f"{row[f'{kind}_rms_{which}']:.2f}")
        out.append(f"{row[f'{kind}_rms_difference']:.2f}" if done else "")
        if kind == "normal":
            out.append(f"{row['normal_correlation']:.2f}" if done else "")
        out.append(f"{row[f'{kind}_peak_{which}']:.2f}")
    drive, brake = (row[f"{name}_impulse_{which}"] for name in ("drive", "brake"))
    return [*out, f"{drive:.3f}, {brake:.3f}"]


def draw(planned: np.ndarray, executed: dict[str, np.ndarray], path: Path) -> Path:
    """Normal forces of the four feet over a cycle: planned (K, 4, 3) and executed."""
    figure = Figure(figsize=(10, 5), layout="constrained")
    place = np.arange(len(planned)) / len(planned)
    for i, (leg, axis) in enumerate(zip(LEGS, figure.subplots(2, 2, sharey=True).flat)):
        axis.step(place, planned[:, i, 2] / WEIGHT, "k", where="post", label="plan")
        for case, force in executed.items():
            axis.step(place, force[:, i, 2] / WEIGHT, where="post", lw=1, label=case)
        axis.set_title(leg, fontsize=9)
        axis.grid(alpha=0.3)
    figure.supxlabel("share of the cycle")
    figure.supylabel("normal force / weight")
    axis.legend(fontsize=7)
    return write_figure(figure, path)


def main(argv: list[str] | None = None) -> dict:
    """Parses arguments and runs; returns the JSON object that is printed."""
    parser = Measurement(__doc__, quick="30 Hz, two robots, one cycle in SAP")
    parser.add_argument("-o", "--output", type=Path, help="folder for the pictures")
    parser.add_argument("--frequency", type=float, action="append", choices=CYCLES)
    parser.add_argument("--contact", action="append", choices=("sap", "stepping"))
    args = parser.parse_args(argv)
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
        check_output(args.output / "forces_30hz.png")
    chosen: dict = {"folder": args.output}
    if args.quick:
        two = {name: CASES[name] for name in ("as it is", "1e-4 N m/rad")}
        chosen |= {"frequencies": (30.0,), "contacts": ("sap",), "cases": two}
        chosen["cycles"] = 1
    if args.frequency:
        chosen["frequencies"] = tuple(args.frequency)
    if args.contact:
        chosen["contacts"] = tuple(args.contact)
    console = Console(width=160)
    rows = run(say=console.print, **chosen)
    console.print(table(rows))
    found = stiffness_for(MEASURED_HZ)
    console.print(f"hinges for {MEASURED_HZ:g} Hz: {found:.2e} N m/rad")
    return parser.report({"forces": rows, "stiffness_for_10_hz": found})


if __name__ == "__main__":
    with one_line_errors("hamr_forces"):
        main(sys.argv[1:])
