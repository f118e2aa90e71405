"""Elastic skins by tetrahedral finite elements, independent of Drake.

A mesh and materials make a model (:mod:`drakebots.fem.mesh`,
:mod:`~drakebots.fem.material`, :mod:`~drakebots.fem.assembly`). It is stepped in time
or brought to equilibrium with the sparse solvers of :mod:`drakebots.fem.solver`:

    model = build_model(box_mesh((0.04, 0.04, 0.2), (4, 4, 20)), Material())
    stepper = ImplicitEuler(model, 5e-3)
    state = stepper.step(at_rest(model)).state
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.fem.cavity import Cavity, cavity_of
    from drakebots.fem.contact import (
        MAX_CELLS,
        Penalty,
        SurfaceContact,
        closest_on_triangle,
        self_contact,
        triangle_grid,
    )
    from drakebots.fem.dynamics import ImplicitEuler, SkinState, at_rest, step_system
    from drakebots.fem.locking import RegionLocking, locking, wall_size
    from drakebots.fem.solver import equilibrium

__all__, __getattr__, __dir__ = lazy_face(__name__)
