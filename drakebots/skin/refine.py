"""A frame solved with factors of single precision, refined to double.

A solver in float32 gives an approximate small system R~ of
:mod:`drakebots.skin.coupled` and approximate sweeps. Their answer is corrected by what
it leaves of the whole frame's equations, in double: with dq, du so far, z = [dq, u_p]
and du_c = J dq + gap,

    rho = b_d - A_d du,  (state, g) = reduce(rho)
    r = R~ z + [b_r - A_r dq + J' g_c, g_p] + load
    z+ = the minimum of z' R~ z/2 - r' z + sum psi(P dq)
    du+ = du + expand(state, T (z+ - z))

load holds torques and contact forces; servos that saturate and patches psi are solved
anew in every pass, on the small system. With exact factors one pass is the frame. With
those in float32 an error shrinks by 1e-3 to 1e-5 a pass, 1e-2 in stiff skins; the last
change times the last shrinking is what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.errors import NoSolution
from drakebots.skin.contact import PatchLaw
from drakebots.skin.coupled import FrameSolution, ReducedSystem
from drakebots.skin.driven import Drive

TOLERANCE = 1e-10
"""Of du against its largest entry, of dq against the largest of both."""

PASSES = 6
"""At most; a frame that needs more is taken in double precision."""


@dataclass(frozen=True)
class Refined:
    """A refined frame.

    Attributes:
        solution: of the whole frame; the glue's forces from its own rows,
            lambda = (A_d du - b_d)_c.
        ground: the patches with their friction, None without.
        passes: taken.
        left: estimated error of dq and du, relative.
    """

    solution: FrameSolution
    ground: PatchLaw | None
    passes: int
    left: float


def refined(
    system: ReducedSystem, drive: Drive, forces: np.ndarray | None = None
) -> Refined:
    """Solves a frame by passes of an approximate system.

    Args:
        system: with a solver of either precision.
        drive: of the frame.
        forces: at the contacts (p, 3) [N].

    Raises:
        NoSolution: when the passes do not reach the tolerance, or the small system
            has no solution.
    """
    frame, solver, nv = system.frame, system.solver, system.nv
    skeleton, g = frame.skeleton, len(frame.glue_dofs)
    r = drive.right_side(system, forces)
    load = r - system.right_side()
    z, _ = drive.solve(system, r)
    du = system.displacement(system.kept(z))
    ground, change, number = None, 1.0, 1
    for number in range(2, PASSES + 1):
        state, small = solver.reduce(_residual(frame, du))
        r = system.matrix @ z + load
        r[:nv] += skeleton.b - skeleton.A @ z[:nv] + skeleton.J.T @ small[:g]
        r[nv:] += small[g:]
        # Friction is searched for twice; later passes would not move it.
        after, ground = drive.solve(system, r, z, ground)
        step = after - z
        more = solver.expand(state, system.kept(step, gap=0.0))
        z, du, before = after, du + more, change
        size = np.abs(du).max()
        largest = np.abs(z[:nv]).max(), size
        change = max(_share(step[:nv], max(largest)), _share(more, size))
        if not change <= before:  # nor where it is not finite
            break
        left = change * change / before
        if left <= TOLERANCE:
            pull = -_residual(frame, du)[frame.glue_dofs]
            found = FrameSolution(z[:nv], du.reshape(-1, 3), pull.reshape(-1, 3))
            return Refined(found, ground, number, left)
    raise NoSolution(
        f"coupled frame: not refined to {TOLERANCE:g} in {number} passes, the last "
        f"changed it by {change:.1e}"
    )


def _residual(frame, du):
    """b_d - A_d du (3 N,) [N]."""
    return frame.b_d - frame.pattern.multiply(frame.A_d, du)


def _share(part, whole):
    return np.abs(part).max(initial=0.0) / max(whole, 1e-300)
