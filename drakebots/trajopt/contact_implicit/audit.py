"""An independent look at a plan: not the solver's rows, but what they mean.

Complementarity is measured contact by contact (the program only bounds sums
against a slack), dynamics without any scale, and the momentum across the wrap
of a periodic plan from both ends.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from drakebots.trajopt.contact_implicit.dynamics import interval_block
from drakebots.trajopt.contact_implicit.program import ContactImplicit
from drakebots.trajopt.solvers import Solution


def audit(problem: ContactImplicit, solution: Solution) -> dict[str, float]:
    """Largest residuals of a plan, in the plant's units.

    Returns:
        complementarity_max: of phi gam, h (mu gam - 1'beta) psi, h eta beta
        over all contacts; del_residual_max: of the discrete Euler-Lagrange
        rows, start and wrap included; momentum_defect: p+ of the last interval
        minus p- of the first (periodic plans); loop_gap_max: of c at midpoints
        and loop_gap_knots_max: at knots; penetration_max; slack_max;
        cone_max: excess of friction over mu gam.
    """
    return audit_parts(problem, solution.parts)


def audit_parts(problem: ContactImplicit, parts: Mapping[str, np.ndarray]):
    """The same for decision variables by name, as :meth:`Program.view` gives."""
    system = problem.system
    h, q, gam, beta = (parts[n] for n in ("h", "q", "gam", "beta"))
    K, nc = gam.shape
    symbols = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nq)
    motion = ca.Function("motion", symbols, list(system.contact_motion(*symbols)))
    v = np.diff(q, axis=0) / h
    phi, speed = (np.array(a).T for a in motion.map(K)(q[1:].T, v.T))
    cone = problem.friction * gam - beta.reshape(K, nc, 4).sum(axis=2)
    eta = speed + np.repeat(parts["psi"], 4, axis=1)
    products = [phi * gam, h * cone * parts["psi"], h * eta * beta]
    out = {
        "complementarity_max": max(float(np.abs(p).max(initial=0)) for p in products),
        "penetration_max": float(max(-phi.min(initial=0.0), 0.0)),
        "cone_max": float(max(-cone.min(initial=0.0), 0.0)),
        "slack_max": float(parts["s"].max()),
    }
    out |= _mechanics(problem, parts)
    return out


def _mechanics(problem: ContactImplicit, parts) -> dict[str, float]:
    system = problem.system
    block = interval_block(system, problem.integrator)
    lam = parts.get("lam", np.zeros((len(parts["h"]), 0)))
    given = {**parts, "lam": lam, "q0": parts["q"][:-1], "q1": parts["q"][1:]}
    w = np.hstack([given[n] for n in block.inputs])
    values = np.array(
        block.functions["value"].map(len(w))(w.T, np.zeros((0, len(w))))
    ).T
    n = system.nq
    after, before, loops = values[:, :n], values[:, n : 2 * n], values[:, 2 * n :]
    rows = np.abs(after[:-1] - before[1:])
    out = {"del_residual_max": float(rows.max(initial=0.0))}
    if problem.periodic is not None:
        defect = float(np.abs(after[-1] - before[0]).max())
        out["momentum_defect"] = defect
        out["del_residual_max"] = max(out["del_residual_max"], defect)
    if system.num_loop_rows:
        symbol = ca.SX.sym("q", n)
        c, _ = system.loop_force(symbol, ca.SX.zeros(system.num_loop_rows))
        at_knots = ca.Function("c", [symbol], [c]).map(len(parts["q"]))
        out["loop_gap_max"] = float(np.abs(loops).max(initial=0.0))
        out["loop_gap_knots_max"] = float(
            np.abs(np.array(at_knots(parts["q"].T))).max()
        )
    return out
