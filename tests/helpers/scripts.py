"""The repository's folders, and its scripts as modules."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

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


def load_script(name: str) -> ModuleType:
    """A script as a fresh module; pytest's `pythonpath` lets it find its neighbours.

    Args:
        name: of the file, e.g. "hamr_gaits.py".
    """
    path = find_script(name)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def last_json(printed: str) -> dict:
    """The JSON object of the last line that a script printed."""
    return json.loads(printed.strip().splitlines()[-1])


def is_picture(path: Path, least: int = 300) -> bool:
    """Whether a file is a picture of some size [pixels] with something in it."""
    pixels = matplotlib.image.imread(path)
    return min(pixels.shape[:2]) > least and pixels[..., :3].std() > 0.02
