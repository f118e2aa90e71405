"""What a lattice's beams are made of: section and material."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput, UnknownName


@dataclass(frozen=True)
class Strut:
    """A beam of rectangular section, bending alike about d1 and d2 when square.

        A = d1 d2,  I = d1^3 d2/12,  J = (1/3 - 0.2244/(max/min + 0.1607)) max min^3

    Attributes:
        d1, d2: sides of the section [m].
        E: Young's modulus [Pa].
        nu: Poisson's ratio.
        rho: density [kg/m^3].

    Raises:
        InvalidInput: for a value out of range, naming it.
    """

    d1: float = 1.27e-3
    d2: float = 1.27e-3
    E: float = 6.894757e9
    nu: float = 0.35
    rho: float = 1420.0

    def __post_init__(self):
        for name in ("d1", "d2", "E", "rho"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"strut: {name} must be > 0, got {value}")
        if not -1 < self.nu < 0.5:
            raise InvalidInput(f"strut: nu must be within -1..0.5, got {self.nu}")

    @property
    def G(self) -> float:
        """Shear modulus [Pa]."""
        return self.E / (2 * (1 + self.nu))

    @property
    def area(self) -> float:
        """A [m^2]."""
        return self.d1 * self.d2

    @property
    def I1(self) -> float:
        """Second moment about the axis along d2 [m^4]."""
        return self.d1**3 * self.d2 / 12

    @property
    def I2(self) -> float:
        """Second moment about the axis along d1 [m^4]."""
        return self.d2**3 * self.d1 / 12

    @property
    def J(self) -> float:
        """Torsion constant [m^4]."""
        thick, thin = max(self.d1, self.d2), min(self.d1, self.d2)
        return (0.33333 - 0.2244 / (thick / thin + 0.1607)) * thick * thin**3


PRESETS = {
    "ultem20gf_1p27": Strut(),
    "nylon_2p0": Strut(2e-3, 2e-3, 1.8e9, 0.39, 1010.0),
    "gfrp_2p4": Strut(2.4e-3, 2.4e-3, 5.0e9, 0.35, 1300.0),
}
"""Struts by name: FERVOR's (from the authors' scripts); the other two are round
numbers of ours for 3-D printed and moulded voxels."""


def preset(name: str) -> Strut:
    """A strut by its name.

    Raises:
        UnknownName: listing the names.
    """
    if name not in PRESETS:
        raise UnknownName("strut", name, PRESETS)
    return PRESETS[name]
