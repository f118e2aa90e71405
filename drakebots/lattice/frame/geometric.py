"""Frames stiffened by their own tension.

Axial forces change how a beam resists deflection: tension stiffens, compression
softens. As frame3dd and the authors' library do it:

    (K + Kg(N)) u = f,   N = EA/L times elongation under u

repeated until the motion stays. Displacements stay small: positions are not
updated.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drakebots.core.errors import NoSolution
from drakebots.lattice.frame.model import Frame, Load, Supports
from drakebots.lattice.frame.solution import FrameSolution
from drakebots.lattice.frame.solve import FactoredFrame


def solve_stressed(
    frame: Frame,
    supports: Supports,
    load: Load,
    *,
    tolerance: float = 1e-9,
    most: int = 60,
) -> FrameSolution:
    """Equilibrium with the stress stiffness of the axial forces it causes.

    Args:
        frame, supports, load: the problem.
        tolerance: largest change of the motion between two passes, relative.
        most: passes to try, one factorization each.

    Raises:
        InvalidInput: as :class:`FactoredFrame`.
        NoSolution: when the frame buckles, or the passes do not settle.
    """
    tension, before, change = None, None, np.inf
    # A turn by 1/size moves nodes by about one.
    scale = np.array([1.0] * 3 + [np.ptp(frame.positions, axis=0).max()] * 3)
    for passes in range(1, most + 1):
        solution = FactoredFrame(frame, supports, tension).solve(load)[0]
        motion = solution.displacement * scale
        if before is not None:
            change = np.abs(motion - before).max() / max(np.abs(motion).max(), 1e-300)
            if change <= tolerance:
                return replace(solution, iterations=passes)
        before, tension = motion, solution.axial
    raise NoSolution(
        f"the stress-stiffened frame did not settle in {most} passes; use a smaller "
        "load",
        {"relative change": float(change)},
    )
