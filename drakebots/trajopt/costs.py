"""Cost terms that contact-implicit programs have in common.

Each adds one named term to a program under construction. The sums run over the
knots or intervals k; h are the steps and v the difference quotients of q. All
is in the units of the program's plant, weights too.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from drakebots.trajopt.contact_implicit import ContactImplicitBuilder


def cost_input_steps(
    b: ContactImplicitBuilder, weight: float, per_unit: np.ndarray
) -> None:
    """`effort`: w/2 sum |p (u_k+1 - u_k)|^2, round the cycle where it is periodic.

    Args:
        b: the program.
        weight: w.
        per_unit: p (nu,), what a unit of each input is worth.
    """
    u, worth = b["u"].indices, ca.SX(per_unit)
    if b.problem.periodic is not None:
        u = np.vstack([u, u[:1]])
    b.cost(
        "effort",
        {"before": u[:-1], "after": u[1:]},
        lambda before, after: 0.5 * weight * ca.sumsqr(worth * (after - before)),
    )


def cost_velocity_steps(b: ContactImplicitBuilder, weight: float) -> None:
    """`smooth`: w sum |v_k+1 - v_k|^2.

    Both quotients are over the later step, (q_k - 2 q_k+1 + q_k+2) / h_k+1: the
    same where steps are equal, and smaller blocks.
    """
    q, h = b["q"].indices, b["h"].indices
    b.cost(
        "smooth",
        {"q0": q[:-2], "q1": q[1:-1], "q2": q[2:], "h": h[1:]},
        lambda q0, q1, q2, h: weight * ca.sumsqr((q0 - 2 * q1 + q2) / h),
    )


def cost_friction_power(b: ContactImplicitBuilder, weight: float) -> None:
    """`friction`: w mu sum h psi'gam, the energy lost in slip.

    Without it the cheapest gaits shuffle: feet slide forward under little load
    (docs/hamr.md).
    """
    mu = b.problem.friction
    b.cost(
        "friction",
        {name: b[name].indices for name in ("h", "gam", "psi")},
        lambda h, gam, psi: weight * mu * h * ca.dot(gam, psi),
    )


def cost_loop_forces(b: ContactImplicitBuilder, weight: float) -> None:
    """`loop_forces`: w sum |lam|^2.

    Raises:
        UnknownName: for a robot without loops.
    """
    b.cost(
        "loop_forces",
        {"lam": b["lam"].indices},
        lambda lam: weight * ca.sumsqr(lam),
    )
