"""The files of `models/gecko`: the robot as chains of rigid segments in SDF.

The torso's front end slides and turns on a plane. The torso starts there and points
to the rear, the front legs start there and point to the sides; the rear legs start at
the torso's tip. Each limb bends about its own axis, so that all angles have the signs
of the gait law (`drakebots.robots.gecko.model.robot`).
"""

from __future__ import annotations

import numpy as np

from drakebots.formats import (
    SdfGeometry,
    SdfJoint,
    SdfLink,
    SdfModel,
    SdfPose,
    limb_parts,
    model_sdf,
)
from drakebots.multibody import Limb
from drakebots.robots.gecko.model.robot import (
    FEET,
    LIMBS,
    Gecko,
    parameters,
)

FRONT = "front"
"""The link at marker 1; its x is the heading of the torso's front end."""

WALL = "wall"
"""The link, welded to the world, on whose xy plane the robot walks."""

REAR = "torso_tip"
"""The link at marker 4; its x points to the rear."""

_UP, _DOWN = (0.0, 0.0, 1.0), (0.0, 0.0, -1.0)

_ORANGE, _DARK = (0.93, 0.55, 0.18, 1.0), (0.20, 0.22, 0.26, 1.0)
_GREEN = (0.35, 0.62, 0.36, 1.0)

# Parent link, yaw on it and bending axis of each limb, as in limb_starts().
_TREE = {
    "FL": (FRONT, np.pi / 2, _DOWN),
    "FR": (FRONT, -np.pi / 2, _UP),
    "torso": (FRONT, np.pi, _UP),
    "RL": (REAR, -np.pi / 2, _UP),
    "RR": (REAR, np.pi / 2, _DOWN),
}


def bending_stiffness(robot: Gecko, modulus: float | None = None) -> dict[str, float]:
    """E I / L of "leg" and "torso" [N m/rad], I = width height^3 / 12.

    Args:
        robot: gives the lengths L.
        modulus: Young's modulus E [Pa]; None for the file's silicone.
    """
    own = parameters()
    modulus = own.number("modulus") if modulus is None else modulus
    found = {}
    for kind, length in (("leg", robot.leg), ("torso", robot.torso)):
        section = own.table("section")[kind]
        second_moment = section["width"] * section["height"] ** 3 / 12
        found[kind] = modulus * second_moment / length
    return found


def gecko_limbs(
    robot: Gecko, segments: int | None = None, stiffness: dict[str, float] | None = None
) -> tuple[Limb, ...]:
    """The five limbs in the order of every alpha.

    Masses are proportional to lengths: those of `params.yaml` are the small robot's.

    Args:
        robot: gives the lengths.
        segments: number of segments of each limb's chain; None for the file's.
        stiffness: of "leg" and "torso" [N m/rad]; None for :func:`bending_stiffness`.

    Raises:
        InvalidInput: for segments that are no whole number >= 1.
    """
    own = parameters()
    masses, radii = own.table("mass"), own.table("radius")
    small = Gecko()
    n = int(own.number("segments")) if segments is None else segments
    stiffness = stiffness or bending_stiffness(robot)
    limbs = []
    for name in LIMBS:
        parent, yaw, axis = _TREE[name]
        torso = name == "torso"
        kind, reach = ("torso", robot.torso) if torso else ("leg", robot.leg)
        share = reach / (small.torso if torso else small.leg)
        limbs.append(
            Limb(
                name=name,
                parent=parent,
                length=reach,
                stiffness=stiffness[kind],
                damping=own.number("limb_damping"),
                mass=share * masses[kind],
                tip_mass=0.0 if torso else masses["foot"],
                radius=radii[kind],
                rpy=(0.0, 0.0, yaw),
                axis=axis,
                segments=n,
                range=own.array(f"{kind}_range"),
                rgba=_GREEN if torso else _ORANGE,
            )
        )
    return tuple(limbs)


def gecko_sdf(
    robot: Gecko, segments: int | None = None, stiffness: dict[str, float] | None = None
) -> str:
    """The SDF text of a robot; arguments and errors as in :func:`gecko_limbs`."""
    limbs = gecko_limbs(robot, segments, stiffness)
    model = SdfModel("gecko")
    model.links[WALL] = SdfLink(WALL, 0.0, SdfPose(), np.zeros((3, 3)), [])
    # libsdformat has no planar joint, and Drake's own cannot be on the world.
    model.joints["on_world"] = SdfJoint("on_world", "fixed", "world", WALL)
    model.links[FRONT] = _front()
    # A limb's parent must exist before the limb is added.
    for limb in sorted(limbs, key=lambda x: x.parent != FRONT):
        limb_parts(model, limb, on=limb.parent)
    for foot in FEET:
        _draw_foot(model.links[f"{foot}_tip"])
    model.joints["planar"] = SdfJoint("planar", "planar", WALL, FRONT)
    return model_sdf(model)


def _visual(name: str, shape: str, rgba, at=(0.0, 0.0, 0.0), **values) -> SdfGeometry:
    return SdfGeometry("visual", name, SdfPose(np.array(at)), shape, values, rgba)


def _front() -> SdfLink:
    """The torso's front end with a head."""
    mass = 0.2 * parameters().table("mass")["torso"]
    radius = parameters().table("radius")["torso"]
    radii = np.array([0.026, 0.015, 0.012])
    head = [_visual("head", "ellipsoid", _GREEN, (0.022, 0, 0.002), radii=radii)]
    for side, y in (("left", 0.008), ("right", -0.008)):
        at = (0.034, y, 0.010)
        head.append(_visual(f"eye_{side}", "sphere", _DARK, at, radius=0.0035))
    return SdfLink(FRONT, mass, SdfPose(), 0.4 * mass * radius**2 * np.eye(3), head)


def _draw_foot(link: SdfLink) -> None:
    """Adds a suction cup below the end of a leg."""
    radii = parameters().table("radius")
    cup, stem = radii["foot"], radii["leg"]
    size = {"radius": cup, "length": 0.5 * cup}
    stem_size = {"radius": 0.9 * stem, "length": 2.2 * stem}
    link.geometries[:] = [
        _visual(f"{link.name}_cup", "cylinder", _DARK, (0, 0, -stem), **size),
        _visual(f"{link.name}_stem", "cylinder", _ORANGE, **stem_size),
    ]
    # The inertia of a disc: with a point mass, welds and chains would vibrate.
    link.inertia = link.mass * cup**2 * np.diag([0.25, 0.25, 0.5])
