"""Simulate the gecko on a course, with the pose step or in Drake.

result = simulate_gecko(GeckoSimulation(epsilon=0.10))
result.metrics["half_cycles"]
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import numpy as np
import xarray as xr

from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.core.run import CtrlC, Verdict
from drakebots.model import package_root
from drakebots.results import Result, provenance
from drakebots.robots.gecko.drake import Calibration, DrakeGecko, saturate
from drakebots.robots.gecko.drake import run as run_drake
from drakebots.robots.gecko.generator import (
    START_ANGLES,
    Course,
    Decider,
    Decision,
    PathGenerator,
    PoseStepMotion,
    Walker,
    half_cycle_time,
    prepare,
)
from drakebots.robots.gecko.model import (
    FEET,
    LIMBS,
    MARKERS,
    Gecko,
    Pose,
    fixation,
    gait_law,
)
from drakebots.robots.gecko.pose_step import Saturation, Step, half_cycle

# The gecko walks to its targets: generator and pose step in a closed loop.
#
# Once per half cycle the generator sees position and heading, chooses (q1, q2),
# and the pose step takes the robot to the gait law's pose. Source: Schiller,
# Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), Algorithm 1, Fig. 12.

Progress = Callable[[float, float], None]
"""Called with the half cycles done and the most there may be."""


@dataclass
class Track:
    """What a run did so far; grows by a half cycle at a time.

    Attributes:
        poses: before the first half cycle and after each.
        decisions, steps: of each half cycle.
        signs: of q1 in each half cycle.
        verdict, message: how it ended.
        seconds: of wall time, in total and for the generator's decisions.
    """

    poses: list[Pose]
    decisions: list[Decision] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    signs: list[int] = field(default_factory=list)
    verdict: Verdict = Verdict.SUCCESS
    message: str = ""
    seconds: float = 0.0
    deciding: float = 0.0

    @property
    def fixed(self) -> np.ndarray:
        """Feet that hold, by half cycle and foot (T, 4)."""
        return np.array([fixation(s) for s in self.signs]).reshape(-1, 4)


def run_poses(
    robot: Gecko,
    generator: Decider,
    start: Pose,
    *,
    sign: int = 1,
    most: int = 400,
    saturate: Saturation | None = None,
    motion: PoseStepMotion | None = None,
    progress: Progress | None = None,
    time_limit: float | None = None,
) -> Track:
    """Runs until the generator is done; keeps what was reached if it is not.

    Args:
        robot: lengths and weights.
        generator: as it stands; it is not reset.
        start: the first pose.
        sign: of the first half cycle's q1.
        most: half cycles before giving up.
        saturate: what the pressure supply makes of the references.
        motion: the generator's motion model, to be shown every pose, if it is
            the pose step itself.
        progress: called after every half cycle.
        time_limit: of wall time [s].
    """
    track, began = Track([start]), time.perf_counter()
    try:
        with CtrlC() as stop:
            while True:
                pose = track.poses[-1]
                if motion is not None:
                    motion.observe(pose, sign)
                decision = _decide(generator, pose, track)
                late = time_limit is not None
                late = late and time.perf_counter() - began > time_limit
                if _over(track, decision, most, time_limit if late else None):
                    break
                stop.check()
                q1 = sign * decision.q1
                step = half_cycle(robot, pose, q1, decision.q2, saturate)
                track.poses.append(step.pose)
                track.steps.append(step)
                track.decisions.append(decision)
                track.signs.append(sign)
                sign = -sign
                if progress is not None:
                    progress(len(track.steps), most)
    except KeyboardInterrupt:
        track.verdict = Verdict.INTERRUPTED
        track.message = "interrupted; what was reached is kept"
    except NoSolution as error:
        track.verdict, track.message = Verdict.FAILED, str(error)
    track.seconds = time.perf_counter() - began
    return track


def _decide(generator: Decider, pose: Pose, track: Track) -> Decision | None:
    clock = time.perf_counter()
    decision = generator.decide(pose.position, pose.heading)
    track.deciding += time.perf_counter() - clock
    return decision


def _over(track: Track, decision, most: int, limit: float | None) -> bool:
    """Notes in the track how the run ended, if it did."""
    done = len(track.steps)
    if decision is None:
        track.message = f"done after {done} half cycles"
    elif done >= most:
        track.verdict = Verdict.FAILED
        track.message = (
            f"target {decision.target} was not reached in {most} half cycles "
            f"({100 * decision.d0:.1f} cm left); try a larger epsilon"
        )
    elif limit is not None:
        track.verdict = Verdict.TIME_LIMIT
        track.message = f"stopped at the time limit of {limit:g} s"
    else:
        return False
    return True


ENGINES = ("drake", "pose")
"""pose: quasi-static poses; drake: the robot of many joints, in time."""


@dataclass(frozen=True)
class GeckoSimulation(Course):
    """A course and how it is simulated.

    Attributes:
        engine: "pose" or "drake".
        half_cycles: give up after so many.
        pressure: whether references saturate at 1.1 bar (pose), or the whole
            low-level control of Fig. 11B is simulated (drake).
        time_limit: of wall time [s]; the best is kept.
    """

    engine: str = "pose"
    half_cycles: int = 400
    pressure: bool = False
    time_limit: float | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.engine not in ENGINES:
            raise UnknownName("engine", self.engine, ENGINES)
        if self.half_cycles < 1:
            raise InvalidInput(f"half_cycles must be >= 1, got {self.half_cycles}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise InvalidInput(f"time_limit must be > 0 s, got {self.time_limit}")
        if self.engine == "drake" and self.motion == "pose step":
            raise InvalidInput(
                "the pose step as motion model needs the whole pose, which Drake's "
                "camera does not see; use 'table 3' or 'fit', or the engine 'pose'"
            )


def simulate_gecko(
    problem: GeckoSimulation = GeckoSimulation(), *, progress: Progress | None = None
) -> Result:
    """Walks the course; what was reached is returned even when it is cut short.

    Raises:
        InvalidInput: for a course that cannot be walked.
        NoSolution: when obstacles bar the way.
    """
    walker = prepare(problem)
    if problem.engine == "drake":
        return _in_drake(problem, walker, progress)
    curve = Calibration()
    track = run_poses(
        problem.robot,
        walker.generator,
        problem.start_pose(),
        most=problem.half_cycles,
        saturate=(lambda a: saturate(a, curve)) if problem.pressure else None,
        motion=walker.motion,
        progress=progress,
        time_limit=problem.time_limit,
    )
    data = track_dataset(problem, walker, track)
    steps = len(track.steps)
    verdict, message = _judged(track.verdict, track.message, walker)
    return Result(
        kind="gecko.simulation",
        model="gecko",
        verdict=verdict,
        message=message,
        data=data,
        residuals={
            "drift of a fixed foot [m]": max([s.drift for s in track.steps] or [0.0]),
            "stationarity": max([s.stationarity for s in track.steps] or [0.0]),
        },
        timings={"simulate": track.seconds, "decide": track.deciding},
        metrics=course_metrics(problem, walker, data, steps),
        provenance=provenance(
            package_root() / "gecko" / "params.yaml", asdict(problem)
        ),
    )


def _in_drake(problem: GeckoSimulation, walker: Walker, progress) -> Result:
    drake = DrakeGecko(
        robot=problem.robot,
        targets=tuple(map(tuple, walker.waypoints.tolist())),
        half_cycles=problem.half_cycles,
        position=problem.start,
        heading=problem.heading,
        alpha=START_ANGLES,
        pressure=problem.pressure,
        time_limit=problem.time_limit,
    )
    result = run_drake(drake, generator=walker.generator, progress=progress)
    data = add_course(result.data, problem, walker)
    metrics = course_metrics(problem, walker, data, result.metrics["half_cycles"])
    verdict, message = _judged(result.verdict, result.message, walker)
    return Result(
        kind=result.kind,
        model=result.model,
        verdict=verdict,
        message=message,
        data=data,
        residuals=dict(result.residuals),
        timings=dict(result.timings),
        metrics=dict(result.metrics) | metrics,
        provenance=dict(result.provenance) | {"options": asdict(problem)},
    )


def _judged(verdict: Verdict, message: str, walker: Walker) -> tuple[Verdict, str]:
    """A generator may give up on a final heading; that is no success."""
    generator = walker.generator
    if verdict is Verdict.SUCCESS and isinstance(generator, PathGenerator):
        missed = generator.final
        if not generator.reached:
            return Verdict.FAILED, (
                f"the end was missed by {100 * missed.distance:.1f} cm and "
                f"{np.degrees(missed.heading):.0f} deg in "
                f"{generator.attempt + 1} attempts; try another heading"
            )
    return verdict, message


def course_metrics(problem, walker: Walker, data: xr.Dataset, steps: int) -> dict:
    """What the CLI reports of a course."""
    front = data.marker_position.sel(marker="front").values
    left = float(np.linalg.norm(front[-1] - np.array(problem.targets[-1])))
    metrics = {
        "engine": problem.engine,
        "targets_reached": walker.targets_reached(),
        "targets": len(problem.targets),
        "half_cycles": int(steps),
        "final_distance_cm": 100 * left,
        "way_cm": 100 * float(np.linalg.norm(np.diff(front, axis=0), axis=1).sum()),
        "epsilon_cm": 100 * problem.epsilon,
    }
    if isinstance(walker.generator, PathGenerator):
        error = float(data.heading[-1]) - problem.final_heading
        metrics["final_heading_error_deg"] = float(
            np.degrees(np.angle(np.exp(1j * error)))
        )
    return metrics


def track_dataset(problem, walker: Walker, track: Track) -> xr.Dataset:
    """A track by half cycles; row k is the pose after half cycle k.

    The time is nominal: all phases of the half cycles before.
    """
    poses, decisions = track.poses, track.decisions
    signs = np.array(track.signs, float)
    q1 = signs * [d.q1 for d in decisions]
    q2 = np.array([d.q2 for d in decisions])
    first = np.array([poses[0].alpha])
    reference = gait_law(q1, q2, leg_bend=problem.robot.leg_bend)
    drift = np.zeros((len(poses), 4))
    for k, (a, b) in enumerate(itertools.pairwise(poses)):
        drift[k + 1] = np.linalg.norm(b.feet - a.feet, axis=1) * track.fixed[k]
    fixed = np.vstack([np.ones((1, 4)), track.fixed])

    def before(value, rows):
        return np.concatenate([[value], rows])

    variables = {
        "marker_position": (
            ("time", "marker", "axis"),
            np.array([p.markers for p in poses]),
            "m",
        ),
        "heading": (("time",), np.array([p.heading for p in poses]), "rad"),
        "alpha": (("time", "limb"), np.array([p.alpha for p in poses]), "rad"),
        "alpha_ref": (("time", "limb"), np.vstack([first, reference]), "rad"),
        "ell": (("time", "limb"), np.array([p.ell for p in poses]), "m"),
        "fixation": (("time", "foot"), fixed.astype(float), "1"),
        "foot_drift": (("time", "foot"), drift, "m"),
        "q1": (("time",), before(first[0, 2], q1), "rad"),
        "q2": (("time",), before(0.0, q2), "1"),
        "horizon": (("time",), before(0.0, [float(d.n) for d in decisions]), "1"),
        "half_cycle": (("time",), np.arange(len(poses), dtype=float), "1"),
        "objective": (("time",), before(0.0, [s.objective for s in track.steps]), "1"),
    }
    data = xr.Dataset(
        {n: (dims, values, {"units": u}) for n, (dims, values, u) in variables.items()},
        {
            "time": ("time", half_cycle_time() * np.arange(len(poses)), {"units": "s"}),
            "marker": list(MARKERS),
            "axis": ["x", "y"],
            "limb": list(LIMBS),
            "foot": list(FEET),
        },
    )
    return add_course(data, problem, walker)


def add_course(data: xr.Dataset, problem, walker: Walker) -> xr.Dataset:
    """The dataset with targets, waypoints, obstacles and path of the course."""

    def points(name: str, rows) -> None:
        if len(rows):
            dims = (f"{name}_number", "axis")
            data[name] = (dims, np.array(rows, float), {"units": "m"})

    points("target", problem.targets)
    if problem.obstacles:
        points("waypoint", walker.waypoints)
        owner = [k for k, polygon in enumerate(problem.obstacles) for _ in polygon]
        points("obstacle", [p for polygon in problem.obstacles for p in polygon])
        data["obstacle_index"] = ("obstacle_number", np.array(owner), {"units": "1"})
    if walker.path is not None:
        points("path", walker.path)
    return data
