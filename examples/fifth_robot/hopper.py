"""A fifth robot, registered from outside the package: a planar two-legged hopper.

python examples/fifth_robot/hopper.py simulate hopper -o hop.nc --html hop.html
python examples/fifth_robot/hopper.py plan hopper --height 0.05 -o plan.nc
python examples/fifth_robot/hopper.py track plan.nc -o run.nc --html run.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, DiagramBuilder, LeafSystem
from pydrake.systems.primitives import LogVectorOutput

from drakebots import Ground, Result, build_robot, load
from drakebots.cli import main
from drakebots.core.checks import check, non_negative
from drakebots.core.run import Progress
from drakebots.model import model_provenance
from drakebots.multibody import advance, trajectory_dataset
from drakebots.robots import Kind, Robot, Task, register
from drakebots.trajopt.locomotion import LocomotionProblem, plan_locomotion

MODEL = Path(__file__).with_name("hopper.sdf")
BEND = 0.6  # of the thighs when the hopper stands [rad]
LEG, FOOT, TORQUE = 0.2, 0.01, 15.0  # thigh and shank, foot's radius [m], motor [N m]


def leg_angles(bend: float) -> np.ndarray:
    """Front hip and knee, back hip and knee (4,) [rad]; feet below the hips."""
    return np.array([-bend, 2 * bend, -bend, 2 * bend])


class Servos(LeafSystem):
    """u = u_d + kp (q_d - q) + kd (v_d - v), within the motors' limit.

    Ports: `state` (14,) in, `torque` (4,) [N m] out; (q_d, v_d, u_d) = target(t).
    """

    def __init__(self, target: Callable, kp: float, kd: float):
        super().__init__()
        self.target, self.kp, self.kd = target, kp, kd
        self.state = self.DeclareVectorInputPort("state", 14)
        self.DeclareVectorOutputPort("torque", 4, self._torque)

    def _torque(self, context: Context, output) -> None:
        state = self.state.Eval(context)
        q, v, u = self.target(context.get_time())
        u = u + self.kp * (q - state[3:7]) + self.kd * (v - state[10:14])
        output.SetFromVector(np.clip(u, -TORQUE, TORQUE))


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What simulations and executed plans share.

    Attributes:
        friction: friction coefficient of the ground.
        kp: feedback gain of the joint angles [N m/rad].
        kd: feedback gain of the joint rates [N m s/rad].
        time_limit: limit of wall time [s]; what was reached is kept.
    """

    friction: float = 0.8
    kp: float = 150.0
    kd: float = 2.0
    time_limit: float | None = None

    def __post_init__(self):
        numbers = [name for name in vars(self) if name not in ("plan", "time_limit")]
        check(self, "hopper", **dict.fromkeys(numbers, non_negative()))


def _run(what: str, problem: Setting, target, start, duration, progress) -> Result:
    builder = DiagramBuilder()
    ground = Ground(problem.friction)
    robot = build_robot(load(MODEL), builder, time_step=1e-3, ground=ground)
    plant = robot.plant
    servos = builder.AddSystem(Servos(target, problem.kp, problem.kd))
    builder.Connect(plant.get_state_output_port(), servos.state)
    builder.Connect(servos.get_output_port(), plant.get_actuation_input_port())
    log = LogVectorOutput(plant.get_state_output_port(), builder, publish_period=5e-3)
    simulator = Simulator(builder.Build())
    context = simulator.get_mutable_context()
    plant.SetPositionsAndVelocities(plant.GetMyContextFromRoot(context), start)
    stop = {"progress": progress, "time_limit": problem.time_limit}
    end = advance(simulator, robot, duration, **stop)
    logged = log.FindLog(context)
    data = trajectory_dataset(robot, logged.sample_times(), logged.data().T)
    feet = data.foot_position.sel(axis="z").min("foot")
    options = {name: v for name, v in vars(problem).items() if name != "plan"}
    return Result(
        f"hopper.{what}",
        "hopper",
        end.verdict,
        end.message,
        data,
        residuals={},
        timings={"simulate": end.wall},
        metrics={"apex_m": float(feet.max()) - FOOT},
        provenance=model_provenance(robot.model, options),
    )


@dataclass(frozen=True)
class Simulation(Setting):
    """The hopper whose servos stretch and bend its legs periodically.

    Attributes:
        duration: duration of the motion [s].
        stroke: amplitude of the bend [rad].
        frequency: frequency of the hops [Hz].
    """

    duration: float = 2.0
    stroke: float = 0.25
    frequency: float = 2.0


def simulate(problem: Simulation, *, progress: Progress | None = None) -> Result:
    """Simulates the periodic hops on flat ground."""
    w, stroke = 2 * np.pi * problem.frequency, problem.stroke

    def target(t: float):
        q = leg_angles(BEND + stroke * np.sin(w * t))
        return q, leg_angles(stroke * w * np.cos(w * t)), np.zeros(4)

    base = [0.0, 2 * LEG * np.cos(BEND) + FOOT, 0.0]
    start = np.r_[base, leg_angles(BEND), np.zeros(7)]
    return _run("simulation", problem, target, start, problem.duration, progress)


@dataclass(frozen=True)
class Problem:
    """A hop on the spot, from standing to standing.

    Attributes:
        height: desired height of the feet at the apex [m].
        knots: number of knots.
    """

    height: float = 0.05
    knots: int = 21


def plan(problem: Problem, *, progress: Progress | None = None) -> Result:
    """Plans a hop; the program decides when the feet leave the ground."""
    pose = dict(zip(load(MODEL).summary.actuators, leg_angles(BEND).tolist()))
    hop = LocomotionProblem(MODEL, "hop", pose=pose, **vars(problem))
    return replace(plan_locomotion(hop, progress=progress), kind="hopper.plan")


@dataclass(frozen=True)
class Tracking(Setting):
    """A planned hop, executed in simulation.

    Attributes:
        plan: result of :func:`plan`.
        settle: time to hold the last pose after the plan [s].
    """

    plan: Result
    settle: float = 0.5


def track(problem: Tracking, *, progress: Progress | None = None) -> Result:
    """Executes a plan: its angles, rates and torques are the servos' targets."""
    data = problem.plan.data
    times = data.time.values
    q, v, u = (data[n].values[:, -4:] for n in ("position", "velocity", "input"))

    def target(t: float):
        angles, rates = ([np.interp(t, times, x) for x in y.T] for y in (q, v))
        interval = np.searchsorted(times, t, "right") - 1
        return np.array(angles), np.array(rates), u[interval]

    start = np.r_[data.position.values[0], data.velocity.values[0]]
    return _run("track", problem, target, start, times[-1] + problem.settle, progress)


DRAWN = ("drakebots.plots:plot_motion", "drakebots.view:record_motion")
register(
    Robot(
        "hopper",
        "a planar two-legged hopper",
        simulate=Task("hopper:Simulation", "hopper:simulate", "hop by periodic servos"),
        plan=Task("hopper:Problem", "hopper:plan", "plan a hop on the spot"),
    ),
    Kind("hopper.simulation", *DRAWN),
    Kind("hopper.plan", *DRAWN, Task("hopper:Tracking", "hopper:track", "run a plan")),
    Kind("hopper.track", *DRAWN),
)

if __name__ == "__main__":
    raise SystemExit(main())
