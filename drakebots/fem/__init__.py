"""The elastic skin: tetrahedral finite elements without Drake.

A :class:`~drakebots.fem.mesh.mesh.TetMesh` and materials make a
:class:`~drakebots.fem.assembly.assembly.FemModel`; its energy, force and tangent feed a
sparse solver and the time steps of :mod:`drakebots.fem.dynamics`.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.fem.contact import Penalty, SurfaceContact, self_contact
    from drakebots.fem.dynamics import ImplicitEuler, SkinState, at_rest, frame_system
    from drakebots.fem.locking import RegionLocking, locking, wall_size
    from drakebots.fem.statics import equilibrium

__all__, __getattr__, __dir__ = lazy_face(__name__)
