"""The <compiler> of an MJCF file: angles, orientations, folders, masses."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from pathlib import Path

import numpy as np
from pydrake.common.eigen_geometry import AngleAxis, Quaternion
from pydrake.math import RigidTransform, RotationMatrix

from drakebots.core.errors import InvalidInput
from drakebots.model.reading.mjcf.tree import Element


@dataclass(frozen=True)
class Compiler:
    """What decides how the numbers of a file are read.

    Attributes:
        angle: the unit of angles [rad].
        euler: the axes of an `euler`: small letters turn with the body.
        autolimits: whether a range alone limits a joint or a motor.
        is_global: whether poses of bodies, joints and shapes are in the world.
        inertia_from_geom: "true", "false" or "auto".
        inertia_groups: the first and last group of shapes that have mass.
        bound_mass, bound_inertia: least mass [kg] and inertia [kg m^2] of a body.
        balance_inertia: whether impossible inertias become spheres'.
        total_mass: [kg], or None to leave the masses as they are.
        mesh_folder: of mesh files, relative to the model's.
        mesh_inertia: how the mass of a mesh is found where it does not say.
        strip_path: whether folders in the names of files are left out.
    """

    angle: float = pi / 180
    euler: str = "xyz"
    autolimits: bool = True
    is_global: bool = False
    inertia_from_geom: str = "auto"
    inertia_groups: tuple[int, int] = (0, 5)
    bound_mass: float = 0.0
    bound_inertia: float = 0.0
    balance_inertia: bool = False
    total_mass: float | None = None
    mesh_folder: Path = Path()
    mesh_inertia: str = "legacy"
    strip_path: bool = False

    def pose(self, element: Element) -> RigidTransform:
        """The pose of an element in the frame around it.

        With `fromto` it is half way, with z from one end to the other.
        """
        if "fromto" in element.attributes:
            middle = np.reshape(element.vector("fromto", 6, ""), (2, 3)).mean(axis=0)
            return RigidTransform(rotation_to(_unit(element, along(element))), middle)
        p = element.vector("pos", 3, "0 0 0")
        return RigidTransform(self.rotation(element), p)

    def rotation(self, element: Element) -> RotationMatrix:
        """The orientation of an element: quat, axisangle, euler, xyaxes or zaxis.

        Raises:
            InvalidInput: for an orientation of length zero.
        """
        if "quat" in element.attributes:
            quat = np.array(element.vector("quat", 4, ""))
            return RotationMatrix(Quaternion(_unit(element, quat)))
        if "axisangle" in element.attributes:
            *axis, angle = element.vector("axisangle", 4, "")
            return RotationMatrix(AngleAxis(angle * self.angle, _unit(element, axis)))
        if "euler" in element.attributes:
            return self._euler(element.vector("euler", 3, ""))
        if "xyaxes" in element.attributes:
            values = np.array(element.vector("xyaxes", 6, ""))
            x = _unit(element, values[:3])
            y = _unit(element, values[3:] - x * (x @ values[3:]))
            return RotationMatrix(np.column_stack([x, y, np.cross(x, y)]))
        if "zaxis" in element.attributes:
            return rotation_to(_unit(element, element.vector("zaxis", 3, "")))
        return RotationMatrix()

    def _euler(self, angles: list[float]) -> RotationMatrix:
        R = RotationMatrix()
        for letter, angle in zip(self.euler, angles):
            turn = getattr(RotationMatrix, f"Make{letter.upper()}Rotation")
            turned = turn(angle * self.angle)
            R = R @ turned if letter.islower() else turned @ R
        return R


def read_compiler(root: Element) -> Compiler:
    """The settings of all <compiler> elements; later ones overrule earlier ones.

    Raises:
        InvalidInput: for a value that is none of the format's.
    """
    together = Element("compiler", {})
    for element in root.all("compiler"):
        together.attributes |= element.attributes
    angle = choice(together, "angle", "degree", ("degree", "radian"))
    euler = together.get("eulerseq", "xyz")
    if len(euler) != 3 or set(euler.lower()) - set("xyz"):
        raise InvalidInput(f"<compiler>: eulerseq={euler!r} must be three of xyzXYZ")
    first, last = together.vector("inertiagrouprange", 2, "0 5")
    total = together.number("settotalmass", -1.0)
    folder = together.get("meshdir", together.get("assetdir"))
    return Compiler(
        angle=pi / 180 if angle == "degree" else 1.0,
        euler=euler,
        autolimits=is_true(together, "autolimits", True),
        is_global=choice(together, "coordinate", "local", ("local", "global"))
        == "global",
        inertia_from_geom=choice(
            together, "inertiafromgeom", "auto", ("true", "false", "auto")
        ),
        inertia_groups=(int(first), int(last)),
        bound_mass=together.number("boundmass", 0.0),
        bound_inertia=together.number("boundinertia", 0.0),
        balance_inertia=is_true(together, "balanceinertia", False),
        total_mass=total if total > 0 else None,
        mesh_folder=Path(folder),
        mesh_inertia="exact"
        if is_true(together, "exactmeshinertia", False)
        else "legacy",
        strip_path=is_true(together, "strippath", False),
    )


def is_true(element: Element, key: str, default: bool) -> bool:
    """An attribute that is "true" or "false"."""
    word = "true" if default else "false"
    return choice(element, key, word, ("true", "false")) == "true"


def along(element: Element) -> np.ndarray:
    """The vector between the ends of a `fromto` (3,) [m]."""
    start, end = np.reshape(element.vector("fromto", 6, ""), (2, 3))
    return end - start


def rotation_to(z: np.ndarray) -> RotationMatrix:
    """The least rotation that turns (0, 0, 1) to the unit vector z."""
    axis = np.cross([0.0, 0.0, 1.0], z)
    sine = np.linalg.norm(axis)
    if sine < 1e-12:
        return RotationMatrix() if z[2] > 0 else RotationMatrix.MakeXRotation(pi)
    return RotationMatrix(AngleAxis(np.arctan2(sine, z[2]), axis / sine))


def choice(element: Element, key: str, default: str, known: tuple[str, ...]) -> str:
    """An attribute that is one of several words.

    Raises:
        InvalidInput: for another.
    """
    value = element.get(key, default).lower()
    if value not in known:
        raise InvalidInput(f"{element}: {key}={value!r} must be one of {known}")
    return value


def _unit(element: Element, vector) -> np.ndarray:
    vector = np.asarray(vector, dtype=float)
    length = np.linalg.norm(vector)
    if not length > 1e-12:
        raise InvalidInput(f"{element}: its direction has length zero; correct it")
    return vector / length
