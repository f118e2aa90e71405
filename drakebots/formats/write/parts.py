"""A parsed plant as plain parts, for whoever writes it in another format.

Other formats know joints of one degree of freedom, so a joint of Drake is a chain of
:class:`Step`, one turn or slide after the other from frame F on the parent to frame M
on the child:

    revolute, prismatic   one step
    planar                slide along x, slide along y, turn about z
    universal             turn about x, turn about y
    ball_rpy              turn about z, y, x: R_FM = Rz(yaw) Ry(pitch) Rx(roll)

Drake's bushing has the law of the last chain, tau_i = -k_i q_i - d_i dq_i/dt with the
angles q of R_AC = Rz Ry Rx, where A and C are frames on its two bodies.
"""

from __future__ import annotations

import os
import shutil
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydrake.geometry import Convex, Mesh, Rgba, Role
from pydrake.math import RigidTransform
from pydrake.multibody.plant import CoulombFriction
from pydrake.multibody.tree import (
    LinearBushingRollPitchYaw,
    LinearSpringDamper,
    RigidBody,
)
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import DrakebotsWarning, FileProblem, InvalidInput
from drakebots.core.files import check_output, with_ending, write_text
from drakebots.core.lazy import late
from drakebots.formats import loaded, obj_mesh
from drakebots.formats.read.tree import write_tree
from drakebots.model import (
    Model,
    bodies_of,
    central_inertia,
    find_body,
    force_elements,
    joint_springs,
    joints_of,
    outward_joints,
    part_name,
    rotor_inertias,
)
from drakebots.multibody import Robot, build_robot

trimesh = late("trimesh")

X, Y, Z = np.eye(3)

_CHAINS = {
    "planar": [("_x", True, X, 0), ("_y", True, Y, 1), ("_qz", False, Z, 2)],
    "universal": [("_qx", False, X, 0), ("_qy", False, Y, 1)],
    "ball_rpy": [("_qz", False, Z, 2), ("_qy", False, Y, 1), ("_qx", False, X, 0)],
}
"""Name, whether it slides, axis in M, and the joint's coordinate of each step."""


@dataclass(frozen=True)
class Step:
    """A joint of one degree of freedom.

    Attributes:
        name: name of the joint, with the coordinate if it has several.
        slides: whether it is prismatic.
        axis: axis in M (3,).
        index: index of its coordinate among those of Drake's joint.
        limits: lower and upper limit [rad, m]; infinite for none.
        damping: damping [N m s/rad, N s/m].
        stiffness, rest: stiffness of a spring [N m/rad, N/m] about a position [rad, m].
        armature: reflected inertia of the rotor [kg m^2, kg].
        start: Drake's default position [rad, m].
    """

    name: str
    slides: bool
    axis: np.ndarray
    index: int
    limits: tuple[float, float]
    damping: float
    stiffness: float = 0.0
    rest: float = 0.0
    armature: float = 0.0
    start: float = 0.0


@dataclass(frozen=True)
class Form:
    """A visual or a collision of a body.

    Attributes:
        name: unique among those of the plant.
        shape: Drake's shape.
        X_BG: pose in the body.
        rgba: colour of a visual (4,); None for a collision.
        friction: friction coefficient of a collision.
        mesh: file that was written, relative to the model's; None for other shapes.
    """

    name: str
    shape: object
    X_BG: RigidTransform
    rgba: np.ndarray | None
    friction: float
    mesh: str | None = None

    @property
    def kind(self) -> str:
        """Name of the shape: "box", "halfspace", of all meshes "mesh"."""
        is_mesh = isinstance(self.shape, Mesh | Convex)
        return "mesh" if is_mesh else type(self.shape).__name__.lower()


@dataclass(eq=False)
class Part:
    """A body, and the joint that carries it.

    Attributes:
        body: Drake's body.
        parent: None for the world itself.
        steps: steps of its joint; none for a weld and for a free body.
        X_PF, X_BM: frames of the joint on parent and body.
        is_free: whether it moves freely in the world.
        forms: its shapes.
        children: carried by it.
    """

    body: object
    parent: Part | None = None
    steps: list[Step] = field(default_factory=list)
    X_PF: RigidTransform = field(default_factory=RigidTransform)
    X_BM: RigidTransform = field(default_factory=RigidTransform)
    joint: object = None
    is_free: bool = False
    forms: list[Form] = field(default_factory=list)
    children: list[Part] = field(default_factory=list)

    @property
    def name(self) -> str:
        return written_name(self.body)

    @property
    def is_still(self) -> bool:
        """Whether no joint moves it in the world."""
        moves = self.is_free or self.steps
        return not moves and (self.parent is None or self.parent.is_still)

    @property
    def X_PB(self) -> RigidTransform:
        """Pose in the parent at q = 0; of a free body its default pose."""
        return self.X_PF @ self.X_BM.inverse()

    @property
    def X_LB(self) -> RigidTransform:
        """Pose in the frame L of the joint that moves it; the identity without one."""
        return self.X_BM.inverse() if self.steps else RigidTransform()

    def inertia(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass [kg], p_BCcm (3,) [m], and I_BCcm_B (3, 3) [kg m^2]."""
        return central_inertia(self.body.default_spatial_inertia())


class Writer:
    """Writes the parts of a robot as one document.

    Args:
        robot, parts: of :func:`opened`.
    """

    def __init__(self, robot: Robot, parts: list[Part]):
        self.robot, self.parts, self.plant = robot, parts, robot.plant
        self.by_body = {int(part.body.index()): part for part in parts}

    def part(self, body: str | RigidBody) -> Part:
        """The part of a body, or of the one with this name."""
        found = find_body(self.plant, body) if isinstance(body, str) else body
        return self.by_body[int(found.index())]

    def X_LB(self, part: Part) -> RigidTransform:
        """Pose of a part's body in its link of the document."""
        return RigidTransform()

    def between_points(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Loops, and springs between points, in Drake's words: the tag of each, and its
        values by their names, such as p_AP [m]."""
        for loop, *points in self.robot.model.balls(self.plant):
            yield "ball_constraint", self._ends((loop.body_A, loop.body_B), points)
        for spring in force_elements(self.plant, LinearSpringDamper):
            ends = (spring.bodyA(), spring.bodyB()), (spring.p_AP(), spring.p_BQ())
            law = ("free_length", "stiffness", "damping")
            says = {key: getattr(spring, key)() for key in law}
            yield "linear_spring_damper", self._ends(*ends) | says

    def _ends(self, bodies, points) -> dict[str, Any]:
        (A, B), (p, q) = map(self.part, bodies), points
        ends = {"body_A": A.name, "p_AP": self.X_LB(A) @ p}
        return ends | {"body_B": B.name, "p_BQ": self.X_LB(B) @ q}

    def description(self) -> dict[str, dict[str, Any]]:
        """Feet, points and loops in the frames of the links."""
        model = self.robot.model

        def at(body: str, p) -> dict[str, Any]:
            part = self.part(body)
            return {"body": part.name, "p": (self.X_LB(part) @ p).tolist()}

        def end(letter: str, body: str, p, *directions) -> dict[str, Any]:
            part = self.part(body)
            X_LB = self.X_LB(part)
            found = {letter: part.name, f"p_{letter}": (X_LB @ p).tolist()}
            for name, value in zip(("axis", "side"), directions):
                if value is not None:
                    turned = X_LB.rotation().matrix() @ value
                    found[f"{name}_{letter}"] = turned.tolist()
            return found

        return {
            "feet": {
                written_name(f.name): at(f.body, f.p_BF) | {"radius": float(f.radius)}
                for f in model.feet
            },
            "points": {p.name: at(p.body, p.p_BF) for p in model.points},
            "loops": {
                x.name: end("A", x.body_A, x.p_AP, x.axis_A, x.side_A)
                | end("B", x.body_B, x.p_BQ, x.axis_B, x.side_B)
                | {"rows": x.rows, "in_file": True}
                for x in model.loops
            },
        }


BUSHING = ("torque_stiffness", "torque_damping", "force_stiffness", "force_damping")
"""The constants of a bushing, (3,) each."""


def written_name(part) -> str:
    """Name of a link, joint or motor in a file, without Drake's colons."""
    name = part if isinstance(part, str) else part_name(part)
    return name.replace("::", "_")


def bushing_constants(bushing: LinearBushingRollPitchYaw) -> dict[str, np.ndarray]:
    """The constants by their names in :data:`BUSHING`."""
    return {name: getattr(bushing, f"{name}_constants")() for name in BUSHING}


def plain_robot(model: Model) -> Robot:
    """The model in a continuous plant with its shapes, in SI."""
    return build_robot(model, DiagramBuilder(), time_step=0.0)


def opened(
    model: Model | str | Path, path: Path, endings: Sequence[str]
) -> tuple[Robot, list[Part]]:
    """A robot to be written into a file, and its parts; meshes are copied beside it.

    Constraints that only Drake knows are left out, with a warning.

    Args:
        model: as for :func:`drakebots.load`.
        path: the file, in a folder that exists.
        endings: those that it may have.

    Raises:
        FileProblem: for another ending, or a file that cannot be written.
    """
    check_output(with_ending(path, endings))
    robot = plain_robot(loaded(model))
    for note in robot.model.notes:
        if "acts in simulations" in note:
            warnings.warn(f"not written: {note}", DrakebotsWarning, stacklevel=3)
    return robot, read_parts(robot, path)


def write_document(root: ET.Element, path: Path) -> None:
    """Writes a document of XML, indented."""
    ET.indent(root)
    write_text(path, write_tree(root) + "\n")


def write_beside(path: Path, described: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes what is not empty beside a file, as YAML, by its ending."""
    for ending, beside in described.items():
        if any(beside.values()):
            text = yaml.safe_dump(beside, sort_keys=False)
            write_text(path.with_suffix(ending), text)


def read_parts(robot: Robot, path: Path | None = None) -> list[Part]:
    """The world and all bodies, parents before children.

    Args:
        robot: robot with a scene graph.
        path: path of the model file that will refer to the parts; meshes are copied to
            `meshes/` beside it. None if there will be no file.

    Raises:
        InvalidInput: for a joint that has no chain of steps.
        FileProblem: for a mesh that cannot be written.
    """
    plant = robot.plant
    springs, rotors = joint_springs(plant), rotor_inertias(plant)
    parts = {int(body.index()): Part(body) for body in bodies_of(plant)}
    turned = {joint.index() for joint, is_turned in outward_joints(plant) if is_turned}
    for joint in joints_of(plant):
        ends = [joint.parent_body(), joint.child_body()]
        frames = [joint.frame_on_parent(), joint.frame_on_child()]
        if is_turned := joint.index() in turned:
            ends, frames = ends[::-1], frames[::-1]
        parent, part = (parts[int(body.index())] for body in ends)
        part.parent, part.joint = parent, joint
        parent.children.append(part)
        if joint.type_name() == "quaternion_floating":
            part.is_free = True
            part.X_PF = plant.GetDefaultFloatingBaseBodyPose(part.body)
            continue
        part.X_PF, part.X_BM = (frame.GetFixedPoseInBodyFrame() for frame in frames)
        if joint.type_name() == "weld":
            X_FM = joint.X_FM()
            part.X_PF = part.X_PF @ (X_FM.inverse() if is_turned else X_FM)
        else:
            part.steps = _steps(joint, springs, rotors)
            if is_turned:
                # R(axis, q) from the parent to the child is R(-axis, q) backwards.
                part.steps = [replace(s, axis=-s.axis) for s in reversed(part.steps)]
    _add_forms(robot, parts, path)
    order = [parts[0]]
    for part in order:  # which grows
        order += part.children
    return order


def _steps(joint, springs, rotors: np.ndarray) -> list[Step]:
    """The steps of a joint.

    Args:
        joint: Drake's joint.
        springs: of :func:`~drakebots.model.joint_springs`.
        rotors: of :func:`~drakebots.model.rotor_inertias`.

    Raises:
        InvalidInput: for a type of joint that has none.
    """
    kind, name = joint.type_name(), written_name(joint)
    if kind in ("revolute", "prismatic"):
        slides = kind == "prismatic"
        axis = joint.translation_axis() if slides else joint.revolute_axis()
        chain = [("", slides, axis, 0)]
    elif kind in _CHAINS:
        chain = _CHAINS[kind]
    else:
        raise InvalidInput(
            f"joint {name!r} of type {kind!r} cannot be written; use one of weld, "
            f"revolute, prismatic, {', '.join(_CHAINS)}"
        )
    damping, start = joint.default_damping_vector(), joint.default_positions()
    lower, upper = joint.position_lower_limits(), joint.position_upper_limits()
    limits = list(zip(lower, upper))
    own = *springs.get(joint.index(), (0.0, 0.0)), rotors[joint.velocity_start()]
    return [
        Step(name + end, slides, axis, i, limits[i], damping[i], *own, start[i])
        for end, slides, axis, i in chain
    ]


# --- shapes -----------------------------------------------------------------

_GREY = Rgba(0.8, 0.8, 0.8, 1.0)


def _add_forms(robot: Robot, parts: dict[int, Part], path: Path | None) -> None:
    """Adds to the parts their shapes, visual and collision, with distinct names."""
    inspector, taken = robot.scene_graph.model_inspector(), set()
    meshes: dict[str, str] = {}
    for part in parts.values():
        frame = robot.plant.GetBodyFrameIdOrThrow(part.body.index())
        for role in (Role.kIllustration, Role.kProximity):
            for geometry in inspector.GetGeometries(frame, role):
                name = inspector.GetName(geometry).rpartition("::")[2]
                name = f"{part.name}_{name}" if name in taken else name
                while name in taken:
                    name += "_"
                taken.add(name)
                shape = inspector.GetShape(geometry)
                rgba, friction = None, 1.0
                if role == Role.kIllustration:
                    drawn = inspector.GetIllustrationProperties(geometry)
                    rgba = drawn.GetPropertyOrDefault("phong", "diffuse", _GREY).rgba
                else:
                    touched = inspector.GetProximityProperties(geometry)
                    law = "material", "coulomb_friction"
                    pair = touched.GetPropertyOrDefault(*law, CoulombFriction(1.0, 1.0))
                    friction = pair.dynamic_friction()
                X_BG = inspector.GetPoseInFrame(geometry)
                mesh = None
                if path is not None and isinstance(shape, Mesh | Convex):
                    mesh = _copied(shape, path, meshes)
                part.forms.append(Form(name, shape, X_BG, rgba, friction, mesh))


def _copied(shape, path: Path, known: dict[str, str]) -> str:
    """Copies a mesh as .obj beside the model file; the path relative to it."""
    source = Path(shape.source().path())
    if str(source) not in known:
        folder = path.parent / "meshes"
        stem, number = source.stem, sum(Path(k).stem == source.stem for k in known)
        target = folder / f"{stem}{number or ''}.obj"
        try:
            folder.mkdir(exist_ok=True)
            mesh = obj_mesh(source)
            if mesh.resolve() != target.resolve():
                shutil.copyfile(mesh, target)
        except OSError as error:
            raise FileProblem(target, f"cannot be written ({error})") from error
        known[str(source)] = f"meshes/{target.name}"
    return known[str(source)]


def copy_sphere(path: Path) -> str:
    """Writes a sphere of radius 1 as .obj beside the model file; its relative path."""
    target = path.parent / "meshes" / "unit_sphere.obj"
    if not os.path.isfile(target):
        target.parent.mkdir(exist_ok=True)
        trimesh.creation.icosphere(subdivisions=3).export(target)
    return f"meshes/{target.name}"


def filtered_pairs(robot: Robot, parts: Sequence[Part]) -> list[tuple[Part, Part]]:
    """Pairs of bodies with collision shapes that Drake does not let touch."""
    inspector = robot.scene_graph.model_inspector()
    solid = [
        (part, shapes)
        for part in parts[1:]
        if (shapes := robot.plant.GetCollisionGeometriesForBody(part.body))
    ]
    return [
        (one, other)
        for (one, first), (other, second) in combinations(solid, 2)
        if all(inspector.CollisionFiltered(a, b) for a in first for b in second)
    ]
