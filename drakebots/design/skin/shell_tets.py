"""From an outer surface to the tets of its wall.

Each outer vertex is pushed inward, along the gradient of the signed distance, to its
depth; the prisms in between are cut into three tets each
(:func:`drakebots.fem.mesh.prism_tets`). Where sheets meet (tips thinner than two walls,
crests of folds) the depth is kept below the middle, and inner vertices are moved until
no tet is flat.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.core.kernels import njit
from drakebots.design.geometry import DistanceGrid, value_and_gradient
from drakebots.fem.mesh import EDGES, FACES, TetMesh, tet_quality


@dataclass(frozen=True)
class ShellReport:
    """Measurements of a shell.

    Attributes:
        vertices, tets: numbers of vertices and of tets.
        wall_m: 1, 50 and 99 % quantiles of the thickness over the inner surface [m].
        quality: lowest, 1 % and 50 % quantiles of the tets' mean ratio.
        min_dihedral: smallest dihedral angle [rad].
        inverted: number of tets of volume <= 0.
        volume: volume of the wall [m^3].
        held: share of vertices whose wall is thinner than requested by more than
            10 %, because the body is thinner than two walls there or the tets would
            be flat.
    """

    vertices: int
    tets: int
    wall_m: tuple[float, float, float]
    quality: tuple[float, float, float]
    min_dihedral: float
    inverted: int
    volume: float
    held: float

    def __str__(self) -> str:
        low, mid, high = (1e3 * w for w in self.wall_m)
        return (
            f"{self.vertices} vertices, {self.tets} tets, wall {low:.2f}/{mid:.2f}/"
            f"{high:.2f} mm, quality {self.quality[0]:.2f}/{self.quality[1]:.2f}/"
            f"{self.quality[2]:.2f}, least dihedral "
            f"{np.degrees(self.min_dihedral):.1f} deg, {self.inverted} inverted, "
            f"{self.volume * 1e6:.1f} cm^3, thinner than requested at "
            f"{100 * self.held:.1f} %"
        )


def shell_report(
    mesh: TetMesh,
    outer: DistanceGrid,
    inner_vertices: np.ndarray,
    inner_triangles: np.ndarray,
    requested: np.ndarray,
) -> ShellReport:
    """Measures a shell.

    Args:
        mesh: tets of the wall.
        outer: signed distance of its outer surface.
        inner_vertices: vertices of the mesh on the inner surface (n,).
        inner_triangles: triangles of the inner surface, corners among those n.
        requested: requested thickness at those vertices (n,) [m].
    """
    x = mesh.vertices[inner_vertices]
    wall = -outer(x)
    # At the middles of the inner triangles, too, where chords come nearest.
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
        held=float((wall < 0.9 * requested).mean()),
    )


def dihedral_angles(mesh: TetMesh) -> np.ndarray:
    """Dihedral angles at the six edges of each tet (m, 6) [rad]."""
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
        # The faces that share the edge i j are opposite the two other corners.
        k, l = (c for c in range(4) if c not in (i, j))  # noqa: E741
        cos = -np.einsum("ij,ij->i", normals[:, k], normals[:, l])
        out.append(np.arccos(np.clip(cos, -1, 1)))
    return np.stack(out, axis=1)


@njit(cache=True)
def flow_inward(values, origin, h, x, inward, depth, substeps):
    """Pushes points inward to phi = -depth; stops in the middle, where slopes vanish.

    Returns:
        positions (n, 3), and the depth reached (n,) [m].
    """
    out, reached = x.copy(), np.zeros(len(x))
    for n in range(len(x)):
        p = x[n].copy()
        # On the surface the gradient mixes both sides: begin along the normal.
        first = min(0.3 * depth[n], h)
        p += first * inward[n]
        best = p.copy()
        phi = value_and_gradient(values, origin, h, p[0], p[1], p[2])[0]
        lowest = phi
        for k in range(1, substeps + 1):
            level = -first - (depth[n] - first) * k / substeps
            for _ in range(3):
                phi, gx, gy, gz = value_and_gradient(
                    values, origin, h, p[0], p[1], p[2]
                )
                g2 = gx * gx + gy * gy + gz * gz
                if g2 < 0.1:
                    break
                step = (phi - level) / g2
                step = min(max(step, -0.5 * h), 0.5 * h)
                p[0] -= step * gx
                p[1] -= step * gy
                p[2] -= step * gz
            phi = value_and_gradient(values, origin, h, p[0], p[1], p[2])[0]
            if phi < lowest:
                lowest = phi
                best = p.copy()
            if phi > level + 0.25 * depth[n]:
                break
        out[n], reached[n] = best, -lowest
    return out, reached


@njit(cache=True)
def _quality(x, a, b, c, d):
    """Mean ratio of a tet, signed: 12 (3 V)^(2/3) / sum of squared edges."""
    ux, uy, uz = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
    vx, vy, vz = x[c, 0] - x[a, 0], x[c, 1] - x[a, 1], x[c, 2] - x[a, 2]
    wx, wy, wz = x[d, 0] - x[a, 0], x[d, 1] - x[a, 1], x[d, 2] - x[a, 2]
    det = ux * (vy * wz - vz * wy) + uy * (vz * wx - vx * wz) + uz * (vx * wy - vy * wx)
    uu, vv = ux * ux + uy * uy + uz * uz, vx * vx + vy * vy + vz * vz
    ww = wx * wx + wy * wy + wz * wz
    # Squared edges between b, c, d by the cosine law.
    s = 3 * (uu + vv + ww) - 2 * (
        ux * vx + uy * vy + uz * vz
        + ux * wx + uy * wy + uz * wz
        + vx * wx + vy * wy + vz * wz
    )  # fmt: skip
    q = 12 * np.cbrt(0.25 * det * det) / max(s, 1e-300)
    return q if det > 0 else -q


@njit(cache=True)
def _score(v, x, tets, start, of_vertex):
    worst = 1.0
    for k in range(start[v], start[v + 1]):
        t = tets[of_vertex[k]]
        q = _quality(x, t[0], t[1], t[2], t[3])
        if q < worst:
            worst = q
    return worst


@njit(cache=True)
def improve(
    x, tets, start, of_vertex, movable, depth, scale, reach, values, origin, h,
    goal, rounds,
):  # fmt: skip
    """Pattern search of each movable vertex for a better worst tet around it.

    Moves raise  min(worst quality, goal) - 0.5 |phi + depth|/scale,  so that the wall
    keeps its thickness where tets are good. Directions and order are fixed; a vertex
    that finds no better place rests until a neighbour moves.

    Args:
        x: positions, changed in place (n, 3) [m].
        tets: the tets (m, 4).
        start, of_vertex: the tets of each vertex; see :func:`tets_of_vertices`.
        movable: whether a vertex may move (n,).
        depth: requested -phi of every vertex (n,) [m].
        scale: thickness of the wall (n,) [m].
        reach: length of the first step (n,) [m].
        values, origin, h: the distance grid.
        goal: quality above which a tet is left as it is.
        rounds: largest number of sweeps.
    """
    directions = np.zeros((14, 3))
    n = 0
    for i in range(-1, 2):
        for j in range(-1, 2):
            for k in range(-1, 2):
                taxi = abs(i) + abs(j) + abs(k)
                if taxi == 1 or taxi == 3:
                    directions[n] = np.array([i, j, k]) / np.sqrt(taxi)
                    n += 1
    awake = movable.copy()
    old = np.zeros(3)
    for _ in range(rounds):
        moved = 0
        for v in range(len(x)):
            if not awake[v]:
                continue
            awake[v] = False
            worst = _score(v, x, tets, start, of_vertex)
            if worst >= goal:
                continue
            phi = value_and_gradient(values, origin, h, x[v, 0], x[v, 1], x[v, 2])[0]
            first = min(worst, goal) - 0.5 * abs(phi + depth[v]) / scale[v]
            best = first
            step = reach[v]
            for _ in range(5):
                for k in range(3):
                    old[k] = x[v, k]
                found = -1
                for w in range(14):
                    for k in range(3):
                        x[v, k] = old[k] + step * directions[w, k]
                    phi = value_and_gradient(
                        values, origin, h, x[v, 0], x[v, 1], x[v, 2]
                    )[0]
                    penalty = 0.5 * abs(phi + depth[v]) / scale[v]
                    if goal - penalty <= best:
                        continue
                    q = _score(v, x, tets, start, of_vertex)
                    value = min(q, goal) - penalty
                    if value > best + 1e-5:
                        best, found = value, w
                for k in range(3):
                    x[v, k] = old[k] + (
                        step * directions[found, k] if found >= 0 else 0.0
                    )
                if found < 0:
                    step *= 0.4
            if best > first + 1e-3:
                moved += 1
                for k in range(start[v], start[v + 1]):
                    for w in tets[of_vertex[k]]:
                        awake[w] = movable[w]
        if moved == 0:
            break


def tets_of_vertices(tets: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Start (n + 1,) and list; the tets of vertex v: list[start[v] : start[v + 1]]."""
    order = np.argsort(tets.ravel(), kind="stable")
    start = np.searchsorted(tets.ravel()[order], np.arange(n + 1))
    return start, order // 4


def vertex_normals(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Unit outward normals (n, 3): the triangles' means, weighted by their angles."""
    corners = vertices[triangles]
    normals = np.zeros_like(vertices)
    face = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    face /= np.maximum(np.linalg.norm(face, axis=1, keepdims=True), 1e-300)
    for k in range(3):
        u = corners[:, (k + 1) % 3] - corners[:, k]
        v = corners[:, (k + 2) % 3] - corners[:, k]
        cos = np.einsum("ij,ij->i", u, v) / np.maximum(
            np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1), 1e-300
        )
        angle = np.arccos(np.clip(cos, -1, 1))
        np.add.at(normals, triangles[:, k], angle[:, None] * face)
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)


@njit(cache=True)
def qualities(x, tets):
    """Mean ratio of each tet (m,), negative if inverted."""
    out = np.empty(len(tets))
    for t in range(len(tets)):
        out[t] = _quality(x, tets[t, 0], tets[t, 1], tets[t, 2], tets[t, 3])
    return out
