"""The same robot with another mass, other soles or servos, or another skin.

A module without a command: `quad_experiments.py` and `quad_claims.py` make them.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from scipy.spatial import cKDTree

from drakebots.core.checks import check_value, finite, optional, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.files import replacing
from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh, read_mesh, write_mesh
from drakebots.formats import load
from drakebots.model import model_stem, skin_path
from drakebots.skin.coupled import Patches
from drakebots.skin.file import SkinDescription, SkinnedRobot, read_skin, write_skin

INERTIA = ("mass", "ixx", "ixy", "ixz", "iyy", "iyz", "izz")

FAR = 0.05
"""Distance from glue beyond which skin counts as unbraced [m]."""

FLESH, FLESH_MODULUS = 201, 1e5
"""Region of the skin that was made soft, and its Young's modulus [Pa]."""

FOLDS = range(1, 100)
"""Regions of the folds at the joints of the stored robots."""


def variant(
    model: str | Path,
    folder: str | Path,
    *,
    mass: float = 1.0,
    modulus: float = 1.0,
    effort: float | None = None,
    soles: float = 1.0,
    servo: float | None = None,
    unbraced: float | None = None,
) -> Path:
    """Writes a changed robot into a folder and returns the path of its SDF.

    Args:
        model: a name, or a path to an SDF with a `.skin.yaml` beside it.
        folder: folder to write to; it is made if missing.
        mass: factor of all inertias of the skeleton and of the skin's density.
        modulus: factor of the skin's moduli in all regions.
        effort: torque limit of all motors, in place of the model's [N m].
        soles: factor of the length and width of the soles.
        servo: stiffness of all servos, in place of the model's [N m/rad].
        unbraced: height above which the skin is no longer glued to the trunk, the link
            with most glue [m]; see :func:`freed`.

    Raises:
        InvalidInput: for a factor not > 0, no glue left on the trunk, or a model that
            is not SDF.
        FileProblem, UnknownName: as from `load` and `read_skin`.
    """
    factors = {"mass": mass, "modulus": modulus, "effort": effort, "soles": soles}
    for name, factor in (factors | {"servo": servo}).items():
        check_value(name, factor, optional(positive()))
    check_value("unbraced", unbraced, optional(finite("m")))
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

    mesh_file = found.path.parent / skin.mesh
    own, regions = changed(skin.material), skin.regions
    skin = replace(
        skin,
        mesh=mesh_file.name,
        material=own,
        regions={key: changed(material) for key, material in regions.items()},
        patches=tuple(_smaller(one, soles) for one in skin.patches),
    )
    if servo is not None:
        skin = replace(skin, servos=replace(skin.servos, stiffness=servo))
    if unbraced is None:
        _copy(mesh_file, folder / mesh_file.name)
    else:
        skin, mesh = freed(skin, read_mesh(mesh_file), unbraced)
        write_mesh(folder / mesh_file.name, mesh)
    write_skin(skin_path(out), skin)
    for beside in found.path.parent.glob(f"{model_stem(found.path)}.drakebots.yaml"):
        _copy(beside, folder / beside.name)
    return out


def freed(
    skin: SkinDescription, mesh: TetMesh, height: float
) -> tuple[SkinDescription, TetMesh]:
    """A skin without the glue of its trunk above a height, and soft where it is far.

    The trunk is the link with most glue. What it carried, but for folds, and what is
    now further than :data:`FAR` from glue becomes region :data:`FLESH`, of
    :data:`FLESH_MODULUS`: head, back and tail hang on what is left.

    Args:
        skin: a skin glued by lists of vertices.
        mesh: its mesh, in metres.
        height: height of the lowest vertices to free [m].

    Raises:
        InvalidInput: where no glue would be left on the trunk.
    """
    trunk = max(skin.glue, key=lambda link: len(skin.glue[link]))
    links = np.repeat(list(skin.glue), [len(rows) for rows in skin.glue.values()])
    before = np.concatenate([np.asarray(rows, int) for rows in skin.glue.values()])
    kept = [int(v) for v in skin.glue[trunk] if mesh.vertices[v, 2] <= height]
    if not kept:
        raise InvalidInput(f"unbraced: all glue of {trunk} is above {height:g} m")
    glue = dict(skin.glue) | {trunk: tuple(kept)}
    after = np.concatenate([np.asarray(rows, int) for rows in glue.values()])
    middle = mesh.vertices[mesh.tets].mean(axis=1)
    carrier = links[cKDTree(mesh.vertices[before]).query(middle)[1]]
    away = cKDTree(mesh.vertices[after]).query(middle)[0]
    soft = (carrier == trunk) & (away > FAR) & ~np.isin(mesh.region, FOLDS)
    flesh = replace(skin.material, youngs_modulus=FLESH_MODULUS)
    return (
        replace(skin, glue=glue, regions=dict(skin.regions) | {FLESH: flesh}),
        replace(mesh, region=np.where(soft, FLESH, mesh.region)),
    )


def unbraced_share(robot: SkinnedRobot) -> float:
    """Share of the skin's mass that is further than :data:`FAR` from glue at rest."""
    rest, mass = robot.fem.rest, robot.fem.node_mass
    away = cKDTree(rest[robot.glue.vertices]).query(rest)[0]
    return float(mass[away > FAR].sum() / mass.sum())


def _smaller(patches: Patches, factor: float) -> Patches:
    """A foot's patches, drawn together about their middle."""
    middle = patches.p_BC.mean(axis=0)
    return replace(patches, p_BC=middle + factor * (patches.p_BC - middle))


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
