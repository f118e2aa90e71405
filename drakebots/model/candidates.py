"""Search for the feet among a robot's links, by its shape.

A foot is the end of a leg: the last link of a chain of joints that hangs from the
robot's body and reaches the ground. Every last link is a :class:`FootCandidate` with
its height above the lowest one, its shape, its name and its mirror image; the best of
them are chosen, and :func:`named_feet` takes what a user names instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np
from pydrake.multibody.tree import FrameIndex

from drakebots.core.errors import InvalidInput, UnknownName, check_names
from drakebots.model.description import Point
from drakebots.model.links import UP, Links, is_foot
from drakebots.model.loops import find_body
from drakebots.model.soles import Cloud, cloud_of, sole

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


@dataclass(frozen=True)
class FootCandidate:
    """The last link of a chain of joints, which may be a foot.

    Attributes:
        name: the link's.
        points: its contact points on the ground.
        height: of its lowest point above that of the lowest candidate [m].
        joints: number of joints between the robot's body and the link.
        shape: source of the points: "sphere", "box", "mesh", "frame".
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


def foot_candidates(links: Links) -> tuple[FootCandidate, ...]:
    """The last links of all chains, feet first, then by height."""
    clouds = links.clouds()
    heights = [links.origin(body)[2] for body in links.bodies[1:]]
    heights += [cloud.lowest(UP) for cloud in clouds.values() if len(cloud.p)]
    tops = [-cloud.lowest(-UP) for cloud in clouds.values() if len(cloud.p)]
    bottom = min(heights, default=0.0)
    tall = max(heights + tops, default=0.0) - bottom
    leaves = links.leaves()
    found = []
    for group in leaves:
        leg = links.leg(group)
        if leg.joints == 0 and len(leaves) > 1:
            continue  # a loose part, not the end of a leg
        points, shape = links.foot(group)
        first, name = points[0], points[0].body
        bodies = [find_body(links.plant, point.body) for point in points]
        moves = links.moves(group, bodies[0], first.p_BF)
        poses = [body.EvalPoseInWorld(links.context) for body in bodies]
        p_WF = np.array([X @ point.p_BF for X, point in zip(poses, points)])
        low = p_WF[:, 2] - [point.radius for point in points]
        found.append(
            FootCandidate(
                name=name,
                points=tuple(points),
                height=float(low.min()) - bottom,
                joints=leg.joints,
                shape=shape,
                named=any(map(is_foot, links.own_names(group) or [name])),
                limb=moves and not any(map(_NO_FOOT.search, links.names(group))),
                reaches=bool(leg.p_WH[2] - bottom < leg.length),
                chain=tuple(links.chain(group)),
                p_WF=p_WF.mean(axis=0),
            )
        )
    found = _mirrored(found, tall)
    return _ranked(_chosen(found, tall, all(map(links.is_free, leaves))))


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
    feet = []
    for foot in possible:
        alike = foot.joints == lowest.joints
        near = foot.height - lowest.height <= tall * (_ALIKE if alike else _NEAR)
        # A name says more than a pose, which a keyframe may have wrong.
        if near or (alike and foot.named and lowest.named):
            feet.append(foot)
    for better in (lambda foot: foot.named, lambda foot: foot.mirrored):
        feet = [foot for foot in feet if better(foot)] or feet
    if lowest.height > _LOW * tall:
        # The legs do not hang in this pose: only pairs that could reach the ground.
        feet = [f for f in feet if f.named or (f.mirrored and f.reaches)]
    # An animal's fingers are feet where it stands on them; whoever lies does not stand.
    heights = [foot.height for foot in feet] or [np.inf]
    low, high = min(heights) - _NEAR * tall, max(heights) + _STAND * tall
    feet += [f for f in found if f not in feet and f.mirrored and low < f.height < high]
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
    frames = [plant.get_frame(FrameIndex(i)) for i in range(plant.num_frames())]
    shapes = {
        inspector.GetName(g).rpartition("::")[2]: (body, g)
        for body in links.bodies[1:]
        for g in plant.GetCollisionGeometriesForBody(body)
    }
    # What has names, the first kind with one that matches, and the points of each.
    for named, points in (
        ([(p.name, p) for p in known], lambda _, point: [point]),
        ([(p.body, p) for p in known], lambda _, point: [point]),
        (bodies.items(), lambda _, body: _foot_of_body(body, links)),
        ([(f.name(), f) for f in frames], _foot_of_frame),
        (shapes.items(), lambda key, shape: _foot_of_shape(key, *shape, links)),
    ):
        if matches := [(key, x) for key, x in named if fnmatchcase(key, name)]:
            return [p for match in matches for p in points(*match)]
    known = {p.name for p in known} | set(bodies) | {f.name() for f in frames}
    raise UnknownName("foot", name, known)


def _point_of(name, link, numbers, bodies) -> Point:
    check_names("link", [link], bodies)
    try:
        p = np.array([float(x) for x in numbers.split(",")])
    except ValueError:
        p = np.zeros(0)
    if p.shape != (3,) or not np.isfinite(p).all():
        raise InvalidInput(f"foot {name!r}: write link:x,y,z with three numbers in m")
    return Point(name.replace(" ", ""), link, p)


def _foot_of_frame(name: str, frame) -> list[Point]:
    p_BF = frame.GetFixedPoseInBodyFrame().translation()
    return [Point(name, frame.body().name(), p_BF)]


def _foot_of_body(body, links: Links) -> list[Point]:
    cloud = links.body_cloud(body)
    if not len(cloud.p):
        return [Point(links.label(body), links.label(body), np.zeros(3))]
    return links.lowest(links.group[body.index()], [(body, cloud)])[0]


def _foot_of_shape(name, body, geometry, links: Links) -> list[Point]:
    X_WB = body.EvalPoseInWorld(links.context)
    up_B = X_WB.rotation().matrix().T @ UP
    shape = links.inspector.GetShape(geometry)
    cloud = cloud_of(shape, links.inspector.GetPoseInFrame(geometry), up_B)
    group = links.group[body.index()]
    axes_B = links.ankle(group) @ X_WB.rotation().matrix()
    found = (
        sole(cloud, up_B, links.leg(group).length, axes_B)
        if len(cloud.p)
        else Cloud(np.zeros((1, 3)), [0.0])
    )
    return [
        Point(f"{name}_{k + 1}" if len(found.p) > 1 else name, body.name(), p, float(r))
        for k, (p, r) in enumerate(zip(found.p, found.radius))
    ]
