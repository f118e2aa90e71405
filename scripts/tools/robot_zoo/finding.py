"""Finds robot files: in folders, in lists, in installed Python packages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from drakebots.core.errors import FileProblem, InvalidInput

ENDINGS = (".urdf", ".sdf", ".xml")

PACKAGES = (
    "example-robot-data",
    "mujoco",
    "gymnasium",
    "pybullet",
    "dm-control",
)
"""Distributions on PyPI that carry models of robots."""

MOST_BYTES = 5_000_000
"""Of a file that is looked into; scenes are larger."""

_ROOT = re.compile(r"<(?:robot|sdf|mujoco)\b")
_JOINT = re.compile(r"<joint\b[^>]*>")
_FIXED = re.compile(r"type\s*=\s*[\"'](?:fixed|free)[\"']")
_NAME = re.compile(r"<(?:link|joint|body)\s[^>]*?name\s*=\s*[\"']([^\"']*)")
_LEG = re.compile(
    r"foot(?!print)|feet|toe|ankle|calf|shank|shin|knee|thigh|hip|hock|paw"
    r"|(?<![a-z])leg(?![a-z])"
)
"""Names of links and joints of legs, in lower case."""

_PLAIN = ("urdf", "robots", "mjcf", "sdf", "xml", "assets")
"""Folders whose names tell nothing."""


@dataclass(frozen=True)
class RobotFile:
    """One file to try.

    Attributes:
        path: absolute.
        name: short, and unlike that of every other file of the run.
        legs: number of bodies that should have feet; None where nobody said.
    """

    path: Path
    name: str
    legs: int | None = None


def find_files(words: Iterable[str], *, packages: bool = False) -> list[RobotFile]:
    """The robot files that a command line names.

    Args:
        words: each a robot's file, a folder that is searched for legged robots, or a
            text file (.txt) that lists files, one a line, relative to itself, each
            with the number of legs after it if that is known.
        packages: whether to search the packages of :data:`PACKAGES` as well.

    Raises:
        FileProblem: for a file or folder that is not there.
        InvalidInput: for a list with a line that is none, or when nothing is found.
    """
    found: dict[Path, int | None] = {}
    for word in words:
        path = Path(word).absolute()
        if path.is_dir():
            found |= dict.fromkeys(legged_files(path.rglob("*")))
        elif not path.is_file():
            raise FileProblem(path, "no such file or folder; check the name")
        elif path.suffix == ".txt":
            found |= _listed(path)
        else:
            found[path] = None
    if packages:
        found |= dict.fromkeys(legged_files(_package_files()))
    if not found:
        raise InvalidInput(
            "no robot to try; name files or folders, or install one of "
            + ", ".join(PACKAGES)
        )
    names = _short_names(list(found))
    return [RobotFile(path, names[path], legs) for path, legs in found.items()]


def _listed(path: Path) -> dict[Path, int | None]:
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) > 2 or (len(words) == 2 and not words[1].isdigit()):
            raise InvalidInput(f"{path}:{number}: needs a file and a number of legs")
        file = path.parent / words[0]
        if not file.is_file():
            raise FileProblem(file, f"no such file, but {path.name}:{number} lists it")
        found[file] = int(words[1]) if len(words) == 2 else None
    return found


# --- which files are robots with legs ---


def legged_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Those that describe a robot with links or joints named as those of legs."""
    for path in sorted(set(paths)):
        if path.suffix.lower() in ENDINGS and path.is_file() and is_legged(path):
            yield path


def is_legged(path: Path) -> bool:
    """Whether a file is a URDF, SDF or MJCF with at least two joints, and legs by name.

    Its text is searched, so that a robot counts even where its XML is not well formed.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            return False
        text = path.read_text(errors="replace")
    except OSError:
        return False
    if not _ROOT.search(text):
        return False
    # In MJCF a joint without a type is a hinge.
    joints = [tag for tag in _JOINT.findall(text) if not _FIXED.search(tag)]
    names = (name.lower() for name in _NAME.findall(text))
    return len(joints) >= 2 and any(map(_LEG.search, names))


def _package_files() -> Iterator[Path]:
    """The files of the packages that are installed."""
    for name in PACKAGES:
        try:
            files = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            continue
        for file in files:
            yield Path(os.path.normpath(file.locate()))


def _short_names(paths: list[Path]) -> dict[Path, str]:
    """File stems, with as many telling folders before them as make them differ."""
    parts = {
        path: (*(p for p in path.parent.parts[1:] if p not in _PLAIN), path.stem)
        for path in paths
    }
    names = {}
    for path, own in parts.items():
        for count in range(1, len(own) + 1):
            if sum(other[-count:] == own[-count:] for other in parts.values()) == 1:
                names[path] = "-".join(own[-count:])
                break
        else:
            names[path] = "-".join([*own, path.suffix[1:]])
    return names
