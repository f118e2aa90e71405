"""Gradients of the cost of a motion by the discrete adjoint of the coupled time steps.

A time step of :mod:`drakebots.skin.coupled.equations` from the state s = (q, v, x, w),
w the velocities of the skin, solves, with du = J dq at the glue,

    r_q = A_r dq - b_r = 0 (plus J' times the glue's rows),  r_d = A_d du - b_d = 0

and s+ = (q (+) dq, dq/dt, x + du, du/dt). Backwards in time, with a the gradient of the
later cost by s+, one solve with the same symmetric matrix gives mu:

    R mu = -(da/d(dq, du) + dcost/d(dq, du)),
    a <- (ds+/ds)' a + dcost/ds + (dr/ds)' mu,  dC/dp = sum mu' dr/dp

The derivatives are

* dr_d/dx: K mu + T[du, mu], T the third derivative of the energy. T is symmetric, so
  T[du, mu] = d/de K(x + e du) mu, by a central difference of two assemblies;
* dr_q/dq, dr_q/dv, dJ/dq and dx_c/dq: central differences of the skeleton's equations
  in nv directions each;
* dr/dp: central differences of the assembled equations at the same state, dq and du, so
  that p can be any parameter that a :class:`Setup` can be built for.

Each backward step factors A_d again, as the forward simulation keeps only states: one
factorization, three assemblies, and two more for each parameter.

Effort limits, contact and collisions are not supported. A library of
quad_sensitivity.py, without a command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.fem import SkinState
from drakebots.fem.assembly import FemModel, force_and_tangent, stiffness_shares
from drakebots.model import moved_positions
from drakebots.skin.coupled import (
    CoupledState,
    CoupledStepper,
    Glue,
    ReducedSystem,
    Servo,
    glue_points,
    torque_map,
)
from drakebots.skin.coupled.equations import step_equations
from drakebots.skin.coupled.skeleton import skeleton_equations

STEP = 1e-6
"""Step of central differences in the skeleton's coordinates [rad, m, rad/s, m/s]."""


DIFFERENCE = 1e-5
"""Largest displacement in the tangent's difference, relative to the skin's size."""


@dataclass(frozen=True)
class Setup:
    """A skinned robot at one value of its parameters.

    Attributes:
        plant, context: the skeleton; q and v of the context are overwritten.
        model: the skin.
        glue: vertices of the skin fixed to links.
        home: q in which the skin is at rest and motions begin (nq,).
        root: root of the context, kept alive with it.
    """

    plant: MultibodyPlant
    context: Context
    model: FemModel
    glue: Glue
    home: np.ndarray
    root: object = field(default=None, repr=False)

    def start(self) -> CoupledState:
        """The state at rest: the rest shape with its glue on the links."""
        plant = self.plant
        plant.SetPositions(self.context, self.home)
        x = self.model.rest.copy()
        x[self.glue.vertices] = glue_points(plant, self.context, self.glue)[0]
        v = np.zeros(plant.num_velocities())
        return CoupledState(self.home, v, SkinState(0.0, x, np.zeros_like(x)))

    def pose(self, q: np.ndarray, v: np.ndarray) -> None:
        """Sets q, v in the context."""
        self.plant.SetPositions(self.context, q)
        self.plant.SetVelocities(self.context, v)


def skin_slope(
    model: FemModel, dt: float, x: np.ndarray, du: np.ndarray, mu: np.ndarray
) -> np.ndarray:
    """Gradient of mu (A_d(x) du - b_d(x)) by x (N, 3): K mu + T[du, mu]."""
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
    """Derivatives of q (+) dq by q and dq, in velocity coordinates (nv, nv) each."""
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
    """Gradients of mu_q (A_r dq - b_r) + s J dq + t J mu_q by q and v (nv,) each."""
    plant, context = setup.plant, setup.context

    def value(q, v):
        setup.pose(q, v)
        equations = skeleton_equations(plant, context, setup.glue, dt, servo=servo)
        own = mu_q @ (equations.A @ dq - equations.b)
        return own + s @ (equations.J @ dq) + t @ (equations.J @ mu_q)

    by_q, by_v = np.empty(len(dq)), np.empty(len(dq))
    for k, e in enumerate(STEP * np.eye(len(dq))):
        sides = []
        for sign in (1, -1):
            setup.pose(state.q, state.v)
            q = moved_positions(plant, context, sign * e)
            sides.append(value(q, state.v))
        by_q[k] = (sides[0] - sides[1]) / (2 * STEP)
        # Terms in v are quadratic, so a large step is exact.
        h = 1e3 * STEP
        high = value(state.q, state.v + 1e3 * e)
        by_v[k] = (high - value(state.q, state.v - 1e3 * e)) / (2 * h)
    return by_q, by_v


Parameter = Callable[[float], Setup]
"""The setup with a parameter changed by an amount."""


@dataclass(frozen=True)
class MotionCost:
    """C = dt sum_steps [ sum_j a_j tau_j^2 + sum_j e_j (q_d - q+)_j^2 ].

    Attributes:
        torque: weights a (m,) [1/((N m)^2 s)]; zeros by default.
        tracking: weights e (m,) [1/(rad^2 s)]; zeros by default.
    """

    torque: np.ndarray | float = 0.0
    tracking: np.ndarray | float = 0.0


@dataclass(frozen=True)
class Motion:
    """A simulated motion of n time steps.

    Attributes:
        states: states before and after each step (n + 1).
        dq: changes of the skeleton (n, nv).
        du: displacements of the nodes (n, N, 3) [m].
        servos: servos of each step.
        torques: torques of the joints (n, m) [N m].
        cost: C.
    """

    states: tuple[CoupledState, ...]
    dq: np.ndarray
    du: np.ndarray
    servos: tuple[Servo, ...]
    torques: np.ndarray
    cost: float


class MotionGradient:
    """Simulates a motion of servo targets and differentiates its cost.

    Args:
        setup: the robot.
        targets: targets of the servos at the end of each step (n, m) [rad].
        servo: function of targets (m,) that returns servos.
        dt: time step [s].
        cost: cost of the motion.
        solver, threads: as for :func:`~drakebots.fem.solver.sparse.make_solver`.

    Raises:
        InvalidInput: for targets of another number of joints.
    """

    def __init__(
        self,
        setup: Setup,
        targets: np.ndarray,
        servo: Callable[[np.ndarray], Servo],
        dt: float,
        cost: MotionCost,
        *,
        solver: str = "auto",
        threads: int | None = 1,
    ):
        self.setup, self.dt = setup, float(dt)
        self.B, self.at = torque_map(setup.plant)
        targets = np.atleast_2d(np.asarray(targets, float))
        if targets.shape[1] != len(self.at):
            raise InvalidInput(
                f"motion: targets of {targets.shape[1]} joints, the robot has "
                f"{len(self.at)}"
            )
        self.servos = tuple(servo(row) for row in targets)
        m = (len(self.at),)
        self.a = np.broadcast_to(np.asarray(cost.torque, float), m)
        self.e = np.broadcast_to(np.asarray(cost.tracking, float), m)
        self._options = {"solver": solver, "threads": threads}
        self.stepper = self._stepper(setup)

    def _stepper(self, setup):
        setup.plant.SetPositions(setup.context, setup.home)
        return CoupledStepper(
            setup.plant,
            setup.model,
            setup.glue,
            self.dt,
            context=setup.context,
            precision="double",  # as the factors of the adjoint
            **self._options,
        )

    def run(self, setup: Setup | None = None) -> Motion:
        """Simulates the motion, of another setup if one is given.

        Raises:
            NoSolution: when a step fails, or needs the projected tangent, which the
                adjoint does not support.
        """
        stepper = self.stepper if setup is None else self._stepper(setup)
        state = (self.setup if setup is None else setup).start()
        states, dq, du, torques, cost = [state], [], [], [], 0.0
        for servo in self.servos:
            result = stepper.step(state, servo=servo)
            if not result.converged or "projected" in result.message:
                raise NoSolution(f"gradient: {result.message}")
            state = result.state
            states.append(state)
            dq.append(result.solution.dq)
            du.append(result.solution.du)
            torques.append(result.torques)
            off = servo.position - state.q[self.at]
            cost += self.dt * (self.a @ result.torques**2 + self.e @ off**2)
        return Motion(
            tuple(states),
            np.array(dq),
            np.array(du),
            self.servos,
            np.array(torques),
            float(cost),
        )

    def gradient(
        self, motion: Motion, parameters: Mapping[str, tuple[Parameter, float]]
    ) -> dict[str, float]:
        """dC/dp of each parameter.

        Args:
            motion: motion of :meth:`run`.
            parameters: parameters by name, each with the step of its central
                difference.

        Raises:
            NoSolution: when the matrix of a step cannot be factored.
        """
        sides = {
            name: (change(h), change(-h), h) for name, (change, h) in parameters.items()
        }
        out = dict.fromkeys(sides, 0.0)
        nv, x = self.setup.plant.num_velocities(), self.setup.model.rest
        a = [np.zeros(nv), np.zeros(nv), np.zeros_like(x), np.zeros_like(x)]
        for k in range(len(motion.dq) - 1, -1, -1):
            mu, a_w = self._step_back(motion, k, a)
            for name, (plus, minus, h) in sides.items():
                high = self._work(plus, motion, k, mu, a_w)
                out[name] += (high - self._work(minus, motion, k, mu, a_w)) / (2 * h)
        return {name: float(value) for name, value in out.items()}

    def _step_back(self, motion, k, a):
        """mu of step k; `a` becomes the gradient by the state before it."""
        dt, glue = self.dt, self.setup.glue
        state, servo = motion.states[k], motion.servos[k]
        dq, du = motion.dq[k], motion.du[k]
        a_q, a_v, a_x, a_w = a
        system = ReducedSystem(
            self.stepper.equations(state, servo=servo), self.stepper.solver
        )
        J, c = system.equations.skeleton.J, glue.vertices
        T_q, T_dq = moved_slopes(self.setup, state.q, dq)
        # Derivatives of the cost by torques and joint positions.
        tau, after = motion.torques[k], motion.states[k + 1].q[self.at]
        by_tau = 2 * dt * self.a * tau
        by_q = -2 * dt * self.e * (servo.position - after)
        g = T_dq.T @ (a_q + self.B @ by_q) + a_v / dt
        g -= self.B @ ((servo.stiffness + servo.damping / dt) * by_tau)
        side = a_w / dt
        side = side + np.where(self._free()[:, None], a_x, 0.0)
        held, reduced = system.solver.reduce(side.ravel())
        mu_q = -system.back(g + J.T @ reduced[: 3 * len(c)])
        mu_d = -system.solver.expand(held, -(J @ mu_q)).reshape(-1, 3)
        grad_x = skin_slope(self.setup.model, dt, state.skin.positions, du, mu_d)
        new_x = np.where(self._free()[:, None], a_x + grad_x, 0.0)
        new_w = -self._mass(mu_d) / dt
        equations = system.equations
        s = equations.pattern.multiply(equations.A_d, mu_d.ravel()).reshape(-1, 3)[c]
        t = equations.pattern.multiply(equations.A_d, du.ravel()) - equations.b_d
        t = t.reshape(-1, 3)[c]
        s = s + a_w[c] / dt
        by_q_v = skeleton_slopes(
            self.setup, dt, state, servo, dq, mu_q, s.ravel(), t.ravel()
        )
        a[0] = T_q.T @ (a_q + self.B @ by_q) + by_q_v[0] + J.T @ grad_x[c].ravel()
        a[0] -= self.B @ (servo.stiffness * by_tau)
        a[1], a[2], a[3] = by_q_v[1], new_x, new_w
        return (mu_q, mu_d), a_w

    def _free(self):
        free = np.ones(len(self.setup.model.rest), bool)
        free[self.setup.glue.vertices] = False
        return free

    def _mass(self, x):
        model = self.setup.model
        return model.pattern.multiply(model.mass, x.ravel()).reshape(-1, 3)

    def _work(self, setup, motion, k, mu, a_w):
        """mu r of step k at another setup with the same q, v, dq, and free x - X, w,
        du.

        The displacement x - X is kept rather than x, as motions begin without strain.
        """
        state, servo = motion.states[k], motion.servos[k]
        mu_q, mu_d = mu
        plant, context, glue = setup.plant, setup.context, setup.glue
        setup.pose(state.q, state.v)
        skeleton = skeleton_equations(plant, context, glue, self.dt, servo=servo)
        x = state.skin.positions + (setup.model.rest - self.setup.model.rest)
        du, mu_d = motion.du[k].copy(), mu_d.copy()
        c = glue.vertices
        x[c] = skeleton.x
        du[c] = (skeleton.J @ motion.dq[k]).reshape(-1, 3)
        mu_d[c] = (skeleton.J @ mu_q).reshape(-1, 3)
        skin = SkinState(state.skin.time, x, state.skin.velocities)
        equations = step_equations(
            skeleton,
            setup.model,
            skin,
            glue,
            self.dt,
            gravity=plant.gravity_field().gravity_vector(),
        )
        r = equations.pattern.multiply(equations.A_d, du.ravel()) - equations.b_d
        own = mu_q @ (skeleton.A @ motion.dq[k] - skeleton.b)
        later = (a_w[c] / self.dt * du[c]).sum()
        return float(own + mu_d.ravel() @ r + later)
