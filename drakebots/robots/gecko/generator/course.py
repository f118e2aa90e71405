"""A course for the gecko: targets, obstacles, the start, and the generator."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.robots.gecko.generator import generator as pattern
from drakebots.robots.gecko.generator.distance import (
    MotionModel,
    check_heading,
    check_point,
)
from drakebots.robots.gecko.generator.generator import (
    GaitPatternGenerator,
    GeneratorOptions,
)
from drakebots.robots.gecko.generator.obstacles import plan_route
from drakebots.robots.gecko.generator.paths import (
    PathGenerator,
    PathOptions,
    plan_cubic,
)
from drakebots.robots.gecko.generator.polynomial import MotionPolynomial
from drakebots.robots.gecko.generator.pose_motion import PoseStepMotion
from drakebots.robots.gecko.generator.velocity_space import (
    VelocitySpace,
    simulated_motion,
)
from drakebots.robots.gecko.model import Gecko, Pose, gecko, pose_at, scalar

START_ANGLES = tuple(np.radians([30.0, 0.0, -30.0, 30.0, 0.0]).tolist())
"""The limbs at the start of Fig. 12 [rad]."""

VIA_SPACING, VIA_ARRIVAL = 0.05, 0.10
"""Of the points along a way around obstacles [m]."""

MOTIONS = {
    "table 3": "the paper's polynomial, fitted to its robot",
    "fit": "the polynomial fitted to the simulated velocity space",
    "pose step": "the pose step itself, from the present pose",
}
"""What the generator may believe a gait does."""


def paper_course() -> tuple[tuple[float, float], ...]:
    """The targets of Fig. 12 [m]."""
    return tuple(map(tuple, pattern.course().tolist()))


@dataclass(frozen=True)
class Course:
    """Where the gecko is to walk, and how it decides.

    Attributes:
        targets: of the torso's front end, in their order (k, 2) [m].
        obstacles: polygons to walk around, each (m, 2) [m].
        epsilon: a target closer than this counts as reached [m].
        final_heading: wanted at the (then only) target [rad].
        start: of the torso's front end (2,) [m].
        heading: at the start [rad].
        motion: what the generator believes a gait does; see MOTIONS.
        sum: reading of eq. (19), "corrected" or "paper".
        horizon: cycles the generator looks ahead at most.
        patience: half cycles without getting closer after which it leaves the
            circle it walks; 0 for the algorithm as published, which does not.
        size, weights: names of the robot's lengths and of its weights.
    """

    targets: tuple[tuple[float, float], ...] = field(default_factory=paper_course)
    obstacles: tuple[tuple[tuple[float, float], ...], ...] = ()
    epsilon: float = field(default_factory=lambda: scalar("arrival"))
    final_heading: float | None = None
    start: tuple[float, float] = (0.0, 0.0)
    heading: float = np.pi / 2
    motion: str = "table 3"
    sum: str = "corrected"
    horizon: int = field(default_factory=lambda: int(scalar("horizon")))
    patience: int = 16
    size: str = "small"
    weights: str = "velocity_space"

    def __post_init__(self):
        if self.motion not in MOTIONS:
            raise UnknownName("motion model", self.motion, MOTIONS)
        check_point(self.start, "start")
        check_heading(self.heading)
        pattern.check_targets(self.targets)
        if self.final_heading is not None:
            check_heading(self.final_heading, "final heading")
            if len(self.targets) != 1 or self.obstacles:
                raise InvalidInput(
                    "a final heading needs one target and no obstacles; leave the "
                    f"heading out or the others ({len(self.targets)} targets)"
                )
            if self.motion == "pose step":
                raise InvalidInput(
                    "a final heading needs a polynomial as motion model; use "
                    "'table 3' or 'fit'"
                )
        self.generator_options(MotionPolynomial.table_3())

    @property
    def robot(self) -> Gecko:
        """The robot that walks."""
        return gecko(self.size, self.weights)

    def generator_options(self, motion: MotionModel) -> GeneratorOptions:
        """For a motion model."""
        patience = self.patience or None
        return GeneratorOptions(self.epsilon, self.horizon, self.sum, motion, patience)

    def start_pose(self) -> Pose:
        """The pose of Fig. 12's start, where this course starts."""
        return pose_at(self.robot, START_ANGLES, self.heading, self.start)


@dataclass
class Walker:
    """A course made ready to be walked.

    Attributes:
        generator: chooses the gaits.
        waypoints: what it walks to: the targets, and corners of obstacles [m].
        target: index of the target that each waypoint leads to.
        motion: to be shown every pose, if the motion model is the pose step.
        path: points of the path to a final heading (n, 2) [m], if there is one.
    """

    generator: GaitPatternGenerator | PathGenerator
    waypoints: np.ndarray
    target: np.ndarray
    motion: PoseStepMotion | None = None
    path: np.ndarray | None = None

    def targets_reached(self) -> int:
        """Targets that were reached so far."""
        if isinstance(self.generator, PathGenerator):
            return int(self.generator.reached)
        passed = self.generator.index
        if passed >= len(self.waypoints):
            return int(self.target[-1]) + 1
        return int(self.target[passed])


def prepare(course: Course) -> Walker:
    """Plans the way and builds the generator.

    Raises:
        InvalidInput: for a start or a target inside an obstacle.
        NoSolution: when obstacles bar the way.
    """
    robot, motion, observer = course.robot, None, None
    if course.motion == "fit":
        space = VelocitySpace(size=course.size, weights=course.weights)
        motion = simulated_motion(space)
    elif course.motion == "pose step":
        motion = observer = PoseStepMotion(robot, course.start_pose())
    else:
        motion = MotionPolynomial.table_3()
    options = course.generator_options(motion)
    if course.final_heading is not None:
        path = plan_cubic(
            course.start, course.heading, course.targets[0], course.final_heading
        )
        generator = PathGenerator(path, PathOptions(generator=options))
        return Walker(
            generator, path.end[None], np.zeros(1, int), path=path.sample(0.01)[0]
        )
    waypoints, target = np.array(course.targets), np.arange(len(course.targets))
    arrivals, via = np.full(len(waypoints), course.epsilon), None
    if course.obstacles:
        waypoints, target, arrivals, via = _around_obstacles(course)
    generator = GaitPatternGenerator(waypoints, options, arrivals, via)
    return Walker(generator, waypoints, target, motion=observer)


def _around_obstacles(course: Course):
    """Points close to each other along the shortest way, their targets, arrivals.

    Corners alone let the robot cut them, and circle for those it passed by.
    """
    route = plan_route(course.start, course.targets, course.obstacles)
    points = route.targets(VIA_SPACING)
    target, at = np.empty(len(points), int), 0
    via = np.ones(len(points), bool)
    for k, point in enumerate(points):
        target[k] = route.target[at]
        if np.allclose(point, route.waypoints[at]):
            at = min(at + 1, len(route.waypoints) - 1)
            via[k] = not np.allclose(point, course.targets[target[k]])
    arrivals = np.where(via, max(course.epsilon, VIA_ARRIVAL), course.epsilon)
    return points, target, arrivals, via
