"""Which quadrature and mass points a reduced skin keeps, and their weights.

Each domain of :mod:`drakebots.skin.reduced_basis` has a cubature of its own: the forces
along joints and modes of all its points, in states on the training runs and beside
them, are met by a few (:func:`~drakebots.skin.cubature.sparse_weights`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.fem.assembly import force_and_tangent
from drakebots.skin.cubature import (
    Points,
    all_points,
    point_stresses,
    point_works,
    sparse_weights,
)
from drakebots.skin.reduced_basis import SkinBasis
from drakebots.skin.reduced_shape import LinkMotion, SparseWeights, blended_columns


@dataclass(frozen=True)
class ReducedOptions:
    """How to train.

    Attributes:
        limb_modes, base_modes: most modes of each limb, and of the base.
        tolerance: of the cubature's sums, relative.
        points: most quadrature points of each domain.
        mass_points: most nodes that carry the mass.
        shapes: states the cubature is trained on.
        seed: of the states off the runs.

    Raises:
        InvalidInput: for a value out of range.
    """

    limb_modes: int = 20
    base_modes: int = 10
    tolerance: float = 1e-2
    points: int = 150
    mass_points: int = 150
    shapes: int = 60
    seed: int = 0

    def __post_init__(self):
        for name in ("limb_modes", "points", "mass_points", "shapes"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"reduced skin: {name} must be >= 1")
        if self.base_modes < 0:
            raise InvalidInput("reduced skin: base_modes must be >= 0")
        if not 0 < self.tolerance < 1:
            raise InvalidInput("reduced skin: tolerance must lie between 0 and 1")


def training_states(basis, runs, options) -> list[tuple[LinkMotion, np.ndarray]]:
    """Motions and y to weigh points at: half on the runs, half beside them."""
    rng = np.random.default_rng(options.seed)
    motions = [m for run in runs for m in run.motions]
    count = min(options.shapes, 2 * len(motions))
    at = np.linspace(0, len(motions) - 1, -(-count // 2)).astype(int)
    spread = basis.coordinates.std(axis=0)
    out = []
    for k in at:
        y = basis.coordinates[k]
        off = y * rng.uniform(0.6, 1.3) + 0.3 * spread * rng.standard_normal(len(y))
        out += [(motions[k], y), (motions[k], off)]
    return out[:count]


def elastic_points(model, basis: SkinBasis, states, options):
    """The cubature of all domains, whose each point is, and residuals (D,)."""
    whole = all_points(model)
    sparse = SparseWeights.of(basis.weights)
    nodes = np.maximum(whole.nodes, 0)
    share = basis.window[nodes] * (whole.nodes >= 0)[..., None]
    owner = share.sum(axis=1)
    # A point with any share of a limb needs the limb's modes.
    owner = (
        np.where(
            owner[:, 1:].max(axis=1, initial=0.0) > 0,
            1 + owner[:, 1:].argmax(axis=1),
            0,
        )
        if owner.shape[1] > 1
        else np.zeros(len(whole), int)
    )
    # Joints count as the modes do, by energy at rest.
    motion = states[0][0]
    stiffness = joint_stiffness(model, basis, motion)
    chosen, domain, off = [], [], []
    for k in range(basis.window.shape[1]):
        mine = np.flatnonzero(owner == k)
        if not mine.size:
            off.append(0.0)
            continue
        part = whole.chosen(mine)
        inside, local = np.unique(np.maximum(part.nodes, 0), return_inverse=True)
        local = np.where(part.nodes >= 0, local.reshape(part.nodes.shape), -1)
        modes = basis.modes[inside]
        touched = np.flatnonzero(np.abs(modes).max(axis=(0, 1)) > 0)
        modes = np.ascontiguousarray(modes[:, :, touched])
        rows = []
        for motion, y in states:
            points = model.rest[inside] + modes @ y[touched]
            x, J = blended_columns(points, sparse.rows(inside), motion, modes)
            m = motion.spin.shape[2]
            J[:, :, :m] /= stiffness
            P = np.empty((len(mine), 3, 3))
            point_stresses(
                x, local, part.gradients, part.row, model.kinds, model.table, P
            )
            work = np.empty((J.shape[2], len(mine)))
            point_works(P, local, part.gradients, part.weights, J, work)
            if np.isfinite(work).all():
                rows.append(work[np.abs(work).max(axis=1) > 0].astype(np.float32))
        G = np.concatenate(rows)
        b = G.sum(axis=1, dtype=float)
        w = sparse_weights(G, b, tolerance=options.tolerance, most=options.points)
        at = np.flatnonzero(w)
        off.append(float(np.linalg.norm(G[:, at] @ w[at] - b) / np.linalg.norm(b)))
        chosen.append(part.chosen(at, w[at]))
        domain.append(np.full(len(at), k))
    points = Points(
        *(np.concatenate([getattr(p, f.name) for p in chosen]) for f in fields(Points))
    )
    return points, np.concatenate(domain), np.array(off)


def joint_stiffness(model, basis, motion) -> np.ndarray:
    """Square roots of the rest tangent along each joint, modes held (m,)."""
    empty = np.zeros((*model.rest.shape, 0))
    _, J = blended_columns(model.rest, SparseWeights.of(basis.weights), motion, empty)
    _, K = force_and_tangent(model, model.rest)
    J = J.reshape(-1, J.shape[2])
    own = np.einsum("nc,nc->c", J, model.pattern.full(K) @ J)
    return np.sqrt(np.maximum(own, 1e-12 * own.max(initial=0.0) + 1e-30))


def mass_points(model, basis: SkinBasis, states, options):
    """Nodes and masses whose sums are those of all, and the relative residual.

    Sums: the mass, its first and second moments with the links' weights (so each
    rigid motion of a link, and the weight, are right), and random products of the
    modes' columns.
    """
    rng = np.random.default_rng(options.seed + 1)
    m, w = model.node_mass, basis.weights
    scale = np.ptp(model.rest, axis=0).max()
    X = (model.rest - model.rest.mean(axis=0)) / scale
    one = np.concatenate([np.ones((len(X), 1)), X], axis=1)
    L = w.shape[1]
    rows = []
    for a in range(L):
        for b in range(a, L):
            both = w[:, a] * w[:, b]
            if both.max() > 0:
                rows += [
                    both * one[:, i] * one[:, j] for i in range(4) for j in range(i, 4)
                ]
    rigid = len(rows)
    spread = basis.coordinates.std(axis=0)
    moved = basis.modes * spread
    for _ in range(200 if len(spread) else 0):
        a, b = (moved @ rng.standard_normal(len(spread)) for _ in range(2))
        rows += [(a * b).sum(axis=1), a[:, rng.integers(3)] * w[:, rng.integers(L)]]
    G = np.array(rows) * m
    total = G.sum(axis=1)
    size = np.full(len(G), np.abs(G[:rigid]).sum(axis=1).max())
    # Rows of like size: of a link's own moments, and of the modes among themselves.
    size[:rigid] = np.sqrt(np.abs(G[:rigid]).sum(axis=1)) * np.sqrt(size[0])
    if rigid < len(G):
        size[rigid:] = 3 * np.abs(G[rigid:]).sum(axis=1) * np.sqrt(len(G) / rigid)
    keep = size > 1e-9 * size.max()
    G, total = G[keep] / size[keep, None], total[keep] / size[keep]
    found = sparse_weights(
        G, total, tolerance=options.tolerance / 5, most=options.mass_points
    )
    at = np.flatnonzero(found)
    off = np.linalg.norm(G[:, at] @ found[at] - total) / np.linalg.norm(total)
    masses = found[at] * m[at]
    return at, masses * (m.sum() / masses.sum()), float(off)
