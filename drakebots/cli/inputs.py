"""What a command line reads: models, stored results, and what kind they are."""

from __future__ import annotations

import argparse
import os
from functools import lru_cache
from pathlib import Path

from drakebots.cli.output import SYSTEMS
from drakebots.errors import DrakebotsError, FileProblem, UnknownName
from drakebots.lattice.io import ENDINGS as LATTICES
from drakebots.models import ENDINGS as MODELS
from drakebots.models import Model, find_model, load, package_root
from drakebots.results import Result, load_result
from drakebots.skin.description import skin_path

# --- models -----------------------------------------------------------------


def model_argument(parser: argparse.ArgumentParser, *, feet: bool = False) -> None:
    """The model and its units; its feet."""
    parser.add_argument(
        "model", help="a name (see `drakebots models`) or a URDF, SDF, MJCF, dmd.yaml"
    )
    parser.add_argument(
        "--units",
        default="SI",
        metavar="U",
        help=f"of a URDF in the old Drake format: {', '.join(SYSTEMS)} (default SI)",
    )
    if feet:
        parser.add_argument("--feet", metavar="A,B", help="bodies to use as feet")


def skinned_argument(parser: argparse.ArgumentParser) -> None:
    """A model with a skin."""
    parser.add_argument("model", help="a name, or a skeleton with a .skin.yaml beside")


def load_model(args: argparse.Namespace) -> Model:
    """The model that the arguments name."""
    if args.units not in SYSTEMS:
        raise UnknownName("units", args.units, SYSTEMS)
    feet = getattr(args, "feet", None)
    return load(
        args.model,
        units=SYSTEMS[args.units],
        feet=feet.split(",") if feet else None,
    )


def is_lattice(word: str) -> bool:
    """Whether a word of a command line names a lattice's file."""
    return Path(word).suffix.lower() in LATTICES and not word.endswith(
        (".dmd.yaml", ".drakebots.yaml")
    )


def find_input(word: str) -> None:
    """Raises where there is no such model or lattice's file."""
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
        return path.is_file()
    except (OSError, ValueError):
        return False  # no path at all: whoever opens it will say so


# --- results ----------------------------------------------------------------


def stored(path: str | Path) -> Result:
    """A result's file, read once: what kind it is decides the options, too.

    Raises:
        ResultProblem: as :func:`drakebots.results.load_result`.
    """
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return load_result(path)  # says what is wrong
    return _stored(str(path), state.st_ino, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1)
def _stored(path: str, *state: int) -> Result:
    return load_result(path)


def names_quad_plan(word: str) -> bool:
    """Whether a word of a command line names a stored plan of a skinned robot."""
    if not word.lower().endswith(".nc"):
        return False
    try:
        found = stored(word)
    except DrakebotsError:
        return False
    return found.metrics.get("system") == "skinned"
