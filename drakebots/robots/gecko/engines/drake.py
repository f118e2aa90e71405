"""The gecko's walk in Drake: its diagram, how it runs, and the labelled result.

    result = simulate_walk(Walk(q1=np.radians(80), q2=-0.3, cycles=2))
    result.metrics["forward_per_cycle_m"], result.data.marker_position
    climb = simulate_walk(Walk(engine=Drake(incline=STEEPEST)))     # up a wall

    ┌───────────┐q┌───────────────┐alpha_ref ┌──────────┐ ┌──────┐x_d ┌────────┐
    │ generator │▶│ GaitSequencer │─────────▶│ pressure │▶│ gain │───▶│ plant  │─┐
    └───────────┘ └───────────────┘          │ (if any) │ └──────┘    └────────┘ │
          ▲              │ fixation          └──────────┘                  ▲     │
          │              └─▶ SuctionSwitch ─▶ the plant's Context: welds ──┘     │
          │   ┌────────┐                                                        │
          └───│ camera │◀───────────────────────────────────────────────────────┘
              └────────┘

q holds the gait's parameters, alpha_ref the desired bending of the limbs, x_d the
desired state of their joints. With a constant gait, a constant q replaces generator and
camera.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

import numpy as np
import xarray as xr
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, DiagramBuilder
from pydrake.systems.primitives import ConstantVectorSource, MatrixGain

from drakebots.core.checks import array, check_value, finite, optional, positive, whole
from drakebots.core.convert import as_yaml
from drakebots.core.fields import checked
from drakebots.core.run import Progress, RunEnd, Stop, Verdict
from drakebots.core.stages import spent, timed
from drakebots.model import contexts_along, plane_rotation
from drakebots.multibody import Logged, add_loggers, advance
from drakebots.results import Result, provenance
from drakebots.robots.gecko.engines.controllers import (
    CameraSystem,
    Gains,
    GaitSequencer,
    GeneratorSystem,
    PressureControl,
    WeightedCups,
)
from drakebots.robots.gecko.engines.engine import (
    Asked,
    Generator,
    Law,
    check_gait,
    motion_dataset,
)
from drakebots.robots.gecko.engines.plant import Drake, GeckoPlant, build_gecko_plant
from drakebots.robots.gecko.engines.suction import Climb, SuctionSwitch
from drakebots.robots.gecko.model import (
    FEET,
    LEGS,
    LIMBS,
    MARKERS,
    MODEL,
    Calibration,
    Gecko,
    Pose,
    fixation,
    pose_at,
    saturate,
)

# --- the diagram ---------------------------------------------------------------


@dataclass(frozen=True)
class GeckoDiagram(Logged):
    """A built diagram and its parts.

    Attributes:
        body: robot and plant.
        sequencer: gait sequencer; its port "fixation" commands the feet.
        generator: generator, or None for a constant q.
        climb: monitor of the feet on a wall, or None.
    """

    body: GeckoPlant
    sequencer: GaitSequencer
    generator: GeneratorSystem | None
    climb: Climb | None

    def simulator(self, pose: Pose) -> Simulator:
        """A simulator with the robot at rest in a pose, with no foot fixed yet."""
        simulator = Simulator(self.diagram)
        root = simulator.get_mutable_context()
        self.body.place(self.body.plant.GetMyMutableContextFromRoot(root), pose)
        return simulator


def build(
    engine: Drake,
    robot: Gecko,
    start: Pose,
    gait: Generator | tuple[float, float],
    law: Law | None = None,
) -> GeckoDiagram:
    """The diagram of a walk from a pose; arguments as in :func:`run_drake`."""
    law = law or robot.reference
    if not engine.limited:  # else the chambers bend the limbs by their own shares
        law = partial(_bent, robot, law)
    builder = DiagramBuilder()
    body = build_gecko_plant(builder, robot, engine)
    times = engine.phases
    sequencer = builder.AddSystem(GaitSequencer(start.alpha, times, law))
    system = None
    if isinstance(gait, tuple):
        constant = ConstantVectorSource([*gait, 1.0])
        q = builder.AddNamedSystem("q", constant).get_output_port()
    else:
        system = GeneratorSystem(gait, times.half_cycle)
        q = _add_planner(builder, body, CameraSystem(engine.camera), system)
    builder.Connect(q, sequencer.GetInputPort("gait_parameters"))
    desired = sequencer.GetOutputPort("desired_bending")
    ports = {"state": body.plant.get_state_output_port(), "alpha_ref": desired}
    ports |= {k: sequencer.GetOutputPort(k) for k in ("gait", "fixation")}
    if engine.limited:
        control = _add_pressure(builder, body, engine.gains, desired, start)
        desired = control.GetOutputPort("free_bending")
        ports |= {k: control.GetOutputPort(k) for k in ("pressure", "valve")}
    spread = builder.AddNamedSystem("limbs", MatrixGain(body.limbs.desired_matrix))
    builder.Connect(desired, spread.get_input_port())
    for part, source in (
        (body.limbs, spread),
        (body.suction, _add_cups(builder, body, engine.reproduction, desired)),
    ):
        port = body.plant.get_desired_state_input_port(part.instance)
        builder.Connect(source.get_output_port(), port)
    step = engine.time_step
    log_period = max(1, round(engine.log_period / step)) * step
    loggers = add_loggers(builder, ports, log_period)
    diagram, climb = builder.Build(), None
    diagram.set_name("gecko")
    if engine.incline:
        on_wall = engine.limits, engine.incline, body.suction
        climb = Climb(*on_wall, body.limbs.instance)
    return GeckoDiagram(diagram, loggers, body, sequencer, system, climb)


def _bent(robot: Gecko, law: Law, q1: float, q2: float) -> np.ndarray:
    """The angles (5,) [rad] to which a law bends free limbs."""
    return robot.bent(law(q1, q2))


# --- parts of the diagram ------------------------------------------------------


def _of_state(builder: DiagramBuilder, body: GeckoPlant, matrix: np.ndarray, name: str):
    """A port with the matrix times the plant's positions."""
    plant = body.plant
    wide = np.zeros((len(matrix), plant.num_multibody_states()))
    wide[:, : plant.num_positions()] = matrix
    system = builder.AddNamedSystem(name, MatrixGain(wide))
    builder.Connect(plant.get_state_output_port(), system.get_input_port())
    return system.get_output_port()


def _add_planner(builder: DiagramBuilder, body: GeckoPlant, camera, generator):
    """Adds camera and generator; returns the port with the generator's gait."""
    builder.AddSystem(camera)
    builder.AddSystem(generator)
    pose = _of_state(builder, body, body.pose_matrix, "pose")
    builder.Connect(pose, camera.get_input_port())
    builder.Connect(camera.get_output_port(), generator.get_input_port())
    return generator.get_output_port()


def _add_pressure(
    builder: DiagramBuilder, body: GeckoPlant, gains: Gains, desired, start: Pose
) -> PressureControl:
    """Adds the low-level control between desired angles and the limbs."""
    one_sided = np.isin(np.arange(len(LIMBS)), LEGS)
    told = Calibration(), gains, one_sided, start.alpha
    control = PressureControl(*told, body.robot.bent)
    builder.AddSystem(control)
    angles = _of_state(builder, body, body.limbs.sum_matrix, "angles")
    builder.Connect(desired, control.GetInputPort("desired_bending"))
    builder.Connect(angles, control.GetInputPort("bending"))
    return control


def _add_cups(builder: DiagramBuilder, body: GeckoPlant, weighted: bool, desired):
    """Adds the system with the desired twists of the cups and returns it."""
    if not weighted:
        springs = ConstantVectorSource(np.zeros(2 * len(FEET)))
        return builder.AddNamedSystem("springs", springs)
    weights = body.robot.weights
    cups = builder.AddSystem(WeightedCups(weights.orientation / weights.angle))
    alpha = _of_state(builder, body, body.limbs.sum_matrix, "bent")
    twists = _of_state(builder, body, body.suction.twist_matrix, "twists")
    builder.Connect(twists, cups.GetInputPort("twist"))
    builder.Connect(alpha, cups.GetInputPort("bending"))
    builder.Connect(desired, cups.GetInputPort("desired_bending"))
    return cups


# --- the walk ------------------------------------------------------------------


@checked()
class Walk:
    """A walk with a constant gait in Drake; by default three cycles straight on.

    Raises:
        InvalidInput: for numbers that are not finite or out of range.
    """

    q1: float = np.radians(80.0)
    """Step length, > 0 [rad]."""
    q2: float = 0.0
    """Steering."""
    cycles: Annotated[int, whole(1)] = 3
    """Number of cycles."""
    robot: Gecko = field(default_factory=Gecko)
    """Lengths and weights of the robot."""
    position: tuple[float, float] = (0.0, 0.0)
    """Position of the torso's front end at the start (2,) [m]."""
    heading: Annotated[float, finite("rad")] = 0.0
    """Heading at the start."""
    alpha: tuple | None = None
    """Angles at the start (5,) [rad]; None for alpha(-q1, q2)."""
    references: tuple[tuple, tuple] | None = None
    """Angles to which the half cycles with q1 > 0 and q1 < 0 go (2, 5) [rad], measured
    ones for example; None for the gait law."""
    engine: Drake = field(default_factory=lambda: Drake(pressure=False))
    """Options of the robot and of its simulation."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time."""

    def __post_init__(self):
        check_gait(self.q1, self.q2)
        check_value("position", self.position, array((2,), "m"))
        check_value("alpha", self.alpha, optional(array((5,), "rad")))
        check_value("references", self.references, optional(array((2, 5), "rad")))

    def law(self, q1: float, q2: float) -> np.ndarray:
        """Reference angles (5,) [rad] at the end of a half cycle, of q1 signed."""
        if self.references is None:
            return self.robot.reference(q1, q2)
        return np.array(self.references[0 if q1 > 0 else 1], float)

    @property
    def half_cycles(self) -> int:
        """Number of half cycles."""
        return 2 * self.cycles

    def start_pose(self) -> Pose:
        """The first pose."""
        alpha = self.law(-self.q1, self.q2) if self.alpha is None else self.alpha
        return pose_at(self.robot, alpha, self.heading, self.position)


@timed("load")
def simulate_walk(
    problem: Walk = Walk(), *, progress: Progress | None = None
) -> Result:
    """Simulates a walk; what was reached is returned even when it is cut short.

    Args:
        problem: the walk.
        progress: called with the time reached and the end time [s].

    Returns:
        A result of kind "gecko.simulation", as of :func:`run_drake`. Its metrics also
        hold the motion of the last cycle.
    """
    gait = problem.q1, problem.q2
    result = run_drake(problem, gait, law=problem.law, progress=progress)
    last = _last_cycle(result.data, 2 * problem.engine.phases.half_cycle)
    return replace(result, metrics={**result.metrics, **last})


def run_drake(
    problem: Asked,
    gait: Generator | tuple[float, float],
    *,
    law: Law | None = None,
    progress: Progress | None = None,
) -> Result:
    """Walks in Drake; what was reached is returned even when it is cut short.

    Args:
        problem: the walk; the pressure limits the angles of its first pose.
        gait: chooses the gait of each half cycle; or a constant (q1, q2).
        law: reference angles of a half cycle; None for the robot's gait law.
        progress: called with what was reached and the end: of the time, here [s].

    Returns:
        A result of kind "gecko.simulation". On a wall it is FAILED after a fall, and
        has metrics `events`, `slips` (number), `fell`, `load` (the largest of each
        foot as a share of its limit), and `climbed_m` (by the torso's front end).
    """
    engine, start = problem.engine, problem.start_pose()
    if engine.limited:
        start = replace(start, alpha=saturate(start.alpha))
    built = build(engine, problem.robot, start, gait, law)
    body, generator, climb = built.body, built.generator, built.climb
    stops = [part.stop for part in (generator, climb) if part is not None]
    simulator = built.simulator(start)

    def stop(root: Context) -> Stop | None:
        return next(filter(None, (at(root) for at in stops)), None)

    command = built.sequencer.GetOutputPort("fixation")
    guard = None if climb is None else climb.released
    feet = body.suction, command, fixation(-1)
    switch = SuctionSwitch(simulator, *feet, guard, stop)
    simulator.Initialize()
    path, seed = body.drake.model.path, engine.camera.seed
    source = provenance(path, as_yaml(problem), seed)
    reached = partial(_result, built, switch, simulator.get_context(), source)
    until = problem.half_cycles * engine.phases.half_cycle
    how = {"progress": progress, "time_limit": problem.time_limit, "reached": reached}
    end = advance(simulator, body.drake, until, stop=lambda: switch.stopped, **how)
    in_vain = generator is not None and switch.stopped is None
    if in_vain and end.verdict is Verdict.SUCCESS:
        why = (
            f"not every target was reached in {problem.half_cycles} half cycles; allow "
            "more, or a larger epsilon"
        )
        end = replace(end, verdict=Verdict.FAILED, message=why)
    return reached(end)


def _result(
    built: GeckoDiagram, switch, context: Context, source: dict, end: RunEnd
) -> Result:
    """The labelled result at the end of a run, with its provenance."""
    data = _dataset(built, switch, context, end.time)
    drift = data.foot_drift.max("time")
    metrics = {
        "real_time_factor": end.time / max(end.wall, 1e-12),
        "half_cycles": int(data.half_cycle[-1]),
    }
    if built.climb is not None:
        front = data.marker_position.sel(marker="front", axis="x")
        metrics |= built.climb.metrics() | {"climbed_m": float(front[-1] - front[0])}
    return Result(
        kind="gecko.simulation",
        model=MODEL,
        verdict=end.verdict,
        message=end.message,
        data=data,
        residuals={f"drift of {f} [m]": float(drift.sel(foot=f)) for f in FEET},
        timings=spent(),
        metrics=metrics,
        provenance=source,
    )


def _dataset(
    built: GeckoDiagram, switch: SuctionSwitch, context: Context, until: float
) -> xr.Dataset:
    """Everything that was logged up to a time [s], in SI."""
    body = built.body
    times, states, keep = built.states(context, until + 1e-9)
    logs = {name: built.logged(context, name)[1][keep] for name in built.loggers}
    q = states[:, : body.plant.num_positions()]
    held = switch.held_at(times)
    markers, drift, twist = _geometry(body, q, held)
    gait = logs["gait"]
    by_time, by_limb, by_foot = ("time",), ("time", "limb"), ("time", "foot")
    variables = {
        "marker_position": (("time", "marker", "axis"), markers, "m"),
        "heading": (by_time, body.pose(q)[:, 2], "rad"),
        "alpha": (by_limb, body.limbs.angles(q), "rad"),
        "alpha_ref": (by_limb, logs["alpha_ref"], "rad"),
        "joint_angle": ((*by_limb, "hinge"), body.limbs.joint_angles(q), "rad"),
        "fixation": (by_foot, held.astype(float), "1"),
        "fixation_ref": (by_foot, logs["fixation"], "1"),
        "foot_drift": (by_foot, drift, "m"),
        "cup_twist": (by_foot, twist, "rad"),
        "phase": (by_time, gait[:, 0], "1"),
        "q1": (by_time, gait[:, 1], "rad"),
        "q2": (by_time, gait[:, 2], "1"),
        "half_cycle": (by_time, gait[:, 3], "1"),
    }
    for name, units in (("pressure", "Pa"), ("valve", "1")):
        if name in logs:
            variables[name] = (by_limb, logs[name], units)
    return motion_dataset({"time": (by_time, times, "s")}, variables)


def _geometry(body: GeckoPlant, positions: np.ndarray, held: np.ndarray):
    """Markers (T, 6, 2) [m], drift of feet (T, 4) [m], twist of cups (T, 4) [rad]."""
    suction = body.suction
    markers = np.zeros((len(positions), len(MARKERS), 2))
    drift = np.zeros((len(positions), len(FEET)))
    for k, context in enumerate(contexts_along(body.plant, positions)):
        markers[k] = body.markers(context)
        drift[k] = suction.drift(context, held[k])
    return markers, drift, np.where(held, positions @ suction.twist_matrix.T, 0.0)


def _last_cycle(data: xr.Dataset, period: float) -> dict[str, float]:
    """Motion of the last full cycle in the body frame at its start, in SI."""
    done = int(np.floor(float(data.time[-1]) / period + 1e-6))
    if done < 1:
        return {}
    a, b = (data.sel(time=k * period, method="nearest") for k in (done - 1, done))
    moved = (b.marker_position - a.marker_position).sel(marker="front").values
    forward, left = plane_rotation(-float(a.heading)) @ moved
    return {
        "rotation_per_cycle_rad": float(b.heading - a.heading),
        "forward_per_cycle_m": float(forward),
        "left_per_cycle_m": float(left),
        "distance_per_cycle_m": float(np.hypot(*moved)),
    }
