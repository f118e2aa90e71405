"""Static equilibrium of the skin: f(x) + f_ext = 0 with prescribed positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drakebots.core.checks import check_value, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.units import GRAVITY_W
from drakebots.fem.assembly import FemModel, as_positions, gravity_force
from drakebots.fem.solver import Boundary, Prescribed, make_solver, minimise


@dataclass(frozen=True)
class StaticResult:
    """An equilibrium, or the last load step that was balanced.

    Attributes:
        positions: positions of the nodes (N, 3) [m].
        converged: whether the whole load is balanced.
        message: one line; names the worst tet and node of a failure.
        load: share of the load that is balanced, 1 when converged.
        iterations: number of linear systems solved.
        residual: largest residual force of a free dof [N].
    """

    positions: np.ndarray
    converged: bool
    message: str
    load: float
    iterations: int
    residual: float


def equilibrium(
    model: FemModel,
    prescribed: Sequence[Prescribed] | Prescribed,
    *,
    forces: np.ndarray | None = None,
    gravity: Sequence[float] = GRAVITY_W,
    start: np.ndarray | None = None,
    steps: int = 1,
    solver: str = "auto",
    tolerance: float = 1e-7,
    max_iterations: int = 50,
) -> StaticResult:
    """Static positions under weight, forces and prescribed positions.

    Args:
        model: the skin.
        prescribed: prescribed nodes, enough to support the skin. Motions are taken at
            the times 1/steps .. 1, so that they can lead the skin along a path.
        forces: forces on the nodes (N, 3) [N].
        gravity: gravity vector (3,) [m/s^2].
        start: initial positions (N, 3) [m]; the rest positions by default.
        steps: number of equal steps in which the load is applied.
        solver: name for :func:`~drakebots.fem.solver.sparse.make_solver`.
        tolerance: largest residual of Newton's method, relative to the largest force.
        max_iterations: largest number of Newton iterations per load step.

    Raises:
        InvalidInput: when nothing is prescribed or a shape is wrong.
    """
    boundary = Boundary(len(model.rest), prescribed)
    if not boundary.dofs.size:
        raise InvalidInput("equilibrium: no node is prescribed, the skin would fall")
    check_value("equilibrium: steps", steps, whole(1))
    load = gravity_force(model, gravity)
    if forces is not None:
        load = load + as_positions(model, forces)
    x = as_positions(model, model.rest if start is None else start)
    engine = make_solver(model.pattern, name=solver)
    done, total = 0.0, 0
    for k in range(1, steps + 1):
        share = k / steps
        end = minimise(
            model, engine, x, None, share * load.ravel(), boundary, share,
            tolerance=tolerance, max_iterations=max_iterations,
        )  # fmt: skip
        total += end.iterations
        if not end.converged:
            message = f"load step {k} of {steps} failed: {end.message}"
            return StaticResult(x, False, message, done, total, end.residual)
        x, done = x + end.displacement.reshape(-1, 3), share
    return StaticResult(x, True, end.message, done, total, end.residual)
