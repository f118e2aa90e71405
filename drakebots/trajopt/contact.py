"""Hard contact of one interval, as a block.

For every foot, with n, D the terrain's normal and four tangents (+t1, -t2,
-t1, +t2) at the foot at the interval's end, p_dot = J(q1) v, v = (q1 - q0)/h:

    phi(q1) >= 0                    distance
    D'p_dot + 1 psi - eta = 0       maximum dissipation in the pyramid
    mu gam - 1'beta >= 0            friction cone
    sum phi gam <= s,   h sum (mu gam - 1'beta) psi <= s,   h sum eta beta <= s

with gam, beta, psi, eta >= 0 and the slack s >= 0 of the interval driven to
its lower bound by an exact penalty (Manchester et al. 2019; RSS 2018 (14)).
"""

from __future__ import annotations

import casadi as ca

from drakebots.trajopt.block import Block
from drakebots.trajopt.system import ContactSystem


def contact_block(system: ContactSystem) -> Block:
    """Rows `distance`, `slip`, `cone` and `complementarity` (3) of an interval.

    Inputs h, q0, q1, gam, beta, psi, eta, s; one constant a use: the friction
    coefficient mu.
    """
    n, nc = system.nq, system.num_feet
    mu = ca.SX.sym("mu")
    symbols = {
        "h": ca.SX.sym("h"),
        "q0": ca.SX.sym("q0", n),
        "q1": ca.SX.sym("q1", n),
        "gam": ca.SX.sym("gam", nc),
        "beta": ca.SX.sym("beta", 4 * nc),
        "psi": ca.SX.sym("psi", nc),
        "eta": ca.SX.sym("eta", 4 * nc),
        "s": ca.SX.sym("s"),
    }
    h, gam, beta, psi, eta, s = (
        symbols[name] for name in ("h", "gam", "beta", "psi", "eta", "s")
    )
    v = (symbols["q1"] - symbols["q0"]) / h
    phi, speed = system.contact_motion(symbols["q1"], v)
    E = ca.SX(ca.kron(ca.DM.eye(nc), ca.DM.ones(1, 4)))
    cone = mu * gam - E @ beta
    rows = {
        "distance": phi,
        "slip": speed + E.T @ psi - eta,
        "cone": cone,
        "complementarity": ca.vertcat(
            ca.dot(phi, gam) - s, h * ca.dot(cone, psi) - s, h * ca.dot(eta, beta) - s
        ),
    }
    return Block("contact", symbols, rows, mu)
