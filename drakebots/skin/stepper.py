"""A skinned skeleton in time: one coupled linear solve a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.errors import InvalidInput, NoSolution
from drakebots.fem.assembly import FemModel, elastic_energy, worst_tet
from drakebots.fem.dynamics import SkinState
from drakebots.multibody.loops import find_body
from drakebots.skin.collisions import Collisions
from drakebots.skin.contact import PatchContact, minimise_rubbing
from drakebots.skin.coupled import (
    CoupledFrame,
    FrameSolution,
    ReducedSystem,
    as_vector,
    coupled_frame,
    skin_solver,
)
from drakebots.skin.description import Patches
from drakebots.skin.glue import Glue
from drakebots.skin.laws import minimise, whole_frame
from drakebots.skin.servo import check_limits, servo_law
from drakebots.skin.skeleton import (
    Servo,
    check_skeleton,
    glue_points,
    moved_positions,
    skeleton_frame,
    torque_map,
)
from drakebots.skin.start import warm_start


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
        effort_limits: largest torques (m,) [N m], of servos and given together;
            none by default.
        patches, patch_contact: contact points of links, and the ground under them.
        collisions: of the skin.
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
        effort_limits: np.ndarray | None = None,
        patches: Sequence[Patches] = (),
        patch_contact: PatchContact | None = None,
        collisions: Collisions | None = None,
        solver: str = "auto",
        threads: int | None = None,
    ):
        if not (np.isfinite(dt) and dt > 0):
            raise InvalidInput(f"time step dt = {dt} s must be > 0; the paper's: 0.005")
        check_skeleton(plant, glue)
        self._at = torque_map(plant, joints)[1]
        if effort_limits is not None:
            effort_limits = check_limits(effort_limits, len(self._at))
        self.effort_limits = effort_limits
        self.patches, self.patch_contact = tuple(patches), patch_contact
        for patch in self.patches:
            find_body(plant, patch.body)
        self.collisions = Collisions() if collisions is None else collisions
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
        """Skeleton at q, v, the skin where that leaves it.

        q and v are by default the context's when the stepper was made, where the
        skin lies at rest. Near that the skin keeps its rest shape, placed with the
        links; far from it, it hangs in equilibrium with its glue held
        (:func:`~drakebots.skin.start.warm_start`). Its velocity is 0 but at the
        glue.

        Raises:
            InvalidInput: for q or v of another size.
            NoSolution: when the skin finds no equilibrium.
        """
        home = self._home[0]
        self._set(home if q is None else q, self._home[1] if v is None else v)
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
        self._set(q, v)
        _, J = glue_points(self.plant, self.context, self.glue)
        velocities = np.zeros_like(positions)
        velocities[self.glue.vertices] = (J @ v).reshape(-1, 3)
        return CoupledState(q, v, SkinState(0.0, positions, velocities))

    @property
    def actuated(self) -> np.ndarray:
        """The position each torque acts on (m,)."""
        return self._at

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Joints that torques act on, in their order."""
        plant, start = self.plant, {}
        for index in plant.GetJointIndices():
            joint = plant.get_joint(index)
            if joint.num_positions():
                start[joint.position_start()] = joint.name()
        return tuple(start[k] for k in self._at.tolist())

    def pose(self, q: np.ndarray, v: np.ndarray) -> None:
        """Puts the plant's context at q, v."""
        self._set(q, v)

    def glue_gap(self, state: CoupledState) -> float:
        """Largest distance of the glue from its place on the links [m]."""
        self._set(state.q, state.v)
        x, _ = glue_points(self.plant, self.context, self.glue)
        away = np.linalg.norm(x - state.skin.positions[self.glue.vertices], axis=1)
        return float(away.max())

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
        """Assembles the frame at a state, with the skin's collisions.

        The servo's torque is without limit here, and there is no contact of patches:
        :meth:`step` adds both. See :func:`coupled_frame`.
        """
        self._set(state.q, state.v)
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
        found, applied, feet = None, None, None
        torques = as_vector("torques", torques, len(self._at))
        limited = self.effort_limits is not None
        for project in (False, True):
            # A compressed wall can make the exact tangent indefinite.
            frame = self.frame(
                state,
                servo=None if limited else servo,
                skin_forces=skin_forces,
                project=project,
            )
            try:
                system = ReducedSystem(frame, self.solver)
                found, applied, feet = self._solve(
                    system, state, torques, contact_forces, servo
                )
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
                note = "one linear solve" + ", tangent projected" * project
                return CoupledResult(
                    after, True, note, found, tet, ratio, applied, feet
                )
            reason = f"tet {tet} turned over (det F {ratio:.3g})"
        if found is None:
            tet, ratio = worst_tet(self.model, state.skin.positions)
        message = (
            f"frame to {state.skin.time + self.dt:g} s failed: {reason}; take a "
            "smaller dt or the material 'stable-neo-hookean'"
        )
        return CoupledResult(state, False, message, found, tet, ratio)

    def _solve(self, system, state, torques, contact_forces, servo):
        """The frame's solution, the torques applied and the patches' forces."""
        q, nv, laws = state.q[self._at], system.nv, []
        B = system.frame.skeleton.B
        if self.effort_limits is not None:
            none = np.zeros(len(self._at))
            laws = [
                servo_law(
                    B,
                    Servo(none, none, q) if servo is None else servo,
                    q,
                    self.dt,
                    self.effort_limits,
                    torques,
                )
            ]
        r = system.right_side(None if laws else torques, contact_forces)
        feet = np.zeros((0, 3))
        if self.patch_contact is not None and self.patches:
            self._set(state.q, state.v)
            patch = self.patch_contact.law(
                self.plant, self.context, self.patches, self.dt
            )
            z, feet = minimise_rubbing(system, laws, patch, r, self.dt)
        else:
            z = minimise(system, laws, r, system.back(r))
        y = B.T @ z[:nv]
        if laws:
            torques = laws[0].force(y)
        elif servo is not None:
            free = np.full(len(q), np.inf)
            torques = servo_law(B, servo, q, self.dt, free, torques).force(y)
        return whole_frame(system, z), torques, feet

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
