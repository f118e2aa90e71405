"""A skinned robot in both forms that planning needs, and states to start from.

    robot = load_planned("beetle")
    robot.quad          # the skeleton in Euler coordinates, for space-time programs
    robot.skinned       # skeleton and skin, for step-by-step plans
    robot.link_skin     # the skin as mass on the links

Both forms have the same feet in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from pydrake.multibody.plant import MultibodyPlant

from drakebots.core.checks import check_types
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.fem import SkinState, equilibrium
from drakebots.fem.assembly import worst_tet
from drakebots.fem.solver import Prescribed
from drakebots.model import Model, find_body, skin_path
from drakebots.robots.quads.robot.links_skin import (
    LinkSkin,
    SkinShare,
    joint_stiffness,
    skin_on_links,
    skin_share,
)
from drakebots.robots.quads.robot.quad import Coordinates, Quad, load_quad
from drakebots.skin.file import SkinnedRobot, load_skinned
from drakebots.skin.frame import CoupledState, CoupledStepper, rigid_fit


@dataclass(frozen=True)
class PlannedRobot:
    """A skinned robot in both forms.

    Attributes:
        skinned: skeleton on a quaternion base, with its skin.
        quad: the skeleton in Euler coordinates.

    Raises:
        InvalidInput: if their feet or actuators differ, or there are no patches.
    """

    skinned: SkinnedRobot
    quad: Quad

    def __post_init__(self):
        check_types(self, "robot")
        names = tuple(p.foot for p in self.skinned.skin.patches)
        if not names:
            raise InvalidInput(
                f"{self.name}: its .skin.yaml lists no patches; a plan needs the "
                "patches of each foot"
            )
        if names != self.quad.feet:
            raise InvalidInput(
                f"{self.name}: feet {', '.join(self.quad.feet)} of the skeleton are "
                f"not the patches {', '.join(names)} of the skin"
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
        share, rest = self.share, self.skinned.fem.rest
        found = skin_on_links(
            self.quad, rest, share.node_mass, share.link_of, share.links
        )
        K = joint_stiffness(self.skinned, self.quad.coordinates[6:])
        return replace(found, stiffness=K)

    @property
    def files(self) -> list[Path]:
        """Files that the robot is made of."""
        path = self.skinned.model.path
        return [path, skin_path(path), path.parent / self.skinned.skin.mesh]


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
    found = equilibrium(
        model,
        Prescribed(glue, lambda share: begin + share * (held - begin)),
        gravity=stepper.gravity,
        start=x,
        steps=steps,
    )
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
    rates = link_velocities(
        stepper.plant, stepper.context, share, settled.skin.positions
    )
    skin = SkinState(0.0, settled.skin.positions, rates)
    return CoupledState(settled.q, np.array(v, float), skin)


def link_velocities(
    plant: MultibodyPlant, context, share: SkinShare, positions: np.ndarray
) -> np.ndarray:
    """Velocities of nodes fixed to their links at the context's q, v (N, 3) [m/s]."""
    out = np.zeros_like(positions)
    for k, name in enumerate(share.links):
        body, own = find_body(plant, name), share.link_of == k
        V = plant.EvalBodySpatialVelocityInWorld(context, body)
        arm = positions[own] - plant.EvalBodyPoseInWorld(context, body).translation()
        out[own] = V.translational() + np.cross(V.rotational(), arm)
    return out
