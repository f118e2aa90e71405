"""A robot on its ground as CasADi expressions, and its mechanics as blocks.

An interval of length h goes from q0 to q1 under inputs u, loop forces lam and contact
forces f at the feet. With L = T - V the midpoint rule takes

    q_m = (q0 + q1)/2,  v_m = (q1 - q0)/h,
    F   = B(q_m) u - d v_m + C(q_m)'lam
    p-  = D2L - h/2 (D1L + F) - h J(q1)'f       momentum at its start
    p+  = D2L + h/2 (D1L + F)                   momentum at its end

and the discrete Euler-Lagrange equation at a knot says that the p+ of the interval
before equals the p- of the interval after (Manchester et al. 2019; RSS 2018 eq. (9),
with forces instead of impulses). The loops close at midpoints, c(q_m) = 0.

SHAKE (Ryckaert et al. 1977; variational: Marsden and West 2001) is the same without
loop forces in F. The loops close at the interval's end, c(q1) = 0, and their forces act
at its start:

    p-  = D2L - h/2 (D1L + F) - h J(q1)'f - h C(q0)'lam

so that each knot has its own loops, which solvers can eliminate. Both are of second
order.

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

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property, wraps

import casadi as ca
import numpy as np

from drakebots.core.errors import InvalidInput, check_names
from drakebots.core.fields import checked
from drakebots.model import Model, actuators_of, part_name
from drakebots.multibody import Flat, Robot, Terrain, Twin
from drakebots.trajopt.program import Block

INTEGRATORS = ("midpoint", "shake", "euler")

AppliedForce = Callable[[Twin, ca.SX, ca.SX, ca.SX], ca.SX]
"""(twin, q, v, u) -> generalized force of the inputs (nv,), plant units."""

_SIGNS = ((1, 0), (0, -1), (-1, 0), (0, 1))
"""Friction directions as multiples of the tangents (t1, t2)."""

DIRECTIONS = ("+x", "-y", "-x", "+y")
"""Names of the friction directions on flat ground."""


def joint_inputs(twin: Twin, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
    """B u, for inputs that are the plant's actuators."""
    return ca.SX(twin.actuation_matrix()) @ u


def check_legged(model: Model, motors: int) -> None:
    """Refuses a model that cannot walk.

    Args:
        model: the model.
        motors: number of its inputs.

    Raises:
        InvalidInput: for one without feet, motors or mass.
    """
    missing = {
        "feet; name links, frames or points with --feet or list them in the YAML "
        "beside the model": not model.feet,
        "motors; give its joints some with an effort, --actuate all --effort 10": (
            not motors
        ),
        "mass; give its links inertias": not model.summary.mass > 0,
    }
    for words, is_so in missing.items():
        if is_so:
            raise InvalidInput(f"{model.name} has no {words}")


@checked("system")
class ContactSystem:
    """A robot, its terrain and the forces of its inputs.

    Raises:
        InvalidInput: for a base of another kind, or a model that includes files whose
            joints follow others.
    """

    robot: Robot
    """The robot, on a base whose velocities are position rates ("euler" or "fixed"), in
    plant units."""
    terrain: Terrain = field(default_factory=Flat)
    """The ground under its feet, in SI."""
    inputs: AppliedForce = joint_inputs
    """Function from twin, q, v, u to the generalized force of the inputs."""
    input_names: tuple[str, ...] | None = None
    """Names of the inputs; None for those of the actuators."""

    def __post_init__(self):
        if not self.twin.velocities_are_rates:
            raise InvalidInput(
                "planning needs velocities that are the rates of the positions; build "
                "the robot with base 'euler' or 'fixed'"
            )
        model = self.robot.model
        if model.uncoupled:
            raise InvalidInput(
                f"{model.name}: joints of {model.uncoupled[0]}, which it includes, "
                "follow others (<mimic>); plans and control know that of a file that "
                "is loaded itself only"
            )

    @cached_property
    def twin(self) -> Twin:
        """The plant as CasADi expressions."""
        return Twin(self.robot.plant)

    @cached_property
    def blocks(self) -> dict:
        """Blocks of its mechanics that were made."""
        return {}

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return self.twin.nq

    @cached_property
    def inputs_labels(self) -> tuple[str, ...]:
        """Names of the inputs."""
        if self.input_names is not None:
            return self.input_names
        return tuple(part_name(motor) for motor in actuators_of(self.robot.plant))

    @property
    def nu(self) -> int:
        """Number of inputs."""
        return len(self.inputs_labels)

    @property
    def num_feet(self) -> int:
        """Number of feet."""
        return len(self.robot.model.feet)

    @property
    def num_loop_rows(self) -> int:
        """Number of rows of c(q)."""
        return self.robot.closure.num_rows

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the positions, from their joints."""
        plain = {"add_model_instance_prefix": False, "always_add_suffix": False}
        return tuple(self.robot.plant.GetPositionNames(**plain))

    @cached_property
    def lagrangian_gradients(self) -> ca.Function:
        """D1L and D2L of q and v."""
        q, v = ca.SX.sym("q", self.nq), ca.SX.sym("v", self.nq)
        L = self.twin.lagrangian(q, v)
        return ca.Function("L", [q, v], [ca.gradient(L, q), ca.gradient(L, v)])

    @cached_property
    def loop_force(self) -> ca.Function:
        """c(q) and C(q)'lam of q and lam."""
        q, lam = ca.SX.sym("q", self.nq), ca.SX.sym("lam", self.num_loop_rows)
        c = self.twin.closure(q, self.robot.closure)
        none = ca.SX.zeros(self.nq)
        force = ca.jtimes(c, q, lam, True) if self.num_loop_rows else none
        return ca.Function("loops", [q, lam], [c, force])

    @cached_property
    def _terrain(self):
        return self.terrain.scaled(self.robot.scaling.length)

    @cached_property
    def _feet(self) -> ca.Function:
        q, unit = ca.SX.sym("q", self.nq), self.robot.scaling.length
        feet = self.robot.model.feet
        points = [self.twin.point(q, foot.body, foot.p_BF / unit) for foot in feet]
        return ca.Function("feet", [q], [ca.vertcat(*points)])

    def feet(self, q: ca.SX) -> list[ca.SX]:
        """p_WF of every foot's centre (3,)."""
        return ca.vertsplit(self._feet(q), 3)

    def _contacts(self, q: ca.SX):
        """phi, n, D (3, 4) and the contact point of every foot.

        The point is fixed in its body: the derivative of p_WC(q) is the motion of
        the material point in contact, for round feet too.
        """
        unit = self.robot.scaling.length
        for foot in self.robot.model.feet:
            radius = foot.radius / unit
            X_WB = self.twin.pose(q, foot.body)
            p_WF = X_WB.point(foot.p_BF / unit)
            n, t1, t2 = self._terrain.frame(p_WF)
            D = ca.horzcat(*(a * t1 + b * t2 for a, b in _SIGNS))
            if radius == 0:
                yield self._terrain.distance(p_WF), n, D, p_WF, None, None
                continue
            fixed = ca.SX.sym("p_BC", 3)
            p_BC = X_WB.R.T @ (p_WF - radius * n - X_WB.p)
            phi = self._terrain.distance(p_WF) - radius
            yield phi, n, D, X_WB.point(fixed), fixed, p_BC

    def contact_force(self, q: ca.SX, gam: ca.SX, beta: ca.SX) -> ca.SX:
        """N'gam + P'beta (nq,): forces at the feet as generalized forces."""
        total = ca.SX.zeros(self.nq)
        for i, (_, n, D, point, fixed, p_BC) in enumerate(self._contacts(q)):
            force = ca.SX.sym("f", 3)
            pull = ca.jtimes(point, q, force, True)
            actual = n * gam[i] + D @ beta[4 * i : 4 * i + 4]
            pull = ca.substitute(pull, force, actual)
            total += pull if fixed is None else ca.substitute(pull, fixed, p_BC)
        return total

    @cached_property
    def contact_motion(self) -> ca.Function:
        """phi (nc,) and D'p_dot (4 nc,) of the feet, of q and v."""
        q, v = ca.SX.sym("q", self.nq), ca.SX.sym("v", self.nq)
        distance, speed = [], []
        for phi, _, D, point, fixed, p_BC in self._contacts(q):
            motion = ca.jtimes(point, q, v)
            if fixed is not None:
                motion = ca.substitute(motion, fixed, p_BC)
            distance.append(phi)
            speed.append(D.T @ motion)
        found = [ca.vertcat(*distance), ca.vertcat(*speed)]
        return ca.Function("motion", [q, v], found)

    def contact_products(
        self, parts: Mapping[str, np.ndarray], friction: float
    ) -> dict[str, np.ndarray]:
        """What hard contact asks of intervals, at their ends: `phi` and `cone` = mu gam
        - 1'beta (K, nc), `eta` = D'p_dot + psi (K, 4 nc), and the products phi gam, h
        cone psi and h eta beta.

        Args:
            parts: decision variables by name; psi is by default the fastest speed of
                each foot along the ground.
            friction: friction coefficient mu.
        """
        q, h, gam, beta = (parts[name] for name in ("q", "h", "gam", "beta"))
        v = np.diff(q, axis=0) / h
        motion = self.contact_motion.map(len(v))(q[1:].T, v.T)
        phi, speed = (np.array(values).T for values in motion)
        of_feet = *gam.shape, len(DIRECTIONS)
        fastest = np.maximum((-speed).reshape(of_feet).max(axis=2), 0.0)
        psi = parts.get("psi", fastest)
        eta = speed + np.repeat(psi, len(DIRECTIONS), axis=1)
        cone = friction * gam - beta.reshape(of_feet).sum(axis=2)
        products = phi * gam, h * cone * psi, h * eta * beta
        return {"phi": phi, "psi": psi, "eta": eta, "cone": cone, "products": products}

    def contact_frames(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normals (T, 3) and friction directions (T, 3, 4) at points (T, 3)."""
        p = ca.SX.sym("p", 3)
        n, t1, t2 = self._terrain.frame(p)
        D = ca.horzcat(*(a * t1 + b * t2 for a, b in _SIGNS))
        function = ca.Function("frames", [p], [ca.densify(n), ca.densify(ca.vec(D))])
        found = function.map(len(points))(points.T)
        normals, directions = (np.array(values).T for values in found)
        return normals, directions.reshape(-1, 4, 3).transpose(0, 2, 1)

    def foot_positions(self, q: np.ndarray) -> np.ndarray:
        """p_WF (T, num_feet, 3) of positions (T, nq), plant units."""
        q = np.atleast_2d(q)
        return np.asarray(self._feet.map(len(q))(q.T)).T.reshape(len(q), -1, 3)


# --- blocks ---------------------------------------------------------------------


def _once(make: Callable[..., Block]) -> Callable[..., Block]:
    """Makes a block once for a system: all its programs share derivatives and code."""

    @wraps(make)
    def kept(system: ContactSystem, *args, **options) -> Block:
        key = (make.__name__, *args, *options.items())
        if key not in system.blocks:
            system.blocks[key] = make(system, *args, **options)
        return system.blocks[key]

    return kept


@_once
def interval_block(system: ContactSystem, integrator: str = "midpoint") -> Block:
    """Rows `after` (p+), `before` (p-) and `loops` of one interval.

    Inputs h, q0, q1, u, lam (loop forces), gam, beta (contact forces).

    Raises:
        UnknownName: for an integrator that is not in :data:`INTEGRATORS`.
    """
    check_names("integrator", [integrator], INTEGRATORS)
    n = system.nq
    nc, loops = system.num_feet, system.num_loop_rows
    symbols = _symbols(h=1, q0=n, q1=n, u=system.nu, lam=loops, gam=nc, beta=4 * nc)
    h, q0, q1 = symbols["h"], symbols["q0"], symbols["q1"]
    v = (q1 - q0) / h
    q = q1 if integrator == "euler" else (q0 + q1) / 2
    D1, D2 = system.lagrangian_gradients(q, v)
    F = system.inputs(system.twin, q, v, symbols["u"])
    F += system.twin.damping_force(q, v)
    contact = system.contact_force(q1, symbols["gam"], symbols["beta"])
    if integrator == "shake":
        c, _ = system.loop_force(q1, symbols["lam"])
        contact += system.loop_force(q0, symbols["lam"])[1]
    else:
        c, Ct_lam = system.loop_force(q, symbols["lam"])
        F += Ct_lam
    if integrator != "euler":
        after = D2 + h / 2 * (D1 + F)
        before = D2 - h / 2 * (D1 + F) - h * contact
    else:
        after = D2 + h * D1
        before = D2 - h * F - h * contact
    rows = {"after": after, "before": before}
    if system.num_loop_rows:
        rows["loops"] = c
    return Block(f"interval_{integrator}", symbols, rows)


@_once
def start_block(system: ContactSystem) -> Block:
    """Row `momentum`: M(q) v at the first knot, from q and v = qdot."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nq)
    _, momentum = system.lagrangian_gradients(q, v)
    return Block("start", {"q": q, "v": v}, {"momentum": momentum})


@_once
def loop_block(system: ContactSystem) -> Block:
    """Row `loops`: c(q) at a knot."""
    q = ca.SX.sym("q", system.nq)
    c, _ = system.loop_force(q, ca.SX.zeros(system.num_loop_rows))
    return Block("loops_at_knot", {"q": q}, {"loops": c})


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
    products = ca.dot(phi, gam), h * ca.dot(cone, psi), h * ca.dot(eta, beta)
    rows = {
        "distance": phi,
        "slip": speed + E.T @ psi - eta,
        "cone": cone,
        "complementarity": ca.vertcat(*(product - s for product in products)),
    }
    return Block("contact", symbols, rows, ca.vertcat(mu, level))


def _symbols(**sizes: int) -> dict[str, ca.SX]:
    return {name: ca.SX.sym(name, size) for name, size in sizes.items()}
