"""A skin's motion as a series of VTU files, for ParaView."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput
from drakebots.core.files import check_output, replacing
from drakebots.fem.mesh import check_mesh, read_mesh, write_cells
from drakebots.model import Model, model_of, skin_path
from drakebots.results import Result
from drakebots.skin.file import read_skin


def write_vtu(result: Result, path: str | Path, model: Model | None = None) -> Path:
    """Writes a skin's motion: `run.pvd`, which ParaView opens, and `run/0000.vtu`, ...

    Each file holds the skin at one time: its vertices in the world [m], the
    `displacement` from rest [m], the von Mises `stress` [Pa] where the result has it,
    and whether a vertex is `glued`. Cells are the tets of the model's skin file, or
    the surface's triangles where that is gone or has changed.

    Args:
        result: result with a skin.
        path: file of the series (.pvd), in a folder that exists.
        model: model of the robot; found by the result's name if None.

    Raises:
        InvalidInput: for a result without a skin.
        FileProblem: for another ending, or a file that cannot be written.
    """
    path, data = Path(path), result.data
    if "skin_position" not in data or "skin_triangle" not in data:
        raise InvalidInput(f"a result of kind {result.kind} has no skin to write")
    if path.suffix.lower() != ".pvd":
        raise FileProblem(path, "needs the ending .pvd")
    check_output(path)
    folder = path.with_suffix("")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise FileProblem(folder, f"cannot be made ({error})") from error
    rest = data.skin_rest.values
    cells = _cells(result, model)
    glued = np.zeros(len(rest), np.int32)
    if "skin_glued" in data:
        glued[data.skin_glued.values] = 1
    series = ET.Element("VTKFile", type="Collection", version="0.1")
    collection = ET.SubElement(series, "Collection")
    for number, (time, x) in enumerate(zip(data.skin_time.values, data.skin_position)):
        values = {"displacement": x.values - rest, "glued": glued}
        if "skin_stress" in data:
            values["stress"] = data.skin_stress.values[number]
        file = folder / f"{number:04d}.vtu"
        write_cells(file, x.values, cells, values)
        entry = {"timestep": repr(float(time)), "file": f"{folder.name}/{file.name}"}
        ET.SubElement(collection, "DataSet", entry)
    ET.indent(series)
    with replacing(path) as part:
        part.write_text(ET.tostring(series, "unicode") + "\n", encoding="utf-8")
    return path


def _cells(result: Result, model: Model | None) -> np.ndarray:
    """Tets (n, 4) of the model's skin, or the surface's triangles (n, 3)."""
    try:
        beside = skin_path((model or model_of(result)).path)
        mesh, _ = check_mesh(read_mesh(beside.parent / read_skin(beside).mesh))
    except DrakebotsError:
        return result.data.skin_triangle.values
    rest = result.data.skin_rest.values
    same = mesh.vertices.shape == rest.shape
    if same and np.allclose(mesh.vertices, rest, rtol=1e-5, atol=1e-7):
        return mesh.tets
    return result.data.skin_triangle.values
