"""Solves coupled time steps by conjugate gradients, with factors of an earlier step.

A factorization in float32, of this step's matrix or of an earlier one whose nodes are
turned with the skin since (:class:`~.equations.TurnedSolver`), gives an approximate
small system R~ of :mod:`drakebots.skin.coupled.equations` and approximate sweeps. With
dq and du so far, z = [dq, u_p] and du_c = J dq + gap, each pass computes the residuals
of the whole step in double, and the step that the approximate system answers with:

    rho = b_d - A_d du + X dq,  (state, g) = reduce(rho)
    r = R~ z + [b_r - A_r dq + X' du + J' g_c + Y' rho, g_p] + load
    z+ = the minimum of z' R~ z/2 - r' z + sum psi(P dq)
    way = (z+ - z, expand(state, T (z+ - z)) + Y (dq+ - dq))

where load are torques and contact forces. Servos with limits and contact points, psi,
are solved again in every pass, on the small system. So is contact of the skin
(:mod:`drakebots.skin.coupled.touch`), whose forces add to rho. The energy of the whole
step, laws included, is then minimised over this way and the one of the pass before,
which without laws is the preconditioned conjugate gradient method. The last change
times the last rate of shrinking estimates the remaining error.

Factors are kept until a step takes more passes than the mean step since they were made,
their own cost included; then the next step is factored anew. With them a step's result
is that of any other factors to the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np

from drakebots.core.checks import check_value, one_of
from drakebots.core.errors import NoSolution
from drakebots.fem.assembly import FemModel, node_rotations
from drakebots.fem.solver import PRECISIONS, SolverFault, SparseSolver
from drakebots.skin.coupled.driven import Drive, feet
from drakebots.skin.coupled.equations import (
    CondensedSystem,
    ReducedSystem,
    StepEquations,
    StepSolution,
    TurnedSolver,
    skin_solver,
)
from drakebots.skin.coupled.glue import Glue
from drakebots.skin.coupled.laws import minimise
from drakebots.skin.coupled.touch import Pairs, Touching

TOLERANCE = 3e-11
"""Largest error of du over its largest entry, and of dq over that of both; and largest
residual of the skin's rows over max|A| max|du| + max|b|."""

LINKS = 30
"""Largest residual of the skeleton's rows over TOLERANCE: 1e-9, as
:meth:`.equations.ScaledCholesky.checked` has it."""

PASSES = 14
"""Largest number of passes. A step that needs more is factored anew; one that needs
more with factors of its own is solved in double precision."""

FACTOR_COST = 14
"""Cost of a factorization in passes: 145 ms beside 10.5 of a skin of 13988 vertices."""

FRICTION_FROM = 1e-6
"""Change of a pass below which the bound of the friction is known."""

SINGLE_FROM = 2000
"""Number of nodes of a skin from which single precision is faster."""

SLOW_STEPS = 20
"""Number of steps in double precision after one whose refinement failed."""

EXACT, REFINED = "one linear solve", "one linear solve, refined"


@dataclass(frozen=True)
class SolvedStep:
    """A solved step.

    Attributes:
        solution: its solution; where it is refined, the glue's forces are those of the
            glue's rows, lambda = (A_d du - b_d - G' f)_c.
        feet: forces of the ground on the contact points (k, 3) [N].
        note: kind of solution, EXACT or REFINED.
        left: estimated relative error of a refined dq and du.
        passes: number of passes of a refined solution.
    """

    solution: StepSolution
    feet: np.ndarray
    note: str
    left: float = 0.0
    passes: int = 0


def refined(
    system: CondensedSystem,
    drive: Drive,
    guess: StepSolution,
    forces: np.ndarray | None = None,
    touching: Touching | None = None,
) -> SolvedStep:
    """Solves a step by passes of an approximate system.

    Args:
        system: small system, exact or not.
        drive: torques and contact of the step.
        guess: where to begin.
        forces: contact forces (p, 3) [N].
        touching: contact of the skin with links and itself.

    Raises:
        NoSolution: when the passes do not reach the tolerance, or the small system
            has no solution.
    """
    equations, nv, load = system.equations, system.nv, drive.right_side(system, forces)
    y = np.concatenate([guess.dq, np.ravel(guess.du)])
    glued = nv + equations.glue_dofs
    y[glued] = equations.skeleton.J @ guess.dq + equations.gap
    # Where z is in y, and what is left of the step's equations without laws.
    at = np.concatenate([np.arange(nv), nv + system.solver.kept[len(glued) :]])
    left = equations.left(y)
    left[at] += load
    ways = products = np.empty((0, len(y)))
    ground, change, rate, number = None, 1.0, 1.0, 1
    for number in range(1, PASSES + 1):
        known = ground if change < FRICTION_FROM else None
        way, ground = _way(system, drive, y, at, left, known, touching)
        ways = np.vstack([way, ways])
        products = np.vstack([equations.product(way), products])
        laws = [*drive.laws, ground, touching and touching.springs]
        laws = [law for law in laws if law is not None]
        along = [_along(law, y, ways) for law in laws]
        plane = SimpleNamespace(matrix=ways @ products.T)
        shares = minimise(plane, along, ways @ left, np.eye(len(ways))[0])
        ways, products = shares[None] @ ways, shares[None] @ products
        y, left = y + ways[0], left - products[0]
        before, rate_before, size = change, rate, np.abs(y[nv:]).max()
        change = max(_share(ways[0, :nv], np.abs(y).max()), _share(ways[0, nv:], size))
        rate = change / max(before, 1e-300)
        error = change * max(rate, rate_before)
        if error <= TOLERANCE and change <= FRICTION_FROM:
            left = equations.left(y)
            left[at] += load
            pull, on_skin, on_links = _missed(system, y, left, laws)
            if not (on_skin <= TOLERANCE and on_links <= LINKS * TOLERANCE):
                break
            found = StepSolution(y[:nv], y[nv:].reshape(-1, 3), pull.reshape(-1, 3))
            return SolvedStep(found, feet(ground, found.dq), REFINED, error, number)
        # At this rate it would take too many.
        if number > 2 and not change < TOLERANCE ** (number / PASSES):
            break
    raise NoSolution(
        f"coupled step: not refined to {TOLERANCE:g} in {number} passes; the last one "
        f"changed it by {change:.1e}"
    )


def _missed(system, y, left, laws):
    """The glue's forces on the skin (3 g,) [N], and what is missed with them of the
    rows of skin and of skeleton, in terms of the largest matrix, solution, right side.

    Args:
        system: the small system, whose diagonal scales the skeleton's rows.
        y: dq and du (nv + 3 N,).
        left: what is left of the rows without laws and glue (nv + 3 N,) [N, N m].
        laws: laws of the step.
    """
    equations, nv = system.equations, system.nv
    for law in laws:
        n = law.rows.shape[1]
        left[:n] += law.rows.T @ law.force(law.rows @ y[:n])
    glued = nv + equations.glue_dofs
    pull, left[glued] = -left[glued], 0.0
    left[:nv] -= equations.skeleton.J.T @ pull
    size = np.abs(equations.A_d).max() * np.abs(y[nv:]).max()
    on_skin = _share(left[nv:], size + np.abs(equations.b_d).max())
    # Angles and lengths differ by orders: scaled, R has a diagonal of ones.
    scale, J = np.diag(system.matrix)[:nv] ** -0.5, np.abs(equations.skeleton.J)
    load = np.abs(equations.skeleton.b) + J.T @ np.abs(pull)
    size = np.abs(y[:nv] / scale).max() + (load * scale).max()
    return pull, on_skin, _share(left[:nv] * scale, size)


def _way(system, drive, y, at, left, ground, touching):
    """The way from y to the approximate system's answer, and its contact points."""
    nv, z, rho, law = system.nv, y[at], left[system.nv :], None
    state, small = system.solver.reduce(rho)
    r = system.matrix @ z + system.of_residual(rho, small)
    r[:nv] += left[:nv]
    if touching is not None:
        law = touching.again(z, y, rho)
    after, ground = drive.solve(system, r, z, ground, law)
    du = system.expand(state, after - z, gap=0.0)
    if law is not None:
        du += touching.moved(law.force(law.rows @ after))
    return np.concatenate([(after - z)[:nv], du]), ground


def _along(law, y, ways):
    """A law along ways from y, which begins with what its rows are of."""
    n = law.rows.shape[1]
    return replace(law, rows=law.rows @ ways[:, :n].T, start=law.rows @ y[:n])


def _share(part, whole):
    return np.abs(part).max(initial=0.0) / max(whole, 1e-300)


class KeptFactors:
    """Factors of a skin's matrix, kept over steps.

    Args:
        model: the skin.
        solver: solver of :func:`~drakebots.skin.coupled.equations.skin_solver`.
        steps: whether to keep them; otherwise every step is factored.

    Attributes:
        held: whether there are factors to be tried.
    """

    def __init__(self, model: FemModel, solver: SparseSolver, steps: bool = True):
        self.model, self.solver, self.steps = model, solver, steps
        self.held = False

    def system(self, equations: StepEquations, x: np.ndarray) -> CondensedSystem:
        """The small system of a step from x (N, 3) [m], factored if none are held."""
        turn = node_rotations(self.model, x)
        if not self.held:
            self.solver.factor(equations.A_d)
            system = CondensedSystem(equations, self.solver)
            self._turn, self._touched = turn, system.touched
            self._passes, self._number = FACTOR_COST, 0
            self.held = self.steps
            return system
        Q, touched = turn @ self._turn.transpose(0, 2, 1), self._touched
        if touched is not None:
            touched = touched.turned(Q, self.solver.kept)
        return CondensedSystem(equations, TurnedSolver(self.solver, Q), touched)

    def used(self, passes: int) -> None:
        """Counts a step's passes, and drops factors that others would outdo."""
        self._passes, self._number = self._passes + passes, self._number + 1
        if passes * self._number > self._passes:
            self.held = False


class StepSolver:
    """Solves the time steps of one skin.

    Args:
        model, glue, contacts: as for
            :func:`~drakebots.skin.coupled.equations.skin_solver`.
        precision: "double"; "single", factors in float32 and solutions refined to
            1e-10; or "auto", single from SINGLE_FROM nodes on. Where a refinement
            fails, this step and the next SLOW_STEPS are solved in double. Without
            PARDISO factors are always double.
        keep: whether the factors of refined solutions are kept over steps.
        options: options of :func:`~drakebots.fem.solver.sparse.make_solver`.

    Attributes:
        exact: solver in double precision; steps in single do not touch it.

    Raises:
        UnknownName: for another precision or solver.
    """

    def __init__(
        self,
        model: FemModel,
        glue: Glue,
        contacts: np.ndarray = (),
        precision: str = "auto",
        keep: bool = True,
        **options,
    ):
        check_value("precision", precision, one_of("precision", ("auto", *PRECISIONS)))
        if precision == "auto":
            precision = "single" if len(model.rest) >= SINGLE_FROM else "double"
        self.exact = skin_solver(model, glue, contacts, **options)
        self._quick, self._slow = None, 0
        if precision == "single":
            quick = skin_solver(model, glue, contacts, precision=precision, **options)
            if keep or not quick.exact:
                self._quick = KeptFactors(model, quick, keep)

    def solve(
        self,
        equations: StepEquations,
        drive: Drive,
        forces: np.ndarray | None = None,
        pairs: Pairs | None = None,
        *,
        x: np.ndarray,
        guess: StepSolution,
    ) -> SolvedStep:
        """Solves one step with torques, contact and contact forces (p, 3) [N].

        Args:
            equations, drive, forces: as for :func:`refined`.
            pairs: pairs of the skin with links and itself that may touch.
            x: positions of the skin's nodes (N, 3) [m].
            guess: where a refinement begins.

        Raises:
            NoSolution: when it has no solution in double precision either.
        """
        quick = self._quick
        while quick is not None and not self._slow:
            old = quick.held
            try:
                system = quick.system(equations, x)
                touching = pairs and Touching(pairs, system, drive.dt)
                solved = refined(system, drive, guess, forces, touching)
                quick.used(solved.passes)
                return solved
            except NoSolution:
                quick.held = False
                if not old:  # the next steps are likely to be as hard
                    self._slow = SLOW_STEPS
        self._slow = max(self._slow - 1, 0)
        while True:
            try:
                return self._exactly(equations, drive, forces, pairs)
            except SolverFault:  # the next library is asked
                continue

    def _exactly(self, equations, drive, forces, pairs):
        system = ReducedSystem(equations, self.exact)
        r = drive.right_side(system, forces)
        if pairs is None:
            z, ground = drive.solve(system, r)
            found = system.solution(z)
        else:
            touching = Touching(pairs, system, drive.dt)
            law = touching.first(system)
            z, ground = drive.solve(system, r, touch=law)
            found = touching.solution(system, z, law.force(law.rows @ z))
        return SolvedStep(found, feet(ground, found.dq), EXACT)
