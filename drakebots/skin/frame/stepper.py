"""Simulates a skinned skeleton with one coupled linear solve per time step.

    robot = load_skinned("beetle")
    stepper = robot.stepper(5e-3)
    state = stepper.start()
    result = stepper.step(state, servo=robot.servo(targets))

The equations of a step are those of :mod:`drakebots.skin.frame.coupled`. Servos with
limits and contact points on links (:mod:`drakebots.skin.frame.laws`) and contacts of
the skin (:mod:`drakebots.skin.frame.collisions`) are implicit in it, which takes
further solves of a small system.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.fem import SkinState
from drakebots.fem.assembly import FemModel, elastic_energy, worst_tet
from drakebots.skin.frame.collisions import Collisions
from drakebots.skin.frame.coupled import CoupledFrame, FrameSolution, coupled_frame
from drakebots.skin.frame.driven import DrivenSkeleton
from drakebots.skin.frame.frame_solver import FrameSolver
from drakebots.skin.frame.glue import Glue
from drakebots.skin.frame.skeleton import (
    Servo,
    check_skeleton,
    glue_points,
    moved_positions,
    skeleton_frame,
)
from drakebots.skin.frame.start import warm_start


@dataclass(frozen=True)
class CoupledState:
    """State of skeleton and skin.

    Attributes:
        q: positions of the plant (nq,).
        v: velocities of the plant (nv,).
        skin: state of the skin, with the time [s].
    """

    q: np.ndarray
    v: np.ndarray
    skin: SkinState


@dataclass(frozen=True)
class CoupledResult:
    """Result of one time step.

    Attributes:
        state: state after the step, or before it when the step failed.
        converged: whether the step succeeded.
        message: one line.
        solution: solution of the coupled equations, or None.
        worst_tet: tet with the smallest det F.
        smallest_ratio: det F of that tet.
        torques: applied torques (m,) [N m], those of servos included, within limits.
        patch_forces: forces of the ground on the contact points (k, 3) [N].
    """

    state: CoupledState
    converged: bool
    message: str
    solution: FrameSolution | None
    worst_tet: int
    smallest_ratio: float
    torques: np.ndarray | None = None
    patch_forces: np.ndarray | None = None


class CoupledStepper(DrivenSkeleton):
    """Steps skeleton and skin together.

    Args:
        plant: finalized tree in SI.
        model: the skin.
        glue: vertices of the skin fixed to links.
        dt: time step [s].
        contacts: nodes that contact forces may act on (p,).
        context: context of the plant; a new one of the plant alone by default.
        joints, effort_limits, patches, patch_contact: as for
            :class:`~drakebots.skin.frame.driven.DrivenSkeleton`.
        collisions: contacts of the skin.
        solver, threads: as for :func:`~drakebots.fem.solver.sparse.make_solver`.
        precision: precision of the skin's factors: "double", "single" or "auto", the
            faster; see :class:`~drakebots.skin.frame.frame_solver.FrameSolver`.

    Attributes:
        solver: solver in double precision, for other uses of the equations; a step in
            single precision does not touch it.

    Raises:
        InvalidInput, UnknownName: before any step, for a value out of range or an
            unknown name.
    """

    def __init__(
        self,
        plant: MultibodyPlant,
        model: FemModel,
        glue: Glue,
        dt: float,
        *,
        contacts: np.ndarray = (),
        context: Context | None = None,
        collisions: Collisions | None = None,
        solver: str = "auto",
        threads: int | None = None,
        precision: str = "auto",
        **driven,
    ):
        check_skeleton(plant, glue)
        context = plant.CreateDefaultContext() if context is None else context
        super().__init__(plant, dt, context, **driven)
        self.collisions = Collisions() if collisions is None else collisions
        self.model, self.glue = model, glue
        self._frames = FrameSolver(
            model, glue, contacts, precision, name=solver, threads=threads
        )
        self.solver = self._frames.exact

    def start(
        self, q: np.ndarray | None = None, v: np.ndarray | None = None
    ) -> CoupledState:
        """The state with the skeleton at q and v.

        By default these are the q and v that the context had when the stepper was made;
        there the skin is at rest. Near that q the skin has its rest shape, moved with
        the links. Elsewhere it is in static equilibrium with its glue on the links
        (:func:`~drakebots.skin.frame.start.warm_start`). Its velocity is 0 except at
        the glue.

        Raises:
            InvalidInput: for q or v of another size.
            NoSolution: when the skin finds no equilibrium.
        """
        home = self.home[0]
        self.pose(home if q is None else q, self.home[1] if v is None else v)
        q = self.plant.GetPositions(self.context).copy()
        v = self.plant.GetVelocities(self.context).copy()
        positions = warm_start(
            self.plant,
            self.context,
            self.model,
            self.glue,
            home,
            q,
            gravity=self.gravity,
            solver=self.solver.name,
        )
        self.pose(q, v)
        _, J = glue_points(self.plant, self.context, self.glue)
        velocities = np.zeros_like(positions)
        velocities[self.glue.vertices] = (J @ v).reshape(-1, 3)
        return CoupledState(q, v, SkinState(0.0, positions, velocities))

    def glue_gap(self, state: CoupledState) -> float:
        """Largest distance of the glue from its points on the links [m]."""
        self.pose(state.q, state.v)
        x, _ = glue_points(self.plant, self.context, self.glue)
        away = np.linalg.norm(x - state.skin.positions[self.glue.vertices], axis=1)
        return float(away.max())

    def frame(
        self,
        state: CoupledState,
        *,
        servo: Servo | None = None,
        skin_forces: np.ndarray | None = None,
        project: bool = False,
    ) -> CoupledFrame:
        """Assembles the equations of a step, with the skin's contact with the ground.

        Servos have no limits here, and the contact points of links are not included:
        :meth:`step` adds both. See
        :func:`~drakebots.skin.frame.coupled.coupled_frame`.

        Raises:
            InvalidInput: where the skin touches links or itself, which :meth:`step`
                solves for and these equations would leave out.
        """
        if self.collisions.paired:
            raise InvalidInput(
                "coupled frame: contact of the skin with links and itself is solved "
                "in step() only; make a stepper without it"
            )
        self.pose(state.q, state.v)
        return self._frame(state, servo, skin_forces, project, None)

    def _frame(self, state, servo, skin_forces, project, pairs):
        """The equations of a step at the context's pose, with the pairs' friction."""
        skeleton = skeleton_frame(
            self.plant,
            self.context,
            self.glue,
            self.dt,
            joints=self.joints,
            servo=servo,
        )
        if pairs is not None:
            on_skin, on_links = pairs.friction()
            skin_forces = on_skin if skin_forces is None else on_skin + skin_forces
            skeleton = replace(skeleton, b=skeleton.b + on_links)
        frame = coupled_frame(
            skeleton,
            self.model,
            state.skin,
            self.glue,
            self.dt,
            gravity=self.gravity,
            forces=skin_forces,
            project=project,
        )
        if self.collisions.ground is not None:
            frame = self.collisions.ground.add_to(frame, state.skin, self.dt)
        return frame

    def step(
        self,
        state: CoupledState,
        torques: np.ndarray | None = None,
        contact_forces: np.ndarray | None = None,
        *,
        servo: Servo | None = None,
        skin_forces: np.ndarray | None = None,
    ) -> CoupledResult:
        """The next state.

        Args:
            state: state before the step.
            torques: joint torques (m,) [N m, N].
            contact_forces: forces at `contacts` (p, 3) [N].
            servo: implicit servos, one per torque.
            skin_forces: other forces on the nodes (N, 3) [N].

        Returns:
            The result; a failed one has the old state.

        Raises:
            InvalidInput: for shapes that do not fit or values not finite.
        """
        found = None
        torques = self.given_torques(torques)
        self.pose(state.q, state.v)
        pairs = self.collisions.pairs(self.plant, self.context, state.skin, self.dt)
        for project in (False, True):
            # A compressed wall can make the exact tangent indefinite.
            self.pose(state.q, state.v)
            frame = self._frame(
                state, self.in_matrix(servo), skin_forces, project, pairs
            )
            try:
                drive = self.drive(state.q, frame.skeleton.B, torques, servo)
                solved = self._frames.solve(frame, drive, contact_forces, pairs)
                found = solved.solution
            except NoSolution as error:
                reason = str(error)
                continue
            if not (np.isfinite(found.dq).all() and np.isfinite(found.du).all()):
                reason, found = "the solution is not finite", None
                continue
            after = self.advance(state, found)
            tet, ratio = worst_tet(self.model, after.skin.positions)
            if ratio > 0 or np.isfinite(
                elastic_energy(self.model, after.skin.positions)
            ):
                note = solved.note + ", tangent projected" * project
                applied = drive.applied(frame.skeleton.B, found.dq)
                return CoupledResult(
                    after, True, note, found, tet, ratio, applied, solved.feet
                )
            reason = f"tet {tet} inverted (det F {ratio:.3g})"
        if found is None:
            tet, ratio = worst_tet(self.model, state.skin.positions)
        message = (
            f"step to {state.skin.time + self.dt:g} s failed: {reason}; use a smaller "
            "dt or the material 'stable-neo-hookean'"
        )
        return CoupledResult(state, False, message, found, tet, ratio)

    def advance(self, state: CoupledState, solution: FrameSolution) -> CoupledState:
        """The state after a solution, with the glue on the links.

        Velocities are dq/dt and du/dt, so momentum is conserved; only the positions of
        the glue are set to x_c(q+), which differs from x + du to second order in dt.
        """
        self.pose(state.q, state.v)
        q = moved_positions(self.plant, self.context, solution.dq)
        v = solution.dq / self.dt
        self.pose(q, v)
        x, _ = glue_points(self.plant, self.context, self.glue)
        positions = state.skin.positions + solution.du
        positions[self.glue.vertices] = x
        time = state.skin.time + self.dt
        return CoupledState(q, v, SkinState(time, positions, solution.du / self.dt))
