"""Inputs that are options: every option of every command with extreme numbers.

A command line is a short, sound one with one or two of its options set to a value of
:data:`VALUES`. Lines that stay sound work until their own --time-limit.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random

from fuzz.children import Case, Family
from fuzz.formats import EXAMPLES, seeded

VALUES = (
    *("nan", "inf", "-inf", "0", "-1", "1e300", "-1e300", "1e-300", "1" + "0" * 30),
    *(
        "-1" + "0" * 30,
        "0.5",
        "1e10",
        "2147483648",
        "-2147483649",
        "18446744073709551616",
    ),
    *(
        "",
        " ",
        "x",
        "1,2",
        "nan,nan,nan",
        "1e300,1e300",
        "0,0",
        "1 2",
        "\u0661",
        "1e999",
    ),
    *("1e300s", "nan m", "1e308Hz", "/dev/null/x", "/dev/full", "a" * 300, "..", "\\"),
    *("1" * 5000, "a=nan", "x:y=1e300", "=", ":", "--", "0x10", "1_000", "<script>"),
)

R, L = "my_robot.urdf", "lattice.json"
_FILES = (R, L, "limbs.yaml", "skeleton.urdf", "skin.vtk", "walk.csv")
SHORT = "--time-limit 0.3"

LINES: Mapping[str, str] = {
    "show": f"show {R}",
    "show lattice": f"show {L}",
    "simulate": f"simulate {R} --duration 0.005 {SHORT}",
    "simulate hamr": f"simulate hamr --cycles 1 {SHORT}",
    "simulate gecko": f"simulate gecko --half-cycles 2 {SHORT}",
    "simulate voxel": f"simulate voxel --cycles 1 {SHORT}",
    "simulate skinned": f"simulate skinned-leg --duration 0.005 {SHORT}",
    "mpc": f"mpc {R} --duration 0.02 {SHORT}",
    "plan": f"plan {R} --forward 0.1 {SHORT}",
    "plan hamr": f"plan hamr {SHORT}",
    "plan gecko": "plan gecko",
    "plan voxel": "plan voxel --target foot:x=5mm",
    "plan lattice": f"plan {L} --target 1,3,4:x=5mm",
    "plan skinned": f"plan beetle {SHORT}",
    "track locomotion_plan": f"track {{locomotion_plan}} {SHORT}",
    "track hamr_plan": f"track {{hamr_plan}} --cycles 1 {SHORT}",
    "refine hamr_plan": f"refine {{hamr_plan}} --rounds 1 {SHORT}",
    "refine locomotion_plan": f"refine {{locomotion_plan}} --rounds 1 {SHORT}",
    "sweep": f"sweep hamr.simulate --cycles 1 {SHORT} -o out",
    "export": f"export {R} --mjcf x.xml",
    "export hamr_plan": "export {hamr_plan} --voltages v.csv",
    "limbs": f"limbs {R} limbs.yaml -o soft.dmd.yaml",
    "attach": "attach skeleton.urdf skin.vtk --glue radius=5mm",
    "design": "design m.obj --template upright --vertices 500 -o out --no-pictures",
    "calibrate": f"calibrate {L} walk.csv",
    "view": "view {voxel_simulation} --html page.html",
    "report": "report {hamr_simulation}",
}
"""A short, sound command line of each form; results by the names of their files."""


@cache
def _options(words: tuple[str, ...]) -> tuple[argparse.Action, ...]:
    from drakebots.cli import make_parser

    here = os.getcwd()
    os.chdir(EXAMPLES)  # a file's form decides the options
    try:
        parser = make_parser(words)
    finally:
        os.chdir(here)
    commands = parser._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    actions = commands[words[0]]._actions
    return tuple(a for a in actions if a.option_strings and a.nargs != 0)


def option_families(results: list[Path]) -> dict[str, Family]:
    """A family for each form of each command."""
    files = {path.stem: str(path) for path in results}

    def made(line: str):
        words = tuple(line.format_map(files).split())

        def make(random: Random) -> Case:
            options = _options(words)
            argv = list(words)
            for _ in range(random.choice((1, 1, 1, 2))):
                option = random.choice(options).option_strings[-1]
                value = random.choice(VALUES)
                argv.append(f"{option}={value}")
            sound = {name: (EXAMPLES / name).read_bytes() for name in _FILES}
            return Case(argv, sound | {"m.obj": b""}, seconds=60)

        return make

    found = {}
    for name, line in LINES.items():
        try:
            found[f"option: {name}"] = seeded(f"option: {name}", made(line))
        except KeyError:
            continue  # there is no such result
    return found
