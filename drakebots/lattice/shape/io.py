"""Lattices from files and to files.

JSON or YAML, lengths in m, or {value, unit}:

    pitch: {value: 76.2, unit: mm}
    voxels: [[0, 0, 0], [1, 0, 0]]     # or array: 0/1 by [x][y][z]
    strut: ultem20gf_1p27              # or {d1, d2, E, nu, rho}, SI

and VoxCAD's .vxa, .vxc and .vxd (vxa.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import yaml

from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput
from drakebots.core.files import replacing
from drakebots.core.units import quantity
from drakebots.lattice.shape.lattice import Lattice, Strut, from_array, preset

# Shapes of VoxCAD and its descendants: .vxa, .vxc, .vxd.
#
#     <Structure Compression="ASCII_READABLE">
#       <X_Voxels>2</X_Voxels> <Y_Voxels>1</Y_Voxels> <Z_Voxels>1</Z_Voxels>
#       <Data> <Layer><![CDATA[10]]></Layer> </Data>
#     </Structure>
#
# One layer for each z, in it one character for each voxel, x fastest, then y: "0"
# is empty, anything else a material. <Lattice_Dim> is the pitch [m]. Materials,
# phases and the simulation's settings are not read.


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
        pitch = _vxa_number(path, root, "Lattice_Dim", Lattice.pitch)
    for axis in "XYZ":
        if _vxa_number(path, root, f"{axis}_Dim_Adj", 1.0) != 1.0:
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


def _vxa_number(
    path: Path, root: ElementTree.Element, tag: str, default: float
) -> float:
    text = root.findtext(f".//{tag}")
    try:
        return default if text is None else float(text)
    except ValueError as error:
        raise FileProblem(path, f"<{tag}> must be a number, got {text!r}") from error


KEYS = ("pitch", "voxels", "array", "strut")
ENDINGS = (".json", ".yaml", ".yml", ".vxa", ".vxc", ".vxd")


@dataclass(frozen=True)
class LatticeSpec:
    """A lattice and what its beams are made of."""

    lattice: Lattice
    strut: Strut = field(default_factory=Strut)


def load_lattice(path: str | Path) -> LatticeSpec:
    """Reads a lattice by the ending of its file, one of `ENDINGS`.

    Raises:
        FileProblem: when the file is missing, malformed or of another kind;
            one line that names the entry and what it may be.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise FileProblem(path, f"a lattice's file ends in {', '.join(ENDINGS)}")
    if ending.startswith(".vx"):
        return LatticeSpec(read_vxa(path))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise FileProblem(path, f"cannot be read ({error}); check it") from error
    try:
        loads = json.loads if ending == ".json" else _yaml
        raw = loads(text)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        kind = "JSON" if ending == ".json" else "YAML"
        raise FileProblem(path, f"is not {kind} ({error}); mend it") from error
    try:
        return parse_lattice(raw)
    except DrakebotsError as error:
        raise FileProblem(path, str(error)) from error


def parse_lattice(raw: Any) -> LatticeSpec:
    """A lattice from a parsed JSON or YAML document.

    Raises:
        InvalidInput: for an unknown or missing key, or a bad value.
        UnknownName: for a strut that is no preset.
    """
    if not isinstance(raw, Mapping):
        raise InvalidInput(f"a lattice is a mapping with the keys {', '.join(KEYS)}")
    unknown = sorted({str(k) for k in raw} - set(KEYS))
    if unknown:
        raise InvalidInput(f"unknown key {unknown[0]}; known: {', '.join(KEYS)}")
    if ("voxels" in raw) == ("array" in raw):
        raise InvalidInput("give either voxels, a list of [i, j, k], or array, 0/1")
    pitch = _number(raw.get("pitch", Lattice.pitch), "pitch")
    key = "voxels" if "voxels" in raw else "array"
    values = _numbers(raw[key], key)
    lattice = (Lattice if key == "voxels" else from_array)(values, pitch)
    return LatticeSpec(lattice, _strut(raw.get("strut")))


def save_lattice(
    path: str | Path, lattice: Lattice, strut: Strut | None = None
) -> Path:
    """Writes a .json that :func:`load_lattice` reads back as it was, atomically.

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
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def _strut(node: Any) -> Strut:
    if node is None:
        return Strut()
    if isinstance(node, str):
        return preset(node)
    names = [f.name for f in fields(Strut)]
    if not isinstance(node, Mapping) or not set(node) <= set(names):
        raise InvalidInput(
            f"strut is the name of a preset, or a mapping with {', '.join(names)}"
        )
    return Strut(**{k: _number(v, f"strut: {k}") for k, v in node.items()})


def _number(node: Any, where: str) -> float:
    if isinstance(node, Mapping):
        return quantity(node, where)
    if isinstance(node, bool) or not isinstance(node, int | float):
        raise InvalidInput(f"{where} must be a number or {{value, unit}}, got {node!r}")
    return float(node)


def _numbers(node: Any, key: str) -> np.ndarray:
    """Whole numbers of any shape; anything else is named."""
    try:
        array = np.array(node)
    except ValueError as error:  # rows of several lengths
        raise InvalidInput(f"{key}: its rows must be of one length") from error
    if array.dtype.kind not in "iub" or not isinstance(node, Sequence):
        raise InvalidInput(f"{key} must hold whole numbers only")
    if array.size and np.abs(array).max() >= 10**6:
        raise InvalidInput(f"{key}: indices must be below a million")
    return array.astype(int)


class _Loader(yaml.SafeLoader):
    """Without anchors: a short file could ask for all memory with them."""

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("anchors (&, *) are not read in lattices")
        return super().compose_node(parent, index)


def _yaml(text: str) -> Any:
    return yaml.load(text, Loader=_Loader)
