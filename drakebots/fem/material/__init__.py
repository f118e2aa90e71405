"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.fem.material.energies import (
        LAST_INVARIANT,
        MOONEY_RIVLIN,
        PSI_1,
        PSI_1J,
        PSI_2,
        PSI_2J,
        PSI_11,
        PSI_12,
        PSI_22,
        PSI_J,
        PSI_JJ,
        ST_VENANT_KIRCHHOFF,
        cofactor,
        invariants,
        psi_derivatives,
    )
    from drakebots.fem.material.kernels import (
        energy_density,
        invariant_stress,
        project_positive,
        stress_tangent,
    )
    from drakebots.fem.material.materials import (
        KINDS,
        SILICONE,
        Material,
        by_region,
        coefficients,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
