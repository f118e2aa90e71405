"""Reads an MJCF file: SDF for Drake, and what SDF cannot say."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.model.couplers import Coupler
from drakebots.model.loops import Loop
from drakebots.model.reading.includes import check_includes
from drakebots.model.reading.limits import check_model_file
from drakebots.model.reading.mjcf.bodies import Tree, read_bodies
from drakebots.model.reading.mjcf.compiler import read_compiler
from drakebots.model.reading.mjcf.mesh import read_meshes
from drakebots.model.reading.mjcf.sections import (
    read_couplers,
    read_loops,
    read_motors,
    read_poses,
)
from drakebots.model.reading.mjcf.tree import Element, read_elements
from drakebots.model.reading.mjcf.write import mjcf_sdf

PLAIN = frozenset("compiler default worldbody actuator equality keyframe asset".split())
"""The elements of <mujoco> that are read; others are counted as left out."""


@dataclass(frozen=True)
class Mjcf:
    """A model read from an MJCF file, in SI.

    Attributes:
        sdf: SDF text for Drake; its motors have the names of their joints.
        loops: what `connect` and `weld` close; the SDF does not close them.
        couplers: joints that follow others; the SDF says so.
        poses: of the keyframes, by name, then by joint [rad, m].
        notes: what was left out or changed, one line each.
    """

    sdf: str
    loops: tuple[Loop, ...]
    couplers: tuple[Coupler, ...]
    poses: Mapping[str, Mapping[str, float]]
    notes: tuple[str, ...]


def read_mjcf(path: Path, *, free_base: bool = False) -> Mjcf:
    """Reads an MJCF file.

    Args:
        path: the file; included files and meshes are relative to it.
        free_base: whether bodies that are welded to the world, and carry others that
            move, are to move freely.

    Raises:
        ModelProblem: for a file that cannot be read, or that says what MJCF cannot;
            one line with all problems.
    """
    check_includes(path)
    try:
        root = read_elements(path, _parse)
        if root.tag != "mujoco":
            raise InvalidInput(f"starts with <{root.tag}>; MJCF needs <mujoco>")
        compiler = read_compiler(root)
        meshes = read_meshes(root, compiler, path.parent)
        tree = read_bodies(root, compiler, meshes, _colors(root))
        if not tree.bodies:
            raise InvalidInput("has no <body>; a model needs one")
        for base in tree.welded_bases() if free_base else ():
            base.is_freed = True
        efforts = read_motors(root, tree, compiler)
        loops = read_loops(root, tree, compiler)
        couplers = read_couplers(root, tree)
        poses = read_poses(root, tree)
        name = root.get("model") or path.stem
        sdf = mjcf_sdf(name, tree, efforts, _excluded(root, tree), couplers)
    except InvalidInput as error:
        raise ModelProblem(path, str(error)) from error
    return Mjcf(sdf, loops, couplers, poses, _notes(root, tree, efforts))


def _parse(path: Path) -> ET.Element:
    return ET.fromstring(check_model_file(path))


def _colors(root: Element) -> dict[str, np.ndarray]:
    """The color of each material (4,)."""
    return {
        material.get("name"): np.array(material.vector("rgba", 4, "1 1 1 1"))
        for asset in root.all("asset")
        for material in asset.all("material")
    }


def _excluded(root: Element, tree: Tree) -> list[tuple[str, str]]:
    """Pairs of links that do not collide because <contact> says so."""
    return [
        (tree.body(pair.get("body1")).name, tree.body(pair.get("body2")).name)
        for contact in root.all("contact")
        for pair in contact.all("exclude")
        if "world" not in (pair.get("body1"), pair.get("body2"))
    ]


def _notes(root: Element, tree: Tree, efforts: Mapping[str, float]) -> tuple[str, ...]:
    notes = []
    for child in root.children:
        if child.tag == "contact":
            for pair in child.all("pair"):
                tree.leave_out(f"<{pair.tag}> of <contact>")
        elif child.tag not in PLAIN:
            tree.leave_out(f"<{child.tag}>", max(1, len(child.children)))
    for body in tree.bodies:
        for joint in body.joints:
            if joint.friction > 0:
                tree.leave_out("friction of joints")
            if joint.armature > 0 and joint.name not in efforts:
                tree.leave_out("armature of joints without a motor")
    if tree.left_out:
        counted = ", ".join(f"{n} x {what}" for what, n in tree.left_out.items())
        notes.append(f"left out of the MJCF: {counted}")
    if tree.left_out_meshes:
        meshes = ", ".join(f"{a} ({why})" for a, why in tree.left_out_meshes.items())
        notes.append(f"meshes left out, with their mass: {meshes}"[:300])
    if tree.names.changed:
        renamed = ", ".join(f"{a!r} is {b!r}" for a, b in tree.names.changed.items())
        notes.append(f"names that SDF takes once only: {renamed}"[:300])
    notes += [
        f"{body.name!r} is welded to the world; a <freejoint/> or --free-base frees it"
        for body in tree.welded_bases()
        if not body.is_freed
    ]
    return tuple(notes)
