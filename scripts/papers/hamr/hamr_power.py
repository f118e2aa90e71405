"""HAMR-VI's optimized gaits beside trots tuned by hand at the same input power.

    python scripts/papers/hamr/hamr_power.py            # nine gaits, hours
    python scripts/papers/hamr/hamr_power.py --starts 2 --frequency 30    # ten minutes
    python scripts/papers/hamr/hamr_power.py --quick    # 30 Hz on card, one amplitude

The paper finds optimized gaits 17 % faster on average than manually tuned ones of equal
frequency and average input power, and says neither how they were tuned nor which power
was measured. Here a trot is tuned by trying amplitudes of swing and lift from a quarter
to all of the voltage, and taking the fastest that takes no more power than the stored
optimized gait takes when it is executed. Power is one of two:

* mechanical: the mean over whole cycles of the actuators' positive power
* electrical: V_b C sum_i (what V_i rises by in a second), the charge that a drive
  without recovery takes from the bias, with the encoder's capacitance (ours) for C

Both gaits are then executed from starts that differ by 1e-9, the optimized one under
its controller, the trot open loop, by Drake's contact and by hard contact.

JSON: power_matched_gain_percent, gaits.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import xarray as xr

from drakebots.cli.output import one_line_errors, print_table
from drakebots.results import load_result
from drakebots.robots.hamr import (
    Simulation,
    Tracking,
    simulate,
    stored_plan,
)
from drakebots.robots.hamr.model import BIAS, parameters, surfaces
from drakebots.robots.hamr.reference import recorded_reference
from drakebots.robots.hamr.track import Gains
from drakebots.sweeps import sweep

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from hamr_starts import spread, spread_text, starts
from measurement import Measurement

CELLS = [
    (frequency, surface)
    for frequency in (2.0, 10.0, 30.0)
    for surface in ("teflon", "card", "sandpaper")
]
SHARES = (0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
"""Amplitudes that are tried, as shares of half the bias."""

CONTACTS = ("sap", "stepping")
CYCLES = {2.0: 3}
"""Cycles of a trot while it is tuned, elsewhere 6."""

POWERS = ("mechanical", "electrical")
LOG = 4e-4
"""Period of the stored samples [s], that of the controller."""


def electrical(data: xr.Dataset, start: float) -> float:
    """Mean power that the drive takes from the bias [mW], from a time [s] on."""
    part = data.sel(time=slice(start, None))
    rises = np.maximum(np.diff(part.voltage.values, axis=0), 0).sum()
    seconds = float(part.time[-1] - part.time[0])
    return 1e3 * BIAS * parameters().number("encoder", "capacitance") * rises / seconds


def tuned(
    frequency: float, surface: str, shares: Sequence[float], folder: Path, workers
) -> list[dict]:
    """Strides and powers of trots by their amplitudes."""
    problem = Simulation(
        frequency=frequency,
        surface=surface,
        cycles=CYCLES.get(frequency, 6),
        log_period=LOG,
    )
    half = [share * BIAS / 2 for share in shares]
    over = {"swing_voltage": half, "lift_voltage": half}
    runs = sweep(problem, over, out=folder, workers=workers).data
    out = []
    for swing in half:
        for lift in half:
            run = runs.sel(swing_voltage=swing, lift_voltage=lift)
            data = load_result(folder / str(run.file.values)).data
            out.append(
                {
                    "swing_V": swing,
                    "lift_V": lift,
                    "stride_mm": float(run.stride_mm_per_cycle),
                    "mechanical": float(run.positive_power_mW),
                    "electrical": electrical(data, 2 / frequency),
                }
            )
    return out


def open_loop(frequency: float, surface: str, trot: dict) -> Tracking:
    """A tuned trot to execute: its voltages, without feedback."""
    run = simulate(
        Simulation(
            frequency=frequency,
            surface=surface,
            cycles=2,
            swing_voltage=trot["swing_V"],
            lift_voltage=trot["lift_V"],
            log_period=LOG,
        )
    )
    cycle = recorded_reference(
        run.data,
        3 / frequency,
        4 / frequency,
        periodic=False,
        friction=surfaces()[surface],
        name="trot",
    )
    # Its legs are where they were a cycle ago to a millimetre, which without feedback
    # is of no account: only the voltages are played.
    q, base = cycle.q.copy(), 6
    q[-1, base:] = q[0, base:]
    cycle = replace(cycle, q=q, periodic=True)
    return Tracking(cycle, gains=Gains(kp=0.0, kd=0.0), log_period=LOG)


def cell(
    frequency: float, surface: str, *, shares, cycles: int, count: int, **more
) -> dict:
    """The figures of one gait; `more` are contacts and workers of executions."""
    name = f"{frequency:g}hz_{surface}"
    row: dict = {"frequency_hz": frequency, "surface": surface}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        planned = Tracking(stored_plan(name), cycles=cycles, log_period=LOG)
        found = executed(planned, count, folder / "plan", **more)
        row["optimized"] = found
        trots = tuned(frequency, surface, shares, folder / "tuned", more["workers"])
        row["fastest_trot"] = max(trots, key=lambda trot: trot["stride_mm"])
        tried: dict[tuple[float, float], dict] = {}
        for power in POWERS:
            within = [t for t in trots if t[power] <= found[CONTACTS[0]][power]]
            if not within:
                row[power] = {"trot": None}
                continue
            best = max(within, key=lambda trot: trot["stride_mm"])
            volts = best["swing_V"], best["lift_V"]
            if volts not in tried:
                posed = replace(open_loop(frequency, surface, best), cycles=cycles)
                tried[volts] = executed(posed, count, folder / power, **more)
            row[power] = {"trot": best, "executed": tried[volts]} | {
                f"gain_percent_{contact}": gain(found[contact], tried[volts][contact])
                for contact in more["contacts"]
            }
    return row


def executed(
    posed: Tracking, count: int, folder: Path, contacts: Sequence[str], workers
) -> dict:
    """Strides from several starts and mean powers, by contact model."""
    out = {}
    for contact in contacts:
        place = folder / contact
        place.mkdir(parents=True)
        posed = replace(posed, contact=contact)
        runs = starts(posed, count, out=place, workers=workers)
        first = load_result(place / runs.data.file.values[0]).data
        out[contact] = {
            "stride_mm": spread(runs.data.stride_mm_per_cycle.values),
            "mechanical": float(runs.data.positive_power_mW.mean()),
            "electrical": electrical(first, posed.start),
        }
    return out


def gain(optimized: dict, by_hand: dict) -> float | None:
    """What the optimized gait is faster by [%]; None where the trot goes nowhere."""
    ahead, beside = (one["stride_mm"]["mean"] for one in (optimized, by_hand))
    return None if ahead is None or not beside > 0 else 100 * (ahead / beside - 1)


def lines(rows: Sequence[dict]) -> dict[str, dict]:
    """The table: one line a gait and a kind of power."""
    out = {}
    for row in rows:
        for power in POWERS:
            found, ours = row[power], row["optimized"]["sap"]
            line = {"optimized [mm]": spread_text(ours["stride_mm"])}
            line["power [mW]"] = f"{ours[power]:.1f}"
            if found["trot"] is not None:
                hand = found["executed"]["sap"]
                line |= {
                    "trot [mm]": spread_text(hand["stride_mm"]),
                    "its power": f"{hand[power]:.1f}",
                    "swing, lift [V]": f"{found['trot']['swing_V']:.0f}, "
                    f"{found['trot']['lift_V']:.0f}",
                    "gain [%]": f"{found['gain_percent_sap']:.0f}",
                }
                if "gain_percent_stepping" in found:
                    hard = f"{found['gain_percent_stepping']:.0f}"
                    line["by hard contact [%]"] = hard
            out[f"{row['frequency_hz']:g} Hz, {row['surface']}, {power}"] = line
    return out


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the comparison; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="30 Hz on card, one amplitude, one start, SAP")
    parser.add_argument("--starts", type=int, default=20, help="of each gait")
    parser.add_argument("--frequency", type=float, action="append", help="[Hz]")
    parser.add_argument("--surface", action="append")
    parser.add_argument("--workers", type=int, help="processes, by default all cores")
    args = parser.parse_args(argv)
    wanted = {
        "shares": SHARES,
        "cycles": 15,
        "count": args.starts,
        "contacts": CONTACTS,
        "workers": args.workers,
    }
    cells = [
        (frequency, surface)
        for frequency, surface in CELLS
        if frequency in (args.frequency or [frequency])
        and surface in (args.surface or [surface])
    ]
    if args.quick:
        cells = [(30.0, "card")]
        wanted |= {"shares": (0.4,), "cycles": 2, "count": 1, "workers": 1}
        wanted["contacts"] = CONTACTS[:1]
    rows = []
    for frequency, surface in cells:
        rows.append(cell(frequency, surface, **wanted))
        print(f"{frequency:g} Hz, {surface}", file=sys.stderr, flush=True)
    print_table("HAMR-VI: optimized gaits and trots of the same power", lines(rows))
    means = {
        f"{power}_{contact}": _mean(rows, power, f"gain_percent_{contact}")
        for power in POWERS
        for contact in CONTACTS
    }
    return parser.report({"power_matched_gain_percent": means, "gaits": rows})


def _mean(rows: Sequence[dict], power: str, name: str) -> float | None:
    """Of the gaits that have it."""
    found = [row[power].get(name) for row in rows]
    there = [value for value in found if value is not None]
    return float(np.mean(there)) if there else None


if __name__ == "__main__":
    with one_line_errors("hamr_power"):
        main()
