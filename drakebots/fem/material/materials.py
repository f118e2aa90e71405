"""Materials of the skin: moduli, coefficients of the energies, checks.

The paper (section 7) states E = 0.09 GPa. That contradicts its own Fig. 17:
1.96 N m bends the skin of a leg by about 20 deg, and a silicone tube of 33 mm
radius, 4 mm wall and 50 mm free length has 8 N m/rad at 1 MPa, so the figure
needs about 0.7 MPa; at 90 MPa the tube bends 0.16 deg. :data:`SILICONE`
therefore is the default and :data:`PAPER_LITERAL` the number as printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.fem.material.energies import (
    LINEAR_COROTATED,
    MOONEY_RIVLIN,
    NEO_HOOKEAN,
    OGDEN,
    ST_VENANT_KIRCHHOFF,
    STABLE_NEO_HOOKEAN,
    TERMS,
)
from drakebots.fem.material.kernels import energy_density, stress_tangent

KINDS = {
    "neo-hookean": NEO_HOOKEAN,
    "stable-neo-hookean": STABLE_NEO_HOOKEAN,
    "st-venant-kirchhoff": ST_VENANT_KIRCHHOFF,
    "mooney-rivlin": MOONEY_RIVLIN,
    "linear-corotated": LINEAR_COROTATED,
    "ogden": OGDEN,
}
"""Names of the energies:

* neo-hookean, mu/2 (I1 - 3) - mu ln J + lambda/2 (ln J)^2 (the paper's);
* stable-neo-hookean, Smith, de Goes and Kim 2018: finite when inverted;
* st-venant-kirchhoff, mu |E|^2 + lambda/2 (tr E)^2;
* mooney-rivlin, c10 (J^-2/3 I1 - 3) + c01 (J^-4/3 I2 - 3) + k/2 (ln J)^2;
* linear-corotated, mu |F - R|^2 + lambda/2 tr(R'F - 1)^2, tangent exact (R is
  not frozen over a step);
* ogden, sum mu_p/a_p (sum_i b_i^a_p - 3) + k/2 (ln J)^2, b_i = J^-1/3 s_i.
"""

COEFFICIENTS = 2 * TERMS + 1


@dataclass(frozen=True)
class Material:
    """An isotropic hyperelastic material.

    Attributes:
        kind: one of KINDS.
        youngs_modulus: at small strain [Pa].
        poisson_ratio: at small strain, -1 < nu < 0.5.
        density: at rest [kg/m^3].
        mass_damping: Rayleigh's alpha [1/s].
        stiffness_damping: Rayleigh's beta [s].
        second_share: Mooney-Rivlin, c01/(c10 + c01); mu = 2 (c10 + c01).
        ogden_terms: (alpha_p, share_p) with mu_p alpha_p = 2 mu share_p; shares
            add to 1. The default is Treloar's rubber (Ogden 1972).

    Raises:
        UnknownName: for a kind that is not known.
        InvalidInput: for a value outside its range.
    """

    kind: str = "neo-hookean"
    youngs_modulus: float = 0.8e6
    poisson_ratio: float = 0.46
    density: float = 1070.0
    mass_damping: float = 0.0
    stiffness_damping: float = 0.0
    second_share: float = 0.2
    ogden_terms: tuple[tuple[float, float], ...] = (
        (1.3, 0.9694),
        (5.0, 0.0071),
        (-2.0, 0.0235),
    )

    def __post_init__(self):
        if self.kind not in KINDS:
            raise UnknownName("material", self.kind, KINDS)

        def need(good, name, value, remedy):
            if not (good and np.isfinite(value)):
                raise InvalidInput(f"material {self.kind}: {name} = {value} {remedy}")

        e, nu = self.youngs_modulus, self.poisson_ratio
        need(e > 0, "youngs_modulus", e, "must be > 0 Pa (silicone: 0.7e6 to 1e6)")
        need(
            -1 < nu < 0.5,
            "poisson_ratio",
            nu,
            "must lie between -1 and 0.5; use 0.46 to 0.49 for rubber",
        )
        need(self.density > 0, "density", self.density, "must be > 0 kg/m^3")
        for name in ("mass_damping", "stiffness_damping"):
            need(getattr(self, name) >= 0, name, getattr(self, name), "must be >= 0")
        share = self.second_share
        need(0 <= share <= 1, "second_share", share, "must lie in 0..1")
        if self.kind == "ogden":
            terms = np.array(self.ogden_terms, float)
            if terms.ndim != 2 or terms.shape[1] != 2 or not 1 <= len(terms) <= TERMS:
                raise InvalidInput(
                    f"material ogden: ogden_terms needs 1 to {TERMS} pairs "
                    f"(alpha, share), got {self.ogden_terms!r}"
                )
            total = terms[:, 1].sum()
            need(abs(total - 1) < 1e-6, "sum of shares", total, "must be 1")
            smallest = np.abs(terms[:, 0]).min()
            need(smallest > 1e-3, "smallest |alpha|", smallest, "must not vanish")

    @property
    def lame(self) -> tuple[float, float]:
        """Lame's mu and lambda [Pa]."""
        e, nu = self.youngs_modulus, self.poisson_ratio
        return e / (2 * (1 + nu)), e * nu / ((1 + nu) * (1 - 2 * nu))

    @property
    def bulk_modulus(self) -> float:
        """lambda + 2/3 mu [Pa]."""
        mu, lam = self.lame
        return lam + 2 * mu / 3

    def with_modulus(self, youngs_modulus: float) -> Material:
        """The same material, softer or stiffer."""
        return replace(self, youngs_modulus=youngs_modulus)

    def density_and_stress(self, F) -> tuple[float, np.ndarray, np.ndarray]:
        """Energy density, P (3, 3) and dP/dF (9, 9), rows 3 i + j, at F (3, 3)."""
        P, T = np.empty((3, 3)), np.empty((9, 9))
        F = np.ascontiguousarray(F, float)
        energy = stress_tangent(KINDS[self.kind], coefficients(self), F, P, T, True)
        return energy, P, T

    def energy_density(self, F) -> float:
        """Psi(F) [J/m^3], infinite where the material forbids F."""
        F = np.ascontiguousarray(F, float)
        return energy_density(KINDS[self.kind], coefficients(self), F)


SILICONE = Material()
"""Neo-Hookean, 0.8 MPa, nu 0.46, 1070 kg/m^3: what the paper's Fig. 17 implies."""

PAPER_LITERAL = Material(youngs_modulus=0.09e9)
"""The paper's 0.09 GPa as printed: a hundred times stiffer than its Fig. 17."""


def coefficients(material: Material) -> np.ndarray:
    """The numbers (COEFFICIENTS,) that the compiled energies take."""
    mu, lam = material.lame
    c = np.zeros(COEFFICIENTS)
    if material.kind == "stable-neo-hookean":
        # Smith et al., section 3.4: moduli that keep Lame's meaning at rest.
        mu_, lam_ = 4 / 3 * mu, lam + 5 / 6 * mu
        c[:3] = mu_, lam_, 1 + 0.75 * mu_ / lam_
    elif material.kind == "mooney-rivlin":
        share = material.second_share
        c[:3] = (1 - share) * mu / 2, share * mu / 2, material.bulk_modulus
    elif material.kind == "ogden":
        for p, (alpha, share) in enumerate(material.ogden_terms):
            c[p], c[TERMS + p] = 2 * mu * share / alpha, alpha
        c[2 * TERMS] = material.bulk_modulus
    else:
        c[:2] = mu, lam
    return c


def by_region(
    materials: Material | Mapping[int, Material], regions: tuple[int, ...]
) -> tuple[Material, ...]:
    """One material a region, in the order of `regions`.

    Raises:
        InvalidInput: when a region has no material.
        UnknownName: when a material is given for a region that does not occur.
    """
    if isinstance(materials, Material):
        return (materials,) * len(regions)
    for region in materials:
        if region not in regions:
            raise UnknownName("mesh region", region, map(str, regions))
    for region in regions:
        if region not in materials:
            raise InvalidInput(
                f"mesh region {region} has no material; give one for each of "
                f"{', '.join(map(str, regions))}"
            )
    return tuple(materials[region] for region in regions)
