"""Inspecting a model: what Drake makes of it, if that can be in metres, and upright.

Drake's ground is z = 0, and nearly all files have z up. Some are drawn with y up, by
the habit of computer graphics or of biomechanics (ISB), and their users turn the base.
Such a robot lies on its back with z up and stands well with y up: on feet that are
mirror images of one another, level, and under its centre of mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from pydrake.geometry import Convex, Mesh, Role
from pydrake.math import RigidTransform
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, MultibodyPlant
from pydrake.multibody.tree import CalcSpatialInertia, RigidBody, SpatialInertia
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import ModelProblem, UnknownName
from drakebots.formats.read.findings import Findings, note_messages
from drakebots.formats.read.tree import read_tree, write_inertial, write_tree
from drakebots.formats.read.urdf import TURNS
from drakebots.model import (
    DRAKE_REFUSALS,
    FootCandidate,
    Links,
    Loop,
    LoopClosure,
    Reading,
    Summary,
    actuators_of,
    central_inertia,
    drake_message,
    driven_joints,
    find_body,
    foot_candidates,
    force_elements,
    independent_rows,
    is_floating,
    joint_slices,
    joints_of,
    parse_model,
    part_name,
    sidecar_path,
    single_joints,
)

SINGULAR = 1e-13
"""Smallest eigenvalue of a regular mass matrix whose diagonal is scaled to 1."""

PART = 0.1
"""A coordinate belongs to a singular direction with at least this part of it."""

WATER = 1000.0
"""Density of water [kg/m^3]."""

SLENDER = 1e-3
"""Thickness of the rod, over its length."""

_REMEDIES = {
    "": "if its lengths are in mm, divide them by 1000 and its inertias by 10^6",
    "old Drake": "if it is in mm, g and ms, give --units mm-g-ms",
}


def _known_parts(
    path: Path, reading: Reading, plant: MultibodyPlant, findings: Findings
) -> Reading:
    """Reading without feet, points and loops of the YAML beside it on unknown bodies.

    A misspelt name costs what it is of, not the robot.
    """

    def kept(parts: Sequence) -> tuple:
        found = []
        for part in parts:
            is_loop = isinstance(part, Loop)
            try:
                for name in (part.body_A, part.body_B) if is_loop else (part.body,):
                    find_body(plant, name)
                found.append(part)
            except UnknownName as error:
                line = f"left out of {sidecar_path(path).name}"
                findings.note(line, f"{part.name}, {error.short}")
        return tuple(found)

    names = ("feet", "points", "loops")
    return replace(reading, **{name: kept(getattr(reading, name)) for name in names})


def inspect_model(
    path: Path, reading: Reading, findings: Findings
) -> tuple[Summary, Links, Reading]:
    """Summary of a model's contents, and its links at its default positions.

    What Drake warns of is added to the findings, and what the YAML beside it says of
    bodies that do not exist; that is not in the reading which is returned.

    Raises:
        ModelProblem: for what Drake refuses, or masses that are not finite.
    """
    plant, scene_graph = AddMultibodyPlantSceneGraph(DiagramBuilder(), 1e-3)
    said: list[str] = []
    parse_model(plant, path, reading, said)
    note_messages(said, findings)
    try:
        plant.Finalize()
        context = plant.CreateDefaultContext()
        for joint in joints_of(plant):
            if not np.isfinite(joint.default_positions()).all():  # which Drake takes
                message = f"default position of joint {joint.name()!r} must be finite"
                raise ModelProblem(path, message)
        mass = plant.CalcTotalMass(context)
        reading = _known_parts(path, reading, plant, findings)
        closure = LoopClosure(plant, reading.loops, couplers=reading.couplers)
        gaps, C = closure.gaps(context), closure.jacobian(context)
        M = plant.CalcMassMatrix(context)
    except DRAKE_REFUSALS as error:
        raise ModelProblem(path, drake_message(error)) from error
    if not np.isfinite(M).all() or not np.isfinite(mass):
        raise ModelProblem(path, "its mass matrix is not finite; check the inertias")
    if light := moving_without_inertia(plant, M):
        message = f"nothing has inertia that moves with {', '.join(light)}"
        raise ModelProblem(path, f"{message}; give it mass and inertia, or fix it")
    rank = len(independent_rows(C)) if C.size else 0
    single = single_joints(plant)
    driven = {joint.index() for joint in driven_joints(plant)}
    summary = Summary(
        positions=tuple(plant.GetPositionNames(always_add_suffix=False)),
        velocities=tuple(plant.GetVelocityNames(always_add_suffix=False)),
        actuators=tuple(part_name(motor) for motor in actuators_of(plant)),
        bodies=plant.num_bodies() - 1,
        springs=len(force_elements(plant)),
        constraints=plant.num_constraints(),
        mass=float(mass),
        loop_rows=closure.num_rows,
        independent_rows=rank,
        loop_gap=float(gaps.max()) if gaps.size else 0.0,
        joints=tuple(part_name(joint) for joint in single),
        driven=tuple(part_name(j) for j in single if j.index() in driven),
        bases=sum(j.is_ephemeral() and is_floating(j) for j in joints_of(plant)),
    )
    links = Links(plant, scene_graph.model_inspector(), context, reading.loops)
    return summary, links, reading


def with_fewest_rows(path: Path, reading: Reading) -> Reading:
    """Reading with hinges as planar loops where the rows left out are redundant.

    In a mechanism with few degrees of freedom most rows of its hinges depend on
    the others; programs and time stepping need independent ones.
    """
    loops = tuple(replace(loop, rows="planar") for loop in reading.loops)
    planar = replace(reading, loops=loops)
    before, after = (
        inspect_model(path, one, Findings())[0].independent_rows
        for one in (reading, planar)
    )
    return planar if before == after else reading


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
    for joint in joints_of(plant):
        if null[joint_slices(joint)[1]].any():
            link = f"link {joint.child_body().name()!r}"
            on = "" if is_floating(joint) else f" on joint {joint.name()!r}"
            found.append(link + on)
    return tuple(found)


def doubt_on_lengths(links: Links, kind: str = "") -> str:
    """Evidence against lengths in metres, in one line; "" where there is none.

    A robot of length l weighs more than a rod of water of that length that is a
    thousandth as thick,

        m > rho pi/4 (l / 1000)^2 l = 7.9e-4 kg/m^3 l^3

    with l the diagonal of the box about links and shapes of contact. Of 206 models,
    most of them public, robots have m / l^3 from 0.05 kg/m^3 (an ant of five times the
    density of air) to 400. Lengths in mm make it 1e9 times less where masses are in kg,
    and 1e6 times less where they are in g.

    Args:
        links: of the model, posed; what is fixed to the world does not count.
        kind: of the :class:`Reading`, on which the remedy depends.
    """
    bodies = [body for body in links.bodies if links.group[body.index()] != 0]
    mass = sum(body.default_mass() for body in bodies)
    origins = np.reshape([links.origin(body) for body in bodies], (-1, 3))
    corners = [links.corners(body, Role.kProximity) for body in bodies]
    length = _diagonal(np.vstack([origins, *corners]))
    least = WATER * np.pi / 4 * SLENDER**2 * length**3
    if not 0.0 < mass < least:
        return ""
    shapes = zip(map(_diagonal, corners), (body.name() for body in bodies))
    largest, link = max(shapes, default=(0.0, ""))
    what, remedy = "it", _REMEDIES.get(kind, _REMEDIES[""])
    if largest > length / 2 and _diagonal(origins) < length / 30:
        what, length = f"a shape of link {link!r}", largest
        remedy = "if its mesh is in mm, scale it by 0.001"
    return (
        f"{what} is {length:.3g} m long, but the robot weighs {mass:.3g} kg, less than "
        f"a rod of water a thousandth as thick: {remedy}"
    )


def _diagonal(points: np.ndarray) -> float:
    """Diagonal of the box about points (n, 3) [m]; 0 for none."""
    return float(np.linalg.norm(np.ptp(points, axis=0))) if len(points) else 0.0


# --- inertia that no link of its size has ---

TOO_LARGE = "inertia too large for the link's size"
REACH = 2.0
"""Shapes may be drawn smaller than their link is, but not by this factor."""


def sprawling(links: Links) -> list[tuple[RigidBody, float]]:
    """Links whose mass would lie far outside of them, by their inertia.

    The largest principal moment of a body about its centre of mass is

        I3 = int (x^2 + y^2) dm <= m R^2,    R = max |p_BcmP|

    over the points P of the body: its radius of gyration sqrt(I3 / m) is at most R. The
    points are the corners of the boxes around all shapes of the link and of those that
    are welded to it, and their joints; of links without shapes, those of the whole
    robot. A link counts with a radius of gyration above :data:`REACH` R.

    Args:
        links: of the model, posed; what is fixed to the world does not count.

    Returns:
        The bodies, each with its radius of gyration [m].
    """
    groups = {group: links.members(group) for group in {*links.group.values()} - {0}}
    roles = Role.kProximity, Role.kIllustration
    shapes = {
        group: np.vstack([links.corners(body, *roles) for body in bodies])
        for group, bodies in groups.items()
    }
    joints: dict[int, list[np.ndarray]] = {group: [] for group in groups}
    for joint in joints_of(links.plant):
        if not is_floating(joint):
            for body in (joint.parent_body(), joint.child_body()):
                ends = joints.get(links.group[body.index()], [])
                ends.append(links.joint_position(joint))
    reached = {k: np.vstack([corners, *joints[k]]) for k, corners in shapes.items()}
    whole = np.vstack([np.zeros((0, 3)), *reached.values()])
    found = []
    for group, bodies in groups.items():
        points = reached[group] if len(shapes[group]) else whole
        for body in bodies:
            mass, p_BC, I_C = central_inertia(body.default_spatial_inertia())
            p_WC = body.EvalPoseInWorld(links.context) @ p_BC
            reach = np.linalg.norm(points - p_WC, axis=1).max(initial=0.0)
            gyration = np.sqrt(np.linalg.eigvalsh(I_C)[2] / mass) if mass else 0.0
            if gyration > REACH * reach > 0:
                found.append((body, float(gyration)))
    return found


def uniform_inertia(links: Links, body: RigidBody) -> np.ndarray:
    """The central inertia (3, 3) [kg m^2] of a body's mass in its shapes, in its frame.

    The density is the same everywhere; meshes count as their convex hulls. Drawn shapes
    come before those of contact; a link without any is a ball of water.
    """
    inspector, whole = links.inspector, SpatialInertia.Zero()
    frame = links.plant.GetBodyFrameIdIfExists(body.index())
    roles = Role.kIllustration, Role.kProximity
    drawn = next(filter(None, (inspector.GetGeometries(frame, x) for x in roles)), [])
    for geometry in drawn:
        shape, X_BG = inspector.GetShape(geometry), inspector.GetPoseInFrame(geometry)
        if isinstance(shape, Mesh):
            shape = Convex(shape.source(), shape.scale3())
        try:
            M = CalcSpatialInertia(shape, 1.0).ReExpress(X_BG.rotation())
            whole += M.Shift(-X_BG.translation())
        except RuntimeError:
            continue  # a flat one, or one that has no end
    volume, _, moments = central_inertia(whole)
    mass = body.default_mass()
    if not volume:
        return 0.4 * mass * (0.75 * mass / np.pi / WATER) ** (2 / 3) * np.eye(3)
    return moments * mass / volume


def with_uniform_inertias(path: Path, reading: Reading) -> Reading:
    """Reading with those of :func:`uniform_inertia` for what is :func:`sprawling`."""
    if reading.text is None:
        return reading
    links = inspect_model(path, reading, Findings())[1]
    root, done = read_tree(reading.text), Findings()
    named: dict[str, list] = {}
    for link in root.iter("link"):
        named.setdefault(link.get("name", ""), []).append(link)
    for body, _ in sprawling(links):
        if len(found := named.get(body.name(), [])) != 1:
            continue  # of an included file
        mass, p_BC, _ = central_inertia(body.default_spatial_inertia())
        I_C = uniform_inertia(links, body)
        write_inertial(found[0], mass, I_C, p_BC, urdf=reading.ending == "urdf")
        done.note(f"{TOO_LARGE} is replaced by its shape's", body.name())
    notes = (*reading.notes, *done.notes)
    return replace(reading, text=write_tree(root), notes=notes)


# --- which way is up --------------------------------------------------------

_LEVEL = 0.1
"""Feet of a robot that stands are level to this share of its size,"""
_HIGH = 0.5
"""its centre of mass is at least this share of it above them,"""
_OVER = 0.35
"""and at most this share of it beside their middle."""
_BESIDE = 0.5
"""A robot lies if its centre of mass is farther than this beside its feet."""
_SWINGS = 1.3
"""Legs swing along y if this many times as many of their hinges turn about x as about
y, the axis that points left of a robot that faces x. Of 98 public robots that face x at
most 1.0 times as many do; of those that face y twice as many, or all."""

_BEHIND = 1.5
"""Soles that reach this many times as far behind the ankle as ahead point backward:
those of the iCubs of `icub-models` 2.0 times, of 22 other humanoids at most 1.27."""


def legs_swing(links: Links, candidates: Sequence[FootCandidate]) -> str:
    """The axis along which a robot's legs swing, so that it faces it: "y", or "x".

        sum_j (a_j . x)^2 > 1.3 sum_j (a_j . y)^2 >= 1.3 sum_j (a_j . z)^2   =>   "y"

    over the axes a_j of all hinges between its body and its feet. Legs that sprawl to
    the sides, as a hexapod's, swing about z and bend about x.
    """
    below = {g for foot in candidates if foot.chosen for g in foot.chain[1:]}
    joints = [links.parent[g][1] for g in below if g in links.parent]
    hinges = [links.hinge_axis(j) for j in joints if j.type_name() == "revolute"]
    x, y, z = np.square(hinges).reshape(-1, 3).sum(axis=0)
    return "y" if x > _SWINGS * y and y >= z - 1e-9 else "x"


def soles_point_back(links: Links, candidates: Sequence[FootCandidate]) -> bool:
    """Whether all soles, of three points and more, reach 1.5 times as far behind their
    ankles as ahead along x, as iCub's, whose base faces -x."""
    soles = [foot for foot in candidates if foot.chosen and len(foot.points) > 2]
    for foot in soles:
        ankle = links.joint_position(links.parent[foot.chain[-1]][1])
        bodies = [find_body(links.plant, point.body) for point in foot.points]
        poses = [body.EvalPoseInWorld(links.context) for body in bodies]
        reach = [(X @ p.p_BF - ankle)[0] for X, p in zip(poses, foot.points)]
        if -min(reach) < _BEHIND * max(reach):
            return False
    return bool(soles)


_FACES_Y = {"y": "yz", "x": "xy"}


def upright_axis(links: Links, candidates: Sequence[FootCandidate]) -> str:
    """The axis of a file that points up: "z" but where only another one can.

    Where the robot would face y then, the axis that points ahead follows: "yz", "xy".

    Args:
        links: of the robot, with z up; its base is moved and put back.
        candidates: its feet with z up.
    """
    plant, context = links.plant, links.context
    bases = [plant.get_body(index) for index in plant.GetFloatingBaseBodies()]
    first, beside, _ = _footing(links, candidates)
    if len(bases) != 1 or first < 1 or beside < _BESIDE:
        return "z"
    q = plant.GetPositions(context).copy()
    found = "z"
    for axis in ("y", "x"):
        X_WB = RigidTransform(TURNS[axis], np.zeros(3))
        plant.SetFloatingBaseBodyPoseInWorldFrame(context, bases[0], X_WB)
        turned = foot_candidates(links)
        feet, _, stands = _footing(links, turned)
        if stands and feet >= first:
            found = axis if legs_swing(links, turned) == "x" else _FACES_Y[axis]
            break
    plant.SetPositions(context, q)
    return found


def _footing(
    links: Links, candidates: Sequence[FootCandidate]
) -> tuple[int, float, bool]:
    """Layout of the feet under a robot, lengths as shares of its size.

    Returns:
        The number of feet; how far the centre of mass is from their middle across the
        ground; whether a robot can stand like this.
    """
    feet = [foot for foot in candidates if foot.chosen]
    if not feet:
        return 0, 0.0, False
    p_WF = np.array([foot.p_WF for foot in feet])
    p_WC = links.plant.CalcCenterOfMassPositionInWorld(links.context)
    size = np.linalg.norm(p_WF - p_WC, axis=1).max() or 1.0
    offset = (p_WC - p_WF.mean(axis=0)) / size
    beside = float(np.linalg.norm(offset[:2]))
    stands = (
        len(feet) >= 2
        and all(foot.mirrored for foot in feet)
        and np.ptp(p_WF[:, 2]) / size < _LEVEL
        and offset[2] > _HIGH
        and beside < _OVER
    )
    return len(feet), beside, bool(stands)
