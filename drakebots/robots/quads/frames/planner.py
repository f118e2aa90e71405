"""One frame of the frame-by-frame optimization: factor, condense, QPCC, advance.

    state, memory ──▶ skin and skeleton factored ──▶ maps of (tau, f)
                  ──▶ objective, COP rows, contacts ──▶ QPCC ──▶ state+, memory+

The flips of the QPCC use the maps only; the skin is factored once a frame.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.fem.assembly import worst_tet
from drakebots.robots.quads.frames.contact_state import STICK, cop_rows
from drakebots.robots.quads.frames.labelled_qp import FrameQpcc
from drakebots.robots.quads.frames.objective import (
    FrameMaps,
    FrameTargets,
    coordinate_units,
    frame_maps,
    frame_objective,
    position_error,
    settling_step,
)
from drakebots.robots.quads.frames.problem import FrameGoal, FrameMemory, FrameOptions
from drakebots.robots.quads.frames.qpcc import QpccSolution, solve_qpcc
from drakebots.robots.quads.robot import Feet, feet_frame
from drakebots.skin.frame import (
    CoupledState,
    CoupledStepper,
    FrameSolution,
    ReducedSystem,
)

RISE = 0.05
"""Speed at which patches that begin below the ground come up to it [m/s]. At once,
in a frame, a sole tilted by 5 mm would turn its ankle at 30 rad/s."""


@dataclass(frozen=True)
class PreparedFrame:
    """A frame up to its QPCC.

    Attributes:
        maps: of torques and patch forces.
        qpcc: to solve.
        away: from the motion now (nv,) [rad, m]; None without `q_now`.
    """

    maps: FrameMaps
    qpcc: FrameQpcc
    away: np.ndarray | None = None


@dataclass(frozen=True)
class FrameStep:
    """One frame.

    Attributes:
        state, memory: after it; before it when it failed.
        qpcc: what was solved; None when the skin's matrix could not be.
        solution: dq, du and forces of the glue; None when it failed.
        p: patches before it (P, 3) [m].
        seconds: of wall time by part.
        ok, message: whether it can be used, and why not.
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
    """Frames of one robot.

    Args:
        stepper: of skeleton and skin; torques act on its joints. Contacts it keeps
            at vertices of the skin are used as patches of no foot.
        feet: of the skeleton.
        limits: of the torques (m,) [N m].
        options: of the frames.
        skin_forces: others on the skin's nodes, of the state (N, 3) [N].

    Raises:
        InvalidInput: for limits that do not fit or are not > 0.
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
        """Patches, then contacts of the skin (P, 3) [m]."""
        self.stepper.plant.SetPositions(self.stepper.context, state.q)
        feet = feet_frame(self.stepper.plant, self.stepper.context, self.feet)
        return np.concatenate([feet.p, state.skin.positions[self.on_skin]])

    def start(self, state: CoupledState) -> FrameMemory:
        """The memory of a first frame."""
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
        """Factors the frame and sets up its QPCC.

        Raises:
            NoSolution: when the skin's matrix is not positive definite.
        """
        stepper, options = self.stepper, self.options
        outer = None if self.skin_forces is None else self.skin_forces(state)
        frame = stepper.frame(state, skin_forces=outer, project=project)
        feet = feet_frame(stepper.plant, stepper.context, self.feet)
        error = position_error(stepper.plant, stepper.context, goal.q)
        away = None
        if goal.q_now is not None:
            away = position_error(stepper.plant, stepper.context, goal.q_now)
            error = settling_step(
                error, away, memory.away, stepper.dt, options.settling
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
        return PreparedFrame(maps, qpcc, away)

    def step(
        self, state: CoupledState, memory: FrameMemory, goal: FrameGoal
    ) -> FrameStep:
        """The next state; a failed step keeps the old one."""
        seconds, reason, qpcc, p = {}, "", None, None
        for project in (False, True):
            # A compressed wall can make the exact tangent indefinite.
            begin = clock.perf_counter()
            try:
                ready = self.prepare(state, memory, goal, project=project)
            except NoSolution as error:
                reason = str(error)
                continue
            p, middle = ready.maps.p, clock.perf_counter()
            qpcc = self.solve(ready, memory)
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
                reason = f"tet {tet} turned over (det F {ratio:.3g}); take a smaller dt"
                continue
            later = self.remember(ready, memory, qpcc, solution)
            return FrameStep(
                moved, later, qpcc, solution, p, seconds, True, qpcc.message
            )
        when = state.skin.time + self.stepper.dt
        message = f"frame to {when:g} s failed: {reason}"
        p = self.contact_points(state) if p is None else p
        return FrameStep(state, memory, qpcc, None, p, seconds, False, message)

    def solve(self, ready: PreparedFrame, memory: FrameMemory) -> QpccSolution:
        """The QPCC of a frame."""
        options = self.options
        return solve_qpcc(
            ready.qpcc,
            max_iterations=options.max_iterations,
            cop=options.cop,
            start=memory.torques,
        )

    def remember(
        self,
        ready: PreparedFrame,
        memory: FrameMemory,
        qpcc: QpccSolution,
        solution: FrameSolution,
    ) -> FrameMemory:
        """Anchors: kept, dragged along by what slides, below what is in the air."""
        # y = 0 where it sticks, but for rounding; f = 0 in the air.
        moved = np.where((qpcc.labels == STICK)[:, None], 0.0, qpcc.y)
        anchors = memory.anchors + moved
        rise = RISE * self.stepper.dt
        anchors[:, 2] = np.minimum(memory.anchors[:, 2] + rise, 0.0)
        return FrameMemory(solution.dq, qpcc.torques, anchors, ready.away)
