"""The discrete mechanics of one interval and its hard contact, as blocks.

An interval of length h goes from q0 to q1 under inputs u, loop forces lam and contact
forces f at the feet. With L = T - V the midpoint rule takes

    q_m = (q0 + q1)/2,  v_m = (q1 - q0)/h,
    F   = B(q_m) u - d v_m + C(q_m)'lam
    p-  = D2L - h/2 (D1L + F) - h J(q1)'f       momentum at its start
    p+  = D2L + h/2 (D1L + F)                   momentum at its end

and the discrete Euler-Lagrange equation at a knot says that the p+ of the interval
before equals the p- of the interval after (Manchester et al. 2019; RSS 2018 eq. (9),
with forces instead of impulses). The loops close at midpoints, c(q_m) = 0.

The Euler variant, of first order, evaluates L and F at q1 instead of q_m and gives all
of F to p-:

    p- = D2L - h F - h J(q1)'f,     p+ = D2L + h D1L

Contact is hard. For every foot, with n, D the terrain's normal and four tangents
(+t1, -t2, -t1, +t2) at the foot at the interval's end, p_dot = J(q1) v_m:

    phi(q1) >= 0                    distance
    D'p_dot + 1 psi - eta = 0       maximum dissipation in the pyramid
    mu gam - 1'beta >= 0            friction cone
    sum phi gam <= s,   h sum (mu gam - 1'beta) psi <= s,   h sum eta beta <= s

with gam, beta, psi, eta >= 0. An exact penalty drives the interval's slack s >= 0 to
its lower bound (Manchester et al. 2019; RSS 2018 (14)).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps

import casadi as ca

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.trajopt.contact_implicit.system import ContactSystem
from drakebots.trajopt.program import Block

INTEGRATORS = ("midpoint", "euler")


def _once(make: Callable[..., Block]) -> Callable[..., Block]:
    """Makes a block once for a system: all its programs share derivatives and code."""

    form = inspect.signature(make)

    @wraps(make)
    def kept(system: ContactSystem, *args, **options) -> Block:
        given = form.bind(system, *args, **options)
        given.apply_defaults()
        key = (make.__name__, *list(given.arguments.values())[1:])
        if key not in system.blocks:
            system.blocks[key] = make(*given.args, **given.kwargs)
        return system.blocks[key]

    return kept


@_once
def interval_block(
    system: ContactSystem, integrator: str = "midpoint", *, compiles: bool = True
) -> Block:
    """Rows `after` (p+), `before` (p-) and `loops` of one interval.

    Inputs h, q0, q1, u, lam (loop forces), gam, beta (contact forces); `compiles` as
    for :class:`.Block`, here and below.

    Raises:
        UnknownName: for an integrator that is not in :data:`INTEGRATORS`.
    """
    if integrator not in INTEGRATORS:
        raise UnknownName("integrator", integrator, INTEGRATORS)
    n = system.nq
    nc, loops = system.num_feet, system.num_loop_rows
    symbols = _symbols(h=1, q0=n, q1=n, u=system.nu, lam=loops, gam=nc, beta=4 * nc)
    h, q0, q1 = symbols["h"], symbols["q0"], symbols["q1"]
    v = (q1 - q0) / h
    q = (q0 + q1) / 2 if integrator == "midpoint" else q1
    D1, D2 = system.lagrangian_gradients(q, v)
    c, Ct_lam = system.loop_force(q, symbols["lam"])
    F = system.applied_force(q, v, symbols["u"]) + Ct_lam
    contact = system.contact_force(q1, symbols["gam"], symbols["beta"])
    if integrator == "midpoint":
        after = D2 + h / 2 * (D1 + F)
        before = D2 - h / 2 * (D1 + F) - h * contact
    else:
        after = D2 + h * D1
        before = D2 - h * F - h * contact
    rows = {"after": after, "before": before}
    if system.num_loop_rows:
        rows["loops"] = c
    return Block(f"interval_{integrator}", symbols, rows, compiles=compiles)


@_once
def start_block(system: ContactSystem, *, compiles: bool = True) -> Block:
    """Row `momentum`: M(q) v at the first knot, from q and v = qdot."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nq)
    _, momentum = system.lagrangian_gradients(q, v)
    rows = {"momentum": momentum}
    return Block("start", {"q": q, "v": v}, rows, compiles=compiles)


@_once
def loop_block(system: ContactSystem, *, compiles: bool = True) -> Block:
    """Row `loops`: c(q) at a knot."""
    if not system.num_loop_rows:
        raise InvalidInput("the model has no loops to close")
    q = ca.SX.sym("q", system.nq)
    c, _ = system.loop_force(q, ca.SX.zeros(system.num_loop_rows))
    return Block("loops_at_knot", {"q": q}, {"loops": c}, compiles=compiles)


@_once
def contact_block(system: ContactSystem, *, levels: bool = False) -> Block:
    """Rows `distance`, `slip`, `cone` and `complementarity` (3) of an interval.

    Inputs h, q0, q1, gam, beta, psi, eta, s; the friction coefficient mu is a
    constant of each use, and so with `levels` are the lengths (nc,) by which the
    ground's surface is raised under each foot, phi - level in place of phi.
    """
    n, nc = system.nq, system.num_feet
    mu, level = ca.SX.sym("mu"), ca.SX.sym("level", nc if levels else 0)
    symbols = _symbols(h=1, q0=n, q1=n, gam=nc, beta=4 * nc, psi=nc, eta=4 * nc, s=1)
    h, q0, q1, gam, beta, psi, eta, s = symbols.values()
    phi, speed = system.contact_motion(q1, (q1 - q0) / h)
    if levels:
        phi = phi - level
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
    return Block("contact", symbols, rows, ca.vertcat(mu, level))


def _symbols(**sizes: int) -> dict[str, ca.SX]:
    return {name: ca.SX.sym(name, size) for name, size in sizes.items()}
