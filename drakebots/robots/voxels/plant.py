"""Additions of a walk to a lattice's plant: actuators, feet with directional friction.

**Actuators** are springs of commanded length between two nodes of the lattice. Drake's
distance constraint with stiffness k and damping d pulls along the line through its two
points with

    f = -k (length - commanded) - d (dlength/dt)

and SAP integrates it implicitly. The commanded length is a parameter of the plant's
Context, which no other system of a diagram may write: the Simulator's monitor sets it
between two steps (:mod:`drakebots.robots.voxels.simulate`).

**Feet** may slide more easily forward than backward. Drake's friction is isotropic: the
force f_t on a foot lies in a disc of radius mu N. For a foot with mu_f against sliding
forward and mu_b against sliding backward the disc is shifted along the forward
direction d,

    |f_t - b N d| <= m N,    m = (mu_b + mu_f)/2,   b = (mu_b - mu_f)/2

Sliding forward, the ground resists with (m - b) N = mu_f N; sliding backward, with
mu_b N; and any slip v dissipates: f_t . v <= -mu_f N |v|. A foot that slides sideways
is also pushed forward, as on slanted bristles. Drake provides the disc of radius m N;
the shift b N d is a force applied to the foot, with N of the step before (a lag of one
step). The law is ours; the paper only says that feet were sticky or printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pydrake.geometry import SceneGraph
from pydrake.multibody.math import SpatialForce
from pydrake.multibody.plant import (
    DistanceConstraintParams,
    ExternallyAppliedSpatialForce,
)
from pydrake.multibody.tree import MultibodyConstraintId, RigidBody
from pydrake.systems.framework import Context

from drakebots.core.checks import array, check_value, non_negative, positive
from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom import Control
from drakebots.multibody import forces_on_soles
from drakebots.robots.voxels.model import Foot, OctahedraPlant

# --- actuators --------------------------------------------------------------


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


# --- feet -------------------------------------------------------------------


class FeetContact:
    """The feet's contacts with the ground, and their directional friction.

    Args:
        built: the lattice in a finalized plant that has read the feet's SDF.
        feet: the spheres; their friction is m.
        bias: coefficient b of each foot (F,).
        forward: direction d in the carrying body's frame at rest (3,); it turns with
            the body.
        scene_graph: the plant's.

    Attributes:
        geometries: row of the foot by the identifier of its collision geometry.

    Raises:
        InvalidInput: when `bias` is not one finite number for each foot.
    """

    def __init__(
        self,
        built: OctahedraPlant,
        feet: Sequence[Foot],
        bias,
        forward,
        scene_graph: SceneGraph,
    ):
        inspector = scene_graph.model_inspector()
        self.plant, self.feet = built.plant, tuple(feet)
        one_each = array((len(feet),))
        self.bias = check_value("bias, one number per foot,", bias, one_each)
        self._forward = np.asarray(forward, float)
        names = {foot.name: k for k, foot in enumerate(feet)}
        self.geometries, self._bodies, self._centres = {}, [], []
        for foot in feet:
            voxel, p = foot.place(built.octahedra)
            body = built.bodies[voxel]
            self._bodies.append(body)
            self._centres.append(p)
            for key in built.plant.GetCollisionGeometriesForBody(body):
                name = inspector.GetName(key).split("::")[-1]
                if name in names:
                    self.geometries[key] = names[name]

    def forces(self, context: Context) -> np.ndarray:
        """Forces of the ground on the feet in the world (F, 3) [N], without shift."""
        return forces_on_soles(self.plant, context, self.geometries, len(self.feet))

    def shift(self, context: Context, normal: np.ndarray) -> np.ndarray:
        """The shift b N d of each foot along the ground (F, 3) [N].

        Args:
            context: the plant's.
            normal: normal force N on each foot (F,) [N].
        """
        shifts = np.zeros((len(self.feet), 3))
        for k in np.flatnonzero(self.bias):
            R = self._bodies[k].EvalPoseInWorld(context).rotation().matrix()
            d = R @ self._forward
            d[2] = 0.0
            shifts[k] = self.bias[k] * normal[k] * d / max(np.linalg.norm(d), 1e-9)
        return shifts

    def apply(self, context: Context, shifts: np.ndarray) -> None:
        """Applies forces (F, 3) [N] at the feet's lowest points from now on."""
        applied = []
        for k in np.flatnonzero(self.bias):
            R = self._bodies[k].EvalPoseInWorld(context).rotation().matrix()
            down = R.T @ np.array([0.0, 0.0, -self.feet[k].radius])
            force = ExternallyAppliedSpatialForce()
            force.body_index = self._bodies[k].index()
            force.p_BoBq_B = self._centres[k] + down
            force.F_Bq_W = SpatialForce(np.zeros(3), shifts[k])
            applied.append(force)
        port = self.plant.get_applied_spatial_force_input_port()
        port.FixValue(context, applied)
