"""What a model contains, by having Drake parse it, and if that can be in metres."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydrake.geometry import SceneGraph
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import DrakebotsError, ModelProblem
from drakebots.model.closing import independent_rows
from drakebots.model.description import Point
from drakebots.model.feet import Links
from drakebots.model.feet.soles import shape_points
from drakebots.model.loops import Loop, LoopClosure, find_body
from drakebots.model.model import Summary
from drakebots.model.parse import DRAKE_REFUSALS, drake_message, parse_model
from drakebots.model.reading import Findings, Reading

SINGULAR = 1e-13
"""Smallest eigenvalue of a regular mass matrix whose diagonal is scaled to 1."""

PART = 0.1
"""A coordinate belongs to a singular direction with at least this part of it."""

WATER = 1000.0
"""Density of water [kg/m^3]."""

SLENDER = 1e-3
"""Thickness of the rod, over its length."""

REMEDY = "if its lengths are in mm, divide them by 1000 and its inertias by 10^6"


def _check_positions(path: Path, plant: MultibodyPlant) -> None:
    """Refuses default positions that are not finite, which Drake takes."""
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        if not np.isfinite(joint.default_positions()).all():
            raise ModelProblem(
                path, f"default position of joint {joint.name()!r} must be finite"
            )


def inspect_model(
    path: Path,
    reading: Reading,
    loops: Sequence[Loop],
    points: Sequence[Point],
    findings: Findings,
) -> tuple[Summary, Links]:
    """What a model contains, and its links in the pose to look for feet in.

    Args:
        path, reading, findings: as in :func:`parse_model`.
        loops: its loops.
        points: points whose bodies must exist.

    Raises:
        ModelProblem: for what Drake refuses, or masses that are not finite.
        UnknownName: for a loop or a point of a body that does not exist.
    """
    builder = DiagramBuilder()
    plant = builder.AddSystem(MultibodyPlant(1e-3))
    scene_graph = builder.AddSystem(SceneGraph())
    plant.RegisterAsSourceForSceneGraph(scene_graph)
    parse_model(plant, path, reading, findings)
    try:
        plant.Finalize()
        context = plant.CreateDefaultContext()
        _check_positions(path, plant)
        mass = plant.CalcTotalMass(context)
        closure = LoopClosure(plant, loops, couplers=reading.couplers)
        gaps, C = closure.gaps(context), closure.jacobian(context)
        M = plant.CalcMassMatrix(context)
    except DrakebotsError:
        raise
    except DRAKE_REFUSALS as error:
        raise ModelProblem(path, drake_message(error)) from error
    if not np.isfinite(M).all() or not np.isfinite(mass):
        raise ModelProblem(path, "its mass matrix is not finite; check the inertias")
    if light := moving_without_inertia(plant, M):
        message = f"nothing has inertia that moves with {', '.join(light)}"
        raise ModelProblem(path, f"{message}; give it mass and inertia, or fix it")
    for point in points:
        find_body(plant, point.body)
    rank = len(independent_rows(C)) if C.size else 0
    joints = [plant.get_joint(i) for i in plant.GetJointIndices()]
    single = [j for j in joints if j.num_velocities() == 1]
    motors = [plant.get_joint_actuator(i) for i in plant.GetJointActuatorIndices()]
    driven = {motor.joint().index() for motor in motors}
    summary = Summary(
        positions=tuple(plant.GetPositionNames(always_add_suffix=False)),
        velocities=tuple(plant.GetVelocityNames(always_add_suffix=False)),
        actuators=tuple(motor.name() for motor in motors),
        bodies=plant.num_bodies() - 1,
        springs=plant.num_force_elements() - 1,
        constraints=plant.num_constraints(),
        mass=float(mass),
        loop_rows=closure.num_rows,
        independent_rows=rank,
        loop_gap=float(gaps.max()) if gaps.size else 0.0,
        joints=tuple(joint.name() for joint in single),
        driven=tuple(j.name() for j in single if j.index() in driven),
        bases=sum(j.is_ephemeral() and "floating" in j.type_name() for j in joints),
    )
    return summary, Links(plant, scene_graph.model_inspector(), context, loops)


def moving_without_inertia(plant: MultibodyPlant, M: np.ndarray) -> tuple[str, ...]:
    """The joints that move without inertia, "link 'toe' on joint 'ankle'" each.

    Args:
        plant: finalized.
        M: its mass matrix (nv, nv).

    Returns:
        One text for every joint with a coordinate in the null space of M; none for a
        regular matrix.
    """
    if not M.size:
        return ()
    diagonal = np.maximum(np.diag(M), 0.0)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    null = np.abs(vectors[:, values < SINGULAR]).max(axis=1, initial=0.0) > PART
    found = []
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        start = joint.velocity_start()
        if null[start : start + joint.num_velocities()].any():
            link = f"link {joint.child_body().name()!r}"
            is_floating = "floating" in joint.type_name()
            found.append(link + ("" if is_floating else f" on joint {joint.name()!r}"))
    return tuple(found)


def doubt_on_lengths(links: Links, remedy: str = REMEDY) -> str:
    """What speaks against lengths in metres, in one line; "" where nothing does.

    A robot of length l weighs more than a rod of water of that length that is a
    thousandth as thick,

        m > rho pi/4 (l / 1000)^2 l = 7.9e-4 kg/m^3 l^3

    with l the diagonal of the box about links and shapes of contact. Of 206 models,
    most of them public, robots have m / l^3 from 0.05 kg/m^3 (an ant of five times the
    density of air) to 400. Lengths in mm make it 1e9 times less where masses are in kg,
    and 1e6 times less where they are in g.

    Args:
        links: of the model, posed; what is fixed to the world does not count.
        remedy: what to do about it, unless a single shape is to blame.
    """
    plant, context = links.plant, links.context
    mass, origins = 0.0, [np.zeros((0, 3))]
    shapes: list[tuple[float, str, np.ndarray]] = []
    for body in links.bodies:
        if links.group[body.index()] == 0:
            continue
        X_WB = plant.EvalBodyPoseInWorld(context, body)
        mass += body.get_mass(context)
        origins.append(X_WB.translation()[None])
        for shape in plant.GetCollisionGeometriesForBody(body):
            points, radius = shape_points(links.inspector.GetShape(shape))
            if len(points):
                X_WG = X_WB.multiply(links.inspector.GetPoseInFrame(shape))
                p_WP = points @ X_WG.rotation().matrix().T + X_WG.translation()
                corners = np.vstack([p_WP - radius, p_WP + radius])
                shapes.append((_diagonal(corners), body.name(), corners))
    length = _diagonal(np.vstack([*origins, *(corners for _, _, corners in shapes)]))
    least = WATER * np.pi / 4 * SLENDER**2 * length**3
    if not 0.0 < mass < least:
        return ""
    largest, link = max((shape[:2] for shape in shapes), default=(0.0, ""))
    what = "it"
    if largest > length / 2 and _diagonal(np.vstack(origins)) < length / 30:
        what, length = f"a shape of link {link!r}", largest
        remedy = "if its mesh is in mm, scale it by 0.001"
    return (
        f"{what} is {length:.3g} m long, but the robot weighs {mass:.3g} kg, less than "
        f"a rod of water a thousandth as thick: {remedy}"
    )


def _diagonal(points: np.ndarray) -> float:
    """Of the box about points (n, 3) [m]; 0 for none."""
    return float(np.linalg.norm(np.ptp(points, axis=0))) if len(points) else 0.0
