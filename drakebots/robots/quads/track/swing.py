"""Swinging feet that know how the body is turned.

A servo holds angles, so a body that is turned off its plan carries its swinging feet to
other places; they land there, and the next steps turn it further. An inertial
measurement unit (IMU) tells the body's attitude. With it the swinging feet are taken to
where the plan has them in the directions of the world, as seen from the body:

    dp_F = R_BD p_DF - p_DF,    dq = sum_F J_F' (J_F J_F' + w^2 I)^-1 dp_F

D is the body as planned, B as measured, p_DF the planned place of the foot F and J_F
its derivative by the actuated joints. A foot goes there in about :data:`RISE`. One that
has landed is not drawn back over the ground at once, but in about :data:`FADE`: legs
that stand hold the planned angles, and their servos resist a turn already.
"""

from __future__ import annotations

import numpy as np
from pydrake.common.eigen_geometry import AngleAxis
from pydrake.math import RotationMatrix

from drakebots.multibody import base_body
from drakebots.robots.quads.robot import PlannedRobot, feet_kinematics, make_feet
from drakebots.robots.quads.track.reference import Reference

RISE = 0.05
"""Time in which a swinging foot goes to its place, to 1/e [s]: in 0.015 s, an attitude
that comes 10 ms late shakes the robot."""

FADE = 0.2
"""Time in which the displacement of a standing foot fades, to 1/e [s]: a part of a
walk's stance. Where it fades in 0.03 s, the feet drag: a walk goes 1 % less."""

SINGULAR = 0.01
"""w: directions in which the joints move a foot by less than this are held back
[m/rad]."""


class LevelSwing:
    """Corrections of the joints for an attitude of the body.

    Args:
        robot: the robot.
        reference: the motion it follows.

    Attributes:
        dp: displacements of the feet in the body's frame (feet, 3) [m].
    """

    def __init__(self, robot: PlannedRobot, reference: Reference):
        self.reference = reference
        self.plant = robot.skinned.plant
        self.context = self.plant.CreateDefaultContext()
        self.feet = make_feet(self.plant, self.context, robot.skinned.skin.patches)
        self.joints = [
            int(self.plant.GetJointByName(name).velocity_start())
            for name in robot.skinned.joints
        ]
        self.dp = np.zeros((len(self.feet), 3))

    def attitude(self, q: np.ndarray) -> RotationMatrix:
        """R_WB of the body in the positions q (nq,)."""
        self.plant.SetPositions(self.context, q)
        return base_body(self.plant).EvalPoseInWorld(self.context).rotation()

    def planned_attitude(self, time: float) -> RotationMatrix:
        """R_WD at a time [s]; a turn goes on from cycle to cycle."""
        reference = self.reference
        R_WD = self.attitude(reference.q[reference.row(time)])
        cycle = reference.cycle(time)
        if cycle == 0:
            return R_WD
        first, last = (self.attitude(reference.q[k]) for k in (0, -1))
        turned = (last @ first.inverse()).ToAngleAxis()
        yaw = turned.angle() * turned.axis()[2]
        whole = RotationMatrix(AngleAxis(cycle * yaw, [0.0, 0.0, 1.0]))
        return whole @ R_WD

    def correction(self, time: float, R_WB: RotationMatrix, dt: float) -> np.ndarray:
        """Turns dq of the actuated joints (m,) [rad]; goes on from the last call.

        Args:
            time: time since the start [s].
            R_WB: measured attitude of the body.
            dt: time since the last call [s].
        """
        R_BD = (R_WB.inverse() @ self.planned_attitude(time)).matrix()
        row = self.reference.row(time)
        self.plant.SetPositions(self.context, self.reference.q[row])
        X_WD = base_body(self.plant).EvalPoseInWorld(self.context)
        R_DW = X_WD.rotation().inverse().matrix()
        now = feet_kinematics(self.plant, self.context, self.feet)
        p_DF = (now.tip - X_WD.translation()) @ R_DW.T
        J_W = now.J_tip.reshape(len(self.feet), 3, -1)[:, :, self.joints]
        stands = self.reference.contact[row][:, None]
        wanted = np.where(stands, 0.0, p_DF @ R_BD.T - p_DF)
        self.dp += (wanted - self.dp) * -np.expm1(-dt / np.where(stands, FADE, RISE))
        turns = np.zeros(len(self.joints))
        for dp, J in zip(self.dp, R_DW @ J_W):
            turns += J.T @ np.linalg.solve(J @ J.T + SINGULAR**2 * np.eye(3), dp)
        return turns
