"""Mass, centre of mass and inertia of bodies and of solid shapes."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np
from pydrake.math import RigidTransform

from drakebots.core.errors import InvalidInput

ROUNDING = 1e-6
"""How far given moments may violate the conditions of a rigid body, relative to the
largest: they are often printed with six digits."""

LARGEST_SIZE = 1e6
"""Of a solid shape [m]; its inertia goes with the fifth power."""


@dataclass(frozen=True)
class Inertia:
    """Mass properties in a frame F.

    Attributes:
        mass: [kg].
        p_FC: position of the centre of mass C (3,) [m].
        I_C: about C, axes of F (3, 3) [kg m^2].
    """

    mass: float
    p_FC: np.ndarray
    I_C: np.ndarray

    def inside(self, X_BF: RigidTransform) -> Inertia:
        """The same in frame B."""
        R = X_BF.rotation().matrix()
        return Inertia(self.mass, X_BF.multiply(self.p_FC), R @ self.I_C @ R.T)

    def scaled(self, factor: float) -> Inertia:
        """With all masses times a factor; InvalidInput where no number is so large."""
        with np.errstate(over="ignore"):
            found = Inertia(self.mass * factor, self.p_FC, self.I_C * factor)
        found.check_finite()
        return found

    def check_finite(self) -> None:
        """Refuses an inertia that is not finite."""
        if not np.isfinite(self.I_C).all():
            raise InvalidInput("its inertia is beyond all numbers; correct it")

    def at_least(self, mass: float, moment: float, balance: bool) -> Inertia:
        """The same with no smaller mass and moments, and possible for a rigid body.

        Args:
            mass, moment: the least ones [kg, kg m^2].
            balance: whether an impossible inertia becomes that of a sphere.

        Raises:
            InvalidInput: for an inertia that no rigid body has.
        """
        self.check_finite()
        moments, axes = np.linalg.eigh(self.I_C)
        slack = ROUNDING * abs(moments).max()
        if moments[0] < -slack:
            raise InvalidInput(
                f"its inertia is negative, the principal moments are {_list(moments)}; "
                "correct it"
            )
        moments = np.maximum(moments, moment)
        if moments[0] + moments[1] < moments[2] - slack:
            if not balance:
                raise InvalidInput(
                    f"no rigid body has the principal moments {_list(moments)}: one "
                    "exceeds the sum of the others; correct its inertia"
                )
            moments[:] = moments.mean()
        if np.array_equal(moments, np.linalg.eigvalsh(self.I_C)):
            return Inertia(max(self.mass, mass), self.p_FC, self.I_C)
        tensor = axes @ np.diag(moments) @ axes.T
        return Inertia(max(self.mass, mass), self.p_FC, (tensor + tensor.T) / 2)


def _list(moments: np.ndarray) -> str:
    return ", ".join(f"{moment:.4g}" for moment in moments)


def sum_of(parts: list[Inertia]) -> Inertia:
    """Several bodies as one, all in one frame."""
    mass = sum(part.mass for part in parts)
    if mass == 0:
        return Inertia(0.0, np.zeros(3), np.zeros((3, 3)))
    center = sum(part.mass * part.p_FC for part in parts) / mass
    tensor = np.zeros((3, 3))
    for part in parts:
        r = part.p_FC - center
        tensor += part.I_C + part.mass * (r @ r * np.eye(3) - np.outer(r, r))
    return Inertia(mass, center, tensor)


def solid(kind: str, sizes: tuple[float, ...]) -> Inertia:
    """The mass properties of a solid shape of density 1 about its middle.

    Raises:
        InvalidInput: for a size beyond LARGEST_SIZE.
    """
    if max(sizes) > LARGEST_SIZE:
        raise InvalidInput(
            f"a {kind} of size {max(sizes):g} is larger than {LARGEST_SIZE:g} m; "
            "correct it"
        )
    if kind == "box":
        a = np.array(sizes)
        mass, moments = 8 * a.prod(), a**2 / 3
        axes = moments.sum() - moments
    elif kind in ("sphere", "ellipsoid"):
        a = np.array(sizes) if kind == "ellipsoid" else np.full(3, sizes[0])
        mass, moments = 4 / 3 * pi * a.prod(), a**2 / 5
        axes = moments.sum() - moments
    else:
        r, h = sizes
        tube, ball = 2 * pi * r**2 * h, 4 / 3 * pi * r**3
        along, across = r**2 / 2, r**2 / 4 + h**2 / 3
        if kind == "cylinder":
            mass, axes = tube, np.array([across, across, along])
        else:
            # Two half balls, whose centres of mass are 3 r / 8 beyond the tube's ends.
            mass = tube + ball
            end = 2 * r**2 / 5 + h**2 + 3 * h * r / 4
            axes = np.array([across, across, along]) * tube
            axes += np.array([end, end, 2 * r**2 / 5]) * ball
            axes /= mass
    return Inertia(float(mass), np.zeros(3), np.diag(axes) * mass)
