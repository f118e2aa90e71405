"""Lattices from files and to files.

JSON or YAML, with lengths in m or as {value, unit}:

    pitch: {value: 76.2, unit: mm}
    voxels: [[0, 0, 0], [1, 0, 0]]     # or array: 0/1 by [x][y][z]
    strut: ultem20gf_1p27              # or {d1, d2, E, nu, rho}, SI

and the shapes of VoxCAD and its descendants, .vxa, .vxc and .vxd:

    <Structure Compression="ASCII_READABLE">
      <X_Voxels>2</X_Voxels> <Y_Voxels>1</Y_Voxels> <Z_Voxels>1</Z_Voxels>
      <Data> <Layer><![CDATA[10]]></Layer> </Data>
    </Structure>

There each layer along z has one character for each voxel, x fastest, then y: "0" is
empty, anything else a material. <Lattice_Dim> is the pitch [m]. Materials, phases and
the simulation's settings are not read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import yaml

from drakebots.core.checks import check_value, one_of
from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.core.files import TOP, Fields, number, parse_yaml, reading, write_text
from drakebots.core.units import quantity
from drakebots.lattice.shape.lattice import PRESETS, Lattice, Strut, from_array

ENDINGS = (".json", ".yaml", ".yml", ".vxa", ".vxc", ".vxd")
"""Endings of a lattice's file."""


@dataclass(frozen=True)
class LatticeSpec:
    """A lattice, and the section and material of its beams.

    Attributes:
        lattice: the voxels.
        strut: section and material of the beams.
        path: file that it was read from.
    """

    lattice: Lattice
    strut: Strut = field(default_factory=Strut)
    path: Path | None = field(default=None, compare=False)

    @classmethod
    def from_file(cls, path: str) -> LatticeSpec:
        """The lattice of a file; see :func:`load_lattice`."""
        return load_lattice(path)


def names_lattice(word: str) -> bool:
    """Whether a word of a command line names a lattice's file."""
    return Path(word).suffix.lower() in ENDINGS and not word.endswith(
        (".dmd.yaml", ".drakebots.yaml")
    )


def load_lattice(path: str | Path) -> LatticeSpec:
    """Reads a lattice by the ending of its file, one of `ENDINGS`.

    Raises:
        FileProblem: when the file is missing, malformed or of another kind; one line
            that names the entry and what it must be.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise FileProblem(path, f"a lattice's file ends in {', '.join(ENDINGS)}")
    if ending.startswith(".vx"):
        return LatticeSpec(read_vxa(path), path=path)
    with reading(path):
        text = _read(path).decode("utf-8")
        spec = parse_lattice(_json(text) if ending == ".json" else _yaml(text))
        return replace(spec, path=path)


def parse_lattice(raw: Any) -> LatticeSpec:
    """A lattice from a parsed JSON or YAML document.

    Raises:
        InvalidInput: for a missing entry or a bad value.
        UnknownName: for an unknown entry, or a strut that is not a preset.
    """
    top = Fields(raw, TOP, ("pitch", "voxels", "array", "strut"))
    if ("voxels" in top) == ("array" in top):
        raise InvalidInput("give either voxels, a list of [i, j, k], or array, 0/1")
    key = "voxels" if "voxels" in top else "array"
    values = _whole_numbers(top.get(key), key)
    pitch = _quantity(top.get("pitch", Lattice.pitch), "pitch")
    lattice = (Lattice if key == "voxels" else from_array)(values, pitch)
    strut = top.get("strut", None)
    if strut is None:
        return LatticeSpec(lattice)
    if isinstance(strut, str):
        name = check_value("strut", strut, one_of("strut", PRESETS))
        return LatticeSpec(lattice, PRESETS[name])
    given = Fields(strut, "strut", [f.name for f in fields(Strut)])
    sizes = {name: _quantity(given.get(name), f"strut {name}") for name in given}
    return LatticeSpec(lattice, Strut(**sizes))


def save_lattice(
    path: str | Path, lattice: Lattice, strut: Strut | None = None
) -> Path:
    """Writes a .json that :func:`load_lattice` reads back exactly, atomically.

    Raises:
        FileProblem: when it cannot be written; nothing is left behind.
    """
    path = Path(path)
    if path.suffix.lower() != ".json":
        raise FileProblem(path, "lattices are saved as .json; rename it")
    rows = ",\n    ".join(json.dumps(v) for v in lattice.voxels.tolist())
    made_of = f',\n  "strut": {json.dumps(asdict(strut))}' if strut else ""
    text = (
        f'{{\n  "pitch": {json.dumps(lattice.pitch)},\n'
        f'  "voxels": [\n    {rows}\n  ]{made_of}\n}}\n'
    )
    write_text(path, text)
    return path


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise FileProblem(path, f"cannot be read ({error}); check it") from error


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is not JSON: {error}") from error


def _yaml(text: str) -> Any:
    document = parse_yaml(text)
    # With aliases a short file could stand for more voxels than memory holds.
    if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
        raise InvalidInput("anchors (&, *) are not read in lattices; write them out")
    return document


def _quantity(node: Any, where: str) -> float:
    if isinstance(node, Mapping):
        return quantity(node, where)
    return number(node, where)


def _whole_numbers(node: Any, key: str) -> np.ndarray:
    try:
        array = np.array(node)
    except ValueError as error:  # rows of several lengths
        raise InvalidInput(f"{key}: all rows must have the same length") from error
    if array.dtype.kind not in "iub" or not isinstance(node, Sequence):
        raise InvalidInput(f"{key} must hold whole numbers only")
    if array.size and np.abs(array).max() >= 10**6:
        raise InvalidInput(f"{key}: indices must be below a million")
    return array.astype(int)


# --- VoxCAD -----------------------------------------------------------------


def read_vxa(path: str | Path, pitch: float | None = None) -> Lattice:
    """The lattice of a VoxCAD file; voxels of every material count.

    Args:
        path: the file.
        pitch: pitch instead of the file's [m]; a file without one has the default.

    Raises:
        FileProblem: when it is missing or not XML, its compression is not
            ASCII_READABLE, its voxels are not cubes, or layers do not fit.
    """
    path = Path(path)
    text = _read(path)
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
        pitch = _vxa_number(path, root, "Lattice_Dim", Lattice.pitch)
    for axis in "XYZ":
        if _vxa_number(path, root, f"{axis}_Dim_Adj", 1.0) != 1.0:
            raise FileProblem(path, f"<{axis}_Dim_Adj> is not 1; voxels must be cubes")
    with reading(path):
        return from_array(_filled(path, structure), pitch)


def _filled(path: Path, structure: ElementTree.Element) -> np.ndarray:
    shape = [_count(path, structure, f"{axis}_Voxels") for axis in "XYZ"]
    nx, ny, nz = shape
    layers = [(layer.text or "").strip() for layer in structure.iterfind("Data/Layer")]
    if len(layers) != nz:
        raise FileProblem(path, f"has {len(layers)} layers, <Z_Voxels> says {nz}")
    for z, layer in enumerate(layers):
        if len(layer) != nx * ny:
            raise FileProblem(
                path, f"layer {z} has {len(layer)} voxels, not {nx} x {ny}; correct it"
            )
    material = np.array([list(layer) for layer in layers]).reshape(nz, ny, nx)
    return (material != "0").astype(int).transpose(2, 1, 0)


def _count(path: Path, structure: ElementTree.Element, tag: str) -> int:
    text = structure.findtext(tag, "").strip()
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) < 10**6):
        raise FileProblem(path, f"<{tag}> must be a whole number > 0, got {text!r}")
    return int(text)


def _vxa_number(
    path: Path, root: ElementTree.Element, tag: str, default: float
) -> float:
    text = root.findtext(f".//{tag}")
    try:
        return default if text is None else float(text)
    except ValueError as error:
        raise FileProblem(path, f"<{tag}> must be a number, got {text!r}") from error
