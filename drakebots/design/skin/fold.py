"""Folding regions: gear-like teeth around the joints of a limb (paper, Fig. 8).

Each joint of a limb gets one region: between two links across the mean of their
directions, at a joint on the torso across the limb, just outside the torso. Around a
region the body gets a cuff that is wider in proportion to the depth of the teeth, so
that grooves leave room for the motors.

In the skin, rings of edges lie across the limb, alternately crests and grooves, and the
rings of the grooves are pressed towards the axis by the depth, as if a cutter had been
swept about the axis. Hollowing comes afterwards, so that the wall folds like a bellows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from drakebots.core.checks import array, direction, non_negative, positive, whole
from drakebots.core.errors import DrakebotsError, InvalidInput
from drakebots.core.fields import checked
from drakebots.design.geometry import (
    DistanceGrid,
    Implicit,
    Ring,
    RoundCone,
    Surface,
    frame_of,
)
from drakebots.design.skeleton import Skeleton

COVER = 0.006
"""Distance from the links to the outside of the skin: its wall and play [m]."""

SPREAD = 0.008
"""Half the distance between the two cones of a sleeve [m]."""

# Where the skin folds.


@checked("fold")
class FoldSettings:
    """The teeth at the joints.

    Raises:
        InvalidInput: for a value out of range.
    """

    depth: Annotated[float, non_negative("m")] = 8e-3
    """Depth of the grooves; 0 for a smooth skin."""
    teeth: Annotated[int, whole(1)] = 2
    """Number of grooves in a region."""
    length: Annotated[float, positive("m")] = 0.036
    """Length of a region along the limb."""
    hip_shift: Annotated[float, non_negative("m")] = 0.028
    """Distance from a joint on the torso outward to the middle of its region."""
    cuff: Annotated[float, non_negative()] = 0.75
    """Widening of the body at a region, over the depth."""
    margin: Annotated[float | None, non_negative("m")] = None
    """Distance from the cuff to the end of the teeth, for limbs that are close to each
    other; None ends them at 1.6 times the limb's radius."""


@dataclass(frozen=True)
class JointFold:
    """The folding region of a joint, or of both joints of a hip.

    Attributes:
        joints: names of its joints.
        p_W: its middle at rest (3,) [m].
        axis_W: direction of the limb there, a unit vector (3,).
        side_W: direction of the joint's axis across the limb, a unit vector (3,).
        radius: radius of the links around the joint, without skin [m]; None where the
            body is wide enough as it is (a tail).
    """

    joints: tuple[str, ...]
    p_W: np.ndarray
    axis_W: np.ndarray
    side_W: np.ndarray
    radius: float | None


def joint_folds(skeleton: Skeleton, settings: FoldSettings) -> tuple[JointFold, ...]:
    """The folding regions of a skeleton at rest; the two joints of a hip share one."""
    above = {hinge.child: hinge for hinge in skeleton.hinges}
    feet = {sole.foot for sole in skeleton.soles}
    folds = []
    for hinge in skeleton.hinges:
        child = skeleton.link(hinge.child)
        parent = skeleton.link(hinge.parent)
        if child.name.endswith("_hip"):
            continue
        joints = [hinge.name]
        down = _unit(child.p_WB - child.p_WA)
        on_torso = parent.parent is None
        if parent.name.endswith("_hip"):
            joints.insert(0, above[parent.name].name)
            on_torso = True
        if on_torso:
            axis, p = down, hinge.p_WJ + settings.hip_shift * down
        else:
            axis = _unit(down + _unit(parent.p_WB - parent.p_WA))
            p = hinge.p_WJ
        side = _unit(hinge.axis - (hinge.axis @ axis) * axis)
        limb = child.name.split("_")[0] in feet
        radius = _radius(skeleton, hinge, side) if limb else None
        folds.append(JointFold(tuple(joints), p, axis, side, radius))
    return tuple(folds)


def with_cuffs(
    body: Implicit, folds: Sequence[JointFold], settings: FoldSettings
) -> Implicit:
    """The body with cuffs at the folding regions."""
    wide = settings.cuff * settings.depth
    if wide == 0:
        return body
    parts = []
    for fold in folds:
        if fold.radius is None:
            continue
        half = max(settings.length / 2 - 0.5 * wide, 1e-3) * fold.axis_W
        r = fold.radius + COVER + wide
        for k in (1, -1):
            p = fold.p_W + k * SPREAD * fold.side_W
            parts.append(RoundCone(p - 0.4 * half, p + 0.4 * half, r, r, blend=0.008))
    return Implicit((*body.parts, *parts), body.cuts, body.blend)


def teeth(folds: Sequence[JointFold], settings: FoldSettings) -> tuple[Fold, ...]:
    """The teeth of the folding regions; none for a depth of 0."""
    if settings.depth == 0:
        return ()
    margin = settings.margin
    wide = COVER + SPREAD + settings.cuff * settings.depth + (margin or 0.0)
    shape = settings.length, settings.depth, settings.teeth
    found = []
    for fold in folds:
        free = margin is None or fold.radius is None
        radius = None if free else fold.radius + wide
        found.append(Fold(fold.p_W, fold.axis_W, *shape, radius))
    return tuple(found)


def _radius(skeleton, hinge, side) -> float:
    """Radius of the links around a joint, less the spread of a sleeve's cones [m]."""
    of_joint = (f"{hinge.name}_", "fork_plate")
    points = []
    for link in map(skeleton.link, (hinge.parent, hinge.child)):
        for solid in link.solids:
            if solid.kind in ("shell", "servo") and solid.name.startswith(of_joint):
                points.append(link.origin + solid.corners())
    offset = np.concatenate(points) - hinge.p_WJ
    offset = offset[np.linalg.norm(offset, axis=1) < 0.036]
    if not len(offset):
        return 0.02
    lateral = np.maximum(np.abs(offset @ side) - SPREAD, 0)
    depth = np.linalg.norm(offset - np.outer(offset @ side, side), axis=1)
    return float(np.hypot(lateral, np.minimum(depth, 0.016)).max())


def _unit(v):
    return v / np.linalg.norm(v)


# The teeth in a surface.


class AtPlaces(DrakebotsError):
    """What cannot be made, at the places (n, 3) [m]."""

    def __init__(self, message: str, places: np.ndarray):
        super().__init__(message)
        self.places = places


class TooDeep(AtPlaces, InvalidInput):
    """Grooves for which a limb is too thin."""


@checked("fold")
class Fold:
    """Teeth around a limb.

    Raises:
        InvalidInput: for lengths <= 0, no teeth or a zero axis.
    """

    p_W: Annotated[np.ndarray, array((3,), "m")]
    """Middle of the region, on the limb's axis (3,)."""
    axis_W: Annotated[np.ndarray, direction()]
    """Direction of the limb's axis (3,); kept as a unit vector."""
    length: Annotated[float, positive("m")]
    """Length of the region along the axis; a tooth takes length/teeth."""
    depth: Annotated[float, positive("m")] = 8e-3
    """Depth of the grooves."""
    teeth: Annotated[int, whole(1)] = 4
    """Number of grooves."""
    radius: Annotated[float | None, positive("m")] = None
    """Distance from the axis at which the region ends, so that it leaves out
    neighbouring limbs; by default 1.6 times the limb's radius at p_W."""

    def coordinates(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position s along the axis (n,) [m], and vector from the axis (n, 3) [m]."""
        offset = points - self.p_W
        s = offset @ self.axis_W
        return s, offset - s[:, None] * self.axis_W

    def profile(self, s: np.ndarray) -> np.ndarray:
        """Depth at s: 0 at crests, `depth` at grooves, linear in between [m]."""
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
        """The fold with its radius, measured where it has none.

        Raises:
            InvalidInput: when the middle is not inside the body.
        """
        depth = float(-grid(self.p_W)[0])
        if depth <= 0:
            raise InvalidInput(
                f"fold at {self.p_W.tolist()} m is outside the body; move it onto the "
                "limb's axis"
            )
        if self.radius is not None:
            return self
        # The limb's: the median distance of the surface from p_W across the axis.
        angle = np.arange(24) * (2 * np.pi / 24)
        around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        rays = around @ frame_of(self.axis_W)[:, :2].T
        far = np.linspace(0, 0.3, 601)
        outside = grid((self.p_W + far[:, None, None] * rays).reshape(-1, 3)) > 0
        first = np.argmax(outside.reshape(len(far), -1), axis=0)
        return replace(self, radius=1.6 * float(np.median(far[first])))


def fold_rings(folds: tuple[Fold, ...]) -> tuple[Ring, ...]:
    """Crests and grooves of fitted folds, as rings of the remesher."""
    return tuple(
        Ring(fold.p_W + s * fold.axis_W, fold.axis_W, fold.radius)
        for fold in folds
        for s in np.linspace(-0.5, 0.5, 2 * fold.teeth + 1) * fold.length
    )


def fold_depths(
    folds: tuple[Fold, ...], surface: Surface, wall: np.ndarray
) -> np.ndarray:
    """The vertices of a surface pressed in by the folds (n, 3) [m].

    Args:
        folds: fitted folds.
        surface: surface of the body, with n vertices.
        wall: thickness of the wall at the vertices (n,) [m].

    Raises:
        TooDeep: when a groove and its wall would reach the axis.
        InvalidInput: when a fold contains no vertex.
    """
    x = surface.vertices.copy()
    for number, fold in enumerate(folds, 1):
        s, offset = fold.coordinates(surface.vertices)
        r = np.linalg.norm(offset, axis=1)
        inside = fold.near(surface.vertices)
        if not inside.any():
            raise InvalidInput(f"fold {number}: no skin within its radius; move it")
        # It fades towards the radius, where a neighbouring part may begin.
        fade = np.clip((fold.radius - r) / (0.15 * fold.radius), 0, 1)
        press = np.where(inside, fold.profile(s) * fade, 0.0)
        short = inside & (press > 0) & (r - press < 1.5 * wall)
        if short.any():
            v = int(np.flatnonzero(short)[np.argmin((r - press)[short])])
            raise TooDeep(
                f"fold {number}: the limb's radius is {1e3 * r[v]:.1f} mm at "
                f"{np.round(surface.vertices[v], 3).tolist()} m, too thin for grooves "
                f"of {1e3 * fold.depth:g} mm and a wall of {1e3 * wall[v]:g} mm; "
                "scale the body or choose a smaller depth",
                surface.vertices[short],
            )
        x -= (press / np.maximum(r, 1e-12))[:, None] * offset
    return x


def fold_of_triangles(folds: tuple[Fold, ...], surface: Surface) -> np.ndarray:
    """Region of each triangle (m,): 0, or k for the k-th fold."""
    region = np.zeros(len(surface.triangles), np.int64)
    middle = surface.middles
    for number, fold in enumerate(folds, 1):
        region[fold.near(middle)] = number
    return region
