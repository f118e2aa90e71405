"""Feedback on leg positions: where the legs are, and a plan's voltages corrected by it.

Motion capture is late, and encoders measure only the actuators: late frames are carried
forward by the encoders (RSS 2018, section IV). The legs' errors correct the voltages
(eq. (22)), per leg, x driving the swing actuator and z the lift:

    u = K_f u0 + K_p e + K_d de/dt

Stable gains, measured with a 10 Hz trot of three cycles at time steps of 0.1 ms, one
run a point: at K_p = 40 V/mm, K_d of 20, 50 and 80 V ms/mm are stable, 0, 10 and 120
are not, in both contact models; at K_d = 50, K_p of 0 to 40 V/mm is stable, 80 is not.
With too little damping the sampled loop makes the legs ring; with too much it clips.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from drakebots.core.checks import non_negative
from drakebots.core.fields import checked
from drakebots.model import find_body
from drakebots.multibody import Robot, Sampled
from drakebots.robots.hamr.model import BIAS, FORWARD, UP, hamr_benders, hamr_encoder
from drakebots.robots.hamr.reference import CHASSIS, Reference
from drakebots.robots.hamr.track.leg_map import hamr_leg_map

FRAME_PERIOD = 1 / 500
LATENCY = 11e-3
"""Latency of the motion capture [s] (RSS 2018, section IV-A)."""

_LEGS = 12


class MotionCapture(Sampled):
    """Measures the legs' markers and the body at a frame rate, with a latency.

                         ┌───────────────┐──▶ legs (12) m, in the chassis frame
        state (nq+nv) ──▶│ MotionCapture │──▶ pose (6) m, rad: x y z r p y
                         └───────────────┘──▶ time (1) of the video frame, on the
                                              diagram's clock

    `state` is the plant's, in the plant's units; `legs` is 4x3 row by row. A
    video frame taken at t appears at t + latency and is held until the next one
    appears. Until the first one appears the outputs are those of time 0.

    Args:
        robot: HAMR; its model's points are the legs' markers.
        noise: standard deviation of each marker's coordinates [m].
        seed: seed of the noise.
    """

    def __init__(self, robot: Robot, *, noise: float = 0.0, seed: int = 0):
        # The state has a slot for every video frame that is taken and has not
        # appeared, by its number, and after them the one that is held.
        slots, size = int(np.ceil(LATENCY / FRAME_PERIOD)) + 1, _LEGS + 6 + 1
        state = robot.plant.num_multibody_states()
        super().__init__("motion_capture", np.zeros((slots + 1) * size), state=state)
        self._slots, self._size, self._robot = slots, size, robot
        self._body = find_body(robot.plant, CHASSIS)
        self._context = robot.plant.CreateDefaultContext()
        self._noise, self._random = noise, np.random.default_rng(seed)
        unit = robot.scaling.time
        self._period, self._latency = FRAME_PERIOD / unit, LATENCY / unit
        self._declare_start(self._start)
        self._declare_update(self._take, self._period)
        self._declare_update(self._deliver, self._period, self._latency)
        first = slots * size
        self._declare_output("legs", slice(first, first + _LEGS))
        self._declare_output("pose", slice(first + _LEGS, first + _LEGS + 6))
        self._declare_output("time", slice(first + size - 1, first + size))

    def _frame(self, context) -> np.ndarray:
        robot, plant = self._robot, self._robot.plant
        plant.SetPositionsAndVelocities(self._context, self._input(context))
        legs = robot.points_positions(self._context, CHASSIS).ravel()
        legs = legs + self._noise * self._random.standard_normal(_LEGS)
        X_WB = plant.EvalBodyPoseInWorld(self._context, self._body)
        position = X_WB.translation() * robot.scaling.length
        angles = X_WB.rotation().ToRollPitchYaw().vector()
        return np.concatenate([legs, position, angles, [context.get_time()]])

    def _start(self, context, x):
        return np.tile(self._frame(context), self._slots + 1)

    def _take(self, context, x):
        number = round(context.get_time() / self._period)
        x.reshape(-1, self._size)[number % self._slots] = self._frame(context)
        return x

    def _deliver(self, context, x):
        number = round((context.get_time() - self._latency) / self._period)
        frames = x.reshape(-1, self._size)
        frames[-1] = frames[number % self._slots]
        return x


class LegEstimator(Sampled):
    """Carries the last video frame forward with the encoders' velocities.

        legs (12) m ───────▶┌──────────────┐
        time (1) ──────────▶│ LegEstimator │──▶ legs (12) m
        velocity (8) m/s ──▶└──────────────┘──▶ velocity (12) m/s

    Inputs are the outputs of :class:`MotionCapture` and `Encoder`; outputs are in
    the chassis frame, 4x3 row by row, updated every T_s and held. At sample k,
    with the video frame taken at t_f (RSS 2018, eqs. (20), (21)):

        w[k] = H(x[k-1], z[k-1]) X i_m[k]
        q[k] = q(t_f) + T_s sum_{t_f..t_k} (w[j] + w[j-1]) / 2

    The sum is the trapezoidal rule; the minus sign printed in eq. (20) would
    not integrate. Two things the paper leaves out: a video frame is held until the
    next, so the sum reaches back to when the frame was taken and not by a
    constant latency; and the encoders measure the velocity of the sample before,
    so over the last sample the velocity is taken as constant.

    Args:
        time_unit: unit of the diagram's clock [s].
    """

    def __init__(self, time_unit: float = 1.0):
        period, oldest = hamr_encoder().period, LATENCY + 2 * FRAME_PERIOD
        past = int(np.ceil(oldest / period)) + 2
        # Rows: estimate, velocity, and the displacement up to each sample, newest
        # first; its differences are the sum above.
        inputs = {"legs": _LEGS, "time": 1, "velocity": 8}
        super().__init__("leg_estimator", np.zeros((2 + past) * _LEGS), **inputs)
        self._map, self._unit = hamr_leg_map(), time_unit
        self._period, self._past = period, past
        self._declare_update(self._update, period / time_unit)
        self._declare_output("legs", slice(0, _LEGS))
        self._declare_output("velocity", slice(_LEGS, 2 * _LEGS))

    def _update(self, context, x):
        """The next state: estimated legs, velocities, and past displacements."""
        rows = x.reshape(-1, _LEGS)
        measured, (frame_time,), tips = (self._input(context, k) for k in range(3))
        period = self._period
        velocity = self._map.velocities(rows[0].reshape(4, 3), tips).ravel()
        travelled = rows[2] + 0.5 * period * (velocity + rows[1])
        age = (context.get_time() - frame_time) * self._unit
        # Row j of the past is the displacement up to j + 1 samples ago.
        past = np.vstack([travelled, rows[2:-1]])
        place = min(max(age / period - 1.0, -1.0), self._past - 1.0)
        if place < 0:
            # A video frame younger than the newest velocity.
            moved = (1.0 + place) * period * velocity
        else:
            j = min(int(place), self._past - 2)
            then = past[j] + (place - j) * (past[j + 1] - past[j])
            moved = travelled - then + period * velocity
        return np.vstack([measured + moved, velocity, past]).ravel()


# --- the controller -------------------------------------------------------------


@checked("gains")
class Gains:
    """Gains of the legs' feedback; by default those of the authors' code."""

    kp: Annotated[float, non_negative("V/m")] = 40e3
    """Gain of the leg positions, the same for swing and lift; kp = kd = 0 runs open
    loop."""
    kd: Annotated[float, non_negative("V s/m")] = 50.0
    """Gain of the leg velocities."""
    kf: Annotated[float, non_negative()] = 1.0
    """Factor on the planned voltages about the middle of their range; one on the whole
    voltage would also move the legs' rest position (ours)."""


@checked("command", eq=False)
class Command:
    """A reference to execute, faded in from rest."""

    reference: Reference
    """The plan."""
    ramp: Annotated[float, non_negative("s")] = 0.0
    """Time over which voltages and legs go linearly from the middle voltage and the
    neutral position to the plan; 0 starts in the plan. A periodic plan runs meanwhile,
    any other waits in its first state."""

    def voltages(self, t: float) -> np.ndarray:
        """u0 (8,) [V] at time t [s]."""
        middle = 0.5 * BIAS
        planned = self.reference.voltages_at(self.plan_time(t))
        return middle + self._share(t) * (planned - middle)

    def legs(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities of the markers (4, 3) [m], [m/s]."""
        moment, share = self.plan_time(t), self._share(t)
        planned = self.reference.legs_at(moment)
        rate = self.reference.leg_velocities_at(moment)
        if share >= 1:
            return planned, rate
        away = planned - hamr_leg_map().neutral
        return hamr_leg_map().neutral + share * away, share * rate + away / self.ramp

    def plan_time(self, t: float) -> float:
        """The plan's own time at time t [s]."""
        return t if self.reference.periodic else t - self.ramp

    def _share(self, t: float) -> float:
        return 1.0 if t >= self.ramp else max(t, 0.0) / self.ramp


class LegController(Sampled):
    """Executes a command, correcting the legs.

                            ┌───────────────┐
        legs (12) m ───────▶│               │
                            │ LegController │──▶ voltages (8) V, 0..V_b
        velocity (12) m/s ─▶│               │
                            └───────────────┘

    Inputs are the outputs of `LegEstimator`. The command is sampled at the encoders'
    rate and held; the output follows the inputs without further delay.

    Args:
        command: plan to execute.
        gains: K_p, K_d and K_f.
        time_unit: unit of the diagram's clock [s].
    """

    def __init__(self, command: Command, gains: Gains, time_unit: float = 1.0):
        # The state: number of samples so far, from -1. An output that depended on time
        # instead would be evaluated at every step of the plant.
        super().__init__("leg_controller", [-1.0], legs=_LEGS, velocity=_LEGS)
        self._command, self._gains = command, gains
        self._period, self._unit = hamr_encoder().period, time_unit
        self._signs = feedback_signs()
        self._declare_update(self._tick, self._period / time_unit)
        needs = {self.all_input_ports_ticket()} | self._ticket
        self.DeclareVectorOutputPort("voltages", 8, self._calc, needs)

    def _tick(self, context, x):
        return [float(round(context.get_time() * self._unit / self._period))]

    def _calc(self, context, output):
        (count,) = self._state(context)
        time, gains = max(count, 0.0) * self._period, self._gains
        middle = 0.5 * BIAS
        u = middle + gains.kf * (self._command.voltages(time) - middle)
        # Before the first sample nothing is known of the legs.
        if count >= 0 and (gains.kp or gains.kd):
            position, rate = self._command.legs(time)
            legs, velocity = (self._input(context, k).reshape(4, 3) for k in (0, 1))
            error = gains.kp * (position - legs) + gains.kd * (rate - velocity)
            u = u + self._signs * error[:, [0, 2]].ravel()
        output.SetFromVector(np.minimum(np.maximum(u, 0.0), BIAS))


def feedback_signs() -> np.ndarray:
    """Sign (8,) of the voltage that moves a foot forward (swing) or up (lift)."""
    senses = np.column_stack([FORWARD, UP]).ravel()
    # F = o C0 (V_b - 2 V): more voltage, less force where o = 1.
    return -hamr_benders().orientation * senses
