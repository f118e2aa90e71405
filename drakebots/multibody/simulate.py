"""Diagrams: systems that are sampled in time, their run to its end, and what was logged
as a labelled dataset in SI."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import (
    Context,
    Diagram,
    DiagramBuilder,
    DiscreteStateIndex,
    LeafSystem,
    OutputPort,
)
from pydrake.systems.primitives import LogVectorOutput, VectorLogSink

from drakebots.core.errors import one_line
from drakebots.core.run import Progress, RunEnd, Stop, failed, run_steps
from drakebots.model import contexts_along, coupled_joints, slides
from drakebots.multibody.base import base_body
from drakebots.multibody.judging import SimulatedRun
from drakebots.multibody.plant import Robot
from drakebots.results import Result, with_units


def advance(
    simulator: Simulator,
    robot: Robot,
    duration: float,
    *,
    progress: Progress | None = None,
    time_limit: float | None = None,
    stop: Callable[[], Stop | None] | None = None,
    poll_period: float = 0.02,
    reached: Callable[[RunEnd], Any] | None = None,
) -> RunEnd:
    """Advances a simulator, polling for Ctrl-C, divergence and the time limit.

    What happens inside the run never raises: it ends the run, and what was logged so
    far stays in the simulator's context.

    Args:
        simulator: simulator of a diagram with the robot's plant, at time 0.
        robot: the plant whose state is checked for divergence, and its unit of time.
        duration: end time [s].
        progress: called after each chunk as progress("simulate", time, duration) [s].
        time_limit: limit of the wall time [s].
        stop: called after each chunk; what it returns ends the run.
        poll_period: longest simulated time of a chunk [s]; there are at least 100.
        reached: see :func:`~drakebots.core.run.run_steps`.
    """
    unit = robot.scaling.time
    context = simulator.get_mutable_context()
    chunks = max(100, int(np.ceil(duration / poll_period)))

    def chunk(k: int) -> Stop | None:
        stopped = advance_to(simulator, robot, duration * k / chunks)
        return stop() if stopped is None and stop is not None else stopped

    def seen() -> tuple[Robot, np.ndarray]:
        inner = robot.plant.GetMyContextFromRoot(context)
        return robot, robot.plant.GetPositions(inner)

    asked = {"progress": progress, "time_limit": time_limit, "reached": reached}
    run = run_steps(chunk, chunks, stage="simulate", until=duration, seen=seen, **asked)
    return replace(run, time=context.get_time() * unit)


def advance_to(simulator: Simulator, robot: Robot, end: float) -> Stop | None:
    """Advances a simulator to a time [s]; what fails or diverges ends the run."""
    context = simulator.get_context()
    try:
        simulator.AdvanceTo(end / robot.scaling.time)
    except RuntimeError as error:
        reason = one_line(error)[:160]
        return failed(f"the simulation failed ({reason}); reduce the time step")
    plant = robot.plant
    state = plant.GetPositionsAndVelocities(plant.GetMyContextFromRoot(context))
    if not np.isfinite(state).all():
        return failed(f"the state diverged before {end:.4g} s; reduce the time step")
    return None


class DiagramRun(SimulatedRun):
    """The run of a diagram that was built, and what comes of it.

    Attributes:
        problem: with its `duration` and `time_limit`.
        simulator: of the diagram, at time 0 and ready to run.
        robot: the plant whose state is checked, as of :func:`advance`.
    """

    simulator: Simulator
    robot: Any

    def simulate(self, progress: Progress | None = None) -> Result:
        """Runs to the end, or as far as it comes.

        Args:
            progress: called as progress("simulate", time, duration) [s].
        """
        end = advance(
            self.simulator,
            self.robot,
            self.problem.duration,
            progress=progress,
            time_limit=self.problem.time_limit,
            reached=self.result,
        )
        return self.result(end)


@dataclass(frozen=True)
class Logged:
    """A built diagram whose ports are logged.

    Attributes:
        diagram: the diagram.
        loggers: loggers by name.
    """

    diagram: Diagram
    loggers: Mapping[str, VectorLogSink]

    def logged(self, context: Context, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(times (T,), samples (T, n)) of a logger, in the diagram's units."""
        log = self.loggers[name].FindLog(context)
        return log.sample_times().copy(), log.data().T.copy()

    def states(
        self, context: Context, until: float = np.inf
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times (T,) and samples (T, n) of the logger "state" up to a time, and which
        samples of every logger they are (T,); those of a run cut short may not be
        numbers, nor of all loggers."""
        times, states = self.logged(context, "state")
        good = np.isfinite(states).all(axis=1) & (times <= until)
        keep = np.flatnonzero(good)[np.diff(times[good], prepend=-1.0) > 0]
        return times[keep], states[keep], keep


def add_loggers(
    builder: DiagramBuilder, ports: Mapping[str, OutputPort], period: float
) -> dict[str, VectorLogSink]:
    """A logger for each port, by name; `period` in the diagram's unit of time."""
    loggers = {}
    for name, port in ports.items():
        loggers[name] = LogVectorOutput(port, builder, publish_period=period)
        loggers[name].set_name(f"log_{name}")
    return loggers


class Sampled(LeafSystem):
    """A system with one vector of discrete state, updated at fixed times and held.

    Updates are unrestricted, as the plant's own step: Drake makes those before discrete
    updates, which would see the plant a step ahead.

    Args:
        name: name of the system.
        start: state at first.
        inputs: sizes of its input ports by name, in their order.
    """

    def __init__(self, name: str, start: Sequence[float] | np.ndarray, **inputs: int):
        super().__init__()
        self.set_name(name)
        for port, size in inputs.items():
            self.DeclareVectorInputPort(port, size)
        self.DeclareDiscreteState(np.asarray(start, float))
        self._ticket = {self.discrete_state_ticket(DiscreteStateIndex(0))}

    def _declare_start(self, update: Callable) -> None:
        """Replaces the state x by update(context, x) at Initialize."""
        self.DeclareInitializationUnrestrictedUpdateEvent(_event(update))

    def _declare_update(
        self, update: Callable, period: float, offset: float = 0.0
    ) -> None:
        """Replaces the state x by update(context, x) at `offset` + k `period`, in the
        diagram's unit of time."""
        self.DeclarePeriodicUnrestrictedUpdateEvent(period, offset, _event(update))

    def _declare_output(
        self, name: str, part: slice, function: Callable = lambda x: x
    ) -> None:
        """An output port with a part of the state, or a function of it."""

        def calc(context, output):
            output.SetFromVector(function(self._state(context)[part]))

        size = part.stop - part.start
        self.DeclareVectorOutputPort(name, size, calc, self._ticket)

    @staticmethod
    def _state(context: Context) -> np.ndarray:
        return context.get_discrete_state_vector().value()

    def _input(self, context: Context, port: int = 0) -> np.ndarray:
        return self.EvalVectorInput(context, port).value()


def _event(update: Callable) -> Callable:
    """An event that replaces the state; what another one of the same time put into it
    is there already."""

    def event(context, state):
        discrete = state.get_mutable_discrete_state()
        discrete.set_value(update(context, discrete.value().copy()))

    return event


def trajectory_dataset(
    robot: Robot,
    times: np.ndarray,
    states: np.ndarray,
    contact_forces: np.ndarray | None = None,
) -> xr.Dataset:
    """States of a robot over time as named quantities in SI.

    Args:
        robot: the plant and its units.
        times: times (T,), in the plant's unit of time.
        states: states [q, v] (T, nq + nv), in the plant's units.
        contact_forces: generalized contact forces (T, nv) in the plant's
            units; the forces on the feet are found from them by least squares.

    Returns:
        Variables position, velocity, base_position, base_rpy (unwrapped), and,
        where the robot has feet or loops, foot_position, foot_velocity, foot_force
        (only with `contact_forces`) and loop_gap; all in the world frame. Where joints
        follow others also coupler_slip, |q - gear q_leader - offset|.
    """
    nq = robot.plant.num_positions()
    variables = _measured(robot, states, contact_forces)
    q = states[:, :nq] * robot.position_units()
    v = states[:, nq:] * robot.velocity_units()
    mixed = "m or rad: see position_unit", "m/s or rad/s: see velocity_unit"
    variables["position"] = ("time", "coordinate"), q, mixed[0]
    variables["velocity"] = ("time", "rate"), v, mixed[1]
    coordinates = _coordinates(robot, times * robot.scaling.time)
    return xr.Dataset(with_units(variables), coordinates)


def joint_angles(data: xr.Dataset) -> dict[str, np.ndarray]:
    """Positions (T,) of a result's actuated joints, by joint [rad or m].

    A position is called as its joint, or as it behind the model's name.
    """
    names = [str(name) for name in data.position_name.values]
    angles = {}
    for joint in map(str, data.joint.values):
        own = [n for n in names if n == joint] or [
            n for n in names if n.endswith(f"_{joint}")
        ]
        if len(own) == 1:
            angles[joint] = data.position.values[:, names.index(own[0])]
    return angles


def _measured(
    robot: Robot, states: np.ndarray, contact_forces: np.ndarray | None
) -> dict[str, tuple[tuple[str, ...], np.ndarray, str]]:
    """Dimensions, values and units in SI of all but positions and velocities.

    The arguments are those of :func:`trajectory_dataset`.
    """
    plant, unit = robot.plant, robot.scaling
    nq, count, feet = plant.num_positions(), len(states), len(robot.model.feet)
    base = base_body(plant)
    base_position, base_rpy = np.zeros((count, 3)), np.zeros((count, 3))
    foot_position, foot_velocity, foot_force = np.zeros((3, count, feet, 3))
    loop_gap = np.zeros((count, len(robot.closure.loops)))
    slip = np.zeros((count, len(robot.closure.couplers)))
    slip_units = [unit.length if x else 1.0 for x in _sliding_followers(robot)]
    for k, context in enumerate(contexts_along(plant, states)):
        X_WB = plant.EvalBodyPoseInWorld(context, base)
        base_position[k] = X_WB.translation() * unit.length
        base_rpy[k] = X_WB.rotation().ToRollPitchYaw().vector()
        if feet:
            J = robot.feet_jacobian(context)
            foot_position[k] = robot.feet_positions(context)
            foot_velocity[k] = (J @ states[k, nq:]).reshape(-1, 3) * unit.velocity
            if contact_forces is not None and np.any(contact_forces[k]):
                force = np.linalg.lstsq(J.T, contact_forces[k], rcond=None)[0]
                foot_force[k] = force.reshape(-1, 3) * unit.force
        loop_gap[k] = robot.closure.gaps(context) * unit.length
        slip[k] = robot.closure.slips(context) * slip_units
    by_foot = ("time", "foot", "axis")
    variables = {
        "base_position": (("time", "axis"), base_position, "m"),
        # A base that keeps turning passes +-pi.
        "base_rpy": (("time", "angle"), np.unwrap(base_rpy, axis=0), "rad"),
    }
    if feet:
        variables["foot_position"] = by_foot, foot_position, "m"
        variables["foot_velocity"] = by_foot, foot_velocity, "m/s"
        if contact_forces is not None:
            variables["foot_force"] = by_foot, foot_force, "N"
    if robot.closure.loops:
        variables["loop_gap"] = ("time", "loop"), loop_gap, "m"
    if robot.closure.couplers:
        mixed = "m or rad: see coupler_unit"
        variables["coupler_slip"] = ("time", "coupler"), slip, mixed
    return variables


def _coordinates(robot: Robot, times: np.ndarray) -> dict:
    """The coordinates of :func:`trajectory_dataset`, with the units of q and v."""
    plant = robot.plant
    lengths_q, lengths_v = robot.length_positions()
    coordinates = {
        "time": ("time", times, {"units": "s"}),
        "axis": list("xyz"),
        "angle": ["roll", "pitch", "yaw"],
        "coordinate": list(plant.GetPositionNames(always_add_suffix=False)),
        "rate": list(plant.GetVelocityNames(always_add_suffix=False)),
        "position_unit": ("coordinate", np.where(lengths_q, "m", "rad").tolist()),
        "velocity_unit": ("rate", np.where(lengths_v, "m/s", "rad/s").tolist()),
    }
    if robot.model.feet:
        coordinates["foot"] = [foot.name for foot in robot.model.feet]
    if robot.closure.loops:
        coordinates["loop"] = [loop.name for loop in robot.closure.loops]
    if robot.closure.couplers:
        units = ["m" if slides else "rad" for slides in _sliding_followers(robot)]
        coordinates["coupler"] = [x.follower for x in robot.closure.couplers]
        coordinates["coupler_unit"] = ("coupler", units)
    return coordinates


def _sliding_followers(robot: Robot) -> list[bool]:
    """Whether the follower of each coupler slides, so that its slip is a length."""
    pairs = (coupled_joints(robot.plant, x) for x in robot.closure.couplers)
    return [slides(follower) for follower, _ in pairs]
