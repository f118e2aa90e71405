"""Simulates the gecko on a course: the gait pattern generator in a closed loop.

    result = simulate(Simulation(epsilon=0.10))
    result.metrics["half_cycles"], result.metrics["targets_reached"]

A course is a list of targets, which may lie behind obstacles; the last one may have a
heading. Once per half cycle the generator reads the position and the heading of the
robot and chooses the gait's parameters (q1, q2). Then the engine walks that half cycle:
:class:`PoseStep` by one pose step, :class:`Drake` with the robot of many joints and
switched suction feet. Source: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87
(2020), Algorithm 1 and Fig. 12.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

import numpy as np
import xarray as xr

from drakebots.core.checks import finite, in_unit, one_of, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Verdict
from drakebots.core.stages import timed
from drakebots.model import given
from drakebots.results import Result
from drakebots.robots.gecko.engines import (
    Drake,
    Engine,
    PoseStep,
    run_drake,
    run_poses,
)
from drakebots.robots.gecko.generator import (
    Blocked,
    GaitPatternGenerator,
    GeneratorOptions,
    LeastTime,
    MotionPolynomial,
    PathGenerator,
    PoseStepMotion,
    Published,
    Route,
    Rule,
    check_point,
    check_targets,
    half_width,
    plan_approach,
    plan_cubic,
    plan_route,
    wrapped,
)
from drakebots.robots.gecko.model import (
    MODEL,
    Bends,
    Gecko,
    Pose,
    gecko,
    parameters,
    pose_at,
)
from drakebots.robots.gecko.plan import Problem, simulated_motion

MOTIONS = {
    "table 3": "the paper's polynomial, fitted to its robot",
    "fit": "a polynomial fitted to the simulated velocity space",
    "pose step": "the pose step itself, from the present pose",
}
"""Motion models of the generator."""

START_ANGLES = tuple(np.radians([30.0, 0.0, -30.0, 30.0, 0.0]).tolist())
"""Angles of the limbs at the start of Fig. 12 [rad]."""

RESOLUTION = 0.2
"""Smallest epsilon, in lengths of a leg. It is 1.8 cm for the small robot, whose front
end swings by as much to either side of a straight gait. With a smaller one the robot
would pass targets by."""

VIA_SPACING, VIA_ARRIVAL = 0.05, 0.10
"""Spacing of the points along a path around obstacles, and the distance at which they
count as reached [m]."""


# --- the problem ---------------------------------------------------------------


def paper_course() -> tuple[tuple[float, float], ...]:
    """The targets of Fig. 12 [m]; the robot starts at (0, 0) with heading pi/2."""
    return tuple(map(tuple, parameters().array("course").tolist()))


@checked()
class Simulation:
    """A course, how the generator decides, and how it is simulated."""

    targets: Annotated[tuple[tuple[float, float], ...], in_unit("m")] = field(
        default_factory=paper_course
    )
    """Targets of the torso's front end, in their order (k, 2)."""
    obstacles: Annotated[tuple[tuple[tuple[float, float], ...], ...], in_unit("m")] = ()
    """Polygons to walk around, each (m, 2)."""
    epsilon: Annotated[float, positive("m")] = given(MODEL, "arrival")
    """Distance below which a target counts as reached."""
    final_heading: Annotated[float | None, finite("rad")] = None
    """Desired heading at the target, None for any. With a heading there must be only
    one target."""
    start: Annotated[tuple[float, float], in_unit("m")] = (0.0, 0.0)
    """Position of the torso's front end at the start (2,)."""
    heading: Annotated[float, finite("rad")] = np.pi / 2
    """Heading at the start."""
    motion: Annotated[str, one_of("motion model", MOTIONS)] = "fit"
    """Motion model of the generator; "pose step" with the published rule."""
    rule: Rule = field(default_factory=LeastTime)
    """Rule of the generator, LeastTime or Published (Algorithm 1), with options, as
    Published:patience=0."""
    size: str = "small"
    """Name of the robot's size, "small" or "large"."""
    weights: str = "velocity_space"
    """Name of the pose step's weights, "velocity_space" or "single_cycle"."""
    bends: Bends = Gecko.bends
    """How far each actuator bends its limb, as a share of what its calibration says
    (6,): FL, FR, torso to the left, torso to the right, RL, RR."""
    engine: Engine = field(default_factory=PoseStep)
    """Engine of the simulation: PoseStep for quasi-static poses, or Drake, with
    options, as Drake:incline=84deg."""
    half_cycles: Annotated[int, whole(1)] = 400
    """Largest number of half cycles."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time; what was reached is kept."""

    def __post_init__(self):
        check_point(self.start, "start")
        check_targets(self.targets)
        finest = RESOLUTION * self.robot.leg
        if self.epsilon < finest:
            raise InvalidInput(
                f"epsilon {100 * self.epsilon:.3g} cm is finer than the gait: the "
                "front end swings to either side by about "
                f"{100 * finest:.2g} cm, and would pass targets by; use that or more"
            )
        if self.final_heading is not None and len(self.targets) != 1:
            raise InvalidInput(
                "a final heading needs one target; leave the heading out or the "
                f"others ({len(self.targets)} targets)"
            )
        if self.motion == "pose step":
            if self.final_heading is not None:
                raise InvalidInput(
                    "a final heading needs a polynomial as motion model; use "
                    "'table 3' or 'fit'"
                )
            if isinstance(self.engine, Drake):
                raise InvalidInput(
                    "the pose step as motion model needs the whole pose, which Drake's "
                    "camera does not see; use 'table 3' or 'fit', or the engine "
                    "PoseStep"
                )

    @property
    def robot(self) -> Gecko:
        """The robot that walks."""
        return gecko(self.size, self.weights, self.bends)

    def start_pose(self) -> Pose:
        """The first pose, with the angles of Fig. 12."""
        return pose_at(self.robot, START_ANGLES, self.heading, self.start)


# --- the generator -------------------------------------------------------------


@dataclass
class Course:
    """The generator of a course, and the path it follows.

    Attributes:
        generator: chooses the gaits.
        waypoints: points to walk to (k, 2) [m]: the targets, and points of the path
            around obstacles.
        target: index of the target to which each waypoint leads (k,).
        motion: motion model that must observe every pose, if it is the pose step.
        path: points of the path to a final heading (n, 2) [m], if there is one.
    """

    generator: GaitPatternGenerator | PathGenerator
    waypoints: np.ndarray
    target: np.ndarray
    motion: PoseStepMotion | None = None
    path: np.ndarray | None = None

    def targets_reached(self) -> int:
        """Number of targets that have been reached so far."""
        if isinstance(self.generator, PathGenerator):
            return int(self.generator.reached)
        passed = self.generator.index
        if passed >= len(self.waypoints):
            return int(self.target[-1]) + 1
        return int(self.target[passed])


def prepare(problem: Simulation) -> Course:
    """Plans the path and builds the generator.

    Raises:
        InvalidInput: for a start or a target inside an obstacle.
        NoSolution: when obstacles block the path.
    """
    motion, rule, observer = MotionPolynomial.table_3(), problem.rule, None
    if problem.motion == "fit":
        own = {"size": problem.size, "weights": problem.weights, "bends": problem.bends}
        # Of order 2, one target in 1,000 took 2.8 times the best known.
        space = Problem(order=3, pressure=problem.engine.limited, **own)
        motion = simulated_motion(space)
    elif problem.motion == "pose step":
        motion = observer = PoseStepMotion(problem.robot, problem.start_pose())
        if not isinstance(rule, Published):
            rule = Published(patience=rule.patience)
    options = GeneratorOptions(problem.epsilon, motion, rule)
    if problem.final_heading is not None:
        return _to_a_heading(problem, options)
    waypoints, target = np.array(problem.targets), np.arange(len(problem.targets))
    via = np.zeros(len(target), bool)
    if problem.obstacles:
        # Close together: if there were points at the corners only, the robot would cut
        # them, and circle about those it missed.
        waypoints, target, via = _route(problem).along(VIA_SPACING)
    arrivals = np.where(via, max(problem.epsilon, VIA_ARRIVAL), problem.epsilon)
    generator = GaitPatternGenerator(waypoints, options, arrivals, via)
    return Course(generator, waypoints, target, motion=observer)


def _to_a_heading(problem: Simulation, options: GeneratorOptions) -> Course:
    """A path to the final heading; around obstacles, a route leads to it."""
    ends = problem.targets[0], problem.final_heading
    approach, blocked, lead = None, None, np.zeros((0, 2))
    if problem.obstacles:
        blocked = Blocked(problem.obstacles, half_width(problem.robot))
        path, lead = plan_approach(_route(problem), problem.heading, ends[1], blocked)
        if len(lead):
            near = np.full(len(lead), max(problem.epsilon, VIA_ARRIVAL))
            passed = np.ones(len(lead), bool)
            approach = GaitPatternGenerator(lead, options, near, passed)
    else:
        path = plan_cubic(problem.start, problem.heading, *ends)
    generator = PathGenerator(path, options, blocked, approach)
    points = np.vstack([[problem.start], lead, path.sample(0.01)[0]])
    return Course(generator, path.end[None], np.zeros(1, int), path=points)


def _route(problem: Simulation) -> Route:
    """The shortest path around the obstacles."""
    course = problem.start, problem.targets, problem.obstacles
    return plan_route(*course, clearance=half_width(problem.robot))


# --- the simulation ------------------------------------------------------------


@timed("load")
def simulate(
    problem: Simulation = Simulation(), *, progress: Progress | None = None
) -> Result:
    """Simulates a course; what was reached is returned even when it is cut short.

    Args:
        problem: course and engine.
        progress: called after every half cycle, or with the time reached in Drake.

    Returns:
        A result of kind "gecko.simulation".

    Raises:
        InvalidInput: for a course that cannot be walked.
        NoSolution: when obstacles block the path.
    """
    course = prepare(problem)
    run = run_drake
    if isinstance(problem.engine, PoseStep):
        observe = None if course.motion is None else course.motion.observe
        run = partial(run_poses, observe=observe)
    result = run(problem, course.generator, progress=progress)
    data = with_course(result.data, problem, course)
    verdict, message = result.verdict, result.message
    generator = course.generator
    # A generator that gives up on the final heading ends without an error.
    gave_up = isinstance(generator, PathGenerator) and not generator.reached
    if gave_up and verdict is Verdict.SUCCESS:
        verdict, error = Verdict.FAILED, generator.final
        message = (
            f"the end was missed by {100 * error.distance:.1f} cm and "
            f"{np.degrees(error.heading):.0f} deg in {generator.attempt + 1} attempts; "
            "try another heading"
        )
    return replace(
        result,
        verdict=verdict,
        message=message,
        data=data,
        metrics={**result.metrics, **_metrics(problem, course, data)},
    )


# --- the results ---------------------------------------------------------------


def with_course(data: xr.Dataset, problem, course: Course | None) -> xr.Dataset:
    """The dataset with targets, obstacles, and waypoints and path of the course, if
    there is one."""

    def points(name: str, rows) -> None:
        data[name] = ((f"{name}_number", "axis"), np.array(rows, float), {"units": "m"})

    points("target", problem.targets)
    if problem.obstacles:
        if course is not None and course.path is None:
            points("waypoint", course.waypoints)
        owner = [k for k, polygon in enumerate(problem.obstacles) for _ in polygon]
        points("obstacle", [p for polygon in problem.obstacles for p in polygon])
        data["obstacle_index"] = ("obstacle_number", np.array(owner), {"units": "1"})
    if course is not None and course.path is not None:
        points("path", course.path)
    return data


def _metrics(problem, course: Course, data: xr.Dataset) -> dict:
    """Metrics of the course, in cm and deg, as their names say."""
    front = data.marker_position.sel(marker="front").values
    left = float(np.linalg.norm(front[-1] - np.array(problem.targets[-1])))
    length = float(np.linalg.norm(np.diff(front, axis=0), axis=1).sum())
    metrics = {
        "engine": type(problem.engine).__name__,
        "targets_reached": course.targets_reached(),
        "targets": len(problem.targets),
        "final_distance_cm": 100 * left,
        "path_cm": 100 * length,
        "epsilon_cm": 100 * problem.epsilon,
    }
    if problem.final_heading is not None:
        error = float(data.heading[-1]) - problem.final_heading
        metrics["final_heading_error_deg"] = float(np.degrees(wrapped(error)))
    return metrics
