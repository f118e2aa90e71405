"""Builds a Drake plant of a model, ready to simulate.

    builder = DiagramBuilder()
    robot = build_robot(load("hamr"), builder, ground=Ground(friction=0.6))

The plant may be in other units than SI (`Robot.scaling`); :class:`Robot` converts what
leaves it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np
from pydrake.geometry import (
    AddContactMaterial,
    HalfSpace,
    ProximityProperties,
    RoleAssign,
    SceneGraph,
)
from pydrake.math import RigidTransform
from pydrake.multibody.plant import (
    AddMultibodyPlant,
    CoulombFriction,
    MultibodyPlant,
    MultibodyPlantConfig,
)
from pydrake.multibody.tree import Frame, RigidBody
from pydrake.systems.framework import Context, DiagramBuilder

from drakebots.core.checks import (
    check_value,
    each,
    instance,
    non_negative,
    optional,
    text,
)
from drakebots.core.errors import InvalidInput, NoSolution, check_names
from drakebots.core.fields import checked
from drakebots.core.units import SI, Scaling
from drakebots.model import (
    LoopClosure,
    Model,
    Point,
    add_couplers,
    bodies_of,
    find_body,
    joint_slices,
    joints_of,
    length_indices,
    point_jacobian,
    sliding_motors,
)
from drakebots.multibody.base import attach_base, base_body, set_base_pose
from drakebots.multibody.scaled import copy_scaled
from drakebots.multibody.surfaces import Terrain
from drakebots.multibody.terrain import Flat

CLOSED = 1e-12
"""Largest |c(q)| of a :class:`ClosedChain`, in the plant's unit of length."""


def _not_about_half_spaces(record: logging.LogRecord) -> bool:
    """Mutes Drake's warning that half spaces do not touch its deformables."""
    return "half spaces are not currently supported" not in record.getMessage()


GROUND_FRICTION = 0.6
"""Friction coefficient of a ground of which nothing is said."""

CONTACT = "similar"
"""Drake's approximation of contact in all our plants.

Its own default, "lagged", bounds friction by the normal force of the step before. Where
a mass m lands at a speed v while it slides, friction is up to 1 + h^2 k/m (1 + d v)
times what Coulomb's law gives, with the time step h and the ground's stiffness k and
dissipation d: it nearly stops there. "similar" keeps the law, and is nearer to
measured throws of cubes and to hard contact; it throws a sliding body up where it lands
(docs/evidence/reality.md)."""

COLOUR = np.array([0.75, 0.77, 0.80, 1.0])
"""Colour of terrain."""

logging.getLogger("drake").addFilter(_not_about_half_spaces)


@checked("ground")
class Ground:
    """A terrain of one material.

    Raises:
        InvalidInput: for a negative value.
    """

    friction: Annotated[float, non_negative()]
    """Static and dynamic friction coefficient between it and the robot."""
    stiffness: Annotated[float | None, non_negative("N/m")] = None
    """Stiffness of point contact; None for Drake's default."""
    dissipation: Annotated[float | None, non_negative("s/m")] = None
    """Hunt-Crossley dissipation; None for Drake's default. A large one makes impacts
    inelastic."""
    terrain: Terrain = field(default_factory=Flat)
    """Its shape."""

    def material(self, scaling: Scaling = SI) -> ProximityProperties:
        """Friction, stiffness and dissipation for a plant in units of `scaling`."""
        properties, material = ProximityProperties(), {}
        if self.stiffness is not None:
            material["point_stiffness"] = self.stiffness / scaling.of(mass=1, time=-2)
        if self.dissipation is not None:
            material["dissipation"] = self.dissipation * scaling.velocity
        pair = CoulombFriction(self.friction, self.friction)
        AddContactMaterial(friction=pair, properties=properties, **material)
        return properties

    def add_to(self, plant: MultibodyPlant, scaling: Scaling = SI) -> None:
        """Gives the world of a plant in units of `scaling` the ground's shapes.

        Raises:
            InvalidInput: for a terrain without shapes.
        """
        terrain, material = self.terrain.scaled(scaling.length), self.material(scaling)
        world = plant.world_body()
        for number, (shape, X_WG) in enumerate(terrain.solids()):
            # Scenes of MuJoCo often have a shape called "ground" themselves.
            name = f"drakebots_ground_{number}" if number else "drakebots_ground"
            plant.RegisterCollisionGeometry(world, X_WG, shape, name, material)
        for number, (shape, X_WG) in enumerate(terrain.drawn()):
            if not isinstance(shape, HalfSpace):
                name = f"drakebots_terrain_{number}"
                plant.RegisterVisualGeometry(world, X_WG, shape, name, COLOUR)


def set_friction(
    plant: MultibodyPlant, scene_graph: SceneGraph, friction: float, *context: Context
) -> None:
    """Gives all collision shapes of a plant one friction coefficient.

    It is then that of every pair, where Drake takes 2 m n/(m + n) of two: a foot
    whose file gives no friction has n = 1 there, and ground of m = 0.29 would hold it
    by 0.45.

    Args:
        plant: plant that is registered with the scene graph.
        scene_graph: the scene graph.
        friction: the coefficient.
        context: of the scene graph, to change it there only.
    """
    inspector, source = scene_graph.model_inspector(), plant.get_source_id()
    for body in bodies_of(plant):
        for key in plant.GetCollisionGeometriesForBody(body):
            material = ProximityProperties(inspector.GetProximityProperties(key))
            pair = CoulombFriction(friction, friction)
            material.UpdateProperty("material", "coulomb_friction", pair)
            scene_graph.AssignRole(*context, source, key, material, RoleAssign.kReplace)


@dataclass(frozen=True)
class Robot:
    """A finalized plant with the model it came from.

    Attributes:
        model: the model.
        plant: its finalized plant, in the units of `scaling`.
        scene_graph: the scene graph in the same builder, or None.
        scaling: the plant's units.
        closure: c(q) and C(q) of the model's loops and couplers.
    """

    model: Model
    plant: MultibodyPlant
    scene_graph: SceneGraph | None
    scaling: Scaling
    closure: LoopClosure

    def position_units(self) -> np.ndarray:
        """SI value of one unit of each position (nq,): a length [m], or 1 [rad]."""
        return np.where(self.length_positions()[0], self.scaling.length, 1.0)

    def velocity_units(self) -> np.ndarray:
        """SI value of one unit of each velocity (nv,) [m/s] or [rad/s]."""
        return np.where(
            self.length_positions()[1], self.scaling.velocity, 1 / self.scaling.time
        )

    def input_units(self) -> np.ndarray:
        """SI value of one unit of each input (nu,): [N m], or [N] of sliding joints."""
        unit = self.scaling
        return np.where(sliding_motors(self.plant), unit.force, unit.torque)

    def length_positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Masks of the positions (nq,) and velocities (nv,) that are lengths."""
        plant = self.plant
        sizes = plant.num_positions(), plant.num_velocities()
        q, v = (np.zeros(size, bool) for size in sizes)
        for joint in joints_of(plant):
            at_q, at_v = joint_slices(joint)
            q[at_q][length_indices(joint)] = True
            v[at_v][length_indices(joint, of_velocities=True)] = True
        return q, v

    def feet_positions(self, context: Context) -> np.ndarray:
        """p_WF of every foot (num_feet, 3) [m]."""
        return self._positions(context, self.model.feet, self.plant.world_frame())

    def points_positions(self, context: Context, body: str | None = None):
        """p of every named point (num_points, 3) [m], in the world or in a body."""
        plant = self.plant
        frame = plant.world_frame() if body is None else _body_frame(plant, body)
        return self._positions(context, self.model.points, frame)

    def feet_jacobian(self, context: Context) -> np.ndarray:
        """J (3 num_feet, nv) of the feet's velocities in the world, plant units."""
        feet = self.frames(self.model.feet)
        rows = [point_jacobian(self.plant, context, *foot) for foot in feet]
        return np.vstack([np.zeros((0, self.plant.num_velocities())), *rows])

    def frames(self, points: Sequence[Point]) -> list[tuple[Frame, np.ndarray]]:
        """Body frame of each point, and its position in it (3,), plant units."""
        return [
            (_body_frame(self.plant, point.body), point.p_BF / self.scaling.length)
            for point in points
        ]

    def _positions(self, context: Context, points, seen_from: Frame) -> np.ndarray:
        positions, places = self.plant.CalcPointsPositions, self.frames(points)
        p = [positions(context, *place, seen_from) for place in places]
        return self.scaling.length * np.reshape(p, (-1, 3))

    def set_base_pose(self, context: Context, X_WB: RigidTransform) -> None:
        """Places the base; the translation is in m."""
        scaled = RigidTransform(
            X_WB.rotation(), X_WB.translation() / self.scaling.length
        )
        set_base_pose(self.plant, context, scaled)

    def overlapping(self, root: Context, least: float = 0.0) -> list[list[RigidBody]]:
        """Pairs of bodies whose collision shapes reach into one another.

        Args:
            root: context of the diagram of plant and scene graph.
            least: smallest depth that counts, plant units.
        """
        graph = self.scene_graph
        inspector = graph.model_inspector()
        query = graph.get_query_output_port().Eval(graph.GetMyContextFromRoot(root))
        found = []
        for pair in query.ComputePointPairPenetration():
            if pair.depth >= least:
                frames = map(inspector.GetFrameId, (pair.id_A, pair.id_B))
                bodies = map(self.plant.GetBodyFromFrameId, frames)
                found.append(sorted(bodies, key=lambda body: int(body.index())))
        return found

    def put_onto(
        self, context: Context, terrain: Terrain, soles: np.ndarray | None = None
    ) -> None:
        """Puts a robot that stands on z = 0 onto a terrain, if that is another.

        Args:
            context: of its plant.
            terrain: the ground.
            soles: the robot's lowest points (n, 3) [m]; by default those of its feet.
        """
        if terrain == Flat():
            return
        X_WB = self.plant.EvalBodyPoseInWorld(context, base_body(self.plant))
        p_WB = self.scaling.length * X_WB.translation()
        if soles is None:
            down = np.outer([foot.radius for foot in self.model.feet], [0.0, 0.0, 1.0])
            soles = self.feet_positions(context) - down
        if not len(soles):
            soles = np.array([[p_WB[0], p_WB[1], 0.0]])
        X_WB = RigidTransform(X_WB.rotation(), p_WB)
        self.set_base_pose(context, terrain.footing(soles) @ X_WB)


@checked("closed chain")
class ClosedChain:
    """Solves a robot's loops for given positions of some joints.

    The positions split into independent ones (those of the joints) and dependent ones;
    c(q_i, q_d) = 0 gives q_d by Newton's method, and the velocities follow as v = T v_i
    with

        T = [ 1 ; -C_d^-1 C_i ]        (RSS 2018, eq. (19))
    """

    robot: Annotated[Robot, instance(Robot)]
    """Robot on base "fixed" or "euler", so that its velocities are the rates of its
    positions."""
    joints: Annotated[tuple[str, ...], each(text(), "names of joints")]
    """Names of the independent joints (single-coordinate)."""

    def __post_init__(self):
        self._split  # noqa: B018  a wrong choice of joints must be found now

    @cached_property
    def _split(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the independent and of the dependent coordinates."""
        plant, closure = self.robot.plant, self.robot.closure
        check_names("joint", self.joints, [joint.name() for joint in joints_of(plant)])
        index = [plant.GetJointByName(name).position_start() for name in self.joints]
        if plant.num_positions() != plant.num_velocities():
            raise InvalidInput("closed chains need base 'euler' or 'fixed'")
        C = closure.jacobian(plant.CreateDefaultContext())
        in_loops = np.flatnonzero(np.abs(C).max(axis=0) > 0)
        dependent = np.setdiff1d(in_loops, index)
        if len(dependent) != closure.num_rows:
            raise InvalidInput(
                f"{len(self.joints)} joints leave {len(dependent)} coordinates to "
                f"{closure.num_rows} loop rows; choose as many joints as the loops "
                "have degrees of freedom"
            )
        return np.array(index), dependent

    def solve(self, context: Context, values: Mapping[str, float]) -> np.ndarray:
        """Closes the loops in `context` and returns its positions (nq,).

        Args:
            context: context of the plant. Its positions are the first guess;
                coordinates outside the loops stay as they are.
            values: position of each independent joint, in plant units.

        Raises:
            NoSolution: when Newton's method does not converge (out of reach).
        """
        independent, dependent = self._split
        plant, closure = self.robot.plant, self.robot.closure
        q = plant.GetPositions(context).copy()
        q[independent] = [values[name] for name in self.joints]
        for _ in range(50):
            plant.SetPositions(context, q)
            c, C = closure.evaluate(context)
            if np.abs(c).max() < CLOSED:
                return q
            q[dependent] -= np.linalg.solve(C[:, dependent], c)
        worst = dict(zip(closure.row_names, np.abs(c)))
        top = dict(sorted(worst.items(), key=lambda item: -item[1])[:3])
        raise NoSolution("the loops do not close at these joint positions", top)

    def tangent(self, context: Context) -> np.ndarray:
        """T (nv, num_joints) with v = T v_i; other coordinates at rest."""
        independent, dependent = self._split
        C = self.robot.closure.jacobian(context)
        T = np.zeros((self.robot.plant.num_velocities(), len(self.joints)))
        T[independent] = np.eye(len(self.joints))
        T[dependent] = -np.linalg.solve(C[:, dependent], C[:, independent])
        return T


def _body_frame(plant: MultibodyPlant, body: str) -> Frame:
    return find_body(plant, body).body_frame()


def build_robot(
    model: Model,
    builder: DiagramBuilder | None = None,
    *,
    time_step: float = 1e-3,
    scaling: Scaling = SI,
    base: str = "quaternion",
    ground: Ground | None = None,
    close_loops: bool = True,
    contact: str = CONTACT,
    prepare: Callable[[MultibodyPlant], None] | None = None,
) -> Robot:
    """Builds a plant for a model.

    Args:
        model: model, as of :func:`drakebots.load`.
        builder: builder to add plant and scene graph to; None gives a plant alone,
            without contact.
        time_step: time step of the discrete plant [s]; 0 gives a continuous plant,
            which cannot close loops.
        scaling: the units to compute in.
        base: see :mod:`drakebots.multibody.base`.
        ground: the ground, by :func:`set_friction`; None for none. Needs a builder.
        close_loops: whether SAP closes the model's loops.
        contact: Drake's `discrete_contact_approximation`; see :data:`CONTACT`.
        prepare: called with the plant before it is finalized, to add to it.

    Raises:
        InvalidInput: for a time step that is negative or not finite, a base that does
            not fit, a ground without a builder, a model that cannot be copied to other
            units, or joints that follow others under TAMSI.
    """
    check_value("model", model, instance(Model, "a model, as load(file) gives one"))
    check_value("ground", ground, optional(instance(Ground)))
    check_value("time step", time_step, non_negative("s"))
    if time_step > 0:
        _check_contact(model, contact)
    config = MultibodyPlantConfig(
        time_step=time_step / scaling.time,
        discrete_contact_approximation=contact,
        contact_model="point",
    )
    plant, scene_graph = _added(config, builder, ground)
    closed = close_loops and time_step > 0
    if scaling.is_si:
        model.add_to(plant, close_loops=closed)
    else:
        _add_scaled(model, plant, scene_graph, scaling, closed)
    attach_base(plant, base)
    if prepare is not None:
        prepare(plant)
    if ground is not None:
        ground.add_to(plant, scaling)
        set_friction(plant, scene_graph, ground.friction)
    plant.Finalize()
    closure = LoopClosure(
        plant, model.loops, couplers=model.couplers, length_unit=scaling.length
    )
    return Robot(model, plant, scene_graph, scaling, closure)


def _added(config: MultibodyPlantConfig, builder, ground):
    """A plant and its scene graph in a diagram, or a plant alone; of several, Drake
    wants other names."""
    if builder is None and ground is not None:
        raise InvalidInput("a ground needs a builder, for its scene graph; give one")
    if builder is None:
        return MultibodyPlant(config.time_step), None
    parts = AddMultibodyPlant(config, builder)
    for part in parts:
        count = sum(isinstance(one, type(part)) for one in builder.GetSystems())
        part.set_name(part.get_name() + f"_{count}" * (count > 1))
    return parts


def _check_contact(model: Model, contact: str) -> None:
    """Refuses joints that follow others in a discrete plant that cannot hold them."""
    if model.couplers and contact == "tamsi":
        raise InvalidInput(
            f"{model.name}: joint {model.couplers[0].follower!r} follows another, "
            f"which TAMSI does not know; take contact {CONTACT!r}"
        )


def _add_scaled(model, plant, scene_graph, scaling, close_loops) -> None:
    """Adds a model to a plant in other units, by way of a plant in SI."""
    # A second diagram owns the original in SI while it is copied.
    original_builder = DiagramBuilder()
    original, geometry = AddMultibodyPlant(
        MultibodyPlantConfig(time_step=1e-3), original_builder
    )
    model.add_to(original, close_loops=False)
    original.Finalize()
    in_file = sum(loop.in_file for loop in model.loops)
    others = original.num_constraints() - len(model.couplers)
    if close_loops and others and not in_file:
        raise InvalidInput(
            f"{model.path}: declares {others} constraints that cannot be copied to "
            "other units; list them as loops in the YAML beside it"
        )
    copy_scaled(original, geometry, plant, scaling, scene_graph)
    if close_loops:
        model.close_loops(plant, length_unit=scaling.length)
        add_couplers(plant, model.couplers, length_unit=scaling.length)
