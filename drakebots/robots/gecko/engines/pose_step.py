"""The pose step, the quasi-static engine: the gecko's next pose from its last one.

    step = pose_step(robot, pose, gait_law(q1, q2), fixation(q1))
    motion = cycle_motion(robot, q1, q2)      # rotation, forward, left per cycle

Given reference angles, the fixed feet and the last pose, the next pose minimises

    f_l |ell - ell_n| + f_o sqrt(sum_fixed (phi_i - phi_i,last)^2)
      + f_a |alpha - alpha_ref|

subject to fixed feet keeping their positions, 0.9 ell_n <= ell <= 1.1 ell_n and
|alpha - alpha_ref| <= 100 deg. The terms are norms, in cm and deg.

Source: Schiller, Seibel, Schlattmann, RA-L 5:1199 (2020).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import xarray as xr

from drakebots.core.checks import array, check_value, flag, whole
from drakebots.core.convert import as_yaml
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Stop, Verdict, failed, run_steps
from drakebots.core.stages import spent, stage
from drakebots.model import plane_rotation
from drakebots.results import Result, provenance
from drakebots.robots.gecko.engines.engine import (
    MET_AT_THE_START,
    Asked,
    Decision,
    Engine,
    Generator,
    PhaseTimes,
    check_gait,
    motion_dataset,
)
from drakebots.robots.gecko.engines.pose_solver import solve
from drakebots.robots.gecko.model import (
    MODEL,
    Gecko,
    Pose,
    fixation,
    parameters,
    pose_at,
)

CM = 1e-2
DEG = np.pi / 180

FEASIBLE = 1e-9
"""Largest displacement of a fixed foot in a solution [m]."""

SHARES = 8
"""Number of steps in which a reference is moved when one step left the bounds."""

CLOSE_IN = 2 * DEG
"""Step by which a violated bound of the angles is moved inwards [rad]."""

TOLERANCE = 1e-9
"""Tolerance of the bounds, for rounding [rad] or [cm]."""

STATIONARY = 1e-6
"""Largest gradient of the Lagrangian, as a share of the largest weight."""

_REAR_TURN = np.array([0.0, 0.0, np.pi, np.pi])
"""Foot headings phi at x = 0, the constant part of the objective's rows."""


MOST_ITERATIONS = 300
"""Limit of Newton's iterations in each solve."""


@dataclass(frozen=True)
class Step:
    """The next pose and the quality of the solution.

    Attributes:
        pose: the next pose.
        objective: sum of the three weighted norms, in the authors' units.
        turn: norm of the fixed feet's rotation [rad].
        bend: norm of the angles' distance from the reference [rad].
        stationarity: largest gradient of the smoothed Lagrangian, as a share
            of the largest weight.
        drift: largest displacement of a fixed foot [m].
    """

    pose: Pose
    objective: float
    turn: float
    bend: float
    stationarity: float
    drift: float


def pose_step(robot: Gecko, pose: Pose, alpha_ref, fixation) -> Step:
    """The next pose.

    Args:
        robot: lengths and weights.
        pose: the last pose.
        alpha_ref: reference angles (5,) [rad].
        fixation: mask of the fixed feet among FL, FR, RL, RR (4,).

    Raises:
        InvalidInput: for numbers that are not finite, no fixed foot, or lengths
            that the robot cannot have.
        NoSolution: when no pose that keeps feet and bounds was found.
    """
    alpha_ref, fixed = _checked(robot, pose, alpha_ref, fixation)
    posed = optimum(robot, pose, alpha_ref, fixed)
    x, count, stationarity, drift = _within_bounds(*posed)
    if not _solved(stationarity, drift):
        raise NoSolution(
            f"no pose was found in {count} iterations that keeps the fixed feet "
            f"in place, lengths within {robot.stretch:.0%} and angles within "
            f"{robot.bend / DEG:.0f} deg of the reference; free a foot or change less",
            {"drift [m]": drift * CM, "stationarity": stationarity},
        )
    found = Pose(x[:5], x[5:10] * CM, x[10], pose.position + x[11:] * CM)
    w, stretch = robot.weights, float(np.linalg.norm(found.ell - robot.lengths))
    turned = (found.foot_headings - pose.foot_headings)[fixed]
    bend = float(np.linalg.norm(found.alpha - alpha_ref))
    turn = float(np.linalg.norm(turned))
    objective = w.length * stretch / CM + w.orientation * turn / DEG
    objective += w.angle * bend / DEG
    return Step(found, objective, turn, bend, float(stationarity), float(drift * CM))


def optimum(robot: Gecko, pose: Pose, alpha_ref: np.ndarray, fixed: np.ndarray):
    """What :func:`pose_solver.solve` finds the optimum of; p1 is relative to the last.

    Returns:
        start (13,); lo and hi (10,), target (14,), weights (3,); fixed and anchors.
    """
    w = robot.weights
    weights = np.array([w.length, w.orientation / DEG, w.angle / DEG])
    lengths = robot.lengths / CM
    lo = np.concatenate([alpha_ref - robot.bend, (1 - robot.stretch) * lengths])
    hi = np.concatenate([alpha_ref + robot.bend, (1 + robot.stretch) * lengths])
    start = np.concatenate([pose.alpha, pose.ell / CM, [pose.heading], [0.0, 0.0]])
    # Coordinates relative to p1: far from the origin digits would be lost.
    headings = np.where(fixed, pose.foot_headings - _REAR_TURN, 0.0)
    wanted = weights[0] * lengths, weights[1] * headings, weights[2] * alpha_ref
    feet = fixed, (pose.feet - pose.position) / CM
    return start, lo, hi, np.concatenate(wanted), weights, feet


def _within_bounds(start, lo, hi, target, weights, feet):
    """Solves, first with bounds widened to include the start.

    A gait moves the torso's reference by more than the 100 degrees that the bounds
    allow, so the start may lie outside. In nearly every gait the optimum with wide
    bounds also satisfies the true ones. Otherwise Newton's method went to another
    branch of the feet's manifold, or a bound is active: then the reference is moved
    in small steps, and at last the bounds are tightened in small steps.
    """
    iterations, reference = 0, target[9:] / weights[2]

    def solved(x, lower, upper, target):
        nonlocal iterations
        x, edge = x.copy(), _edge(lower, upper)
        x[:10] = np.clip(x[:10], lower + edge, upper - edge)
        x, (n, stationarity, drift) = solve(
            x, target, weights, *feet, lower, upper, MOST_ITERATIONS
        )
        iterations += n
        return x, stationarity, drift

    for shares in (1, SHARES):
        x = start
        for share in np.arange(1, shares + 1) / shares:
            here = target.copy()
            here[9:] += weights[2] * (share - 1) * (reference - start[:5])
            # Bounds of the angles wide enough to include x.
            edge, lower, upper = _edge(lo, hi), lo.copy(), hi.copy()
            lower[:5] = np.minimum(lo, x[:10] - 2 * edge)[:5]
            upper[:5] = np.maximum(hi, x[:10] + 2 * edge)[:5]
            x, stationarity, drift = solved(x, lower, upper, here)
            if not _solved(stationarity, drift):
                break
        if _solved(stationarity, drift) and _inside(x, lo, hi):
            return x, iterations, stationarity, drift
    while _solved(stationarity, drift) and not _inside(x, lo, hi):
        lower = np.where(x[:10] < lo, np.minimum(lo, x[:10] + CLOSE_IN), lo)
        upper = np.where(x[:10] > hi, np.maximum(hi, x[:10] - CLOSE_IN), hi)
        x, stationarity, drift = solved(x, lower, upper, target)
    return x, iterations, stationarity, drift


def _edge(lo, hi) -> np.ndarray:
    """Distance from the bounds at which Newton's method starts."""
    return 1e-3 * (hi - lo)


def _inside(x, lo, hi) -> bool:
    return (x[:10] > lo - TOLERANCE).all() and (x[:10] < hi + TOLERANCE).all()


def _solved(stationarity: float, drift: float) -> bool:
    return stationarity <= STATIONARY and drift * CM <= FEASIBLE


def _checked(robot, pose, alpha_ref, fixation):
    alpha_ref = check_value("alpha_ref", alpha_ref, array((5,), "rad"))
    fixed = check_value("fixation", fixation, array((4,), of=bool))
    if not fixed.any():
        raise InvalidInput(
            "all feet are free: the robot's position is then undefined; fix at least "
            "one foot"
        )
    ratio = pose.ell / robot.lengths
    if (abs(ratio - 1) > robot.stretch * (1 + 1e-6)).any():
        raise InvalidInput(
            "pose: lengths are outside what the robot can stretch: ratios "
            f"{np.round(ratio, 3)}, allowed 1 +- {robot.stretch:g}"
        )
    return alpha_ref, fixed


# --- gaits ---------------------------------------------------------------------
#
# A gait of constant (q1, q2) starts in its own extreme pose alpha(-q1, q2) and repeats
# half cycles. In the first cycle the feet still have the orientations of that
# unconstrained pose; the motion per cycle converges by a factor of some 15 a cycle.


def half_cycle(
    robot: Gecko, pose: Pose, q1: float, q2: float, limited: bool = False
) -> Step:
    """The pose step to the gait law's pose of q1, signed, [rad] and q2.

    Limited references are those that the pressure can reach.
    """
    reference = robot.bent(robot.reference(q1, q2, limited))
    return pose_step(robot, pose, reference, fixation(q1))


def references(robot: Gecko, q1: float, q2: float, limited: bool = False) -> np.ndarray:
    """Angles (2, 5) [rad] to which a gait bends free limbs, by the sign of q1: +, -.

    Raises:
        InvalidInput: for q1 or q2 out of range.
    """
    q1, q2 = check_gait(q1, q2)
    return robot.bent(robot.reference(np.array([q1, -q1]), q2, limited))


def follow(robot: Gecko, angles, half_cycles: int, start: Pose | None = None):
    """Poses (half_cycles + 1) of a gait by its `references`, or by any other angles
    (2, 5) [rad]; begun from a start, or the second angles at the origin.

    Raises:
        NoSolution: when a pose step fails.
    """
    poses = [pose_at(robot, angles[1]) if start is None else start]
    for k in range(half_cycles):
        held = fixation(-1 if k % 2 else 1)
        poses.append(pose_step(robot, poses[-1], angles[k % 2], held).pose)
    return poses


def walk(
    robot: Gecko,
    q1: float,
    q2: float,
    half_cycles: int,
    *,
    start: Pose | None = None,
    limited: bool = False,
) -> list[Pose]:
    """Poses of a gait (half_cycles + 1), beginning with the start.

    Args:
        robot: lengths and weights.
        q1: step length [rad]; the first half cycle goes to +q1.
        q2: steering.
        half_cycles: number of half cycles.
        start: first pose; by default alpha(-q1, q2) at the origin.
        limited: whether the pressure limits the references.

    Raises:
        InvalidInput: for q1 or q2 out of range.
        NoSolution: when a pose step fails.
    """
    return follow(robot, references(robot, q1, q2, limited), half_cycles, start)


@dataclass(frozen=True)
class CycleMotion:
    """Motion of one cycle, in the body frame at its start.

    Attributes:
        rotation: change of the heading [rad].
        forward, left: displacement of the torso's front end [m].
        poses: poses at the start, the middle and the end of the cycle.
    """

    rotation: float
    forward: float
    left: float
    poses: tuple[Pose, Pose, Pose]

    @staticmethod
    def last(poses: list[Pose]) -> CycleMotion:
        """That of the last cycle of poses after half cycles."""
        rotation, moved = relative_motion(poses[-3], poses[-1])
        return CycleMotion(float(rotation), *map(float, moved), tuple(poses[-3:]))


def relative_motion(a: Pose, b: Pose) -> tuple[float, np.ndarray]:
    """Rotation [rad] and displacement (2,) [m] from a to b in a's frame."""
    moved = plane_rotation(-a.heading) @ (b.position - a.position)
    return b.heading - a.heading, moved


def cycle_motion(
    robot: Gecko, q1: float, q2: float, *, settle: int = 4, limited: bool = False
) -> CycleMotion:
    """Motion of the cycle that follows `settle` others; see also :func:`walk`."""
    settle = check_value("settle", settle, whole(0))
    return CycleMotion.last(walk(robot, q1, q2, 2 * settle + 2, limited=limited))


# --- the engine ----------------------------------------------------------------


@checked("engine PoseStep")
class PoseStep(Engine):
    """Quasi-static poses, one for each half cycle."""

    pressure: Annotated[bool, flag()] = False
    """Whether references saturate where the pressure reaches 1.1 bar."""

    @property
    def limited(self) -> bool:
        """Whether the pressure limits the limbs' angles."""
        return self.pressure


def run_poses(
    problem: Asked,
    generator: Generator,
    *,
    observe: Callable[[Pose, int], None] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Walks by poses; what it takes and returns is as of :func:`run_drake`.

    `observe` is called with the pose before each half cycle, and the sign of its q1.
    """
    robot, start, most = problem.robot, problem.start_pose(), problem.half_cycles
    decisions: list[Decision] = []
    steps: list[Step] = []

    def next_half_cycle(number: int) -> Stop | None:
        pose, sign = steps[-1].pose if steps else start, 1 if number % 2 else -1
        if observe is not None:
            observe(pose, sign)
        with stage("decide"):
            decision = generator.decide(pose.position, pose.heading)
        if decision is None:
            done = f"done after {len(steps)} half cycles" if steps else MET_AT_THE_START
            return Stop(Verdict.SUCCESS, done)
        if number > most:
            return failed(
                f"target {decision.target} was not reached in {most} half cycles"
                f" ({100 * decision.d0:.1f} cm left); try a larger epsilon"
            )
        gait = sign * decision.q1, decision.q2
        steps.append(half_cycle(robot, pose, *gait, problem.engine.limited))
        decisions.append(decision)
        return None

    how = {"progress": progress, "time_limit": problem.time_limit}
    # The last one only finds out whether the robot has arrived.
    end = run_steps(next_half_cycle, most + 1, stage="half cycles", **how)
    worst = {
        "drift of a fixed foot [m]": max([s.drift for s in steps] or [0.0]),
        "stationarity": max([s.stationarity for s in steps] or [0.0]),
    }
    return Result(
        kind="gecko.simulation",
        model=MODEL,
        verdict=end.verdict,
        message=end.message,
        data=poses_dataset(robot, start, steps, decisions),
        residuals=worst,
        timings=spent(),
        metrics={"half_cycles": len(steps)},
        provenance=provenance(parameters().path, as_yaml(problem)),
    )


def poses_dataset(robot: Gecko, start: Pose, steps, decisions) -> xr.Dataset:
    """Poses after each half cycle; row 0 is the pose at the start.

    The time is nominal: half cycles times their duration.
    """
    poses = [start, *(step.pose for step in steps)]
    signs = (-1.0) ** np.arange(len(steps))
    q1 = signs * [d.q1 for d in decisions]
    q2 = np.array([d.q2 for d in decisions])
    reference = robot.reference(q1, q2)
    fixed = np.array([np.ones(4), *map(fixation, signs)], float)

    def stacked(name: str) -> np.ndarray:
        return np.array([getattr(pose, name) for pose in poses])

    feet, number = stacked("feet"), np.arange(len(poses), dtype=float)
    moved = np.diff(feet, axis=0, prepend=feet[:1])
    drift = np.linalg.norm(moved, axis=2) * fixed
    by_time, by_limb, by_foot = ("time",), ("time", "limb"), ("time", "foot")
    variables = {
        "marker_position": (("time", "marker", "axis"), stacked("markers"), "m"),
        "heading": (by_time, stacked("heading"), "rad"),
        "alpha": (by_limb, stacked("alpha"), "rad"),
        "alpha_ref": (by_limb, np.vstack([start.alpha[None], reference]), "rad"),
        "ell": (by_limb, stacked("ell"), "m"),
        "fixation": (by_foot, fixed, "1"),
        "foot_drift": (by_foot, drift, "m"),
        "q1": (by_time, np.array([start.alpha[2], *q1]), "rad"),
        "q2": (by_time, np.array([0.0, *q2]), "1"),
        "horizon": (by_time, np.array([0.0, *(d.n for d in decisions)]), "1"),
        "half_cycle": (by_time, number, "1"),
        "objective": (by_time, np.array([0.0, *(s.objective for s in steps)]), "1"),
    }
    times = PhaseTimes().half_cycle * number
    return motion_dataset({"time": (by_time, times, "s")}, variables)
