"""Voxel lattices: cuboctahedra that share nodes, on a half-pitch integer grid.

Voxel (i, j, k) has its centre at c = (2i+1, 2j+1, 2k+1) half pitches and six
nodes c -+ e_x, c -+ e_y, c -+ e_z, numbered

    0: -x   1: -y   2: -z   3: +x   4: +y   5: +z

and twelve beams of length pitch/sqrt(2) between them. Neighbouring voxels share
one node and no beam. Every node has exactly one even coordinate: the axis along
which two voxels meet there. Source: Tebyani et al., "A Geometric Kinematic Model
for Flexible Voxel-Based Robots" (2022), Fig. 4.

A lattice's file is JSON or YAML, with lengths in m or as {value, unit}:

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
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree

import numpy as np

from drakebots.core.checks import array, between, check_value, one_of, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.files import (
    TOP,
    Fields,
    number,
    parse_yaml,
    reading,
    with_ending,
    write_text,
)
from drakebots.core.units import quantity
from drakebots.model import is_identified


@checked("strut")
class Strut:
    """A beam of rectangular section, bending alike about d1 and d2 when square.

        A = d1 d2,  I = d1^3 d2/12,  J = (1/3 - 0.2244/(max/min + 0.1607)) max min^3

    Raises:
        InvalidInput: for a value out of range, naming it.
    """

    d1: Annotated[float, positive("m")] = 1.27e-3
    """First side of the section."""
    d2: Annotated[float, positive("m")] = 1.27e-3
    """Second side of the section."""
    E: Annotated[float, positive("Pa")] = 6.894757e9
    """Young's modulus of the material."""
    nu: Annotated[float, between(-1, 0.5, open_ends=True)] = 0.35
    """Poisson's ratio of the material, within -1..0.5."""
    rho: Annotated[float, positive("kg/m^3")] = 1420.0
    """Density of the material."""

    @property
    def G(self) -> float:
        """Shear modulus [Pa]."""
        return self.E / (2 * (1 + self.nu))

    @property
    def area(self) -> float:
        """Area A of the section [m^2]."""
        return self.d1 * self.d2

    @property
    def I1(self) -> float:
        """Second moment about the axis along d2 [m^4]."""
        return self.d1**3 * self.d2 / 12

    @property
    def I2(self) -> float:
        """Second moment about the axis along d1 [m^4]."""
        return self.d2**3 * self.d1 / 12

    @property
    def J(self) -> float:
        """Torsion constant [m^4]."""
        thick, thin = max(self.d1, self.d2), min(self.d1, self.d2)
        return (0.33333 - 0.2244 / (thick / thin + 0.1607)) * thick * thin**3


PRESETS = {
    "ultem20gf_1p27": Strut(),
    "nylon_2p0": Strut(2e-3, 2e-3, 1.8e9, 0.39, 1010.0),
    "gfrp_2p4": Strut(2.4e-3, 2.4e-3, 5.0e9, 0.35, 1300.0),
}
"""Struts by name: FERVOR's (from the authors' scripts), and two of ours with round
numbers, for 3-D printed and for moulded voxels."""


# --- voxels -----------------------------------------------------------------

OFFSETS = np.vstack([-np.eye(3, dtype=int), np.eye(3, dtype=int)])
"""Nodes 0..5 of a voxel from its centre (6, 3) [half pitches]."""

BEAMS = np.array(
    [
        *([0, 1], [0, 2], [0, 5], [0, 4], [1, 2], [1, 5]),
        *([1, 3], [2, 4], [2, 3], [5, 3], [5, 4], [4, 3]),
    ]
)
"""The nodes of a voxel's beams (12, 2)."""


LAST_VOXEL = 999_999
"""Largest index of a voxel."""


@checked(eq=False)
class Lattice:
    """A set of voxels.

    Raises:
        InvalidInput: for no voxel, an index that is not whole or out of range, a voxel
            given twice, or a pitch that is not > 0.
    """

    voxels: Annotated[
        np.ndarray, array((None, 3), of=int, entry=between(0, LAST_VOXEL))
    ]
    """Indices (i, j, k) of the voxels (V, 3), in the order given."""
    pitch: Annotated[float, positive("m")] = 0.0762
    """Edge of a voxel."""

    def __post_init__(self):
        if not len(self.voxels):
            raise InvalidInput("voxels must be one or more")
        unique, counts = np.unique(self.voxels, axis=0, return_counts=True)
        if (counts > 1).any():
            twice = tuple(unique[counts > 1][0].tolist())
            raise InvalidInput(f"voxel {twice} is given twice; leave one out")
        object.__setattr__(self, "pitch", float(self.pitch))

    @property
    def centres(self) -> np.ndarray:
        """Centres of the voxels (V, 3) [half pitches]."""
        return 2 * self.voxels + 1

    @cached_property
    def _numbered(self) -> tuple[np.ndarray, np.ndarray]:
        corners = (self.centres[:, None] + OFFSETS).reshape(-1, 3)
        nodes, inverse = np.unique(corners, axis=0, return_inverse=True)
        nodes.setflags(write=False)
        return nodes, inverse.reshape(-1, 6)

    @property
    def nodes(self) -> np.ndarray:
        """Places of the nodes (N, 3) [half pitches], sorted by x, then y, then z."""
        return self._numbered[0]

    @property
    def voxel_nodes(self) -> np.ndarray:
        """Row of each voxel's nodes 0..5 in `nodes` (V, 6)."""
        return self._numbered[1]

    @property
    def positions(self) -> np.ndarray:
        """Positions of the nodes (N, 3) [m]."""
        return self.nodes * (self.pitch / 2)

    @cached_property
    def beams(self) -> np.ndarray:
        """Rows of the nodes of each beam (12 V, 2), voxel by voxel."""
        return self.voxel_nodes[:, BEAMS].reshape(-1, 2)

    @property
    def beam_length(self) -> float:
        """Length of every beam, pitch/sqrt(2) [m]."""
        return self.pitch / np.sqrt(2.0)

    @property
    def even_axis(self) -> np.ndarray:
        """The axis along which two voxels meet in each node (N,)."""
        return np.argmin(self.nodes % 2, axis=1)

    def node(self, place: Sequence[int]) -> int:
        """The row of the node at (x, y, z) [half pitches].

        Raises:
            InvalidInput: when there is none.
        """
        place = np.asarray(place)
        found = np.flatnonzero((self.nodes == place).all(axis=1))
        if not len(found):
            raise InvalidInput(
                f"the lattice has no node at {tuple(place.tolist())} (half pitches); "
                "a node has one even coordinate and lies on a voxel's face"
            )
        return int(found[0])

    def voxel_of(self, node: int) -> tuple[int, int]:
        """A voxel that owns a node, and the node's number 0..5 in it."""
        voxel, number = np.argwhere(self.voxel_nodes == node)[0]
        return int(voxel), int(number)


def block(nx: int, ny: int, nz: int, pitch: float = 0.0762) -> Lattice:
    """A full block of nx x ny x nz voxels."""
    if min(nx, ny, nz) < 1:
        raise InvalidInput(f"a block needs sizes >= 1, got {nx} x {ny} x {nz}")
    return Lattice(np.argwhere(np.ones((nx, ny, nz))), pitch)


def from_array(filled, pitch: float = 0.0762) -> Lattice:
    """Voxels where a 0/1 array (nx, ny, nz) is 1."""
    marks = array((None, None, None), of=bool)
    return Lattice(np.argwhere(check_value("a lattice's array", filled, marks)), pitch)


# --- files ------------------------------------------------------------------

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
    others = (".dmd.yaml", ".drakebots.yaml")
    if Path(word).suffix.lower() not in ENDINGS or word.endswith(others):
        return False
    return not is_identified(Path(word))


def load_lattice(path: str | Path) -> LatticeSpec:
    """Reads a lattice by the ending of its file, one of `ENDINGS`.

    Raises:
        FileProblem: when the file is missing, malformed or of another kind; one line
            that names the entry and what it must be.
    """
    path = with_ending(path, ENDINGS)
    ending = path.suffix.lower()
    with reading(path):
        if ending.startswith(".vx"):
            return LatticeSpec(parse_vxa(path.read_bytes()), path=path)
        text = path.read_text(encoding="utf-8")
        spec = parse_lattice(_json(text) if ending == ".json" else parse_yaml(text))
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
    pitch = _quantity(top.get("pitch", Lattice.pitch), "pitch")
    lattice = (Lattice if key == "voxels" else from_array)(top.get(key), pitch)
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
    path = with_ending(path, [".json"])
    rows = ",\n    ".join(json.dumps(v) for v in lattice.voxels.tolist())
    made_of = f',\n  "strut": {json.dumps(asdict(strut))}' if strut else ""
    text = (
        f'{{\n  "pitch": {json.dumps(lattice.pitch)},\n'
        f'  "voxels": [\n    {rows}\n  ]{made_of}\n}}\n'
    )
    return write_text(path, text)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is not JSON: {error}") from error


def _quantity(node: Any, where: str) -> float:
    if isinstance(node, Mapping):
        return quantity(node, where)
    return number(node, where)


# --- VoxCAD -----------------------------------------------------------------


def parse_vxa(text: bytes) -> Lattice:
    """The lattice of a VoxCAD file; voxels of every material count.

    Raises:
        InvalidInput: when it is not XML, its compression is not ASCII_READABLE, its
            voxels are not cubes, or layers do not fit.
    """
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise InvalidInput("defines entities, which are not read; remove them")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InvalidInput(f"is not XML ({error}); save it again") from error
    structure = root if root.tag == "Structure" else root.find(".//Structure")
    if structure is None:
        raise InvalidInput("has no <Structure>; save it with its voxels")
    how = structure.get("Compression", "ASCII_READABLE")
    if how != "ASCII_READABLE":
        raise InvalidInput(f"its voxels are stored as {how}; save it as ASCII_READABLE")
    pitch = _vxa_number(root, "Lattice_Dim", Lattice.pitch)
    for axis in "XYZ":
        if _vxa_number(root, f"{axis}_Dim_Adj", 1.0) != 1.0:
            raise InvalidInput(f"<{axis}_Dim_Adj> is not 1; voxels must be cubes")
    return from_array(_filled(structure), pitch)


def _filled(structure: ElementTree.Element) -> np.ndarray:
    nx, ny, nz = (_count(structure, f"{axis}_Voxels") for axis in "XYZ")
    layers = [(layer.text or "").strip() for layer in structure.iterfind("Data/Layer")]
    if len(layers) != nz:
        raise InvalidInput(f"has {len(layers)} layers, <Z_Voxels> says {nz}")
    for z, layer in enumerate(layers):
        if len(layer) != nx * ny:
            raise InvalidInput(
                f"layer {z} has {len(layer)} voxels, not {nx} x {ny}; correct it"
            )
    material = np.array([list(layer) for layer in layers]).reshape(nz, ny, nx)
    return (material != "0").astype(int).transpose(2, 1, 0)


def _count(structure: ElementTree.Element, tag: str) -> int:
    text = structure.findtext(tag, "").strip()
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) < 10**6):
        raise InvalidInput(f"<{tag}> must be a whole number > 0, got {text!r}")
    return int(text)


def _vxa_number(root: ElementTree.Element, tag: str, default: float) -> float:
    text = root.findtext(f".//{tag}")
    try:
        return default if text is None else float(text)
    except ValueError as error:
        raise InvalidInput(f"<{tag}> must be a number, got {text!r}") from error
