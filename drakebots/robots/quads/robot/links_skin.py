"""The skin in the space-time program: mass on the links, and forces on them.

Every node of the skin moves with one link; the skin of a link adds to its inertia

    m += sum m_i,   m c += sum m_i p_i,   I_o += sum m_i (|p_i|^2 1 - p_i p_i')

with p_i in the link's frame ("Computational Design of Skinned Quad-Robots", section
5.4). The paper's first iteration knows no more of the skin. Here it also knows the
skin's stiffness at rest: turning the joints by x from the rest pose takes the torques
K x of the motors, which is most of what bent knees need (:func:`joint_stiffness`). From
the second iteration of the alternation on, the step-by-step plan gives the
shift of the skin's centre of mass on each link and the skin's forces on the skeleton;
see :class:`SkinInfluence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context
from scipy.spatial import cKDTree

from drakebots.core.checks import array, check, check_types
from drakebots.core.errors import InvalidInput
from drakebots.fem.assembly import FemModel
from drakebots.model import find_body
from drakebots.robots.quads.robot.quad import Quad
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.frame import Glue, glue_points, glue_stiffness

WEAK = 0.01
"""Share of sqrt(K_ii K_jj) below which an entry K_ij of the skin's stiffness is left
out: mostly of joints of different legs, whose rows of the program stay sparse so."""


@dataclass(frozen=True)
class SkinShare:
    """Which link each node of the skin moves with.

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
        return np.bincount(
            self.link_of, weights=self.node_mass, minlength=len(self.links)
        )

    def centres(
        self, plant: MultibodyPlant, context: Context, positions: np.ndarray
    ) -> np.ndarray:
        """COM of each link's skin in the link's frame at the context's q (L, 3) [m]."""
        moment = np.zeros((len(self.links), 3))
        np.add.at(moment, self.link_of, self.node_mass[:, None] * positions)
        centre = moment / self.mass[:, None]
        return np.array(
            [
                plant.EvalBodyPoseInWorld(context, find_body(plant, name))
                .inverse()
                .multiply(p)
                for name, p in zip(self.links, centre)
            ]
        )


def skin_share(model: FemModel, glue: Glue) -> SkinShare:
    """Assigns each node to the link of the nearest glued vertex at rest."""
    links = tuple(dict.fromkeys(glue.bodies))
    row = {name: k for k, name in enumerate(links)}
    of_glue = np.array([row[name] for name in glue.bodies])
    _, nearest = cKDTree(model.rest[glue.vertices]).query(model.rest)
    return SkinShare(links, of_glue[nearest], model.node_mass)


def whole_com(
    plant: MultibodyPlant, context: Context, model: FemModel, positions: np.ndarray
) -> np.ndarray:
    """COM of skeleton and skin at the context's q (3,) [m]."""
    own = plant.CalcTotalMass(context)
    skin = model.node_mass.sum()
    moment = own * plant.CalcCenterOfMassPositionInWorld(context)
    return (moment + model.node_mass @ positions) / (own + skin)


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
    :func:`~drakebots.skin.frame.glue.glue_stiffness`.

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


@dataclass(frozen=True)
class SkinInfluence:
    """Effect of the deforming skin, from a step-by-step plan to the next program.

    Attributes:
        force: generalized coupling forces lambda of the skin on the skeleton, in
            Euler coordinates (N, nv) [N, N m]; they include the skin's gravity and
            inertia.
        com_shift: shift of the COM of each link's skin from its place at rest, in the
            link's frame (N, links, 3) [m].
        q, v, a: motion at which they were found (N, nv).
        base: whether `force` also acts on the rows of the base. Then momentum is
            that of the deforming skin; otherwise eq. (7) is used as printed, with a
            skin that moves with its links.

    Raises:
        InvalidInput: for shapes that differ, or values that are not finite.
    """

    force: np.ndarray
    com_shift: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    base: bool = False

    def __post_init__(self):
        check_types(self, "skin")
        what = "influence of the skin"
        check(self, what, force=array((None, None)))
        rows = array(self.force.shape)
        check(self, what, force=rows, q=rows, v=rows, a=rows)
        check(self, what, com_shift=array((len(self.force), None, 3)))


def skin_on_links(
    quad: Quad,
    positions: np.ndarray,
    mass: np.ndarray,
    link_of: np.ndarray,
    links: Sequence[str],
) -> LinkSkin:
    """Mass and inertia that the skin's nodes add to the links they move with.

    Args:
        quad: the robot, in its rest pose.
        positions: positions of the nodes in the world (n, 3) [m].
        mass: mass of each node (n,) [kg].
        link_of: index in `links` of each node (n,).
        links: names of links.

    Raises:
        UnknownName: for an unknown link.
        InvalidInput: for a link without mass of its own.
    """
    plant = quad.robot.plant
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, quad.rest)
    rows = np.zeros((len(quad.tree.bodies), 10))
    for k, link in enumerate(links):
        body = find_body(plant, link)
        if body.name() not in quad.tree.bodies:
            raise InvalidInput(
                f"link {body.name()!r} has no mass and cannot carry skin"
            )
        own = link_of == k
        X_BW = plant.EvalBodyPoseInWorld(context, body).inverse()
        p = X_BW.multiply(np.asarray(positions, float)[own].T).T
        rows[quad.tree.bodies.index(body.name())] += _inertia_sum(mass[own], p)
    return LinkSkin(quad.tree.bodies, rows[:, 0].copy(), rows)


def frame_inertia(
    quad: Quad, skin: LinkSkin | None, influence: SkinInfluence | None, frames
) -> np.ndarray:
    """Inertias of the links with their skin at some times (k, links, 10).

    A shift s of a link's skin changes its first moment to m c + m s; second moments
    stay those at rest.

    Args:
        quad: the robot.
        skin: skin on the links; None for the skeleton alone.
        influence: gives the shifts; None for a skin at rest.
        frames: indices of the times (k,).
    """
    frames = np.asarray(frames)
    base = quad.tree.inertia + (0.0 if skin is None else skin.inertia)
    out = np.repeat(base[None], len(frames), axis=0)
    if influence is not None and skin is not None:
        shift = np.asarray(influence.com_shift)[frames]
        out[:, :, 1:4] += skin.mass[:, None] * shift
    return out


def coupling_forces(
    quad: Quad, skin: LinkSkin | None, influence: SkinInfluence | None, frames
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
        quad, skin, influence, frames: as of :func:`frame_inertia`.
    """
    frames = np.asarray(frames)
    delta = np.zeros((len(frames), quad.nv))
    if influence is None:
        if skin is not None:
            delta[:, 6:] -= skin.elastic(quad.rest[6:])
        return delta
    total = frame_inertia(quad, skin, influence, frames).reshape(len(frames), -1).T
    function = quad.tree.dynamics_function.map(len(frames))
    motion = [np.asarray(x)[frames].T for x in (influence.q, influence.v, influence.a)]
    own = np.repeat(quad.tree.inertia.reshape(-1, 1), len(frames), axis=1)
    delta = (
        np.asarray(influence.force)[frames]
        + (np.asarray(function(*motion, total)) - np.asarray(function(*motion, own))).T
    )
    if not influence.base:
        delta[:, :6] = 0.0
    if skin is not None:
        delta[:, 6:] -= skin.elastic(motion[0].T[:, 6:])
    return delta


def _inertia_sum(m: np.ndarray, p: np.ndarray) -> np.ndarray:
    I_o = np.sum(m * np.einsum("ni,ni->n", p, p)) * np.eye(3) - (p.T * m) @ p
    upper = I_o[0, 0], I_o[1, 1], I_o[2, 2], I_o[0, 1], I_o[0, 2], I_o[1, 2]
    return np.array([m.sum(), *(m @ p), *upper])
