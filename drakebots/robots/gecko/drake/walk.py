"""Simulate a walk of the gecko in Drake, with a constant gait or to targets.

result = simulate_walk(DrakeWalk(q1=np.radians(80), q2=-0.3, cycles=2))
result.metrics["forward_per_cycle_m"], result.data.marker_position
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import numpy as np
import xarray as xr
from pydrake.systems.framework import Context

from drakebots.core.run import Progress, RunEnd, Stop, Verdict
from drakebots.core.stages import spent, timed
from drakebots.multibody import advance
from drakebots.results import Result, provenance
from drakebots.robots.gecko.drake.diagram import DrakeWalk, GeckoDiagram, build
from drakebots.robots.gecko.drake.suction import Guard, SuctionSwitch
from drakebots.robots.gecko.generator import Generator
from drakebots.robots.gecko.model import FEET, LIMBS, MARKERS, MODEL, fixation


@timed("load")
def simulate_walk(
    problem: DrakeWalk = DrakeWalk(),
    *,
    generator: Generator | None = None,
    progress: Progress | None = None,
) -> Result:
    """Simulates a walk; what was reached is returned even when it is cut short.

    Args:
        problem: what to simulate.
        generator: as in :func:`build`.
        progress: called with the time reached and the end time [s].

    Returns:
        A result of kind "gecko.simulation"; without targets, its metrics hold the
        motion of the last cycle.

    Raises:
        InvalidInput: for a problem that cannot be built.
    """
    run = simulate_built(problem, build(problem, generator), progress=progress)
    return run.result()


@dataclass(frozen=True)
class DrakeRun:
    """A diagram that has been simulated.

    Attributes:
        problem: what was simulated.
        built: the diagram.
        switch: switch of the suction feet.
        end: how it ended.
        context: root context at the end.
    """

    problem: DrakeWalk
    built: GeckoDiagram
    switch: SuctionSwitch
    end: RunEnd
    context: Context

    def result(self, **metrics) -> Result:
        """The labelled result, with more metrics."""
        problem, end, data = self.problem, self.end, _dataset(self)
        drift = data.foot_drift.max("time")
        cycle = 2 * problem.phases.half_cycle
        last = _last_cycle(data, cycle) if problem.targets is None else {}
        return Result(
            kind="gecko.simulation",
            model=MODEL,
            verdict=end.verdict,
            message=end.message,
            data=data,
            residuals={
                f"drift of {foot} [m]": float(drift.sel(foot=foot)) for foot in FEET
            },
            timings=spent(),
            metrics={
                "real_time_factor": end.time / max(end.wall, 1e-12),
                "half_cycles": int(data.half_cycle[-1]),
                **last,
                **metrics,
            },
            provenance=provenance(
                self.built.body.drake.model.path, asdict(problem), problem.seed
            ),
        )


def simulate_built(
    problem: DrakeWalk,
    built: GeckoDiagram,
    *,
    guard: Guard | None = None,
    stop: Callable[[Context], Stop | None] = lambda context: None,
    progress: Progress | None = None,
) -> DrakeRun:
    """Simulates a diagram to its end.

    Args:
        problem: what to simulate.
        built: its diagram.
        guard, stop: see :class:`SuctionSwitch`.
        progress: called with the time reached and the end time [s].
    """

    def stopped(context: Context) -> Stop | None:
        if built.generator is not None and built.generator.arrived:
            time = context.get_time()
            done = f"every target was reached at {time:.4g} s"
            if built.generator.decisions == 0:
                done = "every target was met at the start; the robot did not walk"
            return Stop(Verdict.SUCCESS, done)
        return stop(context)

    simulator = built.simulator(problem.start())
    switch = SuctionSwitch(
        built.body.suction,
        built.sequencer.GetOutputPort("fixation"),
        guard=guard,
        stop=stopped,
    )
    switch.watch(simulator, fixation(-1))
    simulator.Initialize()
    context = simulator.get_context()
    end = advance(
        simulator,
        built.body.drake,
        problem.duration,
        progress=progress,
        time_limit=problem.time_limit,
        stop=lambda: switch.stopped,
        reached=lambda end: DrakeRun(problem, built, switch, end, context).result(),
    )
    in_vain = problem.targets is not None and switch.stopped is None
    if in_vain and end.verdict is Verdict.SUCCESS:
        message = (
            f"not every target was reached in {problem.half_cycles} half cycles; "
            "allow more, or a larger epsilon"
        )
        end = replace(end, verdict=Verdict.FAILED, message=message)
    return DrakeRun(problem, built, switch, end, context)


def _dataset(run: DrakeRun) -> xr.Dataset:
    """Everything that was logged up to the end, in SI."""
    built, body = run.built, run.built.body
    times, states = built.logged(run.context, "state")
    good = np.isfinite(states).all(axis=1) & (times <= run.end.time + 1e-9)
    keep = np.flatnonzero(good)[np.diff(times[good], prepend=-1.0) > 0]
    times, states = times[keep], states[keep]
    logs = {name: built.logged(run.context, name)[1][keep] for name in built.loggers}
    q = states[:, : body.plant.num_positions()]
    held = run.switch.held_at(times)
    markers, drift, twist = _geometry(body, q, held)
    gait = logs["gait"]
    variables = {
        "marker_position": (("time", "marker", "axis"), markers, "m"),
        "heading": (("time",), body.pose(q)[:, 2], "rad"),
        "alpha": (("time", "limb"), body.limbs.angles(q), "rad"),
        "alpha_ref": (("time", "limb"), logs["alpha_ref"], "rad"),
        "joint_angle": (("time", "limb", "hinge"), body.limbs.joint_angles(q), "rad"),
        "fixation": (("time", "foot"), held.astype(float), "1"),
        "fixation_ref": (("time", "foot"), logs["fixation"], "1"),
        "foot_drift": (("time", "foot"), drift, "m"),
        "cup_twist": (("time", "foot"), twist, "rad"),
        "phase": (("time",), gait[:, 0], "1"),
        "q1": (("time",), gait[:, 1], "rad"),
        "q2": (("time",), gait[:, 2], "1"),
        "half_cycle": (("time",), gait[:, 3], "1"),
    }
    for name, units in (("pressure", "Pa"), ("valve", "1")):
        if name in logs:
            variables[name] = (("time", "limb"), logs[name], units)
    return motion_dataset(times, variables)


def motion_dataset(times, variables: dict) -> xr.Dataset:
    """A gecko's motion over time: (dimensions, values, unit) of each variable."""
    return xr.Dataset(
        {n: (dims, values, {"units": u}) for n, (dims, values, u) in variables.items()},
        {
            "time": ("time", times, {"units": "s"}),
            "marker": list(MARKERS),
            "axis": ["x", "y"],
            "limb": list(LIMBS),
            "foot": list(FEET),
        },
    )


def _geometry(body, positions: np.ndarray, held: np.ndarray):
    """Markers (T, 6, 2) [m], drift of feet (T, 4) [m], twist of cups (T, 4) [rad]."""
    plant, suction = body.plant, body.suction
    context = plant.CreateDefaultContext()
    markers = np.zeros((len(positions), len(MARKERS), 2))
    drift, twist = np.zeros((2, len(positions), len(FEET)))
    for k, q in enumerate(positions):
        plant.SetPositions(context, q)
        markers[k] = body.markers(context)
        gap = suction.feet(context) - suction.anchors(context)
        drift[k] = np.where(held[k], np.linalg.norm(gap, axis=1), 0.0)
        twist[k] = np.where(held[k], suction.twist(context), 0.0)
    return markers, drift, twist


def _last_cycle(data: xr.Dataset, period: float) -> dict[str, float]:
    """Motion of the last full cycle in the body frame at its start, in SI."""
    done = int(np.floor(float(data.time[-1]) / period + 1e-6))
    if done < 1:
        return {}
    a, b = (data.sel(time=k * period, method="nearest") for k in (done - 1, done))
    dx, dy = (b.marker_position - a.marker_position).sel(marker="front").values
    c, s = np.cos(float(a.heading)), np.sin(float(a.heading))
    return {
        "rotation_per_cycle_rad": float(b.heading - a.heading),
        "forward_per_cycle_m": float(c * dx + s * dy),
        "left_per_cycle_m": float(-s * dx + c * dy),
        "distance_per_cycle_m": float(np.hypot(dx, dy)),
    }
