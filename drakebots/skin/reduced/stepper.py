"""Simulates a skeleton with a reduced skin, in place of a `CoupledStepper`.

    stepper = reduced_stepper(robot, read_reduced("beetle.reduced.npz"), 5e-3)
    state = stepper.start()
    result = stepper.step(state, servo=robot.servo(targets))
    shape = stepper.lift(result.state).skin.positions     # all nodes, to draw or store

The unknowns of a step are dq of the skeleton (nv,) and dy of the skin's r modes. A step
solves the equations of :mod:`drakebots.skin.coupled.equations`, with the matrix A_r and
the right-hand side b_r of the skeleton and A_d, b_d of the skin, projected on the
motions of links and modes (Galerkin). With x(q, y) the shape of
:mod:`drakebots.skin.reduced.basis` and J_x = dx/d(dq, dy),

    ([A_r 0; 0 0] + J_x' A_d J_x) [dq; dy] = [b_r + B tau; 0] + J_x' b_d
    A_d = M (1/dt^2 + alpha/dt) + K (1 + beta/dt),   b_d = f + M (gravity + velocity/dt)

The stiffness K and the elastic forces f are sums over the points of the cubature, the
mass M over the mass points, which carry its damping alpha. Servos and feet do not act
on y, so dy is condensed out, and they see a system in dq alone. So does contact of the
skin with links and itself: as a full skin's (:mod:`drakebots.skin.coupled.touch`), with
the motions of links and modes for those of the nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.fem import SkinState
from drakebots.fem.assembly import FemModel, as_forces, stiffness_shares
from drakebots.model import moved_positions
from drakebots.skin.coupled import Collisions, CoupledState, Glue, as_vector
from drakebots.skin.coupled.driven import CoupledResult, DrivenSkeleton, feet
from drakebots.skin.coupled.equations import ScaledCholesky
from drakebots.skin.coupled.skeleton import skeleton_equations
from drakebots.skin.coupled.touch import Pairs, TouchLaw
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.reduced.basis import (
    LinkMotion,
    Links,
    SparseWeights,
    blended_columns,
)
from drakebots.skin.reduced.cubature import forces_and_tangents
from drakebots.skin.reduced.skin import ReducedSkin, moved_by

# Equations of a time step.


class _Group:
    """Cubature points of one domain, their nodes, and the modes that move these.

    Args:
        skin: the reduced skin.
        mine: numbers of the points.
        weights: weights of the links at all nodes.
    """

    def __init__(self, skin: ReducedSkin, mine: np.ndarray, weights: SparseWeights):
        found = moved_by(skin.points.chosen(mine), skin.modes)
        inside, self.points, self.touched, self.modes = found
        self.rest, self.weights = skin.rest[inside], weights.rows(inside)
        self.links = np.unique(self.weights.links[self.weights.shares > 0])

    def own(self, motion: LinkMotion) -> tuple[LinkMotion, np.ndarray]:
        """The motion in only those velocities v that move any of the points.

        Returns:
            The motion, with c of the nv columns of its Jacobians, and their numbers
            (c,).
        """
        spin, drift = motion.spin[self.links], motion.drift[self.links]
        at = np.flatnonzero(spin.any(axis=(0, 1)) | drift.any(axis=(0, 1)))
        some = (np.ascontiguousarray(J[:, :, at]) for J in (motion.spin, motion.drift))
        return LinkMotion(motion.turn, motion.shift, *some), at


class ReducedForces:
    """Elastic forces, tangents and masses of a reduced skin with r modes.

    Generalized forces have the entries of v (nv,), then those of y (r,).

    Args:
        model: model of the full skin, for its materials.
        skin: trained reduced skin.
        gravity: gravity vector (3,) [m/s^2].

    Raises:
        InvalidInput: for a skin trained on another mesh.
    """

    def __init__(self, model: FemModel, skin: ReducedSkin, gravity: np.ndarray):
        same = skin.rest.shape == model.rest.shape
        if not (same and np.allclose(skin.rest, model.rest, atol=1e-9)):
            raise InvalidInput("reduced skin: trained on another mesh; train it again")
        self.model, self.skin = model, skin
        self.gravity = np.asarray(gravity, float)
        self._all = weights = SparseWeights.of(skin.weights)
        self.groups = [
            _Group(skin, np.flatnonzero(skin.point_domain == k), weights)
            for k in np.unique(skin.point_domain)
        ]
        at = skin.mass_nodes
        self._rest, self._weights = skin.rest[at], weights.rows(at)
        self._modes = np.ascontiguousarray(skin.modes[at])
        # Rayleigh's alpha of each node is that of the material of one of its tets.
        of_material = np.array([m.mass_damping for m in model.materials])
        alpha = np.zeros(len(model.rest))
        for group, row in zip(model.space.groups, model.rows):
            for nodes in group.nodes.T:
                alpha[nodes[nodes >= 0]] = of_material[row][nodes >= 0]
        self._alpha = alpha[at]

    def elastic(self, motion: LinkMotion, y: np.ndarray, dt: float, project: bool):
        """Elastic forces and stiffness, projected.

        Args:
            motion: motion of the links.
            y: coordinates of the modes (r,) [sqrt(J)].
            dt: time step [s]; infinite for statics.
            project: whether each point's tangent is made positive semidefinite.

        Returns:
            J' (-f) (nv + r,), J' K (1 + beta/dt) J (nv + r, nv + r), and the smallest
            det F of the points.

        Raises:
            NoSolution: when a point is inverted.
        """
        model, nv = self.model, motion.spin.shape[2]
        n = nv + self.skin.size
        scale = 1 + stiffness_shares(model) / dt
        g, K, low = np.zeros(n), np.zeros((n, n)), np.inf
        for group in self.groups:
            points = group.rest + group.modes @ y[group.touched]
            own, moved = group.own(motion)
            x, J = blended_columns(points, group.weights, own, group.modes)
            given = group.points, model.kinds, model.table, scale, project
            force, D, TD, ratio, good = forces_and_tangents(x, J, *given)
            if not good:
                raise NoSolution(f"reduced skin: a point inverted (det F {ratio:.3g})")
            at = np.concatenate([moved, nv + group.touched])
            g[at] += force
            K[np.ix_(at, at)] += D.T @ TD
            low = min(low, ratio)
        return g, 0.5 * (K + K.T), low

    def inertia(self, motion: LinkMotion, y, velocity, dt: float):
        """Inertia, mass damping and weight, projected.

        Args:
            motion, y, dt: as for :meth:`elastic`.
            velocity: velocities of the p mass points (p, 3) [m/s], or 0.

        Returns:
            J' M J (1/dt^2 + alpha/dt) (nv + r, nv + r),
            J' M (gravity + velocity/dt) (nv + r,), and the Jacobian J of the mass
            points (3 p, nv + r).
        """
        skin = self.skin
        points = self._rest + self._modes @ y
        _, J = blended_columns(points, self._weights, motion, self._modes)
        J = J.reshape(-1, J.shape[2])
        m = np.repeat(skin.masses, 3)
        a = np.repeat(skin.masses * (1 / dt**2 + self._alpha / dt), 3)
        push = np.broadcast_to(self.gravity + velocity / dt, points.shape).ravel()
        return J.T @ (a[:, None] * J), J.T @ (m * push), J

    def columns(self, motion: LinkMotion, y: np.ndarray, at: np.ndarray) -> np.ndarray:
        """The Jacobian of nodes (k,) in v and the rates of y (k, 3, nv + r)."""
        modes = np.ascontiguousarray(self.skin.modes[at])
        points = self.skin.rest[at] + modes @ y
        return blended_columns(points, self._all.rows(at), motion, modes)[1]

    def pull(self, motion: LinkMotion, y: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """J' f (nv + r,) of forces on all nodes (N, 3) [N]."""
        at = np.flatnonzero(forces.any(axis=1))
        return np.einsum("nij,ni->j", self.columns(motion, y, at), forces[at])


class CondensedSystem:
    """The equations R dq = r of a time step, with dy condensed out.

    They are those of [A_qq A_qy; A_yq A_yy] [dq; dy] = [b_q; b_y] with the Schur
    complement, R = A_qq - A_qy A_yy^-1 A_yq and r = b_q - A_qy A_yy^-1 b_y.

    Args:
        A, b: matrix (nv + r, nv + r) and right-hand side without torques (nv + r,).
        B: map of torques to generalized forces (nv, m).

    Attributes:
        nv: number of velocities of the skeleton.
        matrix: R (nv, nv).
        B: as above.

    Raises:
        NoSolution: when the matrix is not positive definite or not finite.
    """

    def __init__(self, A: np.ndarray, b: np.ndarray, B: np.ndarray):
        if not (np.isfinite(A).all() and np.isfinite(b).all()):
            raise NoSolution("reduced skin: the state is not finite")
        nv = self.nv = len(B)
        self.B = B
        sides = np.concatenate([A[nv:, :nv], b[nv:, None]], axis=1)
        self._inner = ScaledCholesky(A[nv:, nv:]) if len(A) > nv else None
        done = self._without_dq(sides)
        # dy is _y0 - _Y dq.
        self._Y, self._y0 = done[:, :nv], done[:, nv]
        R = A[:nv, :nv] - A[:nv, nv:] @ self._Y
        self.matrix = 0.5 * (R + R.T)
        self._constant = b[:nv] - A[:nv, nv:] @ self._y0
        self._factors = ScaledCholesky(self.matrix)

    def _without_dq(self, b: np.ndarray) -> np.ndarray:
        """A_yy^-1 b (r, k)."""
        return b if self._inner is None else self._inner.solve(b)

    def right_side(self, torques=None, forces=None) -> np.ndarray:
        """r (nv,) for torques (m,) [N m]; the skin has no contact forces."""
        as_vector("contact forces", forces, 0)
        return self._constant + self.B @ as_vector("torques", torques, self.B.shape[1])

    def back(self, r: np.ndarray) -> np.ndarray:
        """dq = R^-1 r."""
        return self._factors.solve(r)

    def modes(self, dq: np.ndarray) -> np.ndarray:
        """dy (r,) that goes with dq (nv,), without contact."""
        return self._y0 - self._Y @ dq

    def touching(self, P: np.ndarray, pairs: Pairs, dt: float):
        """Pairs of the skin whose sides move apart by P [dq; dy] (k, nv + r).

        Returns:
            Their law, and the dy of a unit of each force (r, k).
        """
        kappa, own = pairs.stiffness + pairs.damping / dt, P[:, self.nv :]
        moved = self._without_dq(own.T)
        give = np.diag(1 / kappa) + own @ moved
        aim = pairs.stiffness * pairs.depth / kappa - own @ self._y0
        rows = P[:, : self.nv] - own @ self._Y
        return TouchLaw(rows, aim, (give + give.T) / 2), moved


# Time steps.


@dataclass(frozen=True)
class ReducedState:
    """State of skeleton and reduced skin.

    Attributes:
        time: time [s].
        q: positions of the plant (nq,).
        v: velocities of the plant (nv,).
        y: coordinates of the modes (r,) [sqrt(J)].
        points: velocities of the skin's mass points (p, 3) [m/s].
        dy: rates of y (r,) [sqrt(J)/s].
        normal: normal forces of the contact points, the initial guess of the friction
            in the next step (k,) [N].
    """

    time: float
    q: np.ndarray
    v: np.ndarray
    y: np.ndarray
    points: np.ndarray
    dy: np.ndarray
    normal: np.ndarray = field(default_factory=lambda: np.zeros(0))


class ReducedStepper(DrivenSkeleton):
    """Steps a skeleton and a reduced skin together.

    Args:
        plant: finalized tree in SI.
        model: model of the full skin.
        skin: trained reduced skin.
        dt: time step [s].
        context: context of the plant in the rest pose.
        effort_limits, patches, patch_contact: as for
            :class:`~drakebots.skin.coupled.driven.DrivenSkeleton`.
        collisions: contact of the skin with links and itself, as a full skin's; on the
            ground it stands by its patches.

    Raises:
        InvalidInput, UnknownName: before any step, for a value out of range or an
            unknown name.
    """

    def __init__(
        self,
        plant: MultibodyPlant,
        model: FemModel,
        skin: ReducedSkin,
        dt: float,
        *,
        context: Context,
        collisions: Collisions = Collisions(),
        **driven,
    ):
        super().__init__(plant, dt, context, **driven)
        self.collisions = collisions
        self.model, self.skin = model, skin
        self.links = Links(plant, context, skin.links)
        self.forces = ReducedForces(model, skin, self.gravity)
        # skeleton_equations needs a glue; any point will do.
        self._glue = Glue(np.zeros(1, int), skin.links[:1], np.zeros((1, 3)))

    def start(
        self, q: np.ndarray | None = None, v: np.ndarray | None = None
    ) -> ReducedState:
        """The state with the skeleton at q and v, by default those of the context.

        At the default q the skin has its rest shape; at others it is in the static
        equilibrium that it takes with fixed links (:meth:`settled`). Its velocities
        are those of the links' motion, with dy = 0.

        Raises:
            InvalidInput: for q or v of another size.
            NoSolution: when the skin finds no equilibrium.
        """
        home = self.home[0]
        q = home if q is None else np.asarray(q, float)
        v = self.home[1] if v is None else np.asarray(v, float)
        at_rest = np.array_equal(q, home)
        y = np.zeros(self.skin.size) if at_rest else self.settled(q)
        return self.state(0.0, q, v, y)

    def state(self, time, q, v, y, dy=None) -> ReducedState:
        """A state whose mass points have the velocities of v and dy (0 by default)."""
        self.pose(q, v)
        motion = self.links.motion(self.context)
        dy = np.zeros(self.skin.size) if dy is None else dy
        _, _, J = self.forces.inertia(motion, y, 0.0, self.dt)
        points = (J @ np.concatenate([v, dy])).reshape(-1, 3)
        return ReducedState(float(time), np.array(q), np.array(v), y, points, dy)

    def settled(self, q: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
        """y of the skin's equilibrium with links fixed at q (r,).

        Raises:
            NoSolution: when Newton's method does not converge.
        """
        self.pose(q, np.zeros(self.plant.num_velocities()))
        motion = self.links.motion(self.context)
        y = np.zeros(self.skin.size) if y is None else y.copy()
        nv, first = self.plant.num_velocities(), None
        for _ in range(60):
            g, K, _ = self.forces.elastic(motion, y, np.inf, True)
            _, weight, _ = self.forces.inertia(motion, y, 0.0, np.inf)
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
        raise NoSolution(f"reduced skin: no equilibrium (residual force {error:.1e})")

    def system(
        self,
        state: ReducedState,
        servo=None,
        skin_forces: np.ndarray | None = None,
        *,
        on: np.ndarray | float = 0.0,
        project: bool = False,
    ):
        """The condensed equations of a step.

        Args:
            state: state before the step.
            servo: implicit servos that are part of the matrix.
            skin_forces: forces on all nodes of the full skin (N, 3) [N].
            on: forces on the plant's velocities (nv,) [N, N m].
            project: whether the tangents of the skin are projected; see
                :meth:`ReducedForces.elastic`.

        Returns:
            The equations, the Jacobian of the mass points (3 p, nv + r), and the
            smallest det F.

        Raises:
            NoSolution: when a point is inverted or the matrix is not positive definite.
        """
        self.pose(state.q, state.v)
        at = self.plant, self.context, self._glue, self.dt
        skeleton = skeleton_equations(*at, servo=servo)
        motion = self.links.motion(self.context)
        g, A, low = self.forces.elastic(motion, state.y, self.dt, project)
        mass, push, J = self.forces.inertia(motion, state.y, state.points, self.dt)
        nv = len(skeleton.b)
        A += mass
        A[:nv, :nv] += skeleton.A
        b = push - g
        b[:nv] += skeleton.b + on
        if skin_forces is not None:
            b += self.forces.pull(motion, state.y, as_forces(self.model, skin_forces))
        return CondensedSystem(A, b, skeleton.B), J, low

    def _tried(
        self, state, torques, contacts, servo, skin_forces, on, project, pressures
    ):
        as_vector("contact forces", contacts, 0)
        as_vector("pressures of a reduced skin", pressures, 0)
        low, pairs = np.nan, None
        if self.collisions.paired:
            skin = self.lift(state).skin
            self.pose(state.q, state.v)
            pairs = self.collisions.pairs(self.plant, self.context, skin, self.dt)
        if pairs is not None:
            on_skin, on_links = pairs.friction()
            skin_forces = on_skin if skin_forces is None else on_skin + skin_forces
            on = on + on_links
        try:
            system, J, low = self.system(
                state, self.in_matrix(servo), skin_forces, project=project, on=on
            )
            drive = self.drive(state.q, system.B, torques, servo)
            touch, moved = (
                (None, None) if pairs is None else self._touching(state, pairs, system)
            )
            dq, ground = _solve(system, drive, state, touch)
            dy = system.modes(dq)
            if touch is not None:
                dy += moved @ touch.force(touch.rows @ dq)
        except NoSolution as error:
            return CoupledResult(state, False, str(error), low)
        applied, forces = drive.applied(system.B, dq), feet(ground, dq)
        normal = np.zeros(0) if ground is None else ground.force(ground.rows @ dq)[2::3]
        after = self._advance(state, J, dq, dy, normal)
        if not (np.isfinite(after.y).all() and np.isfinite(after.q).all()):
            return CoupledResult(state, False, "the solution is not finite", low)
        return CoupledResult(after, True, "one linear solve", low, applied, forces)

    def _touching(self, state: ReducedState, pairs: Pairs, system: CondensedSystem):
        """As :meth:`CondensedSystem.touching`, at the context's pose."""
        G, L = pairs.rows()
        at, motion = np.unique(G.indices // 3), self.links.motion(self.context)
        J = self.forces.columns(motion, state.y, at)
        P = G[:, (3 * at[:, None] + np.arange(3)).ravel()] @ J.reshape(-1, J.shape[2])
        P[:, : system.nv] += L
        return system.touching(P, pairs, self.dt)

    def _advance(self, state, J, dq, dy, normal):
        q = moved_positions(self.plant, self.context, dq)
        move = J @ np.concatenate([dq, dy])
        at = state.time + self.dt, q, dq / self.dt, state.y + dy
        rates = move.reshape(-1, 3) / self.dt, dy / self.dt
        return ReducedState(*at, *rates, normal)

    def lift(self, state: ReducedState) -> CoupledState:
        """The state of the full skin: positions and velocities of all nodes.

        The velocities are the difference quotient over a microsecond.
        """
        short = 1e-6
        self.pose(state.q, state.v)
        motion = self.links.motion(self.context, jacobian=False)
        x = self.skin.positions(state.y, motion)
        ahead = moved_positions(self.plant, self.context, short * state.v)
        self.pose(ahead, state.v)
        motion = self.links.motion(self.context, jacobian=False)
        later = self.skin.positions(state.y + short * state.dy, motion)
        skin = SkinState(state.time, x, (later - x) / short)
        return CoupledState(state.q, state.v, skin)


def _solve(system, drive, state, touch):
    """dq (nv,) and the solved contact; friction starts from the last step's forces."""
    patch, start = drive.patch, None
    if patch is not None:
        start = drive.dt * state.v
        if len(state.normal) == len(patch.bound):
            drive = replace(drive, patch=patch.with_friction(state.normal))
    return drive.solve(system, drive.right_side(system), start, touch=touch)


def reduced_stepper(
    robot: SkinnedRobot, skin: ReducedSkin, dt: float, **options
) -> ReducedStepper:
    """A stepper of a robot, with the torque limits of its file.

    Args:
        robot: the robot with its full skin.
        skin: trained reduced skin of this robot.
        dt: time step [s].
        options: further arguments of :class:`ReducedStepper`.
    """
    options = robot.stepper_options(options)
    return ReducedStepper(robot.plant, robot.fem, skin, dt, **options)
