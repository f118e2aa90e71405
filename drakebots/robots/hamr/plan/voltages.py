"""Voltages of a plan as a table for a real drive."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.files import replacing
from drakebots.robots.hamr.model import ACTUATORS, check_voltages
from drakebots.robots.hamr.track import Reference

MIDDLE = 112.5
"""Voltage at which an actuator rests [V]."""


def sampled_voltages(
    reference: Reference, *, rate: float, cycles: int = 1, ramp: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) [s] and voltages (n, 8) [V] at a rate.

    Args:
        reference: the plan.
        rate: samples a second [Hz].
        cycles: how often a periodic plan is repeated.
        ramp: cycles over which the voltages grow from their middle.

    Raises:
        InvalidInput: for a rate too low for the plan, or cycles < 1.
    """
    fastest = 1 / np.diff(reference.time).min()
    if not (np.isfinite(rate) and rate >= fastest * (1 - 1e-9)):
        raise InvalidInput(
            f"rate must be at least {fastest:.4g} Hz to play every knot, got {rate:g}"
        )
    if cycles < 1 or ramp < 0:
        raise InvalidInput("cycles must be >= 1 and ramp >= 0")
    length = reference.duration * (cycles if reference.periodic else 1)
    times = np.arange(round(length * rate)) / rate
    values = np.array([reference.voltages_at(t) for t in times])
    if ramp > 0 and reference.periodic:
        grown = np.minimum(times / (ramp * reference.duration), 1.0)[:, None]
        values = MIDDLE + grown * (values - MIDDLE)
    return times, check_voltages(values)


def export_voltages(reference: Reference, path: str | Path, **options) -> Path:
    """Writes them as CSV: time_s, then a column in V for each actuator.

    Args:
        options: of :func:`sampled_voltages`.
    """
    times, values = sampled_voltages(reference, **options)
    path = Path(path)
    with replacing(path) as part, open(part, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time_s", *(f"{name}_V" for name in ACTUATORS)])
        for t, row in zip(times, values):
            writer.writerow([f"{t:.7f}", *(f"{v:.4f}" for v in row)])
    return path
