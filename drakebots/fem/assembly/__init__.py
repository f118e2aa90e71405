"""Finite elements of a skin: energy, force, tangent, mass and weight.

    model = build_model(mesh, Material())       # or a material for each region
    force, tangent = force_and_tangent(model, model.rest)

Functions take a :class:`FemModel` and positions of its nodes (N, 3) [m]. Matrices are
upper values on the model's :class:`SymmetricPattern`.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.fem.assembly.assembly import (
        FemModel,
        SymmetricPattern,
        as_forces,
        as_positions,
        build_model,
        elastic_energy,
        elastic_force,
        force_and_tangent,
        gravity_force,
        loads,
        node_rotations,
        stiffness_shares,
        von_mises,
        worst_tet,
    )
    from drakebots.fem.assembly.elements import Space
    from drakebots.fem.assembly.kernels import gradient_of

__all__, __getattr__, __dir__ = lazy_face(__name__)
