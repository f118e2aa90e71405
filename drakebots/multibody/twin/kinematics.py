"""Kinematics of a plant as CasADi expressions: poses, rates and loops.

The plant's joints are walked once, from the world outwards; either the parent or the
child of a joint may be on the world's side. Everything is in the plant's units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from pydrake.multibody.plant import MultibodyPlant

from drakebots.core.errors import InvalidInput
from drakebots.model import Loop, LoopClosure, find_body
from drakebots.multibody.twin.joints import (
    JointMotion,
    joint_motion,
    joint_rates,
    joint_velocities,
    velocities_are_rates,
    without_rounding,
)


@dataclass(frozen=True)
class Pose:
    """X_AB as expressions: R_AB (3, 3) and p_AB (3,)."""

    R: ca.SX
    p: ca.SX

    def __matmul__(self, other: Pose) -> Pose:
        return Pose(self.R @ other.R, self.p + self.R @ other.p)

    def inverse(self) -> Pose:
        """X_BA."""
        return Pose(self.R.T, -(self.R.T @ self.p))

    def point(self, p: ca.SX | np.ndarray) -> ca.SX:
        """p_AP of a point given in B."""
        return self.p + self.R @ ca.SX(p)


def _constant_pose(frame) -> Pose:
    """The pose of a frame of Drake's in its body."""
    X = frame.GetFixedPoseInBodyFrame()
    R, p = (without_rounding(x) for x in (X.rotation().matrix(), X.translation()))
    return Pose(ca.SX(R), ca.SX(p))


@dataclass(frozen=True)
class Link:
    """A body B of the tree, and the joint to its inboard body.

    Attributes:
        body, inboard: indices of both.
        joint: Drake's joint, with frame F on its parent and M on its child.
        reversed: whether the joint's child is the inboard body.
        X_PF, X_MB: poses of F in the joint's parent and of the joint's child in M.
    """

    body: int
    inboard: int
    joint: object
    reversed: bool
    X_PF: Pose
    X_MB: Pose


class TwinKinematics:
    """The tree of a plant's bodies as expressions.

    The methods take positions `q` (nq,) and velocities `v` (nv,) in Drake's
    order, as SX.

    Args:
        plant: finalized.

    Attributes:
        links: every body but the world, inboard bodies first.

    Raises:
        InvalidInput: for a plant that is not finalized.
    """

    def __init__(self, plant: MultibodyPlant):
        if not plant.is_finalized():
            raise InvalidInput("the plant must be finalized before it gets a twin")
        self.plant = plant
        self.nq, self.nv = plant.num_positions(), plant.num_velocities()
        self.links = _walk(plant)

    def rates(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """qdot = N(q) v (nq,)."""
        out = ca.SX.zeros(self.nq)
        for link in self.links:
            a, b = joint_slices(link.joint)
            if a.stop > a.start:
                out[a] = joint_rates(link.joint, q[a], v[b])
        return out

    def velocities(self, q: ca.SX, qdot: ca.SX) -> ca.SX:
        """v = N+(q) qdot (nv,)."""
        out = ca.SX.zeros(self.nv)
        for link in self.links:
            a, b = joint_slices(link.joint)
            if b.stop > b.start:
                out[b] = joint_velocities(link.joint, q[a], qdot[a])
        return out

    @property
    def velocities_are_rates(self) -> bool:
        """Whether v = qdot for every joint."""
        return all(velocities_are_rates(link.joint) for link in self.links)

    def _joint(self, link: Link, q: ca.SX, v: ca.SX) -> tuple[Pose, JointMotion]:
        """The pose of the joint's child in its parent, and the joint's motion."""
        a, b = joint_slices(link.joint)
        motion = joint_motion(link.joint, q[a], v[b])
        return link.X_PF @ Pose(motion.R_FM, motion.p_FM) @ link.X_MB, motion

    def _across(self, link: Link, q: ca.SX) -> Pose:
        """X_PB of a body in its inboard body."""
        X, _ = self._joint(link, q, ca.SX.zeros(self.nv))
        return X.inverse() if link.reversed else X

    def _across_velocity(self, link: Link, q, v) -> tuple[Pose, ca.SX, ca.SX]:
        """X_PB and the velocity of B in P, at Bo, written in B."""
        X, motion = self._joint(link, q, v)
        # Velocity of Bo, fixed in M at p_MB, then written in B.
        R_BM, p_MB = link.X_MB.R.T, link.X_MB.p
        w = R_BM @ motion.w_FM_M
        u = R_BM @ (motion.v_FM_M + ca.cross(motion.w_FM_M, p_MB))
        if not link.reversed:
            return X, w, u
        # The child C is inboard: velocity of P in C, at Po, written in P.
        w_P, p_PC = X.R @ w, X.p
        return X.inverse(), -w_P, -(X.R @ u) + ca.cross(w_P, p_PC)

    def poses(self, q: ca.SX) -> dict[int, Pose]:
        """X_WB of every body by its index."""
        poses = {0: Pose(ca.SX.eye(3), ca.SX.zeros(3))}
        for link in self.links:
            poses[link.body] = poses[link.inboard] @ self._across(link, q)
        return poses

    def relative_pose(self, q: ca.SX, body_A: int, body_B: int) -> Pose:
        """X_AB as a function of the joints between A and B only.

        It goes through their nearest common ancestor.
        """
        above = {link.body: link for link in self.links}

        def path_to_world(body):
            path = [body]
            while path[-1] in above:
                path.append(above[path[-1]].inboard)
            return path

        path_A, path_B = path_to_world(body_A), path_to_world(body_B)
        ancestor = next(body for body in path_A if body in path_B)
        poses = []
        for path in (path_A, path_B):
            X = Pose(ca.SX.eye(3), ca.SX.zeros(3))
            for body in path[: path.index(ancestor)]:
                X = self._across(above[body], q) @ X
            poses.append(X)
        return poses[0].inverse() @ poses[1]

    def pose(self, q: ca.SX, body: str) -> Pose:
        """X_WB of one body."""
        index = int(find_body(self.plant, body).index())
        return self.relative_pose(q, 0, index)

    def point(self, q: ca.SX, body: str, p_BP: np.ndarray) -> ca.SX:
        """p_WP (3,) of a point fixed in a body."""
        return self.pose(q, body).point(p_BP)

    def closure(self, q: ca.SX, closure: LoopClosure) -> ca.SX:
        """c(q), all rows of a closure of this plant."""
        couplers = [
            q[x.follower] - x.gear * q[x.leader] - x.offset for x in closure.coupled
        ]
        loops = self.loops(q, closure.loops, closure.length_unit)
        return ca.vertcat(loops, *couplers)

    def loops(self, q: ca.SX, loops: Sequence[Loop], length_unit: float = 1.0) -> ca.SX:
        """The rows of :class:`drakebots.model.loops.LoopClosure` of loops alone."""
        rows = []
        for loop in loops:
            A, B = (
                int(find_body(self.plant, name).index())
                for name in (loop.body_A, loop.body_B)
            )
            X_BA = self.relative_pose(q, B, A)
            offset = X_BA.point(loop.p_AP / length_unit) - loop.p_BQ / length_unit
            if loop.rows == "planar":
                offset = ca.SX(loop.across()) @ offset
            directions = [
                ca.SX(n_B).T @ (X_BA.R @ ca.SX(a_A))
                for n_B, a_A in zip(*loop.direction_rows())
            ]
            rows.append(ca.vertcat(offset, *directions)[list(loop.row_numbers)])
        return ca.vertcat(*rows) if rows else ca.SX.zeros(0, 1)

    def body_velocities(
        self, q: ca.SX, v: ca.SX
    ) -> Iterator[tuple[Link, ca.SX, ca.SX]]:
        """For every body but the world: its link, w_WB and the velocity of Bo, in B."""
        known = {0: (ca.SX.zeros(3), ca.SX.zeros(3))}
        for link in self.links:
            w_P, u_P = known[link.inboard]
            X, w, u = self._across_velocity(link, q, v)
            R_BP = X.R.T
            w_B = R_BP @ w_P + w
            u_B = R_BP @ (u_P + ca.cross(w_P, X.p)) + u
            known[link.body] = (w_B, u_B)
            yield link, w_B, u_B


def _walk(plant: MultibodyPlant) -> list[Link]:
    """The links of a plant, inboard bodies first.

    Raises:
        InvalidInput: for joints that close loops.
    """
    joints = [plant.get_joint(i) for i in plant.GetJointIndices()]
    placed, links = {0}, []
    while joints:
        rest = []
        for joint in joints:
            parent = int(joint.parent_body().index())
            child = int(joint.child_body().index())
            ends = (
                _constant_pose(joint.frame_on_parent()),
                _constant_pose(joint.frame_on_child()).inverse(),
            )
            if parent in placed and child not in placed:
                links.append(Link(child, parent, joint, False, *ends))
                placed.add(child)
            elif child in placed and parent not in placed:
                links.append(Link(parent, child, joint, True, *ends))
                placed.add(parent)
            else:
                rest.append(joint)
        if len(rest) == len(joints):
            names = ", ".join(joint.name() for joint in rest)
            raise InvalidInput(
                f"joints {names} close loops; cut them and list them as loops"
            )
        joints = rest
    return links


def joint_slices(joint) -> tuple[slice, slice]:
    """Where the positions and velocities of a joint are among those of the plant."""
    a, b = joint.position_start(), joint.velocity_start()
    return slice(a, a + joint.num_positions()), slice(b, b + joint.num_velocities())
