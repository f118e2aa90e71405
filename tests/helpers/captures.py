"""A made-up animal whose strides are known, as motion captures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

FRAMES = 61
HIP, STRIDE, PERIOD = 0.5, 0.8, 0.5
"""Height of the root and length of a stride [m]; its time [s]."""
LIFT = 0.1
PLACES = {"fl": (0.4, 0.1), "fr": (0.4, -0.1), "rl": (-0.1, 0.1), "rr": (-0.1, -0.1)}
"""Where the feet stand about the root in the middle of their stances [m]."""


def animal(
    phases: Mapping[str, float], duty: float, *, strides: float = 1.0
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Time [s] and points (T, 3) [m] by name; ahead is x, up is z, the root first.

    Feet swing at a steady speed, along a sine; each has an ankle above it.
    """
    cycles = np.linspace(0, strides, round(strides * (FRAMES - 1)) + 1)
    points = {"hips": np.stack([STRIDE * cycles, 0 * cycles, 0 * cycles + HIP], 1)}
    for foot, phase in phases.items():
        since = cycles - phase
        landing = np.floor(since)
        s = np.clip((since - landing - duty) / (1 - duty), 0, 1)
        place = PLACES[foot][0] + STRIDE * (landing + phase + duty / 2)
        x = place + STRIDE * s
        z = LIFT * np.sin(np.pi * s)
        y = np.full_like(x, PLACES[foot][1])
        points[f"{foot}_foot"] = np.stack([x, y, z], axis=1)
        points[f"{foot}_ankle"] = np.stack([x, y, z + 0.05], axis=1)
    return PERIOD * cycles, points


def write_capture(
    path: Path,
    time: np.ndarray,
    points: Mapping[str, np.ndarray],
    axes: np.ndarray | None = None,
) -> Path:
    """Writes points as a table; the columns of `axes` are x, y and z of the animal in
    the axes of the file."""
    turn = np.eye(3) if axes is None else axes
    heads = ["time_s", *(f"{name}_{x}" for name in points for x in "xyz")]
    table = np.column_stack([time, *(p @ turn.T for p in points.values())])
    np.savetxt(path, table, "%.9f", ",", header=",".join(heads), comments="")
    return path


def write_bvh(path: Path, time: np.ndarray, points: Mapping[str, np.ndarray]) -> Path:
    """Writes the same as BVH: feet are moved in the frame of a root that is turned."""
    turned = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    head, columns = ["HIERARCHY"], []
    root = points["hips"]
    for name, p in points.items():
        kind = "ROOT" if name == "hips" else "JOINT"
        own = p if name == "hips" else (p - root) @ turned - [1.0, 2.0, 3.0]
        offset = "0 0 0" if name == "hips" else "1 2 3"
        head += [f"{kind} {name}", "{", f"OFFSET {offset}"]
        words = "Xposition Yposition Zposition"
        if name == "hips":
            head.append(f"CHANNELS 6 {words} Zrotation Xrotation Yrotation")
            own = np.column_stack([own, 0 * time + 90, 0 * time, 0 * time])
        else:
            head += [f"CHANNELS 3 {words}", "End Site", "{", "OFFSET 0 0 1", "}", "}"]
        columns.append(own)
    rows = [" ".join(f"{x:.9f}" for x in row) for row in np.column_stack(columns)]
    step = f"Frame Time: {time[1] - time[0]:.9f}"
    motion = ["}", "MOTION", f"Frames: {len(time)}", step, *rows]
    path.write_text("\n".join([*head, *motion]) + "\n")
    return path
