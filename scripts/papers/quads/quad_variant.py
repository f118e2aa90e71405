"""The same robot with another mass, or with a skin of another modulus."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from drakebots.core.checks import check_value, optional, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.files import replacing
from drakebots.fem.material import Material
from drakebots.model import load, model_stem, skin_path
from drakebots.skin.file import read_skin, write_skin

INERTIA = ("mass", "ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def variant(
    model: str | Path,
    folder: str | Path,
    *,
    mass: float = 1.0,
    modulus: float = 1.0,
    effort: float | None = None,
) -> Path:
    """Writes a changed robot into a folder and returns the path of its SDF.

    Args:
        model: a name, or a path to an SDF with a `.skin.yaml` beside it.
        folder: folder to write to; it is made if missing.
        mass: factor of all inertias of the skeleton and of the skin's density.
        modulus: factor of the skin's moduli in all regions.
        effort: torque limit of all motors, in place of the model's [N m].

    Raises:
        InvalidInput: for a factor not > 0, or a model that is not SDF.
        FileProblem, UnknownName: as from `load` and `read_skin`.
    """
    for name, factor in (("mass", mass), ("modulus", modulus), ("effort", effort)):
        check_value(name, factor, optional(positive()))
    found = load(model)
    if found.path.suffix != ".sdf":
        raise InvalidInput(f"{found.path.name}: only robots in SDF can be changed")
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
    _copy_meshes(tree, found.path.parent, folder)
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


def _copy_meshes(tree: ElementTree.ElementTree, source: Path, folder: Path) -> None:
    """Copies the files that the SDF names by relative paths."""
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
