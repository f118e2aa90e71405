"""Gradients of a motion by the adjoint method, and a design that uses them.

python scripts/papers/quads/quad_sensitivity.py  # beetle; a quarter of an hour
python scripts/papers/quads/quad_sensitivity.py --quick    # the small leg

The robot hangs in the air, one of its joints bends and then holds. The rms torque of
the joint is differentiated with respect to the moduli of the skin's regions, the wall
thickness of the folds and the length of the link above the joint; each derivative is
checked by a central difference of whole runs. Then the modulus of one region is changed
until the torque is a given share of its first value.

JSON: gradients, worst_relative_difference, adjoint_s, steps, target_N_m.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from motion_adjoint import MotionCost, MotionGradient
from skin_parameters import link_length, meet_target, modulus, setup_of, thickness

from drakebots.cli.output import one_line_errors, print_table
from drakebots.core.errors import InvalidInput
from drakebots.plots import check_ending, legend_below, save
from drakebots.skin.file import load_skinned

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement


def bend(rest: np.ndarray, joint: int, angle: float, frames: int) -> np.ndarray:
    """Targets (n, m) [rad]: a joint bends to the angle in half the time, then holds."""
    s = np.clip(2 * np.arange(1, frames + 1) / frames, 0, 1)
    targets = np.tile(rest, (frames, 1))
    targets[:, joint] += angle * s * s * (3 - 2 * s)
    return targets


def main(argv: Sequence[str] | None = None) -> dict:
    """Differentiates, checks, designs; prints tables and one JSON object."""
    parser = Measurement(__doc__, quick="take the small leg")
    parser.add_argument("--robot", default="beetle", help="name or path of the robot")
    parser.add_argument("--joint", default="FL_knee", help="name of the joint")
    parser.add_argument("--angle", type=float, default=-0.3, help="its angle [rad]")
    parser.add_argument("--frames", type=int, default=24, help="number of time steps")
    parser.add_argument("--time-step", type=float, default=8e-3, help="time step [s]")
    parser.add_argument(
        "--region", type=int, default=1, help="region of the skin to change"
    )
    parser.add_argument(
        "--share", type=float, default=0.8, help="desired share of the rms torque"
    )
    parser.add_argument("-o", "--output", type=Path, help="file of the figure")
    args = parser.parse_args(argv)
    if args.output:
        check_ending(args.output)
    if args.quick:
        args.robot, args.joint, args.frames = "skinned_leg", "knee", 6
    robot = load_skinned(args.robot)
    if args.joint not in robot.joints:
        raise InvalidInput(
            f"joint {args.joint!r}: not one of {', '.join(robot.joints)}"
        )
    j = robot.joints.index(args.joint)
    region = args.region if args.region in robot.mesh.regions else robot.mesh.regions[0]
    targets = bend(
        robot.joint_positions(robot.rest_positions), j, args.angle, args.frames
    )
    only = np.zeros(len(robot.joints))
    only[j] = 1.0
    setup, dt = setup_of(robot), args.time_step
    base = MotionGradient(setup, targets, robot.servo, dt, MotionCost(torque=only))

    def rms(cost):
        return float(np.sqrt(cost / (dt * args.frames)))

    def slope(cost, gradient):
        return gradient / (2 * rms(cost) * dt * args.frames)

    parameters = {
        f"modulus of region {k}": (modulus(robot, k), 1e-3) for k in robot.mesh.regions
    }
    for name, make in (
        (f"wall of region {region}", lambda: thickness(robot, region)),
        (f"length before {args.joint}", lambda: link_length(robot, args.joint)),
    ):
        try:
            parameters[name] = make(), 1e-5
        except InvalidInput as error:
            print(f"{name}: left out ({error})")
    motion = base.run()
    start = time.perf_counter()
    gradient = base.gradient(motion, parameters)
    spent = time.perf_counter() - start
    rows, worst = {}, 0.0
    for name, (change, _) in parameters.items():
        h = 1e-3 if name.startswith("modulus") else 1e-4
        high, low = (rms(base.run(change(s * h)).cost) for s in (1, -1))
        found, fd = slope(motion.cost, gradient[name]), (high - low) / (2 * h)
        worst = max(worst, abs(found / fd - 1))
        rows[name] = f"{found:.6g} N m, by differences {fd:.6g} ({found / fd - 1:.1e})"
    rows["adjoint of all [s]"] = spent
    print_table(f"d(rms torque of {args.joint})/dp, of a change 1 + p", rows)

    runs = {}

    def evaluate(p):
        change = modulus(robot, region)
        here = MotionGradient(
            change(p), targets, robot.servo, dt, MotionCost(torque=only)
        )
        run = here.run()
        runs[p] = run
        # E is E_0 (1 + p + dp) here.
        found = here.gradient(run, {"E": (lambda d: change(p + d), 1e-3)})
        return rms(run.cost), slope(run.cost, found["E"])

    target = args.share * rms(motion.cost)
    steps = meet_target(evaluate, target)
    E = robot.fem.materials[robot.mesh.regions.index(region)].youngs_modulus
    table = {
        f"step {k}": f"E {E * (1 + s.value) / 1e3:.4g} kPa, rms torque "
        f"{s.figure:.5g} N m, slope {s.slope:.4g}"
        for k, s in enumerate(steps)
    }
    table["target [N m]"] = target
    print_table(f"modulus of region {region} for {args.joint}", table)
    if args.output:
        save(picture(runs, steps, j, dt, E, target), args.output)
    result = {
        "gradients": {k: slope(motion.cost, g) for k, g in gradient.items()},
        "worst_relative_difference": worst,
        "adjoint_s": spent,
        "steps": [[E * (1 + s.value), s.figure, s.slope] for s in steps],
        "target_N_m": target,
    }
    return parser.report(result)


def picture(runs, steps, joint: int, dt: float, E: float, target: float) -> Figure:
    """Torque before and after, and the steps between."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for s, colour in ((steps[0], "#d1495b"), (steps[-1], "#1f5fa8")):
        torques = runs[s.value].torques[:, joint]
        label = f"E = {E * (1 + s.value) / 1e3:.0f} kPa"
        left.plot(
            dt * np.arange(1, len(torques) + 1), torques, color=colour, label=label
        )
    left.set(xlabel="time [s]", ylabel="torque [N m]")
    legend_below(left)
    values = np.array([[E * (1 + s.value) / 1e3, s.figure, s.slope] for s in steps])
    right.axhline(target, color="0.6", lw=0.8, label="target")
    right.plot(values[:, 0], values[:, 1], "o", color="#1f5fa8", label="steps")
    for x, y, slope in values:
        d = 0.1 * np.ptp(values[:, 0]) + 1e-9
        rise = 1e3 * slope / E * d
        right.plot([x - d, x + d], [y - rise, y + rise], color="#e08e26", lw=1)
    right.plot([], [], color="#e08e26", lw=1, label="slope by the adjoint")
    right.set(xlabel="modulus [kPa]", ylabel="rms torque [N m]")
    legend_below(right)
    return figure


if __name__ == "__main__":
    with one_line_errors("quad_sensitivity"):
        main()
