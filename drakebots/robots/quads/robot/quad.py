"""The skeleton of a quad-robot for planning: Euler angles, soles, torque limits.

    q = [x y z yaw pitch roll, joints],   v = dq/dt

A sole is the convex hull of a foot's patches; the contact force and torque of the
space-time plan act at its middle, the point p_WF. The sole's frame S has that origin
and, in the rest pose, the world's axes. :class:`Coordinates` converts between these
coordinates and Drake's quaternions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import casadi as ca
import numpy as np
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable
from pydrake.systems.framework import Context
from scipy.spatial.transform import Rotation

from drakebots.core.checks import array
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import check, checked
from drakebots.formats import loaded
from drakebots.model import (
    Model,
    context_at,
    effort_limits,
    find_body,
    is_floating,
    joints_of,
    point_jacobian,
    position_limits,
    skin_path,
)
from drakebots.multibody import EULER_JOINTS, Robot, build_robot, polygon
from drakebots.robots.quads.robot.tree_dynamics import TreeDynamics
from drakebots.skin.coupled import torque_map
from drakebots.skin.file import Patches, read_skin, rest_positions

RPY = [5, 4, 3]
"""Indices of roll, pitch and yaw among a plan's coordinates."""

MODELS = ("beetle", "monster", "lizard", "cow")
"""Names of the stored quad-robots."""


def half_planes(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outward normals n (k, 2) and offsets b (k,) of a polygon; inside, n x <= b.

    Args:
        corners: corners of the polygon, counterclockwise (k, 2).
    """
    along = np.roll(corners, -1, axis=0) - corners
    n = np.stack([along[:, 1], -along[:, 0]], axis=1)
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    return n, np.einsum("ki,ki->k", n, corners)


@dataclass(frozen=True)
class Sole:
    """The flat contact area of a foot.

    Attributes:
        name: name of the foot.
        body: name of its link.
        p_BF: middle of the sole, where its force and torque act (3,) [m].
        R_BS: axes of the sole's frame, z away from the ground (3, 3).
        corners: convex hull of the patches relative to p_BF in S, counterclockwise
            (c, 2) [m].
        points: patches relative to p_BF in S (k, 3) [m].
    """

    name: str
    body: str
    p_BF: np.ndarray
    R_BS: np.ndarray
    corners: np.ndarray
    points: np.ndarray

    @property
    def radius(self) -> float:
        """Radius of the circle around all corners [m]: nu_b and nu_t of eq. (8)."""
        return float(np.linalg.norm(self.corners, axis=1).max())

    @property
    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Outward normals n (c, 2) and offsets b (c,) [m]; inside, n x <= b."""
        return half_planes(self.corners)


@dataclass(frozen=True)
class Quad:
    """The skeleton of a floating robot with feet; SI units.

    Attributes:
        robot: the robot's plant with an "euler" base.
        soles: the soles of the feet in order.
        rest: positions q of the rest pose (nv,).
        torque_limits: torque limits of the actuators (m,) [N m]; inf without a limit.
    """

    robot: Robot
    soles: tuple[Sole, ...]
    rest: np.ndarray
    torque_limits: np.ndarray

    @cached_property
    def tree(self) -> TreeDynamics:
        """The skeleton as CasADi expressions."""
        return TreeDynamics(self.robot.plant, self.soles)

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.robot.model.name

    @property
    def nv(self) -> int:
        """Number of coordinates, including six of the base."""
        return self.robot.plant.num_positions()

    @property
    def feet(self) -> tuple[str, ...]:
        """Names of the feet."""
        return tuple(sole.name for sole in self.soles)

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates: x, y, z, yaw, pitch, roll, then the joints."""
        plain = {"add_model_instance_prefix": False, "always_add_suffix": False}
        return (*EULER_JOINTS, *self.robot.plant.GetPositionNames(**plain)[6:])

    @cached_property
    def B(self) -> np.ndarray:
        """Matrix from torques to generalized forces (nv, m)."""
        return torque_map(self.robot.plant)[0]

    @cached_property
    def actuated(self) -> np.ndarray:
        """Indices of the coordinates that the torques act on (m,)."""
        return torque_map(self.robot.plant)[1]

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the actuated joints, in the order of the torques."""
        return tuple(self.coordinates[i] for i in self.actuated)

    @cached_property
    def position_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits of q (nv,); pitch and roll stay within 60 degrees."""
        low, high = position_limits(self.robot.plant)
        low[4:6], high[4:6] = -np.pi / 3, np.pi / 3
        return low, high

    @cached_property
    def rest_feet(self) -> np.ndarray:
        """p_WF at rest (feet, 3) [m]."""
        return self.tree.feet_function(self.rest).full().reshape(-1, 3)

    def rest_com(self, skin=None) -> np.ndarray:
        """p_WC at rest (3,) [m], with a :class:`~planned_robot.LinkSkin` if given."""
        extra = 0.0 if skin is None else skin.inertia
        return self.com(self.rest, self.tree.inertia + extra)[0]

    @cached_property
    def mass(self) -> float:
        """Mass of the skeleton [kg]."""
        return float(self.tree.inertia[:, 0].sum())

    def foot_positions(self, q: np.ndarray) -> np.ndarray:
        """p_WF (T, feet, 3) [m] of positions (T, nv)."""
        rows = self._along(self.tree.feet_function, np.atleast_2d(q))
        return rows.reshape(len(rows), -1, 3)

    def sole_axes(self, q: np.ndarray) -> list[np.ndarray]:
        """Axes R_WS (3, 3) of the soles at a pose (nv,)."""
        axes = self.tree.axes_function(q)
        return [R.full() for R in (axes if isinstance(axes, tuple) else (axes,))]

    def contact_jacobian(self, q: np.ndarray) -> np.ndarray:
        """J (6 feet, nv) at a pose (nv,), tau = J'[F; T] of loads at the soles."""
        return self.tree.contact_jacobian(q).full()

    def dynamics(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray, inertia: np.ndarray
    ) -> np.ndarray:
        """Generalized forces (T, nv) of motions (T, nv) without contact (RNEA).

        Args:
            q, v, a: positions, velocities and accelerations.
            inertia: rows of the links (links, 10) or (T, links, 10).
        """
        rows = inertia.reshape(-1, self.tree.inertia.size)
        return self._along(self.tree.dynamics_function, q, v, a, rows)

    def com(self, q: np.ndarray, inertia: np.ndarray | None = None) -> np.ndarray:
        """p_WC (T, 3) [m]; inertia (links, 10) or (T, links, 10)."""
        inertia = self.tree.inertia if inertia is None else inertia
        rows = inertia.reshape(-1, self.tree.inertia.size)
        return self._along(self.tree.com_function, np.atleast_2d(q), rows)

    @staticmethod
    def _along(function: ca.Function, q: np.ndarray, *rows: np.ndarray) -> np.ndarray:
        """A function at each of n positions (n, ...), with as many rows or one row."""
        given = [np.broadcast_to(x, (len(q), x.shape[1])).T for x in (q, *rows)]
        return np.asarray(function.map(len(q))(*given)).T


def load_quad(
    model: Model | str | Path, patches: Sequence[Patches] | None = None
) -> Quad:
    """Loads the skeleton of a quad-robot.

    Args:
        model: the skeleton's model, or its name or path.
        patches: patches of each foot; those in the `.skin.yaml` beside the model by
            default, which also has rest positions of joints.

    Raises:
        InvalidInput: for a model without patches, actuators or a free base.
        FileProblem, ModelProblem, UnknownName: as from `load` and `read_skin`.
    """
    model = loaded(model)
    beside, joints = skin_path(model.path), {}
    if patches is None and os.path.isfile(beside):
        skin = read_skin(beside)
        patches, joints = skin.patches, skin.joints
    X_WB = _free_base_pose(model)
    if not patches:
        raise InvalidInput(f"{model.name} has no feet; list patches in {beside.name}")
    robot = build_robot(model, base="euler", time_step=0)
    plant = robot.plant
    if not plant.num_actuators():
        raise InvalidInput(
            f"{model.name} has no actuators; give its joints effort limits in the SDF"
        )
    context = context_at(plant, rest_positions(plant, joints))
    robot.set_base_pose(context, X_WB)
    soles = tuple(_sole(plant, context, p) for p in patches)
    return Quad(robot, soles, plant.GetPositions(context), effort_limits(plant))


def _free_base_pose(model: Model) -> RigidTransform:
    """Pose of the base in the file's default configuration."""
    plant = build_robot(model, time_step=0).plant
    bodies = plant.GetFloatingBaseBodies()
    if len(bodies) != 1:
        has = f"has {len(bodies)} free bodies" if bodies else "is fixed to the world"
        raise InvalidInput(f"{model.name} {has}; plans need a robot with a free base")
    body = plant.get_body(next(iter(bodies)))
    return plant.EvalBodyPoseInWorld(plant.CreateDefaultContext(), body)


def _sole(plant, context, patches: Patches) -> Sole:
    X_WB = plant.EvalBodyPoseInWorld(context, find_body(plant, patches.body))
    R_BS = X_WB.rotation().matrix().T
    middle = (patches.p_BC.min(axis=0) + patches.p_BC.max(axis=0)) / 2
    points = (patches.p_BC - middle) @ R_BS
    # The middle is that of the points' bounding box in S, not in B.
    shift = (points.min(axis=0) + points.max(axis=0)) / 2
    points = points - shift
    corners = polygon(points[:, :2])
    if corners is None:
        raise InvalidInput(
            f"patches of {patches.foot}: they span no area in the rest pose; a sole "
            "needs three points that are not on a line"
        )
    p_BF = middle + R_BS @ shift
    return Sole(patches.foot, patches.body, p_BF, R_BS, corners, points)


@dataclass(frozen=True)
class Coordinates:
    """Converts Euler coordinates of plans to Drake's quaternions, and back.

    Plans have v = dq/dt with q = [x y z yaw pitch roll, joints]; simulations of the
    same model on a quaternion base have q' = [quaternion, x y z, joints] and
    v' = [w_WB, v_WB, joints]. With w = E(yaw, pitch) [yaw' pitch' roll'],

        v' = S(q) v,    f = S' f'    for generalized forces

    Arrays have one row per time.

    Attributes:
        quad: the robot in Euler coordinates.
    """

    quad: Quad

    @cached_property
    def free(self):
        """The robot with a quaternion base."""
        return build_robot(self.quad.robot.model, time_step=0)

    @cached_property
    def _places(self):
        """Indices of base and joints in q' and v'."""
        plant = self.free.plant
        base = next(filter(is_floating, joints_of(plant)))
        joints = [plant.GetJointByName(n) for n in self.quad.coordinates[6:]]
        return (
            base.position_start(),
            base.velocity_start(),
            np.array([j.position_start() for j in joints], int),
            np.array([j.velocity_start() for j in joints], int),
        )

    def positions(self, q: np.ndarray) -> np.ndarray:
        """q' (T, nq) from q (T, nv); quaternions w x y z without changes of sign."""
        q = np.atleast_2d(q)
        base, _, joints, _ = self._places
        out = np.zeros((len(q), self.free.plant.num_positions()))
        # R = Rz(yaw) Ry(pitch) Rx(roll): intrinsic ZYX.
        quaternion = Rotation.from_euler("ZYX", q[:, 3:6]).as_quat()[:, [3, 0, 1, 2]]
        flips = np.einsum("ti,ti->t", quaternion[1:], quaternion[:-1]) < 0
        signs = np.cumprod(np.where([quaternion[0, 0] < 0, *flips], -1.0, 1.0))
        quaternion *= signs[:, None]
        out[:, base : base + 4] = quaternion
        out[:, base + 4 : base + 7] = q[:, :3]
        out[:, joints] = q[:, 6:]
        return out

    def velocities(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """v' (T, nv) from q and v (T, nv)."""
        return np.einsum("tij,tj->ti", self._rates(q), np.atleast_2d(v))

    def _rates(self, q: np.ndarray) -> np.ndarray:
        """S (T, nv, nv), v' = S v."""
        q = np.atleast_2d(q)
        _, base, _, joints = self._places
        S = np.zeros((len(q), self.quad.nv, self.quad.nv))
        S[:, base : base + 3, 3:6] = euler_rates(q)
        S[:, base + 3 : base + 6, :3] = np.eye(3)
        S[:, joints, np.arange(6, self.quad.nv)] = 1.0
        return S

    def from_positions(self, positions: np.ndarray) -> np.ndarray:
        """q (T, nv) from q' (T, nq); yaw is continuous.

        Raises:
            InvalidInput: for a base that pitches by about 90 degrees.
        """
        positions = np.atleast_2d(positions)
        base, _, joints, _ = self._places
        out = np.zeros((len(positions), self.quad.nv))
        turned = Rotation.from_quat(positions[:, base : base + 4][:, [1, 2, 3, 0]])
        angles = turned.as_euler("ZYX")
        if np.abs(angles[:, 1]).max(initial=0.0) > 1.5:
            raise InvalidInput(
                "the base pitches by 90 degrees, where Euler angles are singular; "
                "plans need less"
            )
        out[:, 3:6] = np.unwrap(angles, axis=0)
        out[:, :3] = positions[:, base + 4 : base + 7]
        out[:, 6:] = positions[:, joints]
        return out

    def from_velocities(self, q: np.ndarray, velocities: np.ndarray) -> np.ndarray:
        """v (T, nv) from q (T, nv), in Euler coordinates, and v' (T, nv)."""
        columns = np.atleast_2d(velocities)[..., None]
        return np.linalg.solve(self._rates(q), columns)[..., 0]

    def forces(self, q: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """Forces f (T, nv) on Euler coordinates from forces f' (T, nv) on v'."""
        return np.einsum("tji,tj->ti", self._rates(q), np.atleast_2d(forces))


def euler_rates(q: np.ndarray) -> np.ndarray:
    """E (T, 3, 3): w_WB = E [yaw' pitch' roll'], in the world."""
    yaw, pitch = q[:, 3], q[:, 4]
    E = np.zeros((len(q), 3, 3))
    E[:, 2, 0] = 1.0
    E[:, 0, 1], E[:, 1, 1] = -np.sin(yaw), np.cos(yaw)
    E[:, 0, 2], E[:, 1, 2] = np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch)
    E[:, 2, 2] = -np.sin(pitch)
    return E


# --- feet as patches on links, for step-by-step plans --------------------------------
#
# The paper divides each sole into five patches ("Computational Design of Skinned
# Quad-Robots", section 5.3); their forces act on the foot's link (end of 5.2).


@checked("feet")
class Feet:
    """Patches of each foot, and the normals of the soles.

    Raises:
        InvalidInput: without feet, for a foot listed twice, or other shapes.
    """

    patches: tuple[Patches, ...]
    """The patches of each foot (F,)."""
    normal_B: np.ndarray
    """Normal of each sole in its link, the ground's normal at rest (F, 3)."""

    def __post_init__(self):
        object.__setattr__(self, "patches", tuple(self.patches))
        if not self.patches:
            raise InvalidInput("feet: none; add `patches` to the skin's YAML file")
        if len(set(self.names)) < len(self.patches):
            raise InvalidInput(f"feet: one is listed twice in {list(self.names)}")
        check(self, "feet", normal_B=array((len(self.patches), 3)))

    def __len__(self) -> int:
        return len(self.patches)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the feet."""
        return tuple(one.foot for one in self.patches)

    @property
    def foot_of(self) -> np.ndarray:
        """Index of the foot of each patch (P,)."""
        return np.repeat(np.arange(len(self)), [len(p.p_BC) for p in self.patches])

    @property
    def patch_names(self) -> tuple[str, ...]:
        """Name "foot/number" of each patch (P,)."""
        return tuple(f"{p.foot}/{k}" for p in self.patches for k in range(len(p.p_BC)))


def make_feet(
    plant: MultibodyPlant, context: Context, patches: Sequence[Patches]
) -> Feet:
    """Feet whose soles are parallel to the ground z = 0 in the context's pose.

    Raises:
        UnknownName: for a link that does not exist.
        InvalidInput: as :class:`Feet`.
    """
    bodies = [find_body(plant, one.body) for one in patches]
    poses = [plant.EvalBodyPoseInWorld(context, body) for body in bodies]
    normals = [X_WB.rotation().matrix()[2] for X_WB in poses]
    return Feet(tuple(patches), np.array(normals).reshape(-1, 3))


@dataclass(frozen=True)
class FeetKinematics:
    """Kinematics of the feet in one pose, in the world frame.

    Jacobians refer to the plant's velocities.

    Attributes:
        p, J: positions of the patches (P, 3) [m], and their Jacobian (3 P, nv).
        tip, J_tip: end effectors, the means of each foot's patches (F, 3) [m], and
            their Jacobian (3 F, nv).
        normal, J_normal: normals of the soles (F, 3), and their Jacobian (3 F, nv).
    """

    p: np.ndarray
    J: np.ndarray
    tip: np.ndarray
    J_tip: np.ndarray
    normal: np.ndarray
    J_normal: np.ndarray


def feet_kinematics(
    plant: MultibodyPlant, context: Context, feet: Feet
) -> FeetKinematics:
    """Kinematics of the feet at the context's q."""
    world, nv = plant.world_frame(), plant.num_velocities()
    rows = []
    for one, n_B in zip(feet.patches, feet.normal_B):
        frame = find_body(plant, one.body).body_frame()
        p_BC = np.ascontiguousarray(one.p_BC.T)
        p = plant.CalcPointsPositions(context, frame, p_BC, world).T
        J = point_jacobian(plant, context, frame, p_BC).reshape(len(p), 3, nv)
        spin = plant.CalcJacobianAngularVelocity(
            context, JacobianWrtVariable.kV, frame, world, world
        )
        n = frame.CalcPoseInWorld(context).rotation().matrix() @ n_B
        # dn = omega x n.
        turned = np.cross(spin.T, n).T
        tip, J_tip = p.mean(axis=0)[None], J.mean(axis=0)
        rows.append((p, J.reshape(-1, nv), tip, J_tip, n[None], turned))
    return FeetKinematics(*map(np.concatenate, zip(*rows)))
