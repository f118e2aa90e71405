"""Simulates the gecko on a course: the gait pattern generator in a closed loop.

    result = simulate(GeckoSimulation(epsilon=0.10))
    result.metrics["half_cycles"], result.metrics["targets_reached"]

A course is a list of targets, which may lie behind obstacles; the last one may have a
heading. Once per half cycle the generator reads the position and the heading of the
robot and chooses the gait's parameters (q1, q2). Then the engine walks that half cycle:
"pose" by one pose step, "drake" with the robot of many joints and switched suction
feet. Source: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), Algorithm 1
and Fig. 12.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise

import numpy as np
import xarray as xr

from drakebots.core.checks import check, finite, flag, one_of, optional, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress, Stop, Verdict, failed, run_steps
from drakebots.core.stages import spent, stage, timed
from drakebots.results import Result, provenance
from drakebots.robots.gecko.drake import (
    DrakeWalk,
    motion_dataset,
    simulate_walk,
)
from drakebots.robots.gecko.generator import (
    RULES,
    SUMS,
    Blocked,
    Decision,
    GaitPatternGenerator,
    GeneratorOptions,
    MotionPolynomial,
    PathGenerator,
    PathOptions,
    PoseStepMotion,
    VelocitySpace,
    check_point,
    check_targets,
    half_cycle_time,
    half_width,
    plan_approach,
    plan_cubic,
    plan_route,
    simulated_motion,
)
from drakebots.robots.gecko.model import (
    MODEL,
    Gecko,
    Pose,
    fixation,
    gait_law,
    gecko,
    parameters,
    pose_at,
    saturate,
)
from drakebots.robots.gecko.pose_step import Step, half_cycle

ENGINES = ("drake", "pose")
"""pose: quasi-static poses; drake: the robot of many joints, in time."""

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


@dataclass(frozen=True)
class GeckoSimulation:
    """A course, how the generator decides, and how it is simulated.

    Attributes:
        targets: targets of the torso's front end, in their order (k, 2) [m].
        obstacles: polygons to walk around, each (m, 2) [m].
        epsilon: distance below which a target counts as reached [m].
        final_heading: desired heading at the target [rad], None for any. With a
            heading there must be only one target.
        start: position of the torso's front end at the start (2,) [m].
        heading: heading at the start [rad].
        motion: motion model of the generator; see MOTIONS.
        rule: how the generator chooses, "least time" or "published" (Algorithm 1);
            with the motion model "pose step" it is always the latter.
        sum: how the published rule reads eq. (19), "corrected" or "paper".
        horizon: largest number of cycles that the published rule looks ahead.
        patience: number of half cycles without progress after which the robot leaves
            its circle; 0 for never, as published.
        size: name of the robot's size, "small" or "large".
        weights: name of the pose step's weights, "velocity_space" or "single_cycle".
        engine: engine of the simulation, "pose" or "drake".
        half_cycles: largest number of half cycles.
        pressure: whether the pressure limits the limbs. With the engine "pose" the
            references then saturate at 1.1 bar; with "drake" the whole low-level
            control of Fig. 11B is simulated. None: with "drake" only.
        reproduction: whether the Drake robot follows the pose step: its limbs stay
            arcs, its cups have the weights of the pose step, and there is no pressure
            control.
        time_limit: limit of the wall time [s]; what was reached is kept.
    """

    targets: tuple[tuple[float, float], ...] = field(default_factory=paper_course)
    obstacles: tuple[tuple[tuple[float, float], ...], ...] = ()
    epsilon: float = field(default_factory=lambda: parameters().number("arrival"))
    final_heading: float | None = None
    start: tuple[float, float] = (0.0, 0.0)
    heading: float = np.pi / 2
    motion: str = "fit"
    rule: str = "least time"
    sum: str = "corrected"
    horizon: int = field(default_factory=lambda: int(parameters().number("horizon")))
    patience: int = 16
    size: str = "small"
    weights: str = "velocity_space"
    engine: str = "pose"
    half_cycles: int = 400
    pressure: bool | None = None
    reproduction: bool = False
    time_limit: float | None = None

    def __post_init__(self):
        check(
            self,
            "",
            motion=one_of("motion model", MOTIONS),
            epsilon=positive("m"),
            final_heading=optional(finite("rad")),
            heading=finite("rad"),
            rule=one_of("rule", RULES),
            sum=one_of("sum", SUMS),
            horizon=whole(1),
            patience=whole(0),
            engine=one_of("engine", ENGINES),
            half_cycles=whole(1),
            pressure=optional(flag()),
            reproduction=flag(),
            time_limit=optional(positive("s")),
        )
        check_point(self.start, "start")
        check_targets(self.targets)
        finest = RESOLUTION * gecko(self.size, self.weights).leg
        if self.epsilon < finest:
            raise InvalidInput(
                f"epsilon {100 * self.epsilon:.3g} cm is finer than the gait: the "
                "front end swings to either side by about "
                f"{100 * finest:.2g} cm, and would pass targets by; use that or more"
            )
        if self.final_heading is not None:
            if len(self.targets) != 1:
                raise InvalidInput(
                    "a final heading needs one target; leave the heading out or the "
                    f"others ({len(self.targets)} targets)"
                )
            if self.motion == "pose step":
                raise InvalidInput(
                    "a final heading needs a polynomial as motion model; use "
                    "'table 3' or 'fit'"
                )
        if self.engine == "drake" and self.motion == "pose step":
            raise InvalidInput(
                "the pose step as motion model needs the whole pose, which Drake's "
                "camera does not see; use 'table 3' or 'fit', or the engine 'pose'"
            )

    @property
    def limited(self) -> bool:
        """Whether the pressure limits the limbs' angles."""
        if self.pressure is None:
            return self.engine == "drake" and not self.reproduction
        return self.pressure

    @property
    def robot(self) -> Gecko:
        """The robot that walks."""
        return gecko(self.size, self.weights)

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


def prepare(problem: GeckoSimulation) -> Course:
    """Plans the path and builds the generator.

    Raises:
        InvalidInput: for a start or a target inside an obstacle.
        NoSolution: when obstacles block the path.
    """
    motion, observer = MotionPolynomial.table_3(), None
    if problem.motion == "fit":
        space = VelocitySpace(
            order=3,  # of order 2, one target in 1,000 took 2.8 times the best known
            size=problem.size,
            weights=problem.weights,
            pressure=problem.limited,
        )
        motion = simulated_motion(space)
    elif problem.motion == "pose step":
        motion = observer = PoseStepMotion(problem.robot, problem.start_pose())
    options = GeneratorOptions(
        problem.epsilon,
        problem.horizon,
        problem.sum,
        motion,
        problem.patience or None,
        "published" if observer is not None else problem.rule,
    )
    if problem.final_heading is not None:
        return _to_a_heading(problem, options)
    waypoints, target = np.array(problem.targets), np.arange(len(problem.targets))
    via = np.zeros(len(target), bool)
    if problem.obstacles:
        waypoints, target, via = _around_obstacles(problem)
    arrivals = np.where(via, max(problem.epsilon, VIA_ARRIVAL), problem.epsilon)
    generator = GaitPatternGenerator(waypoints, options, arrivals, via)
    return Course(generator, waypoints, target, motion=observer)


def _to_a_heading(problem: GeckoSimulation, options: GeneratorOptions) -> Course:
    """A path to the final heading; around obstacles, a route leads to it."""
    ends = problem.targets[0], problem.final_heading
    approach, blocked, lead = None, None, np.zeros((0, 2))
    if problem.obstacles:
        blocked = Blocked(problem.obstacles, half_width(problem.robot))
        route = plan_route(
            problem.start,
            problem.targets,
            problem.obstacles,
            clearance=blocked.clearance,
        )
        path, lead = plan_approach(route, problem.heading, ends[1], blocked)
        if len(lead):
            near = np.full(len(lead), max(problem.epsilon, VIA_ARRIVAL))
            passed = np.ones(len(lead), bool)
            approach = GaitPatternGenerator(lead, options, near, passed)
    else:
        path = plan_cubic(problem.start, problem.heading, *ends)
    generator = PathGenerator(
        path, PathOptions(generator=options, blocked=blocked), approach
    )
    points = np.vstack([[problem.start], lead, path.sample(0.01)[0]])
    return Course(generator, path.end[None], np.zeros(1, int), path=points)


def _around_obstacles(problem: GeckoSimulation):
    """Points along the shortest path around the obstacles.

    They are close together: if there were points at the corners only, the robot would
    cut them, and circle about those it missed.

    Returns:
        The points (k, 2) [m], the index of the target to which each leads (k,), and
        which of them are no targets (k,).
    """
    clearance = half_width(problem.robot)
    route = plan_route(
        problem.start, problem.targets, problem.obstacles, clearance=clearance
    )
    points = route.targets(VIA_SPACING)
    target, corner = np.empty(len(points), int), 0
    via = np.ones(len(points), bool)
    for k, point in enumerate(points):
        target[k] = route.target[corner]
        if np.allclose(point, route.waypoints[corner]):
            corner = min(corner + 1, len(route.waypoints) - 1)
            via[k] = not np.allclose(point, problem.targets[target[k]])
    return points, target, via


# --- the simulation ------------------------------------------------------------


@timed("load")
def simulate(
    problem: GeckoSimulation = GeckoSimulation(), *, progress: Progress | None = None
) -> Result:
    """Simulates a course; what was reached is returned even when it is cut short.

    Args:
        problem: course and engine.
        progress: called after every half cycle (pose) or 20 ms (drake).

    Returns:
        A result of kind "gecko.simulation".

    Raises:
        InvalidInput: for a course that cannot be walked.
        NoSolution: when obstacles block the path.
    """
    course = prepare(problem)
    engine = _in_drake if problem.engine == "drake" else _by_poses
    result = engine(problem, course, progress)
    data = _add_course(result.data, problem, course)
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
        provenance={**result.provenance, "options": asdict(problem)},
    )


def _in_drake(problem: GeckoSimulation, course: Course, progress) -> Result:
    """The walk of the engine "drake"; see :func:`simulate_walk`."""
    walk = DrakeWalk(
        robot=problem.robot,
        targets=tuple(map(tuple, course.waypoints.tolist())),
        half_cycles=problem.half_cycles,
        position=problem.start,
        heading=problem.heading,
        alpha=START_ANGLES,
        pressure=problem.limited,
        time_limit=problem.time_limit,
    )
    if problem.reproduction:
        walk = replace(walk, limb_law="arc", cups="weighted")
    return simulate_walk(walk, generator=course.generator, progress=progress)


def _by_poses(problem: GeckoSimulation, course: Course, progress) -> Result:
    """The walk of the engine "pose": one pose step per half cycle."""
    robot, most = problem.robot, problem.half_cycles
    start = problem.start_pose()
    decisions: list[Decision] = []
    steps: list[Step] = []

    def next_half_cycle(number: int) -> Stop | None:
        pose = steps[-1].pose if steps else start
        sign = 1 if number % 2 else -1
        if course.motion is not None:
            course.motion.observe(pose, sign)
        with stage("decide"):
            decision = course.generator.decide(pose.position, pose.heading)
        if decision is None:
            met = "every target was met at the start; the robot did not walk"
            done = f"done after {len(steps)} half cycles" if steps else met
            return Stop(Verdict.SUCCESS, done)
        if number > most:
            return failed(
                f"target {decision.target} was not reached in {most} half cycles "
                f"({100 * decision.d0:.1f} cm left); try a larger epsilon"
            )
        limit = saturate if problem.limited else None
        q1 = sign * decision.q1
        steps.append(half_cycle(robot, pose, q1, decision.q2, limit))
        decisions.append(decision)
        return None

    end = run_steps(
        next_half_cycle,
        most + 1,  # the last one only finds out whether the robot has arrived
        stage="half cycles",
        progress=progress,
        time_limit=problem.time_limit,
    )
    return Result(
        kind="gecko.simulation",
        model=MODEL,
        verdict=end.verdict,
        message=end.message,
        data=_pose_dataset(robot, start, steps, decisions),
        residuals={
            "drift of a fixed foot [m]": max([s.drift for s in steps] or [0.0]),
            "stationarity": max([s.stationarity for s in steps] or [0.0]),
        },
        timings=spent(),
        metrics={"half_cycles": len(steps)},
        provenance=provenance(parameters().path, asdict(problem)),
    )


# --- the results ---------------------------------------------------------------


def _pose_dataset(robot: Gecko, start: Pose, steps, decisions) -> xr.Dataset:
    """Poses after each half cycle; row 0 is the pose at the start.

    The time is nominal: half cycles times their duration.
    """
    poses = [start, *(step.pose for step in steps)]
    count = len(poses)
    signs = (-1.0) ** np.arange(len(steps))
    q1 = signs * [d.q1 for d in decisions]
    q2 = np.array([d.q2 for d in decisions])
    reference = gait_law(q1, q2, leg_bend=robot.leg_bend)
    fixed = np.array([np.ones(4), *map(fixation, signs)], float)
    drift = np.zeros((count, 4))
    for k, (a, b) in enumerate(pairwise(poses), 1):
        drift[k] = np.linalg.norm(b.feet - a.feet, axis=1) * fixed[k]

    def stacked(name: str) -> np.ndarray:
        return np.array([getattr(pose, name) for pose in poses])

    by_limb, by_foot = ("time", "limb"), ("time", "foot")
    alpha_ref = np.vstack([start.alpha[None], reference])
    objective = np.array([0.0, *(step.objective for step in steps)])
    horizon = np.array([0.0, *(d.n for d in decisions)])
    variables = {
        "marker_position": (("time", "marker", "axis"), stacked("markers"), "m"),
        "heading": (("time",), stacked("heading"), "rad"),
        "alpha": (by_limb, stacked("alpha"), "rad"),
        "alpha_ref": (by_limb, alpha_ref, "rad"),
        "ell": (by_limb, stacked("ell"), "m"),
        "fixation": (by_foot, fixed, "1"),
        "foot_drift": (by_foot, drift, "m"),
        "q1": (("time",), np.array([start.alpha[2], *q1]), "rad"),
        "q2": (("time",), np.array([0.0, *q2]), "1"),
        "horizon": (("time",), horizon, "1"),
        "half_cycle": (("time",), np.arange(count, dtype=float), "1"),
        "objective": (("time",), objective, "1"),
    }
    return motion_dataset(half_cycle_time() * np.arange(count), variables)


def _add_course(data: xr.Dataset, problem, course: Course) -> xr.Dataset:
    """The dataset with targets, waypoints, obstacles and path of the course."""

    def points(name: str, rows) -> None:
        dims = (f"{name}_number", "axis")
        data[name] = (dims, np.array(rows, float), {"units": "m"})

    points("target", problem.targets)
    if problem.obstacles:
        if course.path is None:
            points("waypoint", course.waypoints)
        owner = [k for k, polygon in enumerate(problem.obstacles) for _ in polygon]
        points("obstacle", [p for polygon in problem.obstacles for p in polygon])
        data["obstacle_index"] = ("obstacle_number", np.array(owner), {"units": "1"})
    if course.path is not None:
        points("path", course.path)
    return data


def _metrics(problem, course: Course, data: xr.Dataset) -> dict:
    """Metrics of the course, in cm and deg, as their names say."""
    front = data.marker_position.sel(marker="front").values
    left = float(np.linalg.norm(front[-1] - np.array(problem.targets[-1])))
    length = float(np.linalg.norm(np.diff(front, axis=0), axis=1).sum())
    metrics = {
        "engine": problem.engine,
        "targets_reached": course.targets_reached(),
        "targets": len(problem.targets),
        "final_distance_cm": 100 * left,
        "path_cm": 100 * length,
        "epsilon_cm": 100 * problem.epsilon,
    }
    if problem.final_heading is not None:
        error = float(data.heading[-1]) - problem.final_heading
        wrapped = np.degrees(np.angle(np.exp(1j * error)))
        metrics["final_heading_error_deg"] = float(wrapped)
    return metrics
