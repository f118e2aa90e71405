"""Reads, checks and writes tet meshes (.vtk, .vtu, .msh, .mesh).

meshio does it, called by :func:`_meshio_read` and :func:`_meshio_write` alone: its last
release is of January 2024, so it may have to be replaced one day.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import meshio
import numpy as np

from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.core.files import replacing, with_ending
from drakebots.fem.mesh.mesh import (
    EDGES,
    TetMesh,
    connected_pieces,
    surface_faces,
    tet_volumes,
)

REGION_NAMES = ("region", "gmsh:physical", "medit:ref", "cell_scalars")
"""Names of cell data that may hold the region; the first match is used."""

FORMATS = {".vtk": "vtk", ".vtu": "vtu", ".msh": "gmsh22", ".mesh": "medit"}
"""meshio's name of each suffix."""


def read_mesh(path: str | Path) -> TetMesh:
    """Reads the tets of a file and ignores other cells (triangles, lines).

    The region of a tet is the first of REGION_NAMES among the cell data, else 0.
    The mesh is not checked: call :func:`~drakebots.fem.mesh.check_mesh` before
    computing on it.

    Raises:
        FileProblem: for a file that is missing, has another format, cannot be
            read or holds no linear tets.
        InvalidInput: for positions that are not finite.
    """
    path = with_ending(path, FORMATS)
    points, cells, cell_data = _meshio_read(path)
    blocks = [i for i, (kind, _) in enumerate(cells) if kind == "tetra"]
    if not blocks:
        found = ", ".join(sorted({kind for kind, _ in cells})) or "nothing"
        raise FileProblem(
            path, f"holds no linear tets (found {found}); mesh the volume"
        )
    tets = np.concatenate([cells[i][1] for i in blocks])
    region = None
    for name in REGION_NAMES:
        if name in cell_data:
            values = np.concatenate([cell_data[name][i] for i in blocks])
            if values.ndim == 1 and np.all(values == np.round(values)):
                region = values.astype(np.int64)
                break
    return TetMesh(points[:, :3], tets.astype(np.int64), region)


def write_mesh(path: str | Path, mesh: TetMesh, *, small: bool = False) -> None:
    """Writes a mesh with its regions; the suffix chooses the format.

    Args:
        path: file with one of the suffixes of FORMATS.
        mesh: the mesh.
        small: whether to store positions as float32 and tets as int32.

    Raises:
        FileProblem: for an unknown suffix or a file that cannot be written.
    """
    suffix = with_ending(path, FORMATS).suffix.lower()
    name = {".msh": "gmsh:physical", ".mesh": "medit:ref"}.get(suffix, "region")
    region = mesh.region.astype(np.int32)
    data, options = {name: region}, {}
    if suffix == ".msh":
        data["gmsh:geometrical"] = region
        options["binary"] = False
    vertices, tets = mesh.vertices, mesh.tets
    if small:
        vertices, tets = vertices.astype(np.float32), tets.astype(np.int32)
    with replacing(path) as part:
        _meshio_write(part, vertices, tets, FORMATS[suffix], cell_data=data, **options)


def _meshio_read(path):
    """Points (n, 3), cells [(kind, (k, m) numbers)], and {name: [values a block]}."""
    try:
        # On bad files meshio prints a message and calls sys.exit.
        silent = io.StringIO()
        with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
            data = meshio.read(path)
    except (Exception, SystemExit) as error:
        known = isinstance(error, meshio.ReadError | OSError) and str(error)
        reason = known or "it is damaged; write it again"
        raise FileProblem(path, f"cannot be read as a mesh: {reason}") from error
    return data.points, [(b.type, b.data) for b in data.cells], data.cell_data


def _meshio_write(path, points, cells, form, *, cell_data=(), point_data=(), **options):
    kind = "tetra" if cells.shape[1] == 4 else "triangle"
    blocks = {name: [values] for name, values in dict(cell_data).items()}
    mesh = meshio.Mesh(points, [(kind, cells)], dict(point_data), blocks)
    meshio.write(path, mesh, file_format=form, **options)


def write_cells(
    path: Path, points: np.ndarray, cells: np.ndarray, values: Mapping[str, np.ndarray]
) -> None:
    """Writes tets (n, 4) or triangles (n, 3) with values at their points as VTU.

    Raises:
        FileProblem: for a file that cannot be written.
    """
    with replacing(path) as part:
        _meshio_write(part, points, cells, "vtu", point_data=values)


# --- checks -----------------------------------------------------------------------

SLIVER = 0.1
"""Tets of a lower quality count as slivers."""


@dataclass(frozen=True)
class MeshReport:
    """Findings of :func:`check_mesh`.

    Attributes:
        vertices, tets, surface_triangles: numbers of each after the repair.
        flipped: number of inverted tets whose corners were reordered.
        dropped_vertices: number of removed vertices that no tet used.
        pieces: number of parts that share no vertex.
        slivers: number of tets of quality below SLIVER.
        worst_quality: of the flattest tet; 1 is that of a regular one, 0 of a flat one.
        volume: volume of all tets [m^3].
        edge_m: shortest, mean and longest edge [m].
        notes: one line for each finding.
    """

    vertices: int
    tets: int
    surface_triangles: int
    flipped: int
    dropped_vertices: int
    pieces: int
    slivers: int
    worst_quality: float
    volume: float
    edge_m: tuple[float, float, float]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        low, mean, high = (1e3 * e for e in self.edge_m)
        head = (
            f"{self.vertices} vertices, {self.tets} tets, "
            f"{self.surface_triangles} surface triangles, "
            f"volume {self.volume * 1e6:.4g} cm^3, "
            f"edges {low:.3g}/{mean:.3g}/{high:.3g} mm, "
            f"worst quality {self.worst_quality:.2g}"
        )
        return "\n".join([head, *(f"note: {note}" for note in self.notes)])


def tet_quality(vertices: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """Mean ratio 12 (3 V)^(2/3) / sum of squared edges (m,), signed as V.

    1 for a regular tet, 0 for a flat one (Liu and Joe 1994).
    """
    volume = tet_volumes(vertices, tets)
    square = _edge_lengths(vertices, tets) ** 2
    total = np.maximum(square.sum(axis=1), np.finfo(float).tiny)
    return np.sign(volume) * 12 * (3 * np.abs(volume)) ** (2 / 3) / total


def check_mesh(mesh: TetMesh) -> tuple[TetMesh, MeshReport]:
    """A mesh that can be computed on, and the report of what was changed.

    Tets of negative volume are reordered and vertices that no tet uses are removed,
    each with a note; slivers and separate pieces are only noted.

    Args:
        mesh: the mesh as read or made.

    Raises:
        InvalidInput: for a degenerate tet (repeated corner or no volume), a tet
            listed twice, or a face of three tets.
    """
    notes = []
    vertices, tets = mesh.vertices, mesh.tets.copy()
    flipped = mesh.volumes < 0
    if flipped.any():
        tets[flipped] = tets[flipped][:, [0, 2, 1, 3]]
        notes.append(f"{flipped.sum()} inverted tets were reordered")
    quality = _sound_quality(vertices, tets)
    worst = int(np.argmin(quality))
    slivers = int((quality < SLIVER).sum())
    if slivers:
        notes.append(
            f"{slivers} slivers of quality < {SLIVER}, worst tet {worst}: "
            "they make the tangent stiff and ill-conditioned"
        )
    used, renumbered = np.unique(tets, return_inverse=True)
    dropped = len(vertices) - len(used)
    if dropped:
        notes.append(f"{dropped} vertices that no tet uses were removed")
        vertices, tets = vertices[used], renumbered.reshape(tets.shape)
    pieces, _ = connected_pieces(tets, len(vertices))
    if pieces > 1:
        notes.append(f"{pieces} pieces share no vertex")
    checked = TetMesh(vertices, tets, mesh.region)
    length = _edge_lengths(vertices, tets)
    return checked, MeshReport(
        vertices=len(vertices),
        tets=len(tets),
        surface_triangles=len(surface_faces(checked)[0]),
        flipped=int(flipped.sum()),
        dropped_vertices=dropped,
        pieces=pieces,
        slivers=slivers,
        worst_quality=float(quality[worst]),
        volume=float(checked.volumes.sum()),
        edge_m=(float(length.min()), float(length.mean()), float(length.max())),
        notes=tuple(notes),
    )


def _edge_lengths(vertices, tets):
    ends = vertices[tets[:, EDGES]]
    return np.linalg.norm(ends[:, :, 1] - ends[:, :, 0], axis=2)


def _sound_quality(vertices, tets):
    """Quality of the tets (m,); refuses degenerate ones, and what is listed twice."""
    corners = np.sort(tets, axis=1)
    bad = np.flatnonzero((np.diff(corners, axis=1) == 0).any(axis=1))
    if bad.size:
        raise InvalidInput(
            f"mesh tet {bad[0]}: corners {tets[bad[0]].tolist()} repeat a vertex "
            f"({bad.size} such tets); mesh again"
        )
    _, first, count = np.unique(corners, axis=0, return_index=True, return_counts=True)
    if count.max() > 1:
        tet = int(first[np.argmax(count)])
        raise InvalidInput(f"mesh tet {tet} is listed {count.max()} times; keep one")
    quality = tet_quality(vertices, tets)
    worst = int(np.argmin(quality))
    if quality[worst] < 1e-9:
        raise InvalidInput(
            f"mesh tet {worst} with corners {tets[worst].tolist()} has no volume; "
            "collapse it or mesh again"
        )
    return quality
