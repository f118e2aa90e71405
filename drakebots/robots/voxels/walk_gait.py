"""From a gait's poses to the smooth motion of the actuators."""

from __future__ import annotations

import numpy as np

from drakebots.robots.voxels.gait import Gait, gait

ALIASES = {"reverse": "backward"}


def find_gait(wish, stroke: float) -> Gait:
    """A gait by name, from a table, or as it is.

    Args:
        wish: "forward", "backward" (also "reverse"), poses (K, 4) [m], or a gait.
        stroke: of the gaits by name, and most of any table's entry [m].

    Raises:
        UnknownName: for another name.
        InvalidInput: for a table of another shape, or that exceeds the stroke.
    """
    if isinstance(wish, Gait):
        return wish
    if isinstance(wish, str):
        return gait(ALIASES.get(wish, wish), stroke)
    return Gait(wish, "table", stroke)


class GaitMotion:
    """Displacements u (M,) [m] of the actuators' lower nodes over time.

    At rest for `settle`, then pose after pose, again and again. Within a pose's
    time each goes from the pose before along 3 s^2 - 2 s^3 over the ramp.

    Args:
        table: poses (K, M) [m].
        pose_time: of each [s].
        ramp: share of it.
        settle: [s].
    """

    def __init__(self, table, pose_time: float, ramp: float, settle: float):
        self.table = np.asarray(table, float)
        self.pose_time, self.ramp, self.settle = pose_time, ramp, settle

    def __call__(self, time: float) -> np.ndarray:
        """At a time [s]."""
        elapsed = time - self.settle
        if elapsed <= 0:
            return np.zeros(self.table.shape[1])
        number = int(elapsed / self.pose_time)
        after = self.table[number % len(self.table)]
        before = self.table[number % len(self.table) - 1] if number else 0 * after
        s = min((elapsed - number * self.pose_time) / (self.ramp * self.pose_time), 1)
        return before + (3 * s**2 - 2 * s**3) * (after - before)


__all__ = ["GaitMotion", "find_gait"]
