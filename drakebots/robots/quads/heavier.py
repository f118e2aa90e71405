"""The same robot with more mass: every inertia of the skeleton, the skin's density."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.models import load
from drakebots.multibody.description import model_stem
from drakebots.results.container import replacing
from drakebots.skin.description import read_skin, skin_path, write_skin

INERTIA = ("mass", "ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def heavier(model: str | Path, factor: float, folder: str | Path) -> Path:
    """Writes a robot of `factor` times the mass into a folder; the SDF's path.

    Geometry, motors and the skin's stiffness stay as they are.

    Raises:
        InvalidInput: for a factor not > 0, or a model that is not SDF.
        FileProblem, UnknownName: as from `load` and `read_skin`.
    """
    if not (np.isfinite(factor) and factor > 0):
        raise InvalidInput(f"mass factor must be > 0, got {factor}")
    found = load(model)
    if found.path.suffix != ".sdf":
        raise InvalidInput(f"{found.path.name}: only an SDF can be made heavier")
    skin = read_skin(skin_path(found.path))
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tree = ElementTree.parse(found.path)
    for inertial in tree.iter("inertial"):
        for entry in inertial.iter():
            if entry.tag in INERTIA and entry.text:
                entry.text = repr(factor * float(entry.text))
    out = folder / found.path.name
    with replacing(out) as part:
        tree.write(part, encoding="utf-8", xml_declaration=True)
    materials = {
        key: replace(material, density=factor * material.density)
        for key, material in skin.regions.items()
    }
    own = replace(skin.material, density=factor * skin.material.density)
    mesh = found.path.parent / skin.mesh
    if mesh.resolve() != (folder / mesh.name).resolve():
        shutil.copyfile(mesh, folder / mesh.name)
    changed = replace(skin, material=own, regions=materials, mesh=mesh.name)
    write_skin(skin_path(out), changed)
    for beside in found.path.parent.glob(f"{model_stem(found.path)}.drakebots.yaml"):
        shutil.copyfile(beside, folder / beside.name)
    return out
