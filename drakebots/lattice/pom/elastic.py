"""Elastic planes of motion: stiffness and actuator forces of a lattice's mechanisms.

The nodes move as x = Phi a, with Phi the mechanisms of the lattice (planes of motion
first) and a their amplitudes. The beams then bend and twist without elongation, and
the nodes rotate so that the energy is least:

    K_red = Phi^T (K_tt - K_tr K_rr^-1 K_rt) Phi

with K the frame's stiffness, split into translations t and rotations r. Actuators of
given extension e = G a push with the forces p, the multipliers of

    minimise  a^T K_red a / 2   subject to  G a = e.

A Galerkin reduction of ours, not in the paper. It neglects the beams' axial compliance
and so is too stiff where planes lose displacement with distance: by 0.2 % in a 2x2x2
block of slender struts, 3 % at 4x4x4, 23 % at 8x2x8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from scipy.sparse.linalg import splu

from drakebots.core.errors import InvalidInput
from drakebots.lattice.frame import lattice_frame
from drakebots.lattice.pom.pom import Control, actuator_nodes, dependent, extension_rows
from drakebots.lattice.pom.tables import table
from drakebots.lattice.shape import (
    Lattice,
    Mechanisms,
    Strut,
    find_mechanisms,
    rigid_motions,
)


@dataclass(frozen=True, eq=False)
class ElasticMotion:
    """The equilibria under given controls.

    Attributes:
        amplitude: amplitudes of the mechanisms (T, m) [m].
        displacement: displacements of the nodes (T, N, 3) [m].
        force: force with which each actuator pushes its nodes apart (T, M) [N].
        energy: elastic energy (T,) [J].
    """

    amplitude: np.ndarray
    displacement: np.ndarray
    force: np.ndarray
    energy: np.ndarray


class ElasticPOM:
    """A lattice reduced to the stiffness of its mechanisms.

    Args:
        lattice: the voxels.
        strut: section and material of all beams.
        mechanisms: the lattice's mechanisms, when already at hand.
        mounts: actuators whose mounts keep their nodes from rotating. Mounts on
            other planes than the driven one stiffen the lattice: by 17 % in the
            paper's robot. The actuators' forces themselves need no mounts.

    Attributes:
        mechanisms: the basis, m of them.
        basis: Phi (3 N, m).
        stiffness: K_red (m, m) [N/m], positive definite.

    Raises:
        InvalidInput: when the lattice is too large for its mechanisms, or is one
            voxel and has none.
    """

    def __init__(
        self,
        lattice: Lattice,
        strut: Strut = Strut(),
        mechanisms: Mechanisms | None = None,
        mounts: Sequence[Control] = (),
    ):
        self.lattice, self.strut = lattice, strut
        self.mechanisms = find_mechanisms(lattice) if mechanisms is None else mechanisms
        if not self.mechanisms.all:
            raise InvalidInput("a lone voxel is rigid; take a lattice of two or more")
        self.basis = self.mechanisms.basis
        self.stiffness = self._condensed(mounts)
        self._factor = sla.cho_factor(self.stiffness)

    def _condensed(self, mounts: Sequence[Control]) -> np.ndarray:
        K = lattice_frame(self.lattice, self.strut).stiffness
        moving = np.arange(K.shape[0]) % 6 < 3
        turning = ~moving.reshape(-1, 6)
        turning[actuator_nodes(self.lattice, mounts).ravel()] = False
        turning = turning.ravel()
        # Nodes that cannot rotate fix the orientation in the world, so the lattice as
        # a whole is left free to rotate.
        body = rigid_motions(self.lattice)[:, 3:] if len(mounts) else self.basis[:, :0]
        fields = np.hstack([self.basis, body])
        rr = K[turning][:, turning].tocsc()
        bent = K[turning][:, moving] @ fields
        whole = fields.T @ (K[moving][:, moving] @ fields)
        whole -= bent.T @ splu(rr).solve(bent)
        m = self.basis.shape[1]
        cross = whole[:m, m:]
        reduced = whole[:m, :m] - cross @ np.linalg.solve(whole[m:, m:], cross.T)
        return (reduced + reduced.T) / 2

    def amplitudes(self, force) -> np.ndarray:
        """Amplitudes of the mechanisms (..., m) [m] under generalized forces [N]."""
        force = np.asarray(force, float)
        flat = force.reshape(-1, len(self.stiffness))
        return sla.cho_solve(self._factor, flat.T).T.reshape(force.shape)

    def coupling(self, index: int) -> np.ndarray:
        """Amplitudes (m,) of all mechanisms when one of them is driven by 1."""
        unit = self.amplitudes(np.eye(len(self.stiffness))[index])
        return unit / unit[index]

    def move(self, actuators: Sequence[Control], u) -> ElasticMotion:
        """Equilibrium for given controls; each actuator's length changes by -2 u.

        Args:
            actuators: M of them.
            u: displacements of their lower nodes (T, M) or (M,) [m].

        Raises:
            InvalidInput: when actuators move nothing or depend on each other, or
                u has another shape or is not finite.
        """
        u = table(u, len(actuators), "u", "actuator")
        G = extension_rows(self.lattice, actuators, self.basis)
        soft = self.amplitudes(G).T  # (m, M), K^-1 G^T
        compliance = G @ soft
        for text in dependent(actuators, G):
            raise InvalidInput(text)
        force = np.linalg.solve(compliance, -2 * u.T).T
        a = force @ soft.T
        moved = (a @ self.basis.T).reshape(len(u), -1, 3)
        energy = (force * -2 * u).sum(axis=1) / 2
        return ElasticMotion(a, moved, force, energy)
