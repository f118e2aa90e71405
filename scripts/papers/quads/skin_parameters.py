"""Parameters of a skinned robot (modulus, wall, link lengths), and design by gradient.

change = modulus(robot, 1)                      # p: E of region 1 becomes E (1 + p)
motion.gradient(run, {"fold": (change, 1e-3)})  # a MotionGradient

A library of quad_sensitivity.py, without a command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from motion_adjoint import Parameter, Setup
from pydrake.math import RigidTransform
from pydrake.multibody.tree import FixedOffsetFrame
from scipy.spatial import cKDTree

from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.fem.assembly import FemModel, build_model
from drakebots.fem.mesh import TetMesh, connected_pieces, surface_triangles
from drakebots.model import find_body
from drakebots.skin.coupled import Glue
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.reduced import harmonic_weights


def setup_of(robot: SkinnedRobot, model: FemModel | None = None) -> Setup:
    """The robot, or one with another skin, with a context of its own."""
    context, root = robot.new_context()
    model = robot.fem if model is None else model
    return Setup(robot.plant, context, model, robot.glue, robot.rest_positions, root)


def modulus(robot: SkinnedRobot, region: int | None = None) -> Parameter:
    """p: Young's modulus of a region, or of all, becomes E (1 + p).

    Raises:
        UnknownName: for a region the mesh does not have.
    """
    regions = robot.mesh.regions
    if region is not None and region not in regions:
        raise UnknownName("mesh region", region, map(str, regions))

    def change(p):
        return setup_of(robot, _with_moduli(robot, {region: 1 + p}))

    return change


def _with_moduli(robot: SkinnedRobot, factors: dict[int | None, float]) -> FemModel:
    """The robot's skin with moduli multiplied by region; None means all regions."""
    materials = {}
    for region, material in zip(robot.mesh.regions, robot.fem.materials):
        f = factors.get(None, 1.0) * factors.get(region, 1.0)
        materials[region] = replace(
            material, youngs_modulus=material.youngs_modulus * f
        )
    return build_model(robot.mesh, materials, quadratic=robot.skin.second_order)


def thickness(robot: SkinnedRobot, region: int | None = None) -> Parameter:
    """p: the wall of a region, or of all, becomes t (1 + p) with the same outside.

    Inner vertices move along the line to the nearest outer vertex; glued vertices and
    those of other regions stay.

    Raises:
        UnknownName: for a region the mesh does not have.
        InvalidInput: for a skin that is no closed shell, or has P2 tets.
    """
    mesh = robot.mesh
    if region is not None and region not in mesh.regions:
        raise UnknownName("mesh region", region, map(str, mesh.regions))
    if robot.skin.second_order:
        raise InvalidInput("thickness: only skins of P1 tets can be thickened")
    inward = wall_directions(mesh)
    fixed = np.zeros(len(mesh.vertices), bool)
    fixed[robot.glue.vertices] = True
    if region is not None:
        fixed[np.unique(mesh.tets[mesh.region != region])] = True
    inward[fixed] = 0.0

    def change(p):
        return setup_of(robot, _with_vertices(robot, mesh.vertices + p * inward))

    return change


def _with_vertices(robot, vertices):
    mesh = TetMesh(vertices, robot.mesh.tets, robot.mesh.region)
    materials = dict(zip(robot.mesh.regions, robot.fem.materials))
    return build_model(mesh, materials, quadratic=robot.skin.second_order)


def wall_directions(mesh: TetMesh) -> np.ndarray:
    """Vectors from the outer surface to each inner vertex (n, 3) [m]; 0 at outer ones.

    Raises:
        InvalidInput: when the surface has less than two pieces.
    """
    outside, n = surface_triangles(mesh), len(mesh.vertices)
    _, piece = connected_pieces(outside, n)
    on = np.unique(outside)
    pieces = np.unique(piece[on])
    if len(pieces) < 2:
        raise InvalidInput("thickness: the skin is no closed shell with an inside")
    # The outer piece is the one with the largest extent.
    size = [np.ptp(mesh.vertices[on[piece[on] == k]], axis=0).max() for k in pieces]
    outer = on[piece[on] == pieces[int(np.argmax(size))]]
    inner = np.setdiff1d(np.arange(n), outer)
    _, near = cKDTree(mesh.vertices[outer]).query(mesh.vertices[inner])
    out = np.zeros_like(mesh.vertices)
    out[inner] = mesh.vertices[inner] - mesh.vertices[outer[near]]
    return out


def link_length(robot: SkinnedRobot, joint: str) -> Parameter:
    """p: the link above a joint becomes longer by the factor 1 + p.

    The offset from the link's frame to `joint` is multiplied by 1 + p, and the bodies
    beyond the joint move with it. Glue on the link is stretched with it, and the skin
    follows the blend of the links. Masses and inertias of links do not change.

    Raises:
        UnknownName: for a joint that does not exist.
        InvalidInput: for a joint at the origin of its link.
    """
    plant = robot.plant
    known = {plant.get_joint(i).name(): i for i in plant.GetJointIndices()}
    if joint not in known:
        raise UnknownName("joint", joint, known)
    frame = plant.get_joint(known[joint]).frame_on_parent()
    if not isinstance(frame, FixedOffsetFrame):
        raise InvalidInput(f"joint {joint!r}: is at its link's origin, without length")
    link = frame.body()
    offset = frame.GetFixedPoseInBodyFrame().translation()
    if np.linalg.norm(offset) < 1e-9:
        raise InvalidInput(f"joint {joint!r}: is at its link's origin, without length")
    along = offset / np.linalg.norm(offset)
    names = tuple(robot.glue.by_body())
    weights = harmonic_weights(robot.fem, robot.glue, names)
    base = setup_of(robot)
    poses = _poses(base, names)
    stretched = np.array(
        [find_body(plant, b).index() == link.index() for b in robot.glue.bodies]
    )

    def change(p):
        setup = setup_of(robot)
        X = frame.GetPoseInParentFrame(setup.context)
        frame.SetPoseInParentFrame(
            setup.context, RigidTransform(X.rotation(), X.translation() + p * offset)
        )
        p_BG = robot.glue.p_BG.copy()
        some = p_BG[stretched]
        p_BG[stretched] = some + p * np.outer(some @ along, along)
        glue = Glue(robot.glue.vertices, robot.glue.bodies, p_BG)
        moved = _poses(setup, names)
        rest = np.zeros_like(robot.mesh.vertices)
        n = len(rest)
        for k, name in enumerate(names):
            x = robot.mesh.vertices
            local = poses[k].inverse().multiply(x.T).T
            if find_body(plant, name).index() == link.index():
                local = local + p * np.outer(local @ along, along)
            rest += weights[:n, [k]] * moved[k].multiply(local.T).T
        model = _with_vertices(robot, rest)
        return replace(setup, model=model, glue=glue)

    return change


def _poses(setup, names):
    setup.plant.SetPositions(setup.context, setup.home)
    return [
        setup.plant.EvalBodyPoseInWorld(setup.context, find_body(setup.plant, name))
        for name in names
    ]


@dataclass(frozen=True)
class DesignStep:
    """One evaluation in a design.

    Attributes:
        value: parameter p.
        figure: quantity that should reach the target.
        slope: derivative of the figure by p.
    """

    value: float
    figure: float
    slope: float


def meet_target(
    evaluate: Callable[[float], tuple[float, float]],
    target: float,
    *,
    start: float = 0.0,
    bounds: tuple[float, float] = (-0.9, 10.0),
    tolerance: float = 1e-3,
    most: int = 12,
) -> list[DesignStep]:
    """Solves figure(p) = target for one parameter by Newton's method in ln(1 + p).

    Args:
        evaluate: function of p that returns the figure and its derivative.
        target: target of the figure.
        start: initial p.
        bounds: bounds of p, above -1.
        tolerance: tolerance of the figure, relative to the target.
        most: largest number of evaluations.

    Returns:
        The evaluations; the last one meets the target.

    Raises:
        NoSolution: when the target is not met; the message has the nearest figure.
    """
    steps, p = [], float(start)
    for _ in range(most):
        figure, slope = evaluate(p)
        steps.append(DesignStep(p, figure, slope))
        if abs(figure - target) <= tolerance * abs(target):
            return steps
        rate = slope * (1 + p)  # by ln(1 + p)
        if not (np.isfinite(rate) and rate != 0):
            break
        move = np.clip((target - figure) / rate, -1.0, 1.0)
        new = float(np.clip((1 + p) * np.exp(move) - 1, *bounds))
        if new == p:
            break
        p = new
    best = min(steps, key=lambda s: abs(s.figure - target))
    raise NoSolution(
        f"design: the target {target:g} is not met within {bounds}; the nearest is "
        f"{best.figure:g} at {best.value:g}"
    )
