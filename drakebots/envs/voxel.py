"""`drakebots/Voxel-v0`: ten voxels walk by the strokes of four actuators."""

from __future__ import annotations

import numpy as np
from pydrake.math import RigidTransform
from pydrake.systems.analysis import Simulator

from drakebots.core.checks import check_value, positive
from drakebots.envs.base import Camera, Quantity, RobotEnv
from drakebots.model import parameters_of
from drakebots.multibody import has_fallen
from drakebots.robots.voxels import MODEL, Simulation, build
from drakebots.robots.voxels.model import HEADING, core_tilt, rest_pose

_AHEAD = RigidTransform(rest_pose()).rotation() @ HEADING
"""The heading at rest, in the world."""

_STROKE = parameters_of(MODEL).number("stroke")


class VoxelEnv(RobotEnv):
    """A step is one pose of a gait: the actuators move to it and stay.

    Task: walk along the heading at rest. The reward is the distance gained along it
    [mm]. Tipping over terminates. At the start the actuators are at rest but for up to
    a tenth of their stroke, which is drawn.

    Args:
        period: duration of a step [s]; at 1 s the walk is nearly static, as in the
            paper, below 0.5 s the robot bounces.
        render_mode: "rgb_array" or None.
    """

    observed = (
        Quantity("height", 1, "m", -0.5, 1.0),  # of the mean of the voxels
        Quantity("up", 3, "1", -1.0, 1.0),  # the vertical in the first voxel's frame
        Quantity("velocity", 3, "m/s", -1.0, 1.0),  # mean of the voxels, in the world
        Quantity("displacement", 4, "m", -2 * _STROKE, 2 * _STROKE),  # of lower nodes
        Quantity("command", 4, "m", -_STROKE, _STROKE),  # of the step before
    )
    acted = (Quantity("displacement", 4, "m", -_STROKE, _STROKE),)

    def __init__(self, period: float = 0.5, render_mode: str | None = None):
        self.period = check_value("period", period, positive("s"))
        super().__init__(render_mode)
        self.walk = build(Simulation())
        self._camera = Camera(self.walk.robot.scene_graph) if render_mode else None
        self.simulator: Simulator | None = None

    def start(self, random):
        self.simulator = self.walk.simulator()
        self.root = self.simulator.get_mutable_context()
        self.context = self.walk.plant.GetMyMutableContextFromRoot(self.root)
        self.command = np.zeros(4)
        self.simulator.Initialize()
        self._move(random.uniform(-0.1, 0.1, 4) * _STROKE, 0.1)
        return {"position": self._position()}

    def _move(self, command: np.ndarray, seconds: float) -> None:
        """Moves the actuators to displacements (4,) [m], linearly in half the time."""
        step = self.walk.plant.time_step()
        count, before = max(1, round(seconds / step)), self.command
        begin = self.root.get_time()
        for k in range(1, count + 1):
            share = min(1.0, 2 * k / count)
            self.command = before + share * (command - before)
            lengths = self.walk.actuators.rest - 2 * self.command
            self.walk.actuators.command(self.context, lengths)
            self.simulator.AdvanceTo(begin + k * step)

    def _poses(self) -> np.ndarray:
        return self.walk.built.poses(self.context)

    def _position(self) -> np.ndarray:
        """Mean position of the voxels (3,) [m]."""
        return self._poses()[:, :3, 3].mean(0)

    def act(self, values):
        before = self._position()
        self._move(values, self.period)
        p = self._position()
        tipped = has_fallen(core_tilt(self._poses()))
        gained = 1e3 * float((p - before) @ _AHEAD)
        return gained, tipped, {"position": p, "fallen": bool(tipped)}

    def observe(self):
        walk, plant = self.walk, self.walk.plant
        poses = self._poses()
        velocity = [
            plant.EvalBodySpatialVelocityInWorld(self.context, body).translational()
            for body in walk.built.bodies
        ]
        length, _ = walk.actuators.lengths(self.context)
        displacement = 0.5 * (walk.actuators.rest - length)
        height = poses[:, 2, 3].mean()
        mean = np.mean(velocity, axis=0)
        return [height, poses[0, 2, :3], mean, displacement, self.command]

    def picture(self):
        at = self._position()
        eye = at + 3 * self.walk.actuators.rest * np.array([1.2, -1.6, 0.9])
        return self._camera.picture(self.root, eye, at)
