"""The SDF of the bodies of an MJCF file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix

from drakebots.core.errors import ModelProblem
from drakebots.model.couplers import Coupler
from drakebots.model.reading.inertias import principal_inertia
from drakebots.model.reading.mjcf.bodies import Body, Joint, Tree
from drakebots.model.reading.mjcf.shapes import Shape
from drakebots.model.sdf import (
    SdfFilter,
    SdfGeometry,
    SdfJoint,
    SdfLink,
    SdfModel,
    SdfPose,
    model_sdf,
)

DRAWN = 3
"""MuJoCo draws shapes of the groups below this."""

KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "ball"}


def mjcf_sdf(
    name: str,
    tree: Tree,
    efforts: dict[str, float],
    excluded: list[tuple[str, str]],
    couplers: Sequence[Coupler] = (),
) -> str:
    """The SDF text of a tree of bodies.

    A body of several joints hangs on massless links, one for each joint but the last.

    Args:
        name: of the model.
        tree: its bodies.
        efforts: of the joints with a motor [N m, N]; inf for no limit.
        excluded: pairs of links that do not collide.
        couplers: of joints that follow others.
    """
    model = SdfModel(name.replace("::", "/").strip("_") or "mjcf")
    for body in tree.bodies:
        _add_body(model, tree, body, efforts)
    for coupler in couplers:
        joint = model.joints[coupler.follower]
        model.joints[coupler.follower] = replace(joint, coupler=coupler)
    for body in tree.bodies:
        for site, X_BS in body.sites.items():
            if site:
                frame = tree.names.take(site, "site", is_ours=True)
                model.frames.append((frame, body.name, _pose(X_BS)))
    model.filters += _family_filters(tree) + _mask_filters(tree)
    for a, b in excluded:
        first, second = f"exclude {a} from {b}", f"exclude {b} from {a}"
        model.filters.append(SdfFilter(first, (a,), (second,)))
        model.filters.append(SdfFilter(second, (b,), ()))
    return model_sdf(model)


def _add_body(
    model: SdfModel, tree: Tree, body: Body, efforts: dict[str, float]
) -> None:
    parent = "world" if body.parent is None else body.parent.name
    joints = [joint for joint in body.joints if joint.kind != "free"]
    is_free = len(joints) < len(body.joints)
    X = body.X_PB
    for joint in joints[:-1]:
        # Before its joints move, all links of a body have its frame.
        between = tree.names.take(f"{body.name}_{joint.kind}", is_ours=True)
        link = SdfLink(between, 0.0, SdfPose(), np.zeros((3, 3)), [])
        _place(model, link, parent, X)
        model.joints[joint.name] = _joint(joint, parent, between, efforts)
        parent, X = between, RigidTransform()
    link = SdfLink(
        body.name, body.inertia.mass, *_inertia(body), _geometries(tree, body)
    )
    _place(model, link, parent, X)
    if joints:
        joint = joints[-1]
        model.joints[joint.name] = _joint(joint, parent, body.name, efforts)
    elif not (is_free or body.is_freed):
        weld = tree.names.take(f"{parent}_welds_to_{body.name}", is_ours=True)
        model.joints[weld] = SdfJoint(weld, "fixed", parent, body.name)


def _place(model: SdfModel, link: SdfLink, parent: str, X: RigidTransform) -> None:
    link.pose, link.relative_to = _pose(X), None if parent == "world" else parent
    model.links[link.name] = link


def _joint(
    joint: Joint, parent: str, child: str, efforts: dict[str, float]
) -> SdfJoint:
    limit = {}
    if joint.range is not None:
        limit["lower"], limit["upper"] = joint.range
    if np.isfinite(efforts.get(joint.name, np.inf)):
        limit["effort"] = efforts[joint.name]
    is_spring = joint.stiffness > 0 and joint.kind != "ball"
    return SdfJoint(
        joint.name,
        KINDS[joint.kind],
        parent,
        child,
        axis=joint.axis,
        p_CJ=joint.p_BJ,
        damping=joint.damping,
        limit=limit,
        stiffness=joint.stiffness if is_spring else 0.0,
        reference=joint.rest if is_spring else None,
        actuated=joint.name in efforts,
        rotor_inertia=joint.armature,
    )


def _inertia(body: Body) -> tuple[SdfPose, np.ndarray]:
    """The frame of the inertia and the inertia in it, diagonal.

    libsdformat finds principal moments of a full matrix to 1e-8 only.
    """
    moments, axes = principal_inertia(body.inertia.I_C)
    X = RigidTransform(RotationMatrix(axes), body.inertia.p_FC)
    return _pose(X), np.diag(moments)


def _pose(X: RigidTransform) -> SdfPose:
    return SdfPose(X.translation(), RollPitchYaw(X.rotation()).vector())


# --- shapes -----------------------------------------------------------------


def _geometries(tree: Tree, body: Body) -> list[SdfGeometry]:
    """Each shape as a visual, where MuJoCo draws it, and as a collision."""
    found, taken = [], set()
    some_drawn = any(shape.group < DRAWN for shape in body.shapes)
    for index, shape in enumerate(body.shapes):
        name = shape.name.replace("::", "/") or f"{body.name}_geom{index}"
        while name in taken:
            name += "_"
        taken.add(name)
        kinds = ["visual"] if shape.group < DRAWN or not some_drawn else []
        kinds += ["collision"] if shape.collides else []
        for kind in kinds:
            try:
                values = _values(shape, kind)
            except ModelProblem as error:
                tree.leave_out_mesh(error)
                continue
            found.append(
                SdfGeometry(
                    kind,
                    f"{name}_{kind}",
                    _pose(shape.X_BG),
                    shape.kind,
                    values,
                    shape.rgba if kind == "visual" else None,
                    shape.friction if kind == "collision" else None,
                )
            )
    return found


def _values(shape: Shape, kind: str) -> dict[str, object]:
    """The SDF children of a shape that is a visual or a collision."""
    if shape.mesh is not None:
        mesh = shape.mesh
        file, scale = mesh.drawn if kind == "visual" else mesh.touched
        return {"uri": f"file://{file}", "scale": scale}
    if shape.kind == "box":
        return {"size": 2 * np.array(shape.sizes)}
    if shape.kind == "ellipsoid":
        return {"radii": np.array(shape.sizes)}
    if shape.kind == "sphere":
        return {"radius": shape.sizes[0]}
    return {"radius": shape.sizes[0], "length": 2 * shape.sizes[1]}


# --- which links do not collide ---------------------------------------------


def _family_filters(tree: Tree) -> list[SdfFilter]:
    """Links welded together and those one joint above them do not collide.

    Drake itself filters only the two links of a joint, which are massless where a body
    has several joints.
    """
    members: dict[str, list[str]] = {}
    above: dict[str, str | None] = {}
    family: dict[str, str | None] = {}
    for body in tree.bodies:
        parent = None if body.parent is None else family[body.parent.name]
        if body.joints:
            family[body.name] = body.name
            above[body.name] = parent
        else:
            family[body.name] = parent
        root = family[body.name]
        if root is not None and any(shape.collides for shape in body.shapes):
            members.setdefault(root, []).append(body.name)
    filters = []
    for root, links in members.items():
        ignored = [root] if len(links) > 1 else []
        ignored += [above[root]] if above[root] in members else []
        names = tuple(f"around {name}" for name in ignored)
        filters.append(SdfFilter(f"around {root}", tuple(links), names))
    return filters if any(f.ignored for f in filters) else []


def _mask_filters(tree: Tree) -> list[SdfFilter]:
    """Links whose shapes' `contype` and `conaffinity` keep them apart.

    Shapes collide where the contype of one shares a bit with the conaffinity of the
    other. Drake filters whole links: those of which no two shapes collide.
    """
    members: dict[frozenset[tuple[int, int]], list[str]] = {}
    for body in tree.bodies:
        masks = frozenset(shape.masks for shape in body.shapes if shape.collides)
        if masks:
            members.setdefault(masks, []).append(body.name)
    names = {masks: f"masks {i}" for i, masks in enumerate(members)}
    filters = []
    for masks, links in members.items():
        apart = tuple(names[other] for other in members if not _collide(masks, other))
        filters.append(SdfFilter(names[masks], tuple(links), apart))
    return filters if any(f.ignored for f in filters) else []


def _collide(a: frozenset[tuple[int, int]], b: frozenset[tuple[int, int]]) -> bool:
    return any(s[0] & t[1] or t[0] & s[1] for s in a for t in b)
