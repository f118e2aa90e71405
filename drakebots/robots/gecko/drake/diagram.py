"""The diagram that makes the gecko walk in Drake.

    ┌───────────┐q┌───────────────┐alpha_ref ┌──────────┐ ┌──────┐x_d ┌────────┐
    │ generator │▶│ GaitSequencer │─────────▶│ pressure │▶│ gain │───▶│ plant  │─┐
    └───────────┘ └───────────────┘          │ (if any) │ └──────┘    └────────┘ │
          ▲              │ fixation          └──────────┘                  ▲     │
          │              └─▶ SuctionSwitch ─▶ the plant's Context: welds ──┘     │
          │   ┌────────┐                                                        │
          └───│ camera │◀───────────────────────────────────────────────────────┘
              └────────┘

The generator may be a constant q. The wall is the world's xy plane; on an
incline gravity is tilted instead, with +x uphill.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import (
    Context,
    Diagram,
    DiagramBuilder,
    DiscreteStateIndex,
    LeafSystem,
)
from pydrake.systems.primitives import (
    Adder,
    ConstantVectorSource,
    Gain,
    LogVectorOutput,
    MatrixGain,
)

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.robots.gecko.drake.plant import (
    CUP_LAWS,
    TORSION,
    GeckoPlant,
    WeightedCups,
    build_gecko_plant,
)
from drakebots.robots.gecko.drake.pressure import (
    AngleLoop,
    Calibration,
    Chambers,
    Gains,
    PressureLoop,
)
from drakebots.robots.gecko.drake.sequencer import GaitSequencer, PhaseTimes
from drakebots.robots.gecko.model import FEET, LEGS, LIMBS, Gecko, Pose

# A camera above the gecko, and the planner that looks through it.


class Camera(LeafSystem):
    """Sees the torso's front end and the mean heading.

                   ┌────────┐
        pose (3) ─▶│ Camera │──▶ measured (3) x, y [m], heading [rad]
                   └────────┘

    Sampled and held; the first sample is taken at Initialize.

    Args:
        period: of sampling [s].
        position_noise: standard deviation of x and of y [m].
        heading_noise: standard deviation [rad].
        seed: of the noise.

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
        super().__init__()
        self.set_name("camera")
        if not (np.isfinite(period) and period > 0):
            raise InvalidInput(f"camera: period must be > 0 s, got {period}")
        noise = np.array([position_noise, position_noise, heading_noise], float)
        if not (np.isfinite(noise).all() and (noise >= 0).all()):
            raise InvalidInput("camera: noise must be >= 0 and finite")
        self._noise, self._random = noise, np.random.default_rng(seed)
        self.DeclareVectorInputPort("pose", 3)
        self.DeclareDiscreteState(3)
        self.DeclareInitializationUnrestrictedUpdateEvent(self._sample)
        self.DeclarePeriodicUnrestrictedUpdateEvent(period, period, self._sample)
        state = {self.discrete_state_ticket(DiscreteStateIndex(0))}
        self.DeclareVectorOutputPort("measured", 3, self._measured, state)

    def _sample(self, context, state):
        seen = self.EvalVectorInput(context, 0).value().copy()
        if self._noise.any():
            seen += self._noise * self._random.standard_normal(3)
        state.get_mutable_discrete_state().set_value(seen)

    def _measured(self, context, output):
        output.SetFromVector(context.get_discrete_state_vector().value())


class GeneratorSystem(LeafSystem):
    """Asks a gait pattern generator once per half cycle.

                       ┌─────────────────┐
        measured (3) ─▶│ GeneratorSystem │──▶ q (3) q1 > 0 [rad], q2, walk 0 or 1
                       └─────────────────┘──▶ target (2) number, distance foretold [m]

    The generator is any object with `decide(position, heading)`, which returns
    a decision with `q1`, `q2`, `target`, `distance`, or None when it has
    arrived. It remembers its target itself: a run needs a new one.

    Args:
        generator: to ask.
        period: of a half cycle [s].
    """

    def __init__(self, generator, period: float):
        super().__init__()
        self.set_name("generator")
        self._generator = generator
        self.DeclareVectorInputPort("measured", 3)
        self.DeclareDiscreteState(np.array([0.0, 0, 0, np.nan, np.nan]))
        self.DeclarePeriodicUnrestrictedUpdateEvent(period, 0.0, self._decide)
        state = {self.discrete_state_ticket(DiscreteStateIndex(0))}
        self.DeclareVectorOutputPort("q", 3, self._output(slice(0, 3)), state)
        self.DeclareVectorOutputPort("target", 2, self._output(slice(3, 5)), state)
        self.arrived = False

    @staticmethod
    def _output(part: slice):
        def calc(context, output):
            output.SetFromVector(context.get_discrete_state_vector().value()[part])

        return calc

    def _decide(self, context, state):
        x, y, heading = self.EvalVectorInput(context, 0).value()
        x_new = context.get_discrete_state_vector().value().copy()
        decision = self._generator.decide(np.array([x, y]), heading)
        self.arrived = decision is None
        if decision is None:
            x_new[2] = 0.0
        else:
            x_new[:3] = decision.q1, decision.q2, 1.0
            x_new[3:5] = decision.target, decision.distance
        state.get_mutable_discrete_state().set_value(x_new)


@dataclass(frozen=True)
class GeckoDiagram:
    """A built diagram and its parts.

    Attributes:
        diagram: the whole.
        body: robot and plant.
        sequencer: of the gait; its port "fixation" commands the feet.
        generator: that decides, or None for a constant q.
        loggers: by name, sampled every `log_period` [s].
    """

    diagram: Diagram
    body: GeckoPlant
    sequencer: GaitSequencer
    generator: GeneratorSystem | None
    loggers: dict
    log_period: float

    def logged(self, context: Context, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(times (T,), samples (T, n)) of a logger."""
        log = self.loggers[name].FindLog(context)
        return log.sample_times().copy(), log.data().T.copy()

    def simulator(self, pose: Pose) -> Simulator:
        """A simulator with the robot at rest in a pose, no foot held yet."""
        simulator = Simulator(self.diagram)
        root = simulator.get_mutable_context()
        self.body.place(self.body.plant.GetMyMutableContextFromRoot(root), pose)
        return simulator


def build_gecko_diagram(
    robot: Gecko,
    start: Pose,
    times: PhaseTimes,
    *,
    q: tuple[float, float] | None = None,
    generator=None,
    first: int = 1,
    pressure: bool = False,
    curve: Calibration | None = None,
    gains: Gains | None = None,
    camera_period: float = 0.1,
    position_noise: float = 0.0,
    heading_noise: float = 0.0,
    seed: int = 0,
    segments: int | None = None,
    limb_law: str = "arc",
    cups: str = "weighted",
    torsion: float | None = None,
    incline: float = 0.0,
    time_step: float = 1e-3,
    log_period: float = 0.02,
) -> GeckoDiagram:
    """Builds the diagram above.

    Args:
        robot: lengths and weights.
        start: the first pose; its angles are the first references.
        times: of the phases, whole numbers of time steps.
        q: constant q1 > 0 [rad] and q2, or:
        generator: an object with `decide(position, heading)`.
        first: sign of the first half cycle's q1.
        pressure: whether the low-level control lies between.
        curve, gains: of that.
        camera_period: [s].
        position_noise, heading_noise, seed: of the camera [m], [rad].
        cups: a law of `CUP_LAWS`; "spring" has the stiffness of `torsion`.
        segments, limb_law, torsion, incline, time_step: see `build_gecko_plant`.
        log_period: [s].
    """
    if (q is None) == (generator is None):
        raise InvalidInput("give either a constant q or a generator")
    if cups not in CUP_LAWS:
        raise UnknownName("law of the cups", cups, CUP_LAWS)
    if cups == "weighted":
        torsion = TORSION
    builder = DiagramBuilder()
    body = build_gecko_plant(
        builder,
        robot,
        segments=segments,
        limb_law=limb_law,
        torsion=torsion,
        incline=incline,
        time_step=time_step,
    )
    parts = _Parts(builder, body)
    sequencer = builder.AddSystem(
        GaitSequencer(start.alpha, times, first=first, leg_bend=robot.leg_bend)
    )
    brain = None
    if generator is None:
        source = builder.AddNamedSystem("q", ConstantVectorSource([*q, 1.0]))
        wish = source.get_output_port()
    else:
        camera = Camera(
            camera_period,
            position_noise=position_noise,
            heading_noise=heading_noise,
            seed=seed,
        )
        brain = GeneratorSystem(generator, times.half_cycle)
        wish = parts.planner(camera, brain)
    builder.Connect(wish, sequencer.GetInputPort("q"))
    asked = sequencer.GetOutputPort("alpha_ref")
    ports = {"state": body.plant.get_state_output_port(), "alpha_ref": asked}
    ports |= {k: sequencer.GetOutputPort(k) for k in ("gait", "fixation")}
    if pressure:
        more = parts.pressure(asked, start, curve or Calibration(), gains or Gains())
        asked = more.pop("alpha")
        ports |= more
    parts.limbs(asked)
    parts.cups(cups, asked)
    loggers = {
        name: LogVectorOutput(port, builder, publish_period=log_period)
        for name, port in ports.items()
    }
    for name, logger in loggers.items():
        logger.set_name(f"log_{name}")
    diagram = builder.Build()
    diagram.set_name("gecko")
    return GeckoDiagram(diagram, body, sequencer, brain, loggers, log_period)


class _Parts:
    """Adds the diagram's parts around the plant and connects them."""

    def __init__(self, builder: DiagramBuilder, body: GeckoPlant):
        self._builder, self._body = builder, body
        self._connect = builder.Connect

    def _of_state(self, matrix: np.ndarray, name: str):
        """A port with matrix @ positions."""
        plant = self._body.plant
        wide = np.zeros((len(matrix), plant.num_multibody_states()))
        wide[:, : plant.num_positions()] = matrix
        system = self._builder.AddNamedSystem(name, MatrixGain(wide))
        self._connect(plant.get_state_output_port(), system.get_input_port())
        return system.get_output_port()

    def planner(self, camera: Camera, brain: GeneratorSystem):
        """The port with what the generator decides."""
        self._builder.AddSystem(camera)
        self._builder.AddSystem(brain)
        pose = self._of_state(self._body.pose_matrix, "pose")
        self._connect(pose, camera.get_input_port())
        self._connect(camera.get_output_port(), brain.get_input_port())
        return brain.GetOutputPort("q")

    def pressure(self, asked, start: Pose, curve: Calibration, gains: Gains):
        """The low-level control; its ports alpha, pressure, valve."""
        add, connect, n = self._builder.AddSystem, self._connect, len(LIMBS)
        outer = add(AngleLoop(n, curve, gains, np.isin(np.arange(n), LEGS)))
        inner = add(PressureLoop(n, curve, gains))
        chambers = add(Chambers(n, curve, alpha=start.alpha))
        angles = self._of_state(self._body.limbs.sum_matrix, "angles")
        connect(asked, outer.GetInputPort("alpha_ref"))
        connect(angles, outer.GetInputPort("alpha"))
        connect(outer.GetOutputPort("p_ref"), inner.GetInputPort("p_ref"))
        connect(chambers.GetOutputPort("p"), inner.GetInputPort("p"))
        connect(inner.GetOutputPort("u"), chambers.GetInputPort("u"))
        return {
            "alpha": chambers.GetOutputPort("alpha"),
            "pressure": chambers.GetOutputPort("p"),
            "valve": inner.GetOutputPort("u"),
        }

    def limbs(self, asked) -> None:
        """Spreads the limbs' angles over the joints."""
        limbs, plant = self._body.limbs, self._body.plant
        spread = self._builder.AddNamedSystem("limbs", MatrixGain(limbs.desired_matrix))
        self._connect(asked, spread.get_input_port())
        self._connect(
            spread.get_output_port(), plant.get_desired_state_input_port(limbs.instance)
        )

    def cups(self, law: str, asked) -> None:
        """What the cups' springs are asked for."""
        body, add = self._body, self._builder.AddNamedSystem
        if law == "weighted":
            weights, n = body.robot.weights, len(LIMBS)
            cups = self._builder.AddSystem(
                WeightedCups(weights.orientation / weights.angle)
            )
            lack, minus = add("lack", Adder(2, n)), add("minus", Gain(-1.0, n))
            bent = self._of_state(body.limbs.sum_matrix, "bent")
            twists = self._of_state(body.suction.twist_matrix, "twists")
            self._connect(asked, minus.get_input_port())
            self._connect(bent, lack.get_input_port(0))
            self._connect(minus.get_output_port(), lack.get_input_port(1))
            self._connect(twists, cups.GetInputPort("twist"))
            self._connect(lack.get_output_port(), cups.GetInputPort("bend"))
        else:
            cups = add("springs", ConstantVectorSource(np.zeros(2 * len(FEET))))
        port = body.plant.get_desired_state_input_port(body.suction.instance)
        self._connect(cups.get_output_port(), port)
