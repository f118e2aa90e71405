"""Rigid octahedra as SDF, and the walking robot as one: voxels, masses, feet.

SDF can state bodies, ball joints, bushings, ball constraints and feet; the actuators
(distance constraints) are added through Drake's API by
:class:`~drakebots.robots.voxels.model.octahedra.Actuators`.

The robot's core is 2x2x2 voxels with the actuators' mass spread over it; one more voxel
hangs on either side of the front. It faces +x+y. Each back foot is a bar with a heel
and a toe: with points for back feet the core's weight lies on the line between them,
only 2 % of it rest on the front, and the robot tips over unless it moves slowly (it
falls at 0.5 s a pose; at 1 s it stays up and gets nowhere). Source: Tebyani et al.
(2022), section 3, and the authors' code for the nodes; the sizes of the feet are ours
(params.yaml).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
from pydrake.math import RotationMatrix

from drakebots.core.checks import array, between, flag, positive
from drakebots.core.fields import check, checked
from drakebots.formats import (
    SdfGeometry,
    SdfJoint,
    SdfLink,
    SdfModel,
    SdfPose,
    model_sdf,
)
from drakebots.lattice.pom import place_of
from drakebots.lattice.shape import BEAMS, OFFSETS, Strut
from drakebots.model import Point, given, parameters_of
from drakebots.robots.voxels.model.octahedra import AXIS_RPY, Octahedra
from drakebots.robots.voxels.model.robot import FEET, VoxelRobot

STRUT_RADIUS, NODE_RADIUS = 1.4e-3, 3.2e-3
"""Radii as drawn [m]; thinner struts would not be visible."""

_BLUE = (0.36, 0.47, 0.62, 1.0)
_RUBBER = (0.16, 0.17, 0.19, 1.0)


@checked("foot {name}")
class Foot:
    """A sphere that may touch the ground, fixed to a voxel.

    Raises:
        InvalidInput: for a radius that is not > 0 (Drake takes 0 as 1 m), or a
            friction out of range.
    """

    name: str
    """Name of the sphere."""
    node: Annotated[tuple[int, int, int], place_of]
    """Place of the lattice node it belongs to [half pitches]."""
    offset: Annotated[np.ndarray, array((3,), "m")] = (0.0, 0.0, 0.0)
    """Position of its centre from the node, in the lattice's axes (3,)."""
    radius: Annotated[float, positive("m")] = 4e-3
    """Radius of the sphere."""
    friction: Annotated[float, between(0, 1.5)] = 0.5
    """Coefficient mu against a ground of mu 1; see :func:`surface_friction`."""

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

    Drake combines two surfaces by 2 m n/(m + n), so m = mu/(2 - mu), with mu < 2.
    """
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
    colors = [_BLUE] * len(cut.names) if colors is None else colors
    for voxel, link in enumerate(cut.names):
        body = float(cut.masses[voxel]), SdfPose(), cut.inertia(voxel)
        drawn, at = _drawn(cut, tuple(colors[voxel])), SdfPose(cut.centres[voxel])
        model.links[link] = SdfLink(link, *body, drawn, at)
    for foot in feet:
        _add_foot(model.links, cut, foot)
    for shared in cut.shared:
        rpy = AXIS_RPY[shared.axis]
        for side, voxel in (("A", shared.A), ("C", shared.B)):
            pose = SdfPose(cut.in_body(voxel, shared.node), rpy)
            model.frames.append((f"node_{shared.node}_{side}", cut.names[voxel], pose))
        _add_joint(model, cut, shared)
    return model_sdf(model)


def _drawn(cut: Octahedra, rgba) -> list[SdfGeometry]:
    places = cut.lattice.pitch / 2 * OFFSETS
    dark = (*(0.72 * c for c in rgba[:3]), 1.0)
    bars = [
        _bar(f"beam_{k}", *places[ends], STRUT_RADIUS, rgba)
        for k, ends in enumerate(BEAMS)
    ]
    balls = [_ball(f"node_{k}", p, NODE_RADIUS, dark) for k, p in enumerate(places)]
    return bars + balls


def _ball(name: str, p: np.ndarray, radius: float, rgba) -> SdfGeometry:
    return SdfGeometry("visual", name, SdfPose(p), "sphere", {"radius": radius}, rgba)


def _bar(name: str, p_A: np.ndarray, p_B: np.ndarray, radius, rgba) -> SdfGeometry:
    """A capsule from A to B."""
    length = float(np.linalg.norm(p_B - p_A))
    R = RotationMatrix.MakeFromOneVector((p_B - p_A) / length, 2)
    pose = SdfPose((p_A + p_B) / 2, R.ToRollPitchYaw().vector())
    values = {"radius": radius, "length": length}
    return SdfGeometry("visual", name, pose, "capsule", values, rgba)


def _add_foot(links: dict[str, SdfLink], cut: Octahedra, foot: Foot) -> None:
    voxel, p = foot.place(cut)
    drawn = links[cut.names[voxel]].geometries
    ball = _ball(foot.name, p, foot.radius, _RUBBER)
    mu = surface_friction(foot.friction)
    drawn += [ball, replace(ball, kind="collision", rgba=None, friction=mu)]
    if np.linalg.norm(foot.offset) > foot.radius:
        ends = p - foot.offset, p
        drawn.append(_bar(f"{foot.name}_bar", *ends, 0.6 * foot.radius, _RUBBER))


def _add_joint(model: SdfModel, cut: Octahedra, shared) -> None:
    """A joint at a shared node, or a loop, and the bushing that holds its turns."""
    A, B = cut.names[shared.A], cut.names[shared.B]
    p_A, p_B = (_tidy(cut.in_body(k, shared.node)) for k in (shared.A, shared.B))
    name = f"node_{shared.node}"
    if shared.in_tree:
        model.joints[name] = SdfJoint(name, "ball", A, B, p_CJ=p_B)
    else:
        loop = {"body_A": A, "p_AP": p_A, "body_B": B, "p_BQ": p_B}
        model.elements.append(("ball_constraint", loop))
    bushing = {
        "frameA": f"{name}_A",
        "frameC": f"{name}_C",
        "torque_stiffness": _tidy(cut.stiffness),
        "torque_damping": _tidy(cut.damping(shared)),
        "force_stiffness": np.zeros(3),
        "force_damping": np.zeros(3),
    }
    model.elements.append(("linear_bushing_rpy", bushing))


def _tidy(values) -> list[float]:
    """Values without the last digits, in which machines differ."""
    return [float(f"{v:.12g}") + 0.0 for v in values]


HEADING = np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0)
"""The direction the robot faces, in the lattice's axes."""

CORE = 8
"""Number of voxels of the core, the first ones."""

_ORANGE = (0.86, 0.52, 0.20, 1.0)


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


@checked("feet")
class Feet:
    """The robot's feet on the ground.

    Raises:
        InvalidInput: for numbers out of range.
    """

    front: Annotated[float, between(0, 1.5)] = given("voxel", "friction", "front")
    """Friction coefficient of the front feet; by default that of params.yaml."""
    back: Annotated[float, between(0, 1.5)] = given("voxel", "friction", "back")
    """Friction coefficient of the back feet; by default that of params.yaml."""
    points: Annotated[bool, flag()] = False
    """Whether the back feet are points, without heel and toe."""
    heel_and_toe: Annotated[float, positive("m")] = given(
        "voxel", "foot", "heel_and_toe"
    )
    """Distance of heel and toe from the node that a back foot is under; by default that
    of params.yaml."""
    stiction: Annotated[float, positive("m/s")] = 1e-5
    """Slip speed below which a foot counts as sticking."""

    def __post_init__(self):
        pitch = parameters_of("voxel").number("pitch")
        check(self, "feet", heel_and_toe=between(0, pitch, "m"))

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
    cut, feet = cut or walker(), Feet().spheres() if feet is None else feet
    colors = [_BLUE] * CORE + [_ORANGE] * (len(cut.names) - CORE)
    return octahedra_sdf(cut, feet, name="voxel", colors=colors)


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
    return float(np.arccos(np.clip(poses[:CORE, 2, 2].mean(), -1.0, 1.0)))
