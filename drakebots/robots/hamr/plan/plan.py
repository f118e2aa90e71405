"""Plan a gait or the jump of HAMR-VI, from a problem to a result.

result = plan_gait(GaitPlan(frequency=10, surface="card"))
track(Tracking(plan_reference(result)))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.run import Progress, Verdict
from drakebots.model import package_root
from drakebots.results import Result
from drakebots.robots.hamr.metrics import slip
from drakebots.robots.hamr.model import ACTUATORS
from drakebots.robots.hamr.plan.programs import (
    GaitPlan,
    JumpPlan,
    gait_program,
    jump_program,
)
from drakebots.robots.hamr.plan.warm_start import (
    Guess,
    packed,
    simulated_gait,
    simulated_jump,
)
from drakebots.robots.hamr.track import Reference, coordinate_names
from drakebots.trajopt.contact_implicit import (
    Clock,
    ContactImplicit,
    PenaltyStage,
    audit,
    plan_dataset,
    plan_result,
    solve_penalty_continuation,
    start_from,
)
from drakebots.trajopt.program import Program
from drakebots.trajopt.solvers import Solution, solve

# The plans that came with drakebots, to start from or to check again.
#
# Each is the decision variables of a program (a checkpoint, see
# :mod:`drakebots.trajopt.program.checkpoint`), found by
# `scripts/papers/hamr/hamr_gaits.py` and `scripts/papers/hamr/hamr_jump.py`.


def plans_folder() -> Path:
    """Where they are."""
    return package_root() / "hamr" / "plans"


def stored_plans() -> list[str]:
    """Their names: "10hz_card", ..., "jump"."""
    return sorted(path.stem for path in plans_folder().glob("*.npz"))


def stored_plan(name: str) -> Path:
    """The checkpoint of a plan by its name.

    Raises:
        UnknownName: listing the names.
    """
    if name not in stored_plans():
        raise UnknownName("stored plan", name, stored_plans())
    return plans_folder() / f"{name}.npz"


OPTIONS = {
    "tol": 1e-5,
    "acceptable_tol": 1e-3,
    "acceptable_iter": 8,
    "acceptable_constr_viol_tol": 1e-7,
    "max_iter": 400,
}
"""Options of IPOPT for the first stage."""

FINISH = {
    "mu_strategy": "monotone",
    "mu_init": 1e-5,
    "bound_push": 1e-7,
    "bound_frac": 1e-7,
    "slack_bound_push": 1e-7,
    "slack_bound_frac": 1e-7,
}
"""Options of IPOPT for later stages, which start near the answer."""

NEAR = 1e-5
"""A guess whose largest residual is below this is an answer, nearly."""

CLOSED = 1e-6
"""A slack below this counts as at its bound [mm N]."""


def plan_gait(
    plan: GaitPlan = GaitPlan(),
    *,
    guess: Guess | None = None,
    x0: np.ndarray | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    resume: str | Path | None = None,
) -> Result:
    """Plans a gait; what was reached is returned even when it is cut short.

    Args:
        plan: what to plan.
        guess: instead of the simulated warm start.
        x0: decision variables of an earlier plan of this size to start from.
        time_limit: of wall time, warm start included [s].
        progress: called at every iteration.
        checkpoint: file that keeps the best iterate.
        resume: checkpoint to start from.

    Raises:
        UnknownName, InvalidInput: for a problem that cannot be built.
        FileProblem: for a checkpoint that is none or of another program.
    """
    clock = Clock(time_limit)
    guess = guess or simulated_gait(plan)
    clock.add({"warm start": clock.elapsed})
    problem, solution = _solve_stages(
        lambda weight: gait_program(plan, guess.q[-1], slack_weight=weight),
        plan.weights.slack,
        start_from(resume, lambda program: _first(program, guess, x0)),
        partial(solve, progress=progress, checkpoint=checkpoint),
        clock,
    )
    timings = clock.timings()
    data = hamr_plan_data(problem, solution)
    stride = float(data.base_position.values[-1, 0] - data.base_position.values[0, 0])
    metrics = {
        "gait": plan.gait,
        "frequency_hz": plan.frequency,
        "stride_mm": 1e3 * stride,
        "slip": slip(data.time.values, data.foot_velocity.values[..., 0], stride),
        "warm_start_stride_mm": 1e3 * guess.stride,
        "periodic": True,
    }
    metrics |= plan.ground | plan_metrics(problem, solution, data)
    return _result(problem, solution, plan, timings, data, metrics)


def plan_jump(
    plan: JumpPlan = JumpPlan(),
    *,
    guess: Guess | None = None,
    x0: np.ndarray | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    resume: str | Path | None = None,
) -> Result:
    """Plans a jump; arguments and errors as in :func:`plan_gait`."""
    clock = Clock(time_limit)
    guess = guess or simulated_jump(plan)
    clock.add({"warm start": clock.elapsed})
    problem, solution = _solve_stages(
        lambda weight: jump_program(plan, slack_weight=weight),
        plan.slack,
        start_from(resume, lambda program: _first(program, guess, x0)),
        partial(solve, progress=progress, checkpoint=checkpoint),
        clock,
    )
    timings = clock.timings()
    data = hamr_plan_data(problem, solution)
    height = data.base_position.values[:, 2]
    metrics = {
        "gait": "jump",
        "apex_rise_mm": 1e3 * float(height.max() - height[0]),
        "crouch_mm": 1e3 * float(height[0] - height.min()),
        "spring_energy_mJ": (1e3 * spring_energy(problem, solution)).tolist(),
        "periodic": False,
    }
    metrics |= plan.ground | plan_metrics(problem, solution, data)
    return _result(problem, solution, plan, timings, data, metrics)


def _first(program: Program, guess: Guess, x0: np.ndarray | None) -> np.ndarray:
    return packed(program, guess) if x0 is None else x0


def _options(program: Program, x: np.ndarray, later: bool) -> dict:
    """A first guess that is feasible already (an earlier plan, a checkpoint) is
    not torn from where it is."""
    near = later or max(program.residuals(x).values()) < NEAR
    return OPTIONS | (FINISH if near else {})


def _closed(stages: Sequence[PenaltyStage]) -> bool:
    """Two weights are always tried, see `GaitWeights`."""
    return len(stages) > 1 and stages[-1].ok and stages[-1].slack < CLOSED


def _solve_stages(
    build, weights, start, solver, clock: Clock
) -> tuple[ContactImplicit, Solution]:
    """The last stage's problem and solution; soft contact counts as failed."""
    continuation = solve_penalty_continuation(
        build, weights, start, solver, options=_options, done=_closed, clock=clock
    )
    problem, solution = continuation.problem, continuation.solution
    worst = audit(problem, solution)["complementarity_max"]
    if solution.ok and worst >= CLOSED:
        if continuation.missed is not None:
            return problem, continuation.out_of_time()
        # The solver is content with its penalty; contact is not hard.
        solution = replace(
            solution,
            verdict=Verdict.FAILED,
            message=f"contact is not hard: complementarity {worst:.1e} mm N; try "
            "another start or a smaller stride",
        )
    return problem, solution


def _result(problem, solution: Solution, plan, timings, data, metrics) -> Result:
    return plan_result(
        problem,
        solution,
        kind="hamr.plan",
        metrics=metrics | {"seconds": timings["total"]},
        options=asdict(plan),
        data=data,
        seed=getattr(plan, "seed", None),
        timings=timings,
    )


def spring_energy(problem: ContactImplicit, solution: Solution) -> np.ndarray:
    """Elastic energy of the model's springs at the knots (N,) [J]."""
    robot = problem.system.robot
    plant, unit = robot.plant, robot.scaling
    context = plant.CreateDefaultContext()
    mass = robot.model.summary.mass / unit.mass
    g = plant.gravity_field().gravity_vector()
    energy = []
    for q in solution.parts["q"]:
        plant.SetPositions(context, q)
        p_WC = plant.CalcCenterOfMassPositionInWorld(context)
        energy.append(plant.CalcPotentialEnergy(context) + mass * g @ p_WC)
    return np.array(energy) * unit.of(mass=1, length=2, time=-2)


def hamr_plan_data(problem: ContactImplicit, solution: Solution) -> xr.Dataset:
    """A plan's dataset with voltages by actuator [V]."""
    data = plan_dataset(problem, solution)
    data = data.rename(input="voltage", input_name="actuator")
    voltage = np.clip(data.voltage.values, 0.0, problem.system.inputs.bias)
    data["voltage"] = (("time", "actuator"), voltage, {"units": "V"})
    return data.assign_coords(actuator=list(ACTUATORS))


def plan_metrics(problem, solution: Solution, data: xr.Dataset) -> dict:
    """Duty factors, clearances, voltages, flexures, and what the audit finds."""
    system, parts = problem.system, solution.parts
    weight = 9.81 * system.robot.model.summary.mass
    feet = data.foot.values.tolist()
    loaded = (data.foot_force.values[1:, :, 2] > 0.01 * weight).mean(axis=0)
    clearance = 1e3 * data.foot_position.values[..., 2].max(axis=0)
    return {
        "height_mm": 1e3 * float(data.base_position.values[:, 2].mean()),
        "period_s": float(data.time.values[-1]),
        "duty_factor": dict(zip(feet, loaded.tolist())),
        "foot_clearance_mm": dict(zip(feet, clearance.tolist())),
        "voltage_min": float(parts["u"].min()),
        "voltage_max": float(parts["u"].max()),
        "flexure_max_deg": float(np.degrees(_flexures(system, parts["q"]))),
        **audit(problem, solution),
    }


def _flexures(system, q: np.ndarray) -> float:
    """Largest joint angle of the legs [rad]."""
    lengths = system.robot.length_positions()[0]
    angles = q[:, 6:][:, ~lengths[6:]]
    return float(np.abs(angles).max())


def plan_reference(result: Result) -> Reference:
    """What a plan asks the robot to do, from its result.

    Raises:
        InvalidInput: for a result that is no plan of HAMR.
    """
    data = result.data
    if result.kind != "hamr.plan" or "voltage" not in data:
        raise InvalidInput(
            "the result is no plan of hamr; make one with `drakebots plan hamr`"
        )
    names = coordinate_names()
    q = data.position.sel(coordinate=names).values
    v = data.velocity.values
    return Reference(
        time=data.time.values - data.time.values[0],
        q=q,
        v=v,
        voltages=data.voltage.values[:-1],
        periodic=bool(result.metrics["periodic"]),
        friction=float(result.metrics["friction"]),
        name=str(result.metrics.get("gait", "plan")),
    )
