"""Actuators of a walk, in a lattice's plant.

Springs of commanded length between two nodes of the lattice: Drake's distance
constraint with stiffness k and damping d pulls along the line through its two points
with

    f = -k (length - commanded) - d (dlength/dt)

and SAP integrates it implicitly. The commanded length is a parameter of the plant's
Context, which no other system of a diagram may write: it is set between two steps
(:mod:`drakebots.robots.voxels.simulate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pydrake.multibody.plant import (
    DistanceConstraintParams,
)
from pydrake.multibody.tree import MultibodyConstraintId, RigidBody
from pydrake.systems.framework import Context

from drakebots.core.checks import check_value, non_negative, positive
from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom import Control
from drakebots.robots.voxels.model import OctahedraPlant


class _Rod(NamedTuple):
    """One distance constraint between points P of body A and Q of body B."""

    id: MultibodyConstraintId
    body_A: RigidBody
    p_AP: np.ndarray
    body_B: RigidBody
    p_BQ: np.ndarray


class Actuators:
    """The actuators of a lattice, added to its plant before Finalize.

    Args:
        built: the lattice.
        controls: actuators, each between its node and the node one pitch further.
        stiffness: stiffness of each actuator [N/m].
        damping: damping of each actuator [N s/m].

    Raises:
        InvalidInput: for a node that is not in the lattice, two nodes of one voxel,
            or a stiffness or damping out of range.
    """

    def __init__(
        self,
        built: OctahedraPlant,
        controls: Sequence[Control],
        *,
        stiffness: float = 5e4,
        damping: float = 50.0,
    ):
        check_value("an actuator's stiffness", stiffness, positive("N/m"))
        check_value("an actuator's damping", damping, non_negative("N s/m"))
        self.built, self.stiffness, self.damping = built, stiffness, damping
        self.rods, cut = [], built.octahedra
        for control in controls:
            ends = []
            for place in (control.node, control.other):
                node = cut.lattice.node(place)
                voxel, _ = cut.lattice.voxel_of(node)
                ends += [built.bodies[voxel], cut.in_body(voxel, node)]
            if ends[0] is ends[2]:
                raise InvalidInput(
                    f"actuator {control.name}: both nodes belong to one rigid voxel; "
                    "put it between two voxels"
                )
            drive = self.rest, stiffness, damping
            key = built.plant.AddDistanceConstraint(*ends, *drive)
            self.rods.append(_Rod(key, *ends))

    @property
    def rest(self) -> float:
        """The length of every actuator at rest, the pitch [m]."""
        return float(self.built.octahedra.lattice.pitch)

    def command(self, context: Context, lengths) -> None:
        """Sets the commanded lengths (M,) [m] in the plant's Context."""
        for rod, length in zip(self.rods, lengths, strict=True):
            parameters = DistanceConstraintParams(
                rod.body_A.index(),
                rod.p_AP,
                rod.body_B.index(),
                rod.p_BQ,
                float(length),
                self.stiffness,
                self.damping,
            )
            self.built.plant.SetDistanceConstraintParams(context, rod.id, parameters)

    def lengths(self, context: Context) -> tuple[np.ndarray, np.ndarray]:
        """Lengths (M,) [m] and their rates (M,) [m/s]."""
        found = np.zeros((2, len(self.rods)))
        for k, rod in enumerate(self.rods):
            ends = []
            for body, p in ((rod.body_A, rod.p_AP), (rod.body_B, rod.p_BQ)):
                X_WB = body.EvalPoseInWorld(context)
                arm = X_WB.rotation() @ p
                V_WP = body.EvalSpatialVelocityInWorld(context).Shift(arm)
                v = V_WP.translational()
                ends.append((X_WB.translation() + arm, v))
            line, rate = np.subtract(ends[1], ends[0])
            length = np.linalg.norm(line)
            found[:, k] = length, line @ rate / length
        return found[0], found[1]

    def forces(self, commanded, length, rate) -> np.ndarray:
        """Forces (M,) [N] at these lengths; > 0 pushes the nodes apart."""
        return self.stiffness * (np.asarray(commanded) - length) - self.damping * rate
