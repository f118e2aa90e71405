"""Implicit contact of the skin with links and itself, as a law of the small system.

A pair is a vertex and what it may touch: a link, or a triangle of the skin. In a time
step its two sides move apart along the normal n by s = G du + L dq, and push each other
with

    f = max(0, k (d - s) - c s/dt) >= 0

where d is the depth at the start of the step, and c counts only if d > 0. The rows G
couple nodes that the skin's matrix does not couple, so f is solved for instead of added
to that matrix. Let A be the skin's matrix, i its condensed and c its kept dofs
(:mod:`drakebots.fem.solver.base`), and solve once for each pair:

    Y = A_ii^-1 G_i',  H = G_c' - A_ci Y,  D = G_i Y

A step then gives s = s_0 + P z + D f, with P = H' T + [L, 0] and z, T of
:mod:`drakebots.skin.coupled.equations`, and f acts on the small system by P' f. With s
eliminated and kappa = k + c/dt, f is the unique maximum over f >= 0 of

    f' (k d/kappa - s_0 - P z) - f' (1/kappa + D) f/2

The maximum is a convex potential of y = P z, and so a
:class:`~drakebots.skin.coupled.laws.Law` with which the small system is solved,
together with servos and feet. Pairs push and never pull, action equals reaction, and no
stiffness is too large for a time step. Friction is explicit, as in
:class:`~drakebots.fem.contact.Penalty`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import nnls
from scipy.sparse import block_diag, csr_array, hstack, vstack

from drakebots.core.errors import NoSolution
from drakebots.fem import Penalty
from drakebots.skin.coupled.equations import (
    CondensedSystem,
    ReducedSystem,
    ScaledCholesky,
    StepEquations,
    StepSolution,
)
from drakebots.skin.coupled.laws import ClippedLaw, Law, minimise

ROUNDS = 20
"""Largest number of changes of the set of pushing pairs; after that, f is found by
non-negative least squares."""


@dataclass(frozen=True)
class Pairs:
    """Pairs that may touch in a time step, r of them.

    Attributes:
        skin, links: maps of du (3 N,) and dq (nv,) to the motion of each vertex
            relative to what it may touch, (3 r, 3 N) sparse and (3 r, nv).
        normal: directions in which the vertices are pushed (r, 3).
        depth: depths at the start of the step, below 0 for a gap (r,) [m].
        stiffness, damping: k (r,) [N/m] and c (r,) [N s/m].
        drag: friction on the vertices (r, 3) [N].
    """

    skin: csr_array
    links: np.ndarray
    normal: np.ndarray
    depth: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    drag: np.ndarray

    def __len__(self) -> int:
        return len(self.depth)

    def rows(self) -> tuple[csr_array, np.ndarray]:
        """G (r, 3 N), sparse, and L (r, nv)."""
        along = csr_array(block_diag(list(self.normal[:, None])))
        return along @ self.skin, along @ self.links

    def friction(self) -> tuple[np.ndarray, np.ndarray]:
        """Forces on the nodes (N, 3) [N] and the skeleton (nv,) [N, N m]."""
        drag = self.drag.ravel()
        return (self.skin.T @ drag).reshape(-1, 3), self.links.T @ drag


def near_pairs(
    skin: csr_array,
    links: np.ndarray,
    normal: np.ndarray,
    depth: np.ndarray,
    penalty: Penalty,
    velocities: tuple[np.ndarray, np.ndarray],
    dt: float,
) -> Pairs:
    """The pairs that are near enough to touch by the end of the step.

    Pairs count by their speed, also if they move apart: the skin may pull such a vertex
    back. Without its pair nothing would stop it, and in the next step it would be deep
    inside, and thrown out.

    Args:
        skin, links, normal, depth: as in :class:`Pairs`.
        penalty: parameters of the contact.
        velocities: velocities of the skin's nodes (N, 3) and of the skeleton (nv,).
        dt: time step [s].
    """
    v, v_q = velocities
    motion = (skin @ v.ravel() + links @ v_q).reshape(-1, 3)
    hit = np.flatnonzero(depth > -dt * np.linalg.norm(motion, axis=1))
    three = (3 * hit[:, None] + np.arange(3)).ravel()
    depth, normal, motion = depth[hit], normal[hit], motion[hit]
    push = penalty.forces(depth, normal, motion)
    along = np.einsum("ij,ij->i", push, normal)[:, None] * normal
    rows, stiffness = csr_array(skin[three]), np.full(len(hit), penalty.stiffness)
    # No damping before they touch, as with the ground.
    damping = np.where(depth > 0, penalty.damping, 0.0)
    return Pairs(rows, links[three], normal, depth, stiffness, damping, push - along)


def joined(pairs: list[Pairs]) -> Pairs | None:
    """All pairs as one object; None if there are none."""
    pairs = [some for some in pairs if len(some)]
    if not pairs:
        return None
    dense = ("links", "normal", "depth", "stiffness", "damping", "drag")
    return Pairs(
        csr_array(vstack([some.skin for some in pairs])),
        **{k: np.concatenate([getattr(some, k) for some in pairs]) for k in dense},
    )


@dataclass(frozen=True)
class TouchLaw(Law):
    """The pairs as a law of the small system; y = P z.

    Attributes:
        rows: P (r, nv + 3 p).
        aim: k d/kappa - s_0 (r,) [m].
        give: 1/kappa + D (r, r) [m/N].
    """

    rows: np.ndarray
    aim: np.ndarray
    give: np.ndarray
    _last: dict = field(default_factory=dict, repr=False)

    def force(self, y: np.ndarray) -> np.ndarray:
        """The forces f (r,) [N].

        They satisfy f >= 0 and give f >= aim - y, with equality where f > 0.
        """
        key = y.tobytes()
        if self._last.get("key") != key:
            want = self.aim - y
            f = self._changing(want, self._last.get("pushing", want > 0))
            self._last.update(key=key, force=f, pushing=f > 0)
        return self._last["force"]

    def _changing(self, want, pushing):
        """f for aim - y (r,), by changing the set of pushing pairs until it fits.

        Most steps need two or three changes.
        """
        for _ in range(ROUNDS):
            f, on = np.zeros(len(want)), np.flatnonzero(pushing)
            if len(on):
                factor = cho_factor(self.give[np.ix_(on, on)])
                f[on] = cho_solve(factor, want[on])
            after = np.where(pushing, f > 0, want - self.give @ f > 0)
            if np.array_equal(after, pushing):
                return f
            pushing = after
        size = np.sqrt(np.diag(self.give))
        upper = cholesky(self.give / np.outer(size, size))
        unit = max(np.abs(want / size).max(), 1e-300)
        right = solve_triangular(upper, want / size / unit, trans="T")
        try:
            return nnls(upper, right)[0] * unit / size
        except RuntimeError as error:
            raise NoSolution(f"coupled step: contact not solved: {error}") from error

    def energy(self, y: np.ndarray) -> float:
        """The potential [J]."""
        f = self.force(y)
        return float(f @ (self.aim - y) - f @ self.give @ f / 2)

    def stiffness(self, y: np.ndarray) -> np.ndarray:
        """-d force/dy (r, r) [N/m]; 0 for pairs that do not push."""
        K = np.zeros_like(self.give)
        on = np.flatnonzero(self.force(y) > 0)
        if len(on):
            factor = cho_factor(self.give[np.ix_(on, on)])
            K[np.ix_(on, on)] = cho_solve(factor, np.eye(len(on)))
        return K


class Touching:
    """Pairs condensed onto a small system. Its solver must not be factored again.

    Args:
        pairs: the pairs.
        system: small system of the step, exact or not.
        dt: time step [s].

    Attributes:
        G, L: rows of the pairs on the skin (r, 3 N) and on the skeleton (r, nv).
        springs: their law, of which s is the motion along rows of [dq, du].
    """

    def __init__(self, pairs: Pairs, system: CondensedSystem, dt: float):
        solver, J = system.solver, system.equations.skeleton.J
        self.G, self.L = pairs.rows()
        state, self._H = solver.reduce(self.G.T.toarray())
        self._Y = solver.expand(state, np.zeros_like(self._H))
        self._Y[solver.kept] = 0.0
        D = self.G @ self._Y
        kappa = pairs.stiffness + pairs.damping / dt
        self._give = np.diag(1 / kappa) + (D + D.T) / 2
        self._free = pairs.stiffness * pairs.depth / kappa
        rows, most = csr_array(hstack([self.L, self.G])), np.full(len(kappa), np.inf)
        self.springs = ClippedLaw(rows, kappa * self._free, kappa, 0 * kappa, most)
        self._glue = len(J)
        H_c = self._H[: self._glue]
        self._rows = np.hstack([H_c.T @ J + self.L, self._H[self._glue :].T])
        if system.touched is not None:
            self._rows[:, system.touched.at] += self.G @ system.touched.Y

    def first(self, system: ReducedSystem) -> TouchLaw:
        """The law of the step."""
        equations = system.equations
        s = self._Y.T @ equations.b_d + self._H[: self._glue].T @ equations.gap
        return TouchLaw(self._rows, self._free - s, self._give)

    def again(self, z: np.ndarray, y: np.ndarray, residual: np.ndarray) -> TouchLaw:
        """The law in a pass of refinement.

        Args:
            z, y: solution of the pass before (nv + 3 p,), and [dq, du] (nv + 3 N,).
            residual: b_d - A_d du (3 N,) [N].
        """
        s = self.springs.rows @ y + self._Y.T @ residual - self._rows @ z
        return TouchLaw(self._rows, self._free - s, self._give)

    def moved(self, f: np.ndarray) -> np.ndarray:
        """Displacements (3 N,) [m] of the skin by f, with its kept dofs held."""
        return self._Y @ f

    def solution(self, system: ReducedSystem, z, f) -> StepSolution:
        """The solution of the step for z and f, as exact as the solver is."""
        du = system.displacement(z) + self.moved(f)
        glue = system.glue_forces(z) - self._H[: self._glue] @ f
        return StepSolution(z[: system.nv], du.reshape(-1, 3), glue.reshape(-1, 3))


class SpringSystem:
    """The small system with some of the pairs as springs, which push or pull.

    With K = (1/kappa + D)^-1 of these pairs it is

        (R + P' K P) z = r + P' K (k d/kappa - s_0)

    as large as without contact, and linear in torques and forces: what a planner
    optimizes over. It is exact where the pairs are those that push at z.

    Args:
        system: small system of the step.
        touching: its pairs.
        z: motion at which the pairs that push are taken (nv + 3 p,).
        law: `touching.first(system)`, where it is known.

    Attributes:
        free: the small system without contact.
        matrix: R + P' K P.
        pushing: mask of the pairs that are springs (r,).
    """

    def __init__(
        self,
        system: ReducedSystem,
        touching: Touching,
        z: np.ndarray,
        law: TouchLaw | None = None,
    ):
        self.free, self.touching = system, touching
        self.law = law = touching.first(system) if law is None else law
        self.pushing = self._pushing(z)
        PK = law.rows.T @ law.stiffness(law.rows @ z)
        self._push = PK @ law.aim
        self.matrix = system.matrix + PK @ law.rows
        self._factors = ScaledCholesky(self.matrix)

    def _pushing(self, z):
        return self.law.force(self.law.rows @ z) > 0

    @property
    def equations(self) -> StepEquations:
        """Equations of the step without the pairs."""
        return self.free.equations

    def right_side(self, torques=None, forces=None) -> np.ndarray:
        """As :meth:`ReducedSystem.right_side`, with what springs push at z = 0."""
        return self.free.right_side(torques, forces) + self._push

    def back(self, r: np.ndarray) -> np.ndarray:
        """z for r, as :meth:`ReducedSystem.back`."""
        return self._factors.checked(r)

    def at(self, z: np.ndarray) -> SpringSystem:
        """The system of the pairs that push at z: itself, if they are its own."""
        if np.array_equal(self._pushing(z), self.pushing):
            return self
        return SpringSystem(self.free, self.touching, z, self.law)

    def solution(self, z: np.ndarray) -> StepSolution:
        """The step under what z solves this system for, where no pair pulls.

        It is that of z where the pairs that push there are the springs.

        Raises:
            NoSolution: where it is not found.
        """
        law, r = self.law, self.matrix @ z - self._push
        z = minimise(self.free, [law], r, z)
        return self.touching.solution(self.free, z, law.force(law.rows @ z))
