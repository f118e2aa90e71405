"""A skin ready to compute: energy, force, tangent, mass and weight.

Positions x (N, 3) are those of the nodes of the space: the mesh's vertices
first, then the mid-edge nodes of P2 tets. Matrices are upper values on
:attr:`FemModel.pattern`, over dofs 3 node + axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.fem.assembly.elements import ElementGroup, Space, build_space, folding
from drakebots.fem.assembly.kernels import (
    add_energy,
    add_force,
    add_tangent,
    deformation,
    scatter_scalar,
    smallest_ratio,
    stresses,
)
from drakebots.fem.assembly.pattern import SymmetricPattern, node_pattern
from drakebots.fem.material import KINDS, Material, by_region, coefficients
from drakebots.fem.mesh import EDGES, TetMesh, check_mesh

# Mass of the tets: consistent and lumped, and the weight.


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


@dataclass(frozen=True)
class FemModel:
    """Elements, materials, masses and the fixed pattern.

    Attributes:
        space: nodes and groups of tets.
        materials: one a region of the mesh, in the order of ``mesh.regions``.
        pattern: of every matrix of the model.
        blocks: places of each group's pairs of nodes.
        rows: the material of each tet, by group.
        kinds, table: codes and coefficients of the materials.
        mass: mass matrix as upper values (nnz,) [kg].
        node_mass: what each node weighs, int rho N_a dV (N,) [kg].
        lumped: whether `mass` is diagonal.
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
    lumped: bool

    @property
    def rest(self) -> np.ndarray:
        """Rest positions of the nodes (N, 3) [m]."""
        return self.space.nodes

    @property
    def total_mass(self) -> float:
        """Of the whole skin [kg]."""
        return float(self.node_mass.sum())

    @property
    def damped(self) -> bool:
        """Whether a material has Rayleigh damping."""
        return any(m.mass_damping or m.stiffness_damping for m in self.materials)


def build_model(
    mesh: TetMesh,
    materials: Material | Mapping[int, Material],
    *,
    quadratic: Iterable[int] = (),
    mass: str = "lumped",
) -> FemModel:
    """Prepares a mesh for computing.

    Args:
        mesh: its volumes must be positive, as check_mesh leaves them.
        materials: one, or one a region.
        quadratic: regions of P2 tets.
        mass: "lumped" (diagonal) or "consistent".

    Raises:
        InvalidInput: for a mesh that check_mesh would change or refuse, or a
            region without material.
        UnknownName: for a region or a kind of mass that does not exist.
    """
    if mass not in ("lumped", "consistent"):
        raise UnknownName("kind of mass", mass, ("lumped", "consistent"))
    _, report = check_mesh(mesh)
    if report.flipped or report.dropped_vertices:
        raise InvalidInput(
            f"mesh: {report.notes[0]} by the check; use the mesh check_mesh returns"
        )
    chosen = by_region(materials, mesh.regions)
    space = build_space(mesh, quadratic)
    pattern, blocks = node_pattern(len(space.nodes), [g.nodes for g in space.groups])
    of_tet = np.searchsorted(mesh.regions, mesh.region)
    rows = tuple(of_tet[g.tets].astype(np.int32) for g in space.groups)
    rho = np.array([m.density for m in chosen])
    density = [rho[row] for row in rows]
    lumped = mass == "lumped"
    return FemModel(
        space=space,
        materials=chosen,
        pattern=pattern,
        blocks=tuple(blocks),
        rows=rows,
        kinds=np.array([KINDS[m.kind] for m in chosen], dtype=np.int64),
        table=np.stack([coefficients(m) for m in chosen]),
        mass=mass_values(space, pattern, blocks, density, lumped),
        node_mass=node_masses(space, density),
        lumped=lumped,
    )


def _groups(model: FemModel):
    for group, row, block in zip(model.space.groups, model.rows, model.blocks):
        yield group, row, block, (group.nodes, group.gradients, group.weights, row)


def as_positions(model: FemModel, x: np.ndarray) -> np.ndarray:
    """x as a contiguous (N, 3) array; InvalidInput when it is of another shape."""
    x = np.ascontiguousarray(x, dtype=float)
    if x.shape != model.rest.shape:
        raise InvalidInput(
            f"positions: shape {x.shape}, needs {model.rest.shape}, one row a node"
        )
    return x


def elastic_energy(model: FemModel, x: np.ndarray) -> float:
    """int Psi(F) dV [J]; infinite when a tet is turned over and may not be."""
    x = as_positions(model, x)
    return sum(
        add_energy(x, *data, model.kinds, model.table)
        for _, _, _, data in _groups(model)
    )


def elastic_force(model: FemModel, x: np.ndarray) -> np.ndarray:
    """-d energy/dx (N, 3) [N]; NaN at tets whose energy is infinite."""
    x = as_positions(model, x)
    force = np.zeros_like(x)
    for _, _, _, data in _groups(model):
        add_force(x, *data, model.kinds, model.table, force)
    return force


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
        project: drop negative eigenvalues of dP/dF at each quadrature point, so
            that the tangent is positive semidefinite.
        scale: factor of the tangent (not of the force) of each material.
    """
    x = as_positions(model, x)
    force, values = np.zeros_like(x), np.zeros(model.pattern.nnz)
    scale = np.ones(len(model.kinds)) if scale is None else np.asarray(scale, float)
    for _, _, block, data in _groups(model):
        add_tangent(
            x,
            *data,
            model.kinds,
            model.table,
            scale,
            project,
            block,
            model.pattern.indptr,
            force,
            values,
        )
    return force, values


def mass_damping(model: FemModel) -> np.ndarray:
    """Rayleigh's alpha M, alpha of each region (nnz,) [N s/m]."""
    # alpha M is the mass matrix of a skin whose density is alpha rho.
    alpha = np.array([m.mass_damping for m in model.materials])
    density = [alpha[row] * rho for row, rho in zip(model.rows, _density(model))]
    return mass_values(model.space, model.pattern, model.blocks, density, model.lumped)


def stiffness_shares(model: FemModel) -> np.ndarray:
    """Rayleigh's beta of each material (r,) [s]."""
    return np.array([m.stiffness_damping for m in model.materials])


def damping_values(
    model: FemModel, x: np.ndarray, *, project: bool = False
) -> np.ndarray:
    """Rayleigh damping alpha M + beta K(x), by region (nnz,) [N s/m]."""
    values, beta = mass_damping(model), stiffness_shares(model)
    if beta.any():
        values += force_and_tangent(model, x, project=project, scale=beta)[1]
    return values


def _density(model):
    rho = np.array([m.density for m in model.materials])
    return [rho[row] for row in model.rows]


def gravity_force(model: FemModel, gravity=(0.0, 0.0, -9.81)) -> np.ndarray:
    """Weight on the nodes (N, 3) [N]."""
    return model.node_mass[:, None] * np.asarray(gravity, float)


def deformation_gradients(model: FemModel, x: np.ndarray) -> list[np.ndarray]:
    """F of each group's quadrature points (m, q, 3, 3)."""
    x = as_positions(model, x)
    out = []
    for group in model.space.groups:
        F = np.empty((*group.weights.shape, 3, 3))
        deformation(x, group.nodes, group.gradients, F)
        out.append(F)
    return out


def volume_ratios(model: FemModel, x: np.ndarray) -> np.ndarray:
    """Smallest det F of each tet of the mesh (m,)."""
    ratio = np.empty(len(model.space.mesh.tets))
    for group, F in zip(model.space.groups, deformation_gradients(model, x)):
        ratio[group.tets] = np.linalg.det(F).min(axis=1)
    return ratio


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
    """Von Mises stress of each tet (m,) [Pa], the mean of its points.

    sqrt(3/2 dev s : dev s) of the Cauchy stress s = P F'/J.
    """
    x = as_positions(model, x)
    out = np.empty(len(model.space.mesh.tets))
    for (group, row, _, _), F in zip(_groups(model), deformation_gradients(model, x)):
        P = np.empty_like(F)
        stresses(x, group.nodes, group.gradients, row, model.kinds, model.table, P)
        cauchy = P @ F.swapaxes(-1, -2) / np.linalg.det(F)[..., None, None]
        trace = np.trace(cauchy, axis1=-2, axis2=-1)[..., None, None]
        dev = cauchy - trace / 3 * np.eye(3)
        out[group.tets] = np.sqrt(1.5 * (dev**2).sum(axis=(-1, -2))).mean(axis=1)
    return out
