"""A design problem in a YAML file, SI.

name: my_dog
surface: {file: dog.stl, unit: mm, scale: 1.2}
template: cow                   # beetle, monster, lizard, cow: the start of the fit
parameters: {front.upper: 0.11, build.wall: 0.003}
limits: {hind.splay: [0, 0.2]}  # of the fit
skin: {wall: 0.004, vertices: 12000, glue: 160, folds: {depth: 0.006}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import yaml

from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput, UnknownName
from drakebots.design.geometry import read_surface
from drakebots.design.problem import DesignProblem, SkinSettings
from drakebots.design.robots import table1_problem
from drakebots.design.skeleton import edit, table1_template
from drakebots.design.skin import FoldSettings
from drakebots.fem.material import Material

_KEYS = ("name", "surface", "template", "parameters", "limits", "skin")
_SKIN = [f.name for f in fields(SkinSettings) if f.name not in ("soft",)]


def read_design(path: Path) -> DesignProblem:
    """Reads a design.

    Raises:
        FileProblem: naming the file and the entry that is wrong.
    """
    try:
        raw = yaml.safe_load(path.read_text())
    except FileNotFoundError as error:
        raise FileProblem(path, "no such design file") from error
    except (OSError, yaml.YAMLError, RecursionError, ValueError) as error:
        raise FileProblem(path, f"cannot be read as YAML: {error}") from error
    try:
        return parse_design(raw, path.parent)
    except FileProblem:
        raise
    except (DrakebotsError, TypeError, ValueError) as error:
        raise FileProblem(path, str(error)) from error


def parse_design(raw: Any, folder: Path) -> DesignProblem:
    """The problem in a parsed document; files are relative to `folder`.

    Raises:
        InvalidInput, UnknownName, FileProblem: for an entry that cannot be.
    """
    raw = _mapping(raw, "the file", _KEYS)
    if "template" not in raw:
        raise InvalidInput("needs `template: beetle`, or monster, lizard, cow")
    start = table1_problem(str(raw["template"]))
    template = table1_template(str(raw["template"]))
    parameters = dict(_mapping(raw.get("parameters", {}), "parameters"))
    template = edit(template, {str(k): v for k, v in parameters.items()})
    if "surface" not in raw:
        if parameters:
            raise InvalidInput("parameters need a surface to be fitted into")
        skin = _skin(raw.get("skin", {}), start.skin)
        return replace(start, name=str(raw.get("name", start.name)), skin=skin)
    entry = _mapping(raw["surface"], "surface", ("file", "unit", "scale"))
    if "file" not in entry:
        raise InvalidInput("surface: needs `file: body.stl`")
    unit = entry.get("unit")
    file = folder / str(entry["file"])
    surface = read_surface(file, unit=unit)
    limits = _mapping(raw.get("limits", {}), "limits")
    return DesignProblem(
        str(raw.get("name", file.stem.replace("-", "_"))),
        template,
        surface=surface,
        skin=_skin(raw.get("skin", {}), SkinSettings()),
        scale=_number(entry.get("scale", 1.0), "surface scale"),
        limits={str(k): tuple(map(float, v)) for k, v in limits.items()},
    )


def _skin(raw, usual: SkinSettings) -> SkinSettings:
    raw = dict(_mapping(raw, "skin", _SKIN))
    for name, kind in (("folds", FoldSettings), ("material", Material)):
        if name in raw:
            known = [f.name for f in fields(kind)]
            part = _mapping(raw[name], f"skin {name}", known)
            raw[name] = replace(getattr(usual, name), **part)
    for name, value in raw.items():
        if name in ("wall", "foot_wall", "mass", "fold_modulus", "brace_length"):
            raw[name] = _number(value, f"skin {name}")
        counts = name in ("vertices", "glue", "layers")
        if counts and (isinstance(value, bool) or not isinstance(value, int)):
            raise InvalidInput(f"skin {name}: {value!r} must be an integer")
    return replace(usual, **raw)


def _mapping(raw, where, known=None) -> Mapping:
    if not isinstance(raw, Mapping):
        raise InvalidInput(f"{where}: needs `name: value` entries")
    for key in raw:
        if known is not None and key not in known:
            raise UnknownName(f"entry of {where}", str(key), known)
    return raw


def _number(value, where) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{where}: {value!r} must be a number in SI") from None
