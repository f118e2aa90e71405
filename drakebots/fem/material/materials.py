"""Materials of the skin: their moduli and the coefficients of their energies.

All robots have one silicone, :data:`SILICONE`. The paper (section 7) states E =
0.09 GPa, which contradicts its own Fig. 17: 1.96 N m bends the skin of a leg by about
20 deg. A tube of 33 mm radius, 4 mm wall and 50 mm free length has 8 N m/rad at 1 MPa,
so the figure requires about 0.7 MPa; at 90 MPa the tube would bend by 0.16 deg.
:data:`PAPER_LITERAL` has the printed value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import numpy as np

from drakebots.core.checks import between, non_negative, one_of, positive
from drakebots.core.errors import InvalidInput, check_names
from drakebots.core.fields import checked
from drakebots.fem.material.energies import (
    LINEAR_COROTATED,
    NEO_HOOKEAN,
    OGDEN,
    ST_VENANT_KIRCHHOFF,
    STABLE_NEO_HOOKEAN,
    TERMS,
)

KINDS = {
    "neo-hookean": NEO_HOOKEAN,
    "stable-neo-hookean": STABLE_NEO_HOOKEAN,
    "st-venant-kirchhoff": ST_VENANT_KIRCHHOFF,
    "mooney-rivlin": OGDEN,
    "linear-corotated": LINEAR_COROTATED,
    "ogden": OGDEN,
}
"""Names of the energies:

* neo-hookean, mu/2 (I1 - 3) - mu ln J + lambda/2 (ln J)^2 (the paper's);
* stable-neo-hookean, Smith, de Goes and Kim 2018: finite when inverted;
* st-venant-kirchhoff, mu |E|^2 + lambda/2 (tr E)^2;
* mooney-rivlin, c10 (J^-2/3 I1 - 3) + c01 (J^-4/3 I2 - 3) + k/2 (ln J)^2, which is
  Ogden's with a = 2, -2;
* linear-corotated, mu |F - R|^2 + lambda/2 tr(R'F - 1)^2, with the exact tangent (R is
  not frozen over a step);
* ogden, sum mu_p/a_p (sum_i b_i^a_p - 3) + k/2 (ln J)^2, b_i = J^-1/3 s_i.
"""

COEFFICIENTS = 2 * TERMS + 1
"""Numbers that describe any material to the compiled energies."""


@checked("material {kind}")
class Material:
    """An isotropic hyperelastic material.

    Raises:
        UnknownName: for an unknown kind.
        InvalidInput: for a value outside its range.
    """

    kind: Annotated[str, one_of("material", KINDS)] = "neo-hookean"
    """Name of the energy, one of KINDS."""
    youngs_modulus: Annotated[float, positive("Pa")] = 0.7e6
    """Young's modulus at small strain; silicone: 0.7e6 to 1e6."""
    poisson_ratio: Annotated[float, between(-1, 0.5, open_ends=True)] = 0.46
    """Poisson's ratio at small strain, -1 < nu < 0.5; rubber: 0.46 to 0.49."""
    density: Annotated[float, positive("kg/m^3")] = 1070.0
    """Density at rest."""
    mass_damping: Annotated[float, non_negative("1/s")] = 0.0
    """Rayleigh's coefficient alpha."""
    stiffness_damping: Annotated[float, non_negative("s")] = 0.0
    """Rayleigh's coefficient beta."""
    second_share: Annotated[float, between(0, 1)] = 0.2
    """Share c01/(c10 + c01) of Mooney-Rivlin; mu = 2 (c10 + c01)."""
    ogden_terms: tuple[tuple[float, float], ...] = (
        (1.3, 0.9694),
        (5.0, 0.0071),
        (-2.0, 0.0235),
    )
    """Pairs (alpha_p, share_p) of Ogden with mu_p alpha_p = 2 mu share_p; the shares
    add to 1. The default is Treloar's rubber (Ogden 1972)."""

    def __post_init__(self):
        if self.kind == "ogden":
            self._check_ogden_terms()

    def _check_ogden_terms(self):
        terms = np.array(self.ogden_terms, float)
        if terms.ndim != 2 or terms.shape[1] != 2 or not 1 <= len(terms) <= TERMS:
            raise InvalidInput(
                f"material ogden: ogden_terms must be 1 to {TERMS} pairs "
                f"(alpha, share), got {self.ogden_terms!r}"
            )
        alpha, share = terms.T
        if not abs(share.sum() - 1) < 1e-6:
            raise InvalidInput(
                f"material ogden: sum of shares must be 1, got {share.sum():g}"
            )
        smallest = np.abs(alpha).min()
        if not (smallest > 1e-3 and np.isfinite(alpha).all()):
            raise InvalidInput(
                f"material ogden: smallest |alpha| must be > 1e-3, got {smallest:g}"
            )

    @property
    def lame(self) -> tuple[float, float]:
        """Lame's mu and lambda [Pa]."""
        e, nu = self.youngs_modulus, self.poisson_ratio
        return e / (2 * (1 + nu)), e * nu / ((1 + nu) * (1 - 2 * nu))

    def with_modulus(self, youngs_modulus: float) -> Material:
        """The same material with another modulus [Pa]."""
        return replace(self, youngs_modulus=youngs_modulus)


SILICONE = Material(youngs_modulus=0.7e6, density=1070.0, stiffness_damping=3.2e-3)
"""A casting silicone of Shore A 20, the material of all robots:

* 1070 kg/m^3: makers' data sheets of addition-cured silicones of Shore A 10 to 30 say
  1070 to 1080;
* 0.7 MPa: Gent's relation (1958), E = 0.0981 (56 + 7.62336 S)/(0.137505 (254 - 2.54 S))
  MPa, has 0.70 MPa at S = 19 and 0.73 MPa at S = 20;
* beta = eta/(2 pi f) = 3.2 ms with a loss factor eta of 0.1, the low end of the 0.1 to
  0.3 that tables of rubbers give for silicone at 10 Hz and more, at f = 5 Hz, between
  the rates of steps and of swaying bellies and tails.
"""

PAPER_LITERAL = SILICONE.with_modulus(0.09e9)
"""The paper's printed 0.09 GPa, a hundred times stiffer than its Fig. 17."""


def coefficients(material: Material) -> np.ndarray:
    """Coefficients (COEFFICIENTS,) of the compiled energies."""
    mu, lam = material.lame
    c = np.zeros(COEFFICIENTS)
    if material.kind == "stable-neo-hookean":
        # Smith et al., section 3.4: moduli with the meaning of Lame's at rest.
        mu_, lam_ = 4 / 3 * mu, lam + 5 / 6 * mu
        c[:3] = mu_, lam_, 1 + 0.75 * mu_ / lam_
    elif KINDS[material.kind] == OGDEN:
        terms = material.ogden_terms
        if material.kind == "mooney-rivlin":
            terms = (2.0, 1 - material.second_share), (-2.0, material.second_share)
        for p, (alpha, share) in enumerate(terms):
            c[p], c[TERMS + p] = 2 * mu * share / alpha, alpha
        c[2 * TERMS] = lam + 2 * mu / 3
    else:
        c[:2] = mu, lam
    return c


def by_region(
    materials: Material | Mapping[int, Material], regions: tuple[int, ...]
) -> tuple[Material, ...]:
    """The material of each region, in the order of `regions`.

    Raises:
        InvalidInput: when a region has no material.
        UnknownName: for a material of a region that does not exist.
    """
    if isinstance(materials, Material):
        return (materials,) * len(regions)
    check_names("mesh region", materials, regions)
    for region in regions:
        if region not in materials:
            raise InvalidInput(
                f"mesh region {region} has no material; give one for each of "
                f"{', '.join(map(str, regions))}"
            )
    return tuple(materials[region] for region in regions)
