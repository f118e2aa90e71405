"""Frames of beams with rigid joints: what they are, how held and loaded.

Every node has six motions in the order of arrays (N, 6): displacements along
world x, y, z [m], then rotations about them [rad]; forces [N] and moments [N m]
alike. A problem is a :class:`Frame`, its :class:`Supports` (which motions are
held, where actuators sit) and a :class:`Load` (how far, how hard).

    frame = lattice_frame(block(2, 2, 2), Strut())
    supports, load = actuate(frame, [(first, second)], [0.01], "sym")
    solution = solve_frame(frame, supports, load)

Solving is in frame_solve.py (linear), frame_geometric.py (stress-stiffened) and
frame_modes.py.
"""

from drakebots.lattice.frame.model import MOTIONS, Frame, Load, Supports, lattice_frame
from drakebots.lattice.frame.solution import CONVENTIONS, actuate, pair_forces

__all__ = [
    "CONVENTIONS",
    "MOTIONS",
    "Frame",
    "Load",
    "Supports",
    "actuate",
    "lattice_frame",
    "pair_forces",
]
