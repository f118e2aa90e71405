"""Elastic skins by tetrahedral finite elements, independent of Drake.

A mesh and materials make a model (:mod:`drakebots.fem.mesh`,
:mod:`~drakebots.fem.material`, :mod:`~drakebots.fem.assembly`). It is stepped in time
or brought to equilibrium with the sparse solvers of :mod:`drakebots.fem.solver`:

    model = build_model(hollow_capsule(1000), Material())
    stepper = ImplicitEuler(model, 5e-3, method="guarded")
    state = stepper.step(at_rest(model)).state
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.fem.contact import Penalty, SurfaceContact, self_contact
    from drakebots.fem.dynamics import ImplicitEuler, SkinState, at_rest, frame_system
    from drakebots.fem.locking import RegionLocking, locking, wall_size
    from drakebots.fem.statics import equilibrium

__all__, __getattr__, __dir__ = lazy_face(__name__)
