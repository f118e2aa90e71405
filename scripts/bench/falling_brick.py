"""Convergence of the variational steps, in flight and through impacts.

python scripts/bench/falling_brick.py                  # some five minutes
python scripts/bench/falling_brick.py --quick          # two samples, coarse reference
python scripts/bench/falling_brick.py -o brick.png     # with a plot

Flight: a tumbling brick against Drake's equations of motion integrated to
1e-12. Drop: the accuracy study of Manchester et al. (IJRR 2019): a brick on
edge 1.5 m above the ground, moving sideways at 5 m/s, samples +-0.15 in every
coordinate, 2 s, N = 3, 5, ..., 15 knots, against hard-contact time stepping at
2 ms. The drop continues to finer steps, against the midpoint rule at 1 ms.
Errors are root mean squares over knots and samples: of the centre, and of the
eight corners, which see the orientation too.

Through impacts no rule is of second order: a corner lands within h of when it
should. Here it is worse, as the corners land one after the other and the order
decides the rest: steps of 20 ms and more merge the landings, and some samples
leave the reference for good until h is some 2 ms (time stepping at 2 ms too).
So slopes of the drop say where the error in flight ends to dominate, and the
medians over samples and `references_apart` belong to them.

JSON: samples, friction, flight, drop.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # files only

import matplotlib.pyplot as plt
import numpy as np
from measurement import Measurement
from scipy.integrate import solve_ivp
from variational_stepper import VariationalStepper

from drakebots import build_robot, load
from drakebots.cli.output import one_line_errors, print_table
from drakebots.core.files import replacing
from drakebots.multibody import TimeStepper
from drakebots.trajopt.contact_implicit import INTEGRATORS, ContactSystem

FRICTION = 0.5  # ours; that of the authors' study is not stored
DURATION = 2.0  # [s]
START = np.array([0, 0, 1.5, 0, 0, np.pi / 2])  # x y z yaw pitch roll
VELOCITY = np.array([0, 5.0, 0, 0, 0, 0])
SPREAD = 0.15
COARSE = [2, 4, 6, 8, 10, 12, 14]  # intervals: N = 3:2:15 knots
FINE = [28, 56, 112]
TUMBLING = np.array([1.0, 5.0, 4.0, 0.4, 0.9, 2.5])
FLIGHT = [10, 20, 40, 80, 160]  # intervals of 1 s


def slope(h: Sequence[float], error: Sequence[float]) -> float:
    """Of the line through log(error) over log(h)."""
    return float(np.polyfit(np.log(h), np.log(error), 1)[0])


def rms(difference: np.ndarray) -> float:
    """Root mean square length of vectors (..., 3)."""
    return float(np.sqrt((difference**2).sum(axis=-1).mean()))


def flight(system: ContactSystem) -> dict:
    """Errors of the corners after tumbling for 1 s without touching."""
    stepper = TimeStepper(system.robot, 1.0)  # for M and the forces
    n = system.nq

    def equations(_, x):
        terms = stepper.terms(x[:n], x[n:], np.zeros(0))
        return np.r_[x[n:], np.linalg.solve(terms.M, terms.tau)]

    x0 = np.r_[START, TUMBLING]
    exact = solve_ivp(equations, (0, 1), x0, "DOP853", rtol=1e-12, atol=1e-12)
    corners = system.foot_positions(exact.y[:n, -1])
    out = {"h_s": [1 / k for k in FLIGHT]}
    for integrator in INTEGRATORS:
        error = []
        for k in FLIGHT:
            one = VariationalStepper(system, 1 / k, integrator=integrator)
            q = one.run(START, TUMBLING, None, k).q[-1]
            error.append(rms(system.foot_positions(q) - corners))
        out[integrator] = error
        out[f"{integrator}_slope"] = slope(out["h_s"], error)
    return out


def time_stepping(system: ContactSystem, q0: np.ndarray, h: float):
    """Positions at 0, h, ... by hard-contact time stepping."""
    stepper = TimeStepper(system.robot, h, friction=FRICTION)
    q, v, path = q0, VELOCITY, [q0]
    for _ in range(round(DURATION / h)):
        q, v, _ = stepper.step(q, v, np.zeros(0))
        path.append(q)
    return np.array(path)


def variational(system: ContactSystem, q0: np.ndarray, h: float):
    """Positions at 0, h, ... by the midpoint rule."""
    stepper = VariationalStepper(system, h, friction=FRICTION)
    return stepper.run(q0, VELOCITY, None, round(DURATION / h)).q


def sampled(path: np.ndarray, t: np.ndarray) -> np.ndarray:
    """A path over the whole duration at times t."""
    time = np.linspace(0, DURATION, len(path))
    return np.array([np.interp(t, time, column) for column in path.T]).T


def drop(system: ContactSystem, samples, intervals, truths) -> dict:
    """Errors over all knots and samples, a row for each number of intervals."""
    out = {"h_s": [DURATION / k for k in intervals]}
    for integrator in INTEGRATORS:
        centre, corner, median, iterations = [], [], [], 0
        for k in intervals:
            stepper = VariationalStepper(
                system, DURATION / k, friction=FRICTION, integrator=integrator
            )
            runs = [stepper.run(q0, VELOCITY, None, k) for q0 in samples]
            ours = np.array([run.q[1:] for run in runs])
            true = np.array([sampled(path, runs[0].time[1:]) for path in truths])
            d = ours[..., :3] - true[..., :3]
            centre.append(rms(d))
            median.append(float(np.median([rms(row) for row in d])))
            flat = [system.foot_positions(q.reshape(-1, 6)) for q in (ours, true)]
            corner.append(rms(flat[0] - flat[1]))
            iterations = max(iterations, *(r.newton_iterations.max() for r in runs))
        out[integrator] = centre
        out[f"{integrator}_median"] = median
        out[f"{integrator}_corners"] = corner
        out[f"{integrator}_slope"] = slope(out["h_s"], centre)
        out[f"{integrator}_corners_slope"] = slope(out["h_s"], corner)
        out[f"{integrator}_newton_max"] = int(iterations)
    return out


TITLES = {
    "flight": "tumbling in flight, corners",
    "drop": "drop as published, centre",
    "drop_fine": "drop, finer steps, centre",
}


def plot(result: dict, path: Path) -> None:
    """Errors over steps with fitted slopes, into a PNG."""
    parts = [name for name in TITLES if name in result]
    figure, axes = plt.subplots(
        1, len(parts), figsize=(4.4 * len(parts), 3.8), layout="constrained"
    )
    for axis, name in zip(axes, parts):
        part = result[name]
        for integrator, colour in zip(INTEGRATORS, ("#1f5fa8", "#d1495b")):
            h, error = np.array(part["h_s"]), np.array(part[integrator])
            s = part[f"{integrator}_slope"]
            label = f"{integrator}, slope {s:.2f}"
            axis.loglog(h, error, "o", color=colour, label=label)
            line = np.exp(np.log(error).mean() + s * (np.log(h) - np.log(h).mean()))
            axis.loglog(h, line, "-", color=colour, linewidth=1)
        axis.set(title=TITLES[name], xlabel="step h [s]", ylabel="rms error [m]")
        axis.grid(which="both", alpha=0.25)
        axis.legend(fontsize=8)
    try:
        with replacing(path) as part:
            figure.savefig(part, format="png", dpi=130)
    finally:
        plt.close(figure)


def study(quick: bool, count: int, seed: int) -> dict:
    """All parts; `quick` leaves the fine one out."""
    robot = build_robot(load("brick"), base="euler", time_step=0)
    system = ContactSystem(robot)
    rng = np.random.default_rng(seed)
    samples = START + rng.uniform(-SPREAD, SPREAD, (count, 6))
    result = {"samples": count, "friction": FRICTION, "flight": flight(system)}
    truths = [time_stepping(system, q0, 2e-3) for q0 in samples]
    result["drop"] = drop(system, samples, COARSE, truths)
    if not quick:
        # Not time stepping: its complementarity problems fail at small steps
        # where the brick lies on four feet.
        fine = [variational(system, q0, 1e-3) for q0 in samples]
        result["drop_fine"] = drop(system, samples, COARSE[-1:] + FINE, fine)
        t = np.linspace(0, DURATION, 201)
        apart = [(sampled(a, t) - sampled(b, t))[:, :3] for a, b in zip(truths, fine)]
        result["references_apart_m"] = rms(np.array(apart))
        each = [rms(row) for row in apart]
        result["references_apart_median_m"] = float(np.median(each))
    return result


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the study; prints a table and one JSON object, returns it."""
    parser = Measurement(__doc__, quick="two samples, no fine h")
    parser.add_argument("--samples", type=int, help="10; 2 when quick")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, help="PNG to draw")
    parser.add_argument("--json", action="store_true", help="no table")
    args = parser.parse_args(argv)
    count = args.samples if args.samples is not None else 2 if args.quick else 10
    if count < 1:
        parser.error("--samples must be 1 or more")
    result = study(args.quick, count, args.seed)
    if args.output:
        plot(result, args.output)
    rows = {
        f"{TITLES[name]}, h = {h:.3g} s": {
            f"{i}_error_m": result[name][i][k] for i in INTEGRATORS
        }
        for name in TITLES
        if name in result
        for k, h in enumerate(result[name]["h_s"])
    }
    if not args.json:
        print_table("Falling brick", rows)
    return parser.report(result)


if __name__ == "__main__":
    with one_line_errors("falling_brick"):
        main()
