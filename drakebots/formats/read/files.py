"""The files that a model file names: packages found, included files followed.

SDF and MJCF include files, and model directives (.dmd.yaml) add models and directives.
Drake follows them until the stack ends where a file includes itself.
"""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

import yaml

from drakebots.core.errors import InvalidInput, ModelProblem, one_line
from drakebots.core.files import compose_yaml, reading
from drakebots.core.installed import extra
from drakebots.formats.read.limits import check_size, read_text
from drakebots.formats.read.tree import read_tree, rename_files
from drakebots.model import model_stem, package_root

ABOVE = 6
"""Number of folders above the model file searched for a file without its package."""

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
        places = (_existing(place) for _, place in self._places(uri))
        return next(filter(None, places), None) or self._nearby(inside or rest)

    def name_all(self, root: ET.Element) -> None:
        """Gives the files of a URDF or SDF absolute names: a text has no folder."""
        rename_files(root, lambda uri: (path := self.find(uri)) and f"file://{path}")

    def is_plain(self, uri: str, path: Path) -> bool:
        """Whether Drake finds `path` by the URI itself, given the `used` packages."""
        name = _split(uri)[1].partition("/")[0]
        for folder, place in self._places(uri):
            if place == path:
                return folder is None or self.used.setdefault(name, folder) == folder
        return False

    def folders(self, name: str) -> Iterator[Path]:
        """Candidate folders of a package, best first."""
        if name in self.given:
            yield self.given[name].absolute()
        yield from (folder for folder, names in self._above.items() if name in names)
        yield from filter(os.path.isdir, (folder / name for folder in self._above))
        for folder in _search_path():
            if name in _names(folder):
                yield folder
            yield from filter(os.path.isdir, (folder / name, folder / "share" / name))
        yield from (root for root in [package_root()] if name in _names(root))

    @cached_property
    def _above(self) -> dict[Path, set[str]]:
        """The folders above the file, nearest first, and what they are called."""
        return {folder: _names(folder) for folder in self.file.parents}

    def _places(self, uri: str) -> Iterator[tuple[Path | None, Path]]:
        """The folder of its package, if any, and candidate places of a URI's file.

        Best first, there or not.
        """
        scheme, rest = _split(uri)
        if scheme in _PACKAGE:
            name, _, inside = rest.partition("/")
            for folder in self.folders(name):
                yield folder, Path(os.path.normpath(folder / inside))
        else:
            place = self.file.parent / ("/" + rest if scheme else rest)
            yield None, Path(os.path.normpath(place))

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
    found = os.pathsep.join(os.environ.get(name, "") for name in names)
    return [Path(x).absolute() for x in found.split(os.pathsep) if x]


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


MAX_INCLUDED = 1_000
"""A file is refused that leads to more files, each counted as often as it is read."""


def check_includes(
    path: Path, packages: Mapping[str, str | Path] | None = None
) -> list[Path]:
    """Refuses a file that includes itself, by way of others perhaps.

    Files that do not exist are passed over.

    Args:
        path: a URDF, SDF, MJCF or dmd.yaml.
        packages: folders of packages by name, as for the model file.

    Returns:
        The files that it includes, by way of others too.

    Raises:
        ModelProblem: naming the files of the circle; for too many files; for one that
            is too large or no text.
    """
    known: dict[Path, list[Path]] = {}
    found: dict[Path, None] = {}
    start = path.resolve()
    count, pending = 0, [(start, (start,))]
    while pending:
        file, chain = pending.pop()
        if file not in known:
            known[file] = list(_included(file, start, packages))
        for inner in known[file]:
            if inner in chain:
                circle = (*chain[chain.index(inner) :], inner)
                names = " -> ".join(part.name for part in circle)
                raise ModelProblem(
                    path, f"includes itself ({names}); remove one of these"
                )
            count += 1
            if count > MAX_INCLUDED:
                raise ModelProblem(path, f"includes more than {MAX_INCLUDED} files")
            found[inner] = None
            pending.append((inner, (*chain, inner)))
    return list(found)


def is_xacro(path: Path) -> bool:
    """Whether a file is one of xacro, by its ending or by the tags of a URDF."""
    if path.suffix.lower() != ".urdf":
        return path.suffix.lower() == ".xacro"
    tag, text = "xacro:", read_text(path)
    root = read_tree(text) if f"<{tag}" in text else ET.Element("robot")
    return any(element.tag.startswith(tag) for element in root.iter())


def expanded(path: Path, places: Packages) -> str:
    """The URDF that a xacro file stands for, by the package `xacrodoc`.

    Args:
        path: the file.
        places: folders of the packages that it finds, `$(find NAME)`.

    Raises:
        ModelProblem: without `xacrodoc`, for a package that is not found, and for
            what xacro refuses, in its words.
    """
    try:
        xacrodoc = extra("xacrodoc")
    except InvalidInput as error:
        remedy = f"or type: xacro {path.name} > {model_stem(path)}.urdf"
        raise ModelProblem(path, f"{error}, {remedy}") from error
    packages, read = xacrodoc.packages, xacrodoc.XacroDoc.from_includes
    packages.reset()
    name = read_tree(read_text(path)).get("name") or model_stem(path)
    while True:
        try:
            file = str(path.absolute())
            return read([file], name=name, resolve_packages=False).to_urdf_string()
        except Exception as error:  # of any kind: files hold expressions
            words = one_line(error)
            if not (lost := re.search(r"Package not found: (\S+)", words)):
                raise ModelProblem(path, f"xacro says: {words[:200]}") from error
            if (folder := next(places.folders(lost[1]), None)) is None:
                remedy = f"give its folder by --package {lost[1]}=FOLDER"
                message = f"package {lost[1]!r} is not found; {remedy}"
                raise ModelProblem(path, message) from error
            packages.update_package_cache({lost[1]: folder})


def with_mimics(files: Sequence[Path]) -> tuple[str, ...]:
    """The names of the URDFs and SDFs among files in which joints follow others.

    Drake reads included files itself, and couples their joints in simulations.
    """
    tags = {".urdf": "<mimic", ".sdf": "<drake:mimic"}
    return tuple(
        file.name
        for file in files
        if (tag := tags.get(file.suffix.lower())) and tag in read_text(file)
    )


def _included(
    file: Path, start: Path, packages: Mapping[str, str | Path] | None
) -> Iterator[Path]:
    """The files that one file names, those that exist, without links."""
    name, text = file.name.lower(), ""
    if name.endswith((".urdf", ".sdf", ".xml", ".mjcf", ".dmd.yaml")):
        text = read_text(file)
    if name.endswith(".yaml"):
        uris = _named_in_yaml(file, text)
    elif text:
        uris = _named_in_xml(file, text)
    else:
        return
    places = Packages(file, packages)
    for uri in uris:
        found = places.find(uri)
        if found is None and name.endswith((".xml", ".mjcf")):
            # MJCF names files relative to the one that is loaded.
            found = Packages(start, packages).find(uri)
        if found is not None and os.path.isdir(found):
            found = _model_of_folder(found)
        if found is not None and os.path.exists(found):
            yield found.resolve()


def _named_in_xml(file: Path, text: str) -> Iterator[str]:
    check_size(file, text)
    if "include" not in text and "attach" not in text:
        return
    root = read_tree(text)
    for include in root.iter("include"):
        yield (include.get("file") or include.findtext("uri", "")).strip()
    for _ in root.iter("attach"):  # of MJCF: each may copy any of the models
        yield from (model.get("file", "") for model in root.iter("model"))


def _named_in_yaml(file: Path, text: str) -> Iterator[str]:
    """The `file` entries anywhere in model directives."""
    with reading(file, ModelProblem):
        root = compose_yaml(text)
    pending = [root] if root is not None else []
    while pending:
        node = pending.pop()
        if isinstance(node, yaml.SequenceNode):
            pending += node.value
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == "file" and isinstance(value, yaml.ScalarNode):
                    yield value.value
                else:
                    pending.append(value)


def _model_of_folder(folder: Path) -> Path | None:
    """The SDF of a model folder, which its model.config names."""
    try:
        named = ET.fromstring(read_text(folder / "model.config")).findtext("sdf", "")
    except (ModelProblem, ET.ParseError):
        named = "model.sdf"
    path = folder / named.strip()
    return path if os.path.isfile(path) else None
