"""Suction feet: welds between feet and a wall that are switched during a simulation.

Drake's weld constraints join two bodies at poses fixed when the plant is built.
So each foot has an anchor: a body that is locked on the wall, and on it a second one
that turns about the wall's normal against a torsional spring, the compliance of the
cup. To attach a foot: move its anchor to the foot, lock it there, activate the weld.
All of that is state and parameters of the plant's Context (:class:`SuctionFeet`). No
other system of the diagram may change them, but a Simulator's monitor may: it is called
between two steps (:class:`SuctionSwitch`).

An anchor shares the foot's joint with the cup's torsion only: it carries the
shear force, measured by the reaction at its lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    PdControllerGains,
    PlanarJoint,
    RevoluteJoint,
    SpatialInertia,
    UnitInertia,
)
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, EventStatus, OutputPort

from drakebots.core.checks import check, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.run import Stop
from drakebots.model import find_body


@dataclass(frozen=True)
class Cup:
    """The compliance of a suction cup, and the anchor that represents it.

    Attributes:
        stiffness: torsional stiffness about the wall's normal [N m/rad].
        damping: torsional damping [N m s/rad].
        mass: mass of an anchor [kg]. Numerics only: with less than 0.1 kg a weld
            drifts by more than 0.4 mm.
        radius: radius of an anchor [m].
    """

    stiffness: float
    damping: float
    mass: float = 0.1
    radius: float = 0.02

    def __post_init__(self):
        rule = positive()
        check(self, "cup", stiffness=rule, damping=rule, mass=rule, radius=rule)


class SuctionFeet:
    """The suction feet of a plant whose links move in the world's xy plane.

    The object has no state: which feet are fixed, and where, is in the Context.

    Args:
        plant: plant before Finalize.
        bodies: names of the links whose origins are the feet.
        cup: cup of every foot.
        name: name of the anchors' model instance.

    Raises:
        InvalidInput: for a plant that is finalized or continuous.
        UnknownName: for a body that is not in the plant.
    """

    def __init__(
        self,
        plant: MultibodyPlant,
        bodies: Sequence[str],
        cup: Cup,
        *,
        name: str = "cups",
    ):
        if plant.is_finalized() or plant.time_step() == 0:
            raise InvalidInput(
                "suction feet need a discrete plant that is not finalized yet"
            )
        self.plant, self.cup = plant, cup
        self.names = tuple(bodies)
        self.instance = plant.AddModelInstance(name)
        self._feet, self._locks, self._twists, self._welds = [], [], [], []
        inertia = SpatialInertia(
            cup.mass, np.zeros(3), UnitInertia.SolidSphere(cup.radius)
        )
        for foot in self.names:
            body = find_body(plant, foot)
            base, top = (
                plant.AddRigidBody(f"{foot}_{part}", self.instance, inertia)
                for part in ("anchor", "cup")
            )
            on_wall = plant.world_frame(), base.body_frame(), np.zeros(3)
            lock = plant.AddJoint(PlanarJoint(f"{foot}_lock", *on_wall))
            on_base = base.body_frame(), top.body_frame(), [0, 0, 1]
            twist = plant.AddJoint(RevoluteJoint(f"{foot}_twist", *on_base))
            actuator = plant.AddJointActuator(f"{foot}_twist", twist)
            actuator.set_controller_gains(
                PdControllerGains(p=cup.stiffness, d=cup.damping)
            )
            weld = plant.AddWeldConstraint(
                body, RigidTransform(), top, RigidTransform()
            )
            self._feet.append(body)
            self._locks.append(lock)
            self._twists.append(twist)
            self._welds.append(weld)
        # The wall carries the anchors' weight, so that reactions are the feet's only.
        plant.set_gravity_enabled(self.instance, False)

    def __len__(self) -> int:
        return len(self.names)

    def place(self, context: Context, held=None) -> None:
        """Sets the feet that are fixed at first; none by default.

        Args:
            context: context of the plant, with the robot in its pose.
            held: whether each foot is fixed (F,) of bool.
        """
        for k in range(len(self)):
            self._release(context, k)
        if held is not None:
            self.hold(context, held)

    def hold(self, context: Context, held) -> None:
        """Attaches the feet that should be fixed and are not; releases the others.

        Args:
            context: context of the plant.
            held: whether each foot should be fixed (F,) of bool.
        """
        now = self.held(context)
        for k in np.flatnonzero(np.asarray(held, bool) != now):
            if held[k]:
                self._attach(context, k)
            else:
                self._release(context, k)

    def _attach(self, context: Context, k: int) -> None:
        X_WF = self._feet[k].EvalPoseInWorld(context)
        lock, twist = self._locks[k], self._twists[k]
        lock.Unlock(context)
        lock.set_translation(context, X_WF.translation()[:2])
        lock.set_rotation(context, X_WF.rotation().ToRollPitchYaw().yaw_angle())
        lock.Lock(context)  # also sets its velocities to zero
        twist.set_angle(context, 0.0)
        twist.set_angular_rate(context, 0.0)
        self.plant.SetConstraintActiveStatus(context, self._welds[k], True)

    def _release(self, context: Context, k: int) -> None:
        self.plant.SetConstraintActiveStatus(context, self._welds[k], False)
        self._locks[k].Lock(context)
        # The twist must not be locked: Drake 1.51 aborts when an actuator with
        # gains is on a locked joint.
        self._twists[k].set_angle(context, 0.0)
        self._twists[k].set_angular_rate(context, 0.0)

    def held(self, context: Context) -> np.ndarray:
        """Whether each foot is fixed (F,) of bool."""
        status = self.plant.GetConstraintActiveStatus
        return np.array([status(context, weld) for weld in self._welds])

    def feet(self, context: Context) -> np.ndarray:
        """Positions of the feet in the world (F, 2) [m]."""
        poses = (foot.EvalPoseInWorld(context) for foot in self._feet)
        return np.array([X_WF.translation()[:2] for X_WF in poses])

    def anchors(self, context: Context) -> np.ndarray:
        """Positions of the anchors (F, 2) [m]: where fixed feet were attached."""
        return np.array([lock.get_translation(context) for lock in self._locks])

    def drift(self, context: Context) -> np.ndarray:
        """Distances of fixed feet from where they were attached (F,) [m]; others 0."""
        gap = np.linalg.norm(self.feet(context) - self.anchors(context), axis=1)
        return np.where(self.held(context), gap, 0.0)

    @property
    def twist_matrix(self) -> np.ndarray:
        """Matrix (F, nq) from positions to the cups' twists; after Finalize.

        Cups of free feet are not twisted.
        """
        matrix = np.zeros((len(self), self.plant.num_positions()))
        for row, joint in zip(matrix, self._twists):
            row[joint.position_start()] = 1.0
        return matrix

    def twist(self, context: Context) -> np.ndarray:
        """Twists of the cups (F,) [rad]."""
        return np.array([joint.get_angle(context) for joint in self._twists])

    def shear(self, context: Context) -> np.ndarray:
        """Force of the wall on each foot in the wall's plane (F, 2) [N].

        It is that of the last step; zero for free feet.
        """
        reactions = self.plant.get_reaction_forces_output_port().Eval(context)
        forces = np.zeros((len(self), 2))
        order = list(self.plant.GetJointIndices())
        for k, lock in enumerate(self._locks):
            # Reactions are in the order of the plant's joints.
            force = reactions[order.index(lock.index())].translational()[:2]
            turn = lock.get_rotation(context)
            c, s = np.cos(turn), np.sin(turn)
            forces[k] = [c * force[0] - s * force[1], s * force[0] + c * force[1]]
        return np.where(self.held(context)[:, None], forces, 0.0)


_TINY = 1e-9

Guard = Callable[[Context, np.ndarray], np.ndarray]
"""Given the plant's context and which feet are fixed, which of them come off."""


class SuctionSwitch:
    """Attaches and releases suction feet as a port of the diagram commands.

    It is the simulator's monitor: after every step it reads `command` and changes the
    plant's Context where the command has changed. A guard may release feet; such a
    foot stays free until its command goes off and on again.

    Args:
        suction: the feet.
        command: output port of the diagram (F,): > 0.5 to fix a foot.
        guard: called every `guard_period`.
        guard_period: period of the guard [s].
        stop: called after every step with the root context; what it returns ends the
            run.

    Attributes:
        history: (time [s], held (F,) of bool) at the start and at each change.
        stopped: what ended the run, or None.
    """

    def __init__(
        self,
        suction: SuctionFeet,
        command: OutputPort,
        *,
        guard: Guard | None = None,
        guard_period: float = 0.01,
        stop: Callable[[Context], Stop | None] = lambda context: None,
    ):
        self.suction, self._command = suction, command
        self._guard, self._guard_period, self._stop = guard, guard_period, stop
        self._system = command.get_system()
        self.history: list[tuple[float, np.ndarray]] = []
        self.stopped: Stop | None = None

    def watch(self, simulator: Simulator, held) -> None:
        """Begins, with the feet that are fixed at first; call it before Initialize."""
        root = simulator.get_mutable_context()
        self._plant_context = self.suction.plant.GetMyMutableContextFromRoot(root)
        self._own_context = self._system.GetMyContextFromRoot(root)
        held = np.array(held, bool)
        self._lost = np.zeros(len(held), bool)
        self._next_guard, self.stopped = 0.0, None
        self.suction.place(self._plant_context, held)
        self.history = [(root.get_time(), held)]
        simulator.set_monitor(self._after_step)

    def held_at(self, times) -> np.ndarray:
        """Fixed feet until times (T,) [s], as in logged samples: (T, F) of bool."""
        changes = np.array([time for time, _ in self.history])
        # Drake publishes before it calls the monitor.
        rows = np.searchsorted(changes, np.asarray(times) - _TINY) - 1
        return np.array([held for _, held in self.history])[np.maximum(rows, 0)]

    def _after_step(self, context: Context) -> EventStatus:
        if self.stopped is None:
            self._switch(context.get_time())
            self.stopped = self._stop(context)
        if self.stopped is not None:
            return EventStatus.ReachedTermination(self._system, self.stopped.message)
        return EventStatus.DidNothing()

    def _switch(self, time: float) -> None:
        now = self.history[-1][1]
        command = self._command.Eval(self._own_context) > 0.5
        self._lost &= command
        if self._guard is not None and time >= self._next_guard - _TINY:
            self._next_guard = time + self._guard_period
            self._lost |= self._guard(self._plant_context, now)
        held = command & ~self._lost
        if (held != now).any():
            self.suction.hold(self._plant_context, held)
            self.history.append((time, held))
