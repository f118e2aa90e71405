"""Simulate any model on the ground: held in its standing posture, or left to itself.

result = simulate(Simulation("robot.urdf"))            # servos hold every motor
result = simulate(Simulation("robot.urdf", passive=True))  # a ragdoll
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import xarray as xr
from pydrake.multibody.tree import BodyIndex
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, DiagramBuilder
from pydrake.systems.primitives import LogVectorOutput

from drakebots.core.checks import (
    check,
    check_log,
    finite,
    flag,
    non_negative,
    optional,
    positive,
)
from drakebots.core.run import Progress, RunEnd, Verdict
from drakebots.core.stages import spent, timed
from drakebots.model import Model, load, model_provenance
from drakebots.multibody import (
    Ground,
    Robot,
    add_foot_contacts,
    advance,
    base_body,
    build_robot,
    closure_residuals,
    trajectory_dataset,
)
from drakebots.multibody.posture import (
    Posture,
    Servos,
    Stance,
    centre_of_mass,
    find_posture,
    servos,
)
from drakebots.results import Result
from drakebots.robots.legged.start import (
    filter_overlaps,
    nudge,
    place,
    steady_light_links,
)

STANDING_HEIGHT = 0.8
"""Least height of a standing robot's centre of mass, as a share of its first."""

STANDING_TILT = np.radians(20)
"""Largest tilt of the base of a robot that stands, from its first [rad]."""

STANDING_LOAD = 0.8
"""Least share of its weight that a standing robot has on its feet in the end,"""

STANDING_REACH = 0.15
"""and how far from one the ground may push, as a share of its size."""


NUDGE = 0.003
"""Rate at which a robot that starts to stand leans, in units of sqrt(g / l): 6 mm/s for
one of 0.35 m. What only balances leans more by exp(t sqrt(g / l)) and falls."""

FALLING = 7.0
"""Time in which it falls, in units of sqrt(l / g)."""


@dataclass(frozen=True)
class Simulation:
    """A model on the ground z = 0, from its standing posture.

    Attributes:
        model: the model: a name, a path, or a loaded model.
        duration: duration of the motion [s].
        friction: friction coefficient of the ground.
        passive: whether it is left to itself, all motors at zero, instead of being
            held by servos.
        stiffness: stiffness of the servos of its legs, in units of its weight times
            its size per leg and radian.
        nudge: rate at which it leans at the start, in units of sqrt(g / l) with l its
            size, so that it does not merely balance; 0 for a start at rest, as one that
            is passive has.
        pose: joint positions by joint to start from and hold [rad, m]; by default its
            standing posture.
        height: height of the base at the start [m]; by default its lowest point
            touches the ground.
        time_step: time step of the plant [s].
        log_period: period of the stored samples [s].
        time_limit: limit of the wall time [s]; what was reached is kept.

    Raises:
        InvalidInput: for a value out of range.
    """

    model: str | Path | Model
    duration: float = 2.0
    friction: float = 0.6
    passive: bool = False
    stiffness: float = 10.0
    nudge: float = NUDGE
    pose: Mapping[str, float] | None = None
    height: float | None = None
    time_step: float = 1e-3
    log_period: float = 5e-3
    time_limit: float | None = None

    def __post_init__(self):
        check(
            self,
            "",
            duration=positive("s"),
            friction=non_negative(),
            passive=flag(),
            stiffness=positive(),
            nudge=non_negative(),
            height=optional(finite("m")),
            time_step=positive("s"),
            log_period=positive("s"),
            time_limit=optional(positive("s")),
        )
        check_log(self.duration, self.log_period)


@timed("load")
def simulate(problem: Simulation, *, progress: Progress | None = None) -> Result:
    """Simulates a model; returns what was reached even when cut short.

    The result is a success if the run reached its end and, unless it is passive, the
    robot still stands there: its centre of mass no lower than 0.8 of its first height,
    its base tilted by no more than 20 degrees, and in the end 0.8 of its weight on its
    feet, if it has some.

    Args:
        problem: what to simulate.
        progress: called as progress("simulate", time, duration) [s].

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
        UnknownName: for an unknown joint in the pose.
        InvalidInput: for a model that cannot be built.
    """
    model = problem.model if isinstance(problem.model, Model) else load(problem.model)
    posture = find_posture(model, pose=problem.pose)
    stance = Stance(model)
    stance.take(posture)
    held = None if problem.passive else servos(stance, problem.stiffness)
    builder = DiagramBuilder()
    robot, notes = _build(problem, model, builder, held)
    plant = robot.plant
    state = LogVectorOutput(
        plant.get_state_output_port(), builder, publish_period=problem.log_period
    )
    effort = LogVectorOutput(
        plant.get_net_actuation_output_port(),
        builder,
        publish_period=problem.log_period,
    )
    simulator = Simulator(builder.Build())
    context = simulator.get_mutable_context()
    place(robot, plant.GetMyMutableContextFromRoot(context), posture, problem.height)
    notes += steady_light_links(robot, plant.GetMyMutableContextFromRoot(context))
    notes += filter_overlaps(robot, context)
    if held is not None and stance.can_be_lowered() and problem.nudge:
        start, rate = plant.GetMyMutableContextFromRoot(context), problem.nudge
        rate *= np.sqrt(stance.gravity / stance.size)
        nudge(robot, start, _base_of(stance), posture.loose, rate)
    simulator.Initialize()

    def reached(end: RunEnd) -> Result:
        logged = state.FindLog(context)
        states = logged.data().T.copy()
        keep = np.isfinite(states).all(axis=1)
        times = logged.sample_times()[keep]
        data = trajectory_dataset(robot, times, states[keep])
        data = data.assign(_torques(robot, effort.FindLog(context).data().T[keep]))
        borne = _borne_by_feet(robot, plant.GetMyContextFromRoot(context), stance)
        standing = _standing(robot, states[keep], data, stance, borne)
        verdict, message = _judge(posture, held, end, times, standing)
        options = {f.name: getattr(problem, f.name) for f in fields(problem)}
        return Result(
            kind="legged.simulation",
            model=model.name,
            verdict=verdict,
            message="; ".join([message, *notes]),
            data=data,
            residuals=closure_residuals(data),
            timings=spent(),
            metrics=_metrics(problem, posture, held, end, data, standing),
            provenance=model_provenance(model, options | {"model": str(model.path)}),
        )

    end = advance(
        simulator,
        robot,
        problem.duration,
        progress=progress,
        time_limit=problem.time_limit,
        reached=reached,
    )
    return reached(end)


def _build(
    problem: Simulation, model: Model, builder: DiagramBuilder, held: Servos | None
) -> tuple[Robot, list[str]]:
    """The robot on its ground with its servos, and what was added to it."""
    notes = []

    def prepare(plant):
        bare = add_foot_contacts(plant, model, problem.friction)
        if bare:
            notes.append(f"{bare} feet without a collision shape touch at their points")
        if held is not None:
            held.add_to(plant)

    robot = build_robot(
        model,
        builder,
        time_step=problem.time_step,
        ground=Ground(problem.friction),
        prepare=prepare,
    )
    if held is not None:
        held.connect(builder, robot.plant)
    return robot, notes


# --- what came of it ---


@dataclass(frozen=True)
class _Standing:
    """How it stood over time (T,).

    Attributes:
        height: height of its centre of mass [m].
        drift: distance of its centre of mass from the start, across the ground [m].
        tilt: tilt of its base [rad].
        can_fall: whether its base is free, or slides along z.
        borne: share of the ground's push near its feet, in the end.
        falling: time in which it falls if it only balances [s].
    """

    height: np.ndarray
    drift: np.ndarray
    tilt: np.ndarray
    can_fall: bool
    borne: float
    falling: float

    def fell(self) -> np.ndarray:
        """Whether it does not stand (T,)."""
        low = self.height < STANDING_HEIGHT * self.height[0]
        return self.can_fall & (low | (self.tilt > STANDING_TILT))


def _base_of(stance: Stance) -> str:
    """Full name of the free body that carries the robot, or of that on its slides."""
    base = base_body(stance.plant) if stance.base is None else stance.base
    return base.scoped_name().get_full()


def _standing(
    robot: Robot, states: np.ndarray, data: xr.Dataset, stance: Stance, borne: float
) -> _Standing:
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    names = {body.scoped_name().get_full() for body in stance.bodies}
    every = map(plant.get_body, map(BodyIndex, range(plant.num_bodies())))
    bodies = [body for body in every if body.scoped_name().get_full() in names]
    com = np.empty((len(states), 3))
    up = np.empty((len(states), 3))
    for k, state in enumerate(states):
        plant.SetPositionsAndVelocities(context, state)
        com[k] = centre_of_mass(plant, context, bodies)
        roll, pitch, _ = data.base_rpy.values[k]
        # The world's z axis in the base, R' e_z; it does not depend on the yaw.
        up[k] = [
            -np.sin(pitch),
            np.sin(roll) * np.cos(pitch),
            np.cos(roll) * np.cos(pitch),
        ]
    return _Standing(
        height=com[:, 2],
        drift=np.linalg.norm(com[:, :2] - com[0, :2], axis=1),
        tilt=np.arccos(np.clip(up @ up[0], -1, 1)),
        can_fall=stance.can_be_lowered(),
        borne=borne,
        falling=float(FALLING * np.sqrt(stance.size / max(stance.gravity, 1e-9))),
    )


def _borne_by_feet(robot: Robot, context: Context, stance: Stance) -> float:
    """The share of the ground's push that acts near the feet; 1 without any."""
    feet = robot.feet_positions(context)
    if not (len(feet) and stance.stands):
        return 1.0
    # Points of one link are corners of a sole, which may carry anywhere between.
    links = [foot.body for foot in robot.model.feet]
    soles = [feet[[name == link for link in links]] for name in dict.fromkeys(links)]
    low = np.array([sole.min(axis=0) for sole in soles])
    high = np.array([sole.max(axis=0) for sole in soles])
    results = robot.plant.get_contact_results_output_port().Eval(context)
    world = robot.plant.world_body().index()
    near = total = 0.0
    for k in range(results.num_point_pair_contacts()):
        contact = results.point_pair_contact_info(k)
        if world not in (contact.bodyA_index(), contact.bodyB_index()):
            continue
        push = abs(contact.contact_force()[2])
        p_WC = contact.contact_point()
        outside = np.maximum(np.maximum(low - p_WC, p_WC - high), 0.0)
        away = np.linalg.norm(outside, axis=1).min()
        near += push * (away < STANDING_REACH * stance.size)
        total += push
    return float(near / total) if total > 0 else 1.0


def _torques(robot: Robot, values: np.ndarray) -> dict:
    """Net torque of every motor over time, with its limits."""
    plant = robot.plant
    motors = [plant.get_joint_actuator(i) for i in plant.GetJointActuatorIndices()]
    if not motors:
        return {}
    names = [motor.name() for motor in motors]
    slides = [motor.joint().type_name() == "prismatic" for motor in motors]
    order = [motor.input_start() for motor in motors]
    return {
        "torque": xr.DataArray(
            values[:, order],
            dims=("time", "motor"),
            coords={
                "motor": names,
                "torque_unit": ("motor", np.where(slides, "N", "N m").tolist()),
            },
            attrs={"units": "N m or N: see torque_unit"},
        )
    }


def _judge(
    posture: Posture,
    held: Servos | None,
    end: RunEnd,
    times: np.ndarray,
    standing: _Standing,
) -> tuple[Verdict, str]:
    """The verdict, and one line on what happened."""
    if end.verdict is Verdict.FAILED:
        return end.verdict, end.message
    if held is None:
        return end.verdict, f"{end.message}; left to itself"
    how = "it has no motors to hold it (--actuate all --effort 10 adds them)"
    if len(held.stiffness):
        least, most = _range(held.stiffness)
        how = (
            f"held by {len(held.stiffness)} servos, {least:.3g} to {most:.3g} N m/rad, "
            f"in its posture ({posture.source})"
        )
    how += posture.doubts
    but = ""
    if posture.loose and "no motor" not in how:
        but = f"{posture.reservation} (--actuate all --effort 10 adds one each)"
    fell = standing.fell()
    if fell[-1]:
        # The last time it went down and did not get up.
        up = np.flatnonzero(~fell)
        when = times[up[-1] + 1] if len(up) else times[0]
        why = f"it fell at {when:.2g} s; {but}; {how}"
        return Verdict.FAILED, why.replace("; ;", ";")
    if standing.borne < STANDING_LOAD:
        share = f"{standing.borne:.0%} of the ground's push is on its feet"
        return Verdict.FAILED, f"it does not stand: {share}; {how}"
    if but:
        so_far = (
            "it stands" if times[-1] > standing.falling else "it has not fallen yet"
        )
        return end.verdict, f"{end.message}; {so_far}, but {but}; {how}"
    return end.verdict, f"{end.message}; {how}"


def _range(values: np.ndarray) -> list[float]:
    """The smallest and the largest of some values."""
    return [float(values.min()), float(values.max())]


def _metrics(
    problem: Simulation,
    posture: Posture,
    held: Servos | None,
    end: RunEnd,
    data: xr.Dataset,
    standing: _Standing,
) -> dict:
    base = data.base_position.values
    found = {
        "wall_s_per_simulated_s": end.wall / max(end.time, 1e-12),
        "final_height_m": float(base[-1, 2]),
        "lowest_height_m": float(base[:, 2].min()),
        "final_speed": float(np.abs(data.velocity.values[-1]).max()),
        "friction": problem.friction,
        "posture": posture.source,
    }
    if standing.can_fall:
        found |= {
            "height_share": float(standing.height[-1] / standing.height[0]),
            "tilt_deg": float(np.degrees(standing.tilt[-1])),
            "drift_m": float(standing.drift[-1]),
        }
    if held is not None and len(held.stiffness):
        torques = data.torque.values
        found |= {
            "effort_rms": float(np.sqrt(np.mean(torques**2))),
            "largest_effort": float(np.abs(torques).max()),
            "servo_stiffness": _range(held.stiffness),
            "servo_damping": _range(held.damping),
            "unheld_at_rest": held.rest.residual,
        }
    return found
