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
    LEANING,
    SUNK,
    Finding,
    Ground,
    Robot,
    add_foot_contacts,
    advance,
    base_body,
    build_robot,
    closure_residuals,
    drifted,
    fell_at,
    has_fallen,
    judged,
    looked_at,
    moving,
    open_loops,
    saturated,
    tilt,
    tilted,
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

STANDING_LOAD = 0.8
"""Least share of its weight that a standing robot has on its feet in the end,"""

STANDING_REACH = 0.15
"""and how far from one the ground may push, as a share of its size."""


NUDGE = 0.003
"""Rate at which a robot that starts to stand leans, in units of sqrt(g / l): 6 mm/s for
one of 0.35 m. What only balances leans more by exp(t sqrt(g / l)) and falls."""

LOOSE = "joints without a motor"
"""Name of a finding."""

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
    robot still stands there: its loops closed, its centre of mass within a fifth of its
    first height, its base tilted by no more than 14 degrees, 0.8 of the ground's push
    on its feet, less than its size from where it began, and nothing of it faster than
    a fall could make it (:mod:`drakebots.multibody.judging`).

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
        findings = _findings(posture, held, times, standing, data)
        verdict, message = _judge(posture, held, end, times, standing, findings)
        options = {f.name: getattr(problem, f.name) for f in fields(problem)}
        return Result(
            kind="legged.simulation",
            model=model.name,
            verdict=verdict,
            message="; ".join([message, *notes]),
            data=data,
            residuals=closure_residuals(data),
            timings=spent(),
            metrics=_metrics(problem, posture, held, end, data, standing)
            | {"judged": looked_at(findings)},
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
        size, gravity: of its stance [m], [m/s^2].
        own: which velocities are its own, not of other free bodies (nv,).
        limits: largest efforts of its motors (nu,) [N m, N].
    """

    height: np.ndarray
    drift: np.ndarray
    tilt: np.ndarray
    can_fall: bool
    borne: float
    size: float
    gravity: float
    own: np.ndarray
    limits: np.ndarray

    @property
    def share(self) -> np.ndarray:
        """Its height as a share of the first (T,); of its size where that is none."""
        first = self.height[0]
        return 1 + (self.height - first) / (first if first > 0 else self.size)

    @property
    def falling(self) -> float:
        """Time in which it falls if it only balances [s]."""
        return float(FALLING * np.sqrt(self.size / max(self.gravity, 1e-9)))

    def down(self) -> np.ndarray:
        """Whether it does not stand (T,)."""
        off = np.abs(self.share - 1) > SUNK
        return self.can_fall & (off | (self.tilt > LEANING))


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
    for k, state in enumerate(states):
        plant.SetPositionsAndVelocities(context, state)
        com[k] = centre_of_mass(plant, context, bodies)
    return _Standing(
        height=com[:, 2],
        drift=np.linalg.norm(com[:, :2] - com[0, :2], axis=1),
        tilt=tilt(data.base_rpy.values, data.base_rpy.values[:1]),
        can_fall=stance.can_be_lowered(),
        borne=borne,
        size=stance.size,
        gravity=stance.gravity,
        own=stance.own_velocities(),
        limits=plant.GetEffortUpperLimits(),
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


def _findings(
    posture: Posture,
    held: Servos | None,
    times: np.ndarray,
    standing: _Standing,
    data: xr.Dataset,
) -> list[Finding]:
    """What the verdict looks at, the gravest first."""
    found = open_loops(data, standing.size)
    if held is None:
        return found
    if standing.can_fall:
        share, tilts = float(standing.share[-1]), float(standing.tilt[-1])
        fallen = has_fallen(tilts, share)
        found.append(fell_at(_down_from(times, standing) if fallen else None))
        found.append(tilted(tilts, LEANING))
        way = "has risen" if share > 1 else "has sunk"
        words = f"it {way} to {share:.0%} of its height"
        found.append(Finding("height lost", abs(share - 1), "1", SUNK, SUNK, words))
        words = f"{standing.borne:.0%} of the ground's push is on its feet"
        off, most = 1 - standing.borne, 1 - STANDING_LOAD
        found.append(Finding("push off its feet", off, "1", most, most, words))
        found.append(drifted(standing.drift[-1], standing.size))
    if standing.gravity > 0 and data.sizes["rate"]:
        speeds = np.where(standing.own, data.velocity.values[-1], 0.0)
        slides = data.velocity_unit.values == "m/s"
        rates, size = data.rate.values, standing.size
        found.append(moving(speeds, rates, slides, size, standing.gravity))
    if len(standing.limits):
        motors = data.motor.values
        found += saturated(data.torque.values, standing.limits, motors)
    if posture.loose and len(held.stiffness):
        words = f"{posture.reservation} (--actuate all --effort 10 adds one each)"
        found.append(Finding(LOOSE, float(len(posture.loose)), "1", 0, np.inf, words))
    return found


def _down_from(times: np.ndarray, standing: _Standing) -> float | None:
    """When it went down and did not get up again [s]; None where it stands."""
    down = standing.down()
    if not down[-1]:
        return None
    up = np.flatnonzero(~down)
    return float(times[up[-1] + 1] if len(up) else times[0])


def _judge(
    posture: Posture,
    held: Servos | None,
    end: RunEnd,
    times: np.ndarray,
    standing: _Standing,
    findings: list[Finding],
) -> tuple[Verdict, str]:
    """The verdict, and one line on what happened."""
    if held is None:
        verdict, message = judged(end, findings, "it moves")
        return verdict, f"{message}; left to itself"
    how = "it has no motors to hold it (--actuate all --effort 10 adds them)"
    if len(held.stiffness):
        least, most = _range(held.stiffness)
        how = (
            f"held by {len(held.stiffness)} servos, {least:.3g} to {most:.3g} N m/rad, "
            f"in its posture ({posture.source})"
        )
    how += posture.doubts
    stood = times[-1] > standing.falling or not posture.loose
    what = "stand" if standing.can_fall else "hold"
    doing = f"it {what}s" if stood else "it has not fallen yet"
    verdict, message = judged(end, findings, doing)
    if verdict is Verdict.FAILED and end.verdict is not Verdict.FAILED:
        since = _down_from(times, standing)
        if not message.startswith("it fell"):
            when = "" if since is None else f" from {since:.2g} s on"
            message = f"it does not {what}{when}: {message}"
        loose = [f.words for f in findings if f.name == LOOSE]
        message = "; ".join([message, *loose])
    return verdict, f"{message}; {how}"


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
            "height_share": float(standing.share[-1]),
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
