"""The kinematics of Drake's joints as CasADi expressions.

A joint has a frame F on its parent body and M on its child. For positions q
and velocities v of that joint (Drake's own choice of both),

    X_FM(q)               pose of M in F
    V_FM_M(q, v)          angular and linear velocity of M in F, written in M
    N(q):  qdot = N v     and its left inverse N+:  v = N+ qdot
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from drakebots.core.errors import InvalidInput


@dataclass(frozen=True)
class JointMotion:
    """X_FM and V_FM of one joint.

    Attributes:
        R_FM: rotation (3, 3).
        p_FM: position of Mo in F (3,).
        w_FM_M, v_FM_M: angular velocity of M in F and velocity of Mo in F,
            both written in M (3,).
    """

    R_FM: ca.SX
    p_FM: ca.SX
    w_FM_M: ca.SX
    v_FM_M: ca.SX


def rotation(axis: np.ndarray, angle: ca.SX) -> ca.SX:
    """R about a unit axis; exact zeros and ones for coordinate axes."""
    a = without_rounding(axis)
    K = ca.SX(np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]]))
    outer = ca.SX(np.outer(a, a))
    c, s = ca.cos(angle), ca.sin(angle)
    # c (1 - aa') + aa' + s K; without cancellation for coordinate axes.
    return c * (ca.SX(np.eye(3) - np.outer(a, a))) + outer + s * K


def rpy_rotation(rpy: ca.SX) -> ca.SX:
    """Rz(yaw) Ry(pitch) Rx(roll)."""
    x, y, z = np.eye(3)
    return rotation(z, rpy[2]) @ rotation(y, rpy[1]) @ rotation(x, rpy[0])


def quaternion_rotation(quat: ca.SX) -> ca.SX:
    """R of a quaternion (w, x, y, z) of any norm."""
    w, r = quat[0], quat[1:4]
    two = 2 / ca.dot(quat, quat)
    cross = ca.skew(r)
    return ca.SX.eye(3) + two * (w * cross + cross @ cross)


def without_rounding(values: np.ndarray) -> np.ndarray:
    """The constants, with those that are integers up to rounding made exact.

    Exact zeros and ones drop out of expressions.
    """
    values = np.array(values, dtype=float)
    near = np.round(values)
    close = np.abs(values - near) < 1e-15
    values[close] = near[close]
    return values


def _rpy_rates(rpy: ca.SX, w: ca.SX) -> ca.SX:
    """rpy rates from the angular velocity in F; singular at pitch = 90 deg."""
    sp, cp = ca.sin(rpy[1]), ca.cos(rpy[1])
    sy, cy = ca.sin(rpy[2]), ca.cos(rpy[2])
    t = (cy * w[0] + sy * w[1]) / cp
    return ca.vertcat(t, -sy * w[0] + cy * w[1], sp * t + w[2])


def _quaternion_rates(quat: ca.SX, w: ca.SX) -> ca.SX:
    s, r = quat[0], quat[1:4]
    return 0.5 * ca.vertcat(-ca.dot(w, r), s * w + ca.cross(w, r))


_ZERO = ca.SX.zeros(3)


def _weld(joint, q, v):
    X = joint.X_FM()
    R, p = (without_rounding(x) for x in (X.rotation().matrix(), X.translation()))
    return JointMotion(ca.SX(R), ca.SX(p), _ZERO, _ZERO)


def _revolute(joint, q, v):
    axis = without_rounding(joint.revolute_axis())
    return JointMotion(rotation(axis, q[0]), _ZERO, ca.SX(axis) * v[0], _ZERO)


def _prismatic(joint, q, v):
    axis = ca.SX(without_rounding(joint.translation_axis()))
    return JointMotion(ca.SX.eye(3), axis * q[0], _ZERO, axis * v[0])


def _screw(joint, q, v):
    axis = without_rounding(_screw_axis(joint))
    lead = joint.screw_pitch() / (2 * np.pi)
    a = ca.SX(axis)
    return JointMotion(rotation(axis, q[0]), a * lead * q[0], a * v[0], a * lead * v[0])


def _screw_axis(joint) -> np.ndarray:
    """Screw axis from the joint's motion: pydrake has no getter for it."""
    context = joint.GetParentPlant().CreateDefaultContext()
    joint.set_angular_velocity(context, 1.0)
    F, M = joint.frame_on_parent(), joint.frame_on_child()
    return M.CalcSpatialVelocity(context, F, F).rotational()


def _universal(joint, q, v):
    x, y, _ = np.eye(3)
    first, second = rotation(x, q[0]), rotation(y, q[1])
    w = second.T @ (ca.SX(x) * v[0]) + ca.SX(y) * v[1]
    return JointMotion(first @ second, _ZERO, w, _ZERO)


def _planar(joint, q, v):
    z = np.eye(3)[2]
    R = rotation(z, q[2])
    linear = R.T @ ca.vertcat(v[0], v[1], 0)
    return JointMotion(R, ca.vertcat(q[0], q[1], 0), ca.SX(z) * v[2], linear)


def _ball_rpy(joint, q, v):
    R = rpy_rotation(q)
    return JointMotion(R, _ZERO, R.T @ v, _ZERO)


def _rpy_floating(joint, q, v):
    R = rpy_rotation(q[:3])
    return JointMotion(R, q[3:6], R.T @ v[:3], R.T @ v[3:6])


def _quaternion_floating(joint, q, v):
    R = quaternion_rotation(q[:4])
    return JointMotion(R, q[4:7], R.T @ v[:3], R.T @ v[3:6])


_MOTIONS: dict[str, Callable] = {
    "weld": _weld,
    "revolute": _revolute,
    "prismatic": _prismatic,
    "screw": _screw,
    "universal": _universal,
    "planar": _planar,
    "ball_rpy": _ball_rpy,
    "rpy_floating": _rpy_floating,
    "quaternion_floating": _quaternion_floating,
}


def joint_motion(joint, q: ca.SX, v: ca.SX) -> JointMotion:
    """The motion of a Drake joint at its own positions and velocities.

    Raises:
        InvalidInput: for a joint type without a twin.
    """
    kind = joint.type_name()
    if kind not in _MOTIONS:
        raise InvalidInput(
            f"joint {joint.name()!r} of type {kind!r} has no twin; known types: "
            f"{', '.join(_MOTIONS)}"
        )
    return _MOTIONS[kind](joint, q, v)


_ROTATIONS: dict[str, tuple[Callable, int]] = {
    "ball_rpy": (_rpy_rates, 3),
    "rpy_floating": (_rpy_rates, 3),
    "quaternion_floating": (_quaternion_rates, 4),
}
"""Joints whose first three velocities are an angular velocity: how to convert it to
rates, and the number of positions of the rotation."""


def velocities_are_rates(joint) -> bool:
    """Whether v = qdot for a joint."""
    return joint.type_name() not in _ROTATIONS


def joint_rates(joint, q: ca.SX, v: ca.SX) -> ca.SX:
    """qdot = N(q) v of one joint."""
    if velocities_are_rates(joint):
        return v
    rates, n = _ROTATIONS[joint.type_name()]
    return ca.vertcat(rates(q[:n], v[:3]), v[3:])
