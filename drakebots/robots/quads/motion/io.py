"""Motions in files.

A YAML file names a motion of the library, a gait, or feet to lift:

    motion: walk_long            # of the library, with its options
    speed: 0.11

    gait: {period: 2.0, duty: 0.8, lift: 0.03, phases: {FL: 0.25, ...}}
    speed: 0.1
    turning_rate: 0.0

    lift: [FL, RR]               # feet to lift and put down again
    height: 0.04
    duration: 2.5

A CSV file has one row per step and, by name, the columns

    time, com.x, com.y, com.z, FL.x, FL.y, FL.z, FL.contact, ...,
    heading (optional), and q.JOINT of reference positions (optional)
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput, UnknownName
from drakebots.core.files import TOP, Fields, number, read_yaml, replacing
from drakebots.robots.quads.motion.gait import Gait, lift, synthesize
from drakebots.robots.quads.motion.library import library_motion
from drakebots.robots.quads.motion.motion import Footfall, MotionInput
from drakebots.robots.quads.robot import LinkSkin, Quad

KINDS = ("motion", "gait", "lift")
"""The entry that says what a YAML file describes."""

_GAIT_NUMBERS = ("period", "duty", "lift", "height", "clearance", "spread")


def read_motion(
    path: str | Path, quad: Quad, skin: LinkSkin | None = None
) -> MotionInput:
    """Reads a motion from a YAML or CSV file.

    Args:
        path: file ending in .yaml, .yml or .csv.
        quad: the robot with its feet and its size.
        skin: skin on its links, which shifts the COM of motions from YAML.

    Raises:
        FileProblem: when it cannot be read, or describes no motion of this robot;
            the message names the entry, row or column.
    """
    path = Path(path)
    try:
        if path.suffix.lower() in (".yaml", ".yml"):
            return _from_yaml(read_yaml(path), quad, path.stem, skin)
        if path.suffix.lower() == ".csv":
            return motion_from_csv(path.read_text(encoding="utf-8"), quad, path.stem)
    except (OSError, UnicodeDecodeError) as error:
        raise FileProblem(path, f"cannot be read ({error})") from None
    except FileProblem:
        raise
    except DrakebotsError as error:
        raise FileProblem(path, str(error)) from error
    raise FileProblem(path, "must end in .yaml or .csv")


def _from_yaml(raw: Any, quad: Quad, name: str, skin: LinkSkin | None) -> MotionInput:
    fields = Fields(raw, TOP)
    kinds = [key for key in KINDS if key in fields]
    if len(kinds) != 1:
        raise InvalidInput(f"needs one of {', '.join(KINDS)}; has {kinds or 'none'}")
    what = fields.get(kinds[0])
    options = {key: _number_or_text(fields.get(key)) for key in fields}
    options |= {"skin": skin}
    del options[kinds[0]]
    try:
        if kinds[0] == "motion":
            return library_motion(str(what), quad, **options)
        if kinds[0] == "lift":
            feet = what if isinstance(what, list) else [what]
            return lift(quad, [str(f) for f in feet], **options)
        return synthesize(quad, _gait(what, name), **{"speed": 0.0} | options)
    except TypeError as error:
        raise InvalidInput(str(error)) from None


def _gait(raw: Any, name: str) -> Gait:
    fields = Fields(raw, "gait", (*_GAIT_NUMBERS, "phases", "name"))
    phases = fields.fields("phases")
    numbers = {key: fields.number(key) for key in _GAIT_NUMBERS[:3]}
    numbers |= {key: fields.number(key) for key in _GAIT_NUMBERS[3:] if key in fields}
    return Gait(
        {foot: phases.number(foot) for foot in phases},
        **numbers,
        name=fields.text("name", name),
    )


def _number_or_text(value: Any) -> Any:
    # YAML reads 1e-2 as text.
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def motion_from_csv(text: str, quad: Quad, name: str = "motion") -> MotionInput:
    """Motion from the text of a CSV file; its `time` column gives dt.

    Raises:
        InvalidInput, UnknownName: naming the line or column.
    """
    rows = list(csv.reader(text.splitlines()))
    if len(rows) < 3:
        raise InvalidInput("needs a header and at least two steps")
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
            table[k, i] = number(cell, f"line {k + 2}, column {header[i]}")
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
            f"after the previous one, the mean is {dt:.6g} s"
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
    """Writes a motion as a CSV file for :func:`read_motion`, atomically."""
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
