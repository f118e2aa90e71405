"""A frame as affine maps of torques and patch forces, eq. (11).

With w = [tau, f], f (P, 3) forces on the feet's links,

    A dq = b + B tau + J_c' f      (skin condensed, see skin/coupled.py)
    dq = dq_0 + Q w

and the ground is soft: a patch under force f stands at an anchor shifted by c f,

    y = p + J_c dq + c f - anchor = y_0 + Y w

For a patch that holds y = 0, one that slides moves its anchor by the tangential y,
one in the air has f = 0 and y_n > 0. c > 0 makes forces of five patches on one rigid
link unique and leaves nothing to drift. Contacts at vertices of the skin (kept by the
solver) follow those of the links in f.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.robots.quads.feet import FeetFrame
from drakebots.skin.coupled import FrameSolution, ReducedSystem

COMPLIANCE = 1e-6
"""Of a patch [m/N]: 20 patches under 40 N sink by 2 um."""


@dataclass(frozen=True)
class FrameMaps:
    """dq and y of a frame.

    Attributes:
        system: where they come from; its solver must stay as it is until
            `solution` is called.
        torques: m.
        z0, Z: the small system's unknowns [dq, skin contacts].
        p: contact points, links' first, then the skin's (P, 3) [m].
        y0, Y: (3 P,), (3 P, m + 3 P) [m].
        compliance: c [m/N].
    """

    system: ReducedSystem
    torques: int
    z0: np.ndarray
    Z: np.ndarray
    p: np.ndarray
    y0: np.ndarray
    Y: np.ndarray
    compliance: float

    @property
    def dq0(self) -> np.ndarray:
        """(nv,) [m, rad]."""
        return self.z0[: self.system.nv]

    @property
    def Q(self) -> np.ndarray:
        """(nv, m + 3 P)."""
        return self.Z[: self.system.nv]

    @property
    def contacts(self) -> int:
        """P."""
        return len(self.p)

    def solution(self, w: np.ndarray) -> FrameSolution:
        """The whole frame for w: one backward sweep over the skin."""
        u_k = self.system.kept(self.z0 + self.Z @ w)
        nv = self.system.nv
        return FrameSolution(
            (self.z0 + self.Z @ w)[:nv],
            self.system.displacement(u_k).reshape(-1, 3),
            self.system.glue_forces(u_k).reshape(-1, 3),
        )


def frame_maps(
    system: ReducedSystem,
    feet: FeetFrame,
    anchors: np.ndarray,
    *,
    skin_contacts: np.ndarray | None = None,
    compliance: float = COMPLIANCE,
) -> FrameMaps:
    """The maps of one factored frame: one solve of the small system.

    Args:
        system: factored.
        feet: at the same q.
        anchors: on the ground, of every contact (P, 3) [m].
        skin_contacts: where the solver's contact vertices are (s, 3) [m].
        compliance: c > 0 [m/N].

    Raises:
        InvalidInput: for a compliance not > 0, or shapes that do not fit.
    """
    if not (np.isfinite(compliance) and compliance > 0):
        raise InvalidInput(f"contact compliance = {compliance} m/N must be > 0")
    p = feet.p
    if system.contacts:
        skin = np.zeros((0, 3)) if skin_contacts is None else skin_contacts
        if np.shape(skin) != (system.contacts // 3, 3):
            raise InvalidInput(
                f"skin contacts: positions {np.shape(skin)}, needs "
                f"({system.contacts // 3}, 3)"
            )
        p = np.concatenate([p, skin])
    anchors = np.asarray(anchors, float)
    if anchors.shape != p.shape:
        raise InvalidInput(f"anchors: shape {anchors.shape}, needs {p.shape}")
    B, J = system.frame.skeleton.B, feet.J
    (nv, m), c, k = B.shape, system.contacts, len(J)
    W = np.zeros((nv + c, m + k + c))
    W[:nv, :m], W[:nv, m : m + k], W[nv:, m + k :] = B, J.T, np.eye(c)
    z0, Z = system.back(system.right_side()), system.back(W)
    y0 = (p - anchors).ravel() + np.concatenate([J @ z0[:nv], z0[nv:]])
    Y = np.concatenate([J @ Z[:nv], Z[nv:]])
    Y[:, m:] += compliance * np.eye(k + c)
    return FrameMaps(system, m, z0, Z, p, y0, Y, compliance)
