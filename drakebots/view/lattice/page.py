"""A lattice as a self-contained Meshcat page: struts, nodes, actuators, colours.

    show_lattice(load_lattice("lattice.json"), "lattice.html")
    show_lattice(spec, "moved.html", displacement)   # (N, 3) [m], with a legend

Struts and nodes are one triangle mesh each: every object of a Meshcat page takes a
kilobyte, every vertex 12 bytes, so 6144 struts (8x8x8 voxels) only fit as one mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_hex
from pydrake.geometry import Meshcat, Rgba
from scipy.spatial import ConvexHull
from scipy.spatial.distance import cdist

from drakebots.core.errors import InvalidInput
from drakebots.core.files import replacing
from drakebots.lattice.pom import Control, actuator_nodes
from drakebots.lattice.shape import Lattice, LatticeSpec
from drakebots.view.scene import ROOT, Stage, make_stage

LATTICE = f"{ROOT}/lattice"

THINNEST = 0.012
"""Least radius of a drawn strut [pitches]: 0.9 mm of 76 mm."""

_STRUT, _NODE = (0.36, 0.40, 0.47), (0.16, 0.20, 0.27)
_REST = Rgba(0.60, 0.62, 0.66)
_RODS = {
    "blue": (0.12, 0.37, 0.80),
    "yellow": (0.93, 0.72, 0.05),
    "red": (0.83, 0.16, 0.18),
    "green": (0.12, 0.58, 0.30),
}
_UP = LinearSegmentedColormap.from_list("up", ["#8d97a6", "#c8141f"])
_BOTH = LinearSegmentedColormap.from_list("both", ["#1650d0", "#9aa3b0", "#c8141f"])
"""Colour maps from grey, which is inconspicuous on the pale ground; linear, as Meshcat
interpolates between the colours of a strut's ends."""

_OTHERS = (*_RODS.values(), (0.55, 0.28, 0.68), (0.90, 0.47, 0.10))


def rod_colours(names: Sequence[str]) -> list[tuple[float, float, float]]:
    """Red, green and blue (0..1) of actuators, by their names or in turn."""
    return [_RODS.get(n, _OTHERS[i % len(_OTHERS)]) for i, n in enumerate(names)]


def strut_radius(lattice: Lattice, thickness: float) -> float:
    """Radius to draw struts of a thickness with [m]."""
    return max(thickness / 2, THINNEST * lattice.pitch)


@dataclass(frozen=True)
class Colours:
    """Values of the nodes as colours.

    Attributes:
        values: values of the nodes (N,) [m].
        label: title of the legend.
        limits: ends of the scale [m]; symmetric when there are both signs.
        map: colour map.
    """

    values: np.ndarray
    label: str
    limits: tuple[float, float]
    map: LinearSegmentedColormap

    @classmethod
    def of(cls, values: np.ndarray, label: str) -> Colours:
        """Colours with the scale that fits values (N,) [m]."""
        most = float(np.abs(values).max()) or 1e-12
        if values.min() < -1e-9 * most:
            return cls(values, label, (-most, most), _BOTH)
        return cls(values, label, (0.0, most), _UP)

    @property
    def rgb(self) -> np.ndarray:
        """sRGB colours of the nodes (N, 3), 0..1."""
        return self.map(Normalize(*self.limits)(self.values))[:, :3]

    def legend(self) -> str:
        """HTML of a colour bar in mm for a corner of the page."""
        shades = self.map(np.linspace(0, 1, 12))[:, :3]
        stops = ", ".join(to_hex(c) for c in shades)
        low, high = (f"{1e3 * v:.3g} mm" for v in self.limits)
        return (
            '<div id="legend" style="position:fixed;left:24px;bottom:24px;'
            "font:14px sans-serif;color:#222;background:rgba(255,255,255,.82);"
            'padding:10px 14px;border-radius:6px;z-index:10">'
            f"<div>{escape(self.label)}</div>"
            '<div style="width:220px;height:14px;margin:6px 0 4px;'
            f'background:linear-gradient(to right, {stops})"></div>'
            '<div style="display:flex;justify-content:space-between">'
            f"<span>{low}</span><span>{high}</span></div></div>"
        )


def show_lattice(
    spec: LatticeSpec,
    path: str | Path,
    displacement: np.ndarray | None = None,
    colour: np.ndarray | None = None,
    *,
    actuators: Sequence[Control] = (),
    magnify: float = 1.0,
    label: str = "displacement",
) -> Path:
    """Writes a lattice as one self-contained page, atomically.

    Args:
        spec: lattice and strut. Struts are drawn straight, as round rods of the
            section's larger side, but no thinner than `THINNEST`.
        path: file to write.
        displacement: displacements of the nodes (N, 3) [m]; the lattice at rest is
            then drawn as thin lines.
        colour: values (N,) [m] that colour the nodes; by default their displacement.
        actuators: actuators, drawn as thick rods.
        magnify: factor of the drawn displacement; the legend has the true one.
        label: title of the legend.

    Raises:
        InvalidInput: for arrays of another shape or not finite, a magnification
            that is not > 0, or an actuator whose nodes are not there.
        FileProblem: when the file cannot be written.
    """
    path = Path(path)
    moved, colours = _motion(spec.lattice, displacement, colour, magnify, label)
    stage = lattice_stage(spec, moved, colours, actuators=actuators)
    legend = "" if colours is None else colours.legend()
    if magnify != 1:
        legend = legend.replace("</div></div>", f"</div>drawn x {magnify:g}</div>", 1)
    page = stage.html().replace("</body>", f"{legend}</body>", 1)
    with replacing(path) as part:
        part.write_text(page, encoding="utf-8")
    return path


def _motion(
    lattice: Lattice, displacement, colour, magnify: float, label: str
) -> tuple[np.ndarray | None, Colours | None]:
    """Displacements as drawn, and colours."""
    if not (np.isfinite(magnify) and magnify > 0):
        raise InvalidInput(f"magnify must be > 0, got {magnify}")
    count = len(lattice.nodes)
    if displacement is not None:
        displacement = _finite(displacement, (count, 3), "displacement")
        if colour is None:
            colour = np.linalg.norm(displacement, axis=1)
    if colour is None:
        return None, None
    colours = Colours.of(_finite(colour, (count,), "colour"), label)
    return None if displacement is None else magnify * displacement, colours


def _finite(values, shape: tuple[int, ...], name: str) -> np.ndarray:
    array = np.asarray(values, float)
    if array.shape != shape or not np.isfinite(array).all():
        raise InvalidInput(
            f"{name} must be {shape}, finite, one row per node; got {array.shape}"
        )
    return array


def lattice_stage(
    spec: LatticeSpec,
    displacement: np.ndarray | None = None,
    colours: Colours | None = None,
    *,
    actuators: Sequence[Control] = (),
    port: int | None = None,
) -> Stage:
    """A lattice in a new Meshcat server.

    Args:
        spec: lattice and strut.
        displacement: drawn displacements of the nodes (N, 3) [m].
        colours: colours of the nodes.
        actuators: actuators, drawn as thick rods.
        port: port of the server.
    """
    lattice = spec.lattice
    radius = strut_radius(lattice, max(spec.strut.d1, spec.strut.d2))
    places = lattice.positions
    if displacement is not None:
        places = places + displacement
    margin = 3 * radius
    both = np.vstack([places, lattice.positions])
    stage = make_stage(both.min(axis=0) - margin, both.max(axis=0) + margin, port=port)
    _draw(stage, lattice, places, radius, colours)
    if displacement is not None:
        draw_rest(stage.meshcat, lattice, _REST)
    rows = actuator_nodes(lattice, actuators)
    for i, colour in enumerate(rod_colours([a.name for a in actuators])):
        rod, faces = tubes(places[rows[i, :1]], places[rows[i, 1:]], 3.5 * radius, 16)
        _mesh(stage, f"{LATTICE}/actuators/{i}", rod, faces, Rgba(*colour))
    return stage


def draw_rest(meshcat: Meshcat, lattice: Lattice, colour: Rgba) -> None:
    """The struts at rest as thin lines."""
    ends = lattice.positions[lattice.beams]
    meshcat.SetLineSegments(
        f"{LATTICE}/rest",
        np.asfortranarray(ends[:, 0].T),
        np.asfortranarray(ends[:, 1].T),
        1.0,
        colour,
    )


def _draw(stage: Stage, lattice: Lattice, places, radius: float, colours) -> None:
    ends = places[lattice.beams]
    # Coarser where there are many, for the page's size.
    count = len(lattice.beams)
    sides = 10 if count <= 1000 else 6 if count <= 4000 else 4
    corners, faces = tubes(ends[:, 0], ends[:, 1], radius, sides)
    rgb = None
    if colours is not None:
        rgb = np.broadcast_to(
            colours.rgb[lattice.beams][:, :, None], corners.shape
        ).reshape(-1, 3)
    _mesh(stage, f"{LATTICE}/struts", corners, faces, Rgba(*_STRUT), rgb)
    corners, faces = balls(places, 2.0 * radius, fine=count <= 4000)
    if colours is not None:
        rgb = np.repeat(colours.rgb, corners.shape[1], axis=0)
    _mesh(stage, f"{LATTICE}/nodes", corners, faces, Rgba(*_NODE), rgb)


def _mesh(stage: Stage, path: str, corners, faces, rgba: Rgba, rgb=None) -> None:
    corners = np.asfortranarray(corners.reshape(-1, 3).T)
    faces = np.asfortranarray(faces.T.astype(np.int32))
    if rgb is None:
        stage.meshcat.SetTriangleMesh(path, corners, faces, rgba)
    else:
        # Meshcat takes vertex colours as linear light; with 0.85 for its lights they
        # appear as in the legend.
        light = 0.85 * np.where(rgb > 0.04, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
        stage.meshcat.SetTriangleColorMesh(
            path, corners, faces, np.asfortranarray(light.T)
        )


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
    along = ends - starts
    along = along / np.linalg.norm(along, axis=1, keepdims=True)
    # The axis least along the beam is never parallel to it.
    least = np.eye(3)[np.argmin(np.abs(along), axis=1)]
    first = np.cross(along, least)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(along, first)
    angle = 2 * np.pi * np.arange(sides) / sides
    ring = radius * (
        np.cos(angle)[:, None] * first[:, None]
        + np.sin(angle)[:, None] * second[:, None]
    )
    corners = np.stack([starts[:, None] + ring, ends[:, None] + ring], axis=1)
    k = np.arange(sides)
    after = (k + 1) % sides
    quads = np.vstack(
        [
            np.stack([k, after, sides + k], axis=1),
            np.stack([after, sides + after, sides + k], axis=1),
        ]
    )
    offset = 2 * sides * np.arange(len(starts))
    return corners, (offset[:, None, None] + quads).reshape(-1, 3)


def balls(
    centres: np.ndarray, radius: float, fine: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Spheres of 80 triangles when fine, otherwise of 8.

    Returns:
        Corners (N, C, 3) and triangles (F, 3) of the corners counted in that order.
    """
    corners = np.vstack([np.eye(3), -np.eye(3)])
    if fine:
        # An icosahedron and the middles of its edges.
        third = np.array(
            [[0, a, b * (1 + 5**0.5) / 2] for a in (-1, 1) for b in (-1, 1)]
        )
        corners = np.vstack([np.roll(third, k, axis=1) for k in range(3)])
        edges = np.argwhere(np.triu(np.isclose(cdist(corners, corners), 2)))
        corners = np.vstack([corners, corners[edges].sum(axis=1)])
        corners /= np.linalg.norm(corners, axis=1, keepdims=True)
    faces = ConvexHull(corners).simplices
    inward = np.linalg.det(corners[faces]) < 0
    faces[inward] = faces[inward, ::-1]
    placed = centres[:, None] + radius * corners
    offset = len(corners) * np.arange(len(centres))
    return placed, (offset[:, None, None] + faces).reshape(-1, 3)
