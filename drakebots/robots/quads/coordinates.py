"""Euler coordinates of plans to Drake's quaternions, and back.

Plans have v = dq/dt with q = [x y z yaw pitch roll, joints]; simulations of the
same model on a quaternion base have q' = [quaternion, x y z, joints] and
v' = [w_WB, v_WB, joints]. With w = E(yaw, pitch) [yaw' pitch' roll'],

    v' = S(q) v,    f = S' f'    for generalized forces
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.transform import Rotation

from drakebots.errors import InvalidInput
from drakebots.multibody.plant import build_robot
from drakebots.robots.quads.quad import Quad


@dataclass(frozen=True)
class Coordinates:
    """Conversions for one robot; arrays have one row a frame.

    Attributes:
        quad: on Euler angles.
    """

    quad: Quad

    @cached_property
    def free(self):
        """The robot on a quaternion base."""
        return build_robot(self.quad.robot.model, time_step=0)

    @cached_property
    def _places(self):
        """Positions and velocities of the base and the joints in the free plant."""
        plant = self.free.plant
        base = next(
            plant.get_joint(i)
            for i in plant.GetJointIndices()
            if plant.get_joint(i).type_name() == "quaternion_floating"
        )
        joints = [plant.GetJointByName(n) for n in self.quad.coordinates[6:]]
        return (
            base.position_start(),
            base.velocity_start(),
            np.array([j.position_start() for j in joints], int),
            np.array([j.velocity_start() for j in joints], int),
        )

    def positions(self, q: np.ndarray) -> np.ndarray:
        """q' (T, nq) of q (T, nv); quaternions w x y z, without jumps of sign."""
        q = np.atleast_2d(q)
        base, _, joints, _ = self._places
        out = np.zeros((len(q), self.free.plant.num_positions()))
        # R = Rz(yaw) Ry(pitch) Rx(roll): intrinsic ZYX.
        quaternion = Rotation.from_euler("ZYX", q[:, 3:6]).as_quat()[:, [3, 0, 1, 2]]
        flips = np.einsum("ti,ti->t", quaternion[1:], quaternion[:-1]) < 0
        first = 1.0 if quaternion[0, 0] >= 0 else -1.0
        quaternion *= (
            first * np.cumprod(np.where(np.r_[False, flips], -1.0, 1.0))[:, None]
        )
        out[:, base : base + 4] = quaternion
        out[:, base + 4 : base + 7] = q[:, :3]
        out[:, joints] = q[:, 6:]
        return out

    def velocities(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """v' (T, nv) of q and v (T, nv)."""
        q, v = np.atleast_2d(q), np.atleast_2d(v)
        _, base, _, joints = self._places
        out = np.zeros((len(q), self.free.plant.num_velocities()))
        out[:, base : base + 3] = np.einsum("tij,tj->ti", euler_rates(q), v[:, 3:6])
        out[:, base + 3 : base + 6] = v[:, :3]
        out[:, joints] = v[:, 6:]
        return out

    def from_positions(self, positions: np.ndarray) -> np.ndarray:
        """q (T, nv) of q' (T, nq); yaw without jumps.

        Raises:
            InvalidInput: for a base that pitches by 90 degrees.
        """
        positions = np.atleast_2d(positions)
        base, _, joints, _ = self._places
        out = np.zeros((len(positions), self.quad.nv))
        turned = Rotation.from_quat(positions[:, base : base + 4][:, [1, 2, 3, 0]])
        angles = turned.as_euler("ZYX")
        if np.abs(angles[:, 1]).max(initial=0.0) > 1.5:
            raise InvalidInput(
                "the base pitches by 90 degrees, where Euler angles end; plans need "
                "less"
            )
        out[:, 3:6] = np.unwrap(angles, axis=0)
        out[:, :3] = positions[:, base + 4 : base + 7]
        out[:, 6:] = positions[:, joints]
        return out

    def from_velocities(self, q: np.ndarray, velocities: np.ndarray) -> np.ndarray:
        """v (T, nv) of q (T, nv), Euler, and v' (T, nv)."""
        q, velocities = np.atleast_2d(q), np.atleast_2d(velocities)
        _, base, _, joints = self._places
        out = np.zeros((len(q), self.quad.nv))
        w = velocities[:, base : base + 3]
        out[:, 3:6] = np.linalg.solve(euler_rates(q), w[..., None])[..., 0]
        out[:, :3] = velocities[:, base + 3 : base + 6]
        out[:, 6:] = velocities[:, joints]
        return out

    def forces(self, q: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """f (T, nv), Euler, of f' (T, nv) on the free plant's velocities."""
        q, forces = np.atleast_2d(q), np.atleast_2d(forces)
        _, base, _, joints = self._places
        out = np.zeros((len(q), self.quad.nv))
        out[:, 3:6] = np.einsum(
            "tji,tj->ti", euler_rates(q), forces[:, base : base + 3]
        )
        out[:, :3] = forces[:, base + 3 : base + 6]
        out[:, 6:] = forces[:, joints]
        return out


def euler_rates(q: np.ndarray) -> np.ndarray:
    """E (T, 3, 3): w_WB, world, of the rates of yaw, pitch and roll."""
    yaw, pitch = q[:, 3], q[:, 4]
    zero, one = np.zeros(len(q)), np.ones(len(q))
    columns = [
        [zero, zero, one],
        [-np.sin(yaw), np.cos(yaw), zero],
        [np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), -np.sin(pitch)],
    ]
    return np.stack([np.stack(c, axis=-1) for c in columns], axis=-1)
