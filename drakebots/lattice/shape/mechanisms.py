"""All mechanisms of a lattice, in a readable basis.

The null space of the rigidity matrix holds, in this order,

    rigid motions | planes of motion | what the planes miss

A block with all sizes >= 2 has 6 + nx + ny + nz zero modes: the planes of motion
span its mechanisms. Slabs one voxel thick and parts that hang on one node have more.
Those are made as local as possible: parts that rotate about the node they hang on,
then modes in which only a voxel, a pair or a square of voxels rotates, then the rest.
Source: ours; the paper says that "the POM model requires at least two antagonistic
voxels" (Tebyani et al. 2022, section 3.1).

**The lattice as bars and ball joints.** Row b of the rigidity matrix R (12 V, 3 N), of
bar (i, j) of unit direction d:

    (R u)_b = d . (u_j - u_i)          elongation of the bar

Null vectors of R are rigid motions and mechanisms; null vectors of R^T are states
of self-stress, of which Maxwell's rule counts s = bars - 3 N + zero modes. Planes
of motion are mechanisms. Source: the standard theory of pin-jointed frames; its use
for planes of motion is ours.

The null space comes from the sparse A = R^T R. The pivots of A - e I count the
eigenvalues below e (Sylvester), and that many vectors come from subspace iteration
with (A + e I)^-1. No dense matrix of the lattice's size is factored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.linalg as sla
from scipy.sparse import coo_array, csc_array, eye_array

from drakebots.core.errors import InvalidInput, NoSolution, some
from drakebots.fem.solver import symmetric_lu
from drakebots.lattice.shape.lattice import Lattice
from drakebots.lattice.shape.planes import AXES, Planes, neighbours, pieces

MAX_VOXELS = 1728
"""Largest number of voxels whose null space is computed: 12 x 12 x 12."""

# Eigenvalues of R^T R: zero ones are computed below 1e-14; the smallest others decay
# as 1/size^4 in long lattices, 1e-7 at 60 x 2 x 2.
_ZERO = 1e-11


def rigidity_matrix(lattice: Lattice) -> csc_array:
    """R (12 V, 3 N), without unit."""
    beams = lattice.beams
    span = (lattice.nodes[beams[:, 1]] - lattice.nodes[beams[:, 0]]) / np.sqrt(2.0)
    bar = np.repeat(np.arange(len(beams)), 6)
    node = np.repeat(beams, 3, axis=1)
    columns = (3 * node + np.tile(np.arange(3), 2)).ravel()
    values = np.concatenate([-span, span], axis=1).ravel()
    shape = (len(beams), 3 * len(lattice.nodes))
    return csc_array(coo_array((values, (bar, columns)), shape=shape))


def null_space(lattice: Lattice) -> np.ndarray:
    """Orthonormal basis of the null space of R (3 N, k).

    Raises:
        InvalidInput: for more than MAX_VOXELS voxels.
        NoSolution: when soft and free motions cannot be distinguished (very long
            lattices).
    """
    if len(lattice.voxels) > MAX_VOXELS:
        raise InvalidInput(
            f"mechanisms of {len(lattice.voxels)} voxels: at most {MAX_VOXELS}; take "
            "a smaller lattice, or the planes of motion, which have no limit"
        )
    R = rigidity_matrix(lattice)
    A = csc_array(R.T @ R)
    unit = eye_array(A.shape[0], format="csc")
    # As many pivots are negative as there are eigenvalues below _ZERO (Sylvester).
    count = int((symmetric_lu(csc_array(A - _ZERO * unit)).U.diagonal() < 0).sum())
    # The seed only picks the basis; the space is the same.
    basis = np.random.default_rng(0).normal(size=(A.shape[0], count))
    factor = symmetric_lu(csc_array(A + _ZERO * unit))
    stretch = np.inf
    for _ in range(20):
        basis, _ = np.linalg.qr(factor.solve(basis))
        before, stretch = stretch, float(np.abs(R @ basis).max(initial=0.0))
        if stretch < 1e-14 or (stretch < 1e-11 and stretch > before / 2):
            return basis
    raise NoSolution(
        "the mechanisms of this lattice cannot be distinguished from soft motions: "
        f"bars stretch by {stretch:.1g}; take a smaller lattice"
    )


def rigid_fields(places: np.ndarray) -> np.ndarray:
    """Translations of places (N, 3), and rotations about the origin (N, 3, 6)."""
    turned = np.cross(np.eye(3), places[:, None]).transpose(0, 2, 1)
    moved = np.broadcast_to(np.eye(3), turned.shape)
    return np.concatenate([moved, turned], axis=2)


def rigid_motions(lattice: Lattice) -> np.ndarray:
    """Translations and rotations about the origin (3 N, 6), in half pitches."""
    return rigid_fields(lattice.nodes).reshape(-1, 6)


def rotations(lattice: Lattice, fields: np.ndarray) -> np.ndarray:
    """Rotations of the voxels (3 V, k) in fields (3 N, k) that stretch no bar.

    A voxel's twelve bars make it rigid, so its rotation about axis c = a x b is half
    the difference of u_b between its nodes +e_a and -e_a, per half pitch.
    """
    u = fields.reshape(len(lattice.nodes), 3, -1)
    own = lattice.voxel_nodes
    w = np.empty((len(own), 3, u.shape[2]))
    for c in range(3):
        a, b = (c + 1) % 3, (c + 2) % 3
        w[:, c] = (u[own[:, 3 + a], b] - u[own[:, a], b]) / 2
    return w.reshape(-1, u.shape[2])


# --- mechanisms ----------------------------------------------------------------

_INDEPENDENT = 1e-6


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A motion that stretches no bar.

    Attributes:
        kind: "plane", "hanging" (a part rotates about its only shared node) or
            "local".
        name: short name, such as "plane x = 1".
        text: description of the motion in one line.
        voxels: rows of the voxels that rotate.
        field: displacements of the nodes (3 N,), without unit; a plane's entries
            are 0 and +-1.
    """

    kind: str
    name: str
    text: str
    voxels: tuple[int, ...]
    field: np.ndarray


@dataclass(frozen=True, eq=False)
class Mechanisms:
    """All mechanisms of a lattice.

    Attributes:
        lattice: the voxels.
        planes: its planes of motion.
        rigid: number of rigid motions, 6 for each connected piece.
        zero_modes: number of zero modes of the rigidity matrix, rigid + len(all).
        self_stress: number of independent states of self-stress.
        all: a basis of the mechanisms, the planes first.
    """

    lattice: Lattice
    planes: Planes
    rigid: int
    zero_modes: int
    self_stress: int
    all: tuple[Mechanism, ...]

    @property
    def basis(self) -> np.ndarray:
        """Fields of the mechanisms as columns (3 N, m)."""
        size = 3 * len(self.lattice.nodes)
        return np.array([m.field for m in self.all]).reshape(-1, size).T

    @property
    def missed(self) -> tuple[Mechanism, ...]:
        """The mechanisms beyond the planes of motion."""
        return tuple(m for m in self.all if m.kind != "plane")

    @property
    def complete(self) -> bool:
        """Whether the planes of motion are all the mechanisms there are."""
        return not self.missed

    def report(self) -> str:
        """Counts, and the mechanisms that planes of motion miss, for printing."""
        nodes, planes = len(self.lattice.nodes), len(self.all) - len(self.missed)
        lines = [
            f"{len(self.lattice.voxels)} voxels, {nodes} nodes, "
            f"{len(self.lattice.beams)} bars, {self.self_stress} self-stress",
            f"{self.zero_modes} zero modes: {self.rigid} rigid, {planes} planes of "
            f"motion, {len(self.missed)} others",
        ]
        lines += [m.text for m in self.all if m.kind == "plane"]
        if self.missed:
            lines.append("the planes of motion miss:")
        lines += [f"  {text}" for text in dict.fromkeys(m.text for m in self.missed)]
        return "\n".join(lines)


def find_mechanisms(lattice: Lattice) -> Mechanisms:
    """All mechanisms of a lattice, in a readable basis.

    Raises:
        InvalidInput: for more than MAX_VOXELS voxels.
        NoSolution: when soft and free motions cannot be distinguished.
    """
    planes, space = Planes(lattice), null_space(lattice)
    near = neighbours(lattice)
    label = pieces(len(lattice.voxels), near[:, :2])
    span = _Span(space)
    fields = rigid_fields(lattice.nodes)
    parts = (_of_part(lattice, label == k, fields) for k in range(label.max() + 1))
    rigid = sum(span.add(field) for part in parts for field in part)
    tilts = enumerate(planes.fields.toarray().T)
    found = [_plane(planes, i, field) for i, field in tilts if span.add(field)]
    found += [m for m in _hanging(lattice, near) if span.add(m.field)]
    if not span.full:
        found += _local(lattice, near, space, span)
    zero_modes = space.shape[1]
    # States of self-stress by Maxwell's rule.
    stresses = len(lattice.beams) - 3 * len(lattice.nodes) + zero_modes
    return Mechanisms(lattice, planes, rigid, zero_modes, stresses, tuple(found))


class _Span:
    """The part of the null space spanned so far, in coordinates of its basis."""

    def __init__(self, space: np.ndarray):
        self.space = space
        self.taken = np.zeros((space.shape[1], 0))

    @property
    def full(self) -> bool:
        return self.taken.shape[1] == self.space.shape[1]

    def add(self, field: np.ndarray) -> bool:
        """Adds a field to the span; False where it lies in the span already."""
        c = self.space.T @ field
        c /= np.linalg.norm(c)
        for _ in range(2):  # repeated against rounding
            c = c - self.taken @ (self.taken.T @ c)
        size = np.linalg.norm(c)
        if size < _INDEPENDENT:
            return False
        self.taken = np.column_stack([self.taken, c / size])
        return True


def _of_part(lattice: Lattice, voxels: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """Fields (N, 3, k) at the nodes of some voxels, 0 at the others, as (k, 3 N)."""
    moved = np.zeros(len(fields))
    moved[lattice.voxel_nodes[voxels]] = 1.0
    return (moved[:, None, None] * fields).reshape(-1, fields.shape[2]).T


def _name(lattice: Lattice, voxel: int) -> str:
    return "({}, {}, {})".format(*lattice.voxels[voxel])


def _plane(planes: Planes, index: int, field: np.ndarray) -> Mechanism:
    plane = planes.all[index]
    voxels = np.flatnonzero(planes.label[plane.axis] == index)
    many = f"{len(voxels)} voxels tilt" if len(voxels) > 1 else "one voxel tilts"
    text = f"plane {plane}: {many} about {AXES[plane.axis]}"
    return Mechanism("plane", f"plane {plane}", text, tuple(voxels.tolist()), field)


def _hanging(lattice: Lattice, near: np.ndarray) -> Iterator[Mechanism]:
    """Rotations of each part that a single node attaches, smallest parts first."""
    parts = []
    sides = (0, 1), (0, 2), (1, 3), (2, 3)
    looped = {(s[a], s[b]) for s in _squares(lattice) for a, b in sides}
    for i, (v, w, axis) in enumerate(near):
        if (v, w) in looped:
            continue
        split = pieces(len(lattice.voxels), np.delete(near[:, :2], i, axis=0))
        if split[v] != split[w]:
            sides = [np.flatnonzero(split == split[x]) for x in (v, w)]
            node = lattice.voxel_nodes[v, 3 + axis]
            parts.append((min(sides, key=len), node))
    for part, node in sorted(parts, key=lambda p: len(p[0])):
        place = lattice.nodes[node]
        turns = _of_part(lattice, part, rigid_fields(lattice.nodes - place)[:, :, 3:])
        at, first = "({}, {}, {})".format(*place), _name(lattice, part[0])
        if len(part) == 1:
            text = f"voxel {first} is singly attached, at node {at}: "
            text += "three rotations of its own"
        else:
            text = f"{len(part)} voxels with {first} hang on node {at}: "
            text += "three rotations of their own"
        for axis, field in zip(AXES, turns):
            name = f"{first} about {axis} at {at}"
            yield Mechanism("hanging", name, text, tuple(part.tolist()), field)


def _local(lattice, near, space, span: _Span) -> list[Mechanism]:
    """Modes in which few voxels rotate.

    With rotations W = U S V^T of the null space, the voxels of a set rotate alone for
    a vector y of the set's rows U_s with |U_s^T y| = |y|: U has orthonormal columns,
    so the rotations of all other voxels are zero.
    """
    u, s, vt = sla.svd(rotations(lattice, space), full_matrices=False)
    keep = s > 1e-9 * s[0]
    u, back = u[:, keep], space @ (vt[keep].T / s[keep])
    found: list[Mechanism] = []

    def take(fields: np.ndarray) -> None:
        for field in fields.T:
            if span.add(field):
                found.append(_describe(lattice, field))

    for clusters in _clusters(lattice, near):
        rows = (3 * clusters[:, :, None] + np.arange(3)).reshape(len(clusters), -1)
        values, vectors = np.linalg.eigh(u[rows] @ u[rows].transpose(0, 2, 1))
        for at in np.flatnonzero(values[:, -1] > 1 - 1e-9):
            if span.full:
                return found
            alone = vectors[at][:, values[at] > 1 - 1e-9]
            take(back @ (u[rows[at]].T @ _reduced(alone)))
    if not span.full:
        take(back @ (u.T @ _reduced(u)))
    return found


def _clusters(lattice: Lattice, near: np.ndarray):
    """Sets of voxels to try, the smallest first (n, size)."""
    yield np.arange(len(lattice.voxels))[:, None]
    if len(near):
        yield near[:, :2]
    squares = _squares(lattice)
    if squares:
        yield np.array(squares)


def _squares(lattice: Lattice) -> list[list[int]]:
    """Rows of all voxels v, v + e_a, v + e_b, v + e_a + e_b that form squares."""
    where = {tuple(v): i for i, v in enumerate(lattice.voxels.tolist())}
    squares = []
    for v in where:
        for a, b in combinations(np.eye(3, dtype=int), 2):
            corners = [where.get(tuple(v + step)) for step in (0 * a, a, b, a + b)]
            if None not in corners:
                squares.append(corners)
    return squares


def _reduced(columns: np.ndarray) -> np.ndarray:
    """A basis of the same span with many zeros: column echelon form, fully pivoted."""
    a = columns.copy()
    for k in range(a.shape[1]):
        size = np.abs(a[:, k:])
        row, column = np.unravel_index(np.argmax(size), size.shape)
        a[:, [k, k + column]] = a[:, [k + column, k]]
        a[:, k] /= a[row, k]
        others = np.arange(a.shape[1]) != k
        a[:, others] -= np.outer(a[:, k], a[row, others])
    a[np.abs(a) < 1e-12] = 0.0
    return a


def _describe(lattice: Lattice, field: np.ndarray) -> Mechanism:
    turns = rotations(lattice, field[:, None]).reshape(-1, 3)
    turns = np.round(turns / turns.flat[np.argmax(np.abs(turns))], 9) + 0.0
    size = np.abs(turns).max(axis=1)
    voxels = np.flatnonzero(size > 1e-6)
    shown = [
        f"{_name(lattice, v)} about ({', '.join(f'{t:.3g}' for t in turns[v])})"
        for v in voxels[np.argsort(-size[voxels], kind="stable")]
    ]
    shown = some(shown, separator="; ")
    text = f"turn{'s' if len(voxels) == 1 else ''}: {shown}"
    text = f"{len(voxels)} voxel{'s' if len(voxels) > 1 else ''} {text}"
    name = f"local, {len(voxels)} at {_name(lattice, voxels[0])}"
    scale = np.abs(field).max()
    return Mechanism("local", name, text, tuple(voxels.tolist()), field / scale)
