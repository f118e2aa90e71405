"""Voxel robots and lattices on the command line: `simulate`, `plan`, `show` and
`calibrate`, parsing only."""

from __future__ import annotations

import argparse
import re
from dataclasses import fields
from pathlib import Path

from drakebots.cli.command import Command, Variant
from drakebots.cli.inputs import length
from drakebots.cli.options import (
    attribute_texts,
    field_options,
    given,
    output_argument,
    output_arguments,
)
from drakebots.cli.output import finish, print_table, tell
from drakebots.cli.progress import progress_bar
from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom import Control, calibrate, read_measurements
from drakebots.lattice.shape import (
    ENDINGS,
    check_lattice,
    find_mechanisms,
    load_lattice,
)
from drakebots.plots import plot_lattice
from drakebots.robots.voxels import (
    Problem,
    Simulation,
    Target,
    plan,
    read_gait,
    simulate,
)
from drakebots.view.lattice import show_lattice

_LATTICE = f"a lattice's file ({', '.join(ENDINGS)})"
_STROKE = "largest displacement of an actuator's lower node, e.g. 5mm"

# --- simulate ---------------------------------------------------------------

_FIELDS = attribute_texts(Simulation, but=("gait", "stroke"))


def _simulate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="voxel")
    parser.add_argument(
        "--gait",
        default="forward",
        help="forward, backward, or a table of poses (.csv, .yaml)",
    )
    parser.add_argument("--stroke", help=_STROKE)
    field_options(parser, Simulation, _FIELDS)
    output_arguments(parser)


def _simulate(args: argparse.Namespace) -> int:
    options = given(args, _FIELDS)
    if args.stroke is not None:
        options["stroke"] = length(args.stroke, "--stroke")
    gait = args.gait
    if Path(gait).suffix:
        gait = read_gait(gait, options.get("stroke"))
    problem = Simulation(gait=gait, **options)
    with progress_bar("voxel") as progress:
        result = simulate(problem, progress=progress)
    return finish(args, result)


VOXEL_SIMULATE = Variant(
    "walk the voxel robot with a gait",
    "drakebots simulate voxel --gait forward --cycles 4 -o run.nc",
    _simulate_arguments,
    _simulate,
)

# --- plan -------------------------------------------------------------------

_TARGET = re.compile(r"(.+):([xyz])=(.+)")
_ACTUATOR = re.compile(r"(.+):([xyz])")


def target(text: str) -> Target:
    """The target that "NAME:x=5mm" or "X,Y,Z:x=5mm" names.

    Raises:
        InvalidInput: for text of another form, or a length that is none.
        UnknownName: for an unknown effector.
    """
    found = _TARGET.fullmatch(text)
    if found is None:
        raise InvalidInput(
            f"--effector: {text!r} must be NAME:AXIS=LENGTH, e.g. BL:x=5mm"
        )
    return Target(found[1], found[2], length(found[3], f"--effector {found[1]}"))


def actuator(text: str) -> Control:
    """The actuator that "X,Y,Z:AXIS" names.

    Raises:
        InvalidInput: for text of another form.
    """
    found = _ACTUATOR.fullmatch(text)
    if found is None:
        raise InvalidInput(f"--actuator: {text!r} must be X,Y,Z:AXIS, e.g. 2,1,1:z")
    return Control(_place(found[1]), found[2])


def _place(text: str) -> tuple[int, int, int]:
    try:
        x, y, z = map(int, text.split(","))
    except ValueError:
        raise InvalidInput(
            f"{text!r} is no node; write x,y,z in half pitches, e.g. 1,3,4"
        ) from None
    return x, y, z


def _target_arguments(parser: argparse.ArgumentParser, names: str) -> None:
    parser.add_argument(
        "--effector",
        action="append",
        required=True,
        metavar="NAME:AXIS=LENGTH",
        help=f"requested displacement of a node ({names}); give one or more",
    )
    parser.add_argument("--stroke", help=_STROKE)
    output_arguments(parser)


def _run_plan(args: argparse.Namespace, **options) -> int:
    if args.stroke is not None:
        options["stroke"] = length(args.stroke, "--stroke")
    problem = Problem([target(text) for text in args.effector], **options)
    with progress_bar(args.model) as progress:
        result = plan(problem, progress=progress)
    return finish(args, result)


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="voxel")
    _target_arguments(
        parser, "foot (the back left one), FL, FR, BL, BR, a marker, or x,y,z"
    )


VOXEL_PLAN = Variant(
    "find actuator displacements of the voxel robot for requested node motions",
    "drakebots plan voxel --effector foot:x=5mm",
    _plan_arguments,
    _run_plan,
)


def _lattice_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help=_LATTICE)
    parser.add_argument(
        "--actuator",
        action="append",
        metavar="X,Y,Z:AXIS",
        help="lower node (half pitches) and push axis of an actuator; without any, the "
        "fewest actuators that meet the targets are placed",
    )
    _target_arguments(parser, "x,y,z in half pitches")


def _plan_lattice(args: argparse.Namespace) -> int:
    for text in args.effector:
        found = _TARGET.fullmatch(text)
        if found is not None:
            _place(found[1])
    return _run_plan(
        args,
        lattice=load_lattice(args.model),
        actuators=[actuator(text) for text in args.actuator or ()],
        path=args.model,
    )


LATTICE_PLAN = Variant(
    "find actuators of a lattice for requested node motions",
    "drakebots plan lattice.json --effector 1,3,4:x=5mm --actuator 2,3,1:z",
    _lattice_arguments,
    _plan_lattice,
)

# --- show -------------------------------------------------------------------


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help=_LATTICE)
    parser.add_argument(
        "--mechanisms",
        action="store_true",
        help="list all motions that stretch no beam",
    )
    output_argument(parser, "--html", help="draw the lattice as a Meshcat page")
    output_argument(
        parser, "--plot", picture=True, help="draw the lattice as a picture (.png)"
    )


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
    "check a lattice, and print what it contains and how it can move",
    "drakebots show lattice.json --mechanisms",
    _show_arguments,
    _show,
)

# --- calibrate --------------------------------------------------------------


def _calibrate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lattice", help=_LATTICE)
    parser.add_argument(
        "measurements",
        help="table of actuator displacements and marker positions (.csv), with the "
        "heads `actuator X Y Z AXIS [unit]` and `marker X Y Z AXIS [unit]`",
    )
    output_argument(parser, "-o", "--output", help="file of the calibration (.json)")


def _calibrate(args: argparse.Namespace) -> int:
    measured = read_measurements(args.measurements)
    model = measured.model(load_lattice(args.lattice).lattice)
    found = calibrate(model, measured.u, measured.markers)
    print(found.report())
    written = [] if args.output is None else [found.save(args.output)]
    return tell(args, found.facts(), *written)


CALIBRATE = Command(
    "calibrate",
    Variant(
        "fit the gains of a lattice's planes of motion to measured markers",
        "drakebots calibrate lattice.json walk.csv -o gains.json",
        _calibrate_arguments,
        _calibrate,
    ),
)
