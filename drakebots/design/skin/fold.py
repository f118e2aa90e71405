"""Folding regions: gear-like teeth swept about a limb's axis (paper, Fig. 8).

Rings of edges are laid across the limb, alternately crest and groove, and the
groove rings are pressed towards the axis by the depth: what a cut swept about the
axis leaves. Hollowing follows, so the wall folds like a bellows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.design.geometry import DistanceGrid, Implicit, Ring, RoundCone, Surface
from drakebots.design.skeleton import Hinge, Skeleton
from drakebots.design.skin.bodies import COVER, SPREAD

# Where the skin folds: one region of teeth at every joint of a limb.
#
# At a joint between two links the teeth stand across the mean of the links'
# directions; at a joint on the torso across the limb, just outside the torso. Around
# a region the body gets a cuff, as much wider as the teeth are deep, so that grooves
# leave room for the motors.


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


class TooDeep(InvalidInput):
    """Grooves that a limb is too thin for; `places` (n, 3) [m] are where."""

    def __init__(self, message: str, places: np.ndarray):
        super().__init__(message)
        self.places = places


@dataclass(frozen=True)
class Fold:
    """Teeth around a limb.

    Attributes:
        p_W: middle of the region, on the limb's axis [m].
        axis_W: the limb's axis, made a unit vector.
        length: of the region along the axis [m]; a tooth takes length/teeth.
        depth: of the grooves [m].
        teeth: grooves.
        radius: the region ends at this distance from the axis [m], which keeps
            a neighbouring limb out; by default 1.6 times the limb's radius at p_W.

    Raises:
        InvalidInput: for lengths <= 0, no teeth or a zero axis.
    """

    p_W: np.ndarray
    axis_W: np.ndarray
    length: float
    depth: float = 8e-3
    teeth: int = 4
    radius: float | None = None

    def __post_init__(self):
        p, axis = np.asarray(self.p_W, float), np.asarray(self.axis_W, float)
        if p.shape != (3,) or axis.shape != (3,) or not np.isfinite([p, axis]).all():
            raise InvalidInput("fold: p_W and axis_W need three finite numbers each")
        if np.linalg.norm(axis) == 0:
            raise InvalidInput("fold axis: must not be zero")
        radius = 1.0 if self.radius is None else self.radius
        for name, value in (
            ("length", self.length),
            ("depth", self.depth),
            ("radius", radius),
        ):
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"fold {name} {value} m: must be > 0")
        if int(self.teeth) != self.teeth or self.teeth < 1:
            raise InvalidInput(f"fold teeth {self.teeth}: must be a whole number >= 1")
        object.__setattr__(self, "p_W", p)
        object.__setattr__(self, "axis_W", axis / np.linalg.norm(axis))

    def coordinates(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Along the axis from the middle s (n,), and the offset from it (n, 3) [m]."""
        offset = points - self.p_W
        s = offset @ self.axis_W
        return s, offset - s[:, None] * self.axis_W

    def profile(self, s: np.ndarray) -> np.ndarray:
        """Depth: 0 at crests, `depth` at grooves, straight between [m]."""
        pitch = self.length / self.teeth
        phase = (np.asarray(s) + self.length / 2) / pitch
        wave = 1 - np.abs(1 - 2 * (phase % 1.0))
        return self.depth * np.where((phase >= 0) & (phase <= self.teeth), wave, 0.0)

    def near(self, points: np.ndarray) -> np.ndarray:
        """Whether points (n, 3) lie in the region; the radius must be set."""
        s, offset = self.coordinates(points)
        inside = np.linalg.norm(offset, axis=1) < self.radius
        return inside & (np.abs(s) <= self.length / 2 + 1e-9)

    def fitted(self, grid: DistanceGrid) -> Fold:
        """The same with its radius measured.

        Raises:
            InvalidInput: when the middle is not inside the body.
        """
        depth = float(-grid(self.p_W)[0])
        if depth <= 0:
            raise InvalidInput(
                f"fold at {self.p_W.tolist()} m: lies outside the body; move it onto "
                "the limb's axis"
            )
        if self.radius is not None:
            return self
        return replace(self, radius=1.6 * self.limb_radius(grid))

    def limb_radius(self, grid: DistanceGrid) -> float:
        """Median distance of the skin from p_W across the axis [m]."""
        side = np.cross(self.axis_W, np.eye(3)[np.argmin(np.abs(self.axis_W))])
        side /= np.linalg.norm(side)
        other = np.cross(self.axis_W, side)
        angle = np.arange(24) * (2 * np.pi / 24)
        ways = np.outer(np.cos(angle), side) + np.outer(np.sin(angle), other)
        far = np.linspace(0, 0.3, 601)
        outside = grid((self.p_W + far[:, None, None] * ways).reshape(-1, 3)) > 0
        first = np.argmax(outside.reshape(len(far), -1), axis=0)
        return float(np.median(far[first]))


def fold_rings(folds: tuple[Fold, ...]) -> tuple[Ring, ...]:
    """Crests and grooves of fitted folds as rings of the remesher."""
    return tuple(
        Ring(fold.p_W + s * fold.axis_W, fold.axis_W, fold.radius)
        for fold in folds
        for s in np.linspace(-0.5, 0.5, 2 * fold.teeth + 1) * fold.length
    )


def fold_depths(
    folds: tuple[Fold, ...], grid: DistanceGrid, surface: Surface, wall: np.ndarray
) -> np.ndarray:
    """The vertices (n, 3) pressed in by the folds [m].

    Raises:
        InvalidInput: when a groove and its wall would meet the axis, or no vertex
            lies in a fold.
    """
    x = surface.vertices.copy()
    for number, fold in enumerate(folds, 1):
        s, offset = fold.coordinates(surface.vertices)
        r = np.linalg.norm(offset, axis=1)
        inside = fold.near(surface.vertices)
        if not inside.any():
            raise InvalidInput(f"fold {number}: no skin within its radius; move it")
        # Fades towards the radius, where a neighbouring part may begin.
        fade = np.clip((fold.radius - r) / (0.15 * fold.radius), 0, 1)
        press = np.where(inside, fold.profile(s) * fade, 0.0)
        short = inside & (press > 0) & (r - press < 1.5 * wall)
        if short.any():
            v = int(np.flatnonzero(short)[np.argmin((r - press)[short])])
            raise TooDeep(
                f"fold {number}: the limb's radius is {1e3 * r[v]:.1f} mm at "
                f"{np.round(surface.vertices[v], 3).tolist()} m, too thin for grooves "
                f"of {1e3 * fold.depth:g} mm and a wall of {1e3 * wall[v]:g} mm; "
                "scale the body or take a smaller depth",
                surface.vertices[short],
            )
        x -= (press / np.maximum(r, 1e-12))[:, None] * offset
    return x


def fold_of_triangles(folds: tuple[Fold, ...], surface: Surface) -> np.ndarray:
    """Region of each triangle (m,): 0, or k for the k-th fold."""
    region = np.zeros(len(surface.triangles), np.int64)
    middle = surface.vertices[surface.triangles].mean(axis=1)
    for number, fold in enumerate(folds, 1):
        region[fold.near(middle)] = number
    return region
