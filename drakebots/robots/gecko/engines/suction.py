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
from typing import Annotated

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

from drakebots.core.checks import non_negative, positive
from drakebots.core.fields import checked
from drakebots.core.run import Stop, failed
from drakebots.core.units import GRAVITY
from drakebots.model import find_body, given, plane_rotation
from drakebots.robots.gecko.model import FEET, MODEL


@checked("cup")
class Cup:
    """The compliance of a suction cup, and the anchor that represents it."""

    stiffness: Annotated[float, positive()]
    """Torsional stiffness about the wall's normal [N m/rad]."""
    damping: Annotated[float, positive()]
    """Torsional damping [N m s/rad]."""
    mass: Annotated[float, positive()] = 0.1
    """Mass of an anchor [kg]. Numerics only: with less than 0.1 kg a weld drifts by
    more than 0.4 mm."""
    radius: Annotated[float, positive()] = 0.02
    """Radius of an anchor [m]."""


class SuctionFeet:
    """The suction feet of a plant whose links move in the world's xy plane.

    The object has no state: which feet are fixed, and where, is in the Context.

    Args:
        plant: discrete plant before Finalize.
        bodies: names of the links whose origins are the feet.
        cup: cup of every foot.

    Raises:
        UnknownName: for a body that is not in the plant.
    """

    def __init__(self, plant: MultibodyPlant, bodies: Sequence[str], cup: Cup):
        self.plant = plant
        self.instance = plant.AddModelInstance("cups")
        self._feet, self._locks, self._twists, self._welds = [], [], [], []
        ball, here = UnitInertia.SolidSphere(cup.radius), RigidTransform()
        inertia = SpatialInertia(cup.mass, np.zeros(3), ball)
        gains = PdControllerGains(p=cup.stiffness, d=cup.damping)
        for foot in bodies:
            body = find_body(plant, foot)
            base, top = (
                plant.AddRigidBody(f"{foot}_{part}", self.instance, inertia)
                for part in ("anchor", "cup")
            )
            on_wall = plant.world_frame(), base.body_frame(), np.zeros(3)
            lock = plant.AddJoint(PlanarJoint(f"{foot}_lock", *on_wall))
            on_base = base.body_frame(), top.body_frame(), [0, 0, 1]
            twist = plant.AddJoint(RevoluteJoint(f"{foot}_twist", *on_base))
            plant.AddJointActuator(f"{foot}_twist", twist).set_controller_gains(gains)
            self._feet.append(body)
            self._locks.append(lock)
            self._twists.append(twist)
            self._welds.append(plant.AddWeldConstraint(body, here, top, here))
        # The wall carries the anchors' weight, so that reactions are the feet's only.
        plant.set_gravity_enabled(self.instance, False)

    def __len__(self) -> int:
        return len(self._feet)

    def place(self, context: Context, held: np.ndarray) -> None:
        """Sets the feet that are fixed at first.

        Args:
            context: context of the plant, with the robot in its pose.
            held: whether each foot is fixed (F,) of bool.
        """
        for k, fixed in enumerate(held):
            self._set(context, k, bool(fixed))

    def hold(self, context: Context, held) -> None:
        """Attaches the feet that should be fixed and are not; releases the others.

        Args:
            context: context of the plant.
            held: whether each foot should be fixed (F,) of bool.
        """
        for k in np.flatnonzero(np.asarray(held, bool) != self.held(context)):
            self._set(context, k, bool(held[k]))

    def _set(self, context: Context, k: int, fixed: bool) -> None:
        """Attaches a foot where it is, or releases it."""
        lock, twist = self._locks[k], self._twists[k]
        if fixed:
            X_WF = self._feet[k].EvalPoseInWorld(context)
            lock.Unlock(context)
            lock.set_translation(context, X_WF.translation()[:2])
            lock.set_rotation(context, X_WF.rotation().ToRollPitchYaw().yaw_angle())
        lock.Lock(context)  # also sets its velocities to zero
        # The twist must not be locked: Drake 1.51 aborts when an actuator with
        # gains is on a locked joint.
        twist.set_angle(context, 0.0)
        twist.set_angular_rate(context, 0.0)
        self.plant.SetConstraintActiveStatus(context, self._welds[k], fixed)

    def held(self, context: Context) -> np.ndarray:
        """Whether each foot is fixed (F,) of bool."""
        status = self.plant.GetConstraintActiveStatus
        return np.array([status(context, weld) for weld in self._welds])

    def feet(self, context: Context) -> np.ndarray:
        """Positions of the feet in the world (F, 2) [m]."""
        poses = (foot.EvalPoseInWorld(context) for foot in self._feet)
        return np.array([X_WF.translation()[:2] for X_WF in poses])

    def drift(self, context: Context, held: np.ndarray) -> np.ndarray:
        """Distances of fixed feet from where they were attached (F,) [m]; others 0.

        Args:
            context: context of the plant.
            held: whether each foot is fixed (F,) of bool.
        """
        anchors = [lock.get_translation(context) for lock in self._locks]
        gap = np.linalg.norm(self.feet(context) - anchors, axis=1)
        return np.where(held, gap, 0.0)

    @property
    def twist_matrix(self) -> np.ndarray:
        """Matrix (F, nq) from positions to the cups' twists; after Finalize.

        Cups of free feet are not twisted.
        """
        starts = [joint.position_start() for joint in self._twists]
        return np.eye(self.plant.num_positions())[starts]

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
            forces[k] = plane_rotation(lock.get_rotation(context)) @ force
        return np.where(self.held(context)[:, None], forces, 0.0)


_TINY = 1e-9

GUARD_PERIOD = 0.01
"""Period at which the feet's loads are checked [s]."""


class SuctionSwitch:
    """Attaches and releases suction feet as a port of the diagram commands.

    It is the simulator's monitor: after every step it reads `command` and changes the
    plant's Context where the command has changed. A guard may release feet; such a
    foot stays free until its command goes off and on again. Make it before the
    simulator is initialized.

    Args:
        simulator: simulator of the diagram, with the robot in its pose.
        suction: the feet.
        command: output port of the diagram (F,): > 0.5 to fix a foot.
        held: whether each foot is fixed at first (F,) of bool.
        guard: called every GUARD_PERIOD, where there is one.
        stop: called after every step with the root context; what it returns ends the
            run.

    Attributes:
        history: (time [s], held (F,) of bool) at the start and at each change.
        stopped: reason for the end of the run, or None.
    """

    def __init__(
        self,
        simulator: Simulator,
        suction: SuctionFeet,
        command: OutputPort,
        held: np.ndarray,
        guard: Callable[[Context, np.ndarray], np.ndarray] | None,
        stop: Callable[[Context], Stop | None],
    ):
        self.suction, self._command = suction, command
        self._guard, self._stop = guard, stop
        self._system, self.stopped = command.get_system(), None
        root = simulator.get_mutable_context()
        self._plant_context = self.suction.plant.GetMyMutableContextFromRoot(root)
        self._own_context = self._system.GetMyContextFromRoot(root)
        self._lost, self._next_guard = np.zeros(len(held), bool), 0.0
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
            self._next_guard = time + GUARD_PERIOD
            self._lost |= self._guard(self._plant_context, now)
        held = command & ~self._lost
        if (held != now).any():
            self.suction.hold(self._plant_context, held)
            self.history.append((time, held))


# --- on a wall -----------------------------------------------------------------
#
# The wall stays the world's xy plane and gravity is tilted, so that +x is uphill. A cup
# pressed on by a suction force F and pulled off by N (> 0 away from the wall) stays as
# long as
#
#     N <= F   and   |S| <= mu (F - N)
#
# with its shear force S in the wall's plane. The plant gives S. Its links cannot leave
# the plane, so N follows from statics: on an incline theta a weight W whose centre of
# mass is at height h above the wall at r_c needs
#
#     sum N_i = -W cos theta,     sum N_i (r_i - r_c) = W h sin theta [1, 0],
#
# of which the solution with the least |N| is taken: uphill feet are pulled, downhill
# feet pressed. On an overhang cos theta < 0, and the suction carries the weight. Two
# feet resist tilting only along the line between them; the belly and the bending of
# the cups take the rest of the moment, which is not modelled. The model is ours: a
# friction cone shifted by the suction force, as usual for cups.

STEEPEST = np.radians(84.0)
"""Steepest wall that the real robot climbs [rad]."""


@checked("cup limits")
class CupLimits:
    """Limits beyond which a foot comes off, and what counts as a slip or a fall."""

    suction: Annotated[float, non_negative("N")] = given(MODEL, "hold", "suction")
    """Suction force F."""
    friction: Annotated[float, non_negative()] = given(MODEL, "hold", "friction")
    """Coefficient of friction mu of the cup's lip."""
    height: Annotated[float, non_negative("m")] = given(MODEL, "hold", "height")
    """Height h of the robot's centre of mass above the wall."""
    patience: Annotated[float, positive("s")] = given(MODEL, "hold", "patience")
    """Time for which a foot must exceed its limit to come off; the jerk after attaching
    is shorter."""
    slip: Annotated[float, positive("m")] = 0.005
    """Displacement of a fixed foot that counts as a slip."""
    fall: Annotated[float, positive("m")] = given(MODEL, "hold", "fall")
    """Loss of height, from the highest point reached, that counts as a fall."""

    def load(self, shear, pull) -> np.ndarray:
        """Load of each foot as a share of its limit (F,): above 1 it comes off.

        Args:
            shear: shear forces |S| (F,) [N].
            pull: pull-off forces N (F,) [N].
        """
        room = self.suction - np.asarray(pull, float)
        cone = self.friction * room
        with np.errstate(divide="ignore", invalid="ignore"):
            used = np.where(cone > 0, np.asarray(shear, float) / cone, np.inf)
        return np.where(room < 0, np.inf, used)


def pulls(feet, held, centre, weight: float, height: float, incline: float):
    """Pull-off force N of each foot by statics (F,) [N]; 0 for free feet.

    Args:
        feet: positions on the wall (F, 2) [m].
        held: whether each foot is fixed (F,).
        centre: centre of mass r_c projected on the wall (2,) [m].
        weight: weight W [N].
        height: height h of the centre of mass [m].
        incline: inclination theta [rad].
    """
    held = np.asarray(held, bool)
    found = np.zeros(len(held))
    if not held.any():
        return found
    arms = np.asarray(feet, float)[held] - centre
    # All rows are in N: the moments are divided by a length of the robot's size.
    size = max(float(np.abs(arms).max()), 1e-3)
    rows = np.vstack([np.ones(held.sum()), (arms / size).T])
    moment = weight * height * np.sin(incline) / size
    sums = np.array([-weight * np.cos(incline), moment, 0.0])
    found[held] = np.linalg.lstsq(rows, sums, rcond=None)[0]
    return found


class Climb:
    """Monitors the feet's loads and the robot's height on a wall; collects the events.

    A foot over its limit comes off until the gait fixes it again. The events:

        slip   a foot that should be fixed came off, or moved
        fall   no foot is fixed, or the robot lost more height than allowed; the
               simulation ends there, with the verdict FAILED

    Args:
        limits: of the feet.
        incline: inclination of the wall [rad].
        suction: the robot's feet, in a finalized plant.
        robot: the robot's model instance.
    """

    def __init__(self, limits: CupLimits, incline: float, suction: SuctionFeet, robot):
        self._limits, self._incline, self._suction = limits, incline, suction
        plant, self._robot = suction.plant, [robot]
        context = plant.CreateDefaultContext()
        self._weight = GRAVITY * plant.CalcTotalMass(context, self._robot)
        self._over, self._worst = np.zeros((2, len(suction)))
        self._slid, self._top = np.zeros(len(suction), bool), -np.inf
        self._last = ~self._slid
        self.events: list[dict] = []

    def released(self, context: Context, held: np.ndarray) -> np.ndarray:
        """Feet that come off (F,) of bool; for :class:`SuctionSwitch`."""
        limits, suction = self._limits, self._suction
        time = context.get_time()
        shear = np.linalg.norm(suction.shear(context), axis=1)
        centre = suction.plant.CalcCenterOfMassPositionInWorld(context, self._robot)
        loads = self._weight, limits.height, self._incline
        pull = pulls(suction.feet(context), held, centre[:2], *loads)
        used = np.where(held, limits.load(shear, pull), 0.0)
        self._over = np.where(used > 1, self._over + GUARD_PERIOD, 0.0)
        lost = held & (self._over > limits.patience)
        calm = held & (self._over == 0)
        self._worst[calm] = np.maximum(self._worst[calm], used[calm])
        self._over[lost] = 0.0
        slid = held & (suction.drift(context, held) > limits.slip)
        for k in (*np.flatnonzero(lost), *np.flatnonzero(slid & ~self._slid)):
            self._note("slip", time, FEET[k], shear[k], pull[k])
        self._slid = slid
        self._last = held & ~lost
        return lost

    def _note(self, kind: str, time: float, foot: str, shear=0.0, pull=0.0) -> None:
        forces = {"shear_N": float(shear), "pull_N": float(pull)}
        event = {"event": kind, "time_s": float(time), "foot": foot, **forces}
        self.events.append(event)

    def stop(self, context: Context) -> Stop | None:
        """Ends the climb after a fall; called with the root context."""
        plant, time = self._suction.plant, context.get_time()
        joint = plant.GetJointByName("planar")
        position = joint.get_translation(plant.GetMyContextFromRoot(context))
        height = position[0] * np.sin(self._incline)
        self._top = max(self._top, height)
        if not self._last.any():
            reason = "no foot held"
        elif self._top - height > self._limits.fall:
            reason = f"it slid down by {100 * (self._top - height):.1f} cm"
        else:
            return None
        self._note("fall", time, self.events[-1]["foot"] if self.events else "")
        return failed(
            f"fell: {reason}, at {time:.4g} s on {np.degrees(self._incline):.0f} deg; "
            "more suction or friction would hold it"
        )

    def metrics(self) -> dict:
        """The events, the largest load of each foot as a share of its limit."""
        kinds = [event["event"] for event in self.events]
        return {
            "events": self.events,
            "slips": kinds.count("slip"),
            "fell": "fall" in kinds,
            "load": dict(zip(FEET, map(float, self._worst))),
            "incline_deg": float(np.degrees(self._incline)),
        }
