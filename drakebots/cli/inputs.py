"""Inputs of a command line: models and stored results."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.text import Text

from drakebots import results
from drakebots.cli.options import chosen, completes, field_options, field_values
from drakebots.core.checks import in_unit, one_of
from drakebots.core.errors import (
    DrakebotsError,
    FileProblem,
    InvalidInput,
    one_line,
)
from drakebots.core.fields import checked, declared
from drakebots.core.units import MM_G_MS, SI, Scaling
from drakebots.formats import load
from drakebots.lattice.shape import names_lattice
from drakebots.model import Model, available_models, find_model
from drakebots.robots import names_stored_plan, robots, stored_plan, warn_if_failed

SYSTEMS: dict[str, Scaling] = {"SI": SI, "mm-g-ms": MM_G_MS}
"""Units a URDF of the old format may be in, by name."""

NOTES = 3
"""Number of notes that are printed of more."""

# --- models -----------------------------------------------------------------


@dataclass(frozen=True)
class Package:
    """Folder of a package that a model's file names."""

    word = "NAME=FOLDER"
    name: str
    folder: str

    @classmethod
    def from_word(cls, text: str, what: str) -> Package:
        """The package of "NAME=FOLDER".

        Raises:
            InvalidInput: for another word.
        """
        name, found, folder = text.partition("=")
        if not (found and name and folder):
            raise InvalidInput(f"{what}: {text!r} is no name=folder")
        return cls(name, folder)


@checked()
class Loading:
    """How a model is loaded: options of :func:`drakebots.load`."""

    units: Annotated[str, one_of("units", SYSTEMS)] = "SI"
    """Units of a URDF in the old Drake format."""
    feet: str | None = None
    """Links, frames or geometries to use as feet, with commas between; patterns
    (*_foot) and points of links (link:x,y,z) too."""
    actuate: Sequence[str] | None = None
    """Joints that get a motor: all, names or patterns."""
    effort: Annotated[float | None, in_unit("N m or N")] = None
    """Largest effort of those motors."""
    packages: Sequence[Package] = ()
    """Folder of a package that the file names; may be repeated."""
    strict: bool = False
    """Whether to refuse a file in which anything would be ignored or repaired."""
    free_base: bool = False
    """Whether to let a base move freely that the file fixes to the world."""
    repair: bool = False
    """Whether to replace an inertia that is too large for its link's size by that of
    the link's shape."""
    up: Annotated[str | None, one_of("axis", ("x", "y", "z", "xy", "yz", "zy"))] = None
    """The axis that points up in a URDF, and after it the one that points ahead, where
    the robot faces another one than usual; found out by default."""
    notes: Annotated[str, one_of("notes", ("few", "all"))] = "few"
    """Notes on the model: few, the three that matter most, or all."""


MODEL_OPTIONS = [name for name in declared(Loading) if name not in ("units", "notes")]
"""Options of :func:`model_argument` that mean nothing for a result."""


def model_argument(parser: argparse.ArgumentParser) -> None:
    """Adds a model, and how it is to be loaded."""
    text = "a name (see `drakebots models`) or a URDF, SDF, MJCF, dmd.yaml"
    completes(parser.add_argument("model", help=text), available_models())
    field_options(parser, Loading)


def load_model(args: argparse.Namespace, *, notes: bool = True) -> Model:
    """Loads the model that the arguments name.

    Args:
        args: of :func:`model_argument`.
        notes: whether to print the model's notes, before any long work.

    Raises:
        UnknownName: for unknown units.
        DrakebotsError: as :func:`drakebots.load`.
    """
    options, how = field_values(args, Loading, declared(Loading)), chosen(args, Loading)
    options.pop("notes", None)
    if "units" in options:
        options["units"] = SYSTEMS[how.units]
    if "packages" in options:
        options["packages"] = {p.name: p.folder for p in options["packages"]}
    model = load(args.model, **options)
    if notes:
        tell_notes(args, model)
    return model


def tell_notes(args: argparse.Namespace, model: Model) -> None:
    """Prints what was ignored or inferred in a model, dim where stderr is a terminal.

    As many notes as the arguments say, those that matter most first.
    """
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    most = len(model.notes) if args.notes == "all" else NOTES
    more = len(model.notes) - most
    counted = [f"({more} more: --notes all)"] if more > 0 else []
    for note in (*model.notes[:most], *counted):
        console.print(Text(one_line(f"{model.name}: {note}"), style="dim"))


def find_input(word: str) -> None:
    """Raises an error if there is no such model, robot or lattice file."""
    if word in robots():
        return
    if not names_lattice(word):
        find_model(word)
    elif not os.path.exists(word):
        raise FileProblem(word, "no such file; check the name")


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
    """Stored motion to be executed or exported; warns first if it failed."""
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
