"""The links, joints and shapes of a compiled MJCF model as SDF."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydrake.common.eigen_geometry import Quaternion
from pydrake.math import RigidTransform, RotationMatrix

from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.core.lazy import late
from drakebots.formats.read.masses import principal_inertia
from drakebots.formats.read.meshes import (
    Part,
    collision_mesh,
    mesh_cache,
    visual_mesh,
    write_obj,
)
from drakebots.formats.read.tree import free_name
from drakebots.formats.write.sdf import (
    SdfFilter,
    SdfGeometry,
    SdfJoint,
    SdfLink,
    SdfModel,
    SdfPose,
)

if TYPE_CHECKING:
    from mujoco import MjModel, MjSpec

mujoco = late("mujoco")

DRAWN = 3
"""MuJoCo draws shapes of the groups below this."""

KINDS = ("free", "ball", "slide", "hinge")
"""The kinds of joints, in MuJoCo's order."""

_SDF_KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "ball"}

_GREY = np.array([0.5, 0.5, 0.5, 1.0], dtype=np.float32)
"""A shape of this color, MuJoCo's default, has that of its material."""


@dataclass(frozen=True)
class Joint:
    """A joint of one body.

    Attributes:
        name: in the SDF.
        kind: one of :data:`KINDS`.
        index: in MuJoCo's model.
        q: index of its first entry in qpos.
        ref: qpos of the reference configuration, where Drake's q is 0 [rad, m].
    """

    name: str
    kind: str
    index: int
    q: int
    ref: float

    @property
    def is_single(self) -> bool:
        """Whether it has one degree of freedom."""
        return self.kind in ("hinge", "slide")


class Tree:
    """The bodies of a compiled model with their names in the SDF.

    Args:
        spec: the elements of the file, for what the model does not keep.
        model: in SI, poses relative to parents at the reference configuration.
        left_out: counts of what MuJoCo was not given, by what it is.
        lost_meshes: why a mesh cannot be used, by its file's name.

    Attributes:
        links: names by MuJoCo's index; the world is 0. Mocap bodies, which others
            move, and what they carry are not in it.
        joints: of each of these bodies, in their order.
        freed: bodies that move freely although the file welds them to the world.
        left_out: counts of elements without a counterpart, by what they are.
        lost_meshes: why a mesh cannot be used, by its file.
        renamed: new names of what could not keep its own, by the old ones.
    """

    def __init__(
        self,
        spec: MjSpec,
        model: MjModel,
        left_out: Counter[str],
        lost_meshes: dict[str, str],
    ):
        self.spec, self.model = spec, model
        self.left_out, self.lost_meshes = left_out, lost_meshes
        self._taken, self.renamed = {"world"}, {}
        self.links = {0: "world"}
        self.joints: dict[int, list[Joint]] = {0: []}
        self.freed: set[int] = set()
        for body in range(1, model.nbody):
            if model.body_mocapid[body] >= 0 or self.parent(body) not in self.links:
                self.left_out["mocap bodies"] += 1
                continue
            given = model.body(body).name
            name = self.take(given or f"body{body}", is_ours=not given)
            self.links[body] = name
            first = model.body_jntadr[body]
            joints = range(first, first + model.body_jntnum[body])
            self.joints[body] = [self._joint(name, index) for index in joints]
        if len(self.links) == 1:
            raise InvalidInput("has no <body>; a model needs one")

    def take(self, name: str, ending: str = "", *, is_ours: bool = False) -> str:
        """A name that is still free: as given, with the ending, or with a number.

        MJCF lets a joint have the name of a body; SDF does not.

        Args:
            name: to take.
            ending: to add where the name is taken.
            is_ours: whether the name is none of the file's.
        """
        clean = name.replace("::", "/")
        if clean.startswith("__") and clean.endswith("__"):
            clean = clean.strip("_") or "unnamed"
        found = clean
        if found in self._taken and ending:
            found = f"{clean}_{ending}"
        if found in self._taken:
            found = free_name(clean, self._taken)
        self._taken.add(found)
        if found != name and not is_ours:
            self.renamed[name] = found
        return found

    def _joint(self, body: str, index: int) -> Joint:
        model = self.model
        kind, given = KINDS[model.jnt_type[index]], model.joint(index).name
        name = self.take(given or f"{body}_{kind}", "joint", is_ours=not given)
        q = int(model.jnt_qposadr[index])
        return Joint(name, kind, index, q, float(model.qpos0[q]))

    def bodies(self) -> Iterator[int]:
        """All but the world, parents before children."""
        return (body for body in self.links if body)

    def parent(self, body: int) -> int:
        """The body, perhaps the world, that another hangs on."""
        return int(self.model.body_parentid[body])

    @cached_property
    def joint_of(self) -> dict[int, Joint]:
        """The joints by their index."""
        return {j.index: j for joints in self.joints.values() for j in joints}

    def pose(self, kind: str, index: int) -> RigidTransform:
        """The pose of a body in its parent, of a geom or a site in its body."""
        quat = getattr(self.model, f"{kind}_quat")[index]
        return transform(getattr(self.model, f"{kind}_pos")[index], quat)

    def geoms(self, body: int) -> range:
        """The shapes of a body."""
        first = self.model.body_geomadr[body]
        return range(first, first + self.model.body_geomnum[body])

    def collides(self, geom: int) -> bool:
        """Whether a shape may touch anything."""
        return any(self.masks(geom))

    def masks(self, geom: int) -> tuple[int, int]:
        """The `contype` and `conaffinity` of a shape."""
        model = self.model
        return int(model.geom_contype[geom]), int(model.geom_conaffinity[geom])

    def welded_bases(self) -> list[int]:
        """The bodies that are welded to the world and carry bodies that move."""
        roots = (self.model.body_rootid[b] for b in self.bodies() if self.joints[b])
        return [int(b) for b in dict.fromkeys(roots) if not self.joints[b]]


def transform(p: np.ndarray, quat: np.ndarray) -> RigidTransform:
    """A pose from a position [m] and a quaternion w, x, y, z of any length."""
    return RigidTransform(RotationMatrix(Quaternion(quat / np.linalg.norm(quat))), p)


def sdf_model(tree: Tree, name: str, efforts: dict[str, float]) -> SdfModel:
    """The links, joints, frames and collision filters of a tree.

    A body of several joints hangs on massless links, one for each joint but the last.

    Args:
        tree: its bodies.
        name: of the model.
        efforts: of the joints with a motor [N m, N]; inf for no limit.
    """
    sdf = SdfModel(name.replace("::", "/").strip("_") or "mjcf")
    for body in tree.bodies():
        _add_body(sdf, tree, body, efforts)
    for site in range(tree.model.nsite):
        body, given = int(tree.model.site_bodyid[site]), tree.model.site(site).name
        if given and body in tree.links and body:
            frame, X = tree.take(given, "site", is_ours=True), tree.pose("site", site)
            sdf.frames.append((frame, tree.links[body], SdfPose.of(X)))
    sdf.filters += _family_filters(tree) + _mask_filters(tree) + _excluded(tree)
    return sdf


def _add_body(sdf: SdfModel, tree: Tree, body: int, efforts: dict[str, float]) -> None:
    model, name = tree.model, tree.links[body]
    parent, X = tree.links[tree.parent(body)], tree.pose("body", body)
    joints = [joint for joint in tree.joints[body] if joint.kind != "free"]
    is_free = len(joints) < len(tree.joints[body]) or body in tree.freed
    for joint in joints[:-1]:
        # Before its joints move, all links of a body have its frame.
        between = tree.take(f"{name}_{joint.kind}", is_ours=True)
        sdf.place(SdfLink(between), parent, X)
        sdf.joints[joint.name] = _joint(tree, joint, parent, between, efforts)
        parent, X = between, RigidTransform()
    moments, _ = principal_inertia(np.diag(model.body_inertia[body]))
    com = SdfPose.of(transform(model.body_ipos[body], model.body_iquat[body]))
    shapes = _geometries(tree, body)
    mass = float(model.body_mass[body])
    sdf.place(SdfLink(name, mass, com, np.diag(moments), shapes), parent, X)
    if joints:
        joint = joints[-1]
        sdf.joints[joint.name] = _joint(tree, joint, parent, name, efforts)
    elif not is_free:
        weld = tree.take(f"{parent}_welds_to_{name}", is_ours=True)
        sdf.joints[weld] = SdfJoint(weld, "fixed", parent, name)


def _joint(
    tree: Tree, joint: Joint, parent: str, child: str, efforts: dict[str, float]
) -> SdfJoint:
    model, index = tree.model, joint.index
    dof, limit = model.jnt_dofadr[index], {}
    if joint.is_single and model.jnt_limited[index]:
        limit["lower"], limit["upper"] = model.jnt_range[index] - joint.ref
    if np.isfinite(efforts.get(joint.name, np.inf)):
        limit["effort"] = efforts[joint.name]
    stiffness = float(model.jnt_stiffness[index]) if joint.is_single else 0.0
    return SdfJoint(
        joint.name,
        _SDF_KINDS[joint.kind],
        parent,
        child,
        axis=model.jnt_axis[index],
        p_CJ=model.jnt_pos[index],
        damping=float(model.dof_damping[dof]),
        limit=limit,
        stiffness=stiffness,
        reference=float(model.qpos_spring[joint.q]) - joint.ref if stiffness else None,
        actuated=joint.name in efforts,
        rotor_inertia=float(model.dof_armature[dof]),
    )


# --- shapes ---


def _geometries(tree: Tree, body: int) -> list[SdfGeometry]:
    """Each shape as a visual, where MuJoCo draws it, and as a collision."""
    model, found, taken = tree.model, [], set()
    some_drawn = any(model.geom_group[geom] < DRAWN for geom in tree.geoms(body))
    for index, geom in enumerate(tree.geoms(body)):
        name = model.geom(geom).name.replace("::", "/")
        name = name or f"{tree.links[body]}_geom{index}"
        name = free_name(name, taken)
        taken.add(name)
        kinds = ["visual"] if model.geom_group[geom] < DRAWN or not some_drawn else []
        kinds += ["collision"] if tree.collides(geom) else []
        for kind in kinds:
            try:
                shape, values, X_BG = _shape(tree, geom, kind)
            except ModelProblem as problem:
                why = str(problem).removeprefix(f"{problem.path}: ")
                tree.lost_meshes[problem.path.name] = why
                continue
            if not values:
                tree.left_out[f"shapes of type {shape}"] += 1
                break
            made = SdfGeometry(kind, f"{name}_{kind}", SdfPose.of(X_BG), shape, values)
            if kind == "visual":
                made = replace(made, rgba=_color(tree, geom))
            else:
                made = replace(made, friction=float(model.geom_friction[geom, 0]))
            found.append(made)
    return found


def _shape(
    tree: Tree, geom: int, kind: str
) -> tuple[str, dict[str, object], RigidTransform]:
    """The SDF shape of a geom, its children, and its pose in the body.

    The children are empty for what Drake has no shape for.
    """
    model, X_BG = tree.model, tree.pose("geom", geom)
    shape = mujoco.mjtGeom(model.geom_type[geom]).name.removeprefix("mjGEOM_").lower()
    size = model.geom_size[geom]
    if shape == "mesh":
        values, X_BG = _mesh(tree, int(model.geom_dataid[geom]), kind, X_BG)
        return shape, values, X_BG
    values = {
        "box": {"size": 2 * size},
        "ellipsoid": {"radii": size},
        "sphere": {"radius": size[0]},
        "capsule": {"radius": size[0], "length": 2 * size[1]},
        "cylinder": {"radius": size[0], "length": 2 * size[1]},
    }
    return shape, values.get(shape, {}), X_BG


def _mesh(
    tree: Tree, index: int, kind: str, X_BG: RigidTransform
) -> tuple[dict[str, object], RigidTransform]:
    """The file and scale of a mesh, and its pose where X_BG is that of MuJoCo's.

    MuJoCo puts the vertices of a mesh into its principal frame. Where the file says it
    all, it is taken; else an .obj in the cache, in that frame.
    """
    mesh = next(mesh for mesh in tree.spec.meshes if mesh.id == index)
    start, scale = tree.model.mesh_pathadr[index], np.asarray(mesh.scale)
    file = Path(os.fsdecode(tree.model.paths[max(start, 0) :].split(b"\0")[0]))
    is_turned = np.any(mesh.refpos) or np.any(mesh.refquat[1:])
    if start < 0 or is_turned or file.suffix.lower() == ".msh":
        file, scale = _written(tree, index), np.ones(3)
    else:
        file, X_BG = file.resolve(), X_BG @ tree.pose("mesh", index).inverse()
    usable = visual_mesh(file) if kind == "visual" else collision_mesh(file)
    return {"uri": f"file://{usable}", "scale": scale}, X_BG


def _written(tree: Tree, index: int):
    """An .obj of a compiled mesh in the cache."""
    model = tree.model
    start, count = model.mesh_vertadr[index], model.mesh_vertnum[index]
    vertices = model.mesh_vert[start : start + count]
    start, count = model.mesh_faceadr[index], model.mesh_facenum[index]
    faces = model.mesh_face[start : start + count]
    digest = hashlib.sha256(vertices.tobytes() + faces.tobytes()).hexdigest()
    path = mesh_cache() / f"{digest[:24]}.obj"
    if not os.path.isfile(path):
        write_obj(path, [Part(vertices, faces)])
    return path


def _color(tree: Tree, geom: int) -> np.ndarray:
    """The color of a shape (4,)."""
    rgba, material = tree.model.geom_rgba[geom], int(tree.model.geom_matid[geom])
    if material >= 0 and np.array_equal(rgba, _GREY):
        rgba = tree.model.mat_rgba[material]
    return np.clip(rgba, 0.0, 1.0)


# --- which links do not collide ---


def _excluded(tree: Tree) -> list[SdfFilter]:
    """Pairs of links that do not collide because <contact> says so."""
    filters = []
    for signature in dict.fromkeys(tree.model.exclude_signature.tolist()):
        a, b = (tree.links.get(int(k)) for k in (signature >> 16, signature & 0xFFFF))
        if a and b and "world" not in (a, b):
            first, second = f"exclude {a} from {b}", f"exclude {b} from {a}"
            filters.append(SdfFilter(first, (a,), (second,)))
            filters.append(SdfFilter(second, (b,), ()))
    return filters


def _family_filters(tree: Tree) -> list[SdfFilter]:
    """Links welded together and those one joint above them do not collide.

    Those above do where the file's `filterparent` is disabled. Drake itself filters
    only the two links of a joint, which are massless where a body has several joints.
    """
    roots, members = tree.model.body_weldid, {}
    apart = tree.model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT
    for body in tree.bodies():
        root = int(roots[body])
        if root and any(map(tree.collides, tree.geoms(body))):
            members.setdefault(root, []).append(tree.links[body])
    filters = []
    for root, links in members.items():
        above = int(roots[tree.parent(root)])
        ignored = [root] if len(links) > 1 else []
        ignored += [above] if above in members and not apart else []
        names = tuple(f"around {tree.links[body]}" for body in ignored)
        filters.append(SdfFilter(f"around {tree.links[root]}", tuple(links), names))
    return filters if any(f.ignored for f in filters) else []


def _mask_filters(tree: Tree) -> list[SdfFilter]:
    """Links whose shapes' `contype` and `conaffinity` keep them apart.

    Shapes collide where the contype of one shares a bit with the conaffinity of the
    other. Drake filters whole links: those of which no two shapes collide.
    """
    members: dict[frozenset[tuple[int, int]], list[str]] = {}
    for body in tree.bodies():
        masks = frozenset(map(tree.masks, filter(tree.collides, tree.geoms(body))))
        if masks:
            members.setdefault(masks, []).append(tree.links[body])
    names = {masks: f"masks {i}" for i, masks in enumerate(members)}
    filters = []
    for masks, links in members.items():
        apart = tuple(names[other] for other in members if not _collide(masks, other))
        mixed = any(_collide(masks, x) != _collide(masks, x, all) for x in members)
        tree.left_out["contact masks of single shapes"] += mixed
        filters.append(SdfFilter(names[masks], tuple(links), apart))
    return filters if any(f.ignored for f in filters) else []


def _collide(a: frozenset[tuple[int, int]], b: frozenset[tuple[int, int]], which=any):
    return which(s[0] & t[1] or t[0] & s[1] for s in a for t in b)
