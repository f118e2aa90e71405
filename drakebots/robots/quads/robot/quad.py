"""A quad-robot as planning sees it: a skeleton on Euler angles and its soles.

    q = [x y z yaw pitch roll, joints],   v = dq/dt

A sole is the convex hull of a foot's contact patches; the plan's contact force
and torque act at its middle, the point p_WF. The sole's frame S has that origin
and, in the rest pose, the world's axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from pydrake.math import RigidTransform
from scipy.spatial import ConvexHull, QhullError

from drakebots.core.errors import InvalidInput
from drakebots.model import Model, find_body, load, skin_path
from drakebots.multibody import EULER_JOINTS, Robot, build_robot
from drakebots.robots.quads.robot.tree_dynamics import TreeDynamics
from drakebots.skin.file import Patches, read_skin, rest_positions
from drakebots.skin.frame import torque_map

SOLE_RADIUS = 0.02
"""Of the round sole assumed for a foot that is only a point [m]."""


@dataclass(frozen=True)
class Sole:
    """The flat of a foot.

    Attributes:
        name: of the foot.
        body: its link.
        p_BF: the point that stands for it (3,) [m].
        R_BS: axes of the sole's frame, z away from the ground (3, 3).
        corners: convex hull about p_BF in S, counterclockwise (c, 2) [m].
        points: contact points about p_BF in S (k, 3) [m].
    """

    name: str
    body: str
    p_BF: np.ndarray
    R_BS: np.ndarray
    corners: np.ndarray
    points: np.ndarray

    @property
    def radius(self) -> float:
        """Of the circle about all corners [m]: nu_b and nu_t of eq. (8)."""
        return float(np.linalg.norm(self.corners, axis=1).max())

    @property
    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Outward normals n (c, 2) and offsets b (c,) [m]: inside, n x <= b."""
        along = np.roll(self.corners, -1, axis=0) - self.corners
        n = np.stack([along[:, 1], -along[:, 0]], axis=1)
        n /= np.linalg.norm(n, axis=1, keepdims=True)
        return n, np.einsum("ci,ci->c", n, self.corners)


@dataclass(frozen=True)
class Quad:
    """A floating robot with feet, ready to be planned for; SI.

    Attributes:
        robot: its plant on a base "euler".
        soles: of the feet, in order.
        rest: q of the rest pose (nv,).
        torque_limits: of the actuators (m,) [N m]; inf without a limit.
    """

    robot: Robot
    soles: tuple[Sole, ...]
    rest: np.ndarray
    torque_limits: np.ndarray

    @cached_property
    def tree(self) -> TreeDynamics:
        """The skeleton as CasADi expressions."""
        return TreeDynamics(self.robot.plant)

    @property
    def name(self) -> str:
        """Of the model."""
        return self.robot.model.name

    @property
    def nv(self) -> int:
        """Coordinates, six of them the base's."""
        return self.robot.plant.num_positions()

    @property
    def feet(self) -> tuple[str, ...]:
        """Names."""
        return tuple(sole.name for sole in self.soles)

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Joints' names in the order of q; the base's are x, y, z, yaw, ..."""
        plant, names = self.robot.plant, [""] * self.nv
        for index in plant.GetJointIndices():
            joint = plant.get_joint(index)
            if joint.num_positions():
                names[joint.position_start()] = joint.name()
        return (*EULER_JOINTS, *names[6:])

    @cached_property
    def _torques(self) -> tuple[np.ndarray, np.ndarray]:
        return torque_map(self.robot.plant)

    @property
    def B(self) -> np.ndarray:
        """Torques to generalized forces (nv, m)."""
        return self._torques[0]

    @property
    def actuated(self) -> np.ndarray:
        """Which coordinates the torques act on (m,)."""
        return self._torques[1]

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the actuated joints, in the order of the torques."""
        return tuple(self.coordinates[i] for i in self.actuated)

    @cached_property
    def position_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper (nv,); the base's pitch and roll within 60 degrees."""
        plant = self.robot.plant
        low, high = plant.GetPositionLowerLimits(), plant.GetPositionUpperLimits()
        low[4:6], high[4:6] = -np.pi / 3, np.pi / 3
        return low, high

    @cached_property
    def speed_limits(self) -> np.ndarray:
        """Of the joints (nv,) [rad/s]; inf without a limit."""
        return self.robot.plant.GetVelocityUpperLimits()

    def sole(self, foot: str) -> Sole:
        """By name."""
        return self.soles[self.feet.index(foot)]

    @cached_property
    def rest_feet(self) -> np.ndarray:
        """p_WF at rest (feet, 3) [m]."""
        return self.tree.feet_function(self.soles)(self.rest).full().reshape(-1, 3)

    def rest_com(self, skin=None) -> np.ndarray:
        """p_WC at rest (3,) [m], with a :class:`~links_skin.LinkSkin` if given."""
        extra = 0.0 if skin is None else skin.inertia
        return self.com(self.rest, self.tree.inertia + extra)[0]

    @cached_property
    def mass(self) -> float:
        """Of the skeleton [kg]."""
        return float(self.tree.inertia[:, 0].sum())

    def foot_positions(self, q: np.ndarray) -> np.ndarray:
        """p_WF (T, feet, 3) [m] of positions (T, nv)."""
        q = np.atleast_2d(q)
        out = self.tree.feet_function(self.soles).map(len(q))(q.T)
        return np.asarray(out).T.reshape(len(q), -1, 3)

    def com(self, q: np.ndarray, inertia: np.ndarray | None = None) -> np.ndarray:
        """p_WC (T, 3) [m]; inertia (links, 10) or (T, links, 10)."""
        q = np.atleast_2d(q)
        inertia = self.tree.inertia if inertia is None else inertia
        rows = inertia.reshape(-1, self.tree.inertia.size)
        d = np.broadcast_to(rows, (len(q), rows.shape[1]))
        return np.asarray(self.tree.com_function.map(len(q))(q.T, d.T)).T


def load_quad(
    model: Model | str | Path,
    patches: Sequence[Patches] | None = None,
    *,
    joints: dict[str, float] | None = None,
    sole_radius: float = SOLE_RADIUS,
) -> Quad:
    """A quad-robot from its file.

    Args:
        model: of the skeleton, or its name or path.
        patches: contact points of each foot; those in the `.skin.yaml` beside
            the model by default, else the model's feet: FL_0, FL_1, ... are
            points of one sole, a foot of one point gets one of `sole_radius`.
        joints: rest positions of some joints [rad]; the `.skin.yaml`'s by default.
        sole_radius: [m].

    Raises:
        InvalidInput: for a model without feet, actuators or a free base.
        FileProblem, ModelProblem, UnknownName: as from `load` and `read_skin`.
    """
    model = model if isinstance(model, Model) else load(model)
    beside = skin_path(model.path)
    if beside.is_file() and (patches is None or joints is None):
        skin = read_skin(beside)
        patches = skin.patches if patches is None else patches
        joints = skin.joints if joints is None else joints
    X_WB = _free_base_pose(model)
    robot = build_robot(model, base="euler", time_step=0)
    plant = robot.plant
    if not plant.num_actuators():
        raise InvalidInput(
            f"{model.name} has no actuators; give its joints effort limits in the SDF"
        )
    q = _rest(robot, X_WB, joints or {})
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, q)
    patches, single = (patches, []) if patches else _grouped(model.feet)
    soles = [_patched(plant, context, p) for p in patches]
    soles += [_round(plant, context, foot, sole_radius) for foot in single]
    if not soles:
        raise InvalidInput(
            f"{model.name} has no feet; list patches in {beside.name} or feet in the "
            "YAML beside the model"
        )
    limits = [
        plant.get_joint_actuator(i).effort_limit()
        for i in plant.GetJointActuatorIndices()
    ]
    return Quad(robot, tuple(soles), q, np.array(limits))


def _free_base_pose(model: Model) -> RigidTransform:
    """Of the file's default pose."""
    plant = build_robot(model, time_step=0).plant
    bodies = plant.GetFloatingBaseBodies()
    if len(bodies) != 1:
        has = f"has {len(bodies)} free bodies" if bodies else "is fixed to the world"
        raise InvalidInput(f"{model.name} {has}; plans need a robot with a free base")
    body = plant.get_body(next(iter(bodies)))
    return plant.EvalBodyPoseInWorld(plant.CreateDefaultContext(), body)


def _rest(robot: Robot, X_WB: RigidTransform, joints: dict[str, float]) -> np.ndarray:
    """The file's default pose on Euler angles."""
    own = robot.plant.CreateDefaultContext()
    robot.plant.SetPositions(own, rest_positions(robot.plant, joints))
    robot.set_base_pose(own, X_WB)
    return robot.plant.GetPositions(own)


def _grouped(feet) -> tuple[list[Patches], list]:
    """Feet "FL_0", "FL_1", ... as the patches of a foot "FL", and the others."""
    groups: dict[tuple[str, str], list] = {}
    for foot in feet:
        stem, _, number = foot.name.rpartition("_")
        name = stem if stem and number.isdigit() else foot.name
        groups.setdefault((name, foot.body), []).append(foot)
    patches, single = [], []
    for (name, body), members in groups.items():
        if len(members) >= 3:
            points = np.array([foot.p_BF for foot in members])
            patches.append(Patches(name, body, points))
        else:
            single += members
    return patches, single


def _patched(plant, context, patches: Patches) -> Sole:
    X_WB = plant.EvalBodyPoseInWorld(context, find_body(plant, patches.body))
    R_BS = X_WB.rotation().matrix().T
    middle = (patches.p_BC.min(axis=0) + patches.p_BC.max(axis=0)) / 2
    points = (patches.p_BC - middle) @ R_BS
    # The box of the points in S, not in B, has the middle we mean.
    shift = (points.min(axis=0) + points.max(axis=0)) / 2
    points = points - shift
    return _sole(patches.foot, patches.body, middle + R_BS @ shift, R_BS, points)


def _round(plant, context, foot, radius: float) -> Sole:
    X_WB = plant.EvalBodyPoseInWorld(context, find_body(plant, foot.body))
    R_BS = X_WB.rotation().matrix().T
    angles = np.pi / 4 + np.pi / 2 * np.arange(4)
    ring = radius * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    points = np.vstack([np.zeros((1, 3)), ring])
    p_BF = foot.p_BF - R_BS[:, 2] * foot.radius
    return _sole(foot.name, foot.body, p_BF, R_BS, points)


def _sole(name, body, p_BF, R_BS, points) -> Sole:
    try:
        hull = ConvexHull(points[:, :2])
    except QhullError:
        raise InvalidInput(
            f"patches {name}: the points span no area in the rest pose; a sole needs "
            "three that are not on a line"
        ) from None
    return Sole(name, body, p_BF, R_BS, points[hull.vertices, :2], points)
