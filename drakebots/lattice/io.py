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

import numpy as np
import yaml

from drakebots.errors import DrakebotsError, FileProblem, InvalidInput
from drakebots.lattice.lattice import Lattice, from_array
from drakebots.lattice.strut import Strut, preset
from drakebots.lattice.vxa import read_vxa
from drakebots.results.container import replacing
from drakebots.units import quantity

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
