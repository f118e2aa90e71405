"""Walks a path to a pose: a gait pattern generator that aims along the path.

Every half cycle aims at the point of the path one look-ahead beyond the nearest
one, at last at its end, and takes the gait of eq. (21) with a small wish for the
path's direction there. Past the end without arrival, there in a wrong orientation,
or circling, a new path from the present pose is tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.robots.gecko.distance import check_heading, check_point, in_body_frame
from drakebots.robots.gecko.generator import Decision, GeneratorOptions, growing_plan
from drakebots.robots.gecko.paths import CartesianCubic, TurnLimits, plan_cubic

_SPACING = 0.01
# How far ahead the nearest point is searched, so that loops are not cut [m].
_WINDOW = 0.3
# Half cycles without progress along the path: the robot circles its aim.
_PATIENCE = 40


@dataclass(frozen=True)
class PathOptions:
    """How a path is walked.

    Attributes:
        generator: arrival at the end, horizon, sum and motion model.
        look_ahead: distance along the path to what is aimed at [m]; about a
            cycle's motion tracks best.
        heading_weight: worth of the path's direction there [m/rad].
        tolerance: of the orientation at the end [rad].
        attempts: paths to try, >= 1.
        limits: curvatures for new paths; Table 3's at full step by default.

    Raises:
        InvalidInput: for a value out of range.
    """

    generator: GeneratorOptions = field(default_factory=GeneratorOptions)
    look_ahead: float = 0.12
    heading_weight: float = 0.08
    tolerance: float = np.radians(15.0)
    attempts: int = 4
    limits: TurnLimits | None = None

    def __post_init__(self):
        for name, unit in (("look_ahead", "m"), ("tolerance", "rad")):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"{name} must be > 0 {unit}, got {value}")
        if not (np.isfinite(self.heading_weight) and self.heading_weight >= 0):
            raise InvalidInput(
                f"heading_weight must be >= 0 m/rad, got {self.heading_weight}"
            )
        if int(self.attempts) != self.attempts or self.attempts < 1:
            raise InvalidInput(f"attempts must be >= 1, got {self.attempts}")


@dataclass(frozen=True)
class PoseError:
    """What a pose lacks to the end of a path.

    Attributes:
        distance: to its position [m].
        heading: to its orientation, within -pi..pi; positive: turn left [rad].
    """

    distance: float
    heading: float


class PathGenerator:
    """Walks to a pose; `decide` as of :class:`GaitPatternGenerator`.

    Args:
        path: to walk; its end is the pose to reach.
        options: how.
    """

    def __init__(self, path: CartesianCubic, options: PathOptions | None = None):
        self.options = options or PathOptions()
        self._first = path
        self.reset()

    @property
    def path(self) -> CartesianCubic:
        """That is walked at present."""
        return self._path

    @property
    def attempt(self) -> int:
        """Index of the present path, 0 for the given one."""
        return self._attempt

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do: arrived, or out of attempts."""
        return self._final is not None

    @property
    def final(self) -> PoseError | None:
        """What was lacking at the end; None before."""
        return self._final

    @property
    def reached(self) -> bool:
        """Whether it ended within arrival and the tolerance of orientation."""
        return self._final is not None and self._good(self._final)

    def reset(self) -> None:
        """Starts over with the first path."""
        self._attempt = 0
        self._final: PoseError | None = None
        self._walk(self._first)

    def error(self, position, heading: float) -> PoseError:
        """What a pose lacks to the path's end.

        Args:
            position: (2,) [m]; heading: [rad].

        Raises:
            InvalidInput: for a pose that is not finite.
        """
        gap = check_point(position, "position") - self._path.end
        turn = _wrap(self._path.end_heading - check_heading(heading))
        return PoseError(float(np.hypot(*gap)), turn)

    def decide(self, position, heading: float) -> Decision | None:
        """The gait for the next half cycle; None at the end.

        The decision's target is the index of the attempt, its d0 and distance
        belong to the point that is aimed at. A new attempt takes about 0.1 s.

        Args:
            position: of the torso's front end in the world (2,) [m].
            heading: eps [rad].

        Raises:
            InvalidInput: for a pose that is not finite.
        """
        error = self.error(position, heading)
        if self.finished:
            return None
        position = np.asarray(position, float)
        arrived = error.distance < self.options.generator.arrival
        if arrived and self._good(error):
            self._final = error
            return None
        self._advance(position)
        if self._lost(position):
            if self._attempt + 1 >= self.options.attempts:
                self._final = error
                return None
            self._attempt += 1
            end, end_heading = self._path.end, self._path.end_heading
            limits = self.options.limits
            self._walk(plan_cubic(position, heading, end, end_heading, limits))
        aim = min(
            self._near + int(np.ceil(self.options.look_ahead / _SPACING)),
            len(self._points) - 1,
        )
        away = in_body_frame(self._points[aim], position, heading)
        d0 = float(np.hypot(*away))
        best = growing_plan(
            away,
            d0,
            self.options.generator,
            heading=_wrap(self._headings[aim] - heading),
            heading_weight=self.options.heading_weight,
        )
        return Decision(best.q1, best.q2, best.n, best.distance, self._attempt, d0)

    def _good(self, error: PoseError) -> bool:
        return (
            error.distance < self.options.generator.arrival
            and abs(error.heading) <= self.options.tolerance
        )

    def _walk(self, path: CartesianCubic) -> None:
        self._path = path
        self._points, self._headings = path.sample(_SPACING)
        self._near = self._waited = 0

    def _advance(self, position: np.ndarray) -> None:
        window = slice(self._near, self._near + int(_WINDOW / _SPACING))
        gaps = np.linalg.norm(self._points[window] - position, axis=1)
        ahead = int(gaps.argmin())
        self._near += ahead
        self._waited = 0 if ahead else self._waited + 1

    def _lost(self, position: np.ndarray) -> bool:
        """Whether the end lies behind by more than arrival, or is not neared."""
        if self._waited > _PATIENCE:
            return True
        if self._near < len(self._points) - 1:
            return False
        along = np.array([np.cos(self._headings[-1]), np.sin(self._headings[-1])])
        return (position - self._points[-1]) @ along > self.options.generator.arrival


def _wrap(angle: float) -> float:
    return float((angle + np.pi) % (2 * np.pi) - np.pi)
