"""Baselines of contact-implicit control, as controllers of the same loop.

:class:`Tracking` makes one plan, the reference's own motion, and holds the robot to it
by whole-body control. :class:`Sampling` is MPPI (Williams et al., "Information
theoretic MPC", ICRA 2017) on targets of the motors' servos, with Drake's own plant as
its model, in the processor time that it is given. :func:`tracking` and :func:`sampling`
make them for :func:`drakebots.robots.legged.control`.

A library of mpc.py, without a command.
"""

from __future__ import annotations

import time as clock
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
from pydrake.multibody.tree import PdControllerGains
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots.control import (
    Command,
    MpcCost,
    MpcLog,
    ReferenceMotion,
)
from drakebots.model import Model, gravity
from drakebots.multibody import (
    Ground,
    Robot,
    add_soles,
    build_robot,
    touch_by_soles,
)
from drakebots.robots.legged import Reference, WholeBodyControl
from drakebots.robots.legged.control import Run
from drakebots.robots.legged.reference import LOADED

TICK = 2e-3
"""Period of whole-body control [s]."""

TOUCH = 1e-3
"""A foot that is this near to the ground touches it [m]."""

SAMPLE_STEP = 0.02
"""Time step of sampled motions [s], and the distance of the points of their cost."""

HORIZON = 0.4
"""Horizon of samples [s]: further, there is no time for more than three."""

NODES = 4
"""Number of nodes of a sampled change of the servos' targets over the horizon."""

NOISE = 0.15
"""Standard deviation of the servos' targets at a node [rad]."""

TEMPERATURE = 0.1
"""Of the weights exp(-cost/T): T as a share of how far the samples' mean is above
their best."""


@dataclass
class Log(MpcLog):
    """Plans of a baseline, without costs and horizons, and the samples of each."""

    samples: list[int] = field(default_factory=list)


class Controller(ABC):
    """Plans every period; commands in every time step of the plant.

    Args:
        robot: the model that the controller knows, in SI.
        period: between two plans [s].

    Attributes:
        name: of the controller.
        log: of all plans.
    """

    name: str

    def __init__(self, robot: Robot, period: float):
        self.log, self.period = Log(), period
        plant = robot.plant
        self._nq, self._nu = plant.num_positions(), plant.num_actuators()
        self._limits = plant.GetEffortLowerLimits(), plant.GetEffortUpperLimits()

    @abstractmethod
    def replan(self, time: float, q: np.ndarray, v: np.ndarray) -> int:
        """Plans from a state; returns the number of samples."""

    @abstractmethod
    def efforts(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Efforts (nu,) for a state."""

    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Begins a run; the first plan is that of the first update."""
        self.log = Log()

    def command(self, time: float, q: np.ndarray, v: np.ndarray) -> Command:
        """Efforts within their limits."""
        return Command(np.clip(self.efforts(time, q, v), *self._limits))

    def update(self, time: float, q: np.ndarray, v: np.ndarray) -> None:
        """Plans, and logs it."""
        began = clock.thread_time()
        samples = self.replan(time, q, v)
        self.log.times.append(time)
        self.log.seconds.append(clock.thread_time() - began)
        self.log.ok.append(True)
        self.log.samples.append(samples)


class Tracking(Controller):
    """Whole-body control of the reference's motion, planned once from the start.

    Args:
        robot: the model that the controller knows, on the reference's base.
        motion: the reference.
        duration: of the plan [s].
        friction: friction coefficient that it counts on.
    """

    name = "tracking"

    def __init__(
        self, robot: Robot, motion: ReferenceMotion, *, duration: float, friction: float
    ):
        super().__init__(robot, TICK)
        self._robot, self._context = robot, robot.plant.CreateDefaultContext()
        limits = np.abs(self._limits[1])
        tilt = [motion.axes[a] for a in ("roll", "pitch", "yaw") if a in motion.axes]
        plan = planned(robot, motion, duration)
        self._control = WholeBodyControl(
            robot, plan, friction=friction, limits=limits, tilt=tilt
        )
        self._radii = np.array([foot.radius for foot in robot.model.feet])
        self._u, self._terrain = np.zeros(self._nu), motion.terrain

    def replan(self, time: float, q: np.ndarray, v: np.ndarray) -> int:
        self._robot.plant.SetPositions(self._context, q)
        feet = self._robot.feet_positions(self._context)
        ground = self._terrain.heights(feet[:, 0], feet[:, 1])
        touching = feet[:, 2] - ground - self._radii < TOUCH
        self._u = self._control.inputs(time, q, v, touching)
        return 1

    def efforts(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._u


def planned(robot: Robot, motion: ReferenceMotion, duration: float) -> Reference:
    """A reference from its start to its end as a plan, its loads shared equally.

    Feet that the clock has in their stance carry the weight among them, and the
    motors' efforts are those that hold robot and loads at rest.
    """
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    times = np.arange(0.0, duration + 0.01, 0.01)
    q, v = motion.sample(times, motion.q)
    n, nc = len(times), len(robot.model.feet)
    com, rate, feet = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, nc, 3))
    force, efforts = np.zeros((n, nc, 3)), np.zeros((n, plant.num_actuators()))
    down = np.ones((n, nc), bool)
    if motion.gait is not None:
        down = motion.gait.swing(times, motion.phases) == 0
    weight = plant.CalcTotalMass(context) * gravity(robot.plant)
    B = np.array(plant.MakeActuationMatrix())
    for k in range(n):
        plant.SetPositions(context, q[k])
        plant.SetVelocities(context, v[k])
        com[k] = plant.CalcCenterOfMassPositionInWorld(context)
        rate[k] = plant.CalcCenterOfMassTranslationalVelocityInWorld(context)
        feet[k] = robot.feet_positions(context)
        force[k, :, 2] = weight * down[k] / max(down[k].sum(), 1)
        held = plant.CalcGravityGeneralizedForces(context)
        held += robot.feet_jacobian(context).T @ force[k].ravel()
        efforts[k] = -B.T @ held
    base = np.zeros((n, 3))
    for i, axis in enumerate("xyz"):
        if axis in motion.axes:
            base[:, i] = q[:, motion.axes[axis]]
    yaw = motion.axes.get("yaw")
    turn = 0.0 if yaw is None else q[-1, yaw] - q[0, yaw]
    return Reference(
        time=times,
        q=q,
        v=v,
        base=base,
        com=com,
        com_velocity=rate,
        feet=feet,
        input=efforts,
        force=force,
        loaded=force[:, :, 2] > LOADED * weight,
        turn=float(turn),
        periodic=False,
    )


class Sampling(Controller):
    """MPPI on targets of the motors' servos, with Drake's plant as the model.

    A sample is the reference's joints plus a change that is linear between nodes. It is
    simulated from the measured state by the nominal plant in SAP, with the servos in
    SAP's step, and costs what the other controllers' cost says.

    Args:
        model: the robot.
        base: of its plant.
        motion: the reference.
        cost: weights.
        ground: what the samples walk on.
        gains: stiffness and damping of the servos (nu,), and the efforts at rest.
        period: between two plans [s].
        budget: processor time of a plan, by the period.
        seed: of the noise.
    """

    name = "sampling"

    def __init__(
        self,
        model: Model,
        *,
        base: str,
        motion: ReferenceMotion,
        cost: MpcCost,
        ground: Ground,
        gains: tuple[np.ndarray, np.ndarray, np.ndarray],
        period: float,
        budget: float = 1.0,
        seed: int = 0,
    ):
        self._stiffness, self._damping, self._rest = gains
        builder, soles = DiagramBuilder(), []

        def prepare(plant):
            soles.extend(add_soles(plant, model.feet, ground.material()))
            for k, i in enumerate(plant.GetJointActuatorIndices()):
                servo = PdControllerGains(p=self._stiffness[k], d=self._damping[k])
                plant.get_joint_actuator(i).set_controller_gains(servo)

        robot = build_robot(
            model,
            builder,
            time_step=SAMPLE_STEP,
            base=base,
            ground=ground,
            prepare=prepare,
        )
        touch_by_soles(robot.plant, robot.scene_graph, soles)
        super().__init__(robot, period)
        self._plant, self._motion, self._seconds = robot.plant, motion, budget * period
        self._simulator = Simulator(builder.Build())
        root = self._simulator.get_mutable_context()
        self._context = robot.plant.GetMyMutableContextFromRoot(root)
        self._B = np.array(robot.plant.MakeActuationMatrix())
        self._motors = self._B.argmax(axis=0)
        actuator = robot.plant.get_joint_actuator(
            robot.plant.GetJointActuatorIndices()[0]
        )
        self._target = robot.plant.get_desired_state_input_port(
            actuator.model_instance()
        )
        nv = robot.plant.num_velocities()
        self._weights = cost.arrays(nv, self._nu)
        self._random = np.random.default_rng(seed)
        self._after = np.arange(0.0, HORIZON - 1e-9, SAMPLE_STEP) + SAMPLE_STEP
        self._nodes = np.linspace(0.0, HORIZON, NODES)
        self._change = np.zeros((NODES, self._nu))
        self._began = 0.0

    def replan(self, time: float, q: np.ndarray, v: np.ndarray) -> int:
        began = clock.thread_time()
        wanted = self._motion.sample(time + np.append(0.0, self._after), q)
        mean = self._shifted(time - self._began)
        changes, costs = [mean], [self._cost(q, v, wanted, mean)]
        while clock.thread_time() - began < self._seconds:
            noise = NOISE * self._random.standard_normal(mean.shape)
            changes.append(mean + noise)
            costs.append(self._cost(q, v, wanted, changes[-1]))
        fine = np.isfinite(costs)
        if fine.any():
            costs = np.array(costs)[fine]
            spread = TEMPERATURE * (costs.mean() - costs.min()) + 1e-12
            weights = np.exp(-(costs - costs.min()) / spread)
            self._change = np.tensordot(
                weights / weights.sum(), np.array(changes)[fine], 1
            )
        self._began = time
        return len(changes)

    def _shifted(self, passed: float) -> np.ndarray:
        return self._at(np.minimum(self._nodes + passed, self._nodes[-1]), self._change)

    def _at(self, after: np.ndarray, change: np.ndarray) -> np.ndarray:
        """The change of the targets at times after the plan's beginning (n, nu)."""
        return np.stack([np.interp(after, self._nodes, x) for x in change.T], axis=1)

    def _cost(self, q, v, wanted, change) -> float:
        """Cost of a sampled motion; infinite where the plant fails."""
        plant, context, simulator = self._plant, self._context, self._simulator
        simulator.get_mutable_context().SetTime(0.0)
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)
        offsets = self._at(self._after, change) + self._rest / self._stiffness
        targets = wanted[0][1:, self._motors] + offsets
        rates = np.zeros(self._nu)
        P, V, R, T, W = self._weights
        total = 0.0
        try:
            simulator.Initialize()
            for k, after in enumerate(self._after):
                self._target.FixValue(context, np.concatenate([targets[k], rates]))
                simulator.AdvanceTo(after)
                x = plant.GetPositionsAndVelocities(context)
                here, moving = x[: self._nq], x[self._nq :]
                e, w = here - wanted[0][k + 1], moving - wanted[1][k + 1]
                last = k == len(self._after) - 1
                p, s = (T, W) if last else (SAMPLE_STEP * P, SAMPLE_STEP * V)
                u = self._effort(targets[k], here, moving)
                total += p @ e**2 + s @ w**2 + SAMPLE_STEP * (R @ u**2)
        except RuntimeError:
            return np.inf
        return float(total) if np.isfinite(total) else np.inf

    def _effort(self, target, q, v) -> np.ndarray:
        error = target - q[self._motors]
        u = self._stiffness * error - self._damping * (self._B.T @ v)
        return np.clip(u, *self._limits)

    def efforts(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        at = np.array([time - self._began])
        change = self._at(at, self._change)[0] + self._rest / self._stiffness
        wanted = self._motion.sample(np.array([time]), q)[0][0, self._motors]
        return self._effort(wanted + change, q, v)


def tracking(run: Run) -> Tracking:
    """Whole-body control of a run's reference, planned once."""
    problem, motion = run.problem, run.reference
    duration = problem.duration + 2 * motion.horizon
    return Tracking(run.own, motion, duration=duration, friction=problem.friction)


def sampling(run: Run, budget: float = 1.0, seed: int = 0) -> Sampling:
    """MPPI of a run's reference, with its processor time [periods] and its noise."""
    held, ground = run.servos(), run.ground()
    return Sampling(
        run.model,
        base=run.base,
        motion=run.reference,
        cost=run.cost(run.reference),
        ground=ground,
        gains=(held.stiffness, held.damping, held.rest.torques),
        period=run.problem.controller.period,
        budget=budget,
        seed=seed,
    )
