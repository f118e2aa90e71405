"""`drakebots simulate voxel`, `plan voxel`, `plan LATTICE`: parsing only."""

from __future__ import annotations

import argparse
import re
from dataclasses import fields
from pathlib import Path

from drakebots.cli.command import Variant
from drakebots.cli.inputs import length
from drakebots.cli.options import (
    field_options,
    given,
    output_argument,
    output_arguments,
    switch,
)
from drakebots.cli.output import finish, print_table, tell
from drakebots.cli.progress import progress_bar
from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom import Control
from drakebots.lattice.shape import (
    ENDINGS,
    check_lattice,
    find_mechanisms,
    load_lattice,
)
from drakebots.plots import plot_lattice
from drakebots.robots.voxels import plan_lattice, plan_robot
from drakebots.robots.voxels.walk import VoxelWalk, read_gait, run
from drakebots.view.lattice import show_lattice

# --- simulate ---------------------------------------------------------------

_WALK = {
    "cycles": "of the gait",
    "pose_time": "of each pose [s]",
    "friction_front": "mu of the front feet",
    "friction_back": "mu of the back feet",
    "directional": "share by which feet slide easier forward",
    "time_step": "of the plant [s]",
    "log_period": "between samples [s]",
    "time_limit": "of wall time [s]; the best is kept",
}


def _simulate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="voxel")
    parser.add_argument(
        "--gait", default="forward", help="forward, reverse, or a table (.csv, .yaml)"
    )
    parser.add_argument("--stroke", help="of a node either way, e.g. 5mm")
    switch(
        parser,
        "--point-feet",
        "point_feet",
        "back feet without heel and toe: it tips over",
    )
    field_options(parser, VoxelWalk, _WALK)
    output_arguments(parser)


def _simulate(args: argparse.Namespace) -> int:
    options = given(args, ("point_feet", *_WALK))
    if args.stroke is not None:
        options["stroke"] = _stroke(args)
    if Path(args.gait).suffix:
        table = read_gait(args.gait, options.get("stroke"))
        options["gait"] = tuple(map(tuple, table.poses.tolist()))
    else:
        options["gait"] = args.gait
    problem = VoxelWalk(**options)
    with progress_bar("voxel") as progress:
        result = run(problem, progress=progress)
    return finish(args, result)


VOXEL_SIMULATE = Variant(
    "walk the voxel robot with a gait",
    "drakebots simulate voxel --gait forward --cycles 4 -o run.nc",
    _simulate_arguments,
    _simulate,
)

# --- plan -------------------------------------------------------------------

_WISH = re.compile(r"(.+):([xyz])=(.+)")
_PUSH = re.compile(r"(.+):([xyz])")


def target(text: str) -> tuple[str, str, float]:
    """An effector "NAME:x=5mm": its name, axis and displacement [m].

    Raises:
        InvalidInput: when it is not written so.
    """
    found = _WISH.fullmatch(text)
    if found is None:
        raise InvalidInput(
            f"--effector: {text!r} is none; write NAME:AXIS=LENGTH, e.g. BL:x=5mm"
        )
    return found[1], found[2], length(found[3], f"--effector {found[1]}")


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="voxel")
    _effectors(parser, "foot (the back left one), FL, FR, BL, BR, a marker, or x,y,z")
    output_arguments(parser)


def _effectors(parser: argparse.ArgumentParser, names: str) -> None:
    parser.add_argument(
        "--effector",
        action="append",
        required=True,
        metavar="NAME:AXIS=LENGTH",
        help=f"a node and how it is to move; several are met at once ({names})",
    )
    parser.add_argument("--stroke", help="most of a node either way, e.g. 5mm")


def _stroke(args: argparse.Namespace) -> float | None:
    return None if args.stroke is None else length(args.stroke, "--stroke")


def _plan(args: argparse.Namespace) -> int:
    result = plan_robot([target(w) for w in args.effector], stroke=_stroke(args))
    return finish(args, result)


VOXEL_PLAN = Variant(
    "actuator displacements of the voxel robot for requested node motions",
    "drakebots plan voxel --effector foot:x=5mm",
    _plan_arguments,
    _plan,
)


def _lattice_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help=f"a lattice's file ({', '.join(ENDINGS)})")
    parser.add_argument(
        "--actuator",
        action="append",
        metavar="X,Y,Z:AXIS",
        help="lower node (half pitches) and push axis; left out, the fewest that "
        "do it are looked for",
    )
    _effectors(parser, "x,y,z in half pitches")
    output_arguments(parser)


def actuator(text: str) -> Control:
    """An actuator "x,y,z:axis".

    Raises:
        InvalidInput: when it is not written so.
    """
    found = _PUSH.fullmatch(text)
    if found is None:
        raise InvalidInput(
            f"--actuator: {text!r} is none; write X,Y,Z:AXIS, e.g. 2,1,1:z"
        )
    return Control(place(found[1]), found[2])


def place(text: str) -> tuple[int, int, int]:
    """A node "x,y,z" [half pitches].

    Raises:
        InvalidInput: when it is none.
    """
    try:
        x, y, z = map(int, text.split(","))
    except ValueError:
        raise InvalidInput(
            f"{text!r} is no node; write x,y,z in half pitches, e.g. 1,3,4"
        ) from None
    return x, y, z


def _plan_lattice(args: argparse.Namespace) -> int:
    spec = load_lattice(args.model)
    targets = [
        (place(name), axis, value) for name, axis, value in map(target, args.effector)
    ]
    actuators = [actuator(text) for text in args.actuator or ()]
    result = plan_lattice(
        spec, targets, actuators, path=args.model, stroke=_stroke(args)
    )
    return finish(args, result)


LATTICE_PLAN = Variant(
    "actuators of a lattice for requested node motions",
    "drakebots plan lattice.json --effector 1,3,4:x=5mm --actuator 2,3,1:z",
    _lattice_arguments,
    _plan_lattice,
)

# --- show -------------------------------------------------------------------


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help=f"a lattice's file ({', '.join(ENDINGS)})")
    parser.add_argument(
        "--mechanisms", action="store_true", help="list what moves without stretching"
    )
    output_argument(parser, "--html", help="draw it as a Meshcat page")
    output_argument(parser, "--plot", picture=True, help="draw it as a picture (.png)")


def _show(args: argparse.Namespace) -> int:
    spec = load_lattice(args.model)
    lattice, strut = spec.lattice, spec.strut
    report = check_lattice(lattice)
    facts = {
        "voxels": report.voxels,
        "nodes": report.nodes,
        "beams": report.beams,
        "pitch_m": lattice.pitch,
        "strut": {e.name: getattr(strut, e.name) for e in fields(strut)},
        "pieces": len(report.pieces),
        "findings": report.lines(),
    }
    print_table(Path(args.model).name, facts)
    if args.mechanisms:
        mechanisms = find_mechanisms(lattice)
        print(mechanisms.report())
        facts |= {
            "zero_modes": mechanisms.zero_modes,
            "rigid": mechanisms.rigid,
            "self_stress": mechanisms.self_stress,
            "mechanisms": [{"kind": m.kind, "name": m.name} for m in mechanisms.all],
            "missed_by_planes_of_motion": len(mechanisms.missed),
        }
    pictures = []
    if args.html is not None:
        pictures.append(show_lattice(spec, args.html))
    if args.plot is not None:
        pictures.append(plot_lattice(spec, args.plot))
    return tell(args, facts, *pictures)


LATTICE_SHOW = Variant(
    "check a lattice and say what it contains, and how it can move",
    "drakebots show lattice.json --mechanisms",
    _show_arguments,
    _show,
)
