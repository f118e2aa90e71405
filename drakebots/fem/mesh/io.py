"""Reads and writes tet meshes (.vtk, .vtu, .msh, .mesh).

meshio does it, called by :func:`_meshio_read` and :func:`_meshio_write` alone: its last
release is of January 2024, so it may have to be replaced one day.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Mapping
from pathlib import Path

import meshio
import numpy as np

from drakebots.core.errors import FileProblem
from drakebots.core.files import replacing
from drakebots.fem.mesh.mesh import TetMesh

REGION_NAMES = ("region", "gmsh:physical", "medit:ref", "cell_scalars")
"""Names of cell data that may hold the region; the first match is used."""

FORMATS = {".vtk": "vtk", ".vtu": "vtu", ".msh": "gmsh22", ".mesh": "medit"}
"""meshio's name of each suffix."""


def read_mesh(path: str | Path) -> TetMesh:
    """Reads the tets of a file and ignores other cells (triangles, lines).

    The region of a tet is the first of REGION_NAMES among the cell data, else 0.
    The mesh is not checked: call :func:`~drakebots.fem.mesh.check.check_mesh` before
    computing on it.

    Raises:
        FileProblem: for a file that is missing, has another format, cannot be
            read or holds no linear tets.
        InvalidInput: for positions that are not finite.
    """
    path = Path(path)
    _check_suffix(path)
    if not os.path.isfile(path):
        raise FileProblem(path, "no such mesh file")
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
    path = Path(path)
    _check_suffix(path)
    suffix = path.suffix.lower()
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


def _check_suffix(path):
    if path.suffix.lower() not in FORMATS:
        raise FileProblem(
            path, f"suffix {path.suffix!r} is not a tet mesh: use {', '.join(FORMATS)}"
        )
