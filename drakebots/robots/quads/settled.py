"""A robot standing, its skin in equilibrium: where a rollout starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drakebots.errors import NoSolution
from drakebots.fem.assembly import worst_tet
from drakebots.fem.boundary import Prescribed
from drakebots.fem.dynamics import SkinState
from drakebots.fem.statics import equilibrium
from drakebots.skin.start import rigid_fit
from drakebots.skin.stepper import CoupledState, CoupledStepper

GENTLE, MOVE = 0.5, 1e-3
"""Smallest det F at which a first shape is taken as it is; else the glue is pulled
there by so much at a time [m]."""


def settled_state(stepper: CoupledStepper, q: np.ndarray) -> CoupledState:
    """Skeleton at q, standing; the skin in equilibrium under its weight.

    Args:
        stepper: of the robot; the skin lies at rest in its first context.
        q: of the skeleton (nq,).

    Raises:
        InvalidInput: for a q that does not fit.
        NoSolution: when the skin finds no equilibrium.
    """
    state = stepper.start(q, np.zeros(stepper.plant.num_velocities()))
    model, glue = stepper.model, stepper.glue.vertices
    x, steps, held = state.skin.positions, 1, state.skin.positions[glue]
    if worst_tet(model, x)[1] < GENTLE:
        # Pulled by its glue in small moves from its rest shape.
        R, p = rigid_fit(model.rest[glue], held)
        x = model.rest @ R.T + p
        far = np.linalg.norm(held - x[glue], axis=1).max()
        steps = int(np.ceil(far / MOVE))
    begin = x[glue].copy()
    found = equilibrium(
        model,
        Prescribed(glue, lambda share: begin + share * (held - begin)),
        gravity=stepper.gravity,
        start=x,
        steps=steps,
    )
    if not found.converged:
        raise NoSolution(
            f"skin at the first pose: {found.message}; take a pose nearer to rest"
        )
    skin = SkinState(0.0, found.positions, np.zeros_like(found.positions))
    return replace(state, skin=skin)
