"""Locations of models: their names, files, endings and the files beside them."""

from __future__ import annotations

import os
from pathlib import Path

from drakebots.core.errors import (
    DrakebotsError,
    InvalidInput,
    ModelProblem,
    check_names,
)
from drakebots.core.files import TOP, Fields, number, read_yaml, reading
from drakebots.results import file_hash

ENDINGS = (".urdf", ".sdf", ".xml", ".mjcf", ".dmd.yaml", ".urdf.xacro", ".xacro")


def package_root() -> Path:
    """The folder of the models (and of package.xml) that came with drakebots.

    The environment variable DRAKEBOTS_MODELS names another one.
    """
    override = os.environ.get("DRAKEBOTS_MODELS")
    if override:
        return Path(override)
    package = Path(__file__).parents[1]
    inside = package / "_models"
    return inside if os.path.isdir(inside) else package.parent / "models"


def is_ours(path: Path) -> bool:
    """Whether a file is one of the models that came with drakebots."""
    ours = "DRAKEBOTS_MODELS" not in os.environ and package_root().resolve()
    return bool(ours) and path.resolve().is_relative_to(ours)


def available_models() -> list[str]:
    """The names of the models that came with drakebots, sorted."""
    root = package_root()
    if not os.path.isdir(root):
        return []
    return sorted(p.name for p in root.iterdir() if os.path.isfile(p / f"{p.name}.sdf"))


def find_model(name_or_path: str | Path) -> Path:
    """The model file for a name or a path.

    Raises:
        UnknownName: for a name that is not among the models.
        ModelProblem: for a path that is no file or has no known ending.
    """
    text = str(name_or_path)
    path = Path(text)
    looks_like_path = path.suffix or "/" in text or os.sep in text
    if not looks_like_path:
        if text not in available_models() and "-" in text:
            text = text.replace("-", "_")
        check_names("model", [text], available_models())
        return package_root() / text / f"{text}.sdf"
    try:
        os.path.abspath(path).encode()
    except UnicodeEncodeError:
        # A result could not name it.
        raise InvalidInput(f"{path}: rename it; its path is no Unicode text") from None
    if os.path.isdir(path):
        raise ModelProblem(path, "is a folder; name the model file in it")
    if not os.path.isfile(path):
        if os.path.exists(path):
            raise ModelProblem(path, "is no regular file; name a model file")
        raise ModelProblem(
            path, "no such file; give a path or one of " + ", ".join(available_models())
        )
    if is_identified(path):
        return _identified(path)[0]
    if text.lower().endswith((".usd", ".usda", ".usdc", ".usdz")):
        command = f"python scripts/tools/usd_to_mjcf.py {path.name} -o {path.stem}.xml"
        raise ModelProblem(path, f"is a USD stage; write it as MJCF first: {command}")
    if not text.lower().endswith(ENDINGS):
        raise ModelProblem(path, f"unknown ending; use one of {', '.join(ENDINGS)}")
    return path


def is_identified(path: Path) -> bool:
    """Whether a path is that of a YAML file of parameters, which names its model."""
    name = path.name.lower()
    if name.endswith(".dmd.yaml") or not name.endswith(".yaml"):
        return False
    try:
        return "parameters" in (read_yaml(path) or ())
    except (DrakebotsError, OSError, TypeError):
        return name.endswith(".drakebots.yaml")


def named_parameters(name_or_path: str | Path) -> dict[str, float]:
    """The parameters in a YAML file that is named in place of its model; else none."""
    path = Path(name_or_path)
    return _identified(path)[1] if is_identified(path) else {}


def parameters_in(top: Fields) -> dict[str, float]:
    """The entries `parameters` of a parsed YAML file, in SI."""
    rows = top.fields("parameters")
    return {name: number(rows.get(name), f"parameters.{name}") for name in rows}


def _identified(path: Path) -> tuple[Path, dict[str, float]]:
    """The model's file, and the parameters, of a YAML file that names both."""
    with reading(path, ModelProblem):
        top = Fields(read_yaml(path, ModelProblem), TOP)
        model, found = top.text("model"), parameters_in(top)
    beside = path.absolute().parent / model
    if is_identified(beside):
        raise ModelProblem(path, f"model: {model} is no model file; name one")
    return find_model(model if model in available_models() else beside), found


def model_stem(path: Path) -> str:
    """The file name without its (double) ending: scene.dmd.yaml -> scene."""
    for ending in ENDINGS:
        if path.name.lower().endswith(ending):
            return path.name[: -len(ending)]
    return path.stem


def sidecar_path(path: Path) -> Path:
    """Path of the YAML beside a model file, if there is one."""
    return path.with_name(f"{model_stem(path)}.drakebots.yaml")


def skin_path(path: Path) -> Path:
    """Path for the YAML of a model's skin, beside the model file."""
    return path.with_name(f"{model_stem(path)}.skin.yaml")


def model_files(path: Path) -> list[Path]:
    """A model's file, and the files beside it that say more about the model."""
    named = (path.with_name(model_stem(path) + e) for e in (".srdf", ".yaml"))
    every = (path, sidecar_path(path), *named)
    return [file for file in every if os.path.isfile(file)]


def file_hashes(path: Path) -> dict[str, str]:
    """The SHA-256 of each of a model's files in hexadecimal, by the file's name.

    Raises:
        FileProblem: when one cannot be read.
    """
    return {file.name: file_hash(file) for file in model_files(path)}
