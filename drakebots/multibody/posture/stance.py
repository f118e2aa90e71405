"""A robot on flat ground z = 0 with some of its coordinates free: what it measures.

The coordinates x of a stance are the height, roll and pitch of a free base, then the
joints of one degree of freedom on the way to a foot, in a loop or on a spring. All
other joints (arms, heads) and the base's x, y and yaw stay as the file has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.tree import Joint, JointIndex
from pydrake.systems.framework import Context, DiagramBuilder

from drakebots.core.errors import InvalidInput, check_names, some
from drakebots.model import (
    LoopClosure,
    Model,
    actuators_of,
    bodies_of,
    coupled_joints,
    driven_joints,
    free_bodies,
    gravity,
    joint_slices,
    joint_springs,
    joints_of,
    part_name,
    point_in_world,
    point_jacobian,
    single_joints,
    slides,
    with_joints,
)
from drakebots.multibody.extent import covers, lowest_points
from drakebots.multibody.plant import Robot, build_robot

GRAZE = 5e-3
"""Depth of shapes in one another that is passed over, as a share of the size."""


@dataclass(frozen=True)
class Posture:
    """A robot on flat ground z = 0.

    Attributes:
        joints: position of every joint of one degree of freedom by name [rad, m].
        X_WB: pose of the free base; the identity for a robot without one.
        source: its origin: "given", "pose 'home' of the file", "default
            positions", or "found".
        residuals: largest height of a foot [m], distance of the centre of mass from
            the polygon of the feet [m], largest loop row [m, 1], how far shapes
            reach into the ground [m], and what no motor holds at rest [weight].
        faults: why it does not stand, a line each; empty where it does.
        passive: joints of its legs that nothing drives, by motor, leader or loop. It
            may only balance on them, which a posture does not show.
        unactuated: whether nothing drives any joint of its legs, so that it cannot
            walk.
    """

    joints: Mapping[str, float]
    X_WB: RigidTransform
    source: str
    residuals: Mapping[str, float] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    passive: tuple[str, ...] = ()
    unactuated: bool = False

    def put(self, robot: Robot, context: Context, *, base: bool) -> None:
        """Puts a robot of its model, in any units, into it.

        Args:
            robot: the robot.
            context: context of its plant.
            base: whether to place its base, too.
        """
        plant, units = robot.plant, robot.position_units()
        q = with_joints(plant, units * plant.GetPositions(context), self.joints)
        plant.SetPositions(context, q / units)
        if base:
            robot.set_base_pose(context, self.X_WB)

    @property
    def stands(self) -> bool:
        """Whether nothing speaks against standing like this."""
        return not self.faults

    @property
    def doubts(self) -> str:
        """ ", though ..." with the two worst faults; "" where it stands."""
        if self.stands:
            return ""
        more = ", ..." if len(self.faults) > 2 else ""
        return f", though {', '.join(self.faults[:2])}{more}"

    @property
    def reservation(self) -> str:
        """Caveat on passive joints, "4 joints ... have no motor: ..."; or ""."""
        if not self.passive:
            return ""
        count = len(self.passive)
        which = "joints of its legs have" if count > 1 else "joint of its legs has"
        return f"{count} {which} no motor: {some(self.passive)}"


@dataclass(frozen=True)
class Leg:
    """The joints that carry one foot alone.

    Attributes:
        feet: indices of the model's feet (points) at its end.
        joints: indices of its joints in `Stance.joints`, from the base outward.
    """

    feet: tuple[int, ...]
    joints: tuple[int, ...]

    def to_ankle(self, bends: Sequence[int]) -> bool:
        """Whether its length counts from hip to ankle, by the joints that bend it."""
        return len(self.feet) > 1 and len(bends) > 2


class Stance:
    """A model's plant, posed by a short vector of coordinates.

    Args:
        model: the model to pose.

    Attributes:
        robot: the plant in SI, with open loops, on a free base if the model has one.
        joints: the joints of one degree of freedom, in the plant's order.
        legs: one for every body with feet.
        bends: indices in `joints` of the parallel hinges that bend each leg, from the
            base outward, at the default positions.
        base: the free body, or None.
        bodies: the robot's bodies: the base and all that it carries.
        moved: indices in `joints` of the joints that x has.
        drawn_overlaps: result of :meth:`overlaps` at the default positions.
        efforts: limits of effort of the joints' motors [N m, N]; inf without motors.
        roots: indices, in the plant, of the joints between the world and the trunk.
        springs: stiffness [N m/rad, N/m] and rest position of the joints that springs
            hold and no motor drives, by their index in `joints`.
    """

    def __init__(self, model: Model):
        builder = DiagramBuilder()
        self.robot: Robot = build_robot(model, builder, close_loops=False)
        plant = self.plant = self.robot.plant
        self.diagram = builder.Build()
        self.diagram_context = self.diagram.CreateDefaultContext()
        self.context = plant.GetMyMutableContextFromRoot(self.diagram_context)
        self.model = model
        self.base = _base(plant)
        self.joints = tuple(single_joints(plant))
        self._at = np.array([j.position_start() for j in self.joints], int)
        self.lower = np.array([j.position_lower_limit() for j in self.joints])
        self.upper = np.array([j.position_upper_limit() for j in self.joints])
        self.efforts = self._efforts()
        self.shapes = covers(plant, self.robot.scene_graph)
        q = plant.GetPositions(self.context)
        self.default = q[self._at]
        self._X_WB0 = RigidTransform()
        if self.base is not None:
            self._X_WB0 = plant.EvalBodyPoseInWorld(self.context, self.base)
        self._feet = self.robot.frames(model.feet)
        self._radii = np.array([foot.radius for foot in model.feet])
        self.roots, self.springs = self._root_joints(), self._springs()
        self.legs, self.moved = self._legs()
        self.bends = [self._bends(leg) for leg in self.legs]
        self.bodies = _tree(plant, self.base)
        self.mass = sum(body.get_mass(self.context) for body in self.bodies)
        self.gravity = gravity(plant)
        self.size = self._size()
        self.drawn_overlaps = self.overlaps()

    # --- what moves ---

    @property
    def base_coordinates(self) -> int:
        """The number of entries of x that place the base."""
        return 0 if self.base is None else 3

    def can_be_lowered(self) -> bool:
        """Whether the base is free, or slides along z on joints without motors."""
        return self.base is not None or self._slide() is not None

    @property
    def stands(self) -> bool:
        """Whether it has feet that can be put on the ground."""
        return len(self.model.feet) > 0 and self.can_be_lowered()

    def start(self, positions: np.ndarray) -> np.ndarray:
        """x with the base upright as in the file, the joints where given.

        Args:
            positions: positions of all joints (len(joints),) [rad, m].
        """
        if self.base is None:
            return positions[self.moved]
        roll, pitch, _ = RollPitchYaw(self._X_WB0.rotation()).vector()
        z = self._X_WB0.translation()[2]
        return np.concatenate([[z, roll, pitch], positions[self.moved]])

    def place(self, x: np.ndarray, positions: np.ndarray | None = None) -> None:
        """Sets the context: x, and all joints first where `positions` are given."""
        q = self.plant.GetPositions(self.context)
        if positions is not None:
            q[self._at] = positions
        q[self._at[self.moved]] = x[self.base_coordinates :]
        self.plant.SetPositions(self.context, q)
        if self.base is not None:
            z, roll, pitch = x[:3]
            yaw = RollPitchYaw(self._X_WB0.rotation()).yaw_angle()
            p = np.array([*self._X_WB0.translation()[:2], z])
            self._place_base(RigidTransform(RollPitchYaw(roll, pitch, yaw), p))

    def _place_base(self, X_WB: RigidTransform) -> None:
        self.plant.SetFloatingBaseBodyPoseInWorldFrame(self.context, self.base, X_WB)

    def take(self, posture: Posture) -> None:
        """Sets the context to a posture of the model."""
        positions = self.joint_positions(posture.joints)
        self.place(self.start(positions), positions)
        if self.base is not None:
            self._place_base(posture.X_WB)

    def bounds(self, margin: float) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of x: joint limits, drawn in by a share of their range."""
        low, high = self.lower[self.moved], self.upper[self.moved]
        inside = np.where(np.isfinite(high - low), np.minimum(high - low, 2), 0)
        free = np.full(self.base_coordinates, np.inf)
        low, high = low + margin * inside, high - margin * inside
        return np.concatenate([-free, low]), np.concatenate([free, high])

    def positions(self) -> np.ndarray:
        """Positions of all joints in the context (len(joints),) [rad, m]."""
        return self.plant.GetPositions(self.context)[self._at]

    def lower_to_ground(self) -> None:
        """Moves the base of the context along z until the lowest foot touches.

        Without feet the lowest point of its shapes does.
        """
        heights = self.foot_heights()
        if not len(heights):
            heights = self.shape_heights()
        if not len(heights):
            return
        if self.base is not None:
            X_WB = self.base_pose()
            X_WB.set_translation(X_WB.translation() - [0, 0, heights.min()])
            self._place_base(X_WB)
        elif (slide := self._slide()) is not None:
            joint, up = slide
            q = self.plant.GetPositions(self.context)
            q[joint.position_start()] -= heights.min() * up
            self.plant.SetPositions(self.context, q)

    # --- what it measures ---

    def feet(self) -> np.ndarray:
        """p_WF of the feet (nf, 3) [m]."""
        points = [point_in_world(self.plant, self.context, *p) for p in self._feet]
        return np.reshape(points, (-1, 3))

    def foot_heights(self) -> np.ndarray:
        """Height of the lowest point of every foot over the ground (nf,) [m]."""
        return self.feet()[:, 2] - self._radii

    def centre_of_mass(self) -> np.ndarray:
        """p_WC of the robot (3,) [m]; other free bodies of its file do not count."""
        return centre_of_mass(self.plant, self.context, self.bodies)

    def own_velocities(self) -> np.ndarray:
        """Mask of the velocities of the robot, not of other free bodies (nv,)."""
        own = np.zeros(self.plant.num_velocities(), bool)
        for joint in joints_of(self.plant):
            if joint.child_body() in self.bodies:
                own[joint_slices(joint)[1]] = True
        return own

    def loop_rows(self) -> np.ndarray:
        """c(q) of the loops and couplers, lengths [m]."""
        return self.robot.closure.residual(self.context)

    def shape_heights(self) -> np.ndarray:
        """z of the lowest point of every shape [m]."""
        return lowest_points(self.plant, self.context, self.shapes)

    def trunk_heights(self) -> np.ndarray:
        """z of the lowest point of every shape that no leg's joint moves [m]."""
        joints = [joint.index() for joint in self.leg_joints()]
        moved = set(self.plant.GetBodiesKinematicallyAffectedBy(joints))
        trunk = tuple(shape for shape in self.shapes if shape.body not in moved)
        return lowest_points(self.plant, self.context, trunk)

    def overlaps(self) -> set[tuple[str, str]]:
        """Names of the bodies whose collision shapes overlap by more than a graze."""
        pairs = self.robot.overlapping(self.diagram_context, GRAZE * self.size)
        return {tuple(sorted(body.name() for body in pair)) for pair in pairs}

    def base_pose(self) -> RigidTransform:
        """X_WB of the free base; the identity without one."""
        if self.base is None:
            return RigidTransform()
        return self.plant.EvalBodyPoseInWorld(self.context, self.base)

    def foot_jacobians(self) -> np.ndarray:
        """J of every foot's velocity in the world (nf, 3, nv)."""
        J = [point_jacobian(self.plant, self.context, *p) for p in self._feet]
        return np.reshape(J, (-1, 3, self.plant.num_velocities()))

    def hips(self) -> list[np.ndarray | None]:
        """Vectors from every leg's first joint to the middle of its feet (3,) [m].

        A leg that stands on a sole and bends at three joints is measured between the
        first and the last of these: from the hip to the ankle, which tilts the sole
        without lengthening the leg. None for a leg without joints.
        """
        p_WF = self.feet()
        found: list[np.ndarray | None] = []
        for leg, bends in zip(self.legs, self.bends):
            if not leg.joints:
                found.append(None)
            elif leg.to_ankle(bends):
                found.append(self._joint_at(bends[-1]) - self._joint_at(bends[0]))
            else:
                middle = p_WF[list(leg.feet)].mean(axis=0)
                found.append(middle - self._joint_at(leg.joints[0]))
        return found

    def _joint_at(self, joint: int) -> np.ndarray:
        """p_W of a joint (3,) [m]."""
        frame = self.joints[joint].frame_on_child()
        return frame.CalcPoseInWorld(self.context).translation()

    def axis(self, joint: int) -> np.ndarray | None:
        """The axis of a joint that turns, in the world (3,); None for one that
        slides."""
        joint = self.joints[joint]
        if joint.type_name() != "revolute":
            return None
        X_WJ = joint.frame_on_parent().CalcPoseInWorld(self.context)
        return X_WJ.rotation().matrix() @ joint.revolute_axis()

    def _bends(self, leg: Leg) -> list[int]:
        """The joints that bend a leg: those about the level axis that most of them
        share, of axes that equally many share the last; an ankle that also rolls is not
        among them."""
        axes = {j: self.axis(j) for j in leg.joints}
        level = {j: a for j, a in axes.items() if a is not None and abs(a[2]) < 0.5}
        groups = [[j for j in level if abs(level[j] @ a) > 0.8] for a in level.values()]
        return max(reversed(groups), key=len, default=[])

    def is_driven(self, leg: Leg) -> bool:
        """Whether all joints of a leg that can move have motors, or leaders that do."""
        driven = self.driven()
        return all(
            self.joints[j].index() in driven
            for j in leg.joints
            if self.upper[j] > self.lower[j]
        )

    def passive(self) -> tuple[str, ...]:
        """Names of the legs' joints that can move and have neither a motor nor a leader
        that does, nor a spring, nor a loop that joins them to others."""
        driven, in_loops = self.driven(), self.in_loops()
        driven |= {self.joints[k].index() for k in self.springs}
        return tuple(
            part_name(joint)
            for joint in self.movable_leg_joints()
            if joint.index() not in driven and not in_loops[joint.velocity_start()]
        )

    def movable_leg_joints(self) -> list[Joint]:
        """The joints of all legs that their limits do not lock."""
        joints = self.leg_joints()
        return [
            j for j in joints if j.position_upper_limit() > j.position_lower_limit()
        ]

    def leg_joints(self) -> list[Joint]:
        """The joints of all legs, each once."""
        numbers = dict.fromkeys(j for leg in self.legs for j in leg.joints)
        return [self.joints[j] for j in numbers]

    def driven(self) -> set[JointIndex]:
        """Indices of the joints that have motors, or leaders that do."""
        plant = self.robot.plant
        driven = {joint.index() for joint in driven_joints(plant)}
        for _ in self.robot.closure.couplers:  # a leader may follow, too
            for coupler in self.robot.closure.couplers:
                follower, leader = coupled_joints(plant, coupler)
                driven |= {follower.index()} if leader.index() in driven else set()
        return driven

    def joint_positions(self, pose: Mapping[str, float]) -> np.ndarray:
        """The defaults, replaced by those of a pose (len(joints),) [rad, m].

        Joints that follow others, and are not in the pose, go where these have them.

        Raises:
            UnknownName: for a joint that the model does not have.
            InvalidInput: for a position that is not finite.
        """
        names = [part_name(joint) for joint in self.joints]
        found = self.default.copy()
        for name, value in pose.items():
            check_names("joint", [name], names)
            if not np.isfinite(value):
                raise InvalidInput(f"the pose of joint {name} is {value}; not a number")
            found[names.index(name)] = value
        return np.where(np.isin(names, list(pose)), found, self.followed(found))

    def followed(self, positions: np.ndarray) -> np.ndarray:
        """Positions of all joints with those that follow where their leaders have them.

        Args:
            positions: of all joints (len(joints),) [rad, m].
        """
        q = np.zeros(self.plant.num_positions())
        q[self._at] = positions
        return self.robot.closure.followed(q)[self._at]

    # --- how it is built ---

    def _efforts(self) -> np.ndarray:
        motors = actuators_of(self.plant)
        limits = {motor.joint().index(): motor.effort_limit() for motor in motors}
        found = np.array([limits.get(j.index(), np.inf) for j in self.joints])
        return np.where(found > 0, found, np.inf)

    def _springs(self) -> dict[int, tuple[float, float]]:
        number = {joint.index(): k for k, joint in enumerate(self.joints)}
        driven = self.driven()
        return {
            number[joint]: law
            for joint, law in joint_springs(self.plant).items()
            if joint in number and joint not in driven and law[0] > 0
        }

    def _root_joints(self) -> set:
        """Indices of the joints between the world and the first body that weighs.

        Carriages of a base on slides may have some mass: less than a tenth of the
        heaviest body's.
        """
        found: set = set()
        body = self.plant.world_body()
        heaviest = max(body.default_mass() for body in bodies_of(self.plant))
        driven = {joint.index() for joint in driven_joints(self.plant)}
        while True:
            below = [j for j in joints_of(self.plant) if j.parent_body() == body]
            if len(below) != 1 or below[0].index() in driven:
                return found
            found.add(below[0].index())
            body = below[0].child_body()
            if body.default_mass() > 0.1 * heaviest:
                return found

    def _slide(self):
        """The root joint that slides along z, and its sense; None without one."""
        for joint in self.joints:
            if joint.index() in self.roots and slides(joint):
                axis = joint.translation_axis()
                frame = joint.frame_on_parent().CalcPoseInWorld(self.context)
                up = float((frame.rotation().matrix() @ axis)[2])
                if abs(up) > 0.99:
                    return joint, np.sign(up)
        return None

    def _legs(self) -> tuple[tuple[Leg, ...], np.ndarray]:
        """Legs by the foot's body, and the joints that x moves."""
        number = {joint.index(): k for k, joint in enumerate(self.joints)}
        above = {joint.child_body().index(): joint for joint in joints_of(self.plant)}
        chains: dict = {}
        for k, (frame, _) in enumerate(self._feet):
            body, chain = frame.body(), []
            while body.index() in above:
                joint = above[body.index()]
                if joint.index() in number:
                    chain.append(number[joint.index()])
                body = joint.parent_body()
            feet, _ = chains.setdefault(frame.body().index(), ([], chain[::-1]))
            feet.append(k)
        roots = {number[i] for i in self.roots if i in number}
        used = [set(chain) for _, chain in chains.values()]
        legs = []
        for k, (feet, chain) in enumerate(chains.values()):
            others = set().union(*used[:k], *used[k + 1 :])
            own = [j for j in chain if j not in others and j not in roots]
            legs.append(Leg(tuple(feet), tuple(own)))
        in_loops = self.in_loops()
        moved = set(self.springs).union(*used) | {
            k for k, j in enumerate(self.joints) if in_loops[j.velocity_start()]
        }
        pairs = [
            {number[joint.index()] for joint in coupled_joints(self.plant, coupler)}
            for coupler in self.robot.closure.couplers
        ]
        for _ in pairs:  # a leader may follow, too
            moved = moved.union(*(pair for pair in pairs if pair & moved))
        room = self.upper - self.lower > 1e-9
        return tuple(legs), np.array(sorted(k for k in moved if room[k]), int)

    def in_loops(self) -> np.ndarray:
        """Mask of the velocities that move closed loops, couplers aside (nv,)."""
        alone = LoopClosure(self.plant, self.robot.closure.loops)
        C = alone.jacobian(self.context)
        return np.abs(C).max(axis=0, initial=0.0) > 0

    def _size(self) -> float:
        """Distance from the centre of mass to the furthest foot, else body [m]."""
        points = self.feet()
        if not len(points):
            points = [
                self.plant.EvalBodyPoseInWorld(self.context, body).translation()
                for body in bodies_of(self.plant)[1:]
            ]
        offsets = np.reshape(points, (-1, 3)) - self.centre_of_mass()
        spread = np.linalg.norm(offsets, axis=1).max(initial=0.0)
        return float(spread) if spread > 1e-6 else 1.0


def centre_of_mass(plant, context, bodies) -> np.ndarray:
    """p_WC of some bodies (3,), in the plant's unit of length; 0 without mass."""
    mass = [body.get_mass(context) for body in bodies]
    if not sum(mass) > 0:
        return np.zeros(3)
    points = [
        plant.EvalBodyPoseInWorld(context, body)
        @ body.CalcCenterOfMassInBodyFrame(context)
        for body in bodies
    ]
    return np.average(points, axis=0, weights=mass)


def _tree(plant, base) -> tuple:
    """The base and all bodies that it carries; all bodies where none is free."""
    if base is None:
        return tuple(bodies_of(plant)[1:])
    free = [joint.index() for joint in joints_of(plant) if joint.child_body() == base]
    return tuple(map(plant.get_body, plant.GetBodiesKinematicallyAffectedBy(free)))


def _base(plant):
    """The free body of a plant with one; of several the one that carries most."""
    return max(
        free_bodies(plant),
        key=lambda body: (len(_tree(plant, body)), body.default_mass()),
        default=None,
    )
