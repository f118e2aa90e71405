"""A lattice at rest as a self-contained Meshcat page: struts and nodes.

    show_lattice(load_lattice("lattice.json"), "lattice.html")

Struts and nodes are one triangle mesh each: every object of a Meshcat page takes a
kilobyte, every vertex 12 bytes, so 6144 struts (8x8x8 voxels) only fit as one mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydrake.geometry import Meshcat, Rgba
from pydrake.math import RotationMatrix

from drakebots.core.lazy import late
from drakebots.lattice.shape import Lattice, LatticeSpec
from drakebots.view.scene import ROOT, Stage, make_stage

trimesh = late("trimesh")

LATTICE = f"{ROOT}/lattice"

THINNEST = 0.012
"""Least radius of a drawn strut [pitches]: 0.9 mm of 76 mm."""

STRUT, NODE = Rgba(0.36, 0.40, 0.47), Rgba(0.16, 0.20, 0.27)
_RODS = {
    "blue": (0.12, 0.37, 0.80),
    "yellow": (0.93, 0.72, 0.05),
    "red": (0.83, 0.16, 0.18),
    "green": (0.12, 0.58, 0.30),
}
_OTHERS = (*_RODS.values(), (0.55, 0.28, 0.68), (0.90, 0.47, 0.10))


def rod_colour(name: str, index: int) -> tuple[float, float, float]:
    """Red, green and blue (0..1) of an actuator, by its name or its index."""
    return _RODS.get(name, _OTHERS[index % len(_OTHERS)])


def rod_colours(names: Sequence[str]) -> list[tuple[float, float, float]]:
    """Red, green and blue (0..1) of actuators, by their names or in turn."""
    return [rod_colour(name, index) for index, name in enumerate(names)]


def strut_radius(lattice: Lattice, thickness: float) -> float:
    """Radius to draw struts of a thickness with [m]."""
    return max(thickness / 2, THINNEST * lattice.pitch)


def show_lattice(spec: LatticeSpec, path: str | Path) -> Path:
    """Writes a lattice as one self-contained page, atomically.

    Args:
        spec: lattice and strut. Struts are drawn straight, as round rods of the
            section's larger side, but no thinner than `THINNEST`.
        path: file to write.

    Raises:
        FileProblem: when the file cannot be written.
    """
    return lattice_stage(spec).save(path)


def lattice_stage(spec: LatticeSpec) -> Stage:
    """A lattice in a new Meshcat server."""
    lattice, places = spec.lattice, spec.lattice.positions
    radius = strut_radius(lattice, max(spec.strut.d1, spec.strut.d2))
    margin = 3 * radius
    stage = make_stage(places.min(axis=0) - margin, places.max(axis=0) + margin)
    ends = places[lattice.beams]
    # Coarser where there are many, for the page's size.
    count = len(lattice.beams)
    sides = 10 if count <= 1000 else 6 if count <= 4000 else 4
    struts = tubes(ends[:, 0], ends[:, 1], radius, sides)
    nodes = balls(places, 2.0 * radius, fine=count <= 4000)
    drawn = {"struts": (struts, STRUT), "nodes": (nodes, NODE)}
    for name, ((corners, faces), colour) in drawn.items():
        mesh = corners.reshape(-1, 3).T, faces.T
        stage.meshcat.SetTriangleMesh(f"{LATTICE}/{name}", *mesh, colour)
    return stage


def draw_rest(meshcat: Meshcat, lattice: Lattice, colour: Rgba) -> None:
    """The struts at rest as thin lines."""
    ends = lattice.positions[lattice.beams].transpose(1, 2, 0)
    meshcat.SetLineSegments(f"{LATTICE}/rest", *ends, 1.0, colour)


# --- triangles --------------------------------------------------------------


def tubes(
    starts: np.ndarray, ends: np.ndarray, radius: float, sides: int
) -> tuple[np.ndarray, np.ndarray]:
    """Open prisms from points to points.

    Args:
        starts, ends: ends of the axes (B, 3), which do not coincide.
        radius: distance of the corners from the axis.
        sides: number of sides, >= 3.

    Returns:
        Corners (B, 2, sides, 3), those at the start first, and triangles
        (2 B sides, 3) of the corners counted in that order.
    """
    turns = [RotationMatrix.MakeFromOneVector(axis, 2) for axis in ends - starts]
    angle = 2 * np.pi * np.arange(sides) / sides
    circle = radius * np.stack([np.cos(angle), np.sin(angle), 0 * angle])
    ring = np.array([(turn @ circle).T for turn in turns])
    corners = np.stack([starts[:, None] + ring, ends[:, None] + ring], axis=1)
    k = np.arange(sides)
    after = (k + 1) % sides
    quads = np.hstack([[k, after, sides + k], [after, sides + after, sides + k]]).T
    offset = 2 * sides * np.arange(len(starts))
    return corners, (offset[:, None, None] + quads).reshape(-1, 3)


def balls(
    centres: np.ndarray, radius: float, fine: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Spheres of 80 triangles when fine, otherwise of 8.

    Returns:
        Corners (N, C, 3) and triangles (F, 3) of the corners counted in that order.
    """
    if fine:
        ball = trimesh.creation.icosphere(1)
    else:
        ball = trimesh.convex.convex_hull(np.vstack([np.eye(3), -np.eye(3)]))
    corners, faces = ball.vertices, ball.faces
    placed = centres[:, None] + radius * corners
    offset = len(corners) * np.arange(len(centres))
    return placed, (offset[:, None, None] + faces).reshape(-1, 3)
