"""A hinge in a glued skin: two links, a hollow capsule, a servo.

The base is fixed to the world, the arm turns about y at the origin; the capsule lies
along z. Every vertex below -cut is glued to the base, every vertex above +cut to the
arm. A servo k (target - angle) - d rate drives the hinge; gravity is off. At rest
the skin's moment M(angle) balances the servo:

    k (target - angle) = M(angle)

A module without a command: `skin.py` and its other modules use it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from capsule_mesh import hollow_capsule
from pydrake.multibody.plant import (
    AddMultibodyPlant,
    MultibodyPlant,
    MultibodyPlantConfig,
)
from pydrake.multibody.tree import RevoluteJoint, SpatialInertia
from pydrake.systems.framework import Diagram, DiagramBuilder

from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh

BASE, ARM = "base", "arm"


@dataclass(frozen=True)
class GluedHinge:
    """The problem.

    Attributes:
        mesh: the skin, along z about the origin.
        cut: vertices with |z| > cut are glued [m].
        material: of the skin; peers take its moduli and density.
        stiffness, damping: of the servo [N m/rad], [N m s/rad].
        target: of the servo [rad].
        dt: [s].
        mass: of the arm [kg].
        radius: of gyration of the arm about the hinge [m].
    """

    mesh: TetMesh
    cut: float
    material: Material
    stiffness: float
    damping: float
    target: float
    dt: float = 5e-3
    mass: float = 0.3
    radius: float = 0.1

    @property
    def glued(self) -> dict[str, np.ndarray]:
        """Vertices on each link."""
        z = self.mesh.vertices[:, 2]
        return {BASE: np.flatnonzero(z < -self.cut), ARM: np.flatnonzero(z > self.cut)}

    @property
    def glue_count(self) -> int:
        """Vertices glued."""
        return sum(map(len, self.glued.values()))


def glued_hinge(
    vertices: int,
    *,
    material: Material,
    radius: float = 0.10,
    length: float = 0.30,
    thickness: float = 0.004,
    cap: float = 30.0,
    **options,
) -> GluedHinge:
    """The hinge in a capsule; about `cap` degrees of both domes are glued."""
    mesh = hollow_capsule(vertices, radius, length, thickness)
    cut = length / 2 + (radius - thickness) * np.cos(np.deg2rad(cap) + 1e-6)
    return GluedHinge(mesh, float(cut), material, **options)


def turned(points: np.ndarray, angle: float) -> np.ndarray:
    """Points turned about y."""
    c, s = np.cos(angle), np.sin(angle)
    return points @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]).T


def silicone_hinge(vertices: int) -> GluedHinge:
    """The hinge of the benchmark: 0.8 MPa, the paper's dt.

    Of 13988 vertices 292 are glued; of the paper's robots 140 to 301.
    """
    return glued_hinge(
        vertices,
        material=Material(youngs_modulus=0.8e6),
        cap=20.0,
        stiffness=8.0,
        damping=0.05,
        target=0.3,
    )


def build_plant(
    problem: GluedHinge, skin: Callable | None = None
) -> tuple[MultibodyPlant, Diagram]:
    """The links in a diagram; `skin`(plant, actuator) adds what a peer needs."""
    builder = DiagramBuilder()
    config = MultibodyPlantConfig(
        time_step=problem.dt, discrete_contact_approximation="sap"
    )
    plant, _ = AddMultibodyPlant(config, builder)
    plant.mutable_gravity_field().set_gravity_vector(np.zeros(3))
    inertia = SpatialInertia.SolidSphereWithMass(
        problem.mass, problem.radius * np.sqrt(2.5)
    )
    base = plant.AddRigidBody(BASE, inertia)
    arm = plant.AddRigidBody(ARM, inertia)
    plant.WeldFrames(plant.world_frame(), base.body_frame())
    joint = plant.AddJoint(
        RevoluteJoint("hinge", base.body_frame(), arm.body_frame(), [0, 1, 0])
    )
    actuator = plant.AddJointActuator("hinge", joint)
    if skin is not None:
        skin(plant, actuator)
    plant.Finalize()
    return plant, builder.Build()
