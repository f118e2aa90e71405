"""The pose step: the gecko's next pose from its last one, quasi-statically.

Given reference angles, the fixed feet and the last pose, the next pose minimises

    f_l |ell - ell_n| + f_o sqrt(sum_fixed (phi_i - phi_i,last)^2)
      + f_a |alpha - alpha_ref|

subject to fixed feet keeping their positions, 0.9 ell_n <= ell <= 1.1 ell_n and
|alpha - alpha_ref| <= 100 deg. The terms are norms, in cm and deg.

Source: Schiller, Seibel, Schlattmann, RA-L 5:1199 (2020).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.core.checks import array, check_value
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.robots.gecko.model import Gecko, Pose
from drakebots.robots.gecko.pose_step.solver import solve

CM = 1e-2
DEG = np.pi / 180

FEASIBLE = 1e-9
"""Largest displacement of a fixed foot in a solution [m]."""

SHARES = 8
"""Number of steps in which a reference is moved when one step left the bounds."""

CLOSE_IN = 2 * DEG
"""Step by which a violated bound of the angles is moved inwards [rad]."""

LOOSE = 1e-9
"""Tolerance of the bounds, for rounding [rad] or [cm]."""

STATIONARY = 1e-6
"""Largest gradient of the Lagrangian, as a share of the largest weight."""

_REAR_TURN = np.array([0.0, 0.0, np.pi, np.pi])
"""Foot headings phi at x = 0, the constant part of the objective's rows."""


@dataclass(frozen=True)
class Step:
    """The next pose and the quality of the solution.

    Attributes:
        pose: the next pose.
        objective: sum of the three weighted norms, in the authors' units.
        stretch: norm of the lengths' change [m].
        turn: norm of the fixed feet's rotation [rad].
        bend: norm of the angles' distance from the reference [rad].
        iterations: iterations of Newton's method.
        stationarity: largest gradient of the smoothed Lagrangian, as a share
            of the largest weight.
        drift: largest displacement of a fixed foot [m].
    """

    pose: Pose
    objective: float
    stretch: float
    turn: float
    bend: float
    iterations: int
    stationarity: float
    drift: float


def pose_step(
    robot: Gecko,
    pose: Pose,
    alpha_ref,
    fixation,
    *,
    max_iterations: int = 300,
) -> Step:
    """The next pose.

    Args:
        robot: lengths and weights.
        pose: the last pose.
        alpha_ref: reference angles (5,) [rad].
        fixation: which of the feet FL, FR, RL, RR are fixed (4,).
        max_iterations: limit of Newton's iterations in each solve.

    Raises:
        InvalidInput: for numbers that are not finite, no fixed foot, or lengths
            that the robot cannot have.
        NoSolution: when no pose that keeps feet and bounds was found.
    """
    alpha_ref, fixed = _checked(robot, pose, alpha_ref, fixation)
    w = robot.weights
    weights = np.array([w.length, w.orientation / DEG, w.angle / DEG])
    lengths = robot.lengths / CM
    lo = np.concatenate([alpha_ref - robot.bend, (1 - robot.stretch) * lengths])
    hi = np.concatenate([alpha_ref + robot.bend, (1 + robot.stretch) * lengths])
    start = np.concatenate([pose.alpha, pose.ell / CM, [pose.heading], [0.0, 0.0]])
    # Coordinates relative to p1: far from the origin digits would be lost.
    headings = np.where(fixed, pose.foot_headings - _REAR_TURN, 0.0)
    target = np.concatenate(
        [weights[0] * lengths, weights[1] * headings, weights[2] * alpha_ref]
    )
    anchors = (pose.feet - pose.position) / CM
    x, iterations, stationarity, drift = _within_bounds(
        start, lo, hi, target, weights, fixed, anchors, max_iterations
    )
    found = Pose(x[:5], x[5:10] * CM, x[10], pose.position + x[11:] * CM)
    stretch = float(np.linalg.norm(found.ell - robot.lengths))
    turned = (found.foot_headings - pose.foot_headings)[fixed]
    bend = float(np.linalg.norm(found.alpha - alpha_ref))
    turn = float(np.linalg.norm(turned))
    if not _solved(stationarity, drift):
        raise NoSolution(
            f"no pose was found in {iterations} iterations that keeps the fixed feet "
            f"in place, lengths within {robot.stretch:.0%} and angles within "
            f"{robot.bend / DEG:.0f} deg of the reference; free a foot or change less",
            {"drift [m]": drift * CM, "stationarity": stationarity},
        )
    return Step(
        pose=found,
        objective=w.length * stretch / CM
        + w.orientation * turn / DEG
        + w.angle * bend / DEG,
        stretch=stretch,
        turn=turn,
        bend=bend,
        iterations=int(iterations),
        stationarity=float(stationarity),
        drift=float(drift * CM),
    )


def _within_bounds(start, lo, hi, target, weights, fixed, anchors, most):
    """Solves, first with bounds widened to include the start.

    A gait moves the torso's reference by more than the 100 degrees that the bounds
    allow, so the start may lie outside. In nearly every gait the optimum with wide
    bounds also satisfies the true ones. Otherwise Newton's method went to another
    branch of the feet's manifold, or a bound is active: then the reference is moved
    in small steps, and at last the bounds are tightened in small steps.
    """
    x, iterations = start, 0
    reference = target[9:] / weights[2]
    for shares in (1, SHARES):
        x = start
        for share in np.arange(1, shares + 1) / shares:
            here = target.copy()
            here[9:] += weights[2] * (share - 1) * (reference - start[:5])
            # Bounds of the angles wide enough to include x.
            edge, lower, upper = _edge(lo, hi), lo.copy(), hi.copy()
            lower[:5] = np.minimum(lo, x[:10] - 2 * edge)[:5]
            upper[:5] = np.maximum(hi, x[:10] + 2 * edge)[:5]
            x, n, stationarity, drift = _solve_inside(
                x, lower, upper, here, weights, fixed, anchors, most
            )
            iterations += n
            if not _solved(stationarity, drift):
                break
        if _solved(stationarity, drift) and _inside(x, lo, hi):
            return x, iterations, stationarity, drift
    while _solved(stationarity, drift) and not _inside(x, lo, hi):
        lower = np.where(x[:10] < lo, np.minimum(lo, x[:10] + CLOSE_IN), lo)
        upper = np.where(x[:10] > hi, np.maximum(hi, x[:10] - CLOSE_IN), hi)
        x, n, stationarity, drift = _solve_inside(
            x, lower, upper, target, weights, fixed, anchors, most
        )
        iterations += n
    return x, iterations, stationarity, drift


def _solve_inside(x, lower, upper, target, weights, fixed, anchors, most):
    x, edge = x.copy(), _edge(lower, upper)
    x[:10] = np.clip(x[:10], lower + edge, upper - edge)
    x, _, quality = solve(x, target, weights, fixed, anchors, lower, upper, most)
    return x, *quality


def _edge(lo, hi) -> np.ndarray:
    """Distance from the bounds at which Newton's method starts."""
    return 1e-3 * (hi - lo)


def _inside(x, lo, hi) -> bool:
    return (x[:10] > lo - LOOSE).all() and (x[:10] < hi + LOOSE).all()


def _solved(stationarity: float, drift: float) -> bool:
    return stationarity <= STATIONARY and drift * CM <= FEASIBLE


def _checked(robot, pose, alpha_ref, fixation):
    alpha_ref = check_value("alpha_ref", alpha_ref, array((5,), "rad"))
    fixed = np.array(fixation)
    if fixed.shape != (4,) or not ((fixed == 0) | (fixed == 1)).all():
        raise InvalidInput(f"fixation must be 4 of 0 or 1, got {fixation}")
    fixed = fixed.astype(bool)
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
