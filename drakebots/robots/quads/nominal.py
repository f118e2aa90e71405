"""Nominal model of a skinned robot: a rigid skeleton that carries the skin.

The skin's mass is welded to the links that its nodes are nearest to, and its elasticity
is a spring at every joint,

    tau = -K_jj (q_j - q_rest,j)

with K the skin's static stiffness at rest (`LinkSkin.stiffness`). K is nearly diagonal
(the monster's largest other entry is 5 % of the diagonal). What this leaves out is the
skin's own motion, its stiffening where folds close, and its sag.

A foot touches the ground at two points, heel and toe: a sole that the robot, whose
ankles only pitch, can press with in front or behind but not at one side.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pydrake.multibody.tree import RevoluteSpring, SpatialInertia, UnitInertia

from drakebots.control import follow_feet
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.model import Point
from drakebots.multibody import Flat, Robot, Terrain, build_robot
from drakebots.robots.quads.robot import PlannedRobot

REACH = 0.9
"""Share of a sole's half length at which heel and toe are."""

BENT = 0.004
"""A standing pose on a slope is lower by this than its straightest leg asks [m]."""

MISS = 2e-3
"""Largest distance of a sole from the ground in a standing pose [m]."""


def nominal_robot(robot: PlannedRobot) -> Robot:
    """The rigid robot, in Euler coordinates, with heels and toes as its feet."""
    quad, carried = robot.quad, robot.link_skin
    springs = dict(zip(quad.coordinates[6:], np.diag(carried.stiffness)))

    def prepare(plant):
        for name, row in zip(carried.bodies, carried.inertia):
            if row[0] > 1e-9:
                own = plant.GetBodyByName(name)
                skin = plant.AddRigidBody(
                    f"{name}_skin", own.model_instance(), _inertia(row)
                )
                plant.WeldFrames(own.body_frame(), skin.body_frame())
        for name, stiffness in springs.items():
            rest = quad.rest[quad.coordinates.index(name)]
            joint = plant.GetJointByName(name)
            plant.AddForceElement(RevoluteSpring(joint, rest, stiffness))

    feet = []
    for sole in quad.soles:
        half = REACH * sole.corners[:, 0].max()
        for end, sign in (("toe", 1), ("heel", -1)):
            p_BF = sole.p_BF + sole.R_BS @ [sign * half, 0.0, 0.0]
            feet.append(Point(f"{sole.name}_{end}", sole.body, p_BF))
    model = replace(quad.robot.model, feet=tuple(feet))
    return build_robot(model, base="euler", time_step=0, prepare=prepare)


def _inertia(row: np.ndarray) -> SpatialInertia:
    """A row [m, m c, I_o: xx yy zz xy xz yz] of a `LinkSkin` as Drake has it."""
    return SpatialInertia(row[0], row[1:4] / row[0], UnitInertia(*(row[4:] / row[0])))


def standing(
    nominal: Robot, rest: np.ndarray, terrain: Terrain, stride: float = 0.0
) -> np.ndarray:
    """A standing pose (nv,) with its feet on the ground.

    On a slope the trunk is parallel to it along x, its middle above that of the feet,
    and the legs are upright; it is lowered until they reach the ground, at both ends of
    a stride too, and are bent.

    Args:
        nominal: of :func:`nominal_robot`.
        rest: its pose on flat ground (nv,).
        terrain: the ground.
        stride: way of a foot on the ground under the trunk [m].

    Raises:
        NoSolution: where the legs do not reach the ground.
    """
    plant, q = nominal.plant, np.array(rest, float)
    if terrain == Flat():
        return q
    context, joints = plant.CreateDefaultContext(), np.arange(6, len(q))
    plant.SetPositions(context, q)
    targets = nominal.feet_positions(context)
    heights = terrain.heights(targets[:, 0], targets[:, 1])
    if not heights.any():
        return q
    rise = np.polyfit(targets[:, 0], heights, 1)[0]
    slope, under = np.arctan(rise), float(terrain.heights(q[0], q[1]))
    targets[:, 2] += heights
    q[2], q[4] = q[2] + under, q[4] - slope
    ahead = np.array([1.0, 0.0, rise])
    places = targets + np.array([0.0, 0.5, -0.5])[:, None, None] * stride * ahead
    lower = None
    for _ in range(80):
        q[joints] = follow_feet(nominal, context, q, joints, targets[None])[0]
        off = 0.0
        for there in places:
            at = q.copy()
            at[joints] = follow_feet(nominal, context, q, joints, there[None])[0]
            plant.SetPositions(context, at)
            off = max(off, np.abs(nominal.feet_positions(context) - there).max())
        if off < MISS and lower is None:
            lower = q[2] - BENT
        if off < MISS and q[2] <= lower + 1e-9:
            return q
        q[2] -= 1e-3
    raise NoSolution(
        f"{nominal.model.name} does not reach the ground on a slope of "
        f"{np.degrees(slope):.3g} degrees; its legs are too short"
    )


def check_base(robot: PlannedRobot) -> None:
    """Raises InvalidInput for a robot whose joints are not all actuated."""
    quad = robot.quad
    passive = set(quad.coordinates[6:]) - set(quad.joints)
    if passive:
        raise InvalidInput(
            f"{robot.name}: joint {min(passive)!r} has no servo; control needs one at "
            "every joint"
        )
