"""The same robot with another mass, or a skin of another modulus."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.fem.materials import Material
from drakebots.models import load
from drakebots.multibody.description import model_stem
from drakebots.results.container import replacing
from drakebots.skin.description import read_skin, skin_path, write_skin

INERTIA = ("mass", "ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def variant(
    model: str | Path,
    folder: str | Path,
    *,
    mass: float = 1.0,
    modulus: float = 1.0,
    effort: float | None = None,
) -> Path:
    """Writes a changed robot into a folder; the SDF's path.

    Args:
        model: a name, or a path to an SDF with a `.skin.yaml` beside it.
        folder: made if it is not there.
        mass: factor of every inertia of the skeleton and of the skin's density.
        modulus: factor of the skin's, in all regions.
        effort: limit of all motors, in place of the model's [N m].

    Raises:
        InvalidInput: for a factor not > 0, or a model that is not SDF.
        FileProblem, UnknownName: as from `load` and `read_skin`.
    """
    for name, factor in (("mass", mass), ("modulus", modulus), ("effort", effort)):
        if factor is not None and not (np.isfinite(factor) and factor > 0):
            raise InvalidInput(f"{name} must be > 0, got {factor}")
    found = load(model)
    if found.path.suffix != ".sdf":
        raise InvalidInput(f"{found.path.name}: only an SDF can be changed")
    skin = read_skin(skin_path(found.path))
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tree = ElementTree.parse(found.path)
    for inertial in tree.iter("inertial"):
        for entry in inertial.iter():
            if entry.tag in INERTIA and entry.text:
                entry.text = repr(mass * float(entry.text))
    if effort is not None:
        for entry in tree.iter("effort"):
            # Joints without a motor have an effort of 0.
            if entry.text and float(entry.text) > 0:
                entry.text = repr(effort)
    _bring_meshes(tree, found.path.parent, folder)
    out = folder / found.path.name
    with replacing(out) as part:
        tree.write(part, encoding="utf-8", xml_declaration=True)

    def changed(material: Material) -> Material:
        return replace(
            material,
            density=mass * material.density,
            youngs_modulus=modulus * material.youngs_modulus,
        )

    materials = {key: changed(material) for key, material in skin.regions.items()}
    mesh = found.path.parent / skin.mesh
    _copy(mesh, folder / mesh.name)
    own = changed(skin.material)
    write_skin(
        skin_path(out), replace(skin, material=own, regions=materials, mesh=mesh.name)
    )
    for beside in found.path.parent.glob(f"{model_stem(found.path)}.drakebots.yaml"):
        _copy(beside, folder / beside.name)
    return out


def _bring_meshes(tree: ElementTree.ElementTree, source: Path, folder: Path) -> None:
    """Copies files that the SDF names relative to itself to the same place here."""
    for entry in tree.iter("uri"):
        name = (entry.text or "").strip()
        if "://" in name or not (source / name).is_file():
            continue
        if (folder / name).resolve().is_relative_to(folder.resolve()):
            _copy(source / name, folder / name)
        else:
            entry.text = str((source / name).resolve())


def _copy(source: Path, target: Path) -> None:
    if source.resolve() != target.resolve():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
