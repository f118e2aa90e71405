"""Simulate any model on the ground: held in its standing posture, or left to itself.

result = simulate(Simulation("robot.urdf"))            # servos hold every motor
result = simulate(Simulation("robot.urdf", passive=True))  # a ragdoll
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import xarray as xr
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, DiagramBuilder

from drakebots.core.checks import (
    check_log,
    finite,
    flag,
    in_unit,
    non_negative,
    positive,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Verdict
from drakebots.core.stages import timed
from drakebots.formats import loaded
from drakebots.model import (
    Model,
    actuators_of,
    bodies_of,
    contexts_along,
    part_name,
    sliding_motors,
)
from drakebots.multibody import (
    GROUND_FRICTION,
    LEANING,
    SUNK,
    DiagramRun,
    Finding,
    Flat,
    Ground,
    Logged,
    Robot,
    Terrain,
    add_foot_contacts,
    add_loggers,
    base_body,
    build_robot,
    drifted,
    fell_at,
    has_fallen,
    judged,
    moving,
    open_loops,
    saturated,
    tilt,
    tilted,
    too_fast,
    trajectory_dataset,
)
from drakebots.multibody.posture import (
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

PASSIVE = "joints without a motor"
"""Name of a finding."""

FALLING = 7.0
"""Time in which it falls, in units of sqrt(l / g)."""


@checked()
class Simulation:
    """A model on the ground, from its standing posture.

    Raises:
        InvalidInput: for a value out of range.
    """

    model: str | Path | Model
    """The model: a name, a path, or a loaded model."""
    duration: Annotated[float, positive("s")] = 2.0
    """Duration of the motion."""
    terrain: Terrain = field(default_factory=Flat)
    """The ground; a robot that starts on uneven ground leans with it."""
    friction: Annotated[float | None, non_negative()] = None
    """Friction coefficient of robot and ground, whatever the shapes of the robot's file
    say; by default that of the model's parameters, else 0.6."""
    passive: Annotated[bool, flag()] = False
    """Whether it is left to itself, all motors at zero, instead of being held by
    servos."""
    stiffness: Annotated[float, positive()] = 10.0
    """Stiffness of the servos of its legs, in units of its weight times its size per
    leg and radian."""
    nudge: Annotated[float, non_negative()] = NUDGE
    """Rate at which it leans at the start, in units of sqrt(g / l) with l its size, so
    that it does not merely balance; 0 for a start at rest, as one that is passive has.
    """
    pose: Annotated[Mapping[str, float] | None, in_unit("rad or m")] = None
    """Joint positions by joint to start from and hold; by default its standing
    posture."""
    height: Annotated[float | None, finite("m")] = None
    """Height of the base at the start; by default its lowest point touches the ground.
    """
    time_step: Annotated[float, positive("s")] = 1e-3
    """Time step of the plant."""
    log_period: Annotated[float, positive("s")] = 5e-3
    """Period of the stored samples."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time; what was reached is kept."""

    def __post_init__(self):
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
        problem: simulation problem.
        progress: called as progress("simulate", time, duration) [s].

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
        UnknownName: for an unknown joint in the pose.
        InvalidInput: for a model that cannot be built, or of which nothing moves.
    """
    return HeldRun(problem).simulate(progress)


class HeldRun(DiagramRun):
    """A model on its ground, held by servos or not, and what came of it."""

    kind = "legged.simulation"

    def __init__(self, problem: Simulation):
        self.model = model = loaded(problem.model)
        friction = problem.friction
        if friction is None:
            friction = model.parameters.get("friction", GROUND_FRICTION)
        self.problem = problem = replace(problem, model=model, friction=friction)
        self.posture = posture = find_posture(model, pose=problem.pose)
        self.stance = stance = Stance(model)
        stance.take(posture)
        self.held = None if problem.passive else servos(stance, problem.stiffness)
        builder = DiagramBuilder()
        self.robot, self._notes = _build(problem, model, builder, self.held)
        plant = self.robot.plant
        if not plant.num_velocities():
            raise InvalidInput(
                f"nothing of {model.name} moves; give it mass and a free base or joints"
            )
        ports = {
            "state": plant.get_state_output_port(),
            "efforts": plant.get_net_actuation_output_port(),
        }
        loggers = add_loggers(builder, ports, problem.log_period)
        self._log = Logged(builder.Build(), loggers)
        self.simulator = Simulator(self._log.diagram)
        self._root = self.simulator.get_mutable_context()
        context = plant.GetMyMutableContextFromRoot(self._root)
        place(self.robot, context, posture, problem.height, problem.terrain)
        self._notes += steady_light_links(self.robot, context)
        self._notes += filter_overlaps(self.robot, self._root)
        if self.held is not None and stance.can_be_lowered() and problem.nudge:
            rate = problem.nudge * np.sqrt(stance.gravity / stance.size)
            # The free body that carries the robot, or that on its slides.
            base = (stance.base or base_body(stance.plant)).scoped_name().get_full()
            nudge(self.robot, context, base, posture.passive, rate)
        self.simulator.Initialize()

    def dataset(self) -> xr.Dataset:
        """The motion and the motors' torques, in SI."""
        times, states, keep = self._log.states(self._root)
        data, plant = trajectory_dataset(self.robot, times, states), self.robot.plant
        if motors := [part_name(motor) for motor in actuators_of(plant)]:
            units = np.where(sliding_motors(plant), "N", "N m").tolist()
            data = data.assign_coords(motor=motors, torque_unit=("motor", units))
            torques = self._log.logged(self._root, "efforts")[1][keep]
            # Drake gives those of the step before; at the start there was none.
            torques[:1] = torques[:2][-1:]
            note = {"units": "N m or N: see torque_unit"}
            data = data.assign(torque=(("time", "motor"), torques, note))
        context = plant.GetMyContextFromRoot(self._root)
        self.standing = _Standing(self.robot, context, states, data, self.stance)
        return data

    def metrics(self, data: xr.Dataset) -> dict:
        """Figures of the run."""
        base, standing = data.base_position.values, self.standing
        found = {
            "wall_s_per_simulated_s": self.end.wall / max(self.end.time, 1e-12),
            "final_height_m": float(base[-1, 2]),
            "lowest_height_m": float(base[:, 2].min()),
            "final_speed": float(np.abs(data.velocity.values[-1]).max()),
            "friction": self.problem.friction,
            "posture": self.posture.source,
        }
        if self._notes:
            found["adjustments"] = self._notes
        if standing.can_fall:
            found |= {
                "height_share": float(standing.share[-1]),
                "tilt_deg": float(np.degrees(standing.tilt[-1])),
                "drift_m": float(standing.drift[-1]),
            }
        held = self.held
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

    def findings(self, data: xr.Dataset, figures: dict) -> list[Finding]:
        """Findings of the verdict, the gravest first."""
        standing = self.standing
        found = open_loops(data, standing.size)
        if self.held is None:
            return found
        if standing.can_fall:
            found += standing.findings()
        if standing.gravity > 0 and data.sizes["rate"]:
            speeds = np.where(standing.own, data.velocity.values[-1], 0.0)
            slides = data.velocity_unit.values == "m/s"
            rates, size = data.rate.values, standing.size
            found.append(moving(speeds, rates, slides, size, standing.gravity))
        if len(standing.limits):
            motors = data.motor.values
            found += saturated(data.torque.values, standing.limits, motors)
        found += too_fast(data, self.robot.plant.GetVelocityUpperLimits())
        if (count := len(self.posture.passive)) and len(self.held.stiffness):
            why = self.posture.reservation
            words = f"{why} (--actuate all --effort 10 adds one each)"
            found.append(Finding(PASSIVE, float(count), "1", 0, np.inf, words))
        return found

    def verdict(self, figures: dict, findings: list[Finding]) -> tuple[Verdict, str]:
        """The verdict, and one line on what happened."""
        held, posture, standing = self.held, self.posture, self.standing
        end = self.end
        if held is None:
            verdict, message = judged(end, findings, "it moves")
            return verdict, f"{message}; left to itself"
        how = "it has no motors to hold it (--actuate all --effort 10 adds them)"
        if len(held.stiffness):
            least, most = _range(held.stiffness)
            slide = " or N/m" * bool(sliding_motors(self.robot.plant).any())
            how = (
                f"held by {len(held.stiffness)} servos, {least:.3g} to {most:.3g} "
                f"N m/rad{slide}, in its posture ({posture.source})"
            )
        how += posture.doubts
        stood = standing.times[-1] > standing.falling or not posture.passive
        what = "stand" if standing.can_fall else "hold"
        doing = f"it {what}s" if stood else "it has not fallen yet"
        verdict, message = judged(end, findings, doing)
        if verdict is Verdict.FAILED and end.verdict is not Verdict.FAILED:
            since = standing.down_from()
            if not message.startswith("it fell"):
                when = "" if since is None else f" from {since:.2g} s on"
                message = f"it does not {what}{when}: {message}"
            passive = [f.words for f in findings if f.name == PASSIVE]
            message = "; ".join([message, *passive])
        return verdict, f"{message}; {how}"


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

    ground = Ground(problem.friction, terrain=problem.terrain)
    how = {"time_step": problem.time_step, "ground": ground, "prepare": prepare}
    robot = build_robot(model, builder, **how)
    if held is not None:
        held.connect(builder, robot.plant)
    return robot, notes


# --- what came of it ---


class _Standing:
    """Quantities of standing over time (T,).

    Args:
        robot: the robot.
        context: context of its plant, in the end.
        states: of its plant (T, nq + nv).
        data: the motion.
        stance: the posed robot.

    Attributes:
        times: of all of them [s].
        height: height of its centre of mass [m].
        drift: distance of its centre of mass from the start, across the ground [m].
        tilt: tilt of its base [rad].
        can_fall: whether its base is free, or slides along z.
        foot_load: share of the ground's push near its feet, in the end.
        size, gravity: of its stance [m], [m/s^2].
        own: mask of its own velocities, not of other free bodies (nv,).
        limits: largest efforts of its motors (nu,) [N m, N].
    """

    def __init__(
        self,
        robot: Robot,
        context: Context,
        states: np.ndarray,
        data: xr.Dataset,
        stance: Stance,
    ):
        plant = robot.plant
        names = {body.scoped_name().get_full() for body in stance.bodies}
        every = bodies_of(plant)
        bodies = [body for body in every if body.scoped_name().get_full() in names]
        along = contexts_along(plant, states)
        com = np.array([centre_of_mass(plant, at, bodies) for at in along])
        self.times, self.height = data.time.values, com[:, 2]
        self.drift = np.linalg.norm(com[:, :2] - com[0, :2], axis=1)
        self.tilt = tilt(data.base_rpy.values, data.base_rpy.values[:1])
        self.can_fall = stance.can_be_lowered()
        self.foot_load = _foot_load(robot, context, stance)
        self.size, self.gravity = stance.size, stance.gravity
        self.own, self.limits = stance.own_velocities(), plant.GetEffortUpperLimits()

    @property
    def share(self) -> np.ndarray:
        """Height as a share of the first (T,); of its size where that is none."""
        first = self.height[0]
        return 1 + (self.height - first) / (first if first > 0 else self.size)

    @property
    def falling(self) -> float:
        """Time in which it falls if it only balances [s]."""
        return float(FALLING * np.sqrt(self.size / max(self.gravity, 1e-9)))

    def down_from(self) -> float | None:
        """Time of going down without getting up again [s]; None where it stands."""
        off = np.abs(self.share - 1) > SUNK
        down = self.can_fall & (off | (self.tilt > LEANING))
        if not down[-1]:
            return None
        up = np.flatnonzero(~down)
        return float(self.times[up[-1] + 1] if len(up) else self.times[0])

    def findings(self) -> list[Finding]:
        """Findings on a robot that should stand in the end."""
        share, tilts = float(self.share[-1]), float(self.tilt[-1])
        fallen = has_fallen(tilts, share)
        moved = "has risen" if share > 1 else "has sunk"
        sunk = f"it {moved} to {share:.0%} of its height"
        words = f"{self.foot_load:.0%} of the ground's push is on its feet"
        off, most = 1 - self.foot_load, 1 - STANDING_LOAD
        return [
            fell_at(self.down_from() if fallen else None),
            tilted(tilts, LEANING),
            Finding("height lost", abs(share - 1), "1", SUNK, SUNK, sunk),
            Finding("push off its feet", off, "1", most, most, words),
            drifted(self.drift[-1], self.size),
        ]


def _foot_load(robot: Robot, context: Context, stance: Stance) -> float:
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


def _range(values: np.ndarray) -> list[float]:
    """The smallest and the largest of some values."""
    return [float(values.min()), float(values.max())]
