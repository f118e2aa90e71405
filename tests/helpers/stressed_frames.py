"""Frames stiffened by their own axial forces, as frame3dd has them: a cross-check.

    (K + Kg(N)) u = f,   N = EA/L times elongation under u

repeated until the motion no longer changes. Displacements stay small: positions are
not updated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drakebots.core.errors import NoSolution
from drakebots.lattice.frame import Frame, FrameSolution, Load, Supports, solve_frame


@dataclass(frozen=True, eq=False)
class StressedFrame(Frame):
    """A frame with the stress stiffness of axial forces (B,) [N]."""

    tension: np.ndarray | None = None

    @cached_property
    def beam_stiffness(self) -> np.ndarray:
        return self.elements.stiffness() + geometric(self)


def geometric(frame: StressedFrame) -> np.ndarray:
    """Stress stiffness of each beam in the world (B, 12, 12).

    With f = 1/(1 + Phi)^2 and axial force T > 0 in tension: across T/L (6/5 + 2 Phi +
    Phi^2) f; across and rotation T/10 f; rotation T L (2/15 + Phi/6 + Phi^2/12) f and
    -T L (1/30 + Phi/6 + Phi^2/12) f; torsion T J/(A L); nothing along x. Source:
    Przemieniecki (1968), eq. 15.34, with J in place of the polar moment as in
    frame3dd.
    """
    e, T = frame.elements, np.asarray(frame.tension)
    L, n = e.length, len(e.length)
    local = np.zeros((n, 12, 12))
    twist = T * frame.struts.J / (frame.struts.area * L)
    local[:, 3, 3] = local[:, 9, 9] = twist
    local[:, 3, 9] = local[:, 9, 3] = -twist
    planes = (((1, 5, 7, 11), 1.0, e.phi1), ((2, 4, 8, 10), -1.0, e.phi2))
    for at, sign, phi in planes:
        f = T / (1 + phi) ** 2
        a = f / L * (1.2 + 2 * phi + phi**2)
        b = sign * f / 10
        c = f * L * (2 / 15 + phi / 6 + phi**2 / 12)
        d = -f * L * (1 / 30 + phi / 6 + phi**2 / 12)
        bend = np.array([[a, b, -a, b], [b, c, -b, d], [-a, -b, a, -b], [b, d, -b, c]])
        local[:, np.array(at)[:, None], at] = bend.transpose(2, 0, 1)
    blocks = local.reshape(-1, 4, 3, 4, 3).transpose(0, 1, 3, 2, 4)
    R = e.axes
    there = R.transpose(0, 2, 1)[:, None, None] @ blocks @ R[:, None, None]
    return there.transpose(0, 1, 3, 2, 4).reshape(-1, 12, 12)


def stressed(frame: Frame, tension: np.ndarray) -> StressedFrame:
    """The frame with the stress stiffness of given axial forces (B,) [N]."""
    parts = (frame.positions, frame.beams, frame.struts, frame.up, frame.shear)
    return StressedFrame(*parts, tension)


def solve_stressed(
    frame: Frame, supports: Supports, load: Load, most: int = 60
) -> tuple[FrameSolution, int]:
    """Equilibrium with the stress stiffness of its own axial forces, and the passes.

    Raises:
        NoSolution: when the frame buckles, or the passes do not converge.
    """
    solution, before = solve_frame(frame, supports, load), None
    # Rotations by 1/size move nodes by about one.
    scale = np.array([1.0] * 3 + [np.ptp(frame.positions, axis=0).max()] * 3)
    free = ~supports.held.ravel()
    for passes in range(2, most + 1):
        before = solution.displacement * scale
        loaded = stressed(frame, solution.axial)
        stiffness = loaded.stiffness.toarray()[free][:, free]
        if np.linalg.eigvalsh(stiffness)[0] < -1e-12 * np.abs(stiffness).max():
            raise NoSolution("the frame buckles under its axial forces")
        solution = solve_frame(loaded, supports, load)
        motion = solution.displacement * scale
        if np.abs(motion - before).max() <= 1e-9 * np.abs(motion).max():
            return solution, passes
    raise NoSolution(f"the stress-stiffened frame did not settle in {most} passes")
