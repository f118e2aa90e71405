"""Paths that end in a given heading, and the generator that walks them.

**Paths.** A Cartesian cubic polynomial joins two poses, s in 0..1 (Siciliano et al.,
Robotics, 2010, section 11.5.3: the unicycle's flat outputs):

    x(s) = s^3 x_f - (s - 1)^3 x_i + a_x s^2 (s - 1) + b_x s (s - 1)^2
    a_x = k_f cos th_f - 3 x_f,   b_x = k_i cos th_i + 3 x_i

(y with sin); k_i, k_f > 0 [m] are the speeds at the ends. Larger speeds give wider
turns and longer paths.

**Walking.** In every half cycle the generator aims at the point of the path one
look-ahead beyond the nearest point, at last at the path's end, and takes the gait of
eq. (21) with a small weight on the path's direction at that point. When the robot has
passed the end without arriving, arrived with a wrong heading, or circles, it plans a
new path from its present pose.

**Obstacles.** A path keeps a clearance from obstacles, or comes as near to it as any
of the cubics that are tried. Where none from the start does, the robot first walks
along the shortest route (:mod:`..obstacles`), up to the first of its points from which
one does: :func:`plan_approach`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Annotated

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from drakebots.core.checks import array, finite, positive
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.fields import checked
from drakebots.robots.gecko.engines import Decision
from drakebots.robots.gecko.generator.generator import (
    GaitPatternGenerator,
    GeneratorOptions,
    Published,
    growing_horizon,
)
from drakebots.robots.gecko.generator.motion import MotionPolynomial
from drakebots.robots.gecko.generator.obstacles import (
    Route,
    distance_to_obstacles,
    half_width,
)
from drakebots.robots.gecko.generator.planner import (
    check_heading,
    check_point,
    rotated_back,
    wrapped,
)

# Number of samples of a path for its length and curvature.
_SAMPLES = 201
# Speeds that are tried at the ends: from this share of the poses' distance to this
# multiple of it or of the robot's turning circle, and their number.
_SPEEDS = (0.3, 8.0, 34)
# Spacing of the points of a path that is walked [m].
_SPACING = 0.01
# Length of path that is searched for the nearest point, so that loops are walked [m].
_WINDOW = 0.3
# A path may begin at every so many-th point of a route.
_BEGINNINGS = 4
# Largest number of cubics whose distance to obstacles is looked at.
_TRIED = 150
# Distance along the path to the point that is aimed at [m]; about a cycle's motion
# tracks best. Weight of the path's direction at that point [m/rad].
_LOOK_AHEAD, _HEADING_WEIGHT = 0.12, 0.08
# How much nearer to an obstacle than the clearance a path may come [m].
_INTRUSION = 1e-3
# Half cycles without progress along the path after which the robot counts as lost.
_PATIENCE = 40


TOLERANCE = np.radians(15.0)
"""Largest error of the heading at the end [rad]."""


@checked("path")
class CartesianCubic:
    """A cubic path between two poses.

    Raises:
        InvalidInput: for values that are not finite, speeds <= 0, or equal ends.
    """

    start: Annotated[np.ndarray, array((2,), "m")]
    """Position of the start (2,)."""
    start_heading: Annotated[float, finite("rad")]
    """Direction of the path at the start."""
    end: Annotated[np.ndarray, array((2,), "m")]
    """Position of the end (2,)."""
    end_heading: Annotated[float, finite("rad")]
    """Direction of the path at the end."""
    start_speed: Annotated[float, positive("m")]
    """Speed k_i at the start."""
    end_speed: Annotated[float, positive("m")]
    """Speed k_f at the end."""

    def __post_init__(self):
        if np.array_equal(self.start, self.end):
            raise InvalidInput("path: start and end are the same place; part them")

    @cached_property
    def cubic(self) -> CubicHermiteSpline:
        """The path as a function of s in 0..1."""
        ends = self.start, self.start_heading, self.end, self.end_heading
        return _cubics(*ends, self.start_speed, self.end_speed)

    def point(self, s) -> np.ndarray:
        """Points of the path (..., 2) [m] at s in 0..1."""
        return self.cubic(s)

    def heading(self, s) -> np.ndarray:
        """Direction of the path (...) [rad], within -pi..pi."""
        return _direction(self.cubic(s, 1))

    def sample(self, spacing: float) -> tuple[np.ndarray, np.ndarray]:
        """Points (n, 2) [m] and headings (n,) [rad], evenly along the path.

        Both ends are among them; `spacing` [m] is the largest distance of neighbours.
        """
        along = np.append(0.0, np.cumsum(_steps(self.cubic, 4 * _SAMPLES)))
        count = int(np.ceil(along[-1] / spacing)) + 1
        s = np.linspace(0, 1, 4 * _SAMPLES)
        even = np.interp(np.linspace(0, along[-1], count), along, s)
        return self.point(even), self.heading(even)


# Cubics of many speeds at once: functions of s (S,) with values (S, ..., 2).


def _cubics(start, start_heading, end, end_heading, k_i, k_f) -> CubicHermiteSpline:
    """The cubics of speeds k_i and k_f (...) [m] at the ends."""
    slopes = [
        np.multiply.outer(k, [np.cos(th), np.sin(th)])
        for k, th in ((k_i, start_heading), (k_f, end_heading))
    ]
    ends = [np.broadcast_to(at, slopes[0].shape) for at in (start, end)]
    return CubicHermiteSpline([0.0, 1.0], ends, slopes)


def _direction(d: np.ndarray) -> np.ndarray:
    return np.arctan2(d[..., 1], d[..., 0])


def _curvature(cubic: CubicHermiteSpline, s) -> np.ndarray:
    """(x' y'' - y' x'') / |(x', y')|^3 (...) [1/m]; positive turns left."""
    u, v = cubic(s, 1), cubic(s, 2)
    cross = u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]
    return cross / np.maximum((u**2).sum(axis=-1), 1e-18) ** 1.5


def _steps(cubic: CubicHermiteSpline, count: int) -> np.ndarray:
    """Distances between `count` points of each cubic (count - 1, ...) [m]."""
    points = cubic(np.linspace(0, 1, count))
    return np.linalg.norm(np.diff(points, axis=0), axis=-1)


def exceeds(cubic: CubicHermiteSpline, limits: TurnLimits) -> np.ndarray:
    """The largest curvature of each cubic divided by its limit (...).

    It is at most 1 if the limit is kept; a path that stops and reverses exceeds any.
    """
    s = np.linspace(0, 1, _SAMPLES)
    # Turns between samples count, too: at a cusp the curvature itself may be zero.
    turn = wrapped(np.diff(_direction(cubic(s, 1)), axis=0))
    turned = turn / np.maximum(_steps(cubic, _SAMPLES), 1e-12)
    bend = np.concatenate([_curvature(cubic, s), turned])
    left, right = max(limits.left, 1e-9), max(limits.right, 1e-9)
    most = np.maximum(bend.max(axis=0) / left, -bend.min(axis=0) / right)
    return np.maximum(most, 0.0)


@dataclass(frozen=True)
class TurnLimits:
    """The tightest circles of a robot with a constant gait.

    Attributes:
        left, right: largest curvatures to either side, >= 0 [1/m].
    """

    left: float
    right: float


def turn_limits(polynomial: MotionPolynomial) -> TurnLimits:
    """Curvatures 2 sin(e/2) / |p| of the circles through successive poses.

    e is the rotation and p the displacement of a cycle with the largest step length,
    the robot's usual one; shorter steps turn tighter.
    """
    domain = polynomial.domain
    motion = polynomial.motion(domain.q1[1], np.linspace(*domain.q2, 201))
    bend = 2 * np.sin(motion[:, 0] / 2) / np.hypot(motion[:, 1], motion[:, 2])
    return TurnLimits(max(float(bend.max()), 0.0), max(float(-bend.min()), 0.0))


@dataclass(frozen=True)
class Blocked:
    """Obstacles, and the clearance that paths keep from them.

    Attributes:
        obstacles: polygons (m_i, 2) [m].
        clearance: distance of the robot's position to them [m].
    """

    obstacles: tuple
    clearance: float = field(default_factory=half_width)

    def intrusion(self, path: CartesianCubic) -> float:
        """Largest shortfall of the path from the clearance, 0 if it keeps it [m]."""
        points = path.point(np.linspace(0, 1, _SAMPLES // 2))
        near = self.clearance - distance_to_obstacles(points, self.obstacles).min()
        return float(near) if near > _INTRUSION else 0.0


def plan_cubic(
    start,
    start_heading: float,
    end,
    end_heading: float,
    limits: TurnLimits | None = None,
    blocked: Blocked | None = None,
) -> CartesianCubic:
    """The shortest cubic whose curvature is within the robot's limits.

    Searches a grid of k_i and k_f (about 0.1 s). If no path is within the limits, the
    one that exceeds them least is returned; see :func:`exceeds`. Paths that come too
    near to obstacles are taken only where every other does.

    Args:
        start, end: positions of the ends (2,) [m].
        start_heading, end_heading: headings at the ends [rad].
        limits: largest curvatures; by default those of Table 3 at the largest step.
        blocked: obstacles to keep clear of.

    Raises:
        InvalidInput: for values that are not finite, or equal ends.
    """
    limits = limits or turn_limits(MotionPolynomial.table_3())
    far = float(np.linalg.norm(check_point(end, "end") - check_point(start, "start")))
    ends = start, start_heading, end, end_heading
    first = CartesianCubic(*ends, max(far, 1e-9), max(far, 1e-9))
    circle = 2 / max(min(limits.left, limits.right), 1e-3)
    low, high, count = _SPEEDS
    speeds = np.geomspace(low * far, high * max(far, circle), count)
    k_i, k_f = (k.ravel() for k in np.meshgrid(speeds, speeds, indexing="ij"))
    cubics = _cubics(first.start, start_heading, first.end, end_heading, k_i, k_f)
    over = np.maximum(exceeds(cubics, limits), 1.0)
    length = _steps(cubics, _SAMPLES).sum(axis=0)
    ranked = (
        replace(first, start_speed=float(k_i[k]), end_speed=float(k_f[k]))
        for k in np.lexsort((length, over))
    )
    if blocked is None:
        return next(ranked)
    best, least = first, np.inf
    for path in islice(ranked, _TRIED):
        if (near := blocked.intrusion(path)) < least:
            best, least = path, near
        if least == 0:
            break
    return best


def plan_approach(
    route: Route, heading: float, end_heading: float, blocked: Blocked
) -> tuple[CartesianCubic, np.ndarray]:
    """The path to a final heading among obstacles, and the route to its beginning.

    Args:
        route: the shortest path to the one target.
        heading: heading at the start [rad].
        end_heading: heading at the target [rad].
        blocked: the obstacles.

    Returns:
        The first path along the route that keeps clear and within the limits, or that
        keeps clear and exceeds them least; and the points (n, 2) [m] that lead to it,
        none where it begins at the start.

    Raises:
        NoSolution: when no path keeps clear.
    """
    limits = turn_limits(MotionPolynomial.table_3())
    *points, end = np.vstack([route.start, route.targets()])
    headings = [heading, *np.arctan2(*np.diff(points, axis=0).T[::-1])]
    best, rank = None, np.inf
    for k in range(0, len(points), _BEGINNINGS):
        course = points[k], headings[k]
        path = plan_cubic(*course, end, end_heading, limits, blocked)
        over = exceeds(path.cubic, limits)
        if blocked.intrusion(path) == 0 and over < rank:
            best, rank = (path, np.reshape(points[1 : k + 1], (-1, 2))), over
        if rank <= 1:
            break
    if best is None:
        raise NoSolution(
            "no path to the final heading keeps the clearance "
            f"{blocked.clearance:.3g} m from the obstacles; ask for another heading, "
            "or for none"
        )
    return best


@dataclass(frozen=True)
class PoseError:
    """Difference between a pose and the end of a path.

    Attributes:
        distance: distance to the end [m].
        heading: rotation to the end's heading, within -pi..pi, positive to the
            left [rad].
    """

    distance: float
    heading: float


class PathGenerator:
    """Walks along a path to the pose at its end; a :class:`Generator`.

    Args:
        path: first path; its end is the pose to reach.
        options: arrival at the end, and motion model; the published rule's horizon and
            sum.
        blocked: obstacles from which new paths keep clear.
        approach: generator that leads to the path's beginning, around obstacles.

    Attributes:
        attempts: largest number of paths that are walked.
        path: the present path.
        attempt: index of the present path, 0 for the first one.
        final: error of the pose at the end, after arrival or the last attempt; None
            before.
    """

    attempts = 4

    def __init__(
        self,
        path: CartesianCubic,
        options: GeneratorOptions | None = None,
        blocked: Blocked | None = None,
        approach: GaitPatternGenerator | None = None,
    ):
        self.options = options or GeneratorOptions()
        self._blocked, self._approach = blocked, approach
        rule = self.options.rule
        self._rule = rule if isinstance(rule, Published) else Published()
        self.attempt, self.final = 0, None
        self._walk(path)

    @property
    def reached(self) -> bool:
        """Whether it ended within the arrival distance and the heading's tolerance."""
        return self.final is not None and self._good(self.final)

    def error(self, position, heading: float) -> PoseError:
        """Difference between a pose and the path's end.

        Args:
            position: position (2,) [m].
            heading: heading [rad].

        Raises:
            InvalidInput: for a pose that is not finite.
        """
        gap = check_point(position, "position") - self.path.end
        turn = wrapped(self.path.end_heading - check_heading(heading))
        return PoseError(float(np.hypot(*gap)), turn)

    def decide(self, position, heading: float) -> Decision | None:
        """The gait for the next half cycle; None at the end.

        The decision's target is the index of the attempt; its d0 and distance
        belong to the point that is aimed at. A new attempt takes about 0.1 s.

        Args:
            position: position of the torso's front end in the world (2,) [m].
            heading: heading eps [rad].

        Raises:
            InvalidInput: for a pose that is not finite.
        """
        error = self.error(position, heading)
        if self.final is not None:
            return None
        position = np.asarray(position, float)
        if self._good(error):
            self.final = error
            return None
        if self._approach is not None:
            decision = self._approach.decide(position, heading)
            if decision is not None:
                return decision
            self._approach = None
            self._plan(position, heading)
        self._advance(position)
        if self._lost(position):
            if self.attempt + 1 >= self.attempts:
                self.final = error
                return None
            self.attempt += 1
            self._plan(position, heading)
        ahead = int(np.ceil(_LOOK_AHEAD / _SPACING))
        aim = min(self._near + ahead, len(self._points) - 1)
        gap = rotated_back(self._points[aim] - position, heading)
        d0 = float(np.hypot(*gap))
        turn = wrapped(self._headings[aim] - heading)
        along = {"heading": turn, "heading_weight": _HEADING_WEIGHT}
        best = growing_horizon(gap, d0, self.options.motion, self._rule, **along)
        return Decision(best.q1, best.q2, best.n, best.distance, self.attempt, d0)

    def _good(self, error: PoseError) -> bool:
        return error.distance < self.options.arrival and abs(error.heading) <= TOLERANCE

    def _plan(self, position: np.ndarray, heading: float) -> None:
        """Plans a new path from a pose to the same end."""
        end = self.path.end, self.path.end_heading
        self._walk(plan_cubic(position, heading, *end, blocked=self._blocked))

    def _walk(self, path: CartesianCubic) -> None:
        self.path = path
        self._points, self._headings = path.sample(_SPACING)
        self._near = self._waited = 0

    def _advance(self, position: np.ndarray) -> None:
        window = slice(self._near, self._near + int(_WINDOW / _SPACING))
        gaps = np.linalg.norm(self._points[window] - position, axis=1)
        ahead = int(gaps.argmin())
        self._near += ahead
        self._waited = 0 if ahead else self._waited + 1

    def _lost(self, position: np.ndarray) -> bool:
        """Whether the robot has passed the end, or makes no progress."""
        if self._waited > _PATIENCE:
            return True
        if self._near < len(self._points) - 1:
            return False
        along = np.array([np.cos(self._headings[-1]), np.sin(self._headings[-1])])
        return (position - self._points[-1]) @ along > self.options.arrival
