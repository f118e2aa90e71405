"""A skeleton with a reduced skin in time; takes CoupledStepper's place.

stepper = reduced_stepper(robot, read_reduced("beetle.reduced.npz"), 5e-3)
state = stepper.start()
result = stepper.step(state, servo=robot.servo(targets))
shape = stepper.lift(result.state).skin.positions      # all nodes, to draw or store
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.core.errors import NoSolution
from drakebots.fem import SkinState
from drakebots.fem.assembly import FemModel
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.frame import (
    CoupledState,
    DrivenSkeleton,
    Glue,
    Servo,
    as_vector,
    feet,
    moved_positions,
    skeleton_frame,
)
from drakebots.skin.reduced.basis import Links
from drakebots.skin.reduced.frame import ReducedForces, small_system
from drakebots.skin.reduced.skin import ReducedSkin

# State and result of a frame with a reduced skin.


@dataclass(frozen=True)
class ReducedState:
    """Skeleton and reduced skin.

    Attributes:
        time: [s].
        q: positions of the plant (nq,).
        v: velocities (nv,).
        y: of the modes (r,) [sqrt(J)].
        points: velocities of the skin's mass points (p, 3) [m/s].
        dy: rates of y (r,) [sqrt(J)/s].
        normal: forces of the contact points at the frame's end, from which the next
            frame's friction starts (k,) [N].
    """

    time: float
    q: np.ndarray
    v: np.ndarray
    y: np.ndarray
    points: np.ndarray
    dy: np.ndarray
    normal: np.ndarray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class ReducedResult:
    """One frame; as :class:`~drakebots.skin.frame.stepper.CoupledResult`.

    Attributes:
        state: after it; before it when it failed.
        converged: whether it can be used.
        message: one line.
        smallest_ratio: smallest det F of the cubature's points, before the frame.
        torques: applied, of servos and given (m,) [N m].
        patch_forces: of the ground on the contact points (k, 3) [N].
    """

    state: ReducedState
    converged: bool
    message: str
    smallest_ratio: float
    torques: np.ndarray | None = None
    patch_forces: np.ndarray | None = None


class ReducedStepper(DrivenSkeleton):
    """Steps a skeleton and a reduced skin together.

    Args:
        plant: finalized, in SI, a tree.
        model: of the full skin.
        skin: trained.
        dt: [s].
        context: of the plant, in the pose in which the skin lies at rest.
        joints, effort_limits, patches, patch_contact: as
            :class:`~drakebots.skin.frame.driven.DrivenSkeleton`. There are no
            collisions of the skin.

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
        **driven,
    ):
        super().__init__(plant, dt, context, **driven)
        self.model, self.skin = model, skin
        self.links = Links(plant, context, skin.links)
        self.forces = ReducedForces(model, skin, self.gravity)
        # The frame asks for a glue; any point will do.
        self._glue = Glue(np.zeros(1, int), skin.links[:1], np.zeros((1, 3)))

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
        home, rest = self.home[0], q is None
        q = home if rest else np.asarray(q, float)
        v = self.home[1] if v is None else np.asarray(v, float)
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
        torques = self.given_torques(torques)
        as_vector("contact forces", contact_forces, 0)
        low = np.nan
        for project in (False, True):
            try:
                system, J, low = self.system(
                    state, self.in_matrix(servo), project=project
                )
                drive = self.drive(state.q, system.B, torques, servo)
                dq, ground = _solve(system, drive, state)
            except NoSolution as error:
                reason = str(error)
                continue
            applied, forces = drive.applied(system.B, dq), feet(ground, dq)
            after = self._advance(state, system, J, dq, forces[:, 2])
            if np.isfinite(after.y).all() and np.isfinite(after.q).all():
                note = "one linear solve" + ", tangent projected" * project
                return ReducedResult(after, True, note, low, applied, forces)
            reason = "the solution is not finite"
        message = f"frame to {state.time + self.dt:g} s failed: {reason}; take a "
        return ReducedResult(state, False, message + "smaller dt", low)

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


def _solve(system, drive, state):
    """dq and the ground, the friction from the last frame's on."""
    patch, start = drive.patch, None
    if patch is not None:
        start = drive.dt * state.v
        if len(state.normal) == len(patch.bound):
            drive = replace(drive, patch=patch.with_friction(state.normal, drive.dt))
    return drive.solve(system, drive.right_side(system), start)


def reduced_stepper(
    robot: SkinnedRobot, skin: ReducedSkin, dt: float, **options
) -> ReducedStepper:
    """A stepper in a context of its own, in the rest pose, with the file's limits."""
    root = robot.diagram.CreateDefaultContext()
    context = robot.plant.GetMyMutableContextFromRoot(root)
    robot.plant.SetPositions(context, robot.rest_positions)
    options = {k: v for k, v in options.items() if v is not None}
    options.setdefault("effort_limits", robot.effort_limits)
    return ReducedStepper(robot.plant, robot.fem, skin, dt, context=context, **options)
