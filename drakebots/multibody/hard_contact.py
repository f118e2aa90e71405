"""Time stepping with hard contact, closed loops and joint limits.

:class:`TimeStepper` steps a robot's plant; :class:`SteppedPlant` is the same as a
system of a diagram, in place of Drake's plant. They judge plans by a second
contact model.

The scheme is that of Stewart and Trinkle (1996), as in the simulator of HAMR's authors;
it is independent of Drake's contact solvers. A step of length h solves the following
equations, with q+ = q + h v+, so velocities must be the rates of the positions:

    M(q) (v+ - v) = h [ tau(q, v, u) + C'lam + N'gam + P'beta + L'zeta ]
    c(q) + h C v+ = 0                                 loops
    0 <= phi(q) + h N v+      _|_  gam >= 0           feet
    0 <= P v+ + E'psi         _|_  beta >= 0          friction pyramid
    0 <= mu gam - E beta      _|_  psi >= 0
    0 <= l(q) + h L v+        _|_  zeta >= 0          joint limits in reach

The loops are eliminated first; a linear complementarity problem remains, which Drake's
Lemke solver solves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.linalg
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import MultibodyForces
from pydrake.solvers import MathematicalProgram, MobyLcpSolver
from pydrake.systems.framework import Context

from drakebots.core.checks import check_value, non_negative, optional, positive
from drakebots.core.errors import DrakebotsError, InvalidInput, NoSolution
from drakebots.model import joints_of, point_in_world, point_jacobian, position_limits
from drakebots.multibody.plant import Robot
from drakebots.multibody.simulate import Sampled

_LIMIT_REACH = 0.1
"""Joint limits closer than this, beyond what its speed makes of a step, are part of it,
in the plant's units."""

_OPEN = 1e-6
"""Largest residual of the loops' rows after a step, in the plant's units."""

PYRAMID = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0]])
"""Directions of the friction pyramid (rows), in the ground plane."""


@dataclass(frozen=True)
class StepForces:
    """Multipliers of one step, as forces in the plant's units.

    Attributes:
        loops: lam (num_loop_rows,).
        normal: gam (num_feet,); zero where a foot has no contact.
        friction: world-frame tangential force on each foot (num_feet, 2).
        limits: generalized force of the joint limits (nv,).
    """

    loops: np.ndarray
    normal: np.ndarray
    friction: np.ndarray
    limits: np.ndarray


@dataclass(frozen=True)
class StepTerms:
    """The matrices of one step, named as in the equations of this module.

    `limit` holds the distances l(q) of the joint limits in reach.
    """

    M: np.ndarray
    tau: np.ndarray
    c: np.ndarray
    C: np.ndarray
    phi: np.ndarray
    N: np.ndarray
    P: np.ndarray
    limit: np.ndarray
    L: np.ndarray


class TimeStepper:
    """Steps a robot's plant with hard contact on the plane z = 0.

    All quantities are in the plant's units. Friction is that of a pyramid: mu along x
    and y, but 0.71 mu across a foot that slides at 45 degrees to them.

    Args:
        robot: robot on any base.
        time_step: the time step h.
        friction: friction coefficient of the ground; None for no ground.

    Raises:
        InvalidInput: when h <= 0, or friction < 0.
    """

    def __init__(
        self, robot: Robot, time_step: float, *, friction: float | None = None
    ):
        plant = robot.plant
        check_value("time step", time_step, positive())
        check_value("friction", friction, optional(non_negative()))
        self.robot, self.plant, self.h = robot, plant, time_step
        self.friction = friction
        self.context = plant.CreateDefaultContext()
        self.actuation = plant.MakeActuationMatrix()
        feet = robot.model.feet if friction is not None else ()
        radii = [foot.radius / robot.scaling.length for foot in feet]
        self._feet = list(zip(robot.frames(feet), radii))
        self._limits = joint_limits(plant)
        self._efforts = plant.GetEffortLowerLimits(), plant.GetEffortUpperLimits()
        self._quaternions = [
            slice(joint.position_start(), joint.position_start() + 4)
            for joint in joints_of(plant)
            if joint.type_name() == "quaternion_floating"
        ]

    def step(
        self,
        q: np.ndarray,
        v: np.ndarray,
        u: np.ndarray,
        push: np.ndarray | float = 0.0,
    ) -> tuple[np.ndarray, np.ndarray, StepForces]:
        """One step: (q+, v+, forces) from positions, velocities and inputs.

        Args:
            q, v, u: positions (nq,), velocities (nv,) and inputs (nu,).
            push: a further generalized force (nv,).

        Raises:
            NoSolution: when the complementarity problem is not solved.
        """
        terms = self.terms(q, v, u)
        terms = replace(terms, tau=terms.tau + push)
        v_next, loops, normal, beta, zeta = self.solved(terms, v)
        friction = beta.reshape(-1, 4) @ PYRAMID[:, :2]
        forces = StepForces(loops, normal, friction, terms.L.T @ zeta)
        return self._moved(q, v_next), v_next, forces

    def solved(self, terms: StepTerms, v: np.ndarray) -> tuple[np.ndarray, ...]:
        """The solution (v+, lam, gam, beta, zeta) of a step's equations.

        Raises:
            NoSolution: when the complementarity problem is not solved, or the step
                begins from numbers that are not finite.
        """
        if not (np.isfinite(terms.M).all() and np.isfinite(terms.tau).all()):
            raise NoSolution("a step from a state that is not finite")
        closed = _ClosedLoops(terms.M, terms.tau, terms.c, terms.C, v, self.h)
        normal, beta, zeta = self._solve_contact(terms, closed)
        force = terms.N.T @ normal + terms.P.T @ beta + terms.L.T @ zeta
        v_next = closed.velocity(force)
        return v_next, closed.loop_forces(v_next, force), normal, beta, zeta

    def _moved(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """q after a step at the velocities v; the context is at q."""
        q = q + self.h * self.plant.MapVelocityToQDot(self.context, v)
        for at in self._quaternions:
            q[at] /= np.linalg.norm(q[at])
        return q

    def generalized_forces(self, q, v, u) -> np.ndarray:
        """tau (nv,): inputs, gravity, springs, damping and velocity terms.

        Inputs act within the motors' limits of effort, as in Drake's plant.
        """
        plant, context = self.plant, self.context
        if not all(np.isfinite(x).all() for x in (q, v, u)):
            raise InvalidInput("positions, velocities and inputs must be finite")
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)
        applied = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, applied)
        rest = np.zeros(plant.num_velocities())
        u = np.clip(u, *self._efforts, out=np.array(u, float))
        return self.actuation @ u - plant.CalcInverseDynamics(context, rest, applied)

    def terms(self, q, v, u) -> StepTerms:
        """The matrices of a step from (q, v) with the inputs u."""
        plant, context = self.plant, self.context
        tau = self.generalized_forces(q, v, u)  # also sets q and v
        c, C = self.robot.closure.evaluate(context)
        nv = plant.num_velocities()
        nc = len(self._feet)
        phi, N, P = np.zeros(nc), np.zeros((nc, nv)), np.zeros((nc, len(PYRAMID), nv))
        for i, (point, radius) in enumerate(self._feet):
            J = point_jacobian(plant, context, *point)
            phi[i] = point_in_world(plant, context, *point)[2] - radius
            N[i], P[i] = J[2], PYRAMID @ J
        M, limits = plant.CalcMassMatrix(context), self._limit_rows(q, v)
        return StepTerms(M, tau, c, C, phi, N, P.reshape(-1, nv), *limits)

    def _limit_rows(self, q: np.ndarray, v: np.ndarray):
        return limit_rows(self.plant, self.context, self._limits, q, v * self.h)

    def _solve_contact(self, terms: StepTerms, closed: _ClosedLoops):
        """Solves the complementarity problem of a step: gam, beta and zeta.

        Feet that stay above the ground without a force have none. They are left out of
        the problem, and taken in where the forces of the others bring them below it.
        """
        phi, N, P = terms.phi, terms.N, terms.P
        gam, beta = np.zeros(len(phi)), np.zeros(4 * len(phi))
        below = phi + self.h * N @ closed.free < 0
        touching = np.zeros(len(phi), bool)
        while True:
            touching |= below
            along = np.repeat(touching, 4)
            gam[touching], beta[along], zeta = self._solve_touching(
                phi[touching], N[touching], P[along], terms.limit, terms.L, closed
            )
            v = closed.velocity(N.T @ gam + P.T @ beta + terms.L.T @ zeta)
            below = ~touching & (phi + self.h * N @ v < 0)
            if not below.any():
                return gam, beta, zeta

    def _solve_touching(self, phi, N, P, limit, L, closed: _ClosedLoops):
        """gam, beta and zeta of feet and joint limits that all may have forces."""
        nc, nl, h = len(phi), len(limit), self.h
        if nc + nl == 0:
            return np.zeros(0), np.zeros(0), np.zeros(0)
        # z = (gam, beta, psi, zeta); rows as in the module's docstring.
        rows = np.vstack([N, P, L])
        A, w = closed.response(rows), rows @ closed.free
        n, b, s = nc, 5 * nc, 6 * nc
        forces = np.r_[0:b, s : s + nl]
        Z = np.zeros((s + nl, s + nl))
        z0 = np.zeros(s + nl)
        Z[np.ix_(forces, forces)] = A
        z0[forces] = w
        z0[:n] += phi / h
        z0[s:] += limit / h
        E = np.kron(np.eye(nc), np.ones(4))
        Z[n:b, b:s] = E.T
        Z[b:s, :n] = (self.friction or 0.0) * np.eye(nc)
        Z[b:s, n:b] = -E
        z = solve_lcp(Z, z0)
        return z[:n], z[n:b], z[s:]


def joint_limits(plant: MultibodyPlant) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions with limits (k,), 1 for upper and -1 for lower ones, and the limits."""
    lower, upper = position_limits(plant)
    up = np.flatnonzero(np.isfinite(upper))
    down = np.flatnonzero(np.isfinite(lower))
    sign = np.repeat([1.0, -1.0], [len(up), len(down)])
    bound = np.concatenate([upper[up], lower[down]])
    return np.concatenate([up, down]), sign, bound


def limit_rows(
    plant: MultibodyPlant,
    context: Context,
    limits: tuple[np.ndarray, np.ndarray, np.ndarray],
    q: np.ndarray,
    motion: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Distances (k,) of the limits in reach of a step, and their Jacobian (k, nv).

    Args:
        plant, context: finalized plant, posed.
        limits: of :func:`joint_limits`.
        q: positions (nq,).
        motion: what a step is expected to be, h v (nv,).
    """
    index, sign, bound = limits
    gap = sign * (bound - q[index])
    ahead = sign * plant.MapVelocityToQDot(context, motion)[index]
    near = gap < _LIMIT_REACH + np.maximum(ahead, 0.0)
    if not near.any():
        return gap[near], np.zeros((0, plant.num_velocities()))
    rates = plant.MakeVelocityToQDotMap(context).toarray()
    return gap[near], -sign[near, None] * rates[index[near]]


# --- the loops, eliminated ---


def _factored(A: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Solves A x = b: by Cholesky's method if A is symmetric up to rounding.

    Raises:
        LinAlgError: for a matrix that is singular.
    """
    if np.abs(A - A.T).max(initial=0.0) <= 1e-9 * np.abs(A).max(initial=0.0):
        return partial(scipy.linalg.cho_solve, scipy.linalg.cho_factor(A))
    factors = scipy.linalg.lu_factor(A)
    pivots = np.abs(np.diag(factors[0]))
    if not pivots.min() > 1e-14 * pivots.max():
        raise scipy.linalg.LinAlgError("singular")
    return partial(scipy.linalg.lu_solve, factors)


class _ClosedLoops:
    """Velocities after a step that keep the loops closed.

    With loop forces lam that keep c + h C v+ = 0, a generalized force f besides tau
    gives

        v+ = v_free + h P M^-1 f,      P = 1 - M^-1 C' S^-1 C,   S = C M^-1 C'
        v_free = w - M^-1 C' S^-1 (c/h + C w),                   w = v + h M^-1 tau

    Args:
        M: mass matrix (nv, nv), or another that is regular.
        tau: known generalized force (nv,).
        c, C: the loops' rows and their Jacobian (m,) and (m, nv).
        v: velocities before (nv,).
        h: the time step.

    Attributes:
        free: v+ without further forces.

    Raises:
        InvalidInput: for rows that depend on each other.
    """

    def __init__(self, M, tau, c, C, v, h: float):
        self._M, self._tau, self._C, self._v, self._h = M, tau, C, v, h
        self._solve = _factored(M)
        w = v + h * self._solve(tau)
        self._MiCt = self._solve(C.T)
        if C.size:
            try:
                self._solve_loops = _factored(C @ self._MiCt)
                w = w - self._MiCt @ self._solve_loops(c / h + C @ w)
                # Rows that depend on each other may pass by rounding.
                if not np.abs(c + h * C @ w).max() < _OPEN:
                    raise scipy.linalg.LinAlgError("rows that contradict each other")
            except scipy.linalg.LinAlgError as error:
                raise InvalidInput(
                    "the loops' rows depend on each other; give the loops "
                    "`rows: planar` or leave redundant ones out"
                ) from error
        self.free = w

    def _project(self, x: np.ndarray) -> np.ndarray:
        if not self._C.size:
            return x
        return x - self._MiCt @ self._solve_loops(self._C @ x)

    def velocity(self, force: np.ndarray) -> np.ndarray:
        """v+ under a further generalized force."""
        return self.free + self._h * self._project(self._solve(force))

    def response(self, rows: np.ndarray) -> np.ndarray:
        """d(J v+)/d(forces along the rows J) (k, k)."""
        return self._h * rows @ self._project(self._solve(rows.T))

    def loop_forces(self, v_next: np.ndarray, force: np.ndarray) -> np.ndarray:
        """lam (m,) of a step to v_next under a further force."""
        if not self._C.size:
            return np.zeros(0)
        rest = self._M @ (v_next - self._v) / self._h - self._tau - force
        return np.linalg.lstsq(self._C.T, rest, rcond=None)[0]


# --- linear complementarity problems ---


def solve_lcp(Z: np.ndarray, z0: np.ndarray) -> np.ndarray:
    """Finds z >= 0 with Z z + z0 >= 0 and z'(Z z + z0) = 0.

    Lemke's method (Drake's Moby solver) is tried first with rows and columns scaled
    to a unit diagonal, then unscaled, then scaled with z0 brought to 1: its tolerances
    are absolute, and impacts of heavy robots in short steps miss them. Moby regularises
    a problem that it finds hard and may report success with the solution of another
    one, so every solution is checked; where all fail, Murty's least-index pivoting is
    tried, which always succeeds when Z is a P-matrix.

    Raises:
        NoSolution: when no solution passes the check, with its worst rows.
    """
    # Unit diagonal: contact rows of light links differ by orders of magnitude.
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(Z)), 1e-12))
    scale[np.diag(Z) == 0] = 1.0
    size = 1.0 + np.abs(z0).max(initial=0.0)
    unit = np.abs(scale * z0).max(initial=0.0) or 1.0
    worst: dict[str, float] = {}
    ways = (scale, 1.0), (np.ones(len(z0)), 1.0), (scale, unit)
    for solve in (*(partial(_lemke, *way) for way in ways), _murty):
        z = solve(Z, z0)
        if not np.isfinite(z).all():
            continue
        slack = Z @ z + z0
        worst = {
            "slack": float(max(0.0, -slack.min(initial=0.0))),
            # The slack of a large z is rounding in proportion to it.
            "complementarity": float(np.abs(z * slack / (1 + z)).max(initial=0.0)),
        }
        if max(worst.values()) <= 1e-8 * size:
            return z
    raise NoSolution("the contact problem of a time step was not solved", worst)


def _lemke(scale: np.ndarray, unit: float, Z: np.ndarray, z0: np.ndarray) -> np.ndarray:
    prog = MathematicalProgram()
    z = prog.NewContinuousVariables(len(z0), "z")
    M, q = scale[:, None] * Z * scale, scale * z0 / unit
    prog.AddLinearComplementarityConstraint(M, q, z)
    return np.maximum(unit * scale * MobyLcpSolver().Solve(prog).GetSolution(z), 0.0)


def _murty(Z: np.ndarray, z0: np.ndarray) -> np.ndarray:
    n = len(z0)
    basic, z = np.zeros(n, bool), np.zeros(n)
    tolerance = 1e-12 * (1.0 + np.abs(z0).max(initial=0.0))
    for _ in range(50 * n):
        z[:] = 0.0
        if basic.any():
            rows = Z[np.ix_(basic, basic)]
            z[basic] = np.linalg.lstsq(rows, -z0[basic], rcond=None)[0]
        wrong = np.where(basic, z, Z @ z + z0) < -tolerance
        if not wrong.any():
            break
        first = np.argmax(wrong)
        basic[first] = not basic[first]
    return np.maximum(z, 0.0)


# --- in a diagram ---


class SteppedPlant(Sampled):
    """A robot moved by :class:`TimeStepper` in place of Drake's plant.

                            ┌──────────────┐──▶ state (nq+nv)
        actuation (nu) ────▶│ SteppedPlant │
                            └──────────────┘──▶ contact (nv), generalized

    All ports are in the plant's units and in the order of the plant's own ports, so
    that whatever is connected to a discrete `MultibodyPlant` can be connected to this
    system too. Two of that plant's queries are here as well, for monitors.

    Args:
        robot: robot on any base; its plant stays outside the diagram.
        time_step: time step [s].
        friction: friction coefficient of the ground z = 0; None for no ground.

    Raises:
        InvalidInput: as :class:`TimeStepper` does. A step that fails raises
            RuntimeError from the simulator.
    """

    def __init__(
        self, robot: Robot, time_step: float, *, friction: float | None = None
    ):
        plant, period = robot.plant, time_step / robot.scaling.time
        default = plant.CreateDefaultContext()
        start = plant.GetPositionsAndVelocities(default)
        n, nv = len(start), plant.num_velocities()
        state, actuation = np.concatenate([start, np.zeros(nv)]), plant.num_actuators()
        super().__init__("stepped_plant", state, actuation=actuation)
        self._stepper = TimeStepper(robot, period, friction=friction)
        self._nq, self._nv = n - nv, nv
        self._robot, self._plant, self._default = robot, plant, default
        self._declare_update(self._step, period)
        self._declare_output("state", slice(0, n))
        self._declare_output("contact", slice(n, n + nv))

    def GetPositionsAndVelocities(self, context: Context) -> np.ndarray:
        """[q, v] of this system's context."""
        return self._state(context)[: self._nq + self._nv].copy()

    def SetPositionsAndVelocities(self, context: Context, state: np.ndarray) -> None:
        """Sets [q, v] in this system's context, and the contact forces to zero."""
        context.SetDiscreteState(np.concatenate([state, np.zeros(self._nv)]))

    def _step(self, context, x):
        q, v, _ = np.split(x, [self._nq, self._nq + self._nv])
        try:
            q_next, v_next, forces = self._stepper.step(q, v, self._input(context))
        except (DrakebotsError, ValueError, np.linalg.LinAlgError) as error:
            # No solution, or numbers that are no longer finite: raised as Drake's
            # own plant does.
            raise RuntimeError(str(error)) from error
        return np.concatenate([q_next, v_next, self._contact(q, forces)])

    def _contact(self, q, forces) -> np.ndarray:
        """The generalized force of all contacts (nv,)."""
        if not np.any(forces.normal):
            return np.zeros(self._nv)
        self._plant.SetPositions(self._default, q)
        on_feet = np.column_stack([forces.friction, forces.normal])
        return self._robot.feet_jacobian(self._default).T @ on_feet.ravel()
