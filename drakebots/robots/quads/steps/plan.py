"""Plans a whole motion step by step (section 5.2), and records it.

    result = plan_steps(planner, StepsProblem(q_ref, contact))

Row i of q_ref is where the robot should be at time i dt; step i leads from row i to
row i + 1. If a step fails, the robot falls or the user stops it by Ctrl-C, the result
holds the steps so far.
"""

from __future__ import annotations

import time as clock
from typing import Annotated

import numpy as np
import xarray as xr

from drakebots.core.checks import array, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Stop, Verdict, failed, run_steps
from drakebots.core.threads import calm_threads
from drakebots.fem.assembly import worst_tet
from drakebots.results import Result, with_units
from drakebots.robots.quads.motion import (
    LEVEL,
    ground_axes,
    height_over,
    near_contact,
)
from drakebots.robots.quads.robot import (
    make_feet,
    settled_state,
    skin_share,
)
from drakebots.robots.quads.steps.contact_state import (
    NAMES,
    centre_of_pressure,
    cop_margin,
)
from drakebots.robots.quads.steps.objective import TERMS, on_axes, position_error
from drakebots.robots.quads.steps.planner import (
    PARTS,
    PlannedStep,
    StepGoal,
    StepOptions,
    StepPlanner,
)
from drakebots.skin import SkinShapes, skeleton_coordinates
from drakebots.skin.coupled import (
    CoupledState,
    glue_points,
    glue_wrenches,
    whole_com,
)
from drakebots.skin.file import SkinnedRobot

FELL = (
    "fell: {:.3g} from the reference at {:g} s; slow the motion down, or allow more "
    "torque"
)

FLAT_STEPS = 5
"""Number of steps before touch-down and after lift-off in which soles are level."""


@checked()
class StepsProblem:
    """A motion to follow step by step.

    Raises:
        InvalidInput: for shapes that do not fit, or values not finite.
    """

    q_ref: Annotated[np.ndarray, array((None, None))]
    """Reference positions of the plant (N, nq), N >= 2 [m, rad]."""
    contact: Annotated[np.ndarray, array((None, None), of=bool)]
    """Mask of the feet that the footfall pattern puts on the ground (N, F), of bool. In
    flight there are none; torques then turn the joints, and nothing holds the base."""
    fall: Annotated[float, positive("rad or m")] = 0.5
    """Deviation of a coordinate from q_ref that counts as a fall."""
    skin_every: Annotated[int, whole(0)] = 10
    """Number of steps between two stored shapes of the skin; 0 for none."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time."""
    ground: np.ndarray | None = None
    """Planes [n, d] of the ground under the feet (N, F, 4); level by default."""

    def __post_init__(self):
        if self.ground is None:
            level = np.broadcast_to(LEVEL, (*self.contact.shape, 4))
            object.__setattr__(self, "ground", level)
        if not len(self.contact) == len(self.q_ref) >= 2:
            raise InvalidInput(
                f"contact of {len(self.contact)} rows and q_ref of {len(self.q_ref)}: "
                "needs as many of both, two or more"
            )

    @property
    def flat(self) -> np.ndarray:
        """Mask of the soles on the ground, or near it in time (N, F)."""
        return near_contact(self.contact, FLAT_STEPS)

    def goal(self, step: int) -> StepGoal:
        """Goal of the step that ends in row step + 1."""
        q_now, q = self.q_ref[step : step + 2]
        before, after = self.contact[step : step + 2]
        flat, ground = self.flat[step + 1], self.ground[step + 1]
        return StepGoal(q, after, after & before, flat, q_now, ground)


def make_planner(
    robot: SkinnedRobot,
    dt: float,
    options: StepOptions = StepOptions(),
    *,
    torque_limits: np.ndarray | None = None,
    friction: float = 0.8,
    cop_margin: float = 0.0,
    **stepper,
) -> StepPlanner:
    """Makes the planner of a robot whose skin file lists patches.

    Args:
        robot: the robot with its skin.
        dt: length of a step [s].
        options: options for the optimization of steps.
        torque_limits: torque limits (m,) [N m]; the robot's by default.
        friction, cop_margin: as for :class:`StepPlanner`.
        stepper: options of :class:`~drakebots.skin.coupled.stepper.CoupledStepper`.

    Raises:
        InvalidInput: without patches, or for a dt not > 0.
    """
    feet = make_feet(robot.plant, robot.context, robot.skin.patches)
    limits = robot.effort_limits if torque_limits is None else torque_limits
    ground = {"friction": friction, "cop_margin": cop_margin}
    return StepPlanner(robot.stepper(dt, **stepper), feet, limits, options, **ground)


def plan_steps(
    planner: StepPlanner,
    plan: StepsProblem,
    *,
    initial: CoupledState | None = None,
    model: str = "quad",
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
        stage: name of this work for `progress`.
        progress: called with the simulated time reached and its end [s].
        provenance: provenance of the result.

    Returns:
        A result of kind "quads.frames"; see :class:`_Log` for its variables.

    Raises:
        InvalidInput: for shapes that do not fit the robot, before any step.
        NoSolution: when the skin does not settle at the first pose.
    """
    start, log = clock.perf_counter(), _Log(planner, plan, model, provenance)
    state = initial or settled_state(planner.stepper, plan.q_ref[0])
    log.add_state(state)
    memory, dt = planner.start(state, plan.ground[0]), planner.stepper.dt
    steps = len(plan.q_ref) - 1
    log.timings["settle"] = clock.perf_counter() - start

    def advance(k: int) -> Stop | None:
        nonlocal state, memory
        step = planner.step(state, memory, plan.goal(k - 1))
        if not step.ok:
            if step.qpcc is not None:
                lost = "complementarity of the failed step [N]"
                log.lost = {lost: step.qpcc.residual}
            return failed(step.message)
        state, memory = step.state, step.memory
        deviation = log.add(step, plan.q_ref[k])
        if deviation > plan.fall:
            return failed(FELL.format(deviation, k * dt))
        return None

    how = {"progress": progress, "time_limit": plan.time_limit, "until": steps * dt}
    with calm_threads():
        end = run_steps(advance, steps, stage=stage, success=f"{steps} steps", **how)
    return log.result(end.verdict, end.message)


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

    def __init__(self, planner, plan, model: str, provenance: dict | None):
        nq, count = planner.stepper.plant.num_positions(), len(planner.feet)
        if plan.q_ref.shape[1] != nq or plan.contact.shape[1] != count:
            raise InvalidInput(
                f"step-by-step plan: q_ref {plan.q_ref.shape} and contact "
                f"{plan.contact.shape} for a robot of {nq} positions and {count} feet"
            )
        self.planner, self.plan = planner, plan
        self.model, self.provenance = model, provenance or {}
        self.stepper = planner.stepper
        self.share = skin_share(self.stepper.model, self.stepper.glue)
        plant, context = self.stepper.plant, self.stepper.context
        plant.SetPositions(context, self.stepper.start().q)
        self.centres = self.share.centres(plant, context, self.stepper.model.rest)
        self.rows: dict[str, list] = {name: [] for name in _VARIABLES}
        self.times: list[float] = []
        self.shapes = SkinShapes(self.stepper.model)
        self.timings = dict.fromkeys(("settle", *PARTS), 0.0)
        self.lost: dict[str, float] = {}

    def add(self, step: PlannedStep, q_ref: np.ndarray) -> float:
        """Adds a step; returns the largest deviation of a coordinate from q_ref."""
        deviation = self.add_state(step.state, q_ref)
        found, rows = step.qpcc, self.rows
        plant, context = self.stepper.plant, self.stepper.context
        row, foot_of = len(self.times) - 1, self.planner.feet.foot_of
        scheduled, ground = self.plan.contact[row][foot_of], self.plan.ground[row]
        over, axes = height_over(ground[foot_of], step.p), ground_axes(ground)[foot_of]
        bearing = scheduled & (over < self.planner.options.reach)
        forces = on_axes(axes.transpose(0, 2, 1), found.forces)
        on_links = -step.solution.glue_forces
        # They act in the pose in which the step was assembled.
        plant.SetPositions(context, rows["position"][-2])
        wrenches = glue_wrenches(plant, context, self.stepper.glue, on_links)
        _, J = glue_points(plant, context, self.stepper.glue)
        moment, force = zip(*(wrenches[name] for name in self.share.links))
        values = {
            "torque": found.torques,
            "contact_force": forces,
            "contact_state": found.labels.astype(np.int8),
            "cop": centre_of_pressure(step.p, forces),
            "cop_margin": cop_margin(step.p, bearing, forces),
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
            self.shapes.add(time, x)
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
        stepper, feet, n = self.stepper, self.planner.feet, len(self.times)
        table = {
            name: (("time", *dims), self._column(name), unit)
            for name, (unit, *dims) in _VARIABLES.items()
            if n > 1 or len(self.rows[name]) == n
        }
        table["skin_mass"] = ("link",), self.share.mass, "kg"
        table["skin_com_rest"] = ("link", "axis"), self.centres, "m"
        table["scheduled"] = ("time", "foot"), self.plan.contact[:n], "1"
        if len(self.shapes):
            table |= self.shapes.variables()
        coordinates = {
            "time": ("time", np.array(self.times, float), {"units": "s"}),
            **skeleton_coordinates(stepper),
            "plane": ["x", "y"],
            "patch": list(feet.patch_names),
            "link": list(self.share.links),
            "term": list(TERMS),
            "foot": list(feet.names),
        }
        return xr.Dataset(with_units(table), coordinates, {"system": "skinned"})

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
