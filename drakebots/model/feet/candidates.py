"""Which links of a robot are its feet, found from its shape.

A foot is the end of a leg: the last link of a chain of joints that hangs from the
robot's body and reaches the ground. Every last link is a :class:`FootCandidate` with
its height above the lowest one, its shape, its name and its mirror image; the best of
them are chosen, and :func:`named_feet` takes what a user names instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise

import numpy as np
from pydrake.geometry import Role, SceneGraphInspector
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    BodyIndex,
    FrameIndex,
    JacobianWrtVariable,
    ModelInstanceIndex,
)
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.model.description import Point
from drakebots.model.feet.soles import EMPTY, Cloud, cloud_of, far_end, sole
from drakebots.model.loops import Loop, find_body

_FOOT = re.compile(r"foot|feet|toe|ankle|sole|paw|hoof", re.IGNORECASE)
_NO_FOOT = re.compile(
    r"hand|finger|thumb|palm|wrist|gripper|forearm|elbow|head|skull|jaw|neck|camera"
    r"|lidar|laser|sensor|imu|antenna|tail|(?<![a-z])(arm|ear|eye)(?![a-z])",
    re.IGNORECASE,
)
_NEAR = 0.15
"""Feet lie within this share of the robot's height above the lowest one,"""
_ALIKE = 0.4
"""or this one, where their legs have as many joints."""
_LOW = 0.35
"""The lowest foot lies within this share of the robot's height above its lowest
point."""

_STAND = 0.03
"""Pairs of links no higher than the feet by this share stand on the ground too."""
_HANGS = 0.25
"""A leg hangs where its end is lower than its first joint by this share of it."""

_LIGHT = 2e-5
"""Links of less than this share of the robot's mass only join others."""
_BELOW = 0.15
"""A link that a loop joins is no rod if it reaches this share of its leg below."""

_UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class FootCandidate:
    """The last link of a chain of joints, which may be a foot.

    Attributes:
        name: the link's.
        points: where it touches the ground.
        height: of its lowest point above that of the lowest candidate [m].
        joints: number of joints between the robot's body and the link.
        shape: what the points are from: "sphere", "box", "mesh", "frame".
        named: whether it is called a foot, toe, ankle or sole.
        mirrored: whether it has a mirror image on the other side.
        limb: whether joints move it, unlike a wheel, and nothing on the way to it is
            called an arm, a head or a tail.
        chain: the rigid groups from the robot's body to it.
        reaches: whether its leg, stretched, is long enough for the ground.
        chosen: whether it is a foot.
    """

    name: str
    points: tuple[Point, ...]
    height: float
    joints: int
    shape: str
    named: bool = False
    mirrored: bool = False
    limb: bool = True
    reaches: bool = True
    chosen: bool = False
    chain: tuple[int, ...] = field(default=(), repr=False)
    p_WF: np.ndarray = field(default_factory=lambda: np.zeros(3), repr=False)


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


def _is_foot(name: str) -> bool:
    return bool(_FOOT.search(name))


def _is_sole(name: str) -> bool:
    """Of links in loops, whose rods may be called after the toe or ankle they move."""
    return bool(re.search("foot|feet|sole|paw|hoof", name, re.IGNORECASE))


def _is_arm(name: str) -> bool:
    return bool(_NO_FOOT.search(name))


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
        for loop in loops:
            for name, p in ((loop.body_A, loop.p_AP), (loop.body_B, loop.p_BQ)):
                self.joined.setdefault(find_body(plant, name).index(), []).append(p)
        bodies = [plant.get_body(BodyIndex(i)) for i in range(plant.num_bodies())]
        self.group: dict[int, int] = {}
        for body in bodies:
            if body.index() not in self.group:
                for other in plant.GetBodiesWeldedTo(body):
                    self.group[other.index()] = int(body.index())
        self.parent: dict[int, tuple[int, object]] = {}
        for index in plant.GetJointIndices():
            joint = plant.get_joint(index)
            above = self.group[joint.parent_body().index()]
            below = self.group[joint.child_body().index()]
            if above != below:
                self.parent[below] = above, joint
        self.bodies = bodies

    def label(self, body) -> str:
        """A body's name, or "model::body" where models share it."""
        if self.plant.NumBodiesWithName(body.name()) == 1:
            return body.name()
        model = self.plant.GetModelInstanceName(body.model_instance())
        return f"{model}::{body.name()}"

    def model_names(self) -> list[str]:
        """The names of the models in the file."""
        indices = map(ModelInstanceIndex, range(2, self.plant.num_model_instances()))
        return [self.plant.GetModelInstanceName(index) for index in indices]

    def pose(self, positions: Mapping[str, float]) -> None:
        """Moves joints, and all of them to the nearest position within limits.

        Args:
            positions: of joints of one degree of freedom by name [rad, m].
        """
        plant = self.plant
        q = plant.GetPositions(self.context).copy()
        for index in plant.GetJointIndices():
            joint = plant.get_joint(index)
            if joint.name() in positions and joint.num_positions() == 1:
                q[joint.position_start()] = positions[joint.name()]
        low, high = plant.GetPositionLowerLimits(), plant.GetPositionUpperLimits()
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

    def names(self, group: int) -> list[str]:
        """The names of the links and joints from the robot's body to a group."""
        chain = self.chain(group)[1:]
        joints = [self.parent[g][1].name() for g in chain if g in self.parent]
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
        """Whether a link in a loop ends there: it has no part well below its joint."""
        if any(map(_is_sole, self._own_names(group))):
            return False
        joints, ends = [], []
        for body in self.members(group):
            X_WB = body.EvalPoseInWorld(self.context)
            joints += [(X_WB @ p)[2] for p in self.joined.get(body.index(), [])]
            ends.append(self.body_cloud(body).moved(X_WB).lowest(_UP))
        return min(joints) - min(ends) < _BELOW * self.leg(group).length

    def _mass(self, group: int) -> float:
        return sum(body.get_mass(self.context) for body in self.members(group))

    def _own_names(self, group: int) -> list[str]:
        """The names of the links of a group, but for those that only mark loops."""
        members = self.members(group)
        return [b.name() for b in members if b.index() not in self.joined]

    def is_free(self, group: int) -> bool:
        """Whether the robot of a group can move up and down in the world."""
        joints = [self.parent[g][1] for g in self.chain(group) if g in self.parent]
        for joint in joints:
            kind = joint.type_name()
            if "floating" in kind:
                return True
            if kind == "prismatic":
                F = joint.frame_on_parent().CalcPoseInWorld(self.context)
                if abs((F.rotation() @ joint.translation_axis())[2]) > 0.5:
                    return True
            else:
                return kind == "planar"
        return False

    def body_cloud(self, body, role: Role = Role.kProximity) -> Cloud:
        """The shapes of a body with a role, in the body's frame."""
        X_WB = body.EvalPoseInWorld(self.context)
        up_B = X_WB.rotation().matrix().T @ _UP
        frame = self.plant.GetBodyFrameIdIfExists(body.index())
        if frame is None:
            return EMPTY
        cloud = EMPTY
        for geometry in self.inspector.GetGeometries(frame, role):
            shape = self.inspector.GetShape(geometry)
            X_BG = self.inspector.GetPoseInFrame(geometry)
            cloud += cloud_of(shape, X_BG, up_B)
        return cloud

    def foot(self, group: int) -> tuple[list[Point], str]:
        """Where a rigid group touches the ground, and what says so.

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
            soles = [body for body in bare if _FOOT.search(body.name())]
            if clouds and (role == Role.kProximity or not soles):
                return self.lowest(group, clouds)
        bodies = [b for b in bodies if b.index() not in self.joined] or bodies
        named = [body for body in bodies if _FOOT.search(body.name())]
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
            if _FOOT.search(body.name()) and world[k].lowest(up) < low + leg.length / 20
        ]
        kept = feet or range(len(clouds))
        whole = sum((world[k] for k in kept), EMPTY)
        owner = [k for k in kept for _ in world[k].p]
        found = sole(whole, up, leg.length)
        order = np.lexsort((-found.p[:, 1], -np.round(found.p[:, 0], 3)))
        points = []
        for count, k in enumerate(order):
            # The body whose shape is nearest, for a point in the middle of several.
            distance = np.linalg.norm(whole.p - found.p[k], axis=1) - whole.radius
            body, cloud = clouds[owner[int(np.argmin(distance))]]
            p_BF = body.EvalPoseInWorld(self.context).inverse() @ found.p[k]
            name = self.label(body)
            point = name + (f"_{count + 1}" if len(order) > 1 else "")
            points.append(Point(point, name, p_BF, float(found.radius[k])))
        return points, cloud.shapes[0]

    def _up(self, group: int, leg: Leg, cloud: Cloud) -> np.ndarray:
        """The direction from the ground to a foot, in the world.

        A long shape that hangs from its joint, or one whose leg does not hang, as in
        many files at zero, stands on its far end; any other one on its lowest side.
        """
        if group not in self.parent:
            return _UP
        p_WJ = self.joint_position(self.parent[group][1])
        end = far_end(cloud, p_WJ)
        hangs = leg.p_WH[2] - cloud.lowest(_UP) > _HANGS * leg.length
        if end is not None and (not hangs or end[2] < -_HANGS):
            return -end
        return _UP

    def leg(self, group: int) -> Leg:
        """The chain of joints from the robot's body to a link."""
        chain = self.chain(group)
        if self.is_free(group):
            # The robot's body is the first link with a mass worth the name: roots
            # that slide and turn in a plane are chains of light ones.
            mass = {g: self._mass(g) for g in chain}
            heavy = [g for g in chain if mass[g] > 0.02 * sum(mass.values())]
            chain = chain[chain.index((heavy or chain)[0]) + 1 :]
        joints = [self.parent[g][1] for g in chain if g in self.parent]
        p = [self.joint_position(joint) for joint in joints]
        if not p:
            origin = self.origin(self.bodies[group])
            return Leg(0, self._size(group, origin) or 1.0, origin)
        lengths = [np.linalg.norm(b - a) for a, b in pairwise(p)]
        last = self._size(group, p[-1])
        return Leg(len(joints), float(sum(lengths)) + last or 1.0, p[0])

    def moves(self, group: int, body, p_BF: np.ndarray) -> bool:
        """Whether joints of a leg move a point of its last link, not only turn it."""
        chain = [g for g in self.chain(group) if g in self.parent]
        joints = [self.parent[g][1] for g in chain[int(self.is_free(group)) :]]
        columns = [
            k
            for joint in joints
            for k in range(
                joint.velocity_start(), joint.velocity_start() + joint.num_velocities()
            )
        ]
        world = self.plant.world_frame()
        J = self.plant.CalcJacobianTranslationalVelocity(
            self.context,
            JacobianWrtVariable.kV,
            *(body.body_frame(), p_BF, world, world),
        )
        return not joints or bool(np.abs(J[:, columns]).max() > 1e-6)

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
        holders = set()
        for index in self.plant.GetJointIndices():
            joint = self.plant.get_joint(index)
            holders.add(joint.parent_body().index())
        return [body for body in bodies if body.index() not in holders]


def foot_candidates(links: Links) -> tuple[FootCandidate, ...]:
    """The last links of all chains, feet first, then by height."""
    clouds = {}
    for body in links.bodies[1:]:
        X_WB = body.EvalPoseInWorld(links.context)
        clouds[body.index()] = links.body_cloud(body).moved(X_WB)
    heights = [links.origin(body)[2] for body in links.bodies[1:]]
    heights += [cloud.lowest(_UP) for cloud in clouds.values() if len(cloud.p)]
    tops = [-cloud.lowest(-_UP) for cloud in clouds.values() if len(cloud.p)]
    bottom = min(heights, default=0.0)
    tall = max(heights + tops, default=0.0) - bottom
    leaves = links.leaves()
    found = []
    for group in leaves:
        leg = links.leg(group)
        if leg.joints == 0 and len(leaves) > 1:
            continue  # a loose part, not the end of a leg
        points, shape = links.foot(group)
        first = points[0]
        moves = links.moves(group, find_body(links.plant, first.body), first.p_BF)
        p_WF = np.array([_in_world(links, point) for point in points])
        low = p_WF[:, 2] - [point.radius for point in points]
        found.append(
            FootCandidate(
                name=points[0].body,
                points=tuple(points),
                height=float(low.min()) - bottom,
                joints=leg.joints,
                shape=shape,
                named=any(map(_is_foot, links._own_names(group))),
                limb=moves and not any(map(_is_arm, links.names(group))),
                reaches=bool(leg.p_WH[2] - bottom < leg.length),
                chain=tuple(links.chain(group)),
                p_WF=p_WF.mean(axis=0),
            )
        )
    found = _mirrored(found, tall)
    return _ranked(_chosen(found, tall, all(map(links.is_free, leaves))))


def _in_world(links: Links, point: Point) -> np.ndarray:
    body = find_body(links.plant, point.body)
    return body.EvalPoseInWorld(links.context) @ point.p_BF


def _mirrored(found: list[FootCandidate], tall: float) -> list[FootCandidate]:
    """Marks what has a mirror image across a coordinate plane through the middle."""
    result = []
    for foot in found:
        pairs = (
            other.joints == foot.joints
            and np.linalg.norm(other.p_WF - foot.p_WF * sign) < 0.08 * tall
            for other in found
            if other is not foot
            for sign in ([1, -1, 1], [-1, 1, 1])
        )
        result.append(replace(foot, mirrored=any(pairs)))
    return result


def _chosen(found: list[FootCandidate], tall: float, free: bool) -> list[FootCandidate]:
    """Marks the feet among the candidates; see the constants above."""
    possible = [f for f in found if f.named or f.limb]
    if not free:
        possible = [f for f in possible if f.mirrored]  # else it may be an arm
    if not possible:
        return found
    lowest = min(possible, key=lambda foot: foot.height)
    feet = [
        foot
        for foot in possible
        if foot.height - lowest.height
        <= tall * (_ALIKE if foot.joints == lowest.joints else _NEAR)
    ]
    for better in (lambda foot: foot.named, lambda foot: foot.mirrored):
        feet = [foot for foot in feet if better(foot)] or feet
    if lowest.height > _LOW * tall:
        # The legs do not hang in this pose: only pairs that could reach the ground.
        feet = [f for f in feet if f.named or (f.mirrored and f.reaches)]
    # An animal's fingers are feet where it stands on them.
    ground = max((foot.height for foot in feet), default=-np.inf) + _STAND * tall
    feet += [f for f in found if f not in feet and f.mirrored and f.height < ground]
    feet = [f for f in feet if not any(_is_above(f, g, tall) for g in feet)]
    base = min((foot.height for foot in feet), default=0.0)
    return [
        replace(f, chosen=any(f is foot for foot in feet), height=f.height - base)
        for f in found
    ]


def _is_above(foot: FootCandidate, other: FootCandidate, tall: float) -> bool:
    """Whether another candidate of one leg, sharing half its chain, is lower."""
    shared = len(set(foot.chain) & set(other.chain))
    same = 2 * shared > min(len(foot.chain), len(other.chain))
    return same and foot.height - other.height > _STAND * tall


def _ranked(found: list[FootCandidate]) -> tuple[FootCandidate, ...]:
    def key(foot):
        return not foot.chosen, round(foot.height, 3), not foot.named, foot.name

    chosen = [foot for foot in found if foot.chosen]
    return (*chosen, *sorted((f for f in found if not f.chosen), key=key))


# --- feet that a user names -------------------------------------------------


def split_names(text: str) -> list[str]:
    """Names of feet on a command line, one by one: "a,*_foot,shank:0,0,-0.2"."""
    words, names = text.split(","), []
    while words:
        # The numbers of a point have commas between them too.
        count = 3 if re.search(r"[^:]:[^:]*$", words[0]) else 1
        names.append(",".join(words[:count]).strip())
        words = words[count:]
    if not all(names):
        raise InvalidInput(f"feet {text!r}: write names and points: a,b,link:x,y,z")
    return names


def named_feet(
    names: Sequence[str], known: Sequence[Point], links: Links
) -> tuple[Point, ...]:
    """The feet that a user names.

    Args:
        names: of feet in `known`, links, frames or geometries, patterns ("*_foot"),
            or points of a link in its frame ("link:x,y,z") [m].
        known: the feet of the file, of the YAML beside it and the candidates'.
        links: of the robot.

    Raises:
        UnknownName: for a name or a pattern of nothing.
        InvalidInput: for a point that is not three numbers.
    """
    found: dict[str, Point] = {}
    for name in names:
        for point in _feet_called(name, known, links):
            found.setdefault(point.name, point)
    return tuple(found.values())


def _feet_called(name: str, known: Sequence[Point], links: Links) -> list[Point]:
    plant, inspector = links.plant, links.inspector
    bodies = {links.label(body): body for body in links.bodies[1:]}
    at = re.fullmatch(r"(.*[^:]):([^:]*)", name)
    if at:
        return [_point_of(name, at[1], at[2], bodies)]
    for key in (lambda p: p.name, lambda p: p.body):
        points = [point for point in known if fnmatchcase(key(point), name)]
        if points:
            return points
    matches = [body for key, body in bodies.items() if fnmatchcase(key, name)]
    if matches:
        return [p for body in matches for p in _foot_of_body(body, links)]
    frames = [plant.get_frame(FrameIndex(i)) for i in range(plant.num_frames())]
    matches = [f for f in frames if fnmatchcase(f.name(), name)]
    if matches:
        return [
            Point(f.name(), f.body().name(), f.GetFixedPoseInBodyFrame().translation())
            for f in matches
        ]
    geometries = {
        inspector.GetName(g).rpartition("::")[2]: (body, g)
        for body in links.bodies[1:]
        for g in plant.GetCollisionGeometriesForBody(body)
    }
    matches = [k for k in geometries if fnmatchcase(k, name)]
    if matches:
        return [p for k in matches for p in _foot_of_shape(k, *geometries[k], links)]
    frames = {f.name() for f in frames}
    raise UnknownName("foot", name, {p.name for p in known} | set(bodies) | frames)


def _point_of(name, link, numbers, bodies) -> Point:
    if link not in bodies:
        raise UnknownName("link", link, bodies)
    try:
        p = np.array([float(x) for x in numbers.split(",")])
    except ValueError:
        p = np.zeros(0)
    if p.shape != (3,) or not np.isfinite(p).all():
        raise InvalidInput(f"foot {name!r}: write link:x,y,z with three numbers in m")
    return Point(name.replace(" ", ""), link, p)


def _foot_of_body(body, links: Links) -> list[Point]:
    cloud = links.body_cloud(body)
    if not len(cloud.p):
        return [Point(links.label(body), links.label(body), np.zeros(3))]
    return links.lowest(links.group[body.index()], [(body, cloud)])[0]


def _foot_of_shape(name, body, geometry, links: Links) -> list[Point]:
    X_WB = body.EvalPoseInWorld(links.context)
    up_B = X_WB.rotation().matrix().T @ _UP
    shape = links.inspector.GetShape(geometry)
    cloud = cloud_of(shape, links.inspector.GetPoseInFrame(geometry), up_B)
    leg = links.leg(links.group[body.index()])
    found = (
        sole(cloud, up_B, leg.length)
        if len(cloud.p)
        else Cloud(np.zeros((1, 3)), [0.0])
    )
    return [
        Point(f"{name}_{k + 1}" if len(found.p) > 1 else name, body.name(), p, float(r))
        for k, (p, r) in enumerate(zip(found.p, found.radius))
    ]
