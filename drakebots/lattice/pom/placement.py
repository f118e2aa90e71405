"""Where to put the fewest actuators so that chosen nodes move as wished.

With mechanisms of stiffness K and effector rows L, pushes f of the actuators in a
set move the wished components by

    w = L K^-1 G^T f = T f,      and change the actuators' lengths by G K^-1 G^T f,

so a set serves when the wishes lie near the span of its columns of T, and within the
strokes. Columns that are multiples of each other, such as those of actuators on one
plane, do the same: one stands for all. Small sets are tried exhaustively, larger ones
grown greedily and improved by exchange. Source: ours, for the outlook of Tebyani et
al. (2022): "an optimization algorithm could minimize the number of ... actuators".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from scipy.optimize import lsq_linear

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.lattice.pom.elastic import ElasticPOM
from drakebots.lattice.pom.kinematics import table
from drakebots.lattice.pom.pom import Control, extension_rows
from drakebots.lattice.shape import AXES, Lattice, Planes, axis_number

MOST_SETS = 20_000
"""Sets of one size that are tried one by one; beyond, greedily."""


@dataclass(frozen=True, eq=False)
class Placement:
    """Actuators that do what was wished.

    Attributes:
        actuators: the fewest found.
        controls: displacements u of their lower nodes; actuators change length by
            -2 u (T, M) [m].
        reached: of the wished components (T, W) [m].
        residual: largest |reached - wished| [m].
        stroke: largest |u| [m].
        alternatives: for each actuator, all the places that do the same.
        exact: whether no smaller set does, as all were tried.
    """

    actuators: tuple[Control, ...]
    controls: np.ndarray
    reached: np.ndarray
    residual: float
    stroke: float
    alternatives: tuple[tuple[Control, ...], ...]
    exact: bool


def candidates(lattice: Lattice, axes: Sequence[int | str] = AXES) -> list[Control]:
    """All places for an actuator: node pairs a pitch apart along an allowed axis.

    Those nearest the lattice's middle come first.

    Raises:
        UnknownName: for an axis other than x, y, z.
    """
    places, found = set(map(tuple, lattice.nodes.tolist())), []
    for axis in map(axis_number, axes):
        for place in lattice.nodes[lattice.even_axis != axis].tolist():
            control = Control(tuple(place), axis)
            if control.other in places:
                found.append(control)
    # In the middle first: there they carry their motion the least far.
    middle = lattice.nodes.mean(axis=0)
    centres = np.array([c.node for c in found]).reshape(-1, 3).astype(float)
    centres += np.eye(3)[[c.axis for c in found]].reshape(-1, 3)
    order = np.argsort(np.linalg.norm(centres - middle, axis=1), kind="stable")
    return [found[i] for i in order]


def place(
    model: ElasticPOM | Lattice,
    wishes: Sequence[Control],
    values,
    *,
    axes: Sequence[int | str] = AXES,
    stroke: float = np.inf,
    tolerance: float = 0.05,
    most: int = 8,
) -> Placement:
    """The fewest actuators that move chosen components as wished.

    Args:
        model: a lattice, for its planes of motion each on their own; or the elastic
            model, which knows parts that hang and planes that drag each other.
        wishes: components of node motions, W of them.
        values: their trajectories (T, W), or one pose (W,) [m].
        axes: along which actuators may push.
        stroke: most |u| of a lower node; its actuator changes length by twice that
            [m].
        tolerance: largest error allowed, as a share of the largest wish.
        most: most actuators.

    Raises:
        InvalidInput: for a table of another shape, not finite or all zero, a node
            that is not in the lattice, a stroke or tolerance that is not > 0, or
            no place for an actuator.
        NoSolution: when no actuator moves a component, naming it, or `most` of them
            do not do it, with the best residual.
    """
    lattice = model if isinstance(model, Lattice) else model.lattice
    w = table(values, len(wishes), "values", "wish")
    allowed = tolerance * np.abs(w).max(initial=0.0)
    if not allowed > 0 or not np.isfinite(allowed):
        raise InvalidInput("placement needs a wish that is not zero, tolerance > 0")
    if not stroke > 0:
        raise InvalidInput(f"stroke must be > 0 m, got {stroke}")
    found = candidates(lattice, axes)
    if model is lattice:
        # Between parts of a layer an actuator drives two planes, not one.
        drives = Planes(lattice).driven
        found = [c for c in found if drives(c.node, c.axis) == drives(c.other, c.axis)]
    if not found:
        raise InvalidInput(
            "the lattice has no two nodes a pitch apart along the allowed axes; "
            "allow another axis"
        )
    space = _Space(model, lattice, found, wishes, w, stroke * (1 + 1e-9), allowed)
    for i, wish in enumerate(wishes):
        if (
            not np.abs(space.T[i]).max(initial=0.0) > 0
            and np.abs(w[:, i]).max() > allowed
        ):
            raise NoSolution(
                f"no actuator along the allowed axes moves {AXES[wish.axis]} of "
                f"{wish.name!r}; allow more axes or choose another node"
            )
    best = None
    exact = True
    most = min(most, len(space.groups))
    for size in range(1, most + 1):
        if comb(len(space.groups), size) <= MOST_SETS:
            chosen = space.best_of(combinations(range(len(space.groups)), size))
        else:
            exact = False
            chosen = space.grown(() if best is None else best[1], size)
        if best is None or chosen[0] < best[0]:
            best = chosen
        if chosen[0] <= allowed:
            return space.placement(chosen[1], exact)
    if best is None:
        raise InvalidInput("most must be >= 1 actuator")
    _, u, reached = space.moved(best[1])
    worst = int(np.argmax(np.abs(reached - w).max(axis=0)))
    raise NoSolution(
        f"no {most} actuators move {wishes[worst].name!r} and the others as wished "
        f"within {allowed:.3g} m; allow more actuators, axes, stroke or tolerance",
        {"residual_m": best[0], "stroke_m": float(np.abs(u).max(initial=0.0))},
    )


class _Space:
    """Columns of T and of the compliance G K^-1 G^T, one per distinct effect."""

    def __init__(self, model, lattice, found, wishes, w, stroke, allowed):
        if isinstance(model, ElasticPOM):
            basis = model.basis
        else:
            basis = Planes(lattice).fields.toarray()
        G = extension_rows(lattice, found, basis)
        soft = model.amplitudes(G) if isinstance(model, ElasticPOM) else G
        rows = [3 * lattice.node(wish.node) + wish.axis for wish in wishes]
        self.w, self.stroke, self.allowed = w, stroke, allowed
        self.controls = found
        self.groups = _alike(G)
        first = [group[0] for group in self.groups]
        self.T = basis[rows] @ soft[first].T
        self.flex = G[first] @ soft[first].T

    def moved(self, chosen, bounded=True) -> tuple[float, np.ndarray, np.ndarray]:
        """Largest error, u (T, M) and reached (T, W) of a set."""
        flex = self.flex[np.ix_(chosen, chosen)]
        if np.linalg.cond(flex) > 1e9:
            return np.inf, np.zeros((len(self.w), len(chosen))), 0 * self.w
        effect = self.T[:, chosen] @ np.linalg.inv(flex) * -2.0
        u = self.w @ np.linalg.pinv(effect, rcond=1e-9).T
        over = (np.abs(u) > self.stroke).any(axis=1) & bounded
        for pose in np.flatnonzero(over):
            box = (-self.stroke, self.stroke)
            u[pose] = lsq_linear(effect, self.w[pose], box, method="bvls").x
        reached = u @ effect.T
        return float(np.abs(reached - self.w).max()), u, reached

    def best_of(self, sets) -> tuple[float, tuple[int, ...]]:
        """The set of the least error; of the least stroke among those that serve."""
        sets = list(sets)
        columns = self.T[:, np.array(sets)].transpose(1, 0, 2)
        gap = self.w.T - columns @ (np.linalg.pinv(columns, rcond=1e-9) @ self.w.T)
        left = sorted(zip((gap**2).sum(axis=(1, 2)).tolist(), sets))
        enough = self.allowed**2 * self.w.size
        serve = [c for gap, c in left if gap <= enough]
        best = (np.inf, np.inf, left[0][1])
        for chosen in serve or [c for _, c in left[:50]]:
            error, u, _ = self.moved(chosen, bounded=False)
            reach = float(np.abs(u).max())
            if error <= self.allowed and reach <= self.stroke:
                error = 0.0  # they all serve
            elif reach > self.stroke:
                error = np.inf
            best = min(best, (error, reach, chosen))
        if best[0] == np.inf:
            tried = [c for _, c in left[:50]]
            best = min((self.moved(c)[0], 0.0, c) for c in tried)
        return self.moved(best[2])[0], best[2]

    def grown(self, start, size) -> tuple[float, tuple[int, ...]]:
        """From a smaller set: the best addition, then exchanges while they help."""
        everything = range(len(self.groups))
        rest = [k for k in everything if k not in start]
        best = self.best_of([(*start, k) for k in rest])
        while best[0] > self.allowed:
            _, chosen = best
            swaps = [
                (*chosen[:i], k, *chosen[i + 1 :])
                for i in range(size)
                for k in everything
                if k not in chosen
            ]
            better = self.best_of(swaps)
            if not better[0] < best[0] * (1 - 1e-9):
                break
            best = better
        return best

    def placement(self, chosen, exact) -> Placement:
        """With places whose nodes no other actuator holds, where there are any."""
        residual, u, reached = self.moved(chosen)
        taken: set = set()
        actuators, others, signs = [], [], []
        for k in chosen:
            same = [(self.controls[i], s) for i, s in self._members(k)]
            free = [c for c in same if not {c[0].node, c[0].other} & taken]
            control, sign = (free or same)[0]
            taken |= {control.node, control.other}
            actuators.append(control)
            signs.append(sign)
            others.append(tuple(c for c, _ in same))
        u = u * signs
        stroke = float(np.abs(u).max(initial=0.0))
        return Placement(
            tuple(actuators), u, reached, residual, stroke, tuple(others), exact
        )

    def _members(self, k: int):
        return list(zip(self.groups[k].indices, self.groups[k].signs))


@dataclass(frozen=True)
class _Group:
    indices: tuple[int, ...]
    signs: tuple[float, ...]

    def __getitem__(self, at: int) -> int:
        return self.indices[at]


def _alike(G: np.ndarray) -> list[_Group]:
    """Rows that are equal but for the sign, those that are zero left out."""
    seen: dict[bytes, tuple[list[int], list[float]]] = {}
    for i, row in enumerate(np.round(G, 9)):
        if not row.any():
            continue
        sign = float(np.sign(row[np.flatnonzero(row)[0]]))
        indices, signs = seen.setdefault((sign * row + 0.0).tobytes(), ([], []))
        indices.append(i)
        signs.append(sign)
    # Signs relative to the first of the group.
    return [_Group(tuple(i), tuple(s / t[0] for s in t)) for i, t in seen.values()]
