"""Plans of HAMR-VI that are kept as files, and executed without solving them again.

    plan = stored_plan("30hz_card")
    run = track(Tracking(plan, cycles=15))

A file (.npz) is a checkpoint of the plan's program. It holds

    x            the answer, in the order of the program's variables
    program      signature of the program (JSON); the one that is built must have it
    problem      fields of the GaitProblem or JumpProblem (JSON), from which the program
                 is built again
    feedforward  voltages (M, 8) [V] of an execution, if they are not the plan's own;
                 each is held for 1/M of the cycle

Trajectories, forces and metrics follow from x by evaluating the program, so that they
are always those of the present code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.checks import array, between, check_value
from drakebots.core.convert import build
from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput, check_names
from drakebots.core.run import Verdict
from drakebots.core.stages import timed
from drakebots.model import package_root
from drakebots.results import Result
from drakebots.robots.hamr.model import ACTUATORS, BIAS
from drakebots.robots.hamr.plan.plan import CLOSED, described
from drakebots.robots.hamr.plan.programs import (
    GaitProblem,
    JumpProblem,
    gait_program,
    hamr_system,
    jump_program,
)
from drakebots.robots.hamr.reference import FEEDFORWARD
from drakebots.trajopt.contact_implicit import ContactImplicit, audit
from drakebots.trajopt.program import (
    Program,
    load_checkpoint,
    read_arrays,
    save_checkpoint,
)
from drakebots.trajopt.solvers import TOLERANCE, Solution

_RUN_ONLY = (
    *("time_limit", "start"),
    # Of older plans.
    *("checkpoint", "resume", "from_run", "phases", "warm_voltage", "seed"),
    "linear_solver",
)
"""Fields of a problem that say how it was solved, not what the plan is."""


def stored_plans() -> list[str]:
    """The names of the plans that came with drakebots: "10hz_card", ..., "jump"."""
    return sorted(path.stem for path in _folder().glob("*.npz"))


@timed("evaluate")
def stored_plan(name: str | Path) -> Result:
    """A stored plan, evaluated but not solved again.

    Its verdict says whether x satisfies its program and has hard contact today. The
    metrics are those of a solved plan, but for the objective, which depends on the
    warm start; `stored` is the plan's name.

    Args:
        name: name of a plan that came with drakebots, or a file of :func:`store_plan`.

    Raises:
        UnknownName: for a name that is none of :func:`stored_plans`.
        FileProblem: for a file that is missing, damaged, or no stored plan.
    """
    path = plan_path(name)
    problem, contact, program, arrays = open_plan(path)
    solution = _judged(path.stem, contact, program, arrays["x"])
    facts = {
        "stored": path.stem,
        # The cost of a gait's last pose is measured from the warm start's.
        "objective": None,
        "cost": {},
    }
    result = described(problem, contact, solution, facts=facts)
    if FEEDFORWARD in arrays:
        fed = ("sample", "actuator"), arrays[FEEDFORWARD], {"units": "V"}
        result = replace(result, data=result.data.assign({FEEDFORWARD: fed}))
    return result


def open_plan(
    path: str | Path,
) -> tuple[GaitProblem | JumpProblem, ContactImplicit, Program, dict[str, np.ndarray]]:
    """A stored plan's problem, its program, and the arrays of its file.

    Raises:
        FileProblem: for a file that is missing, damaged, or no stored plan.
    """
    arrays = read_arrays(path)
    if "problem" not in arrays:
        raise FileProblem(
            path,
            "is a solver's checkpoint, no stored plan; go on from it with "
            "`drakebots plan hamr --resume`",
        )
    try:
        problem = _problem(json.loads(str(arrays["problem"])))
    except (DrakebotsError, ValueError, TypeError) as error:
        raise FileProblem(
            path, f"its problem cannot be posed ({error}); plan it again"
        ) from error
    contact, program = _program(problem)
    arrays["x"] = load_checkpoint(path, program)
    if FEEDFORWARD in arrays:
        fed = array((None, len(ACTUATORS)), "V", entry=between(0, BIAS, "V"))
        try:
            arrays[FEEDFORWARD] = check_value(FEEDFORWARD, arrays[FEEDFORWARD], fed)
        except InvalidInput as error:
            raise FileProblem(path, f"{error}; plan it again") from error
    return problem, contact, program, arrays


def store_plan(plan: Result, path: str | Path) -> Path:
    """Writes a plan as a file that :func:`stored_plan` reads.

    If its data has voltages with which it is executed, these go into the file too.

    Raises:
        InvalidInput: for a result that is not a plan of HAMR.
        FileProblem: when the file cannot be written.
    """
    if plan.kind != "hamr.plan":
        raise InvalidInput(f"cannot store a {plan.kind}; give a plan of HAMR")
    options, data = plan.provenance["options"].items(), plan.data
    fields = {name: value for name, value in options if name not in _RUN_ONLY}
    _, program = _program(_problem(fields))
    more = {FEEDFORWARD: data[FEEDFORWARD].values} if FEEDFORWARD in data else {}
    text = json.dumps(fields, default=dict)
    path = Path(path)
    save_checkpoint(path, program, data.decision.values, problem=text, **more)
    return path


def _program(problem: GaitProblem | JumpProblem) -> tuple[ContactImplicit, Program]:
    """The program of a stored plan.

    The pose that the cost prefers and the knots at which feet were to be clear of the
    ground came from the warm start and are not kept: `clearance_min_mm` shows how clear
    they are.
    """
    if isinstance(problem, JumpProblem):
        return jump_program(problem)
    return gait_program(problem, np.zeros(hamr_system().nq))


def problem_of(plan: Result) -> GaitProblem | JumpProblem:
    """The problem that a plan of HAMR answers, without what only its solving needed."""
    return _problem(plan.provenance["options"])


def plan_path(name: str | Path) -> Path:
    """The file of a stored plan by its name; a file (.npz) is returned as it is.

    Raises:
        UnknownName: for a name that is none of :func:`stored_plans`.
    """
    if Path(name).suffix == ".npz":
        return Path(name)
    check_names("stored plan of hamr", [name], stored_plans())
    return _folder() / f"{name}.npz"


def _folder() -> Path:
    return package_root() / "hamr" / "plans"


def _problem(fields: Mapping[str, Any]) -> GaitProblem | JumpProblem:
    """The problem with these fields; a jump is the one that has a rise."""
    kept = {name: value for name, value in fields.items() if name not in _RUN_ONLY}
    # Older plans do not say it, and have friction in a field of its own.
    kept = {"integrator": "midpoint"} | kept
    friction = kept.pop("friction", None)
    if friction is not None:
        kept["surface"] = friction
    return build(JumpProblem if "rise" in fields else GaitProblem, kept)


def _judged(name: str, contact: ContactImplicit, program: Program, x) -> Solution:
    """The stored x as a solution, whose verdict is that of its residuals alone."""
    solution = Solution.of_point(program, x, status="stored")
    residuals = solution.residuals
    worst = next(iter(residuals))
    products = audit(contact, solution.parts)["complementarity_max"]
    message = (
        f"stored plan {name}, not solved again; largest residual "
        f"{residuals[worst]:.1e} ({worst}), complementarity {products:.1e} mm N"
    )
    if residuals[worst] <= TOLERANCE and products < CLOSED:
        return replace(solution, verdict=Verdict.SUCCESS, message=message)
    message += f", more than {TOLERANCE:g}; solve it again with --resume"
    return replace(solution, verdict=Verdict.FAILED, message=message)
