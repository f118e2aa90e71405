"""The repository's folders, and its scripts as modules."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.image

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
BENCH = SCRIPTS / "bench"
DATA = ROOT.parent / "shared" / "data"
"""Third-party files, which are not in the repository."""


def find_script(name: str) -> Path:
    """The one script of this file name below scripts/."""
    (found,) = SCRIPTS.rglob(name)
    return found


def load_script(name: str, *names: str) -> Any:
    """A script as a module, made once, or names of it; its folder is on the path,
    as when it is run.

    Args:
        name: "hamr_gaits", "robot_zoo.browser", or a folder of scripts, "published".
        names: what of it to return, as a tuple; without any, the module.
    """
    inner = name.replace(".", "/")
    (path,) = [*SCRIPTS.rglob(f"{inner}.py"), *SCRIPTS.rglob(f"{inner}/__init__.py")]
    levels = len(Path(inner).parts) - (path.name != "__init__.py")
    folder = str(path.parents[levels])
    if folder not in sys.path:
        sys.path.insert(1, folder)
    module = importlib.import_module(name)
    return tuple(getattr(module, one) for one in names) if names else module


def last_json(printed: str) -> dict:
    """The JSON object of the last line that a script printed."""
    return json.loads(printed.strip().splitlines()[-1])


def is_picture(path: Path, least: int = 300) -> bool:
    """Whether a file is a picture of some size [pixels] with something in it."""
    pixels = matplotlib.image.imread(path)
    return min(pixels.shape[:2]) > least and pixels[..., :3].std() > 0.02
