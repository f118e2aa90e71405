"""Hyperelastic materials: a name, moduli and damping make an energy.

    Material("mooney-rivlin", youngs_modulus=0.7e6, poisson_ratio=0.47)

The energies themselves are compiled functions of the deformation gradient
(:mod:`drakebots.fem.material.energies`).
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.fem.material.energies import (
        determinant,
        project_positive,
        stress_tangent,
    )
    from drakebots.fem.material.materials import (
        KINDS,
        PAPER_LITERAL,
        SILICONE,
        Material,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
