"""Torque with which a robot's skin resists its joints, static and without weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput, NoSolution, UnknownName
from drakebots.fem.assembly import elastic_force
from drakebots.fem.boundary import Prescribed
from drakebots.fem.statics import equilibrium
from drakebots.multibody.loops import find_body
from drakebots.skin.robot import SkinnedRobot
from drakebots.skin.skeleton import glue_points
from drakebots.skin.start import LinkWeights

MOVE = np.radians(7.5)
"""Largest turn between two equilibria [rad]."""


@dataclass(frozen=True)
class Resistance:
    """The skin's torque on one joint.

    Attributes:
        joint: name.
        angles: from rest (n,) [rad].
        torques: that hold the joint there against the skin alone (n,) [N m].
        limit: of its servo [N m].
    """

    joint: str
    angles: np.ndarray
    torques: np.ndarray
    limit: float


def joint_resistance(
    robot: SkinnedRobot, joint: str, angles: Sequence[float]
) -> Resistance:
    """Turns one joint, all others at rest, and lets the skin find its equilibrium.

        tau = dE/dq = J_c' dE/dx_c,  E the elastic energy, x_c(q) the glue

    Args:
        robot: its skin lies at rest in its rest pose.
        joint: an actuated one.
        angles: from rest, all of one sign and growing [rad].

    Raises:
        UnknownName: for a joint that has no motor.
        InvalidInput: for angles that do not grow.
        NoSolution: when the skin finds no equilibrium.
    """
    if joint not in robot.joints:
        raise UnknownName("joint", joint, robot.joints)
    angles = np.asarray(angles, float)
    if (np.diff(np.abs(angles)) <= 0).any() or np.ptp(np.sign(angles)) > 1:
        raise InvalidInput(f"{joint}: angles must grow, away from rest")
    plant, context = robot.plant, robot.context
    hinge = plant.GetJointByName(joint)
    weights = LinkWeights(robot.fem, robot.glue)
    bodies = [find_body(plant, name) for name in weights.links]

    def pose(angle):
        q = robot.rest_positions.copy()
        q[hinge.position_start()] += angle
        plant.SetPositions(context, q)
        return [plant.EvalBodyPoseInWorld(context, body) for body in bodies]

    before, x, now, torques = pose(0.0), robot.fem.rest, 0.0, []
    for angle in angles:
        steps = max(1, int(np.ceil(abs(angle - now) / MOVE)))
        for way in np.linspace(now, angle, steps + 1)[1:]:
            after = pose(way)
            moves = [b @ a.inverse() for a, b in zip(before, after)]
            x, before = weights.moved(x, moves), after
            held, J = glue_points(plant, context, robot.glue)
            x[robot.glue.vertices] = held
            found = equilibrium(
                robot.fem,
                Prescribed(robot.glue.vertices, held),
                gravity=np.zeros(3),
                start=x,
                tolerance=1e-5,
                max_iterations=80,
            )
            if not found.converged:
                plant.SetPositions(context, robot.rest_positions)
                raise NoSolution(
                    f"{joint}: no equilibrium of the skin at {np.degrees(way):.1f} "
                    f"degrees ({found.message})"
                )
            x = found.positions
        now = angle
        force = elastic_force(robot.fem, x)[robot.glue.vertices]
        torques.append(float((-J.T @ force.ravel())[hinge.velocity_start()]))
    plant.SetPositions(context, robot.rest_positions)
    limit = float(robot.effort_limits[robot.joints.index(joint)])
    return Resistance(joint, angles, np.array(torques), limit)
