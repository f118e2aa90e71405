"""LittleDog climbs a step: contact-implicit optimization from random starts.

The step-up problem of Manchester, Doshi, Wood, Kuindersma (IJRR 2019) with 2124
variables, from their initial guess plus noise. A program in which each foot's side of
the step's edge is decided beforehand leads to theirs, which judges every answer. Needs
their data (BSD-3, not part of this project).

    python scripts/papers/littledog/littledog_stepup.py   # 12 starts, table, pictures
    python scripts/papers/littledog/littledog_stepup.py --terrain box
    python scripts/papers/littledog/littledog_stepup.py --quick

JSON: littledog_median_s, littledog_valid_of_12, littledog_best_objective, terrain,
starts, variables, stored, authors, wall_s.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import matplotlib

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

matplotlib.use("Agg")  # files only

import matplotlib.pyplot as plt
import numpy as np
from continuation import Continuation, MultiStart, multi_start
from littledog_program import (
    FILES,
    HEIGHT,
    START,
    STORED_TOLERANCE,
    TERRAINS,
    TOLERANCE,
    authors_program,
    judge,
    run,
    stored,
)

from drakebots.core.errors import DrakebotsError
from drakebots.trajopt.program import Program

AUTHORS = {
    "valid": {"objective": (53.33, 52.07, 52.45), "seconds": (3660, 2331, 3285)},
    "converged": "8 of 12 by the solver's flag in 1893..3660 s, 3 physically valid",
}


def data_folder(option: str | None) -> Path:
    """Folder of the authors' files.

    Raises:
        FileNotFoundError: saying where it looked.
    """
    beside = Path(__file__).resolve().parents[4] / "shared" / "data" / "littledog"
    root = option or os.environ.get("DRAKEBOTS_DATA")
    looked = [Path(root), Path(root) / "littledog"] if root else [beside]
    for folder in looked:
        if all((folder / name).is_file() for name in FILES):
            return folder
    raise FileNotFoundError(
        f"no {', '.join(FILES)} in {' or '.join(map(str, looked))}; give "
        "their folder by --data or $DRAKEBOTS_DATA"
    )


def starts(
    terrain: str = "authors",
    number: int = 12,
    *,
    seeds: Sequence[int] | None = None,
    folder: Path | None = None,
    processes: int = 1,
    done: Callable[[int, Continuation], None] | None = None,
) -> MultiStart:
    """The answers from several starts.

    Of the result, `median_seconds` (processor time), `num_feasible` and `best` are the
    figures of the table; `runs` has each start's seconds, feasible and objective.

    Args:
        terrain: "authors" or "box".
        number: number of starts, seeds 0, 1, ...
        seeds: instead of those.
        folder: folder of the authors' files.
        processes: parallel processes.
        done: called as done(seed, continuation) as each start ends.

    Raises:
        FileNotFoundError: without the authors' files.
        UnknownName: for another terrain.
    """
    return multi_start(
        partial(run, folder or data_folder(None), terrain),
        range(number) if seeds is None else seeds,
        processes=processes,
        done=done,
    )


def summary(folder: Path, terrain: str, found: MultiStart) -> dict:
    """The numbers of the run, with the authors' stored optimum."""
    target, feet = authors_program(folder, terrain)
    x = stored(target, folder)
    best, residuals = found.best, target.violations(x)
    return {
        "littledog_median_s": found.median_seconds,
        "littledog_valid_of_12": found.num_feasible,
        "littledog_best_objective": None if best is None else best.objective,
        "terrain": terrain,
        "starts": {
            str(seed): {
                "seconds": c.seconds,
                "source": c.source,
                **asdict(judge(target, feet, c.x)),
                "rungs": [{**asdict(r), "worst": list(r.worst)} for r in c.stages],
            }
            for seed, c in zip(found.seeds, found.runs)
        },
        "variables": target.num_variables,
        "stored": {
            **asdict(judge(target, feet, x, STORED_TOLERANCE)),
            "residuals": {name: value for name, (value, _) in residuals.items()},
        },
        "authors": AUTHORS,
    }


def plot_starts(figures: Mapping, path: Path) -> None:
    """Objectives against times beside the authors'."""
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    starts = figures["starts"].values()
    for valid, marker in ((True, "o"), (False, "x")):
        chosen = [s for s in starts if s["valid"] is valid]
        if chosen:
            axis.scatter(
                [s["seconds"] for s in chosen],
                [s["objective"] for s in chosen],
                marker=marker,
                color="#1f5fa8",
                label=f"here, {'valid' if valid else 'not valid'}: {len(chosen)}",
            )
    theirs = AUTHORS["valid"]
    label = "Manchester et al. 2019, valid: 3 of 12"
    axis.scatter(theirs["seconds"], theirs["objective"], color="#d1495b", label=label)
    axis.set(
        xscale="log",
        xlabel="solve time [s] (here: processor time)",
        ylabel="objective",
        title=f"terrain: {figures['terrain']}",
    )
    axis.legend(fontsize=8, frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def plot_motion(target: Program, feet, x: np.ndarray, path: Path) -> None:
    """The feet's and the base's paths from the side."""
    parts = target.view(x)
    p, load_on = feet(parts["q"]), np.vstack([np.zeros(4), parts["gam"]])
    names = target.variables["gam"].labels
    figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
    axis.fill_between([START, 0.8], 0, HEIGHT, color="0.88", lw=0)
    axis.axhline(0, color="0.6", lw=0.8)
    colours = ("#1f5fa8", "#d1495b", "#2a9d6f", "#e08e26")
    for i, (name, colour) in enumerate(zip(names, colours)):
        label = name.replace("_lower_leg", "").replace("_", " ")
        axis.plot(p[:, i, 0], p[:, i, 2], "-", color=colour, lw=1, label=label)
        loaded = load_on[:, i] > 1e-2
        axis.plot(*p[loaded, i][:, [0, 2]].T, "o", color=colour, ms=4)
    base = parts["q"][:, [0, 2]]
    axis.plot(*base.T, ".-", color="0.3", lw=1, label="base")
    axis.set(
        xlabel="x [m]",
        ylabel="z [m]",
        aspect="equal",
        title=f"objective {target.objective(x):.2f}, {parts['h'].sum():.2f} s; "
        "dots: feet that carry load",
    )
    axis.legend(fontsize=7, frameon=False, ncols=5, loc="upper left")
    axis.set_ylim(-0.02, 0.34)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _line(seed: int, figures: Mapping) -> str:
    stages = ", ".join(
        f"{r['label']} {r['iterations']} it {r['seconds']:.1f} s"
        for r in figures["rungs"]
    )
    return (
        f"{seed:>5} {figures['seconds']:7.1f} {'yes' if figures['valid'] else 'no':>5} "
        f"{figures['objective']:9.3f} {figures['worst_residual']:8.0e} "
        f"{figures['slack']:8.1e} {figures['joint_jump']:6.2f} "
        f"{figures['feet_in_step']:>4}  {stages}"
    )


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the starts; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="1 start")
    parser.add_argument("--starts", type=int, default=12, help="number of starts (12)")
    parser.add_argument(
        "--seeds", type=int, nargs="+", help="instead of the seeds 0, 1, ..."
    )
    parser.add_argument(
        "--terrain",
        choices=tuple(TERRAINS),
        default="authors",
        help="the authors' step, without a wall, or a box with one (authors)",
    )
    parser.add_argument("--output", type=Path, help="folder for JSON and pictures")
    parser.add_argument("--data", help="folder of the authors' files")
    parser.add_argument(
        "--processes", type=int, default=1, help="parallel processes (1)"
    )
    args = parser.parse_args(argv)
    try:
        folder = data_folder(args.data)
        if args.output is not None:
            args.output.mkdir(parents=True, exist_ok=True)
        began = time.perf_counter()
        found = starts(
            args.terrain,
            1 if args.quick else args.starts,
            seeds=args.seeds,
            folder=folder,
            processes=args.processes,
            done=lambda seed, c: print(f"start {seed}\n{c}", file=sys.stderr),
        )
        figures = summary(folder, args.terrain, found)
    except (OSError, DrakebotsError) as error:
        parser.exit(2, f"{error}\n")
    figures["wall_s"] = time.perf_counter() - began
    print(" seed seconds valid objective residual    slack   jump step  stages")
    for seed in found.seeds:
        print(_line(seed, figures["starts"][str(seed)]))
    theirs = figures["stored"]
    print(
        f"stored optimum: objective {theirs['objective']!r}, "
        f"{'valid' if theirs['valid'] else 'not valid'} at {STORED_TOLERANCE:.1e}; "
        + ", ".join(f"{k} {v:.1e}" for k, v in theirs["residuals"].items())
    )
    print(
        f"terrain {args.terrain}: valid at {TOLERANCE:.0e} {found.num_feasible} of "
        f"{len(found.seeds)}, median {found.median_seconds:.1f} s of processor time, "
        f"all with assembly {figures['wall_s']:.0f} s"
    )
    if args.output is not None:
        text = json.dumps(figures, indent=1)
        (args.output / "littledog.json").write_text(text + "\n")
        plot_starts(figures, args.output / "littledog_starts.png")
        if found.best is not None:
            target, feet = authors_program(folder, args.terrain)
            picture = args.output / "littledog_motion.png"
            plot_motion(target, feet, found.best.x, picture)
    return parser.report(figures)


if __name__ == "__main__":
    main()
