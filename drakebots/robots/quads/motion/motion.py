"""The requested motion of a quad-robot: COM, feet and footfall over time.

This is the input of the paper's section 5: at every step of 5 ms, where the centre of
mass (COM) and each foot should be, and whether each foot is on the ground. The first
part of the module is the geometry of support polygons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from scipy.ndimage import binary_dilation

from drakebots.core.checks import array, check_value, one_of, positive
from drakebots.core.errors import InvalidInput, check_names
from drakebots.core.fields import check, checked
from drakebots.core.units import GRAVITY
from drakebots.model import plane_rotation
from drakebots.multibody import nearest_in_hull, polygon
from drakebots.robots.quads.robot import Quad, half_planes

# --- support polygons, centre of pressure (COP) and zero-moment point (ZMP) --
#
# On flat ground, with forces F and torques T at points p of the feet,
#
#     COP = sum (p F_z + [-T_y, T_x]) / sum F_z                (from forces)
#     ZMP = c - c_z cdd / (cddz + g)                           (from the COM)
#
# The paper uses the second (after Megaro et al. 2015), which neglects the rate of
# angular momentum; the first includes it.


def sole_corners(quad: Quad, feet: np.ndarray, heading: float) -> list[np.ndarray]:
    """Corners (c, 2) of horizontal soles at p_WF (feet, 3), turned by the heading."""
    R = plane_rotation(heading)
    return [p[:2] + sole.corners @ R.T for p, sole in zip(feet, quad.soles)]


def margin(corners: np.ndarray | None, point: np.ndarray) -> float:
    """Distance of a point from the nearest side of a polygon [m].

    Outside, minus the distance from the polygon; -inf without a polygon.
    """
    if corners is None:
        return -np.inf
    n, b = half_planes(corners)
    inside = float((b - n @ point).min())
    if inside >= 0:
        return inside
    return -float(np.linalg.norm(point - nearest_in_hull(point, corners)))


def support_polygon(quad: Quad, feet, contact, heading: float) -> np.ndarray | None:
    """Convex hull of the soles in contact (k, 2); None in flight."""
    kept = [c for c, down in zip(sole_corners(quad, feet, heading), contact) if down]
    return polygon(np.vstack(kept)) if kept else None


def zmp(com: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    """ZMP (T, 2) from the COM and its acceleration (T, 3); NaN in free fall."""
    lift = GRAVITY + acceleration[:, 2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        out = com[:, :2] - com[:, 2:] * acceleration[:, :2] / lift
    return np.where(lift > 1e-6, out, np.nan)


def cop_of_forces(feet, F, T) -> np.ndarray:
    """COP (T, 2) from p, F and T of the feet (T, feet, 3); NaN without load."""
    load = F[..., 2].sum(axis=1)
    tilt = np.stack([-T[..., 1], T[..., 0]], axis=-1)
    moment = (feet[..., :2] * F[..., 2:] + tilt).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(load[:, None] > 1e-9, moment / load[:, None], np.nan)


# --- footfall patterns: which foot is on the ground at which step ------------
#
# A gait has a period T, a duty factor beta (the share of T for which a foot is on the
# ground) and a phase phi of each foot, its touch-down as a share of T:
#
#     foot j is on the ground at t  <=>  frac(t/T - phi_j) < beta


@checked("footfall pattern")
class Footfall:
    """Sampled footfall pattern.

    Raises:
        InvalidInput: for shapes that differ, or a dt not > 0.
    """

    feet: tuple[str, ...]
    """Names of the feet."""
    contact: Annotated[np.ndarray, array((None, None), of=bool)]
    """Whether each foot is on the ground at each step (N, feet)."""
    dt: Annotated[float, positive("s")]
    """Time between steps."""

    def __post_init__(self):
        shape = self.contact.shape
        if shape[1] != len(self.feet) or shape[0] < 2:
            raise InvalidInput(
                f"footfall pattern: shape {shape} must be (steps >= 2, "
                f"{len(self.feet)}), one column per foot"
            )
        object.__setattr__(self, "feet", tuple(self.feet))

    def __len__(self) -> int:
        return len(self.contact)

    @property
    def times(self) -> np.ndarray:
        """Times of the steps (N,) [s]."""
        return self.dt * np.arange(len(self))

    def bars(self, foot: str) -> list[tuple[int, int]]:
        """First step, and one past the last, of each contact of a foot."""
        check_names("foot", [foot], self.feet)
        return runs(self.contact[:, self.feet.index(foot)])

    def unsupported(self) -> list[tuple[int, int]]:
        """Runs of steps at which no foot is on the ground."""
        return runs(~self.contact.any(axis=1))


def near_contact(contact: np.ndarray, steps: int) -> np.ndarray:
    """Steps at which a foot is in contact or within `steps` of a contact (N, feet).

    There the paper requires soles that are parallel to the ground.
    """
    return binary_dilation(contact, np.ones((2 * steps + 1, 1)))


def gait_footfall(
    feet: Sequence[str],
    phases: Mapping[str, float],
    *,
    period: float,
    duty: float | Mapping[str, float],
    steps: int,
    dt: float = 5e-3,
) -> Footfall:
    """Footfall pattern of a gait.

    Args:
        feet: names of the feet.
        phases: phase phi of every foot [periods].
        period: period T [s].
        duty: duty factor beta in (0, 1], of all feet or by foot.
        steps: number of steps N.
        dt: time between steps [s].

    Raises:
        InvalidInput: for a foot without a phase or a duty factor.
        UnknownName: for a phase of an unknown foot.
    """
    phases, duty = by_foot(phases, feet, "phases"), by_foot(duty, feet, "duty")
    t = dt * np.arange(steps) / period
    # A step on a boundary belongs to the phase that begins there.
    down = [(t - phases[f] + 1e-9) % 1.0 < duty[f] for f in feet]
    return Footfall(tuple(feet), np.stack(down, axis=1), dt)


def by_foot(value: Any, feet: Sequence[str], what: str) -> dict[str, Any]:
    """The value of each foot, of one for all or of one by foot.

    Raises:
        UnknownName: for an unknown foot.
        InvalidInput: for a foot without a value.
    """
    if not isinstance(value, Mapping):
        return dict.fromkeys(feet, value)
    check_names("foot", value, feet)
    missing = [name for name in feet if name not in value]
    if missing:
        raise InvalidInput(f"{what}: give one for {', '.join(missing)}")
    return dict(value)


def runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """First index, and one past the last, of each run of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, mask, False]))
    return list(map(tuple, edges.reshape(-1, 2).tolist()))


# --- requested motions ------------------------------------------------------


def height_over(planes: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Distance of points (..., 3) from planes [n, d] (..., 4), positive above [m]."""
    return (planes[..., :3] * points).sum(axis=-1) - planes[..., 3]


PERIODS = ("joints", "cycle")
"""Repeating parts: the joint angles (eq. 6), or the whole motion."""

OFF_GROUND = 5e-3
"""Largest requested height of a foot in contact [m]."""

SLIP = 5e-3
"""Largest requested slip of a foot during a contact [m]."""

LEVEL = np.array([0.0, 0.0, 1.0, 0.0])
"""The plane [n, d] (4,) of flat ground, n . p = d."""


@checked("motion")
class MotionInput:
    """A requested motion in the world, on flat ground z = 0 unless it says otherwise.

    Raises:
        InvalidInput: for wrong shapes, values that are not finite, unintended steps
            without support, feet that slip or hover during a contact.
    """

    footfall: Footfall
    """Footfall pattern, with the names of the feet, N and dt."""
    com: np.ndarray
    """Path of the centre of mass (N, 3) [m]."""
    feet: np.ndarray
    """Paths p_WF of the middles of the soles (N, feet, 3) [m], in the order of the
    footfall pattern."""
    heading: np.ndarray | float = 0.0
    """Yaw of the body (N,) [rad]."""
    period: Annotated[str | None, one_of("period", PERIODS)] = None
    """Part that repeats, one of :data:`PERIODS`, or None."""
    flight: bool = False
    """Whether steps without support are intended."""
    reference: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Positions of some joints (N,) [rad] by name."""
    ground: np.ndarray | None = None
    """Planes [n, d] that the soles of the feet meet (N, feet, 4), n . p = d [1, m]."""
    rise: Annotated[np.ndarray | tuple, array((2,))] = (0.0, 0.0)
    """Rise of the ground along x and y in the mean [m/m]."""
    name: str = "motion"
    """Name of the motion, for reports."""

    def __post_init__(self):
        N, names = len(self.footfall), self.footfall.feet
        if np.ndim(self.heading) == 0:
            object.__setattr__(self, "heading", np.full(N, self.heading))
        if self.ground is None:
            level = np.broadcast_to(LEVEL, (N, len(names), 4))
            object.__setattr__(self, "ground", level)
        feet, planes = (array((N, len(names), size)) for size in (3, 4))
        each, shapes = array((N,)), {"feet": feet, "ground": planes}
        check(self, self.name, com=array((N, 3)), heading=each, **shapes)
        reference = {
            joint: check_value(f"{self.name}: reference {joint}", angles, each)
            for joint, angles in self.reference.items()
        }
        object.__setattr__(self, "reference", MappingProxyType(reference))
        self._check_support()
        self._check_ground()

    def _check_support(self) -> None:
        gaps = self.footfall.unsupported()
        if gaps and not self.flight:
            text = ", ".join(f"{a}..{b - 1}" for a, b in gaps[:4])
            first = gaps[0][0] * self.dt
            raise InvalidInput(
                f"{self.name}: no foot is on the ground at steps {text} (from "
                f"{first:.3f} s); lengthen the contacts, or set flight: true for a "
                "jump"
            )

    def _check_ground(self) -> None:
        """Raises InvalidInput if a foot in contact is off the ground or slides."""
        for j, foot in enumerate(self.footfall.feet):
            for start, stop in self.footfall.bars(foot):
                p = self.feet[start:stop, j]
                above = height_over(self.ground[start:stop, j], p)
                worst = int(np.abs(above).argmax())
                if abs(above[worst]) > OFF_GROUND:
                    raise InvalidInput(
                        f"{self.name}: foot {foot} is in contact at step "
                        f"{start + worst} but {above[worst] * 1e3:.1f} mm above the "
                        "ground; change its path or the footfall pattern"
                    )
                slip = np.linalg.norm(p[:, :2] - p[0, :2], axis=1)
                worst = int(slip.argmax())
                if slip[worst] > SLIP:
                    raise InvalidInput(
                        f"{self.name}: foot {foot} is in contact from step {start} and "
                        f"would slide {slip[worst] * 1e3:.1f} mm by step "
                        f"{start + worst}; lift it, or keep it in place"
                    )

    def __len__(self) -> int:
        return len(self.footfall)

    def to_yaml(self) -> str:
        """What a file says of the motion: its name."""
        return self.name

    @property
    def dt(self) -> float:
        """Time between steps [s]."""
        return self.footfall.dt

    @property
    def times(self) -> np.ndarray:
        """Times of the steps (N,) [s]."""
        return self.footfall.times

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.dt * (len(self) - 1)

    @property
    def speed(self) -> float:
        """Mean speed of the COM along the ground [m/s]."""
        displacement = self.com[-1, :2] - self.com[0, :2]
        return float(np.linalg.norm(displacement)) / self.duration

    @property
    def turn(self) -> float:
        """Change of heading [rad]."""
        return float(self.heading[-1] - self.heading[0])

    @property
    def climb(self) -> float:
        """Rise of the ground on its way [m]."""
        return float(self.rise @ (self.com[-1, :2] - self.com[0, :2]))
