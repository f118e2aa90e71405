"""Placement of the fewest actuators that move chosen nodes as requested.

With mechanisms of stiffness K and effector rows L, the actuator forces f move the
targets by w and change the actuators' lengths by e,

    w = L K^-1 G^T f = T f,      e = G K^-1 G^T f,

so a set of actuators is feasible when the targets lie near the span of its columns of
T and the strokes suffice. Columns that are multiples of each other, such as those of
actuators on one plane, are equivalent: one represents all. Small sets are tried
exhaustively, larger ones are grown greedily and improved by exchange. Source: ours, for
the outlook of Tebyani et al. (2022): "an optimization algorithm could minimize the
number of voxels and actuators in a structure"; for voxels see
`scripts/bench/codesign.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from drakebots.core.checks import between, check_value, positive, whole
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.run import Progress, silent
from drakebots.lattice.pom.elastic import ElasticPOM
from drakebots.lattice.pom.pom import (
    Control,
    bounded_controls,
    extension_rows,
    table,
)
from drakebots.lattice.shape import AXES, Lattice, Planes, axis_number, rigid_motions

MOST_SETS = 20_000
"""Largest number of sets of one size of which all are tried; above it the search is
greedy."""


@dataclass(frozen=True, eq=False)
class Placement:
    """Actuators that meet the targets.

    Attributes:
        actuators: the fewest found.
        controls: displacements u of their lower nodes; actuators change length by
            -2 u (T, M) [m].
        residual: largest error of a target [m].
        exact: whether every smaller set was tried and none is feasible.
    """

    actuators: tuple[Control, ...]
    controls: np.ndarray
    residual: float
    exact: bool

    @property
    def stroke(self) -> float:
        """Largest |u| [m]."""
        return float(np.abs(self.controls).max(initial=0.0))


def candidates(lattice: Lattice, axes: Sequence[int | str] = AXES) -> list[Control]:
    """All places for an actuator: node pairs one pitch apart along an allowed axis.

    Those nearest the lattice's middle come first: there the motion is carried the
    least far.

    Raises:
        UnknownName: for an axis other than x, y, z.
    """
    places, found = set(map(tuple, lattice.nodes.tolist())), []
    for axis in map(axis_number, axes):
        for place in lattice.nodes[lattice.even_axis != axis].tolist():
            control = Control(tuple(place), axis)
            if control.other in places:
                found.append(control)
    middle = lattice.nodes.mean(axis=0)
    centres = np.array([c.node for c in found]).reshape(-1, 3).astype(float)
    centres += np.eye(3)[[c.axis for c in found]].reshape(-1, 3)
    order = np.argsort(np.linalg.norm(centres - middle, axis=1), kind="stable")
    return [found[i] for i in order]


def place_actuators(
    model: ElasticPOM | Lattice,
    targets: Sequence[Control],
    values,
    *,
    axes: Sequence[int | str] = AXES,
    stroke: float = np.inf,
    tolerance: float = 0.05,
    most: int = 8,
    mean_pose: bool = False,
    progress: Progress | None = None,
) -> Placement:
    """The fewest actuators that move chosen components as requested.

    Args:
        model: a lattice, for its planes of motion each on their own; or the elastic
            model, which also describes parts that hang on one node and planes that
            move each other.
        targets: components of node motions, W of them.
        values: displacements of the targets (T, W), or (W,) for one pose [m].
        axes: directions along which actuators may push.
        stroke: largest |u| of a lower node; its actuator changes length by twice
            that [m].
        tolerance: largest error allowed, as a share of the largest target.
        most: largest number of actuators.
        mean_pose: whether the elastic model's motions are seen from the body's mean
            pose, the rigid motion that fits all nodes best taken out, instead of as
            in its basis.
        progress: called with the number of actuators tried.

    Raises:
        InvalidInput: for a table of another shape, not finite or all zero, a node
            that is not in the lattice, a stroke or tolerance that is not > 0, or
            no place for an actuator.
        NoSolution: when no actuator moves a component, naming it, or `most` of them
            do not meet the targets, with the best residual.
    """
    lattice = model if isinstance(model, Lattice) else model.lattice
    w = table(values, len(targets), "values", "target")
    if not w.any():
        raise InvalidInput("placement needs a target that is not zero")
    if stroke != np.inf:
        check_value("stroke", stroke, positive("m"))
    check_value("tolerance", tolerance, between(0, 1, open_ends=True))
    check_value("most", most, whole(1))
    found = _places(lattice, axes, single=model is lattice)
    space = _Space(model, lattice, found, targets, w, mean_pose)
    space.stroke, space.allowed = stroke * (1 + 1e-9), tolerance * np.abs(w).max()
    return space.search(most, progress)


def _places(lattice: Lattice, axes, single: bool) -> list[Control]:
    """The candidates; where `single`, those that drive one plane only."""
    found = candidates(lattice, axes)
    if single:
        # An actuator between two parts of a layer would drive two planes.
        drives = Planes(lattice).driven
        found = [c for c in found if drives(c.node, c.axis) == drives(c.other, c.axis)]
    if not found:
        raise InvalidInput(
            "the lattice has no two nodes a pitch apart along the allowed axes; "
            "allow another axis"
        )
    return found


class _Space:
    """Columns of T and of the compliance G K^-1 G^T, one per group of equivalents.

    Attributes:
        stroke: largest |u| [m].
        allowed: largest error [m].
    """

    stroke: float
    allowed: float

    def __init__(self, model, lattice: Lattice, found, targets, w, mean_pose: bool):
        elastic = isinstance(model, ElasticPOM)
        basis = model.basis if elastic else Planes(lattice).fields.toarray()
        G = extension_rows(lattice, found, basis)
        self._groups = _alike(G)
        first = [group[0][0] for group in self._groups]
        G = G[first]
        soft = model.amplitudes(G) if elastic else G
        rows = [3 * lattice.node(t.node) + t.axis for t in targets]
        self._w, self._controls, self._targets = w, found, targets
        if mean_pose and elastic:
            # Without the rigid motion that fits all nodes best.
            rigid = rigid_motions(lattice)
            basis = basis - rigid @ np.linalg.lstsq(rigid, basis, rcond=None)[0]
        self._T = basis[rows] @ soft.T
        self._flex = G @ soft.T

    def search(self, most: int, progress: Progress | None) -> Placement:
        """The smallest set within what is allowed; see :func:`place_actuators`."""
        w, allowed, targets = self._w, self.allowed, self._targets
        for row, target, asked in zip(self._T, targets, w.T):
            still = not np.abs(row).max(initial=0.0) > 0
            if still and np.abs(asked).max() > allowed:
                raise NoSolution(
                    "no actuator along the allowed axes moves "
                    f"{AXES[target.axis]} of {target.name!r}; allow more axes or "
                    "choose another node"
                )
        best, exact = (np.inf, ()), True
        everything, most = range(len(self._groups)), min(most, len(self._groups))
        for size in range(1, most + 1):
            if comb(len(self._groups), size) <= MOST_SETS:
                chosen = self.best_of(combinations(everything, size))
            else:
                exact, chosen = False, self.grown(best[1])
            (progress or silent)("sets of actuators", size, most)
            if size == 1 or chosen[0] < best[0]:
                best = chosen
            if chosen[0] <= allowed:
                return self.placement(chosen[1], exact)
        _, u, reached = self.moved(best[1])
        worst = int(np.argmax(np.abs(reached - w).max(axis=0)))
        raise NoSolution(
            f"no {most} actuators move {targets[worst].name!r} and the others as "
            f"requested within {allowed:.3g} m; allow more actuators, axes, stroke or "
            "tolerance",
            {"residual_m": best[0], "stroke_m": float(np.abs(u).max(initial=0.0))},
        )

    def moved(self, chosen, bounded=True) -> tuple[float, np.ndarray, np.ndarray]:
        """Largest error [m], controls u (T, M) and reached (T, W) of a set."""
        flex = self._flex[np.ix_(chosen, chosen)]
        if np.linalg.cond(flex) > 1e9:
            return np.inf, np.zeros((len(self._w), len(chosen))), 0 * self._w
        effect = self._T[:, chosen] @ np.linalg.inv(flex) * -2.0
        stroke = self.stroke if bounded else np.inf
        _, u, _ = bounded_controls(effect, self._w, stroke, rcond=1e-9)
        reached = u @ effect.T
        return float(np.abs(reached - self._w).max()), u, reached

    def best_of(self, sets) -> tuple[float, tuple[int, ...]]:
        """The set of least error; among feasible sets, the one of least stroke."""
        sets = list(sets)
        columns = self._T[:, np.array(sets)].transpose(1, 0, 2)
        gap = self._w.T - columns @ (np.linalg.pinv(columns, rcond=1e-9) @ self._w.T)
        left = sorted(zip((gap**2).sum(axis=(1, 2)).tolist(), sets))
        enough = self.allowed**2 * self._w.size
        feasible = [c for gap, c in left if gap <= enough]
        best = (np.inf, np.inf, left[0][1])
        for chosen in feasible or [c for _, c in left[:50]]:
            error, u, _ = self.moved(chosen, bounded=False)
            reach = float(np.abs(u).max())
            if error <= self.allowed and reach <= self.stroke:
                error = 0.0  # all feasible sets are equally good
            elif reach > self.stroke:
                error = np.inf
            best = min(best, (error, reach, chosen))
        if best[0] == np.inf:
            tried = [c for _, c in left[:50]]
            best = min((self.moved(c)[0], 0.0, c) for c in tried)
        return self.moved(best[2])[0], best[2]

    def grown(self, start) -> tuple[float, tuple[int, ...]]:
        """A smaller set with the best addition, then exchanges while they help."""
        everything = range(len(self._groups))
        rest = [k for k in everything if k not in start]
        best = self.best_of([(*start, k) for k in rest])
        while best[0] > self.allowed:
            _, chosen = best
            swaps = [
                (*chosen[:i], k, *chosen[i + 1 :])
                for i in range(len(chosen))  # fewer where a smaller set was better
                for k in everything
                if k not in chosen
            ]
            better = self.best_of(swaps)
            if not better[0] < best[0] * (1 - 1e-9):
                break
            best = better
        return best

    def placement(self, chosen, exact) -> Placement:
        """The set at places whose nodes no other actuator uses, where possible."""
        residual, u, _ = self.moved(chosen)
        taken: set = set()
        actuators, signs = [], []
        for k in chosen:
            same = [(self._controls[i], sign) for i, sign in self._groups[k]]
            free = [c for c in same if not {c[0].node, c[0].other} & taken]
            control, sign = (free or same)[0]
            taken |= {control.node, control.other}
            actuators.append(control)
            signs.append(sign)
        return Placement(tuple(actuators), u * signs, residual, exact)


def _alike(G: np.ndarray) -> list[list[tuple[int, float]]]:
    """Groups of rows that are equal up to the sign, without those that are zero: of
    each row its number, and its sign relative to the group's first."""
    seen: dict[bytes, list[tuple[int, float]]] = {}
    for i, row in enumerate(np.round(G, 9)):
        if not row.any():
            continue
        sign = float(np.sign(row[np.flatnonzero(row)[0]]))
        seen.setdefault((sign * row + 0.0).tobytes(), []).append((i, sign))
    return [[(i, sign / group[0][1]) for i, sign in group] for group in seen.values()]
