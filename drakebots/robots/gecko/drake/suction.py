"""Suction feet: welds between feet and a wall that switch on and off.

Drake's weld constraints join two bodies at poses fixed when the plant is made.
So each foot has an anchor: a body that is locked on the wall, and on it one that
turns about the wall's normal against a torsional spring, the give of the cup.
To attach a foot: move its anchor to it, lock it there, activate the weld. All
of that is state and parameters of the plant's Context, which no system but the
plant may change; `drakebots.robots.gecko.drake.suction` does, between two steps.

An anchor shares the foot's joint with the cup's torsion only: it carries the
shear, measured by the reaction at its lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    BodyIndex,
    PdControllerGains,
    PlanarJoint,
    RevoluteJoint,
    SpatialInertia,
    UnitInertia,
)
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, EventStatus, OutputPort

from drakebots.core.errors import InvalidInput, UnknownName

# The one who switches suction feet during a simulation.
#
# What a weld does is a parameter of the plant's Context, which no other system of
# the diagram may write. A Simulator's monitor is called between its steps, when
# its context may change: the switch is that monitor.

TINY = 1e-9

Guard = Callable[[Context, np.ndarray], np.ndarray]
"""Given the plant's context and the feet that hold, the feet that lose hold."""


class SuctionSwitch:
    """Switches suction feet as a port of the diagram commands.

    It is the simulator's monitor: called after every step, it reads `command`
    and changes the plant's Context where the command has changed. A guard may
    take hold from feet; such a foot stays free until its command goes off and
    on again.

    Args:
        suction: the feet.
        command: an output port of the diagram's, (F,): > 0.5 to hold.
        guard: asked every `guard_period`.
        guard_period: [s].
        stop: asked after every step with the root context; returns why to end
            the run, or None.

    Attributes:
        history: (time [s], held (F,) of bool) at the start and at each change.
        stopped: (time [s], reason), or None.
    """

    def __init__(
        self,
        suction: SuctionFeet,
        command: OutputPort,
        *,
        guard: Guard | None = None,
        guard_period: float = 0.01,
        stop: Callable[[Context], str | None] | None = None,
    ):
        self.suction, self._command = suction, command
        self._guard, self._guard_period, self._stop = guard, guard_period, stop
        self._system = command.get_system()
        self.history: list[tuple[float, np.ndarray]] = []
        self.stopped: tuple[float, str] | None = None

    def watch(self, simulator: Simulator, held) -> None:
        """Begins, with the feet that hold at first; before Initialize."""
        self._root = simulator.get_mutable_context()
        self._plant_context = self.suction.plant.GetMyMutableContextFromRoot(self._root)
        self._own_context = self._system.GetMyContextFromRoot(self._root)
        self._before = np.asarray(held, bool).copy()
        self._lost = np.zeros(len(self._before), bool)
        self._next_guard = 0.0
        self.stopped = None
        self.suction.place(self._plant_context, self._before)
        self.history = [(self._root.get_time(), self._before.copy())]
        simulator.set_monitor(self._after_step)

    def held_at(self, times) -> np.ndarray:
        """Which feet held up to times (T,) [s], as logs see it: (T, F) of bool."""
        changes = np.array([time for time, _ in self.history])
        # Drake publishes before it calls the monitor.
        rows = np.searchsorted(changes, np.asarray(times) - TINY) - 1
        return np.array([held for _, held in self.history])[np.maximum(rows, 0)]

    def _after_step(self, context: Context) -> EventStatus:
        time = context.get_time()
        if self.stopped is None:
            command = self._command.Eval(self._own_context) > 0.5
            self._lost &= command
            if self._guard is not None and time >= self._next_guard - TINY:
                self._next_guard = time + self._guard_period
                now = self.history[-1][1]
                self._lost |= self._guard(self._plant_context, now)
            held = command & ~self._lost
            if (held != self.history[-1][1]).any():
                self.suction.hold(self._plant_context, held)
                self.history.append((time, held.copy()))
            reason = None if self._stop is None else self._stop(context)
            if reason is not None:
                self.stopped = (time, reason)
        if self.stopped is not None:
            return EventStatus.ReachedTermination(self._system, self.stopped[1])
        return EventStatus.DidNothing()


@dataclass(frozen=True)
class Cup:
    """A suction foot's give, and the anchor that stands for it.

    Attributes:
        stiffness: in torsion about the wall's normal [N m/rad].
        damping: in torsion [N m s/rad].
        mass, radius: of an anchor [kg], [m]. Numerics only: with less than
            0.1 kg a weld drifts by more than 0.4 mm.
    """

    stiffness: float
    damping: float
    mass: float = 0.1
    radius: float = 0.02

    def __post_init__(self):
        for name in ("stiffness", "damping", "mass", "radius"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"cup: {name} must be > 0, got {value}")


class SuctionFeet:
    """The suction feet of a plant whose links move in the world's xy plane.

    Stateless: what holds, and where, is in the plant's Context.

    Args:
        plant: before Finalize.
        bodies: names of the links whose origins are feet.
        cup: of every foot.
        name: of the model instance of the anchors.

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
            if not plant.HasBodyNamed(foot):
                links = {plant.get_body(i).name() for i in _bodies(plant)}
                raise UnknownName("foot", foot, links)
            body = plant.GetBodyByName(foot)
            base, top = (
                plant.AddRigidBody(f"{foot}_{part}", self.instance, inertia)
                for part in ("anchor", "cup")
            )
            lock = plant.AddJoint(
                PlanarJoint(
                    f"{foot}_lock",
                    plant.world_frame(),
                    base.body_frame(),
                    np.zeros(3),
                )
            )
            twist = plant.AddJoint(
                RevoluteJoint(
                    f"{foot}_twist", base.body_frame(), top.body_frame(), [0, 0, 1]
                )
            )
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
        # The wall carries the anchors, so that a reaction is the foot's alone.
        plant.set_gravity_enabled(self.instance, False)

    def __len__(self) -> int:
        return len(self.names)

    def place(self, context: Context, held=None) -> None:
        """Sets the feet that hold at the start; none by default.

        Args:
            context: the plant's, with the robot in its pose.
            held: (F,) of bool.
        """
        for k in range(len(self)):
            self._release(context, k)
        if held is not None:
            self.hold(context, held)

    def hold(self, context: Context, held) -> None:
        """Attaches the feet that should hold and do not, releases the others.

        Args:
            context: the plant's.
            held: (F,) of bool.
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
        lock.Lock(context)  # also sets its rates to zero
        twist.set_angle(context, 0.0)
        twist.set_angular_rate(context, 0.0)
        self.plant.SetConstraintActiveStatus(context, self._welds[k], True)

    def _release(self, context: Context, k: int) -> None:
        self.plant.SetConstraintActiveStatus(context, self._welds[k], False)
        self._locks[k].Lock(context)
        # Only the lock can be locked: Drake 1.51 aborts when an actuator with
        # gains is on a locked joint.
        self._twists[k].set_angle(context, 0.0)
        self._twists[k].set_angular_rate(context, 0.0)

    def held(self, context: Context) -> np.ndarray:
        """Which feet hold (F,) of bool."""
        status = self.plant.GetConstraintActiveStatus
        return np.array([status(context, weld) for weld in self._welds])

    def feet(self, context: Context) -> np.ndarray:
        """Feet in the world (F, 2) [m]."""
        poses = (foot.EvalPoseInWorld(context) for foot in self._feet)
        return np.array([X_WF.translation()[:2] for X_WF in poses])

    def anchors(self, context: Context) -> np.ndarray:
        """Where the anchors are (F, 2) [m]: of feet that hold, where they took hold."""
        return np.array([lock.get_translation(context) for lock in self._locks])

    def drift(self, context: Context) -> np.ndarray:
        """How far feet that hold are from where they took hold (F,) [m]; else 0."""
        gap = np.linalg.norm(self.feet(context) - self.anchors(context), axis=1)
        return np.where(self.held(context), gap, 0.0)

    @property
    def twist_matrix(self) -> np.ndarray:
        """Takes positions (nq,) to the cups' twists: (F, nq); after Finalize.

        Cups of feet that do not hold are not twisted.
        """
        matrix = np.zeros((len(self), self.plant.num_positions()))
        for row, joint in zip(matrix, self._twists):
            row[joint.position_start()] = 1.0
        return matrix

    def twist(self, context: Context) -> np.ndarray:
        """By how much the cups are twisted (F,) [rad]."""
        return np.array([joint.get_angle(context) for joint in self._twists])

    def shear(self, context: Context) -> np.ndarray:
        """Force of the wall on each foot in the wall's plane (F, 2) [N].

        Of the last step; zero for feet that do not hold.
        """
        reactions = self.plant.get_reaction_forces_output_port().Eval(context)
        forces = np.zeros((len(self), 2))
        order = list(self.plant.GetJointIndices())
        for k, lock in enumerate(self._locks):
            # Reactions come in the order of the joints that are left.
            force = reactions[order.index(lock.index())].translational()[:2]
            turn = lock.get_rotation(context)
            c, s = np.cos(turn), np.sin(turn)
            forces[k] = [c * force[0] - s * force[1], s * force[0] + c * force[1]]
        return np.where(self.held(context)[:, None], forces, 0.0)


def _bodies(plant: MultibodyPlant):
    return (BodyIndex(i) for i in range(plant.num_bodies()))
