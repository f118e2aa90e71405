"""`drakebots/Gecko-v0`: the soft gecko walks to a target, half cycle by half cycle."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from drakebots.core.checks import check_value, positive
from drakebots.envs.base import Quantity, RobotEnv, figure_picture
from drakebots.robots.gecko import draw_robot, gecko
from drakebots.robots.gecko.engines import PhaseTimes, half_cycle
from drakebots.robots.gecko.generator import rotated_back
from drakebots.robots.gecko.model import fixation, pose_at

NEAR, FAR = 0.2, 0.8
"""Distances of targets [m]."""


class GeckoEnv(RobotEnv):
    """A step is half a gait cycle, simulated by the quasi-static pose step.

    Task: walk the front end of the torso to a target that is drawn in a ring about the
    start. The reward is the distance gained [m], so the return of an episode is the
    distance walked towards the target. Reaching it terminates.

    Args:
        epsilon: distance at which the target counts as reached [m].
        size: name of the robot's size, "small" or "large".
        render_mode: "rgb_array" or None.
    """

    observed = (
        Quantity("target", 2, "m", -5.0, 5.0),  # ahead of the front end, and left
        # +1: front right and rear left stay fixed in the next step
        Quantity("sign", 1, "1", -1.0, 1.0),
        Quantity("angle", 5, "rad", -2.0, 2.0),  # of the limbs FL, FR, torso, RL, RR
        Quantity("length", 5, "m", 0.0, 0.5),  # of the limbs
    )
    acted = (
        Quantity("step length q1", 1, "rad", np.radians(10), np.radians(90)),
        Quantity("steering q2", 1, "1", -0.5, 0.5),
    )

    def __init__(
        self, epsilon: float = 0.05, size: str = "small", render_mode: str | None = None
    ):
        self.epsilon = check_value("epsilon", epsilon, positive("m"))
        self.robot = gecko(size)
        self.period = PhaseTimes().half_cycle
        super().__init__(render_mode)

    def start(self, random):
        alpha = self.robot.reference(-np.radians(50), 0.0)
        self.pose = pose_at(self.robot, alpha, random.uniform(-np.pi, np.pi))
        self.sign = 1
        angle, distance = random.uniform(-np.pi, np.pi), random.uniform(NEAR, FAR)
        self.target = distance * np.array([np.cos(angle), np.sin(angle)])
        self.path = [self.pose.position]
        return {"distance": self._distance()}

    def act(self, values):
        before = self._distance()
        q1, q2 = values
        self.pose = half_cycle(self.robot, self.pose, self.sign * q1, q2).pose
        self.sign = -self.sign
        self.path.append(self.pose.position)
        left = self._distance()
        there = left < self.epsilon
        return before - left, there, {"distance": left, "is_success": there}

    def observe(self):
        away = self.target - self.pose.position
        target = rotated_back(away, self.pose.heading)
        return [target, self.sign, self.pose.alpha, self.pose.ell]

    def _distance(self) -> float:
        return float(np.linalg.norm(self.target - self.pose.position))

    def picture(self):
        cm = 100.0
        figure = Figure(layout="constrained")
        axes = figure.subplots()
        axes.plot(*(cm * np.array(self.path).T), "-", color="#4073bf", lw=1)
        axes.plot(*(cm * self.target), "x", color="#73299a", ms=9, mew=2)
        draw_robot(axes, self.pose, held=fixation(self.sign))
        axes.set(xlabel="x [cm]", ylabel="y [cm]", aspect="equal")
        axes.set(xlim=(-110, 110), ylim=(-90, 90))
        return figure_picture(figure)
