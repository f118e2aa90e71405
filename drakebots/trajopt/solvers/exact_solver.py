"""IPOPT with exact Hessians as a solver for MathematicalPrograms.

    lowered = lower(program)
    result = ExactIpoptSolver().Solve(lowered.prog, program.pack(guess))
    parts = program.view(result.get_x_val())

Drake's own IPOPT approximates second derivatives, as Drake's bindings have none. This
solver reads the MathematicalProgram back into a program of blocks, which have exact
sparse Hessians (:mod:`.read_back`). So a lowered program may lose bindings and gain
bounds, variables, symbolic costs and constraints before it is solved, and a program
that was written in Drake's symbols needs no lowering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydrake.solvers import (
    ClpSolver,
    MathematicalProgram,
    MathematicalProgramResult,
    SolutionResult,
    SolverId,
    SolverInterface,
    SolverOptions,
)

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Verdict
from drakebots.trajopt.solvers.ipopt_exact import Iteration, Monitor, Raw, solve_exact
from drakebots.trajopt.solvers.read_back import ReadBack

NAME = "ExactIpopt"

_RESULTS = {
    "Solve_Succeeded": SolutionResult.kSolutionFound,
    "Solved_To_Acceptable_Level": SolutionResult.kSolutionFound,
    "Feasible_Point_Found": SolutionResult.kSolutionFound,
    "Infeasible_Problem_Detected": SolutionResult.kInfeasibleConstraints,
    "Diverging_Iterates": SolutionResult.kUnbounded,
    "Maximum_Iterations_Exceeded": SolutionResult.kIterationLimit,
    "Maximum_CpuTime_Exceeded": SolutionResult.kIterationLimit,
    "Maximum_WallTime_Exceeded": SolutionResult.kIterationLimit,
    Verdict.TIME_LIMIT.value: SolutionResult.kIterationLimit,
    "Not_Enough_Degrees_Of_Freedom": SolutionResult.kInvalidInput,
    "Invalid_Problem_Definition": SolutionResult.kInvalidInput,
    "Invalid_Option": SolutionResult.kInvalidInput,
    "Invalid_Number_Detected": SolutionResult.kInvalidInput,
}


@dataclass(frozen=True)
class ExactIpoptDetails:
    """The details in `result.get_solver_details()`.

    Attributes:
        status: status reported by IPOPT.
        log: columns of its iteration log, scaled units.
        seconds: wall time by activity [s].
        g: values of the rows, in the bindings' units.
        multipliers: multipliers of the rows (IPOPT's sign), in the bindings' units.
        bound_multipliers: multipliers of the variables' bounds, physical units.
    """

    status: str
    log: Mapping[str, list[float]] = field(repr=False)
    seconds: Mapping[str, float]
    g: np.ndarray = field(repr=False)
    multipliers: np.ndarray | None = field(repr=False)
    bound_multipliers: np.ndarray | None = field(repr=False)


class OwnResult(MathematicalProgramResult):
    """A MathematicalProgramResult of a solver of ours, by its name and its details."""

    name: str
    _details: Any = None

    def get_solver_id(self) -> SolverId:
        """The id of the solver."""
        return SolverId(self.name)

    def get_solver_details(self) -> Any:
        """What the solver says of its answer."""
        return self._details


class ExactIpoptResult(OwnResult):
    """A result with :class:`ExactIpoptDetails`."""

    name = NAME
    _read: ReadBack | None = None

    def GetDualSolution(self, binding) -> np.ndarray:
        """Change of the optimal cost with each active bound, by row.

        Raises:
            InvalidInput: for bounding boxes (see the details'
                `bound_multipliers`), complementary pairs, bindings that were not
                solved, and answers without multipliers.
        """
        if binding not in self._read.rows or self._details.multipliers is None:
            raise InvalidInput(
                f"no dual solution of {binding.evaluator().get_description()!r}; only "
                "constraints of the solved program have one, but for bounding boxes "
                "and complementary pairs"
            )
        return -self._details.multipliers[self._read.rows[binding]]


CALLABLE_BY_DRAKE = type(SolverInterface).__name__ != "nb_type"
"""Whether Drake's C++ code may call a solver that is written in Python.

Where Drake is bound by nanobind (1.58 is, 1.51 is not) the call copies
the MathematicalProgram, which cannot be copied, and that aborts the interpreter.
"""


class ExactIpoptSolver(SolverInterface if CALLABLE_BY_DRAKE else object):
    """Solves programs that are lowered, symbolic, or both (see the module).

    Options under the id "ExactIpopt" are IPOPT's; `CommonSolverOption` works too.
    Visualization callbacks are called once an iteration.

    Call its `Solve`. Where Drake could not call it without aborting the interpreter
    (see CALLABLE_BY_DRAKE), it is no SolverInterface, and Drake's functions that take
    one refuse it by a TypeError.
    """

    _result = ExactIpoptResult

    @classmethod
    def id(cls) -> SolverId:
        """The id to set options under."""
        return SolverId(cls._result.name)

    def available(self) -> bool:
        """True."""
        return True

    def enabled(self) -> bool:
        """True."""
        return True

    def solver_id(self) -> SolverId:
        """The id to set options under."""
        return self.id()

    def SolverName(self) -> str:
        """Name of the solver."""
        return self._result.name

    def AreProgramAttributesSatisfied(self, prog: MathematicalProgram) -> bool:
        """Whether every binding has a block, Drake's symbols or coefficients."""
        return not self.ExplainUnsatisfiedProgramAttributes(prog)

    def ExplainUnsatisfiedProgramAttributes(self, prog: MathematicalProgram) -> str:
        """The reason why not, or an empty text."""
        try:
            ReadBack(prog)
        except InvalidInput as error:
            return str(error)
        return ""

    def Solve(
        self,
        prog: MathematicalProgram,
        initial_guess: np.ndarray | None = None,
        solver_options: SolverOptions | None = None,
        result: MathematicalProgramResult | None = None,
    ) -> MathematicalProgramResult:
        """Solves a program.

        Args:
            prog: the program.
            initial_guess: first guess; None for the program's own, 0 where it has none.
            solver_options: options, which override the program's own.
            result: result to fill; None for a new one, whose details are the solver's.

        Raises:
            InvalidInput: for a binding without a block, by name, a guess of
                the wrong length, or an option that IPOPT does not know.
        """
        read = ReadBack(prog)
        guess = read.unit * start_of(prog, initial_guess)
        options = options_of(prog, solver_options, self.SolverName())
        how = {"options": options, "monitor": _watcher(read)}
        raw, details = self._answer(read, guess, **how)
        result = self._result() if result is None else result
        outcome = _RESULTS.get(raw.status, SolutionResult.kSolverSpecificError)
        cost = read.program.objective(raw.x)
        fill(result, read.variables, raw.x / read.unit, cost, outcome)
        if isinstance(result, ExactIpoptResult):
            result._read, result._details = read, details
        return result

    def _answer(self, read: ReadBack, x0: np.ndarray, **how: Any) -> tuple[Raw, Any]:
        """The solver's output from a guess, and the result's details; `how` are
        `options` and `monitor` of :func:`.ipopt_exact.solve_exact`."""
        program = read.program
        raw = solve_exact(program, x0, **how)
        g, bounds = program.values(raw.x) / program.row_scale, raw.bound_multipliers
        bounds = None if bounds is None else bounds / program.x_scale
        told = raw.status, raw.log, raw.seconds, g, raw.multipliers, bounds
        return raw, ExactIpoptDetails(*told)


def start_of(prog: MathematicalProgram, guess: np.ndarray | None) -> np.ndarray:
    """The guess, or the program's own; 0 where there is none."""
    own = prog.initial_guess()
    guess = own if guess is None else np.asarray(guess, float).ravel()
    if len(guess) != prog.num_vars():
        raise InvalidInput(
            f"the initial guess has {len(guess)} values, the program has "
            f"{prog.num_vars()} variables"
        )
    return np.where(np.isnan(guess), 0.0, guess)


def options_of(
    prog: MathematicalProgram, more: SolverOptions | None, name: str
) -> dict[str, Any]:
    """IPOPT's options under a solver's name."""
    found: dict[str, Any] = {}
    common: dict[str, Any] = {}
    for options in (prog.solver_options(), more):
        if options is not None:
            found |= options.options.get(name, {})
            common |= options.options.get("Drake", {})
    out: dict[str, Any] = {}
    if common.get("kPrintToConsole"):
        out["print_level"] = 5
    if common.get("kPrintFileName"):
        out["output_file"] = common["kPrintFileName"]
        out["file_print_level"] = 5
    return out | found


def _watcher(read: ReadBack) -> Monitor | None:
    """A monitor that calls the program's visualization callbacks; None without."""
    prog, unit = read.prog, read.unit
    callbacks = [
        (binding.evaluator(), prog.FindDecisionVariableIndices(binding.variables()))
        for binding in prog.visualization_callbacks()
    ]
    if not callbacks:
        return None

    def monitor(iteration: Iteration) -> bool:
        for evaluator, index in callbacks:
            evaluator.Eval((iteration.x[: len(unit)] / unit)[index])
        return False

    return monitor


def fill(
    result: MathematicalProgramResult,
    variables: np.ndarray,
    values: np.ndarray,
    cost: float,
    outcome: SolutionResult,
) -> None:
    """Sets the values, the status, the variables and the cost of a Drake result.

    pydrake can set a result's values and status only. Its variables and optimal
    cost are left by solving a program with the same variables, all fixed, and a
    constant cost.

    Args:
        result: the result.
        variables, values: decision variables and their values.
        cost: the cost there.
        outcome: the status.
    """
    x = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    shell = MathematicalProgram()
    shell.AddDecisionVariables(variables)
    shell.AddBoundingBoxConstraint(x, x, variables)
    shell.AddLinearCost(np.zeros(len(x)), float(np.nan_to_num(cost)), variables)
    ClpSolver().Solve(shell, None, None, result)
    result.set_x_val(values)
    result.set_solution_result(outcome)
