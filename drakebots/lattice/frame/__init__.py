"""Frames of beams with rigid joints: the finite element model of a lattice.

    lattice = block(2, 2, 2)
    frame = lattice_frame(lattice, Strut())
    pair = lattice.node((2, 1, 1)), lattice.node((2, 1, 3))
    supports, load = actuate(frame, [pair], [0.01], "sym")
    solution = solve_frame(frame, supports, load)
    solution.actuator_force              # 6.17 N for +-5 mm

Every node has six motions in the order of arrays (N, 6): displacements along world
x, y, z [m], then rotations about them [rad]; forces [N] and moments [N m] alike. A
problem is a :class:`Frame`, its :class:`Supports` (held motions and actuators) and a
:class:`Load`. :class:`FactoredFrame` solves many loads with one factorization.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.lattice.frame.model import Frame, Load, Supports, lattice_frame
    from drakebots.lattice.frame.solve import (
        CONVENTIONS,
        Factored,
        FactoredFrame,
        FrameSolution,
        actuate,
        solve_frame,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
