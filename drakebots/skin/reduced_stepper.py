"""A skeleton with a reduced skin in time; takes CoupledStepper's place.

stepper = reduced_stepper(robot, read_reduced("beetle.reduced.npz"), 5e-3)
state = stepper.start()
result = stepper.step(state, servo=robot.servo(targets))
shape = stepper.lift(result.state).skin.positions      # all nodes, to draw or store
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.errors import InvalidInput, NoSolution
from drakebots.fem.assembly import FemModel
from drakebots.fem.dynamics import SkinState
from drakebots.multibody.loops import find_body
from drakebots.skin.contact import FRICTION_ERROR, FRICTION_TRIES, PatchContact
from drakebots.skin.coupled import as_vector
from drakebots.skin.description import Patches
from drakebots.skin.glue import Glue
from drakebots.skin.laws import minimise
from drakebots.skin.reduced import ReducedSkin
from drakebots.skin.reduced_frame import ReducedForces, small_system
from drakebots.skin.reduced_shape import Links
from drakebots.skin.reduced_state import ReducedResult, ReducedState
from drakebots.skin.robot import SkinnedRobot
from drakebots.skin.servo import check_limits, servo_law
from drakebots.skin.skeleton import (
    Servo,
    moved_positions,
    skeleton_frame,
    torque_map,
)
from drakebots.skin.stepper import CoupledState


class ReducedStepper:
    """Steps a skeleton and a reduced skin together.

    Args:
        plant: finalized, in SI, a tree.
        model: of the full skin.
        skin: trained.
        dt: [s].
        context: of the plant, in the pose in which the skin lies at rest; its q and
            v are overwritten.
        joints, effort_limits, patches, patch_contact: as
            :class:`~drakebots.skin.stepper.CoupledStepper`. There are no collisions
            of the skin.

    Raises:
        InvalidInput, UnknownName: before any step, for what cannot be.
    """

    def __init__(
        self,
        plant: MultibodyPlant,
        model: FemModel,
        skin: ReducedSkin,
        dt: float,
        *,
        context: Context,
        joints: Sequence[str] | None = None,
        effort_limits: np.ndarray | None = None,
        patches: Sequence[Patches] = (),
        patch_contact: PatchContact | None = None,
    ):
        if not (np.isfinite(dt) and dt > 0):
            raise InvalidInput(f"time step dt = {dt} s must be > 0; the paper's: 0.005")
        self._at = torque_map(plant, joints)[1]
        if effort_limits is not None:
            effort_limits = check_limits(effort_limits, len(self._at))
        self.effort_limits = effort_limits
        self.patches, self.patch_contact = tuple(patches), patch_contact
        for patch in self.patches:
            find_body(plant, patch.body)
        self.plant, self.model, self.skin, self.dt = plant, model, skin, float(dt)
        self.joints, self.context = joints, context
        self.gravity = plant.gravity_field().gravity_vector()
        self.links = Links(plant, context, skin.links)
        self.forces = ReducedForces(model, skin, self.gravity)
        # The frame asks for a glue; any point will do.
        self._glue = Glue(np.zeros(1, int), skin.links[:1], np.zeros((1, 3)))
        self._home = (
            plant.GetPositions(context).copy(),
            plant.GetVelocities(context).copy(),
        )

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
        """Puts the plant's context at q, v; InvalidInput where they do not fit."""
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

    def start(
        self, q: np.ndarray | None = None, v: np.ndarray | None = None
    ) -> ReducedState:
        """Skeleton at q, v, by default where the context stood, and the skin.

        In the default q the skin has its rest shape; in others it hangs in
        equilibrium, the links held (:meth:`settled`). It moves with the links.

        Raises:
            InvalidInput: for q or v of another size.
            NoSolution: when the skin finds no equilibrium.
        """
        home, rest = self._home[0], q is None
        q = home if rest else np.asarray(q, float)
        v = self._home[1] if v is None else np.asarray(v, float)
        y = np.zeros(self.skin.size)
        if not (rest or np.array_equal(q, home)):
            y = self.settled(q)
        return self.state(0.0, q, v, y)

    def state(self, time, q, v, y, dy=None) -> ReducedState:
        """A state whose mass points move as v and dy say."""
        self.pose(q, v)
        motion = self.links.motion(self.context)
        dy = np.zeros(self.skin.size) if dy is None else dy
        still = self.forces.no_motion()
        _, _, J = self.forces.inertia(motion, y, still, self.dt)
        points = (J @ np.concatenate([v, dy])).reshape(-1, 3)
        return ReducedState(float(time), np.array(q), np.array(v), y, points, dy)

    def settled(self, q: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
        """y of the skin's equilibrium with the links held at q (r,).

        Raises:
            NoSolution: when Newton's method does not end.
        """
        self.pose(q, np.zeros(self.plant.num_velocities()))
        motion = self.links.motion(self.context)
        y = np.zeros(self.skin.size) if y is None else y.copy()
        nv, still = self.plant.num_velocities(), self.forces.no_motion()
        first = None
        for _ in range(60):
            g, K, _ = self.forces.elastic(motion, y, np.inf, True)
            _, weight, _ = self.forces.inertia(motion, y, still, np.inf)
            r = (weight - g)[nv:]
            error = np.abs(r).max(initial=0.0)
            first = error if first is None else first
            if error <= 1e-9 + 1e-7 * first:
                return y
            K = K[nv:, nv:]
            step = np.linalg.solve(K + 1e-9 * np.trace(K) * np.eye(len(K)), r)
            t = 1.0
            while t > 1e-4:
                try:
                    g = self.forces.elastic(motion, y + t * step, np.inf, False)[0]
                    if np.abs((weight - g)[nv:]).max() < (1 - 0.1 * t) * error:
                        break
                except NoSolution:
                    pass
                t *= 0.5
            y = y + t * step
        if error <= 1e-3 * max(first, 1e-6):
            return y
        raise NoSolution(f"reduced skin: no equilibrium (force left {error:.1e})")

    def system(self, state: ReducedState, servo=None, *, project: bool = False):
        """The frame's small system and the smallest det F.

        Raises:
            NoSolution: when it cannot be solved.
        """
        self.pose(state.q, state.v)
        skeleton = skeleton_frame(
            self.plant,
            self.context,
            self._glue,
            self.dt,
            joints=self.joints,
            servo=servo,
        )
        motion = self.links.motion(self.context)
        g, A, low = self.forces.elastic(motion, state.y, self.dt, project)
        mass, push, J = self.forces.inertia(motion, state.y, state.points, self.dt)
        nv = len(skeleton.b)
        A += mass
        A[:nv, :nv] += skeleton.A
        b = push - g
        b[:nv] += skeleton.b
        return small_system(A, b, skeleton.B), J, low

    def step(
        self,
        state: ReducedState,
        torques: np.ndarray | None = None,
        contact_forces: np.ndarray | None = None,
        *,
        servo: Servo | None = None,
    ) -> ReducedResult:
        """The next state; a failed result keeps the old one.

        Args:
            state: before.
            torques: (m,) [N m].
            contact_forces: of no size; the skin has no contacts here.
            servo: implicit, one a torque.

        Raises:
            InvalidInput: for shapes that do not fit or values not finite.
        """
        torques = as_vector("torques", torques, len(self._at))
        as_vector("contact forces", contact_forces, 0)
        limited, low = self.effort_limits is not None, np.nan
        for project in (False, True):
            try:
                system, J, low = self.system(
                    state, None if limited else servo, project=project
                )
                dq, applied, feet = self._solve(system, state, torques, servo)
            except NoSolution as error:
                reason = str(error)
                continue
            after = self._advance(state, system, J, dq, feet[:, 2])
            if np.isfinite(after.y).all() and np.isfinite(after.q).all():
                note = "one linear solve" + ", tangent projected" * project
                return ReducedResult(after, True, note, low, applied, feet)
            reason = "the solution is not finite"
        message = f"frame to {state.time + self.dt:g} s failed: {reason}; take a "
        return ReducedResult(state, False, message + "smaller dt", low)

    def _solve(self, system, state, torques, servo):
        q, laws, B = state.q[self._at], [], system.B
        if self.effort_limits is not None:
            none = np.zeros(len(q))
            held = Servo(none, none, q) if servo is None else servo
            laws = [servo_law(B, held, q, self.dt, self.effort_limits, torques)]
        r = system.right_side(None if laws else torques)
        feet = np.zeros((0, 3))
        if self.patch_contact is not None and self.patches:
            patch = self.patch_contact.law(
                self.plant, self.context, self.patches, self.dt
            )
            if len(state.normal) == len(patch.bound):
                patch = patch.rubbing(state.normal, self.dt)
            dq, feet = _rub(system, laws, patch, r, self.dt * state.v, self.dt)
        else:
            dq = minimise(system, laws, r, system.back(r))
        y = B.T @ dq
        if laws:
            torques = laws[0].force(y)
        elif servo is not None:
            free = np.full(len(q), np.inf)
            torques = servo_law(B, servo, q, self.dt, free, torques).force(y)
        return dq, torques, feet

    def _advance(self, state, system, J, dq, normal):
        q = moved_positions(self.plant, self.context, dq)
        dy = system.modes(dq)
        move = J @ np.concatenate([dq, dy])
        return ReducedState(
            state.time + self.dt,
            q,
            dq / self.dt,
            state.y + dy,
            move.reshape(-1, 3) / self.dt,
            dy / self.dt,
            normal,
        )

    def lift(self, state: ReducedState) -> CoupledState:
        """The state with all nodes of the skin."""
        self.pose(state.q, state.v)
        motion = self.links.motion(self.context)
        x = self.skin.positions(state.y, motion)
        ahead = moved_positions(self.plant, self.context, 1e-6 * state.v)
        self.pose(ahead, state.v)
        later = self.skin.positions(
            state.y + 1e-6 * state.dy, self.links.motion(self.context, jacobian=False)
        )
        return CoupledState(
            state.q, state.v, SkinState(state.time, x, (later - x) / 1e-6)
        )


def _rub(system, laws, patch, r, dq, dt):
    """As minimise_rubbing, from the last frame's dq and normal forces on."""
    for _ in range(FRICTION_TRIES):
        dq = minimise(system, [*laws, patch], r, dq)
        feet = patch.force(patch.rows @ dq).reshape(-1, 3)
        bound = patch.contact.friction * feet[:, 2]
        change = np.abs(bound - patch.bound).max(initial=0.0)
        if change <= FRICTION_ERROR * bound.max(initial=0.0):
            break
        patch = patch.rubbing(feet[:, 2], dt)
    return dq, feet


def reduced_stepper(
    robot: SkinnedRobot, skin: ReducedSkin, dt: float, **options
) -> ReducedStepper:
    """A stepper in a context of its own, in the rest pose, with the file's limits."""
    root = robot.diagram.CreateDefaultContext()
    context = robot.plant.GetMyMutableContextFromRoot(root)
    robot.plant.SetPositions(context, robot.rest_positions)
    options = {k: v for k, v in options.items() if v is not None}
    options.setdefault("effort_limits", robot.effort_limits)
    stepper = ReducedStepper(
        robot.plant, robot.fem, skin, dt, context=context, **options
    )
    stepper.root = root  # the context is part of it
    return stepper
