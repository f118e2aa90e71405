"""What a model file contains, found by having Drake parse it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydrake.geometry import SceneGraph, Sphere
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, ModelInstanceIndex
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import DrakebotsError, ModelProblem, one_line
from drakebots.model.description import Point
from drakebots.model.loops import Loop, LoopClosure, find_body

# Drake's failed assertions reach Python as SystemExit.
_DRAKE_REFUSALS = (RuntimeError, ValueError, LookupError, SystemExit)


@dataclass(frozen=True)
class Summary:
    """What a model contains; counts of the plant with a free base.

    Attributes:
        positions, velocities: names in Drake's order.
        actuators: names in Drake's order.
        bodies: the number of bodies without the world.
        springs: the number of force elements without gravity.
        constraints: constraints the file declares for SAP.
        mass: total [kg].
        loop_rows: rows of c(q), and how many of them are independent.
        loop_gap: the largest gap at the default positions [m].
    """

    positions: tuple[str, ...]
    velocities: tuple[str, ...]
    actuators: tuple[str, ...]
    bodies: int
    springs: int
    constraints: int
    mass: float
    loop_rows: int
    independent_rows: int
    loop_gap: float


def parse_model(
    plant: MultibodyPlant, path: Path, text: str | None, packages: Path
) -> list[ModelInstanceIndex]:
    """Adds a model to a plant before Finalize.

    Args:
        plant: to add to.
        path: the model file.
        text: SDF in place of the file.
        packages: folder whose package.xml names where meshes are.

    Raises:
        ModelProblem: for what Drake refuses or does not know, one line.
    """
    parser = Parser(plant)
    if (packages / "package.xml").is_file():
        parser.package_map().AddPackageXml(str(packages / "package.xml"))
    messages = _Messages()
    logger = logging.getLogger("drake")
    logger.addHandler(messages)
    propagate, logger.propagate = logger.propagate, False
    try:
        if text is not None:
            instances = parser.AddModelsFromString(text, "sdf")
        else:
            instances = parser.AddModels(str(path))
    except _DRAKE_REFUSALS as error:
        raise ModelProblem(path, _drake_message(error)) from error
    finally:
        logger.removeHandler(messages)
        logger.propagate = propagate
    unknown = [m for m in messages.lines if "not defined in SDF" in m]
    if unknown:
        raise ModelProblem(path, unknown[0] + "; remove or correct the tag")
    if not instances:
        raise ModelProblem(path, "holds no model")
    return instances


class _Messages(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record):
        self.lines.append(one_line(record.getMessage()))


def _drake_message(error: Exception) -> str:
    text = one_line(error)
    return f"Drake's parser refuses it: {text[:300]}"


def inspect_model(
    path: Path,
    text: str | None,
    loops: Sequence[Loop],
    points: Sequence[Point],
    packages: Path,
) -> tuple[Summary, tuple[Point, ...]]:
    """What a model contains, and the feet it seems to have.

    Args:
        path, text, packages: as in :func:`parse_model`.
        loops: its loops.
        points: whose bodies must be there.

    Raises:
        ModelProblem: for what Drake refuses, or masses that are not finite.
        UnknownName: for a loop or a point of a body that is none.
    """
    builder = DiagramBuilder()
    plant = builder.AddSystem(MultibodyPlant(1e-3))
    scene_graph = builder.AddSystem(SceneGraph())
    plant.RegisterAsSourceForSceneGraph(scene_graph)
    instances = parse_model(plant, path, text, packages)
    try:
        plant.Finalize()
        context = plant.CreateDefaultContext()
        mass = plant.CalcTotalMass(context)
        closure = LoopClosure(plant, loops)
        gaps, C = closure.gaps(context), closure.jacobian(context)
        M = plant.CalcMassMatrix(context)
    except DrakebotsError:
        raise
    except _DRAKE_REFUSALS as error:
        raise ModelProblem(path, _drake_message(error)) from error
    if not np.isfinite(M).all() or not np.isfinite(mass):
        raise ModelProblem(path, "its mass matrix is not finite; check the inertias")
    for point in points:
        find_body(plant, point.body)
    rank = int(np.linalg.matrix_rank(_normalised(C))) if C.size else 0
    summary = Summary(
        positions=tuple(plant.GetPositionNames(always_add_suffix=False)),
        velocities=tuple(plant.GetVelocityNames(always_add_suffix=False)),
        actuators=tuple(
            plant.get_joint_actuator(i).name() for i in plant.GetJointActuatorIndices()
        ),
        bodies=plant.num_bodies() - 1,
        springs=plant.num_force_elements() - 1,
        constraints=plant.num_constraints(),
        mass=float(mass),
        loop_rows=closure.num_rows,
        independent_rows=rank,
        loop_gap=float(gaps.max()) if gaps.size else 0.0,
    )
    return summary, _detect_feet(plant, scene_graph, instances)


def _normalised(C: np.ndarray) -> np.ndarray:
    """Columns scaled so that metres and radians do not decide the rank."""
    norms = np.linalg.norm(C, axis=0)
    return C / np.where(norms > 0, norms, 1.0)


def _detect_feet(plant, scene_graph, instances) -> tuple[Point, ...]:
    """Collision spheres on bodies that hold no further joint."""
    inspector = scene_graph.model_inspector()
    parents = {
        plant.get_joint(i).parent_body().index() for i in plant.GetJointIndices()
    }
    feet = []
    for i in range(1, plant.num_bodies()):
        body = plant.get_body(BodyIndex(i))
        if body.index() in parents or body.model_instance() not in instances:
            continue
        spheres = [
            (inspector.GetPoseInFrame(g).translation(), inspector.GetShape(g).radius())
            for g in plant.GetCollisionGeometriesForBody(body)
            if isinstance(inspector.GetShape(g), Sphere)
        ]
        for k, (p, radius) in enumerate(spheres):
            name = body.name() + (f"_{k}" if len(spheres) > 1 else "")
            feet.append(Point(name, body.name(), p, radius))
    return tuple(feet)
