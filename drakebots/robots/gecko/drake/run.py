"""Simulate the gecko in Drake, with a constant gait or to its targets."""

from __future__ import annotations

import time as clock
from dataclasses import asdict, dataclass, field

import numpy as np
import xarray as xr

from drakebots.core.errors import InvalidInput
from drakebots.core.run import RunEnd, Verdict
from drakebots.multibody import Progress, advance
from drakebots.results import Result, provenance
from drakebots.robots.gecko.drake.diagram import GeckoDiagram, build_gecko_diagram
from drakebots.robots.gecko.drake.pressure import Calibration, saturate
from drakebots.robots.gecko.drake.sequencer import PhaseTimes, phase_times
from drakebots.robots.gecko.drake.suction import Guard, SuctionSwitch
from drakebots.robots.gecko.generator import GaitPatternGenerator
from drakebots.robots.gecko.model import (
    FEET,
    LIMBS,
    MARKERS,
    Gecko,
    Pose,
    fixation,
    gait_law,
    pose_at,
)
from drakebots.robots.gecko.pose_step import check_gait

# What a run of the gecko in Drake left behind, as a labelled result.


def make_result(
    built: GeckoDiagram,
    switch: SuctionSwitch,
    end: RunEnd,
    context,
    *,
    problem: dict,
    seed: int,
    cycle: float | None,
    **metrics,
) -> Result:
    """The result of a run.

    Args:
        built, switch, end, context: of the run.
        problem: what was simulated, for the provenance.
        seed: of the camera's noise.
        cycle: period of a constant gait [s]; None for gaits that change.
        metrics: more of them.
    """
    data = run_dataset(built, switch, context, end.time)
    drift = data.foot_drift.max("time")
    worst = {f"drift of {foot} [m]": float(drift.sel(foot=foot)) for foot in FEET}
    return Result(
        kind="gecko.simulation",
        model="gecko",
        verdict=end.verdict,
        message=end.message,
        data=data,
        residuals=worst,
        timings={"simulate": end.wall},
        metrics={
            "real_time_factor": end.time / max(end.wall, 1e-12),
            "half_cycles": int(data.half_cycle[-1]),
            **({} if cycle is None else last_cycle(data, cycle)),
            **metrics,
        },
        provenance=provenance(built.body.drake.model.path, problem, seed),
    )


def last_cycle(data: xr.Dataset, period: float) -> dict[str, float]:
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


def run_dataset(
    built: GeckoDiagram, switch: SuctionSwitch, context, until: float = np.inf
) -> xr.Dataset:
    """All that a run logged up to a time [s], in SI."""
    body = built.body
    times, states = built.logged(context, "state")
    good = np.isfinite(states).all(axis=1) & (times <= until + 1e-9)
    keep = np.flatnonzero(good)[np.diff(times[good], prepend=-1.0) > 0]
    times, states = times[keep], states[keep]
    logs = {name: built.logged(context, name)[1][keep] for name in built.loggers}
    nq = body.plant.num_positions()
    held = switch.held_at(times)
    markers, drift, twist = _geometry(body, states[:, :nq], held)
    gait = logs["gait"]
    variables = {
        "marker_position": (("time", "marker", "axis"), markers, "m"),
        "heading": (("time",), body.pose(states[:, :nq])[:, 2], "rad"),
        "alpha": (("time", "limb"), body.limbs.angles(states[:, :nq]), "rad"),
        "alpha_ref": (("time", "limb"), logs["alpha_ref"], "rad"),
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
    """Markers (T, 6, 2) [m], drift (T, 4) [m] and twist (T, 4) [rad]."""
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


MOST_HALF_CYCLES = 400


@dataclass(frozen=True)
class DrakeGecko:
    """What to simulate: a straight gait of three cycles by default.

    Attributes:
        robot: lengths and weights.
        q1, q2: of a constant gait, q1 > 0 [rad]; unused with targets.
        cycles: of a constant gait.
        targets: to walk to one after the other (k, 2) [m]; None for a constant
            gait.
        half_cycles: with targets, how many at most.
        position, heading: of the start [m], [rad].
        alpha: angles at the start (5,) [rad]; None for alpha(-q1, q2).
        pressure: whether the low-level control of Fig. 11B lies between the
            references and the limbs.
        times: of the phases.
        camera_period: [s].
        position_noise, heading_noise: of the camera [m], [rad].
        seed: of that noise.
        segments: of a limb's chain; None for the file's.
        limb_law: "arc" for limbs of constant curvature, "beam" for elastic ones.
        cups: how they resist being twisted: "weighted" as the pose step has
            it, or "spring".
        torsion: a spring's stiffness per limb's; None for the file's.
        incline: of the wall, +x uphill [rad].
        time_step, log_period: [s].
        time_limit: of wall time [s].

    Raises:
        InvalidInput: for numbers that are not finite or out of range.
    """

    robot: Gecko = field(default_factory=Gecko)
    q1: float = np.radians(80.0)
    q2: float = 0.0
    cycles: int = 3
    targets: tuple | None = None
    half_cycles: int = MOST_HALF_CYCLES
    position: tuple[float, float] = (0.0, 0.0)
    heading: float = 0.0
    alpha: tuple | None = None
    pressure: bool = False
    times: PhaseTimes = field(default_factory=phase_times)
    camera_period: float = 0.1
    position_noise: float = 0.0
    heading_noise: float = 0.0
    seed: int = 0
    segments: int | None = None
    limb_law: str = "arc"
    cups: str = "weighted"
    torsion: float | None = None
    incline: float = 0.0
    time_step: float = 1e-3
    log_period: float = 0.02
    time_limit: float | None = None

    def __post_init__(self):
        check_gait(self.q1, self.q2)
        for name in ("cycles", "half_cycles"):
            value = getattr(self, name)
            if int(value) != value or value < 1:
                raise InvalidInput(f"{name} must be a whole number >= 1, got {value}")
        for name in ("time_step", "log_period", "camera_period", "time_limit"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"{name} must be > 0 s, got {value}")
        if self.time_step > 1e-3:
            raise InvalidInput(
                f"time step {self.time_step:g} s lets fixed feet drift; "
                "use 1e-3 s or less"
            )
        if not 0 <= self.incline <= np.pi / 2:
            raise InvalidInput(
                f"incline must be within 0..90 deg, got {np.degrees(self.incline):g}"
            )
        if self.targets is not None:
            targets = np.array(self.targets, float)
            if targets.ndim != 2 or targets.shape[1] != 2 or not len(targets):
                raise InvalidInput("targets must be points (k, 2) [m], one at least")
            stored = tuple(tuple(map(float, target)) for target in targets)
            object.__setattr__(self, "targets", stored)

    @property
    def phases(self) -> PhaseTimes:
        """The times as whole numbers of steps."""
        return self.times.rounded(self.time_step)

    @property
    def duration(self) -> float:
        """Of the run, at most [s]."""
        halves = 2 * self.cycles if self.targets is None else self.half_cycles
        return halves * self.phases.half_cycle

    def start(self) -> Pose:
        """The first pose."""
        if self.alpha is None:
            alpha = gait_law(-self.q1, self.q2, leg_bend=self.robot.leg_bend)
        else:
            alpha = np.array(self.alpha, float)
        if self.pressure:
            alpha = saturate(alpha, Calibration())
        return pose_at(self.robot, alpha, self.heading, self.position)


def build(problem: DrakeGecko, generator=None) -> GeckoDiagram:
    """The diagram of a simulation, not yet run.

    Args:
        problem: what to simulate.
        generator: instead of the gait pattern generator for its targets: any
            object with `decide(position, heading)`; it needs `targets` too.

    Raises:
        InvalidInput: for a problem that cannot be built.
    """
    if generator is not None and problem.targets is None:
        raise InvalidInput("a generator needs a problem with targets; give them too")
    if problem.targets is not None and generator is None:
        generator = GaitPatternGenerator(np.array(problem.targets))
    return build_gecko_diagram(
        problem.robot,
        problem.start(),
        problem.phases,
        q=None if generator is not None else (problem.q1, problem.q2),
        generator=generator,
        pressure=problem.pressure,
        camera_period=problem.camera_period,
        position_noise=problem.position_noise,
        heading_noise=problem.heading_noise,
        seed=problem.seed,
        segments=problem.segments,
        limb_law=problem.limb_law,
        cups=problem.cups,
        torsion=problem.torsion,
        incline=problem.incline,
        time_step=problem.time_step,
        log_period=max(1, round(problem.log_period / problem.time_step))
        * problem.time_step,
    )


def run(
    problem: DrakeGecko = DrakeGecko(),
    *,
    generator=None,
    progress: Progress | None = None,
) -> Result:
    """Simulates the gecko; returns what was reached even when cut short.

    Args:
        problem: what to simulate.
        generator: as in :func:`build`.
        progress: called with the time reached and the end time [s].

    Raises:
        InvalidInput: for a problem that cannot be built.
    """
    built = build(problem, generator)
    switch, end, context = simulate_built(problem, built, progress=progress)
    return make_result(built, switch, end, context, **about(problem))


class _Stopped(Exception):
    """The switch ended the run: nothing is left to advance."""


def simulate_built(
    problem: DrakeGecko,
    built: GeckoDiagram,
    *,
    guard: Guard | None = None,
    stop=None,
    progress: Progress | None = None,
):
    """Runs a diagram; returns its switch, how it ended, and the root context.

    Args:
        guard, stop: of :class:`SuctionSwitch`.
    """

    def ended(context):
        if built.generator is not None and built.generator.arrived:
            return "every target was reached"
        return None if stop is None else stop(context)

    simulator = built.simulator(problem.start())
    switch = SuctionSwitch(
        built.body.suction,
        built.sequencer.GetOutputPort("fixation"),
        guard=guard,
        stop=ended,
    )
    switch.watch(simulator, fixation(-1))
    simulator.Initialize()

    def look(stage: str, time: float, duration: float) -> None:
        if switch.stopped is not None:
            raise _Stopped
        if progress is not None:
            progress(stage, time, duration)

    began = clock.perf_counter()
    try:
        end = advance(
            simulator,
            built.body.drake,
            problem.duration,
            progress=look,
            time_limit=problem.time_limit,
        )
    except _Stopped:
        time, reason = switch.stopped
        end = RunEnd(
            Verdict.SUCCESS,
            f"{reason} at {time:.4g} s",
            time,
            clock.perf_counter() - began,
        )
    else:
        if problem.targets is not None and end.verdict is Verdict.SUCCESS:
            message = (
                f"not every target was reached in {problem.half_cycles} half cycles; "
                "allow more, or a larger epsilon"
            )
            end = RunEnd(Verdict.FAILED, message, end.time, end.wall)
    return switch, end, simulator.get_context()


def about(problem: DrakeGecko) -> dict:
    """What :func:`drakebots.robots.gecko.drake.run.make_result` must know."""
    return {
        "problem": asdict(problem),
        "seed": problem.seed,
        "cycle": None if problem.targets else 2 * problem.phases.half_cycle,
    }
