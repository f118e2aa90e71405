"""A lattice designed for a motion: voxels, struts, actuators and gait together;
without a command.

Of a domain of voxels, a design keeps a few, gives each its struts, and places a few
actuators. It is worth its reach: the largest lambda by which they move the targets
along the motion w of every pose, against springs that stand for what is worked on,

    lambda = max over e of lambda   subject to   S e = lambda w,   |e_a| <= 2 stroke.

S = T (G + 1/k)^-1 are the targets' motions per length e that an actuator is driven to,
by the frame held at the base: T = L K^-1 C' and G = C K^-1 C', with L the rows of the
targets, C those of the actuators' extensions, and k = push/(2 stroke): an actuator that
is blocked pushes with `push`, a free one reaches its stroke. The lengths e are the
gait. T and G of all places, from one factorization, give the reach of any set of
actuators, so each shape gets the best set that exchanges of single ones find.

Voxel v counts with a share phi_v, and actuators are springs, of rows c,

    K = sum_v phi_v (r_v^2 K_v^axial + r_v^4 K_v^bending) + sum_a k c_a' c_a
        + sum_j k_load l_j' l_j,

with r the sides of the struts over the given one. The gradient is exact, by the
envelope theorem and the adjoint: with the multipliers n of S e = lambda w, n'w = 1,
v = K^-1 L'n and u = K^-1 k C' e,

    d lambda = -v' dK u.

From random connected shapes, single voxels are exchanged in the order in which the
gradient by phi ranks them (a voxel that is left out has a share of `VOID`), the struts
step along the signs of theirs, and what is better is kept, until none of the first
`TRIED` exchanges helps; then from another shape. Densities between 0 and 1 (SIMP) were
tried and reach less once they are rounded (docs/evidence/voxel.md). Source: ours, for
the outlook of Tebyani et al. (2022); springs at outputs are those of Bendsoe and
Sigmund, "Topology Optimization" (2003), section 2.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice, product
from typing import Annotated

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, dijkstra

from drakebots.core.checks import array, each, instance, positive, whole
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.fields import checked
from drakebots.core.run import Progress, silent
from drakebots.lattice.frame import Factored, lattice_frame
from drakebots.lattice.pom import Control, actuator_nodes, candidates
from drakebots.lattice.pom.pom import table
from drakebots.lattice.shape import LatticeSpec, neighbours

VOID = 1e-3
"""Share of the stiffness of a voxel that is left out, while it may come back."""

GRAIN = 1e-4
"""Step of the sides of struts [m]."""

TRIED = 25
"""Exchanges that are tried before a design counts as a local optimum."""


@checked("codesign", eq=False)
class Codesign:
    """A lattice that is designed for a motion, within a domain.

    Raises:
        InvalidInput: for a base or a target that is not in the domain, motions of
            another shape, a pose without a motion, or struts that are not square.
    """

    lattice: LatticeSpec
    """The domain: where voxels may be, and the material of the struts."""
    targets: Annotated[Sequence[Control], each(instance(Control), "targets", 1)]
    """Components of nodal motions, W of them."""
    base: tuple[int, int, int]
    """The voxel (i, j, k) that is held."""
    motions: np.ndarray | None = None
    """Motion of the targets in each pose (T, W), of which the ratios count; None for
    one pose in which all move alike."""
    most_voxels: Annotated[int, whole(2)] = 14
    """Largest number of voxels."""
    most_actuators: Annotated[int, whole(1)] = 4
    """Largest number of actuators."""
    stroke: Annotated[float, positive("m")] = 5e-3
    """Largest displacement of an actuator's node; its length changes by twice that."""
    push: Annotated[float, positive("N")] = 20.0
    """Force of an actuator that is driven over its whole stroke and blocked."""
    load: Annotated[float, positive("N/m")] = 10.0
    """Stiffness of the spring along each target."""
    sides: Annotated[tuple[float, float], array((2,), "m")] = (1.0e-3, 1.6e-3)
    """Least and largest side of a voxel's struts, which are square."""
    factorizations: Annotated[int, whole(1)] = 600
    """Number of stiffness matrices that may be factored."""
    seed: Annotated[int, whole(0)] = 0
    """Seed of the shapes that are started from."""

    def __post_init__(self):
        w = np.ones(len(self.targets)) if self.motions is None else self.motions
        w = table(w, len(self.targets), "motions", "target")
        if not w.any(axis=1).all() or self.lattice.strut.d1 != self.lattice.strut.d2:
            raise InvalidInput("codesign: each pose moves a target, struts are square")
        object.__setattr__(self, "motions", w / np.abs(w).max(axis=1, keepdims=True))

    @property
    def drive(self) -> float:
        """Stiffness k of an actuator [N/m]."""
        return self.push / (2 * self.stroke)


@dataclass(frozen=True, eq=False)
class Design:
    """A design, in the domain's numbers.

    Attributes:
        kept: whether each voxel of the domain is kept (V,).
        sides: sides of each voxel's struts (V,) [m].
        places: numbers of its actuators among `DesignSpace.places` (M,).
        reach: least reach of all poses [m].
    """

    kept: np.ndarray
    sides: np.ndarray
    places: tuple[int, ...] = ()
    reach: float = 0.0

    def better(self, other: Design) -> bool:
        """Whether it reaches further than another, by more than rounding."""
        return self.reach > other.reach * (1 + 1e-6)


class DesignSpace:
    """What can be chosen from a domain, and what a choice is worth by its frame.

    Attributes:
        problem: the problem.
        places: all places for actuators, A of them.
        held: whether each voxel is the base (V,).
        factorizations: number of stiffness matrices factored so far.

    Raises:
        InvalidInput: for a base or a target that is not in the domain.
    """

    def __init__(self, problem: Codesign):
        self.problem, self.factorizations = problem, 0
        self._domain = domain = problem.lattice.lattice
        self.held = (domain.voxels == problem.base).all(axis=1)
        if not self.held.any():
            raise InvalidInput(f"codesign: the domain has no voxel {problem.base}")
        self.places, links = candidates(domain), neighbours(domain)[:, :2]
        joined = sp.coo_array((np.ones(len(links)), links.T), (len(self.held),) * 2)
        self._joined = sp.csr_array(joined + joined.T)
        self._frame = frame = lattice_frame(domain, problem.lattice.strut)
        B, D = frame.elements.B(), frame.elements.D[:, :, None]
        parts = (B[:, :1], D[:, :1]), (B[:, 1:], D[:, 1:])
        # Axial stiffness goes by the square of a strut's side, the rest by its fourth.
        self._parts = {p: b.mT @ (d * b) for p, (b, d) in zip((2, 4), parts)}
        self._pairs = actuator_nodes(domain, self.places)
        every = sp.eye_array(6 * len(frame), format="csr")
        first, second = 6 * self._pairs.T + [c.axis for c in self.places]
        self._C, self._k = every[second] - every[first], problem.drive
        self._goals = np.array([domain.node(t.node) for t in problem.targets])
        self._L = every[6 * self._goals + [t.axis for t in problem.targets]]

    def _factor(self, phi, sides, springs) -> Callable[[sp.csr_array], np.ndarray]:
        """A factored stiffness, as a function of rows (k, 6 N) that gives the motions
        (6 N, k) under them as forces; with actuators as springs, rows of C."""
        own, size = self._domain.voxel_nodes, self._C.shape[1]
        r = sides / self.problem.lattice.strut.d1
        shares = {p: np.repeat(phi * r**p, 12)[:, None, None] for p in self._parts}
        K = self._frame.assemble(sum(shares[p] * self._parts[p] for p in shares))
        K = K + self.problem.load * self._L.T @ self._L
        K = K + self._k * springs.T @ springs
        used = np.isin(np.arange(size) // 6, own[phi > 0])
        free = np.flatnonzero(used & ~np.isin(np.arange(size) // 6, own[self.held]))
        factor = Factored(K.tocsc()[free][:, free], np.zeros((0, len(free))))
        self.factorizations += 1

        def moved(rows: sp.csr_array) -> np.ndarray:
            motion = np.zeros((size, rows.shape[0]))
            motion[free] = factor.solve(rows[:, free].T.toarray())[0]
            return motion

        return moved

    def gradient(self, phi, sides, places) -> tuple[float, list[np.ndarray]]:
        """The logarithm of the least reach of all poses, and its gradient.

        Args:
            phi: shares of the voxels' stiffness (V,).
            sides: sides of their struts (V,) [m].
            places: numbers of the actuators' places (M,).

        Returns:
            log lambda, and its slopes by phi and sides.
        """
        C, most = self._C[list(places)], 2 * self.problem.stroke
        moved = self._factor(phi, sides, C)
        to_targets = moved(self._L)
        S = self._k * (C @ to_targets).T
        each = [(*largest(S, w, most), w) for w in self.problem.motions]
        reach, n, w = min(each, key=lambda pose: pose[0])
        e, v = lengths(S, w, most), to_targets @ n / max(reach, 1e-30)
        u = moved(sp.csr_array([self._k * e @ C]))[:, 0]
        by_phi, by_sides, r = 0 * phi, 0 * sides, sides / self.problem.lattice.strut.d1
        first, second = (self._frame.of_ends(x.reshape(-1, 6)) for x in (v, u))
        for p, K in self._parts.items():
            work = np.einsum("bi,bij,bj->b", first, K, second)
            work = work.reshape(-1, 12).sum(axis=1)
            by_phi -= r**p * work
            by_sides -= phi * p * r**p / sides * work
        return np.log(max(reach, 1e-30)), [by_phi, by_sides]

    def response(self, kept, sides, which) -> tuple[np.ndarray, np.ndarray]:
        """T (W, M) and G + 1/k (M, M) of a shape for some of the places."""
        C = self._C[which]
        moved = self._factor(kept * 1.0, sides, C[:0])(C)
        return self._L @ moved, C @ moved + np.eye(len(which)) / self._k

    def gait(self, design: Design) -> np.ndarray:
        """Lengths that a design's actuators are driven to in each pose (T, M) [m]."""
        T, flex = self.response(design.kept, design.sides, list(design.places))
        S, most = T @ np.linalg.inv(flex), 2 * self.problem.stroke
        return np.array([lengths(S, w, most) for w in self.problem.motions])

    def fits(self, kept: np.ndarray) -> np.ndarray:
        """Places whose two nodes a shape has."""
        own = self._domain.voxel_nodes[kept]
        return np.flatnonzero(np.isin(self._pairs, own).all(axis=1))

    def _edge(self, kept: np.ndarray) -> np.ndarray:
        return np.flatnonzero((self._joined @ (kept * 1.0) > 0) & ~kept)

    def grown(self, keys: np.ndarray) -> np.ndarray:
        """A connected shape: the cheapest paths from the base to the targets, then ever
        the cheapest voxel at its edge. A voxel costs its key (V,), > 0.

        Raises:
            NoSolution: where the paths need more voxels than are allowed.
        """
        kept, cost = self.held.copy(), sp.csr_array(self._joined * keys)
        far, before = dijkstra(cost, indices=np.argmax(kept), return_predecessors=True)
        for node in self._goals:
            own = (self._domain.voxel_nodes == node).any(axis=1)
            at = np.argmin(np.where(own, far, np.inf))
            while not kept[at]:
                kept[at], at = True, before[at]
        if kept.sum() > self.problem.most_voxels:
            raise NoSolution("codesign: the targets are too far; allow more voxels")
        while kept.sum() < min(self.problem.most_voxels, len(kept)):
            edge = self._edge(kept)
            kept[edge[np.argmin(keys[edge])]] = True
        return kept

    def placed(self, kept, sides, start=()) -> Design:
        """A shape with the best actuators found: those of `start`, others added one by
        one, then exchanged while that helps."""
        which, most = self.fits(kept), 2 * self.problem.stroke
        T, flex = self.response(kept, sides, which)
        chosen = np.flatnonzero(np.isin(which, start)).tolist()
        count = min(self.problem.most_actuators, len(which))

        def with_another(others: list[int]) -> tuple[float, list[int]]:
            rest = np.setdiff1d(np.arange(len(which)), others)
            sets = np.column_stack([np.tile(others, (len(rest), 1)), rest]).astype(int)
            S = np.linalg.solve(flex[sets[..., None], sets[:, None]], T.T[sets]).mT
            each = [largest(S, w, most)[0] for w in self.problem.motions]
            best = np.argmax(np.min(each, axis=0))
            return np.min(each, axis=0)[best], sets[best].tolist()

        while len(chosen) < count:
            _, chosen = with_another(chosen)
        value, before = 0.0, -1.0
        while value > before * (1 + 1e-9) and count:
            swaps = (with_another(chosen[:i] + chosen[i + 1 :]) for i in range(count))
            before, (value, chosen) = value, max(swaps)
        return Design(kept, sides, tuple(which[chosen].tolist()), float(value))

    def exchanges(self, kept: np.ndarray, gain: np.ndarray) -> Iterator[np.ndarray]:
        """Connected shapes with a voxel less, another one, or one more where there is
        room, by the sum of their gains (V,): with the sign of a voxel's coming."""
        edge = self._edge(kept)
        inner, gain = np.flatnonzero(kept & ~self.held), np.where(kept, -gain, gain)
        moves = [*product(inner, edge), *product(inner, [None]), *product([None], edge)]
        moves = [[voxel for voxel in move if voxel is not None] for move in moves]
        for move in sorted(moves, key=lambda move: -gain[move].sum()):
            trial = kept.copy()
            trial[move] ^= True
            one = connected_components(self._joined[trial][:, trial])[0] == 1
            has = np.isin(self._goals, self._domain.voxel_nodes[trial]).all()
            if one and has and trial.sum() <= self.problem.most_voxels:
                yield trial


def largest(S: np.ndarray, w: np.ndarray, most: float):
    """The largest lambda with S e = lambda w and |e| <= most, by the dual: the least of
    most |S'n|_1 over n'w = 1, where W - 1 of the terms vanish.

    Args:
        S: motions of the targets per length (..., W, M).
        w: motion asked for (W,).
        most: the largest length [m].

    Returns:
        lambda (...) [m], and n (..., W).
    """
    W, M = S.shape[-2:]
    kinks = [list(some) for some in combinations(range(M), W - 1)]
    if not kinks:
        return np.zeros(S.shape[:-2]), np.broadcast_to(w / (w @ w), S.shape[:-1])
    rows = np.stack([S[..., some] for some in kinks], axis=-3)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=-2, keepdims=True), 1e-300)
    unit = np.broadcast_to((w / np.linalg.norm(w))[:, None], (*rows.shape[:-1], 1))
    systems = np.concatenate([unit, rows], axis=-1).mT
    apart = np.abs(np.linalg.det(systems))[..., None] > 1e-9
    n = np.linalg.inv(np.where(apart[..., None], systems, np.eye(W)))[..., 0]
    n = np.where(apart, n, unit[..., 0]) / np.linalg.norm(w)
    reach = most * np.abs(n @ S).sum(axis=-1)
    at = np.argmin(reach, axis=-1)[..., None]
    n = np.take_along_axis(n, at[..., None], axis=-2)[..., 0, :]
    return np.take_along_axis(reach, at, axis=-1)[..., 0], n


def lengths(S: np.ndarray, w: np.ndarray, most: float) -> np.ndarray:
    """Lengths e (M,) [m] of the :func:`largest` motion: those that count are at their
    limits, the others meet S e = lambda w."""
    reach, n = largest(S, w, most)
    full = np.abs(n @ S) > 1e-9 * (np.abs(n) @ np.abs(S)).max(initial=0.0)
    e = np.where(full, most * np.sign(n @ S), 0.0)
    e[~full] = np.linalg.lstsq(S[:, ~full], reach * w - S @ e, rcond=None)[0]
    return e


# --- the search -------------------------------------------------------------


def codesign(problem: Codesign, *, progress: Progress | None = None) -> Design:
    """The best design found.

    Args:
        problem: what is asked for.
        progress: called with the factorizations done.

    Raises:
        NoSolution: where the voxels allowed do not reach the targets, or no actuator
            moves them.
    """
    space, random = DesignSpace(problem), np.random.default_rng(problem.seed)
    plain = np.full(len(space.held), np.mean(problem.sides))
    best, most = Design(space.held, plain), problem.factorizations
    while space.factorizations < most:
        keys = random.uniform(0.01, 1, len(plain))
        found = exchanged(space, space.placed(space.grown(keys), plain))
        best = found if found.better(best) else best
        (progress or silent)("factorizations", space.factorizations, most)
    if not best.reach:
        raise NoSolution("codesign: no actuator moves the targets; allow more of them")
    return best


def exchanged(space: DesignSpace, design: Design) -> Design:
    """A design after exchanges of voxels and steps of its struts, until none of those
    tried makes it better or the factorizations are used up."""
    problem, before = space.problem, None
    while before is None or design.better(before):
        before, phi = design, np.where(design.kept, 1.0, VOID)
        _, (by_phi, by_sides) = space.gradient(phi, design.sides, design.places)
        steps = np.clip(design.sides + GRAIN * np.sign(by_sides), *problem.sides)
        shapes = islice(space.exchanges(design.kept, by_phi), TRIED)
        trials = ((kept, design.sides) for kept in shapes)
        for kept, sides in chain([(design.kept, steps)], trials):
            if space.factorizations >= problem.factorizations:
                return design
            trial = space.placed(kept, sides, design.places)
            if trial.better(design):
                design = trial
                break
    return design
