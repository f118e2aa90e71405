"""Feedback about a plan: servos, or torques from one quadratic program a tick.

With the loops' forces eliminated, the accelerations of a robot are affine in its inputs
and the forces of the ground, z = (u, f):

    M vdot = tau + B u + J'f + C'lam,   C vdot = -c_dot    =>   vdot = a + A z

The program chooses z so that tasks x, each a motion of the plan with a spring and a
damper about it, accelerate as they should:

    min  sum_i w_i |J_i vdot + Jdot_i v - (x_i'' + k_p (x_i - x) + k_d (x_i' - x'))|^2
         + small weights on f and u about the plan's
    s.t. |u| <= limits,  f in the friction pyramid of feet that touch, 0 elsewhere

The tasks are the centre of mass, the base's angles, the feet (those that carry load
stay where they are, the others swing), the joints of limbs that carry nothing, such as
arms, which would flail otherwise, and, weakly, the joints of legs. Where a plan has no
support for a task (a trot stands on two feet), the next step corrects it: feet land
displaced by the error of the capture point, foreseen for when they land
(:func:`capture_point_at`; Pratt et al., Humanoids 2006). All gains are multiples of
sqrt(g/l), with l the height of the centre of mass, so that nothing is tuned for a
robot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.linalg
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable
from pydrake.systems.framework import Context

from drakebots.core.checks import non_negative, positive
from drakebots.core.fields import checked
from drakebots.model import gravity, sliding_motors
from drakebots.multibody import (
    Flat,
    Robot,
    Terrain,
    TimeStepper,
    contact_axes,
    nearest_in_hull,
    soles_jacobian,
)
from drakebots.robots.legged.reference import Reference, Sample
from drakebots.trajopt.contact_implicit import ContactSystem
from drakebots.trajopt.locomotion import base_axes
from drakebots.trajopt.solvers import solve_qp


@dataclass(frozen=True)
class Gains:
    """Gains and weights of a whole-body controller, all of them without units.

    Attributes:
        body: natural frequency of the centre of mass and the base's angles
            [sqrt(g/l)].
        feet: natural frequency of swinging feet [sqrt(g/l)].
        joints: natural frequency of the joints [sqrt(g/l)].
        capture: share of the capture point's error by which feet land displaced.
        foresight: share of the time until they land for which that error is foreseen:
            the feet on the ground do better than a pendulum.
        reach: largest such displacement [l].
        clearance: least height of feet above the ground halfway through their
            swings [l]; swings that a plan keeps lower are lifted.
        lead: largest error of the centre of mass along the ground that counts [l].
        weight_body, weight_feet, weight_stance, weight_joints: weights of the
            accelerations of tasks [1/g^2]; that of the body is also that of limbs
            that carry nothing.
        weight_height: weight of the vertical acceleration of the centre of mass, in
            addition to weight_body: a robot that sinks cannot step any more.
        weight_force: weight of forces' deviations from the plan [1/(m g)^2].
        weight_input: weight of inputs' deviations from the plan [1/(m g l)^2, of
            sliding motors 1/(m g)^2].
        friction: share of the friction coefficient that may be used.
    """

    body: float = 2.0
    feet: float = 8.0
    joints: float = 3.0
    capture: float = 1.2
    foresight: float = 0.8
    reach: float = 0.7
    clearance: float = 0.05
    lead: float = 0.5
    weight_body: float = 1.0
    weight_height: float = 10.0
    weight_feet: float = 1.0
    weight_stance: float = 10.0
    weight_joints: float = 0.1
    weight_force: float = 1e-3
    weight_input: float = 1e-4
    friction: float = 0.8


GAINS = Gains()
"""The gains used for every robot."""

TOUCHES = 0.01
"""A foot this far from the ground [l] touches it."""

EARLY = 0.5
"""Share of a swing after which a foot that touches has landed."""

LATE = 0.3
"""Speed at which a foot that should stand goes on downward [sqrt(g l)]."""

HARDEST = 10.0
"""Largest force on a foot, in each direction [m g]."""


@dataclass(frozen=True)
class _Task:
    """J vdot should be `wanted` (n,), where Jdot v is taken off already."""

    J: np.ndarray
    wanted: np.ndarray
    weight: float


class _Feet:
    """Kinematics of the feet's centres: p_WF (nc, 3), J (nc, 3, nv), Jdot v (nc, 3)."""

    def __init__(self, plant: MultibodyPlant, context: Context, feet: Sequence[tuple]):
        p, J, bias, world = [], [], [], plant.world_frame()
        for frame, at in feet:
            args = context, JacobianWrtVariable.kV, frame, at, world, world
            p.append(plant.CalcPointsPositions(context, frame, at, world).ravel())
            J.append(plant.CalcJacobianTranslationalVelocity(*args))
            bias.append(plant.CalcBiasTranslationalAcceleration(*args).ravel())
        self.p, self.J, self.bias = np.array(p), np.array(J), np.array(bias)


class WholeBodyControl:
    """Torques that keep a robot to a plan.

    All quantities are in the plant's units.

    Args:
        robot: robot on the plan's base; its plant is used for computing only.
        plan: the plan.
        friction: friction coefficient of the ground.
        limits: largest magnitude of every input (nu,).
        tilt: indices in v of the base's roll, pitch and yaw, as far as they exist.
        terrain: the ground, whose friction acts along it.
        gains: the gains.
    """

    def __init__(
        self,
        robot: Robot,
        plan: Reference,
        *,
        friction: float,
        limits: np.ndarray,
        tilt: np.ndarray,
        terrain: Terrain = Flat(),
        gains: Gains = GAINS,
    ):
        self._robot, self._plan, self._gains = robot, plan, gains
        self._stepper = TimeStepper(robot, 1.0)
        self._plant, self._context = robot.plant, self._stepper.context
        self._g, self._height = gravity(robot.plant), plan.height
        self._limits, self._tilt = limits, np.asarray(tilt, int)
        self._B = self._stepper.actuation
        moved, arms = self._B.any(axis=1), self._carry_nothing()
        self._joints = np.flatnonzero(moved & ~arms)
        self._limbs = np.flatnonzero(moved & arms)
        self._feet = robot.frames(robot.model.feet)
        self._radii = np.array([f.radius for f in robot.model.feet])
        self._radii = self._radii / robot.scaling.length
        self._rate = float(np.sqrt(self._g / self._height))
        self._weight = robot.model.summary.mass / robot.scaling.mass * self._g
        self._lengths = robot.length_positions()[1]
        slides = sliding_motors(robot.plant)
        self._efforts = np.where(slides, 1.0, self._height) * self._weight
        self._friction = gains.friction * friction
        self._terrain = terrain.scaled(robot.scaling.length)
        # Feet that the plan never loads follow the body.
        self._never = ~plan.loaded.any(axis=0)
        # How much higher than planned they swing.
        least = gains.clearance * self._height
        heights = self._terrain.heights(plan.feet[:, :, 0], plan.feet[:, :, 1])
        planned = (plan.feet[:, :, 2] - heights - self._radii).max(axis=0)
        self._lift = np.maximum(least - planned, 0.0)

    def inputs(
        self, time: float, q: np.ndarray, v: np.ndarray, touching: np.ndarray
    ) -> np.ndarray:
        """Inputs (nu,) for a state at a time of the plan.

        Args:
            time: since the start of the plan.
            q, v: positions and velocities.
            touching: whether the ground pushes on a foot (nc,).

        Raises:
            NoSolution: when the quadratic program is not solved.
        """
        ref = self._plan.at(time)
        a, A = self.dynamics(q, v)
        feet = _Feet(self._plant, self._context, self._feet)
        _, phi, normal = self._terrain.near(feet.p, np.inf)
        down = self._down(ref, phi, touching)
        cone = _friction_rows(self._B.shape[1], self._friction, contact_axes(normal))
        return self._solve(ref, a, A, self._tasks(ref, q, v, feet, down), down, cone)

    def _carry_nothing(self) -> np.ndarray:
        """Mask of the velocities that move no foot and no loop in the plan (nv,)."""
        still = np.ones(self._plant.num_velocities(), bool)
        for q in self._plan.q:
            self._plant.SetPositions(self._context, q)
            J = soles_jacobian(self._robot, self._context)
            rows = np.vstack([J, self._robot.closure.jacobian(self._context)])
            still &= np.abs(rows).max(axis=0) < 1e-6 * self._height
        return still

    # --- the robot's motion ---

    def dynamics(self, q, v) -> tuple[np.ndarray, np.ndarray]:
        """a (nv,) and A (nv, nu + 3 nc) of vdot = a + A z; also sets q and v."""
        plant, context = self._plant, self._context
        tau = self._stepper.generalized_forces(q, v, np.zeros(self._B.shape[1]))
        J = soles_jacobian(self._robot, context)
        M = scipy.linalg.cho_factor(plant.CalcMassMatrix(context))
        G = np.hstack([self._B, J.T])
        free = scipy.linalg.cho_solve(M, np.column_stack([tau, G]))
        if self._robot.closure.num_rows:
            free = self._closed(M, free, q, v)
        return free[:, 0], free[:, 1:]

    def _closed(self, M, free, q, v) -> np.ndarray:
        """The accelerations with the loops' forces; gaps fade at the rate sqrt(g/l)."""
        closure, context, plant = self._robot.closure, self._context, self._plant
        c, C = closure.evaluate(context)
        step = 1e-6 / max(np.abs(v).max(), 1.0)
        ends = []
        for sign in (1, -1):
            plant.SetPositions(context, q + sign * step * v)
            ends.append(closure.jacobian(context) @ v)
        plant.SetPositions(context, q)
        k = 10 * self._rate
        wanted = -(ends[0] - ends[1]) / (2 * step) - 2 * k * (C @ v) - k**2 * c
        MiC = scipy.linalg.cho_solve(M, C.T)
        # Loops may have rows that depend on each other.
        S = np.linalg.pinv(C @ MiC, rcond=1e-9, hermitian=True)
        gap = -C @ free
        gap[:, 0] += wanted
        return free + MiC @ (S @ gap)

    # --- what touches, and where feet land ---

    def _down(self, ref: Sample, phi: np.ndarray, touching: np.ndarray) -> np.ndarray:
        """Mask of the pushing feet: as planned, but none before it touches."""
        near = phi - self._radii < TOUCHES * self._height
        landed = touching & ~ref.loaded & (ref.swing > EARLY) & ~self._never
        return ref.loaded & (touching | near) | landed

    def displacement(
        self, ref: Sample, time: float, places: np.ndarray, down: np.ndarray
    ) -> np.ndarray:
        """Offset from the plan at which a foot shall land (2,).

        Args:
            ref: the plan now.
            time: until the foot lands.
            places: places of the feet (nc, 3).
            down: mask of those on the ground (nc,).
        """
        gains, context, plant = self._gains, self._context, self._plant
        p = plant.CalcCenterOfMassPositionInWorld(context)[:2]
        v = plant.CalcCenterOfMassTranslationalVelocityInWorld(context)[:2]
        time, rate = gains.foresight * time, self._rate
        run = capture_point_at(time, p, v, places[down, :2], rate)
        planned = ref.com[:2], ref.com_velocity[:2], ref.feet[ref.loaded, :2]
        plan = capture_point_at(time, *planned, rate)
        return _shortened(gains.capture * (run - plan), gains.reach * self._height)

    # --- tasks ---

    def _body_tasks(self, ref: Sample, q: np.ndarray, v: np.ndarray) -> list[_Task]:
        """The centre of mass, the base's angles, and the joints."""
        w, plant, context = self._gains, self._plant, self._context
        world, one = plant.world_frame(), np.eye(len(v))
        args = context, JacobianWrtVariable.kV, world, world
        k = w.body * self._rate
        e = ref.com - plant.CalcCenterOfMassPositionInWorld(context)
        e[:2] = _shortened(e[:2], w.lead * self._height)
        J = plant.CalcJacobianCenterOfMassTranslationalVelocity(*args)
        bias = plant.CalcBiasCenterOfMassTranslationalAcceleration(*args)
        wanted = ref.com_acceleration + k**2 * e + 2 * k * (ref.com_velocity - J @ v)
        rest, weight = wanted - bias, w.weight_body / self._g**2
        tasks = [
            _Task(J[:2], rest[:2], weight),
            _Task(J[2:], rest[2:], w.weight_height * weight),
        ]
        for index, gain, weight in (
            (self._tilt, w.body, w.weight_body),
            (self._joints, w.joints, w.weight_joints),
            (self._limbs, w.joints, w.weight_body),
        ):
            k = gain * self._rate
            turn = ref.vdot + k**2 * (ref.q - q) + 2 * k * (ref.v - v)
            unit = np.where(self._lengths[index], self._g, self._rate**2)
            tasks.append(_Task((one[index].T / unit).T, turn[index] / unit, weight))
        return tasks

    def _foot_task(
        self, i: int, ref: Sample, v: np.ndarray, feet: _Feet, shift: np.ndarray
    ) -> _Task:
        """A foot in the air: to its place on the plan's path, displaced.

        Along the ground it goes the way of least squared acceleration that lands it
        there on time, at the plan's velocity (e its distance from there, t the time
        left): e'' = -6 e/t^2 - 4 e'/t.
        """
        k, p, s = self._gains.feet * self._rate, feet.p[i], ref.swing[i]
        goal, speed = ref.feet[i].copy(), ref.feet_velocity[i].copy()
        goal[:2] += shift
        goal[2] += self._lift[i] * 16 * (s * (1 - s)) ** 2
        if ref.loaded[i]:
            # It should be on the ground: straight down until it is.
            goal = np.r_[p[:2], min(goal[2], p[2])]
            speed[2] -= LATE * np.sqrt(self._g * self._height)
        left = max(ref.landing[i], np.sqrt(6) / k)
        stiffness = np.array([6 / left**2, 6 / left**2, k**2])
        damping = np.array([4 / left, 4 / left, 2 * k])
        wanted = ref.feet_acceleration[i] + stiffness * (goal - p)
        wanted = wanted + damping * (speed - feet.J[i] @ v)
        weight = self._gains.weight_feet / self._g**2
        return _Task(feet.J[i], wanted - feet.bias[i], weight)

    def _tasks(self, ref: Sample, q, v, feet: _Feet, down) -> list[_Task]:
        tasks = self._body_tasks(ref, q, v)
        stop = -2 * self._gains.feet * self._rate
        for i, stands in enumerate(down):
            if stands:
                still = stop * (feet.J[i] @ v) - feet.bias[i]
                weight = self._gains.weight_stance / self._g**2
                tasks.append(_Task(feet.J[i], still, weight))
            else:
                shift = self.displacement(ref, ref.landing[i], feet.p, down)
                tasks.append(self._foot_task(i, ref, v, feet, shift))
        return tasks

    # --- the quadratic program ---

    def _solve(self, ref: Sample, a, A, tasks, down, cone) -> np.ndarray:
        """The inputs of the best z = unit * x."""
        nu, nc, w = self._B.shape[1], len(down), self._gains
        unit = np.r_[self._efforts, np.repeat(self._weight, 3 * nc)]
        small = np.repeat([w.weight_input, w.weight_force], [nu, 3 * nc])
        planned = np.concatenate([ref.input, (ref.force * down[:, None]).ravel()])
        H, h = np.diag(small), -small * planned / unit
        for task in tasks:
            J = task.J @ (A * unit)
            H = H + task.weight * J.T @ J
            h = h - task.weight * J.T @ (task.wanted - task.J @ a)
        most = np.outer(down, [HARDEST, HARDEST, HARDEST]).ravel()
        least = np.outer(down, [-HARDEST, -HARDEST, 0.0]).ravel()
        limits = np.minimum(self._limits / self._efforts, 1e6)
        bounds = np.concatenate([-limits, least]), np.concatenate([limits, most])
        none = np.full(len(cone), -np.inf)
        x, _ = solve_qp(H, h, bounds, cone, none, np.zeros(len(none)))
        return np.clip(unit[:nu] * x[:nu], -self._limits, self._limits)


def _friction_rows(nu: int, friction: float, axes: np.ndarray) -> np.ndarray:
    """Rows of +-f_1 +- f_2 <= mu f_n on (u, f) (4 nc, nu + 3 nc), with the forces f in
    the world and the axes t_1, t_2, n of the contacts (nc, 3, 3)."""
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    foot = np.column_stack([signs, np.full(4, -friction)])
    feet = scipy.linalg.block_diag(*(foot @ axes))
    return np.hstack([np.zeros((len(feet), nu)), feet])


def _shortened(x: np.ndarray, most: float) -> np.ndarray:
    """A vector, no longer than `most`."""
    return x * min(1.0, most / max(np.linalg.norm(x), 1e-12))


# --- the capture point ------------------------------------------------------


def capture_point_at(
    time: float, p: np.ndarray, v: np.ndarray, feet: np.ndarray, rate: float
) -> np.ndarray:
    """The capture point after a time on these feet (2,).

    A body of height l on its feet falls away from the point c where the ground's force
    acts (the linear inverted pendulum). Its capture point x = p + v sqrt(l/g), where it
    could come to rest on one foot, then moves as

        x(t) = c + (x(0) - c) exp(t sqrt(g/l))

    The best that feet on the ground can do is to act at the point of their convex hull
    nearest to x: a capture point inside stays, one outside runs away, and only the next
    step catches it (Koolen et al., IJRR 2012).

    Args:
        time: until then.
        p, v: position and velocity of the centre of mass along the ground (2,).
        feet: places of the feet on the ground (n, 2); without any the body flies.
        rate: sqrt(g/l).
    """
    if not len(feet):
        return p + v * (time + 1 / rate)
    x = p + v / rate
    held = nearest_in_hull(x, feet)
    return held + (x - held) * np.exp(rate * time)


# --- feedback by value --------------------------------------------------------

Inputs = Callable[[float, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(time, q, v, touching) -> inputs (nu,), as :meth:`WholeBodyControl.inputs`."""


class Feedback(ABC):
    """Feedback that keeps a robot to its plan."""

    @abstractmethod
    def law(
        self,
        robot: Robot,
        plan: Reference,
        friction: float,
        limits: np.ndarray,
        terrain: Terrain,
    ) -> Inputs:
        """Inputs for a state, of a robot on the plan's base.

        Args:
            robot: the robot.
            plan: the plan.
            friction: friction coefficient of the ground.
            limits: largest magnitude of every input (nu,).
            terrain: the ground.
        """


@checked("feedback")
class WholeBody(Feedback):
    """Whole-body control: one quadratic program a tick."""

    gains: Gains = GAINS
    """Gains and weights."""

    def law(self, robot, plan, friction, limits, terrain) -> Inputs:
        """See :class:`WholeBodyControl`."""
        axes, names = base_axes(robot), ContactSystem(robot).coordinates
        tilt = [names.index(axes[a]) for a in ("roll", "pitch", "yaw") if a in axes]
        given = {"friction": friction, "limits": limits, "tilt": tilt}
        own = WholeBodyControl(robot, plan, terrain=terrain, gains=self.gains, **given)
        return own.inputs


@checked("feedback")
class Servos(Feedback):
    """Servos at the joints that follow a plan, with its inputs fed forward.

        u = u_plan + k_p (q_plan - q) + k_d (v_plan - v)

    The base is not measured: errors of its pose and velocity stay, or grow.
    """

    stiffness: Annotated[float, positive()] = 3.0
    """k_p in units of m g l per radian (a sliding joint: m g/l), l the height of the
    centre of mass."""
    damping: Annotated[float, non_negative()] = 0.1
    """k_d, as a share of k_p sqrt(l/g)."""

    def law(self, robot, plan, friction, limits, terrain) -> Inputs:
        """The servos' law; it does not look at what touches."""
        plant, B = robot.plant, np.array(robot.plant.MakeActuationMatrix())
        g, height = gravity(plant), plan.height
        weight = robot.model.summary.mass / robot.scaling.mass * g
        unit = np.where(sliding_motors(plant), weight / height, weight * height)
        kp = self.stiffness * unit
        kd = self.damping * np.sqrt(height / g) * kp

        def inputs(time, q, v, touching):
            planned = plan.at(time)
            error, rate = B.T @ (planned.q - q), B.T @ (planned.v - v)
            u = planned.input + kp * error + kd * rate
            return np.clip(u, -limits, limits)

        return inputs
