"""Successes judged again from the stored motion alone, not by the package.

A plan and its execution are netCDF files. What is looked for here is in their arrays
and in the robot's mass: feet in the ground or pushed from above it, forces outside the
friction cone, weight that no foot carries, a way other than the one asked for, a fall,
cycles that differ. Only success that the arrays contradict is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import xarray as xr
from robot_zoo.stages import Try

from drakebots.core.units import GRAVITY

CARRIED = 0.1
"""Share of the weight that feet may leave in the mean: in a walk that goes on as it
began, another part on the ground carries it. Samples every 5 ms of forces that jump
from step to step are up to 0.04 off, those of every step 0.01."""
IN_THE_GROUND = 0.02
"""Depth of a foot below the ground, and of one that pushes above it, as shares of the
height of the base."""
CONE = 0.01
"""Share of the normal force by which friction may leave its cone."""
TILT, HEIGHT = np.pi / 4, 0.5
"""Of the base, from its start: beyond these the robot lies."""
EVEN = 0.6
"""Least share of the mean stride that each cycle makes."""
ARRIVED = 0.1
"""Share of the distance by which a plan may miss it."""


def false_successes(
    folder: Path, tries: Mapping[str, Try], forward: float
) -> list[str]:
    """What contradicts the successes of a robot's plan and track; nothing if they hold.

    Args:
        folder: holds plan.nc and track.nc.
        tries: of the robot, by stage.
        forward: distance that was planned [m].
    """
    facts = {stage: entry.facts for stage, entry in tries.items() if entry.ok}
    found = []
    if "plan" in facts:
        plan = _Motion(folder / "plan.nc", facts["show"])
        lines = plan.faults() + plan.misses(forward)
        found += [f"plan: {line}" for line in lines]
    if "track" in facts:
        run, said = _Motion(folder / "track.nc", facts["show"]), facts["track"]
        lines = run.faults() + run.falls(said["period_s"], said["cycles_upright"])
        found += [f"track: {line}" for line in lines]
    return found


class _Motion:
    """The arrays of a stored motion; feet's forces in the world, on flat ground."""

    def __init__(self, path: Path, show: Mapping):
        with xr.open_dataset(path, engine="h5netcdf") as file:
            read = {str(name): file[name].values for name in file.variables}
            metrics = json.loads(file.attrs["drakebots_metrics"])
        self.time, self.p_WB = read["time"], read["base_position"]
        self.rpy = np.unwrap(read["base_rpy"], axis=0)
        self.p_WF, self.force = read["foot_position"], read["foot_force"]
        radii = np.array([show["feet"][name]["radius_m"] for name in read["foot"]])
        self.gap = self.p_WF[..., 2] - radii
        self.friction, self.weight = metrics["friction"], show["mass_kg"] * GRAVITY
        # The mass of a scene is not the robot's, where a ball lies beside it.
        self.alone = show["free_bases"] <= 1
        # Feet are where they are at a time, and forces act until the next one.
        self.dt = np.diff(self.time)

    def faults(self) -> list[str]:
        """Numbers that are none, feet and forces that cannot be."""
        arrays = self.p_WB, self.rpy, self.p_WF, self.force
        if not all(np.isfinite(x).all() for x in arrays):
            return ["numbers that are not finite"]
        found, size = [], float(self.p_WB[0, 2] - self.gap[0].min())
        if (depth := -self.gap.min()) > IN_THE_GROUND * size:
            found.append(f"a foot is {depth:.2g} m in the ground")
        normal, along = self.force[..., 2], np.linalg.norm(self.force[..., :2], axis=-1)
        loaded = normal[:-1] > 0.05 * self.weight
        highest = np.minimum(self.gap[:-1], self.gap[1:])[loaded].max(initial=0.0)
        if highest > IN_THE_GROUND * size:
            found.append(f"the ground pushes a foot {highest:.2g} m above it")
        beyond = (along - self.friction * normal).max() / self.weight
        if beyond > CONE:
            found.append(f"friction leaves its cone by {beyond:.2g} of the weight")
        carried = self.dt @ normal[:-1].sum(axis=1) / self.dt.sum() / self.weight
        if self.alone and abs(1 - carried) > CARRIED:
            found.append(f"feet carry {carried:.2f} of the weight")
        return found

    def misses(self, forward: float) -> list[str]:
        """Where a plan does not go."""
        went = float(self.p_WB[-1, 0] - self.p_WB[0, 0])
        bad = abs(went - forward) > ARRIVED * abs(forward)
        return [f"it goes {went:.3g} m of {forward:g}"] if bad else []

    def falls(self, period: float, cycles: int) -> list[str]:
        """Whether a run with this many good cycles fell or goes unevenly."""
        roll, pitch = self.rpy[:, 0], self.rpy[:, 1]
        up = np.array(
            [-np.sin(pitch), np.sin(roll) * np.cos(pitch), np.cos(roll) * np.cos(pitch)]
        )
        tilt = np.arccos(np.clip(up.T @ up[:, 0], -1, 1)).max()
        height = self.p_WB[:, 2].min() / self.p_WB[0, 2]
        found = []
        if tilt > TILT or height < HEIGHT:
            found.append(f"it tilts by {np.degrees(tilt):.0f} deg, to {height:.0%}")
        if self.time[-1] < cycles * period * (1 - 1e-3):
            found.append(f"it lasts {self.time[-1]:.3g} s, {cycles} cycles of {period}")
        ends = np.interp(period * np.arange(cycles + 1), self.time, self.p_WB[:, 0])
        strides = np.diff(ends)
        if cycles and strides.min() < EVEN * strides.mean():
            found.append(f"strides {', '.join(f'{x:.3f}' for x in strides)} m")
        return found
