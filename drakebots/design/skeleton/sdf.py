"""A skeleton as an SDF that Drake's parser loads, and its feet beside it.

The inertias of the links are those of their solids. Every hinge is a revolute joint
with limits, effort, velocity and an actuator of its name. Beside `x.sdf`,
`x.drakebots.yaml` has five contact patches for each foot, as points of the sole on the
outside of the skin: FL_0 to FL_3 are its corners, FL_4 its middle. Bracing plates are
drawn from `meshes/LINK_plates.obj`, parts that are trimmed to the skin from
`meshes/LINK_trimmed.obj`, which the SDF names relative to itself. The files depend on
the skeleton only.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from pydrake.math import RotationMatrix

from drakebots.core.files import make_folder, write_text
from drakebots.design.geometry import Surface
from drakebots.design.skeleton.skeleton import (
    Hinge,
    Link,
    Plate,
    Skeleton,
    Solid,
    Trimmed,
)
from drakebots.formats import (
    SdfGeometry,
    SdfJoint,
    SdfLink,
    SdfModel,
    SdfPose,
    model_sdf,
)

DAMPING = 0.01
"""Viscous damping of a servo's joint [N m s/rad]; small, not from a data sheet."""

_SOLE_FRICTION = 0.8
"""Coefficient of Coulomb friction of a silicone sole."""

_SOLE_MODULUS = 1e6
"""Hydroelastic modulus of a sole [Pa], about Young's modulus of silicone."""

_SOLE_THICKNESS = 0.012
"""Thickness of a sole's collision box [m]."""

_PRINTED = {
    "torso": (0.86, 0.84, 0.78, 1.0),
    "hip": (0.80, 0.71, 0.56, 1.0),
    "upper": (0.55, 0.69, 0.75, 1.0),
    "lower": (0.66, 0.76, 0.62, 1.0),
    "foot": (0.76, 0.60, 0.56, 1.0),
    "tail": (0.71, 0.66, 0.79, 1.0),
}
_KIND = {
    "servo": (0.25, 0.28, 0.33, 1.0),
    "rib": (0.93, 0.90, 0.82, 1.0),
    "payload": (0.36, 0.50, 0.44, 1.0),
}


def skeleton_sdf(skeleton: Skeleton) -> str:
    """The text of the SDF."""
    model = SdfModel(skeleton.name)
    soles = {sole.link: sole for sole in skeleton.soles}
    for link in skeleton.links:
        model.links[link.name] = _link(skeleton, link, soles.get(link.name))
    for hinge in skeleton.hinges:
        model.joints[hinge.name] = _joint(hinge)
    return model_sdf(model)


def feet_yaml(skeleton: Skeleton) -> str:
    """The text of the `.drakebots.yaml` beside the SDF."""
    lines = [
        "# Five contact patches a foot, on the outside of the skin: corners 0 front",
        "# left, 1 front right, 2 rear left, 3 rear right, and 4 the middle; SI.",
        "feet:",
    ]
    for sole in skeleton.soles:
        for k, p in enumerate(sole.p_BP):
            place = ", ".join(repr(round(float(x), 9) + 0.0) for x in p)
            lines.append(f"  {sole.foot}_{k}: {{body: {sole.link}, p: [{place}]}}")
    return "\n".join(lines) + "\n"


def link_meshes(skeleton: Skeleton) -> dict[str, str]:
    """Bracing plates and trimmed parts, as Wavefront OBJ in their link's frame [m].

    Returns:
        The texts by file name, relative to the SDF.
    """
    made = {}
    for link in skeleton.links:
        for what, solids in _meshed(link).items():
            lines, first = [], 1
            for solid in solids:
                surface = solid.surface()
                lines.append(f"o {solid.name}")
                lines += [f"v {x:.6f} {y:.6f} {z:.6f}" for x, y, z in surface.vertices]
                # Drake's cameras draw no mesh without normals.
                written = Surface(surface.vertices.round(6), surface.triangles)
                normals = written.mean_normals
                lines += [f"vn {x:.3f} {y:.3f} {z:.3f}" for x, y, z in normals]
                faces = surface.triangles + first
                lines += [f"f {a}//{a} {b}//{b} {c}//{c}" for a, b, c in faces]
                first += len(surface.vertices)
            made[_mesh_file(link, what)] = "\n".join(lines) + "\n"
    return made


def _meshed(link: Link) -> dict[str, list[Plate | Trimmed]]:
    """The solids of a link that are no boxes, by what they are; only what there is."""
    kinds = {"plates": Plate, "trimmed": Trimmed}
    rows = {k: [s for s in link.solids if isinstance(s, t)] for k, t in kinds.items()}
    return {what: solids for what, solids in rows.items() if solids}


def _mesh_file(link: Link, what: str) -> str:
    return f"meshes/{link.name}_{what}.obj"


def write_sdf(skeleton: Skeleton, folder: Path | str) -> Path:
    """Writes NAME.sdf, NAME.drakebots.yaml and the links' meshes into a folder.

    Returns:
        the path of the SDF.
    """
    make_folder(folder)
    folder = Path(folder)
    path = folder / f"{skeleton.name}.sdf"
    write_text(path, skeleton_sdf(skeleton))
    write_text(folder / f"{skeleton.name}.drakebots.yaml", feet_yaml(skeleton))
    write_meshes(skeleton, folder)
    return path


def write_meshes(skeleton: Skeleton, folder: Path) -> None:
    """Writes the meshes of :func:`link_meshes` for an SDF in this folder."""
    for name, text in link_meshes(skeleton).items():
        make_folder((folder / name).parent)
        write_text(folder / name, text)


def _link(skeleton, link: Link, sole) -> SdfLink:
    parent = None if link.parent is None else skeleton.link(link.parent)
    p = link.origin - (0.0 if parent is None else parent.origin)
    boxes = [s for s in link.solids if not isinstance(s, Plate | Trimmed)]
    drawn = [g for solid in boxes for g in _visuals(link, solid)]
    for what, solids in _meshed(link).items():
        mesh = {"uri": _mesh_file(link, what)}
        rgba = _colour(link, solids[0])
        drawn.append(SdfGeometry("visual", what, SdfPose(), "mesh", mesh, rgba))
    shapes, pose = [*drawn, *_collisions(link, sole)], SdfPose(_tidy(p))
    mass, inertia = round(link.mass, 12), np.round(link.inertia, 15) + 0.0
    com = SdfPose(_tidy(link.com))
    return SdfLink(link.name, mass, com, inertia, shapes, pose, link.parent)


def _joint(hinge: Hinge) -> SdfJoint:
    servo = hinge.servo
    limit = {"lower": hinge.lower, "upper": hinge.upper}
    limit |= {"effort": servo.effort, "velocity": servo.speed}
    joins = hinge.parent, hinge.child, hinge.axis
    return SdfJoint(hinge.name, "revolute", *joins, DAMPING, limit, actuated=True)


def _visuals(link: Link, solid: Solid) -> list[SdfGeometry]:
    rgba, boxes = _colour(link, solid), solid.boxes()
    names = [f"{solid.name}_{k}" if len(boxes) > 1 else solid.name for k in range(4)]
    return [
        _box("visual", name, solid.p_BG + solid.R_BG @ p_GV, solid.R_BG, size, rgba)
        for name, (size, p_GV) in zip(names, boxes)
    ]


def _colour(link: Link, solid: Solid | Plate) -> np.ndarray:
    part = link.name.split("_")[-1]
    return np.array(_KIND.get(solid.kind, _PRINTED.get(part, _PRINTED["torso"])))


def _box(kind, name, p, R, size, rgba=None):
    rpy = RotationMatrix(R).ToRollPitchYaw().vector()
    pose = SdfPose(_tidy(p), _tidy(rpy))
    return SdfGeometry(kind, name, pose, "box", {"size": _tidy(size)}, rgba)


def _collisions(link: Link, sole) -> list[SdfGeometry]:
    """Boxes around the link's printed parts; of a foot, its sole with the skin."""
    if sole is not None:
        middle = sole.p_BP[4] + [0.0, 0.0, _SOLE_THICKNESS / 2]
        size = np.array([*sole.size, _SOLE_THICKNESS])
        box = _box("collision", "sole", middle, np.eye(3), size)
        return [replace(box, friction=_SOLE_FRICTION, modulus=_SOLE_MODULUS)]
    shapes = ("frame",) if link.parent is None else ("bay", "beam")
    named = [(solid.name.rpartition("_")[2], solid) for solid in link.solids]
    return [
        _box("collision", name, solid.p_BG, solid.R_BG, solid.size)
        for name, solid in named
        if name in shapes
    ]


def _tidy(values) -> np.ndarray:
    """The values without the last digits, in which machines differ."""
    return np.round(np.asarray(values, float), 12) + 0.0
