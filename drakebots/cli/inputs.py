"""Inputs of a command line: lengths, points, models and stored results."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from drakebots import results
from drakebots.cli.options import completes, given, number_argument, quantity
from drakebots.cli.output import SYSTEMS
from drakebots.cli.progress import print_notes
from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput, UnknownName
from drakebots.lattice.shape import ENDINGS as LATTICES
from drakebots.model import ENDINGS as MODELS
from drakebots.model import (
    Model,
    available_models,
    find_model,
    load,
    package_root,
    skin_path,
)
from drakebots.robots import names_stored_plan, robots, stored_plan, warn_if_failed

# Numbers on the command line: "5mm" as 0.005, "30deg", lists, points.


def length(text: str, what: str = "length") -> float:
    """Parses a length such as "5mm" to metres; without a unit it is in metres.

    Raises:
        InvalidInput: naming what is no length.
    """
    return _finite(quantity(what, "[m]")(text), text, what)


def angle(text: str, what: str = "angle") -> float:
    """Parses an angle such as "30deg" to radians; without a unit it is in radians.

    Raises:
        InvalidInput: naming what is no angle.
    """
    return _finite(quantity(what, "[rad]")(text), text, what)


def _finite(value: float, text: str, what: str) -> float:
    if not math.isfinite(value):
        raise InvalidInput(f"{what}: {text!r} is not finite")
    return value


def joint_position(text: str, what: str) -> float:
    """Parses a joint's position: an angle, or a length with its unit.

    Raises:
        InvalidInput: naming what is neither.
    """
    slides = text.strip().endswith("m")
    return length(text, what) if slides else angle(text, what)


def named_numbers(
    text: str, what: str, parse: Callable[[str, str], float]
) -> dict[str, float]:
    """Parses "name=value,name=value,..."; {} for an empty text.

    Args:
        text: of the command line.
        what: the option, for errors.
        parse: from a value's text and what it is to its number.

    Raises:
        InvalidInput: for words that are none.
    """
    found = {}
    for word in filter(None, text.split(",")):
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f'{what}: {word!r} is no "name=value"')
        found[name.strip()] = parse(value, f"{what} of {name.strip()}")
    return found


def number(text: str, what: str) -> float:
    """Parses a number.

    Raises:
        InvalidInput: when it is none.
    """
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{what}: {text!r} is no number") from None


def numbers(text: str, what: str) -> tuple[float, ...]:
    """Parses numbers "a,b,...".

    Raises:
        InvalidInput: when they are none.
    """
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise InvalidInput(
            f'{what}: {text!r} is no list "a,b,..." of numbers'
        ) from None


def points(text: str, what: str) -> tuple[tuple[float, float], ...]:
    """Parses points "x,y x,y ..." to (x, y) in m: "65cm,0", bare numbers in m.

    Raises:
        InvalidInput: naming the point that is none.
    """
    found = []
    for word in text.split():
        parts = word.split(",")
        if len(parts) != 2:
            raise InvalidInput(
                f'{what}: {word!r} is no point; write "x,y x,y ...", 65cm,0 say'
            )
        x, y = (length(part, what) for part in parts)
        found.append((x, y))
    return tuple(found)


# --- models -----------------------------------------------------------------

MODEL_OPTIONS = ("feet", "actuate", "effort", "package", "strict", "free_base", "up")
"""Options of :func:`model_argument` that mean nothing for a result."""


def model_argument(parser: argparse.ArgumentParser, *, word: str = "model") -> None:
    """Adds a model, and how it is to be loaded.

    Args:
        parser: to add to.
        word: the argument's name, where it may be more than a model; then "".
    """
    if word:
        model = parser.add_argument(
            word, help="a name (see `drakebots models`) or a URDF, SDF, MJCF, dmd.yaml"
        )
        completes(model, available_models())
    units = parser.add_argument(
        "--units",
        default="SI",
        metavar="U",
        help=f"of a URDF in the old Drake format: {', '.join(SYSTEMS)} (default SI)",
    )
    completes(units, SYSTEMS)
    parser.add_argument(
        "--feet",
        metavar="A,B",
        help="links, frames or geometries to use as feet; patterns (*_foot) and "
        "points of links (link:x,y,z) too",
    )
    parser.add_argument(
        "--actuate",
        metavar="J,K",
        help="joints that get a motor: all, names or patterns",
    )
    number_argument(parser, "--effort", "largest effort of those motors [N m, N]")
    parser.add_argument(
        "--package",
        action="append",
        metavar="NAME=FOLDER",
        help="folder of a package that the file names; may be repeated",
    )
    parser.add_argument(
        "--strict",
        action="store_const",
        const=True,
        help="refuse a file in which anything would be ignored or repaired",
    )
    parser.add_argument(
        "--free-base",
        action="store_const",
        const=True,
        help="let a base move freely that the file fixes to the world",
    )
    parser.add_argument(
        "--up",
        choices=("x", "y", "z"),
        help="the axis that points up in a URDF (default: found out)",
    )


def skinned_argument(parser: argparse.ArgumentParser) -> None:
    """Adds a model with a skin."""
    text = "a name, or a skeleton with a .skin.yaml beside"
    action = parser.add_argument("model", help=text)
    completes(action, filter(names_skinned, available_models()))


def load_model(args: argparse.Namespace, *, notes: bool = True) -> Model:
    """Loads the model that the arguments name.

    Args:
        args: of :func:`model_argument`.
        notes: whether to print the model's notes, before any long work.
    """
    model = load(args.model, **load_options(args))
    if notes:
        print_notes(model.name, model.notes)
    return model


def load_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of :func:`drakebots.load` that were given.

    Raises:
        UnknownName: for unknown units.
        InvalidInput: for a package without a folder.
    """
    if args.units not in SYSTEMS:
        raise UnknownName("units", args.units, SYSTEMS)
    options = given(args, ("feet", "effort", "strict", "free_base", "up"))
    options["units"] = SYSTEMS[args.units]
    if args.actuate:
        options["actuate"] = args.actuate.split(",")
    if args.package:
        options["packages"] = dict(map(_package, args.package))
    return options


def _package(text: str) -> tuple[str, str]:
    name, found, folder = text.partition("=")
    if not (found and name and folder):
        raise InvalidInput(f"--package: {text!r} is no name=folder")
    if not os.path.isdir(folder):
        raise FileProblem(folder, "no such folder; give that of the package")
    return name, folder


def is_lattice(word: str) -> bool:
    """Whether a word of a command line names a lattice's file."""
    return Path(word).suffix.lower() in LATTICES and not word.endswith(
        (".dmd.yaml", ".drakebots.yaml")
    )


def find_input(word: str) -> None:
    """Raises an error if there is no such model, robot or lattice file."""
    if word in robots():
        return
    if not is_lattice(word):
        find_model(word)
    elif not os.path.exists(word):
        raise FileProblem(word, "no such file; check the name")


def names_skinned(word: str) -> bool:
    """Whether a word of a command line names a model with a skin."""
    if word.lower().endswith(MODELS):
        path = skin_path(Path(word))
    else:
        name = word.replace("-", "_")
        if not name.isidentifier():
            return False
        path = package_root() / name / f"{name}.skin.yaml"
    try:
        return os.path.isfile(path)
    except (OSError, ValueError):
        return False  # no path at all: whoever opens it will say so


# --- results ----------------------------------------------------------------


def names_result(word: str) -> bool:
    """Whether a word of a command line names a result, in a file or a stored plan."""
    return word.lower().endswith(".nc") or names_stored_plan(word)


def stored(path: str | Path) -> results.Result:
    """Loads a result, or a robot's stored plan (ROBOT:NAME).

    It is read once, though its kind decides the options first.

    Raises:
        ResultProblem: as :func:`drakebots.results.load_result`.
        UnknownName, FileProblem: as :func:`drakebots.robots.stored_plan`.
    """
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return _stored(str(path))
    return _stored(str(path), state.st_ino, state.st_mtime_ns, state.st_size)


def stored_motion(path: str | Path) -> results.Result:
    """As :func:`stored`, to be executed or exported: warns first if it failed."""
    result = stored(path)
    results.check_layout(result)
    warn_if_failed(result)
    return result


@lru_cache(maxsize=1)
def _stored(path: str, *state: int) -> results.Result:
    # Without a file's state it names a plan, or nothing, which the reader will say.
    return stored_plan(path) if names_stored_plan(path) else results.load_result(path)


def kind_of(word: str) -> str:
    """The kind of the result that a word names; "" for any other word."""
    if not names_result(word):
        return ""
    try:
        return stored(word).kind
    except DrakebotsError:
        return ""  # whoever opens it will say what is wrong
