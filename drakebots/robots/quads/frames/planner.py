"""One step of the plan: factor, condense, solve the QPCC, advance.

    state, memory ──▶ skin and skeleton factored ──▶ maps of (tau, f)
                  ──▶ objective, COP rows, contacts ──▶ QPCC ──▶ state+, memory+

The contact flips of the QPCC use the maps only; the skin is factored once per step.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from drakebots.core.checks import check, non_negative, one_of, positive, whole
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.fem.assembly import worst_tet
from drakebots.robots.quads.frames.contact_state import STICK, cop_rows
from drakebots.robots.quads.frames.labelled_qp import FrameQpcc
from drakebots.robots.quads.frames.objective import (
    COMPLIANCE,
    FrameMaps,
    FrameTargets,
    FrameWeights,
    coordinate_units,
    frame_maps,
    frame_objective,
    position_error,
    settling_step,
)
from drakebots.robots.quads.frames.qpcc import (
    COP,
    MAX_ITERATIONS,
    QpccSolution,
    solve_qpcc,
)
from drakebots.robots.quads.robot import Feet, feet_kinematics
from drakebots.skin.frame import (
    CoupledState,
    CoupledStepper,
    FrameSolution,
    ReducedSystem,
)

SETTLING = 0.025
"""Default settling time of deviations [s]: the time from knot to knot. See
:func:`~drakebots.robots.quads.frames.objective.settling_step`."""

RISE = 0.05
"""Speed at which patches that begin below the ground come up to it [m/s]. Raised
within one step, a sole tilted by 5 mm would turn its ankle at 30 rad/s."""


@dataclass(frozen=True)
class FrameOptions:
    """How steps are optimized.

    Attributes:
        weights: weights of the objective's terms.
        friction: coefficient of friction of the feet on the ground.
        compliance: compliance of a patch [m/N].
        reach: height below which a patch can meet the ground within a step [m].
        touch: height [m]. The patches of scheduled feet are held at first, eq. (18),
            if they would come below it by moving on as in the previous step.
        cop: "drop" the COP rows where they have no solution, "require" them or
            "ignore" them everywhere.
        cop_margin: smallest distance of the COP from the polygon's edges [m].
        max_iterations: largest number of QPs per step.
        settling: time constant [s] with which a deviation from the motion decays,
            critically damped; 0 removes all of it in one step, as in the paper.

    Raises:
        InvalidInput: for a value out of range.
        UnknownName: for an unknown treatment of the COP.
    """

    weights: FrameWeights = field(default_factory=FrameWeights)
    friction: float = 0.8
    compliance: float = COMPLIANCE
    reach: float = 5e-3
    touch: float = 2e-4
    cop: str = "drop"
    cop_margin: float = 0.0
    max_iterations: int = MAX_ITERATIONS
    settling: float = SETTLING

    def __post_init__(self):
        check(
            self,
            "step options",
            friction=positive(),
            compliance=positive("m/N"),
            reach=positive("m"),
            touch=positive("m"),
            cop=one_of("treatment of the COP", COP),
            cop_margin=non_negative("m"),
            max_iterations=whole(2),
            settling=non_negative("s"),
        )


@dataclass(frozen=True)
class FrameMemory:
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
class FrameGoal:
    """Goal of one step.

    Attributes:
        q: positions to reach (nq,).
        contact: which feet are on the ground at the end of the step (F,), of bool.
        standing: which are on the ground both before and after the step (F,).
        flat: which should have their soles parallel to the ground (F,).
        q_now: positions that the motion has before the step (nq,). If None, q is to be
            reached within the step, eq. (14).
    """

    q: np.ndarray
    contact: np.ndarray
    standing: np.ndarray
    flat: np.ndarray
    q_now: np.ndarray | None = None


@dataclass(frozen=True)
class PreparedFrame:
    """A step up to its QPCC.

    Attributes:
        maps: dq and patch displacements as affine maps of torques and forces.
        qpcc: the program to solve.
        deviation: deviation from the motion before the step (nv,) [rad, m]; None if
            the goal has no `q_now`.
    """

    maps: FrameMaps
    qpcc: FrameQpcc
    deviation: np.ndarray | None = None


@dataclass(frozen=True)
class FrameStep:
    """Outcome of one step.

    Attributes:
        state, memory: those after the step, or before it if it failed.
        qpcc: solution of the QPCC; None if the skin's matrix could not be factored.
        solution: dq, du and forces of the glue; None if the step failed.
        p: positions of the patches before the step (P, 3) [m].
        seconds: wall time by part [s].
        ok: whether the step can be used.
        message: how the search ended, or why the step cannot be used.
    """

    state: CoupledState
    memory: FrameMemory
    qpcc: QpccSolution | None
    solution: FrameSolution | None
    p: np.ndarray
    seconds: dict[str, float]
    ok: bool
    message: str


class FramePlanner:
    """Plans the steps of one robot.

    Args:
        stepper: coupled simulation of skeleton and skin; torques act on its joints.
            Contacts that it has at vertices of the skin count as patches that
            belong to no foot.
        feet: feet of the skeleton.
        limits: torque limits (m,) [N m].
        options: how steps are optimized.
        skin_forces: function of the state that gives further forces on the skin's
            nodes (N, 3) [N].

    Raises:
        InvalidInput: for limits that are not > 0.
    """

    def __init__(
        self,
        stepper: CoupledStepper,
        feet: Feet,
        limits: np.ndarray,
        options: FrameOptions = FrameOptions(),
        *,
        skin_forces: Callable[[CoupledState], np.ndarray] | None = None,
    ):
        self.stepper, self.feet, self.options = stepper, feet, options
        self.limits = np.asarray(limits, float)
        if np.isnan(self.limits).any() or np.any(self.limits <= 0):
            raise InvalidInput(f"torque limits {self.limits.tolist()}: must be > 0")
        weights, plant = options.weights, stepper.plant
        self.units = coordinate_units(plant, weights.angle, weights.length)
        self.skin_forces = skin_forces
        glue = len(stepper.glue.dofs)
        self.on_skin = stepper.solver.kept[glue::3] // 3

    def contact_points(self, state: CoupledState) -> np.ndarray:
        """Positions of the patches, then of the skin's contacts (P, 3) [m]."""
        self.stepper.plant.SetPositions(self.stepper.context, state.q)
        feet = feet_kinematics(self.stepper.plant, self.stepper.context, self.feet)
        return np.concatenate([feet.p, state.skin.positions[self.on_skin]])

    def start(self, state: CoupledState) -> FrameMemory:
        """Memory of the first step."""
        anchors = self.contact_points(state)
        # A tilted sole may begin below the ground; see RISE.
        anchors[:, 2] = np.minimum(anchors[:, 2], 0.0)
        return FrameMemory(self.stepper.dt * state.v, None, anchors)

    def prepare(
        self,
        state: CoupledState,
        memory: FrameMemory,
        goal: FrameGoal,
        *,
        project: bool = False,
    ) -> PreparedFrame:
        """Factors the equations of a step and sets up its QPCC.

        Raises:
            NoSolution: when the skin's matrix is not positive definite.
        """
        stepper, options = self.stepper, self.options
        outer = None if self.skin_forces is None else self.skin_forces(state)
        frame = stepper.frame(state, skin_forces=outer, project=project)
        feet = feet_kinematics(stepper.plant, stepper.context, self.feet)
        error = position_error(stepper.plant, stepper.context, goal.q)
        deviation = None
        if goal.q_now is not None:
            deviation = position_error(stepper.plant, stepper.context, goal.q_now)
            error = settling_step(
                error, deviation, memory.deviation, stepper.dt, options.settling
            )
        system = ReducedSystem(frame, stepper.solver)
        maps = frame_maps(
            system,
            feet,
            memory.anchors,
            skin_contacts=state.skin.positions[self.on_skin],
            compliance=options.compliance,
        )
        targets = FrameTargets(
            error, memory.dq, memory.torques, goal.flat, goal.standing
        )
        objective = frame_objective(
            maps, self.feet, feet, targets, options.weights, self.units
        )
        near = maps.p[:, 2] < options.reach
        scheduled = np.zeros(maps.contacts, bool)
        foot_of = self.feet.foot_of
        scheduled[: len(foot_of)] = np.asarray(goal.contact, bool)[foot_of]
        scheduled[len(foot_of) :] = True
        bearing = near & scheduled
        rows = np.zeros((0, 3 * maps.contacts))
        if options.cop != "ignore" and bearing.sum() >= 3:
            rows = cop_rows(maps.p, bearing, options.cop_margin)
        coming = maps.p[:, 2].copy()
        coming[: len(foot_of)] += (feet.J @ memory.dq)[2::3]
        qpcc = FrameQpcc(
            objective,
            self.limits,
            maps.y0,
            maps.Y,
            options.compliance,
            options.friction,
            near,
            scheduled & (coming < options.touch),
            rows,
        )
        return PreparedFrame(maps, qpcc, deviation)

    def step(
        self, state: CoupledState, memory: FrameMemory, goal: FrameGoal
    ) -> FrameStep:
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
            return FrameStep(
                moved, memory, qpcc, solution, p, seconds, True, qpcc.message
            )
        when = state.skin.time + self.stepper.dt
        message = f"the step to {when:g} s failed: {reason}"
        p = self.contact_points(state) if p is None else p
        return FrameStep(state, memory, qpcc, None, p, seconds, False, message)

    def _next_memory(
        self,
        ready: PreparedFrame,
        memory: FrameMemory,
        qpcc: QpccSolution,
        solution: FrameSolution,
    ) -> FrameMemory:
        """Memory for the next step, with new anchors on the ground.

        Those of sticking patches stay, those of sliding patches are dragged along, and
        those of patches in the air stay below them.
        """
        # Where a patch sticks, y is 0 but for rounding errors.
        moved = np.where((qpcc.labels == STICK)[:, None], 0.0, qpcc.y)
        anchors = memory.anchors + moved
        rise = RISE * self.stepper.dt
        anchors[:, 2] = np.minimum(memory.anchors[:, 2] + rise, 0.0)
        return FrameMemory(solution.dq, qpcc.torques, anchors, ready.deviation)
