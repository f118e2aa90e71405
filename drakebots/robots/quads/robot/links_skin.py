"""The skin as the space-time program sees it: weight on links, and its forces.

Every vertex belongs to one link or, by skinning weights, to several; a link's
share of the skin adds to its inertia

    m += sum m_i,   m c += sum m_i p_i,   I_o += sum m_i (|p_i|^2 1 - p_i p_i')

with p_i in the link's frame (paper, section 5.4). From the second iteration on,
the frames' deformed vertices shift the links' centres, and the skin's forces on
the skeleton are known; see :class:`SkinInfluence`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context
from scipy.spatial import cKDTree

from drakebots.core.errors import InvalidInput
from drakebots.fem.assembly import FemModel
from drakebots.model import find_body
from drakebots.robots.quads.robot.quad import Quad
from drakebots.skin.frame import Glue

# What of the skin goes with which link: mass, centre of mass, resultant forces.
#
# The space-time step of the alternation knows the skin by these alone ("Computational
# Design of Skinned Quad-Robots", section 5.1): coupling forces, and the COM that each
# link has with the skin about it.


@dataclass(frozen=True)
class SkinShare:
    """Nodes by link.

    Attributes:
        links: with glue (L,).
        link_of: of each node, a row of links (N,).
        node_mass: (N,) [kg].
    """

    links: tuple[str, ...]
    link_of: np.ndarray
    node_mass: np.ndarray

    @property
    def mass(self) -> np.ndarray:
        """Of the skin with each link (L,) [kg]."""
        return np.bincount(
            self.link_of, weights=self.node_mass, minlength=len(self.links)
        )

    def centres(
        self, plant: MultibodyPlant, context: Context, positions: np.ndarray
    ) -> np.ndarray:
        """COM of each share in its link's frame at the context's q (L, 3) [m]."""
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
    """Each node goes with the link of the glued vertex nearest to it at rest."""
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
    """The share of each link in the skin, at rest.

    Attributes:
        bodies: names of the links.
        mass: of the vertices on each (links,) [kg].
        inertia: rows [m, m c, I_o] to add to the links' (links, 10).
    """

    bodies: tuple[str, ...]
    mass: np.ndarray
    inertia: np.ndarray


@dataclass(frozen=True)
class SkinInfluence:
    """What a frame-by-frame pass tells the next space-time program.

    Attributes:
        force: lambda as generalized forces of the skin on the skeleton (N, nv)
            [N, N m], on Euler coordinates; gravity and inertia of the skin within.
        com_shift: of the skin on each link, from where it is at rest, in the
            link's frame (N, links, 3) [m].
        q, v, a: the motion they were found at (N, nv).
        base: whether `force` also counts in the base's rows. Then momentum is
            that of the deforming skin; without it eq. (7) is taken as printed,
            the skin moving with its links.

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
        N, nv = np.shape(self.force)
        shapes = {"q": (N, nv), "v": (N, nv), "a": (N, nv), "force": (N, nv)}
        for name, shape in shapes.items():
            array = np.asarray(getattr(self, name), float)
            if array.shape != shape or not np.isfinite(array).all():
                raise InvalidInput(
                    f"influence of the skin: {name} needs {shape} finite numbers"
                )
        if np.shape(self.com_shift)[0] != N or not np.isfinite(self.com_shift).all():
            raise InvalidInput(
                f"influence of the skin: com_shift needs ({N}, links, 3) numbers"
            )


def vertices_on_links(
    quad: Quad,
    positions: np.ndarray,
    mass: np.ndarray,
    weights: sp.spmatrix | np.ndarray,
    bodies: tuple[str, ...],
    q: np.ndarray | None = None,
) -> LinkSkin:
    """Mass, centre and inertia that a skin adds to links.

    Args:
        quad: the robot.
        positions: of the vertices, or nodes, in the world (n, 3) [m].
        mass: of each (n,) [kg].
        weights: share of each link in each vertex (n, links); rows sum to 1.
        bodies: the links of the columns.
        q: pose the skin lies at (nv,); rest by default.

    Raises:
        InvalidInput: for shapes that differ or rows that do not sum to 1.
        UnknownName: for a link that is none.
    """
    weights = sp.csr_matrix(weights)
    if weights.shape != (len(positions), len(bodies)) or len(mass) != len(positions):
        raise InvalidInput(
            f"skin on links: weights {weights.shape}, positions {len(positions)} and "
            f"masses {len(mass)} do not fit {len(bodies)} links"
        )
    total = np.asarray(weights.sum(axis=1)).ravel()
    if np.abs(total - 1).max(initial=0.0) > 1e-6:
        worst = int(np.abs(total - 1).argmax())
        raise InvalidInput(
            f"skin on links: weights of vertex {worst} sum to {total[worst]:.4g}, not 1"
        )
    plant = quad.robot.plant
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, quad.rest if q is None else q)
    rows = np.zeros((len(quad.tree.bodies), 10))
    for k, name in enumerate(bodies):
        X_BW: RigidTransform = plant.EvalBodyPoseInWorld(
            context, find_body(plant, name)
        ).inverse()
        column = weights[:, k].tocoo()
        m = column.data * mass[column.row]
        p = X_BW.multiply(np.asarray(positions, float)[column.row].T).T
        rows[_row(quad, name)] += _inertia_sum(m, p)
    return LinkSkin(quad.tree.bodies, rows[:, 0].copy(), rows)


def nearest_links(quad: Quad, positions: np.ndarray, q=None):
    """One link for each vertex, that whose segment to its joints is nearest.

    Returns:
        weights (n, links) of ones, and the links' names.
    """
    plant = quad.robot.plant
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, quad.rest if q is None else q)
    origin, ends = {}, {}
    for name in quad.tree.bodies:
        body = find_body(plant, name)
        X_WB = plant.EvalBodyPoseInWorld(context, body)
        origin[name] = X_WB.translation()
        inertia = body.default_spatial_inertia()
        ends[name] = [X_WB.multiply(inertia.get_com())]
    for sole, p in zip(quad.soles, quad.rest_feet):
        ends[sole.body].append(p)
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        parent = joint.parent_body().name()
        if parent in ends and joint.child_body().name() in origin:
            ends[parent].append(origin[joint.child_body().name()])
    distance = []
    for name in quad.tree.bodies:
        a = origin[name]
        nearest = np.full(len(positions), np.inf)
        for b in ends[name]:
            ab, ap = b - a, positions - a
            t = np.clip(ap @ ab / max(ab @ ab, 1e-12), 0, 1)
            off = np.linalg.norm(ap - t[:, None] * ab, axis=1)
            nearest = np.minimum(nearest, off)
        distance.append(nearest)
    chosen = np.argmin(distance, axis=0)
    n = len(positions)
    weights = sp.csr_matrix(
        (np.ones(n), (np.arange(n), chosen)), (n, len(quad.tree.bodies))
    )
    return weights, quad.tree.bodies


def frame_inertia(
    quad: Quad, skin: LinkSkin | None, influence: SkinInfluence | None, frames
) -> np.ndarray:
    """Inertias of links with skin at some frames (k, links, 10).

    A shift s of a link's skin moves its first moment, m c + m s; second moments
    are those at rest.
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
    """delta of the dynamics block at some frames (k, nv).

    With RNEA_s of the skeleton alone and RNEA of links with skin, at the motion
    (~) the forces lambda were found at,

        delta = lambda + RNEA(~) - RNEA_s(~),

    so that there RNEA - J'[F; T] - B tau = delta is the skeleton with its
    coupling forces, as the paper has it. Away from there the skin's weight and
    inertia follow the motion, and only the rest of lambda stays as it was.
    """
    frames = np.asarray(frames)
    if influence is None:
        return np.zeros((len(frames), quad.nv))
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
    return delta


def _row(quad: Quad, body: str) -> int:
    name = find_body(quad.robot.plant, body).name()
    if name not in quad.tree.bodies:
        raise InvalidInput(f"link {name!r} has no mass of its own and carries no skin")
    return quad.tree.bodies.index(name)


def _inertia_sum(m: np.ndarray, p: np.ndarray) -> np.ndarray:
    I_o = np.sum(m * np.einsum("ni,ni->n", p, p)) * np.eye(3) - (p.T * m) @ p
    upper = I_o[0, 0], I_o[1, 1], I_o[2, 2], I_o[0, 1], I_o[0, 2], I_o[1, 2]
    return np.array([m.sum(), *(m @ p), *upper])
