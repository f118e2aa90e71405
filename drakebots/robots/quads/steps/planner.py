"""One step of the plan: factor, condense, solve the QPCC, advance.

    state, memory ──▶ skin and skeleton factored ──▶ maps of (tau, f)
                  ──▶ objective, COP rows, contacts ──▶ QPCC ──▶ state+, memory+

The contact flips of the QPCC use the maps only; the skin is factored once per step.
"""

from __future__ import annotations

import time as clock
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from drakebots.core.checks import non_negative, one_of, positive, whole
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.fields import checked
from drakebots.fem.assembly import worst_tet
from drakebots.robots.quads.robot import Feet, feet_kinematics
from drakebots.robots.quads.steps.contact_state import STICK, cop_rows
from drakebots.robots.quads.steps.labelled_qp import StepQpcc
from drakebots.robots.quads.steps.objective import (
    COMPLIANCE,
    Quadratic,
    StepMaps,
    StepTargets,
    StepWeights,
    coordinate_units,
    position_error,
    settling_step,
    step_maps,
    step_objective,
)
from drakebots.robots.quads.steps.qpcc import (
    COP,
    MAX_ITERATIONS,
    QpccSolution,
    solve_qpcc,
)
from drakebots.skin.coupled import (
    CoupledState,
    CoupledStepper,
    ReducedSystem,
    StepSolution,
)

SETTLING = 0.025
"""Default settling time of deviations [s]: the time from knot to knot. See
:func:`~drakebots.robots.quads.steps.objective.settling_step`."""

RISE = 0.05
"""Speed at which patches that begin below the ground come up to it [m/s]. Raised
within one step, a sole tilted by 5 mm would turn its ankle at 30 rad/s."""


@checked("step options")
class StepOptions:
    """Options for the optimization of steps.

    Raises:
        InvalidInput: for a value out of range.
        UnknownName: for an unknown treatment of the COP.
    """

    weights: StepWeights = field(default_factory=StepWeights)
    """Weights of the objective's terms."""
    compliance: Annotated[float, positive("m/N")] = COMPLIANCE
    """Compliance of a patch."""
    reach: Annotated[float, positive("m")] = 5e-3
    """Height below which a patch can meet the ground within a step."""
    touch: Annotated[float, positive("m")] = 2e-4
    """Height. The patches of scheduled feet are held at first, eq. (18), if they would
    come below it by moving on as in the previous step."""
    cop: Annotated[str, one_of("treatment of the COP", COP)] = "drop"
    """Treatment of the COP: "drop" the COP rows where they have no solution, "require"
    them or "ignore" them everywhere."""
    max_iterations: Annotated[int, whole(2)] = MAX_ITERATIONS
    """Largest number of QPs per step."""
    settling: Annotated[float, non_negative("s")] = SETTLING
    """Time constant with which a deviation from the motion decays, critically damped; 0
    removes all of it in one step, as in the paper."""


@dataclass(frozen=True)
class StepMemory:
    """Warm-start memory of a step: what it needs to know about the previous one.

    Attributes:
        dq: change of the coordinates in the previous step (nv,) [rad, m].
        torques: torques of the previous step (m,) [N m]; None before the first.
        anchors: points of the ground that the patches stick to (P, 3) [m].
        deviation: deviation from the motion before the previous step (nv,) [rad, m];
            None before the first.
    """

    dq: np.ndarray
    torques: np.ndarray | None
    anchors: np.ndarray
    deviation: np.ndarray | None = None


@dataclass(frozen=True)
class StepGoal:
    """Goal of one step.

    Attributes:
        q: positions to reach (nq,).
        contact: mask of feet on the ground at the end of the step (F,), of bool.
        standing: mask of those on the ground before and after the step (F,).
        flat: mask of those whose soles should be level (F,).
        q_now: positions that the motion has before the step (nq,). If None, q is to be
            reached within the step, eq. (14).
    """

    q: np.ndarray
    contact: np.ndarray
    standing: np.ndarray
    flat: np.ndarray
    q_now: np.ndarray | None = None


@dataclass(frozen=True)
class PreparedStep:
    """A step up to its QPCC.

    Attributes:
        maps: dq and patch displacements as affine maps of torques and forces.
        qpcc: the program to solve.
        deviation: deviation from the motion before the step (nv,) [rad, m]; None if
            the goal has no `q_now`.
    """

    maps: StepMaps
    qpcc: StepQpcc
    deviation: np.ndarray | None = None


@dataclass(frozen=True)
class PlannedStep:
    """Outcome of one step.

    Attributes:
        state, memory: those after the step, or before it if it failed.
        qpcc: solution of the QPCC; None if the skin's matrix could not be factored.
        solution: dq, du and forces of the glue; None if the step failed.
        p: positions of the patches before the step (P, 3) [m].
        seconds: wall time by part [s].
        ok: whether the step can be used.
        message: end of the search, or why the step cannot be used.
    """

    state: CoupledState
    memory: StepMemory
    qpcc: QpccSolution | None
    solution: StepSolution | None
    p: np.ndarray
    seconds: dict[str, float]
    ok: bool
    message: str


class StepPlanner:
    """Plans the steps of one robot.

    Args:
        stepper: coupled simulation of skeleton and skin; torques act on its joints.
        feet: feet of the skeleton.
        torque_limits: torque limits (m,) [N m].
        options: options for the optimization of steps.
        friction: coefficient of friction of the feet on the ground.
        cop_margin: smallest distance of the COP from the polygon's edges [m].

    Raises:
        InvalidInput: for limits that are not > 0.
    """

    def __init__(
        self,
        stepper: CoupledStepper,
        feet: Feet,
        torque_limits: np.ndarray,
        options: StepOptions = StepOptions(),
        *,
        friction: float = 0.8,
        cop_margin: float = 0.0,
    ):
        self.stepper, self.feet, self.options = stepper, feet, options
        self.friction, self.cop_margin = friction, cop_margin
        self.torque_limits = limits = np.asarray(torque_limits, float)
        if np.isnan(limits).any() or np.any(limits <= 0):
            raise InvalidInput(f"torque limits {limits.tolist()}: must be > 0")
        weights, plant = options.weights, stepper.plant
        self.units = coordinate_units(plant, weights.angle, weights.length)
        if len(stepper.solver.kept) > len(stepper.glue.dofs):
            raise InvalidInput(
                "step-by-step plan: forces on vertices of the skin are not planned; "
                "make a stepper without `contacts`"
            )

    def contact_points(self, state: CoupledState) -> np.ndarray:
        """Positions of the patches (P, 3) [m]."""
        self.stepper.plant.SetPositions(self.stepper.context, state.q)
        return feet_kinematics(self.stepper.plant, self.stepper.context, self.feet).p

    def start(self, state: CoupledState) -> StepMemory:
        """Memory of the first step."""
        anchors = self.contact_points(state)
        # A tilted sole may begin below the ground; see RISE.
        anchors[:, 2] = np.minimum(anchors[:, 2], 0.0)
        return StepMemory(self.stepper.dt * state.v, None, anchors)

    def prepare(
        self,
        state: CoupledState,
        memory: StepMemory,
        goal: StepGoal,
        *,
        project: bool = False,
    ) -> PreparedStep:
        """Factors the equations of a step and sets up its QPCC.

        Raises:
            NoSolution: when the skin's matrix is not positive definite.
        """
        stepper, options = self.stepper, self.options
        equations = stepper.equations(state, project=project)
        feet = feet_kinematics(stepper.plant, stepper.context, self.feet)
        error = position_error(stepper.plant, stepper.context, goal.q)
        deviation = None
        if goal.q_now is not None:
            deviation = position_error(stepper.plant, stepper.context, goal.q_now)
            error = settling_step(
                error, deviation, memory.deviation, stepper.dt, options.settling
            )
        system = ReducedSystem(equations, stepper.solver)
        maps = step_maps(
            system,
            feet,
            memory.anchors,
            compliance=options.compliance,
        )
        targets = StepTargets(
            error, memory.dq, memory.torques, goal.flat, goal.standing
        )
        objective = step_objective(
            maps, self.feet, feet, targets, options.weights, self.units
        )
        falling = (feet.J @ memory.dq)[2::3]
        qpcc = self._qpcc(maps, objective, goal, falling)
        return PreparedStep(maps, qpcc, deviation)

    def _qpcc(
        self, maps: StepMaps, objective: Quadratic, goal: StepGoal, falling: np.ndarray
    ) -> StepQpcc:
        """The program of a step, for patches that moved up by `falling` (P,) [m] in the
        previous one."""
        options, height = self.options, maps.p[:, 2]
        near = height < options.reach
        scheduled = np.asarray(goal.contact, bool)[self.feet.foot_of]
        bearing = near & scheduled
        rows = np.zeros((0, maps.p.size))
        if options.cop != "ignore" and bearing.sum() >= 3:
            rows = cop_rows(maps.p, bearing, self.cop_margin)
        return StepQpcc(
            objective,
            self.torque_limits,
            maps.y0,
            maps.Y,
            options.compliance,
            self.friction,
            near,
            scheduled & (height + falling < options.touch),
            rows,
        )

    def step(
        self, state: CoupledState, memory: StepMemory, goal: StepGoal
    ) -> PlannedStep:
        """Plans one step; a failed step keeps the old state."""
        seconds, reason, qpcc, p = {}, "", None, None
        for project in (False, True):
            # A compressed wall can make the exact tangent matrix indefinite.
            begin = clock.perf_counter()
            try:
                ready = self.prepare(state, memory, goal, project=project)
            except NoSolution as error:
                reason = str(error)
                continue
            p, middle = ready.maps.p, clock.perf_counter()
            qpcc = solve_qpcc(
                ready.qpcc,
                max_iterations=self.options.max_iterations,
                cop=self.options.cop,
                start=memory.torques,
            )
            after = clock.perf_counter()
            if not qpcc.ok:
                reason = qpcc.message
                break
            solution = ready.maps.solution(qpcc.w)
            moved = self.stepper.advance(state, solution)
            tet, ratio = worst_tet(self.stepper.model, moved.skin.positions)
            seconds = {
                "condense": middle - begin,
                "qpcc": after - middle,
                "advance": clock.perf_counter() - after,
            }
            if not ratio > 0:
                reason = (
                    f"tetrahedron {tet} is inverted (det F {ratio:.3g}); "
                    "take a smaller dt"
                )
                continue
            memory = self._next_memory(ready, memory, qpcc, solution)
            return PlannedStep(
                moved, memory, qpcc, solution, p, seconds, True, qpcc.message
            )
        when = state.skin.time + self.stepper.dt
        message = f"the step to {when:g} s failed: {reason}"
        p = self.contact_points(state) if p is None else p
        return PlannedStep(state, memory, qpcc, None, p, seconds, False, message)

    def _next_memory(
        self,
        ready: PreparedStep,
        memory: StepMemory,
        qpcc: QpccSolution,
        solution: StepSolution,
    ) -> StepMemory:
        """Memory for the next step, with new anchors on the ground.

        Those of sticking patches stay, those of sliding patches are dragged along, and
        those of patches in the air stay below them.
        """
        # Where a patch sticks, y is 0 but for rounding errors.
        moved = np.where((qpcc.labels == STICK)[:, None], 0.0, qpcc.y)
        anchors = memory.anchors + moved
        rise = RISE * self.stepper.dt
        anchors[:, 2] = np.minimum(memory.anchors[:, 2] + rise, 0.0)
        return StepMemory(solution.dq, qpcc.torques, anchors, ready.deviation)
