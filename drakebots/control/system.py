"""The controller in time: it plans anew every period, in a loop or as a system."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from pydrake.common.value import Value
from pydrake.math import RigidTransform
from pydrake.systems.framework import BasicVector, Context, LeafSystem

from drakebots.control.problem import MpcPlan, MpcProblem, Reference, standing
from drakebots.control.solver import MpcSolver, is_measurement
from drakebots.core.errors import InvalidInput
from drakebots.core.stages import stage
from drakebots.model import driven_joints

LOG = logging.getLogger(__name__)

RESTART = 10
"""After so many answers in a row that were not used, a plan is made from nothing: the
one in force is then of another situation, and steps from it lead nowhere."""

LONGEST = 0.25
"""Largest share of the horizon that a solve may take: what is over when its answer
takes effect was planned in vain. HAMR trots with solves of 6 % of its horizon."""

CLEAR = 10.0
"""Height of the base at which nothing touches the ground [m]."""


@dataclass
class MpcLog:
    """Log of a controller, in the order of its solves.

    Attributes:
        times: start of each [s].
        seconds: processor time of each [s].
        ok: whether its plan is sound; what is not is not used, but for the very first
            one if it is finite, as there is no other.
        cost: of its answer.
        horizons: its positions at the knots (N + 1, nq).
        late: number of periods in which the solve before was still at work.
        bad_states: number of periods in which nothing sound was measured.
    """

    times: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    ok: list[bool] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    horizons: list[np.ndarray] = field(default_factory=list)
    late: int = 0
    bad_states: int = 0

    @property
    def failures(self) -> int:
        """Number of solves without a sound plan."""
        return self.ok.count(False)


@dataclass(frozen=True)
class _Held:
    """The plan in force, one that takes effect at `ready` [s], and the number of
    answers since then that were not used."""

    plan: MpcPlan | None = None
    next: MpcPlan | None = None
    ready: float = 0.0
    unused: int = 0

    def at(self, time: float) -> MpcPlan | None:
        """The plan in force at a time."""
        return self.next if self.next and time >= self.ready - 1e-9 else self.plan

    def __deepcopy__(self, memo) -> _Held:
        # Drake copies the state at every step of the plant; plans do not change.
        return self


@dataclass(frozen=True)
class Command:
    """What a controller asks of the motors at one time.

    Attributes:
        efforts: fed forward, in the order of the plant's inputs (nu,) [N m, N].
        targets: of servos at the motors, in the order of the actuators: positions, and
            where the servos take them velocities; None to leave servos out.
    """

    efforts: np.ndarray
    targets: np.ndarray | None = None


class Replanning:
    """Contact-implicit control in a loop: one plan in force, and one that is to follow.

        controller.start(q, v)
        controller.update(time, q, v)              # every period
        command = controller.command(time, q, v)   # as often as the plant asks

    A plan begun at t takes effect at t + delay, and a period in which the one before is
    not finished is passed over. The first plan, from the first state, is made before
    the robot moves.

    A plan that is not finite, that misses the dynamics by more than the robot's weight,
    or that is worse than the one before by more than 5 %, is not used: the plan before
    stays in force. Where that happens RESTART times in a row, a plan is made from
    nothing, which takes longer. From a state that is not finite nothing is planned, and
    of the plan in force only the feed-forward acts. The log counts both.

    Args:
        problem: the problem.
        reference: target of the cost.
        servos: whether the plant's servos close the loop between solves, not the gains.
        solver: of the problem, where there is one already.
        first: makes the first plan of (solver, reference, q, v); a solve from nothing
            by default.

    Attributes:
        name: of the controller.
        period: between two solves [s].
        log: of all solves.

    Raises:
        InvalidInput: for a solve that takes longer than a step of the horizon, with a
            measured delay.
    """

    name = "mpc"

    def __init__(
        self,
        problem: MpcProblem,
        reference: Reference = standing,
        *,
        servos: bool = False,
        solver: MpcSolver | None = None,
        first: Callable[..., MpcPlan] | None = None,
    ):
        self.problem, self.reference, self.servos = problem, reference, servos
        self.solver = MpcSolver(problem) if solver is None else solver
        self.log, self.period = MpcLog(), problem.period
        self._first, self._held = first, _Held()
        plant = problem.robot.plant
        self._nu = plant.num_actuators()
        joints = driven_joints(plant)
        self._q_motors = [joint.position_start() for joint in joints]
        self._v_motors = [joint.velocity_start() for joint in joints]
        self._check_period()

    def _check_period(self) -> None:
        """Times solves clear of the ground, the first of which compiles."""
        p = self.problem
        if p.delay is not None:
            return
        context = p.robot.plant.CreateDefaultContext()
        # A base that is not free stays where it is.
        with suppress(InvalidInput):
            p.robot.set_base_pose(context, RigidTransform([0.0, 0.0, CLEAR]))
        q = p.robot.plant.GetPositions(context)
        v = np.zeros(p.robot.plant.num_velocities())
        plan, count = self.solver.solve(q, v, standing), p.iterations
        warm = {"warm": plan, "iterations": count}
        plans = [self.solver.solve(q, v, standing, **warm) for _ in range(10)]
        least = p.slowness * min(plan.seconds for plan in plans)
        if least > LONGEST * p.knots * p.step:
            raise InvalidInput(
                f"mpc: a solve takes {least:.3g} s, longer than {LONGEST:g} of the "
                f"horizon of {p.knots * p.step:.3g} s; take fewer knots or longer steps"
            )
        if least > p.period:
            LOG.warning(
                "mpc: a solve takes %.3g s, longer than its period of %.3g s, so that "
                "periods are passed over; take a longer period or fewer knots",
                *(least, p.period),
            )

    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Begins a run from a state, before the robot moves."""
        first = self._first
        self._held = _Held(first and first(self.solver, self.reference, q, v))

    def update(self, time: float, q: np.ndarray, v: np.ndarray) -> None:
        """Plans from the state at the beginning of a period [s]."""
        self._held = self.replanned(self._held, time, q, v)

    def command(self, time: float, q: np.ndarray, v: np.ndarray) -> Command:
        """The motors' command at a time [s]."""
        return self.commanded(self._held.at(time), time, q, v)

    # --- the same without a state of its own, for systems ---

    def commanded(
        self, plan: MpcPlan | None, time: float, q: np.ndarray, v: np.ndarray
    ) -> Command:
        """The motors' command by a plan, at a time [s]."""
        efforts = np.zeros(self._nu)
        if plan is not None and not self.servos:
            efforts = self.solver.command(plan, time, q, v)
        if not self.servos:
            return Command(efforts)
        if plan is not None:
            k, share = self.solver.interval(plan, time)
            efforts = plan.tau[k]
            # Joints with motors turn or slide: they are no part of a quaternion.
            q, v = (x[k] + share * (x[k + 1] - x[k]) for x in (plan.q, plan.v))
        return Command(efforts, np.concatenate([q[self._q_motors], v[self._v_motors]]))

    def replanned(self, held: _Held, now: float, q: np.ndarray, v: np.ndarray) -> _Held:
        """What is in force after the update at a time [s]."""
        p, log = self.problem, self.log
        if held.next is not None and now < held.ready - 1e-9:
            log.late += 1
            return held
        plan = held.at(now)
        if not is_measurement(q, v):
            log.bad_states += 1
            return held
        warm = plan if held.unused < RESTART else None
        with stage("solve"):
            new = self.solver.solve(q, v, self.reference, time=now, warm=warm)
        log.times.append(now)
        log.seconds.append(new.seconds)
        log.ok.append(new.ok)
        log.cost.append(new.cost)
        log.horizons.append(new.q)
        if plan is None:
            told = (new.q, new.v, new.tau, new.gains)
            return _Held(new if all(np.isfinite(a).all() for a in told) else None)
        if not new.ok:
            return _Held(plan, unused=0 if warm is None else held.unused + 1)
        delay = p.slowness * new.seconds if p.delay is None else p.delay
        return _Held(plan, new, now + delay)


class ContactImplicitMpc(LeafSystem):
    """:class:`Replanning` as a system of a diagram, honest about the time it computes.

                          ┌────────────────────┐──▶ actuation (nu)
        state (nq+nv) ───▶│ ContactImplicitMpc │
                          └────────────────────┘──▶ targets (2 nu)

    `state` is the plant's [q, v], `actuation` its efforts: feed-forward and gains of
    the plan in force, on the state, as often as the plant asks. With `servos` it is the
    feed-forward alone, for a plant whose actuators have gains of their own; these hold
    `targets`, the positions and then the velocities of the plan at the actuated joints
    (Drake's desired state); without it there is no such port.

    Args:
        problem, reference, servos: as for :class:`Replanning`.

    Attributes:
        solver: the solver.
        log: of all solves.

    Raises:
        InvalidInput: for a solve that takes longer than a step of the horizon, with a
            measured delay.
    """

    def __init__(
        self,
        problem: MpcProblem,
        reference: Reference = standing,
        *,
        servos: bool = False,
    ):
        super().__init__()
        self.set_name("mpc")
        self.problem, self._own = problem, Replanning(problem, reference, servos=servos)
        self.solver, self.log = self._own.solver, self._own.log
        plant = problem.robot.plant
        self._nq, nu = plant.num_positions(), plant.num_actuators()
        self.DeclareVectorInputPort("state", self._nq + plant.num_velocities())
        self.DeclareVectorOutputPort("actuation", nu, self._efforts)
        if servos:
            self.DeclareVectorOutputPort("targets", 2 * nu, self._targets)
        self._index = self.DeclareAbstractState(Value(_Held()))
        # Unrestricted, so that it sees the plant before its step.
        self.DeclarePeriodicUnrestrictedUpdateEvent(problem.period, 0.0, self._update)

    def _in_force(self, context: Context) -> _Held:
        return context.get_abstract_state(int(self._index)).get_value()

    def plan(self, context: Context) -> MpcPlan | None:
        """The plan in force; None before the first."""
        return self._in_force(context).at(context.get_time())

    def _state(self, context: Context) -> tuple[np.ndarray, np.ndarray]:
        x = self.get_input_port().Eval(context)
        return x[: self._nq], x[self._nq :]

    def _command(self, context: Context) -> Command:
        now = context.get_time()
        return self._own.commanded(self.plan(context), now, *self._state(context))

    def _efforts(self, context: Context, out: BasicVector) -> None:
        out.SetFromVector(self._command(context).efforts)

    def _targets(self, context: Context, out: BasicVector) -> None:
        out.SetFromVector(self._command(context).targets)

    def _update(self, context: Context, state) -> None:
        held, now = self._in_force(context), context.get_time()
        new = self._own.replanned(held, now, *self._state(context))
        state.get_mutable_abstract_state(int(self._index)).set_value(new)
