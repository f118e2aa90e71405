"""Compares a reduced skin with the full one, and closes a loop at 50 Hz with it.

python scripts/papers/quads/quad_reduced.py  # trains on beetle; half an hour
python scripts/papers/quads/quad_reduced.py --skin x.npz          # one trained before
python scripts/papers/quads/quad_reduced.py --base-modes 10 --loop 0  # coarser, no loop
python scripts/papers/quads/quad_reduced.py --quick  # the small leg, no loop

The skin is trained on random motions of all joints and tested on a walk that is not
among them (a sine motion for the small leg). The torque error is the rms over joints
and time steps, relative to the rms torque. Times are those of single steps, of both
models in turn in one process.

JSON: reduced_model_speedup, reduced_model_torque_error, reduced.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from base_controller import BaseController, Feedback, run_loop
from matplotlib.figure import Figure
from reduced_error import measure_reduced, walk_targets

from drakebots.cli.output import one_line_errors, print_table
from drakebots.core.threads import calm_threads
from drakebots.plots import check_ending, save
from drakebots.skin.coupled import PatchContact
from drakebots.skin.file import SkinnedRobot, load_skinned
from drakebots.skin.reduced import (
    ReducedOptions,
    random_targets,
    read_reduced,
    train_on_random_motion,
    write_reduced,
)

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

AMPLITUDE = np.tile([0.27, 0.4, 0.3], 4)


def loops(robot: SkinnedRobot, skin, targets, duration: float) -> dict:
    """Runs open and closed loop on the full skin."""
    out = {}
    for name in ("open", "closed"):
        stepper = robot.stepper(
            5e-3, patches=robot.skin.patches, patch_contact=PatchContact(), threads=1
        )
        feedback = Feedback(proportional=1.2)
        control = BaseController(robot, skin, feedback) if name == "closed" else None
        with calm_threads():
            out[name] = run_loop(stepper, robot, targets, control, duration=duration)
    return out


def tilt_rows(run: dict, height: float) -> dict:
    """Rms of roll, pitch and height after the first 0.5 s."""
    late = run["time"] > 0.5
    off = np.sqrt(((run["tilt"] - [0, 0, height])[late] ** 2).mean(axis=0))
    rows = {
        "roll, rms [deg]": float(np.degrees(off[0])),
        "pitch, rms [deg]": float(np.degrees(off[1])),
        "height, rms [mm]": float(1e3 * off[2]),
        "largest torque [N m]": float(np.abs(run["torque"]).max()),
    }
    if len(run["control"]):
        wall, cpu = 1e3 * run["control"][2:].T
        rows |= {
            "control step, wall, median [ms]": float(np.median(wall)),
            "control step, CPU, median [ms]": float(np.median(cpu)),
            "control step, wall, largest [ms]": float(wall.max()),
            "control step, CPU, largest [ms]": float(cpu.max()),
        }
    return rows


def picture(arrays: dict, joints, both: dict | None) -> Figure:
    """Torques of full and reduced skin; tilt of open and closed loop."""
    figure = Figure(figsize=(9, 6 if both else 3.2), layout="constrained")
    axes = figure.subplots(2 if both else 1, 2 if both else 1, squeeze=False)
    top = axes[0]
    worst = np.argsort(-(arrays["torque"] ** 2).mean(axis=0))[: 3 * len(top)]
    for ax, some in zip(top, np.array_split(worst, len(top))):
        for k, joint in enumerate(some):
            colour = ("#1f5fa8", "#d1495b", "#2a9d6f")[k % 3]
            ax.plot(
                arrays["time"],
                arrays["torque"][:, joint],
                color=colour,
                label=joints[joint],
            )
            ax.plot(
                arrays["time"],
                arrays["reduced_torque"][:, joint],
                "--",
                color="black",
                lw=0.8,
            )
        ax.set(xlabel="time [s]", ylabel="torque [N m]")
        ax.legend(
            frameon=False,
            fontsize=8,
            ncols=3,
            loc="lower center",
            bbox_to_anchor=(0.5, 1),
            title="dashed: reduced",
            title_fontsize=8,
        )
    if both:
        for ax, k, name in zip(axes[1], (0, 1), ("roll", "pitch")):
            for run, colour in (("open", "#d1495b"), ("closed", "#1f5fa8")):
                data = both[run]
                ax.plot(
                    data["time"],
                    np.degrees(data["tilt"][:, k]),
                    color=colour,
                    label=f"{run} loop",
                )
            ax.axhline(0, color="0.8", lw=0.6, zorder=0)
            ax.set(xlabel="time [s]", ylabel=f"{name} of the base [deg]")
            ax.legend(
                frameon=False,
                fontsize=8,
                ncols=2,
                loc="lower center",
                bbox_to_anchor=(0.5, 1),
            )
    return figure


def main(argv: Sequence[str] | None = None) -> dict:
    """Trains, measures; prints tables and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="take the small leg, without loops")
    parser.add_argument("--robot", default="beetle", help="name or path of the robot")
    parser.add_argument("--skin", type=Path, help="file of a trained skin (.npz)")
    parser.add_argument("--save", type=Path, help="file for the trained skin (.npz)")
    parser.add_argument(
        "--frames", type=int, default=300, help="time steps of the comparison"
    )
    parser.add_argument(
        "--loop", type=float, default=1.5, help="duration of the loops [s], 0 for none"
    )
    defaults = ReducedOptions()
    parser.add_argument(
        "--base-modes",
        type=int,
        default=defaults.base_modes,
        help="largest number of modes of the trunk (default %(default)s)",
    )
    parser.add_argument(
        "--points",
        type=int,
        default=defaults.points,
        help="largest number of quadrature points of each limb (default %(default)s)",
    )
    parser.add_argument("-o", "--output", type=Path, help="file of the figure")
    args = parser.parse_args(argv)
    if args.output:
        check_ending(args.output)
    robot = load_skinned("skinned_leg" if args.quick else args.robot)
    rest = robot.joint_positions(robot.rest_positions)
    walks = len(rest) == 12
    if args.skin:
        skin = read_reduced(args.skin)
    else:
        skin = train_on_random_motion(
            robot,
            ReducedOptions(base_modes=args.base_modes, points=args.points),
            amplitude=AMPLITUDE if walks else 0.4,
            steps=40 if args.quick else 200,
            seeds=(2,) if args.quick else (2, 3),
        )
    if args.save:
        write_reduced(skin, args.save)
    targets = walk_targets(rest) if walks else random_targets(rest, 0.3, 7)
    frames = 20 if args.quick else args.frames
    figures, arrays = measure_reduced(robot, skin, targets, steps=frames)
    print_table(f"{robot.model.name}: reduced skin against the full one", figures)
    result = {
        "reduced_model_speedup": figures["speedup"],
        "reduced_model_torque_error": figures["torque_error"],
        "reduced": figures,
    }
    both = None
    if walks and args.loop > 0 and not args.quick:
        both = loops(robot, skin, targets, args.loop)
        height = robot.rest_positions[6]
        for name, run in both.items():
            rows = tilt_rows(run, height)
            print_table(f"walk on the full skin, {name} loop", rows)
            result[f"{name}_loop"] = rows
    if args.output:
        save(picture(arrays, robot.joints, both), args.output)
    return parser.report(result)


if __name__ == "__main__":
    with one_line_errors("quad_reduced"):
        main()
