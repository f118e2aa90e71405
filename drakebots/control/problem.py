"""Problem and answer of a contact-implicit model predictive controller.

    problem = MpcProblem(robot, step=0.05, knots=20, cost=MpcCost(position=100.0))
    solver = MpcSolver(problem)
    plan = solver.solve(q, v, standing)
    plan = solver.solve(q, v, standing, time=1 / 60, warm=plan)

Over N intervals of length h from the measured state (q_0, v_0)

    min  h/2 sum_k=1..N-1 |q_k - r_k|_P^2 + |v_k - s_k|_V^2
         + h/2 sum_k=0..N-1 |u_k|_R^2
         + 1/2 (|q_N - r_N|_T^2 + |v_N - s_N|_W^2) + limits of q

with v_k+1 = (q_k+1 - q_k)/h, and on every interval the implicit Euler rule

    M(q+) (v+ - v)/h + bias(q+, v+) = B u + J(q+)'f + C(q+)'l,     c(q+) = 0

and relaxed hard contact at every foot, whose force f has the normal part n and the
tangential part t in the terrain's frame:

    phi(q+) n = barrier,  phi, n > 0
    t sqrt(|p|^2 + slip^2) = -mu n p,   p(q+, v+) the tangential velocity.

Differences of positions are in the tangent space: of a free base, Drake's own
(rotation vector in the world, then translation). Everything is in SI.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from drakebots.core.checks import (
    array,
    check_knots,
    check_value,
    non_negative,
    one_of,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked, declared
from drakebots.model import Point
from drakebots.multibody import Flat, Robot, Terrain

Weights = float | np.ndarray


def standing(t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A reference that holds the measured positions."""
    return q, np.zeros_like(v)


@checked("cost")
class MpcCost:
    """Weights of the cost, each a number for all or one for each."""

    position: Weights = 10.0
    """Weights P of positions' deviations in the tangent space (nv,) [1/s over the
    position's unit squared]."""
    velocity: Weights = 0.1
    """Weights V of velocities' deviations (nv,)."""
    effort: Weights = 1e-2
    """Weights R > 0 of actuator efforts (nu,) [1/s over N^2 m^2 or N^2]."""
    terminal_position: Weights | None = None
    """Weights T of the last positions (nv,); None for one second's worth of P."""
    terminal_velocity: Weights | None = None
    """Weights W of the last velocities (nv,); None for one second's worth of V."""
    limits: Annotated[float, non_negative("1/s")] = 1e-2
    """Weight of the relaxed logarithmic barriers that keep positions within the model's
    limits. Efforts never leave theirs."""

    def arrays(self, nv: int, nu: int) -> tuple[np.ndarray, ...]:
        """P, V (nv,), R (nu,), T, W (nv,).

        Raises:
            InvalidInput: naming weights of the wrong number or sign.
        """
        P = _weights("position", self.position, nv)
        V = _weights("velocity", self.velocity, nv)
        R = _weights("effort", self.effort, nu)
        if (R <= 0).any():
            raise InvalidInput("cost: effort must be > 0 for every actuator")
        ends = self.terminal_position, self.terminal_velocity
        T, W = (
            default if given is None else _weights(f"terminal_{name}", given, nv)
            for name, given, default in zip(("position", "velocity"), ends, (P, V))
        )
        return P, V, R, T, W


def _weights(name: str, value: Weights, count: int) -> np.ndarray:
    full = np.full(count, value) if np.ndim(value) == 0 else value
    return check_value(f"cost: {name}", full, array((count,), entry=non_negative()))


Reference = Callable[
    [float, np.ndarray, np.ndarray],
    tuple[np.ndarray, np.ndarray] | tuple[np.ndarray, np.ndarray, MpcCost],
]
"""(t [s], q, v) -> positions (knots + 1, nq) and velocities (knots + 1, nv) that the
cost asks for at the knots t, t + h, ...; from the state (q, v) measured at t. A third
answer is a cost in place of the problem's."""


@checked("mpc")
class MpcProblem:
    """A robot, its ground and what the controller wants of it.

    Raises:
        InvalidInput: for a robot without feet, without actuators or not in SI, or a
            value outside its range.
    """

    robot: Robot
    """Robot in SI, from `build_robot`, on a base "quaternion", "euler" or "fixed". The
    plant that is simulated may differ from it."""
    cost: MpcCost = field(default_factory=MpcCost)
    """Weights."""
    feet: tuple[Point, ...] | None = None
    """Points that may touch the ground; None for the model's feet, () for a robot that
    touches nothing."""
    terrain: Terrain = field(default_factory=Flat)
    """The ground."""
    friction: Annotated[float, non_negative()] = 0.7
    """Friction coefficient mu."""
    step: Annotated[float, positive("s")] = 0.05
    """Time step h."""
    knots: Annotated[int, whole(2)] = 20
    """Number N of intervals."""
    barrier: Annotated[float | None, positive("N m")] = None
    """Product phi n of a foot, relaxed complementarity; None for 1e-2 of the robot's
    weight times g h^2, how far a body at rest falls in one step (with Earth's gravity
    where there is none)."""
    slip: Annotated[float, positive("m/s")] = 0.05
    """Speed below which friction is regularised."""
    iterations: Annotated[int, whole(1)] = 1
    """Newton steps of a solve."""
    trials: Annotated[int, whole(1)] = 4
    """Largest number of step lengths tried in each."""
    period: Annotated[float, positive("s")] = 1 / 60
    """Time between solves."""
    delay: Annotated[float | None, non_negative("s")] = None
    """Delay until an answer takes effect; None for as long as the solve took, times
    `slowness`."""
    slowness: Annotated[float, positive()] = 1.0
    """Time that the robot's computer takes for a solve, over that of this one."""

    def __post_init__(self):
        robot, name = self.robot, self.robot.model.name
        if not robot.scaling.is_si:
            raise InvalidInput(f"{name}: build it without scaling, for mpc is in SI")
        if not robot.plant.num_actuators():
            raise InvalidInput(
                f"{name} has no actuators that mpc could command; add them to its file"
            )
        if self.feet is None:
            object.__setattr__(self, "feet", tuple(robot.model.feet))
            if not self.feet:
                raise InvalidInput(
                    f"{name} has no feet; name them in the YAML beside its file, or "
                    "give feet=() for a robot that touches nothing"
                )
        self.cost.arrays(robot.plant.num_velocities(), robot.plant.num_actuators())


FEEDBACK = ("servos", "gains")
"""Feedback between solves: servos at the motors, or the gains of the last solve, for
the contact that it planned."""


@checked("controller")
class Mpc:
    """Contact-implicit predictive control of a robot by its rigid model."""

    step: Annotated[float | None, positive("s")] = None
    """Length of an interval of the horizon; None for 0.05, from the side 0.03, less for
    small robots (lower than 0.2 m)."""
    knots: Annotated[int, whole(2)] = 20
    """Number of intervals of the horizon."""
    period: Annotated[float, positive("s")] = 1 / 60
    """Time between two solves."""
    iterations: Annotated[int, whole(1)] = 2
    """Newton steps of a solve."""
    delay: Annotated[float | None, non_negative("s")] = None
    """Delay until a solve takes effect; None for as long as it took."""
    feedback: Annotated[str | None, one_of("feedback", FEEDBACK)] = None
    """Feedback between solves, by default servos at the motors; or the gains of the
    last solve (which throw light legs that are in the air), as always in a skin."""

    def __post_init__(self):
        check_knots(self.knots)

    def problem(self, robot: Robot, **more) -> MpcProblem:
        """The problem of a robot; `more` are its other fields, and `step` in place of
        None."""
        shared = declared(MpcProblem).keys() & declared(Mpc).keys()
        given = {name: getattr(self, name) for name in shared}
        return MpcProblem(robot, **given | more)


@dataclass(frozen=True)
class MpcPlan:
    """The answer of a solve: a trajectory with forces, and feedback about it.

    On interval k the actuators' efforts are

        u = tau_k + K_k [q_k - q; v_k - v]

    with the difference of positions in the tangent space (:meth:`MpcSolver.command`
    interpolates between knots).

    Attributes:
        time: of the first knot [s].
        step: h [s].
        q, v: at the knots (N + 1, nq), (N + 1, nv); the first is the measured state.
        forces: at the feet during the intervals (N, feet, 3) [N], along the terrain's
            tangents t1, t2 and normal: on flat ground the world's axes.
        loop_forces: of closed loops (N, loop rows) [N, N m].
        tau: efforts (N, nu) [N m, N].
        gains: K (N, nu, 2 nv).
        cost: its value.
        residuals: largest of "dynamics" [N, N m], "contact" (distance [m] by which a
            foot misses its relaxed contact; a missing force of the robot's weight
            counts as g h^2), "friction" [N] and "loops" [m, 1].
        seconds: processor time of the thread that solved [s].
        ok: whether every number is finite, the dynamics are missed by less than the
            robot's weight, and the last step was accepted.
    """

    time: float
    step: float
    q: np.ndarray
    v: np.ndarray
    forces: np.ndarray
    loop_forces: np.ndarray
    tau: np.ndarray
    gains: np.ndarray
    cost: float
    residuals: dict[str, float]
    seconds: float
    ok: bool
