"""`drakebots/SkinnedLeg-v0`: a leg of two servos in a silicone skin reaches for points.

The skin is the reduced one (:mod:`drakebots.skin.reduced`). It is trained once, on a
simulation of the full skin with random motions (`TRAINING`), and kept in the user's
cache: the first environment on a machine takes some 10 s longer.
"""

from __future__ import annotations

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from drakebots.core.checks import check_value, whole
from drakebots.core.errors import NoSolution
from drakebots.envs.base import Quantity, RobotEnv, figure_picture
from drakebots.fem.mesh import surface_triangles
from drakebots.skin.file import load_skinned
from drakebots.skin.reduced import reduced_stepper, trained_once

REACH = 0.4
"""Largest deflection of a joint from its rest position [rad], as trained on."""

TRAINING = {"amplitude": REACH, "seeds": (2, 3), "steps": 100}
"""Training of the reduced skin; see
:func:`drakebots.skin.reduced.train_on_random_motion`."""


class SkinnedLegEnv(RobotEnv):
    """A step is 20 ms, in which hip and knee follow targets by their servos.

    Task: hold the foot at a point that is drawn within its reach. The reward is minus
    the distance of the foot from it [m], less 0.01 times the square of each torque
    over its limit. Nothing terminates but a simulation that fails.

    Args:
        substeps: number of time steps of skeleton and skin in a step.
        render_mode: "rgb_array" or None.
    """

    observed = (
        Quantity("position", 2, "rad", -1.5, 1.5),  # of hip and knee
        Quantity("velocity", 2, "rad/s", -20.0, 20.0),
        Quantity("torque", 2, "N m", -2.0, 2.0),  # of the servos
        Quantity("foot", 2, "m", -0.5, 0.5),  # x and z from the hip
        Quantity("goal", 2, "m", -0.5, 0.5),  # x and z from the hip
    )
    acted = (Quantity("target", 2, "rad", -REACH, REACH),)  # from the rest positions
    period = 0.02

    def __init__(self, substeps: int = 2, render_mode: str | None = None):
        self.substeps = check_value("substeps", substeps, whole(1))
        super().__init__(render_mode)
        self.leg = load_skinned("skinned_leg")
        reduced, step = trained_once(self.leg, TRAINING), self.period / self.substeps
        self.stepper, plant = reduced_stepper(self.leg, reduced, step), self.leg.plant
        self._limits = self.leg.effort_limits
        self._rest = self.leg.joint_positions(self.leg.rest_positions)
        self._hip = plant.GetJointByName("hip").frame_on_child()
        self._context = plant.CreateDefaultContext()

    def start(self, random):
        self.state = self.stepper.start()
        self.torques = np.zeros(2)
        reach = self._rest + random.uniform(-REACH, REACH, 2)
        self.goal = self._foot_at(reach)
        return {"distance": self._distance()}

    def act(self, values):
        servo = self.leg.servo(self._rest + values)
        for _ in range(self.substeps):
            result = self.stepper.step(self.state, servo=servo)
            if not result.converged:
                raise NoSolution(result.message)
            self.state = result.state
        self.torques = result.torques
        distance = self._distance()
        effort = float(np.square(self.torques / self._limits).sum())
        info = {"distance": distance, "torque": self.torques}
        return -distance - 0.01 * effort, False, info

    def observe(self):
        q = self.leg.joint_positions(self.state.q)
        v = self.leg.joint_positions(self.state.v)
        return [q, v, self.torques, self._foot_at(q), self.goal]

    def _foot_at(self, q: np.ndarray) -> np.ndarray:
        """x and z of the foot from the hip (2,) [m] at joint positions (2,)."""
        foot, hip = self._points(q)
        return (foot - hip)[[0, 2]]

    def _points(self, q: np.ndarray) -> np.ndarray:
        """Foot and hip in the world (2, 3) [m] at joint positions (2,) [rad]."""
        plant, context = self.leg.plant, self._context
        plant.SetPositions(context, q)
        p_WH = self._hip.CalcPoseInWorld(context).translation()
        return np.array([self.leg.robot.feet_positions(context)[0], p_WH])

    def _distance(self) -> float:
        foot = self._foot_at(self.leg.joint_positions(self.state.q))
        return float(np.linalg.norm(foot - self.goal))

    def picture(self):
        """Picture from the side: skin, hip and foot, and a cross at the goal."""
        x = self.stepper.lift(self.state).skin.positions
        corners = x[surface_triangles(self.leg.mesh)]
        # Far ones first: the camera is at negative y.
        corners = corners[np.argsort(-corners[:, :, 1].mean(1)), :, ::2]
        points = self._points(self.leg.joint_positions(self.state.q))[:, ::2]
        figure = Figure(layout="constrained")
        axes = figure.subplots()
        axes.add_collection(PolyCollection(corners, fc="#e7b58f", ec="#a06a40", lw=0.3))
        axes.plot(*points.T, "o", color="#444444")
        axes.plot(*(points[1] + self.goal), "x", color="#73299a", ms=9, mew=2)
        axes.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
        axes.set(xlim=(-0.2, 0.2), ylim=(-0.02, 0.28))
        return figure_picture(figure)
