"""What to buy and print, and how the servos are wired, as CSV files."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from drakebots.design.skeleton import Hinge, Skeleton
from drakebots.design.template_parameters import Build
from drakebots.errors import InvalidInput
from drakebots.results.container import replacing

CHANNELS = 32
"""Of the paper's servo board (section 6.2)."""


def bill_of_materials(skeleton: Skeleton, build: Build) -> list[dict[str, object]]:
    """Rows item, kind, count, mass_each_kg, note; the masses add up to the skeleton's.

    Screws are listed without mass.
    """
    rows = []
    for link in skeleton.links:
        mass = link.mass_of("shell") + link.mass_of("rib")
        note = f"SLA resin, {mass / build.density * 1e6:.1f} cm^3"
        rows.append(_row(link.name, "printed part", 1, mass, note))
    servos = {hinge.servo for hinge in skeleton.hinges}
    for servo in sorted(servos, key=lambda s: s.name):
        count = sum(hinge.servo == servo for hinge in skeleton.hinges)
        note = f"{servo.effort:g} N m"
        rows.append(_row(servo.name, "servo", count, servo.mass, note))
    for link in skeleton.links:
        for solid in (s for s in link.solids if s.kind == "payload"):
            size = " x ".join(f"{1e3 * side:g}" for side in solid.size)
            rows.append(_row(solid.name, "payload", 1, solid.mass, f"{size} mm"))
    screws = 4 * len(skeleton.hinges)
    note = f"pilot holes {1e3 * build.pilot_hole:g} mm"
    rows.append(_row("self-tapping screw", "screw", screws, 0.0, note))
    return rows


def servo_map(skeleton: Skeleton) -> list[dict[str, object]]:
    """Rows joint, channel, servo, direction, zero_deg, lower_deg, upper_deg.

    The servo's shaft angle is zero_deg + direction x the joint's angle, its travel
    counted from 0, about the shaft's outward direction; see :func:`shaft_direction`.

    Raises:
        InvalidInput: for more joints than the board has channels, or limits that
            exceed a servo's travel.
    """
    if len(skeleton.hinges) > CHANNELS:
        raise InvalidInput(
            f"servo map: {len(skeleton.hinges)} joints, the board has {CHANNELS} "
            "channels; add a second board"
        )
    rows = []
    for channel, hinge in enumerate(skeleton.hinges):
        zero = hinge.servo.travel / 2
        if max(-hinge.lower, hinge.upper) > zero:
            raise InvalidInput(
                f"joint {hinge.name}: limits exceed the travel of {hinge.servo.name}"
            )
        rows.append(
            {
                "joint": hinge.name,
                "channel": channel,
                "servo": hinge.servo.name,
                "direction": shaft_direction(hinge),
                "zero_deg": round(float(np.degrees(zero)), 6),
                "lower_deg": round(float(np.degrees(hinge.lower)), 6),
                "upper_deg": round(float(np.degrees(hinge.upper)), 6),
            }
        )
    return rows


def shaft_direction(hinge: Hinge) -> int:
    """1 where the shaft points along the joint's axis, -1 against it.

    Shafts point out of the robot: of pitch joints to their side, of abduction joints
    to their end, where the hip's horn is; of yaw joints up.
    """
    along = int(np.argmax(np.abs(hinge.axis)))
    if along == 2:
        return 1
    return 1 if hinge.p_WJ[along] * hinge.axis[along] > 0 else -1


def write_lists(skeleton: Skeleton, build: Build, folder: Path | str) -> list[Path]:
    """Writes bill_of_materials.csv and servo_map.csv."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, rows in (
        ("bill_of_materials.csv", bill_of_materials(skeleton, build)),
        ("servo_map.csv", servo_map(skeleton)),
    ):
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        with replacing(folder / name) as temporary:
            temporary.write_text(text.getvalue())
        paths.append(folder / name)
    return paths


def _row(item, kind, count, mass, note):
    return {
        "item": item,
        "kind": kind,
        "count": count,
        "mass_each_kg": round(float(mass), 6),
        "note": note,
    }
