"""A robot under a controller in simulation, on a plant that is not the controller's.

run = control(Control("mini_cheetah", gait="trot", goal=(1.5, 0),
                      pushes=(Push(50, time=1),)))
run.metrics["fell"], run.metrics["solve_hz"]

reference ──▶┌────────────┐ actuation ┌────────────────────────┐
┌───────────▶│ controller │──────────▶│ plant: SAP, other mass │──┐ state
│            └────────────┘  pushes ─▶│ and other friction     │  │
│                                     └────────────────────────┘  │
└─────────────────────────────────────────────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import xarray as xr
from pydrake.common.value import Value
from pydrake.geometry import Box
from pydrake.math import RigidTransform
from pydrake.multibody.math import SpatialForce
from pydrake.multibody.plant import ExternallyAppliedSpatialForce, MultibodyPlant
from pydrake.multibody.tree import BodyIndex, SpatialInertia
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder, LeafSystem
from pydrake.systems.primitives import LogVectorOutput

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress, RunEnd, Verdict
from drakebots.core.stages import spent, timed
from drakebots.model import Model, load, model_provenance, robot_alone
from drakebots.multibody import (
    Finding,
    Ground,
    Robot,
    add_soles,
    advance,
    asked,
    base_body,
    build_robot,
    closure_residuals,
    drifted,
    fell_at,
    floats,
    has_fallen,
    judged,
    looked_at,
    open_loops,
    saturated,
    tilt,
    tilted,
    touch_by_soles,
    trajectory_dataset,
    went,
)
from drakebots.multibody.posture import (
    Servos,
    Stance,
    connect_targets,
    find_posture,
    servos,
)
from drakebots.results import Result
from drakebots.robots.legged.grounds import stiff_ground
from drakebots.robots.legged.mpc.problem import Control
from drakebots.robots.legged.mpc.righting import Righting
from drakebots.robots.legged.mpc.rivals import Sampling, Tracking
from drakebots.robots.legged.reference import gravity
from drakebots.trajopt import Step
from drakebots.trajopt.mpc import (
    ContactImplicitMpc,
    MpcProblem,
    Push,
    Trot,
    Way,
    default_cost,
)

STIFFNESS = 10.0
"""Of the motors' servos, where there are any [m g l per leg and radian]; see
:func:`~drakebots.multibody.posture.servos`."""

FRICTION = 0.8
"""Share of the friction coefficient that may be used, as in whole-body control."""

SLIP = 0.03
"""Speed below which friction is regularised [sqrt(g l)]."""

HORIZON_PERIOD = 0.1
"""Period of the stored horizons, about [s]."""

_SEEN = 1e6  # what is larger diverged, and is not stored [m, rad, m/s, rad/s]


@timed("load")
def control(problem: Control, *, progress: Progress | None = None) -> Result:
    """Simulates a robot under a controller; returns what was reached even if cut short.

    The result is a success if the run reached its end, the robot did not fall, kept
    its loops closed, and made half of the way and of the turn that it was asked for,
    or stayed where it was (:mod:`drakebots.multibody.judging`); one that starts on its
    side has to be upright in the end.

    Args:
        problem: what to do, and what happens.
        progress: called as progress("simulate", time, duration) [s].

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
        InvalidInput: for a model without feet or actuators, one that does not stand on
            its feet, or a period shorter than a solve takes.
    """
    run = _Run(problem)

    def reached(end: RunEnd) -> Result:
        data = run.dataset()
        metrics = run.metrics(data)
        findings = run.findings(data, metrics, whole=end.ok)
        verdict, message = _judge(run.problem, end, metrics, findings)
        options = {f.name: getattr(run.problem, f.name) for f in fields(problem)}
        options |= {"model": str(run.model.path), "terrain": repr(problem.terrain)}
        if isinstance(run.problem.gait, Trot):
            options["gait"] = {"trot": vars(run.problem.gait)}
        options["pushes"] = [vars(push) for push in problem.pushes]
        return Result(
            kind="legged.mpc",
            model=run.model.name,
            verdict=verdict,
            message=message,
            data=data,
            residuals=closure_residuals(data),
            timings=spent(),
            metrics=metrics | {"judged": looked_at(findings)},
            provenance=model_provenance(run.model, options),
        )

    end = advance(
        run.simulator,
        run.robot,
        problem.duration,
        progress=progress,
        time_limit=problem.time_limit,
        reached=reached,
    )
    return reached(end)


class _Run:
    """The diagram of a problem, its start, and what came of it."""

    def __init__(self, problem: Control):
        self.model = _loaded(problem)
        self.base = "euler" if floats(self.model) else "quaternion"
        own = build_robot(self.model, base=self.base, time_step=0)
        if not own.plant.num_actuators():
            raise InvalidInput(
                f"{self.model.name} has no actuators to control; --actuate all adds "
                "them"
            )
        self.own, self.posture = own, find_posture(self.model)
        self.context = own.plant.CreateDefaultContext()
        standing = self._standing()
        self._stood = own.plant.EvalBodyPoseInWorld(
            self.context, base_body(own.plant)
        ).translation()[2]
        com = own.plant.CalcCenterOfMassPositionInWorld(self.context)
        feet = own.feet_positions(self.context)
        self.height = float(com[2] - feet[:, 2].min())
        if self.height <= 0:
            raise InvalidInput(
                f"{self.model.name}: its centre of mass is not above its feet; control "
                "needs a robot that stands on them"
            )
        legs = len({foot.body for foot in self.model.feet})
        self.problem = problem = problem.sized(self.height, legs)
        self.way = self._way(standing)
        self._servos = problem.controller == "mpc" and problem.feedback == "servos"
        self.controller = self._controller()
        builder = DiagramBuilder()
        self.robot = self._plant(builder)
        plant = self.robot.plant
        builder.AddSystem(self.controller)
        builder.Connect(plant.get_state_output_port(), self.controller.get_input_port())
        builder.Connect(
            self.controller.GetOutputPort("actuation"),
            plant.get_actuation_input_port(),
        )
        if self._servos:
            connect_targets(builder, self.controller.GetOutputPort("targets"), plant)
        pushes = builder.AddSystem(_Pushes(problem.pushes, base_body(plant)))
        builder.Connect(
            pushes.get_output_port(), plant.get_applied_spatial_force_input_port()
        )
        log = {"publish_period": problem.log_period, "builder": builder}
        self._states = LogVectorOutput(plant.get_state_output_port(), **log)
        self._efforts = LogVectorOutput(plant.get_net_actuation_output_port(), **log)
        self.simulator = Simulator(builder.Build())
        self._start(standing)

    # --- building ---

    def _ground(self, error: float = 0.0) -> Ground:
        friction = self.problem.friction * (1 + error)
        return stiff_ground(self.model, self.height, friction, gravity(self.own))

    def _shapes(self, ground: Ground) -> Callable[[MultibodyPlant], None]:
        """What adds the terrain's shapes beside the floor."""
        terrain = self.problem.terrain

        def build(plant: MultibodyPlant) -> None:
            if not isinstance(terrain, Step):
                return
            length = terrain.end - terrain.start
            place = [(terrain.start + terrain.end) / 2, 0.0, terrain.height / 2]
            plant.RegisterCollisionGeometry(
                plant.world_body(),
                RigidTransform(place),
                Box(length, 100.0, terrain.height),
                "drakebots_step",
                ground.material(),
            )

        return build

    def _plant(self, builder: DiagramBuilder) -> Robot:
        problem, soles = self.problem, []
        ground = self._ground(problem.friction_error)

        def prepare(plant: MultibodyPlant) -> None:
            soles.extend(add_soles(plant, self.model.feet, ground.material()))
            self._shapes(ground)(plant)
            if self._servos:
                self._held().add_to(plant)

        robot = build_robot(
            self.model,
            builder,
            time_step=problem.time_step,
            base=self.base,
            ground=ground,
            prepare=prepare,
        )
        touch_by_soles(robot.plant, robot.scene_graph, soles)
        return robot

    def _controller(self) -> LeafSystem:
        problem, own, way = self.problem, self.own, self.way
        cost = default_cost(own, way, self.height)
        if problem.controller == "tracking":
            duration = problem.duration + 2 * way.horizon
            return Tracking(own, way, duration=duration, friction=problem.friction)
        if problem.controller == "sampling":
            held, ground = self._held(), self._ground()
            return Sampling(
                self.model,
                base=self.base,
                way=way,
                cost=cost,
                ground=ground,
                gains=(held.stiffness, held.damping, held.rest.torques),
                period=problem.period,
                budget=problem.budget,
                seed=problem.seed,
                build=self._shapes(ground),
            )
        posed = MpcProblem(
            own,
            cost=cost,
            terrain=problem.terrain,
            friction=FRICTION * problem.friction,
            step=problem.step,
            knots=problem.knots,
            slip=SLIP * np.sqrt(gravity(own) * self.height),
            iterations=problem.iterations,
            period=problem.period,
            delay="measured" if problem.delay is None else problem.delay,
        )
        return ContactImplicitMpc(posed, way, servos=self._servos)

    def _held(self) -> Servos:
        """Servos at all motors, as stiff as the robot's weight and size ask for."""
        stance = Stance(self.model)
        stance.take(self.posture)
        return servos(stance, STIFFNESS)

    def _way(self, standing: np.ndarray) -> Way:
        """What the controller is asked for; contact-implicit control gets up first."""
        problem, own = self.problem, self.own
        asked = {
            "step": problem.step,
            "knots": problem.knots,
            "goal": problem.goal,
            "speed": problem.speed,
            "turn": problem.turn,
            "gait": problem.gait if isinstance(problem.gait, Trot) else None,
            "terrain": problem.terrain,
        }
        way = Way(own, standing, **asked)
        if problem.start == "side" and "roll" not in way.axes:
            raise InvalidInput(f"{self.model.name} cannot lie on its side")
        if problem.start != "side" or problem.controller != "mpc":
            return way
        return Righting(
            own,
            standing,
            poses=self.model.poses,
            height=self.height,
            gravity=gravity(own),
            cost=default_cost(own, way, self.height),
            **asked,
        )

    def _start(self, standing: np.ndarray) -> None:
        plant, root = self.robot.plant, self.simulator.get_mutable_context()
        context = plant.GetMyMutableContextFromRoot(root)
        _scale_masses(plant, context, 1 + self.problem.mass_error)
        q, axes = standing.copy(), self.way.axes
        if self.problem.start == "side":
            q[axes["roll"]] -= np.pi / 2
            plant.SetPositions(context, q)
            feet = self.robot.feet_positions(context)[:, 2]
            radii = [foot.radius for foot in self.model.feet]
            q[axes["z"]] -= (feet - radii).min()
        plant.SetPositions(context, q)
        self.simulator.Initialize()

    def _standing(self) -> np.ndarray:
        """Positions (nq,) of the posture, which is left in the context."""
        plant, context = self.own.plant, self.context
        q = plant.GetPositions(context)
        for name, value in self.posture.joints.items():
            q[plant.GetJointByName(name).position_start()] = value
        plant.SetPositions(context, q)
        if self.base == "euler":
            self.own.set_base_pose(context, self.posture.X_WB)
        return plant.GetPositions(context)

    # --- what came of it ---

    def _paths(self, horizon: np.ndarray) -> np.ndarray:
        """The paths of base and feet (n, 1 + nc, 3) [m] of positions (n, nq)."""
        plant, context, paths = self.own.plant, self.context, []
        for q in horizon:
            plant.SetPositions(context, q)
            X_WB = plant.EvalBodyPoseInWorld(context, base_body(plant))
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
        root = self.simulator.get_context()
        log = self._states.FindLog(root)
        times, states = log.sample_times(), log.data().T.copy()
        keep = (np.abs(states) < _SEEN).all(axis=1)  # not what diverged
        times, states = times[keep], states[keep]
        data = trajectory_dataset(self.robot, times, states)
        plant = self.robot.plant
        motors = [plant.get_joint_actuator(i) for i in plant.GetJointActuatorIndices()]
        effort = self._efforts.FindLog(root).data().T[keep]
        order = [motor.input_start() for motor in motors]
        force = np.array([_force(self.problem.pushes, t) for t in times])
        log = self.controller.log
        data = data.assign_coords(motor=[motor.name() for motor in motors])
        data = data.assign(
            torque=(("time", "motor"), effort[:, order], {"units": "N m or N"}),
            push=(("time", "axis"), force, {"units": "N"}),
            solve_time=("solve", np.array(log.times), {"units": "s"}),
            solve_seconds=("solve", np.array(log.seconds), {"units": "s"}),
            solve_ok=("solve", np.array(log.ok, int), {"units": "1"}),
        )
        every = max(1, round(HORIZON_PERIOD / self.problem.period))
        # Of a robot that fell, plans may diverge; no page can show those.
        seen = [np.abs(q).max() < _SEEN for q in log.horizons]
        kept = [k for k in range(0, len(seen), every) if log.ok[k] and seen[k]]
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
        problem, log = self.problem, self.controller.log
        rpy, base = data.base_rpy.values, data.base_position.values
        tilts = tilt(rpy)
        floor, step = np.zeros(len(base)), problem.terrain
        if isinstance(step, Step):
            floor = step.height * ((base[:, 0] > step.start) & (base[:, 0] < step.end))
        down = has_fallen(tilts, (base[:, 2] - floor) / self._stood)
        righting = problem.start == "side"
        fell = bool(down[-1] if righting else down.any())
        found = {
            "fell": fell,
            "fell_at_s": None,
            "upright_at_s": None,
            "final_tilt_deg": float(np.degrees(tilts[-1])),
            "tilt_max_deg": float(np.degrees(tilts.max())),
            "forward_m": float(base[-1, 0] - base[0, 0]),
            "sideways_m": float(base[-1, 1] - base[0, 1]),
            "turned_deg": float(np.degrees(rpy[-1, 2] - rpy[0, 2])),
            "controller": problem.controller,
            "pushes": [vars(push) for push in problem.pushes],
            "friction_error": problem.friction_error,
            "mass_error": problem.mass_error,
        }
        if fell and not righting:
            found["fell_at_s"] = float(data.time.values[np.argmax(down)])
        if righting and not fell:
            found["upright_at_s"] = float(
                data.time.values[len(down) - np.argmax(down[::-1])]
            )
        if problem.goal is not None:
            missed = base[-1, :2] - base[0, :2] - problem.goal
            found["goal_m"] = list(problem.goal)
            found["goal_distance_m"] = float(np.linalg.norm(missed))
        if isinstance(step, Step):
            found["step_m"] = [step.start, step.end, step.height]
        # The first solve is from nothing, before the robot moves.
        seconds = np.array(log.seconds[1:] or [np.nan])
        found |= {
            "solves": len(log.seconds),
            "solve_failures": log.failures,
            "solve_late": log.late,
            "solve_ms": float(1e3 * np.median(seconds)),
            "solve_p99_ms": float(1e3 * np.quantile(seconds, 0.99)),
            "solve_hz": float(1 / np.median(seconds)),
        }
        if problem.controller == "sampling":
            found["samples"] = float(np.median(log.samples))
        return found

    def findings(
        self, data: xr.Dataset, figures: dict, *, whole: bool
    ) -> list[Finding]:
        """What the verdict looks at, the gravest first; the way if `whole`."""
        problem, height = self.problem, self.height
        found = open_loops(data, height)
        if problem.start == "side":
            degrees = figures["final_tilt_deg"]
            lies = f"did not get up: ends tilted by {degrees:.2g} deg"
            found.append(fell_at(problem.duration if figures["fell"] else None, lies))
        else:
            degrees = figures["tilt_max_deg"]
            found.append(fell_at(figures["fell_at_s"]))
        found += _way(problem, figures, height) if whole else []
        found.append(tilted(np.radians(degrees)))
        limits = self.robot.plant.GetEffortUpperLimits()
        return found + saturated(data.torque.values, limits, data.motor.values)


def _way(problem: Control, figures: dict, height: float) -> list[Finding]:
    """What was made of the way and the turn that were asked for, or of standing."""
    moved, found = np.array([figures["forward_m"], figures["sideways_m"]]), []
    due, how = problem.speed * problem.duration, "ahead"
    turn, came = problem.turn * problem.duration, float(moved[0])
    if problem.goal is not None:
        away = float(np.hypot(*problem.goal))
        due, came = min(away, due), away - figures["goal_distance_m"]
        turn, how = 0.0, "nearer to its goal"
    if due and not turn:
        found.append(went(came, due, how))
    if turn:
        share = np.radians(figures["turned_deg"]) / turn
        words = f"turned by {figures['turned_deg']:.3g} of {np.degrees(turn):.3g} deg"
        found.append(asked("turn missed", min(share, 1.0), words))
    if not (due or turn) and problem.start == "standing":
        pushed = bool(problem.pushes)
        found.append(drifted(np.linalg.norm(moved), height, pushed=pushed))
    return found


def _force(pushes: tuple[Push, ...], time: float) -> np.ndarray:
    """The sum of all pushes at a time, in the world (3,) [N]."""
    return sum((push.at(time) for push in pushes), np.zeros(3))


class _Pushes(LeafSystem):
    """The pushes as forces on the base, at its centre of mass."""

    def __init__(self, pushes: tuple[Push, ...], body):
        super().__init__()
        self._pushes, self._body = pushes, body
        self.DeclareAbstractOutputPort(
            "forces", lambda: Value[list[ExternallyAppliedSpatialForce]](), self._forces
        )

    def _forces(self, context, output) -> None:
        force = _force(self._pushes, context.get_time())
        found = []
        if force.any():
            one = ExternallyAppliedSpatialForce()
            one.body_index = self._body.index()
            one.p_BoBq_B = self._body.default_com()
            one.F_Bq_W = SpatialForce(np.zeros(3), force)
            found.append(one)
        output.set_value(found)


def _loaded(problem: Control) -> Model:
    """The model alone, with the points it may lie on as feet if it lies."""
    model = problem.model
    model = robot_alone(model if isinstance(model, Model) else load(model))
    if not model.feet:
        raise InvalidInput(
            f"{model.name} has no feet to stand on; name them in the YAML beside its "
            "file, or with --feet"
        )
    if problem.start == "side":
        touching = tuple(point for point in model.points if point.radius > 0)
        model = replace(model, feet=model.feet + touching)
    return model


def _scale_masses(plant: MultibodyPlant, context, factor: float) -> None:
    """Makes every body heavier by a factor, of the same shape."""
    for i in range(1, plant.num_bodies()):
        body = plant.get_body(BodyIndex(i))
        M = body.CalcSpatialInertiaInBodyFrame(context)
        if M.get_mass() > 0:
            body.SetSpatialInertiaInBodyFrame(
                context,
                SpatialInertia(
                    M.get_mass() * factor, M.get_com(), M.get_unit_inertia()
                ),
            )


def _judge(
    problem: Control, end: RunEnd, figures: dict, findings: list[Finding]
) -> tuple[Verdict, str]:
    """The verdict, and one line on what happened."""
    doing = "it walks" if problem.speed or problem.turn else "it stands"
    verdict, message = judged(end, findings, doing)
    if end.verdict is Verdict.FAILED:
        return verdict, message
    words = [message]
    if verdict is Verdict.FAILED and figures["fell"] and problem.start != "side":
        words += _advice(problem)
    if verdict is not Verdict.FAILED and "goal_distance_m" in figures:
        words.append(f"{figures['goal_distance_m']:.2g} m from its goal")
    if figures["upright_at_s"] is not None:
        words.append(f"upright from {figures['upright_at_s']:.2g} s on")
    return verdict, "; ".join(
        [*words, f"solved at {figures['solve_hz']:.3g} Hz in the median"]
    )


def _advice(problem: Control) -> list[str]:
    """What may keep a robot up that fell: nothing, or one line."""
    ways = []
    if problem.controller == "mpc" and problem.feedback == "gains":
        ways.append("feedback by servos")
    if problem.speed:
        ways.append("a lower speed")
    return [f"try {' or '.join(ways)}"] if ways else []
