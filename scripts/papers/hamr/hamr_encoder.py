"""HAMR-VI's leg estimator against an encoder circuit that differs from its own.

The paper's R and C of an actuator depend on voltage and frequency; their values are not
published (RSS 2018, section IV-B). Here the stored gaits for card are executed while
the simulated circuit differs from the one that eq. (18) inverts: C, R and the current
by 10 and 20 %, both growing with the voltage, and a share of C that follows late.

    python scripts/papers/hamr/hamr_encoder.py
    python scripts/papers/hamr/hamr_encoder.py --quick
    python scripts/papers/hamr/hamr_encoder.py --frequency 30 --case "C +20 %"

Velocities are those of the actuators' tips, relative to their own rms; legs are in mm.
The last two columns take voltages and tip velocities of the run without a mismatch and
ask the circuit alone by how much a mismatch moves its estimate: with the drive's
voltage held over a sample, as it is simulated, and on straight lines between samples,
by eq. (18) as it is printed.

JSON: encoder.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import xarray as xr
from rich.console import Console
from rich.table import Table

from drakebots.cli.output import one_line_errors
from drakebots.robots.hamr import Mismatch, Tracking, stored_plan, track
from drakebots.robots.hamr.model import Plates, hamr_encoder

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from hamr_starts import START_ERROR
from measurement import Measurement

CASES = {
    "as assumed": Plates(),
    "C -20 %": Plates(capacitance=0.8),
    "C +20 %": Plates(capacitance=1.2),
    "R -20 %": Plates(resistance=0.8),
    "R +20 %": Plates(resistance=1.2),
    "current -20 %": Plates(current=0.8),
    "current -10 %": Plates(current=0.9),
    "current +10 %": Plates(current=1.1),
    "current +20 %": Plates(current=1.2),
    "voltage 10 %": Plates(voltage=0.1),
    "voltage 20 %": Plates(voltage=0.2),
    "late 10 %": Plates(late=0.1),
    "late 20 %": Plates(late=0.2),
    "all by 10 %": Plates(1.1, 0.9, 0.9, 0.1, 0.1),
    "all by 20 %": Plates(1.2, 0.8, 0.8, 0.2, 0.2),
}
"""What the simulated circuit is other than assumed, by name."""

CYCLES = {2.0: 1, 10.0: 4, 30.0: 10}
"""Cycles of an execution by frequency [Hz], after one in which it is faded in."""

SUBSTEPS = 8
"""Steps of the circuit alone in a sample."""


def measure(name: str, plates: Plates, cycles: int, seeds: int) -> tuple[dict, list]:
    """Figures of a stored gait with a circuit, and the datasets of its runs."""
    found, runs = [], []
    for seed in range(seeds):
        posed = Tracking(
            stored_plan(name),
            cycles=cycles,
            ramp=1.0,
            mismatch=Mismatch(plates=plates),
            log_period=hamr_encoder().period,
            start_error=START_ERROR,
            seed=seed,
        )
        result = track(posed)
        data = result.data.isel(time=result.data.time.values >= posed.start)
        m = result.metrics
        runs.append(data)
        found.append(
            {
                "stride_mm": m["stride_mm_per_cycle"],
                "tip_velocity": tip_error(data),
                "estimator_x_mm": m["estimator_error_mm"][0],
                "estimator_z_mm": m["estimator_error_mm"][2],
                "leg_x_mm": m["leg_error_x_mm"],
                "leg_z_mm": m["leg_error_z_mm"],
            }
        )
    return {key: float(np.mean([f[key] for f in found])) for key in found[0]}, runs


def tip_error(data: xr.Dataset) -> float:
    """Rms error of the encoders over the rms of the tips' velocities.

    What is held at a sample is of the velocity of the sample before.
    """
    true, held = data.actuator_velocity.values, data.encoder_velocity.values
    return relative(held[1:] - true[:-1], true)


def relative(error: np.ndarray, of: np.ndarray) -> float:
    """Rms of an error over that of a signal."""
    return float(np.sqrt(np.mean(error**2) / np.mean(of**2)))


def circuit_estimate(data: xr.Dataset, plates: Plates, *, ramped: bool) -> np.ndarray:
    """Estimates (T, 8) [m/s] of the circuit alone under a run's voltages and speeds.

    Args:
        data: a run, stored at the encoders' rate.
        plates: what the circuit is other than assumed.
        ramped: whether voltages are on straight lines between samples and eq. (18) is
            taken as printed, i_m = (u_sig - u_act)/R_s - zeta C du_act/dt - u_act/R
            with a backward difference; else voltages are held.
    """
    assumed = hamr_encoder()
    circuit = replace(assumed, plates=plates, period=assumed.period / SUBSTEPS)
    volts, speeds = data.voltage.values, data.actuator_velocity.values
    x, u_act, late, found = assumed.velocity_per_current, volts[0], volts[0], []
    for (v0, v1), (w0, w1) in zip(pairwise(volts), pairwise(speeds)):
        before = u_act
        for share in (np.arange(SUBSTEPS) + 0.5) / SUBSTEPS:
            u_sig = v0 + share * (v1 - v0) if ramped else v1
            speed = w0 + share * (w1 - w0)
            u_act, late = circuit.settle(u_act, late, u_sig, speed / x)
        current = assumed.current(v1, u_act, before)
        if ramped:
            slope = (u_act - before) / assumed.period
            current = (v1 - u_act) / assumed.shunt - assumed.capacitance * slope
            current = current - u_act / assumed.resistance
        found.append(x * current)
    return np.array(found)


def circuit_error(data: xr.Dataset, plates: Plates, *, ramped: bool) -> float:
    """Rms by which a mismatch moves :func:`circuit_estimate`, over the tips' own."""
    found = circuit_estimate(data, plates, ramped=ramped)
    change = found - circuit_estimate(data, Plates(), ramped=ramped)
    # The late charge starts where the voltage is.
    return relative(change[len(change) // 5 :], data.actuator_velocity.values)


def run(frequencies=tuple(CYCLES), cases=CASES, *, seeds=1, cycles=None, say=print):
    """A row for every frequency and case."""
    rows = []
    for frequency in frequencies:
        nominal: xr.Dataset | None = None
        for case, plates in cases.items():
            count = seeds if frequency > 5 else 1
            name, length = f"{frequency:g}hz_card", cycles or CYCLES[frequency]
            figures, runs = measure(name, plates, length, count)
            nominal = runs[0] if nominal is None else nominal
            row = {"frequency_hz": frequency, "case": case, **figures}
            row["held"] = circuit_error(nominal, plates, ramped=False)
            row["ramped"] = circuit_error(nominal, plates, ramped=True)
            rows.append(row)
            told = (f"{key} {row[key]:.4f}" for key in (*figures, "held", "ramped"))
            say(f"{frequency:g} Hz, {case}: " + ", ".join(told))
    return rows


def table(rows: list[dict]) -> Table:
    """Velocities in per cent of their rms, lengths in mm."""
    out = Table(title="HAMR-VI's estimator with another encoder circuit, on card")
    for head in ("Hz", "circuit", "tip velocity %", "legs estimated x, z"):
        out.add_column(head, justify="right")
    for head in ("legs from plan x, z", "stride", "held %", "ramped %"):
        out.add_column(head, justify="right")
    for r in rows:
        out.add_row(
            f"{r['frequency_hz']:g}",
            r["case"],
            f"{100 * r['tip_velocity']:.1f}",
            f"{r['estimator_x_mm']:.3f}, {r['estimator_z_mm']:.3f}",
            f"{r['leg_x_mm']:.3f}, {r['leg_z_mm']:.3f}",
            f"{r['stride_mm']:.2f}",
            f"{100 * r['held']:.1f}",
            f"{100 * r['ramped']:.1f}",
        )
    return out


def main(argv: list[str] | None = None) -> dict:
    """Parses arguments and runs; returns the JSON object that is printed."""
    parser = Measurement(__doc__, quick="30 Hz, two circuits, one cycle")
    parser.add_argument("--frequency", type=float, action="append", choices=CYCLES)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--starts", type=int, default=1, help="at 10 and 30 Hz")
    args = parser.parse_args(argv)
    cases, how = CASES, {"seeds": args.starts}
    if args.quick:
        cases = {name: CASES[name] for name in ("as assumed", "all by 20 %")}
        how = {"seeds": 1, "cycles": 1}
        args.frequency = [30.0]
    if args.case:
        cases = {name: CASES[name] for name in ("as assumed", *args.case)}
    console = Console(width=140)
    rows = run(args.frequency or tuple(CYCLES), cases, say=console.print, **how)
    console.print(table(rows))
    return parser.report({"encoder": rows})


if __name__ == "__main__":
    with one_line_errors("hamr_encoder"):
        main(sys.argv[1:])
