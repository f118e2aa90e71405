"""Quasi-static equilibrium: f(x) + f_ext = 0 with prescribed positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.fem.assembly import FemModel, as_positions, gravity_force
from drakebots.fem.dynamics import GRAVITY
from drakebots.fem.solver import Boundary, Prescribed, make_solver, minimise


@dataclass(frozen=True)
class StaticResult:
    """An equilibrium, or how far it came.

    Attributes:
        positions: (N, 3) [m].
        converged: whether the whole load is balanced.
        message: one line; names the worst tet and node of a failure.
        load: share of the load reached, 1 when converged.
        iterations: linear systems solved.
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
    gravity: Sequence[float] = GRAVITY,
    start: np.ndarray | None = None,
    steps: int = 1,
    solver: str = "auto",
    tolerance: float = 1e-7,
    max_iterations: int = 50,
) -> StaticResult:
    """Static positions under weight, forces and prescribed positions.

    Args:
        model: the skin.
        prescribed: must hold the skin; motions are taken at times load = 1/steps
            .. 1, so a function of time can lead the way.
        forces: on the nodes (N, 3) [N].
        gravity: (3,) [m/s^2].
        start: positions to start from; rest by default.
        steps: the load grows in as many equal steps.
        solver: name for make_solver.
        tolerance, max_iterations: of Newton, each load step.

    Raises:
        InvalidInput: when nothing is prescribed or a shape is wrong.
    """
    boundary = Boundary(len(model.rest), prescribed)
    if not boundary.dofs.size:
        raise InvalidInput("equilibrium: no node is prescribed, the skin would fall")
    if steps < 1:
        raise InvalidInput(f"equilibrium: steps = {steps} must be at least 1")
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
