"""The lattice as bars and ball joints: motions that stretch no bar.

Row b of the rigidity matrix R (12 V, 3 N), of bar (i, j) of unit direction d:

    (R u)_b = d . (u_j - u_i)          elongation of the bar

Null vectors of R are rigid motions and mechanisms; null vectors of R^T are states
of self-stress, of which Maxwell's rule counts s = bars - 3 N + zero modes. Planes
of motion are mechanisms. Source: the standard theory of pin-jointed frames; its use
for planes of motion is ours.

The null space comes from the sparse A = R^T R. The pivots of A - e I count the
eigenvalues below e (Sylvester), and that many vectors come from subspace iteration
with (A + e I)^-1. No dense matrix of the lattice's size is factored.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csc_array, eye_array
from scipy.sparse.linalg import splu

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.lattice.shape.lattice import Lattice

MAX_VOXELS = 1728
"""Largest number of voxels whose null space is computed: 12 x 12 x 12."""

# Eigenvalues of R^T R: zero ones are computed below 1e-14; the smallest others decay
# as 1/size^4 in long lattices, 1e-7 at 60 x 2 x 2.
_ZERO = 1e-11


def rigidity_matrix(lattice: Lattice) -> csc_array:
    """R (12 V, 3 N), without unit."""
    beams = lattice.beams
    span = (lattice.nodes[beams[:, 1]] - lattice.nodes[beams[:, 0]]) / np.sqrt(2.0)
    bar = np.repeat(np.arange(len(beams)), 6)
    node = np.repeat(beams, 3, axis=1)
    columns = (3 * node + np.tile(np.arange(3), 2)).ravel()
    values = np.concatenate([-span, span], axis=1).ravel()
    shape = (len(beams), 3 * len(lattice.nodes))
    return csc_array(coo_array((values, (bar, columns)), shape=shape))


def null_space(lattice: Lattice) -> np.ndarray:
    """Orthonormal basis of the null space of R (3 N, k).

    Raises:
        InvalidInput: for more than MAX_VOXELS voxels.
        NoSolution: when soft and free motions cannot be distinguished (very long
            lattices).
    """
    if len(lattice.voxels) > MAX_VOXELS:
        raise InvalidInput(
            f"mechanisms of {len(lattice.voxels)} voxels: at most {MAX_VOXELS}; take "
            "a smaller lattice, or the planes of motion, which have no limit"
        )
    R = rigidity_matrix(lattice)
    A = csc_array(R.T @ R)
    unit = eye_array(A.shape[0], format="csc")
    count = _eigenvalues_below(A, unit, _ZERO)
    # The seed only picks the basis; the space is the same.
    basis = np.random.default_rng(0).normal(size=(A.shape[0], count))
    factor = _factor(csc_array(A + _ZERO * unit))
    stretch = np.inf
    for _ in range(20):
        basis, _ = np.linalg.qr(factor.solve(basis))
        before, stretch = stretch, float(np.abs(R @ basis).max(initial=0.0))
        if stretch < 1e-14 or (stretch < 1e-11 and stretch > before / 2):
            return basis
    raise NoSolution(
        "the mechanisms of this lattice cannot be distinguished from soft motions: "
        f"bars stretch by {stretch:.1g}; take a smaller lattice"
    )


def self_stresses(lattice: Lattice, zero_modes: int) -> int:
    """Number of independent states of self-stress, by Maxwell's rule."""
    return len(lattice.beams) - 3 * len(lattice.nodes) + zero_modes


def rigid_motions(lattice: Lattice, piece: np.ndarray | None = None) -> np.ndarray:
    """Translations and rotations about the origin (3 N, 6), in half pitches.

    Args:
        lattice: the voxels.
        piece: whether each node moves (N,); by default all do.
    """
    nodes = lattice.nodes.astype(float)
    fields = np.zeros((len(nodes), 3, 6))
    for k, e in enumerate(np.eye(3)):
        fields[:, :, k] = e
        fields[:, :, 3 + k] = np.cross(e, nodes)
    if piece is not None:
        fields[~piece] = 0.0
    return fields.reshape(-1, 6)


def rotations(lattice: Lattice, fields: np.ndarray) -> np.ndarray:
    """Rotations of the voxels (3 V, k) in fields (3 N, k) that stretch no bar.

    A voxel's twelve bars make it rigid, so its rotation about axis c = a x b is half
    the difference of u_b between its nodes +e_a and -e_a, per half pitch.
    """
    u = fields.reshape(len(lattice.nodes), 3, -1)
    own = lattice.voxel_nodes
    w = np.empty((len(own), 3, u.shape[2]))
    for c in range(3):
        a, b = (c + 1) % 3, (c + 2) % 3
        w[:, c] = (u[own[:, 3 + a], b] - u[own[:, a], b]) / 2
    return w.reshape(-1, u.shape[2])


def _eigenvalues_below(A: csc_array, unit, level: float) -> int:
    return int((_factor(csc_array(A - level * unit)).U.diagonal() < 0).sum())


def _factor(A: csc_array):
    # Without row exchanges the pivots are those of L D L^T.
    return splu(
        A,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
