"""A reduced skin, its training and its file: modes, few quadrature and mass points.

skin = train_reduced(robot, runs)          # runs: snapshots of the full skin
write_reduced(skin, "beetle.reduced.npz")
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Annotated
from zipfile import BadZipFile

import numpy as np

from drakebots.core.checks import between, whole
from drakebots.core.errors import FileProblem
from drakebots.core.fields import checked
from drakebots.core.files import replacing
from drakebots.fem.assembly import force_and_tangent
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.reduced.basis import (
    LinkMotion,
    SkinBasis,
    SkinRun,
    SparseWeights,
    blended,
    blended_columns,
    harmonic_weights,
    learn_basis,
    limb_of,
)
from drakebots.skin.reduced.cubature import (
    Points,
    all_points,
    point_works,
    sparse_weights,
)

FORMAT = 1
"""Version of the file format."""


@dataclass(frozen=True)
class ReducedSkin:
    """A trained reduced skin, with the modes of all nodes to draw it.

    Its coordinates are the plant's q and the modes' y (r,), some tens of numbers; see
    :mod:`drakebots.skin.reduced.basis`.

    Attributes:
        links: names of the links with glue.
        rest: rest positions of all nodes (N, 3) [m].
        weights: weights of the links (N, L).
        modes: Phi (N, 3, r) [m/sqrt(J)].
        domain: domain of each mode (r,).
        point_nodes, point_gradients, point_weights, point_row: points of the cubature,
            as :class:`~drakebots.skin.reduced.cubature.Points`, weights in m^3.
        point_domain: domain of each point; its modes and the base's move the point
            (m,).
        mass_nodes: nodes with mass (p,).
        masses: their masses (p,) [kg].
        errors: errors of the training (2 D + 1,): share of energy not in the modes by
            domain, relative residual of the cubature by domain, that of the masses.
    """

    links: tuple[str, ...]
    rest: np.ndarray
    weights: np.ndarray
    modes: np.ndarray
    domain: np.ndarray
    point_nodes: np.ndarray
    point_gradients: np.ndarray
    point_weights: np.ndarray
    point_row: np.ndarray
    point_domain: np.ndarray
    mass_nodes: np.ndarray
    masses: np.ndarray
    errors: np.ndarray

    @property
    def size(self) -> int:
        """Number of modes r."""
        return self.modes.shape[2]

    @property
    def points(self) -> Points:
        """The points of the cubature."""
        return Points(
            self.point_nodes, self.point_gradients, self.point_weights, self.point_row
        )

    def positions(self, y: np.ndarray, motion: LinkMotion) -> np.ndarray:
        """Positions of all nodes (N, 3) [m]."""
        points = self.rest + self.modes @ y
        return blended(points, SparseWeights.of(self.weights), motion)


def write_reduced(skin: ReducedSkin, path: str | Path) -> None:
    """Writes a trained skin atomically as npz.

    Raises:
        FileProblem: when the file cannot be written.
    """
    table = {f.name: np.asarray(getattr(skin, f.name)) for f in fields(skin)}
    with replacing(path) as part, open(part, "wb") as file:
        np.savez_compressed(file, format=FORMAT, **table)


def read_reduced(path: str | Path) -> ReducedSkin:
    """Reads a file of :func:`write_reduced`.

    Raises:
        FileProblem: for a file that is missing or no reduced skin.
    """
    names = [f.name for f in fields(ReducedSkin)]
    try:
        with np.load(path, allow_pickle=False) as file:
            if "format" not in file or int(file["format"]) != FORMAT:
                raise FileProblem(
                    path, "is no reduced skin of this version; train it again"
                )
            table = {name: file[name] for name in names}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        raise FileProblem(
            path, f"cannot be read as a reduced skin ({error}); train it again"
        ) from error
    table["links"] = tuple(map(str, table["links"]))
    return ReducedSkin(**table)


def moved_by(
    points: Points, modes: np.ndarray
) -> tuple[np.ndarray, Points, np.ndarray, np.ndarray]:
    """What some points need to know of a skin's nodes and modes.

    Args:
        points: the points.
        modes: Phi of all nodes (N, 3, r).

    Returns:
        The k nodes of their tets, the points with nodes counted among these, the modes
        that move any of them, and these at the nodes (k, 3, c).
    """
    inside, local = np.unique(np.maximum(points.nodes, 0), return_inverse=True)
    local = np.where(points.nodes >= 0, local.reshape(points.nodes.shape), -1)
    own = modes[inside]
    touched = np.flatnonzero(np.abs(own).max(axis=(0, 1), initial=0.0) > 0)
    local = points._replace(nodes=local.astype(np.int64))
    return inside, local, touched, np.ascontiguousarray(own[:, :, touched])


# Training: which quadrature and mass points are kept, and their weights.


@checked("reduced skin")
class ReducedOptions:
    """Options of the training.

    Raises:
        InvalidInput: for a value out of range.
    """

    limb_modes: Annotated[int, whole(1)] = 20
    """Largest number of modes of each limb."""
    base_modes: Annotated[int, whole(0)] = 20
    """Largest number of modes of the base."""
    tolerance: Annotated[float, between(0, 1, open_ends=True)] = 5e-3
    """Relative error of the cubature's sums."""
    points: Annotated[int, whole(1)] = 200
    """Largest number of quadrature points of each domain."""
    mass_points: Annotated[int, whole(1)] = 300
    """Largest number of nodes with mass."""
    shapes: Annotated[int, whole(1)] = 80
    """Number of states that the cubature is trained on."""
    seed: Annotated[int, whole(0)] = 0
    """Seed of the random states among them."""


def train_reduced(
    robot: SkinnedRobot,
    runs: Sequence[SkinRun],
    options: ReducedOptions = ReducedOptions(),
) -> ReducedSkin:
    """A reduced skin from runs of the full one.

    Args:
        robot: the robot.
        runs: runs of :func:`~drakebots.skin.reduced.basis.snapshots`.
        options: sizes and tolerances.

    Raises:
        InvalidInput: for runs of another skin, or too few shapes.
    """
    model, names = robot.fem, tuple(robot.glue.by_body())
    weights = harmonic_weights(model, robot.glue, names)
    limb = limb_of(robot.plant, names)
    most = options.limb_modes, options.base_modes
    basis = learn_basis(model, weights, limb, runs, *most)
    states = _training_states(basis, runs, options)
    points, domain, off = _elastic_points(model, basis, states, options)
    nodes, masses, mass_off = _mass_points(model, basis, options)
    return ReducedSkin(
        links=names,
        rest=model.rest,
        weights=weights,
        modes=basis.modes,
        domain=basis.domain,
        point_nodes=points.nodes,
        point_gradients=points.gradients,
        point_weights=points.weights,
        point_row=points.row,
        point_domain=domain,
        mass_nodes=nodes,
        masses=masses,
        errors=np.concatenate([basis.left, off, [mass_off]]),
    )


def _training_states(basis, runs, options) -> list[tuple[LinkMotion, np.ndarray]]:
    """Motions and y of the training states: half on the runs, half near them."""
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


def _elastic_points(model, basis: SkinBasis, states, options):
    """Points of the cubature, their domains, and relative residuals (D,)."""
    whole = all_points(model)
    sparse = SparseWeights.of(basis.weights)
    nodes = np.maximum(whole.nodes, 0)
    share = basis.window[nodes] * (whole.nodes >= 0)[..., None]
    owner = share.sum(axis=1)
    # A point with any share of a limb depends on the limb's modes.
    owner[:, 0] = 0.0
    owner = owner.argmax(axis=1)
    # Scale joints like the modes, by their energy at rest.
    motion = states[0][0]
    stiffness = _joint_stiffness(model, basis, motion)
    chosen, domain, off = [], [], []
    for k in range(basis.window.shape[1]):
        mine = np.flatnonzero(owner == k)
        if not mine.size:
            off.append(0.0)
            continue
        part = whole.chosen(mine)
        inside, local, touched, modes = moved_by(part, basis.modes)
        rows = []
        for motion, y in states:
            points = model.rest[inside] + modes @ y[touched]
            x, J = blended_columns(points, sparse.rows(inside), motion, modes)
            J[:, :, : motion.spin.shape[2]] /= stiffness
            work = point_works(x, J, local, model.kinds, model.table)
            if np.isfinite(work).all():
                rows.append(work[np.abs(work).max(axis=1) > 0].astype(np.float32))
        G = np.concatenate(rows)
        b = G.sum(axis=1, dtype=float)
        w = sparse_weights(G, b, tolerance=options.tolerance, most=options.points)
        at = np.flatnonzero(w)
        off.append(float(np.linalg.norm(G[:, at] @ w[at] - b) / np.linalg.norm(b)))
        chosen.append(part.chosen(at, w[at]))
        domain.append(np.full(len(at), k))
    points = Points(*map(np.concatenate, zip(*chosen)))
    return points, np.concatenate(domain), np.array(off)


def _joint_stiffness(model, basis, motion) -> np.ndarray:
    """Square roots of the rest tangent along each joint at constant y (m,)."""
    empty = np.zeros((*model.rest.shape, 0))
    _, J = blended_columns(model.rest, SparseWeights.of(basis.weights), motion, empty)
    _, K = force_and_tangent(model, model.rest)
    J = J.reshape(-1, J.shape[2])
    own = np.einsum("nc,nc->c", J, model.pattern.full(K) @ J)
    return np.sqrt(np.maximum(own, 1e-12 * own.max(initial=0.0) + 1e-30))


def _mass_points(model, basis: SkinBasis, options):
    """Nodes and masses with the sums of all nodes, and the relative residual.

    The sums are the mass, its first and second moments with the links' weights, which
    give the weight and the inertia of rigid motions of links, and random products of
    the modes' columns.
    """
    rng = np.random.default_rng(options.seed + 1)
    m, w = model.node_mass, basis.weights
    scale = np.ptp(model.rest, axis=0).max()
    X = (model.rest - model.rest.mean(axis=0)) / scale
    one = np.concatenate([np.ones((len(X), 1)), X], axis=1)
    L = w.shape[1]
    rows = []
    for a, b in combinations_with_replacement(range(L), 2):
        both = w[:, a] * w[:, b]
        if both.max() > 0:
            for i, j in combinations_with_replacement(range(4), 2):
                rows.append(both * one[:, i] * one[:, j])
    rigid = len(rows)
    spread = basis.coordinates.std(axis=0)
    moved = basis.modes * spread
    for _ in range(200 if len(spread) else 0):
        a, b = (moved @ rng.standard_normal(len(spread)) for _ in range(2))
        rows += [(a * b).sum(axis=1), a[:, rng.integers(3)] * w[:, rng.integers(L)]]
    G = np.array(rows) * m
    total = G.sum(axis=1)
    size = np.full(len(G), np.abs(G[:rigid]).sum(axis=1).max())
    # Scale the rows: the moments by each link's own, the modes among themselves.
    size[:rigid] = np.sqrt(np.abs(G[:rigid]).sum(axis=1)) * np.sqrt(size[0])
    if rigid < len(G):
        size[rigid:] = 3 * np.abs(G[rigid:]).sum(axis=1) * np.sqrt(len(G) / rigid)
    keep = size > 1e-9 * size.max()
    G, total = G[keep] / size[keep, None], total[keep] / size[keep]
    tolerance, most = options.tolerance / 5, options.mass_points
    found = sparse_weights(G, total, tolerance=tolerance, most=most)
    at = np.flatnonzero(found)
    off = np.linalg.norm(G[:, at] @ found[at] - total) / np.linalg.norm(total)
    masses = found[at] * m[at]
    return at, masses * (m.sum() / masses.sum()), float(off)
