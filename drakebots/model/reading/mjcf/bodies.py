"""The bodies of an MJCF file as a tree of links and joints in the frames of SDF."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from pydrake.math import RigidTransform

from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.model.reading.mjcf.compiler import Compiler, is_true
from drakebots.model.reading.mjcf.inertia import Inertia, sum_of
from drakebots.model.reading.mjcf.mesh import Mesh
from drakebots.model.reading.mjcf.shapes import Shape, read_shape
from drakebots.model.reading.mjcf.tree import Element

WIDTHS = {"free": 7, "ball": 4, "slide": 1, "hinge": 1}
"""The number of entries of a joint in `qpos`."""


@dataclass
class Joint:
    """A joint of a body, in the body's frame B at the reference configuration.

    Attributes:
        name: in the SDF.
        given: in the file; empty for none.
        kind: "hinge", "slide", "ball" or "free".
        p_BJ: its anchor (3,) [m].
        axis: unit vector in B (3,).
        range: lower and upper limit [rad, m] of q; None for no limits.
        ref: qpos of the reference configuration, where Drake's q is 0 [rad, m].
        damping: [N m s/rad, N s/m].
        stiffness: [N m/rad, N/m], about the q called rest [rad, m].
        armature: inertia of its rotor [kg m^2, kg].
        friction: loss of torque or force [N m, N].
        effort: most that its motors may give together [N m, N].
        spring_damper: time constant [s] and damping ratio in place of stiffness and
            damping; None for none.
    """

    name: str
    given: str
    kind: str
    p_BJ: np.ndarray
    axis: np.ndarray
    range: tuple[float, float] | None = None
    ref: float = 0.0
    damping: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    armature: float = 0.0
    friction: float = 0.0
    effort: float = float("inf")
    spring_damper: tuple[float, float] | None = None


@dataclass
class Body:
    """One <body>.

    Attributes:
        name: in the SDF.
        given: in the file; empty for none.
        parent: another body, or None for the world.
        X_PB: pose in the parent at the reference configuration.
        X_WB: pose in the world then.
        joints: from the parent to the body, in this order.
        inertia: mass properties in B.
        shapes: its geoms.
        sites: named points of it, with their poses in B.
        is_freed: whether it moves freely although the file welds it to the world.
    """

    name: str
    given: str
    parent: Body | None
    X_PB: RigidTransform
    X_WB: RigidTransform
    joints: list[Joint] = field(default_factory=list)
    inertia: Inertia = field(default_factory=lambda: sum_of([]))
    shapes: list[Shape] = field(default_factory=list)
    sites: dict[str, RigidTransform] = field(default_factory=dict)
    is_freed: bool = False


class Names:
    """Gives every link, joint and frame of a model a name of its own.

    MJCF lets a joint have the name of a body; SDF does not.

    Attributes:
        changed: new names by old ones, of those that could not stay.
    """

    def __init__(self):
        self._taken = {"world"}
        self.changed: dict[str, str] = {}

    def take(self, name: str, ending: str = "", *, is_ours: bool = False) -> str:
        """A name that is still free: as given, with the ending, or with a number.

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
        number = 2
        while found in self._taken:
            found, number = f"{clean}_{number}", number + 1
        self._taken.add(found)
        if found != name and not is_ours:
            self.changed[name] = found
        return found


@dataclass
class Tree:
    """All bodies of a file, parents before children, and what was left out of them.

    Attributes:
        bodies: in the order of the file.
        sites: of the world, with their poses.
        left_out: counts of elements without a counterpart, by what they are.
        left_out_meshes: why, by the file.
        names: of links, joints and frames.
    """

    names: Names
    bodies: list[Body] = field(default_factory=list)
    sites: dict[str, RigidTransform] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    left_out_meshes: dict[str, str] = field(default_factory=dict)

    def leave_out(self, what: str, count: int = 1) -> None:
        """Counts something that is left out."""
        self.left_out[what] = self.left_out.get(what, 0) + count

    def leave_out_mesh(self, problem: ModelProblem) -> None:
        """Remembers a mesh that cannot be used."""
        reason = str(problem).removeprefix(f"{problem.path}: ")
        self.left_out_meshes[problem.path.name] = reason

    def welded_bases(self) -> list[Body]:
        """The bodies that are welded to the world and carry bodies that move."""
        bases = {}
        for body in self.bodies:
            root = body
            while root.parent is not None:
                root = root.parent
            if body.joints and not root.joints:
                bases[root.name] = root
        return list(bases.values())

    def body(self, name: str) -> Body:
        """The body that the file calls `name`.

        Raises:
            InvalidInput: when there is none.
        """
        for body in self.bodies:
            if body.given == name:
                return body
        raise InvalidInput(f"there is no body {name!r}; correct the name")

    def joint(self, name: str) -> Joint:
        """The joint that the file calls `name`.

        Raises:
            InvalidInput: when there is none.
        """
        for body in self.bodies:
            for joint in body.joints:
                if joint.given == name:
                    return joint
        raise InvalidInput(f"there is no joint {name!r}; correct the name")


def read_bodies(
    root: Element,
    compiler: Compiler,
    meshes: dict[str, Mesh],
    colors: dict[str, np.ndarray],
) -> Tree:
    """The bodies of a file.

    Args:
        root: the <mujoco>.
        compiler: its settings.
        meshes, colors: of its assets, by name.

    Raises:
        InvalidInput: for all problems together, parted by semicolons.
    """
    reader = _Reader(compiler, meshes, colors)
    for world in root.all("worldbody"):
        reader.read_world(world)
    tree = reader.tree
    lost = "".join(f"; mesh {a} {why}" for a, why in tree.left_out_meshes.items())
    reader.problems += [
        f"body {body.name!r} moves but has no mass; give it some{lost}"
        for body in tree.bodies
        if body.joints and not reader.problems and not _carried(tree, body).mass
    ]
    if reader.problems:
        raise InvalidInput("; ".join(dict.fromkeys(reader.problems)))
    total = sum(body.inertia.mass for body in tree.bodies)
    if compiler.total_mass is not None and total > 0:
        for body in tree.bodies:
            body.inertia = body.inertia.scaled(compiler.total_mass / total)
    _add_spring_dampers(tree)
    return tree


class _Reader:
    """Reads bodies into `tree` and what is wrong with them into `problems`."""

    def __init__(self, compiler, meshes, colors):
        self.compiler, self.meshes, self.colors = compiler, meshes, colors
        self.tree = Tree(Names())
        self.problems: list[str] = []

    def read_world(self, world: Element) -> None:
        for child, X_WF in _inside(world, RigidTransform(), self.compiler):
            if child.tag == "body":
                self.read_body(child, None, X_WF)
            elif child.tag == "geom":
                self.tree.leave_out("shapes of the world")
            elif child.tag == "site":
                self.tree.sites[child.get("name")] = X_WF @ self.compiler.pose(child)
            else:
                self.tree.leave_out(f"<{child.tag}>")

    def read_body(self, element: Element, parent: Body | None, X_PF) -> None:
        """Reads a body and those below it; its pose is given in frame F."""
        if is_true(element, "mocap", False):
            self.tree.leave_out("mocap bodies")
            return
        X_WP = RigidTransform() if parent is None else parent.X_WB
        try:
            X_WB = X_WP @ X_PF @ self.compiler.pose(element)
            if self.compiler.is_global:
                X_WB = self._global_pose(element, X_WP)
        except InvalidInput as error:
            self.problems.append(str(error))
            return
        given = element.get("name")
        name = self.tree.names.take(
            given or f"body{len(self.tree.bodies) + 1}", is_ours=not given
        )
        body = Body(name, given, parent, X_WP.InvertAndCompose(X_WB), X_WB)
        self.tree.bodies.append(body)
        # In global coordinates all that is inside is given in the world.
        X_BF = X_WB.inverse() if self.compiler.is_global else RigidTransform()
        inertial = None
        for child, X in _inside(element, X_BF, self.compiler):
            try:
                if child.tag == "inertial":
                    inertial = _inertial(child).inside(X @ self.compiler.pose(child))
                elif child.tag in ("joint", "freejoint"):
                    self._read_joint(child, body, X)
                elif child.tag == "geom":
                    self._read_geom(child, body, X)
                elif child.tag == "site":
                    body.sites[child.get("name")] = X @ self.compiler.pose(child)
                elif child.tag == "body":
                    self.read_body(child, body, X)
                else:
                    self.tree.leave_out(f"<{child.tag}>")
            except InvalidInput as error:
                self.problems.append(str(error))
        try:
            body.inertia = self._total(body, inertial)
        except InvalidInput as error:
            self.problems.append(f"body {name!r}: {error}")

    def _global_pose(self, element: Element, X_WP: RigidTransform) -> RigidTransform:
        """Where the file gives none, the body's frame is at its last turning joint."""
        if "pos" in element.attributes:
            return self.compiler.pose(element)
        turning = [
            joint
            for joint in element.all("joint")
            if joint.get("type", "hinge") in ("hinge", "ball")
        ]
        p = X_WP.translation()
        if turning:
            p = turning[-1].vector("pos", 3, "0 0 0")
        return RigidTransform(self.compiler.rotation(element), p)

    def _read_joint(self, element: Element, body: Body, X: RigidTransform) -> None:
        kind = element.get("type", "hinge")
        if element.tag == "freejoint":
            kind = "free"
        if kind == "fixed":
            self.tree.leave_out("joints of type fixed, which weld as none would")
            return
        if kind not in WIDTHS:
            raise InvalidInput(
                f"{element}: unknown type {kind!r}; use one of {', '.join(WIDTHS)}"
            )
        if kind == "free" and (body.parent is not None or body.joints):
            raise InvalidInput(
                f"{element}: only a body of the world moves freely, by this joint alone"
            )
        given = element.get("name")
        axis = np.array(element.vector("axis", 3, "0 0 1"))
        if kind in ("hinge", "slide") and not np.linalg.norm(axis) > 1e-12:
            raise InvalidInput(f"{element}: its axis has length zero; correct it")
        unit = self.compiler.angle if kind in ("hinge", "ball") else 1.0
        ref = element.number("ref", 0.0) * unit
        p_F = element.vector("pos", 3, "0 0 0") if kind != "free" else np.zeros(3)
        joint = Joint(
            name=self.tree.names.take(
                given or f"{body.name}_{kind}", "joint", is_ours=not given
            ),
            given=given,
            kind=kind,
            p_BJ=X.multiply(np.array(p_F)) if kind != "free" else np.zeros(3),
            axis=X.rotation() @ (axis / max(np.linalg.norm(axis), 1e-12)),
            range=self._range(element, "range", "limited", kind, unit, ref),
            ref=ref,
            damping=element.number("damping", 0.0),
            stiffness=element.number("stiffness", 0.0),
            rest=element.number("springref", 0.0) * unit - ref,
            armature=element.number("armature", 0.0),
            friction=element.number("frictionloss", 0.0),
        )
        if min(joint.damping, joint.stiffness, joint.armature) < 0:
            raise InvalidInput(
                f"{element}: damping, stiffness and armature must be >= 0"
            )
        most = limited_range(
            element, "actuatorfrcrange", "actuatorfrclimited", self.compiler
        )
        if most is not None:
            joint.effort = max(abs(most[0]), abs(most[1]))
        time, ratio = element.vector("springdamper", 2, "0 0")
        if time > 0 and ratio > 0:
            joint.spring_damper = (time, ratio)
        body.joints.append(joint)

    def _range(self, element, key, flag, kind, unit, ref):
        if kind not in ("hinge", "slide"):
            return None
        found = limited_range(element, key, flag, self.compiler)
        if found is None:
            return None
        return found[0] * unit - ref, found[1] * unit - ref

    def _read_geom(self, element: Element, body: Body, X: RigidTransform) -> None:
        try:
            shape = read_shape(element, self.compiler, self.meshes, self.colors)
        except ModelProblem as error:
            self.tree.leave_out_mesh(error)
            return
        if shape is None:
            kind = element.get("type")
            self.tree.leave_out(f"shapes of type {kind}")
            return
        body.shapes.append(shape.placed(X))

    def _total(self, body: Body, inertial: Inertia | None) -> Inertia:
        """The mass properties of a body, of its <inertial> or of its shapes."""
        settings = self.compiler
        first, last = settings.inertia_groups
        given = settings.inertia_from_geom
        if given == "true" or (given == "auto" and inertial is None):
            found = sum_of(
                [
                    shape.inertia
                    for shape in body.shapes
                    if shape.inertia is not None and first <= shape.group <= last
                ]
            )
        else:
            found = inertial or sum_of([])
        return found.at_least(
            settings.bound_mass, settings.bound_inertia, settings.balance_inertia
        )


def _inside(
    element: Element, X: RigidTransform, compiler: Compiler
) -> Iterator[tuple[Element, RigidTransform]]:
    """The children of a body with the frame that they are given in."""
    for child in element.children:
        if child.tag == "frame":
            yield from _inside(child, X @ compiler.pose(child), compiler)
        else:
            yield child, X


def _inertial(element: Element) -> Inertia:
    """An <inertial> in its own frame."""
    mass = element.number("mass", -1.0)
    if mass < 0:
        raise InvalidInput(f"{element}: needs a mass >= 0")
    if "fullinertia" in element.attributes:
        xx, yy, zz, xy, xz, yz = element.vector("fullinertia", 6, "")
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    else:
        tensor = np.diag(element.vector("diaginertia", 3, "0 0 0"))
    return Inertia(mass, np.zeros(3), tensor)


def limited_range(
    element: Element, key: str, flag: str, compiler: Compiler
) -> tuple[float, float] | None:
    """A range in the units of the file; None where it does not limit anything.

    Args:
        element: with the range.
        key: of the range.
        flag: of whether it limits: "true", "false" or "auto".
        compiler: whose `autolimits` decides on "auto".

    Raises:
        InvalidInput: for a range whose lower end is the larger.
    """
    word = element.get(flag, "auto")
    if word == "false" or (word != "true" and not compiler.autolimits):
        return None
    if key not in element.attributes:
        return None
    lower, upper = element.vector(key, 2, "")
    if lower > upper:
        raise InvalidInput(f"{element}: {key} goes from {lower:g} to {upper:g}; swap")
    if lower == upper == 0 and word != "true":
        return None
    return lower, upper


def _add_spring_dampers(tree: Tree) -> None:
    """The stiffness and damping of joints that name a time and a damping ratio.

    With the inertia m that the joint moves at the reference configuration, the time
    constant T and the ratio z, k = m / (T z)^2 and d = 2 m / T, as MuJoCo takes them.
    """
    for body in tree.bodies:
        for joint in body.joints:
            if joint.spring_damper is None or joint.kind not in ("hinge", "slide"):
                continue
            time, ratio = joint.spring_damper
            moved = _moved_inertia(tree, body, joint) + joint.armature
            joint.stiffness = moved / (time * ratio) ** 2
            joint.damping = 2 * moved / time


def _moved_inertia(tree: Tree, body: Body, joint: Joint) -> float:
    """The inertia about a joint's axis, or the mass, of all that it moves."""
    whole = _carried(tree, body)
    if joint.kind == "slide":
        return whole.mass
    axis = body.X_WB.rotation() @ joint.axis
    arm = np.cross(axis, whole.p_FC - body.X_WB.multiply(joint.p_BJ))
    return float(axis @ whole.I_C @ axis + whole.mass * arm @ arm)


def _carried(tree: Tree, body: Body) -> Inertia:
    """The mass properties of a body and all that it carries, in the world."""
    parts = []
    for other in tree.bodies:
        link = other
        while link is not None and link is not body:
            link = link.parent
        if link is body:
            parts.append(other.inertia.inside(other.X_WB))
    return sum_of(parts)
