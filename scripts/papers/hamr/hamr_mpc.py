"""HAMR-VI under contact-implicit control, in simulated time: strides, also disturbed.

    python scripts/papers/hamr/hamr_mpc.py                 # all rows, an hour
    python scripts/papers/hamr/hamr_mpc.py --starts 1      # three minutes
    python scripts/papers/hamr/hamr_mpc.py --frequencies 10 --plot mpc.png
    python scripts/papers/hamr/hamr_mpc.py --quick

A trot whose clock and speed are asked for (a stride of 10 mm) by the weights that every
robot gets, with no plan. Each solve takes effect at once (`delay` 0), though it takes 6
times (10 Hz) to 20 times (30 Hz) as long as the time between two of them: real time is
out of reach. The controller knows positions and velocities as they are, commands forces
of the actuators within the limits of the authors' own programs (0.28 N for swing, 0.36
N for lift), and the plant is SAP's. Perturbed robots walk on card. Strides are those of
the second half of a run, as distributions over 20 runs whose masses differ by up to
1e-9 of them; the other figures are those of the first.

JSON: mpc_strides.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.formats import load
from drakebots.results import Result
from drakebots.robots.hamr.model import surfaces
from drakebots.robots.legged import Control, Gait, Mpc, Push, Rigid, control

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from hamr_starts import STARTS, spread, spread_text
from measurement import Measurement

STRIDE = 0.01
"""The stride that is asked for [m], as in the paper's plans."""

LIMITS = {"qsact": 0.28, "qlact": 0.36}
"""Largest forces of the actuators for swing and lift [N]."""

MASSES = 1e-9
"""Largest share by which the masses differ from run to run."""

CYCLES = {2: 4, 10: 10, 30: 20}
"""Cycles of a run, the first half of them to get going, by frequency [Hz]."""

PERTURBED = {
    "friction -20 %": {"friction_error": -0.2},
    "friction +20 %": {"friction_error": 0.2},
    "masses -20 %": {"mass_error": -0.2},
    "masses +20 %": {"mass_error": 0.2},
    # A third of its weight for one cycle.
    "pushed": {"push": 5e-3},
}


def limited(folder: Path) -> Path:
    """A copy of HAMR's model whose actuators have limits; its SDF."""
    path = load("hamr").path
    for name in (path.name, "hamr.drakebots.yaml"):
        shutil.copy(path.with_name(name), folder)
    shutil.copytree(path.with_name("meshes"), folder / "meshes")
    ET.register_namespace("drake", "http://drake.mit.edu")
    tree = ET.parse(folder / path.name)
    for joint in tree.iter("joint"):
        for ending, force in LIMITS.items():
            if joint.get("name", "").endswith(ending):
                limit = joint.find("axis/limit")
                ET.SubElement(limit, "effort").text = str(force)
    tree.write(folder / path.name)
    return folder / path.name


def run(
    model: Path, frequency: float, surface: str, cycles: int, seed: int, **changes
) -> Result:
    """One run of some cycles; the seed changes the masses by a rounding."""
    period = 1 / frequency
    duration = cycles * period
    masses = MASSES * np.random.default_rng(seed).uniform(-1.0, 1.0)
    pushes = ()
    if "push" in changes:
        pushes = (Push(changes["push"], duration / 2, period),)
    plant = Rigid(
        changes.get("mass_error", 0.0) + masses,
        changes.get("friction_error", 0.0),
        time_step=min(5e-4, period / 100),
    )
    return control(
        Control(
            model,
            gait=Gait(period, 0.55, 2e-3),
            speed=STRIDE * frequency,
            friction=surfaces()[surface],
            duration=duration,
            pushes=pushes,
            plant=plant,
            controller=Mpc(period / 10, 10, period / 40, delay=0.0),
            log_period=period / 40,
        )
    )


def measured(results: Sequence[Result], frequency: float) -> dict:
    """The spread of some runs' strides, and the other figures of the first."""
    rows = [_measured(result, frequency) for result in results]
    stride = spread(row["stride_mm"] if row["ok"] else np.nan for row in rows)
    return rows[0] | {"stride_mm": stride}


def _measured(result: Result, frequency: float) -> dict:
    """Stride, heading and tilt of the second half of a run."""
    data = result.data
    half = data.time.values >= data.time.values[-1] / 2
    time, cycles = data.time.values[half], data.time.values[half][[0, -1]]
    x = data.base_position.values[half, 0]
    rpy = np.degrees(data.base_rpy.values[half])
    count = (cycles[1] - cycles[0]) * frequency
    return {
        "ok": bool(result.ok),
        "stride_mm": float(1e3 * np.polyfit(time, x, 1)[0] / frequency),
        "yaw_deg_per_cycle": float((rpy[-1, 2] - rpy[0, 2]) / count),
        "roll_range_deg": float(np.ptp(rpy[:, 0])),
        "unused_solves": int(result.metrics["solve_failures"]),
        "solve_ms": float(result.metrics["solve_ms"]),
    }


def draw(rows: Sequence[dict], path: Path) -> None:
    """Strides, a bar a row."""
    figure = Figure(figsize=(7, 0.4 * len(rows) + 1), layout="constrained")
    axes = figure.subplots()
    names = [f"{r['frequency_hz']:g} Hz {r['surface']} {r['case']}" for r in rows]
    strides = [r["stride_mm"] for r in rows]
    axes.barh(
        names,
        [s["mean"] or 0.0 for s in strides],
        xerr=[s["deviation"] or 0.0 for s in strides],
        color="#4477aa",
    )
    axes.axvline(1e3 * STRIDE, color="0.3", lw=1, ls="--", label="asked for")
    axes.invert_yaxis()
    axes.set_xlabel("stride [mm]")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs all rows; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="10 Hz on card, two runs of two cycles")
    parser.add_argument(
        "--frequencies", nargs="+", type=float, default=[10, 30], help="[Hz]"
    )
    parser.add_argument("--plot", type=Path, help="file of a plot of the strides")
    parser.add_argument("--starts", type=int, default=STARTS, help="runs of each row")
    args = parser.parse_args(argv)
    if args.quick:
        args.frequencies, args.starts = [10.0], 2
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        model = limited(Path(folder))
        for frequency in args.frequencies:
            cases = [(surface, "", {}) for surface in surfaces()]
            cases += [("card", name, change) for name, change in PERTURBED.items()]
            cycles = CYCLES.get(frequency, 10)
            if args.quick:
                cases, cycles = [("card", "", {})], 2
            for surface, case, changes in cases:
                runs = [
                    run(model, frequency, surface, cycles, seed, **changes)
                    for seed in range(args.starts)
                ]
                found = measured(runs, frequency)
                row = {"frequency_hz": frequency, "surface": surface, "case": case}
                rows.append(row | found)
                print(
                    f"{frequency:3g} Hz {surface:10} {case:15} "
                    f"{spread_text(found['stride_mm'])} mm, yaw "
                    f"{found['yaw_deg_per_cycle']:5.2f} deg a cycle, roll "
                    f"{found['roll_range_deg']:4.1f} deg, solve "
                    f"{found['solve_ms']:.0f} ms{'' if found['ok'] else ', failed'}",
                    flush=True,
                )
    if args.plot:
        draw(rows, args.plot)
    return parser.report({"mpc_strides": rows})


if __name__ == "__main__":
    main()
