"""A hollow capsule, the mesh of benchmarks and tests of skins.

A module without a command.
"""

from __future__ import annotations

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.fem.mesh import TetMesh, prism_tets


def hollow_capsule(
    target_vertices: int = 4000,
    radius: float = 0.10,
    length: float = 0.30,
    thickness: float = 0.004,
    layers: int = 1,
) -> TetMesh:
    """A hollow capsule along z: a cylinder closed by two half spheres.

    Args:
        target_vertices: approximate number of vertices of the mesh.
        radius: radius of the outer surface [m].
        length: length of the cylinder between the half spheres [m].
        thickness: thickness of the wall [m].
        layers: number of prisms through the wall.
    """
    if not (target_vertices >= 50 and radius > thickness > 0 and length > 0):
        raise InvalidInput(
            "capsule: needs target_vertices >= 50, radius > thickness > 0, length > 0"
        )
    surface = target_vertices / (layers + 1)
    row = np.pi * radius / 2 * np.sqrt(3) / 2
    # 4 f^2 vertices on the spheres, 4 f in each of about length f/row rows.
    f = max(2, round(np.sqrt(surface / (4 + 4 * length / row))))
    rows = max(1, round((surface - 4 * f * f - 2) / (4 * f)))
    vertices, triangles, inward = _capsule_surface(f, rows, radius, length)
    wall = [vertices + inward * (thickness * k / layers) for k in range(layers + 1)]
    tets = prism_tets(triangles, len(vertices), layers)
    return TetMesh(np.concatenate(wall), tets)


def _capsule_surface(f, rows, radius, length):
    """Rings of 1, 4, 8, .. 4 f vertices, the cylinder's rows, the rings in reverse."""
    sizes = [max(1, 4 * k) for k in range(f + 1)]
    sizes += [4 * f] * rows + sizes[-2::-1]
    angle = [k * np.pi / (2 * f) for k in range(f + 1)]
    angle += [np.pi / 2] * rows + [np.pi - a for a in angle[-2::-1]]
    height = [length / 2] * f + list(np.linspace(length / 2, -length / 2, rows + 1))
    height += [-length / 2] * f
    rings, start = [], np.concatenate([[0], np.cumsum(sizes)])
    for n, a, h in zip(sizes, angle, height):
        turn = 2 * np.pi * np.arange(n) / n
        normal = np.stack(
            [np.sin(a) * np.cos(turn), np.sin(a) * np.sin(turn), np.full(n, np.cos(a))],
            axis=1,
        )
        rings.append((radius * normal + [0, 0, h], normal))
    vertices, normals = (np.concatenate(part) for part in zip(*rings))
    triangles = []
    for k in range(len(sizes) - 1):
        triangles += _strip(start[k], sizes[k], start[k + 1], sizes[k + 1])
    return vertices, np.array(triangles), -normals


def _strip(i0, n, j0, m):
    """Triangles between a ring of n vertices from i0 and the one below of m from j0."""
    out, i, j = [], 0, 0
    upper, lower = (0 if n == 1 else n), m if m > 1 else 0
    while i < upper or j < lower:
        # Advance the ring whose next vertex comes first around the circle.
        down = i == upper or (j < lower and (j + 1) * max(n, 1) <= (i + 1) * m)
        if n == 1:
            down = True
        if m == 1:
            down = False
        a, b = i0 + i % n, j0 + j % m
        if down:
            out.append((a, b, j0 + (j + 1) % m))
            j += 1
        else:
            out.append((a, b, i0 + (i + 1) % n))
            i += 1
    return out
