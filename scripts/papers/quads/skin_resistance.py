"""Static torques with which a robot's skin resists its joints, without gravity.

:func:`joint_resistance` turns a joint and lets the skin find its equilibrium;
:func:`rest_stiffness` gives the slopes of all joints at rest from one factorization;
:func:`limb_skin` cuts out the part of a skin around one limb, small enough for P2 tets.

A library of quad_resistance.py, without a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from drakebots.core.checks import check_value, one_of
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.design.skin import in_folds
from drakebots.fem import equilibrium
from drakebots.fem.assembly import build_model, elastic_force
from drakebots.fem.mesh import TetMesh
from drakebots.fem.solver import Prescribed
from drakebots.model import find_body
from drakebots.skin.coupled import (
    Glue,
    blended,
    glue_midside,
    glue_points,
    glue_stiffness,
    link_weights,
)
from drakebots.skin.file import SkinnedRobot

_TURN = np.radians(7.5)
"""Largest angle between two equilibria [rad]."""


@dataclass(frozen=True)
class Resistance:
    """The skin's torque on one joint.

    Attributes:
        joint: name of the joint.
        angles: angles from rest (n,) [rad].
        torques: torques that hold the joint there against the skin alone (n,) [N m].
        limit: largest torque of its servo [N m].
    """

    joint: str
    angles: np.ndarray
    torques: np.ndarray
    limit: float


def joint_resistance(
    robot: SkinnedRobot, joint: str, angles: Sequence[float]
) -> Resistance:
    """Turns one joint, with all others at rest, and finds the skin's equilibria.

        tau = dE/dq = J_c' dE/dx_c,  E the elastic energy, x_c(q) the glue

    Args:
        robot: robot whose skin is stress-free in the rest pose.
        joint: name of an actuated joint.
        angles: angles from rest, all of one sign and of growing size [rad].

    Raises:
        UnknownName: for a joint without a motor.
        InvalidInput: for angles that do not grow.
        NoSolution: when an equilibrium is not found.
    """
    check_value("joint", joint, one_of("joint", robot.joints))
    angles = np.asarray(angles, float)
    if (np.diff(np.abs(angles)) <= 0).any() or np.ptp(np.sign(angles)) > 1:
        raise InvalidInput(f"{joint}: angles must grow, away from rest")
    plant, context = robot.plant, robot.context
    hinge = plant.GetJointByName(joint)
    weights = link_weights(robot.fem, robot.glue)
    bodies = [find_body(plant, name) for name in robot.glue.by_body()]

    def pose(angle):
        q = robot.rest_positions.copy()
        q[hinge.position_start()] += angle
        plant.SetPositions(context, q)
        return [plant.EvalBodyPoseInWorld(context, body) for body in bodies]

    before, x, now, torques = pose(0.0), robot.fem.rest, 0.0, []
    for angle in angles:
        steps = max(1, int(np.ceil(abs(angle - now) / _TURN)))
        for between in np.linspace(now, angle, steps + 1)[1:]:
            after = pose(between)
            moves = [b @ a.inverse() for a, b in zip(before, after)]
            x, before = blended(weights, x, moves), after
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
                    f"{joint}: no equilibrium of the skin found at "
                    f"{np.degrees(between):.1f} degrees ({found.message})"
                )
            x = found.positions
        now = angle
        force = elastic_force(robot.fem, x)[robot.glue.vertices]
        torques.append(float((-J.T @ force.ravel())[hinge.velocity_start()]))
    plant.SetPositions(context, robot.rest_positions)
    limit = float(robot.effort_limits[robot.joints.index(joint)])
    return Resistance(joint, angles, np.array(torques), limit)


def rest_stiffness(robot: SkinnedRobot) -> np.ndarray:
    """The slope at rest of the skin's torque on each of m joints (m,) [N m/rad].

        dtau/dq = diag(J_c' S J_c),  S the stiffness condensed onto the glue

    Args:
        robot: robot with m actuated joints, whose skin is stress-free in the rest pose.
    """
    plant, context = robot.plant, robot.context
    plant.SetPositions(context, robot.rest_positions)
    _, J = glue_points(plant, context, robot.glue)
    J = J[:, [plant.GetJointByName(name).velocity_start() for name in robot.joints]]
    return np.diag(glue_stiffness(robot.fem, robot.glue, J))


def limb_skin(
    robot: SkinnedRobot,
    joint: str,
    *,
    margin: float = 0.12,
    second_order: Iterable[int] = (),
    modulus: float | None = None,
) -> SkinnedRobot:
    """The robot with the skin of one limb alone, which is held where it is cut off.

    Static solves are several times faster than with the whole skin, and P2 tets are
    affordable. As it is held at the cut, it is a little stiffer.

    Args:
        robot: the whole robot.
        joint: name of an actuated joint of the limb.
        margin: distance up to which the skin is kept around the lines between the
            limb's joints and its farthest glue [m].
        second_order: regions of P2 tets.
        modulus: Young's modulus of the folds over that of the plain skin;
            the file's by default.

    Raises:
        UnknownName: for a joint without a motor.
    """
    check_value("joint", joint, one_of("joint", robot.joints))
    plant, context = robot.plant, robot.context
    plant.SetPositions(context, robot.rest_positions)
    chain, root, links = _limb(plant, context, robot.joints, joint)
    mesh, x = robot.mesh, robot.mesh.vertices
    held = [
        x[vertex]
        for vertex, body in zip(robot.glue.vertices, robot.glue.bodies)
        if body == links[-1] and vertex < len(x)
    ]
    if held:
        # The far end of the limb: a foot's sole, a tail's tip.
        chain.append(max(held, key=lambda p: np.linalg.norm(p - chain[-1])))
    middle = x[mesh.tets].mean(axis=1)
    away = np.linalg.norm(middle - chain[0], axis=1)
    for a, b in pairwise(chain):
        t = np.clip((middle - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)[:, None]
        away = np.minimum(away, np.linalg.norm(middle - a - t * (b - a), axis=1))
    mine = away < margin
    kept, tets = np.unique(mesh.tets[mine], return_inverse=True)
    part = TetMesh(x[kept], tets.reshape(-1, 4), mesh.region[mine])
    materials = {
        k: robot.skin.regions.get(k, robot.skin.material) for k in part.regions
    }
    if modulus is not None:
        plain = robot.skin.material
        new = plain.with_modulus(modulus * plain.youngs_modulus)
        materials |= dict.fromkeys(np.unique(part.region[in_folds(part)]).tolist(), new)
    second_order = [k for k in second_order if k in materials]
    fem = build_model(part, materials, quadratic=second_order)
    glue = _held(robot, kept, np.unique(mesh.tets[~mine]), root)
    if second_order:
        glue = glue_midside(glue, fem.space)
    return replace(robot, mesh=part, fem=fem, glue=glue)


def _limb(plant, context, joints, joint):
    """Positions of a limb's joints from the torso on, the torso, the limb's links."""
    hinges = [plant.GetJointByName(name) for name in joints]
    of_child = {hinge.child_body().name(): hinge for hinge in hinges}
    first = plant.GetJointByName(joint)
    while first.parent_body().name() in of_child:
        first = of_child[first.parent_body().name()]
    hinge, points, links = first, [], []
    while hinge is not None:
        X = hinge.frame_on_parent().CalcPoseInWorld(context)
        points.append(X.translation())
        links.append(hinge.child_body().name())
        hinge = next((h for h in hinges if h.parent_body().name() == links[-1]), None)
    return points, first.parent_body().name(), links


def _held(robot, kept, others, root):
    """The glue of the part; vertices at its cut are glued to the torso."""
    number = np.full(len(robot.mesh.vertices), -1)
    number[kept] = np.arange(len(kept))
    old = robot.glue
    rows = np.flatnonzero(np.isin(old.vertices, kept))
    cut = np.setdiff1d(np.intersect1d(kept, others), old.vertices)
    body = find_body(robot.plant, root)
    X_WB = robot.plant.EvalBodyPoseInWorld(robot.context, body)
    p_BG = X_WB.inverse().multiply(robot.mesh.vertices[cut].T).T.reshape(-1, 3)
    return Glue(
        np.concatenate([number[old.vertices[rows]], number[cut]]),
        (*(old.bodies[k] for k in rows), *[root] * len(cut)),
        np.concatenate([old.p_BG[rows], p_BG]),
    )
