"""Rigid octahedra as SDF, and the walking robot as one: voxels, masses, feet.

SDF can state bodies, ball joints, bushings, ball constraints and feet; the actuators
(distance constraints) are added through Drake's API by
:func:`drakebots.robots.voxels.plant.Actuators`.

The robot's core is 2x2x2 voxels with the actuators' mass spread over it; one more voxel
hangs on either side of the front. It faces +x+y. Each back foot is a bar with a heel
and a toe: with points for back feet the core's weight lies on the line between them,
only 2 % of it rest on the front, and the robot tips over unless it moves slowly (it
falls at 0.5 s a pose; at 1 s it stays up and gets nowhere). Source: Tebyani et al.
(2022), section 3, and the authors' code for the nodes; the sizes of the feet are ours
(params.yaml).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import field
from typing import Annotated

import numpy as np
from pydrake.math import RotationMatrix

from drakebots.core.checks import array, between, finite, flag, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import check, checked
from drakebots.formats import SdfGeometry, SdfLink, SdfModel, SdfPose, model_sdf
from drakebots.lattice.pom import place_of
from drakebots.lattice.shape import BEAMS, OFFSETS, Strut
from drakebots.model import Point, parameters_of
from drakebots.robots.voxels.model.octahedra import AXIS_RPY, Octahedra
from drakebots.robots.voxels.model.robot import FEET, VoxelRobot

_DRAKE = "{http://drake.mit.edu}"

STRUT_RADIUS, NODE_RADIUS = 1.4e-3, 3.2e-3
"""Radii as drawn [m]; thinner struts would not be visible."""

_CORE = (0.36, 0.47, 0.62, 1.0)
_RUBBER = (0.16, 0.17, 0.19, 1.0)


@checked("foot {name}")
class Foot:
    """A sphere that may touch the ground, fixed to a voxel.

    Raises:
        InvalidInput: for a radius that is not > 0 (Drake takes 0 as 1 m), or a
            friction outside 0..2.
    """

    name: str
    """Name of the sphere."""
    node: tuple[int, int, int]
    """Place of the lattice node it belongs to [half pitches]."""
    offset: Annotated[np.ndarray, array((3,), "m")] = field(
        default_factory=lambda: np.zeros(3)
    )
    """Position of its centre from the node, in the lattice's axes (3,)."""
    radius: Annotated[float, positive("m")] = 4e-3
    """Radius of the sphere."""
    friction: Annotated[float, finite()] = 0.5
    """Coefficient mu against a ground of mu 1; see :func:`surface_friction`."""

    def __post_init__(self):
        object.__setattr__(self, "node", place_of(self.node))
        surface_friction(self.friction)

    def place(self, cut: Octahedra) -> tuple[int, np.ndarray]:
        """The voxel that carries the foot, and its centre in that body (3,) [m]."""
        node = cut.lattice.node(self.node)
        voxel, _ = cut.lattice.voxel_of(node)
        return voxel, cut.in_body(voxel, node) + self.offset

    def point(self, cut: Octahedra) -> Point:
        """The foot as a point of a model."""
        voxel, p = self.place(cut)
        return Point(self.name, cut.names[voxel], p, self.radius)


def surface_friction(pair: float) -> float:
    """The mu of a body's surface that gives the mu of a pair on a ground of mu 1.

    Drake combines two surfaces by 2 m n/(m + n), so m = mu/(2 - mu).

    Raises:
        InvalidInput: outside 0 <= mu < 2.
    """
    if not 0 <= pair < 2:
        raise InvalidInput(f"friction must be >= 0 and < 2, got {pair}")
    return float(pair / (2 - pair))


def octahedra_sdf(
    cut: Octahedra,
    feet: Sequence[Foot] = (),
    *,
    name: str = "lattice",
    colors: Sequence[Sequence[float]] | None = None,
) -> str:
    """The SDF 1.9 text of a lattice at rest, its corner at the origin.

    Args:
        cut: the lattice.
        feet: its only collision geometry.
        name: name of the model.
        colors: rgba of the voxels' struts (V, 4); None for blue.
    """
    model = SdfModel(name)
    colors = [_CORE] * len(cut.names) if colors is None else colors
    for voxel, link in enumerate(cut.names):
        model.links[link] = SdfLink(
            link,
            float(cut.masses[voxel]),
            SdfPose(),
            cut.inertia(voxel),
            _drawn(cut, tuple(colors[voxel])),
            SdfPose(cut.centres[voxel]),
        )
    for foot in feet:
        _add_foot(model.links, cut, foot)
    for shared in cut.shared:
        rpy = AXIS_RPY[shared.axis]
        for side, voxel in (("A", shared.A), ("C", shared.B)):
            pose = SdfPose(cut.in_body(voxel, shared.node), rpy)
            model.frames.append((f"node_{shared.node}_{side}", cut.names[voxel], pose))
    return _finished(model_sdf(model), cut)


def _drawn(cut: Octahedra, rgba) -> list[SdfGeometry]:
    r = cut.lattice.pitch / 2
    ends = r * OFFSETS[BEAMS]
    drawn = []
    for k, (a, b) in enumerate(ends):
        z = (b - a) / np.linalg.norm(b - a)
        rpy = RotationMatrix.MakeFromOneVector(z, 2).ToRollPitchYaw().vector()
        values = {"radius": STRUT_RADIUS, "length": float(np.linalg.norm(b - a))}
        pose = SdfPose((a + b) / 2, rpy)
        drawn.append(SdfGeometry("visual", f"beam_{k}", pose, "capsule", values, rgba))
    dark = (*(0.72 * c for c in rgba[:3]), 1.0)
    for k, offset in enumerate(OFFSETS):
        ball = {"radius": NODE_RADIUS}
        drawn.append(
            SdfGeometry(
                "visual", f"node_{k}", SdfPose(r * offset), "sphere", ball, dark
            )
        )
    return drawn


def _add_foot(links: dict[str, SdfLink], cut: Octahedra, foot: Foot) -> None:
    voxel, p = foot.place(cut)
    drawn = links[cut.names[voxel]].geometries
    ball = {"radius": foot.radius}
    drawn.append(SdfGeometry("visual", foot.name, SdfPose(p), "sphere", ball, _RUBBER))
    mu = surface_friction(foot.friction)
    touching = SdfGeometry("collision", foot.name, SdfPose(p), "sphere", ball, None, mu)
    drawn.append(touching)
    length = float(np.linalg.norm(foot.offset))
    if length > foot.radius:
        rpy = RotationMatrix.MakeFromOneVector(foot.offset / length, 2)
        bar = {"radius": 0.6 * foot.radius, "length": length}
        pose = SdfPose(p - foot.offset / 2, rpy.ToRollPitchYaw().vector())
        drawn.append(
            SdfGeometry("visual", f"{foot.name}_bar", pose, "capsule", bar, _RUBBER)
        )


def _finished(text: str, cut: Octahedra) -> str:
    """Adds what the SDF writer does not know: joints in loops, and bushings."""
    ET.register_namespace("drake", _DRAKE.strip("{}"))
    sdf = ET.fromstring(text)
    root = sdf.find("model")
    for shared in cut.shared:
        A, B = cut.names[shared.A], cut.names[shared.B]
        p_A = _vec(cut.in_body(shared.A, shared.node))
        p_B = _vec(cut.in_body(shared.B, shared.node))
        label = f"node_{shared.node}"
        if shared.in_tree:
            joint = ET.SubElement(root, "joint", {"name": label, "type": "ball"})
            ET.SubElement(joint, "pose").text = f"{p_B} 0.0 0.0 0.0"
            ET.SubElement(joint, "parent").text = A
            ET.SubElement(joint, "child").text = B
        else:
            _tag(
                root,
                "ball_constraint",
                ball_constraint_body_A=A,
                ball_constraint_p_AP=p_A,
                ball_constraint_body_B=B,
                ball_constraint_p_BQ=p_B,
            )
        _tag(
            root,
            "linear_bushing_rpy",
            bushing_frameA=f"{label}_A",
            bushing_frameC=f"{label}_C",
            bushing_torque_stiffness=_vec(cut.stiffness),
            bushing_torque_damping=_vec(cut.damping(shared)),
            bushing_force_stiffness="0.0 0.0 0.0",
            bushing_force_damping="0.0 0.0 0.0",
        )
    ET.indent(sdf)
    return '<?xml version="1.0"?>\n' + ET.tostring(sdf, "unicode") + "\n"


def _tag(root: ET.Element, tag: str, **children: str) -> None:
    element = ET.SubElement(root, _DRAKE + tag)
    for name, text in children.items():
        ET.SubElement(element, _DRAKE + name).text = text


def _vec(values) -> str:
    # Twelve digits: sums of half pitches would end in noise otherwise.
    return " ".join(repr(float(f"{v:.12g}") + 0.0) for v in values)


# --- the walking robot ---------------------------------------------------------

HEADING = np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0)
"""The direction the robot faces, in the lattice's axes."""

CORE = 8
"""Number of voxels of the core, the first ones."""

_ORANGE = (0.86, 0.52, 0.20, 1.0)
_BLUE = (0.36, 0.47, 0.62, 1.0)


def walker(front_mass: float = 0.0) -> Octahedra:
    """The robot's ten voxels.

    Args:
        front_mass: mass of the parts that either front voxel carries [kg].
    """
    robot, given = VoxelRobot(), parameters_of("voxel")
    masses = np.full(len(robot.lattice.voxels), given.number("voxel_mass") + front_mass)
    masses[: len(robot.core.voxels)] = given.number("core_voxel_mass")
    d = given.number("strut")
    strut = Strut(d, d, **given.table("material"))
    return Octahedra(robot.lattice, strut, masses, given.number("damping_ratio"))


def _foot(group: str, name: str):
    return field(default_factory=lambda: parameters_of("voxel").table(group)[name])


@checked("feet")
class Feet:
    """The robot's feet on the ground; friction is the mean of both directions.

    Raises:
        InvalidInput: for numbers out of range.
    """

    front: Annotated[float, between(0, 1.5)] = _foot("friction", "front")
    """Friction coefficient of the front feet; by default that of params.yaml."""
    back: Annotated[float, between(0, 1.5)] = _foot("friction", "back")
    """Friction coefficient of the back feet; by default that of params.yaml."""
    directional: Annotated[float, between(0, 1)] = 0.0
    """Share s by which the feet slide more easily forward: mu (1 - s) forward, mu (1 +
    s) backward."""
    points: Annotated[bool, flag()] = False
    """Whether the back feet are points, without heel and toe."""
    heel_and_toe: Annotated[float, positive("m")] = _foot("foot", "heel_and_toe")
    """Distance of heel and toe from the node that a back foot is under; by default that
    of params.yaml."""

    def __post_init__(self):
        pitch = parameters_of("voxel").number("pitch")
        check(self, "feet", heel_and_toe=between(0, pitch, "m"))
        if self.directional == 1:
            raise InvalidInput("feet: directional must be < 1: mu forward would be 0")

    def spheres(self) -> tuple[Foot, ...]:
        """The spheres under the robot: FL, FR, and heel and toe of BL and BR."""
        radius = parameters_of("voxel").table("foot")["radius"]
        found = []
        for name, node in FEET.items():
            front = name[0] == "F"
            mu, ends = self.front if front else self.back, {"": 0}
            if not (front or self.points):
                ends = {"_heel": -1, "_toe": 1}
            for end, sign in ends.items():
                offset = sign * self.heel_and_toe * HEADING
                found.append(Foot(name + end, node, offset, radius, mu))
        return tuple(found)


def walker_sdf(
    feet: tuple[Foot, ...] | None = None, cut: Octahedra | None = None
) -> str:
    """The SDF text of the robot, with its own feet and voxels or the given ones."""
    robot = VoxelRobot()
    core, all_voxels = len(robot.core.voxels), len(robot.lattice.voxels)
    colors = [_BLUE] * core + [_ORANGE] * (all_voxels - core)
    feet = Feet().spheres() if feet is None else feet
    return octahedra_sdf(cut or walker(), feet, name="voxel", colors=colors)


def rest_pose() -> np.ndarray:
    """p_WL of the lattice's corner (3,) [m]: feet on z = 0, core over the origin."""
    given = parameters_of("voxel")
    pitch = given.number("pitch")
    return np.array([-pitch, -pitch, given.table("foot")["radius"]])


def core_tilt(poses: np.ndarray) -> float:
    """Tilt of the core from upright [rad]: its voxels, which come first, tilt to either
    side in turn.

    Args:
        poses: X_WV of all voxels (V, 4, 4).
    """
    up = poses[:CORE, 2, 2].mean()
    return float(np.arccos(np.clip(up, -1.0, 1.0)))
