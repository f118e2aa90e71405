"""Derivatives of one coupled frame, for :mod:`drakebots.skin.adjoint`."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.fem.assembly import FemModel, force_and_tangent, stiffness_shares
from drakebots.fem.dynamics import SkinState
from drakebots.skin.glue import Glue
from drakebots.skin.skeleton import (
    Servo,
    glue_points,
    moved_positions,
    skeleton_frame,
)
from drakebots.skin.stepper import CoupledState

STEP = 1e-6
"""Of central differences in the skeleton's coordinates [rad, m, rad/s, m/s]."""


DIFFERENCE = 1e-5
"""Largest move of a node in the tangent's difference, in sizes of the skin."""


@dataclass(frozen=True)
class Setup:
    """A skinned robot at one value of its parameters.

    Attributes:
        plant, context: the skeleton; q and v are overwritten.
        model: the skin.
        glue: between them.
        home: q in which the skin lies at rest, and in which motions begin (nq,).
        root: what the context is part of, and must live as long.
    """

    plant: MultibodyPlant
    context: Context
    model: FemModel
    glue: Glue
    home: np.ndarray
    root: object = field(default=None, repr=False)

    def start(self) -> CoupledState:
        """At rest: the rest shape, its glue on the links."""
        plant = self.plant
        plant.SetPositions(self.context, self.home)
        x = self.model.rest.copy()
        x[self.glue.vertices] = glue_points(plant, self.context, self.glue)[0]
        v = np.zeros(plant.num_velocities())
        return CoupledState(self.home, v, SkinState(0.0, x, np.zeros_like(x)))

    def pose(self, q: np.ndarray, v: np.ndarray) -> None:
        """Puts the context at q, v."""
        self.plant.SetPositions(self.context, q)
        self.plant.SetVelocities(self.context, v)


def skin_slope(
    model: FemModel, dt: float, x: np.ndarray, du: np.ndarray, mu: np.ndarray
) -> np.ndarray:
    """Of mu (A_d(x) du - b_d(x)) by x (N, 3): K mu + T[du, mu]."""
    scale = 1 + stiffness_shares(model) / dt
    size = np.ptp(model.rest, axis=0).max()
    h = DIFFERENCE * size / max(np.abs(du).max(), 1e-300)
    _, K = force_and_tangent(model, x)
    _, high = force_and_tangent(model, x + h * du, scale=scale)
    _, low = force_and_tangent(model, x - h * du, scale=scale)
    values = K + (high - low) / (2 * h)
    return model.pattern.multiply(values, mu.ravel()).reshape(-1, 3)


def moved_slopes(
    setup: Setup, q: np.ndarray, dq: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """d(q (+) dq) by q and by dq, in velocity coordinates (nv, nv) each."""
    plant, context = setup.plant, setup.context
    nv, still = len(dq), np.zeros(len(dq))

    def end(e, d):
        setup.pose(q, still)
        setup.pose(moved_positions(plant, context, e), still)
        return moved_positions(plant, context, d)

    T_q, T_dq = np.empty((nv, nv)), np.empty((nv, nv))
    centre = end(still, dq)
    for k, e in enumerate(STEP * np.eye(nv)):
        by_q = (end(e, dq) - end(-e, dq)) / (2 * STEP)
        by_dq = (end(still, dq + e) - end(still, dq - e)) / (2 * STEP)
        setup.pose(centre, still)
        T_q[:, k] = plant.MapQDotToVelocity(context, by_q)
        T_dq[:, k] = plant.MapQDotToVelocity(context, by_dq)
    return T_q, T_dq


def skeleton_slopes(
    setup: Setup, dt: float, state: CoupledState, servo: Servo, dq, mu_q, s, t
) -> tuple[np.ndarray, np.ndarray]:
    """Of mu_q (A_r dq - b_r) + s J dq + t J mu_q, by q and by v (nv,) each."""
    plant, context = setup.plant, setup.context

    def value(q, v):
        setup.pose(q, v)
        frame = skeleton_frame(plant, context, setup.glue, dt, servo=servo)
        own = mu_q @ (frame.A @ dq - frame.b)
        return own + s @ (frame.J @ dq) + t @ (frame.J @ mu_q)

    by_q, by_v = np.empty(len(dq)), np.empty(len(dq))
    for k, e in enumerate(STEP * np.eye(len(dq))):
        sides = []
        for sign in (1, -1):
            setup.pose(state.q, state.v)
            q = moved_positions(plant, context, sign * e)
            sides.append(value(q, state.v))
        by_q[k] = (sides[0] - sides[1]) / (2 * STEP)
        # Velocity terms are quadratic: a large step is exact.
        h = 1e3 * STEP
        high = value(state.q, state.v + 1e3 * e)
        by_v[k] = (high - value(state.q, state.v - 1e3 * e)) / (2 * h)
    return by_q, by_v
