"""A skeleton with servos and contact points: what steppers of skinned robots share.

:class:`DrivenSkeleton` holds the plant in a context, the actuated joints, their limits
and the contact points of the links. :class:`Drive` has the torques and contacts of one
time step, and solves the small system of a full or reduced skin with them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.core.checks import check_value, positive
from drakebots.model import find_body
from drakebots.multibody import joint_limits, limit_rows
from drakebots.skin.coupled.equations import StepSolution, as_vector
from drakebots.skin.coupled.laws import (
    ClippedLaw,
    Law,
    PatchContact,
    Patches,
    PatchLaw,
    SmallSystem,
    find_friction,
    minimise,
    patch_points,
    servo_law,
)
from drakebots.skin.coupled.skeleton import (
    Servo,
    actuated_joints,
    one_per_torque,
    torque_map,
)

STOP = 1e3
"""Stiffness of a joint's stop, in that of its inertia over the square of a step."""


@dataclass(frozen=True)
class Drive:
    """Torques on the joints and contact of the links in one time step.

    Attributes:
        servo: law of servos and given torques together, without limits where the
            matrix of the step includes the servos; None without either.
        implicit: whether `servo` is still to be solved for.
        torques: given torques (m,) [N m].
        patch: law of the contact points, or None.
        dt: time step [s].
        stops: law of the joint limits in reach, or None.
    """

    servo: ClippedLaw | None
    implicit: bool
    torques: np.ndarray
    patch: PatchLaw | None
    dt: float
    stops: ClippedLaw | None = None

    @property
    def laws(self) -> list[Law]:
        """Laws to solve for, contact points excepted."""
        found = [self.servo] if self.implicit else []
        return found if self.stops is None else [*found, self.stops]

    def right_side(self, system: SmallSystem, forces=None) -> np.ndarray:
        """r (nv + 3 p,) of a step, with the torques that are in no law."""
        return system.right_side(None if self.implicit else self.torques, forces)

    def solve(
        self,
        system: SmallSystem,
        r: np.ndarray,
        z: np.ndarray | None = None,
        ground: PatchLaw | None = None,
        touch: Law | None = None,
    ) -> tuple[np.ndarray, PatchLaw | None]:
        """Solves the small system: z, and the contact points with their friction.

        Args:
            system: small system of the step.
            r: its right-hand side.
            z: initial guess; R^-1 r by default.
            ground: contact points with known friction; by default it is solved for.
            touch: contact of the skin with links and itself.

        Raises:
            NoSolution: as :func:`~drakebots.skin.coupled.laws.minimise`.
        """
        laws = self.laws if touch is None else [*self.laws, touch]
        if self.patch is not None and ground is None:
            return find_friction(system, laws, self.patch, r, z)
        laws = laws if ground is None else [*laws, ground]
        # Without laws the initial guess must be the solution.
        z = z if laws and z is not None else system.back(r)
        return minimise(system, laws, r, z), ground

    def applied(self, B: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """Applied torques (m,) [N m], those of servos included, within the limits."""
        return self.torques if self.servo is None else self.servo.force(B.T @ dq)


def feet(ground: PatchLaw | None, dq: np.ndarray) -> np.ndarray:
    """Forces of the ground on the links at the contact points (k, 3) [N], world."""
    return np.zeros((0, 3)) if ground is None else ground.on_links(dq)


@dataclass(frozen=True)
class SceneForces:
    """Forces between a skin, links, other bodies and the ground in one step, n of them.

    Attributes:
        A: what each acts on: "skin", or the name of a body, with its model where others
            have the same.
        B: names of the bodies that the opposite forces act on.
        p_WC: points at which they act (n, 3) [m].
        f_AC_W: forces on A, mean of the step (n, 3) [N].
        nodes: vertices of the skin (n,), or -1 for points of bodies.
    """

    A: tuple[str, ...] = ()
    B: tuple[str, ...] = ()
    p_WC: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    f_AC_W: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    nodes: np.ndarray = field(default_factory=lambda: np.zeros(0, int))

    def __add__(self, other: SceneForces) -> SceneForces:
        """These forces and others."""
        parts = zip(vars(self).values(), vars(other).values())
        both = (a + b if type(a) is tuple else np.append(a, b, 0) for a, b in parts)
        return SceneForces(*both)

    def on(self, name: str, nodes: np.ndarray | None = None) -> np.ndarray:
        """The sum of the forces on a body, or on the "skin" (3,) [N].

        Args:
            name: of the body.
            nodes: vertices of the skin to be counted, of a region of its mesh, say.
        """
        A, B = (np.array(each, str) == name for each in (self.A, self.B))
        if nodes is not None:
            A &= np.isin(self.nodes, nodes)
        return self.f_AC_W[A].sum(axis=0) - self.f_AC_W[B].sum(axis=0)


@dataclass(frozen=True)
class CoupledResult:
    """Result of one time step of a skeleton with its skin.

    Attributes:
        state: state after the step, or before it when the step failed.
        converged: whether the step succeeded.
        message: one line.
        smallest_ratio: smallest det F of the skin: of its tets after the step, or of a
            reduced skin's cubature before it.
        torques: applied torques (m,) [N m], those of servos included, within limits.
        patch_forces: forces of the ground on the contact points (k, 3) [N].
        solution: solution of the coupled equations of a full skin, or None.
        forces: all contact forces but those of the skin with links and itself.
    """

    state: Any
    converged: bool
    message: str
    smallest_ratio: float
    torques: np.ndarray | None = None
    patch_forces: np.ndarray | None = None
    solution: StepSolution | None = None
    forces: SceneForces = SceneForces()


class DrivenSkeleton(ABC):
    """A skeleton with torques on its joints and contact points on its links.

    Args:
        plant: finalized tree in SI.
        dt: time step [s].
        context: context of the plant, which gives parameters and, in a diagram, ports.
            Its q and v are overwritten; the present ones are kept as `home`.
        effort_limits: largest torques (m,) [N m] of servos and given ones together;
            none by default.
        patches: contact points of links.
        patch_contact: ground under them.

    Attributes:
        actuated: the position each torque acts on (m,).
        joint_names: names of the actuated joints, in the order of the torques.

    Raises:
        InvalidInput, UnknownName: for a value out of range or an unknown name.
    """

    def __init__(
        self,
        plant: MultibodyPlant,
        dt: float,
        context: Context,
        *,
        effort_limits: np.ndarray | None = None,
        patches: Sequence[Patches] = (),
        patch_contact: PatchContact | None = None,
    ):
        check_value("time step dt", dt, positive("s"))
        self.actuated = torque_map(plant)[1]
        self.joint_names = actuated_joints(plant)
        if effort_limits is not None:
            m = len(self.actuated)
            effort_limits = one_per_torque("effort limits", effort_limits, m)
        self.effort_limits = effort_limits
        self.patches, self.patch_contact = tuple(patches), patch_contact
        for patch in self.patches:
            find_body(plant, patch.body)
        # pydrake keeps the root of a diagram alive as long as its plant's context.
        self.plant, self.context, self.dt = plant, context, float(dt)
        self.gravity = plant.gravity_field().gravity_vector()
        q, v = plant.GetPositions(context), plant.GetVelocities(context)
        self.home, self._limits = (q.copy(), v.copy()), joint_limits(plant)

    def step(
        self,
        state: Any,
        torques: np.ndarray | None = None,
        contact_forces: np.ndarray | None = None,
        *,
        servo: Servo | None = None,
        skin_forces: np.ndarray | None = None,
        generalized_forces: np.ndarray | None = None,
        pressures: np.ndarray | None = None,
    ) -> CoupledResult:
        """The next state.

        Args:
            state: state before the step.
            torques: joint torques (m,) [N m, N].
            contact_forces: forces at the skin's contacts (p, 3) [N]; a reduced skin has
                none.
            servo: implicit servos, one per torque.
            skin_forces: other forces on all nodes of the full skin (N, 3) [N].
            generalized_forces: other forces on the plant's velocities (nv,) [N, N m].
            pressures: those of the full skin's cavities, over the air around (c,) [Pa].

        Returns:
            The result; a failed one has the old state.

        Raises:
            InvalidInput: for shapes that do not fit or values not finite.
        """
        torques = as_vector("torques", torques, len(self.actuated))
        nv = self.plant.num_velocities()
        on = as_vector("generalized forces", generalized_forces, nv)
        loads = torques, contact_forces, servo, skin_forces, on
        for project in (False, True):
            # A compressed wall can make the exact tangent indefinite.
            self.pose(state.q, state.v)
            result = self._tried(state, *loads, project, pressures)
            if result.converged:
                note = result.message + ", tangent projected" * project
                forces = result.forces + self._under_feet(state, result.patch_forces)
                return replace(result, message=note, forces=forces)
        failed = f"step to {state.time + self.dt:g} s failed: {result.message}"
        return replace(result, message=f"{failed}; use a {self.remedy}")

    def _under_feet(self, state: Any, f_W: np.ndarray | None) -> SceneForces:
        """Forces of the ground on the contact points (k, 3) [N] in a step."""
        if f_W is None or not len(f_W):
            return SceneForces()
        self.pose(state.q, state.v)
        p_WC, _ = patch_points(self.plant, self.context, self.patches)
        on = tuple(patch.body for patch in self.patches for _ in patch.p_BC)
        return SceneForces(on, ("ground",) * len(on), p_WC, f_W, np.full(len(on), -1))

    remedy: ClassVar[str] = "smaller dt"
    """What to use where a step fails."""

    @abstractmethod
    def _tried(
        self, state, torques, contacts, servo, skin_forces, on, project, pressures
    ) -> CoupledResult:
        """The result of a step, with the skin's tangents projected or exact."""

    def pose(self, q: np.ndarray, v: np.ndarray) -> None:
        """Sets q, v in the plant's context; InvalidInput where they do not fit."""
        plant, context = self.plant, self.context
        q = as_vector("skeleton's q", np.asarray(q, float), plant.num_positions())
        v = as_vector("skeleton's v", np.asarray(v, float), plant.num_velocities())
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)

    def in_matrix(self, servo: Servo | None) -> Servo | None:
        """The servos that the matrix of the step includes: those without limits."""
        return servo if self.effort_limits is None else None

    def drive(
        self, q: np.ndarray, B: np.ndarray, torques: np.ndarray, servo: Servo | None
    ) -> Drive:
        """Torques and contact of a step from the context's pose.

        Args:
            q: positions of the plant (nq,).
            B: map of torques to generalized forces (nv, m).
            torques: given torques (m,) [N m].
            servo: implicit servos, one per torque.
        """
        stops = self._stops(q)
        q, limit, law = q[self.actuated], self.effort_limits, None
        limited = limit is not None
        if limited or servo is not None:
            none = np.zeros(len(q))
            servo = Servo(none, none, q) if servo is None else servo
            limit = limit if limited else np.full(len(q), np.inf)
            law = servo_law(B, servo, q, self.dt, limit, torques)
        contact, patch = self.patch_contact, None
        if contact is not None and self.patches:
            patch = contact.law(self.plant, self.context, self.patches, self.dt)
        return Drive(law, limited, torques, patch, self.dt, stops)

    def _stops(self, q: np.ndarray) -> ClippedLaw | None:
        """Stops of the joints, inelastic springs that push only."""
        plant, context = self.plant, self.context
        motion = self.dt * plant.GetVelocities(context)
        gap, L = limit_rows(plant, context, self._limits, q, motion)
        if not len(gap):
            return None
        inverse = np.linalg.solve(plant.CalcMassMatrix(context), L.T)
        k = STOP / (self.dt**2 * np.einsum("ki,ik->k", L, inverse))
        # Who begins beyond a limit is not thrown back within a step.
        push = -k * np.where(gap < 0, 0.2 * gap, gap)
        return ClippedLaw(L, push, k, 0.0 * k, np.inf * k)
