"""A skinned robot under control: its nominal model, and the plant it stands for.

The nominal model, of which controllers know, is a rigid skeleton that carries the skin.
The skin's mass is welded to the links that its nodes are nearest to, and its elasticity
is a spring at every joint,

    tau = -K_jj (q_j - q_rest,j)

with K the skin's static stiffness at rest (`LinkSkin.stiffness`). K is nearly diagonal
(the monster's largest other entry is 5 % of the diagonal). What this leaves out is the
skin's own motion, its stiffening where folds close, and its sag.

A foot touches the ground at two points, heel and toe: a sole that the robot, whose
ankles only pitch, can press with in front or behind but not at one side.

:class:`SkinnedPlant` has both in full, and takes commands step by step.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from pydrake.multibody.tree import RevoluteSpring, SpatialInertia, UnitInertia

from drakebots.control import Command, feet_miss, raised
from drakebots.core.errors import NoSolution
from drakebots.model import Point, context_at
from drakebots.multibody import Flat, Robot, Terrain, build_robot
from drakebots.robots.quads.robot import PlannedRobot
from drakebots.skin import SkinRecord
from drakebots.skin.coupled import CoupledResult, CoupledState, CoupledStepper

REACH = 0.9
"""Share of a sole's half length at which heel and toe are."""

BENT = 0.004
"""A standing pose on a slope is lower by this than its straightest leg asks [m]."""

MISS = 2e-3
"""Largest distance of a sole from the ground in a standing pose [m]."""

HAND = 0.03
"""Radius of the skin that a push acts on [m]."""

SUBSTEPS = 4
"""Number of parts into which a time step is divided that has no solution as a whole."""


# --- the nominal model ---


def nominal_robot(robot: PlannedRobot) -> Robot:
    """The rigid robot, in Euler coordinates, with heels and toes as its feet."""
    quad, carried = robot.quad, robot.link_skin
    springs = dict(zip(quad.coordinates[6:], np.diag(carried.stiffness)))

    def prepare(plant):
        for name, row in zip(carried.bodies, carried.inertia):
            if row[0] > 1e-9:
                own = plant.GetBodyByName(name)
                skin = plant.AddRigidBody(
                    f"{name}_skin", own.model_instance(), _inertia(row)
                )
                plant.WeldFrames(own.body_frame(), skin.body_frame())
        for name, stiffness in springs.items():
            rest = quad.rest[quad.coordinates.index(name)]
            joint = plant.GetJointByName(name)
            plant.AddForceElement(RevoluteSpring(joint, rest, stiffness))

    feet = []
    for sole in quad.soles:
        half = REACH * sole.corners[:, 0].max()
        for end, sign in (("toe", 1), ("heel", -1)):
            p_BF = sole.p_BF + sole.R_BS @ [sign * half, 0.0, 0.0]
            feet.append(Point(f"{sole.name}_{end}", sole.body, p_BF))
    model = replace(quad.robot.model, feet=tuple(feet))
    return build_robot(model, base="euler", time_step=0, prepare=prepare)


def _inertia(row: np.ndarray) -> SpatialInertia:
    """A row [m, m c, I_o: xx yy zz xy xz yz] of a `LinkSkin` as Drake has it."""
    return SpatialInertia(row[0], row[1:4] / row[0], UnitInertia(*(row[4:] / row[0])))


def standing(
    nominal: Robot, rest: np.ndarray, terrain: Terrain, stride: float = 0.0
) -> np.ndarray:
    """A standing pose (nv,) with its feet on the ground.

    On a slope the trunk is parallel to it along x, its middle above that of the feet,
    and the legs are upright; it is lowered until they reach the ground, at both ends of
    a stride too, and are bent.

    Args:
        nominal: of :func:`nominal_robot`.
        rest: its pose on flat ground (nv,).
        terrain: the ground.
        stride: way of a foot on the ground under the trunk [m].

    Raises:
        NoSolution: where the legs do not reach the ground.
    """
    plant, q = nominal.plant, np.array(rest, float)
    if terrain == Flat():
        return q
    context = context_at(plant, q)
    targets = nominal.feet_positions(context)
    heights = terrain.heights(targets[:, 0], targets[:, 1])
    if not heights.any():
        return q
    rise = np.polyfit(targets[:, 0], heights, 1)[0]
    slope, under = np.arctan(rise), float(terrain.heights(q[0], q[1]))
    targets[:, 2] += heights
    q[2], q[4] = q[2] + under, q[4] - slope
    ahead = np.array([1.0, 0.0, rise])
    places = targets + np.array([0.0, 0.5, -0.5])[:, None, None] * stride * ahead
    lower = None
    for _ in range(80):
        q = raised(nominal, q, 0.0, targets)
        if feet_miss(nominal, q, places) < MISS:
            lower = q[2] - BENT if lower is None else lower
            if q[2] <= lower + 1e-9:
                return q
        q[2] -= 1e-3
    raise NoSolution(
        f"{nominal.model.name} does not reach the ground on a slope of "
        f"{np.degrees(slope):.3g} degrees; its legs are too short"
    )


# --- the plant ---


class SkinnedPlant:
    """Skeleton and skin on their ground; commands act through the robot's servos.

    Efforts become angles by the servos' own law; a command's targets are sent as they
    are, the angles and where there are any the speeds.

    Args:
        robot: the robot.
        stepper: its steps, with all tetrahedra or a reduced skin.
        begins: state in which it begins.
        target: targets of the servos before the first command (m,) [rad].
        finer: makes a stepper of a time step [s], for steps that have no solution as a
            whole; by default these end the run.

    Attributes:
        sent: angles that the servos were sent, by time step (m,) [rad].
        refined: number of time steps that were divided.
        spent: processor time of all steps [s].
    """

    def __init__(
        self,
        robot: PlannedRobot,
        stepper,
        begins: CoupledState,
        target: np.ndarray,
        finer: Callable[[float], CoupledStepper] | None = None,
    ):
        self.robot, self.stepper, self.time_step = robot, stepper, stepper.dt
        self._gains = robot.skinned.skin.servos
        self._state, self._target, self.sent = begins, target, []
        self._result: CoupledResult | None = None
        self._finer, self._part = finer, None
        self.refined, self.spent = 0, 0.0

    @property
    def positions(self) -> np.ndarray:
        """Positions of the skeleton in the skin's plant (nq,)."""
        return self._state.q

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """q and v of the skeleton in the coordinates of the nominal robot."""
        convert, state = self.robot.coordinates, self._state
        q = convert.from_positions(state.q[None])
        return q[0], convert.from_velocities(state.q[None], state.v[None])[0]

    def advance(self, command: Command, forces: Sequence[np.ndarray] = ()) -> None:
        """One time step under a command and forces (3,) of hands on the trunk's skin.

        Raises:
            NoSolution: when the step has no solution.
        """
        count = len(self.robot.skinned.joints)
        if command.targets is None:
            q, v = self.state()
            load = command.efforts + self._gains.damping * v[6:]
            self._target, speeds = q[6:] + load / self._gains.stiffness, None
        else:
            self._target = command.targets[:count]
            speeds = command.targets[count:] if len(command.targets) > count else None
        self.sent.append(self._target)
        given = {"servo": self.robot.skinned.servo(self._target, speeds)}
        if len(forces):
            given["skin_forces"] = self._on_skin(forces)
        began = clock.thread_time()
        result = self.stepper.step(self._state, **given)
        if not result.converged and self._finer is not None:
            result = self._in_parts(given)
        self.spent += clock.thread_time() - began
        if not result.converged:
            raise NoSolution(result.message)
        self._state, self._result = result.state, result

    def _in_parts(self, given: dict) -> CoupledResult:
        """The result of a time step in SUBSTEPS parts."""
        self.refined += 1
        if self._part is None:
            self._part = self._finer(self.time_step / SUBSTEPS)
        state = self._state
        for _ in range(SUBSTEPS):
            result = self._part.step(state, **given)
            if not result.converged:
                break
            state = result.state
        return result

    def seen(self) -> tuple:
        """Robot, positions, mesh and nodes of the skin."""
        state, skinned = self._whole_state(), self.robot.skinned
        return skinned.robot, state.q, skinned.mesh, state.skin.positions

    def add_to(self, record: SkinRecord, last: bool) -> None:
        """Records the state and the result of the last step."""
        record.add(self._whole_state(), self._target, self._result, last=last)

    def _whole_state(self) -> CoupledState:
        """The state with every node of the skin, which the stepper may not have."""
        lift = getattr(self.stepper, "lift", None)
        return self._state if lift is None else lift(self._state)

    def _on_skin(self, forces: Sequence[np.ndarray]) -> np.ndarray:
        """Forces on the nodes of the skin (N, 3) [N]."""
        total = np.zeros_like(self.robot.skinned.fem.rest)
        for force in forces:
            under = self._under(force / np.linalg.norm(force))
            total[under] += force / len(under)
        return total

    def _under(self, along: np.ndarray) -> np.ndarray:
        """Nodes under a hand that pushes along a line through the centre of mass."""
        rest = self.robot.skinned.fem.rest
        arm = rest - self.robot.quad.rest_com(self.robot.link_skin)
        reach = arm @ along
        aside = np.linalg.norm(arm - reach[:, None] * along, axis=1)
        near = aside < HAND
        if not near.any():
            near = aside < aside.min() + HAND
        first = rest[near][np.argmin(reach[near])]
        return np.flatnonzero(np.linalg.norm(rest - first, axis=1) < HAND)
