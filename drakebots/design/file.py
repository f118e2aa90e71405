"""Design problems in YAML files, in SI.

    name: my_dog
    surface: {file: dog.stl, unit: mm, scale: 1.2}
    template: cow                   # beetle, monster, lizard, cow: start of the fit
    parameters: {front.upper: 0.11, build.wall: 0.003}
    limits: {hind.splay: [0, 0.2]}  # of parameters, in the fit
    skin: {wall: 0.004, vertices: 12000, glue: 160, folds: {depth: 0.006}}

Without a surface, the template's robot of Table 1 is designed. With a surface and
without a template, everything that is not given is found:

    surface: {file: dog.stl}        # scale: 1.2 to give it
    fit: {template: upright, servo: DS3218}
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from drakebots.core.convert import changed
from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.core.files import TOP, Fields, read_yaml, reading
from drakebots.design.fit import FitSettings
from drakebots.design.geometry import read_surface
from drakebots.design.pipeline import SURFACE_SKIN
from drakebots.design.problem import DesignProblem
from drakebots.design.skeleton import edit
from drakebots.design.skin import SkinSettings
from drakebots.design.table1 import table1_problem, table1_template

_ENTRIES = ("name", "surface", "template", "fit", "parameters", "limits", "skin")


def read_design(path: Path | str) -> DesignProblem:
    """Reads a design problem from a YAML file.

    Raises:
        FileProblem: naming the file and the entry that is wrong.
    """
    path = Path(path)
    if not os.path.exists(path):
        raise FileProblem(path, "no such design file")
    with reading(path):
        return parse_design(read_yaml(path), path.parent)


def parse_design(raw: Any, folder: Path) -> DesignProblem:
    """The problem in a parsed document.

    Args:
        raw: the document.
        folder: folder to which the surface's file is relative.

    Raises:
        InvalidInput, UnknownName, FileProblem: for an entry that is wrong.
    """
    top = Fields(raw, TOP, _ENTRIES)
    for entry in ("parameters", "limits"):
        if entry in top and not ("template" in top and "surface" in top):
            raise InvalidInput(f"{entry} need a template and a surface to fit it into")
    if "surface" in top and "template" not in top:
        return _found(top, folder)
    if "fit" in top:
        raise InvalidInput("fit is for a surface without template; leave one out")
    if "template" not in top:
        raise InvalidInput("needs `template: beetle`, or monster, lizard, cow")
    robot = top.text("template")
    start = table1_problem(robot)
    parameters = top.fields("parameters")
    template = edit(table1_template(robot), {k: parameters.get(k) for k in parameters})
    if "surface" not in top:
        skin = changed(start.skin, top.get("skin", {}), "skin")
        return replace(start, name=top.text("name", start.name), skin=skin)
    entry, file, name = _surface_entry(top, folder)
    limits = top.fields("limits")
    ranges = {name: limits.get(name) for name in limits}
    surface = read_surface(file, unit=entry.get("unit", None))
    skin = changed(SkinSettings(), top.get("skin", {}), "skin")
    fit = {"scale": entry.number("scale", 1.0), "limits": ranges}
    return DesignProblem(name, template, surface=surface, skin=skin, **fit)


def _found(top: Fields, folder: Path) -> DesignProblem:
    """The problem of a surface whose skeleton is to be found."""
    entry, file, name = _surface_entry(top, folder)
    given = top.fields("fit", ("template", "servo"))
    scale = entry.number("scale") if "scale" in entry else None
    surface = read_surface(file, unit=entry.get("unit", None), any_size=True)
    choices = {k: given.text(k) for k in given}
    skin = changed(SURFACE_SKIN, top.get("skin", {}), "skin")
    fit = FitSettings(scale=scale, **choices)
    return DesignProblem(name, surface=surface, skin=skin, fit=fit)


def _surface_entry(top: Fields, folder: Path) -> tuple[Fields, Path, str]:
    """The entry of the surface, its file, and the design's name."""
    entry = top.fields("surface", ("file", "unit", "scale"))
    file = folder / entry.text("file")
    return entry, file, top.text("name", file.stem.replace("-", "_"))
