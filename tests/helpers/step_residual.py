"""Residuals of a given step of hard contact in the time stepping scheme."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from drakebots.multibody import TimeStepper

CLOSED = 1e-6
"""A gap below this many units of length counts as closed."""


@dataclass(frozen=True)
class StepResidual:
    """Residuals of a given step in the scheme.

    Attributes:
        momentum: largest generalized force that no force at the loops, feet
            and limits can balance.
        contact_law: largest force by which those at the feet break the contact
            law (pull, act at a gap, leave the friction pyramid, or dissipate
            less than they could).
        loops: largest |c + h C v+|.
        penetration: largest violation of phi + h N v+ >= 0.
        limits: largest violation of the joint limits' rows.
    """

    momentum: float
    contact_law: float
    loops: float
    penetration: float
    limits: float


def step_residual(
    stepper: TimeStepper,
    q: np.ndarray,
    v: np.ndarray,
    u: np.ndarray,
    v_next: np.ndarray,
) -> StepResidual:
    """Residual of a step from (q, v) to `v_next` in the scheme.

    The forces at loops, feet and limits that balance the momentum best are
    found by least squares; what they cannot balance is `momentum`, and how
    far they are from the contact law is `contact_law`.
    """
    terms = stepper.terms(q, v, u)
    h, nc, nl = stepper.h, len(terms.phi), len(terms.limit)
    # Two tangential columns a foot: the pyramid's +x and +y rows.
    tangent = terms.P.reshape(nc, 4, len(v))[:, [0, 2]].reshape(2 * nc, len(v))
    rows = np.vstack([terms.N, tangent, terms.L])
    unbalanced = terms.M @ (v_next - v) / h - terms.tau
    # Loop forces are free: look only across them.
    basis = scipy.linalg.null_space(terms.C) if terms.C.size else np.eye(len(v))
    A, rest = basis.T @ rows.T, basis.T @ unbalanced
    x = np.linalg.lstsq(A, rest, rcond=None)[0] if A.size else np.zeros(0)
    normal, friction = x[:nc], x[nc : 3 * nc].reshape(nc, 2)
    gap = terms.phi + h * terms.N @ v_next
    limit_gap = terms.limit + h * terms.L @ v_next
    slip = (terms.P @ v_next).reshape(nc, 4)[:, [0, 2]]
    law = [
        _contact_law(gap[i], normal[i], friction[i], slip[i], stepper.friction or 0)
        for i in range(nc)
    ]
    law += [abs(x[3 * nc + i]) for i in range(nl) if limit_gap[i] > CLOSED]
    return StepResidual(
        momentum=float(np.abs(A @ x - rest).max(initial=0.0)),
        contact_law=float(max(law, default=0.0)),
        loops=float(np.abs(terms.c + h * terms.C @ v_next).max(initial=0.0)),
        penetration=float(max(0.0, -gap.min(initial=0.0))),
        limits=float(max(0.0, -limit_gap.min(initial=0.0))),
    )


def _contact_law(gap, normal, friction, slip, mu) -> float:
    """The force by which one foot breaks the contact law."""
    size = np.abs(friction).sum()
    if gap > CLOSED:
        return max(abs(normal), size)
    broken = max(-normal, size - mu * normal, 0.0)
    speed = np.abs(slip).max()
    if speed > CLOSED:
        # Maximum dissipation in the pyramid: slip'friction = -mu normal speed.
        broken = max(broken, mu * normal + slip @ friction / speed)
    return float(broken)
