"""A lattice as a self-contained Meshcat page: struts, nodes, actuators, colours.

    show_lattice(load_lattice("lattice.json"), "lattice.html")
    show_lattice(spec, "moved.html", displacement)   # (N, 3) [m], with a legend

Struts and nodes are one triangle mesh each: every object of a Meshcat page takes a
kilobyte, every vertex 12 bytes, so 6144 struts (8x8x8 voxels) only fit as one mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from pydrake.geometry import Meshcat, Rgba
from pydrake.math import RotationMatrix

from drakebots.core.checks import array, check_value
from drakebots.core.lazy import late
from drakebots.lattice.pom import Control, actuator_nodes
from drakebots.lattice.shape import Lattice, LatticeSpec
from drakebots.view.page import ColourScale, linear_rgb
from drakebots.view.scene import ROOT, Stage, make_stage

trimesh = late("trimesh")

LATTICE = f"{ROOT}/lattice"

THINNEST = 0.012
"""Least radius of a drawn strut [pitches]: 0.9 mm of 76 mm."""

STRUT, NODE = Rgba(0.36, 0.40, 0.47), Rgba(0.16, 0.20, 0.27)
_REST = Rgba(0.60, 0.62, 0.66)
_RODS = {
    "blue": (0.12, 0.37, 0.80),
    "yellow": (0.93, 0.72, 0.05),
    "red": (0.83, 0.16, 0.18),
    "green": (0.12, 0.58, 0.30),
}
_COLOURS = LinearSegmentedColormap.from_list("moved", ["#8d97a6", "#c8141f"])
"""Colour map from grey, which is inconspicuous on the pale ground; linear, as Meshcat
interpolates between the colours of a strut's ends."""

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


def colour_scale(distances: np.ndarray) -> ColourScale:
    """The scale that fits distances (N,) [m] by which nodes have moved."""
    most = float(distances.max()) or 1e-12
    return ColourScale("displacement", most, "mm", 1e-3, _COLOURS)


def show_lattice(
    spec: LatticeSpec,
    path: str | Path,
    displacement: np.ndarray | None = None,
    *,
    actuators: Sequence[Control] = (),
) -> Path:
    """Writes a lattice as one self-contained page, atomically.

    Args:
        spec: lattice and strut. Struts are drawn straight, as round rods of the
            section's larger side, but no thinner than `THINNEST`.
        path: file to write.
        displacement: displacements of the nodes (N, 3) [m], which colour them; the
            lattice at rest is then drawn as thin lines.
        actuators: actuators, drawn as thick rods.

    Raises:
        InvalidInput: for displacements of another shape or not finite, or an actuator
            whose nodes are not there.
        FileProblem: when the file cannot be written.
    """
    return lattice_stage(spec, displacement, actuators).save(path)


def lattice_stage(
    spec: LatticeSpec,
    displacement: np.ndarray | None = None,
    actuators: Sequence[Control] = (),
) -> Stage:
    """A lattice in a new Meshcat server; arguments as in :func:`show_lattice`."""
    lattice, places, rgb, scale = spec.lattice, spec.lattice.positions, None, None
    if displacement is not None:
        rule = array(places.shape, "m")
        displacement = check_value("displacement", displacement, rule)
        places = places + displacement
        distances = np.linalg.norm(displacement, axis=1)
        scale = colour_scale(distances)
        rgb = scale.rgb(distances)
    radius = strut_radius(lattice, max(spec.strut.d1, spec.strut.d2))
    margin = 3 * radius
    both = np.vstack([places, lattice.positions])
    stage = make_stage(both.min(axis=0) - margin, both.max(axis=0) + margin)
    stage.caption.scale = scale
    _draw(stage, lattice, places, radius, rgb)
    if displacement is not None:
        draw_rest(stage.meshcat, lattice, _REST)
    rows = actuator_nodes(lattice, actuators)
    for i, colour in enumerate(rod_colours([a.name for a in actuators])):
        rod, faces = tubes(places[rows[i, :1]], places[rows[i, 1:]], 3.5 * radius, 16)
        _mesh(stage, f"{LATTICE}/actuators/{i}", rod, faces, Rgba(*colour))
    return stage


def draw_rest(meshcat: Meshcat, lattice: Lattice, colour: Rgba) -> None:
    """The struts at rest as thin lines."""
    ends = lattice.positions[lattice.beams].transpose(1, 2, 0)
    meshcat.SetLineSegments(f"{LATTICE}/rest", *ends, 1.0, colour)


def _draw(stage: Stage, lattice: Lattice, places, radius: float, rgb) -> None:
    ends = places[lattice.beams]
    # Coarser where there are many, for the page's size.
    count = len(lattice.beams)
    sides = 10 if count <= 1000 else 6 if count <= 4000 else 4
    struts = tubes(ends[:, 0], ends[:, 1], radius, sides)
    nodes = balls(places, 2.0 * radius, fine=count <= 4000)
    of_struts = None if rgb is None else rgb[lattice.beams][:, :, None]
    of_nodes = None if rgb is None else rgb[:, None]
    _mesh(stage, f"{LATTICE}/struts", *struts, STRUT, of_struts)
    _mesh(stage, f"{LATTICE}/nodes", *nodes, NODE, of_nodes)


def _mesh(stage: Stage, path: str, corners, faces, rgba: Rgba, rgb=None) -> None:
    """Draws triangles in one colour, or in colours (..., 3) of groups of corners."""
    points, faces = corners.reshape(-1, 3).T, faces.T
    if rgb is None:
        stage.meshcat.SetTriangleMesh(path, points, faces, rgba)
    else:
        # With 0.85 for Meshcat's lights they appear as in the legend.
        light = 0.85 * np.broadcast_to(linear_rgb(rgb), corners.shape)
        colours = light.reshape(-1, 3).T
        stage.meshcat.SetTriangleColorMesh(path, points, faces, colours)


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
