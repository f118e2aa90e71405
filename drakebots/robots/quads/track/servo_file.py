"""Exports the joint angles of a plan for a servo board.

The file has one row per 1/rate seconds: `time` [s], then one column per channel with
the angle of the servo's shaft [deg], measured from one end of its travel, or with the
pulse width [us]. The shaft's angle follows from the joint's by

    shaft = zero + direction x angle

with zero, direction and limits of the servo map
(:func:`drakebots.design.fabrication.fabricate.servo_map`). The angles are the planned
ones, moved by what the servos sag under the planned torques
(:func:`~drakebots.robots.quads.track.reference.servo_targets`); those of a run are the
targets that its servos had.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from drakebots.core.checks import (
    check_memory,
    check_value,
    finite,
    interval,
    one_of,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.fields import checked
from drakebots.core.files import number, reading, write_csv
from drakebots.design import table1_template
from drakebots.design.fabrication import servo_map as design_map
from drakebots.model import skin_path
from drakebots.multibody import joint_angles
from drakebots.results import Result, require
from drakebots.robots.quads.motion.motion import PERIODS
from drakebots.robots.quads.track.reference import plan_model, servo_targets
from drakebots.skin.file import ServoGains, read_skin

UNITS = ("deg", "us")

PULSE = (500e-6, 2500e-6)
"""Pulse widths at both ends of the travel [s]."""

LONGEST = 0.02
"""Longest pulse [s]: hobby servos read 50 pulses per second."""

SLACK = 0.05
"""Largest excess over a limit that counts as rounding [deg]."""


@checked()
class ServoTable:
    """Angles of a plan that a servo board plays."""

    plan: Result
    """A plan or a run of a quad-robot."""
    servo_map: str | Path | None = None
    """File servo_map.csv of the board; by default the one beside the robot's model, or
    that of its design."""
    rate: Annotated[float, positive("Hz")] = 50.0
    """Rows per second; hobby servos read 50 pulses per second."""
    cycles: Annotated[int, whole(1)] = 1
    """Number of cycles of a periodic motion."""
    units: Annotated[str, one_of("unit", UNITS)] = "deg"
    """Values of the table: angles [deg] or pulse widths [us]."""
    pulse: Annotated[tuple[float, float], interval("s")] = PULSE
    """Pulse widths at both ends of the travel."""
    plain_angles: bool = False
    """Whether to write the planned angles as they are, not moved by what the servos sag
    under their torques."""

    def __post_init__(self):
        if not 0 < self.pulse[0] < self.pulse[1] <= LONGEST:
            raise InvalidInput(
                f"pulse {self.pulse} s: needs two widths, the shorter first, of at "
                f"most {LONGEST:g} s; are they in us?"
            )


def export_servos(plan: Result | ServoTable, path: str | Path, **options: Any) -> Path:
    """Writes the angles that a servo board plays.

    Args:
        plan: a plan or a run of a quad-robot, or its table.
        path: file to write (.csv).
        options: fields of the table, for a plan.

    Returns:
        The path.

    Raises:
        InvalidInput, UnknownName: as from :func:`servo_table`, or without a servo map,
            or for a plan with torques whose model is not where the plan says.
        FileProblem: for a servo map that cannot be read or a file that cannot be
            written.
    """
    table = plan if isinstance(plan, ServoTable) else ServoTable(plan, **options)
    plan = table.plan
    if table.servo_map is not None:
        channels = read_channels(table.servo_map)
    else:
        try:
            folder = Path(plan_model(plan)).parent
        except InvalidInput:
            folder = None
        channels = model_channels(plan.model, folder)
    gains = None
    if not table.plain_angles and "target" not in plan.data and "torque" in plan.data:
        gains = model_gains(plan)
    times, values = servo_table(table, channels, gains)
    return write_servos(path, channels, times, values, table.units)


@dataclass(frozen=True)
class Channel:
    """One servo on the board.

    Attributes:
        joint: name of the joint.
        number: number of the channel.
        direction: 1 or -1.
        zero: angle of the shaft at the joint's angle 0 [deg]; the travel is twice that.
        lower, upper: limits of the joint [deg].
    """

    joint: str
    number: int
    direction: int
    zero: float
    lower: float
    upper: float


_RULES = {
    "channel": whole(),
    "direction": whole(-1, 1),
    "zero_deg": positive("deg"),
    "lower_deg": finite("deg"),
    "upper_deg": finite("deg"),
}
"""Rules of the columns of a servo map besides the joint."""


def channels_of(rows: Sequence[Mapping[str, object]]) -> tuple[Channel, ...]:
    """Makes channels from the rows of a servo map.

    Raises:
        InvalidInput: for a number that is missing or out of range, limits in the wrong
            order, or a repeated channel.
    """
    found = []
    for k, row in enumerate(rows, 2):
        values = []
        for name, rule in _RULES.items():
            place = f"servo map, line {k}: {name}"
            value = number(str(row.get(name, "")), place)
            values.append(check_value(place, value, rule))
        one = Channel(str(row.get("joint", "")), *values)
        if one.direction == 0:
            raise InvalidInput(f"servo map, line {k}: direction must be 1 or -1")
        if one.lower >= one.upper:
            raise InvalidInput(f"servo map, line {k}: lower_deg must be < upper_deg")
        found.append(one)
    numbers = [one.number for one in found]
    twice = {n for n in numbers if numbers.count(n) > 1}
    if twice:
        raise InvalidInput(f"servo map: channel {min(twice)} is listed twice")
    return tuple(found)


def read_channels(path: str | Path) -> tuple[Channel, ...]:
    """Reads the channels of a servo_map.csv.

    Raises:
        FileProblem: when it cannot be read or is no servo map.
    """
    path = Path(path)
    with reading(path):
        try:
            rows = list(csv.DictReader(path.read_text().splitlines(), restval=""))
        except csv.Error as error:
            raise InvalidInput(f"is no table ({error})") from None
        return channels_of(rows)


def model_channels(model: str, folder: Path | None = None) -> tuple[Channel, ...]:
    """Channels of a robot: those of the servo_map.csv beside it, or of its design.

    Raises:
        InvalidInput: when there is neither.
        FileProblem: as from :func:`read_channels`.
    """
    if folder is not None and os.path.isfile(folder / "servo_map.csv"):
        return read_channels(folder / "servo_map.csv")
    try:
        template = table1_template(model)
    except UnknownName:
        raise InvalidInput(
            f"{model}: no servo_map.csv beside the model; give one with --servo-map"
        ) from None
    return channels_of(design_map(template.skeleton()))


def model_gains(plan: Result) -> ServoGains:
    """Gains of the servos of a plan's robot, of the `.skin.yaml` beside its model.

    Raises:
        InvalidInput: when the file is not where the plan says.
    """
    path = skin_path(Path(plan_model(plan)))
    if not os.path.isfile(path):
        raise InvalidInput(
            f"{path}: is not there, so the sag of the servos is not known; put the "
            "model back, or take the planned angles as they are (--plain-angles)"
        )
    return read_skin(path).servos


def servo_table(
    table: ServoTable, channels: Sequence[Channel], gains: ServoGains | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) [s] and values (n, channels) in the order of the channels.

    Args:
        table: the plan, and how it is played.
        channels: channels of the board.
        gains: gains of the servos, to move the angles by their sag under the plan's
            torques; None for the angles as they are. The limits are those of the
            joint, so a servo's shaft may go beyond them by its sag.

    Raises:
        InvalidInput: for a plan without motion, a joint without a channel, or a
            planned angle beyond its servo's limits, naming joint and time.
    """
    plan, rate, cycles = table.plan, table.rate, table.cycles
    angles = _angles(plan)
    lost = set(angles) - {c.joint for c in channels}
    if lost:
        raise InvalidInput(f"servo map: no channel for joint {', '.join(sorted(lost))}")
    unknown = {c.joint for c in channels} - set(angles)
    if unknown:
        raise InvalidInput(f"servo map: the plan has no joint {sorted(unknown)[0]!r}")
    own = plan.data.time.values
    end = float(own[-1])
    repeats = plan.metrics.get("period") in PERIODS
    if cycles > 1 and not repeats:
        raise InvalidInput(
            f"cycles = {cycles}: the joints of {plan.metrics.get('motion', 'the plan')}"
            " do not end as they begin; use 1"
        )
    rows = cycles * end * rate
    check_memory(f"a table of {rows:.3g} rows", rows, 100 * max(len(channels), 1))
    times = np.arange(int(np.floor(cycles * end * rate * (1 + 1e-9))) + 1) / rate
    phase = np.where(times > end * (1 + 1e-9), times % end, times)
    targets = _targets(plan, angles, gains)
    columns = []
    for channel in channels:
        planned, sent = (
            np.degrees(np.interp(phase, own, values[channel.joint]))
            for values in (angles, targets)
        )
        columns.append(_shaft(channel, planned, sent, times))
    values = np.stack(columns, axis=1)
    if table.units == "us":
        low, high = table.pulse
        travel = 2 * np.array([c.zero for c in channels])
        values = 1e6 * (low + (high - low) * values / travel)
    return times, values


def _targets(plan: Result, angles, gains: ServoGains | None) -> dict[str, np.ndarray]:
    """Angles to send (N,) [rad] by joint: a run's targets, or a plan's with the sag."""
    data = plan.data
    joints = [str(name) for name in data.joint.values]
    if "target" in data:
        return dict(zip(joints, data.target.values.T))
    if gains is None or "torque" not in data:
        return angles
    planned = np.stack([angles[name] for name in joints], axis=1)
    times = data.time.values
    dt = float(times[1] - times[0])
    repeats = plan.metrics.get("period") in PERIODS
    sent = servo_targets(planned, data.torque.values, gains, dt, periodic=repeats)
    return dict(zip(joints, sent.T))


def _shaft(channel: Channel, degrees, sent, times: np.ndarray) -> np.ndarray:
    """Angles of a shaft that is sent there; the planned degrees keep the limits."""
    beyond = np.maximum(degrees - channel.upper, channel.lower - degrees)
    worst = int(beyond.argmax())
    if beyond[worst] > SLACK:
        raise InvalidInput(
            f"joint {channel.joint} turns to {degrees[worst]:.1f} deg at "
            f"{times[worst]:.3f} s, beyond its servo's {channel.lower:g} to "
            f"{channel.upper:g} deg; plan within the joint limits"
        )
    return np.clip(channel.zero + channel.direction * sent, 0.0, 2 * channel.zero)


def _angles(plan: Result) -> dict[str, np.ndarray]:
    """Angles of the actuated joints (N,) [rad] by name.

    Raises:
        InvalidInput: when the result has none.
    """
    require(plan.data, "position joint", "motion of joints to export", time=2)
    return joint_angles(plan.data)


def write_servos(
    path: str | Path, channels: Sequence[Channel], times, values, units: str
) -> Path:
    """Writes the table, atomically, with the channels in the order of their numbers."""
    order = np.argsort([c.number for c in channels])
    named = [f"ch{c.number}_{c.joint}_{units}" for c in channels]
    digits = 3 if units == "deg" else 1
    rows = (
        [f"{time:.4f}", *(f"{x:.{digits}f}" for x in row)]
        for time, row in zip(times, values[:, order])
    )
    return write_csv(path, ["time", *(named[k] for k in order)], rows)
