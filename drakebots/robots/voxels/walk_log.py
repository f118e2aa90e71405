"""The one who commands the actuators, shifts the friction, and keeps the log."""

from __future__ import annotations

import numpy as np
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import EventStatus

from drakebots.robots.voxels.actuators import ActuatorLengths

TIPPED = np.cos(np.radians(35.0))
"""A robot whose up axis has turned this far has tipped over; gaits turn 10 deg."""


class WalkLog:
    """Is a simulator's monitor: called after each step, and once at the start.

    Args:
        walk: the built diagram.
        motion: u (M,) [m] over time.
        time_step, log_period: [s].

    Attributes:
        times: of the samples [s]; the other lists belong to them.
        states: (nq + nv,).
        forces: of the ground on the feet (F, 3) [N], the shift with them.
        commanded, lengths, pushes: of the actuators (M,) [m], [m], [N].
        fallen: when the robot tipped over [s], or None.
    """

    def __init__(self, walk, motion, time_step: float, log_period: float):
        self.walk, self._step = walk, time_step
        self._every = max(1, round(log_period / time_step))
        self._commands = ActuatorLengths(walk.actuators, motion)
        self._shifts = np.zeros((len(walk.feet.feet), 3))
        self.times, self.states, self.forces = [], [], []
        self.commanded, self.lengths, self.pushes = [], [], []
        self.fallen: float | None = None
        self._count = 0

    def watch(self, simulator: Simulator) -> None:
        """Begins with the simulator's context; before Initialize."""
        root = simulator.get_mutable_context()
        self._context = self.walk.plant.GetMyMutableContextFromRoot(root)
        self._commands.set_for(self._context, root.get_time() + self._step)
        self._sample(root.get_time(), self._shifts)
        simulator.set_monitor(self._after_step)

    def _after_step(self, root) -> EventStatus:
        time = root.get_time()
        # AdvanceTo may also stop between two steps of the plant.
        count = int(np.floor(time / self._step + 1e-6))
        if count <= self._count:
            return EventStatus.DidNothing()
        self._count = count
        context, feet = self._context, self.walk.feet
        directional = bool(feet.bias.any())
        sample = count % self._every == 0
        if sample or directional:
            forces = feet.forces(context)
        if sample:
            self._sample(time, forces + self._shifts)
        if directional:
            self._shifts = feet.shift(context, np.maximum(forces[:, 2], 0.0))
            feet.apply(context, self._shifts)
        self._commands.set_for(context, time + self._step)
        return EventStatus.DidNothing()

    def _sample(self, time: float, forces: np.ndarray) -> None:
        walk, context = self.walk, self._context
        commanded = self._commands.commanded
        self.times.append(time)
        self.states.append(walk.plant.GetPositionsAndVelocities(context).copy())
        self.forces.append(forces.copy())
        self.commanded.append(commanded.copy())
        length, rate = walk.actuators.lengths(context)
        self.lengths.append(length)
        k, d = walk.actuators.stiffness, walk.actuators.damping
        self.pushes.append(k * (commanded - length) - d * rate)
        poses = walk.built.poses(context)
        if self.fallen is None and poses[:8, 2, 2].mean() < TIPPED:
            self.fallen = time


__all__ = ["TIPPED", "WalkLog"]
