"""Simulates HAMR-VI with an open-loop gait, from the gait's name to a result.

    ┌────────────┐ voltages  ┌────────────┐ actuation  ┌────────────────┐
    │ GaitSource │─────┬────▶│ PiezoDrive │───────────▶│ MultibodyPlant │─┐
    └────────────┘     │     └────────────┘            │ + SceneGraph   │ │
                       │          ▲ state              └────────────────┘ │
                       │          ├───────────────────────────────────────┘
                       │     ┌─────────┐
                       └────▶│ Encoder │──▶ velocity
                             └─────────┘

Inside the diagram lengths are in mm, masses in g, times in ms, voltages in V.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import xarray as xr
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, Diagram, DiagramBuilder, OutputPort
from pydrake.systems.primitives import LogVectorOutput, VectorLogSink

from drakebots.core.checks import (
    check,
    check_log,
    non_negative,
    optional,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress, RunEnd
from drakebots.core.stages import spent, timed
from drakebots.core.units import MM_G_MS
from drakebots.model import Model, load, model_provenance
from drakebots.multibody import (
    Ground,
    Robot,
    advance,
    build_robot,
    fell_at,
    has_fallen,
    judged,
    looked_at,
    open_loops,
    strides_of,
    tilt,
    tilted,
    trajectory_dataset,
)
from drakebots.results import Result
from drakebots.robots.hamr.gaits import GaitSource, Waveform, make_waveform
from drakebots.robots.hamr.metrics import cycle_poses, gait_metrics
from drakebots.robots.hamr.model import (
    ACTUATORS,
    MODEL,
    Encoder,
    OnSurface,
    PiezoDrive,
    parameters,
)

TIME_STEP = 1e-4
"""Default time step of the plant [s]. It is also the delay between a controller and
the plant: at 2e-4 s the authors' gains make the legs ring."""


def hamr_ground(friction: float) -> Ground:
    """Ground for HAMR with hard and inelastic point contact.

    Stiffness and dissipation are ours: with Drake's defaults the light feet bounce
    (duty factors near 0.2 in a trot); with these, duty factors and strides agree with
    hard contact (docs/hamr.md).
    """
    return Ground(friction, stiffness=1e4, dissipation=500.0)


# --- the problem ------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class HamrRun:
    """What simulations and executed plans of HAMR share.

    Attributes:
        cycles: number of cycles after the ramp.
        time_step: time step of the plant [s].
        log_period: period of the stored samples [s], by default 1/200 of a cycle and
            at most 1 ms.
        encoder_noise: standard deviation of the encoders' currents [A].
        start_error: largest change of the base's position and angles at the start
            [m, rad]; a billionth tells how far rounding moves a run.
        seed: seed of the noise and of the start's change.
        time_limit: limit of the wall time [s]; what was reached is kept.

    Raises:
        InvalidInput: for a value out of its range.
    """

    cycles: int = 15
    time_step: float = TIME_STEP
    log_period: float | None = None
    encoder_noise: float = 0.0
    start_error: float = 0.0
    seed: int = 0
    time_limit: float | None = None

    def __post_init__(self):
        check(
            self,
            "",
            cycles=whole(1),
            time_step=positive("s"),
            log_period=optional(positive("s")),
            encoder_noise=non_negative("A"),
            start_error=non_negative(),
            seed=whole(),
            time_limit=optional(positive("s")),
        )
        if self.time_step > 1e-3:
            raise InvalidInput(
                f"time step {self.time_step:g} s cannot resolve HAMR's 100 Hz modes; "
                "use 1e-3 s or less"
            )

    def start_offset(self) -> np.ndarray:
        """Change of the base's x, y, z, roll, pitch, yaw at the start (6,) [m, rad]."""
        random = np.random.default_rng(self.seed)
        return self.start_error * random.uniform(-1.0, 1.0, 6)

    def _sample_period(self, cycle: float) -> float:
        desired = self.log_period or min(1e-3, cycle / 200)
        check_log(self.cycles * cycle, max(desired, self.time_step))
        return max(1, round(desired / self.time_step)) * self.time_step


@dataclass(frozen=True, kw_only=True)
class HamrSimulation(HamrRun, OnSurface):
    """An open-loop gait to simulate; by default the authors' 10 Hz trot on card.

    Attributes:
        gait: name of the gait: trot, pronk, bound, pace or jump.
        frequency: stride frequency [Hz], by default 10; the jump has its own.
        swing_voltage: amplitude of the swing voltages about 112.5 V [V] instead of
            the gait's.
        lift_voltage: amplitude of the lift voltages about 112.5 V [V] instead of the
            gait's.
        phases: shares of the cycle at which legs lift, by leg (FL, RL, FR, RR),
            instead of the gait's.
        model: HAMR-VI, or a variant of it with the same actuators: a name, a path or
            a loaded model.
    """

    gait: str = "trot"
    frequency: float | None = None
    swing_voltage: float | None = None
    lift_voltage: float | None = None
    phases: Mapping[str, float] | None = None
    model: str | Path | Model = MODEL

    def __post_init__(self):
        HamrRun.__post_init__(self)
        OnSurface.__post_init__(self)
        self.waveform()

    def waveform(self) -> Waveform:
        """The gait's waveform.

        Raises:
            UnknownName, InvalidInput: as :func:`make_waveform`.
        """
        return make_waveform(
            self.gait,
            self.frequency,
            swing_voltage=self.swing_voltage,
            lift_voltage=self.lift_voltage,
            phases=self.phases,
        )

    @property
    def duration(self) -> float:
        """Duration of the simulation [s]."""
        waveform = self.waveform()
        if not waveform.periodic:
            return waveform.period
        return (self.cycles + np.ceil(waveform.ramp)) * waveform.period

    @property
    def sample_period(self) -> float:
        """Period of the stored samples, a multiple of the time step [s]."""
        return self._sample_period(self.waveform().period)


# --- the diagram ------------------------------------------------------------


@dataclass(frozen=True)
class LoggedDiagram:
    """A built diagram whose ports are logged.

    Attributes:
        diagram: the diagram.
        robot: the plant and its units.
        loggers: loggers by name: "state", "contact", "voltages", "actuation",
            "encoder".
    """

    diagram: Diagram
    robot: Robot
    loggers: Mapping[str, VectorLogSink]

    def logged(self, context: Context, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(times (T,), samples (T, n)) of a logger, in the diagram's units."""
        log = self.loggers[name].FindLog(context)
        return log.sample_times().copy(), log.data().T.copy()


@dataclass(frozen=True)
class HamrDiagram(LoggedDiagram):
    """The diagram of a simulation.

    Attributes:
        waveform: what the gait source plays.
    """

    waveform: Waveform

    def place(self, context: Context, offset: np.ndarray = np.zeros(6)) -> None:
        """Puts the robot at rest in its start pose, feet 0.15 mm up.

        Args:
            context: of the diagram.
            offset: change of the base's pose, as of :meth:`HamrRun.start_offset`.
        """
        plant_context = self.robot.plant.GetMyMutableContextFromRoot(context)
        p_WB = offset[:3] + np.array([0, 0, parameters().number("stance")])
        pose = RigidTransform(RollPitchYaw(offset[3:]), p_WB)
        self.robot.set_base_pose(plant_context, pose)


def add_loggers(
    builder: DiagramBuilder, ports: Mapping[str, OutputPort], period: float
) -> dict[str, VectorLogSink]:
    """A logger for each port, by name; `period` in the diagram's unit of time."""
    loggers = {}
    for name, port in ports.items():
        loggers[name] = LogVectorOutput(port, builder, publish_period=period)
        loggers[name].set_name(f"log_{name}")
    return loggers


def build(problem: HamrSimulation) -> HamrDiagram:
    """The diagram of a simulation, not yet run.

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
    """
    model = problem.model if isinstance(problem.model, Model) else load(problem.model)
    waveform = problem.waveform()
    builder = DiagramBuilder()
    robot = build_robot(
        model,
        builder,
        time_step=problem.time_step,
        scaling=MM_G_MS,
        ground=hamr_ground(problem.mu),
    )
    plant, unit = robot.plant, robot.scaling
    gait = builder.AddSystem(GaitSource(waveform, unit.time))
    drive = builder.AddSystem(PiezoDrive(robot.plant, robot.scaling))
    encoder = builder.AddSystem(
        Encoder(
            robot.plant,
            robot.scaling,
            noise=problem.encoder_noise,
            seed=problem.seed,
        )
    )
    state = plant.get_state_output_port()
    for system in (drive, encoder):
        builder.Connect(gait.GetOutputPort("voltages"), system.GetInputPort("voltages"))
        builder.Connect(state, system.GetInputPort("state"))
    builder.Connect(drive.GetOutputPort("actuation"), plant.get_actuation_input_port())
    instance = plant.GetModelInstanceByName(model.name)
    ports = {
        "state": state,
        "voltages": gait.GetOutputPort("voltages"),
        "actuation": drive.GetOutputPort("actuation"),
        "encoder": encoder.GetOutputPort("velocity"),
        "contact": plant.get_generalized_contact_forces_output_port(instance),
    }
    loggers = add_loggers(builder, ports, problem.sample_period / unit.time)
    diagram = builder.Build()
    diagram.set_name("hamr")
    return HamrDiagram(diagram, robot, loggers, waveform)


# --- the run ----------------------------------------------------------------


@timed("load")
def simulate(
    problem: HamrSimulation = HamrSimulation(), *, progress: Progress | None = None
) -> Result:
    """Simulates HAMR-VI; returns what was reached even when cut short.

    Args:
        problem: what to simulate.
        progress: called as progress("simulate", time, duration) [s].

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
    """
    built = build(problem)
    simulator = Simulator(built.diagram)
    built.place(simulator.get_mutable_context(), problem.start_offset())
    simulator.Initialize()

    def reached(end: RunEnd) -> Result:
        data = run_dataset(built, simulator.get_context())
        waveform = built.waveform
        metrics = gait_metrics(data, waveform, built.robot.model.summary.mass)
        metrics |= {"gait": problem.gait, "frequency_hz": waveform.frequency}
        metrics |= problem.ground_metrics
        if waveform.periodic and metrics["cycles"]:
            data = data.merge(cycle_poses(data, waveform))
        options = {f.name: getattr(problem, f.name) for f in fields(problem)}
        options["model"] = built.robot.model.name
        return run_result("hamr.simulation", built, end, data, metrics, options)

    end = advance(
        simulator,
        built.robot,
        problem.duration,
        progress=progress,
        time_limit=problem.time_limit,
        reached=reached,
    )
    return reached(end)


def run_result(
    kind: str,
    built: LoggedDiagram,
    end: RunEnd,
    data: xr.Dataset,
    metrics: Mapping,
    options: Mapping,
) -> Result:
    """The result of a diagram that was run, judged by its strides, tilt and loops.

    It failed if HAMR fell, or made less than half of the stride of a plan
    (`planned_stride_mm` of the metrics); see :mod:`drakebots.multibody.judging`.
    """
    height = parameters().number("stance")
    angles = tilt(data.base_rpy.values)
    down = has_fallen(angles, data.base_position.values[:, 2] / height)
    fell = float(data.time.values[np.argmax(down)]) if down.any() else None
    planned = metrics.get("planned_stride_mm")
    findings = [
        fell_at(fell, "" if fell is None else f"it fell at {fell:.3g} s"),
        *open_loops(data, height),
        *strides_of(metrics.get("stride_mm", ()), planned, "mm"),
        tilted(angles.max()),
    ]
    verdict, message = judged(
        end, findings, "it walks" if metrics["cycles"] else "it moves"
    )
    model, gaps = built.robot.model, data.loop_gap.max("time")
    return Result(
        kind=kind,
        model=model.name,
        verdict=verdict,
        message=message,
        data=data,
        residuals={
            f"loop {name} [m]": float(gaps.sel(loop=name)) for name in data.loop.values
        },
        timings=spent(),
        metrics={
            "wall_s_per_simulated_s": end.wall / max(end.time, 1e-12),
            **metrics,
            "judged": looked_at(findings),
        },
        provenance=model_provenance(model, options, options["seed"]),
    )


def run_dataset(built: LoggedDiagram, context: Context) -> xr.Dataset:
    """Everything that was logged, in SI: states, contacts, voltages, actuators."""
    robot, unit = built.robot, built.robot.scaling
    times, states = built.logged(context, "state")
    _, contact = built.logged(context, "contact")
    # A run cut short may leave a last sample that not all loggers have.
    finite = np.isfinite(states).all(axis=1)
    keep = np.flatnonzero(finite)[np.diff(times[finite], prepend=-1.0) > 0]
    data = trajectory_dataset(robot, times[keep], states[keep], contact[keep])
    for name, logger, scale, units in (
        ("voltage", "voltages", 1.0, "V"),
        ("actuator_force", "actuation", unit.force, "N"),
        ("encoder_velocity", "encoder", 1.0, "m/s"),
    ):
        _, samples = built.logged(context, logger)
        data[name] = (("time", "actuator"), scale * samples[keep], {"units": units})
    tips = [f"{name[:2]}q{name[2]}act" for name in ACTUATORS]
    for name, source, dim, units in (
        ("actuator_position", "position", "coordinate", "m"),
        ("actuator_velocity", "velocity", "rate", "m/s"),
    ):
        names = data[dim].values
        index = [next(i for i, n in enumerate(names) if tip in n) for tip in tips]
        values = data[source].values[:, index]
        data[name] = (("time", "actuator"), values, {"units": units})
    return data.assign_coords(actuator=list(ACTUATORS))
