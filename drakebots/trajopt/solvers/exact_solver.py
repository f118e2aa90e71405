"""IPOPT with exact Hessians as a solver for lowered MathematicalPrograms.

    lowered = lower(program)
    result = ExactIpoptSolver().Solve(lowered.prog, program.pack(guess))
    parts = program.view(result.get_x_val())

Drake's own IPOPT approximates second derivatives, as Drake's bindings have none. This
solver reads the MathematicalProgram back into a program of blocks. Nonlinear bindings
must come from :func:`.mathematical_program.lower`: their blocks are found again, with
exact sparse Hessians. Bindings that Drake knows by coefficients become blocks of their
own, one for all bindings of the same sparsity:

    A x    b'x    x'Q x/2 + b'x + c

So a lowered program may lose bindings and gain bounds, variables, linear and quadratic
costs and constraints before it is solved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
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
from pydrake.symbolic import Variable

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.program import Block, Group, Program, Term
from drakebots.trajopt.solvers.ipopt_exact import Iteration, Raw, solve_exact
from drakebots.trajopt.solvers.mathematical_program import Key, Origin, key_of

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


class ExactIpoptResult(MathematicalProgramResult):
    """A MathematicalProgramResult with the solver's details."""

    _details: ExactIpoptDetails | None = None
    _read: _ReadBack | None = None

    def get_solver_id(self) -> SolverId:
        """The id of :class:`ExactIpoptSolver`."""
        return SolverId(NAME)

    def get_solver_details(self) -> ExactIpoptDetails:
        """See :class:`ExactIpoptDetails`."""
        return self._details

    def GetDualSolution(self, binding) -> np.ndarray:
        """Change of the optimal cost with each active bound, by row.

        Raises:
            InvalidInput: for bounding boxes (see the details'
                `bound_multipliers`) and bindings that were not solved.
        """
        if binding not in self._read.rows or self._details.multipliers is None:
            raise InvalidInput(
                f"no dual solution of {binding.evaluator().get_description()!r}; only "
                "linear, quadratic and lowered rows of the solved program have one"
            )
        return -self._details.multipliers[self._read.rows[binding]]


class ExactIpoptSolver(SolverInterface):
    """Solves programs from :func:`.mathematical_program.lower` (see the module).

    Options under the id "ExactIpopt" are IPOPT's; `CommonSolverOption` works too.
    Visualization callbacks are called once an iteration.
    """

    def __init__(self):
        SolverInterface.__init__(self)

    @staticmethod
    def id() -> SolverId:
        """The id to set options under."""
        return SolverId(NAME)

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
        """Its name."""
        return NAME

    def AreProgramAttributesSatisfied(self, prog: MathematicalProgram) -> bool:
        """Whether every binding has a block or constant coefficients."""
        return not self.ExplainUnsatisfiedProgramAttributes(prog)

    def ExplainUnsatisfiedProgramAttributes(self, prog: MathematicalProgram) -> str:
        """The reason why not, or an empty text."""
        try:
            _ReadBack(prog)
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
            result: result to fill; None for a new :class:`ExactIpoptResult`.

        Raises:
            InvalidInput: for a binding without a block, by name, a guess of
                the wrong length, or an option that IPOPT does not know.
        """
        read = _ReadBack(prog)
        guess = _guess(prog, initial_guess)
        options, threads = _options(prog, solver_options)
        raw = solve_exact(
            read.program,
            guess,
            options=options,
            monitor=_monitor(prog),
            threads=threads,
        )
        result = ExactIpoptResult() if result is None else result
        _fill(result, prog, raw, read.program.objective(raw.x))
        if isinstance(result, ExactIpoptResult):
            result._read, result._details = read, _details(read, raw)
        return result


def _guess(prog: MathematicalProgram, guess: np.ndarray | None) -> np.ndarray:
    own = prog.initial_guess()
    guess = own if guess is None else np.asarray(guess, float).ravel()
    if len(guess) != prog.num_vars():
        raise InvalidInput(
            f"the initial guess has {len(guess)} values, the program has "
            f"{prog.num_vars()} variables"
        )
    return np.where(np.isnan(guess), 0.0, guess)


def _options(
    prog: MathematicalProgram, more: SolverOptions | None
) -> tuple[dict[str, Any], int | None]:
    found: dict[str, Any] = {}
    common: dict[str, Any] = {}
    for options in (prog.solver_options(), more):
        if options is not None:
            found |= options.options.get(NAME, {})
            common |= options.options.get("Drake", {})
    out: dict[str, Any] = {}
    if common.get("kPrintToConsole"):
        out["print_level"] = 5
    if common.get("kPrintFileName"):
        out["output_file"] = common["kPrintFileName"]
        out["file_print_level"] = 5
    threads = common.get("kMaxThreads")
    return out | found, None if threads is None else int(threads)


def _monitor(prog: MathematicalProgram):
    callbacks = [
        (binding.evaluator(), prog.FindDecisionVariableIndices(binding.variables()))
        for binding in prog.visualization_callbacks()
    ]
    if not callbacks:
        return None

    def monitor(iteration: Iteration) -> bool:
        for evaluator, index in callbacks:
            evaluator.Eval(iteration.x[index])
        return False

    return monitor


def _fill(result, prog: MathematicalProgram, raw: Raw, cost: float) -> None:
    """Sets the values, the status, the variables and the cost of a Drake result.

    pydrake can set a result's values and status only. Its variables and optimal
    cost are left by solving a program with the same variables, all fixed, and a
    constant cost.
    """
    x = np.nan_to_num(raw.x, posinf=0.0, neginf=0.0)
    shell = MathematicalProgram()
    variables = prog.decision_variables()
    shell.AddDecisionVariables(variables)
    shell.AddBoundingBoxConstraint(x, x, variables)
    shell.AddLinearCost(np.zeros(len(x)), float(np.nan_to_num(cost)), variables)
    ClpSolver().Solve(shell, None, None, result)
    result.set_x_val(raw.x)
    outcome = _RESULTS.get(raw.status, SolutionResult.kSolverSpecificError)
    result.set_solution_result(outcome)


def _details(read: _ReadBack, raw: Raw) -> ExactIpoptDetails:
    program, bounds = read.program, raw.bound_multipliers
    return ExactIpoptDetails(
        raw.status,
        raw.log,
        raw.seconds,
        program.values(raw.x) / program.row_scale,
        raw.multipliers,
        None if bounds is None else bounds / program.x_scale,
    )


# --- from a MathematicalProgram to blocks -------------------------------------

_REFUSED = (
    "l2norm_costs",
    "lorentz_cone_constraints",
    "rotated_lorentz_cone_constraints",
    "exponential_cone_constraints",
    "positive_semidefinite_constraints",
    "linear_matrix_inequality_constraints",
    "linear_complementarity_constraints",
)


class _ReadBack:
    """The program of blocks behind a MathematicalProgram.

    Attributes:
        program: the program, in the order of the decision variables; its rows are
            the bindings' rows.
        rows: positions of each binding's rows.

    Raises:
        InvalidInput: for a binding without a block, by its name, for bindings
            lowered in scaled variables or moved to other variables, and for
            variables that are not continuous.
    """

    def __init__(self, prog: MathematicalProgram):
        self.prog = prog
        self.variables = prog.decision_variables()
        self.position = {v.get_id(): i for i, v in enumerate(self.variables)}
        self.terms: list[Term] = []
        self.costs: list[Term] = []
        self.rows: dict[object, np.ndarray] = {}
        self.labels: list[str] = []
        self.lower, self.upper, self.scale = [], [], []
        # By kind and sparsity: (block, columns, rows, coefficients).
        self.patterns: dict[tuple, tuple[Block, list, list, list]] = {}
        self.program = self._read()

    def _read(self) -> Program:
        prog = self.prog
        for variable in self.variables:
            if variable.get_type() != Variable.Type.CONTINUOUS:
                raise InvalidInput(f"variable {variable} is not continuous")
        for kind in _REFUSED:
            for binding in getattr(prog, kind)():
                raise _refusal(binding)
        self._lowered()
        linear = *prog.linear_constraints(), *prog.linear_equality_constraints()
        for binding in linear:
            A = binding.evaluator().get_sparse_A().tocoo()
            self._linear(A, self._columns(binding), self._new_rows(binding))
        for binding in prog.quadratic_constraints():
            e, rows = binding.evaluator(), self._new_rows(binding)
            self._quadratic(e.Q(), e.b(), 0.0, self._columns(binding), rows)
        for binding in prog.linear_costs():
            e = binding.evaluator()
            flat = np.zeros((len(e.a()), len(e.a())))
            self._quadratic(flat, e.a(), e.b(), self._columns(binding), None)
        for binding in prog.quadratic_costs():
            e = binding.evaluator()
            self._quadratic(e.Q(), e.b(), e.c(), self._columns(binding), None)
        for (kind, *_), (block, columns, rows, data) in self.patterns.items():
            where = None if kind == "cost" else np.array(rows)
            ones = np.ones(block.num_rows)
            term = Term(block, np.array(columns), where, ones, np.array(data))
            (self.costs if where is None else self.terms).append(term)
        program = Program(
            "MathematicalProgram",
            {"x": self._variables()},
            {"rows": self._group("rows", self.labels, *self._stacked())},
            tuple(self.terms),
            tuple(self.costs),
        )
        program.check()
        return program

    def _stacked(self):
        parts = (self.lower, self.upper, self.scale)
        return [np.concatenate(p) if p else np.zeros(0) for p in parts]

    @staticmethod
    def _group(name, labels, lower, upper, scale) -> Group:
        return Group(name, 0, 1, tuple(labels), lower[None], upper[None], scale)

    def _variables(self) -> Group:
        n = len(self.variables)
        low, high, scale = np.full(n, -np.inf), np.full(n, np.inf), np.ones(n)
        for binding in self.prog.bounding_box_constraints():
            columns, e = self._columns(binding), binding.evaluator()
            np.maximum.at(low, columns, e.lower_bound())
            np.minimum.at(high, columns, e.upper_bound())
        for index, value in self.prog.GetVariableScaling().items():
            scale[index] = value
        return self._group(
            "x", [v.get_name() for v in self.variables], low, high, scale
        )

    def _columns(self, binding) -> np.ndarray:
        return np.array([self.position[v.get_id()] for v in binding.variables()], int)

    def _new_rows(self, binding, scale: np.ndarray | None = None) -> np.ndarray:
        evaluator = binding.evaluator()
        lower, upper = evaluator.lower_bound(), evaluator.upper_bound()
        start = sum(map(len, self.lower))
        rows = self.rows[binding] = start + np.arange(len(lower))
        scale = np.ones(len(lower)) if scale is None else scale
        name = _name(binding)
        self.labels += [f"{name}[{i}]" for i in range(len(lower))]
        self.lower.append(lower * scale)
        self.upper.append(upper * scale)
        self.scale.append(scale)
        return rows

    # ------------------------------------------------------------- blocks
    def _lowered(self) -> None:
        """Finds the blocks of nonlinear bindings; a term stays one term."""
        rows: dict[Origin, np.ndarray] = {}
        uses: dict[Origin, dict[int, list[int]]] = {}
        prog = self.prog
        for binding in (*prog.generic_constraints(), *prog.generic_costs()):
            key = key_of(binding.evaluator())
            if not isinstance(key, Key):
                raise _refusal(binding)
            self._check(binding, key)
            origin = key.origin
            target = rows.setdefault(origin, np.full(origin.program.num_rows, -1))
            if key.rows is None:
                term, use = key.cost
                uses.setdefault(origin, {}).setdefault(term, []).append(use)
                continue
            if (target[key.rows] >= 0).any():
                raise InvalidInput(
                    f"{_name(binding)} is in the program twice; remove one"
                )
            scale = origin.program.row_scale[key.rows]
            target[key.rows] = self._new_rows(binding, scale)
        for origin, target in rows.items():
            position = np.array([self.position.get(i, -1) for i in origin.variables])
            target = np.append(target, -1)  # for rows that are left out
            for term in origin.program.terms:
                where = target[term.rows]
                kept = (where >= 0).any(axis=1)
                if kept.any():
                    self.terms.append(_part(term, kept, position, where[kept]))
            for number, which in uses.get(origin, {}).items():
                term = origin.program.costs[number]
                self.costs.append(_part(term, np.array(which), position, None))

    def _check(self, binding, key: Key) -> None:
        if key.origin.scaled:
            raise InvalidInput(
                f"{_name(binding)} was lowered in scaled variables; use "
                "lower(program) without scaled"
            )
        ids = [v.get_id() for v in binding.variables()]
        if ids != [key.origin.variables[i] for i in key.columns]:
            raise InvalidInput(
                f"{_name(binding)} was moved to other variables; lower a program that "
                "has it there"
            )

    def _linear(self, A, columns: np.ndarray, rows: np.ndarray) -> None:
        m, n = A.shape
        i, j = A.row, A.col
        signature = ("rows", "linear", m, n, i.tobytes(), j.tobytes())
        if signature not in self.patterns:
            x, a = ca.SX.sym("x", n), ca.SX.sym("a", len(i))
            y = [ca.SX(0) for _ in range(m)]
            for k, (row, column) in enumerate(zip(i.tolist(), j.tolist())):
                y[row] += a[k] * x[column]
            self._add_pattern(signature, "linear", x, ca.vertcat(*y), a)
        self._use(signature, columns, rows, A.data)

    def _quadratic(self, Q, b, c, columns, rows) -> None:
        n = len(b)
        i, j = np.nonzero(np.triu(Q + Q.T))
        kind = "cost" if rows is None else "rows"
        signature = (kind, "quadratic", n, i.tobytes(), j.tobytes())
        if signature not in self.patterns:
            x, a = ca.SX.sym("x", n), ca.SX.sym("a", len(i) + n + 1)
            y = a[len(i) + n] + ca.dot(a[len(i) : len(i) + n], x)
            for k, (row, column) in enumerate(zip(i.tolist(), j.tolist())):
                y += a[k] * x[row] * x[column]
            self._add_pattern(signature, f"quadratic_{kind}", x, y, a)
        factor = np.where(i == j, 0.5, 1.0)
        data = np.concatenate([factor * (Q + Q.T)[i, j] / 2, b, [c]])
        self._use(signature, columns, rows, data)

    def _add_pattern(self, signature, name: str, x: ca.SX, y: ca.SX, data: ca.SX):
        name = f"{name}_{len(self.patterns)}"
        block = Block(name, {"x": x}, {name: y}, data)
        self.patterns[signature] = (block, [], [], [])

    def _use(self, signature, *use: np.ndarray) -> None:
        """Adds the columns, rows and coefficients of one use."""
        for collected, value in zip(self.patterns[signature][1:], use, strict=True):
            collected.append(value)


def _part(term: Term, kept: np.ndarray, position: np.ndarray, rows) -> Term:
    """Some uses of a term, at the variables' positions in another program."""
    columns = position[term.columns[kept]]
    return replace(term, columns=columns, rows=rows, data=term.data[kept])


def _name(binding) -> str:
    """A binding's description, or its variables."""
    name = binding.evaluator().get_description()
    if name:
        return name
    variables = binding.variables()
    some = ", ".join(str(v) for v in variables[:3])
    return f"a binding of {some}{', ...' if len(variables) > 3 else ''}"


def _refusal(binding) -> InvalidInput:
    return InvalidInput(
        f"{_name(binding)} has no block and so no exact Hessian; add it to "
        "the program before lower(), or use SnoptSolver or IpoptSolver"
    )
