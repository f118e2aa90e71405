"""A fifth robot, registered from outside the package: a planar two-legged hopper.

python examples/fifth_robot/hopper.py simulate hopper -o hop.nc --html hop.html
python examples/fifth_robot/hopper.py plan hopper --height 0.05 -o plan.nc
python examples/fifth_robot/hopper.py track plan.nc -o run.nc --html run.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, DiagramBuilder, LeafSystem
from pydrake.systems.primitives import LogVectorOutput

from drakebots import Ground, Result, build_robot, load
from drakebots.cli import main
from drakebots.core.checks import non_negative, positive, whole
from drakebots.core.fields import checked
from drakebots.core.run import Progress
from drakebots.formats import model_provenance
from drakebots.multibody import advance, trajectory_dataset
from drakebots.robots import Kind, Robot, Task, register
from drakebots.trajopt.locomotion import Hop, LocomotionProblem, plan_locomotion

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


@checked("hopper", kw_only=True)
class Setting:
    """What simulations and executed plans share."""

    friction: Annotated[float, non_negative()] = 0.8
    """Friction coefficient of the ground."""
    kp: Annotated[float, non_negative("N m/rad")] = 150.0
    """Feedback gain of the joint angles."""
    kd: Annotated[float, non_negative("N m s/rad")] = 2.0
    """Feedback gain of the joint rates."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of wall time; what was reached is kept."""


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


@checked("hopper", kw_only=True)
class Simulation(Setting):
    """The hopper whose servos stretch and bend its legs periodically."""

    duration: Annotated[float, positive("s")] = 2.0
    """Duration of the motion."""
    stroke: Annotated[float, non_negative("rad")] = 0.25
    """Amplitude of the bend."""
    frequency: Annotated[float, non_negative("Hz")] = 2.0
    """Frequency of the hops."""


def simulate(problem: Simulation, *, progress: Progress | None = None) -> Result:
    """Simulates the periodic hops on flat ground."""
    w, stroke = 2 * np.pi * problem.frequency, problem.stroke

    def target(t: float):
        q = leg_angles(BEND + stroke * np.sin(w * t))
        return q, leg_angles(stroke * w * np.cos(w * t)), np.zeros(4)

    base = [0.0, 2 * LEG * np.cos(BEND) + FOOT, 0.0]
    start = np.r_[base, leg_angles(BEND), np.zeros(7)]
    return _run("simulation", problem, target, start, problem.duration, progress)


@checked("hopper")
class Problem:
    """A hop on the spot, from standing to standing."""

    height: Annotated[float, positive("m")] = 0.05
    """Desired height of the feet at the apex."""
    knots: Annotated[int, whole(5)] = 21
    """Number of knots."""


def plan(problem: Problem, *, progress: Progress | None = None) -> Result:
    """Plans a hop; the program decides when the feet leave the ground."""
    pose = dict(zip(load(MODEL).summary.actuators, leg_angles(BEND).tolist()))
    motion = Hop(problem.height)
    hop = LocomotionProblem(MODEL, motion, knots=problem.knots, pose=pose)
    return replace(plan_locomotion(hop, progress=progress), kind="hopper.plan")


@checked("hopper")
class Tracking(Setting):
    """A planned hop, executed in simulation."""

    plan: Result
    """Result of :func:`plan`."""
    settle: Annotated[float, non_negative("s")] = 0.5
    """Time to hold the last pose after the plan."""


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
