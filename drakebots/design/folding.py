"""Where the skin folds: one region of teeth at every joint of a limb.

At a joint between two links the teeth stand across the mean of the links'
directions; at a joint on the torso across the limb, just outside the torso. Around
a region the body gets a cuff, as much wider as the teeth are deep, so that grooves
leave room for the motors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drakebots.design.bodies import COVER, SPREAD
from drakebots.design.fold import Fold
from drakebots.design.implicit import Implicit, RoundCone
from drakebots.design.skeleton import Hinge, Skeleton
from drakebots.errors import InvalidInput


@dataclass(frozen=True)
class FoldSettings:
    """Teeth at the joints.

    Attributes:
        depth: of the grooves [m]; 0 for a smooth skin.
        teeth: grooves of a region.
        length: of a region along the limb [m].
        hip_shift: from a joint on the torso outward to the middle of its region [m].
        cuff: by how much the body is widened there, relative to depth.
        margin: from the cuff to the end of the teeth, where a neighbouring limb is
            near [m]; None for 1.6 times the limb's radius.

    Raises:
        InvalidInput: for a value out of range.
    """

    depth: float = 8e-3
    teeth: int = 2
    length: float = 0.036
    hip_shift: float = 0.028
    cuff: float = 0.75
    margin: float | None = None

    def __post_init__(self):
        for name in ("depth", "hip_shift", "cuff"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise InvalidInput(f"fold {name} = {value}: must be >= 0")
        if not (np.isfinite(self.length) and self.length > 0):
            raise InvalidInput(f"fold length = {self.length} m: must be > 0")
        if int(self.teeth) != self.teeth or self.teeth < 1:
            raise InvalidInput(f"fold teeth = {self.teeth}: must be a number >= 1")


@dataclass(frozen=True)
class JointFold:
    """A region and its joints, e.g. a hip's two.

    Attributes:
        joints: names of the hinges it lets turn.
        p_W, axis_W: middle and direction of the limb there.
        side_W: unit, the joint's axis across that direction.
        radius: of the links around the joint, without skin [m]; None where the
            body is wide enough as it is (a tail).
    """

    joints: tuple[str, ...]
    p_W: np.ndarray
    axis_W: np.ndarray
    side_W: np.ndarray
    radius: float | None


def joint_folds(skeleton: Skeleton, settings: FoldSettings) -> tuple[JointFold, ...]:
    """The regions of a skeleton at rest; hips of two joints get one."""
    above = {hinge.child: hinge for hinge in skeleton.hinges}
    feet = {sole.foot for sole in skeleton.soles}
    folds = []
    for hinge in skeleton.hinges:
        child = skeleton.link(hinge.child)
        parent = skeleton.link(hinge.parent)
        if _is_hip(skeleton, hinge):
            continue
        joints = [hinge.name]
        down = _unit(child.p_WB - child.p_WA)
        on_torso = parent.parent is None
        if parent.name in above and _is_hip(skeleton, above[parent.name]):
            joints.insert(0, above[parent.name].name)
            on_torso = True
        if on_torso:
            shift = settings.hip_shift
            axis, p = down, hinge.p_WJ + shift * down
        else:
            axis = _unit(down + _unit(parent.p_WB - parent.p_WA))
            p = hinge.p_WJ
        side = _unit(hinge.axis - (hinge.axis @ axis) * axis)
        limb = child.name.split("_")[0] in feet
        radius = _radius(skeleton, hinge, side) if limb else None
        folds.append(JointFold(tuple(joints), p, axis, side, radius))
    return tuple(folds)


def with_cuffs(
    body: Implicit,
    folds: Sequence[JointFold],
    settings: FoldSettings,
    cover: float = COVER,
    spread: float = SPREAD,
) -> Implicit:
    """The body, wider at the folding regions."""
    wide = settings.cuff * settings.depth
    if wide == 0:
        return body
    parts = []
    for fold in folds:
        if fold.radius is None:
            continue
        half = max(settings.length / 2 - 0.5 * wide, 1e-3) * fold.axis_W
        r = fold.radius + cover + wide
        for k in (1, -1):
            p = fold.p_W + k * spread * fold.side_W
            parts.append(RoundCone(p - 0.4 * half, p + 0.4 * half, r, r, blend=0.008))
    return Implicit((*body.parts, *parts), body.cuts, body.blend)


def teeth(
    folds: Sequence[JointFold],
    settings: FoldSettings,
    cover: float = COVER,
    spread: float = SPREAD,
) -> tuple[Fold, ...]:
    """The folds of the shell; none for depth 0.

    They end `margin` outside the cuff, short of a neighbouring limb.
    """
    if settings.depth == 0:
        return ()
    margin = settings.margin
    wide = cover + spread + settings.cuff * settings.depth + (margin or 0.0)
    return tuple(
        Fold(
            f.p_W,
            f.axis_W,
            settings.length,
            settings.depth,
            settings.teeth,
            None if margin is None or f.radius is None else f.radius + wide,
        )
        for f in folds
    )


def _is_hip(skeleton: Skeleton, hinge: Hinge) -> bool:
    """Whether its child is a hip: two joints at nearly one place, one region."""
    return hinge.child.endswith("_hip")


def _radius(skeleton, hinge, side) -> float:
    """Of what the joint's links have within 20 mm of it, less the cones' spread."""
    points = np.concatenate(
        [
            skeleton.link(name).origin + solid.corners()
            for name in (hinge.parent, hinge.child)
            for solid in skeleton.link(name).solids
            if solid.kind in ("shell", "servo")
            and solid.name.startswith((f"{hinge.name}_", "fork_plate"))
        ]
    )
    offset = points - hinge.p_WJ
    offset = offset[np.linalg.norm(offset, axis=1) < 0.036]
    if not len(offset):
        return 0.02
    lateral = np.abs(offset @ side)
    depth = np.linalg.norm(offset - np.outer(offset @ side, side), axis=1)
    return float(
        np.hypot(np.maximum(lateral - SPREAD, 0), np.minimum(depth, 0.016)).max()
    )


def _unit(v):
    return v / np.linalg.norm(v)
