"""Feet that slide easier forward than backward, with Drake's point contact.

Drake's friction is the same in all directions: the force f_t on a foot lies in a
disc of radius mu N. A foot with mu_f against sliding forward and mu_b against
sliding backward has its disc shifted along the forward direction d,

    |f_t - b N d| <= m N,    m = (mu_b + mu_f)/2,   b = (mu_b - mu_f)/2

Sliding forward the ground holds it by (m - b) N = mu_f N, backward by mu_b N, and
any slip v dissipates: f_t . v <= -mu_f N |v|. Sliding sideways it is pushed forward
as well, as on slanted bristles. Drake does the disc of m; the shift b N d is an
applied force at the foot, with N of the step before (a lag of one step). The law
is ours; the paper only says that feet were sticky or printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.multibody.math import SpatialForce
from pydrake.multibody.plant import ExternallyAppliedSpatialForce, MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.errors import InvalidInput
from drakebots.robots.voxels.octahedra_plant import OctahedraPlant
from drakebots.robots.voxels.octahedra_sdf import FootSphere


@dataclass(frozen=True)
class FeetContact:
    """The feet's contacts with the ground in a plant, and their shifted friction.

    Attributes:
        plant: with the lattice's SDF in it, finalized.
        feet: the spheres.
        bias: b of each foot (F,).
        forward: d in the carrying body's frame at rest (3,); it turns with it.
    """

    plant: MultibodyPlant
    feet: tuple[FootSphere, ...]
    bodies: tuple
    centres: np.ndarray
    geometries: dict
    bias: np.ndarray
    forward: np.ndarray

    def forces(self, context: Context) -> np.ndarray:
        """Of the ground on the feet without the shift (F, 3) [N], in the world."""
        port = self.plant.get_contact_results_output_port()
        results = port.Eval(context)
        found = np.zeros((len(self.feet), 3))
        for k in range(results.num_point_pair_contacts()):
            info = results.point_pair_contact_info(k)
            pair = info.point_pair()
            # contact_force acts on body B.
            for key, sign in ((pair.id_A, -1.0), (pair.id_B, 1.0)):
                foot = self.geometries.get(key)
                if foot is not None:
                    found[foot] += sign * info.contact_force()
        return found

    def shift(self, context: Context, normal: np.ndarray) -> np.ndarray:
        """b N d of each foot (F, 3) [N], along the ground."""
        shifts = np.zeros((len(self.feet), 3))
        for k in np.flatnonzero(self.bias):
            R = self.bodies[k].EvalPoseInWorld(context).rotation().matrix()
            d = R @ self.forward
            d[2] = 0.0
            shifts[k] = self.bias[k] * normal[k] * d / max(np.linalg.norm(d), 1e-9)
        return shifts

    def apply(self, context: Context, shifts: np.ndarray) -> None:
        """Applies forces (F, 3) [N] at the feet's lowest points from now on."""
        applied = []
        for k in np.flatnonzero(self.bias):
            R = self.bodies[k].EvalPoseInWorld(context).rotation().matrix()
            down = R.T @ np.array([0.0, 0.0, -self.feet[k].radius])
            force = ExternallyAppliedSpatialForce()
            force.body_index = self.bodies[k].index()
            force.p_BoBq_B = self.centres[k] + down
            force.F_Bq_W = SpatialForce(np.zeros(3), shifts[k])
            applied.append(force)
        port = self.plant.get_applied_spatial_force_input_port()
        port.FixValue(context, applied)


def find_feet(
    built: OctahedraPlant, feet: Sequence[FootSphere], bias, forward, scene_graph
) -> FeetContact:
    """The feet in a finalized plant that has read their SDF.

    Args:
        built: the lattice in the plant.
        feet: the spheres, whose friction is m.
        bias: b of each (F,).
        forward: d (3,) at rest.
        scene_graph: the plant's.
    """
    plant, inspector = built.plant, scene_graph.model_inspector()
    bias = np.asarray(bias, float)
    if bias.shape != (len(feet),) or not np.isfinite(bias).all():
        raise InvalidInput(f"bias must be one finite number per foot, got {bias}")
    names = {foot.name: k for k, foot in enumerate(feet)}
    geometries, bodies, centres = {}, [], []
    for foot in feet:
        voxel, p = foot.place(built.octahedra)
        bodies.append(built.bodies[voxel])
        centres.append(p)
        for key in plant.GetCollisionGeometriesForBody(built.bodies[voxel]):
            name = inspector.GetName(key).split("::")[-1]
            if name in names:
                geometries[key] = names[name]
    return FeetContact(
        plant,
        tuple(feet),
        tuple(bodies),
        np.array(centres),
        geometries,
        bias,
        np.asarray(forward, float),
    )


__all__ = ["FeetContact", "find_feet"]
