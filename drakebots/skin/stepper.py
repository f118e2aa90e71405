"""A skinned skeleton in time: one coupled linear solve a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.errors import InvalidInput, NoSolution
from drakebots.fem.assembly import FemModel, elastic_energy, worst_tet
from drakebots.fem.dynamics import SkinState
from drakebots.skin.coupled import (
    CoupledFrame,
    FrameSolution,
    ReducedSystem,
    coupled_frame,
    skin_solver,
)
from drakebots.skin.glue import Glue
from drakebots.skin.skeleton import (
    Servo,
    check_skeleton,
    glue_points,
    moved_positions,
    skeleton_frame,
    torque_map,
)


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
    """

    state: CoupledState
    converged: bool
    message: str
    solution: FrameSolution | None
    worst_tet: int
    smallest_ratio: float


class CoupledStepper:
    """Steps skeleton and skin together.

    Args:
        plant: finalized, in SI, a tree.
        model: the skin.
        glue: between them.
        dt: [s].
        joints: that torques act on; see :func:`~drakebots.skin.skeleton.torque_map`.
        contacts: nodes contact forces may act on (p,).
        context: of the plant, for parameters and, in a diagram, its ports; a
            default one of the plant alone by default. Its q and v are overwritten.
        solver, threads: for :func:`~drakebots.fem.linear_solver.make_solver`.

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
        joints: Sequence[str] | None = None,
        contacts: np.ndarray = (),
        context: Context | None = None,
        solver: str = "auto",
        threads: int | None = None,
    ):
        if not (np.isfinite(dt) and dt > 0):
            raise InvalidInput(f"time step dt = {dt} s must be > 0; the paper's: 0.005")
        check_skeleton(plant, glue)
        torque_map(plant, joints)
        self.plant, self.model, self.glue, self.dt = plant, model, glue, float(dt)
        self.joints = joints
        self.context = plant.CreateDefaultContext() if context is None else context
        self._home = (
            plant.GetPositions(self.context).copy(),
            plant.GetVelocities(self.context).copy(),
        )
        self.gravity = plant.gravity_field().gravity_vector()
        self.solver = skin_solver(model, glue, contacts, name=solver, threads=threads)

    def start(
        self, q: np.ndarray | None = None, v: np.ndarray | None = None
    ) -> CoupledState:
        """Skeleton at q, v, skin at its rest shape.

        q and v are by default the context's when the stepper was made.

        The glue moves with the links; the rest of the skin stands where it was
        made, which suits a q near the rest pose.
        """
        self._set(self._home[0] if q is None else q, self._home[1] if v is None else v)
        x, J = glue_points(self.plant, self.context, self.glue)
        v = self.plant.GetVelocities(self.context)
        positions = self.model.rest.copy()
        velocities = np.zeros_like(positions)
        positions[self.glue.vertices] = x
        velocities[self.glue.vertices] = (J @ v).reshape(-1, 3)
        q = self.plant.GetPositions(self.context)
        return CoupledState(q, v, SkinState(0.0, positions, velocities))

    def _set(self, q, v):
        plant = self.plant
        for name, value, size, put in (
            ("q", q, plant.num_positions(), plant.SetPositions),
            ("v", v, plant.num_velocities(), plant.SetVelocities),
        ):
            value = np.asarray(value, float)
            if value.shape != (size,) or not np.isfinite(value).all():
                raise InvalidInput(
                    f"skeleton's {name}: needs {size} finite numbers, got "
                    f"{value.tolist()}"
                )
            put(self.context, value)

    def frame(
        self,
        state: CoupledState,
        *,
        servo: Servo | None = None,
        skin_forces: np.ndarray | None = None,
        project: bool = False,
    ) -> CoupledFrame:
        """Assembles the frame at a state; see :func:`coupled_frame`."""
        self._set(state.q, state.v)
        skeleton = skeleton_frame(
            self.plant,
            self.context,
            self.glue,
            self.dt,
            joints=self.joints,
            servo=servo,
        )
        return coupled_frame(
            skeleton,
            self.model,
            state.skin,
            self.glue,
            self.dt,
            gravity=self.gravity,
            forces=skin_forces,
            project=project,
        )

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
        for project in (False, True):
            # A compressed wall can make the exact tangent indefinite.
            frame = self.frame(
                state, servo=servo, skin_forces=skin_forces, project=project
            )
            try:
                system = ReducedSystem(frame, self.solver)
            except NoSolution as error:
                reason = str(error)
                continue
            found = system.solve(torques, contact_forces)
            if not (np.isfinite(found.dq).all() and np.isfinite(found.du).all()):
                reason, found = "the solution is not finite", None
                continue
            after = self.advance(state, found)
            tet, ratio = worst_tet(self.model, after.skin.positions)
            if ratio > 0 or np.isfinite(
                elastic_energy(self.model, after.skin.positions)
            ):
                note = "one linear solve" + ", tangent projected" * project
                return CoupledResult(after, True, note, found, tet, ratio)
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
        self._set(state.q, state.v)
        q = moved_positions(self.plant, self.context, solution.dq)
        v = solution.dq / self.dt
        self._set(q, v)
        x, _ = glue_points(self.plant, self.context, self.glue)
        positions = state.skin.positions + solution.du
        positions[self.glue.vertices] = x
        time = state.skin.time + self.dt
        return CoupledState(q, v, SkinState(time, positions, solution.du / self.dt))
