"""Motions of quad-robots as CSV files."""

from __future__ import annotations

import csv
from pathlib import Path

from drakebots.robots.quads.motion import MotionInput


def write_motion(path: Path, motion: MotionInput) -> Path:
    """Writes a motion as a CSV file for `read_motion`."""
    feet = motion.footfall.feet
    columns = {"time": motion.times}
    columns |= {f"com.{x}": motion.com[:, i] for i, x in enumerate("xyz")}
    for j, foot in enumerate(feet):
        columns |= {f"{foot}.{x}": motion.feet[:, j, i] for i, x in enumerate("xyz")}
        columns[f"{foot}.contact"] = motion.footfall.contact[:, j].astype(int)
    columns["heading"] = motion.heading
    columns |= {f"q.{name}": values for name, values in motion.reference.items()}
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(c.tolist() for c in columns.values())))
    return path
