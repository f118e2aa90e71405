"""A small floating quad in a soft box, for the planner's tests.

Torso, and on each leg a shoulder (about x), a knee and an ankle (about y); soles of
five patches on z = 0. The skin is a box about the torso whose outer corners hold on
to the upper legs, so that a swinging leg pulls on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import FixedOffsetFrame, RevoluteJoint, SpatialInertia

from drakebots.fem.assembly import FemModel, build_model
from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh, box_mesh, write_mesh
from drakebots.robots.quads.robot import Feet, make_feet
from drakebots.skin.coupled import CoupledStepper, Glue, glue_vertices
from drakebots.skin.file import SkinDescription, write_skin
from drakebots.skin.file.description import Patches
from tests.helpers.quad_skeletons import upright_sdf

LEGS = {"fl": (1, 1), "fr": (1, -1), "rl": (-1, 1), "rr": (-1, -1)}
DT = 5e-3
TORSO = np.array([0.24, 0.14, 0.04])
BOX = np.array([0.28, 0.20, 0.06])
UPPER, LOWER, ANKLE = 0.07, 0.06, 0.02
HEIGHT = UPPER + LOWER + ANKLE
RUBBER = Material(youngs_modulus=1e5, poisson_ratio=0.4, density=300.0)


@dataclass
class SkinnedQuad:
    """Everything a step needs."""

    plant: MultibodyPlant
    context: object
    fem: FemModel
    glue: Glue
    feet: Feet
    q0: np.ndarray
    limits: np.ndarray = field(default_factory=lambda: np.full(12, 2.0))

    def stepper(self, dt=DT, **options) -> CoupledStepper:
        context = self.plant.CreateDefaultContext()
        self.plant.SetPositions(context, self.q0)
        options = {"context": context, "threads": 1} | options
        return CoupledStepper(self.plant, self.fem, self.glue, dt, **options)

    @property
    def mass(self) -> float:
        own = self.plant.CalcTotalMass(self.plant.CreateDefaultContext())
        return own + float(self.fem.node_mass.sum())


def _joint(plant, name, parent, p, child, axis):
    frame = plant.AddFrame(
        FixedOffsetFrame(name, parent.body_frame(), RigidTransform(p))
    )
    joint = plant.AddJoint(
        RevoluteJoint(name, frame, child.body_frame(), axis, damping=0.01)
    )
    plant.AddJointActuator(name, joint)


def skinned_quad(cells=(8, 6, 2), material=RUBBER, spread=0.09) -> SkinnedQuad:
    plant = MultibodyPlant(0.0)
    torso = plant.AddRigidBody("torso", SpatialInertia.SolidBoxWithMass(1.2, *TORSO))
    links = {}
    for leg, (sx, sy) in LEGS.items():
        hip = np.array([0.11 * sx, spread * sy, 0])
        for part, size, m in (
            ("upper", UPPER, 0.15),
            ("lower", LOWER, 0.12),
            ("foot", ANKLE, 0.1),
        ):
            inertia = SpatialInertia.SolidBoxWithMass(m, 0.03, 0.03, size)
            links[leg, part] = plant.AddRigidBody(
                f"{leg}_{part}", inertia.Shift([0, 0, size / 2])
            )
        x, y = [1, 0, 0], [0, 1, 0]
        upper, lower, foot = (links[leg, p] for p in ("upper", "lower", "foot"))
        _joint(plant, f"{leg}_shoulder", torso, hip, upper, x)
        _joint(plant, f"{leg}_knee", upper, [0, 0, -UPPER], lower, y)
        _joint(plant, f"{leg}_ankle", lower, [0, 0, -LOWER], foot, y)
    plant.Finalize()
    context = plant.CreateDefaultContext()
    plant.SetFreeBodyPose(context, torso, RigidTransform([0, 0, HEIGHT]))
    box = box_mesh(tuple(BOX), cells)
    vertices = box.vertices - BOX / 2 + [0, 0, HEIGHT]
    fem = build_model(TetMesh(vertices, box.tets), material)
    inside = np.abs(vertices - [0, 0, HEIGHT])
    on = {"torso": np.flatnonzero((inside[:, :2] < [0.08, 0.05]).all(axis=1))}
    for leg, (sx, sy) in LEGS.items():
        near = vertices - [0.11 * sx, spread * sy, HEIGHT]
        on[f"{leg}_upper"] = np.flatnonzero(
            (np.abs(near[:, :2]) < 0.032).all(axis=1) & (near[:, 2] < -0.02)
        )
    glue = glue_vertices(vertices, plant, context, on)
    points = [[0, 0, -ANKLE]]
    points += [[0.015 * x, 0.012 * y, -ANKLE] for x in (1, -1) for y in (1, -1)]
    patches = [Patches(leg, f"{leg}_foot", points) for leg in LEGS]
    feet = make_feet(plant, context, patches)
    return SkinnedQuad(
        plant, context, fem, glue, feet, plant.GetPositions(context).copy()
    )


def skinned_files(folder) -> Path:
    """An upright robot of 16 joints in a soft box, as files; its SDF."""
    path = Path(folder) / "boxed.sdf"
    path.write_text(upright_sdf())
    size, centre = np.array([0.36, 0.22, 0.14]), np.array([0, 0, 0.32])
    box = box_mesh(tuple(size), (6, 4, 2))
    vertices = box.vertices - size / 2 + centre
    write_mesh(path.with_name("skin.vtu"), TetMesh(vertices, box.tets))
    inside = np.abs(vertices - centre)
    glue = {"torso": np.flatnonzero((inside[:, :2] < [0.13, 0.06]).all(axis=1))}
    for leg, (sx, sy) in LEGS.items():
        near = np.abs(vertices[:, :2] - [0.17 * sx, 0.1 * sy]) < 0.02
        low = vertices[:, 2] < 0.27
        glue[f"{leg}_upper"] = np.flatnonzero(near.all(axis=1) & low)
    grid = np.array([[0, 0], [1, 1], [-1, 1], [-1, -1], [1, -1]]) * [0.025, 0.02]
    points = np.hstack([grid, np.full((5, 1), -0.06)])
    skin = SkinDescription(
        mesh="skin.vtu",
        glue={name: tuple(map(int, rows)) for name, rows in glue.items()},
        material=Material(youngs_modulus=5e4, poisson_ratio=0.4, density=150.0),
        patches=tuple(Patches(leg, f"{leg}_foot", points) for leg in LEGS),
    )
    write_skin(path.with_name("boxed.skin.yaml"), skin)
    return path
