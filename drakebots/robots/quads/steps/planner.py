"""One step of the plan: factor, condense, solve the QPCC, advance.

    state, memory ──▶ skin and skeleton factored ──▶ maps of (tau, f)
                  ──▶ objective, COP rows, contacts ──▶ QPCC ──▶ state+, memory+

The contact flips of the QPCC use the maps only; the skin is factored once per step.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

import numpy as np

from drakebots.core.checks import non_negative, one_of, positive, whole
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.fields import checked
from drakebots.fem.assembly import worst_tet
from drakebots.robots.quads.motion import LEVEL, ground_axes, height_over
from drakebots.robots.quads.robot import Feet, feet_kinematics
from drakebots.robots.quads.steps.contact_state import STICK, cop_rows
from drakebots.robots.quads.steps.labelled_qp import LabelledQp, StepQpcc
from drakebots.robots.quads.steps.objective import (
    Quadratic,
    StepMaps,
    StepTargets,
    StepWeights,
    coordinate_units,
    on_axes,
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
from drakebots.skin import skeleton_coordinates
from drakebots.skin.coupled import (
    CoupledState,
    CoupledStepper,
    ReducedSystem,
    SpringSystem,
    StepSolution,
)
from drakebots.trajopt import PlanProgram
from drakebots.trajopt.solvers import Solution

SETTLING = 0.025
"""Default settling time of deviations [s]: the time from knot to knot. See
:func:`~drakebots.robots.quads.steps.objective.settling_step`."""

RISE = 0.05
"""Speed at which patches that begin below the ground come up to it [m/s]. Raised
within one step, a sole tilted by 5 mm would turn its ankle at 30 rad/s."""


SETS = 4
"""Largest number of sets of pushing pairs of the skin that a step is solved with."""

PARTS = ("condense", "qpcc", "advance")
"""Parts of the work of a step."""

OPTIONS = {"tol": 1e-14, "acceptable_iter": 0, "max_iter": 200}
"""Options of IPOPT for the QP of one step, which it solves to the last digits."""


@checked("step options")
class StepOptions:
    """Options for the optimization of steps.

    Raises:
        InvalidInput: for a value out of range.
        UnknownName: for an unknown treatment of the COP.
    """

    weights: StepWeights = field(default_factory=StepWeights)
    """Weights of the objective's terms."""
    compliance: Annotated[float, positive("m/N")] = 1e-6
    """Compliance of a patch: 20 patches under 40 N sink by 2 um."""
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
        anchors: points of the ground that the patches stick to (P, 3), in the world
            [m].
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
        flat: mask of those whose soles should be parallel to the ground (F,).
        q_now: positions that the motion has before the step (nq,).
        ground: planes [n, d] of the ground under the feet (F, 4), or one (4,).
    """

    q: np.ndarray
    contact: np.ndarray
    standing: np.ndarray
    flat: np.ndarray
    q_now: np.ndarray
    ground: np.ndarray = field(default_factory=lambda: LEVEL)


@dataclass(frozen=True)
class PreparedStep:
    """A step up to its QPCC.

    Attributes:
        state, memory, goal: as for :meth:`StepPlanner.step`.
        ground: planes of the ground under the patches (P, 4).
        maps: dq and patch displacements as affine maps of torques and forces.
        qpcc: the program to solve.
        deviation: deviation from the motion before the step (nv,) [rad, m].
    """

    state: CoupledState
    memory: StepMemory
    goal: StepGoal
    ground: np.ndarray
    maps: StepMaps
    qpcc: StepQpcc
    deviation: np.ndarray


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
        InvalidInput: for limits that are not > 0, or not one for each torque.
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
        count = len(stepper.actuated)
        if limits.shape != (count,) or not (limits > 0).all():
            raise InvalidInput(
                f"torque limits {limits.tolist()}: must be {count} numbers > 0"
            )
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

    def start(self, state: CoupledState, ground: np.ndarray = LEVEL) -> StepMemory:
        """Memory of the first step, on ground as of :class:`StepGoal`."""
        points, ground = self.contact_points(state), self._under_patches(ground)
        # A tilted sole may begin below the ground; see RISE.
        above = np.maximum(height_over(ground, points), 0.0)
        anchors = points - above[:, None] * ground[:, :3]
        return StepMemory(self.stepper.dt * state.v, None, anchors)

    def _under_patches(self, ground: np.ndarray) -> np.ndarray:
        """Planes under the patches (P, 4), of those under the feet."""
        return np.broadcast_to(ground, (len(self.feet), 4))[self.feet.foot_of]

    def prepare(
        self,
        state: CoupledState,
        memory: StepMemory,
        goal: StepGoal,
        *,
        project: bool = False,
        system: ReducedSystem | SpringSystem | None = None,
    ) -> PreparedStep:
        """Factors the equations of a step and sets up its QPCC.

        Args:
            state, memory, goal: as for :meth:`step`.
            project: whether to remove negative eigenvalues of the skin's tangent.
            system: the factored system of the step, where there is one.

        Raises:
            NoSolution: when the skin's matrix is not positive definite.
        """
        stepper, options = self.stepper, self.options
        system = system or stepper.system(state, project=project)
        stepper.pose(state.q, state.v)
        posed = stepper.plant, stepper.context
        feet = feet_kinematics(*posed, self.feet)
        error, deviation = (position_error(*posed, q) for q in (goal.q, goal.q_now))
        pace = stepper.dt, options.settling
        error = settling_step(error, deviation, memory.deviation, *pace)
        ground = self._under_patches(goal.ground)
        axes = ground_axes(ground)
        maps = step_maps(system, feet, axes, memory.anchors, options.compliance)
        normals = np.broadcast_to(goal.ground[..., :3], feet.normal.shape)
        masks = goal.flat, goal.standing
        targets = StepTargets(error, memory.dq, memory.torques, *masks, normals)
        how = targets, options.weights, self.units
        objective = step_objective(maps, self.feet, feet, *how)
        moved = (feet.J @ memory.dq).reshape(-1, 3)
        heights = height_over(ground, feet.p), np.sum(ground[:, :3] * moved, axis=1)
        qpcc = self._qpcc(maps, axes, objective, goal, *heights)
        return PreparedStep(state, memory, goal, ground, maps, qpcc, deviation)

    def _qpcc(
        self,
        maps: StepMaps,
        axes: np.ndarray,
        objective: Quadratic,
        goal: StepGoal,
        height: np.ndarray,
        rising: np.ndarray,
    ) -> StepQpcc:
        """The program of a step, for patches of a height above the ground (P,) that
        changed by `rising` (P,) in the previous one [m]."""
        options = self.options
        near = height < options.reach
        scheduled = np.asarray(goal.contact, bool)[self.feet.foot_of]
        bearing = near & scheduled
        rows = np.zeros((0, maps.p.size))
        if options.cop != "ignore" and bearing.sum() >= 3:
            of_world = cop_rows(maps.p, bearing, self.cop_margin)
            rows = on_axes(axes, of_world.T).T
        held = scheduled & (height + rising < options.touch)
        ground = maps.y0, maps.Y, options.compliance, self.friction
        return StepQpcc(objective, self.torque_limits, *ground, near, held, rows)

    def step(
        self, state: CoupledState, memory: StepMemory, goal: StepGoal
    ) -> PlannedStep:
        """Plans one step; a failed step keeps the old state."""
        found = None
        for project in (False, True):
            # A compressed wall can make the exact tangent matrix indefinite.
            begin = clock.perf_counter()
            try:
                ready = self.prepare(state, memory, goal, project=project)
            except NoSolution as error:
                reason = str(error)
                continue
            middle = clock.perf_counter()
            ready, qpcc = self._searched(ready)
            after = clock.perf_counter()
            found = self._taken(ready, qpcc)
            parts = middle - begin, after - middle, clock.perf_counter() - after
            found = replace(found, seconds=dict(zip(PARTS, parts)))
            if found.ok or not qpcc.ok:
                return found
        return found or self._failed(state, memory, reason)

    def _searched(self, ready: PreparedStep) -> tuple[PreparedStep, QpccSolution]:
        """The solution of the QPCC, and the step with the pairs that push there.

        Where other pairs of the skin push than those assumed, it is solved again with
        them. If that does not end, :meth:`SpringSystem.solution` still moves the skin
        as its contacts do under the torques and forces that were found.
        """
        most, cop = self.options.max_iterations, self.options.cop
        start, found = ready.memory.torques, None
        for _ in range(SETS):
            qpcc = solve_qpcc(ready.qpcc, max_iterations=most, cop=cop, start=start)
            if found and not qpcc.ok:
                break
            found, start = (ready, qpcc), qpcc.torques
            system = ready.maps.system.at(ready.maps.dq(qpcc.w))
            if not qpcc.ok or system is ready.maps.system:
                break
            step = ready.state, ready.memory, ready.goal
            ready = self.prepare(*step, system=system)
        return found

    def _taken(self, ready: PreparedStep, qpcc: QpccSolution) -> PlannedStep:
        """The step that a solution of the QPCC makes; a failed one where it cannot be
        used, or turns the skin inside out."""
        state, memory, p = ready.state, ready.memory, ready.maps.p
        reason = qpcc.message
        if qpcc.ok:
            try:
                solution = ready.maps.solution(qpcc.w)
            except NoSolution as error:
                return self._failed(state, memory, str(error), qpcc, p)
            moved = self.stepper.advance(state, solution)
            tet, ratio = worst_tet(self.stepper.model, moved.skin.positions)
            if ratio > 0:
                after = self._next_memory(ready, qpcc, solution)
                return PlannedStep(moved, after, qpcc, solution, p, {}, True, reason)
            reason = (
                f"tetrahedron {tet} is inverted (det F {ratio:.3g}); take a smaller dt"
            )
        return self._failed(state, memory, reason, qpcc, p)

    def _failed(
        self, state: CoupledState, memory: StepMemory, reason: str, qpcc=None, p=None
    ) -> PlannedStep:
        when = state.skin.time + self.stepper.dt
        message = f"the step to {when:g} s failed: {reason}"
        p = self.contact_points(state) if p is None else p
        return PlannedStep(state, memory, qpcc, None, p, {}, False, message)

    def mathematical_program(
        self,
        state: CoupledState,
        memory: StepMemory,
        goal: StepGoal,
        *,
        labels: Sequence[int] | None = None,
    ) -> PlanProgram[PlannedStep]:
        """The QP of one step on one branch of the contacts, as a program.

        Its names are "torque" (1, joints) [N m], and what follows from it:
        "contact_force" (1, patches, 3) [N], "patch_displacement" (1, patches, 3) from
        the anchors [m], both along two tangents of the ground and its normal, and "dq"
        (1, velocities), the change of the coordinates in the step. Its `plan` is a step
        like :meth:`step`'s, from which the next one starts.

        Args:
            state, memory, goal: as for :meth:`step`.
            labels: piece of each patch (P,), by its number in `contact_state.NAMES`;
                those that :meth:`step` ends with by default.

        Raises:
            NoSolution: where :meth:`step` finds no branch, or contacts of these labels
                do not determine their forces.
            InvalidInput: for labels that do not fit.
        """
        prepared = partial(self._prepared, state, memory, goal)
        ready, dropped = prepared(), ()
        if labels is None:
            ready, found = self._searched(ready)
            labels, dropped = found.require().labels, found.dropped
        labels, engine, maps = np.asarray(labels), LabelledQp(ready.qpcc), ready.maps
        named, patches = skeleton_coordinates(self.stepper), self.feet.patch_names
        qp = engine.condensed(labels, cop=not dropped)
        program = engine.program(qp, labels, named["joint"], patches)

        def finish(solution: Solution) -> PlannedStep:
            point = engine.point(qp, solution.parts["torque"][0])
            how = {"dropped": dropped, "ok": solution.ok, "message": solution.message}
            made = QpccSolution.of(ready.qpcc, point, labels, **how)
            # The solver of the skin may have gone on to another step.
            return self._taken(prepared(), made)

        m = len(self.torque_limits)
        last = np.zeros(m) if memory.torques is None else memory.torques
        follows = {
            "contact_force": (patches, 0.0, np.eye(len(qp.W))[m:]),
            "patch_displacement": (patches, maps.y0, maps.Y),
            "dq": (named["velocity_name"], maps.dq0, maps.Q),
        }
        derived = {
            name: (of, partial(_follows, len(of), b + A @ qp.w0, A @ qp.W))
            for name, (of, b, A) in follows.items()
        }
        guess = program.pack({"torque": last})
        return PlanProgram(program, guess, {}, finish, OPTIONS, derived=derived)

    def _prepared(self, *step) -> PreparedStep:
        """As :meth:`prepare`, by the projected matrix where the exact one fails."""
        try:
            return self.prepare(*step)
        except NoSolution:
            return self.prepare(*step, project=True)

    def _next_memory(
        self, ready: PreparedStep, qpcc: QpccSolution, solution: StepSolution
    ) -> StepMemory:
        """Memory for the next step, with new anchors on the ground.

        Those of sticking patches stay, those of sliding patches are dragged along, and
        those of patches in the air stay below them.
        """
        # Where a patch sticks, y is 0 but for rounding errors.
        moved = np.where((qpcc.labels == STICK)[:, None], 0.0, qpcc.y)
        before, rise = ready.memory.anchors, RISE * self.stepper.dt
        depth = height_over(ready.ground, before)
        moved[:, 2] = np.minimum(depth + rise, 0.0) - depth
        axes = ground_axes(ready.ground)
        anchors = before + on_axes(axes.transpose(0, 2, 1), moved)
        return StepMemory(solution.dq, qpcc.torques, anchors, ready.deviation)


def _follows(
    count: int, b: np.ndarray, A: np.ndarray, given: Callable[[str], np.ndarray]
) -> np.ndarray:
    """What is affine in the torques (1, count), or (1, count, 3)."""
    values = (b + A @ given("torque")[0]).reshape(1, count, -1)
    return values if values.shape[2] > 1 else values[:, :, 0]
