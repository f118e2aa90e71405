"""What a user asks of a quad-robot: COM, feet and footfall over time.

The input of the paper's section 5, every 5 ms: where the centre of mass and each
foot should be, and when each foot is on the ground.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from drakebots.core.errors import InvalidInput, UnknownName

# Support polygons, and where the centre of pressure lies in them.
#
# On flat ground, with forces F and torques T at points p of the feet,
#
#     COP = sum (p F_z + [-T_y, T_x]) / sum F_z                (from forces)
#     ZMP = c - c_z cdd / (cddz + g)                           (from the COM)
#
# The second is the paper's way (after Megaro et al. 2015), without the rate of
# angular momentum; the first has it.

GRAVITY = 9.81


def sole_corners(quad, feet: np.ndarray, heading: float) -> list[np.ndarray]:
    """Corners of flat soles (c, 2) at p_WF (feet, 3), turned by the heading."""
    c, s = np.cos(heading), np.sin(heading)
    R = np.array([[c, -s], [s, c]])
    return [p[:2] + sole.corners @ R.T for p, sole in zip(feet, quad.soles)]


def polygon(points: np.ndarray) -> np.ndarray | None:
    """Convex hull (k, 2), counterclockwise; None if there is none."""
    points = np.atleast_2d(np.asarray(points, float))
    if len(points) < 3:
        return None
    try:
        return points[ConvexHull(points).vertices]
    except QhullError:
        return None


def half_planes(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """n (k, 2), b (k,) of a counterclockwise polygon: inside, n x <= b."""
    along = np.roll(corners, -1, axis=0) - corners
    n = np.stack([along[:, 1], -along[:, 0]], axis=1)
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    return n, np.einsum("ki,ki->k", n, corners)


def margin(corners: np.ndarray | None, point: np.ndarray) -> float:
    """Distance of a point to the nearest side [m]; negative outside.

    Outside, minus the distance to the polygon. -inf without a polygon.
    """
    if corners is None:
        return -np.inf
    n, b = half_planes(corners)
    inside = float((b - n @ point).min())
    if inside >= 0:
        return inside
    a, ab = corners, np.roll(corners, -1, axis=0) - corners
    along = np.einsum("ki,ki->k", point - a, ab) / np.einsum("ki,ki->k", ab, ab)
    nearest = a + np.clip(along, 0, 1)[:, None] * ab
    return -float(np.linalg.norm(point - nearest, axis=1).min())


def support_polygon(quad, feet, contact, heading: float) -> np.ndarray | None:
    """Hull of the soles in contact (k, 2); None in flight."""
    corners = sole_corners(quad, feet, heading)
    kept = [c for c, down in zip(corners, contact) if down]
    return polygon(np.vstack(kept)) if kept else None


def zmp(com: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    """(T, 2) from c and cdd (T, 3); NaN in free fall."""
    lift = GRAVITY + acceleration[:, 2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        out = com[:, :2] - com[:, 2:] * acceleration[:, :2] / lift
    return np.where(lift > 1e-6, out, np.nan)


def cop_of_forces(feet, F, T) -> np.ndarray:
    """(T, 2) of p, F, T (T, feet, 3); NaN without load."""
    load = F[..., 2].sum(axis=1)
    tilt = np.stack([-T[..., 1], T[..., 0]], axis=-1)
    moment = (feet[..., :2] * F[..., 2:] + tilt).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(load[:, None] > 1e-9, moment / load[:, None], np.nan)


# Footfall patterns: which foot is on the ground in which frame.
#
# A gait is given by its period T, the share of it a foot is down (duty beta) and
# each foot's phase phi, the moment it lands as a share of T:
#
#     foot j is down at t  <=>  frac(t/T - phi_j) < beta


@dataclass(frozen=True)
class Footfall:
    """Contact bars, sampled.

    Attributes:
        feet: names.
        contact: whether a foot is down (N, feet).
        dt: between frames [s].

    Raises:
        InvalidInput: for shapes that differ.
    """

    feet: tuple[str, ...]
    contact: np.ndarray
    dt: float

    def __post_init__(self):
        contact = np.array(self.contact, dtype=bool)
        if contact.ndim != 2 or contact.shape[1] != len(self.feet) or len(contact) < 2:
            raise InvalidInput(
                f"footfall pattern: shape {contact.shape} must be (frames >= 2, "
                f"{len(self.feet)}), a column a foot"
            )
        if not (np.isfinite(self.dt) and self.dt > 0):
            raise InvalidInput(f"footfall pattern: dt = {self.dt} s must be > 0")
        contact.setflags(write=False)
        object.__setattr__(self, "contact", contact)
        object.__setattr__(self, "feet", tuple(self.feet))

    def __len__(self) -> int:
        return len(self.contact)

    @property
    def times(self) -> np.ndarray:
        """Of the frames (N,) [s]."""
        return self.dt * np.arange(len(self))

    def bars(self, foot: str) -> list[tuple[int, int]]:
        """First frame and one past the last of each contact of a foot."""
        if foot not in self.feet:
            raise UnknownName("foot", foot, self.feet)
        return runs(self.contact[:, self.feet.index(foot)])

    def unsupported(self) -> list[tuple[int, int]]:
        """Runs of frames in which no foot is down."""
        return runs(~self.contact.any(axis=1))

    def near_contact(self, frames: int = 5) -> np.ndarray:
        """Frames in which a foot is down, or lands or left within `frames`
        (N, feet): where the paper wants it flat."""
        near = self.contact.copy()
        for shift in range(1, frames + 1):
            near[shift:] |= self.contact[:-shift]
            near[:-shift] |= self.contact[shift:]
        return near

    def at(self, frames: np.ndarray) -> np.ndarray:
        """Contact at some frames (k, feet)."""
        return self.contact[np.asarray(frames)]


def gait_footfall(
    feet: Sequence[str],
    phases: Mapping[str, float],
    *,
    period: float,
    duty: float,
    frames: int,
    dt: float = 5e-3,
) -> Footfall:
    """The pattern of a gait; see the module.

    Args:
        feet: names.
        phases: phi of every foot [periods].
        period: T [s].
        duty: beta in (0, 1].
        frames: N.
        dt: [s].

    Raises:
        InvalidInput, UnknownName: for values that cannot be, a foot left out.
    """
    if not 0 < duty <= 1:
        raise InvalidInput(f"duty = {duty} must be in (0, 1]")
    if not (np.isfinite(period) and period > 0):
        raise InvalidInput(f"period = {period} s must be > 0")
    for name in phases:
        if name not in feet:
            raise UnknownName("foot", name, feet)
    missing = [name for name in feet if name not in phases]
    if missing:
        raise InvalidInput(f"phases: give one for {', '.join(missing)}")
    t = dt * np.arange(frames) / period
    # A frame on the boundary belongs to what begins there.
    turn = np.stack([(t - phases[f] + 1e-9) % 1.0 for f in feet], axis=1)
    return Footfall(tuple(feet), turn < duty, dt)


def bar_footfall(
    feet: Sequence[str],
    bars: Mapping[str, Sequence[tuple[float, float]]],
    *,
    frames: int,
    dt: float = 5e-3,
) -> Footfall:
    """The pattern of bars [start, end) in seconds.

    Raises:
        UnknownName: for a foot that is none.
        InvalidInput: for a bar that ends before it starts.
    """
    t = dt * np.arange(frames)
    contact = np.zeros((frames, len(feet)), bool)
    for foot, rows in bars.items():
        if foot not in feet:
            raise UnknownName("foot", foot, feet)
        for start, end in rows:
            if not end > start:
                raise InvalidInput(f"bar of {foot}: {start} .. {end} s ends too early")
            inside = (t >= start - 1e-9) & (t < end - 1e-9)
            contact[inside, list(feet).index(foot)] = True
    return Footfall(tuple(feet), contact, dt)


def runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """[first, one past the last) of each run of True."""
    edges = np.diff(np.concatenate([[0], np.asarray(mask, int), [0]]))
    return list(
        zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist())
    )


PERIODS = (None, "joints", "cycle")
"""Nothing repeats; joint angles do (eq. 6); the whole motion does."""

OFF_GROUND = 5e-3
"""A foot in contact may be asked this far from the ground [m]."""

SLIP = 5e-3
"""A foot in contact may be asked to move this much in all [m]."""


@dataclass(frozen=True)
class MotionInput:
    """A motion to plan, in the world; the ground is z = 0.

    Attributes:
        footfall: contacts; it has the feet's names, N and dt.
        com: centre of mass (N, 3) [m].
        feet: p_WF of the soles' middles (N, feet, 3) [m], in the footfall's order.
        heading: yaw of the body (N,) [rad].
        period: of :data:`PERIODS`.
        flight: whether frames without support are meant.
        reference: positions of some joints (N,) [rad] by name.
        name: for reports.

    Raises:
        InvalidInput: for shapes, values that are not finite, frames without
            support that are not meant, feet that slip or hover in contact.
    """

    footfall: Footfall
    com: np.ndarray
    feet: np.ndarray
    heading: np.ndarray | float = 0.0
    period: str | None = None
    flight: bool = False
    reference: Mapping[str, np.ndarray] = field(default_factory=dict)
    name: str = "motion"

    def __post_init__(self):
        N, names = len(self.footfall), self.footfall.feet
        heading = np.broadcast_to(np.asarray(self.heading, float), (N,))
        reference = {k: np.array(v, float) for k, v in self.reference.items()}
        arrays = {
            "com": (np.array(self.com, float), (N, 3)),
            "feet": (np.array(self.feet, float), (N, len(names), 3)),
            "heading": (np.array(heading), (N,)),
            **{f"reference {k}": (v, (N,)) for k, v in reference.items()},
        }
        for what, (array, shape) in arrays.items():
            if array.shape != shape:
                raise InvalidInput(
                    f"{self.name}: {what} has shape {array.shape}, needs {shape} "
                    f"({N} frames)"
                )
            bad = np.argwhere(~np.isfinite(array))
            if len(bad):
                raise InvalidInput(
                    f"{self.name}: {what} is not a number at frame {bad[0][0]}"
                )
            array.setflags(write=False)
        if self.period not in PERIODS:
            raise InvalidInput(
                f"{self.name}: period {self.period!r} must be one of "
                f"{', '.join(map(str, PERIODS))}"
            )
        for what in ("com", "feet", "heading"):
            object.__setattr__(self, what, arrays[what][0])
        object.__setattr__(self, "reference", MappingProxyType(reference))
        self._check_support()
        self._check_ground()

    def _check_support(self) -> None:
        gaps = self.footfall.unsupported()
        if gaps and not self.flight:
            text = ", ".join(f"{a}..{b - 1}" for a, b in gaps[:4])
            first = gaps[0][0] * self.dt
            raise InvalidInput(
                f"{self.name}: no foot is on the ground in frames {text} (from "
                f"{first:.3f} s); lengthen the contacts, or set flight: true for a "
                "jump"
            )

    def _check_ground(self) -> None:
        for j, foot in enumerate(self.footfall.feet):
            for start, stop in self.footfall.bars(foot):
                p = self.feet[start:stop, j]
                worst = int(np.abs(p[:, 2]).argmax())
                if abs(p[worst, 2]) > OFF_GROUND:
                    raise InvalidInput(
                        f"{self.name}: foot {foot} is to be on the ground at frame "
                        f"{start + worst} but {p[worst, 2] * 1e3:.1f} mm above it; "
                        "change its path or the pattern"
                    )
                slip = np.linalg.norm(p[:, :2] - p[0, :2], axis=1)
                worst = int(slip.argmax())
                if slip[worst] > SLIP:
                    raise InvalidInput(
                        f"{self.name}: foot {foot} is in contact from frame {start} "
                        f"and asked to slide {slip[worst] * 1e3:.1f} mm by frame "
                        f"{start + worst}; lift it, or keep it in place"
                    )

    def __len__(self) -> int:
        return len(self.footfall)

    @property
    def dt(self) -> float:
        """Between frames [s]."""
        return self.footfall.dt

    @property
    def times(self) -> np.ndarray:
        """Of the frames (N,) [s]."""
        return self.footfall.times

    @property
    def duration(self) -> float:
        """[s]."""
        return self.dt * (len(self) - 1)

    @property
    def speed(self) -> float:
        """Mean, of the COM along the ground [m/s]."""
        way = self.com[-1, :2] - self.com[0, :2]
        return float(np.linalg.norm(way)) / self.duration

    @property
    def turn(self) -> float:
        """Change of heading [rad]."""
        return float(self.heading[-1] - self.heading[0])

    def with_footfall(self, contact: np.ndarray) -> MotionInput:
        """The same paths with another pattern (N, feet)."""
        return replace(self, footfall=Footfall(self.footfall.feet, contact, self.dt))
