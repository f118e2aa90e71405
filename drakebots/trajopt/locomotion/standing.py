"""A user's model standing on its ground, in units of its own size.

Planning uses numbers of order one. The natural units are

    length  l, the height of the centre of mass above the lowest foot
    mass    m, of the whole model
    time    sqrt(l / g)

so that forces are in weights m g and torques in m g l.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from pydrake.multibody.tree import JacobianWrtVariable

from drakebots.core.errors import InvalidInput, UnknownName, some
from drakebots.core.units import Scaling
from drakebots.formats import robot_alone
from drakebots.model import Model, context_at, driven_joints, joints_of
from drakebots.multibody import (
    Flat,
    Posture,
    Robot,
    Terrain,
    base_body,
    base_joints,
    build_robot,
    find_posture,
)
from drakebots.trajopt.contact_implicit import ContactSystem, check_legged

AXES = ("roll", "pitch", "yaw", "x", "y", "z")
"""Names of base coordinates, in the order of spatial velocities."""

LOOP_GAP = 1e-6
"""Largest gap of a closed loop, as a share of l, and error of a joint that follows
another [rad], or as a share of l."""


@dataclass(frozen=True)
class Standing:
    """A model standing on its ground.

    Attributes:
        system: the robot on its terrain, in natural units.
        q: the standing pose (nq,), plant units.
        base: names of the base's coordinates by their axis, one of :data:`AXES`.
        speeds: the joints' speed limits (nq,), plant units; inf for no limit.
        source: origin of the pose, see :class:`drakebots.multibody.Posture`.
    """

    system: ContactSystem
    q: np.ndarray
    base: Mapping[str, str]
    speeds: np.ndarray
    source: str = ""

    @property
    def scaling(self) -> Scaling:
        """The natural units."""
        return self.system.robot.scaling

    def index(self, axis: str) -> int:
        """Index in q of a base coordinate.

        Raises:
            InvalidInput: if the model does not have it.
        """
        if axis not in self.base:
            raise InvalidInput(
                f"{self.system.robot.model.name} has no base coordinate for {axis} (it "
                f"has {', '.join(self.base) or 'none'}); give it a free base "
                "(--free-base), or a joint to the world along that axis"
            )
        return self.system.coordinates.index(self.base[axis])

    def indices(self, *axes: str) -> dict[str, int]:
        """Indices in q of those base coordinates that the model has, by axis."""
        return {axis: self.index(axis) for axis in axes if axis in self.base}

    @property
    def feet(self) -> list[str]:
        """Names of the feet."""
        return [foot.name for foot in self.system.robot.model.feet]

    def point(self, q: ca.SX, what: str) -> ca.SX:
        """p_W (3,) of the base's frame, "base", or of a foot's centre.

        Raises:
            UnknownName: for anything else.
        """
        if what == "base":
            body = int(base_body(self.system.robot.plant).index())
            return self.system.twin.relative_pose(q, 0, body).p
        if what not in self.feet:
            raise UnknownName("way point's base or foot", what, ["base", *self.feet])
        return self.system.feet(q)[self.feet.index(what)]

    @property
    def radii(self) -> np.ndarray:
        """Radii of the feet (num_feet,) [m]."""
        return np.array([foot.radius for foot in self.system.robot.model.feet])

    @property
    def legs(self) -> list[list[int]]:
        """Indices of the feet of every leg: those on one body."""
        found: dict[str, list[int]] = {}
        for i, foot in enumerate(self.system.robot.model.feet):
            found.setdefault(foot.body, []).append(i)
        return list(found.values())

    def clearances(self, points: np.ndarray) -> np.ndarray:
        """Heights of feet above the ground [m] from their positions (T, num_feet, 3)
        [m]."""
        phi, _ = self.system.terrain.evaluate(points.reshape(-1, 3))
        return phi.reshape(points.shape[:2]) - self.radii

    def moved(self, q: np.ndarray) -> dict[str, float]:
        """Change of the base's coordinates from first to last pose (T, nq), by axis."""
        at = self.indices("x", "y", "z", "yaw")
        return {axis: float(q[-1, i] - q[0, i]) for axis, i in at.items()}

    @property
    def joints(self) -> np.ndarray:
        """Indices in q of all coordinates that do not belong to the base."""
        names = set(self.base.values())
        kept = [name not in names for name in self.system.coordinates]
        return np.flatnonzero(kept)


def stand(
    model: Model,
    *,
    terrain: Terrain | None = None,
    pose: Mapping[str, float] | None = None,
) -> Standing:
    """The model in its standing posture, its lowest foot on the ground.

    Args:
        model: the model, with feet and actuators, on a free base or joints of its own;
            other free bodies of its file are left out.
        terrain: the ground, in SI; None for flat ground.
        pose: joint positions by joint that replace the defaults [rad, m]; None for
            the posture that :func:`drakebots.multibody.find_posture` finds.

    Raises:
        InvalidInput: for a model without feet, actuators or mass, one whose legs
            have no motors, one whose centre of mass is not above its feet, loops that
            do not close in this pose, and positions that are not finite.
        UnknownName: for an unknown joint.
    """
    check_legged(model, len(model.summary.actuators))
    model = replace(robot_alone(model), sprung=True)
    base = "euler" if model.summary.bases else "fixed"
    original = build_robot(model, base=base, time_step=0)
    posture = find_posture(model, pose=pose, bent=True)
    if posture.unactuated:
        raise InvalidInput(
            f"{model.name}: no joint of its legs has a motor "
            f"({some(posture.passive)}); add some (--actuate all --effort 10)"
        )
    scaling = _natural_units(original, posture)
    robot = build_robot(model, base=base, time_step=0, scaling=scaling)
    system = ContactSystem(robot, terrain=Flat() if terrain is None else terrain)
    context = _posed(robot, posture)
    _check_loops(robot, context)
    # Copies in other units have no speed limits.
    limits = original.plant.GetVelocityUpperLimits()
    by_name = dict(zip(ContactSystem(original).coordinates, limits))
    speeds = np.array([by_name[name] for name in system.coordinates])
    speeds, source = speeds / robot.velocity_units(), posture.source + posture.doubts
    q = robot.plant.GetPositions(context)
    standing = Standing(system, q, base_axes(robot), speeds, source)
    return replace(standing, q=lowered(standing, q))


def _posed(robot: Robot, posture: Posture):
    """A context in a posture, over the origin."""
    context = robot.plant.CreateDefaultContext()
    posture.put(robot, context, base=not posture.X_WB.IsNearlyIdentity(1e-12))
    return context


def _natural_units(robot: Robot, posture: Posture) -> Scaling:
    plant, context = robot.plant, _posed(robot, posture)
    g = float(-plant.gravity_field().gravity_vector()[2])
    if not g > 0:
        raise InvalidInput(
            f"{robot.model.name} has no gravity along -z; planning needs it"
        )
    feet = robot.feet_positions(context)[:, 2] - [f.radius for f in robot.model.feet]
    com = plant.CalcCenterOfMassPositionInWorld(context)[2]
    length = float(com - feet.min())
    if not length > 0:
        raise InvalidInput(
            f"{robot.model.name}: its centre of mass is not above its feet at the "
            "default joint positions; give a standing pose"
        )
    return Scaling(length, robot.model.summary.mass, float(np.sqrt(length / g)))


def _check_loops(robot: Robot, context) -> None:
    gaps, slips = robot.closure.gaps(context), robot.closure.slips(context)
    if len(slips) and slips.max() > LOOP_GAP:
        coupler = robot.closure.couplers[int(np.argmax(slips))]
        raise InvalidInput(
            f"joint {coupler.follower} of {robot.model.name} is not where "
            f"{coupler.leader}, which it follows, has it in the standing pose; leave "
            "it out of the pose"
        )
    if len(gaps) and gaps.max() > LOOP_GAP:
        raise InvalidInput(
            f"loops of {robot.model.name} are open in the standing pose; "
            f"{robot.closure.most_open(context)}: give a pose in which they close"
        )


def base_axes(robot: Robot) -> dict[str, str]:
    """Names of the coordinates between the world and the base.

    The axis of a coordinate is read off the base's velocity with all positions at
    zero; coordinates along other directions than +x, +y, +z are left out.
    """
    plant = robot.plant
    context = context_at(plant, np.zeros(plant.num_positions()))
    actuated = {joint.index() for joint in driven_joints(plant)}
    parents = [int(joint.parent_body().index()) for joint in joints_of(plant)]
    names, found = ContactSystem(robot).coordinates, {}
    world = plant.world_frame()
    for joint in base_joints(plant):
        parent = int(joint.parent_body().index())
        if joint.index() in actuated or (parents.count(parent) > 1 and parent):
            break
        at = joint.child_body().body_frame(), np.zeros(3), world, world
        J = plant.CalcJacobianSpatialVelocity(context, JacobianWrtVariable.kV, *at)
        start = joint.velocity_start()
        for column in range(start, start + joint.num_velocities()):
            moves = J[:, column]
            # A rotation also moves an origin that is off its axis.
            first = 0 if np.abs(moves[:3]).max() > 1e-9 else 3
            parts = moves[first : first + 3]
            k = int(np.argmax(parts))
            if np.abs(parts - np.eye(3)[k]).max() < 1e-9:
                found.setdefault(AXES[first + k], names[column])
    return found


def lowered(standing: Standing, q: np.ndarray) -> np.ndarray:
    """q moved along z until its lowest foot touches the ground.

    Without a base coordinate along z it is returned unchanged.
    """
    if "z" not in standing.base:
        return q
    q = np.array(q, float)
    points = standing.system.foot_positions(q)[0]
    q[standing.index("z")] += height_to_touch(standing, points, standing.radii)
    return q


def height_to_touch(standing: Standing, points: np.ndarray, radii: np.ndarray) -> float:
    """Height by which feet must rise together until the lowest touches the ground.

    Args:
        standing: the model.
        points: positions of the feet (n, 3), plant units.
        radii: their radii (n,) [m].
    """
    up, unit = 0.0, standing.scaling.length
    # Newton's method on the distance of the nearest foot; one step on flat ground.
    for _ in range(20):
        raised = points + np.array([0, 0, up])
        phi, slope = standing.system.terrain.evaluate(raised * unit)
        gap = (phi - radii) / unit
        at = int(np.argmin(gap))
        if abs(gap[at]) < 1e-9:
            break
        up -= gap[at] / max(slope[at, 2], 0.1)
    return up
