"""Solves coupled time steps, by factors in single precision refined to double.

A solver in float32 gives an approximate small system R~ of
:mod:`drakebots.skin.coupled.equations` and approximate sweeps. Their solution is
corrected by its residual in the equations of the whole step, which is computed in
double. With dq and du so far, z = [dq, u_p] and du_c = J dq + gap, each pass does

    rho = b_d - A_d du + X dq,  (state, g) = reduce(rho)
    r = R~ z + [b_r - A_r dq + X' du + J' g_c + Y' rho, g_p] + load
    z+ = the minimum of z' R~ z/2 - r' z + sum psi(P dq)
    du+ = du + expand(state, T (z+ - z)) + Y (dq+ - dq)

where load are torques and contact forces. Servos with limits and contact points, psi,
are solved again in every pass, on the small system. So is contact of the skin
(:mod:`drakebots.skin.coupled.touch`), whose forces add to rho. With exact factors one
pass solves the step. With factors in float32 an error shrinks by 1e-3 to 1e-5 per pass,
by 1e-2 in stiff skins. The last change times the last rate of shrinking estimates the
remaining error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.core.checks import check_value, one_of
from drakebots.core.errors import NoSolution
from drakebots.fem.assembly import FemModel
from drakebots.fem.solver import PRECISIONS, SolverFault
from drakebots.skin.coupled.driven import Drive, feet
from drakebots.skin.coupled.equations import (
    ReducedSystem,
    StepEquations,
    StepSolution,
    skin_solver,
)
from drakebots.skin.coupled.glue import Glue
from drakebots.skin.coupled.touch import Pairs, Touching

TOLERANCE = 1e-10
"""Largest error of du over its largest entry, and of dq over that of both."""

PASSES = 6
"""Largest number of passes; a step that needs more is solved in double precision."""

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
    """

    solution: StepSolution
    feet: np.ndarray
    note: str
    left: float = 0.0


def refined(
    system: ReducedSystem,
    drive: Drive,
    forces: np.ndarray | None = None,
    touching: Touching | None = None,
) -> SolvedStep:
    """Solves a step by passes of an approximate system.

    Args:
        system: small system, with a solver of either precision.
        drive: torques and contact of the step.
        forces: contact forces (p, 3) [N].
        touching: contact of the skin with links and itself.

    Raises:
        NoSolution: when the passes do not reach the tolerance, or the small system
            has no solution.
    """
    equations, solver, nv = system.equations, system.solver, system.nv
    r = drive.right_side(system, forces)
    load = r - system.right_side()
    law = None if touching is None else touching.first(system)
    z, _ = drive.solve(system, r, touch=law)
    du = system.displacement(z)
    if law is not None:
        du += touching.moved(law.force(law.rows @ z))
    ground, change, number = None, 1.0, 1
    for number in range(2, PASSES + 1):  # noqa: B007 - the message names it
        rho = equations.skin_residual(z[:nv], du)
        state, small = solver.reduce(rho)
        r = system.matrix @ z + load + system.of_residual(rho, small)
        r[:nv] += equations.skeleton_residual(z[:nv], du)
        # The friction is solved for twice; later passes would not change it.
        law = None if touching is None else touching.again(z, du, rho)
        after, ground = drive.solve(system, r, z, ground, law)
        step = after - z
        more = system.expand(state, step, gap=0.0)
        if law is not None:
            push = law.force(law.rows @ after)
            more += touching.moved(push)
        z, du, before = after, du + more, change
        size = np.abs(du).max()
        largest = np.abs(z[:nv]).max(), size
        change = max(_share(step[:nv], max(largest)), _share(more, size))
        if not change <= before:  # also where it is not finite
            break
        left = change * change / before
        if left <= TOLERANCE:
            rho = equations.skin_residual(z[:nv], du)
            if law is not None:
                rho += touching.on_skin(push)
            pull = -rho[equations.glue_dofs]
            found = StepSolution(z[:nv], du.reshape(-1, 3), pull.reshape(-1, 3))
            return SolvedStep(found, feet(ground, found.dq), REFINED, left)
    raise NoSolution(
        f"coupled step: not refined to {TOLERANCE:g} in {number} passes; the last one "
        f"changed it by {change:.1e}"
    )


def _share(part, whole):
    return np.abs(part).max(initial=0.0) / max(whole, 1e-300)


class StepSolver:
    """Solves the time steps of one skin.

    Args:
        model, glue, contacts: as for
            :func:`~drakebots.skin.coupled.equations.skin_solver`.
        precision: "double"; "single", factors in float32 and solutions refined to
            1e-10; or "auto", single from SINGLE_FROM nodes on. Where a refinement
            fails, this step and the next SLOW_STEPS are solved in double. Without
            PARDISO it is always double.
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
        **options,
    ):
        choices = ("auto", *PRECISIONS)
        check_value("precision", precision, one_of("precision", choices))
        if precision == "auto":
            precision = "single" if len(model.rest) >= SINGLE_FROM else "double"
        self.exact = skin_solver(model, glue, contacts, **options)
        quick = skin_solver(model, glue, contacts, precision=precision, **options)
        self._quick, self._slow = None if quick.exact else quick, 0

    def solve(
        self,
        equations: StepEquations,
        drive: Drive,
        forces: np.ndarray | None = None,
        pairs: Pairs | None = None,
    ) -> SolvedStep:
        """Solves one step with torques, contact and contact forces (p, 3) [N].

        Args:
            equations, drive, forces: as for :func:`refined`.
            pairs: pairs of the skin with links and itself that may touch.

        Raises:
            NoSolution: when it has no solution in double precision either.
        """
        if self._quick is not None and not self._slow:
            try:
                system, touching = self._system(equations, self._quick, drive, pairs)
                return refined(system, drive, forces, touching)
            except NoSolution:
                # The next steps are likely to be as hard.
                self._slow = SLOW_STEPS
        self._slow = max(self._slow - 1, 0)
        while True:
            try:
                return self._exactly(equations, drive, forces, pairs)
            except SolverFault:  # the next library is asked
                continue

    def _exactly(self, equations, drive, forces, pairs):
        system, touching = self._system(equations, self.exact, drive, pairs)
        r = drive.right_side(system, forces)
        if touching is None:
            z, ground = drive.solve(system, r)
            found = system.solution(z)
        else:
            law = touching.first(system)
            z, ground = drive.solve(system, r, touch=law)
            found = touching.solution(system, z, law.force(law.rows @ z))
        return SolvedStep(found, feet(ground, found.dq), EXACT)

    @staticmethod
    def _system(equations, solver, drive, pairs):
        system = ReducedSystem(equations, solver)
        return system, pairs and Touching(pairs, system, drive.dt)
