"""Newton's method with a backtracking line search on an energy.

Minimises over displacements d from x0, with some dofs prescribed,

    Phi(d) = elastic energy(x0 + d) + d'Q d/2 - b'd

Q (positive semidefinite) holds inertia and damping of an implicit Euler step,
or nothing for statics. An energy that is infinite at turned-over tets makes the
line search stop short of turning one over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.errors import NoSolution
from drakebots.fem.assembly import (
    FemModel,
    elastic_energy,
    elastic_force,
    force_and_tangent,
    worst_tet,
)
from drakebots.fem.boundary import Boundary, pinned
from drakebots.fem.linear_solver import SparseSolver

ARMIJO = 1e-4
HALVINGS = 40
STALLED = 1e-14
"""A step this small against the size of the mesh is rounding."""


@dataclass(frozen=True)
class NewtonResult:
    """Where Newton's method ended.

    Attributes:
        displacement: d (3 N,) [m].
        converged: whether the residual is below the tolerance.
        iterations: linear systems solved.
        residual: largest residual force of a free dof [N].
        worst_node: where it is.
        worst_tet, smallest_ratio: the tet with the smallest det F.
        message: one line.
    """

    displacement: np.ndarray
    converged: bool
    iterations: int
    residual: float
    worst_node: int
    worst_tet: int
    smallest_ratio: float
    message: str


def minimise(
    model: FemModel,
    solver: SparseSolver,
    x0: np.ndarray,
    Q: np.ndarray | None,
    b: np.ndarray,
    boundary: Boundary,
    time: float,
    *,
    tolerance: float = 1e-7,
    max_iterations: int = 50,
) -> NewtonResult:
    """Finds the minimum; see the module.

    Args:
        model: the skin.
        solver: of definite matrices on the model's pattern.
        x0: positions to start from (N, 3) [m].
        Q: upper values (nnz,), or None.
        b: (3 N,) [N].
        boundary: prescribed dofs.
        time: at which their motion is taken [s].
        tolerance: of the residual, against the largest force of the problem.
        max_iterations: linear systems at most.
    """
    free = ~boundary.mask
    d, reached, message = np.zeros(x0.size), not boundary.dofs.size, ""
    target = boundary.displacement(x0, time)
    reached = reached or not np.any(target)
    size = float(np.ptp(x0, axis=0).max())

    def place(d):
        return x0 + d.reshape(-1, 3)

    def inertia(d):
        return 0.0 if Q is None else model.pattern.multiply(Q, d)

    def merit(d):
        return elastic_energy(model, place(d)) + d @ (0.5 * inertia(d) - b)

    def residual(d, force):
        q = inertia(d)
        r = force.ravel() + b - q
        scale = max(np.abs(force).max(), np.abs(b).max(), np.abs(q).max(), 1e-300)
        return r, float(np.abs(r[free]).max(initial=0.0)), float(scale)

    iterations, converged, worst = 0, False, 0.0
    force = elastic_force(model, x0)
    r, worst, scale = residual(d, force)
    while True:
        # Forces are also bounded by rounding of the tets' own, larger forces.
        if reached and worst <= tolerance * scale:
            converged, message = True, f"converged in {iterations} iterations"
            break
        if not np.isfinite(worst) and iterations == 0:
            message = "a tet is turned over at the start and the material forbids it"
            break
        if iterations == max_iterations:
            message = f"not converged in {max_iterations} iterations"
            break
        iterations += 1
        remaining = np.where(boundary.mask, target - d, 0.0)
        step = _direction(model, solver, place(d), Q, r, boundary, remaining)
        if step is None:
            message = "the tangent is singular: hold the skin or add mass"
            break
        now = merit(d) if reached else np.inf
        slope = -(r @ step)
        t, accepted = 1.0, False
        for _ in range(HALVINGS):
            trial = merit(d + t * step)
            # On the way to the prescribed positions they do work on the skin: all
            # that can be asked is a finite energy.
            if np.isfinite(trial) and (
                not reached or trial <= now + ARMIJO * t * slope + 1e-13 * abs(now)
            ):
                accepted = True
                break
            t *= 0.5
        if not accepted:
            message = "no step lowers the energy"
            break
        d = d + t * step
        if not reached and t == 1.0:
            reached, d = True, np.where(boundary.mask, target, d)
        force = elastic_force(model, place(d))
        r, worst, scale = residual(d, force)
        if reached and np.abs(t * step).max() < STALLED * size:
            converged, message = True, f"converged to rounding in {iterations}"
            break
    tet, ratio = worst_tet(model, place(d))
    node = int(np.argmax(np.where(free, np.abs(np.nan_to_num(r, nan=np.inf)), 0)) // 3)
    if not converged:
        message += f"; worst tet {tet} (det F {ratio:.3g}), worst node {node}"
    return NewtonResult(d, converged, iterations, worst, node, tet, ratio, message)


def _direction(model, solver, x, Q, r, boundary, remaining):
    """Newton's step, by the exact tangent or, where that fails, the projected."""
    moving = bool(np.any(remaining))
    for project in (False, True):
        _, A = force_and_tangent(model, x, project=project)
        if project:
            # Projection leaves a semidefinite matrix: lift it by rounding.
            A[model.pattern.diagonal] *= 1 + 1e-9
        if Q is not None:
            A = A + Q
        rhs = r - model.pattern.multiply(A, remaining) if moving else r.copy()
        rhs[boundary.mask] = 0.0
        try:
            solver.factor(pinned(model.pattern, A, boundary))
        except NoSolution:
            continue
        step = solver.solve(rhs)
        step[boundary.mask] = remaining[boundary.mask]
        if np.isfinite(step).all() and (moving or r @ step >= 0):
            return step
    return None
