"""The controller as a system of a diagram, honest about the time it computes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from pydrake.common.value import Value
from pydrake.math import RigidTransform
from pydrake.systems.framework import Context, LeafSystem

from drakebots.core.errors import InvalidInput
from drakebots.core.stages import stage
from drakebots.trajopt.mpc.problem import MpcPlan, MpcProblem, Reference, standing
from drakebots.trajopt.mpc.solver import MpcSolver, is_measurement

RESTART = 10
"""After so many answers in a row that were not used, a plan is made from nothing: the
one in force is then of another situation, and steps from it lead nowhere."""


CLEAR = 10.0
"""Height of the base at which nothing touches the ground [m]."""


@dataclass
class MpcLog:
    """What a controller did, in the order of its solves.

    Attributes:
        times: when each began [s].
        seconds: processor time of each [s].
        ok: whether its answer was used.
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
        """Number of solves whose answer was not used."""
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


class ContactImplicitMpc(LeafSystem):
    """Plans anew every period, and acts on the last plan that is finished.

                          ┌────────────────────┐──▶ actuation (nu)
        state (nq+nv) ───▶│ ContactImplicitMpc │
                          └────────────────────┘──▶ targets (2 nu)

    `state` is the plant's [q, v], `actuation` its efforts: feed-forward and gains of
    the plan in force, on the state, as often as the plant asks. With `servos` it is the
    feed-forward alone, for a plant whose actuators have gains of their own; these hold
    `targets`, the positions and then the velocities of the plan at the actuated joints
    (Drake's desired state); without it there is no such port. A plan begun at t takes
    effect at t + delay, and a period in which the one before is not finished is passed
    over. The first plan, from the first state, is made before the robot moves.

    A plan that is not finite, or worse than the one before by more than 5 %, is not
    used: the plan before stays in force. Where that happens RESTART times in a row, a
    plan is made from nothing, which takes longer. From a state that is not finite
    nothing is planned, and of the plan in force only the feed-forward acts. The log
    counts both.

    Args:
        problem: the problem.
        reference: what the cost asks for.
        servos: whether the plant's servos close the loop between solves, not the gains.

    Attributes:
        solver: the solver.
        log: of all solves.

    Raises:
        InvalidInput: for a period shorter than a solve takes, with a measured delay.
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
        self._servos = servos
        self.problem, self.reference = problem, reference
        self.solver, self.log = MpcSolver(problem), MpcLog()
        plant = problem.robot.plant
        self._nq, self._nu = plant.num_positions(), plant.num_actuators()
        self._check_period()
        size = self._nq + plant.num_velocities()
        self.DeclareVectorInputPort("state", size)
        joints = [
            plant.get_joint_actuator(i).joint() for i in plant.GetJointActuatorIndices()
        ]
        self._q_motors = [joint.position_start() for joint in joints]
        self._v_motors = [joint.velocity_start() for joint in joints]
        self.DeclareVectorOutputPort("actuation", self._nu, self._command)
        if servos:
            self.DeclareVectorOutputPort("targets", 2 * self._nu, self._targets)
        self._index = self.DeclareAbstractState(Value(_Held()))
        # Unrestricted, so that it sees the plant before its step.
        self.DeclarePeriodicUnrestrictedUpdateEvent(problem.period, 0.0, self._update)

    def _check_period(self) -> None:
        """Times solves clear of the ground, the first of which compiles: with contact
        they take no less."""
        p = self.problem
        if p.delay != "measured":
            return
        context = p.robot.plant.CreateDefaultContext()
        # A base that is not free stays where it is.
        with suppress(InvalidInput):
            p.robot.set_base_pose(context, RigidTransform([0.0, 0.0, CLEAR]))
        q = p.robot.plant.GetPositions(context)
        v = np.zeros(p.robot.plant.num_velocities())
        plan = self.solver.solve(q, v, standing)
        plans = [self.solver.solve(q, v, standing, warm=plan) for _ in range(10)]
        least = p.slowness * min(plan.seconds for plan in plans)
        if least > p.period:
            raise InvalidInput(
                f"mpc: period of {p.period:.3g} s is shorter than a solve, which takes "
                f"{least:.3g} s; take a longer period or fewer knots"
            )

    def plan(self, context: Context) -> MpcPlan | None:
        """The plan in force; None before the first."""
        held = context.get_abstract_state(int(self._index)).get_value()
        return held.at(context.get_time())

    def _state(self, context) -> tuple[np.ndarray, np.ndarray]:
        x = self.get_input_port().Eval(context)
        return x[: self._nq], x[self._nq :]

    def _command(self, context, output) -> None:
        plan = self.plan(context)
        if plan is None:
            output.SetFromVector(np.zeros(self._nu))
            return
        now = context.get_time()
        if self._servos:
            output.SetFromVector(plan.tau[self.solver.planned(plan, now)[0]])
            return
        output.SetFromVector(self.solver.command(plan, now, *self._state(context)))

    def _targets(self, context, output) -> None:
        plan, (q, v) = self.plan(context), self._state(context)
        if plan is not None:
            _, q, v = self.solver.planned(plan, context.get_time())
        output.SetFromVector(np.concatenate([q[self._q_motors], v[self._v_motors]]))

    def _update(self, context, state) -> None:
        now, p, log = context.get_time(), self.problem, self.log
        held = context.get_abstract_state(int(self._index)).get_value()
        if held.next is not None and now < held.ready - 1e-9:
            log.late += 1
            return
        plan = held.at(now)
        q, v = self._state(context)
        if not is_measurement(q, v):
            log.bad_states += 1
            return
        warm = plan if held.unused < RESTART else None
        with stage("solve"):
            new = self.solver.solve(q, v, self.reference, time=now, warm=warm)
        log.times.append(now)
        log.seconds.append(new.seconds)
        log.ok.append(new.ok or plan is None)
        log.cost.append(new.cost)
        log.horizons.append(new.q)
        if plan is None:
            held = _Held(new)
        elif new.ok:
            delay = p.delay
            if delay == "measured":
                delay = p.slowness * new.seconds
            held = _Held(plan, new, now + delay)
        else:
            held = _Held(plan, unused=0 if warm is None else held.unused + 1)
        state.get_mutable_abstract_state(int(self._index)).set_value(held)
