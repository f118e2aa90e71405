"""A skinned robot in both views that planning needs.

    robot = load_planned("beetle")
    robot.quad          # skeleton on Euler angles, for space-time programs
    robot.skinned       # skeleton and skin, for frames
    robot.link_skin     # the skin as weight on the links

Both have the same feet, in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from pydrake.multibody.plant import MultibodyPlant

from drakebots.errors import InvalidInput
from drakebots.fem.dynamics import SkinState
from drakebots.models import Model
from drakebots.multibody.loops import find_body
from drakebots.robots.quads.coordinates import Coordinates
from drakebots.robots.quads.links_skin import LinkSkin, vertices_on_links
from drakebots.robots.quads.quad import Quad, load_quad
from drakebots.robots.quads.settled import settled_state
from drakebots.robots.quads.skin_share import SkinShare, skin_share
from drakebots.skin.description import skin_path
from drakebots.skin.robot import SkinnedRobot, load_skinned
from drakebots.skin.stepper import CoupledState, CoupledStepper


@dataclass(frozen=True)
class PlannedRobot:
    """One robot in both views.

    Attributes:
        skinned: skeleton on a quaternion base, with its skin.
        quad: the skeleton on Euler angles.
    """

    skinned: SkinnedRobot
    quad: Quad

    def __post_init__(self):
        names = tuple(p.foot for p in self.skinned.skin.patches)
        if not names:
            raise InvalidInput(
                f"{self.name}: its .skin.yaml lists no patches; a plan needs contact "
                "points of each foot"
            )
        if names != self.quad.feet:
            raise InvalidInput(
                f"{self.name}: feet {', '.join(self.quad.feet)} of the skeleton are "
                f"not the patches {', '.join(names)} of the skin"
            )
        # Their torques must be the same ones.
        if self.skinned.joints != self.quad.joints:
            raise InvalidInput(
                f"{self.name}: actuators are not in the order of the joints; write "
                "the joints with effort limits in the SDF in one order"
            )

    @property
    def name(self) -> str:
        """Of the model."""
        return self.skinned.model.name

    @property
    def mass(self) -> float:
        """Of skeleton and skin [kg]."""
        return self.skinned.skeleton_mass + self.skinned.skin_mass

    @cached_property
    def coordinates(self) -> Coordinates:
        """Conversions between the two views."""
        return Coordinates(self.quad)

    @cached_property
    def share(self) -> SkinShare:
        """Which link each node goes with."""
        return skin_share(self.skinned.fem, self.skinned.glue)

    @cached_property
    def link_skin(self) -> LinkSkin:
        """The skin at rest as weight on the links (section 5.4)."""
        share = self.share
        n = len(share.link_of)
        own = (np.ones(n), (np.arange(n), share.link_of))
        weights = sp.csr_matrix(own, (n, len(share.links)))
        return vertices_on_links(
            self.quad, self.skinned.fem.rest, share.node_mass, weights, share.links
        )

    @property
    def files(self) -> list[Path]:
        """That it is made of."""
        path = self.skinned.model.path
        return [path, skin_path(path), path.parent / self.skinned.skin.mesh]


def load_planned(name_or_path: str | Path | Model) -> PlannedRobot:
    """A robot from its skeleton's file with a `.skin.yaml` beside it.

    Raises:
        InvalidInput: without feet or actuators.
        UnknownName, FileProblem, ModelProblem: as from `load_skinned`.
    """
    skinned = load_skinned(name_or_path)
    return PlannedRobot(skinned, load_quad(skinned.model))


def moving_state(
    stepper: CoupledStepper, share: SkinShare, q: np.ndarray, v: np.ndarray
) -> CoupledState:
    """Skeleton at q and v, the skin settled under its weight and moving with its links.

    Args:
        stepper: of the robot.
        share: which link each node goes with.
        q, v: of the skeleton (nq,), (nv,).

    Raises:
        InvalidInput: for sizes that do not fit.
        NoSolution: when the skin finds no equilibrium.
    """
    settled = settled_state(stepper, q)
    stepper.pose(settled.q, v)
    rates = link_velocities(
        stepper.plant, stepper.context, share, settled.skin.positions
    )
    skin = SkinState(0.0, settled.skin.positions, rates)
    return CoupledState(settled.q, np.array(v, float), skin)


def link_velocities(
    plant: MultibodyPlant, context, share: SkinShare, positions: np.ndarray
) -> np.ndarray:
    """Velocities (N, 3) [m/s] of nodes fixed to their links, at the context's q, v."""
    out = np.zeros_like(positions)
    for k, name in enumerate(share.links):
        body, own = find_body(plant, name), share.link_of == k
        V = plant.EvalBodySpatialVelocityInWorld(context, body)
        arm = positions[own] - plant.EvalBodyPoseInWorld(context, body).translation()
        out[own] = V.translational() + np.cross(V.rotational(), arm)
    return out
