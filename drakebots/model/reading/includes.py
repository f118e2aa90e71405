"""Which files a model file includes, and whether it ends.

SDF and MJCF include files, and model directives (.dmd.yaml) add models and directives.
Drake follows them until the stack ends where a file includes itself.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.core.files import compose_yaml
from drakebots.model.reading.limits import check_size, read_text
from drakebots.model.reading.packages import Packages

MAX_INCLUDED = 1_000
"""A file is refused that leads to more files, each counted as often as it is read."""


def check_includes(
    path: Path, packages: Mapping[str, str | Path] | None = None
) -> None:
    """Refuses a file that includes itself, by way of others perhaps.

    Files that do not exist are passed over.

    Args:
        path: a URDF, SDF, MJCF or dmd.yaml.
        packages: folders of packages by name, as for the model file.

    Raises:
        ModelProblem: naming the files of the circle; for too many files; for one that
            is too large or no text.
    """
    known: dict[Path, list[Path]] = {}
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
            pending.append((inner, (*chain, inner)))


def included_mimics(
    path: Path, packages: Mapping[str, str | Path] | None = None
) -> tuple[str, ...]:
    """The names of included URDFs and SDFs in which joints follow others.

    Drake reads these files itself, and couples their joints in simulations.

    Args:
        path: an SDF or dmd.yaml that :func:`check_includes` has passed.
        packages: as there.
    """
    start = path.resolve()
    found, pending = {}, [start]
    while pending:
        file = pending.pop()
        for inner in _included(file, start, packages):
            if inner in found:
                continue
            tag = {".urdf": "<mimic", ".sdf": "<drake:mimic"}.get(inner.suffix.lower())
            found[inner] = tag is not None and tag in read_text(inner)
            pending.append(inner)
    return tuple(file.name for file, follows in found.items() if follows)


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
    if "include" not in text:
        return
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise ModelProblem(file, f"is not well-formed XML: {error}") from error
    for include in root.iter("include"):
        yield (include.get("file") or include.findtext("uri", "")).strip()


def _named_in_yaml(file: Path, text: str) -> Iterator[str]:
    """The `file` entries anywhere in model directives."""
    try:
        root = compose_yaml(text)
    except InvalidInput as error:
        raise ModelProblem(file, str(error)) from error
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
