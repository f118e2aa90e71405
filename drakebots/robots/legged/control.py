"""A robot under a controller in simulation, on a plant that is not the controller's.

run = control(Control("mini_cheetah", gait="trot", goal=(1.5, 0),
                      pushes=(Push(50, time=1),)))
run.metrics["fell"], run.metrics["solve_hz"]

The plant is Drake's SAP, with masses and friction that the controller does not know
(:class:`Rigid`); the loop is that of :mod:`drakebots.control`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated

import casadi as ca
import numpy as np
import xarray as xr

from drakebots.control import (
    STEPS,
    Controller,
    ControlRun,
    Gait,
    Mpc,
    MpcCost,
    Push,
    ReferenceMotion,
    Replanning,
    SapPlant,
    course_findings,
    default_cost,
    run_figures,
    stiff_ground,
    with_solves,
)
from drakebots.core.checks import (
    array,
    between,
    check_log,
    check_value,
    either,
    finite,
    in_unit,
    non_negative,
    one_of,
    positive,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Verdict
from drakebots.core.stages import timed
from drakebots.formats import loaded, robot_alone
from drakebots.model import Model, actuators_of, contexts_along, gravity, part_name
from drakebots.multibody import (
    Finding,
    Flat,
    Ground,
    Terrain,
    base_body,
    build_robot,
    fell_at,
    floats,
    has_fallen,
    judged,
    open_loops,
    saturated,
    tilt,
    tilted,
    too_fast,
    trajectory_dataset,
)
from drakebots.multibody.posture import Servos, Stance, find_posture, servos
from drakebots.results import Result
from drakebots.robots.legged.self_righting import SelfRighting

GAITS = ("auto", "none", *STEPS)
"""Clocks of the feet."""

STARTS = ("standing", "side")
"""Initial poses of a robot: its standing pose, or the same pose lying on its left."""

SIZE = 0.2
"""Height of the centre of mass from which on a robot takes the defaults as they are
[m]. With a lower centre of mass, at l, lengths shrink with l and times and speeds with
sqrt(l), so that motions are dynamically similar (Alexander and Jayes 1983)."""

SPEED = 0.4
"""Speed to a goal by default, of a robot of SIZE or more [m/s]."""

INTERVAL = 0.05
"""Interval of the horizon by default, of a robot of SIZE or more [s]."""

GET_UP_INTERVAL = 0.03
"""The same where the robot has to get up: a leg that lies turns faster, and touches in
more places, than one that walks."""

REACH = 50.0
"""Largest coordinate of a goal [m]: what is further away is no number of metres."""


@checked("plant")
class Rigid:
    """The robot that is controlled: a rigid one, other than the controller has it."""

    mass_error: Annotated[float, between(-0.9, 9.0)] = 0.0
    """Share by which its masses differ from the model's."""
    friction_error: Annotated[float, between(-0.9, 9.0)] = 0.0
    """Share by which the ground's friction differs from what the controller counts
    on."""
    time_step: Annotated[float, positive("s")] = 1e-3
    """Time step."""


@checked()
class Control:
    """A robot under a controller that knows its model, on ground that it does not.

    Raises:
        InvalidInput: for a value out of range.
        UnknownName: for an unknown gait or start.
    """

    model: str | Path | Model
    """The model: a name, a path, or a loaded model."""
    gait: Annotated[str | Gait, either(Gait, one_of("gait", GAITS))] = "auto"
    """Clock of the feet: none, trot (every second leg in turn: diagonal pairs of four,
    the tripods of six), crawl (one leg after the other), or auto (trot for robots of
    two legs or more that have somewhere to go, else none); in Python also a Gait."""
    goal: Annotated[tuple[float, float] | None, in_unit("m")] = None
    """Goal of the base, from its start (x, y); None to go ahead at `speed` and
    `turn`."""
    speed: Annotated[float | None, non_negative("m/s")] = None
    """Speed along the path; None for 0.4 with a goal, less for small robots (lower than
    0.2 m), else 0."""
    turn: Annotated[float, finite("rad/s")] = 0.0
    """Rate of the heading, which counts only without a goal."""
    start: Annotated[str, one_of("start", STARTS)] = "standing"
    """Initial pose: standing, or side (lying on its left; contact-implicit control
    gets it up, by poses of the SRDF beside the model)."""
    pushes: tuple[Push, ...] = ()
    """Forces on its base."""
    terrain: Terrain = field(default_factory=Flat)
    """The ground, which the controllers know."""
    friction: Annotated[float, non_negative()] = 0.7
    """Friction coefficient that the controllers count on."""
    plant: Rigid = Rigid()
    """The robot that is controlled, which the controller knows by its model only."""
    controller: Mpc = Mpc()
    """Its controller, and the feedback between two solves."""
    duration: Annotated[float, positive("s")] = 4.0
    """Duration of the run."""
    log_period: Annotated[float, positive("s")] = 0.01
    """Period of the stored samples."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time; what was reached is kept."""

    def __post_init__(self):
        check_log(self.duration, self.log_period)
        self.terrain.distance(ca.SX.sym("p", 3))  # which Mesh refuses
        if self.goal is not None:
            goal = check_value("goal", self.goal, array((2,), "m"))
            if np.abs(goal).max() > REACH:
                raise InvalidInput(
                    f"goal {goal[0]:g}, {goal[1]:g} m is out of the terrain, which "
                    f"reaches {REACH:g} m; is it in mm?"
                )
            object.__setattr__(self, "goal", (float(goal[0]), float(goal[1])))

    def sized(self, height: float, legs: int) -> Control:
        """The same, with the defaults of a robot.

        Args:
            height: of its centre of mass [m].
            legs: number of its legs.
        """
        share = min(1.0, height / SIZE)
        pace, clock, gait = self.speed, np.sqrt(share), self.gait
        away = self.goal is not None and any(self.goal)
        if pace is None:
            pace = SPEED * clock if away else 0.0
        if gait == "auto":
            goes = away if self.goal is not None else bool(pace or self.turn)
            gait = "trot" if goes and legs > 1 and self.start != "side" else "none"
        if gait in STEPS:
            gait = Gait.named(gait, legs, share)
        own = self.controller
        if own.step is None:
            rising = self.start == "side"
            step = clock * (GET_UP_INTERVAL if rising else INTERVAL)
            own = replace(own, step=float(step))
        return replace(self, speed=pace, gait=gait, controller=own)


# --- in simulation ---------------------------------------------------------

STIFFNESS = 10.0
"""Stiffness of the motors' servos, where there are any [m g l per leg and radian]; see
:func:`~drakebots.multibody.posture.servos`."""

FRICTION = 0.8
"""Share of the friction coefficient that may be used, as in whole-body control."""

SLIP = 0.03
"""Speed below which friction is regularised [sqrt(g l)]."""

HORIZON_PERIOD = 0.1
"""Period of the stored horizons, about [s]."""

_DIVERGED = 1e6  # what is larger diverged, and is not stored [m, rad, m/s, rad/s]


@timed("load")
def control(
    problem: Control,
    *,
    controller: Callable[[Run], Controller] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Simulates a robot under a controller; returns what was reached even if cut short.

    The result is a success if the run reached its end, the robot did not fall, kept
    its loops closed, and made half of the distance and the turn that it was asked for,
    or stayed where it was (:mod:`drakebots.multibody.judging`); one that starts on its
    side has to be upright in the end.

    Args:
        problem: control problem.
        controller: makes another controller than contact-implicit control, of a run's
            robot, ground and reference.
        progress: called as progress("simulate", time, duration) [s].

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
        InvalidInput: for a model without feet or actuators, one that does not stand on
            its feet, or a solve that takes longer than a step of the horizon.
    """
    return Run(problem, controller).simulate(progress)


class Run(ControlRun):
    """A problem's robot, its controller and plant, and what came of it.

    Attributes:
        model: the model alone.
        own, base: the robot that the controller knows, and its kind of base.
        height: of its centre of mass above its feet [m].
        problem: the problem, with the defaults of the robot.
        reference: reference of the controller.
        controller: the controller.
        plant: the robot that is controlled.
    """

    kind = "legged.mpc"

    def __init__(
        self, problem: Control, controller: Callable[[Run], Controller] | None = None
    ):
        self.model = _loaded(problem)
        self.base = "euler" if floats(self.model) else "quaternion"
        self.own = own = build_robot(self.model, base=self.base, time_step=0)
        if not own.plant.num_actuators():
            raise InvalidInput(
                f"{self.model.name} has no actuators to control; --actuate all adds "
                "them"
            )
        self.posture = find_posture(self.model)
        self.context = own.plant.CreateDefaultContext()
        self.posture.put(own, self.context, base=self.base == "euler")
        standing = own.plant.GetPositions(self.context)
        self._body = base_body(own.plant)
        self._stood = self._body.EvalPoseInWorld(self.context).translation()[2]
        com = own.plant.CalcCenterOfMassPositionInWorld(self.context)
        feet = own.feet_positions(self.context)
        self.height = float(com[2] - feet[:, 2].min())
        if self.height <= 0:
            raise InvalidInput(
                f"{self.model.name}: its centre of mass is not above its feet; control "
                "needs a robot that stands on them"
            )
        legs = len({foot.body for foot in self.model.feet})
        problem = replace(problem.sized(self.height, legs), model=self.model)
        self.problem = problem
        self.reference = self._reference(standing, gets_up=controller is None)
        served = controller is None and problem.controller.feedback != "gains"
        self.controller = (controller or Run._mpc)(self)
        self.plant = SapPlant(
            self.model,
            base=self.base,
            time_step=problem.plant.time_step,
            ground=self.ground(problem.plant.friction_error),
            servos=self.servos() if served else None,
            mass_error=problem.plant.mass_error,
        )
        self._samples_kept: list[tuple] = []
        self.plant.start(self._first(standing), np.zeros(own.plant.num_velocities()))

    # --- building ---

    def ground(self, error: float = 0.0) -> Ground:
        """The ground, its friction off by a share."""
        friction = self.problem.friction * (1 + error)
        g, terrain = gravity(self.own.plant), self.problem.terrain
        return stiff_ground(self.model, self.height, friction, g, terrain)

    def _mpc(self) -> Replanning:
        problem = self.problem
        posed = problem.controller.problem(
            self.own,
            cost=self.cost(self.reference),
            terrain=problem.terrain,
            friction=FRICTION * problem.friction,
            slip=SLIP * np.sqrt(gravity(self.own.plant) * self.height),
        )
        servos = problem.controller.feedback != "gains"
        return Replanning(posed, self.reference, servos=servos)

    def cost(self, reference: ReferenceMotion) -> MpcCost:
        """Weights of a reference for the robot's weight and size."""
        return default_cost(self.own, reference, self.height)

    def servos(self) -> Servos:
        """Servos at all motors, as stiff as the robot's weight and size ask for."""
        stance = Stance(self.model)
        stance.take(self.posture)
        return servos(stance, STIFFNESS)

    def _reference(self, standing: np.ndarray, *, gets_up: bool) -> ReferenceMotion:
        """Reference of the controller; contact-implicit control gets up first."""
        problem, own = self.problem, self.own
        asked = {n: getattr(problem, n) for n in ("goal", "speed", "turn", "terrain")}
        asked |= {n: getattr(problem.controller, n) for n in ("step", "knots")}
        asked["gait"] = problem.gait if isinstance(problem.gait, Gait) else None
        reference = ReferenceMotion(own, standing, **asked)
        if problem.start != "side":
            return reference
        if "roll" not in reference.axes:
            raise InvalidInput(f"{self.model.name} cannot lie on its side")
        if not gets_up:
            return reference
        return SelfRighting(
            own,
            standing,
            poses=self.model.poses,
            height=self.height,
            gravity=gravity(own.plant),
            cost=self.cost(reference),
            **asked,
        )

    def _first(self, standing: np.ndarray) -> np.ndarray:
        """Positions at the start (nq,)."""
        q, axes = self.reference.on_ground(standing), self.reference.axes
        if self.problem.start == "side":
            q[axes["roll"]] -= np.pi / 2
        self.own.plant.SetPositions(self.context, q)
        feet = self.own.feet_positions(self.context)
        radii = [foot.radius for foot in self.model.feet]
        if "z" in axes:
            deep = self.problem.terrain.heights(*feet.T[:2]) + radii - feet[:, 2]
            q[axes["z"]] += deep.max()
        return q

    # --- what came of it ---

    def keep(self, time: float, *, last: bool) -> None:
        state = np.concatenate(self.plant.state())
        if (np.abs(state) < _DIVERGED).all():
            self._samples_kept.append((time, state, self.plant.efforts()))

    def _paths(self, horizon: np.ndarray) -> np.ndarray:
        """The paths of base and feet (n, 1 + nc, 3) [m] of positions (n, nq)."""
        paths = []
        for context in contexts_along(self.own.plant, horizon):
            X_WB = self._body.EvalPoseInWorld(context)
            feet = self.own.feet_positions(context)
            paths.append(np.vstack([X_WB.translation(), feet]))
        return np.array(paths)

    def dataset(self) -> xr.Dataset:
        """The motion, efforts, pushes, solves and horizons, in SI.

        Beyond :func:`trajectory_dataset`: torque (time, motor), push (time, axis),
        and by solve: solve_time, solve_seconds and solve_ok;
        horizon (plan, knot, point, axis), the planned paths of the base and then the
        feet, and horizon_time.
        """
        times, states, efforts = (np.array(x) for x in zip(*self._samples_kept))
        data = trajectory_dataset(self.plant.robot, times, states)
        motors = actuators_of(self.plant.plant)
        dt, none = self.plant.time_step, np.zeros(3)
        force = [sum((p.at(t, dt) for p in self.pushes), none) for t in times]
        data = data.assign_coords(motor=[part_name(motor) for motor in motors])
        data = data.assign(
            torque=(("time", "motor"), efforts, {"units": "N m or N"}),
            push=(("time", "axis"), force, {"units": "N"}),
        )
        log = self.controller.log
        data = with_solves(data, log)
        every = max(1, round(HORIZON_PERIOD / self.problem.controller.period))
        # Of a robot that fell, plans may diverge; no page can show those.
        sound = [np.abs(q).max() < _DIVERGED for q in log.horizons]
        kept = [k for k in range(0, len(sound), every) if log.ok[k] and sound[k]]
        if kept:
            paths = np.array([self._paths(log.horizons[k]) for k in kept])
            when = np.array(log.times)[kept]
            data = data.assign(
                horizon=(("plan", "knot", "point", "axis"), paths, {"units": "m"}),
                horizon_time=("plan", when, {"units": "s"}),
            )
        return data

    def metrics(self, data: xr.Dataset) -> dict:
        """Figures of the run: fell, where it ends, how fast it was solved."""
        problem, times = self.problem, data.time.values
        tilts, base = tilt(data.base_rpy.values), data.base_position.values
        floor = problem.terrain.heights(base[:, 0], base[:, 1])
        down = has_fallen(tilts, (base[:, 2] - floor) / self._stood)
        rights = problem.start == "side"
        fell = bool(down[-1] if rights else down.any())
        up = len(down) - np.argmax(down[::-1])
        found = run_figures(data, self.controller, self.pushes) | {
            "fell": fell,
            "fell_at_s": float(times[np.argmax(down)]) if fell and not rights else None,
            "upright_at_s": float(times[up]) if rights and not fell else None,
            "final_tilt_deg": float(np.degrees(tilts[-1])),
            "tilt_max_deg": float(np.degrees(tilts.max())),
            "friction_error": problem.plant.friction_error,
            "mass_error": problem.plant.mass_error,
        }
        if problem.goal is not None:
            missed = base[-1, :2] - base[0, :2] - problem.goal
            found["goal_m"] = list(problem.goal)
            found["goal_distance_m"] = float(np.linalg.norm(missed))
        return found

    def findings(self, data: xr.Dataset, figures: dict) -> list[Finding]:
        """Findings of the verdict; on the course where the run reached its end."""
        problem, height = self.problem, self.height
        found = open_loops(data, height)
        rights = problem.start == "side"
        degrees = figures["final_tilt_deg" if rights else "tilt_max_deg"]
        if rights:
            lies = f"did not get up: ends tilted by {degrees:.2g} deg"
            found.append(fell_at(problem.duration if figures["fell"] else None, lies))
        else:
            found.append(fell_at(figures["fell_at_s"]))
        if self.end.ok:
            found += course_findings(figures, problem, height, stands=not rights)
        found.append(tilted(np.radians(degrees)))
        limits = self.plant.plant.GetEffortUpperLimits()
        found += saturated(data.torque.values, limits, data.motor.values)
        return found + too_fast(data, self.plant.plant.GetVelocityUpperLimits())

    def verdict(self, figures: dict, findings: list[Finding]) -> tuple[Verdict, str]:
        """The verdict, and one line on what happened."""
        problem = self.problem
        doing = "it walks" if problem.speed or problem.turn else "it stands"
        verdict, message = judged(self.end, findings, doing)
        if self.end.verdict is Verdict.FAILED and not figures["fell"]:
            return verdict, message
        words = [message]
        if verdict is Verdict.FAILED and figures["fell"] and problem.start != "side":
            words += _advice(problem)
        if verdict is not Verdict.FAILED and "goal_distance_m" in figures:
            words.append(f"{figures['goal_distance_m']:.2g} m from its goal")
        if figures["upright_at_s"] is not None:
            words.append(f"upright from {figures['upright_at_s']:.2g} s on")
        if np.isfinite(rate := figures["solve_hz"]):
            words.append(f"solved at {rate:.3g} Hz in the median")
        # A period that begins before the last answer acts has no solve of its own.
        if late := figures["solve_late"]:
            words.append(f"{late} of {late + figures['solves']} periods passed over")
        return verdict, "; ".join(words)


def _loaded(problem: Control) -> Model:
    """The model alone, with the points it may lie on as feet if it lies."""
    model = robot_alone(loaded(problem.model))
    if not model.feet:
        raise InvalidInput(
            f"{model.name} has no feet to stand on; name them in the YAML beside its "
            "file, or with --feet"
        )
    if problem.start == "side":
        touching = tuple(point for point in model.points if point.radius > 0)
        model = replace(model, feet=model.feet + touching)
    return replace(model, sprung=True)


def _advice(problem: Control) -> list[str]:
    """Advice for a robot that fell: nothing, or one line."""
    advice = []
    if problem.controller.feedback == "gains":
        advice.append("feedback by servos")
    if problem.speed:
        advice.append("a lower speed")
    return [f"try {' or '.join(advice)}"] if advice else []
