"""`drakebots/Hamr-v0`: HAMR-VI, 1.5 g, walks by the voltages of its eight actuators."""

from __future__ import annotations

import numpy as np
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.units import MM_G_MS
from drakebots.envs.base import Camera, Quantity, RobotEnv
from drakebots.formats import load
from drakebots.model import driven_joints
from drakebots.multibody import build_robot, has_fallen, root_bodies
from drakebots.robots.hamr import MODEL, Simulation, hamr_ground
from drakebots.robots.hamr.model import BIAS, PiezoDrive, parameters

START_YAW = np.radians(30)
"""Largest yaw at the start [rad]."""


class HamrEnv(RobotEnv):
    """A step is 5 ms, in which the voltages are held.

    Task: walk along x from a start that is turned by up to 30 degrees. The reward is
    the distance gained along x [mm] less a tenth of that gained sideways. Falling over
    terminates.

    Args:
        surface: name of the ground's surface: teflon, card or sandpaper.
        time_step: time step of the plant [s]. At 5e-4 s the stride of the 10 Hz trot on
            card is 5 % shorter than at 1e-4 s, which takes 3.6 times as long.
        render_mode: "rgb_array" or None.
    """

    observed = (
        Quantity("height", 1, "m", 0.0, 0.05),  # of the base
        Quantity("yaw", 1, "rad", -np.pi, np.pi),
        Quantity("up", 3, "1", -1.0, 1.0),  # the vertical in the base's frame
        Quantity("velocity", 3, "m/s", -1.0, 1.0),  # of the base, in its frame
        Quantity("turning", 3, "rad/s", -100.0, 100.0),  # of the base, in its frame
        Quantity("deflection", 8, "m", -1e-3, 1e-3),  # of the actuators' tips
        Quantity("deflection rate", 8, "m/s", -1.0, 1.0),
        Quantity("voltage", 8, "V", 0.0, BIAS),  # of the step before
    )
    acted = (Quantity("voltage", 8, "V", 0.0, BIAS),)
    period = 5e-3

    def __init__(
        self,
        surface: str = "card",
        time_step: float = 5e-4,
        render_mode: str | None = None,
    ):
        problem = Simulation(surface=surface, time_step=time_step)
        super().__init__(render_mode)
        builder, ground = DiagramBuilder(), hamr_ground(problem.mu)
        how = {"time_step": time_step, "scaling": MM_G_MS, "ground": ground}
        self.robot = build_robot(load(MODEL), builder, **how)
        plant = self.plant = self.robot.plant
        drive = builder.AddSystem(PiezoDrive(plant, MM_G_MS))
        builder.Connect(plant.get_state_output_port(), drive.GetInputPort("state"))
        actuation = drive.GetOutputPort("actuation")
        builder.Connect(actuation, plant.get_actuation_input_port())
        builder.ExportInput(drive.GetInputPort("voltages"), "voltages")
        self.diagram = builder.Build()
        self.simulator = Simulator(self.diagram)
        self._base, self._drawn = root_bodies(plant)[0], None
        joints = driven_joints(plant)
        self._tips = np.array([joint.position_start() for joint in joints])
        self._rates = np.array([joint.velocity_start() for joint in joints])

    def start(self, random):
        self.root = self.diagram.CreateDefaultContext()
        self.context = self.plant.GetMyMutableContextFromRoot(self.root)
        yaw = random.uniform(-START_YAW, START_YAW)
        height = parameters().number("stance")
        pose = RigidTransform(RollPitchYaw(0, 0, yaw), [0, 0, height])
        self.robot.set_base_pose(self.context, pose)
        self.voltages = np.full(8, 0.5 * BIAS)
        self._set()
        self.simulator.reset_context(self.root)
        self.simulator.Initialize()
        return {"position": self._position()}

    def _set(self) -> None:
        self.diagram.GetInputPort("voltages").FixValue(self.root, self.voltages)

    def _position(self) -> np.ndarray:
        """p_WB of the base (3,) [m]."""
        X_WB = self.plant.EvalBodyPoseInWorld(self.context, self._base)
        return X_WB.translation() * MM_G_MS.length

    def act(self, values):
        before, self.voltages = self._position(), values
        self._set()
        self.simulator.AdvanceTo(self.root.get_time() + self.period / MM_G_MS.time)
        p = self._position()
        gained = 1e3 * (p - before)
        R_WB = self.plant.EvalBodyPoseInWorld(self.context, self._base).rotation()
        fallen = has_fallen(np.arccos(np.clip(R_WB.matrix()[2, 2], -1.0, 1.0)))
        reward = gained[0] - 0.1 * abs(gained[1])
        return reward, fallen, {"position": p, "fallen": bool(fallen)}

    def observe(self):
        plant, unit = self.plant, MM_G_MS
        X_WB = plant.EvalBodyPoseInWorld(self.context, self._base)
        V_WB = plant.EvalBodySpatialVelocityInWorld(self.context, self._base)
        R_BW = X_WB.rotation().matrix().T
        q, v = plant.GetPositions(self.context), plant.GetVelocities(self.context)
        return [
            X_WB.translation()[2] * unit.length,
            X_WB.rotation().ToRollPitchYaw().yaw_angle(),
            R_BW[:, 2],
            R_BW @ V_WB.translational() * unit.velocity,
            R_BW @ V_WB.rotational() / unit.time,
            q[self._tips] * unit.length,
            v[self._rates] * unit.velocity,
            self.voltages,
        ]

    def picture(self):
        if self._drawn is None:
            self._drawn = _Drawn()
        q = self.plant.GetPositions(self.context) * self.robot.position_units()
        return self._drawn.picture(q, self._position())


class _Drawn:
    """HAMR's shapes, which the plant in mm, g, ms does not have."""

    def __init__(self):
        builder = DiagramBuilder()
        robot = build_robot(load(MODEL), builder, time_step=1e-3)
        self._plant, self._camera = robot.plant, Camera(robot.scene_graph)
        self._diagram = builder.Build()
        self._root = self._diagram.CreateDefaultContext()

    def picture(self, q: np.ndarray, at: np.ndarray) -> np.ndarray:
        """The picture at positions q (nq,) of what is at a place (3,) [m]."""
        context = self._plant.GetMyMutableContextFromRoot(self._root)
        self._plant.SetPositions(context, q)
        eye = at + np.array([0.05, -0.07, 0.035])
        return self._camera.picture(self._root, eye, at)
