"""Plans a whole motion step by step (section 5.2), and records it.

    result = plan_frames(planner, FrameProblem(q_ref, contact))

Row i of q_ref is where the robot should be at time i dt; step i leads from row i to
row i + 1. If a step fails, the robot falls or the user stops it by Ctrl-C, the result
holds the steps so far.
"""

from __future__ import annotations

import time as clock
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from drakebots.core.checks import check, check_types, optional, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.files import check_output
from drakebots.core.run import Progress, Stop, Verdict, failed, run_steps
from drakebots.core.threads import calm_threads
from drakebots.fem.assembly import von_mises, worst_tet
from drakebots.fem.mesh import surface_triangles
from drakebots.results import Result
from drakebots.robots.quads.frames.contact_state import (
    NAMES,
    centre_of_pressure,
    cop_margin,
)
from drakebots.robots.quads.frames.objective import TERMS, position_error
from drakebots.robots.quads.frames.planner import (
    FrameGoal,
    FrameOptions,
    FramePlanner,
    FrameStep,
)
from drakebots.robots.quads.motion import near_contact
from drakebots.robots.quads.robot import (
    make_feet,
    settled_state,
    skin_share,
    whole_com,
)
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.frame import CoupledState, glue_points, glue_wrenches, torque_map

FLAT_FRAMES = 5
"""Number of steps before touch-down and after lift-off in which soles are level."""

SAVED_EVERY = 100
"""Steps between two saves of an unfinished plan."""


@dataclass(frozen=True)
class FrameProblem:
    """A motion to follow step by step.

    Attributes:
        q_ref: reference positions of the plant (N, nq), N >= 2 [m, rad].
        contact: which feet the footfall pattern puts on the ground (N, F), of bool. In
            flight there are none; torques then turn the joints, and nothing holds the
            base.
        fall: deviation of a coordinate from q_ref that counts as a fall [rad or m].
        skin_every: number of steps between two stored shapes of the skin; 0 for
            none.
        time_limit: limit of the wall time [s].

    Raises:
        InvalidInput: for shapes that do not fit, or values not finite.
    """

    q_ref: np.ndarray
    contact: np.ndarray
    fall: float = 0.5
    skin_every: int = 10
    time_limit: float | None = None

    def __post_init__(self):
        check_types(self, "")
        check(self, "", fall=positive("rad or m"), skin_every=whole(0))
        check(self, "", time_limit=optional(positive("s")))
        q = np.array(self.q_ref, float)
        contact = np.array(self.contact, bool)
        if q.ndim != 2 or len(q) < 2 or not np.isfinite(q).all():
            raise InvalidInput(
                f"q_ref: shape {q.shape}, needs two rows or more of finite numbers"
            )
        if contact.ndim != 2 or len(contact) != len(q):
            raise InvalidInput(
                f"contact: shape {contact.shape}, needs ({len(q)}, feet)"
            )
        for name, value in (("q_ref", q), ("contact", contact)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def flat(self) -> np.ndarray:
        """Which soles should be level (N, F): those in contact, or near it in time."""
        return near_contact(self.contact, FLAT_FRAMES)

    def goal(self, step: int) -> FrameGoal:
        """Goal of the step that ends in row step + 1."""
        after = self.contact[step + 1]
        return FrameGoal(
            self.q_ref[step + 1],
            after,
            after & self.contact[step],
            self.flat[step + 1],
            self.q_ref[step],
        )


def make_planner(
    robot: SkinnedRobot,
    dt: float,
    options: FrameOptions = FrameOptions(),
    **stepper,
) -> FramePlanner:
    """Makes the planner of a robot whose skin file lists patches.

    Args:
        robot: the robot with its skin.
        dt: length of a step [s].
        options: how steps are optimized.
        stepper: options of :class:`~drakebots.skin.frame.stepper.CoupledStepper`.

    Raises:
        InvalidInput: without patches, or for a dt not > 0.
    """
    feet = make_feet(robot.plant, robot.context, robot.skin.patches)
    return FramePlanner(
        robot.stepper(dt, **stepper), feet, robot.effort_limits, options
    )


def plan_frames(
    planner: FramePlanner,
    plan: FrameProblem,
    *,
    initial: CoupledState | None = None,
    model: str = "quad",
    path: str | Path | None = None,
    stage: str = "steps",
    progress: Progress | None = None,
    provenance: dict | None = None,
) -> Result:
    """Plans all steps of a motion.

    Args:
        planner: planner of the robot.
        plan: the motion to follow.
        initial: state in row 0; settled at q_ref[0] by default.
        model: name of the robot.
        path: file to save the result to, atomically, also every 100 steps.
        stage: name of this work for `progress`.
        progress: called with the simulated time reached and its end [s].
        provenance: provenance of the result.

    Returns:
        A result of kind "quads.frames"; see :class:`_Log` for its variables.

    Raises:
        InvalidInput: for shapes that do not fit the robot, before any step.
        FileProblem: when the path cannot be written, before any step.
        NoSolution: when the skin does not settle at the first pose.
    """
    nq, count = planner.stepper.plant.num_positions(), len(planner.feet)
    if plan.q_ref.shape[1] != nq or plan.contact.shape[1] != count:
        raise InvalidInput(
            f"step-by-step plan: q_ref {plan.q_ref.shape} and contact "
            f"{plan.contact.shape} for a robot of {nq} positions and {count} feet"
        )
    if path is not None:
        check_output(path)
    start = clock.perf_counter()
    state = (
        settled_state(planner.stepper, plan.q_ref[0]) if initial is None else initial
    )
    log = _Log(planner, plan, model, provenance or {})
    log.add_state(state)
    memory, dt = planner.start(state), planner.stepper.dt
    steps = len(plan.q_ref) - 1
    log.timings["settle"] = clock.perf_counter() - start

    def advance(k: int) -> Stop | None:
        nonlocal state, memory
        step = planner.step(state, memory, plan.goal(k - 1))
        if not step.ok:
            log.add_failure(step)
            return failed(step.message)
        state, memory = step.state, step.memory
        if log.add(step, plan.q_ref[k]) > plan.fall:
            deviation = log.rows["follow_error"][-1]
            return failed(
                f"fell: {deviation:.3g} from the reference at {k * dt:g} s; "
                "slow the motion down, or allow more torque"
            )
        if path is not None and k % SAVED_EVERY == 0 and k < steps:
            log.result(Verdict.INTERRUPTED, "still running").save(path)
        return None

    with calm_threads():
        end = run_steps(
            advance,
            steps,
            stage=stage,
            until=steps * dt,
            progress=progress,
            time_limit=plan.time_limit,
            success=f"{steps} steps",
        )
    result = log.result(end.verdict, end.message)
    if path is not None:
        result.save(path)
    return result


_VARIABLES = {
    "position": ("m or rad", "position_name"),
    "velocity": ("m/s or rad/s", "velocity_name"),
    "torque": ("N m", "joint"),
    "com": ("m", "axis"),
    "cop": ("m", "plane"),
    "cop_margin": ("m",),
    "patch_position": ("m", "patch", "axis"),
    "contact_force": ("N", "patch", "axis"),
    "contact_state": ("1", "patch"),
    "coupling_force": ("N or N m", "velocity_name"),
    "skin_force": ("N", "link", "axis"),
    "skin_moment": ("N m", "link", "axis"),
    "skin_com": ("m", "link", "axis"),
    "worst_volume_ratio": ("1",),
    "energy": ("1",),
    "energy_term": ("1", "term"),
    "qpcc_energy": ("1", "iteration"),
    "qpcc_iterations": ("1",),
    "complementarity": ("N",),
    "cop_dropped": ("1",),
    "follow_error": ("m or rad",),
    "frame_seconds": ("s",),
}
"""Unit of each variable, and its dimensions after time."""


class _Log:
    """Collects steps and makes the result.

    Row i of a variable over time is at time i dt. Forces in row i act during the step
    that ends there, and row 0 repeats row 1. The variables are those of _VARIABLES;
    those whose names do not say it are

    * contact_force: on the patches of the feet, world;
    * contact_state: number of the piece in contact_state.NAMES;
    * coupling_force: generalized force of the skin on the skeleton;
    * skin_force, skin_moment: of the skin on each link, about its origin, world;
    * skin_com: centre of the skin that moves with each link, in the link's frame;
    * qpcc_energy: objective by iteration of the QPCC, infinite where a QP had no
      solution, and NaN after the last iteration.

    Besides, there are skin_mass and skin_com_rest by link, and the skin's shapes as in
    simulations of skins.
    """

    def __init__(self, planner, plan, model: str, provenance: dict):
        self.planner, self.plan = planner, plan
        self.model, self.provenance = model, provenance
        self.stepper = planner.stepper
        self.share = skin_share(self.stepper.model, self.stepper.glue)
        plant, context = self.stepper.plant, self.stepper.context
        plant.SetPositions(context, self.stepper.start().q)
        self.centres = self.share.centres(plant, context, self.stepper.model.rest)
        self.rows: dict[str, list] = {name: [] for name in _VARIABLES}
        self.times: list[float] = []
        self.shapes: list[tuple[float, np.ndarray, np.ndarray]] = []
        self.timings = {"settle": 0.0, "condense": 0.0, "qpcc": 0.0, "advance": 0.0}
        self.lost: dict[str, float] = {}

    def add(self, step: FrameStep, q_ref: np.ndarray) -> float:
        """Adds a step; returns the largest deviation of a coordinate from q_ref."""
        deviation = self.add_state(step.state, q_ref)
        found, rows = step.qpcc, self.rows
        plant, context = self.stepper.plant, self.stepper.context
        foot_of = self.planner.feet.foot_of
        scheduled = np.zeros(len(step.p), bool)
        scheduled[: len(foot_of)] = self.plan.contact[len(self.times) - 1][foot_of]
        bearing = scheduled & (step.p[:, 2] < self.planner.options.reach)
        on_links = -step.solution.glue_forces
        # They act in the pose in which the step was assembled.
        plant.SetPositions(context, rows["position"][-2])
        wrenches = glue_wrenches(plant, context, self.stepper.glue, on_links)
        _, J = glue_points(plant, context, self.stepper.glue)
        moment, force = zip(*(wrenches[name] for name in self.share.links))
        values = {
            "torque": found.torques,
            "contact_force": found.forces,
            "contact_state": found.labels.astype(np.int8),
            "cop": centre_of_pressure(step.p, found.forces),
            "cop_margin": cop_margin(step.p, bearing, found.forces),
            "coupling_force": J.T @ on_links.ravel(),
            "skin_force": np.array(force),
            "skin_moment": np.array(moment),
            "energy": found.energy,
            "energy_term": np.array([found.terms[name] for name in TERMS]),
            "qpcc_energy": np.array([one.energy for one in found.iterates]),
            "qpcc_iterations": len(found.iterates),
            "complementarity": found.residual,
            "cop_dropped": "cop" in found.dropped,
            "frame_seconds": sum(step.seconds.values()),
        }
        for name, value in values.items():
            rows[name].append(value)
        for name, spent in step.seconds.items():
            self.timings[name] += spent
        return deviation

    def add_failure(self, step: FrameStep) -> None:
        """Notes the residual of a failed step."""
        if step.qpcc is not None:
            self.lost = {"complementarity of the failed step [N]": step.qpcc.residual}

    def add_state(self, state: CoupledState, q_ref: np.ndarray | None = None) -> float:
        """Adds a state; returns its largest deviation from q_ref."""
        stepper, rows = self.stepper, self.rows
        plant, context, model = stepper.plant, stepper.context, stepper.model
        plant.SetPositions(context, state.q)
        plant.SetVelocities(context, state.v)
        deviation = 0.0
        if q_ref is not None:
            deviation = float(np.abs(position_error(plant, context, q_ref)).max())
        x = state.skin.positions
        rows["position"].append(state.q)
        rows["velocity"].append(state.v)
        rows["com"].append(whole_com(plant, context, model, x))
        rows["patch_position"].append(self.planner.contact_points(state))
        rows["skin_com"].append(self.share.centres(plant, context, x))
        rows["worst_volume_ratio"].append(worst_tet(model, x)[1])
        rows["follow_error"].append(deviation)
        time, every = len(self.times) * stepper.dt, self.plan.skin_every
        if every and len(self.times) % every == 0:
            n = len(model.space.mesh.vertices)
            self.shapes.append((time, x[:n], von_mises(model, x)[:n]))
        self.times.append(time)
        return deviation

    def result(self, verdict: Verdict, message: str) -> Result:
        """The result with the steps so far."""
        rows, steps = self.rows, len(self.times) - 1
        data = self._dataset()
        solver = self.stepper.solver.name
        residuals, metrics = self.lost, {"frames": steps, "sparse_solver": solver}
        if steps:
            data["contact_state"].attrs["names"] = ", ".join(NAMES)
            residuals = residuals | {
                "complementarity [N]": float(max(rows["complementarity"])),
                "follow_error [m or rad]": float(max(rows["follow_error"])),
            }
            metrics |= {
                "frame_seconds_mean": float(np.mean(rows["frame_seconds"])),
                "qpcc_iterations_mean": float(np.mean(rows["qpcc_iterations"])),
                "frames_with_cop_dropped": int(np.sum(rows["cop_dropped"])),
                "largest_torque_N_m": float(np.abs(rows["torque"]).max()),
            }
        return Result(
            kind="quads.frames",
            model=self.model,
            verdict=verdict,
            message=message,
            data=data,
            residuals=residuals,
            timings=self.timings,
            metrics=metrics,
            provenance=self.provenance,
        )

    def _dataset(self) -> xr.Dataset:
        """The dataset of all rows; see the class for its variables."""
        stepper, plant, feet = self.stepper, self.stepper.plant, self.planner.feet
        n = len(self.times)
        data = {
            name: (("time", *dims), self._column(name), {"units": unit})
            for name, (unit, *dims) in _VARIABLES.items()
            if n > 1 or len(self.rows[name]) == n
        }
        contact = self.plan.contact[:n]
        data["skin_mass"] = ("link", self.share.mass, {"units": "kg"})
        data["skin_com_rest"] = (("link", "axis"), self.centres, {"units": "m"})
        data["scheduled"] = (("time", "foot"), contact, {"units": "1"})
        coords = {
            "time": ("time", np.array(self.times, float), {"units": "s"}),
            "position_name": list(plant.GetPositionNames(always_add_suffix=False)),
            "velocity_name": list(plant.GetVelocityNames(always_add_suffix=False)),
            "joint": _joint_names(plant, stepper.joints),
            "axis": ["x", "y", "z"],
            "plane": ["x", "y"],
            "patch": [
                *feet.patch_names,
                *(f"skin/{k}" for k in self.planner.on_skin),
            ],
            "link": list(self.share.links),
            "term": list(TERMS),
            "foot": list(feet.names),
        }
        if self.shapes:
            times, shapes, stress = zip(*self.shapes)
            mesh, on_skin = stepper.model.space.mesh, ("skin_time", "vertex")
            shapes, stress = np.array(shapes, np.float32), np.array(stress, np.float32)
            triangles = surface_triangles(mesh).astype(np.int32)
            coords["skin_time"] = ("skin_time", np.array(times, float), {"units": "s"})
            data |= {
                "skin_position": ((*on_skin, "axis"), shapes, {"units": "m"}),
                "skin_stress": (on_skin, stress, {"units": "Pa"}),
                "skin_triangle": (("triangle", "corner"), triangles, {"units": "1"}),
                "skin_rest": (("vertex", "axis"), mesh.vertices, {"units": "m"}),
            }
        return xr.Dataset(data, coords, {"system": "skinned"})

    def _column(self, name: str) -> np.ndarray:
        """All rows of a variable; row 0 of a force repeats row 1."""
        values = self.rows[name]
        if name == "qpcc_energy":
            width = max(map(len, values))
            values = [
                np.pad(v, (0, width - len(v)), constant_values=np.nan) for v in values
            ]
        if len(values) < len(self.times):
            values = [values[0], *values]
        return np.array(values)


def _joint_names(plant, joints) -> list[str]:
    """Names of the joints that torques act on, in their order."""
    _, at = torque_map(plant, joints)
    names = {}
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        if joint.num_positions() == 1:
            names[joint.position_start()] = joint.name()
    return [names[k] for k in at]
