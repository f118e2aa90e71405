"""Writes models/mini_cheetah, monopod and minitaur from their params.yaml, or checks.

python scripts/make_control_models.py            # write
python scripts/make_control_models.py --check    # exit 1 if a file would change
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from made_files import made_files

from drakebots.core.errors import DrakebotsError
from drakebots.formats import (
    SdfGeometry,
    SdfJoint,
    SdfLink,
    SdfModel,
    SdfPose,
    model_sdf,
)
from drakebots.model import Parameters, package_root

MADE = "Written by scripts/make_control_models.py from params.yaml; SI."
LEGS = {"FL": (1, 1), "FR": (1, -1), "RL": (-1, 1), "RR": (-1, -1)}
"""Signs of x and y of the legs' places."""

X, Y, Z = np.eye(3)
_DARK, _GREY = np.array([0.16, 0.18, 0.22, 1]), np.array([0.55, 0.57, 0.60, 1])
_BLUE = np.array([0.20, 0.33, 0.50, 1])

Part = tuple[float, np.ndarray, np.ndarray]
"""Mass, centre of mass (3,) and inertia about it (3, 3)."""


def box(mass: float, size: Sequence[float], at: np.ndarray) -> Part:
    """A uniform box."""
    squares = np.square(size)
    return mass, np.asarray(at, float), mass / 12 * np.diag(squares.sum() - squares)


def whole(parts: Iterable[Part]) -> Part:
    """Parts as one body, by the parallel axis theorem."""
    parts = list(parts)
    mass = sum(m for m, _, _ in parts)
    com = sum(m * p for m, p, _ in parts) / mass
    inertia = np.zeros((3, 3))
    for m, p, own in parts:
        d = p - com
        inertia += own + m * (d @ d * np.eye(3) - np.outer(d, d))
    return mass, com, inertia


def link(model: SdfModel, name: str, part: Part, at, parent=None, *shapes) -> None:
    """Adds a link whose frame is at `at` in that of `parent`."""
    mass, com, inertia = part
    model.links[name] = SdfLink(
        name,
        mass,
        SdfPose(com),
        inertia,
        list(shapes),
        pose=SdfPose(np.asarray(at, float)),
        relative_to=parent,
    )


def seen(shape: str, at, rgba, *, rpy=(0, 0, 0), name="shape", **values) -> SdfGeometry:
    """A visual."""
    pose = SdfPose(np.asarray(at, float), np.asarray(rpy, float))
    return SdfGeometry("visual", name, pose, shape, values, rgba)


def ball(name: str, at, radius: float, *, visual: bool = False) -> SdfGeometry:
    """A sphere that touches."""
    kind = "visual" if visual else "collision"
    pose = SdfPose(np.asarray(at, float))
    rgba = _DARK if visual else None
    return SdfGeometry(kind, name, pose, "sphere", {"radius": radius}, rgba)


def rod(length: float, radius: float, rgba) -> SdfGeometry:
    """A capsule from the frame's origin down."""
    return seen("capsule", -length / 2 * Z, rgba, radius=radius, length=length)


# --- the quadruped of MIT ---------------------------------------------------


def mini_cheetah() -> dict[str, str]:
    """The files of models/mini_cheetah, by name."""
    given = Parameters(package_root() / "mini_cheetah")
    b, rotor, size, motor = map(given.table, ("body", "rotor", "lengths", "motor"))
    touch, ranges = given.number("contact_radius"), given.table("range")
    standing = given.table("standing")
    model = SdfModel("mini_cheetah")

    def spinning(axis: np.ndarray, at: np.ndarray) -> Part:
        across = rotor["across"] * np.ones(3)
        return rotor["mass"], at, np.diag(across + axis * (rotor["axial"] - across))

    sides = {leg: np.array([sx, sy, 1]) for leg, (sx, sy) in LEGS.items()}
    own = b["mass"], np.zeros(3), np.diag(b["inertia"])
    parts = [own, *(spinning(X, s * rotor["in_body"]) for s in sides.values())]
    half = b["size"] / 2 - touch
    corners = {
        f"{leg}_{where}": s * half * [1, 1, up]
        for leg, s in sides.items()
        for where, up in (("top", 1), ("bottom", -1))
    }
    torso = seen("box", np.zeros(3), _BLUE, size=b["size"] * [1, 0.6, 1])
    spheres = [ball(name, p, touch) for name, p in corners.items()]
    link(model, "body", whole(parts), np.zeros(3), None, torso, *spheres)
    feet, points = {}, {name: ("body", p, touch) for name, p in corners.items()}
    for leg, s in sides.items():
        mirror = np.array([1, s[1], 1])
        place = s * [size["hub_x"], size["hub_y"], 0]
        carried = {"hub": [spinning(Y, mirror * rotor["in_hub"])], "thigh": []}
        carried["thigh"] = [spinning(Y, np.zeros(3))]
        at, parent = place, "body"
        shapes = {
            "hub": [
                seen(
                    "cylinder",
                    np.zeros(3),
                    _DARK,
                    rpy=(0, np.pi / 2, 0),
                    radius=0.047,
                    length=0.05,
                )
            ],
            "thigh": [
                rod(size["thigh"], 0.018, _BLUE),
                seen(
                    "cylinder",
                    np.zeros(3),
                    _GREY,
                    rpy=(np.pi / 2, 0, 0),
                    name="motor",
                    radius=0.047,
                    length=0.04,
                ),
                ball("knee", -size["thigh"] * Z, touch),
            ],
            "shank": [
                rod(size["shank"], 0.01, _GREY),
                ball("foot", -size["shank"] * Z, size["foot"]),
                ball("foot_seen", -size["shank"] * Z, size["foot"], visual=True),
            ],
        }
        for name, joint, axis, step in (
            ("hub", "roll", X, mirror * size["hub"] * Y),
            ("thigh", "hip", Y, -size["thigh"] * Z),
            ("shank", "knee", Y, None),
        ):
            entry = given.table(name)
            xy, xz, yz = entry["products"] * [s[1], 1, s[1]]
            tensor = np.array([[0, xy, xz], [xy, 0, yz], [xz, yz, 0]])
            tensor += np.diag(entry["inertia"])
            part = entry["mass"], mirror * entry["com"], tensor
            part = whole([part, *carried.get(name, [])])
            child, ratio = f"{leg}_{name}", motor[f"ratio_{joint}"]
            link(model, child, part, at, parent, *shapes[name])
            low, high = ranges[joint]
            limit = {"lower": low, "upper": high, "effort": ratio * motor["torque"]}
            model.joints[f"{leg}_{joint}"] = SdfJoint(
                f"{leg}_{joint}",
                "revolute",
                parent,
                child,
                axis,
                damping=given.number("damping"),
                limit=limit,
                actuated=True,
                rotor_inertia=ratio**2 * rotor["axial"],
            )
            at, parent = step, child
        feet[leg] = (f"{leg}_shank", -size["shank"] * Z, size["foot"])
        points[f"{leg}_knee"] = (f"{leg}_thigh", -size["thigh"] * Z, touch)
    pose = _legs(standing)
    self_righting = {"crouched": _legs(given.table("crouched"))}
    for side, sign in (("left", 1), ("right", -1)):
        for name in ("gathered", "rolling"):
            lower = {**given.table(f"{name}_lower")}
            lower["roll"] *= sign
            below = {leg: lower for leg, (_, y) in LEGS.items() if y == sign}
            self_righting[f"{name}_{side}"] = _legs(standing, below)
    reach = size["thigh"] * np.cos(standing["hip"])
    reach += size["shank"] * np.cos(standing["hip"] + standing["knee"])
    height = reach + size["foot"]
    return _files(model, feet, pose, points=points, height=height, poses=self_righting)


def _legs(joints: Mapping, others: Mapping[str, Mapping] | None = None) -> dict:
    """A pose by joint: of all legs the same joints, but for the legs in `others`."""
    return {
        f"{leg}_{joint}": value
        for leg in LEGS
        for joint, value in (others or {}).get(leg, joints).items()
    }


# --- a planar hopper ----------------------------------------------------------


def monopod() -> dict[str, str]:
    """The files of models/monopod, by name."""
    given = Parameters(package_root() / "monopod")
    b, masses, size = map(given.table, ("body", "links", "lengths"))
    motor, standing = given.table("motor"), given.table("standing")
    low, high = given.array("range")
    model = SdfModel("monopod")
    nothing = 0.0, np.zeros(3), np.zeros((3, 3))
    for name, kind, axis, parent, child in (
        ("x", "prismatic", X, "world", "slide_x"),
        ("z", "prismatic", Z, "slide_x", "slide_z"),
        ("pitch", "continuous", Y, "slide_z", "body"),
    ):
        if child != "body":
            link(model, child, nothing, np.zeros(3))
        model.joints[name] = SdfJoint(name, kind, parent, child, axis)
    torso = seen("box", np.zeros(3), _BLUE, size=b["size"])
    link(
        model, "body", box(b["mass"], b["size"], np.zeros(3)), np.zeros(3), None, torso
    )
    at, parent = np.zeros(3), "body"
    foot = ball("foot", -size["shank"] * Z, size["foot"])
    foot_seen = ball("foot_seen", -size["shank"] * Z, size["foot"], visual=True)
    for name, joint, more in (
        ("thigh", "hip", []),
        ("shank", "knee", [foot, foot_seen]),
    ):
        length, width = size[name], size["width"]
        part = box(masses[name], (width, width, length), -length / 2 * Z)
        link(model, name, part, at, parent, rod(length, width / 2, _GREY), *more)
        model.joints[joint] = SdfJoint(
            joint,
            "revolute",
            parent,
            name,
            Y,
            damping=given.number("damping"),
            limit={"lower": low, "upper": high, "effort": motor["torque"]},
            actuated=True,
            rotor_inertia=motor["inertia"],
        )
        at, parent = -length * Z, name
    feet = {"foot": ("shank", -size["shank"] * Z, size["foot"])}
    height = size["thigh"] * np.cos(standing["hip"]) + size["foot"]
    height += size["shank"] * np.cos(standing["hip"] + standing["knee"])
    pose = {"z": height, **standing}
    return _files(model, feet, pose)


# --- a quadruped with five-bar legs -------------------------------------------


def minitaur() -> dict[str, str]:
    """The files of models/minitaur, by name.

    At zero angles the upper links are level, one forward and one back, and the lower
    links hang from them as the five-bar's loop wants: in line with the motors' axis.
    """
    given = Parameters(package_root() / "minitaur")
    b, motor, upper, lower = map(given.table, ("body", "motor", "upper", "lower"))
    width, radius = given.number("thickness"), given.number("foot_radius")
    damping, bent = given.number("damping"), given.number("standing")
    least, most = given.array("range")
    L, a = lower["length"], upper["length"]
    fold = np.arcsin(a / L)  # of a lower link from vertical, with level upper links
    model = SdfModel("minitaur")
    torso = seen("box", np.zeros(3), _BLUE, size=b["size"])
    body = box(b["mass"], b["size"], np.zeros(3))
    link(model, "body", body, np.zeros(3), None, torso)
    r, h = motor["radius"], motor["length"]
    across = motor["mass"] * (3 * r**2 + h**2) / 12
    drum = np.diag([across, motor["mass"] * r**2 / 2, across])
    feet, loops, pose = {}, {}, {}
    for leg, (sx, sy) in LEGS.items():
        place = np.array([sx, sy, 1]) * motor["place"]
        for name, front in (("front", 1), ("back", -1)):
            top, low = f"{leg}_{name}_upper", f"{leg}_{name}_lower"
            shift = 0.5 * front * h * Y  # drawn side by side
            drive = seen(
                "cylinder",
                shift,
                _DARK,
                rpy=(np.pi / 2, 0, 0),
                name="motor",
                radius=r,
                length=h,
            )
            along = front * X
            beam = seen(
                "box", a / 2 * along + shift, _GREY, size=np.array([a, width, width])
            )
            parts = [(motor["mass"], np.zeros(3), drum)]
            parts.append(box(upper["mass"], (a, width, width), a / 2 * along))
            link(model, top, whole(parts), place, "body", drive, beam)
            # The lower link's frame is turned so that it hangs along its own -z.
            part = box(lower["mass"], (width, width, L), -L / 2 * Z)
            shapes = [rod(L, width / 2, _GREY)]
            if front > 0:
                shapes += [
                    ball("foot", -L * Z, radius),
                    ball("foot_seen", -L * Z, radius, visual=True),
                ]
            link(model, low, part, a * along, top, *shapes)
            turned = SdfPose(a * along, np.array([0, front * fold, 0]))
            model.links[low].pose = turned
            model.joints[f"{leg}_{name}"] = SdfJoint(
                f"{leg}_{name}",
                "revolute",
                "body",
                top,
                Y,
                damping=damping,
                limit={"lower": least, "upper": most, "effort": motor["torque"]},
                actuated=True,
            )
            model.joints[f"{leg}_{name}_knee"] = SdfJoint(
                f"{leg}_{name}_knee", "continuous", top, low, Y, damping=damping
            )
            # Turned down by `bent`, the knee is closer to the axis of the motors.
            angle = front * bent
            folded = front * np.arcsin(a * np.cos(bent) / L)
            pose[f"{leg}_{name}"] = angle
            pose[f"{leg}_{name}_knee"] = folded - front * fold - angle
        feet[leg] = (f"{leg}_front_lower", -L * Z, radius)
        loops[leg] = (f"{leg}_front_lower", f"{leg}_back_lower", -L * Z)
    height = a * np.sin(bent) + np.sqrt(L**2 - (a * np.cos(bent)) ** 2) + radius
    return _files(model, feet, pose, loops=loops, height=height)


# --- what stands beside an SDF ------------------------------------------------


def _vector(values: Sequence[float]) -> str:
    return "[" + ", ".join(f"{x + 0.0:.12g}" for x in values) + "]"


def _points(title: str, rows: Mapping[str, tuple] | None) -> str:
    if not rows:
        return ""
    lines = [
        f"  {name}: {{body: {body}, p: {_vector(p)}, radius: {radius:.12g}}}"
        for name, (body, p, radius) in rows.items()
    ]
    return "\n".join([f"{title}:", *lines, ""])


def _state(name: str, pose: Mapping[str, float]) -> str:
    """A named pose of an SRDF."""
    rows = "".join(
        f'    <joint name="{joint}" value="{value + 0.0:.12g}"/>\n'
        for joint, value in pose.items()
    )
    return f'  <group_state name="{name}" group="all">\n{rows}  </group_state>\n'


def _files(model, feet, pose, *, points=None, loops=None, height=None, poses=None):
    """The files of a model: SDF, feet and loops, the pose it stands in and others, its
    scene."""
    name = model.name
    sidecar = f"# {MADE}\n" + _points("feet", feet) + _points("points", points)
    if loops:
        sidecar += "loops:\n"
        for leg, (a, b, p) in loops.items():
            sidecar += (
                f"  {leg}: {{A: {a}, p_A: {_vector(p)}, B: {b}, p_B: {_vector(p)}, "
                "axis: [0, 1, 0], rows: planar}\n"
            )
    states = {"standing": pose, **(poses or {})}
    srdf = (
        f'<?xml version="1.0"?>\n<!-- {MADE} -->\n<robot name="{name}">\n'
        + "".join(_state(*state) for state in states.items())
        + "</robot>\n"
    )
    scene = f"# {MADE} The robot as it stands; the ground is z = 0.\ndirectives:\n"
    scene += f"- add_model:\n    name: {name}\n"
    scene += f"    file: package://drakebots/{name}/{name}.sdf\n"
    scene += "    default_joint_positions:\n"
    scene += "".join(f"      {j}: [{x + 0.0:.12g}]\n" for j, x in pose.items())
    if height is not None:
        scene += (
            "    default_free_body_pose:\n      body:\n"
            f"        translation: [0, 0, {height:.12g}]\n"
        )
    return {
        f"{name}.sdf": model_sdf(model),
        f"{name}.drakebots.yaml": sidecar,
        f"{name}.srdf": srdf,
        "scene.dmd.yaml": scene,
    }


def texts() -> dict[Path, str]:
    """The contents of the generated files, by path."""
    return {
        package_root() / make.__name__ / name: text
        for make in (mini_cheetah, monopod, minitaur)
        for name, text in make().items()
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args(argv)
    try:
        return made_files(texts(), check=args.check)
    except DrakebotsError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
