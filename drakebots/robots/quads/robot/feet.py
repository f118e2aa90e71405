"""Feet of a skinned robot: contact points on links, soles, and their Jacobians.

The paper groups each sole into five patches ("Computational Design of Skinned
Quad-Robots", section 5.3); their forces act on the foot's link (end of 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable
from pydrake.systems.framework import Context
from scipy.spatial.transform import Rotation

from drakebots.core.errors import InvalidInput
from drakebots.model import find_body
from drakebots.multibody import build_robot
from drakebots.robots.quads.robot.quad import Quad
from drakebots.skin.file import Patches

# Euler coordinates of plans to Drake's quaternions, and back.
#
# Plans have v = dq/dt with q = [x y z yaw pitch roll, joints]; simulations of the
# same model on a quaternion base have q' = [quaternion, x y z, joints] and
# v' = [w_WB, v_WB, joints]. With w = E(yaw, pitch) [yaw' pitch' roll'],
#
#     v' = S(q) v,    f = S' f'    for generalized forces


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


@dataclass(frozen=True)
class Feet:
    """Contact patches by foot, and which way each sole looks.

    Attributes:
        patches: one a foot (F,).
        normal_B: the ground's normal in each foot's link at rest (F, 3).

    Raises:
        InvalidInput: without feet, for a foot listed twice, or other shapes.
    """

    patches: tuple[Patches, ...]
    normal_B: np.ndarray

    def __post_init__(self):
        object.__setattr__(self, "patches", tuple(self.patches))
        if not self.patches:
            raise InvalidInput("feet: none; add `patches` to the skin's YAML")
        if len(set(self.names)) < len(self.patches):
            raise InvalidInput(f"feet: one is listed twice among {list(self.names)}")
        normal = np.asarray(self.normal_B, float)
        if normal.shape != (len(self.patches), 3) or not np.isfinite(normal).all():
            raise InvalidInput(f"feet: needs a normal for each, got {normal.shape}")
        object.__setattr__(self, "normal_B", normal)

    def __len__(self) -> int:
        return len(self.patches)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the feet."""
        return tuple(one.foot for one in self.patches)

    @property
    def foot_of(self) -> np.ndarray:
        """The foot of each patch (P,)."""
        return np.repeat(np.arange(len(self)), [len(p.p_BC) for p in self.patches])

    @property
    def patch_names(self) -> tuple[str, ...]:
        """foot/number of each patch (P,)."""
        return tuple(
            f"{one.foot}/{k}" for one in self.patches for k in range(len(one.p_BC))
        )


def make_feet(
    plant: MultibodyPlant, context: Context, patches: Sequence[Patches]
) -> Feet:
    """Feet whose soles face the ground, z = 0, in the context's pose.

    Raises:
        UnknownName: for a link that does not exist.
        InvalidInput: as :class:`Feet`.
    """
    normals = [
        plant.EvalBodyPoseInWorld(context, find_body(plant, one.body))
        .rotation()
        .matrix()[2]
        for one in patches
    ]
    return Feet(tuple(patches), np.array(normals).reshape(-1, 3))


@dataclass(frozen=True)
class FeetFrame:
    """Feet in one pose; Jacobians in the plant's velocities, world frame.

    Attributes:
        p: patches (P, 3) [m].
        J: dp = J dq (3 P, nv).
        tip, J_tip: the end effectors, the mean of a foot's patches (F, 3) [m],
            (3 F, nv).
        normal, J_normal: of the soles (F, 3), (3 F, nv).
    """

    p: np.ndarray
    J: np.ndarray
    tip: np.ndarray
    J_tip: np.ndarray
    normal: np.ndarray
    J_normal: np.ndarray


def feet_frame(plant: MultibodyPlant, context: Context, feet: Feet) -> FeetFrame:
    """The feet at the context's q."""
    world, nv = plant.world_frame(), plant.num_velocities()
    rows: dict[str, list] = {
        name: [] for name in ("p", "J", "tip", "J_tip", "normal", "J_normal")
    }
    for one, n_B in zip(feet.patches, feet.normal_B):
        frame = find_body(plant, one.body).body_frame()
        p_BC = np.ascontiguousarray(one.p_BC.T)
        p = plant.CalcPointsPositions(context, frame, p_BC, world).T
        J = plant.CalcJacobianTranslationalVelocity(
            context, JacobianWrtVariable.kV, frame, p_BC, world, world
        ).reshape(len(p), 3, nv)
        spin = plant.CalcJacobianAngularVelocity(
            context, JacobianWrtVariable.kV, frame, world, world
        )
        n = frame.CalcPoseInWorld(context).rotation().matrix() @ n_B
        rows["p"].append(p)
        rows["J"].append(J.reshape(-1, nv))
        rows["tip"].append(p.mean(axis=0)[None])
        rows["J_tip"].append(J.mean(axis=0))
        rows["normal"].append(n[None])
        # dn = omega x n.
        rows["J_normal"].append(np.cross(spin.T, n).T)
    return FeetFrame(**{name: np.concatenate(part) for name, part in rows.items()})
