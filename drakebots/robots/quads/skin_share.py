"""What of the skin goes with which link: mass, centre of mass, resultant forces.

The space-time step of the alternation knows the skin by these alone ("Computational
Design of Skinned Quad-Robots", section 5.1): coupling forces, and the COM that each
link has with the skin about it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context
from scipy.spatial import cKDTree

from drakebots.fem.assembly import FemModel
from drakebots.multibody.loops import find_body
from drakebots.skin.glue import Glue


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
