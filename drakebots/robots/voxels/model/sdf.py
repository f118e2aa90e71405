"""Rigid octahedra as SDF: bodies, ball joints, bushings, ball constraints, feet.

SDF can state everything but the actuators (distance constraints), which are added
through Drake's API by :func:`drakebots.robots.voxels.plant.add_actuators`.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import yaml
from pydrake.math import RotationMatrix

from drakebots.core.checks import array, check, finite, positive
from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom import place_of
from drakebots.lattice.shape import BEAMS, OFFSETS
from drakebots.model import Point, SdfGeometry, SdfLink, SdfModel, SdfPose, model_sdf
from drakebots.robots.voxels.model.octahedra import AXIS_RPY, Octahedra

_DRAKE = "{http://drake.mit.edu}"

STRUT_RADIUS, NODE_RADIUS = 1.4e-3, 3.2e-3
"""Radii as drawn [m]; thinner struts would not be visible."""

_CORE = (0.36, 0.47, 0.62, 1.0)
_RUBBER = (0.16, 0.17, 0.19, 1.0)


@dataclass(frozen=True)
class Foot:
    """A sphere that may touch the ground, fixed to a voxel.

    Attributes:
        name: name of the sphere.
        node: place of the lattice node it belongs to [half pitches].
        offset: position of its centre from the node, in the lattice's axes (3,) [m].
        radius: radius of the sphere [m].
        friction: mu against a ground of mu 1; see :func:`surface_friction`.

    Raises:
        InvalidInput: for a radius that is not > 0 (Drake takes 0 as 1 m), or a
            friction outside 0..2.
    """

    name: str
    node: tuple[int, int, int]
    offset: np.ndarray = field(default_factory=lambda: np.zeros(3))
    radius: float = 4e-3
    friction: float = 0.5

    def __post_init__(self):
        object.__setattr__(self, "node", place_of(self.node))
        what = f"foot {self.name}"
        check(self, what, offset=array((3,), "m"), radius=positive("m"))
        check(self, what, friction=finite())
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
    return _finished(model_sdf(model), cut, feet)


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
    drawn.append(SdfGeometry("collision", foot.name, SdfPose(p), "sphere", ball))
    length = float(np.linalg.norm(foot.offset))
    if length > foot.radius:
        rpy = RotationMatrix.MakeFromOneVector(foot.offset / length, 2)
        bar = {"radius": 0.6 * foot.radius, "length": length}
        pose = SdfPose(p - foot.offset / 2, rpy.ToRollPitchYaw().vector())
        drawn.append(
            SdfGeometry("visual", f"{foot.name}_bar", pose, "capsule", bar, _RUBBER)
        )


def _finished(text: str, cut: Octahedra, feet: Sequence[Foot]) -> str:
    """Adds what the SDF writer does not know: ball joints and drake: tags."""
    ET.register_namespace("drake", _DRAKE.strip("{}"))
    sdf = ET.fromstring(text)
    root = sdf.find("model")
    friction = {foot.name: surface_friction(foot.friction) for foot in feet}
    for collision in root.iter("collision"):
        node = ET.SubElement(collision, f"{_DRAKE}proximity_properties")
        mu = repr(friction[collision.get("name")])
        for tag in ("mu_static", "mu_dynamic"):
            ET.SubElement(node, _DRAKE + tag).text = mu
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


def octahedra_sidecar(
    cut: Octahedra, feet: Sequence[Foot], points: dict[str, tuple] | None = None
) -> str:
    """The YAML beside the SDF: feet, named nodes, and the loops that the SDF closes.

    Args:
        cut: the lattice.
        feet: its feet.
        points: places of nodes by name [half pitches].
    """

    def numbers(p):
        return [float(f"{v:.12g}") + 0.0 for v in p]

    lines: dict = {"feet": {}, "points": {}, "loops": {}}
    for foot in feet:
        voxel, p = foot.place(cut)
        lines["feet"][foot.name] = {
            "body": cut.names[voxel],
            "p": numbers(p),
            "radius": foot.radius,
        }
    for name, place in (points or {}).items():
        voxel, p = Foot(name, place).place(cut)
        lines["points"][name] = {"body": cut.names[voxel], "p": numbers(p)}
    for shared in cut.loops:
        lines["loops"][f"node_{shared.node}"] = {
            "A": cut.names[shared.A],
            "p_A": numbers(cut.in_body(shared.A, shared.node)),
            "B": cut.names[shared.B],
            "p_B": numbers(cut.in_body(shared.B, shared.node)),
            "rows": "ball",
            "in_file": True,
        }
    return yaml.safe_dump(lines, sort_keys=False, default_flow_style=None)
