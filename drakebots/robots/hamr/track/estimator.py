"""Where the legs are: late motion capture, carried to now by the encoders.

Source: RSS 2018, section IV.
"""

from __future__ import annotations

import numpy as np
from pydrake.systems.framework import DiscreteStateIndex, LeafSystem

from drakebots.core.errors import InvalidInput
from drakebots.model import find_body
from drakebots.multibody import Robot
from drakebots.robots.hamr.model import EncoderCircuit, hamr_encoder
from drakebots.robots.hamr.reference import CHASSIS
from drakebots.robots.hamr.track.leg_map import LegMap, hamr_leg_map

FRAME_PERIOD = 1 / 500
LATENCY = 11e-3
"""Of the motion capture [s] (RSS 2018, section IV-A)."""

_LEGS = 12


class MotionCapture(LeafSystem):
    """Sees the legs' markers and the body at a frame rate, late.

                         ┌───────────────┐──▶ legs (12) m, in the chassis frame
        state (nq+nv) ──▶│ MotionCapture │──▶ pose (6) m, rad: x y z r p y
                         └───────────────┘──▶ time (1) of the frame, the
                                              diagram's clock

    `state` is the plant's, in the plant's units; `legs` is 4x3 row by row. A
    frame taken at t appears at t + latency and is held until the next one
    appears. Until the first one appears the outputs are those of time 0.

    Args:
        robot: whose state is seen; its `model.points` are the markers.
        period: between frames [s].
        latency: [s], > 0.
        noise: standard deviation of each marker's coordinates [m].
        seed: of that noise.

    Raises:
        InvalidInput: for a period or latency <= 0 or a noise < 0.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        period: float = FRAME_PERIOD,
        latency: float = LATENCY,
        noise: float = 0.0,
        seed: int = 0,
    ):
        super().__init__()
        self.set_name("motion_capture")
        for name, value in (("period", period), ("latency", latency)):
            if not 0 < value < np.inf:
                raise InvalidInput(f"motion capture {name} must be > 0 s, got {value}")
        if not 0 <= noise < np.inf:
            raise InvalidInput(f"motion capture noise must be >= 0 m, got {noise}")
        plant, unit = robot.plant, robot.scaling
        self._robot, self._body = robot, find_body(plant, CHASSIS)
        self._context = plant.CreateDefaultContext()
        self._noise, self._random = noise, np.random.default_rng(seed)
        self._period, self._latency = period / unit.time, latency / unit.time
        # Frames on their way, each in a slot by its number, and the one seen.
        self._slots, self._size = int(np.ceil(latency / period)) + 1, _LEGS + 6 + 1
        self.DeclareVectorInputPort("state", plant.num_multibody_states())
        self.DeclareDiscreteState((self._slots + 1) * self._size)
        self.DeclareInitializationUnrestrictedUpdateEvent(self._start)
        # Unrestricted for the reason that Encoder gives.
        self.DeclarePeriodicUnrestrictedUpdateEvent(self._period, 0.0, self._take)
        self.DeclarePeriodicUnrestrictedUpdateEvent(
            self._period, self._latency, self._deliver
        )
        held = {self.discrete_state_ticket(DiscreteStateIndex(0))}
        parts = {"legs": (0, _LEGS), "pose": (_LEGS, 6), "time": (_LEGS + 6, 1)}
        for name, (start, size) in parts.items():
            self.DeclareVectorOutputPort(name, size, self._part(start, size), held)

    def _part(self, start: int, size: int):
        first = self._slots * self._size + start

        def calc(context, output):
            values = context.get_discrete_state_vector().value()
            output.SetFromVector(values[first : first + size])

        return calc

    def _frame(self, context) -> np.ndarray:
        robot, plant = self._robot, self._robot.plant
        state = self.EvalVectorInput(context, 0).value()
        plant.SetPositionsAndVelocities(self._context, state)
        legs = robot.points_positions(self._context, CHASSIS).ravel()
        if self._noise:
            legs = legs + self._noise * self._random.standard_normal(_LEGS)
        X_WB = plant.EvalBodyPoseInWorld(self._context, self._body)
        position = X_WB.translation() * robot.scaling.length
        angles = X_WB.rotation().ToRollPitchYaw().vector()
        return np.concatenate([legs, position, angles, [context.get_time()]])

    def _start(self, context, state):
        values = np.tile(self._frame(context), self._slots + 1)
        state.get_mutable_discrete_state().set_value(values)

    def _slot(self, number: float) -> slice:
        k = round(number) % self._slots
        return slice(k * self._size, (k + 1) * self._size)

    def _take(self, context, state):
        self._put(
            state, self._slot(context.get_time() / self._period), self._frame(context)
        )

    def _deliver(self, context, state):
        number = (context.get_time() - self._latency) / self._period
        values = context.get_discrete_state_vector().value()
        seen = slice(self._slots * self._size, (self._slots + 1) * self._size)
        self._put(state, seen, values[self._slot(number)])

    @staticmethod
    def _put(state, where: slice, frame: np.ndarray) -> None:
        # What another event of the same moment put into `state` must stay.
        discrete = state.get_mutable_discrete_state()
        values = discrete.value().copy()
        values[where] = frame
        discrete.set_value(values)


class LegEstimator(LeafSystem):
    """Carries the last frame to now with the encoders' velocities.

        legs (12) m ───────▶┌──────────────┐
        time (1) ──────────▶│ LegEstimator │──▶ legs (12) m
        velocity (8) m/s ──▶└──────────────┘──▶ velocity (12) m/s

    Inputs are those of :class:`MotionCapture` and `Encoder`; outputs are in
    the chassis frame, 4x3 row by row, updated every T_s and held. At sample k,
    with the frame taken at t_f (RSS 2018, eqs. (20), (21)):

        w[k] = H(x[k-1], z[k-1]) X i_m[k]
        q[k] = q(t_f) + T_s sum_{t_f..t_k} (w[j] + w[j-1]) / 2

    The sum is the trapezoidal rule; the minus sign printed in eq. (20) would
    not integrate. Two things the paper leaves out: a frame is held until the
    next, so the sum reaches back to when the frame was taken and not by a
    constant latency; and the encoders tell the velocity of the sample before,
    so over the last sample the velocity is taken as constant.

    Args:
        robot: gives the clock's unit.
        leg_map: H; None for the standard HAMR-VI's.
        circuit: of the encoders, for their period.
        reach: the oldest frame that can be carried to now [s].
    """

    def __init__(
        self,
        robot: Robot,
        leg_map: LegMap | None = None,
        *,
        circuit: EncoderCircuit | None = None,
        reach: float = LATENCY + 2 * FRAME_PERIOD,
    ):
        super().__init__()
        self.set_name("leg_estimator")
        self._map = leg_map or hamr_leg_map()
        self._unit = robot.scaling.time
        self._period = (circuit or hamr_encoder()).period
        self._past = int(np.ceil(reach / self._period)) + 2
        self.DeclareVectorInputPort("legs", _LEGS)
        self.DeclareVectorInputPort("time", 1)
        self.DeclareVectorInputPort("velocity", 8)
        # Estimate, velocity, and the way travelled up to each sample, newest
        # first: differences of it are the sum above.
        self.DeclareDiscreteState((2 + self._past) * _LEGS)
        self.DeclarePeriodicUnrestrictedUpdateEvent(
            self._period / self._unit, 0.0, self._update
        )
        held = {self.discrete_state_ticket(DiscreteStateIndex(0))}
        self.DeclareVectorOutputPort("legs", _LEGS, self._row(0), held)
        self.DeclareVectorOutputPort("velocity", _LEGS, self._row(1), held)

    def _row(self, k: int):
        def calc(context, output):
            values = context.get_discrete_state_vector().value()
            output.SetFromVector(values[k * _LEGS : (k + 1) * _LEGS])

        return calc

    def _update(self, context, state):
        rows = context.get_discrete_state_vector().value().reshape(-1, _LEGS)
        seen = self.EvalVectorInput(context, 0).value()
        frame_time = self.EvalVectorInput(context, 1).value()[0]
        tips = self.EvalVectorInput(context, 2).value()
        period = self._period
        velocity = self._map.velocities(rows[0].reshape(4, 3), tips).ravel()
        travelled = rows[2] + 0.5 * period * (velocity + rows[1])
        age = (context.get_time() - frame_time) * self._unit
        # Row j of the past is the way up to j + 1 samples ago.
        past = np.vstack([travelled, rows[2:-1]])
        place = min(max(age / period - 1.0, -1.0), self._past - 1.0)
        if place < 0:
            # A frame younger than the newest velocity.
            moved = (1.0 + place) * period * velocity
        else:
            j = min(int(place), self._past - 2)
            then = past[j] + (place - j) * (past[j + 1] - past[j])
            moved = travelled - then + period * velocity
        new = np.vstack([seen + moved, velocity, past])
        state.get_mutable_discrete_state().set_value(new.ravel())
