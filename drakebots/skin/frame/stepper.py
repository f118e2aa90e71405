"""A skinned skeleton in time: one coupled linear solve a frame."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.core.errors import NoSolution
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

# States and frames of a skinned skeleton.


@dataclass(frozen=True)
class CoupledState:
    """Skeleton and skin.

    Attributes:
        q: positions of the plant (nq,).
        v: velocities (nv,).
        skin: with the time [s].
    """

    q: np.ndarray
    v: np.ndarray
    skin: SkinState


@dataclass(frozen=True)
class CoupledResult:
    """One frame.

    Attributes:
        state: after it; before it when it failed.
        converged: whether it can be used.
        message: one line.
        solution: None when there is none.
        worst_tet, smallest_ratio: the tet with the smallest det F.
        torques: applied, of servos and given, within the limits (m,) [N m].
        patch_forces: of the ground on the contact points (k, 3) [N].
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
        plant: finalized, in SI, a tree.
        model: the skin.
        glue: between them.
        dt: [s].
        contacts: nodes contact forces may act on (p,).
        context: of the plant; a default one of the plant alone by default.
        joints, effort_limits, patches, patch_contact: as
            :class:`~drakebots.skin.frame.driven.DrivenSkeleton`.
        collisions: of the skin.
        solver, threads: for :func:`~drakebots.fem.solver.sparse.make_solver`.
        precision: of the skin's factors in a step, "double", "single" or "auto", the
            faster; see :class:`~drakebots.skin.frame.frame_solver.FrameSolver`.

    Attributes:
        solver: in double precision, for other users of the frames; a step in single
            precision leaves it alone.

    Raises:
        InvalidInput, UnknownName: before any step, for what cannot be.
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
        """Skeleton at q, v, the skin where that leaves it.

        q and v are by default the context's when the stepper was made, where the
        skin lies at rest. Near that the skin keeps its rest shape, placed with the
        links; far from it, it hangs in equilibrium with its glue held
        (:func:`~drakebots.skin.frame.start.warm_start`). Its velocity is 0 but at the
        glue.

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
        """Largest distance of the glue from its place on the links [m]."""
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
        """Assembles the frame at a state, with the skin's collisions.

        The servo's torque is without limit here, and there is no contact of patches:
        :meth:`step` adds both. See :func:`coupled_frame`.
        """
        self.pose(state.q, state.v)
        skeleton = skeleton_frame(
            self.plant,
            self.context,
            self.glue,
            self.dt,
            joints=self.joints,
            servo=servo,
        )
        if self.collisions.explicit:
            on_skin, on_links = self.collisions.forces(
                self.plant, self.context, state.skin
            )
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
            state: before.
            torques: (m,) [N m, N].
            contact_forces: at `contacts` (p, 3) [N].
            servo: implicit, one a torque.
            skin_forces: others on the nodes (N, 3) [N].

        Returns:
            A failed result keeps the old state.

        Raises:
            InvalidInput: for shapes that do not fit or values not finite.
        """
        found = None
        torques = self.given_torques(torques)
        for project in (False, True):
            # A compressed wall can make the exact tangent indefinite.
            frame = self.frame(
                state,
                servo=self.in_matrix(servo),
                skin_forces=skin_forces,
                project=project,
            )
            try:
                drive = self.drive(state.q, frame.skeleton.B, torques, servo)
                solved = self._frames.solve(frame, drive, contact_forces)
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
            reason = f"tet {tet} turned over (det F {ratio:.3g})"
        if found is None:
            tet, ratio = worst_tet(self.model, state.skin.positions)
        message = (
            f"frame to {state.skin.time + self.dt:g} s failed: {reason}; take a "
            "smaller dt or the material 'stable-neo-hookean'"
        )
        return CoupledResult(state, False, message, found, tet, ratio)

    def advance(self, state: CoupledState, solution: FrameSolution) -> CoupledState:
        """The state a solution leads to; the glue lies on the links again.

        Velocities are dq/dt and du/dt, so momentum is kept; only the positions of
        the glue are set to x_c(q+), of second order in dt from x + du.
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
