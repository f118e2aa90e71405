"""Estimates by how much linear tets overestimate the bending stiffness of a wall.

P1 tets lock in plate bending: the table gives their stiffness relative to that of P2
tets for a 4 mm strip, measured for several element sizes h and Poisson's ratios. The
bending of a tube (a membrane) is wrong by 2 % only; the error matters in folds and
buckles.

The estimate is an order of magnitude, since the way cells are cut in tets matters:
strips of box_mesh lock as much as the table says at nu 0.3, 0.6 to 0.7 times as much at
0.46, and 0.3 to 0.4 times at 0.49.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import RegularGridInterpolator

from drakebots.fem.assembly import FemModel
from drakebots.fem.mesh import FACES, TetMesh, surface_faces

SIZE_RATIO = np.array([0.325, 0.5, 1.0, 1.375, 2.15])
"""Element size h over wall thickness t of the table's columns."""

POISSON = np.array([0.3, 0.46, 0.49])
"""Poisson's ratio of the table's rows."""

P1_OVER_P2 = np.array(
    [
        [1.3, 1.7, 3.3, 4.1, 5.7],
        [1.6, 2.4, 6.0, 5.9, 8.1],
        [2.4, 4.1, 13.0, 10.0, 15.0],
    ]
)
"""Plate-bending stiffness of P1 over P2 tets for a 4 mm strip, by nu and h/t."""


@dataclass(frozen=True)
class RegionLocking:
    """Estimate for one region.

    Attributes:
        region: region of the mesh.
        order: lowest order of its tets, 1 or 2.
        edge: mean edge h of its surface triangles [m].
        thickness: thickness t = 2 volume / surface [m].
        factor: stiffness in plate bending relative to the exact one; for P1 from the
            table, for P2 about 1.
    """

    region: int
    order: int
    edge: float
    thickness: float
    factor: float

    def __str__(self) -> str:
        text = (
            f"region {self.region}: P{self.order}, wall {1e3 * self.thickness:.3g} mm, "
            f"h/t = {self.edge / self.thickness:.2g}, plate bending about "
            f"{self.factor:.2g}x too stiff"
        )
        if self.order == 1 and self.factor > 1.5:
            text += " (folds only; use P2 there)"
        return text


def plate_factor(size_ratio: float, poisson_ratio: float) -> float:
    """Plate-bending stiffness of P1 tets over the exact one, interpolated in log-log.

    Below the table's h/t the factor tends to 1 as h^2; beyond its largest h/t or nu the
    last value is kept, a lower bound.
    """
    nu = float(np.clip(poisson_ratio, POISSON[0], POISSON[-1]))
    low, high = SIZE_RATIO[[0, -1]]
    table = RegularGridInterpolator((POISSON, np.log(SIZE_RATIO)), np.log(P1_OVER_P2))
    ratio = float(np.clip(size_ratio, low, high))
    factor = float(np.exp(table((nu, np.log(ratio)))))
    if size_ratio < low:
        factor = 1 + (factor - 1) * (size_ratio / low) ** 2
    return factor


def locking(model: FemModel) -> tuple[RegionLocking, ...]:
    """The estimate for each region; print it before trusting a simulated fold."""
    mesh, out = model.space.mesh, []
    order = np.ones(len(mesh.tets), int)
    for group in model.space.groups:
        order[group.tets] = group.order
    for region, material in zip(mesh.regions, model.materials):
        mine = mesh.region == region
        edge, thickness = wall_size(mesh, mine)
        p = int(order[mine].min())
        factor = plate_factor(edge / thickness, material.poisson_ratio)
        out.append(RegionLocking(region, p, edge, thickness, factor if p == 1 else 1.0))
    return tuple(out)


def wall_size(mesh: TetMesh, chosen: np.ndarray) -> tuple[float, float]:
    """Mean surface edge and thickness 2 V/A of the chosen tets [m].

    A counts only faces on the surface of the mesh, so that the interface between two
    regions of one wall does not count.

    Args:
        mesh: the mesh.
        chosen: whether each tet is one of them (m,).
    """
    faces, owner = surface_faces(mesh)
    outer = faces[chosen[owner]]
    if not len(outer):
        outer = mesh.tets[chosen][:, FACES].reshape(-1, 3)
    corners = mesh.vertices[outer]
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normals, axis=1).sum() / 2
    return float(sides.mean()), float(2 * mesh.volumes[chosen].sum() / area)
