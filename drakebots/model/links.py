"""A robot's links in rigid groups, and the chains of joints that make its legs.

Drake's plant knows bodies and joints; feet are looked for on what is rigid, at the ends
of chains: :class:`Links` says where a group ends, what it touches the ground with, and
how long the leg is that carries it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from pydrake.geometry import Role, SceneGraphInspector
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import Joint
from pydrake.systems.framework import Context

from drakebots.model.description import Point
from drakebots.model.loops import Loop, find_body
from drakebots.model.soles import EMPTY, Cloud, box_corners, cloud_of, far_end, sole
from drakebots.model.views import (
    bodies_of,
    is_floating,
    joint_slices,
    joints_of,
    point_jacobian,
    position_limits,
    slides,
    with_joints,
)

UP = np.array([0.0, 0.0, 1.0])
"""The direction away from the ground."""

_FOOT = re.compile(r"foot|feet|toe|ankle|sole|paw|hoof", re.IGNORECASE)
_SOLE = re.compile(r"foot|feet|sole|paw|hoof", re.IGNORECASE)
"""Of links in loops, whose rods may be called after the toe or ankle they move."""
_HANGS = 0.25
"""A leg hangs where its end is lower than its first joint by this share of it."""
_ROUND = 0.05
"""A wheel is as wide in all directions to this share: one of twelve sides is."""
_LIGHT = 2e-5
"""Links of less than this share of the robot's mass only join others."""
_BELOW = 0.15
"""A link that a loop joins is no rod if it reaches this share of its leg below."""


@dataclass(frozen=True)
class Leg:
    """The chain of joints from the robot's body to a link.

    Attributes:
        joints: their number.
        length: from the first joint along the others to the farthest point [m].
        p_WH: position of the first joint (3,) [m].
    """

    joints: int
    length: float
    p_WH: np.ndarray


def is_foot(name: str) -> bool:
    """Whether a link is called a foot, toe, ankle, sole, paw or hoof."""
    return bool(_FOOT.search(name))


class Links:
    """A plant's bodies in rigid groups, and the chains of joints between them.

    Args:
        plant: finalized.
        inspector: of the scene graph that it is registered with.
        context: of the plant, in the pose to look at.
        loops: that join links which no joint of the plant joins.
    """

    def __init__(
        self,
        plant: MultibodyPlant,
        inspector: SceneGraphInspector,
        context: Context,
        loops: Sequence[Loop] = (),
    ):
        self.plant, self.inspector, self.context = plant, inspector, context
        self.joined: dict[int, list[np.ndarray]] = {}
        self._across: dict[int, list[int]] = {}
        for loop in loops:
            ends = [find_body(plant, name) for name in (loop.body_A, loop.body_B)]
            for body, other, p in zip(ends, ends[::-1], (loop.p_AP, loop.p_BQ)):
                self.joined.setdefault(body.index(), []).append(p)
                self._across.setdefault(body.index(), []).append(other.index())
        self.bodies = bodies_of(plant)
        self.group: dict[int, int] = {}
        for body in self.bodies:
            if body.index() not in self.group:
                for other in plant.GetBodiesWeldedTo(body):
                    self.group[other.index()] = int(body.index())
        self.parent: dict[int, tuple[int, object]] = {}
        for joint in joints_of(plant):
            above = self.group[joint.parent_body().index()]
            below = self.group[joint.child_body().index()]
            if above != below:
                self.parent[below] = above, joint

    def label(self, body) -> str:
        """A body's name, or "model::body" where models share it."""
        if self.plant.NumBodiesWithName(body.name()) == 1:
            return body.name()
        model = self.plant.GetModelInstanceName(body.model_instance())
        return f"{model}::{body.name()}"

    def pose(self, positions: Mapping[str, float]) -> None:
        """Moves joints, and all of them to the nearest position within limits.

        Args:
            positions: of joints of one degree of freedom by name [rad, m].
        """
        plant = self.plant
        q = with_joints(plant, plant.GetPositions(self.context), positions)
        low, high = position_limits(plant)
        plant.SetPositions(self.context, np.clip(q, low, np.maximum(low, high)))

    def members(self, group: int) -> list:
        """The bodies of a rigid group."""
        return [body for body in self.bodies if self.group[body.index()] == group]

    def chain(self, group: int) -> list[int]:
        """The groups from one just below the world to this one."""
        found = [group]
        while found[-1] in self.parent and self.parent[found[-1]][0] != 0:
            found.append(self.parent[found[-1]][0])
        return found[::-1]

    def _joints(self, chain: Sequence[int]) -> list:
        """The joints that carry the groups of a chain."""
        return [self.parent[g][1] for g in chain if g in self.parent]

    def names(self, group: int) -> list[str]:
        """The names of the links and joints from the robot's body to a group."""
        chain = self.chain(group)[1:]
        joints = [joint.name() for joint in self._joints(chain)]
        return joints + [b.name() for g in [*chain, group] for b in self.members(g)]

    def leaves(self) -> list[int]:
        """The groups at the ends of chains of joints, without the world's.

        The ends of a loop's rods are none, unless they are called feet: what carries
        them is.
        """
        groups = set(self.group.values()) - {0}
        joined = {self.group[index] for index in self.joined}
        rods: set[int] = set()
        whole = sum(map(self._mass, groups))
        while True:
            rest = groups - rods
            inner = {above for g, (above, _) in self.parent.items() if g in rest}
            ends = rest - inner
            more = {g for g in ends if g in joined and self._is_rod(g)}
            if rods:  # links of hardly a mass between the hinges of a rod
                more |= {g for g in ends if self._mass(g) < _LIGHT * whole}
            if not more:
                return sorted(ends)
            rods |= more

    def _is_rod(self, group: int) -> bool:
        """Whether a link in a loop ends there: it has no part well below its joint.

        Nor does it touch anything where what the loop joins it to does not.
        """
        if any(map(_SOLE.search, self.own_names(group))):
            return False
        joints, ends, bodies = [], [], self.members(group)
        across = {g for body in bodies for g in self._across.get(body.index(), [])}
        touching = self.plant.GetCollisionGeometriesForBody
        others = [body for g in across for body in self.members(self.group[g])]
        if any(map(touching, bodies)) and not any(map(touching, others)):
            return False
        for body in bodies:
            X_WB = body.EvalPoseInWorld(self.context)
            joints += [(X_WB @ p)[2] for p in self.joined.get(body.index(), [])]
            ends.append(self.body_cloud(body).moved(X_WB).lowest(UP))
        return min(joints) - min(ends) < _BELOW * self.leg(group).length

    def _mass(self, group: int) -> float:
        return sum(body.get_mass(self.context) for body in self.members(group))

    def own_names(self, group: int) -> list[str]:
        """The names of the links of a group, but for those that only mark loops."""
        members = self.members(group)
        return [b.name() for b in members if b.index() not in self.joined]

    def is_free(self, group: int) -> bool:
        """Whether the robot of a group can move up and down in the world."""
        for joint in self._joints(self.chain(group)):
            if is_floating(joint):
                return True
            if slides(joint):
                F = joint.frame_on_parent().CalcPoseInWorld(self.context)
                if abs((F.rotation() @ joint.translation_axis())[2]) > 0.5:
                    return True
            else:
                return joint.type_name() == "planar"
        return False

    def body_cloud(self, body, role: Role = Role.kProximity) -> Cloud:
        """The shapes of a body with a role, in the body's frame."""
        X_WB = body.EvalPoseInWorld(self.context)
        up_B = X_WB.rotation().matrix().T @ UP
        frame, cloud = self.plant.GetBodyFrameIdOrThrow(body.index()), EMPTY
        for geometry in self.inspector.GetGeometries(frame, role):
            shape = self.inspector.GetShape(geometry)
            X_BG = self.inspector.GetPoseInFrame(geometry)
            cloud += cloud_of(shape, X_BG, up_B)
        return cloud

    def clouds(self) -> dict[int, Cloud]:
        """The shapes of contact of each body but the world, in the world, by index."""
        return {body.index(): self._in_world(body) for body in self.bodies[1:]}

    def _in_world(self, body) -> Cloud:
        return self.body_cloud(body).moved(body.EvalPoseInWorld(self.context))

    def corners(self, body, *roles: Role) -> np.ndarray:
        """Corners (n, 3) [m] of the boxes around a body's shapes, in the world."""
        found = [np.zeros((0, 3))]
        frame = self.plant.GetBodyFrameIdOrThrow(body.index())
        X_WB = body.EvalPoseInWorld(self.context)
        for role in roles:
            for geometry in self.inspector.GetGeometries(frame, role):
                box = self.inspector.GetObbInGeometryFrame(geometry)
                if box is not None:
                    X_WG = X_WB @ self.inspector.GetPoseInFrame(geometry)
                    found.append((X_WG @ box_corners(box).T).T)
        return np.vstack(found)

    def foot(self, group: int) -> tuple[list[Point], str]:
        """Points of a rigid group that touch the ground, and the evidence for them.

        Collision shapes count first; without any, fixed frames called feet; then what
        is drawn; then links called feet and fixed leaf frames, by their origins.
        """
        bodies = self.members(group)
        drawn = []
        for role in (Role.kProximity, Role.kIllustration):
            clouds = [(body, self.body_cloud(body, role)) for body in bodies]
            clouds = [(body, cloud) for body, cloud in clouds if len(cloud.p)]
            drawn += [body for body, _ in clouds]
            bare = [
                body
                for body in bodies
                if int(body.index()) != group
                and body not in drawn
                and body.index() not in self.joined
            ]
            soles = [body for body in bare if is_foot(body.name())]
            if clouds and (role == Role.kProximity or not soles):
                return self.lowest(group, clouds)
        bodies = [b for b in bodies if b.index() not in self.joined] or bodies
        named = [body for body in bodies if is_foot(body.name())]
        ends = soles or named or self._ends(bodies) or bodies
        body = min(ends, key=lambda body: self.origin(body)[2])
        return [Point(self.label(body), self.label(body), np.zeros(3))], "frame"

    def lowest(self, group: int, clouds) -> tuple[list[Point], str]:
        """The sole of the shapes of bodies that are one rigid link."""
        leg = self.leg(group)
        world = [
            cloud.moved(body.EvalPoseInWorld(self.context)) for body, cloud in clouds
        ]
        up = self._up(group, leg, sum(world[1:], world[0]))
        low = min(cloud.lowest(up) for cloud in world)
        feet = [
            k
            for k, (body, _) in enumerate(clouds)
            if (is_foot(body.name()) or "heel" in body.name().lower())
            and world[k].lowest(up) < low + leg.length / 20
        ]
        kept = feet or range(len(clouds))
        whole = sum((world[k] for k in kept), EMPTY)
        owner = [k for k in kept for _ in world[k].p]
        found = sole(whole, up, leg.length, self.ankle(group))
        order = np.lexsort((-found.p[:, 1], -np.round(found.p[:, 0], 3)))
        points, near = [], []
        for k in order:
            # The body whose shape is nearest, for a point in the middle of several.
            distance = np.linalg.norm(whole.p - found.p[k], axis=1) - whole.radius
            near.append(owner[int(np.argmin(distance))])
        # A rigid link is one leg: points of its heel and toes are of one body.
        body, cloud = clouds[max(near, key=near.count)]
        name, X_BW = self.label(body), body.EvalPoseInWorld(self.context).inverse()
        for count, k in enumerate(order):
            point = name + (f"_{count + 1}" if len(order) > 1 else "")
            points.append(Point(point, name, X_BW @ found.p[k], float(found.radius[k])))
        return points, cloud.shapes[0]

    def _up(self, group: int, leg: Leg, cloud: Cloud) -> np.ndarray:
        """The direction from the ground to a foot, in the world.

        A long shape that hangs from its joint, or one whose leg does not hang, as in
        many files at zero, stands on its far end; any other one on its lowest side.
        """
        if group not in self.parent:
            return UP
        p_WJ = self.joint_position(self.parent[group][1])
        end = far_end(cloud, p_WJ)
        hangs = leg.p_WH[2] - cloud.lowest(UP) > _HANGS * leg.length
        if end is not None and (not hangs or end[2] < -_HANGS):
            return -end
        return UP

    def leg(self, group: int) -> Leg:
        """The chain of joints from the robot's body to a link."""
        chain = self.chain(group)
        if self.is_free(group):
            # The robot's body is the first link with a mass worth the name: roots
            # that slide and turn in a plane are chains of light ones.
            mass = {g: self._mass(g) for g in chain}
            heavy = [g for g in chain if mass[g] > 0.02 * sum(mass.values())]
            chain = chain[chain.index((heavy or chain)[0]) + 1 :]
        joints = self._joints(chain)
        p = [self.joint_position(joint) for joint in joints]
        if not p:
            origin = self.origin(self.bodies[group])
            return Leg(0, self._size(group, origin) or 1.0, origin)
        lengths = [np.linalg.norm(b - a) for a, b in pairwise(p)]
        last = self._size(group, p[-1])
        return Leg(len(joints), float(sum(lengths)) + last or 1.0, p[0])

    def moves(self, group: int, body, p_BF: np.ndarray) -> bool:
        """Whether joints of a leg move a point of its last link, not only turn it."""
        of_leg = self._joints(self.chain(group))[int(self.is_free(group)) :]
        J = point_jacobian(self.plant, self.context, body.body_frame(), p_BF)
        moved = [np.abs(J[:, joint_slices(joint)[1]]).max() for joint in of_leg]
        return not of_leg or bool(max(moved) > 1e-6)

    def wheels(self) -> list[Joint]:
        """Hinges without limits, with level axes, that turn a last link that is round.

        Seen along the axis, a round shape is as wide in every direction from it; and a
        wheel reaches down to the lowest part of the robot, by its radius.
        """
        clouds = self.clouds()
        bottom, found = min((x.lowest(UP) for x in clouds.values()), default=0.0), []
        for group in self.leaves():
            joint = self.parent.get(group, (0, None))[1]
            bodies = self.members(group)
            in_loop = any(body.index() in self.joined for body in bodies)
            if joint is None or joint.type_name() != "revolute" or in_loop:
                continue
            axis, p_WJ = self.hinge_axis(joint), self.joint_position(joint)
            cloud = sum((clouds[body.index()] for body in bodies), EMPTY)
            endless = np.isinf(joint.position_upper_limits()).all()
            if not endless or abs(axis[2]) > 0.5 or not len(cloud.p):
                continue
            side = np.cross(axis, UP)
            turns = np.linspace(0, 2 * np.pi, 24, endpoint=False)[:, None]
            around = np.cos(turns) * side + np.sin(turns) * np.cross(axis, side)
            around /= np.linalg.norm(around, axis=1, keepdims=True)
            out = (cloud.p - p_WJ) @ around.T + cloud.radius[:, None]
            width = out.max(axis=0)
            is_low = cloud.lowest(UP) < bottom + width.max()
            if is_low and width.max() - width.min() < _ROUND * width.max():
                found.append(joint)
        return found

    def ankle(self, group: int) -> np.ndarray:
        """Axes of the two joints nearest to a link, where they are hinges (n, 3)."""
        last = self._joints(self.chain(group))[-2:]
        hinges = [joint for joint in last if joint.type_name() == "revolute"]
        return np.array([self.hinge_axis(joint) for joint in hinges]).reshape(-1, 3)

    def hinge_axis(self, joint) -> np.ndarray:
        """The axis of a hinge in the world (3,)."""
        frame = joint.frame_on_parent().CalcPoseInWorld(self.context)
        return frame.rotation() @ joint.revolute_axis()

    def joint_position(self, joint) -> np.ndarray:
        """p_WM of a joint (3,) [m]."""
        return joint.frame_on_child().CalcPoseInWorld(self.context).translation()

    def _size(self, group: int, p_WJ: np.ndarray) -> float:
        """The distance from a point to the farthest one of a rigid group."""
        reach = [0.0]
        for body in self.members(group):
            X_WB = body.EvalPoseInWorld(self.context)
            cloud = self.body_cloud(body).moved(X_WB)
            reach.append(float(np.linalg.norm(X_WB.translation() - p_WJ)))
            reach.extend(np.linalg.norm(cloud.p - p_WJ, axis=1) + cloud.radius)
        return float(max(reach))

    def origin(self, body) -> np.ndarray:
        """p_WB of a body (3,) [m]."""
        return body.EvalPoseInWorld(self.context).translation()

    def _ends(self, bodies) -> list:
        """The bodies that no weld holds another body on."""
        holders = {joint.parent_body().index() for joint in joints_of(self.plant)}
        return [body for body in bodies if body.index() not in holders]
