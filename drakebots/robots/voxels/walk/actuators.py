"""Linear actuators between two nodes of a lattice, as springs of commanded length.

Drake's distance constraint with a stiffness k and a damping d pulls along the line
of its two points with

    f = -k (length - commanded) - d (dlength/dt)

and SAP integrates it implicitly. The commanded length is a parameter of the plant's
Context, which no other system of a diagram may write: :class:`ActuatorLengths` does
so from the Simulator's monitor, between two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.multibody.math import SpatialForce
from pydrake.multibody.plant import (
    DistanceConstraintParams,
    ExternallyAppliedSpatialForce,
    MultibodyPlant,
)
from pydrake.multibody.tree import JacobianWrtVariable, MultibodyConstraintId
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom import Control
from drakebots.robots.voxels.model import FootSphere, OctahedraPlant

# Feet that slide easier forward than backward, with Drake's point contact.
#
# Drake's friction is the same in all directions: the force f_t on a foot lies in a
# disc of radius mu N. A foot with mu_f against sliding forward and mu_b against
# sliding backward has its disc shifted along the forward direction d,
#
#     |f_t - b N d| <= m N,    m = (mu_b + mu_f)/2,   b = (mu_b - mu_f)/2
#
# Sliding forward the ground holds it by (m - b) N = mu_f N, backward by mu_b N, and
# any slip v dissipates: f_t . v <= -mu_f N |v|. Sliding sideways it is pushed forward
# as well, as on slanted bristles. Drake does the disc of m; the shift b N d is an
# applied force at the foot, with N of the step before (a lag of one step). The law
# is ours; the paper only says that feet were sticky or printed.


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


@dataclass(frozen=True, eq=False)
class _Rod:
    id: MultibodyConstraintId
    body_A: object
    p_AP: np.ndarray
    body_B: object
    p_BQ: np.ndarray


@dataclass(frozen=True, eq=False)
class Actuators:
    """Actuators in a plant.

    Attributes:
        built: the lattice they pull on.
        controls: between which nodes.
        rods: as the plant knows them.
        stiffness, damping: of each [N/m], [N s/m].
    """

    built: OctahedraPlant
    controls: tuple[Control, ...]
    rods: tuple[_Rod, ...]
    stiffness: float
    damping: float

    @property
    def rest(self) -> float:
        """Length of all at rest [m]: the pitch."""
        return self.built.octahedra.lattice.pitch

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
        plant = self.built.plant
        world = plant.world_frame()
        v = plant.GetVelocities(context)
        found = np.zeros((2, len(self.rods)))
        for k, rod in enumerate(self.rods):
            ends, rates = [], []
            for body, p in ((rod.body_A, rod.p_AP), (rod.body_B, rod.p_BQ)):
                frame = body.body_frame()
                ends.append(plant.CalcPointsPositions(context, frame, p, world).ravel())
                J = plant.CalcJacobianTranslationalVelocity(
                    context, JacobianWrtVariable.kV, frame, p, world, world
                )
                rates.append(J @ v)
            line = ends[1] - ends[0]
            found[0, k] = np.linalg.norm(line)
            found[1, k] = line @ (rates[1] - rates[0]) / found[0, k]
        return found[0], found[1]

    def forces(self, context: Context, commanded) -> np.ndarray:
        """Of the actuators (M,) [N], > 0 where they push their nodes apart."""
        length, rate = self.lengths(context)
        return self.stiffness * (np.asarray(commanded) - length) - self.damping * rate


def add_actuators(
    built: OctahedraPlant,
    controls: Sequence[Control],
    *,
    stiffness: float = 5e4,
    damping: float = 50.0,
) -> Actuators:
    """Adds actuators to a lattice's plant before Finalize.

    Args:
        built: the lattice.
        controls: each between its node and the one a pitch further.
        stiffness, damping: of each [N/m], [N s/m].

    Raises:
        InvalidInput: for a node that is not there, both on one voxel, or numbers
            that are not > 0 (stiffness) or >= 0 (damping).
    """
    if not (np.isfinite(stiffness) and stiffness > 0):
        raise InvalidInput(f"an actuator's stiffness must be > 0, got {stiffness}")
    if not (np.isfinite(damping) and damping >= 0):
        raise InvalidInput(f"an actuator's damping must be >= 0, got {damping}")
    cut, rods = built.octahedra, []
    for control in controls:
        ends = []
        for place in (control.node, control.other):
            node = cut.lattice.node(place)
            voxel, _ = cut.lattice.voxel_of(node)
            ends.append((built.bodies[voxel], cut.in_body(voxel, node)))
        (A, p_A), (B, p_B) = ends
        if A is B:
            raise InvalidInput(
                f"actuator {control.name}: both nodes are of one stiff voxel; "
                "put it between two voxels"
            )
        length = float(cut.lattice.pitch)
        key = built.plant.AddDistanceConstraint(
            A, p_A, B, p_B, length, stiffness, damping
        )
        rods.append(_Rod(key, A, p_A, B, p_B))
    return Actuators(built, tuple(controls), tuple(rods), stiffness, damping)


class ActuatorLengths:
    """Plays lengths over time into the plant's Context, step by step.

    Args:
        actuators: whose lengths.
        wish: time [s] -> displacements u (M,) [m] of the lower nodes along the
            push axes; the length is then rest - 2 u.

    Attributes:
        commanded: the lengths in force (M,) [m].
    """

    def __init__(self, actuators: Actuators, wish: Callable[[float], np.ndarray]):
        self.actuators, self._wish = actuators, wish
        self.commanded = np.full(len(actuators.rods), actuators.rest)

    def set_for(self, context: Context, time: float) -> None:
        """Commands what is wished at a time [s], usually the next step's end."""
        self.commanded = self.actuators.rest - 2 * np.asarray(self._wish(time))
        self.actuators.command(context, self.commanded)


__all__ = ["ActuatorLengths", "Actuators", "add_actuators"]
