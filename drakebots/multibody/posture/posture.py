"""A standing posture of any robot: that of its file if it stands, or one that is found.

    posture = find_posture(load("my_robot.urdf"))
    posture.joints, posture.X_WB

A posture stands if its joints are within their limits, all feet are on the ground, the
centre of mass is over them, nothing else reaches into the ground, and no leg is
stretched straight. One that is found does not rest on its trunk, either; a file may
mean just that; and where bent legs run into arms, joints of arms or back give way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from drakebots.core.errors import some
from drakebots.model import Model, part_name, standing_poses
from drakebots.multibody.posture.search import STRETCHED, leg_reaches, search, settled
from drakebots.multibody.posture.servos import equilibrium
from drakebots.multibody.posture.stance import Posture, Stance
from drakebots.multibody.soles import nearest_in_hull

LEVEL = 2e-3
"""Largest height of a standing foot, as a share of the robot's size."""

UNHELD = 1e-2
"""Largest force or torque at rest that no motor need hold, in weights (times size)."""

LOOSE = 1e-6
"""Largest row of a closed loop, as a share of the robot's size."""

_ASIDE = (0.2, -0.2, 0.4, -0.4, 0.8, -0.8)
"""Turns by which joints of arms or back give way, the smallest first [rad]."""

_GRAVE = ("its loops", "its coupled joints", "the feet", "the centre")
"""Beginnings of grave faults."""


def find_posture(
    model: Model, *, pose: Mapping[str, float] | None = None, bent: bool = False
) -> Posture:
    """The posture in which a model stands on flat ground.

    Args:
        model: the robot's model.
        pose: joint positions that replace those of the file [rad, m], by joint; the
            posture keeps them. By default the posture is one of these: a pose of the
            file whose name says that the robot stands, the default positions, or one
            found by :func:`~drakebots.multibody.posture.search.search`.
        bent: whether to pass over poses of the file that stretch the legs, too, as a
            walk cannot begin in one.

    Raises:
        UnknownName: for an unknown joint of `pose`.
        InvalidInput: for a position that is not finite.
    """
    stance = Stance(model)
    if pose is not None:
        return _as_posture(stance, stance.joint_positions(pose), "given")
    reaches = leg_reaches(stance)
    tried, known = [], {part_name(joint) for joint in stance.joints}
    for name, said in standing_poses(model.poses):
        kept = {j: value for j, value in said.items() if j in known}
        # Files round the positions of joints that follow others.
        start = stance.followed(stance.joint_positions(kept))
        source, stretched = f"pose {name!r} of the file", reaches if bent else ()
        tried.append(_as_posture(stance, start, source, reaches=stretched))
    start = stance.default
    tried.append(_as_posture(stance, start, "default positions", reaches=reaches))
    for posture in tried:
        if posture.stands:
            return posture
    if not len(stance.moved) or not (stance.stands or stance.robot.closure.num_rows):
        positions = stance.joint_positions(tried[0].joints)
        inside = np.clip(positions, stance.lower, stance.upper)
        return _as_posture(stance, inside, tried[0].source)
    loops = stance.robot.closure.loops
    if loops and tried[-1].residuals["loop rows"] > LOOSE * stance.size:
        # Loading did not close them from many starts, so nothing here will.
        return min(tried, key=_badness)
    if stance.springs or loops:
        for posture in tried[:-1]:
            start = stance.joint_positions(posture.joints)
            x, positions = settled(stance, start, reaches)
            near = _as_posture(stance, positions, posture.source, x, reaches=reaches)
            if near.stands:
                return near
    start = stance.joint_positions(tried[0].joints)
    found = [
        _as_posture(stance, positions, "found", x, reaches=reaches)
        for x, positions in search(stance, start, reaches)
    ]
    if found and {fault.split()[0] for fault in found[0].faults} == {"links"}:
        found.append(_apart(stance, found[0], reaches))
    return min([*tried, *found], key=_badness)


def _apart(
    stance: Stance, posture: Posture, reaches: Sequence[float | None]
) -> Posture:
    """A posture with joints that are on no way to a foot turned, one after the other by
    the turn that leaves the fewest links in one another, until none are."""
    start = stance.joint_positions(posture.joints)
    still = set(range(len(start))) - set(stance.moved.tolist())
    arms = [k for k in still if stance.joints[k].index() not in stance.roots]

    def count(positions: np.ndarray) -> int:
        stance.place(stance.start(positions), positions)
        return len(stance.overlaps() - stance.drawn_overlaps)

    left = count(start)
    while left:
        tries = [start + turn * np.eye(len(start))[k] for turn in _ASIDE for k in arms]
        inside = [
            stance.followed(np.clip(q, stance.lower, stance.upper)) for q in tries
        ]
        counts = [count(q) for q in inside]
        if min(counts, default=left) >= left:
            return posture
        left, start = min(counts), inside[int(np.argmin(counts))]
    x, positions = settled(stance, start, reaches)
    return _as_posture(stance, positions, "found", x, reaches=reaches)


def _as_posture(
    stance: Stance,
    positions: np.ndarray,
    source: str,
    x: np.ndarray | None = None,
    *,
    reaches: Sequence[float | None] = (),
) -> Posture:
    """The posture of joint positions, on the ground, with its faults.

    Args:
        stance: the robot; it is posed.
        positions: positions of all joints [rad, m].
        source: their origin.
        x: of the stance, where a search found them.
        reaches: reach of each leg, by :func:`leg_reaches`.
    """
    stance.place(stance.start(positions) if x is None else x, positions)
    stance.lower_to_ground()
    residuals = _residuals(stance)
    faults = list(_faults(stance, residuals, reaches))
    if x is not None and stance.stands:
        low = stance.trunk_heights().min(initial=np.inf)
        if -0.02 * stance.size <= low < LEVEL * stance.size:
            faults.append("its trunk lies on the ground")
    names = [part_name(joint) for joint in stance.joints]
    return Posture(
        joints=dict(zip(names, stance.positions().tolist())),
        X_WB=stance.base_pose(),
        source=source,
        residuals=residuals,
        faults=tuple(faults),
        passive=stance.passive(),
        unactuated=0 < len(stance.movable_leg_joints()) == len(stance.passive()),
    )


def _residuals(stance: Stance) -> dict[str, float]:
    heights = stance.foot_heights()
    rows, rest = stance.loop_rows(), equilibrium(stance)
    below = -stance.shape_heights().min(initial=0.0)
    return {
        "foot height [m]": float(np.abs(heights).max(initial=0.0)),
        "centre of mass beyond the feet [m]": _beyond_support(stance),
        "loop rows": float(np.abs(rows).max(initial=0.0)),
        "into the ground [m]": float(below),
        "unheld [weight]": rest.residual if len(rest.torques) else 0.0,
    }


def _beyond_support(stance: Stance) -> float:
    """Distance of the centre of mass from the polygon of the feet [m]."""
    if not stance.stands:
        return 0.0
    com = stance.centre_of_mass()[:2]
    return float(np.linalg.norm(com - nearest_in_hull(com, stance.feet()[:, :2])))


def _faults(
    stance: Stance, residuals: Mapping[str, float], reaches: Sequence[float | None]
) -> Iterator[str]:
    """Faults that speak against standing, a line each, the worst first."""
    positions, size = stance.positions(), stance.size
    if residuals["loop rows"] > LOOSE * size:
        slips = stance.robot.closure.slips(stance.context)
        if slips.max(initial=0.0) > LOOSE * size:
            coupler = stance.robot.closure.couplers[slips.argmax()]
            yield (
                f"its coupled joints disagree: {coupler.follower} is not where "
                f"{coupler.leader} has it"
            )
        else:
            worst = stance.robot.closure.most_open(stance.context)
            yield f"its loops are open: {worst}"
    if stance.stands:
        if residuals["foot height [m]"] > LEVEL * size:
            yield "the feet are not level"
        if residuals["centre of mass beyond the feet [m]"] > 0.02 * size:
            yield "the centre of mass is not over the feet"
    if stance.can_be_lowered() and residuals["into the ground [m]"] > 0.02 * size:
        yield "it reaches into the ground"
    beyond = np.maximum(stance.lower - positions, positions - stance.upper)
    for k in np.flatnonzero(beyond > 1e-6):
        yield f"joint {part_name(stance.joints[k])} is beyond its limit"
    for first, second in sorted(stance.overlaps() - stance.drawn_overlaps):
        yield f"links {first} and {second} run into one another"
    if residuals["unheld [weight]"] > UNHELD:
        yield _unheld(stance)
    lengths = [0.0 if p is None else np.linalg.norm(p) for p in stance.hips()]
    # A leg with a knee that nothing drives can stand only straight.
    driven = [stance.is_driven(leg) for leg in stance.legs]
    if any(
        r and d > STRETCHED * r and bends
        for d, r, bends in zip(lengths, reaches, driven)
    ):
        yield "its legs are stretched"


def _unheld(stance: Stance) -> str:
    """Text on joints that nothing holds at rest, and on what would hold them.

    Joints without a motor come first, as other joints may be unheld because of them;
    then motors that are too weak; then what motors are not for (the base, the slides
    of a planar one, ball joints).
    """
    rest, driven = equilibrium(stance), stance.driven()
    unheld = [
        joint
        for joint in stance.joints
        if rest.left[joint.velocity_start()] > UNHELD
        and joint.index() not in stance.roots
    ]
    passive = [part_name(joint) for joint in unheld if joint.index() not in driven]
    if passive:
        return f"no motor holds {some(passive)} at rest (--actuate all --effort 10)"
    if unheld:
        weak = some([part_name(joint) for joint in unheld])
        return (
            f"the motors of {weak} are too weak at rest (raise the file's effort "
            "limits, or give --effort)"
        )
    if not len(stance.model.feet):
        return "nothing holds it up, as no feet are known (--feet names them)"
    return f"nothing holds {rest.weakest} at rest"


def _badness(posture: Posture) -> tuple[int, int, float]:
    """Orders postures by their faults: grave ones, all of them, what is not held."""
    grave = sum(f.startswith(_GRAVE) for f in posture.faults)
    unheld = posture.residuals["unheld [weight]"]
    return grave, len(posture.faults), round(unheld, 2)
