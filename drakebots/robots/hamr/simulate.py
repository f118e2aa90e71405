"""Simulate HAMR-VI walking, from a name of a gait to a result."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import xarray as xr
from pydrake.math import RigidTransform
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, Diagram, DiagramBuilder
from pydrake.systems.primitives import LogVectorOutput

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.run import RunEnd, Verdict
from drakebots.core.units import MM_G_MS
from drakebots.model import Model, load
from drakebots.multibody import (
    Ground,
    Progress,
    Robot,
    advance,
    build_robot,
    trajectory_dataset,
)
from drakebots.results import Result, provenance
from drakebots.robots.hamr.gaits import GaitSource, Waveform, make_waveform
from drakebots.robots.hamr.metrics import cycle_poses, gait_metrics
from drakebots.robots.hamr.model import ACTUATORS, Encoder, PiezoDrive, parameters

# The diagram that makes HAMR-VI walk.
#
#     ┌────────────┐ voltages  ┌────────────┐ actuation  ┌────────────────┐
#     │ GaitSource │─────┬────▶│ PiezoDrive │───────────▶│ MultibodyPlant │─┐
#     └────────────┘     │     └────────────┘            │ + SceneGraph   │ │
#                        │          ▲ state              └────────────────┘ │
#                        │          ├───────────────────────────────────────┘
#                        │     ┌─────────┐
#                        └────▶│ Encoder │──▶ velocity
#                              └─────────┘
#
# Inside, lengths are in mm, masses in g, times in ms; voltages in V.

TIME_STEP = 1e-4
"""Step of the discrete plant [s]."""


GROUND_STIFFNESS = 1e4
GROUND_DISSIPATION = 500.0
"""Of point contact, [N/m] and [s/m]: hard and inelastic. Ours: with Drake's
defaults light feet bounce (duty factors near 0.2 in a trot); with these duty
factors and strides agree with hard contact (docs/hamr.md)."""


def friction_of(surface: str) -> float:
    """The friction coefficient of a surface by name.

    Raises:
        UnknownName: listing the surfaces.
    """
    table = parameters().friction
    if surface not in table:
        raise UnknownName("surface", surface, table)
    return table[surface]


@dataclass(frozen=True)
class HamrDiagram:
    """A built diagram and its parts.

    Attributes:
        diagram: the whole.
        robot: the plant and its units.
        loggers: of "state", "voltages", "actuation", "encoder" and
            "contact", by name; sampled every `log_period` [s].
        waveform: what the source plays.
    """

    diagram: Diagram
    robot: Robot
    loggers: dict
    waveform: Waveform
    log_period: float

    def place(self, context: Context) -> None:
        """Puts the robot at rest in its start pose, feet 0.15 mm up."""
        plant_context = self.robot.plant.GetMyMutableContextFromRoot(context)
        height = parameters().scalar("stance")
        self.robot.set_base_pose(plant_context, RigidTransform([0, 0, height]))

    def logged(self, context: Context, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(times (T,), samples (T, n)) of a logger, in the diagram's units."""
        log = self.loggers[name].FindLog(context)
        return log.sample_times().copy(), log.data().T.copy()


def build_hamr_diagram(
    waveform: Waveform,
    *,
    friction: float,
    model: Model | None = None,
    time_step: float = TIME_STEP,
    log_period: float = 1e-3,
    encoder_noise: float = 0.0,
    seed: int = 0,
    contact: str = "lagged",
) -> HamrDiagram:
    """Builds the diagram above.

    Args:
        waveform: the gait or move.
        friction: coefficient of the ground.
        model: HAMR-VI or a variant of it with the same actuators.
        time_step: [s].
        log_period: [s], a multiple of the time step is best.
        encoder_noise: standard deviation of the encoders' current [A].
        seed: of that noise.
        contact: Drake's discrete contact approximation.
    """
    model = model or load("hamr")
    builder = DiagramBuilder()
    robot = build_robot(
        model,
        builder,
        time_step=time_step,
        scaling=MM_G_MS,
        ground=Ground(friction, GROUND_STIFFNESS, GROUND_DISSIPATION),
        contact=contact,
    )
    plant, unit = robot.plant, robot.scaling
    gait = builder.AddSystem(GaitSource(waveform, unit.time))
    drive = builder.AddSystem(PiezoDrive(robot))
    encoder = builder.AddSystem(Encoder(robot, noise=encoder_noise, seed=seed))
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
    loggers = {}
    for name, port in ports.items():
        loggers[name] = LogVectorOutput(
            port, builder, publish_period=log_period / unit.time
        )
        loggers[name].set_name(f"log_{name}")
    diagram = builder.Build()
    diagram.set_name("hamr")
    return HamrDiagram(diagram, robot, loggers, waveform, log_period)


@dataclass(frozen=True)
class HamrSimulation:
    """What to simulate. Defaults are the authors' 10 Hz trot on card.

    Attributes:
        gait: a name from :func:`drakebots.robots.hamr.gaits.gait_names`.
        frequency: stride frequency [Hz]; None for the default or a move.
        surface: a name from `params.yaml`, or use `friction`.
        friction: coefficient instead of the surface's.
        cycles: counted after the gait's ramp.
        swing_voltage, lift_voltage: amplitudes [V] instead of the table's.
        time_step: of the plant [s].
        log_period: [s]; None for 200 samples a cycle, 1 ms at most.
        encoder_noise: standard deviation [A].
        seed: of the encoder noise.
        time_limit: of wall time [s].
    """

    gait: str = "trot"
    frequency: float | None = None
    surface: str = "card"
    friction: float | None = None
    cycles: int = 15
    swing_voltage: float | None = None
    lift_voltage: float | None = None
    time_step: float = TIME_STEP
    log_period: float | None = None
    encoder_noise: float = 0.0
    seed: int = 0
    time_limit: float | None = None

    def __post_init__(self):
        if int(self.cycles) != self.cycles or self.cycles < 1:
            raise InvalidInput(f"cycles must be a whole number >= 1, got {self.cycles}")
        for name in ("friction", "encoder_noise"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value >= 0):
                raise InvalidInput(f"{name} must be >= 0, got {value}")
        for name in ("time_step", "log_period", "time_limit"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"{name} must be > 0 s, got {value}")
        if self.time_step > 1e-3:
            raise InvalidInput(
                f"time step {self.time_step:g} s cannot resolve HAMR's 100 Hz modes; "
                "use 1e-3 s or less"
            )

    def waveform(self) -> Waveform:
        """The gait's waveform. Raises as :func:`make_waveform` does."""
        return make_waveform(
            self.gait,
            self.frequency,
            swing_voltage=self.swing_voltage,
            lift_voltage=self.lift_voltage,
        )

    def duration(self, waveform: Waveform) -> float:
        """Of the run [s]."""
        if not waveform.periodic:
            return waveform.period
        return (self.cycles + np.ceil(waveform.ramp)) * waveform.period

    def sampling(self, waveform: Waveform) -> float:
        """The log period, a multiple of the time step [s]."""
        wish = self.log_period or min(1e-3, waveform.period / 200)
        return max(1, round(wish / self.time_step)) * self.time_step


def build(problem: HamrSimulation, model: Model | None = None) -> HamrDiagram:
    """The diagram of a simulation, not yet run.

    Raises:
        UnknownName, InvalidInput: for a problem that cannot be built.
    """
    waveform = problem.waveform()
    friction = problem.friction
    if friction is None:
        friction = friction_of(problem.surface)
    return build_hamr_diagram(
        waveform,
        friction=friction,
        model=model,
        time_step=problem.time_step,
        log_period=problem.sampling(waveform),
        encoder_noise=problem.encoder_noise,
        seed=problem.seed,
    )


def simulate(
    problem: HamrSimulation = HamrSimulation(),
    *,
    model: Model | None = None,
    progress: Progress | None = None,
) -> Result:
    """Simulates HAMR-VI; returns what was reached even when cut short.

    Args:
        problem: what to simulate.
        model: a variant of HAMR-VI instead of the one that came with us.
        progress: called with the time reached and the end time [s].

    Raises:
        UnknownName, InvalidInput: for a problem that cannot be built.
    """
    model = model or load("hamr")
    built = build(problem, model)
    simulator = Simulator(built.diagram)
    built.place(simulator.get_mutable_context())
    simulator.Initialize()
    end = advance(
        simulator,
        built.robot,
        problem.duration(built.waveform),
        progress=progress,
        time_limit=problem.time_limit,
    )
    return _result(problem, built, simulator.get_context(), end)


def _result(problem, built: HamrDiagram, context, end: RunEnd) -> Result:
    data = run_dataset(built, context)
    model = built.robot.model
    metrics = gait_metrics(data, built.waveform, model.summary.mass)
    metrics |= {
        "wall_s_per_simulated_s": end.wall / max(end.time, 1e-12),
        "gait": problem.gait,
        "frequency_hz": built.waveform.frequency,
        "surface": problem.surface if problem.friction is None else "custom",
        "friction": (
            friction_of(problem.surface)
            if problem.friction is None
            else problem.friction
        ),
    }
    if built.waveform.periodic and metrics["cycles"]:
        data = data.merge(cycle_poses(data, built.waveform))
    return Result(
        kind="hamr.simulation",
        model=model.name,
        verdict=end.verdict,
        message=end.message,
        data=data,
        residuals=_worst_gaps(data),
        timings={"simulate": end.wall},
        metrics=metrics,
        provenance=provenance(model.path, asdict(problem), problem.seed),
    )


def _worst_gaps(data: xr.Dataset) -> dict[str, float]:
    worst = data.loop_gap.max("time")
    gaps = {
        f"loop {name} [m]": float(worst.sel(loop=name)) for name in data.loop.values
    }
    return dict(sorted(gaps.items(), key=lambda item: -item[1]))


def run_dataset(built: HamrDiagram, context) -> xr.Dataset:
    """All that a run logged, in SI."""
    robot, unit = built.robot, built.robot.scaling
    times, states = built.logged(context, "state")
    _, contact = built.logged(context, "contact")
    # A run cut short may leave a last sample that not all loggers share.
    finite = np.isfinite(states).all(axis=1)
    keep = np.flatnonzero(finite)[np.diff(times[finite], prepend=-1.0) > 0]
    data = trajectory_dataset(robot, times[keep], states[keep], contact[keep])
    tips = [f"{name[:2]}q{name[2]}act" for name in ACTUATORS]
    columns = {
        "voltage": ("voltages", 1.0, "V"),
        "actuator_force": ("actuation", unit.force, "N"),
        "encoder_velocity": ("encoder", 1.0, "m/s"),
    }
    for name, (logger, scale, units) in columns.items():
        _, samples = built.logged(context, logger)
        data[name] = (
            ("time", "actuator"),
            scale * samples[keep],
            {"units": units},
        )
    for name, source, dim, units in (
        ("actuator_position", "position", "coordinate", "m"),
        ("actuator_velocity", "velocity", "rate", "m/s"),
    ):
        names = data[dim].values
        index = [next(i for i, n in enumerate(names) if tip in n) for tip in tips]
        data[name] = (
            ("time", "actuator"),
            data[source].values[:, index],
            {"units": units},
        )
    return data.assign_coords(actuator=list(ACTUATORS))


__all__ = ["HamrSimulation", "Verdict", "build", "run_dataset", "simulate"]
