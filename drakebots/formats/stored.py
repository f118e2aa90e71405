"""The model of a result, found again from any folder.

A result names its model's files by absolute path and hash, and keeps what Drake parsed
(:func:`drakebots.model.model_provenance`). :func:`model_of` looks for the files where
they were, then at the same place relative to the result's file, then among the models
that came with drakebots. What it finds counts only if the hashes agree; otherwise the
model is made from what the result keeps. Meshes are not kept.
"""

from __future__ import annotations

import base64
import binascii
import os
import tempfile
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from drakebots.core.convert import from_yaml
from drakebots.core.errors import (
    DrakebotsWarning,
    InvalidInput,
    UnknownName,
)
from drakebots.formats.load import load, load_arguments
from drakebots.formats.read.tree import read_tree, rename_files, write_tree
from drakebots.model import (
    ENDINGS,
    KEPT_PARTS,
    Model,
    available_models,
    file_hashes,
    model_stem,
    package_root,
)
from drakebots.multibody import Flat, Terrain
from drakebots.results import Result

_LARGEST_TEXT = 100_000_000  # [bytes]


def model_of(result: Result) -> Model:
    """The model that a result was made with.

    Warns:
        DrakebotsWarning: when its files have changed or are gone, and the model that
            the result keeps is used in their place.

    Raises:
        UnknownName: when the result does not say what its model is.
        ModelProblem: when the model cannot be loaded any more.
        InvalidInput: when what the result keeps is damaged.
    """
    record = result.provenance.get("model")
    if not isinstance(record, Mapping):
        return _model_by_name(result)
    path = Path(record["path"])
    changed = None
    for folder in model_folders(result, path):
        place = folder / path.name
        if not os.path.isfile(place):
            continue
        if file_hashes(place) == dict(record["files"]):
            return load(place, **load_arguments(record["options"]))
        changed = changed or place
    what = f"{path}: is gone" if changed is None else f"{changed}: has changed"
    warnings.warn(
        f"{what} since this result was made; the model kept in the result is used",
        DrakebotsWarning,
        stacklevel=2,
    )
    return _kept_model(result, record, path)


def terrain_of(result: Result) -> Terrain:
    """The ground that a result was made on; flat where it does not say.

    Raises:
        FileProblem: when the file of a picture or mesh is gone.
    """
    said = result.provenance.get("options", {}).get("terrain")
    return from_yaml(Terrain, said, "terrain") if said else Flat()


def model_folders(result: Result, path: Path) -> list[Path]:
    """Folders that a result's model file may be in now.

    Its own; the same place beside the result's file, for a result that was moved with
    its model; and for a model that came with drakebots the one that came with this one.
    """
    folders = [place.parent for place in result.places(path)]
    if model_stem(path) == path.parent.name and path.parent.name in available_models():
        folders.append(package_root() / path.parent.name)
    return folders


def _model_by_name(result: Result) -> Model:
    """The model of a result that does not keep it: an old one, or of a robot outside.

    A file that it names goes before a model of ours that happens to have its name.
    """
    files = map(Path, result.provenance.get("files", {}))
    files = [path for path in files if path.name.lower().endswith(ENDINGS)]
    for path in files:
        for place in result.places(path):
            if os.path.isfile(place):
                return load(place)
    ours = not files or any(path.parent.name == result.model for path in files)
    if ours and result.model in available_models():
        return load(result.model)
    raise UnknownName("model", result.model, available_models())


# --- making it again ---


def _kept_model(result: Result, record: Mapping[str, Any], path: Path) -> Model:
    """The model from what a result keeps of it."""
    folders = [place.parent for place in result.places(path)]
    folder = next((f for f in folders if os.path.isdir(f)), path.parent)
    text, ending = _kept_text(record), str(record["ending"])
    if ending in ("urdf", "sdf"):
        text = absolute_files(text, folder)
    # A file of its own, so that what load() repairs (meshes that are gone, ...) is
    # repaired here too.
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / f"{model_stem(path)}.{ending}"
        copy.write_text(text, encoding="utf-8")
        places = record.get("packages", {}).items()
        packages = {name: place for name, place in places if os.path.isdir(place)}
        model = load(copy, packages=packages or None)
        if model.text is None:
            model = replace(model, text=text, ending=ending)
    try:
        return replace(
            model,
            path=path,
            options=dict(record["options"]),
            files=dict(record["files"]),
            summary=replace(model.summary, **record["summary"]),
            **{
                name: tuple(kind(**x) for x in record[name])
                for name, kind in KEPT_PARTS.items()
                # Old results have couplers in the text alone.
                if name in record or name != "couplers"
            },
            poses={name: dict(pose) for name, pose in record["poses"].items()},
            closed=dict(record.get("closed", {})),
            notes=tuple(record.get("notes", model.notes)),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"the model kept in the result cannot be used ({error}); make the result "
            "again"
        ) from error


def _kept_text(record: Mapping[str, Any]) -> str:
    try:
        packed = base64.b64decode(record["text"], validate=True)
        unpack = zlib.decompressobj()
        text = unpack.decompress(packed, _LARGEST_TEXT)
        if unpack.unconsumed_tail:
            raise ValueError(f"more than {_LARGEST_TEXT} bytes")
        if not text:
            raise ValueError("its file went away during the run")
        return text.decode()
    except (KeyError, TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise InvalidInput(
            f"the model's text in the result cannot be read ({error}); make the result "
            "again"
        ) from error


def absolute_files(text: str, folder: Path) -> str:
    """A URDF or SDF whose relative names of files are relative to nothing.

    Args:
        text: of the file.
        folder: that the file was in.

    Raises:
        InvalidInput: for text that is no XML.
    """

    def absolute(name: str) -> str | None:
        if not name or "://" in name:
            return None
        return "file://" + os.path.normpath(folder / name)

    root = read_tree(text)
    rename_files(root, absolute)
    return write_tree(root)
