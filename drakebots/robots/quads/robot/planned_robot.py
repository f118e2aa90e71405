"""A skinned robot in both forms that planning needs, and states to start from.

    robot = load_planned("beetle")
    robot.quad          # the skeleton in Euler coordinates, for space-time programs
    robot.skinned       # skeleton and skin, for step-by-step plans
    robot.link_skin     # the skin as mass on the links

Both forms have the same feet in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.core.checks import array
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.fields import check, checked
from drakebots.fem import SkinState, equilibrium
from drakebots.fem.assembly import FemModel, worst_tet
from drakebots.fem.solver import Prescribed
from drakebots.model import Model, context_at, find_body
from drakebots.robots.quads.robot.quad import Coordinates, Quad, load_quad
from drakebots.robots.quads.robot.tree_dynamics import inertia_row
from drakebots.skin.coupled import (
    CoupledState,
    CoupledStepper,
    Glue,
    glue_points,
    glue_stiffness,
    link_weights,
    rigid_fit,
)
from drakebots.skin.file import SkinnedRobot, load_skinned

# --- the skin in the space-time program: mass on the links, and forces on them -----
#
# Every node of the skin moves with one link; the skin of a link adds to its inertia
#
#     m += sum m_i,   m c += sum m_i p_i,   I_o += sum m_i (|p_i|^2 1 - p_i p_i')
#
# with p_i in the link's frame ("Computational Design of Skinned Quad-Robots", section
# 5.4). The paper's first iteration knows no more of the skin. Here it also knows the
# skin's stiffness at rest: turning the joints by x from the rest pose takes the torques
# K x of the motors, which is most of what bent knees need (joint_stiffness). From
# the second iteration of the alternation on, the step-by-step plan gives the
# shift of the skin's centre of mass on each link and the skin's forces on the skeleton;
# see SkinInfluence.

WEAK = 0.01
"""Share of sqrt(K_ii K_jj) below which an entry K_ij of the skin's stiffness is left
out: mostly of joints of different legs, whose rows of the program stay sparse so."""


@dataclass(frozen=True)
class SkinShare:
    """Share of each link in the skin: the nodes that move with it, and their mass.

    Attributes:
        links: names of the links with glue (L,).
        link_of: index in `links` of each node (N,).
        node_mass: mass of each node (N,) [kg].
    """

    links: tuple[str, ...]
    link_of: np.ndarray
    node_mass: np.ndarray

    @property
    def mass(self) -> np.ndarray:
        """Mass of the skin that goes with each link (L,) [kg]."""
        return np.bincount(self.link_of, self.node_mass, len(self.links))

    def centres(
        self, plant: MultibodyPlant, context: Context, positions: np.ndarray
    ) -> np.ndarray:
        """COM of each link's skin in the link's frame at the context's q (L, 3) [m]."""
        moment = np.zeros((len(self.links), 3))
        np.add.at(moment, self.link_of, self.node_mass[:, None] * positions)
        centre = moment / self.mass[:, None]
        bodies = [find_body(plant, name) for name in self.links]
        poses = [plant.EvalBodyPoseInWorld(context, body) for body in bodies]
        return np.array([X_WB.inverse() @ p for X_WB, p in zip(poses, centre)])

    def velocities(
        self, plant: MultibodyPlant, context: Context, positions: np.ndarray
    ) -> np.ndarray:
        """Velocities of nodes fixed to their links at the context's q, v (N, 3)."""
        out = np.zeros_like(positions)
        for k, name in enumerate(self.links):
            body, own = find_body(plant, name), self.link_of == k
            V = plant.EvalBodySpatialVelocityInWorld(context, body)
            p_WB = plant.EvalBodyPoseInWorld(context, body).translation()
            arm = positions[own] - p_WB
            out[own] = V.translational() + np.cross(V.rotational(), arm)
        return out


def skin_share(model: FemModel, glue: Glue) -> SkinShare:
    """Assigns each node to the link whose glue is nearest at rest."""
    nearest = link_weights(model, glue).argmax(axis=1)
    return SkinShare(tuple(glue.by_body()), nearest, model.node_mass)


@dataclass(frozen=True)
class LinkSkin:
    """Mass and inertia of the resting skin on each link, and its stiffness.

    Attributes:
        bodies: names of the links.
        mass: mass of the skin on each link (links,) [kg].
        inertia: rows [m, m c, I_o] to add to the links' own (links, 10).
        stiffness: K of :func:`joint_stiffness` (joints, joints) [N m/rad]; None
            leaves it out.
    """

    bodies: tuple[str, ...]
    mass: np.ndarray
    inertia: np.ndarray
    stiffness: np.ndarray | None = None

    def elastic(self, turn: np.ndarray) -> np.ndarray:
        """Torques -K x on the joints that are turned by x from rest (n, joints)."""
        turn = np.asarray(turn, float)
        return np.zeros_like(turn) if self.stiffness is None else -turn @ self.stiffness


def joint_stiffness(robot: SkinnedRobot, joints: Sequence[str]) -> np.ndarray:
    """Stiffness of a skin against turns of joints at rest (m, m) [N m/rad].

    Entries that couple two joints by less than :data:`WEAK` are left out of that of
    :func:`~drakebots.skin.coupled.glue.glue_stiffness`.

    Args:
        robot: robot whose skin is stress-free in the rest pose.
        joints: names of joints, in the order of K.
    """
    plant, context = robot.plant, robot.context
    plant.SetPositions(context, robot.rest_positions)
    _, J = glue_points(plant, context, robot.glue)
    J = J[:, [plant.GetJointByName(name).velocity_start() for name in joints]]
    K = glue_stiffness(robot.fem, robot.glue, J)
    size = np.sqrt(np.outer(np.diag(K), np.diag(K)))
    return np.where(np.abs(K) < WEAK * size, 0.0, K)


@checked("influence of the skin")
class SkinInfluence:
    """Effect of the deforming skin, from a step-by-step plan to the next program.

    Raises:
        InvalidInput: for shapes that differ, or values that are not finite.
    """

    force: Annotated[np.ndarray, array((None, None))]
    """Generalized coupling forces lambda of the skin on the skeleton, in Euler
    coordinates (N, nv) [N, N m]; they include the skin's gravity and inertia."""
    com_shift: np.ndarray
    """Shift of the COM of each link's skin from its place at rest, in the link's frame
    (N, links, 3) [m]."""
    q: np.ndarray
    """Positions at which they were found (N, nv)."""
    v: np.ndarray
    """Velocities at which they were found (N, nv)."""
    a: np.ndarray
    """Accelerations at which they were found (N, nv)."""
    base: bool = False
    """Whether `force` also acts on the rows of the base. Then momentum is that of the
    deforming skin; otherwise eq. (7) is used as printed, with a skin that moves with
    its links."""

    def __post_init__(self):
        rows, shift = array(self.force.shape), array((len(self.force), None, 3))
        check(self, "influence of the skin", q=rows, v=rows, a=rows, com_shift=shift)


def skin_on_links(quad: Quad, positions: np.ndarray, share: SkinShare) -> LinkSkin:
    """Mass and inertia that the skin's nodes add to the links they move with.

    Args:
        quad: the robot, in its rest pose.
        positions: positions of the nodes in the world (N, 3) [m].
        share: the nodes' masses, and the links they move with.

    Raises:
        UnknownName: for an unknown link.
        InvalidInput: for a link without mass of its own.
    """
    plant = quad.robot.plant
    context = context_at(plant, quad.rest)
    rows = np.zeros((len(quad.tree.bodies), 10))
    for k, link in enumerate(share.links):
        body = find_body(plant, link)
        name = body.name()
        if name not in quad.tree.bodies:
            raise InvalidInput(f"link {name!r} has no mass and cannot carry skin")
        own = share.link_of == k
        X_BW = plant.EvalBodyPoseInWorld(context, body).inverse()
        p, m = X_BW.multiply(positions[own].T).T, share.node_mass[own]
        I_o = np.sum(m * np.einsum("ni,ni->n", p, p)) * np.eye(3) - (p.T * m) @ p
        rows[quad.tree.bodies.index(name)] += inertia_row(m.sum(), m @ p, I_o)
    return LinkSkin(quad.tree.bodies, rows[:, 0].copy(), rows)


def inertia_at(
    quad: Quad, skin: LinkSkin | None, influence: SkinInfluence | None, steps
) -> np.ndarray:
    """Inertias of the links with their skin at some times (k, links, 10).

    A shift s of a link's skin changes its first moment to m c + m s; second moments
    stay those at rest.

    Args:
        quad: the robot.
        skin: skin on the links; None for the skeleton alone.
        influence: gives the shifts; None for a skin at rest.
        steps: indices of the times (k,).
    """
    steps = np.asarray(steps)
    base = quad.tree.inertia + (0.0 if skin is None else skin.inertia)
    out = np.repeat(base[None], len(steps), axis=0)
    if influence is not None and skin is not None:
        shift = np.asarray(influence.com_shift)[steps]
        out[:, :, 1:4] += skin.mass[:, None] * shift
    return out


def coupling_forces(
    quad: Quad, skin: LinkSkin | None, influence: SkinInfluence | None, steps
) -> np.ndarray:
    """Constant part of the generalized forces of the skin at some times (k, nv).

    With RNEA_s of the skeleton alone and RNEA of the links with skin, at the motion
    (~) at which the forces lambda were found,

        delta = lambda + RNEA(~) - RNEA_s(~),

    so that RNEA - J'[F; T] - B tau = delta is there the skeleton under its coupling
    forces, as in the paper. For other motions the skin's weight and inertia follow the
    motion, and so does the torque of its stiffness K on the joints x, if it is known:
    the forces are delta + K (x~ - x), of which this is delta + K x~. Before the first
    step-by-step plan delta is 0 and x~ the rest pose.

    Args:
        quad, skin, influence, steps: as of :func:`inertia_at`.
    """
    steps = np.asarray(steps)
    delta = np.zeros((len(steps), quad.nv))
    if influence is None:
        if skin is not None:
            delta[:, 6:] -= skin.elastic(quad.rest[6:])
        return delta
    total = inertia_at(quad, skin, influence, steps)
    motion = [np.asarray(x)[steps] for x in (influence.q, influence.v, influence.a)]
    delta = np.asarray(influence.force)[steps] + carried_forces(quad, *motion, total)
    if not influence.base:
        delta[:, :6] = 0.0
    if skin is not None:
        delta[:, 6:] -= skin.elastic(motion[0][:, 6:])
    return delta


def carried_forces(quad: Quad, q, v, a, inertia: np.ndarray) -> np.ndarray:
    """Generalized forces (n, nv) that skin on the links takes in a motion,
    RNEA - RNEA_s.

    Args:
        quad: the robot.
        q, v, a: the motion (n, nv).
        inertia: inertias of the links with their skin (n, links, 10).
    """
    own = quad.dynamics(q, v, a, quad.tree.inertia)
    return quad.dynamics(q, v, a, inertia) - own


# --- both forms of a robot ----------------------------------------------------------


@checked("robot")
class PlannedRobot:
    """A skinned robot in both forms.

    Raises:
        InvalidInput: if their feet or actuators differ.
    """

    skinned: SkinnedRobot
    """Skeleton on a quaternion base, with its skin."""
    quad: Quad
    """The skeleton in Euler coordinates."""

    def __post_init__(self):
        names = tuple(p.foot for p in self.skinned.skin.patches)
        if names != self.quad.feet:
            raise InvalidInput(
                f"{self.name}: feet {', '.join(self.quad.feet)} of the skeleton are "
                f"not the patches {', '.join(names) or 'none'} of the skin"
            )
        # The torques of both must be in the same order.
        if self.skinned.joints != self.quad.joints:
            raise InvalidInput(
                f"{self.name}: its actuators are not in the order of its joints; write "
                "joints and actuators in the same order in the SDF"
            )

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.skinned.model.name

    def to_yaml(self) -> str:
        """What a file says of the robot: its name."""
        return self.name

    @property
    def mass(self) -> float:
        """Mass of skeleton and skin [kg]."""
        return self.skinned.skeleton_mass + self.skinned.skin_mass

    @cached_property
    def coordinates(self) -> Coordinates:
        """Conversions between the coordinates of both forms."""
        return Coordinates(self.quad)

    @cached_property
    def share(self) -> SkinShare:
        """The link that each node of the skin moves with."""
        return skin_share(self.skinned.fem, self.skinned.glue)

    @cached_property
    def link_skin(self) -> LinkSkin:
        """The skin at rest as mass on the links (section 5.4), with its stiffness."""
        found = skin_on_links(self.quad, self.skinned.fem.rest, self.share)
        K = joint_stiffness(self.skinned, self.quad.coordinates[6:])
        return replace(found, stiffness=K)


def load_planned(name_or_path: str | Path | Model) -> PlannedRobot:
    """Loads a robot from its skeleton's file and the `.skin.yaml` beside it.

    Raises:
        InvalidInput: without feet or actuators.
        UnknownName, FileProblem, ModelProblem: as from `load_skinned`.
    """
    skinned = load_skinned(name_or_path)
    return PlannedRobot(skinned, load_quad(skinned.model))


# --- states to start from ---------------------------------------------------

GENTLE, MOVE = 0.5, 1e-3
"""Smallest det F at which the posed skin serves as the first guess. Below it the glue
moves there from the rest shape, by at most this distance at a time [m]."""


def settled_state(stepper: CoupledStepper, q: np.ndarray) -> CoupledState:
    """State with the skeleton at rest at q and the skin in equilibrium.

    Args:
        stepper: coupled simulation of the robot; the skin is at rest in its first
            context.
        q: positions of the skeleton (nq,).

    Raises:
        InvalidInput: for a q that does not fit.
        NoSolution: when no equilibrium of the skin is found.
    """
    state = stepper.start(q, np.zeros(stepper.plant.num_velocities()))
    model, glue = stepper.model, stepper.glue.vertices
    x, steps, held = state.skin.positions, 1, state.skin.positions[glue]
    if worst_tet(model, x)[1] < GENTLE:
        # From the rest shape, pulled by the glue in small moves.
        R, p = rigid_fit(model.rest[glue], held)
        x = model.rest @ R.T + p
        far = np.linalg.norm(held - x[glue], axis=1).max()
        steps = int(np.ceil(far / MOVE))
    begin = x[glue].copy()
    pulled = Prescribed(glue, lambda share: begin + share * (held - begin))
    found = equilibrium(model, pulled, gravity=stepper.gravity, start=x, steps=steps)
    if not found.converged:
        raise NoSolution(
            f"skin at the first pose: {found.message}; start from a pose nearer to "
            "the rest pose"
        )
    skin = SkinState(0.0, found.positions, np.zeros_like(found.positions))
    return replace(state, skin=skin)


def moving_state(
    stepper: CoupledStepper, share: SkinShare, q: np.ndarray, v: np.ndarray
) -> CoupledState:
    """State with the skeleton at q and v and a settled skin that moves with its links.

    Args:
        stepper: coupled simulation of the robot.
        share: the link that each node moves with.
        q, v: positions and velocities of the skeleton (nq,), (nv,).

    Raises:
        InvalidInput: for sizes that do not fit.
        NoSolution: when no equilibrium of the skin is found.
    """
    settled = settled_state(stepper, q)
    stepper.pose(settled.q, v)
    x = settled.skin.positions
    skin = SkinState(0.0, x, share.velocities(stepper.plant, stepper.context, x))
    return CoupledState(settled.q, np.array(v, float), skin)
