"""Ground under a skinned robot's feet that is not flat: a slope, and a box on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from drakebots.skin.file import Patches
from drakebots.skin.frame import PatchContact, PatchLaw, patch_points
from drakebots.trajopt import Flat, Step, Terrain


@dataclass(frozen=True)
class BoxOn(Terrain):
    """A box across the way, on any ground.

    Attributes:
        ground: what it lies on.
        box: the box on a floor z = 0, turned with the ground under its middle.
    """

    ground: Terrain
    box: Step

    def distance(self, p: ca.SX) -> ca.SX:
        # The box in the frame of the ground, whose height there is its distance.
        _, t1, t2 = self.ground.frame(p)
        local = ca.vertcat(ca.dot(t1, p), ca.dot(t2, p), self.ground.distance(p))
        return self.box.distance(local)

    def scaled(self, length_unit: float) -> BoxOn:
        return BoxOn(self.ground.scaled(length_unit), self.box.scaled(length_unit))


@dataclass(frozen=True)
class TerrainContact(PatchContact):
    """Compliant ground of any shape under the contact points of links.

    A point has the depth -phi(p) and rows along the tangents and the normal of the
    nearest ground, so forces of a step are in these axes: on flat ground, the world's.

    Attributes:
        terrain: the ground's shape; `height` is not used.
    """

    terrain: Terrain = field(default_factory=Flat)

    def law(self, plant, context, patches: Sequence[Patches], dt: float) -> PatchLaw:
        """The law of the points at the context's q, without friction."""
        p, J = patch_points(plant, context, patches)
        phi, n = self.terrain.evaluate(p)
        n /= np.linalg.norm(n, axis=1, keepdims=True)
        t1 = np.cross([0.0, 1.0, 0.0], n)
        t1 /= np.linalg.norm(t1, axis=1, keepdims=True)
        R = np.stack([t1, np.cross(n, t1), n], axis=1)
        rows = np.einsum("pij,pjk->pik", R, J.reshape(len(p), 3, -1))
        damping = np.where(phi < 0, self.damping / dt, 0.0)
        return PatchLaw(
            rows.reshape(J.shape),
            -self.stiffness * phi,
            self.stiffness + damping,
            np.zeros(len(p)),
            self,
        )
