"""One pose of the gecko from the last: the lightweight simulation model.

Given reference angles, the feet that hold and the last pose, the next pose
minimises

    f_l |ell - ell_n| + f_o sqrt(sum_fixed (phi_i - phi_i,last)^2)
      + f_a |alpha - alpha_ref|

subject to fixed feet keeping their positions, 0.9 ell_n <= ell <= 1.1 ell_n and
|alpha - alpha_ref| <= 100 deg; norms, with cm and deg. Source: Schiller, Seibel,
Schlattmann, RA-L 5:1199 (2020).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.robots.gecko.model import Gecko, Pose
from drakebots.robots.gecko.pose_step import solver as step_solver

CM = 1e-2
DEG = np.pi / 180

FEASIBLE = 1e-9
"""A foot that holds may be off by this much [m]."""

SHARES = 8
"""In which a reference is moved when one move led outside the bounds."""

CLOSE_IN = 2 * DEG
"""By which a bound that is not kept closes in at a time."""

LOOSE = 1e-9
"""By which rounding may leave a bound [rad] or [cm]."""

STATIONARY = 1e-6
"""Largest gradient of the Lagrangian, as a share of the largest weight."""


@dataclass(frozen=True)
class Step:
    """The pose found, and how well.

    Attributes:
        pose: the next pose.
        objective: sum of the three weighted norms, in the authors' units.
        stretch, turn, bend: the norms: of the lengths' change [m], of the
            fixed feet's turn [rad], of the angles' distance from the
            reference [rad].
        iterations: of Newton's method.
        stationarity: largest gradient of the smoothed Lagrangian, as a share
            of the largest weight.
        drift: largest distance a fixed foot is off its place [m].
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
        fixation: which of the feet FL, FR, RL, RR hold (4,).

    Raises:
        InvalidInput: for numbers that are not finite, no foot that holds, or
            lengths outside what the robot can.
        NoSolution: when no pose keeps feet and bounds, or none was found.
    """
    alpha_ref, fixed = _checked(robot, pose, alpha_ref, fixation)
    weights = np.array(
        [
            robot.weights.length,
            robot.weights.orientation / DEG,
            robot.weights.angle / DEG,
        ]
    )
    lengths = robot.lengths / CM
    lo = np.concatenate([alpha_ref - robot.bend, (1 - robot.stretch) * lengths])
    hi = np.concatenate([alpha_ref + robot.bend, (1 + robot.stretch) * lengths])
    start = np.concatenate([pose.alpha, pose.ell / CM, [pose.heading], [0.0, 0.0]])
    # The world's origin is taken to p1: far from it digits would be lost.
    headings = np.where(fixed, pose.foot_headings - _zero_headings(), 0.0)
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
    w = robot.weights
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
    """Solves with bounds that begin around the start.

    A gait moves the torso's reference by more than the 100 degrees allowed
    beside it, so the start may lie outside. Where the optimum without those
    bounds keeps them, as in nearly every gait, that was all. Otherwise Newton
    went to another branch of the feet's manifold, or a bound does hold: the
    reference is then moved in small shares, and last the bounds close in.
    """
    x, iterations = start, 0
    reference = target[9:] / weights[2]
    for shares in (1, SHARES):
        x = start
        for share in np.arange(1, shares + 1) / shares:
            here = target.copy()
            here[9:] += weights[2] * (share - 1) * (reference - start[:5])
            x, n, stationarity, drift = _around(
                x, lo, hi, here, weights, fixed, anchors, most
            )
            iterations += n
            if not _solved(stationarity, drift):
                break
        if _solved(stationarity, drift) and _kept(x, lo, hi):
            return x, iterations, stationarity, drift
    while _solved(stationarity, drift) and not _kept(x, lo, hi):
        lower = np.where(x[:10] < lo, np.minimum(lo, x[:10] + CLOSE_IN), lo)
        upper = np.where(x[:10] > hi, np.maximum(hi, x[:10] - CLOSE_IN), hi)
        x, n, stationarity, drift = _solve_inside(
            x, lower, upper, target, weights, fixed, anchors, most
        )
        iterations += n
    return x, iterations, stationarity, drift


def _around(x, lo, hi, *problem):
    """Solves with bounds of the angles wide enough for x."""
    edge, lower, upper = _edge(lo, hi), lo.copy(), hi.copy()
    lower[:5] = np.minimum(lo, x[:10] - 2 * edge)[:5]
    upper[:5] = np.maximum(hi, x[:10] + 2 * edge)[:5]
    return _solve_inside(x, lower, upper, *problem)


def _solve_inside(x, lower, upper, target, weights, fixed, anchors, most):
    x, edge = x.copy(), _edge(lower, upper)
    x[:10] = np.clip(x[:10], lower + edge, upper - edge)
    x, _, (n, stationarity, drift) = step_solver.solve(
        x, target, weights, fixed, anchors, lower, upper, most
    )
    return x, n, stationarity, drift


def _edge(lo, hi) -> np.ndarray:
    """How far inside its bounds Newton's method begins."""
    return 1e-3 * (hi - lo)


def _kept(x, lo, hi) -> bool:
    return (x[:10] > lo - LOOSE).all() and (x[:10] < hi + LOOSE).all()


def _solved(stationarity: float, drift: float) -> bool:
    return stationarity <= STATIONARY and drift * CM <= FEASIBLE


def _zero_headings() -> np.ndarray:
    """phi at x = 0: the constant part that the solver's rows leave out."""
    return np.array([0.0, 0.0, np.pi, np.pi])


def _checked(robot, pose, alpha_ref, fixation):
    alpha_ref = np.array(alpha_ref, float)
    if alpha_ref.shape != (5,) or not np.isfinite(alpha_ref).all():
        raise InvalidInput(f"alpha_ref must be 5 finite angles [rad], got {alpha_ref}")
    fixed = np.array(fixation)
    if fixed.shape != (4,) or not np.isin(fixed, (0, 1)).all():
        raise InvalidInput(f"fixation must be 4 of 0 or 1, got {fixation}")
    fixed = fixed.astype(bool)
    if not fixed.any():
        raise InvalidInput(
            "all feet are free: the robot's place is then undefined; fix at least one"
        )
    ratio = pose.ell / robot.lengths
    if (abs(ratio - 1) > robot.stretch * (1 + 1e-6)).any():
        raise InvalidInput(
            "pose: lengths are outside what the robot can stretch: ratios "
            f"{np.round(ratio, 3)}, allowed 1 +- {robot.stretch:g}"
        )
    return alpha_ref, fixed
