"""Run a diagram to its end, a time limit, Ctrl-C or its divergence, and turn
what was logged into a labelled dataset in SI."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import xarray as xr
from pydrake.multibody.tree import JacobianWrtVariable
from pydrake.systems.analysis import Simulator

from drakebots.core.run import CtrlC, RunEnd, Verdict
from drakebots.model import find_body
from drakebots.multibody.plant import Robot

Progress = Callable[[float, float], None]
"""Called with the time reached and the end time [s]."""


def advance(
    simulator: Simulator,
    robot: Robot,
    duration: float,
    *,
    progress: Progress | None = None,
    time_limit: float | None = None,
    look_up: float = 0.02,
) -> RunEnd:
    """Advances a simulator by `duration` [s], in chunks between which it looks up.

    Never raises for what happens inside the run: divergence, Ctrl-C and the
    time limit end it with what was logged so far.

    Args:
        simulator: of a diagram that holds the robot's plant.
        robot: gives the clock's unit and the state to watch.
        duration: [s].
        progress: called after each chunk.
        time_limit: of wall time [s].
        look_up: longest simulated time between two looks at the clock [s].
    """
    start, unit = time.perf_counter(), robot.scaling.time
    chunks = max(100, int(np.ceil(duration / look_up)))
    context = simulator.get_mutable_context()
    plant_context = robot.plant.GetMyContextFromRoot(context)

    def end(verdict: Verdict, message: str) -> RunEnd:
        reached = context.get_time() * unit
        return RunEnd(verdict, message, reached, time.perf_counter() - start)

    try:
        with CtrlC() as stop:
            for k in range(1, chunks + 1):
                simulator.AdvanceTo(duration * k / chunks / unit)
                stop.check()
                if not np.isfinite(
                    robot.plant.GetPositionsAndVelocities(plant_context)
                ).all():
                    return end(
                        Verdict.FAILED,
                        f"the state diverged before {duration * k / chunks:.4g} s; "
                        "reduce the time step",
                    )
                if progress is not None:
                    progress(context.get_time() * unit, duration)
                spent = time.perf_counter() - start
                if time_limit is not None and spent > time_limit and k < chunks:
                    return end(
                        Verdict.TIME_LIMIT,
                        f"stopped at the time limit of {time_limit:g} s; "
                        "raise it to go on further",
                    )
    except KeyboardInterrupt:
        return end(Verdict.INTERRUPTED, "interrupted; what was reached is kept")
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:160]
        return end(
            Verdict.FAILED, f"the simulation failed ({reason}); reduce the time step"
        )
    return end(Verdict.SUCCESS, f"reached {duration:g} s")


def trajectory_dataset(
    robot: Robot,
    times: np.ndarray,
    states: np.ndarray,
    contact_forces: np.ndarray | None = None,
) -> xr.Dataset:
    """States of a robot over time as named quantities in SI.

    Args:
        robot: the plant and its units.
        times: (T,) in the plant's unit of time.
        states: (T, nq + nv) in the plant's units.
        contact_forces: generalized contact forces (T, nv) in the plant's
            units; the forces on the feet are found from them.

    Returns:
        Variables position, velocity, base_position, base_rpy, foot_position,
        foot_velocity, foot_force (where given), loop_gap.
    """
    plant, unit = robot.plant, robot.scaling
    context = plant.CreateDefaultContext()
    nq, feet = plant.num_positions(), robot.model.feet
    jacobian = _FeetJacobian(robot)
    base = _base_body(plant)
    rows = {
        "base_position": np.zeros((len(times), 3)),
        "base_rpy": np.zeros((len(times), 3)),
        "foot_position": np.zeros((len(times), len(feet), 3)),
        "foot_velocity": np.zeros((len(times), len(feet), 3)),
        "foot_force": np.zeros((len(times), len(feet), 3)),
        "loop_gap": np.zeros((len(times), len(robot.closure.loops))),
    }
    for k, state in enumerate(states):
        plant.SetPositionsAndVelocities(context, state)
        X_WB = plant.EvalBodyPoseInWorld(context, base)
        rows["base_position"][k] = X_WB.translation() * unit.length
        rows["base_rpy"][k] = X_WB.rotation().ToRollPitchYaw().vector()
        if feet:
            J = jacobian(context)
            rows["foot_position"][k] = robot.feet_positions(context)
            rows["foot_velocity"][k] = (J @ state[nq:]).reshape(-1, 3) * unit.velocity
            if contact_forces is not None and np.any(contact_forces[k]):
                force = np.linalg.lstsq(J.T, contact_forces[k], rcond=None)[0]
                rows["foot_force"][k] = force.reshape(-1, 3) * unit.force
        rows["loop_gap"][k] = robot.closure.gaps(context) * unit.length
    if contact_forces is None:
        del rows["foot_force"]
    # A base that turns on passes +-pi: count on.
    rows["base_rpy"] = np.unwrap(rows["base_rpy"], axis=0)
    return _label(robot, times * unit.time, states, rows)


def _base_body(plant):
    """The body whose pose stands for the robot: the root of the first tree."""
    floating = [
        plant.get_joint(i).child_body()
        for i in plant.GetJointIndices()
        if "floating" in plant.get_joint(i).type_name()
    ]
    if floating:
        return floating[0]
    # The joints come in any order: outward from the world, past bodies without
    # mass, the first that has some.
    below: dict = {}
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        parent = joint.parent_body().index()
        below.setdefault(parent, []).append(joint.child_body())
    level = [plant.world_body()]
    while level:
        level = [child for body in level for child in below.get(body.index(), [])]
        for body in level:
            if body.default_mass() > 0:
                return body
    return plant.world_body()


class _FeetJacobian:
    """Stacked J of the feet's velocities in the world, (3 num_feet, nv)."""

    def __init__(self, robot: Robot):
        self._plant = robot.plant
        self._points = [
            (find_body(robot.plant, f.body).body_frame(), f.p_BF / robot.scaling.length)
            for f in robot.model.feet
        ]

    def __call__(self, context) -> np.ndarray:
        world = self._plant.world_frame()
        return np.vstack(
            [
                self._plant.CalcJacobianTranslationalVelocity(
                    context, JacobianWrtVariable.kV, frame, p, world, world
                )
                for frame, p in self._points
            ]
        )


_UNITS = {
    "base_position": ("m", ("time", "axis")),
    "base_rpy": ("rad", ("time", "angle")),
    "foot_position": ("m", ("time", "foot", "axis")),
    "foot_velocity": ("m/s", ("time", "foot", "axis")),
    "foot_force": ("N", ("time", "foot", "axis")),
    "loop_gap": ("m", ("time", "loop")),
}


def _label(robot, times, states, rows) -> xr.Dataset:
    plant = robot.plant
    nq = plant.num_positions()
    q_unit, v_unit = robot.position_units(), robot.velocity_units()
    lengths = robot.length_positions()
    variables = {
        name: (_UNITS[name][1], values, {"units": _UNITS[name][0]})
        for name, values in rows.items()
        if values.size or name.startswith("base")
    }
    mixed = "m or rad: see position_unit"
    variables["position"] = (
        ("time", "coordinate"),
        states[:, :nq] * q_unit,
        {"units": mixed},
    )
    variables["velocity"] = (
        ("time", "rate"),
        states[:, nq:] * v_unit,
        {"units": "m/s or rad/s: see velocity_unit"},
    )
    coordinates = {
        "time": ("time", times, {"units": "s"}),
        "axis": list("xyz"),
        "angle": ["roll", "pitch", "yaw"],
        "coordinate": list(plant.GetPositionNames(always_add_suffix=False)),
        "rate": list(plant.GetVelocityNames(always_add_suffix=False)),
        "position_unit": (
            "coordinate",
            ["m" if length else "rad" for length in lengths[0]],
        ),
        "velocity_unit": (
            "rate",
            ["m/s" if length else "rad/s" for length in lengths[1]],
        ),
    }
    if robot.model.feet:
        coordinates["foot"] = [foot.name for foot in robot.model.feet]
    if robot.closure.loops:
        coordinates["loop"] = [loop.name for loop in robot.closure.loops]
    return xr.Dataset(variables, coordinates)
