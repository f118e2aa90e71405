"""Open-loop gaits of HAMR-VI: tables, waveforms, and a source of voltages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import yaml
from pydrake.systems.framework import LeafSystem

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.model import package_root
from drakebots.robots.hamr.model import (
    FORWARD,
    LEGS,
    MODEL,
    UP,
    Bender,
    check_voltages,
    hamr_benders,
)


@dataclass(frozen=True)
class Waveform:
    """Voltages over time.

    Periodic gaits: foot commands z = lift sin(w t + phase) and x = -swing
    cos(w t + phase + lead), the amplitude growing linearly over `ramp` cycles. Moves:
    z is interpolated between the knots of `times` and `heights`.

    Attributes:
        name: of the gait or move.
        frequency: [Hz]; of a move, one over its duration.
        phase: of each leg (4,) [rad].
        lead: of the fore-aft motion [rad].
        swing, lift: voltage amplitudes about half the bias [V].
        ramp: [cycles].
        times, heights: knots of a move [s], [-1..1]; empty for a gait.
        bias: V_b [V].
        orientation: of the actuators (8,).
    """

    name: str
    frequency: float
    phase: np.ndarray
    lead: float
    swing: float
    lift: float
    ramp: float
    times: np.ndarray
    heights: np.ndarray
    bias: float
    orientation: np.ndarray

    @property
    def periodic(self) -> bool:
        """Whether it repeats."""
        return len(self.times) == 0

    @property
    def period(self) -> float:
        """Of one cycle, or of the whole move [s]."""
        return 1.0 / self.frequency

    def commands(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """(x, z) of the feet (4,), in -1..1."""
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
        return 0.5 * self.bias - self.orientation * force


@cache
def _tables() -> dict:
    return yaml.safe_load((package_root() / MODEL / "gaits.yaml").read_text())


def gait_names() -> list[str]:
    """The gaits and moves there are."""
    tables = _tables()
    return [*tables["gaits"], *tables["moves"]]


def make_waveform(
    gait: str,
    frequency: float | None = None,
    *,
    swing_voltage: float | None = None,
    lift_voltage: float | None = None,
    benders: Bender | None = None,
) -> Waveform:
    """The waveform of a gait or move from its table.

    Args:
        gait: a name from :func:`gait_names`.
        frequency: stride frequency [Hz], 10 by default; moves have their own.
        swing_voltage, lift_voltage: amplitudes [V] instead of the table's.

    Raises:
        UnknownName: for an unknown gait.
        InvalidInput: for a frequency <= 0 or not finite, or an amplitude
            beyond half the bias.
    """
    tables, law = _tables(), benders or hamr_benders()
    if gait not in gait_names():
        raise UnknownName("gait", gait, gait_names())
    move = tables["moves"].get(gait)
    row = move or tables["gaits"][gait]
    if move is not None:
        if frequency is not None:
            raise InvalidInput(f"{gait} is not periodic; leave the frequency out")
        frequency = 1e3 / row["time"][-1]
    frequency = 10.0 if frequency is None else float(frequency)
    if not (np.isfinite(frequency) and frequency > 0):
        raise InvalidInput(f"frequency must be > 0 Hz, got {frequency}")
    # At rest F = C0 (V_b - 2 V): an amplitude F takes F / (2 C0) volts.
    per_newton = 0.5 / law.force_per_volt[:2]
    swing, lift = (
        float(row[name] * volts) if given is None else float(given)
        for name, volts, given in zip(
            ("swing", "lift"), per_newton, (swing_voltage, lift_voltage)
        )
    )
    for name, size in (("swing", swing), ("lift", lift)):
        if not (np.isfinite(size) and size >= 0):
            raise InvalidInput(f"{name} voltage amplitude must be >= 0 V, got {size}")
        try:
            check_voltages([0.5 * law.bias - size, 0.5 * law.bias + size], law.bias)
        except InvalidInput as error:
            raise InvalidInput(
                f"{name} amplitude {size:g} V: {error}; at most {law.bias / 2:g} V"
            ) from error
    phase = row.get("phase", dict.fromkeys(LEGS, 0.0))
    return Waveform(
        name=gait,
        frequency=frequency,
        phase=np.radians([phase[leg] for leg in LEGS]),
        lead=np.radians(row.get("lead", 0.0)),
        swing=swing,
        lift=lift,
        ramp=float(row.get("ramp", 0)),
        times=1e-3 * np.array(row.get("time", []), float),
        heights=np.array(row.get("height", []), float),
        bias=law.bias,
        orientation=law.orientation,
    )


class GaitSource(LeafSystem):
    """Plays a waveform.

        ┌────────────┐
        │ GaitSource │──▶ voltages (8) V
        └────────────┘

    Args:
        waveform: what to play.
        time_unit: of the diagram's clock [s].
    """

    def __init__(self, waveform: Waveform, time_unit: float = 1.0):
        super().__init__()
        self.set_name("gait_source")
        self._waveform, self._unit = waveform, time_unit
        self.DeclareVectorOutputPort("voltages", 8, self._calc)

    def _calc(self, context, output):
        output.SetFromVector(self._waveform.voltages(context.get_time() * self._unit))
