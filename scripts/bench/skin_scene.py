"""A ball on a pad of skin: momentum, Drake's deformables beside it, and what it costs.

python scripts/bench/skin_scene.py            # some minutes
python scripts/bench/skin_scene.py --quick    # coarse pads

A ball drops on a pad whose lowest vertices are held, by `add_skin`'s contact with other
bodies and by Drake's deformables with the same mesh, silicone and time step, to rest.
Both materials are neo-Hookean; friction is the same. Drake's contact is rigid where
ours has springs, so the depths differ by what these give way, too.

The cost is a step of a pad of 14 thousand vertices with about 500 of them under a plate
that moves, beside the same step without: processor time, means of turns, as some factor
the skin anew. A solid pad costs several times as much as a skin of as many vertices.

The momentum is that of ball, plate and pad, in terms of the ball's. Depths and forces
are compared at rest, and where they are largest in the drop, the force as a mean of
10 ms. Both engines' time steps are of first order there: with steps of 2 ms the largest
forces differ by 5.4 %, with 1 ms by 0.9 %, with 0.5 ms by 1.8 %.

JSON: momentum_defect, drake_scene_depth_difference, drake_scene_force_difference,
drake_scene_largest_depth_difference, drake_scene_largest_force_difference, step_s,
contact_overhead_ratio, contact_vertices, vertices.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import meshio
import numpy as np
from measurement import Measurement, figure
from pydrake.geometry import (
    AddContactMaterial,
    AddRigidHydroelasticProperties,
    Box,
    GeometryInstance,
    Mesh,
    ProximityProperties,
    Shape,
    Sphere,
)
from pydrake.math import RigidTransform
from pydrake.multibody.fem import DeformableBodyConfig, MaterialModel
from pydrake.multibody.plant import (
    AddMultibodyPlantSceneGraph,
    CoulombFriction,
    MultibodyPlant,
)
from pydrake.multibody.tree import PrismaticJoint, RigidBody, SpatialInertia
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots.cli.output import print_rows
from drakebots.core.threads import calm_threads
from drakebots.core.units import GRAVITY
from drakebots.fem.assembly import build_model
from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh, box_mesh
from drakebots.skin.coupled import CoupledStepper, SkinGround, glue_vertices, scene_of

DT, MU, G = 1e-3, 0.5, GRAVITY
WINDOW = round(10e-3 / DT)
SIZE = (0.1, 0.1, 0.06)
PAD = Material(
    youngs_modulus=5e4, poisson_ratio=0.4, density=1000.0, stiffness_damping=0.01
)
RADIUS, MASS, DROP = 0.03, 0.2, 0.01
SPRINGS = SkinGround(stiffness=5e3, damping=0.0, friction=MU)
"""Of the vertices: they give way by a hundredth of the depth."""

SETTLE = round(80e-3 / DT)
"""Steps after which the plate lies still; before, some steps are solved twice."""


def pad_mesh(cells: Sequence[int], power: float = 1.0) -> TetMesh:
    """A pad with its top at 0; a larger power grades it towards the middle."""
    mesh = box_mesh((2.0, 2.0, 1.0), cells)
    x = mesh.vertices - [1, 1, 1]
    half = [SIZE[0] / 2, SIZE[1] / 2, SIZE[2]]
    return TetMesh(half * np.sign(x) * np.abs(x) ** power, mesh.tets)


def add_ball(plant: MultibodyPlant, shape: Shape | None = None) -> RigidBody:
    """The ball, or another shape of its mass; rigid for Drake's contact."""
    inertia = SpatialInertia.SolidSphereWithMass(MASS, RADIUS)
    ball = plant.AddRigidBody("ball", inertia)
    rigid = ProximityProperties()
    AddRigidHydroelasticProperties(RADIUS / 10, rigid)
    AddContactMaterial(friction=CoulombFriction(MU, MU), properties=rigid)
    shape = Sphere(RADIUS) if shape is None else shape
    plant.RegisterCollisionGeometry(ball, RigidTransform(), shape, "ball", rigid)
    return ball


DIFFERENCES = {
    "depth_difference": "rest_depth_mm",
    "force_difference": "rest_force_N",
    "largest_depth_difference": "depth_mm",
    "largest_force_difference": "force_N",
}


class Ours:
    """The pad on a plate that slides along z, in a step that holds all bodies.

    Args:
        mesh: the pad.
        held: damping of the plate [N s/m].
        gravity: acceleration downwards [m/s^2].
        shape: shape in place of the ball.
        every: of the lowest vertices, each so many-th is glued to the plate.
    """

    def __init__(self, mesh: TetMesh, *, held=1e9, gravity=G, shape=None, every=1):
        builder = DiagramBuilder()
        self.plant, graph = AddMultibodyPlantSceneGraph(builder, 1e-3)
        plant = self.plant
        plant.mutable_gravity_field().set_gravity_vector([0, 0, -gravity])
        inertia = SpatialInertia.SolidBoxWithMass(1, 0.1, 0.1, 0.01)
        plate = plant.AddRigidBody("plate", inertia)
        frames, z = (plant.world_frame(), plate.body_frame()), [0, 0, 1]
        lift = PrismaticJoint("lift", *frames, z, -np.inf, np.inf, held)
        plant.AddJoint(lift)
        ball = add_ball(plant, shape)
        plant.Finalize()
        # The diagram lives as long as the contexts of its plant.
        self.diagram = builder.Build()
        self.roots = [self.diagram.CreateDefaultContext() for _ in range(2)]
        context, self.other = map(plant.GetMyMutableContextFromRoot, self.roots)
        X = RigidTransform([0, 0, RADIUS + DROP])
        plant.SetFloatingBaseBodyPoseInWorldFrame(context, ball, X)
        self.model = build_model(mesh, PAD)
        low = mesh.vertices[:, 2]
        held_ones = {"plate": np.flatnonzero(low < low.min() + 1e-9)[::every]}
        glue = glue_vertices(mesh.vertices, plant, context, held_ones)
        scene = scene_of(plant, graph.model_inspector(), self.model, glue, skin=SPRINGS)
        self.stepper = CoupledStepper(
            plant, self.model, glue, DT, context=context, scene=scene, threads=1
        )
        self.state = self.stepper.start()
        self.forces = None

    def step(self) -> None:
        """One step."""
        result = self.stepper.step(self.state)
        if not result.converged:
            raise RuntimeError(result.message)
        self.state, self.forces = result.state, result.forces

    @property
    def height(self) -> float:
        """Of the ball's centre [m]."""
        return float(self.state.q[-1])

    @property
    def force(self) -> float:
        """On the ball, upwards [N]."""
        return float(self.forces.on("ball")[2])

    def momentum(self) -> np.ndarray:
        """Of all bodies and the pad (3,) [kg m/s]."""
        self.plant.SetPositions(self.other, self.state.q)
        self.plant.SetVelocities(self.other, self.state.v)
        about = self.plant.CalcSpatialMomentumInWorldAboutPoint(self.other, np.zeros(3))
        mass = self.model.node_mass
        return about.translational() + mass @ self.state.skin.velocities


class Drake:
    """The same by Drake's deformables, the lowest vertices fixed to the world."""

    def __init__(self, mesh: TetMesh):
        builder = DiagramBuilder()
        self.plant, _ = AddMultibodyPlantSceneGraph(builder, DT)
        config, touched = DeformableBodyConfig(), ProximityProperties()
        config.set_youngs_modulus(PAD.youngs_modulus)
        config.set_poissons_ratio(PAD.poisson_ratio)
        config.set_mass_density(PAD.density)
        config.set_stiffness_damping_coefficient(PAD.stiffness_damping)
        config.set_material_model(MaterialModel.kNeoHookean)
        AddContactMaterial(friction=CoulombFriction(MU, MU), properties=touched)
        model = self.plant.mutable_deformable_model()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pad.vtk"
            cells = [("tetra", mesh.tets)]
            meshio.write(path, meshio.Mesh(mesh.vertices, cells), "vtk42")
            shape = GeometryInstance(RigidTransform(), Mesh(str(path)), "pad")
            shape.set_proximity_properties(touched)
            pad = model.RegisterDeformableBody(shape, config, 1.0)
        below = RigidTransform([0, 0, -SIZE[2] - 0.5 + 1e-6])
        world = self.plant.world_body()
        model.AddFixedConstraint(pad, world, RigidTransform(), Box(1, 1, 1), below)
        self.ball = add_ball(self.plant)
        self.plant.Finalize()
        self.simulator = Simulator(builder.Build())
        root = self.simulator.get_mutable_context()
        self.context = self.plant.GetMyMutableContextFromRoot(root)
        X = RigidTransform([0, 0, RADIUS + DROP])
        self.plant.SetFloatingBaseBodyPoseInWorldFrame(self.context, self.ball, X)
        self.steps, self.before, self.force = 0, 0.0, 0.0

    def step(self) -> None:
        """One step; the force is what changed the ball's velocity."""
        self.steps += 1
        self.simulator.AdvanceTo(self.steps * DT)
        speed = float(self.plant.GetVelocities(self.context)[5])
        self.force = MASS * ((speed - self.before) / DT + G)
        self.before = speed

    @property
    def height(self) -> float:
        """Of the ball's centre [m]."""
        return float(self.plant.GetPositions(self.context)[6])


def dropped(engine: Ours | Drake, steps: int) -> dict[str, float]:
    """Depths [mm] and forces [N]: the largest, and at rest."""
    depth, force = [], []
    for _ in range(steps):
        engine.step()
        depth.append(1e3 * (RADIUS - engine.height))
        force.append(engine.force)
    mean = slice(-steps // 10, None)  # the last tenth
    return {
        "depth_mm": max(depth),
        "force_N": float(np.max(np.convolve(force, np.ones(WINDOW) / WINDOW, "valid"))),
        "rest_depth_mm": float(np.mean(depth[mean])),
        "rest_force_N": float(np.mean(force[mean])),
    }


def momentum_defect(mesh: TetMesh, steps: int) -> float:
    """Change of all momentum without gravity, in terms of the ball's."""
    run = Ours(mesh, held=0.0, gravity=0.0)
    run.state.v[-1] = -0.5
    before = run.momentum()[2]
    worst = 0.0
    for _ in range(steps):
        run.step()
        worst = max(worst, abs(run.momentum()[2] - before))
    return worst / (MASS * 0.5)


def cost(cells: Sequence[int], turns: int) -> dict[str, float]:
    """Processor time of a step with a plate that lies on the pad, and without [s]."""
    mesh, plate = pad_mesh(cells), Box(0.08, 0.08, 2 * RADIUS)
    # As many glued vertices as a robot has.
    runs = {name: Ours(mesh, shape=plate, every=7) for name in ("with", "without")}
    runs["with"].state.q[-1] = RADIUS + 1e-4
    runs["without"].state.q[-1] = 1.0
    spent = {name: [] for name in runs}
    with calm_threads():
        for turn in range(turns + SETTLE):
            for name, run in runs.items():
                start = time.process_time()
                run.step()
                if turn >= SETTLE:
                    spent[name].append(time.process_time() - start)
    touched = sum(1 for each in runs["with"].forces.A if each == "skin")
    with_it, without = (float(np.mean(spent[name])) for name in runs)
    return {
        "step_s": with_it,
        "contact_overhead_ratio": with_it / without,
        "contact_vertices": touched,
    }


def main(argv: Sequence[str] | None = None) -> dict:
    """The command line; its figures."""
    measurement = Measurement(__doc__, quick="coarse pads")
    args = measurement.parse_args(argv)
    cells = (6, 6, 4) if args.quick else (12, 12, 8)
    large = (12, 12, 8) if args.quick else (30, 30, 14)
    mesh, steps = pad_mesh(cells, power=2.0), round(0.3 / DT)
    rows = {
        "drakebots": dropped(Ours(mesh), steps),
        "Drake": dropped(Drake(mesh), steps),
    }
    ours, drake = rows.values()
    apart = {key: abs(ours[key] / drake[key] - 1) for key in ours}
    names = ("depth_mm", "rest_depth_mm", "force_N", "rest_force_N")
    table = [{"engine": e, **{k: row[k] for k in names}} for e, row in rows.items()]
    print_rows("a ball dropped on a pad", table)
    figures = cost(large, 3 if args.quick else 9)
    overhead = figures.pop("contact_overhead_ratio")
    return measurement.report(
        {
            "momentum_defect": figure(momentum_defect(mesh, 40), target=1e-9),
            **{
                f"drake_scene_{key}": figure(apart[name], target=0.05)
                for key, name in DIFFERENCES.items()
            },
            "step_s": figure(figures["step_s"], "s"),
            "contact_overhead_ratio": figure(overhead, target=1.3),
            "contact_vertices": figure(figures["contact_vertices"]),
            "vertices": figure(len(pad_mesh(large).vertices)),
        }
    )


if __name__ == "__main__":
    main()
