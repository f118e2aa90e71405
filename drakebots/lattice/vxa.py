"""Shapes of VoxCAD and its descendants: .vxa, .vxc, .vxd.

    <Structure Compression="ASCII_READABLE">
      <X_Voxels>2</X_Voxels> <Y_Voxels>1</Y_Voxels> <Z_Voxels>1</Z_Voxels>
      <Data> <Layer><![CDATA[10]]></Layer> </Data>
    </Structure>

One layer for each z, in it one character for each voxel, x fastest, then y: "0"
is empty, anything else a material. <Lattice_Dim> is the pitch [m]. Materials,
phases and the simulation's settings are not read.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from drakebots.errors import DrakebotsError, FileProblem
from drakebots.lattice.lattice import Lattice, from_array


def read_vxa(path: str | Path, pitch: float | None = None) -> Lattice:
    """The lattice of a VoxCAD file; every material is a voxel.

    Args:
        path: of the file.
        pitch: in place of the file's [m]; a file without one has ours.

    Raises:
        FileProblem: when it is missing or not XML, its compression is not
            ASCII_READABLE, its voxels are not cubes, or layers do not fit.
    """
    path = Path(path)
    try:
        text = path.read_bytes()
    except (OSError, ValueError) as error:
        raise FileProblem(path, f"cannot be read ({error}); check it") from error
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise FileProblem(path, "defines entities, which are not read; remove them")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise FileProblem(path, f"is not XML ({error}); save it again") from error
    structure = root if root.tag == "Structure" else root.find(".//Structure")
    if structure is None:
        raise FileProblem(path, "has no <Structure>; save it with its voxels")
    compression = structure.get("Compression", "ASCII_READABLE")
    if compression != "ASCII_READABLE":
        raise FileProblem(
            path,
            f"its voxels are stored as {compression}; save it as ASCII_READABLE",
        )
    if pitch is None:
        pitch = _number(path, root, "Lattice_Dim", Lattice.pitch)
    for axis in "XYZ":
        if _number(path, root, f"{axis}_Dim_Adj", 1.0) != 1.0:
            raise FileProblem(path, f"<{axis}_Dim_Adj> is not 1; voxels must be cubes")
    try:
        return from_array(_filled(path, structure), pitch)
    except DrakebotsError as error:
        if isinstance(error, FileProblem):
            raise
        raise FileProblem(path, str(error)) from error


def _filled(path: Path, structure: ElementTree.Element) -> np.ndarray:
    shape = [_count(path, structure, f"{axis}_Voxels") for axis in "XYZ"]
    nx, ny, nz = shape
    layers = [(layer.text or "").strip() for layer in structure.iterfind("Data/Layer")]
    if len(layers) != nz:
        raise FileProblem(path, f"has {len(layers)} layers, <Z_Voxels> says {nz}")
    for z, layer in enumerate(layers):
        if len(layer) != nx * ny:
            raise FileProblem(
                path, f"layer {z} has {len(layer)} voxels, not {nx} x {ny}; mend it"
            )
    material = np.array([list(layer) for layer in layers]).reshape(nz, ny, nx)
    return (material != "0").astype(int).transpose(2, 1, 0)


def _count(path: Path, structure: ElementTree.Element, tag: str) -> int:
    text = structure.findtext(tag, "").strip()
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) < 10**6):
        raise FileProblem(path, f"<{tag}> must be a whole number > 0, got {text!r}")
    return int(text)


def _number(path: Path, root: ElementTree.Element, tag: str, default: float) -> float:
    text = root.findtext(f".//{tag}")
    try:
        return default if text is None else float(text)
    except ValueError as error:
        raise FileProblem(path, f"<{tag}> must be a number, got {text!r}") from error
