"""The Drake walk of the gecko: what to simulate, and the diagram that does it.

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
camera. The wall is the world's xy plane; on an incline gravity is tilted instead, with
+x uphill.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, Diagram, DiagramBuilder
from pydrake.systems.primitives import (
    ConstantVectorSource,
    LogVectorOutput,
    MatrixGain,
)

from drakebots.core.checks import (
    array,
    between,
    check,
    check_value,
    finite,
    non_negative,
    one_of,
    optional,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.drake.plant import (
    CUP_LAWS,
    LIMB_LAWS,
    TORSION,
    GeckoPlant,
    WeightedCups,
    build_gecko_plant,
)
from drakebots.robots.gecko.drake.pressure import (
    AngleLoop,
    Chambers,
    Gains,
    PressureLoop,
)
from drakebots.robots.gecko.drake.sampled import Sampled
from drakebots.robots.gecko.drake.sequencer import (
    GaitSequencer,
    PhaseTimes,
    phase_times,
)
from drakebots.robots.gecko.generator import GaitPatternGenerator, Generator
from drakebots.robots.gecko.model import (
    FEET,
    LEGS,
    LIMBS,
    Calibration,
    Gecko,
    Pose,
    bending_stiffness,
    gait_law,
    parameters,
    pose_at,
    saturate,
)
from drakebots.robots.gecko.pose_step import check_gait


@dataclass(frozen=True)
class DrakeWalk:
    """A walk of the Drake robot; by default a straight gait of three cycles.

    Attributes:
        robot: lengths and weights of the robot.
        q1: step length of a constant gait, > 0; unused with targets [rad].
        q2: steering of a constant gait.
        cycles: number of cycles of a constant gait.
        targets: targets to walk to, one after the other (k, 2) [m]; None for a
            constant gait.
        half_cycles: largest number of half cycles with targets.
        position: position of the torso's front end at the start (2,) [m].
        heading: heading at the start [rad].
        alpha: angles at the start (5,) [rad]; None for alpha(-q1, q2).
        pressure: whether the low-level control of Fig. 11B lies between the
            references and the limbs.
        times: durations of the phases of a half cycle.
        camera_period: sampling period of the camera [s].
        position_noise: standard deviation of the camera's x and y [m].
        heading_noise: standard deviation of the camera's heading [rad].
        seed: seed of that noise.
        segments: number of segments of each limb's chain; None for the file's.
        limb_law: "beam" for elastic limbs, "arc" for limbs of constant curvature.
        cups: law of the cups' torsion: "spring" of one stiffness, or "weighted" as in
            the pose step, with limbs of equal stiffness: a reproduction of it, which
            predicts nothing that it does not. See :func:`reproduction`.
        modulus: Young's modulus of the limbs; with "weighted" cups its ratio to the
            file's scales the equal stiffness; None for the file's [Pa].
        torsion: stiffness of a cup's spring per leg's; None for the file's.
        incline: inclination of the wall, +x uphill; beyond pi/2 it overhangs, and pi
            is a ceiling, from which only suction keeps the robot [rad].
        time_step: time step of the plant, at most 1e-3 [s].
        log_period: sampling period of the result [s].
        time_limit: limit of the wall time [s].

    Raises:
        InvalidInput: for numbers that are not finite or out of range.
        UnknownName: for another law.
    """

    robot: Gecko = field(default_factory=Gecko)
    q1: float = np.radians(80.0)
    q2: float = 0.0
    cycles: int = 3
    targets: tuple | None = None
    half_cycles: int = 400
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
    limb_law: str = "beam"
    cups: str = "spring"
    modulus: float | None = None
    torsion: float | None = None
    incline: float = 0.0
    time_step: float = 1e-3
    log_period: float = 0.02
    time_limit: float | None = None

    def __post_init__(self):
        check_gait(self.q1, self.q2)
        check(
            self,
            "",
            cycles=whole(1),
            half_cycles=whole(1),
            heading=finite("rad"),
            camera_period=positive("s"),
            position_noise=non_negative("m"),
            heading_noise=non_negative("rad"),
            seed=whole(0),
            segments=optional(whole(1)),
            limb_law=one_of("law of the limbs", LIMB_LAWS),
            cups=one_of("law of the cups", CUP_LAWS),
            modulus=optional(positive("Pa")),
            torsion=optional(positive()),
            incline=between(0, np.pi, "rad"),
            time_step=positive("s"),
            log_period=positive("s"),
            time_limit=optional(positive("s")),
        )
        check_value("position", self.position, array((2,), "m"))
        check_value("alpha", self.alpha, optional(array((5,), "rad")))
        if (self.limb_law, self.cups) == ("arc", "spring"):
            raise InvalidInput(
                "limbs that stay arcs with cups of one stiffness walk 1.8 times as far "
                "as elastic ones, for arcs strain the feet against each other; use "
                "limb_law 'beam' with cups 'spring', or 'arc' with 'weighted'"
            )
        if self.time_step > 1e-3:
            raise InvalidInput(
                f"time step {self.time_step:g} s lets fixed feet drift; "
                "use 1e-3 s or less"
            )
        if self.targets is not None:
            targets = check_value("targets", self.targets, array((None, 2), "m"))
            if not len(targets):
                raise InvalidInput("targets must be at least one point")
            object.__setattr__(self, "targets", tuple(map(tuple, targets.tolist())))

    @property
    def stiffness(self) -> dict[str, float]:
        """Bending stiffness of "leg" and "torso" [N m/rad]."""
        if self.cups == "spring":
            return bending_stiffness(self.robot, self.modulus)
        own = parameters()
        scale = 1.0 if self.modulus is None else self.modulus / own.number("modulus")
        return dict.fromkeys(("leg", "torso"), scale * own.number("equal_stiffness"))

    @property
    def phases(self) -> PhaseTimes:
        """The phases' durations as whole numbers of time steps."""
        return self.times.rounded(self.time_step)

    @property
    def duration(self) -> float:
        """Longest duration of the walk [s]."""
        halves = 2 * self.cycles if self.targets is None else self.half_cycles
        return halves * self.phases.half_cycle

    def start(self) -> Pose:
        """The first pose; with pressure control, angles are limited to its reach."""
        alpha = self.alpha
        if alpha is None:
            alpha = gait_law(-self.q1, self.q2, leg_bend=self.robot.leg_bend)
        if self.pressure:
            alpha = saturate(np.array(alpha, float), Calibration())
        return pose_at(self.robot, alpha, self.heading, self.position)


def reproduction(**options) -> DrakeWalk:
    """A walk that follows the pose step: limbs stay arcs, cups follow its weights."""
    return DrakeWalk(limb_law="arc", cups="weighted", **options)


class Camera(Sampled):
    """Measures position and mean heading of the robot, sampled and held.

                   ┌────────┐
        pose (3) ─▶│ Camera │──▶ measured_pose (3) x, y [m], heading [rad]
                   └────────┘

    The first sample is taken at Initialize.

    Args:
        period: sampling period [s].
        position_noise: standard deviation of x and of y [m].
        heading_noise: standard deviation of the heading [rad].
        seed: seed of the noise.

    Raises:
        InvalidInput: for a period <= 0 or a negative noise.
    """

    def __init__(
        self,
        period: float = 0.1,
        *,
        position_noise: float = 0.0,
        heading_noise: float = 0.0,
        seed: int = 0,
    ):
        super().__init__("camera", np.zeros(3))
        check_value("camera: period", period, positive("s"))
        noise = array((3,), entry=non_negative())
        deviations = [position_noise, position_noise, heading_noise]
        self._noise = check_value("camera: noise", deviations, noise)
        self._random = np.random.default_rng(seed)
        self.DeclareVectorInputPort("pose", 3)
        self.DeclareInitializationUnrestrictedUpdateEvent(self._first)
        self._declare_update(self._sample, period, period)
        self._declare_output("measured_pose", slice(0, 3))

    def _first(self, context, state):
        sample = self._sample(context, None)
        state.get_mutable_discrete_state().set_value(sample)

    def _sample(self, context, x):
        seen = self._input(context).copy()
        if self._noise.any():
            seen += self._noise * self._random.standard_normal(3)
        return seen


class GeneratorSystem(Sampled):
    """Calls a gait generator once per half cycle.

                            ┌─────────────────┐
        measured_pose (3) ─▶│ GeneratorSystem │──▶ gait_parameters (3)
                            └─────────────────┘    q1 > 0 [rad], q2, walk 0 or 1

    The generator keeps its own state: every simulation needs a new one.

    Args:
        generator: chooses the gaits.
        period: duration of a half cycle [s].

    Attributes:
        arrived: whether the generator has reached its end.
        decisions: number of gaits that it has chosen.
    """

    def __init__(self, generator: Generator, period: float):
        super().__init__("generator", np.zeros(3))
        self._generator, self.arrived, self.decisions = generator, False, 0
        self.DeclareVectorInputPort("measured_pose", 3)
        self._declare_update(self._decide, period)
        self._declare_output("gait_parameters", slice(0, 3))

    def _decide(self, context, x):
        *position, heading = self._input(context)
        decision = self._generator.decide(np.array(position), heading)
        self.arrived = decision is None
        if decision is None:
            x[2] = 0.0
            return x
        self.decisions += 1
        return np.array([decision.q1, decision.q2, 1.0])


@dataclass(frozen=True)
class GeckoDiagram:
    """A built diagram and its parts.

    Attributes:
        diagram: the whole diagram.
        body: robot and plant.
        sequencer: gait sequencer; its port "fixation" commands the feet.
        generator: generator, or None for a constant q.
        loggers: loggers by name.
    """

    diagram: Diagram
    body: GeckoPlant
    sequencer: GaitSequencer
    generator: GeneratorSystem | None
    loggers: dict

    def logged(self, context: Context, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Times (T,) [s] and samples (T, n) of a logger."""
        log = self.loggers[name].FindLog(context)
        return log.sample_times().copy(), log.data().T.copy()

    def simulator(self, pose: Pose) -> Simulator:
        """A simulator with the robot at rest in a pose, with no foot fixed yet."""
        simulator = Simulator(self.diagram)
        root = simulator.get_mutable_context()
        self.body.place(self.body.plant.GetMyMutableContextFromRoot(root), pose)
        return simulator


def build(problem: DrakeWalk, generator: Generator | None = None) -> GeckoDiagram:
    """The diagram of a walk.

    Args:
        problem: what to simulate.
        generator: replaces the gait pattern generator of the targets; the problem
            needs targets nevertheless.

    Raises:
        InvalidInput: for a generator without targets.
    """
    if problem.targets is not None and generator is None:
        generator = GaitPatternGenerator(np.array(problem.targets))
    if generator is not None and problem.targets is None:
        raise InvalidInput("a generator needs a problem with targets; give them too")
    start, times, step = problem.start(), problem.phases, problem.time_step
    builder = DiagramBuilder()
    body = build_gecko_plant(
        builder,
        problem.robot,
        segments=problem.segments,
        limb_law=problem.limb_law,
        stiffness=problem.stiffness,
        torsion=TORSION if problem.cups == "weighted" else problem.torsion,
        incline=problem.incline,
        time_step=step,
    )
    parts = _Parts(builder, body)
    sequencer = builder.AddSystem(
        GaitSequencer(start.alpha, times, leg_bend=problem.robot.leg_bend)
    )
    system = None
    if generator is None:
        constant = ConstantVectorSource([problem.q1, problem.q2, 1.0])
        q = builder.AddNamedSystem("q", constant).get_output_port()
    else:
        camera = Camera(
            problem.camera_period,
            position_noise=problem.position_noise,
            heading_noise=problem.heading_noise,
            seed=problem.seed,
        )
        system = GeneratorSystem(generator, times.half_cycle)
        q = parts.planner(camera, system)
    builder.Connect(q, sequencer.GetInputPort("gait_parameters"))
    desired = sequencer.GetOutputPort("desired_bending")
    ports = {"state": body.plant.get_state_output_port(), "alpha_ref": desired}
    ports |= {k: sequencer.GetOutputPort(k) for k in ("gait", "fixation")}
    if problem.pressure:
        more = parts.pressure(desired, start)
        desired = more.pop("alpha")
        ports |= more
    parts.limbs(desired)
    parts.cups(problem.cups, desired)
    log_period = max(1, round(problem.log_period / step)) * step
    loggers = {}
    for name, port in ports.items():
        loggers[name] = LogVectorOutput(port, builder, publish_period=log_period)
        loggers[name].set_name(f"log_{name}")
    diagram = builder.Build()
    diagram.set_name("gecko")
    return GeckoDiagram(diagram, body, sequencer, system, loggers)


class _Parts:
    """Adds the diagram's parts around the plant and connects them."""

    def __init__(self, builder: DiagramBuilder, body: GeckoPlant):
        self._builder, self._body = builder, body
        self._connect = builder.Connect

    def _of_state(self, matrix: np.ndarray, name: str):
        """A port with the matrix times the plant's positions."""
        plant = self._body.plant
        wide = np.zeros((len(matrix), plant.num_multibody_states()))
        wide[:, : plant.num_positions()] = matrix
        system = self._builder.AddNamedSystem(name, MatrixGain(wide))
        self._connect(plant.get_state_output_port(), system.get_input_port())
        return system.get_output_port()

    def planner(self, camera: Camera, generator: GeneratorSystem):
        """Adds camera and generator; returns the port with the generator's gait."""
        self._builder.AddSystem(camera)
        self._builder.AddSystem(generator)
        pose = self._of_state(self._body.pose_matrix, "pose")
        self._connect(pose, camera.get_input_port())
        self._connect(camera.get_output_port(), generator.get_input_port())
        return generator.get_output_port()

    def pressure(self, desired, start: Pose):
        """Adds the low-level control; returns its ports alpha, pressure, valve."""
        add, connect, n = self._builder.AddSystem, self._connect, len(LIMBS)
        curve, gains = Calibration(), Gains()
        outer = add(AngleLoop(n, curve, gains, np.isin(np.arange(n), LEGS)))
        inner = add(PressureLoop(n, curve, gains))
        chambers = add(Chambers(n, curve, alpha=start.alpha))
        angles = self._of_state(self._body.limbs.sum_matrix, "angles")
        connect(desired, outer.GetInputPort("desired_bending"))
        connect(angles, outer.GetInputPort("bending"))
        connect(
            outer.GetOutputPort("desired_pressure"),
            inner.GetInputPort("desired_pressure"),
        )
        connect(chambers.GetOutputPort("pressure"), inner.GetInputPort("pressure"))
        connect(inner.GetOutputPort("valve"), chambers.GetInputPort("valve"))
        return {
            "alpha": chambers.GetOutputPort("bending"),
            "pressure": chambers.GetOutputPort("pressure"),
            "valve": inner.GetOutputPort("valve"),
        }

    def limbs(self, desired) -> None:
        """Distributes the limbs' desired angles over the joints."""
        limbs, plant = self._body.limbs, self._body.plant
        spread = self._builder.AddNamedSystem("limbs", MatrixGain(limbs.desired_matrix))
        self._connect(desired, spread.get_input_port())
        self._connect(
            spread.get_output_port(), plant.get_desired_state_input_port(limbs.instance)
        )

    def cups(self, law: str, desired) -> None:
        """Connects the desired twists of the cups."""
        body, connect = self._body, self._connect
        if law == "weighted":
            weights = body.robot.weights
            weight = weights.orientation / weights.angle
            cups = self._builder.AddSystem(WeightedCups(weight))
            alpha = self._of_state(body.limbs.sum_matrix, "bent")
            twists = self._of_state(body.suction.twist_matrix, "twists")
            connect(twists, cups.GetInputPort("twist"))
            connect(alpha, cups.GetInputPort("bending"))
            connect(desired, cups.GetInputPort("desired_bending"))
        else:
            springs = ConstantVectorSource(np.zeros(2 * len(FEET)))
            cups = self._builder.AddNamedSystem("springs", springs)
        port = body.plant.get_desired_state_input_port(body.suction.instance)
        connect(cups.get_output_port(), port)
