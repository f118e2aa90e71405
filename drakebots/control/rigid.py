"""A rigid robot on its ground that takes commands step by step.

Drake's SAP, or hard contact, which only tracks plans. Both have the same face:
`state()`, `forces()` of the ground on the feet, and `advance(command)` by one time
step. All quantities are in the plant's units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from pydrake.common.value import Value
from pydrake.multibody.math import SpatialForce
from pydrake.multibody.plant import ExternallyAppliedSpatialForce, MultibodyPlant
from pydrake.multibody.tree import SpatialInertia, UnitInertia
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots.control.system import Command
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.model import Model, bodies_of, driven_joints, point_jacobian
from drakebots.multibody import (
    Flat,
    Ground,
    Robot,
    Terrain,
    TimeStepper,
    add_soles,
    base_body,
    build_robot,
    forces_on_soles,
    set_friction,
    touch_by_soles,
)
from drakebots.multibody.posture import Servos, target_ports

PENETRATION = 1e-3
"""Depth to which the robot's weight on one foot presses it into the ground, as a share
of the height of the centre of mass."""

DISSIPATION = 20.0
"""Hunt-Crossley dissipation of the ground [1/sqrt(g l)]: impacts are inelastic."""


def stiff_ground(
    model: Model, height: float, friction: float, g: float, terrain: Terrain
) -> Ground:
    """Ground that is stiff for a robot of this mass.

    Args:
        model: the robot's model.
        height: height of its centre of mass above the ground [m].
        friction: friction coefficient.
        g: magnitude of gravity [m/s^2].
        terrain: its shape.
    """
    return Ground(
        friction,
        # The soles are as stiff as the ground: two springs in series.
        stiffness=2 * model.summary.mass * g / (PENETRATION * height),
        dissipation=DISSIPATION / np.sqrt(g * height),
        terrain=terrain,
    )


class SapPlant:
    """A robot in Drake's discrete plant; its feet touch the ground as points.

    Other bodies touch the ground with their own collision geometry, and no two bodies
    of the robot touch each other.

    Contact is Drake's "similar" (:data:`~drakebots.multibody.plant.CONTACT`).

    Args:
        model: the robot.
        base: see :mod:`drakebots.multibody.base`.
        time_step: time step of the plant [s].
        ground: the ground.
        servos: servos at the motors, which take a command's targets.
        mass_error: share by which all masses differ from the model's.
    """

    rolls = True
    """Whether friction acts at the lowest points of round feet."""

    def __init__(
        self,
        model: Model,
        *,
        base: str,
        time_step: float,
        ground: Ground,
        servos: Servos | None = None,
        mass_error: float = 0.0,
    ):
        builder, soles = DiagramBuilder(), []

        def add(plant: MultibodyPlant) -> None:
            soles.extend(add_soles(plant, model.feet, ground.material()))
            if servos is not None:
                servos.add_to(plant)

        self.robot = build_robot(
            model, builder, time_step=time_step, base=base, ground=ground, prepare=add
        )
        self.plant, self.time_step = self.robot.plant, time_step
        touch_by_soles(self.plant, self.robot.scene_graph, soles)
        self._soles = {key: foot for foot, key in enumerate(soles)}
        self._simulator = Simulator(builder.Build())
        self._root = self._simulator.get_mutable_context()
        self._context = self.plant.GetMyMutableContextFromRoot(self._root)
        self._steps, self._trunk = 0, base_body(self.plant)
        self._pushed = False
        self._served = [] if servos is None else target_ports(self.plant)
        if mass_error:
            _scale_masses(self.plant, self._context, 1 + mass_error)
        self._bare = self._trunk.CalcSpatialInertiaInBodyFrame(self._context)

    def set_friction(self, friction: float) -> None:
        """Changes the friction coefficient of the ground, from the next step on."""
        graph = self.robot.scene_graph
        context = graph.GetMyMutableContextFromRoot(self._root)
        set_friction(self.plant, graph, friction, context)

    def set_payload(self, mass: float) -> None:
        """Changes the mass carried at the trunk's centre of mass [kg]."""
        p_BoBcm_B = self._bare.get_com()
        load = SpatialInertia(mass, p_BoBcm_B, UnitInertia.PointMass(p_BoBcm_B))
        load += self._bare
        self._trunk.SetSpatialInertiaInBodyFrame(self._context, load)

    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Sets the state; the servos hold the motors where they are."""
        self.plant.SetPositions(self._context, q)
        self.plant.SetVelocities(self._context, v)
        joints = driven_joints(self.plant)
        held = [q[joint.position_start()] for joint in joints]
        held += [v[joint.velocity_start()] for joint in joints]
        zero = np.zeros(self.plant.num_actuators())
        self._set_inputs(Command(zero, np.array(held)))

    def _set_inputs(self, command: Command, forces: Sequence[np.ndarray] = ()) -> None:
        plant, context = self.plant, self._context
        if plant.num_actuators():
            plant.get_actuation_input_port().FixValue(context, command.efforts)
        for port, rows in self._served:
            port.FixValue(context, command.targets[rows])
        force = sum(forces, np.zeros(3))
        if not (force.any() or self._pushed):
            return  # the port stays as it is: fixing it costs as much as all others
        self._pushed = bool(force.any())
        push = ExternallyAppliedSpatialForce()
        push.body_index = self._trunk.index()
        push.p_BoBq_B = self._trunk.default_com()
        push.F_Bq_W = SpatialForce(np.zeros(3), force)
        pushes = Value[list[ExternallyAppliedSpatialForce]]([push])
        plant.get_applied_spatial_force_input_port().FixValue(context, pushes)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """q and v."""
        plant, context = self.plant, self._context
        return plant.GetPositions(context).copy(), plant.GetVelocities(context).copy()

    def seen(self) -> tuple[Robot, np.ndarray]:
        """Robot and positions."""
        return self.robot, self.state()[0]

    def efforts(self) -> np.ndarray:
        """Net efforts of the actuators in the last step (nu,), servos included."""
        port = self.plant.get_net_actuation_output_port()
        return port.Eval(self._context).copy()

    def forces(self) -> np.ndarray:
        """Forces of the ground on the feet in the last step, world (nc, 3)."""
        count = len(self.robot.model.feet)
        return forces_on_soles(self.plant, self._context, self._soles, count)

    def advance(self, command: Command, forces: Sequence[np.ndarray] = ()) -> None:
        """One time step under a command and forces (3,) at the trunk's centre of mass.

        Raises:
            RuntimeError: when Drake's contact solver fails.
        """
        self._set_inputs(command, forces)
        self._steps += 1
        self._simulator.AdvanceTo(self._steps * self.time_step)


def _scale_masses(plant: MultibodyPlant, context, factor: float) -> None:
    """Makes every body heavier by a factor, of the same shape."""
    for body in bodies_of(plant)[1:]:
        M = body.CalcSpatialInertiaInBodyFrame(context)
        mass, p_BoBcm_B, G = M.get_mass(), M.get_com(), M.get_unit_inertia()
        if mass > 0:
            scaled = SpatialInertia(mass * factor, p_BoBcm_B, G)
            body.SetSpatialInertiaInBodyFrame(context, scaled)


class HardPlant:
    """A robot moved by :class:`TimeStepper`; only its feet touch the ground.

    Args:
        model: the robot.
        base: "euler" or "fixed".
        time_step: time step [s].
        friction: friction coefficient of the ground z = 0.
    """

    rolls = False
    """Whether friction acts at the lowest points of round feet: at their centres."""

    def __init__(self, model: Model, *, base: str, time_step: float, friction: float):
        self.robot = build_robot(model, base=base, time_step=0)
        self.plant, self.time_step = self.robot.plant, time_step
        self._stepper = TimeStepper(self.robot, time_step, friction=friction)
        self._force = np.zeros((len(model.feet), 3))

    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Sets the state."""
        self._q, self._v = np.array(q, float), np.array(v, float)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """q and v."""
        return self._q.copy(), self._v.copy()

    def seen(self) -> tuple[Robot, np.ndarray]:
        """Robot and positions."""
        return self.robot, self.state()[0]

    def forces(self) -> np.ndarray:
        """Forces of the ground on the feet in the last step, world (nc, 3)."""
        return self._force

    def advance(self, command: Command, forces: Sequence[np.ndarray] = ()) -> None:
        """One time step under a command and forces (3,) at the trunk's centre of mass.

        Raises:
            NoSolution: when the contact problem is not solved.
        """
        stepper, trunk = self._stepper, base_body(self.plant)
        self.plant.SetPositions(stepper.context, self._q)
        at = trunk.body_frame(), trunk.default_com()
        J = point_jacobian(self.plant, stepper.context, *at)
        push = J.T @ sum(forces, np.zeros(3))
        found = stepper.step(self._q, self._v, command.efforts, push)
        self._q, self._v, contact = found
        self._force = np.column_stack([contact.friction, contact.normal])


# --- contact models by value --------------------------------------------------


class ContactModel(ABC):
    """What is under a robot's feet."""

    @abstractmethod
    def plant(
        self, model: Model, base: str, time_step: float, ground: Ground
    ) -> SapPlant | HardPlant:
        """A robot on ground in its units, as :class:`SapPlant` has it.

        Raises:
            InvalidInput: for a terrain that it does not know.
        """


@checked("ground")
class Sap(ContactModel):
    """Drake's SAP on stiff ground."""

    def plant(self, model, base, time_step, ground):
        """The robot in Drake's plant."""
        return SapPlant(model, base=base, time_step=time_step, ground=ground)


@checked("ground")
class Hard(ContactModel):
    """Time stepping with hard contact; its friction is that of a pyramid in x and y."""

    def plant(self, model, base, time_step, ground):
        """The robot in time stepping."""
        if ground.terrain != Flat():
            raise InvalidInput(
                f"hard contact knows flat ground at z = 0, not {ground.terrain}; "
                "take ground Sap"
            )
        return HardPlant(
            model, base=base, time_step=time_step, friction=ground.friction
        )
