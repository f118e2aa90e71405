"""Where the files are that a model names by URIs.

A URI is package://name/file, model://name/file, file:///file or a path. Robots are
copied about without the packages that their authors had installed, so a package is
looked for wherever a reader of the file would look:

1. where the user says (`--package name=folder`),
2. the folders above the model file: one called so, one with a package.xml that says so,
   or a folder called so in one of them,
3. the folders of ROS_PACKAGE_PATH and of AMENT_PREFIX_PATH, and our own models;

and where no package has the file, its path without the package, or the end of it, is
looked for beside the model file and above it.
"""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath

from drakebots.core.errors import InvalidInput
from drakebots.model.find import package_root

ABOVE = 6
"""How many folders above the model file are searched for a file without its package."""

_PACKAGE = ("package", "model")
"""The schemes of URIs that start with the name of a package."""


class Packages:
    """The packages and the files that one model file may name.

    Args:
        file: the model file.
        given: folders of packages by name, before all others.

    Attributes:
        used: the folders of the packages that files are in, by name.

    Raises:
        InvalidInput: for a given folder that is none.
    """

    def __init__(self, file: Path, given: Mapping[str, str | Path] | None = None):
        self.file = file.absolute()
        self.given = {name: Path(folder) for name, folder in (given or {}).items()}
        self.used: dict[str, Path] = {}
        for name, folder in self.given.items():
            if not os.path.isdir(folder):
                raise InvalidInput(
                    f"package {name}: {folder} is no folder; write name=folder"
                )

    def find(self, uri: str) -> Path | None:
        """The absolute path of what a URI names; None where there is no such file."""
        uri = uri.strip().replace("\\", "/")
        scheme, rest = _split(uri)
        if not rest or "\0" in uri or scheme not in ("", "file", *_PACKAGE):
            return None
        inside = rest.partition("/")[2] if scheme in _PACKAGE else rest
        places = (_existing(place) for place in self._places(uri))
        return next(filter(None, places), None) or self._nearby(inside or rest)

    def is_plain(self, uri: str, path: Path) -> bool:
        """Whether Drake finds `path` by the URI itself, given the `used` packages."""
        scheme, rest = _split(uri)
        if scheme not in _PACKAGE:
            return path in self._places(uri)
        name, _, inside = rest.partition("/")
        for folder in self.folders(name):
            if path == Path(os.path.normpath(folder / inside)):
                return self.used.setdefault(name, folder) == folder
        return False

    def folders(self, name: str) -> Iterator[Path]:
        """Where a package may be, best first."""
        if name in self.given:
            yield self.given[name].absolute()
        yield from (folder for folder, names in self._above.items() if name in names)
        yield from (
            f for f in (folder / name for folder in self._above) if os.path.isdir(f)
        )
        for folder in _search_path():
            if name in _names(folder):
                yield folder
            yield from (
                f for f in (folder / name, folder / "share" / name) if os.path.isdir(f)
            )
        yield from (root for root in [package_root()] if name in _names(root))

    @cached_property
    def _above(self) -> dict[Path, set[str]]:
        """The folders above the file, nearest first, and what they are called."""
        return {folder: _names(folder) for folder in self.file.parents}

    def _places(self, uri: str) -> Iterator[Path]:
        """Where the file of a URI belongs, best first, there or not."""
        scheme, rest = _split(uri)
        if scheme in _PACKAGE:
            name, _, inside = rest.partition("/")
            places = (folder / inside for folder in self.folders(name))
        else:
            places = iter([self.file.parent / ("/" + rest if scheme else rest)])
        yield from (Path(os.path.normpath(place)) for place in places)

    def _nearby(self, inside: str) -> Path | None:
        """The file `inside`, or the end of this path, beside the model or above it."""
        parts = [p for p in PurePosixPath(inside).parts if p not in ("/", ".", "..")]
        for start in range(len(parts)):
            for folder in self.file.parents[:ABOVE]:
                if path := _existing(folder.joinpath(*parts[start:])):
                    return path
        return None


def _split(uri: str) -> tuple[str, str]:
    """The scheme of a URI and what follows it; no scheme for a path."""
    match = re.fullmatch(r"(\w+)://+(.*)", uri, re.DOTALL)
    return (match[1], match[2]) if match else ("", uri)


def _search_path() -> list[Path]:
    names = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH")
    found = [os.environ.get(name, "").split(os.pathsep) for name in names]
    return [
        Path(folder).absolute() for folders in found for folder in folders if folder
    ]


def _names(folder: Path) -> set[str]:
    """The name of a folder, and the one that its package.xml gives it."""
    try:
        text = ET.parse(folder / "package.xml").findtext("name", "")
    except (OSError, ET.ParseError):
        text = ""
    return {folder.name, text.strip()} - {""}


def _existing(path: Path) -> Path | None:
    """The path, if it exists; its last name in any case of its letters.

    Exporters on systems that do not mind write "Foot.STL" for foot.stl.
    """
    try:
        if os.path.exists(path):
            return path
        name = path.name.lower()
        return next((p for p in path.parent.iterdir() if p.name.lower() == name), None)
    except (OSError, ValueError):
        return None
