"""Voxel lattices: cuboctahedra that share nodes, on a half-pitch integer grid.

Voxel (i, j, k) has its centre at c = (2i+1, 2j+1, 2k+1) half pitches and six
nodes c -+ e_x, c -+ e_y, c -+ e_z, numbered

    0: -x   1: -y   2: -z   3: +x   4: +y   5: +z

and twelve beams of length pitch/sqrt(2) between them. Neighbouring voxels share
one node and no beam. Every node has exactly one even coordinate: the axis along
which two voxels meet there. Source: Tebyani et al., "A Geometric Kinematic Model
for Flexible Voxel-Based Robots" (2022), Fig. 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated

import numpy as np

from drakebots.core.checks import between, check_value, numeric, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked


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

OFFSETS = np.array(
    [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
)
"""Nodes 0..5 of a voxel from its centre (6, 3) [half pitches]."""

BEAMS = np.array(
    [
        *([0, 1], [0, 2], [0, 5], [0, 4], [1, 2], [1, 5]),
        *([1, 3], [2, 4], [2, 3], [5, 3], [5, 4], [4, 3]),
    ]
)
"""The nodes of a voxel's beams (12, 2)."""


@checked(eq=False)
class Lattice:
    """A set of voxels.

    Raises:
        InvalidInput: for no voxel, an index < 0, a voxel given twice, or a
            pitch that is not > 0.
    """

    voxels: np.ndarray
    """Indices (i, j, k) >= 0 of the voxels (V, 3), in the order given."""
    pitch: Annotated[float, positive("m")] = 0.0762
    """Edge of a voxel."""

    def __post_init__(self):
        given = check_value("voxels", self.voxels, numeric())
        if given.ndim != 2 or given.shape[1] != 3 or not len(given):
            raise InvalidInput(f"voxels must be (n, 3), n >= 1, got {given.shape}")
        voxels = given.astype(int)
        if (voxels != given).any() or voxels.min() < 0:
            bad = given[((voxels != given) | (voxels < 0)).any(axis=1)][0]
            raise InvalidInput(f"voxel {tuple(bad.tolist())}: indices are whole, >= 0")
        unique, counts = np.unique(voxels, axis=0, return_counts=True)
        if (counts > 1).any():
            twice = tuple(unique[counts > 1][0].tolist())
            raise InvalidInput(f"voxel {twice} is given twice; leave one out")
        voxels.setflags(write=False)
        object.__setattr__(self, "voxels", voxels)
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
    filled = np.asarray(filled)
    if filled.ndim != 3 or not np.isin(filled, (0, 1)).all():
        raise InvalidInput("a lattice's array must be (nx, ny, nz) of 0 and 1")
    return Lattice(np.argwhere(filled == 1), pitch)
