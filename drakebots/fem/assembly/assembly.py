"""The assembled skin: energy, force, tangent, mass and weight of a mesh.

Positions x (N, 3) are those of the nodes of the space: the mesh's vertices first, then
the mid-edge nodes of P2 tets. Matrices are stored as upper values (nnz,) on
:attr:`FemModel.pattern`, with dofs 3 node + axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import bsr_array, csr_array, sparray, triu

from drakebots.core.errors import InvalidInput
from drakebots.core.units import GRAVITY_W
from drakebots.fem.assembly.elements import ElementGroup, Space, build_space, folding
from drakebots.fem.assembly.kernels import (
    add_force,
    add_gradients,
    add_tangent,
    mean_stresses,
    smallest_ratio,
    to_rotations,
)
from drakebots.fem.material import KINDS, Material
from drakebots.fem.material.materials import by_region, coefficients
from drakebots.fem.mesh import EDGES, TetMesh, check_mesh

# Masses of the tets: consistent, and lumped from these.


def mass_reference(order: int) -> np.ndarray:
    """int N_a N_b dV / V over a tet (k, k).

    With int lambda^alpha dV = 6 V alpha! / (3 + |alpha|)! of barycentric coordinates.
    """
    if order == 1:
        return (np.ones((4, 4)) + np.eye(4)) / 20
    ends = np.zeros((6, 4))
    ends[np.arange(6)[:, None], EDGES] = 1.0
    corners = 1 + 5 * np.eye(4)
    mixed = 2 * ends - 6  # an edge with its own ends, with other corners
    edges = 8 * 2.0 ** (ends @ ends.T)  # with itself, with one it meets, with another
    return np.block([[corners, mixed.T], [mixed, edges]]) / 420


def element_masses(group: ElementGroup, density: np.ndarray) -> np.ndarray:
    """Consistent masses of the tets (m, k, k) [kg]; density (m,) [kg/m^3]."""
    mass = (density * group.weights.sum(axis=1))[:, None, None]
    reference = mass_reference(group.order)
    if group.order == 1:
        return mass * reference
    fold = folding(group.nodes)
    return mass * (fold @ reference @ fold.transpose(0, 2, 1))


def lumped_masses(matrices: np.ndarray) -> np.ndarray:
    """Nodal masses of the tets (m, k): the diagonal scaled to the mass of the tet.

    The scaling of Hinton, Rock and Zienkiewicz (1976); the row sums of a P2 tet
    would be negative at its corners.
    """
    diagonal = np.einsum("maa->ma", matrices)
    total, trace = matrices.sum(axis=(1, 2)), diagonal.sum(axis=1)
    # A tet of zero density (a region without damping) has zero trace.
    return diagonal * (total / np.where(trace == 0, 1.0, trace))[:, None]


def mass_values(
    space: Space, pattern: SymmetricPattern, density: Sequence[np.ndarray]
) -> np.ndarray:
    """Lumped mass matrix as upper values (nnz,) [kg]; density of each tet, by group."""
    values, groups = np.zeros(pattern.nnz), zip(space.groups, density)
    parts = [lumped_masses(element_masses(group, rho)) for group, rho in groups]
    values[pattern.diagonal] = np.repeat(_at_nodes(space, parts), 3)
    return values


def node_masses(space: Space, density: Sequence[np.ndarray]) -> np.ndarray:
    """int rho N_a dV of each node (N,) [kg]: sums over the rows of its masses."""
    groups = zip(space.groups, density)
    parts = [element_masses(group, rho).sum(axis=2) for group, rho in groups]
    return _at_nodes(space, parts)


def _at_nodes(space, parts):
    """Sums at the nodes (N,) of the parts (m, k) of each group's tets."""
    total = np.zeros(len(space.nodes))
    for group, part in zip(space.groups, parts):
        there = group.nodes >= 0
        total += np.bincount(group.nodes[there], part[there], minlength=len(total))
    return total


# The model.


@dataclass(frozen=True)
class FemModel:
    """Elements, materials, masses and the sparsity pattern of a skin.

    Attributes:
        space: nodes and groups of tets.
        materials: material of each region, in the order of ``mesh.regions``.
        pattern: sparsity of every matrix of the model.
        blocks: positions of each group's pairs of nodes in the pattern.
        rows: number of the material of each tet, by group.
        kinds, table: codes and coefficients of the materials.
        mass: lumped mass matrix as upper values (nnz,) [kg].
        node_mass: int rho N_a dV of each node (N,) [kg].
    """

    space: Space
    materials: tuple[Material, ...]
    pattern: SymmetricPattern
    blocks: tuple[np.ndarray, ...]
    rows: tuple[np.ndarray, ...]
    kinds: np.ndarray
    table: np.ndarray
    mass: np.ndarray
    node_mass: np.ndarray

    @property
    def rest(self) -> np.ndarray:
        """Rest positions of the nodes (N, 3) [m]."""
        return self.space.nodes

    @property
    def damped(self) -> bool:
        """Whether any material has Rayleigh damping."""
        return any(m.mass_damping or m.stiffness_damping for m in self.materials)


def build_model(
    mesh: TetMesh,
    materials: Material | Mapping[int, Material],
    *,
    quadratic: Iterable[int] = (),
) -> FemModel:
    """The model of a mesh.

    Args:
        mesh: mesh with positive volumes, as check_mesh returns it.
        materials: one material, or one for each region.
        quadratic: regions of P2 tets.

    Raises:
        InvalidInput: for a mesh that check_mesh would change or refuse, or a
            region without material.
        UnknownName: for a region that does not exist.
    """
    _, report = check_mesh(mesh)
    if report.flipped or report.dropped_vertices:
        raise InvalidInput(
            f"mesh: {report.notes[0]} by check_mesh; use the mesh check_mesh returns"
        )
    chosen = by_region(materials, mesh.regions)
    space = build_space(mesh, quadratic)
    pattern, blocks = node_pattern(len(space.nodes), [g.nodes for g in space.groups])
    of_tet = np.searchsorted(mesh.regions, mesh.region)
    rows = tuple(of_tet[g.tets].astype(np.int32) for g in space.groups)
    rho = np.array([m.density for m in chosen])
    density = [rho[row] for row in rows]
    return FemModel(
        space=space,
        materials=chosen,
        pattern=pattern,
        blocks=tuple(blocks),
        rows=rows,
        kinds=np.array([KINDS[m.kind] for m in chosen], dtype=np.int64),
        table=np.stack([coefficients(m) for m in chosen]),
        mass=mass_values(space, pattern, density),
        node_mass=node_masses(space, density),
    )


def _points(model: FemModel):
    """The quadrature points of each group, as :func:`add_force` takes them."""
    for group, row in zip(model.space.groups, model.rows):
        of_group = group.nodes, group.gradients, group.weights, row
        yield (*of_group, model.kinds, model.table)


def as_positions(model: FemModel, x: np.ndarray) -> np.ndarray:
    """x as a contiguous (N, 3) array; InvalidInput for another shape."""
    x = np.ascontiguousarray(x, dtype=float)
    if x.shape != model.rest.shape:
        raise InvalidInput(
            f"positions: shape {x.shape}, needs {model.rest.shape}, one row per node"
        )
    return x


def as_forces(model: FemModel, forces: np.ndarray) -> np.ndarray:
    """Forces on the nodes (N, 3) [N], checked.

    Raises:
        InvalidInput: for another shape, or a force that is not finite.
    """
    forces = as_positions(model, forces)
    finite = np.isfinite(forces).all(axis=1)
    if not finite.all():
        raise InvalidInput(f"external force on node {np.argmin(finite)} is not finite")
    return forces


def elastic_energy(model: FemModel, x: np.ndarray) -> float:
    """int Psi(F) dV [J]; infinite where a material forbids an inverted tet."""
    return _energy_and_force(model, x)[0]


def elastic_force(model: FemModel, x: np.ndarray) -> np.ndarray:
    """-d energy/dx (N, 3) [N]; NaN at tets whose energy is infinite."""
    return _energy_and_force(model, x)[1]


def _energy_and_force(model: FemModel, x: np.ndarray) -> tuple[float, np.ndarray]:
    x = as_positions(model, x)
    force = np.zeros_like(x)
    return sum(add_force(x, points, force) for points in _points(model)), force


def force_and_tangent(
    model: FemModel,
    x: np.ndarray,
    *,
    project: bool = False,
    scale: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Elastic force (N, 3) [N] and tangent d2 energy/dx2 (nnz,) [N/m].

    Args:
        x: positions (N, 3) [m].
        project: whether to remove negative eigenvalues of dP/dF at each quadrature
            point, which makes the tangent positive semidefinite.
        scale: factor of the tangent (not of the force) of each material.
    """
    x = as_positions(model, x)
    force, values = np.zeros_like(x), np.zeros(model.pattern.nnz)
    scale = np.ones(len(model.kinds)) if scale is None else np.asarray(scale, float)
    indptr = model.pattern.indptr
    for points, block in zip(_points(model), model.blocks):
        add_tangent(x, points, scale, project, block, indptr, force, values)
    return force, values


def mass_damping(model: FemModel) -> np.ndarray:
    """Mass part alpha M of the Rayleigh damping, alpha by region (nnz,) [N s/m]."""
    # alpha M is the mass matrix of a skin whose density is alpha rho.
    alpha = np.array([m.mass_damping for m in model.materials])
    if not alpha.any():
        return np.zeros_like(model.mass)
    rho = np.array([m.density for m in model.materials])
    density = [alpha[row] * rho[row] for row in model.rows]
    return mass_values(model.space, model.pattern, density)


def stiffness_shares(model: FemModel) -> np.ndarray:
    """Coefficient beta of the Rayleigh damping of each material (r,) [s]."""
    return np.array([m.stiffness_damping for m in model.materials])


def damping_values(
    model: FemModel, x: np.ndarray, *, project: bool = False
) -> np.ndarray:
    """Rayleigh damping alpha M + beta K(x), alpha and beta by region (nnz,) [N s/m]."""
    values, beta = mass_damping(model), stiffness_shares(model)
    if beta.any():
        values += force_and_tangent(model, x, project=project, scale=beta)[1]
    return values


def gravity_force(model: FemModel, gravity: Sequence[float] = GRAVITY_W) -> np.ndarray:
    """Weight of the nodes (N, 3) [N], for a gravity (3,) [m/s^2]."""
    return model.node_mass[:, None] * np.asarray(gravity, float)


def loads(
    model: FemModel, gravity: Sequence[float], forces: np.ndarray | None = None
) -> np.ndarray:
    """Weight of the nodes and other forces on them (N, 3) [N].

    Raises:
        InvalidInput: as :func:`as_forces`.
    """
    weight = gravity_force(model, gravity)
    return weight if forces is None else weight + as_forces(model, forces)


def node_rotations(model: FemModel, x: np.ndarray) -> np.ndarray:
    """Rotation of the tets about each node from rest (N, 3, 3), to about 1e-4."""
    x = as_positions(model, x)
    turn = np.zeros((len(x), 3, 3))
    for points in _points(model):
        add_gradients(x, points, turn)
    to_rotations(turn)
    return turn


def worst_tet(model: FemModel, x: np.ndarray) -> tuple[int, float]:
    """The tet of the mesh with the smallest det F, and that det F."""
    x = as_positions(model, x)
    found = []
    for group in model.space.groups:
        ratio, row = smallest_ratio(x, group.nodes, group.gradients)
        found.append((not np.isnan(ratio), ratio, int(group.tets[row])))
    _, ratio, tet = min(found)
    return tet, float(ratio)


def von_mises(model: FemModel, x: np.ndarray) -> np.ndarray:
    """Von Mises stress of each tet (m,) [Pa], the mean over its quadrature points."""
    x = as_positions(model, x)
    out = np.empty(len(model.space.mesh.tets))
    for group, row in zip(model.space.groups, model.rows):
        own = np.empty(len(group.tets))
        parts = group.nodes, group.gradients, row, model.kinds, model.table
        mean_stresses(x, *parts, own)
        out[group.tets] = own
    return out


# --- the pattern -----------------------------------------------------------
#
# Only the upper triangle is stored, in CSR with sorted columns: the format of
# PARDISO, and half the memory. The three rows of a node have the same blocks, so one
# number per pair of nodes, the index of the block in its row, locates nine entries.


@dataclass(frozen=True)
class SymmetricPattern:
    """Upper triangle of a symmetric matrix, CSR with sorted columns.

    Attributes:
        indptr: starts of the rows (n + 1,) int32.
        indices: columns (nnz,) int32; the diagonal comes first in each row.
    """

    indptr: np.ndarray
    indices: np.ndarray

    @classmethod
    def of(cls, matrix: sparray) -> tuple[SymmetricPattern, np.ndarray]:
        """The pattern of a symmetric matrix, and its upper values (nnz,)."""
        upper = triu(matrix, format="csr")
        upper.sort_indices()
        indptr, indices = (x.astype(np.int32) for x in (upper.indptr, upper.indices))
        return cls(indptr, indices), upper.data

    @property
    def size(self) -> int:
        """Number of rows n."""
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        """Number of entries of the upper triangle."""
        return len(self.indices)

    @property
    def diagonal(self) -> np.ndarray:
        """Positions of the diagonal among the values (n,)."""
        return self.indptr[:-1]

    def upper(self, values: np.ndarray) -> csr_array:
        """The upper triangle as a SciPy matrix; shares the values."""
        return csr_array((values, self.indices, self.indptr), shape=(self.size,) * 2)

    def full(self, values: np.ndarray) -> csr_array:
        """The whole symmetric matrix as a SciPy matrix."""
        upper = self.upper(values)
        lower = upper.T.tocsr()
        lower.setdiag(0.0)
        return (upper + lower).tocsr()

    def multiply(self, values: np.ndarray, x: np.ndarray) -> np.ndarray:
        """A x (n,) of the symmetric matrix with these upper values."""
        upper = self.upper(values)
        return upper @ x + upper.T @ x - values[self.diagonal] * x


def node_pattern(
    nodes: int, groups: list[np.ndarray]
) -> tuple[SymmetricPattern, list[np.ndarray]]:
    """The pattern of elements that couple all their nodes.

    Args:
        nodes: number of nodes.
        groups: nodes of each element (m, k), -1 for none.

    Returns:
        The pattern, and for each group the blocks (m, k (k + 1)/2) int32: the index
        in the lower node's row of the block of each pair (a, b >= a), or -1.
    """
    keys, of_pair = [], []
    for ids in groups:
        a, b = np.triu_indices(ids.shape[1])
        low = np.minimum(ids[:, a], ids[:, b]).astype(np.int64)
        high = np.maximum(ids[:, a], ids[:, b])
        keys.append(np.where(low < 0, -1, low * nodes + high))
    alone = np.arange(nodes, dtype=np.int64) * (nodes + 1)
    unique = np.unique(np.concatenate([alone, *(k.ravel() for k in keys)]))
    unique = unique[unique >= 0]
    row, column = unique // nodes, unique % nodes
    start = np.searchsorted(row, np.arange(nodes + 1))
    for k in keys:
        place = np.searchsorted(unique, k.ravel()).reshape(k.shape)
        block = place - start[np.maximum(k, 0) // nodes]
        of_pair.append(np.where(k < 0, -1, block).astype(np.int32))
    # Blocks on the diagonal lose their lower triangle.
    blocks = bsr_array((np.ones((len(column), 3, 3)), column, start))
    return SymmetricPattern.of(blocks.tocsr())[0], of_pair
