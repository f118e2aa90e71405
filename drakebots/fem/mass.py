"""Mass of the tets: consistent and lumped, and the weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from drakebots.fem.assembly_kernels import scatter_scalar
from drakebots.fem.elements import ElementGroup, Space, folding
from drakebots.fem.mesh import EDGES
from drakebots.fem.pattern import SymmetricPattern


def mass_reference(order: int) -> np.ndarray:
    """int N_a N_b dV / V over a tet (k, k), by exact barycentric integrals.

    int lambda^alpha dV = 6 V alpha! / (3 + |alpha|)!.
    """
    if order == 1:
        return (np.ones((4, 4)) + np.eye(4)) / 20

    def integral(powers):
        factorial = [1, 1, 2, 6, 24, 120, 720, 5040]
        top = np.prod([factorial[p] for p in powers])
        return 6.0 * top / factorial[3 + sum(powers)]

    # Each function as {exponents: coefficient}.
    unit = np.eye(4, dtype=int)
    shapes = [{tuple(2 * unit[a]): 2.0, tuple(unit[a]): -1.0} for a in range(4)]
    shapes += [{tuple(unit[a] + unit[b]): 4.0} for a, b in EDGES]
    return np.array(
        [
            [
                sum(
                    u * v * integral(np.add(p, q))
                    for p, u in one.items()
                    for q, v in two.items()
                )
                for two in shapes
            ]
            for one in shapes
        ]
    )


def element_masses(group: ElementGroup, density: np.ndarray) -> np.ndarray:
    """Consistent mass of each tet (m, k, k) [kg]; density (m,) [kg/m^3]."""
    mass = (density * group.weights.sum(axis=1))[:, None, None]
    reference = mass_reference(group.order)
    if group.order == 1:
        return mass * reference
    fold = folding(group.nodes)
    return mass * (fold @ reference @ fold.transpose(0, 2, 1))


def lumped_masses(matrices: np.ndarray) -> np.ndarray:
    """Nodal masses (m, k): the diagonal, scaled to keep the tet's mass.

    The scaling of Hinton, Rock and Zienkiewicz (1976); row sums of a P2 tet
    would be negative at its corners.
    """
    diagonal = np.einsum("maa->ma", matrices)
    total, trace = matrices.sum(axis=(1, 2)), diagonal.sum(axis=1)
    # A tet without density (a region without damping) has neither.
    return diagonal * (total / np.where(trace == 0, 1.0, trace))[:, None]


def mass_values(
    space: Space,
    pattern: SymmetricPattern,
    blocks: Sequence[np.ndarray],
    density: Sequence[np.ndarray],
    lumped: bool,
) -> np.ndarray:
    """The mass matrix as upper values (nnz,) [kg]; density a tet, by group."""
    values = np.zeros(pattern.nnz)
    for group, block, rho in zip(space.groups, blocks, density):
        matrices = element_masses(group, rho)
        if lumped:
            node = _gather(group, lumped_masses(matrices), len(space.nodes))
            values[pattern.diagonal] += np.repeat(node, 3)
        else:
            scatter_scalar(group.nodes, matrices, block, pattern.indptr, values)
    return values


def node_masses(space: Space, density: Sequence[np.ndarray]) -> np.ndarray:
    """int rho N_a dV of each node (N,) [kg]: times g, its weight."""
    total = np.zeros(len(space.nodes))
    for group, rho in zip(space.groups, density):
        mass = rho * group.weights.sum(axis=1)
        share = nodal_shares(group.order, group.nodes) * mass[:, None]
        total += _gather(group, share, len(total))
    return total


def _gather(group, parts, nodes):
    there = group.nodes >= 0
    return np.bincount(group.nodes[there], parts[there], minlength=nodes)


def nodal_shares(order: int, nodes: np.ndarray) -> np.ndarray:
    """int N_a dV / V of each tet (m, k): what a force a volume gives a node."""
    rows = mass_reference(order).sum(axis=1)
    if order == 1:
        return np.tile(rows, (len(nodes), 1))
    return folding(nodes) @ rows
