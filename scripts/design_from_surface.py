"""From the surface of an animal to a skinned robot that stands.

python scripts/design_from_surface.py dog.stl -o out/dog --units mm --template cow
python scripts/design_from_surface.py dog.stl --forward z --up y -o out/dog

The file's x points forward and its z up unless other axes are given; its feet are
lowest. The folder gets a picture of each stage: the surface, the skeleton in it with
the glue, the wall, the skin. Then the robot stands for 2 s in simulation. `--self-test`
makes an animal of its own by formulas and stores it in millimetres, y up.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from drakebots.cli.output import one_line_errors
from drakebots.cli.progress import progress_bar
from drakebots.design import (
    DesignProblem,
    SkinSettings,
    design_robot,
    draw_cut,
    draw_skeleton,
    draw_skin,
    draw_surface,
    write_design,
)
from drakebots.design.geometry import (
    DistanceGrid,
    Ellipsoid,
    HalfSpaceCut,
    Implicit,
    RoundCone,
    Surface,
    mirrored,
    read_surface,
    write_surface,
)
from drakebots.design.skeleton import table1_template
from drakebots.design.skin import FoldSettings
from drakebots.skin import SkinSimulation, simulate_skinned


def stout_dog() -> Surface:
    """An animal for which none of the templates was made."""
    legs = []
    for x in (0.17, -0.15):
        legs += [
            RoundCone([x, 0.10, 0.27], [x + 0.02, 0.105, 0.14], 0.062, 0.052),
            RoundCone([x + 0.02, 0.105, 0.14], [x, 0.105, 0.05], 0.052, 0.050),
            RoundCone([x, 0.105, 0.03], [x + 0.035, 0.105, 0.028], 0.055, 0.050),
        ]
    body = [
        RoundCone([-0.16, 0.0, 0.33], [0.17, 0.0, 0.34], 0.115, 0.125),
        RoundCone([0.22, 0.0, 0.39], [0.33, 0.0, 0.47], 0.085, 0.07),
        Ellipsoid([0.37, 0.0, 0.49], [0.10, 0.07, 0.065]),
        RoundCone([-0.25, 0.0, 0.36], [-0.36, 0.0, 0.45], 0.035, 0.02),
    ]
    parts = (*body, *mirrored(legs))
    cut = HalfSpaceCut([0.0, 0.0, 0.0], [0.0, 0.0, -1.0])
    return DistanceGrid.from_implicit(Implicit(parts, (cut,), 0.03), 5e-3).level_set()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "surface", nargs="?", type=Path, help="surface file (.stl, .obj, .ply)"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("out/surface"))
    parser.add_argument("--template", default="cow", help="start of the fit")
    parser.add_argument("--units", help="of the file: m, cm or mm")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="factor on the surface"
    )
    parser.add_argument(
        "--forward",
        default="x",
        help="axis of the file that points forward: x, =-y, ...",
    )
    parser.add_argument("--up", default="z", help="axis of the file that points up")
    parser.add_argument(
        "--vertices", type=int, default=12000, help="vertices of the skin"
    )
    parser.add_argument(
        "--fold-depth", type=float, default=6e-3, help="depth of the teeth [m]"
    )
    parser.add_argument("--stand", type=float, default=2.0, help="time to stand [s]")
    parser.add_argument("--frame", type=float, default=0.02, help="time step [s]")
    parser.add_argument("--self-test", action="store_true", help="design a stout dog")
    parser.add_argument("--json", action="store_true", help="end with a JSON line")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    if (args.surface is None) != args.self_test:
        parser.error("give a surface, or --self-test")
    args.output.mkdir(parents=True, exist_ok=True)
    if args.self_test:
        args.surface = args.output / "stout_dog.stl"
        args.units, args.forward, args.up = "mm", "z", "y"
        # Read with forward z and up y, its x is the robot's y.
        dog = stout_dog()
        write_surface(
            args.surface, Surface(dog.vertices[:, [1, 2, 0]], dog.triangles), "mm"
        )
    seconds, began = {}, time.perf_counter()

    def lap(name: str) -> None:
        seconds[name] = time.perf_counter() - began - sum(seconds.values())

    surface = read_surface(args.surface, unit=args.units)
    surface = surface.turned(args.forward, args.up)
    draw_surface(args.output / "1_surface.png", surface, title=args.surface.name)
    lap("read")
    name = args.surface.stem.replace("-", "_")
    problem = DesignProblem(
        name,
        replace(table1_template(args.template), name=name),
        surface=surface,
        skin=SkinSettings(
            vertices=args.vertices,
            folds=FoldSettings(hip_shift=0.04, depth=args.fold_depth),
        ),
        scale=args.scale,
    )
    with progress_bar(name) as bar:
        design = design_robot(problem, progress=bar)
    seconds |= design.seconds
    model = write_design(design, args.output)
    draw_skeleton(args.output / "2_skeleton.png", design)
    draw_cut(args.output / "3_wall.png", design)
    draw_skin(args.output / "4_skin.png", design)
    lap("files and pictures")
    designed = sum(seconds.values())
    with progress_bar("stand") as bar:
        result = simulate_skinned(
            SkinSimulation(
                model=str(model),
                duration=args.stand,
                time_step=args.frame,
                motion="hold",
                link_collision=False,
                self_collision=False,
            ),
            progress=bar,
        )
    lap("stand")
    sunk = np.ptp(result.data.com.values[:, 2])
    report = design.report() | {
        "surface_to_robot_s": designed,
        "stands": bool(result.ok and sunk < 0.02),
        "sunk_m": float(sunk),
        "largest_torque_N_m": result.metrics["largest_torque_N_m"],
        "seconds": seconds,
        "total_s": sum(seconds.values()),
        "processor_s": time.process_time(),
    }
    for key in ("size_m", "mass_kg", "sunk_m", "largest_torque_N_m", "stands"):
        print(f"{key}: {report[key]}")
    print(design.shell.report, *design.notes, result.message, sep="\n")
    for stage, spent in seconds.items():
        print(f"{stage:20} {spent:7.1f} s")
    print(
        f"{'all':20} {report['total_s']:7.1f} s, {report['processor_s']:.1f} s of a "
        "processor"
    )
    if args.json:
        print(json.dumps(report))
    return 0 if report["stands"] else 1


if __name__ == "__main__":
    with one_line_errors("design_from_surface"):
        sys.exit(main())
