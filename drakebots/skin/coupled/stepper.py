"""Simulates a skinned skeleton with one coupled linear solve per time step.

    robot = load_skinned("beetle")
    stepper = robot.stepper(5e-3)
    state = stepper.start()
    result = stepper.step(state, servo=robot.servo(targets))

The equations of a step are those of :mod:`drakebots.skin.coupled.equations`. Servos
with limits and contact points on links (:mod:`drakebots.skin.coupled.laws`), contacts
of the skin (:mod:`drakebots.skin.coupled.collisions`) and of all with other bodies
(:mod:`drakebots.skin.coupled.scene`) are implicit in it, which takes further solves of
a small system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context
from scipy.spatial import cKDTree

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.threads import solver_threads
from drakebots.fem import Cavity, SkinState, equilibrium
from drakebots.fem.assembly import FemModel, elastic_energy, worst_tet
from drakebots.fem.mesh import connected_pieces
from drakebots.fem.solver import Prescribed
from drakebots.model import find_body, is_floating, joints_of, moved_positions
from drakebots.skin.coupled.collisions import RUBBED, Collisions, touching
from drakebots.skin.coupled.driven import CoupledResult, DrivenSkeleton, SceneForces
from drakebots.skin.coupled.equations import (
    ReducedSystem,
    StepEquations,
    StepSolution,
    as_vector,
    step_equations,
)
from drakebots.skin.coupled.glue import Glue
from drakebots.skin.coupled.scene import Scene
from drakebots.skin.coupled.skeleton import (
    Servo,
    check_skeleton,
    glue_points,
    skeleton_equations,
)
from drakebots.skin.coupled.solver import StepSolver
from drakebots.skin.coupled.touch import SpringSystem, Touching


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

    @property
    def time(self) -> float:
        """Time [s]."""
        return self.skin.time


class CoupledStepper(DrivenSkeleton):
    """Steps skeleton and skin together.

    Args:
        plant: finalized tree in SI.
        model: the skin.
        glue: vertices of the skin fixed to links.
        dt: time step [s].
        contacts: nodes that contact forces may act on (p,).
        context: context of the plant; a new one of the plant alone by default.
        effort_limits, patches, patch_contact: as for
            :class:`~drakebots.skin.coupled.driven.DrivenSkeleton`.
        collisions: contacts of the skin.
        scene: other bodies of the plant, which skin and links touch.
        cavities: cavities of the skin, under the pressures that steps are given.
        solver: as for :func:`~drakebots.fem.solver.sparse.make_solver`.
        threads: number of threads of the solver; by default the environment's
            OMP_NUM_THREADS, or one.
        precision: precision of the skin's factors: "double", "single" or "auto", the
            faster; see :class:`~drakebots.skin.coupled.solver.StepSolver`.
        keep_factors: whether they are kept over steps; results are the same to 1e-10.

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
        collisions: Collisions = Collisions(),
        scene: Scene | None = None,
        cavities: Sequence[Cavity] = (),
        solver: str = "auto",
        threads: int | None = None,
        precision: str = "auto",
        keep_factors: bool = True,
        **driven,
    ):
        check_skeleton(plant, glue)
        context = plant.CreateDefaultContext() if context is None else context
        super().__init__(plant, dt, context, **driven)
        self.collisions = collisions
        self.model, self.glue, self.scene = model, glue, scene
        self.cavities = tuple(cavities)
        space = model.space
        piece = connected_pieces(space.mesh.tets, len(space.mesh.vertices))[1]
        self._piece = np.append(piece, piece[space.midside[:, 0]])
        how = {"name": solver, "threads": threads or solver_threads()}
        self._solver = StepSolver(model, glue, contacts, precision, keep_factors, **how)
        self.solver = self._solver.exact

    def start(
        self, q: np.ndarray | None = None, v: np.ndarray | None = None
    ) -> CoupledState:
        """The state with the skeleton at q and v.

        By default these are the q and v that the context had when the stepper was made;
        there the skin is at rest. Near that q the skin has its rest shape, moved with
        the links. Elsewhere it is in static equilibrium with its glue on the links
        (:func:`warm_start`). Its velocity is 0 except at
        the glue.

        Raises:
            InvalidInput: for q or v of another size.
            NoSolution: when the skin finds no equilibrium.
        """
        home = self.home[0]
        self.pose(home if q is None else q, self.home[1] if v is None else v)
        q = self.plant.GetPositions(self.context).copy()
        v = self.plant.GetVelocities(self.context).copy()
        own = self.plant, self.context, self.model, self.glue
        how = {"gravity": self.gravity, "solver": self.solver.name}
        positions = warm_start(*own, home, q, **how)
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

    def equations(
        self,
        state: CoupledState,
        *,
        servo: Servo | None = None,
        skin_forces: np.ndarray | None = None,
    ) -> StepEquations:
        """Assembles the equations of a step, with the skin's contact with the ground.

        Servos have no limits here, and the contact points of links are not included:
        :meth:`step` adds both. See
        :func:`~drakebots.skin.coupled.equations.step_equations`.

        Raises:
            InvalidInput: where the skin touches links, itself or a scene, which
                :meth:`step` solves for and these equations would leave out.
        """
        if self.collisions.paired or self.scene is not None:
            raise InvalidInput(
                "coupled step: contact of the skin with links, itself and a scene is "
                "not in equations(); use step() or system(), or a stepper without it"
            )
        self.pose(state.q, state.v)
        own = self._equations(state, servo, skin_forces, False, None)
        return touching(own, self._on_ground(state))

    def system(
        self, state: CoupledState, *, project: bool = False
    ) -> ReducedSystem | SpringSystem:
        """The small system of a step, factored in double precision.

        Pairs of the skin that would push if skeleton and skin moved on as before are
        springs of it. What :meth:`equations` leaves out is left out, and `project` as
        there.

        Raises:
            InvalidInput: in a scene, which :meth:`step` alone solves for.
            NoSolution: as from :class:`~.equations.ReducedSystem`.
        """
        if self.scene is not None:
            raise InvalidInput(
                "coupled step: contact of the skin with a scene is solved in step() "
                "only; make a stepper without it"
            )
        self.pose(state.q, state.v)
        pairs = self.collisions.pairs(self.plant, self.context, state.skin, self.dt)
        own = self._equations(state, None, None, project, pairs)
        system = ReducedSystem(touching(own, self._on_ground(state)), self.solver)
        if pairs is None:
            return system
        on = np.concatenate([self.dt * state.v, np.zeros(system.contacts)])
        return SpringSystem(system, Touching(pairs, system, self.dt), on)

    def _equations(self, state, servo, skin_forces, project, pairs):
        """The equations of a step at the context's pose, with the pairs' friction."""
        at = self.plant, self.context, self.glue, self.dt
        skeleton = skeleton_equations(*at, servo=servo)
        if pairs is not None:
            on_skin, on_links = pairs.friction()
            skin_forces = on_skin if skin_forces is None else on_skin + skin_forces
            skeleton = replace(skeleton, b=skeleton.b + on_links)
        skin = self.model, state.skin, self.glue, self.dt
        how = {"gravity": self.gravity, "forces": skin_forces, "project": project}
        return step_equations(skeleton, *skin, **how)

    def _on_ground(self, state):
        """What of the skin touches the ground in a step, or None."""
        ground, nv = self.collisions.ground, self.plant.num_velocities()
        return ground and ground.touched(state.skin, nv, self.dt)

    def _solved(self, state, equations, drive, contact_forces, pairs):
        """The solved step, and the forces of ground and scene."""
        scene, at = self.scene, (self.plant, self.context)
        # The skin goes on as it moved, or as it did when more of it touched.
        found = StepSolution(self.dt * state.v, self.dt * state.skin.velocities, None)
        x, feet = state.skin.positions, drive.patch
        pressed = scene and scene.pressed(*at, self.dt)
        if pressed is not None:
            law = pressed.law
            drive = replace(drive, patch=feet.beside(law) if feet else law)
        given = drive, contact_forces, pairs
        touched = scene and scene.touched(*at, state.skin, self.dt)
        ground, tries = self._on_ground(state), RUBBED
        while True:
            whole = touching(equations, ground, touched)
            solved = self._solver.solve(whole, *given, x=x, guess=found)
            found, before = solved.solution, (ground, touched)
            touched = touched and touched.pushing(found)
            if tries:
                ground = ground and ground.rubbed(found, self._piece)
                touched = touched and touched.rubbed(found, self._piece)
            if ground is before[0] and touched is before[1]:
                break
            tries -= 1
        points = len(solved.feet) - (0 if pressed is None else len(pressed.points))
        forces = SceneForces() if ground is None else ground.on_skin(["ground"], found)
        if scene is not None:
            forces += scene.forces(touched, pressed, found, solved.feet[points:])
        return replace(solved, feet=solved.feet[:points]), forces

    remedy = "smaller dt or the material 'stable-neo-hookean'"

    def _tried(
        self, state, torques, contacts, servo, skin_forces, on, project, pressures
    ):
        pressures = as_vector("pressures", pressures, len(self.cavities))
        pairs = self.collisions.pairs(self.plant, self.context, state.skin, self.dt)
        given = self.in_matrix(servo), skin_forces, project, pairs
        equations = self._equations(state, *given)
        skeleton, A, b = equations.skeleton, equations.A_d, equations.b_d
        for cavity, p in zip(self.cavities, pressures):
            b = b + p * cavity.slope(state.skin.positions).ravel()
            if not project:
                A = A - p * cavity.curvature(state.skin.positions, len(A))
        skeleton = replace(skeleton, b=skeleton.b + on)
        equations = replace(equations, skeleton=skeleton, A_d=A, b_d=b)
        try:
            drive = self.drive(state.q, skeleton.B, torques, servo)
            solved, forces = self._solved(state, equations, drive, contacts, pairs)
            found, reason = solved.solution, "the solution is not finite"
        except NoSolution as error:
            found, reason = None, str(error)
        if found is None or not np.isfinite(np.append(found.dq, found.du)).all():
            _, ratio = worst_tet(self.model, state.skin.positions)
            return CoupledResult(state, False, reason, ratio)
        after = self.advance(state, found)
        x = after.skin.positions
        tet, ratio = worst_tet(self.model, x)
        if not (ratio > 0 or np.isfinite(elastic_energy(self.model, x))):
            reason = f"tet {tet} inverted (det F {ratio:.3g})"
            return CoupledResult(state, False, reason, ratio, solution=found)
        applied = drive.applied(skeleton.B, found.dq)
        end = applied, solved.feet, found, forces
        return CoupledResult(after, True, solved.note, ratio, *end)

    def advance(self, state: CoupledState, solution: StepSolution) -> CoupledState:
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


# --- the initial shape of the skin, where the skeleton starts away from rest --------
#
# The skeleton goes from its rest pose to q in small moves. In each of them the skin
# first moves with the nearest links. Then its static equilibrium under its weight is
# found, with its glue on the links.

MOVE = 0.15
"""Largest change of a coordinate in one move [rad, m]."""

NEAR = 0.02
"""Deformation of the glue, relative to the skin's size, up to which the skin moves as a
rigid body, without an equilibrium."""


def rigid_fit(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R (3, 3) and p (3,) with new ~ R old + p in least squares (Kabsch 1976)."""
    a, b = old.mean(axis=0), new.mean(axis=0)
    U, _, Vt = np.linalg.svd((old - a).T @ (new - b))
    sign = np.sign(np.linalg.det(Vt.T @ U.T))
    R = Vt.T @ np.diag([1.0, 1.0, sign]) @ U.T
    return R, b - R @ a


def link_weights(model: FemModel, glue: Glue) -> np.ndarray:
    """Weights of the links at each node of a skin, by distance at rest (N, links).

    They are proportional to 1/d^4 with d the distance to the nearest glue of each link,
    in the order of :meth:`Glue.by_body`, and add to 1; so they blend the motion of
    links across joints, and the largest is that of the nearest link.
    """
    held = [model.rest[glue.vertices[rows]] for rows in glue.by_body().values()]
    distance = [cKDTree(points).query(model.rest)[0] for points in held]
    weight = 1 / np.maximum(np.stack(distance, axis=1), 1e-6) ** 4
    return weight / weight.sum(axis=1, keepdims=True)


def blended(weights: np.ndarray, x: np.ndarray, moves: list) -> np.ndarray:
    """x (N, 3) moved by the links' RigidTransforms, by :func:`link_weights`."""
    moved = [X.multiply(x.T).T for X in moves]
    return sum(share[:, None] * y for share, y in zip(weights.T, moved))


def warm_start(
    plant: MultibodyPlant,
    context: Context,
    model: FemModel,
    glue: Glue,
    rest: np.ndarray,
    q: np.ndarray,
    *,
    gravity: np.ndarray,
    solver: str = "auto",
) -> np.ndarray:
    """Positions of the skin (N, 3) [m] with the skeleton at q.

    Args:
        plant, context: the skeleton; the context ends at q.
        model, glue: the skin.
        rest: q in which the skin is at rest (nq,).
        q: positions of the skeleton (nq,).
        gravity: gravity vector (3,) [m/s^2].
        solver: name of the solver of the equilibrium.

    Raises:
        NoSolution: where a move finds no equilibrium.
    """

    def held(q: np.ndarray) -> np.ndarray:
        plant.SetPositions(context, q)
        return glue_points(plant, context, glue)[0]

    old, new = held(rest), held(q)
    size = np.linalg.norm(np.ptp(model.rest, axis=0))
    R, p = rigid_fit(old, new)
    if np.linalg.norm(old @ R.T + p - new, axis=1).max() <= NEAR * size:
        moved = np.abs(new - old).max() > 1e-12 * size
        x = model.rest @ R.T + p if moved else model.rest.copy()
        x[glue.vertices] = new
        return x
    weights, path = link_weights(model, glue), _path(plant, rest, np.asarray(q))
    bodies = [find_body(plant, name) for name in glue.by_body()]
    plant.SetPositions(context, rest)
    before = [plant.EvalBodyPoseInWorld(context, body) for body in bodies]
    x = model.rest
    for k, q_k in enumerate(path, start=1):
        goal = held(q_k)
        now = [plant.EvalBodyPoseInWorld(context, body) for body in bodies]
        x = blended(weights, x, [b @ a.inverse() for a, b in zip(before, now)])
        before, x[glue.vertices] = now, goal
        held_there = Prescribed(glue.vertices, goal)
        how = {"gravity": gravity, "solver": solver, "tolerance": 1e-5}
        found = equilibrium(model, held_there, start=x, max_iterations=80, **how)
        if not found.converged:
            raise NoSolution(
                f"skin: no equilibrium in move {k} of {len(path)} from its rest pose "
                f"to the start ({found.message}); start nearer to the rest pose"
            )
        x = found.positions
    return x


def _path(plant: MultibodyPlant, rest: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Positions after each small move from rest to q (moves, nq).

    Poses of floating bases cause no strain: they are reached in the first move.
    """
    base = np.zeros(len(q), bool)
    for joint in joints_of(plant):
        if is_floating(joint):
            start = joint.position_start()
            base[start : start + joint.num_positions()] = True
    change = np.abs((q - rest)[~base]).max(initial=0.0)
    moves = int(np.ceil(change / MOVE)) or 1
    path = rest + np.outer(np.arange(1, moves + 1), q - rest) / moves
    path[:, base] = q[base]
    return path
