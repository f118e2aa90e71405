"""Lattices on the command line: `show` and `calibrate`, parsing only."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Annotated

from drakebots.cli import command, variant
from drakebots.cli.options import Written
from drakebots.cli.output import print_table, tell
from drakebots.core.checks import known
from drakebots.core.fields import checked
from drakebots.lattice.pom import calibrate, read_measurements
from drakebots.lattice.shape import (
    ENDINGS,
    check_lattice,
    find_mechanisms,
    load_lattice,
)
from drakebots.plots import plot_lattice
from drakebots.view.lattice import show_lattice

# --- show -------------------------------------------------------------------


@checked()
class Showing:
    """What is shown of a lattice."""

    model: Annotated[str, known(ENDINGS)]
    """File of a lattice."""
    mechanisms: bool = False
    """Whether to list all motions that stretch no beam."""
    html: Annotated[Path | None, Written()] = None
    """Draw the lattice as a Meshcat page."""
    plot: Annotated[Path | None, Written(picture=True)] = None
    """Draw the lattice as a picture (.png)."""


@variant("drakebots show lattice.json --mechanisms", Showing)
def show_spec(args: argparse.Namespace) -> int:
    """Check a lattice, and print what it contains and how it can move."""
    spec = load_lattice(args.model)
    lattice, strut = spec.lattice, spec.strut
    report = check_lattice(lattice)
    facts = {
        **report.numbers,
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


# --- calibrate --------------------------------------------------------------


@checked()
class Calibrating:
    """What is measured, and where the gains are written."""

    lattice: Annotated[str, known(ENDINGS)]
    """File of a lattice."""
    measurements: str
    """Table of actuator displacements and marker positions (.csv), with the heads
    `actuator X Y Z AXIS [unit]` and `marker X Y Z AXIS [unit]`."""
    output: Annotated[Path | None, Written()] = None
    """File of the calibration (.json)."""


@command(
    "calibrate", "drakebots calibrate lattice.json walk.csv -o gains.json", Calibrating
)
def calibrate_lattice(args: argparse.Namespace) -> int:
    """Fit the gains of a lattice's planes of motion to measured markers."""
    measured = read_measurements(args.measurements)
    model = measured.model(load_lattice(args.lattice).lattice)
    found = calibrate(model, measured.u, measured.markers)
    print(found.report())
    written = [] if args.output is None else [found.save(args.output)]
    return tell(args, found.facts(), *written)
