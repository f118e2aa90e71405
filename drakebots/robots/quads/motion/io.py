"""Motions from files.

YAML names a motion of the library, or a gait, or bars:

    motion: walk_long            # of the library, with its options
    speed: 0.11

    gait: {period: 2.0, duty: 0.8, lift: 0.03, phases: {FL: 0.25, ...}}
    speed: 0.1
    turning_rate: 0.0

    lift: [FL, RR]               # feet up and down again
    height: 0.04
    duration: 2.5

CSV has a row a frame and, by name, the columns

    time, com.x, com.y, com.z, FL.x, FL.y, FL.z, FL.contact, ...,
    heading (optional), and q.JOINT of reference positions (optional)
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput, UnknownName
from drakebots.core.files import parse_yaml, replacing
from drakebots.robots.quads.motion.gait import Gait, lift, synthesize
from drakebots.robots.quads.motion.library import library_motion
from drakebots.robots.quads.motion.motion import Footfall, MotionInput
from drakebots.robots.quads.robot import Quad

KINDS = ("motion", "gait", "lift")
"""The entry that says what a YAML file describes."""


def read_motion(path: str | Path, quad: Quad, skin=None) -> MotionInput:
    """A motion from a YAML or CSV file.

    Args:
        path: ending in .yaml, .yml or .csv.
        quad: the robot: its feet, its size.
        skin: on its links, for the COM at rest of motions from YAML.

    Raises:
        FileProblem: when it cannot be read, or describes no motion of this robot;
            the message names the entry, row or column.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileProblem(path, f"cannot be read ({error})") from None
    try:
        if path.suffix.lower() in (".yaml", ".yml"):
            return motion_from_yaml(text, quad, path.stem, skin)
        if path.suffix.lower() == ".csv":
            return motion_from_csv(text, quad, path.stem)
    except DrakebotsError as error:
        raise FileProblem(path, str(error)) from error
    raise FileProblem(path, "must end in .yaml or .csv")


def motion_from_yaml(
    text: str, quad: Quad, name: str = "motion", skin=None
) -> MotionInput:
    """See :func:`read_motion`."""
    raw = parse_yaml(text)
    if not isinstance(raw, dict):
        raise InvalidInput("needs `name: value` entries, e.g. motion: walk_long")
    raw = {str(k): _plain(v) for k, v in raw.items()}
    kinds = [key for key in KINDS if key in raw]
    if len(kinds) != 1:
        raise InvalidInput(f"needs one of {', '.join(KINDS)}; has {kinds or 'none'}")
    what = raw.pop(kinds[0])
    raw["skin"] = skin
    if kinds[0] == "motion":
        return library_motion(str(what), quad, **raw)
    if kinds[0] == "lift":
        feet = what if isinstance(what, list) else [what]
        return _called(lift, quad, [str(f) for f in feet], **raw)
    if not isinstance(what, dict):
        raise InvalidInput("gait: needs period, duty, lift and phases")
    fields = {"name": name, **what}
    try:
        gait = Gait(**fields)
    except TypeError as error:
        raise InvalidInput(f"gait: {error}") from None
    for key in ("period", "duty", "lift"):
        _number(getattr(gait, key), f"gait {key}")
    if not isinstance(gait.phases, dict):
        raise InvalidInput("gait phases: give each foot's, e.g. {FL: 0.25}")
    raw.setdefault("speed", 0.0)
    return _called(synthesize, quad, gait, **raw)


def motion_from_csv(text: str, quad: Quad, name: str = "motion") -> MotionInput:
    """See :func:`read_motion`. The frames' spacing is that of the times."""
    rows = list(csv.reader(text.splitlines()))
    if len(rows) < 3:
        raise InvalidInput("needs a header and at least two frames")
    header = [cell.strip() for cell in rows[0]]
    for column in header:
        if header.count(column) > 1:
            raise InvalidInput(f"column {column!r} is there twice")
    table = np.empty((len(rows) - 1, len(header)))
    for k, row in enumerate(rows[1:]):
        if len(row) != len(header):
            raise InvalidInput(
                f"line {k + 2}: {len(row)} values for {len(header)} columns"
            )
        for i, cell in enumerate(row):
            table[k, i] = _number(cell, f"line {k + 2}, column {header[i]}")
    columns = dict(zip(header, table.T))
    needed = ["time", *(f"com.{x}" for x in "xyz")]
    needed += [f"{f}.{x}" for f in quad.feet for x in ("x", "y", "z", "contact")]
    missing = [c for c in needed if c not in columns]
    if missing:
        raise InvalidInput(f"lacks the column {missing[0]!r}")
    joints = [c[2:] for c in header if c.startswith("q.")]
    for column in header:
        if column not in (*needed, "heading") and not column.startswith("q."):
            raise UnknownName("column", column, [*needed, "heading", "q.JOINT"])
    for joint in joints:
        if joint not in quad.coordinates[6:]:
            raise UnknownName("joint", joint, quad.coordinates[6:])
    t = columns["time"]
    dt = (t[-1] - t[0]) / (len(t) - 1)
    uneven = np.abs(np.diff(t) - dt)
    if not dt > 0 or uneven.max() > 1e-3 * dt:
        k = int(uneven.argmax())
        raise InvalidInput(
            f"times must be evenly spaced; line {k + 3} comes {t[k + 1] - t[k]:.6g} s "
            f"after the one before, the mean is {dt:.6g} s"
        )
    contact = np.stack([columns[f"{f}.contact"] for f in quad.feet], axis=1)
    if not np.isin(contact, (0, 1)).all():
        k, j = np.argwhere(~np.isin(contact, (0, 1)))[0]
        raise InvalidInput(
            f"line {k + 2}, column {quad.feet[j]}.contact: must be 0 or 1"
        )
    return MotionInput(
        Footfall(quad.feet, contact > 0, float(dt)),
        np.stack([columns[f"com.{x}"] for x in "xyz"], axis=1),
        np.stack(
            [np.stack([columns[f"{f}.{x}"] for x in "xyz"], axis=1) for f in quad.feet],
            axis=1,
        ),
        columns.get("heading", 0.0),
        reference={j: columns[f"q.{j}"] for j in joints},
        name=name,
    )


def write_motion(path: str | Path, motion: MotionInput) -> Path:
    """Writes the CSV that :func:`read_motion` reads, atomically."""
    feet = motion.footfall.feet
    columns = {"time": motion.times}
    columns |= {f"com.{x}": motion.com[:, i] for i, x in enumerate("xyz")}
    for j, foot in enumerate(feet):
        columns |= {f"{foot}.{x}": motion.feet[:, j, i] for i, x in enumerate("xyz")}
        columns[f"{foot}.contact"] = motion.footfall.contact[:, j].astype(int)
    columns["heading"] = motion.heading
    columns |= {f"q.{name}": values for name, values in motion.reference.items()}
    path = Path(path)
    with (
        replacing(path) as part,
        open(part, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(c.tolist() for c in columns.values())))
    return path


def _called(function, *args, **options) -> MotionInput:
    try:
        return function(*args, **options)
    except TypeError as error:
        raise InvalidInput(str(error)) from None


def _plain(value: Any) -> Any:
    # YAML reads 1e-2 as text.
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _number(value, where: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if isinstance(value, bool) or not np.isfinite(number):
        raise InvalidInput(f"{where}: {value!r} must be a finite number")
    return number
