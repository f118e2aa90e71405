"""Open-loop gaits of HAMR-VI: `models/hamr/gaits.yaml` as waveforms of voltages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import yaml

from drakebots.core.checks import (
    between,
    check_value,
    finite,
    instance,
    one_of,
    positive,
)
from drakebots.core.errors import InvalidInput
from drakebots.model import package_root
from drakebots.robots.hamr.model import BIAS, FORWARD, LEGS, MODEL, UP, hamr_benders


@dataclass(frozen=True)
class Waveform:
    """Voltages over time.

    Periodic gaits: foot commands z = sin(w t + phase) and x = -cos(w t + phase +
    lead), with amplitudes that grow linearly over `ramp` cycles. Moves: z is
    interpolated between the knots of `times` and `heights`, and x is 0.

    Attributes:

        frequency: frequency [Hz]; of a move, one over its duration.
        phase: phase of each leg (4,) [rad].
        lead: phase lead of the fore-aft motion [rad].
        swing, lift: voltage amplitudes about half the bias [V].
        ramp: number of cycles over which the amplitudes grow.
        times, heights: knots of a move [s], [-1..1]; empty for a gait.
    """

    frequency: float
    phase: np.ndarray
    lead: float
    swing: float
    lift: float
    ramp: float
    times: np.ndarray
    heights: np.ndarray

    @property
    def periodic(self) -> bool:
        """Whether it repeats."""
        return len(self.times) == 0

    @property
    def period(self) -> float:
        """Duration of one cycle, or of the whole move [s]."""
        return 1.0 / self.frequency

    def commands(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Commands (x, z) of the feet (4,), each within -1..1, at a time [s]."""
        if not self.periodic:
            z = np.full(4, np.interp(time, self.times, self.heights))
            return np.zeros(4), z
        angle = 2 * np.pi * self.frequency * time + self.phase
        grown = self.ramp <= 0 or time * self.frequency >= self.ramp
        size = 1.0 if grown else time * self.frequency / self.ramp
        return -size * np.cos(angle + self.lead), size * np.sin(angle)

    def voltages(self, time: float) -> np.ndarray:
        """The voltages of the actuators (8,) [V] at a time [s]."""
        x, z = self.commands(time)
        force = np.empty(8)
        force[0::2] = self.swing * FORWARD * x
        force[1::2] = self.lift * UP * z
        return 0.5 * BIAS - hamr_benders().orientation * force


@cache
def _tables() -> dict:
    return yaml.safe_load((package_root() / MODEL / "gaits.yaml").read_text())


def gait_names() -> list[str]:
    """The names of all gaits and moves."""
    tables = _tables()
    return [*tables["gaits"], *tables["moves"]]


def make_waveform(
    gait: str,
    frequency: float | None = None,
    *,
    swing_voltage: float | None = None,
    lift_voltage: float | None = None,
    phases: Mapping[str, float] | None = None,
) -> Waveform:
    """The waveform of a gait or move from its table.

    Args:
        gait: a name from :func:`gait_names`.
        frequency: stride frequency [Hz], 10 by default; moves have their own.
        swing_voltage, lift_voltage: amplitudes about half the bias [V] instead of the
            table's.
        phases: shares of the cycle at which legs lift, by leg, instead of the
            table's: 0.5 is the table's 180 degrees.

    Raises:
        UnknownName: for an unknown gait or leg.
        InvalidInput: for a frequency that is not > 0, or an amplitude that is not
            within 0 and half the bias.
    """
    check_value("gait", gait, one_of("gait", gait_names()))
    tables = _tables()
    move = tables["moves"].get(gait)
    row = move or tables["gaits"][gait]
    if move is not None:
        if frequency is not None:
            raise InvalidInput(f"{gait} is not periodic; leave the frequency out")
        frequency = 1e3 / row["time"][-1]
    frequency = 10.0 if frequency is None else frequency
    check_value("frequency", frequency, positive("Hz"))
    # At rest F = C0 (V_b - 2 V): an amplitude F takes F / (2 C0) volts.
    swing_per_newton, lift_per_newton = 0.5 / hamr_benders().force_per_volt[:2]
    if swing_voltage is None:
        swing_voltage = row["swing"] * swing_per_newton
    if lift_voltage is None:
        lift_voltage = row["lift"] * lift_per_newton
    check_value("swing_voltage", swing_voltage, between(0, BIAS / 2, "V"))
    check_value("lift_voltage", lift_voltage, between(0, BIAS / 2, "V"))
    phase = row.get("phase", dict.fromkeys(LEGS, 0.0))
    if phases is not None:
        check_value("phases", phases, instance(Mapping, "shares of a cycle by leg"))
    for leg, share in (phases or {}).items():
        check_value("phase of a leg", leg, one_of("leg", LEGS))
        check_value(f"phase of {leg}", share, finite())
        # z = sin(w t + phase) rises through 0 at the share -phase/360 of the cycle.
        phase = phase | {leg: -360.0 * share}
    return Waveform(
        frequency=float(frequency),
        phase=np.radians([phase[leg] for leg in LEGS]),
        lead=np.radians(row.get("lead", 0.0)),
        swing=float(swing_voltage),
        lift=float(lift_voltage),
        ramp=float(row.get("ramp", 0)),
        times=1e-3 * np.array(row.get("time", []), float),
        heights=np.array(row.get("height", []), float),
    )
