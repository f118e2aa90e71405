"""What a soft limb is: its place on a robot, its size, softness and mass.

The equations are in `drakebots.multibody.limbs.limbs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput

MOST_SEGMENTS = 100


@dataclass(frozen=True, eq=False)
class Limb:
    """A soft limb on a link of a robot; leaves its root along +x.

    Attributes:
        name: of letters, digits and underscores; of its links and joints.
        parent: the link it grows from: the robot's, or "<limb>_tip".
        length: l of its centre line [m].
        stiffness: K of the whole limb in bending [N m/rad].
        mass: of the limb without `tip_mass` [kg].
        radius: of its cross section [m]; for its drawing and inertia.
        p: p_PL of the root on the parent link (3,) [m].
        rpy: roll, pitch, yaw of R_PL (3,) [rad].
        axis: it bends about, right-handed, in the root's frame (3,); made
            perpendicular to x and of unit length.
        segments: N.
        damping: D of the whole limb in bending [N m s/rad].
        range: bending angles it may be asked for (2,) [rad].
        tip_mass: at its end: a foot, a gripper [kg].
        rgba: of its drawing (4,).
        collide: whether its drawing also collides.
    """

    name: str
    parent: str
    length: float
    stiffness: float
    mass: float
    radius: float
    p: Sequence[float] = (0.0, 0.0, 0.0)
    rpy: Sequence[float] = (0.0, 0.0, 0.0)
    axis: Sequence[float] = (0.0, 0.0, 1.0)
    segments: int = 6
    damping: float = 0.0
    range: Sequence[float] = (-np.pi, np.pi)
    tip_mass: float = 0.0
    rgba: Sequence[float] = (0.85, 0.55, 0.25, 1.0)
    collide: bool = False

    def __post_init__(self):
        for name in ("name", "parent"):
            text = getattr(self, name)
            if not (isinstance(text, str) and re.fullmatch(r"[\w:]+", text)):
                raise InvalidInput(
                    f"limb: its {name} must be of letters, digits and _, got {text!r}"
                )
        for name in ("length", "stiffness", "mass", "radius"):
            self._store(name, 0.0, strict=True)
        for name in ("damping", "tip_mass"):
            self._store(name, 0.0, strict=False)
        whole = isinstance(self.segments, (int, np.integer)) and not isinstance(
            self.segments, bool
        )
        if not (whole and 1 <= self.segments <= MOST_SEGMENTS):
            raise InvalidInput(
                f"{self._who}: segments must be a whole number of 1 to "
                f"{MOST_SEGMENTS}, got {self.segments!r}"
            )
        for name, size in (("p", 3), ("rpy", 3), ("axis", 3), ("range", 2)):
            self._store_vector(name, size)
        self._store_vector("rgba", 4)
        low, high = self.range
        if not -2 * np.pi <= low < high <= 2 * np.pi:
            raise InvalidInput(
                f"{self._who}: the range must go from low to high within "
                f"-2 pi..2 pi rad, got [{low:g}, {high:g}]"
            )
        across = self.axis * [0.0, 1.0, 1.0]
        if np.linalg.norm(across) < 1e-6 * max(1.0, np.linalg.norm(self.axis)):
            raise InvalidInput(
                f"{self._who}: axis {self.axis} lies along the limb; give one across x"
            )
        object.__setattr__(self, "axis", across / np.linalg.norm(across))
        self.axis.setflags(write=False)

    @property
    def _who(self) -> str:
        return f"limb {self.name!r}"

    def _store(self, name: str, least: float, *, strict: bool) -> None:
        try:
            value = float(getattr(self, name))
        except (TypeError, ValueError):
            value = np.nan
        if not (np.isfinite(value) and (value > least if strict else value >= least)):
            raise InvalidInput(
                f"{self._who}: {name} must be {'>' if strict else '>='} {least:g} "
                f"and finite, got {getattr(self, name)!r}"
            )
        object.__setattr__(self, name, value)

    def _store_vector(self, name: str, size: int) -> None:
        try:
            value = np.array(getattr(self, name), float)
        except (TypeError, ValueError):
            value = np.full(size, np.nan)
        if value.shape != (size,) or not np.isfinite(value).all():
            raise InvalidInput(
                f"{self._who}: {name} must be {size} finite numbers, "
                f"got {getattr(self, name)!r}"
            )
        value.setflags(write=False)
        object.__setattr__(self, name, value)

    @property
    def weights(self) -> np.ndarray:
        """Shares w of alpha that the joints take (N + 1,)."""
        w = np.full(self.segments + 1, 1.0 / self.segments)
        w[[0, -1]] /= 2
        return w

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints and actuators from the root on, N + 1 of them."""
        return tuple(f"{self.name}_bend_{j}" for j in range(self.segments + 1))

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the links from the root on: N segments and the tip."""
        return (*(f"{self.name}_{k}" for k in range(self.segments)), self.tip)

    @property
    def tip(self) -> str:
        """The link at its end: its origin is the end, x goes on outward."""
        return f"{self.name}_tip"

    @property
    def root(self) -> str:
        """The flange that is welded to the parent."""
        return f"{self.name}_root"

    def end(self, alpha: float) -> np.ndarray:
        """p of the chain's end in the root's bending plane (2,) [m].

        Columns: along x, and to where a positive angle bends.
        """
        turn = np.cumsum(self.weights)[:-1] * alpha
        step = self.length / self.segments
        return step * np.array([np.cos(turn).sum(), np.sin(turn).sum()])

    def tip_deflection(self, force: float) -> float:
        """Of the straight chain's end by a small force across it [m].

        delta = F l^2/K (1/3 + 1/(6 N^2)); the term without N is that of a beam
        with EI = K l.
        """
        shape = 1 / 3 + 1 / (6 * self.segments**2)
        return force * self.length**2 / self.stiffness * shape


def check_limbs(limbs: Iterable[Limb]) -> tuple[Limb, ...]:
    """The limbs as a tuple if their names differ and there is one at least.

    Raises:
        InvalidInput: otherwise.
    """
    limbs = tuple(limbs)
    if not limbs:
        raise InvalidInput("limbs: give one limb at least")
    seen = set()
    for limb in limbs:
        if limb.name in seen:
            raise InvalidInput(f"two limbs are named {limb.name!r}; rename one")
        seen.add(limb.name)
    return limbs
