"""What a shell is like: wall, tets, volume, mass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.design.distance_grid import DistanceGrid
from drakebots.errors import InvalidInput
from drakebots.fem.mesh import EDGES, FACES, TetMesh
from drakebots.fem.mesh_check import tet_quality


@dataclass(frozen=True)
class ShellReport:
    """Measured on a shell.

    Attributes:
        vertices, tets: counts.
        wall_m: thickness at 1, 50 and 99 % of the inner surface [m].
        quality: least, 1 % and 50 % of the mean ratio of the tets.
        min_dihedral: [rad].
        inverted: tets of volume <= 0.
        volume: of the wall [m^3].
        held: share of vertices whose wall is thinner than asked by more than
            10 %, because the body is thinner than two walls there or the tets
            would be flat.
    """

    vertices: int
    tets: int
    wall_m: tuple[float, float, float]
    quality: tuple[float, float, float]
    min_dihedral: float
    inverted: int
    volume: float
    held: float

    def mass(self, density: float) -> float:
        """Of the wall for a density [kg/m^3], in kg."""
        if not (np.isfinite(density) and density > 0):
            raise InvalidInput(f"density {density} kg/m^3: must be > 0")
        return density * self.volume

    def __str__(self) -> str:
        low, mid, high = (1e3 * w for w in self.wall_m)
        return (
            f"{self.vertices} vertices, {self.tets} tets, wall {low:.2f}/{mid:.2f}/"
            f"{high:.2f} mm, quality {self.quality[0]:.2f}/{self.quality[1]:.2f}/"
            f"{self.quality[2]:.2f}, least dihedral "
            f"{np.degrees(self.min_dihedral):.1f} deg, {self.inverted} inverted, "
            f"{self.volume * 1e6:.1f} cm^3, thinner than asked at "
            f"{100 * self.held:.1f} %"
        )


def shell_report(
    mesh: TetMesh,
    outer: DistanceGrid,
    inner_vertices: np.ndarray,
    inner_triangles: np.ndarray,
    asked: np.ndarray,
) -> ShellReport:
    """Measures a shell.

    Args:
        mesh: the wall.
        outer: signed distance of its outer surface.
        inner_vertices: indices of the inner surface in the mesh (n,).
        inner_triangles: of the inner surface, corners among those n.
        asked: thickness asked for at them (n,) [m].
    """
    x = mesh.vertices[inner_vertices]
    wall = -outer(x)
    # Also at the middles of the inner triangles, where chords come nearest.
    middle = -outer(x[inner_triangles].mean(axis=1))
    quality = tet_quality(mesh.vertices, mesh.tets)
    volumes = mesh.volumes
    return ShellReport(
        vertices=len(mesh.vertices),
        tets=len(mesh.tets),
        wall_m=tuple(
            float(v) for v in np.percentile(np.concatenate([wall, middle]), [1, 50, 99])
        ),
        quality=tuple(float(q) for q in np.percentile(quality, [0, 1, 50])),
        min_dihedral=float(dihedral_angles(mesh).min()),
        inverted=int((volumes <= 0).sum()),
        volume=float(volumes.sum()),
        held=float((wall < 0.9 * asked).mean()),
    )


def dihedral_angles(mesh: TetMesh) -> np.ndarray:
    """Angles between the faces at the six edges of each tet (m, 6) [rad]."""
    x = mesh.vertices[mesh.tets]
    normals = np.stack(
        [
            np.cross(x[:, f[1]] - x[:, f[0]], x[:, f[2]] - x[:, f[0]])
            for f in FACES
        ],
        axis=1,
    )  # fmt: skip
    normals /= np.maximum(np.linalg.norm(normals, axis=2, keepdims=True), 1e-300)
    out = []
    for i, j in EDGES:
        # The faces that share edge i j lie opposite the two other corners.
        k, l = (c for c in range(4) if c not in (i, j))  # noqa: E741
        cos = -np.einsum("ij,ij->i", normals[:, k], normals[:, l])
        out.append(np.arccos(np.clip(cos, -1, 1)))
    return np.stack(out, axis=1)
